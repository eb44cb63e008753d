"""Newton's method for joint multi-class machines, on the primal (multinomial) or the augmented Lagrangian (hinge).

Both losses have multipliers alpha_i = c_i (e_y − p_i) with p_i on the simplex, and curvatures Q_i, one k×k matrix per
row: c_i (diag p − p pᵀ) for the multinomial loss; for the hinge with anchors a_i and penalty sigma, alpha_i is the
projection of a_i − sigma (f_i + e_i) onto the feasible multipliers, and Q_i = sigma (I − 11ᵀ/|J|) on the classes J
below their bound.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from maxmargin.runtime import Execution
from maxmargin.solvers.joint_point import JointPoint, JointProblem, certified
from maxmargin.solvers.line_search import exact_step
from maxmargin.solvers.multipliers import (
    EXACT,
    FAR,
    GROWTH,
    LARGEST_SIGMA,
    RESOLVED,
    ROCKAFELLAR,
    ROUGHLY,
    SMALLEST,
)
from maxmargin.solvers.run import Run
from maxmargin.space import prices
from maxmargin.space.budget import COUPLED, largest_square
from maxmargin.space.conjugate_gradients import conjugate_gradients
from maxmargin.space.systems import Breakdown, Cholesky

Vector = NDArray[np.float64]

LARGEST_DIRECT = largest_square(COUPLED)  # unknowns whose equations are formed
FORCING, MOST_CG_STEPS = 1e-2, 300  # of conjugate gradients
# A ridge that keeps the biases determined, beside sigma, or beside the second times the costs where there is none.
WEAK, LIKE_SIGMA = 1e-9, 1e-6
BELOW_ROUNDING = 1e-18  # of Σ |alpha| ‖x‖: a gradient that no step makes smaller
PATIENCE = 4  # rounds without progress
IDLE = (60, 12)  # steps in a row that promise no less than one before: far from the gap asked for, and within it


def project(
    v: Vector, label: tuple[NDArray[np.intp], NDArray[np.intp]], cost: Vector
) -> tuple[Vector, NDArray[np.bool_]]:
    """The nearest alpha with Σ_m alpha_m = 0 and alpha_m ≤ cost [m = y], for every line of v; and which are below.

    alpha_m = min(upper_m, v_m + level): the level is found by sorting.
    """
    upper = np.zeros_like(v)
    upper[label] = cost
    # alpha_m is free while level < upper_m − v_m: free ones are those with the largest upper_m − v_m.
    key = upper - v
    order = np.argsort(-key, axis=1, kind="stable")
    v_sorted, upper_sorted = np.take_along_axis(v, order, 1), np.take_along_axis(upper, order, 1)
    free_sum = np.cumsum(v_sorted, axis=1)
    bound_sum = cost[:, None] - np.cumsum(upper_sorted, axis=1)
    count = np.arange(1, v.shape[1] + 1)
    level = -(free_sum + bound_sum) / count  # if exactly the first `count` were free
    fits = level < np.take_along_axis(key, order, 1)
    n_free = np.maximum(1, fits.sum(axis=1))
    chosen = level[np.arange(len(v)), n_free - 1]
    moved = v + chosen[:, None]
    free = moved < upper
    return np.where(free, moved, upper), free


class _Multinomial:
    rounds = False

    def __init__(self, problem: JointProblem) -> None:
        self.problem = problem

    def multipliers(self, scores: Vector) -> Vector:
        problem = self.problem
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        self.p = p
        alpha: Vector = -problem.cost[:, None] * p
        alpha[problem.own] += problem.cost
        return alpha

    def weight(self, m: int, other: int) -> Vector:
        """Q_i[m, other] of every row, at the last multipliers."""
        own = self.problem.cost * self.p[:, m]
        return np.asarray(own * (1.0 - self.p[:, m]) if m == other else -own * self.p[:, other])

    def times(self, S: Vector) -> Vector:
        """Q_i s_i for every row."""
        return np.asarray(self.problem.cost[:, None] * self.p * (S - (self.p * S).sum(axis=1, keepdims=True)))


class _Hinge:
    rounds = True

    def __init__(self, problem: JointProblem, anchor: Vector, sigma: float) -> None:
        self.problem, self.anchor, self.sigma = problem, anchor, sigma

    def multipliers(self, scores: Vector) -> Vector:
        shifted = scores + 1.0
        shifted[self.problem.own] -= 1.0
        alpha, free = project(self.anchor - self.sigma * shifted, self.problem.own, self.problem.cost)
        free &= (self.problem.cost > 0.0)[:, None]
        self.free = free.astype(np.float64)
        self.count = np.maximum(1.0, self.free.sum(axis=1))
        return alpha

    def weight(self, m: int, other: int) -> Vector:
        both = self.sigma * self.free[:, m] * self.free[:, other]
        return np.asarray(self.sigma * self.free[:, m] - both / self.count if m == other else -both / self.count)

    def times(self, S: Vector) -> Vector:
        mean = (self.free * S).sum(axis=1) / self.count
        return np.asarray(self.sigma * self.free * (S - mean[:, None]))


Curve = _Multinomial | _Hinge


class JointSecondOrder:
    """From a certified point to the optimum; ``best`` is the best point met, kept in the run as well."""

    def __init__(self, run: Run, *, max_steps: int) -> None:
        self.work, self.tol, self.max_steps, self.steps = run, run.aim, max_steps, 0
        self.problem: JointProblem = run.problem
        self.how = run.how
        self.best: JointPoint
        self.direct = self.problem.n_classes * (self.problem.n_cols + 1) <= LARGEST_DIRECT

    def run(self, point: JointPoint) -> JointPoint:
        self.best = point
        problem = self.problem
        W, b = point.W - point.W.mean(axis=0), point.b - point.b.mean()  # the sum over all classes is 0 at the optimum
        if problem.loss == "multinomial":
            curve = _Multinomial(problem)
            try:
                self._minimise(curve, W, b, point.alpha)
            except Breakdown:
                pass
            finally:
                self._keep(curve.multipliers(self._scores(W, b, self.work.sure)), W, b)
            return self.best
        return self._rounds(W, b, point.alpha)

    def _ended(self) -> bool:
        return self.steps >= self.max_steps or self.work.stopped_from_outside() is not None

    def _scores(self, W: Vector, b: Vector, how: Execution) -> Vector:
        return np.asarray(self.problem.space.scores_of_all(W, how) + b)

    def _keep(self, alpha: Vector, W: Vector, b: Vector) -> JointPoint:
        found = certified(self.problem, alpha, W, b, how=self.work.sure)
        if found.gap <= self.best.gap:
            self.best = found
        self.work.keep(found)
        return found

    def _rounds(self, W: Vector, b: Vector, anchor: Vector) -> JointPoint:
        """The method of multipliers: minimise, move the anchors, enlarge sigma."""
        problem = self.problem
        cost = problem.cost[problem.cost > 0.0]
        size = max(float(problem.squared_norms.mean()), 1e-300)
        sigma, before = FAR * min(float(cost.mean()), 1.0 / size), math.inf
        stalled, apart = 0, math.inf
        while self.best.gap > EXACT and stalled < PATIENCE and not self._ended():
            curve = _Hinge(problem, anchor, sigma)
            try:
                alpha = self._minimise(curve, W, b, anchor)
            except Breakdown:
                break
            found = self._keep(alpha, W, b)
            self.work.report(self.best.gap)
            violation = float(np.abs(alpha - anchor).max()) / sigma
            now = found.primal - found.dual
            # While sigma is small beside the costs, the multipliers only creep; that is no stall.
            still = now > 0.5 * apart and violation > 0.5 * before and sigma > 10.0 * float(cost.max())
            stalled = stalled + 1 if still else 0
            apart, before, anchor = min(now, apart), violation, alpha
            if self.best.gap <= self.tol and (not self.direct or found.gap > self.best.gap):
                break  # good enough, or rounding has taken over
            sigma *= GROWTH
            if sigma > LARGEST_SIGMA * float(cost.max()):
                break
        return self.best

    def _minimise(self, curve: Curve, W: Vector, b: Vector, anchor: Vector) -> Vector:
        """Newton's method on psi; W and b are moved in place, the multipliers there are returned."""
        problem, bias = self.problem, self.problem.bias
        scores = self._scores(W, b, self.how)
        rounding = BELOW_ROUNDING * float(np.abs(anchor).sum(axis=1) @ np.sqrt(problem.squared_norms))
        # Whatever holds the biases is missing from the balance of the classes; mending that costs accuracy.
        size_of = curve.sigma if isinstance(curve, _Hinge) else LIKE_SIGMA * float(problem.cost.max())
        ridge = WEAK * size_of + SMALLEST
        centre, smallest, idle = b.copy(), math.inf, 0
        while True:
            alpha = curve.multipliers(scores)
            g_W = problem.space.combine_all(alpha, self.how) - W
            g_b = np.zeros_like(b)
            if bias.value:
                held = b / bias.value if bias.penalised else ridge * (b - centre) / bias.value
                g_b = bias.value * alpha.sum(axis=0) - held
            size = float(np.sqrt((g_W * g_W).sum() + g_b @ g_b))
            if size <= rounding or self._ended():
                return alpha
            dW, db = self._direction(curve, g_W, g_b, ridge)
            # Half of this is what the quadratic model still promises to gain: in units of the objective, whatever X's
            # are.
            decrement = float((g_W * dW).sum()) + (float(g_b @ db) / bias.value if bias.value else 0.0)
            idle = idle + 1 if decrement > 0.5 * smallest else 0
            smallest = min(decrement, smallest)
            if idle >= IDLE[self.best.gap <= self.tol]:
                return alpha
            d_scores = self._scores(dW, db, self.how)
            t = self._line_search(curve, W, b, dW, db, scores, d_scores, ridge, centre)
            self.steps += 1
            self.work.n_iter += 1
            self.work.report(self.best.gap)
            W += t * dW
            b += t * db
            scores = scores + t * d_scores
            if t < 1e-12 or (t == 1.0 and decrement <= self._enough(curve, alpha, anchor)):
                return curve.multipliers(scores)

    def _enough(self, curve: Curve, alpha: Vector, anchor: Vector) -> float:
        """A gain too small to go on for: beside the multipliers' own movement, or beside the gap that is asked for."""
        if isinstance(curve, _Hinge):
            return ROCKAFELLAR**2 * float(((alpha - anchor) ** 2).sum()) / curve.sigma
        return (RESOLVED if self.direct else ROUGHLY * self.tol) * abs(self.best.primal)

    def _direction(self, curve: Curve, g_W: Vector, g_b: Vector, ridge: float) -> tuple[Vector, Vector]:
        bias = self.problem.bias
        ridge = 1.0 if bias.penalised else ridge
        v = np.column_stack([g_W, g_b]) if bias.value else g_W
        step = self._factored(curve, v, ridge) if self.direct else self._conjugate_gradients(curve, v, ridge)
        if not np.all(np.isfinite(step)):
            raise Breakdown("the Newton step is not finite")
        if not bias.value:
            return np.ascontiguousarray(step), np.zeros_like(g_b)
        return np.ascontiguousarray(step[:, :-1]), bias.value * step[:, -1]

    def _factored(self, curve: Curve, g: Vector, ridge: float) -> Vector:
        """All classes and columns in one matrix, block by block."""
        problem, k, size = self.problem, self.problem.n_classes, g.shape[1]
        self.how.spend(prices.factor(k * size))
        H = np.zeros((k * size, k * size))
        block = np.empty((size, size))
        for m in range(k):
            for other in range(m, k):
                weight = np.ascontiguousarray(curve.weight(m, other))
                sign = 1.0 if m == other else -1.0  # off the diagonal no weight is positive
                if not weight.any():
                    continue
                block[:] = 0.0
                problem.space.normal_matrix(sign * weight, problem.bias.value, self.how, add_to=block)
                full = sign * (np.triu(block) + np.triu(block, 1).T)
                H[m * size : (m + 1) * size, other * size : (other + 1) * size] = full
        diagonal = np.ones(size)
        if problem.bias.value:
            diagonal[-1] = ridge
        H[np.arange(k * size), np.arange(k * size)] += np.tile(diagonal, k)
        # The same vector added to all classes changes no loss, and the right-hand side has no part in it: curvature
        # along it changes nothing but the condition of the matrix.
        common = np.diag(H).reshape(k, size).mean(axis=0) / k
        for m in range(k):
            for other in range(m, k):
                H[m * size + np.arange(size), other * size + np.arange(size)] += common
        return Cholesky(H).solve((g - g.mean(axis=0)).ravel()).reshape(g.shape)

    def _conjugate_gradients(self, curve: Curve, g: Vector, ridge: float) -> Vector:
        problem, d = self.problem, self.problem.n_cols
        Q = np.column_stack([curve.weight(m, m) for m in range(problem.n_classes)])
        diagonal = 1.0 + problem.space.squared.combine_all(Q, self.how)
        if g.shape[1] > d:
            diagonal = np.column_stack([diagonal, ridge + problem.bias.value**2 * Q.sum(axis=0)])

        def times(v: Vector) -> Vector:
            b = problem.bias.value * v[:, -1] if v.shape[1] > d else np.zeros(len(v))
            S = curve.times(self._scores(v[:, :d], b, self.how))
            out = problem.space.combine_all(S, self.how) + v[:, :d]
            if v.shape[1] > d:
                out = np.column_stack([out, problem.bias.value * S.sum(axis=0) + ridge * v[:, -1]])
            return out

        return conjugate_gradients(
            times, g, diagonal, forcing=FORCING, most_steps=MOST_CG_STEPS, stop=lambda: self.work.watch.past_deadline
        )  # fmt: skip

    def _line_search(
        self, curve: Curve, W: Vector, b: Vector, dW: Vector, db: Vector, scores: Vector, d_scores: Vector,
        ridge: float, centre: Vector,
    ) -> float:  # fmt: skip
        """The minimiser along the direction: a root of the rising derivative, by secant steps that keep a bracket."""
        bias = self.problem.bias
        along, bent = float((W * dW).sum()), float((dW * dW).sum())
        if bias.penalised:
            along += float(b @ db) / bias.value**2
            bent += float(db @ db) / bias.value**2
        elif bias.free:
            along += ridge * float((b - centre) @ db) / bias.value**2
            bent += ridge * float(db @ db) / bias.value**2

        def slope(t: float) -> float:
            return along + t * bent - float((curve.multipliers(scores + t * d_scores) * d_scores).sum())

        return exact_step(slope, slope(0.0))

"""The active-set polish: a semismooth Newton method that ends at the exact solution.

Solves, from a nearly optimal dual point, the same problem as the solver that calls it. With multipliers
a_i and penalties sigma_i let  z_i = a_i + sigma_i (1 − y_i f_i)  and  pi_i = clip(z_i, 0, upper_i).  Then

    psi(w, b) = ½‖w‖² + Σ (z_i² − (z_i − pi_i)²) / (2 sigma_i)

is convex, once differentiable and piecewise quadratic; rows with 0 < z_i < upper_i are the active set F and
its Hessian is R + X_Fᵀ diag(sigma) X_F. For the squared hinge psi with a = 0, sigma = 2 cost *is* the primal.
For the hinge it is the augmented Lagrangian: minimise psi, put a = pi, enlarge sigma, repeat. Once F is right,
each round solves the equations y f = 1 on F more exactly, so the method ends at rounding level.

Rows far from the margin keep their multiplier while the others are solved: a working set W, chosen anew after
each round from the certified point, so that a step costs little more than the rows that are in doubt.

References
----------
Hestenes: Multiplier and gradient methods, 1969. Rockafellar: Augmented Lagrangians and applications of the
proximal point algorithm in convex programming, 1976. Qi, Sun: A nonsmooth version of Newton's method, 1993.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.problem import Problem
from maxmargin.runtime import Watch
from maxmargin.solvers.base import Point, better, recover
from maxmargin.solvers.newton_system import Breakdown, newton_system

Vector = NDArray[np.float64]

LARGEST_SYSTEM = 6000


@dataclass
class _WorkingSet:
    """The rows in doubt, what all others contribute, and the present hyperplane."""

    chosen: NDArray[np.intp] | slice
    settled: Vector
    rows: _core.Rows
    y: Vector
    upper: Vector
    alpha: Vector
    sigma: Vector
    fixed_w: Vector
    fixed_sum: float
    w: Vector
    b: float
    scores: Vector


class ActiveSetPolish:
    """Takes a certified point to the exact optimum, or returns the best point it met."""

    def __init__(self, problem: Problem, n_threads: int, watch: Watch, *, max_steps: int = 200) -> None:
        self.problem, self.n_threads, self.watch, self.max_steps = problem, n_threads, watch, max_steps
        self.steps = 0
        self.boxed = problem.loss.name == "hinge"
        self.upper, _ = problem.loss.dual_box(problem.cost)
        self.best: Point
        self.rounding = 0.0  # of a gradient: what the sum Σ alpha y x cannot resolve

    def run(self, point: Point, *, penalty: float = 100.0) -> Point:
        """Polish until no more digits can be gained; ``penalty`` is the first sigma in the problem's own units.

        ``self.best`` holds the best point so far, also when an interrupt or a deadline cuts the work short.
        """
        self.best, stalled, widen = point, 0, 1.0
        while self.steps < self.max_steps and self.best.gap > 1e-13 and stalled < 2:
            if self.watch.past_deadline or self.watch.stop_requested:
                break
            before = self.best.gap
            share = widen * (0.1 if before < 1e-5 else 0.3 if before < 0.1 else 1.0)
            work = self._choose(self.best, penalty, share)
            try:
                finished = self._solve(work, 1e-12 if before < 1e-5 else 0.1 * before)
            except Breakdown:
                break
            except (KeyboardInterrupt, _core.DeadlineReached):
                self._absorb(work)
                raise
            found = self._absorb(work)
            self.watch.report(self.steps, self.best.gap)
            if found.gap > 0.3 * before:
                stalled, widen = stalled + 1, 3.0 * widen
            else:
                stalled, widen = 0, 1.0
            if not (self.boxed and finished):
                break
            penalty = 1000.0
        return self.best

    def _absorb(self, work: _WorkingSet) -> Point:
        """The certified point of the working set's multipliers, kept if it is better."""
        alpha = work.settled.copy()
        alpha[work.chosen] = work.alpha
        found = recover(self.problem, alpha, self.n_threads, work.w)
        self.best = better(self.best, found)
        return found

    def _choose(self, point: Point, penalty: float, share: float) -> _WorkingSet:
        """The rows nearest to the margin; for the squared hinge all rows, as their multipliers all move."""
        problem = self.problem
        n, sigma = problem.n_rows, self._penalty(point, penalty)
        self.rounding = float(np.finfo(np.float64).eps) * float(point.alpha @ np.sqrt(problem.squared_norms))
        scores = np.empty(n)
        _core.scores(problem.rows, point.w, 0.0, scores, self.n_threads)
        count = max(int(share * n), 2000)
        if not self.boxed or count >= n:
            return _WorkingSet(
                slice(None), point.alpha, problem.rows, problem.y, self.upper, point.alpha.copy(), sigma,
                np.zeros(problem.n_cols), 0.0, point.w.copy(), point.b, scores,
            )  # fmt: skip
        shortfall = 1.0 - problem.y * (scores + point.b)
        # Far from the margin a multiplier is 0 or at its bound; one that is well inside still has to decide.
        inside = (point.alpha > 1e-3 * self.upper) & (point.alpha < (1.0 - 1e-3) * self.upper)
        chosen = np.sort(np.argpartition(np.where(inside, 0.0, np.abs(shortfall)), count)[:count])
        settled = np.where(shortfall > 0.0, self.upper, 0.0)
        fixed = settled * problem.y
        fixed[chosen] = 0.0
        fixed_w = np.empty(problem.n_cols)
        _core.combine(problem.rows, fixed, fixed_w, self.n_threads)
        return _WorkingSet(
            chosen, settled, problem.take_rows(chosen), problem.y[chosen], self.upper[chosen], point.alpha[chosen],
            sigma[chosen], fixed_w, float(fixed.sum()), point.w.copy(), point.b, scores[chosen],
        )  # fmt: skip

    def _penalty(self, point: Point, penalty: float) -> Vector:
        cost = self.problem.cost
        if not self.boxed:
            return np.where(cost > 0.0, 2.0 * cost, 1.0)
        norms = self.problem.squared_norms
        support = point.alpha > 0.0
        size = float(norms[support].mean()) if support.any() else float(norms.mean())
        typical = float(cost[cost > 0.0].mean())
        return np.full_like(cost, penalty * min(typical, 1.0 / max(size, 1e-300)))

    def _solve(self, work: _WorkingSet, ask: float) -> bool:
        """Rounds of the method of multipliers on the working set until active rows have |1 − y f| ≤ ask."""
        if not self.boxed:
            return self._minimise(work, np.zeros_like(work.alpha))
        before, largest = math.inf, float(work.upper.max())
        while True:
            anchor, w, b, scores = work.alpha, work.w.copy(), work.b, work.scores.copy()
            if not self._minimise(work, anchor):
                if before < math.inf:  # sigma is too large for rounding: the last round's answer stands
                    work.alpha, work.w, work.b, work.scores = anchor, w, b, scores
                return before < math.inf
            moved = float(np.abs(work.alpha - anchor).max()) if len(anchor) else 0.0
            violation = moved / float(work.sigma[0])  # the largest |1 − y f| among active rows
            if violation <= ask or (violation > 0.5 * before and violation < 1e-6):
                return True
            before = violation
            work.sigma = work.sigma * 10.0
            if work.sigma[0] > 1e12 * largest:
                return True

    def _minimise(self, work: _WorkingSet, anchor: Vector) -> bool:
        """Newton's method on psi; leaves pi in work.alpha and returns whether it belongs to a minimiser."""
        bias, y, d = self.problem.bias, work.y, len(work.w)
        # A proximal term keeps the bias determined while F is empty; the outer rounds of the hinge remove it again.
        ridge = 1e-10 * float(work.sigma.mean()) if bias.free and self.boxed else 0.0
        centre, d_scores = work.b, np.empty_like(y)
        gradient = np.empty(d + (bias.value != 0.0))
        before, step = np.zeros(0, dtype=bool), 0.0
        while True:
            z = anchor + work.sigma * (1.0 - y * (work.scores + work.b))
            work.alpha = pi = np.clip(z, 0.0, work.upper)
            pull = y * pi
            _core.combine(work.rows, pull, gradient[:d], self.n_threads, self.watch.core)
            gradient[:d] += work.fixed_w - work.w
            if bias.value:
                held = work.b / bias.value if bias.penalised else ridge * (work.b - centre)
                gradient[d] = bias.value * (float(pull.sum()) + work.fixed_sum) - held
            active = (z > 0.0) & (z < work.upper)
            same = step == 1.0 and np.array_equal(active, before)
            if same or self._small(gradient, pi, anchor, work):
                return True  # a full step within one piece of a quadratic leaves only rounding
            if self.steps >= self.max_steps or min(int(active.sum()), d) > LARGEST_SYSTEM:
                return False
            before, D = active, np.where(active, work.sigma, 0.0)
            system = newton_system(work.rows, D, bias, self.n_threads, bias_ridge=ridge, watch=self.watch.core)
            v = system.solve(gradient)
            if not np.all(np.isfinite(v)):
                raise Breakdown("the Newton step is not finite")
            dw = np.ascontiguousarray(v[:d])
            db = bias.value * float(v[d]) if bias.value else 0.0
            _core.scores(work.rows, dw, 0.0, d_scores, self.n_threads, self.watch.core)
            step = self._line_search(work, z, dw, db, y * (d_scores + db), ridge, centre)
            self.steps += 1
            work.w += step * dw
            work.b += step * db
            work.scores += step * d_scores
            if step < 1e-10:
                return False

    def _small(self, gradient: Vector, pi: Vector, anchor: Vector, work: _WorkingSet) -> bool:
        # Rockafellar's criterion: the gradient need only be small beside the multipliers' own movement.
        if not self.boxed:
            return False
        movement = 0.1 * float(np.linalg.norm(pi - anchor)) / math.sqrt(float(work.sigma[0]))
        d, enough = len(work.w), max(movement, self.rounding)
        small_b = len(gradient) == d or abs(float(gradient[d])) <= enough
        return small_b and float(np.linalg.norm(gradient[:d])) <= enough

    def _line_search(
        self, work: _WorkingSet, z: Vector, dw: Vector, db: float, dm: Vector, ridge: float, centre: float
    ) -> float:
        """The exact minimiser along the direction: a root of the rising, piecewise linear derivative."""
        bias = self.problem.bias
        along = float((work.w - work.fixed_w) @ dw) - work.fixed_sum * db
        curve = float(dw @ dw)
        if bias.penalised:
            along += work.b * db / bias.value**2
            curve += (db / bias.value) ** 2
        elif bias.free:
            along += ridge * (work.b - centre) * db
            curve += ridge * db * db

        def slope(t: float) -> float:
            return along + t * curve - _core.clipped_slope(z, dm, work.upper, work.sigma, t)

        at_zero, at_one = slope(0.0), slope(1.0)
        if at_one <= 1e-10 * abs(at_zero):
            return 1.0
        low, high, f_low, f_high = 0.0, 1.0, at_zero, at_one
        for _ in range(40):  # Illinois: secant steps that keep the bracket
            t = low - f_low * (high - low) / (f_high - f_low) if f_high > f_low else 0.5 * (low + high)
            f = slope(t)
            if abs(f) <= 1e-3 * abs(at_zero) or high - low < 1e-12:
                return t
            if f > 0.0:
                high, f_high, f_low = t, f, 0.5 * f_low
            else:
                low, f_low, f_high = t, f, 0.5 * f_high
        return low if low > 0.0 else high

"""Newton's method on the primal, or the method of multipliers where the primal has corners.

From a point the method minimises psi of :mod:`~maxmargin.solvers.curves` by Newton steps with an exact line search. For
smooth losses that is the primal. For the hinge, the ε-insensitive loss and slack powers below 2 it is the augmented
Lagrangian: minimise psi, put anchor = pi, enlarge sigma, repeat. Where psi is piecewise quadratic, each round solves
the equations of the rows inside their box (the active set) more exactly, so the method ends at rounding level.

Rows far from the margin keep their multiplier meanwhile: see :mod:`~maxmargin.solvers.working_set`.

References
----------
Hestenes: Multiplier and gradient methods, 1969. Rockafellar: Augmented Lagrangians and applications of the
proximal point algorithm in convex programming, 1976. Qi, Sun: A nonsmooth version of Newton's method, 1993.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.losses import SlackPower
from maxmargin.solvers.curves import At, Curve, LowPower, Piecewise, Smooth
from maxmargin.solvers.line_search import exact_step
from maxmargin.solvers.points import Point, better, recover
from maxmargin.solvers.run import Run
from maxmargin.solvers.working_set import WorkingSet, all_rows, nearest_rows
from maxmargin.space import Space
from maxmargin.space.systems import Breakdown, ConjugateGradients, NewtonSystem, newton_system

Vector = NDArray[np.float64]

# First penalties, times the problem's own unit min(mean cost, 1/mean ‖x‖² of the support): how far multipliers may move
# in the first round. The nearer the start, the larger. Unmeasured beyond their powers of ten.
FAR, USUAL, NEAR = 10.0, 100.0, 1000.0
EXACT = 1e-13  # a relative gap that rounding explains
# Residuals asked of active rows: those of rounding from the gap LATE on, else a part of the gap.
RESOLVED, LATE, EARLY = 1e-12, 1e-5, 0.1
# Violations: below the first halving is not waited for, above the second many steps mean a hard round.
IDLE, HARD = 1e-6, 1e-4
STILL, FLAT = 0.9, 1e-6  # a gradient that falls no more than that, beside ‖w‖: rounding keeps it
ROCKAFELLAR = 0.1  # of the multipliers' own movement: a gradient that small ends a round
# To what part of the gap asked for the primal is minimised: as usual, where steps are dear, where they cost nothing.
LAST, ROUGHLY, AT_ROUNDING = 1e-3, 0.1, 1e-15
BALANCED = 1e-6  # of Σ |pi|: an imbalance that the best bias takes up
WEAK, SMALLEST = 1e-10, 1e-280  # a ridge that keeps the bias determined, beside sigma; and where nothing is active
WHOLE, NEARLY_WHOLE = 1e-10, 0.1  # of the first slope: what a full step may leave, of quadratics and of other curves
LOOSEST = 0.1  # residual of conjugate gradients far from the minimum
EASY = 10  # Newton steps: after a round of more, a much larger sigma would begin with hundreds of short steps
GROWTH, GENTLE = 10.0, 2.0  # of sigma from round to round, after an easy and a hard one
LARGEST_SIGMA = 1e12  # times the largest cost: beyond, rounding decides
PATIENCE = 6  # rounds without progress
ROUNDS_BEGIN, ROUNDS_REFINE, ROUNDS_CREEP = 1e-3, 1e-8, (200, 20)  # steps of a round by the last violation
LARGE = 1_000_000  # numbers in X from which one more step is not taken unasked
MANY_STEPS = 10**9  # no limit but the run's own
FIRST_LOOK = 0.02  # of the rows at least, and GAP_FACTOR times the root of the gap, are in doubt
GAP_FACTOR = 5.0
NEARLY_FALLEN = 0.02  # of the first gradient: from here on the curvature of all rows is used
SHORTEST = 1e-10  # a step below that gains nothing
PER_UNKNOWN = 20  # rows whose curvature is worth taking for each unknown
MOST_THINNED = 8  # one row in so many


class MethodOfMultipliers:
    """Takes a certified point to the optimum; ``best`` is the best point met, also after an interrupt.

    Every point met is kept in the run, which also counts the steps and says when to stop.

    Parameters
    ----------
    max_steps : limit on steps of this call, beside the run's own.
    enough : relative gap at which the work may end where more digits would cost much.
    exact : go on to rounding level where that is cheap.
    """

    def __init__(self, run: Run, *, max_steps: int = MANY_STEPS, enough: float = EXACT, exact: bool = True) -> None:
        problem = run.problem
        self.work, self.problem, self.how, self.max_steps = run, problem, run.how, max_steps
        self.enough, self.exact = enough, exact
        self.steps = 0
        self.rounds = not problem.loss.smooth  # multipliers are needed
        self.boxed = self.rounds and problem.loss.has_box  # rows far from the margin have a multiplier at a bound
        self.best: Point
        self.rounding = 0.0  # of a gradient: what the sum Σ alpha sign x cannot resolve
        # Newton's last step squares the gap; where a step is cheap, it is taken even if nobody asked for more digits.
        self._large = problem.nnz > LARGE or not exact
        self.iterative = False  # whether a linear system had to be solved by conjugate gradients

    def run(
        self, point: Point, *, penalty: float = USUAL, sigma: float | None = None, fraction: float | None = None
    ) -> Point:
        """Work until no more digits can be gained; ``penalty`` is the first sigma in the problem's own units.

        ``sigma`` itself may be given instead. ``fraction`` of the rows makes the first working set; by default the gap
        decides.
        """
        self.best, stalled, ask, closest = point, 0, 1.0, math.inf
        while self.best.gap > EXACT and stalled < PATIENCE and not self._ended(self.max_steps):
            # The best point has the least relative gap. Where its dual value is below zero, the next round's may be
            # nearer in value and still not be better: that is progress once only.
            before, closest = self.best.gap, min(closest, self.best.primal - self.best.dual)
            ask = RESOLVED if before < LATE and self.exact else EARLY * min(before, ask)
            # Scores are off by the root of the gap, and so many rows are in doubt.
            by_gap = max(FIRST_LOOK, GAP_FACTOR * math.sqrt(before)) if before < 0.1 else 1.0
            fraction = by_gap if fraction is None else fraction
            work = self._choose(self.best, penalty, fraction)
            if sigma is not None:
                work.sigma = np.full_like(work.sigma, sigma)
            try:
                finished = self._solve(work, ask)
            except Breakdown:
                break
            except (KeyboardInterrupt, _core.DeadlineReached):
                self._absorb(work)
                raise
            found = work.certified or self._absorb(work)
            del work  # its rows, before the next ones are copied
            self.work.report(self.best.gap)
            if self.best.gap <= self.enough and not (self.rounds and self.exact):
                break
            apart = found.primal - found.dual
            if not apart < 0.5 * closest:  # true for NaN, too
                stalled, fraction = stalled + 1, min(1.0, 3.0 * fraction)
            else:
                stalled, fraction = 0, None if self.best.gap < 1e-3 else min(1.0, 3.0 * fraction)
            closest = min(closest, apart)
            if not finished:
                break
            penalty, sigma = NEAR, None
        return self.best

    def _ended(self, limit: int) -> bool:
        return self.steps >= limit or self.work.stopped_from_outside() is not None

    def _absorb(self, work: WorkingSet) -> Point:
        """The certified point of the working set's multipliers and hyperplane, kept if it is better."""
        loss, problem = self.problem.loss, self.problem
        if loss.smooth and problem.bias.free:  # the multipliers of the best bias are balanced
            work.b = sum(loss.best_bias(work.scores, problem.y, problem.cost, work.b)) / 2.0
            alpha = problem.cost * loss.slope(loss.residual(work.scores + work.b, problem.y))
        else:
            alpha = work.whole()
        found = recover(problem, alpha, self.work.sure, work.w, work.b, compete=self.rounds)
        self.best = better(self.best, found)
        self.work.keep(found)
        return found

    def _choose(self, point: Point, penalty: float, fraction: float) -> WorkingSet:
        """The rows in doubt where multipliers have a box, all rows elsewhere."""
        problem, sigma = self.problem, self._penalty(point, penalty)
        self.rounding = float(np.finfo(np.float64).eps) * float(np.abs(point.alpha) @ np.sqrt(problem.squared_norms))
        if not self.boxed:
            return all_rows(problem, point, sigma)
        return nearest_rows(problem, point, sigma, fraction, self.work.sure)

    def _penalty(self, point: Point, penalty: float) -> Vector:
        cost = self.problem.cost
        if not self.rounds:
            return np.where(cost > 0.0, 2.0 * cost, 1.0)
        norms = self.problem.squared_norms
        support = point.alpha != 0.0
        size = float(norms[support].mean()) if support.any() else float(norms.mean())
        typical = float(cost[cost > 0.0].mean())
        return np.full_like(cost, penalty * min(typical, 1.0 / max(size, 1e-300)))

    def _curve(self, work: WorkingSet, anchor: Vector) -> Curve:
        problem, loss, chosen = self.problem, self.problem.loss, work.chosen
        sign, target = problem.sign[chosen], problem.target[chosen]
        if loss.has_box:
            return Piecewise(sign, target, problem.box.part(chosen), work.sigma, anchor, self.work.n_threads)
        cost = problem.cost[chosen]
        if loss.smooth:
            return Smooth(sign, target, cost, loss)
        assert isinstance(loss, SlackPower)
        return LowPower(sign, target, cost, loss, work.sigma, anchor)

    def _solve(self, work: WorkingSet, ask: float) -> bool:
        """Rounds of the method of multipliers on the working set until active rows have |residual| ≤ ask."""
        if not self.rounds:
            return self._minimise(work, np.zeros_like(work.alpha), MANY_STEPS)
        before, largest = math.inf, float(self.problem.cost.max())
        while True:
            begun = self.steps
            anchor, w, b, scores = work.alpha, work.w.copy(), work.b, work.scores.copy()
            if not self._minimise(work, anchor, self._most_steps(before)):
                if before < math.inf:  # sigma is too large for rounding: the last round's answer stands
                    work.alpha, work.w, work.b, work.scores = anchor, w, b, scores
                return before < math.inf
            moved = float(np.abs(work.alpha - anchor).max()) if len(anchor) else 0.0
            violation = moved / work.largest_sigma  # the largest residual among active rows
            idle = violation > 0.5 * before and violation < IDLE and work.largest_sigma > largest
            if violation <= ask or idle:
                return True
            if not self.exact:
                work.certified = self._absorb(work)
                if work.certified.gap <= self.enough:
                    return True
                work.certified = None
            before = violation
            hard = self.steps - begun > EASY and violation > HARD  # near the end only large sigma resolve the rest
            work.sigma = work.sigma * (GENTLE if hard else GROWTH)
            if work.largest_sigma > LARGEST_SIGMA * largest:
                return True

    def _most_steps(self, violation: float) -> int:
        """Of a round, by the violation that the last one left: near the end many steps only chase rounding."""
        if violation > ROUNDS_BEGIN:
            return MANY_STEPS
        refining, creeping = ROUNDS_CREEP
        return refining if violation > ROUNDS_REFINE and self.boxed else creeping

    def _minimise(self, work: WorkingSet, anchor: Vector, most: int) -> bool:
        """Newton's method on psi; leaves pi in work.alpha and returns whether it belongs to a minimiser."""
        limit = min(self.max_steps, self.steps + most)
        bias, d, curve = self.problem.bias, len(work.w), self._curve(work, anchor)
        # A proximal term keeps the bias determined while nothing is active; rounds of multipliers remove it again.
        ridge = WEAK * work.largest_sigma if bias.free and self.rounds else 0.0
        centre, d_scores = work.b, np.empty_like(work.scores)
        gradient = np.empty(d + (bias.value != 0.0))
        before, step, best_size, first, rough = np.zeros(0), 0.0, math.inf, 0.0, False
        thinning = not self.rounds
        while True:
            at = curve.at(work.scores, work.b)
            work.alpha, D = at.pi, at.D
            self._descend_along(gradient, work, at, ridge, centre)
            if curve.exact and step == 1.0 and not rough and np.array_equal(D, before):
                return True  # a full step within one piece of a quadratic leaves only rounding
            size = math.sqrt(float(gradient[:d] @ gradient[:d]))
            if self._small(gradient, size, at, work):
                return True
            settled = not self.rounds and not rough and step == 1.0 and size > STILL * best_size
            if settled and size < FLAT * float(np.linalg.norm(work.w)):
                return True  # rounding keeps it from falling any further
            best_size = min(size, best_size)
            if self._ended(limit):
                return False
            first = size if first == 0.0 else first
            # Far from the minimum the curvature of some of the rows is as good as that of all.
            thinning = thinning and size > NEARLY_FALLEN * first
            thin = _thinned(D, d) if thinning else D
            before = D
            system = self._system(work, thin, ridge)
            if system is None:
                return False
            rough = system.iterative or thin is not D
            if isinstance(system, ConjugateGradients):  # far from the minimum exact steps would be wasted
                system.forcing = min(LOOSEST, size / first)
            dw, db, step = self._step(work, curve, system, gradient, ridge, centre, d_scores)
            work.w += step * dw
            work.b += step * db
            work.scores += step * d_scores
            self.work.report(min(1.0, self.best.gap))  # 1 where nobody knows a dual value yet
            thinning = thinning and step > 0.5  # columns that few rows use may have been missed
            if step < SHORTEST:
                return False

    def _descend_along(self, gradient: Vector, work: WorkingSet, at: At, ridge: float, centre: float) -> None:
        """Fill in the downhill gradient of psi, the bias last."""
        bias, d = self.problem.bias, len(work.w)
        work.rows.combine(at.signed, self.how, out=gradient[:d])
        gradient[:d] += work.fixed_w - work.w
        if bias.value:
            held = work.b / bias.value if bias.penalised else ridge * (work.b - centre)
            gradient[d] = bias.value * (at.balance + work.fixed_sum) - held

    def _system(self, work: WorkingSet, D: Vector, ridge: float) -> NewtonSystem | None:
        damping = ridge if self.rounds else AT_ROUNDING * float(self.problem.cost.sum()) + SMALLEST
        system = newton_system(
            work.rows, D, self.problem.bias, self.how, bias_ridge=damping, cache=work.cache,
            normal=work.normal if self.problem.loss.has_box else None, iterative=self._may_iterate(work.rows),
        )  # fmt: skip
        self.iterative = self.iterative or (system is not None and system.iterative)
        return system

    def _may_iterate(self, rows: Space) -> bool:
        """Sparse rows only, all of them, and without rounds of multipliers: dense systems are factored."""
        return not self.rounds and rows.sparse and rows is self.problem.space

    def _step(
        self, work: WorkingSet, curve: Curve, system: NewtonSystem, gradient: Vector, ridge: float, centre: float,
        d_scores: Vector,
    ) -> tuple[Vector, float, float]:  # fmt: skip
        """Direction (dw, db) and step length; fills d_scores."""
        bias, d = self.problem.bias, len(work.w)
        v = system.solve(gradient)
        if not np.isfinite(v).all():
            raise Breakdown("the Newton step is not finite")
        dw = np.ascontiguousarray(v[:d])
        db = bias.value * float(v[d]) if bias.value else 0.0
        work.rows.scores(dw, self.how, out=d_scores)
        curve.along(d_scores, db)
        step = self._line_search(work, curve, dw, db, ridge, centre, -float(gradient @ v))
        self.steps += 1
        self.work.n_iter += 1
        return dw, db, step

    def _small(self, gradient: Vector, size: float, at: At, work: WorkingSet) -> bool:
        d = len(work.w)
        size_b = abs(float(gradient[d])) if len(gradient) > d else 0.0
        if self.rounds:
            # Rockafellar's criterion: the gradient need only be small beside the multipliers' own movement.
            movement = ROCKAFELLAR * math.sqrt(at.moved / work.largest_sigma)
            enough = max(movement, self.rounding)
            return size_b <= enough and size <= enough
        # For psi = primal the gap is ½‖gradient‖², once the bias is balanced, which costs no pass over the rows.
        costly = self._large or self.iterative
        target = (ROUGHLY if self.iterative or not self.exact else LAST) * self.enough if costly else AT_ROUNDING
        apart = 2.0 * target * abs(self.best.primal)
        balanced = size_b <= BALANCED * max(at.size, 1e-300)
        balanced = balanced or (costly and size_b**2 <= apart * at.curvature)
        return size <= max(math.sqrt(apart), 4.0 * self.rounding) and balanced

    def _line_search(
        self, work: WorkingSet, curve: Curve, dw: Vector, db: float, ridge: float, centre: float, at_zero: float
    ) -> float:
        """The exact minimiser along the direction; the slope of psi is ``at_zero`` at first."""
        bias = self.problem.bias
        along = float((work.w - work.fixed_w) @ dw) - work.fixed_sum * db
        curvature = float(dw @ dw)
        if bias.penalised:
            along += work.b * db / bias.value**2
            curvature += (db / bias.value) ** 2
        elif bias.free:
            along += ridge * (work.b - centre) * db
            curvature += ridge * db * db
        return exact_step(
            lambda t: along + t * curvature - curve.slope(t), at_zero, whole=WHOLE if curve.exact else NEARLY_WHOLE
        )


def _thinned(D: Vector, n_cols: int) -> Vector:
    """Curvatures of every k-th active row only, k times as large; D itself where there are few rows for the columns."""
    per_stride = PER_UNKNOWN * (n_cols + 1)
    if len(D) < 2 * per_stride:
        return D
    active = np.flatnonzero(D)
    stride = min(MOST_THINNED, len(active) // per_stride)
    if stride < 2:
        return D
    thin, kept = np.zeros_like(D), active[::stride]
    thin[kept] = stride * D[kept]
    return thin

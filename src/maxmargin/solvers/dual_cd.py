"""Dual coordinate descent with shrinking and a proximal bias, then an exact polish.

Solves
    maximise    Σ target_i alpha_i − kink |alpha_i| − ½ diagonal_i alpha_i² − ½‖Σ alpha_i sign_i x_i‖²
    subject to  Σ alpha_i sign_i = 0,  lower ≤ alpha ≤ upper

one multiplier at a time. The equality that an unpenalised bias brings is handled by the method of multipliers:
b is its multiplier and is moved after every epoch.

References
----------
Hsieh, Chang, Lin, Keerthi, Sundararajan: A dual coordinate descent method for large-scale linear SVM, 2008.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.losses.base import DualBox
from maxmargin.problem import Problem
from maxmargin.runtime import Execution, Watch, effective_threads
from maxmargin.solution import History, Solution, Status
from maxmargin.solvers.base import LOOSE, Point, Start, as_solution, better, bias_gain, recover
from maxmargin.solvers.claims import AIM
from maxmargin.solvers.newton_method import NewtonMethod
from maxmargin.solvers.screening import proven
from maxmargin.solvers.span import solve_where_small
from maxmargin.space import Rows

Vector = NDArray[np.float64]

MOST_ROWS = 500  # of few rows with many columns: their Gram matrix costs less than some epochs


@dataclass(frozen=True)
class DualCoordinateDescent:
    """Dual coordinate descent.

    Parameters
    ----------
    tol : relative duality gap to reach.
    max_iter : limit on epochs.
    seed : seed of the random order.
    n_threads : threads of the polish, and of the epochs of large sparse data.
    polish : finish with :class:`~maxmargin.solvers.newton_method.NewtonMethod`, to rounding level.
    patient : go on with epochs after a polish that did not reach ``tol``.

    Guarantees
    ----------
    The returned dual point is feasible and the gap is computed from it.

    Examples
    --------
    >>> from maxmargin import Problem
    >>> problem = Problem.from_arrays([[-1.0], [1.0]], [0, 1], loss="hinge")
    >>> DualCoordinateDescent().solve(problem).w.round(9)
    array([1.])
    """

    tol: float = 1e-6
    max_iter: int = 10000
    seed: int = 0
    n_threads: int | None = None
    polish: bool = True
    patient: bool = True
    reason: str = "asked for"
    name: str = field(default="dual_cd", init=False)

    def solve(self, problem: Problem, *, start: Start = None, watch: Watch | None = None) -> Solution:
        watch = watch or Watch()

        def run(problem: Problem, start: Start) -> Solution:
            return _Run(self, problem, watch, start).solve()

        return solve_where_small(self, run, problem, start, watch, most_rows=MOST_ROWS)


class _Run:
    def __init__(self, solver: DualCoordinateDescent, problem: Problem, watch: Watch, start: Start) -> None:
        self.solver, self.problem, self.watch = solver, problem, watch
        self.n_threads = effective_threads(solver.n_threads)
        self.history, self.n_iter, self.reason, self.aim = History(), 0, solver.reason, AIM * solver.tol
        self.best: Point | None = None
        self.box = problem.box if problem.loss.has_box else _entropy_box(problem)
        self.settled = 0.1
        self.last_look = (0, 1.0)
        # Sparse rows in more dimensions than rows hardly touch each other: epochs converge by themselves.
        self.orthogonal = problem.space.sparse and problem.n_cols > problem.n_rows and problem.nnz > 50_000
        self.in_lanes = True  # while they are not in each other's way
        self.moving: NDArray[np.intp] | None = None  # rows that are not proven; None: all
        alpha, self.centre = (start.alpha, start.b) if isinstance(start, Solution) else (start, 0.0)
        self.descent = self._begin(np.zeros(problem.n_rows) if alpha is None else alpha, solver.seed)

    def _begin(self, alpha: Vector, seed: int) -> _core.Descent:
        """A descent that starts at ``alpha`` and moves the rows that are not proven yet."""
        problem, box, moving = self.problem, self.box, self.moving
        self.alpha = np.clip(alpha, box.lower, box.upper)
        signed = self.alpha * problem.sign
        w = problem.space.combine(signed, Execution(self.n_threads))
        gain = problem.bias.value**2 if problem.bias.penalised else 0.0
        if problem.bias.free:
            gain = bias_gain(problem.squared_norms + box.diagonal)
        if self.best is not None:
            self.centre = self.best.b
        centre = self.centre if problem.bias.free else 0.0
        if moving is None:
            self.rows, self.part = problem.space, self.alpha
        else:
            self.rows, self.part = problem.space.take(moving), self.alpha[moving]
            box = box.part(moving)
        self.meetings = meetings_of_lanes(self.rows) if self.in_lanes else 0
        chosen = slice(None) if moving is None else moving
        return _core.Descent(
            problem.sign[chosen], box.lower, box.upper, box.diagonal, box.kink, problem.target[chosen],
            problem.squared_norms[chosen], self.part, w, centre, gain, float(signed.sum()), seed,
            lanes=2 if self.meetings > 0 else 1, meetings=max(1, self.meetings),
            entropy=problem.loss.entropic,
        )  # fmt: skip

    def _screen(self) -> None:
        """Leave out rows whose multiplier is proven, once they are many: each epoch then costs so much less."""
        assert self.best is not None
        if self.best.gap > 1e-2 or not self.problem.loss.has_box:
            return
        known = proven(self.problem, self.best)
        left = np.flatnonzero(~known)
        if len(left) > 0.5 * len(self.part) or len(left) < 1:
            return
        box, r = self.box, self.problem.target - self.problem.sign * (self.best.scores + self.best.b)
        bound = np.where(r > box.kink, box.upper, np.where(r < -box.kink, box.lower, 0.0))
        alpha = np.where(known, bound, self._whole())
        self.moving = left
        self.descent = self._begin(alpha, self.solver.seed)

    def _whole(self) -> Vector:
        """The multipliers of all rows."""
        if self.moving is not None:
            self.alpha[self.moving] = self.part
        return self.alpha

    def solve(self) -> Solution:
        status = Status.CONVERGED
        try:
            status = self._loop()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except _core.DeadlineReached:
            status = Status.TIME_LIMIT
        if status is not Status.CONVERGED:
            self._certify()
        assert self.best is not None
        solver = self.solver
        return as_solution(
            self.problem, self.best, status, solver.tol, self.history, self.n_iter, self.watch, solver.name,
            self.reason, n_threads=self.n_threads,
        )  # fmt: skip

    def _certify(self) -> Point:
        found = recover(self.problem, self._whole(), self.n_threads)
        self.best = better(self.best, found)
        return found

    def _loop(self) -> Status:
        """Epochs until the polish can finish: when the gap is small enough, or hardly falls any more."""
        # Where a row's cost is large beside 1/‖x‖², coordinate steps get nowhere and Newton may start at once.
        strength = float(self.problem.cost.mean() * self.problem.squared_norms.mean())
        next_look = 2 if strength > 10.0 or self.problem.loss.smooth or self.alpha.any() else 10
        next_look = 5 if self.orthogonal and self.problem.loss.smooth and strength <= 10.0 else next_look
        ask, epochs, previous = np.inf, 0, np.inf
        while True:
            violation = self.descent.epoch(self.rows.core, self.watch.core, self.n_threads)
            if 2 * self.descent.n_halved > self.meetings > 0:
                self.in_lanes = False
                self.descent = self._begin(self._whole(), self.solver.seed)
            epochs += 1
            self.n_iter += 1
            if self.problem.bias.free:
                self.descent.bias_center = self.descent.bias
            if violation <= self.settled:  # the active rows agree: look at all rows again, then ask for more
                if self.descent.n_active == len(self.part):
                    self.settled *= 0.1
                self.descent.unshrink()
            if epochs < next_look and epochs < self.solver.max_iter:
                continue
            point = self._certify()
            next_look = epochs + self._epochs_to_go(epochs, point.gap)
            self.history.add(self.n_iter, self.watch.seconds, point.gap, "coordinate descent", certified=True)
            self.watch.report(self.n_iter, point.gap)
            if self.watch.past_deadline:
                return Status.TIME_LIMIT
            if self.watch.stop_requested:
                return Status.INTERRUPTED
            slow = epochs >= (300 if self.orthogonal else 50) and point.gap > 0.5 * previous
            previous = point.gap
            # A polish that costs more than everything before it is only worth its price if nothing else helps. Both
            # are estimates, not clocks: the result must not depend on the machine's load.
            spent = 3e-9 * self.problem.nnz * epochs
            cheap = self.solver.polish and not self.orthogonal
            cheap = cheap and polish_seconds(self.problem, point) <= max(0.1, 0.5 * spent)
            if point.gap <= self.aim and (not cheap or self.solver.tol > LOOSE):
                return Status.CONVERGED
            if self.solver.polish and ((point.gap <= ask and cheap) or slow):
                if self._polish(point):
                    return Status.CONVERGED
                if not self.solver.patient:
                    return Status.NUMERICAL_LIMIT
                ask, previous = max(0.1 * min(ask, point.gap), 1e-12), np.inf
                self.descent = self._begin(point.alpha if self.best is None else self.best.alpha, self.solver.seed)
            else:
                self._screen()
            if epochs >= self.solver.max_iter:
                return Status.ITERATION_LIMIT

    def _epochs_to_go(self, epochs: int, gap: float) -> int:
        """How many epochs until the next look: as many as the pace since the last one says, within limits."""
        most = max(10, epochs // 2)
        then, before = self.last_look
        self.last_look = (epochs, gap)
        pace = math.log(gap / before) / (epochs - then) if 0.0 < gap < before else 0.0
        if pace >= 0.0 or gap <= self.aim or (then == 0 and not self.problem.loss.smooth):
            return min(most, 5) if then == 0 else most
        return min(most, max(1, math.ceil(1.1 * math.log(0.9 * self.aim / gap) / pace)))

    def _polish(self, point: Point) -> bool:
        exact = self.solver.tol <= LOOSE
        polish = NewtonMethod(self.problem, self.n_threads, self.watch, max_steps=400, enough=self.aim, exact=exact)
        try:
            polish.run(point, penalty=10.0)
        finally:
            self.best = better(self.best, polish.best)
            self.n_iter += polish.steps
        return self.best.gap <= self.aim


def _entropy_box(problem: Problem) -> DualBox:
    """The range of the multipliers of an entropic loss, and the least curvature that its entropy adds."""
    lower, upper = problem.loss.domain(problem.cost)
    return DualBox(lower, upper, 4.0 / np.maximum(problem.cost, 1e-300))


def meetings_of_lanes(rows: Rows) -> int:
    """How often two lanes, each with half of the rows, should meet in an epoch; 0 if one lane is better.

    At a meeting w is copied and added up, which must be little beside the work between two meetings. The number of
    threads has no say: two lanes on one thread give the same result.
    """
    n_cols = rows.d
    if not rows.sparse or rows.nnz < 1_000_000 or rows.nnz < 64 * n_cols:
        return 0
    return int(min(32, rows.nnz // (16 * n_cols)))


def polish_seconds(problem: Problem, point: Point) -> float:
    """What a polish from this point may cost: Newton steps with a factorisation in the size of the active set."""
    if not problem.loss.smooth:
        share = np.abs(point.alpha)
        inside = (share > 1e-3 * problem.cost) & (share < (1.0 - 1e-3) * problem.cost)
        # In the end no more rows than unknowns stay inside, unless by coincidence.
        steps, active = 60.0, min(max(float(inside.sum()), 100.0), problem.n_cols + 1.0)
    else:
        steps, active = 10.0, float(np.count_nonzero(point.alpha))
    per_row = problem.nnz / problem.n_rows
    if problem.n_cols > active:
        form, size = active**2 * per_row * (2e-9 if problem.space.sparse else 3e-10), active
    else:
        form, size = active * per_row**2 * (1e-9 if problem.space.sparse else 4e-11), float(problem.n_cols)
    return steps * (form + size**3 / 6e10 + 2.0 * problem.nnz * 1e-9)

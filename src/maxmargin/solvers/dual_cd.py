"""Dual coordinate descent with shrinking and a proximal bias, then an exact polish.

Solves
    maximise    Σ target_i alpha_i − tube |alpha_i| − ½ diagonal_i alpha_i² − ½‖Σ alpha_i sign_i x_i‖²
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
from maxmargin.runtime import Watch
from maxmargin.solution import Solution, Status
from maxmargin.solvers.multipliers import FAR, MethodOfMultipliers
from maxmargin.solvers.points import LOOSE, Point, bias_gain, recover
from maxmargin.solvers.run import STOPPED, Run, Settings, Start
from maxmargin.solvers.screening import proven
from maxmargin.solvers.span import solve_where_small
from maxmargin.space import Rows, in_memory, prices

Vector = NDArray[np.float64]

MOST_ROWS = 500  # of few rows with many columns: their Gram matrix costs less than some epochs
MANY_NUMBERS = 50_000  # of X from which rows in more dimensions than rows count as nearly orthogonal
STRONG = 10.0  # of mean cost times mean ‖x‖²: coordinate steps get nowhere, and Newton may start at once
SETTLED = 0.1  # of the first violation: the active rows agree, and then each time a tenth of that
SCREENED = 1e-2  # a gap from which multipliers can be proven
SLOW = (50, 300)  # epochs after which a gap that has not halved since the last look is slow; nearly orthogonal rows
MOST_POLISH_STEPS = 400
HALVED = 0.5  # what a gap should fall by from look to look
ASK_AGAIN, LEAST_ASK = 0.1, 1e-12  # of the gap at which a polish failed: the next one waits for that
CHEAP_POLISH = 0.1 * prices.SECOND  # a polish that costs no more, or half of what was spent, is taken at once
TOTAL_STEPS = 60.0  # of a polish with rounds of multipliers; 10 of a smooth loss
SMOOTH_STEPS = 10.0


@dataclass(frozen=True, kw_only=True)
class DualCoordinateDescent(Settings):
    """Dual coordinate descent; ``max_iter`` counts epochs.

    Costs, in reads of X: one an epoch over all active rows, both ways in one visit, and two for a look at the gap. The
    polish is that of :mod:`~maxmargin.solvers.multipliers`.

    Parameters
    ----------
    seed : seed of the random order.
    polish : finish with :class:`~maxmargin.solvers.multipliers.MethodOfMultipliers`, to rounding level.
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

    seed: int = 0
    polish: bool = True
    patient: bool = True
    name: str = field(default="dual_cd", init=False)

    def solve(self, problem: Problem, *, start: Start = None, watch: Watch | None = None) -> Solution:
        watch = watch or Watch()

        def run(problem: Problem, start: Start) -> Solution:
            return _Descent(self, problem, watch, start).solve()

        return solve_where_small(self, run, problem, start, watch, most_rows=MOST_ROWS)


class _Descent:
    """One call of solve."""

    def __init__(self, settings: DualCoordinateDescent, problem: Problem, watch: Watch, start: Start) -> None:
        self.settings, self.problem = settings, problem
        self.run = Run(settings, problem, watch)
        self.box = problem.box if problem.loss.has_box else _entropy_box(problem)
        self.settled = SETTLED
        self.last_look = (0, 1.0)
        # Sparse rows in more dimensions than rows hardly touch each other: epochs converge by themselves.
        self.orthogonal = problem.space.sparse and problem.n_cols > problem.n_rows and problem.nnz > MANY_NUMBERS
        self.in_parallel = True  # while they are not in each other's way
        self.moving: NDArray[np.intp] | None = None  # rows that are not proven; None: all
        alpha, self.centre = (start.alpha, start.b) if isinstance(start, Solution) else (start, 0.0)
        self.descent = self._begin(np.zeros(problem.n_rows) if alpha is None else alpha)

    def _begin(self, alpha: Vector) -> _core.Descent:
        """A descent that starts at ``alpha`` and moves the rows that are not proven yet."""
        problem, box, moving = self.problem, self.box, self.moving
        self.alpha = np.clip(alpha, box.lower, box.upper)
        signed = self.alpha * problem.sign
        w = problem.space.combine(signed, self.run.sure)
        gain = problem.bias.value**2 if problem.bias.penalised else 0.0
        if problem.bias.free:
            gain = bias_gain(problem.squared_norms + box.diagonal)
        if self.run.best is not None:
            self.centre = self.run.best.b
        centre = self.centre if problem.bias.free else 0.0
        if moving is None:
            self.rows, self.part = in_memory(problem.space), self.alpha
        else:
            self.rows, self.part = in_memory(problem.space).take(moving), self.alpha[moving]
            box = box.part(moving)
        self.exchanges = exchanges_of_workers(self.rows) if self.in_parallel else 0
        chosen = slice(None) if moving is None else moving
        return _core.Descent(
            problem.sign[chosen], box.lower, box.upper, box.diagonal, box.tube, problem.target[chosen],
            problem.squared_norms[chosen], self.part, w, centre, gain, float(signed.sum()), self.settings.seed,
            workers=2 if self.exchanges > 0 else 1, exchanges=max(1, self.exchanges),
            entropy=problem.loss.entropic,
        )  # fmt: skip

    def _screen(self) -> None:
        """Leave out rows whose multiplier is proven, once they are many: each epoch then costs so much less."""
        best: Point = self.run.best
        if best.gap > SCREENED or not self.problem.loss.has_box:
            return
        known = proven(self.problem, best)
        left = np.flatnonzero(~known)
        if len(left) > 0.5 * len(self.part) or len(left) < 1:
            return
        box, r = self.box, self.problem.target - self.problem.sign * (best.scores + best.b)
        bound = np.where(r > box.tube, box.upper, np.where(r < -box.tube, box.lower, 0.0))
        alpha = np.where(known, bound, self._whole())
        self.moving = left
        self.descent = self._begin(alpha)

    def _whole(self) -> Vector:
        """The multipliers of all rows."""
        if self.moving is not None:
            self.alpha[self.moving] = self.part
        return self.alpha

    def solve(self) -> Solution:
        status = self.run.until_stopped(self._loop)
        if status in STOPPED:  # perhaps between two looks
            self._certify()
        return self.run.solution(status)

    def _certify(self) -> Point:
        found: Point = self.run.keep(recover(self.problem, self._whole(), self.run.sure))
        return found

    def _epoch(self) -> float:
        """Coordinate steps on all active rows; the largest violation they met."""
        run = self.run
        active = self.descent.n_active / max(1, len(self.part))
        run.how.spend(active * prices.epoch(self.rows), reads=active * self.rows.nnz)
        violation = self.descent.epoch(self.rows.core, run.how.watch, run.n_threads)
        if 2 * self.descent.n_halved > self.exchanges > 0:
            self.in_parallel = False
            self.descent = self._begin(self._whole())
        if self.problem.bias.free:
            self.descent.bias_center = self.descent.bias
        if violation <= self.settled:  # the active rows agree: look at all rows again, then ask for more
            if self.descent.n_active == len(self.part):
                self.settled *= SETTLED
            self.descent.unshrink()
        return violation

    def _loop(self) -> Status:
        """Epochs until the polish can finish: when the gap is small enough, or hardly falls any more."""
        run, settings = self.run, self.settings
        next_look, ask, epochs, previous = self._first_look(), np.inf, 0, np.inf
        while True:
            self._epoch()
            epochs += 1
            run.step()
            if epochs < next_look and epochs < settings.max_iter:
                continue
            point = self._certify()
            next_look = epochs + self._epochs_to_go(epochs, point.gap)
            run.note(point.gap, "coordinate descent", certified=True)
            stopped = run.report(point.gap)
            if stopped in STOPPED:
                return Status.CONVERGED if run.reached else stopped
            slow = epochs >= SLOW[self.orthogonal] and point.gap > HALVED * previous
            previous = point.gap
            cheap = self._is_cheap(point, epochs)
            if point.gap <= run.aim and (not cheap or settings.tol > LOOSE):
                return Status.CONVERGED
            if settings.polish and ((point.gap <= ask and cheap) or slow):
                if self._polish(point):
                    return Status.CONVERGED
                stopped = run.stop()  # perhaps within the polish
                if not settings.patient or stopped in STOPPED:
                    return stopped or Status.NUMERICAL_LIMIT
                ask, previous = max(ASK_AGAIN * min(ask, point.gap), LEAST_ASK), np.inf
                self.descent = self._begin(run.best.alpha)
            else:
                self._screen()
            if stopped is not None:
                return stopped

    def _first_look(self) -> int:
        """Epochs before the gap is computed for the first time."""
        problem = self.problem
        # Where a row's cost is large beside 1/‖x‖², coordinate steps get nowhere and Newton may start at once.
        strong = float(problem.cost.mean() * problem.squared_norms.mean()) > STRONG
        if self.orthogonal and problem.loss.smooth and not strong:
            return 5
        return 2 if strong or problem.loss.smooth or self.alpha.any() else 10

    def _is_cheap(self, point: Point, epochs: int) -> bool:
        """A polish that costs more than everything before it is only worth its price if nothing else helps.

        Both are counted, not timed: the result must not depend on the machine's load.
        """
        if not self.settings.polish or self.orthogonal:
            return False
        spent = epochs * prices.epoch(self.problem.space)
        return polish_cost(self.problem, point) <= max(CHEAP_POLISH, 0.5 * spent)

    def _epochs_to_go(self, epochs: int, gap: float) -> int:
        """How many epochs until the next look: as many as the pace since the last one says, within limits."""
        most = max(10, epochs // 2)
        then, before = self.last_look
        self.last_look = (epochs, gap)
        pace = math.log(gap / before) / (epochs - then) if 0.0 < gap < before else 0.0
        if pace >= 0.0 or gap <= self.run.aim or (then == 0 and not self.problem.loss.smooth):
            return min(most, 5) if then == 0 else most
        return min(most, max(1, math.ceil(1.1 * math.log(0.9 * self.run.aim / gap) / pace)))

    def _polish(self, point: Point) -> bool:
        run = self.run
        method = MethodOfMultipliers(
            run, max_steps=MOST_POLISH_STEPS, enough=run.aim, exact=self.settings.tol <= LOOSE
        )  # fmt: skip
        method.run(point, penalty=FAR)
        return run.reached


def _entropy_box(problem: Problem) -> DualBox:
    """The range of the multipliers of an entropic loss, and the least curvature that its entropy adds."""
    lower, upper = problem.loss.domain(problem.cost)
    return DualBox(lower, upper, 4.0 / np.maximum(problem.cost, 1e-300))


def exchanges_of_workers(rows: Rows) -> int:
    """How often two workers, each with half of the rows, should meet in an epoch; 0 if one worker is better.

    At an exchange w is copied and added up, which must be little beside the work between two exchanges. The number of
    threads has no say: two workers on one thread give the same result.
    """
    n_cols = rows.d
    if not rows.sparse or rows.nnz < 1_000_000 or rows.nnz < 64 * n_cols:
        return 0
    return int(min(32, rows.nnz // (16 * n_cols)))


def polish_cost(problem: Problem, point: Point) -> float:
    """What a polish from this point may cost: Newton steps with a factorisation in the size of the active set."""
    if not problem.loss.smooth:
        size = np.abs(point.alpha)
        inside = (size > 1e-3 * problem.cost) & (size < (1.0 - 1e-3) * problem.cost)
        # In the end no more rows than unknowns stay inside, unless by coincidence.
        steps, active = TOTAL_STEPS, min(max(float(inside.sum()), 100.0), problem.n_cols + 1.0)
    else:
        steps, active = SMOOTH_STEPS, float(np.count_nonzero(point.alpha))
    return steps * (prices.system(problem.space, active) + 2.0 * prices.read(problem.space))

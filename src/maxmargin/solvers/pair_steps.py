"""Machines with a kernel: steps on pairs of multipliers, then Newton's method on those at no bound.

Solves the quadratic of :mod:`~maxmargin.solvers.pair_problem`. Steps on pairs bring multipliers to their bounds in any
number at little cost; they crawl once the set of free ones has settled, where Newton's method takes a few steps. Both
work with values of the kernel in float32, which steer; scores in float64 say how far it is, and correct the slopes.
Multipliers that are worked on together form a working set (Joachims 1999); a pair is chosen to second order
(Fan, Chen, Lin 2005).

References
----------
Platt: Fast training of support vector machines using sequential minimal optimization, 1999. Joachims: Making
large-scale SVM learning practical, 1999. Fan, Chen, Lin: Working set selection using second order information for
training SVM, 2005. Scheinberg: An efficient implementation of an active set method for SVMs, 2006.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.kernels.held_lines import HeldLines
from maxmargin.problem import Problem
from maxmargin.process import blas_guard
from maxmargin.runtime import Watch
from maxmargin.solution import Solution, Status
from maxmargin.solvers.free_set import FreeSet
from maxmargin.solvers.kernel_run import KernelRun
from maxmargin.solvers.pair_problem import BoxDual, KernelPoint, PairProblem, without_idle_rows
from maxmargin.solvers.run import Settings, Start
from maxmargin.space import prices

Vector = NDArray[np.float64]

DOUBLE_ROWS = 1000  # up to here values are float64, all of them at once, and steps look at all variables
SQUARE_ROWS = 1500  # up to here all values are computed at once
WORKING_SET = 1024  # variables
LEFT_AT = 0.3  # of the violation of all variables, at which a working set is left
STEPS_IN_A_SET = 40  # times its size, at most
VIOLATIONS = (1.0, 0.3, 0.1, 0.03)  # differences of slopes (margins are 1) after which Newton's method may begin
BETWEEN = 0.1  # of the violation that a Newton step leaves is removed by steps on pairs
MOST_FREE = 7000  # variables whose block is factored
FEWEST_STEPS = 2000  # on pairs between two Newton steps, or as many as a twentieth of the variables
PATIENCE = 3  # times that exact scores may show no better gap
NO_LIMIT = 1 << 60
STEP = 1.0  # nanoseconds a step takes for every variable that is looked at
FINEST = 1e-13  # violation, relative to the largest slope, that rounding leaves


@dataclass(frozen=True, kw_only=True)
class PairSteps(Settings):
    """Steps on pairs with a finish by Newton's method. Counts steps of both kinds as its own."""

    name: str = field(default="pair_steps", init=False)

    def solve(self, problem: Problem, *, start: Start = None, watch: Watch | None = None) -> Solution:
        part, live = without_idle_rows(problem)
        alpha = start.alpha if isinstance(start, Solution) else start
        if alpha is not None and live is not None:
            alpha = alpha[live]
        run = KernelRun(self, problem, part, live, watch or Watch())
        with blas_guard:
            work = Descent(run, BoxDual(part), alpha)
            return run.solution(run.until_stopped(work.descend))


class Descent:
    """The iterate: beta and the slopes of the quadratic there, both changed in place by the core."""

    def __init__(self, run: KernelRun, task: PairProblem, alpha: Vector | None) -> None:
        self.run, self.task, self.space = run, task, task.space
        self.beta = task.start(alpha)
        self.slope = task.linear.copy()
        self.square: NDArray[Any] | None = None  # all values, where they are at hand
        self.spent = 0.0  # on pairs
        self.negative = 0  # pairs of negative curvature met so far
        own = np.tile(self.space.diagonal, task.copies)
        if task.ridge is not None:
            own += task.ridge
        self.steps = _core.PairSteps(
            task.lower, task.upper, own, task.ridge, self.beta, self.slope, task.group_end, task.tube
        )
        self.groups = np.searchsorted(task.group_end, np.arange(len(self.beta)), side="right")
        run.descent = self

    # --- where it is ------------------------------------------------------------------------------------------

    @property
    def scores(self) -> Vector:
        """K c of every row, as the slopes have it."""
        n = self.space.n
        f = self.slope[:n] - self.task.linear[:n]
        if self.task.ridge is not None:
            f -= self.task.ridge[:n] * self.beta[:n]
        return np.asarray(f)

    def look(self) -> KernelPoint:
        """Both objectives from the slopes as they are."""
        return self.task.point(self.beta, self.scores, None)

    def set_scores(self, f: Vector) -> None:
        task = self.task
        self.slope[:] = task.linear + np.tile(f, task.copies)
        if task.ridge is not None:
            self.slope += task.ridge * self.beta

    def settle(self, *, sure: bool = False) -> KernelPoint:
        """Scores in float64: the slopes are right again, and the point is one that can be claimed."""
        how = self.run.sure if sure else self.run.how
        f, sizes = self.space.exact_scores(self.task.coefficients(self.beta), how)
        self.set_scores(f)
        return self.run.keep(self.task.point(self.beta, f, sizes))  # type: ignore[no-any-return]

    def report(self, gap: float, phase: str) -> Status | None:
        self.run.note(gap, phase)
        return self.run.report(gap)

    # --- how it goes ------------------------------------------------------------------------------------------

    def descend(self) -> Status:
        if self.beta.any():
            self.settle()
            if self.run.reached:
                return Status.CONVERGED
        if self.space.n * self.task.copies <= SQUARE_ROWS:
            return self.descend_on_square()
        return self.descend_by_lines()

    def descend_on_square(self) -> Status:
        """All values at hand."""
        n, space = self.space.n, self.space
        dtype = np.float64 if n <= DOUBLE_ROWS or space.function is None else np.float32
        K = space.square(self.run.how, dtype)
        if self.task.copies > 1:
            K = np.ascontiguousarray(np.tile(K, (self.task.copies, self.task.copies)))
        self.square = K
        return self.alternate(lambda stop, most: self.loop(K, stop, most))

    def descend_by_lines(self) -> Status:
        """Lines of the matrix when they are needed."""
        lines = HeldLines(self.space, self.task.copies)
        return self.alternate(lambda stop, most: self.rounds(lines, stop, most))

    def loop(self, K: NDArray[Any], stop: float, most: int) -> bool:
        """Steps on all variables until no two slopes are farther apart; False where nothing moves any more."""
        found = self.steps.loop(K, most, stop, self.run.how.watch)
        self.count(found)
        self.spent += STEP * found.n_steps * len(self.beta)
        return bool(found.n_steps)

    def count(self, found: _core.PairReport) -> None:
        self.run.add_steps(found.n_steps)
        self.negative += found.n_negative

    def rounds(self, lines: HeldLines, stop: float, most: int) -> bool:
        """The same on working sets."""
        run, n, end, moved = self.run, self.space.n, self.run.count + most, False
        size = min(WORKING_SET, lines.capacity)
        while run.count < end:
            violation, members = self.steps.choose(size)
            if not violation > stop:
                break
            block = self.space.square_of(members % n, run.how)
            inner = max(stop, LEFT_AT * violation)
            found, changed, change = self.steps.solve(block, STEPS_IN_A_SET * size, inner, run.how.watch)
            self.count(found)
            if not len(changed):
                break
            moved = True
            self.add(lines, changed, change)
            if run.stopped_from_outside() is not None:
                break
        return moved

    def add(self, lines: HeldLines, changed: NDArray[np.int32], change: Vector) -> None:
        rows, inverse = np.unique(changed % self.space.n, return_inverse=True)
        sums = np.bincount(inverse, weights=change, minlength=len(rows))
        for begin in range(0, len(rows), lines.capacity):
            some = slice(begin, begin + lines.capacity)
            places = lines.places(rows[some].astype(np.int64), self.run.how)
            self.steps.add(lines.values, places, sums[some].copy(), lines.segments, self.run.n_threads)
        self.spent += len(rows) * len(self.beta) * self.space.value_price

    def alternate(self, steps: Callable[[float, int], bool]) -> Status:
        """Steps on pairs until a Newton step is no dearer, then both in turn until the gap is reached."""
        stop = VIOLATIONS[0]
        for stop in VIOLATIONS:
            moved = steps(stop, NO_LIMIT)
            stopped = self.report(self.look().gap, "pairs")
            if stopped is not None:
                return self.ended(stopped)
            if not moved or self.newton_cost() <= self.spent:
                break
        best, stalled, finish = math.inf, 0, 0.5 * self.run.aim
        while stalled < PATIENCE:
            moved = self.newton()
            found = self.look()
            stopped = self.report(found.gap, "newton") if moved else None
            if stopped is None and (found.gap > finish or not moved):
                violation = self.steps.violation()
                stop = max(self.finest, BETWEEN * violation if moved else BETWEEN * min(violation, stop))
                most = max(FEWEST_STEPS, len(self.beta) // 20) if moved else NO_LIMIT
                moved = steps(stop, most) or moved
                found = self.look()
                stopped = self.report(found.gap, "pairs")
            if stopped is not None:
                return self.ended(stopped)
            if found.gap <= finish or not moved:
                point = self.settle()
                if self.run.reached:
                    return Status.CONVERGED
                stalled = 0 if point.gap < 0.5 * best else stalled + 1
                best = min(best, point.gap)
        return Status.NUMERICAL_LIMIT

    def ended(self, status: Status) -> Status:
        """Somebody stopped it; the point that it has may be good enough all the same."""
        self.settle(sure=True)
        return Status.CONVERGED if self.run.reached else status

    @property
    def finest(self) -> float:
        return FINEST * float(np.abs(self.slope).max())

    @property
    def free(self) -> NDArray[np.intp]:
        """Variables at no bound, and not where a tube has its corner."""
        task, beta = self.task, self.beta
        inside = (beta > task.lower) & (beta < task.upper)
        return np.flatnonzero(inside & (beta != 0.0) if task.tube else inside)

    def newton_cost(self) -> float:
        """In the units of :mod:`maxmargin.space.prices`."""
        m = float(len(self.free))
        return math.inf if m > MOST_FREE else prices.factor(m) / 2.0 + m * len(self.beta) * self.space.value_price

    def newton(self) -> bool:
        """A step on the free variables; whether it was taken."""
        task, run = self.task, self.run
        free = self.free
        if not 1 < len(free) <= MOST_FREE:
            return False
        rows = free % self.space.n
        if self.square is not None:
            K = np.ascontiguousarray(self.square[np.ix_(free, free)])
        else:
            K = self.space.square_of(rows, run.how)
        if task.ridge is not None:
            K.reshape(-1)[:: len(K) + 1] += task.ridge[free].astype(K.dtype)
        slope = self.slope[free] + task.tube * np.sign(self.beta[free])
        lower, upper = task.lower[free], task.upper[free]
        if task.tube:  # a multiplier keeps its side of the tube
            lower = np.where(self.beta[free] > 0.0, np.maximum(lower, 0.0), lower)
            upper = np.where(self.beta[free] < 0.0, np.minimum(upper, 0.0), upper)
        move = FreeSet(K, self.groups[free], run.how).direction(slope, self.beta[free], lower, upper)
        if move is None:
            return False
        before = self.beta[free].copy()
        self.beta[free] = np.clip(before + move.step, lower, upper)
        change = np.zeros(len(self.beta))
        change[free] = self.beta[free] - before
        if self.square is not None:
            self.slope += self.square[:, free] @ change[free].astype(self.square.dtype)
        else:
            c = change.reshape(task.copies, -1).sum(axis=0)
            self.slope += np.tile(self.space.rough_scores(c, run.how), task.copies)
        if task.ridge is not None:
            self.slope += task.ridge * change
        run.add_steps(1)
        return True

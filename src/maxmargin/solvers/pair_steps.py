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
from maxmargin.process import blas_guard
from maxmargin.runtime import Watch
from maxmargin.solution import Solution, Status
from maxmargin.solvers.free_newton import NewtonOnFree
from maxmargin.solvers.free_set import FreeSet
from maxmargin.solvers.kernel_point import KernelPoint
from maxmargin.solvers.kernel_run import KernelRun
from maxmargin.solvers.pair_problem import PairProblem, pair_problem
from maxmargin.solvers.run import Settings, Solver, Start, handed_on

Vector = NDArray[np.float64]

SQUARE_ROWS = 600  # up to here values are float64, all of them at once, and steps look at all variables
WORKING_SET = 1024  # variables at most
LEAST_MOST, MOST_PART = 256, 8  # or one in so many of all, but so many in any case
FEWEST_VARIABLES, PART = 64, 16  # in a working set at first, or one in so many; after many steps it is doubled
LEFT_AT = 0.3  # of the violation of all variables, at which a working set is left
STEPS_IN_A_SET = 40  # times its size, at most
VIOLATIONS = (1.0, 0.5, 0.3, 0.1, 0.03)  # differences of slopes (margins are 1) after which Newton's method may begin
BETWEEN = 0.1  # of the violation that a Newton step leaves is removed by steps on pairs
EAGER = 1.0  # times the work on pairs so far that a Newton step may cost
SMALL_VIOLATION = 1e-11  # of few variables: steps cost next to nothing, and go on to rounding level
SMALL_STEPS = 30  # of their number
FEWEST_STEPS = 2000  # on pairs between two Newton steps, or as many as a twentieth of the variables
MOST_STEPS = 100  # on pairs in a row, of the number of variables: more of them mean that rounding decides
RISING = 1e-3  # of the difference of both objectives that the dual one must gain in a turn
PATIENCE = 4  # turns that may bring no better gap, by slopes as they are and by exact ones
ENOUGH = 0.5  # of the gap asked for, by slopes as they are: worth exact ones
STRIP = 32  # values
STEP = 1.0  # nanoseconds a step takes for every variable that is looked at
NOTHING = 1e-14  # of the largest multiplier: what rounding leaves of one that is 0
FINEST = 1e-13  # violation, relative to the largest slope, that rounding leaves


def products_in_strips(K: NDArray[Any] | None, c: Vector) -> tuple[Vector, Vector]:
    """K c and |K| |c|, of few additions a number each: sums of strips, and a sum of those."""
    assert K is not None
    n = len(c)
    whole = n - n % STRIP
    f, sizes = [], []
    for part in (slice(0, whole), slice(whole, n)):
        width = STRIP if part.start < whole else max(1, n - whole)
        values, factor = K[:n, part].reshape(n, -1, width), c[part].reshape(-1, width)
        f.append(np.einsum("isk,sk->is", values, factor))
        sizes.append(np.einsum("isk,sk->is", np.abs(values), np.abs(factor)))
    return np.concatenate(f, axis=1).sum(axis=1), np.concatenate(sizes, axis=1).sum(axis=1)


def too_rough(task: PairProblem) -> bool:
    """Whether a matrix rounded to float32 may be indefinite in spite of the ridge: multipliers would run away."""
    if task.ridge is None:
        return False
    rounded = 2.0**-24 * math.sqrt(task.space.n) * float(np.abs(task.space.diagonal).max())
    return rounded > float(task.ridge.min())


@dataclass(frozen=True, kw_only=True)
class PairSteps(Settings):
    """Steps on pairs with a finish by Newton's method. Counts steps of both kinds as its own.

    Parameters
    ----------
    follower : who goes on where rounding ends it before the gap is reached; None: nobody.
    """

    follower: Solver | None = field(default=None, repr=False)
    name: str = field(default="pair_steps", init=False)

    def solve(self, problem: Any, *, start: Start = None, watch: Watch | None = None) -> Solution:
        task, live = pair_problem(problem)
        alpha = start.alpha if isinstance(start, Solution) else start
        if alpha is not None and live is not None:
            alpha = alpha[live]
        watch = watch or Watch()
        run = KernelRun(self, task, problem.n_rows, live, watch)
        task.space.precise |= too_rough(task)
        with blas_guard:
            found = run.solution(run.until_stopped(Descent(run, task, alpha).descend))
            if found.status is Status.NUMERICAL_LIMIT and task.space.value_type != np.float64:
                task.space.precise = True
                run = KernelRun(self, task, problem.n_rows, live, watch)
                alpha = found.alpha if live is None else found.alpha[live]
                found = handed_on(found, run.solution(run.until_stopped(Descent(run, task, alpha).descend)))
        task.space.release()
        if self.follower is None or found.status is not Status.NUMERICAL_LIMIT:
            return found
        return handed_on(found, self.follower.solve(problem, start=found, watch=run.watch))


class Descent(NewtonOnFree):
    """The iterate: beta and the slopes of the quadratic there, both changed in place by the core."""

    def __init__(self, run: KernelRun, task: PairProblem, alpha: Vector | None) -> None:
        self.run, self.task, self.space = run, task, task.space
        self.beta = task.start(alpha)
        self.slope = task.linear.copy()
        parts = np.split(self.beta, task.group_end[:-1])
        self.sums = [math.fsum(part.tolist()) for part in parts]  # of the groups: they never change
        self.square: NDArray[Any] | None = None  # all values, where they are at hand
        self.lines: HeldLines | None = None  # else lines of them
        self.small = False
        self.set_size = max(FEWEST_VARIABLES, len(self.beta) // PART)
        self.free_set: FreeSet | None = None
        self.n_factored = 0  # of its variables
        self.among: NDArray[np.intp] = np.empty(0, dtype=np.intp)  # variables that it is about
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
        self.restore_sums()
        size = np.abs(self.beta)
        self.beta[size <= NOTHING * size.max(initial=0.0)] = 0.0
        c = self.task.coefficients(self.beta)
        f, sizes = products_in_strips(self.square, c) if self.small else self.space.exact_scores(c, how)
        self.set_scores(f)
        return self.run.keep(self.task.point(self.beta, f, sizes))  # type: ignore[no-any-return]

    def restore_sums(self) -> None:
        """Many steps leave some rounding in the sums of groups: the freest variable that is not 0 takes it."""
        task, room = self.task, np.minimum(self.beta - self.task.lower, self.task.upper - self.beta)
        room = np.minimum(room, np.abs(self.beta))
        for begin, end, wanted in zip([0, *task.group_end[:-1]], task.group_end, self.sums, strict=True):
            missing = wanted - math.fsum(self.beta[begin:end].tolist())
            i = begin + int(np.argmax(room[begin:end])) if end > begin else 0
            if 0.0 < abs(missing) < room[i]:
                self.beta[i] += missing

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
        space = self.space
        K = space.square(self.run.how, np.float64)
        self.small = True
        if self.task.copies > 1:
            K = np.ascontiguousarray(np.tile(K, (self.task.copies, self.task.copies)))
        self.square = K
        return self.alternate(lambda stop, most: self.loop(K, stop, most))

    def descend_by_lines(self) -> Status:
        """Lines of the matrix when they are needed."""
        lines = self.lines = HeldLines(self.space, self.task.copies)
        return self.alternate(lambda stop, most: self.rounds(lines, stop, most))

    def loop(self, K: NDArray[Any], stop: float, most: int) -> bool:
        """Steps on all variables until no two slopes are farther apart; False where nothing moves any more."""
        most = min(most, self.run.max_iter - self.run.count)
        found = self.steps.loop(K, most, stop, self.run.how.watch)
        self.count(found)
        self.spent += STEP * found.n_steps * len(self.beta)
        return bool(found.n_steps)

    def count(self, found: _core.PairReport) -> None:
        self.run.add_steps(found.n_steps)
        self.negative += found.n_negative

    def rounds(self, lines: HeldLines, stop: float, most: int) -> bool:
        """The same on working sets."""
        run, n, moved = self.run, self.space.n, False
        end = min(run.count + most, run.max_iter)
        most_size = min(WORKING_SET, lines.capacity, max(LEAST_MOST, len(self.beta) // MOST_PART))
        while run.count < end:
            size = self.set_size = min(self.set_size, most_size)
            violation, members = self.steps.choose(size)
            if not violation > stop:
                break
            block = self.space.square_of(members % n, run.how)
            inner, room = max(stop, LEFT_AT * violation), min(STEPS_IN_A_SET * size, end - run.count)
            found, changed, change = self.steps.solve(block, room, inner, run.how.watch)
            self.count(found)
            if 2 * found.n_steps > size:
                self.set_size *= 2
            if not len(changed):
                break
            moved = True
            self.add(lines, changed, change)
            if run.stopped_from_outside() is not None:
                break
        return moved

    def add(self, lines: HeldLines, changed: NDArray[np.int32], change: Vector) -> None:
        rows, inverse = np.unique(changed % self.space.n, return_inverse=True)
        sums: Vector = np.bincount(inverse, weights=change, minlength=len(rows)).astype(np.float64, copy=False)
        for begin in range(0, len(rows), lines.capacity):
            some = slice(begin, begin + lines.capacity)
            places = lines.places(rows[some].astype(np.int64), self.run.how)
            self.steps.add(lines.values, places, sums[some].copy(), lines.segments, self.run.n_threads)
        self.spent += len(rows) * len(self.beta) * self.space.value_price

    def alternate(self, steps: Callable[[float, int], bool]) -> Status:
        """Steps on pairs until a Newton step is no dearer, then both in turn until the gap is reached."""
        stop = VIOLATIONS[0]
        for stop in (SMALL_VIOLATION,) if self.small else VIOLATIONS:
            moved = steps(stop, (SMALL_STEPS if self.small else MOST_STEPS) * len(self.beta))
            found = self.look()
            stopped = self.report(found.gap, "pairs")
            if stopped is not None:
                return self.ended(stopped)
            if self.small and found.gap <= self.run.aim:
                found = self.settle()
                if self.run.reached:
                    return Status.CONVERGED
                break  # slopes had drifted: they are right again
            if not moved or self.newton_cost() <= EAGER * self.spent:
                break
        return self.finish(steps, found, stop)

    def finish(self, steps: Callable[[float, int], bool], found: KernelPoint, stop: float) -> Status:
        """Newton steps and pairs in turn; scores in float64 where it seems to be done, or nothing helps any more."""
        best, stalled, idle, lowest, highest = math.inf, 0, 0, math.inf, -math.inf
        while stalled < PATIENCE:
            moved = self.newton(found.gap)
            found = self.look()
            stopped = self.report(found.gap, "newton") if moved else None
            if stopped is None and (found.gap > ENOUGH * self.run.aim or not moved):
                violation = self.steps.violation()
                stop = max(self.finest, BETWEEN * violation if moved else BETWEEN * min(violation, stop))
                size = len(self.beta)
                moved = steps(stop, max(FEWEST_STEPS, size // 20 if moved else MOST_STEPS * size)) or moved
                found = self.look()
                stopped = self.report(found.gap, "pairs")
            if stopped is not None:
                return self.ended(stopped)
            risen = found.dual - highest > RISING * (found.primal - found.dual)
            idle = 0 if found.gap < 0.9 * lowest or risen else idle + 1
            lowest, highest = min(lowest, found.gap), max(highest, found.dual)
            if found.gap <= ENOUGH * self.run.aim or not moved or idle >= PATIENCE:
                found = self.settle()
                if self.run.reached:
                    return Status.CONVERGED
                stalled = 0 if found.gap < 0.5 * best else stalled + 1
                best, idle, lowest = min(best, found.gap), 0, math.inf
        return Status.NUMERICAL_LIMIT

    def ended(self, status: Status) -> Status:
        """Somebody stopped it; the point that it has may be good enough all the same."""
        self.settle(sure=True)
        return Status.CONVERGED if self.run.reached else status

    @property
    def finest(self) -> float:
        return FINEST * float(np.abs(self.slope).max())

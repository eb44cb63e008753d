"""Two solvers as the textbooks have them, for lectures: one multiplier at a time, and two at a time.

Both work with the whole kernel matrix and say with every step what they do; neither is meant to be fast.

References
----------
Friess, Cristianini, Campbell: The kernel-adatron algorithm, 1998. Platt: Fast training of support vector machines using
sequential minimal optimization, 1999.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import InputError
from maxmargin.process import blas_guard
from maxmargin.runtime import Watch
from maxmargin.solution import Solution, Status
from maxmargin.solvers.kernel_run import KernelRun
from maxmargin.solvers.pair_problem import BoxDual, pair_problem
from maxmargin.solvers.run import Settings, Start

Vector = NDArray[np.float64]

MOST_ROWS = 5000  # whose whole matrix is held
GAIN = 1.0  # of the constant 1 beside every row, which makes the bias one of the weights: 1 is as in the literature
PROGRESS = 1e-3  # relative to a multiplier and this: smaller changes do not count (Platt's epsilon)


@dataclass(frozen=True, kw_only=True)
class Textbook(Settings):
    """Sweeps over the rows until the gap is reached. Counts sweeps."""

    def solve(self, problem: Any, *, start: Start = None, watch: Watch | None = None) -> Solution:
        task, live = pair_problem(problem)
        if task.space.n > MOST_ROWS:
            raise InputError(
                f"solver={self.name!r} holds the whole kernel matrix, of at most {MOST_ROWS} rows; X has "
                f"{task.space.n}. Use solver='auto'."
            )
        if task.tube:
            raise InputError(f"solver={self.name!r} is for classifiers; use solver='auto'")
        assert isinstance(task, BoxDual)
        alpha = start.alpha if isinstance(start, Solution) else start
        run = KernelRun(self, task, problem.n_rows, live, watch or Watch())
        with blas_guard:
            begin = None if alpha is None else (alpha if live is None else alpha[live])
            sweeps = self.sweeps(run, task, task.start(begin))
            return run.solution(run.until_stopped(sweeps.run_all))

    def sweeps(self, run: KernelRun, task: BoxDual, beta: Vector) -> Sweeps:
        raise NotImplementedError


class Sweeps:
    """The iterate of both: beta, and the slopes of the quadratic."""

    def __init__(self, run: KernelRun, task: BoxDual, beta: Vector) -> None:
        self.run, self.task, self.beta = run, task, beta
        self.K = task.space.square(run.sure, np.float64)
        if task.ridge is not None:
            self.K.reshape(-1)[:: len(self.K) + 1] += task.ridge
        self.slope = task.linear + self.K @ beta
        self.negative = 0
        run.descent = self

    def run_all(self) -> Status:
        run = self.run
        while True:
            moved = self.sweep()
            run.step()
            point = self.settle()
            run.note(point.gap, "sweep", certified=True)
            stopped = run.report(point.gap)
            if run.reached or stopped is not None:
                return stopped or Status.CONVERGED
            if not moved:
                return Status.NUMERICAL_LIMIT

    def settle(self, *, sure: bool = False) -> Any:
        """A point that can be claimed; its multipliers are the balanced ones nearby."""
        task = self.task
        beta = task.start(task.sign * self.beta)
        f, sizes = task.space.exact_scores(beta, self.run.sure if sure else self.run.how)
        return self.run.keep(task.point(beta, f, sizes))

    def sweep(self) -> bool:
        """All rows once; whether anything changed."""
        raise NotImplementedError

    def change(self, i: int, to: float) -> float:
        """Set one multiplier; by how much it changed."""
        moved = to - float(self.beta[i])
        self.beta[i] = to
        self.slope += moved * self.K[i]
        return moved


@dataclass(frozen=True, kw_only=True)
class Adatron(Textbook):
    """One multiplier at a time: alpha_i += (1 − y_i f_i)/k_ii, clipped to its box.

    A single multiplier cannot move while Σ y alpha = 0, so the bias is first one of the weights: a constant is added to
    the kernel, whose size grows while the sum is drawn to zero (the method of multipliers), until the penalty on the
    bias has no effect any more.
    """

    name: str = field(default="adatron", init=False)

    def sweeps(self, run: KernelRun, task: BoxDual, beta: Vector) -> Sweeps:
        return AdatronSweeps(run, task, beta)


class AdatronSweeps(Sweeps):
    def __init__(self, run: KernelRun, task: BoxDual, beta: Vector) -> None:
        super().__init__(run, task, beta)
        self.centre, self.gain = 0.0, GAIN * float(np.mean(self.K.diagonal()))

    def sweep(self) -> bool:
        task, moved = self.task, 0.0
        total = float(self.beta.sum())
        for i in range(len(self.beta)):
            curvature = float(self.K[i, i]) + self.gain
            if not curvature > 0.0:
                continue
            slope = float(self.slope[i]) + self.centre + self.gain * total
            to = min(max(float(self.beta[i]) - slope / curvature, float(task.lower[i])), float(task.upper[i]))
            step = self.change(i, to)
            total += step
            moved = max(moved, abs(step))
        self.centre += self.gain * total
        return moved > 0.0


@dataclass(frozen=True, kw_only=True)
class TextbookSMO(Textbook):
    """Two multipliers at a time, by Platt's heuristics.

    The first is any row that violates optimality, in sweeps over all rows and then over those at no bound; the second
    the one with the most different error; failing that any at no bound, and then any row, in an order that is drawn.
    """

    name: str = field(default="smo_textbook", init=False)

    def sweeps(self, run: KernelRun, task: BoxDual, beta: Vector) -> Sweeps:
        return PlattSweeps(run, task, beta)


class PlattSweeps(Sweeps):
    """Errors E_i = f_i − y_i are the slopes; an optimal b makes all of those at no bound equal to −b."""

    def __init__(self, run: KernelRun, task: BoxDual, beta: Vector) -> None:
        super().__init__(run, task, beta)
        self.rng = np.random.default_rng(0)
        self.everybody = True  # sweep over all rows, or those at no bound
        self.violation = 1e-2  # that counts: it falls when nothing violates any more

    @property
    def inside(self) -> NDArray[np.bool_]:
        return np.asarray((self.beta > self.task.lower) & (self.beta < self.task.upper))

    @property
    def threshold(self) -> float:
        """−b: between the slopes of those that may rise and those that may fall."""
        rising, falling = self.beta < self.task.upper, self.beta > self.task.lower
        return 0.5 * float(self.slope[rising].min() + self.slope[falling].max())

    def sweep(self) -> bool:
        rows = np.arange(len(self.beta)) if self.everybody else np.flatnonzero(self.inside)
        changed = sum(self.examine(int(i)) for i in rows)
        if self.everybody and changed == 0:
            if self.violation < 1e-12:
                return False
            self.violation *= 0.1
        else:
            self.everybody = not self.everybody and changed == 0
        return True

    def examine(self, i: int) -> bool:
        """Whether a violating row found a partner with which something changed."""
        error = float(self.slope[i]) - self.threshold
        can_rise, can_fall = self.beta[i] < self.task.upper[i], self.beta[i] > self.task.lower[i]
        if not ((error < -self.violation and can_rise) or (error > self.violation and can_fall)):
            return False
        inside = np.flatnonzero(self.inside)
        if len(inside) > 1:
            farthest = inside[np.argmax(np.abs(self.slope[inside] - self.slope[i]))]
            if self.take_step(i, int(farthest)):
                return True
        for some in (inside, np.arange(len(self.beta))):
            for j in self.rng.permutation(some):
                if self.take_step(i, int(j)):
                    return True
        return False

    def take_step(self, i: int, j: int) -> bool:
        """The best step of a pair that keeps its sum, clipped to both boxes."""
        if i == j:
            return False
        task, beta = self.task, self.beta
        total = float(beta[i] + beta[j])
        low = max(float(task.lower[j]), total - float(task.upper[i]))
        high = min(float(task.upper[j]), total - float(task.lower[i]))
        curvature = float(self.K[i, i] + self.K[j, j] - 2.0 * self.K[i, j])
        downhill = float(self.slope[i] - self.slope[j])
        if curvature > 0.0:
            to = min(max(float(beta[j]) + downhill / curvature, low), high)
        else:
            to = high if downhill > 0.0 else low
        before = float(beta[j])
        if abs(to - before) < PROGRESS * self.violation * (abs(to) + abs(before) + PROGRESS):
            return False
        self.change(j, to)
        self.change(i, min(max(total - to, float(task.lower[i])), float(task.upper[i])))
        return True

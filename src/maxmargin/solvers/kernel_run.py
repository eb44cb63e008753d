"""The run of a solver of a machine with a kernel: what it answers is an expansion, claimed as such."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.runtime import Watch
from maxmargin.solution import Solution, Status
from maxmargin.solvers.kernel_point import KernelPoint
from maxmargin.solvers.pair_problem import PairProblem
from maxmargin.solvers.run import Run, Settings, settled

Vector = NDArray[np.float64]

PLAIN_NEGATIVE = 8  # pairs of negative curvature that show a kernel to be indefinite


class KernelRun(Run):
    """Knows the quadratic that is solved and which rows of the problem it is about; None: all, in their order.

    ``descent`` is whoever holds the iterate; stopped half way, it is asked for a point with exact scores.
    """

    def __init__(
        self, settings: Settings, task: PairProblem, n_rows: int, live: NDArray[np.intp] | None, watch: Watch
    ) -> None:
        super().__init__(settings, task.problem, watch, better=_better)
        self.task, self.n_rows, self.live = task, n_rows, live
        self.descent: Any = None

    def add_steps(self, count: int) -> None:
        self.n_iter, self.count = self.n_iter + count, self.count + count

    @property
    def definite(self) -> bool:
        """Whether the kernel is positive semidefinite, as far as is known."""
        known = self.task.space.kernel.is_positive
        seen = 0 if self.descent is None else self.descent.negative
        return known is True or (known is None and seen < PLAIN_NEGATIVE)

    def solution(self, status: Status) -> Solution:
        if status in (Status.INTERRUPTED, Status.TIME_LIMIT, Status.ITERATION_LIMIT) or self.best is None:
            self.descent.settle(sure=True)
        point: KernelPoint = self.best
        found, definite = self.task.stated(point, self.tol, definite=self.definite), self.definite
        if definite:
            status = settled(status, found.gap, self.tol)
        elif status is Status.CONVERGED:
            status = Status.STATIONARY
        self.note(found.gap, "certified", certified=True)
        return self.task.solution(
            point, w=self.spread(found.stretch * self.task.sign * found.alpha), b=found.b,
            stretch=found.stretch, alpha=self.spread(found.alpha),
            primal=found.primal, dual=found.dual if definite else math.nan, gap=found.gap, status=status,
            history=self.history, n_iter=self.n_iter, seconds=self.watch.seconds, bias_interval=point.bias_interval,
            solver=self.settings.name, reason=self.settings.reason,
        )  # fmt: skip

    def spread(self, values: Vector) -> Vector:
        """Of all rows, 0 for those without a cost."""
        if self.live is None:
            return values
        full = np.zeros(self.n_rows)
        full[self.live] = values
        return full


def _better(best: KernelPoint | None, found: KernelPoint) -> KernelPoint:
    return found if best is None or not found.gap >= best.gap else best

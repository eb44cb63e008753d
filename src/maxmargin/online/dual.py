"""Passes in dual form: one coefficient per row, and the scores of all rows kept up to date."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import maxmargin._core as _core
from maxmargin.kernels import GramRows
from maxmargin.online.base import Course, Order, Vector
from maxmargin.runtime import Watch


def dual_pass(
    core: _core.Dual, gram: GramRows, y: Vector, order: Order, watch: Watch, course: Course,
    step: Callable[[int], float], look: Callable[[], None] | None = None,
) -> None:  # fmt: skip
    """One pass; a row that is not corrected costs one comparison, a corrected one its line of the Gram matrix.

    ``step(t)`` is the step size at the t-th row of the pass; ``look`` is called after every correction.
    """
    n = len(y)
    turn = np.arange(n, dtype=np.int64) if order is None else order
    before = core.n_mistakes, core.n_corrections
    t = 0
    try:
        while True:
            t = core.skip(y, turn, t)
            if t >= n:
                break
            if watch.past_deadline:
                raise _core.DeadlineReached()
            i = int(turn[t])
            core.rate = step(t)
            core.row(gram.row(i), i, float(y[i]))
            if not abs(core.b) < 1e100:
                course.diverged = True
                break
            if look is not None:
                look()
            t += 1
    finally:
        course.mistakes.append(core.n_mistakes - before[0])
        course.corrections.append(core.n_corrections - before[1])

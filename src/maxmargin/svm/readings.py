"""What multipliers say about rows: free, at their bound, or beyond the margin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin.problem import Problem

Vector = NDArray[np.float64]
Chosen = NDArray[np.intp]

ROUNDING = 1e-12  # of a bound: a multiplier this close to it lies on it
BEYOND = 1e-9  # a row at its bound lies beyond the margin by more than this


def free_and_bounded(alpha: Vector, lower: Vector, upper: Vector) -> tuple[Chosen, Chosen]:
    """Where multipliers that are not 0 lie inside their range, and where at an end of it.

    Examples
    --------
    >>> free_and_bounded(np.array([0.0, 1.0, 0.5]), np.zeros(3), np.ones(3))
    (array([2]), array([1]))
    """
    inside = (alpha > (1.0 - ROUNDING) * lower) & (alpha < (1.0 - ROUNDING) * upper)
    return np.flatnonzero((alpha != 0.0) & inside), np.flatnonzero((alpha != 0.0) & ~inside)


def multiplier_range(problem: Problem) -> tuple[Vector, Vector]:
    """Smallest and largest multiplier of every row; without slack there is no largest one."""
    lower, upper = problem.loss.domain(problem.cost)
    return lower, np.full_like(upper, np.inf) if problem.hard else upper


def one_or_all(values: list[Chosen]) -> Chosen | list[Chosen]:
    """The rows of one machine as they are, those of several as a list."""
    return values[0] if len(values) == 1 else values

"""Hinge loss, the slack of the soft margin: ℓ(f, y) = max(0, 1 − y f)."""

from __future__ import annotations

import numpy as np

from maxmargin.losses.base import Vector


class Hinge:
    """Hinge loss.

    Notes
    -----
    Conjugate: ℓ*(−alpha·y) = −alpha on 0 ≤ alpha ≤ 1, so the dual's box is 0 ≤ alpha_i ≤ c_i.

    References
    ----------
    Cortes, Vapnik: Support-vector networks, 1995.

    Examples
    --------
    >>> Hinge().value(np.array([0.5, -2.0]), np.array([1.0, -1.0]))
    array([0.5, 0. ])
    """

    name = "hinge"

    def value(self, score: Vector, y: Vector) -> Vector:
        return np.maximum(0.0, 1.0 - y * score)

    def slope(self, score: Vector, y: Vector) -> Vector:
        return np.where(y * score < 1.0, -y, 0.0)

    def conjugate(self, alpha: Vector, y: Vector) -> Vector:
        return np.where((alpha >= 0.0) & (alpha <= 1.0), -alpha, np.inf)

    def dual_box(self, cost: Vector) -> tuple[Vector, Vector]:
        return cost, np.zeros_like(cost)

    def best_bias(self, score: Vector, y: Vector, cost: Vector) -> tuple[float, float]:
        # The slope in b rises by c_i at the breakpoint y_i − score_i, from −Σ_{y=+1} c to Σ_{y=−1} c.
        point = y - score
        rounding = 1e-12 * float(cost.sum())
        start = -float(cost[y > 0].sum())
        if len(point) > 4096:
            point, cost, start = _around_zero(point, cost, start, rounding)
        order = np.argsort(point)
        slope = start + np.cumsum(cost[order])
        last = len(order) - 1
        first = min(int(np.searchsorted(slope, -rounding)), last)
        after = min(int(np.searchsorted(slope, rounding, side="right")), last)
        return float(point[order[first]]), float(point[order[after]])


def _around_zero(point: Vector, cost: Vector, start: float, rounding: float) -> tuple[Vector, Vector, float]:
    """Only the breakpoints near the slope's zero: guessed from a sorted sample, then checked on all of them."""
    stride = max(1, len(point) // 8192)
    order = np.argsort(point[::stride])
    sample = point[::stride][order]
    guess = int(np.searchsorted(start + stride * np.cumsum(cost[::stride][order]), 0.0))

    def slope(b: float) -> float:
        return start + float(cost[point <= b].sum())

    reach = 256
    low, high = guess - reach, guess + reach
    below = slope(float(sample[low])) if low >= 0 else start
    while low >= 0 and below >= -2.0 * rounding:
        reach, low = 2 * reach, low - reach
        below = slope(float(sample[low])) if low >= 0 else start
    reach = 256
    while high < len(sample) and slope(float(sample[high])) <= 2.0 * rounding:
        reach, high = 2 * reach, high + reach
    inside = np.ones(len(point), dtype=bool)
    if low >= 0:
        inside &= point > sample[low]
    if high < len(sample):
        inside &= point <= sample[high]
    return point[inside], cost[inside], below

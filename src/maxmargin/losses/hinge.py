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
        breakpoint_ = y - score
        order = np.argsort(breakpoint_)
        slope = np.cumsum(cost[order]) - cost[y > 0].sum()
        rounding = 1e-12 * float(cost.sum())
        last = len(order) - 1
        first = min(int(np.searchsorted(slope, -rounding)), last)
        after = min(int(np.searchsorted(slope, rounding, side="right")), last)
        return float(breakpoint_[order[first]]), float(breakpoint_[order[after]])

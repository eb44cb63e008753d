"""Hinge loss, the slack of the soft margin: ℓ(f, y) = max(0, 1 − y f)."""

from __future__ import annotations

import numpy as np

from maxmargin.losses.base import DualBox, Loss, Vector
from maxmargin.losses.breakpoints import zero_of_steps


class Hinge(Loss):
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

    def of_residual(self, r: Vector) -> Vector:
        return np.maximum(0.0, r)

    def slope(self, r: Vector) -> Vector:
        return np.where(r > 0.0, 1.0, 0.0)

    def conjugate_of_slope(self, slope: Vector) -> Vector:
        return np.where((slope >= 0.0) & (slope <= 1.0), 0.0, np.inf)

    def domain(self, cost: Vector) -> tuple[Vector, Vector]:
        return np.zeros_like(cost), cost

    def dual_box(self, cost: Vector) -> DualBox:
        return DualBox(np.zeros_like(cost), cost, np.zeros_like(cost))

    def best_bias(self, score: Vector, y: Vector, cost: Vector, start: float | None = None) -> tuple[float, float]:
        # The slope in b rises by c_i at the breakpoint y_i − score_i, from −Σ_{y=+1} c to Σ_{y=−1} c.
        return zero_of_steps(y - score, cost, -float(cost[y > 0].sum()))

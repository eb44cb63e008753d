"""Squared hinge loss: ℓ(f, y) = max(0, 1 − y f)²."""

from __future__ import annotations

import numpy as np

from maxmargin.losses.base import DualBox, Loss, Vector
from maxmargin.losses.breakpoints import zero_of_ramps


class SquaredHinge(Loss):
    """Squared hinge loss.

    Notes
    -----
    Conjugate: ℓ*(−alpha·y) = −alpha + alpha²/4 on alpha ≥ 0: no upper bound, and 1/(2 c_i) on the diagonal
    of the dual's Hessian.

    References
    ----------
    Cortes, Vapnik: Support-vector networks, 1995 (slack power 2).

    Examples
    --------
    >>> SquaredHinge().value(np.array([0.5, -2.0]), np.array([1.0, -1.0]))
    array([0.25, 0.  ])
    """

    name = "squared_hinge"
    smooth = True

    def of_residual(self, r: Vector) -> Vector:
        return np.maximum(0.0, r) ** 2

    def slope(self, r: Vector) -> Vector:
        return 2.0 * np.maximum(0.0, r)

    def curvature(self, r: Vector) -> Vector:
        return np.where(r > 0.0, 2.0, 0.0)

    def conjugate_of_slope(self, slope: Vector) -> Vector:
        return np.where(slope >= 0.0, 0.25 * slope**2, np.inf)

    def domain(self, cost: Vector) -> tuple[Vector, Vector]:
        return np.zeros_like(cost), np.where(cost > 0.0, np.inf, 0.0)

    def dual_box(self, cost: Vector) -> DualBox:
        return DualBox(*self.domain(cost), quadratic_diagonal(cost))

    def best_bias(self, score: Vector, y: Vector, cost: Vector, start: float | None = None) -> tuple[float, float]:
        # Rows with y = +1 have slack below y_i − score_i, rows with y = −1 above it.
        return zero_of_ramps(y - score, cost, y > 0, start)


def quadratic_diagonal(cost: Vector) -> Vector:
    """1/(2 cost): what squared slack adds to the dual's Hessian."""
    return np.divide(0.5, cost, out=np.zeros_like(cost), where=cost > 0.0)

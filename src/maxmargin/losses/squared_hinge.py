"""Squared hinge loss: ℓ(f, y) = max(0, 1 − y f)²."""

from __future__ import annotations

import numpy as np

from maxmargin.losses.base import Vector


class SquaredHinge:
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

    def value(self, score: Vector, y: Vector) -> Vector:
        return np.maximum(0.0, 1.0 - y * score) ** 2

    def slope(self, score: Vector, y: Vector) -> Vector:
        return -2.0 * y * np.maximum(0.0, 1.0 - y * score)

    def conjugate(self, alpha: Vector, y: Vector) -> Vector:
        return np.where(alpha >= 0.0, -alpha + 0.25 * alpha**2, np.inf)

    def dual_box(self, cost: Vector) -> tuple[Vector, Vector]:
        diagonal = np.divide(0.5, cost, out=np.zeros_like(cost), where=cost > 0.0)
        return np.where(cost > 0.0, np.inf, 0.0), diagonal

    def best_bias(self, score: Vector, y: Vector, cost: Vector) -> tuple[float, float]:
        # The derivative 2 Σ_active c_i (b − beta_i), beta_i = y_i − score_i, is continuous, piecewise linear and
        # rising. Rows with y = +1 are active below beta_i, rows with y = −1 above it.
        beta = y - score
        order = np.argsort(beta)
        b, c, plus = beta[order], cost[order], y[order] > 0
        c_plus, c_minus = np.where(plus, c, 0.0), np.where(plus, 0.0, c)
        weight = c_plus.sum() - np.cumsum(c_plus) + np.cumsum(c_minus)  # just above the k-th breakpoint
        centre = b.mean()  # against cancellation
        shifted = b - centre
        moment = (c_plus @ shifted) - np.cumsum(c_plus * shifted) + np.cumsum(c_minus * shifted)
        rising = weight * shifted - moment  # the derivative at the k-th breakpoint, halved
        rounding = 1e-14 * float(c @ np.abs(shifted))
        low = int(np.searchsorted(rising, -rounding))
        high = int(np.searchsorted(rising, rounding, side="right"))
        if high > low:  # flat: no row is active between these breakpoints
            return float(b[low]), float(b[high - 1])
        k = min(max(low - 1, 0), len(b) - 1)
        root = float(moment[k] / weight[k] + centre) if weight[k] > 0.0 else float(b[k])
        return root, root

"""Logistic loss: ℓ(f, y) = ln(1 + exp(−y f))."""

from __future__ import annotations

import math

import numpy as np

from maxmargin.losses.base import Loss, Vector, rising_root


class Logistic(Loss):
    """Logistic loss.

    Notes
    -----
    Conjugate: ℓ*(−alpha·y) = alpha ln alpha + (1 − alpha) ln(1 − alpha) on 0 ≤ alpha ≤ 1, with 0 ln 0 = 0.

    References
    ----------
    Cox: The regression analysis of binary sequences, 1958.

    Examples
    --------
    >>> Logistic().value(np.array([0.0]), np.array([1.0])).round(6)
    array([0.693147])
    """

    name = "logistic"
    smooth = True
    entropic = True

    def target(self, y: Vector) -> Vector:
        return np.zeros_like(y)

    def residual(self, score: Vector, y: Vector) -> Vector:
        return -y * score

    def of_residual(self, r: Vector) -> Vector:
        return np.maximum(r, 0.0) + np.log1p(np.exp(-np.abs(r)))

    def slope(self, r: Vector) -> Vector:
        return self.slope_and_curvature(r)[0]

    def curvature(self, r: Vector) -> Vector:
        return self.slope_and_curvature(r)[1]

    def slope_and_curvature(self, r: Vector) -> tuple[Vector, Vector]:
        e = np.exp(-np.abs(r))
        inverse = 1.0 / (1.0 + e)
        return np.where(r >= 0.0, inverse, e * inverse), e * inverse * inverse

    def conjugate_of_slope(self, slope: Vector) -> Vector:
        inside = (slope >= 0.0) & (slope <= 1.0)
        a = np.clip(slope, 0.0, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.where(a > 0.0, a * np.log(a), 0.0)
            right = np.where(a < 1.0, (1.0 - a) * np.log1p(-a), 0.0)
        return np.where(inside, left + right, np.inf)

    def domain(self, cost: Vector) -> tuple[Vector, Vector]:
        return np.zeros_like(cost), cost

    def best_bias(self, score: Vector, y: Vector, cost: Vector, start: float | None = None) -> tuple[float, float]:
        plus, minus = float(cost[y > 0].sum()), float(cost[y < 0].sum())
        # With all scores equal to s, b = ln(plus/minus) − s; so the root lies between the extremes of that.
        level = math.log(plus / minus)
        low, high = level - float(score.max()), level - float(score.min())

        def slope(b: float) -> tuple[float, float]:
            slope, curvature = self.slope_and_curvature(-y * (score + b))
            return -float((cost * y) @ slope), float(cost @ curvature)

        b = rising_root(slope, low, high, level if start is None else start, 1e-14 * (plus + minus))
        return b, b

"""Any power of the slack: ℓ(f, y) = max(0, 1 − y f)^p with 1 < p ≤ 4."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.losses.base import Loss, Vector, rising_root


@dataclass(frozen=True)
class SlackPower(Loss):
    """ξ^p for 1 < p ≤ 4; p = 1 is :class:`Hinge`, p = 2 :class:`SquaredHinge`.

    Notes
    -----
    Conjugate with q = p/(p − 1): ℓ*(−alpha·y) = −alpha + (p − 1)(alpha/p)^q on alpha ≥ 0. At the optimum
    alpha_i = p c_i ξ_i^(p−1).

    References
    ----------
    Cortes, Vapnik: Support-vector networks, 1995 (the slack's power is left open there).

    Examples
    --------
    >>> SlackPower(3.0).value(np.array([0.5, -2.0]), np.array([1.0, -1.0]))
    array([0.125, 0.   ])
    """

    power: float
    name = "slack_power"

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.power >= 2.0

    def of_residual(self, r: Vector) -> Vector:
        return np.asarray(np.maximum(0.0, r) ** self.power)

    def slope(self, r: Vector) -> Vector:
        return np.asarray(self.power * np.maximum(0.0, r) ** (self.power - 1.0))

    def curvature(self, r: Vector) -> Vector:
        p = self.power
        slack = np.maximum(r, 0.0)
        if p >= 2.0:
            return np.where(r > 0.0, p * (p - 1.0) * slack ** (p - 2.0), 0.0)
        # Infinite at slack 0; the cap only matters where the slack is below anything that can be measured.
        return np.where(r > 0.0, p * (p - 1.0) * np.maximum(slack, 1e-150) ** (p - 2.0), 0.0)

    def conjugate_of_slope(self, slope: Vector) -> Vector:
        p = self.power
        with np.errstate(over="ignore"):
            return np.where(slope >= 0.0, (p - 1.0) * (np.maximum(slope, 0.0) / p) ** (p / (p - 1.0)), np.inf)

    def domain(self, cost: Vector) -> tuple[Vector, Vector]:
        return np.zeros_like(cost), np.where(cost > 0.0, np.inf, 0.0)

    def best_bias(self, score: Vector, y: Vector, cost: Vector, start: float | None = None) -> tuple[float, float]:
        live = cost > 0.0
        score, y, cost = score[live], y[live], cost[live]
        beta = y - score
        low, high = float(beta[y > 0].max()), float(beta[y < 0].min())
        if low <= high:  # no slack anywhere between
            return low, high

        def slope(b: float) -> tuple[float, float]:
            r = 1.0 - y * (score + b)
            return -float((cost * y) @ self.slope(r)), float(cost @ self.curvature(r))

        size = float(cost @ self.slope(1.0 - y * (score + 0.5 * (low + high))))
        guess = 0.5 * (low + high) if start is None else start
        b = rising_root(slope, high, low, guess, 1e-14 * size)
        return b, b

"""ε-insensitive losses of support vector regression: errors inside a tube of half-width ε cost nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.losses.base import DualBox, Loss, Vector
from maxmargin.losses.breakpoints import zero_of_ramps, zero_of_steps
from maxmargin.losses.squared_hinge import quadratic_diagonal

BORDER = 1.0 + 1e-14  # a row on the tube's border is not outside by rounding


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """ℓ(f, y) = max(0, |y − f| − ε).

    Notes
    -----
    Conjugate: ℓ*(−alpha) = −alpha y + ε|alpha| on −1 ≤ alpha ≤ 1. Multipliers are signed: positive above the tube.

    References
    ----------
    Vapnik: The nature of statistical learning theory, 1995.

    Examples
    --------
    >>> EpsilonInsensitive(0.5).value(np.array([0.0, 2.0]), np.array([0.2, 0.0]))
    array([0. , 1.5])
    """

    epsilon: float = 0.0
    name = "epsilon_insensitive"
    regression = True

    def of_residual(self, r: Vector) -> Vector:
        return np.maximum(0.0, np.abs(r) - self.epsilon * BORDER)

    def slope(self, r: Vector) -> Vector:
        return np.where(np.abs(r) > self.epsilon, np.sign(r), 0.0)

    def conjugate_of_slope(self, slope: Vector) -> Vector:
        return np.where(np.abs(slope) <= 1.0, self.epsilon * np.abs(slope), np.inf)

    def domain(self, cost: Vector) -> tuple[Vector, Vector]:
        return -cost, cost

    def dual_box(self, cost: Vector) -> DualBox:
        return DualBox(-cost, cost, np.zeros_like(cost), self.epsilon)

    def best_bias(self, score: Vector, y: Vector, cost: Vector, start: float | None = None) -> tuple[float, float]:
        error = y - score
        points = np.concatenate([error - self.epsilon, error + self.epsilon])
        return zero_of_steps(points, np.concatenate([cost, cost]), -float(cost.sum()))


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(Loss):
    """ℓ(f, y) = max(0, |y − f| − ε)².

    Notes
    -----
    Conjugate: ℓ*(−alpha) = −alpha y + ε|alpha| + alpha²/4, for every alpha.

    Examples
    --------
    >>> SquaredEpsilonInsensitive(0.5).value(np.array([0.0, 2.0]), np.array([0.2, 0.0]))
    array([0.  , 2.25])
    """

    epsilon: float = 0.0
    name = "squared_epsilon_insensitive"
    regression = True
    smooth = True

    def of_residual(self, r: Vector) -> Vector:
        return np.maximum(0.0, np.abs(r) - self.epsilon * BORDER) ** 2

    def slope(self, r: Vector) -> Vector:
        return 2.0 * np.sign(r) * np.maximum(0.0, np.abs(r) - self.epsilon)

    def curvature(self, r: Vector) -> Vector:
        return np.where(np.abs(r) > self.epsilon, 2.0, 0.0)

    def conjugate_of_slope(self, slope: Vector) -> Vector:
        return self.epsilon * np.abs(slope) + 0.25 * slope**2

    def domain(self, cost: Vector) -> tuple[Vector, Vector]:
        upper = np.where(cost > 0.0, np.inf, 0.0)
        return -upper, upper

    def dual_box(self, cost: Vector) -> DualBox:
        return DualBox(*self.domain(cost), quadratic_diagonal(cost), self.epsilon)

    def best_bias(self, score: Vector, y: Vector, cost: Vector, start: float | None = None) -> tuple[float, float]:
        error = y - score
        below = np.repeat([True, False], len(error))
        points = np.concatenate([error - self.epsilon, error + self.epsilon])
        return zero_of_ramps(points, np.concatenate([cost, cost]), below, start)

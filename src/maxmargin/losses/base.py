"""The contract of a loss. Certificates state every loss once more, on purpose, in ``certificates/losses.py``."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class DualBox:
    """A dual that is quadratic over a box: lower ≤ alpha ≤ upper, plus ½ diagonal·alpha² + tube·|alpha|."""

    lower: Vector
    upper: Vector
    diagonal: Vector
    tube: float = 0.0

    def part(self, chosen: NDArray[np.intp] | slice) -> DualBox:
        """The box of some rows."""
        return DualBox(self.lower[chosen], self.upper[chosen], self.diagonal[chosen], self.tube)


class Loss(ABC):
    """ℓ(score, y) = h(r) with the residual r = target − sign·score and h convex.

    A classifier has sign = y, so that sign·score is the margin; a regression has sign = 1 and target = y. With costs
    c_i the primal is P = ½‖w‖² + Σ c_i ℓ(f_i, y_i); for multipliers alpha_i the dual value is
    D = −½‖Σ alpha_i sign_i x_i‖² − Σ c_i conjugate(alpha_i / c_i, y_i).
    """

    name: str
    regression = False
    smooth = False  # is once differentiable, so that Newton's method works on the primal, without multipliers
    entropic = False  # the conjugate is the binary entropy of the multiplier's part of the cost

    def sign(self, y: Vector) -> Vector:
        return np.ones_like(y) if self.regression else y

    def target(self, y: Vector) -> Vector:
        return y if self.regression else np.ones_like(y)

    def residual(self, score: Vector, y: Vector) -> Vector:
        return y - score if self.regression else 1.0 - y * score

    @abstractmethod
    def of_residual(self, r: Vector) -> Vector:
        """h(r)."""

    @abstractmethod
    def slope(self, r: Vector) -> Vector:
        """h'(r), the multiplier per unit of cost (a subgradient at corners)."""

    @abstractmethod
    def conjugate_of_slope(self, slope: Vector) -> Vector:
        """h*(slope), infinite outside its domain."""

    @abstractmethod
    def domain(self, cost: Vector) -> tuple[Vector, Vector]:
        """Smallest and largest multiplier of rows with these costs."""

    def curvature(self, r: Vector) -> Vector:
        """h''(r), the curvature per unit of cost."""
        raise NotImplementedError(f"the loss {self.name!r} has no curvature everywhere; it needs multipliers")

    def slope_and_curvature(self, r: Vector) -> tuple[Vector, Vector]:
        """h'(r) and h''(r) together."""
        return self.slope(r), self.curvature(r)

    def dual_box(self, cost: Vector) -> DualBox:
        """The dual's box; only losses that are piecewise linear, or the square of one, have one.

        ``diagonal`` is 0, or 1/(2 cost) for a square, whose slope is 2 times the slack: solvers rely on it.
        """
        raise NotImplementedError(f"the dual of the loss {self.name!r} is not a box; use conjugate")

    @property
    def has_box(self) -> bool:
        return type(self).dual_box is not Loss.dual_box

    def value(self, score: Vector, y: Vector) -> Vector:
        """ℓ(score, y)."""
        return self.of_residual(self.residual(score, y))

    def conjugate(self, alpha: Vector, y: Vector) -> Vector:
        """ℓ*(−alpha·sign, y), infinite where alpha is not allowed."""
        return self.conjugate_of_slope(alpha) - alpha * self.target(y)

    @abstractmethod
    def best_bias(self, score: Vector, y: Vector, cost: Vector, start: float | None = None) -> tuple[float, float]:
        """The interval of all b that minimise Σ c_i ℓ(score_i + b, y_i); ``start`` is a guess."""


def rising_root(
    slope: Callable[[float], tuple[float, float]], low: float, high: float, start: float, small: float
) -> float:
    """Zero of a rising function between low and high: Newton's method that keeps a bracket.

    ``slope(b)`` returns value and derivative; below ``small`` the value counts as zero.
    """
    b, width = min(max(start, low), high), high - low
    for step in range(200):
        f, df = slope(b)
        if abs(f) <= small:
            return b
        low, high = (b, high) if f < 0.0 else (low, b)
        newton = b - f / df if df > 0.0 else math.nan
        # A bracket that does not halve in four steps is halved: Newton may circle around a vertical piece.
        if step % 4 == 3:
            circling, width = high - low > 0.5 * width, high - low
            newton = math.nan if circling else newton
        b = newton if low < newton < high else 0.5 * (low + high)
        if not low < b < high:
            return b
    return b

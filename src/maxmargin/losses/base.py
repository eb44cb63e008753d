"""The contract of a loss."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Loss(Protocol):
    """ℓ(score, y), convex in the score.

    With costs c_i the primal is P = ½‖w‖² + Σ c_i ℓ(f_i, y_i); for multipliers alpha_i the dual value is
    D = −½‖Σ alpha_i y_i x_i‖² − Σ c_i conjugate(alpha_i / c_i, y_i).
    """

    name: str

    def value(self, score: Vector, y: Vector) -> Vector:
        """ℓ(score, y)."""
        ...

    def slope(self, score: Vector, y: Vector) -> Vector:
        """A subgradient of ℓ in the score."""
        ...

    def conjugate(self, alpha: Vector, y: Vector) -> Vector:
        """ℓ*(−alpha·y, y), infinite where alpha is not allowed."""
        ...

    def dual_box(self, cost: Vector) -> tuple[Vector, Vector]:
        """Upper bound of alpha and the diagonal the loss adds to the dual's Hessian."""
        ...

    def best_bias(self, score: Vector, y: Vector, cost: Vector) -> tuple[float, float]:
        """The interval of all b that minimise Σ c_i ℓ(score_i + b, y_i)."""
        ...

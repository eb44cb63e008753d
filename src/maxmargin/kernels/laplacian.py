"""The Laplacian kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.inputs import positive_number
from maxmargin.kernels.base import Kernel, Structure
from maxmargin.kernels.points import Matrix, Points, Vector, distances


@dataclass(frozen=True)
class Laplacian(Kernel):
    """k(x, z) = exp(−γ Σ|x_j − z_j|).

    Positive semidefinite as the product over all columns of exp(−γ|x_j − z_j|), whose Fourier transform, Cauchy's
    density, is positive. No matrix product helps: a value costs a difference per column.

    Parameters
    ----------
    gamma : float, default=1.0
        γ > 0, one over the width.

    References
    ----------
    Schoenberg: Metric spaces and positive definite functions, 1938. Rahimi, Recht: Random features for large-scale
    kernel machines, 2007.

    Examples
    --------
    >>> kernel = Laplacian(gamma=0.5)
    >>> kernel
    Laplacian(gamma=0.5)
    >>> kernel.block([[0.0, 1.0], [1.0, 2.0]], [[1.0, 2.0]]).round(6)
    array([[0.367879],
           [1.      ]])
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", positive_number("gamma", self.gamma))

    @property
    def is_positive(self) -> bool:
        return True

    def structure(self) -> Structure:
        return "laplacian", self.gamma

    def _values(self, left: Points, right: Points) -> Matrix:
        values = distances(left, right, "cityblock")
        values *= -self.gamma
        return np.asarray(np.exp(values, out=values))

    def _own(self, points: Points) -> Vector:
        return np.ones(points.n_rows)

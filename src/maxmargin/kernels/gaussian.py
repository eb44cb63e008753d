"""The Gaussian kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.inputs import positive_number
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.points import Matrix, Points, Vector, inner_products

MOST_DENSE = 5 * 10**7  # numbers


@dataclass(frozen=True)
class Gaussian(Kernel):
    """k(x, z) = exp(−γ‖x − z‖²).

    Squared distances are ‖x‖² + ‖z‖² − 2⟨x, z⟩, one matrix product. Dense rows are first moved so that the mean of Z
    is the origin, which changes no distance but keeps the digits of rows that lie close together far from zero.

    Parameters
    ----------
    gamma : float, default=1.0
        γ > 0, one over twice the squared width.

    References
    ----------
    Aizerman, Braverman, Rozonoer: Theoretical foundations of the potential function method, 1964. Boser, Guyon,
    Vapnik: A training algorithm for optimal margin classifiers, 1992.

    Examples
    --------
    >>> kernel = Gaussian(gamma=0.5)
    >>> kernel
    Gaussian(gamma=0.5)
    >>> kernel.block([[0.0], [1.0]], [[1.0]]).round(6)
    array([[0.606531],
           [1.      ]])
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        positive_number("gamma", self.gamma)

    @property
    def is_positive(self) -> bool:
        return True

    def sides(self, left: Points, right: Points) -> tuple[Points, Points]:
        super().sides(left, right)
        if left.is_sparse != right.is_sparse and (left.n_rows + right.n_rows) * left.n_columns <= MOST_DENSE:
            left, right = left.dense(), right.dense()  # the same values as if both had been dense
        if left.is_sparse or right.is_sparse:
            return left, right
        with np.errstate(over="ignore", invalid="ignore"):
            origin = right.X.mean(axis=0)
        moved = right.moved(origin)
        return (moved, moved) if left is right else (left.moved(origin), moved)

    def _values(self, left: Points, right: Points) -> Matrix:
        values = inner_products(left, right)
        values *= -2.0
        values += left.squares[:, None]
        values += right.squares
        np.maximum(values, 0.0, out=values)  # rounding may leave a distance of −1e-16; NaN stays NaN
        values *= -self.gamma
        return np.asarray(np.exp(values, out=values))

    def _own(self, points: Points) -> Vector:
        return np.ones(points.n_rows)

"""The Gaussian kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin.inputs import positive_number
from maxmargin.kernels.base import Kernel, Structure
from maxmargin.kernels.points import Matrix, Points, Vector, distances, inner_products, pair_squares

MOST_DENSE = 5 * 10**7  # numbers
VALUE_ERROR = 5e-14  # what rounding may do to a value before it is computed from differences
MOST_AT_ONCE = 2**20  # values looked at for such errors at a time
CROWDED = 0.125  # of a row's values: from here on all of them are computed from differences, which is simpler


@dataclass(frozen=True)
class Gaussian(Kernel):
    """k(x, z) = exp(−γ‖x − z‖²).

    Squared distances are ‖x‖² + ‖z‖² − 2⟨x, z⟩, one matrix product. Dense rows are first moved so that the mean of Z
    is the origin, which changes no distance but keeps the digits of rows that lie close together far from zero. Where
    too many digits still cancel, as between neighbours in a cluster far from the others, the distance is computed
    from the differences of the two rows: values are exact to 1e-13, whatever the scale of the rows, up to some thousand
    columns, or entries of a sparse row.

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
        object.__setattr__(self, "gamma", positive_number("gamma", self.gamma))

    @property
    def is_positive(self) -> bool:
        return True

    def structure(self) -> Structure:
        return "rbf", self.gamma

    def sides(self, left: Points, right: Points) -> tuple[Points, Points]:
        super().sides(left, right)
        if left.is_sparse != right.is_sparse and (left.n_rows + right.n_rows) * left.n_columns <= MOST_DENSE:
            left, right = left.dense(), right.dense()  # the same values as if both had been dense
        if left.is_sparse or right.is_sparse:
            return left, right
        with np.errstate(over="ignore", invalid="ignore"):
            return (right.centred, right.centred) if left is right else (left.moved(right.mean), right.centred)

    def _values(self, left: Points, right: Points) -> Matrix:
        values = inner_products(left, right)
        values *= -2.0
        values += left.squares[:, None]
        values += right.squares
        np.maximum(values, 0.0, out=values)  # rounding may leave a distance of −1e-16; NaN stays NaN
        values *= -self.gamma
        self._correct(values, left, right)
        return np.asarray(np.exp(values, out=values))

    def _correct(self, exponents: Matrix, left: Points, right: Points) -> None:
        """Compute those exponents −γ‖x − z‖² from differences whose rounding could be seen in the value."""
        by_blas = not (left.is_sparse or right.is_sparse)
        one, other = left.lengths, right.lengths
        sure = self._highest_sure(np.minimum(one, other.max()), left.squares + right.squares.max(), by_blas)
        doubtful = np.flatnonzero(~(sure > 0.0))  # no exponent is higher than 0; NaN is doubtful, here and below
        height = max(1, MOST_AT_ONCE // right.n_rows)
        for begin in range(0, len(doubtful), height):
            rows = doubtful[begin : begin + height]
            k, j = np.nonzero(~(exponents[rows] < sure[rows, None]))
            i = rows[k]
            sure_pairs = self._highest_sure(np.minimum(one[i], other[j]), left.squares[i] + right.squares[j], by_blas)
            wrong = ~(exponents[i, j] < sure_pairs)
            i, j, k = i[wrong], j[wrong], k[wrong]
            is_crowded = np.bincount(k, minlength=len(rows)) > CROWDED * right.n_rows
            crowded, alone = rows[is_crowded], ~is_crowded[k]
            if len(crowded):
                these = Points(left.original[crowded], left.is_sparse)
                exponents[crowded] = -self.gamma * distances(these, right, "sqeuclidean")
            i, j = i[alone], j[alone]
            exponents[i, j] = -self.gamma * pair_squares(left, right, i, j)

    def _highest_sure(self, terms: NDArray[np.intp], squares: Vector, by_blas: bool) -> Vector:
        """The exponent t such that exp(t), and all of lower exponents, are wrong by at most VALUE_ERROR.

        Given how many terms an inner product has and ‖x‖² + ‖z‖². Rounding adds up like a random walk where BLAS sums
        in many places at a time, and in one direction where SciPy adds one term after the other. By an error e of the
        exponent, exp(t) is wrong by at most exp(t + e) times the smaller of 1 and e.
        """
        units = (2.0 * np.sqrt(terms) if by_blas else 0.5 * terms) + 8.0
        error = self.gamma * 2.0**-53 * units * squares
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(VALUE_ERROR / np.minimum(error, 1.0)) - error)

    def _own(self, points: Points) -> Vector:
        return np.ones(points.n_rows)

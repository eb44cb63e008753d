"""Rows as a kernel wants them: checked, in float64, with their squared norms at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from maxmargin.inputs import check_rows
from maxmargin.kept import kept_property

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

SPARSE_ROWS = 1024  # of a sparse product at a time: SciPy holds an index beside every entry of the result
DENSE_BYTES = 32 * 2**20  # of sparse rows written out as an array at a time
TOGETHER = 8  # sparse rows whose columns are looked at together: more of them have more columns that few of them use
LARGEST = np.finfo(np.float64).max
POWERS = {"cityblock": 1, "sqeuclidean": 2}  # of |x_j − z_j| in the sum that each distance is


@dataclass(frozen=True, eq=False)
class Points:
    """Rows in float64: C-contiguous, or sorted CSR if they are sparse.

    Examples
    --------
    >>> points = Points.from_array([[3.0, 4.0], [0.0, 1.0]])
    >>> points.squares, points.part(slice(1, 2)).X
    (array([25.,  1.]), array([[0., 1.]]))
    """

    X: Any
    is_sparse: bool
    unmoved: Any = None  # if X was moved: the rows as they were

    @classmethod
    def from_array(cls, X: Any) -> Points:
        """Check X, if it is no checked :class:`~maxmargin.space.Rows`; float64 rows in C order are not copied."""
        rows = check_rows(X)
        return cls(rows.X.astype(np.float64, copy=False), rows.sparse)

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_columns(self) -> int:
        return int(self.X.shape[1])

    @property
    def original(self) -> Any:
        """The rows as they were before they were moved: in their differences nothing is lost but one rounding."""
        return self.X if self.unmoved is None else self.unmoved

    @property
    def lengths(self) -> NDArray[np.intp]:
        """How many entries every row has."""
        return np.diff(self.X.indptr) if self.is_sparse else np.full(self.n_rows, self.n_columns)

    @kept_property
    def mean(self) -> Vector:
        """Of the dense rows."""
        return np.asarray(self.X.mean(axis=0))

    @kept_property
    def centred(self) -> Points:
        """Dense rows seen from their mean."""
        return self.moved(self.mean)

    @kept_property
    def squares(self) -> Vector:
        """‖x‖² of every row."""
        if self.is_sparse:
            return np.asarray(self.X.power(2).sum(axis=1), dtype=np.float64).ravel()
        return np.asarray(np.vecdot(self.X, self.X))

    def part(self, rows: slice) -> Points:
        """Some of the rows, with what is already known of them."""
        chosen = Points(self.X[rows], self.is_sparse, None if self.unmoved is None else self.unmoved[rows])
        if "squares" in self.__dict__:
            chosen.__dict__["squares"] = self.squares[rows]
        return chosen

    def dense(self) -> Points:
        """The same rows as an array."""
        return Points(self.X.toarray(), False) if self.is_sparse else self

    def moved(self, origin: Vector) -> Points:
        """Dense rows seen from another origin."""
        return Points(self.X - origin, False, self.original)


def inner_products(left: Points, right: Points) -> Matrix:
    """⟨x, z⟩ of every row x on the left and z on the right, as a new array."""
    if left.is_sparse and right.is_sparse:
        return _sparse_products(left.X, right.X.T.tocsr())
    if left.is_sparse:
        return np.ascontiguousarray(left.X @ right.X.T)
    if right.is_sparse:
        return np.ascontiguousarray((right.X @ left.X.T).T)
    return np.asarray(left.X @ right.X.T)


def _sparse_products(X: Any, transposed: Any) -> Matrix:
    products = np.empty((X.shape[0], transposed.shape[1]))
    for begin in range(0, X.shape[0], SPARSE_ROWS):
        rows = slice(begin, begin + SPARSE_ROWS)
        products[rows] = (X[rows] @ transposed).toarray()
    return products


def distances(left: Points, right: Points, metric: str) -> Matrix:
    """Σ|x_j − z_j| ("cityblock") or Σ(x_j − z_j)² ("sqeuclidean") of every pair of rows, as a new array.

    All terms are differences of the original rows and none is negative, so no digits cancel.

    Examples
    --------
    >>> points = Points.from_array([[3.0, 4.0], [0.0, 1.0]])
    >>> distances(points, points, "sqeuclidean")
    array([[ 0., 18.],
           [18.,  0.]])
    """
    if left.is_sparse:
        return _sparse_distances(left.original, right, metric)
    if right.is_sparse:
        return np.ascontiguousarray(_sparse_distances(right.original, left, metric).T)
    return np.asarray(cdist(left.original, right.original, metric))


def _sparse_distances(X: Any, right: Points, metric: str) -> Matrix:
    """The rows of X are taken a few at a time, and what lies outside of their columns is Σ|z_j|, or Σz_j²."""
    power, values = POWERS[metric], np.empty((X.shape[0], right.n_rows))
    for first in range(0, X.shape[0], TOGETHER):
        some = X[first : first + TOGETHER]
        outside = np.ones(right.n_columns)
        outside[some.indices] = 0.0
        inside = np.flatnonzero(outside == 0.0)
        dense = some[:, inside].toarray()
        height = max(1, DENSE_BYTES // (8 * max(1, len(inside) if right.is_sparse else right.n_columns)))
        for begin in range(0, right.n_rows, height):
            others = right.original[begin : begin + height]
            near = others[:, inside].toarray() if right.is_sparse else np.ascontiguousarray(others[:, inside])
            terms = abs(others).power(power) if right.is_sparse else np.abs(others) ** power
            entries = terms.data if right.is_sparse else terms
            np.minimum(entries, LARGEST, out=entries)  # so that 0 times an overflow is 0
            beyond = terms @ outside
            values[first : first + TOGETHER, begin : begin + height] = cdist(dense, near, metric) + beyond
    return values


def pair_squares(left: Points, right: Points, i: NDArray[np.intp], j: NDArray[np.intp]) -> Vector:
    """‖x_i − z_j‖² of some pairs of rows, from their differences.

    Examples
    --------
    >>> points = Points.from_array([[3.0, 4.0], [0.0, 1.0]])
    >>> pair_squares(points, points, np.array([0, 1]), np.array([1, 1]))
    array([18.,  0.])
    """
    both_sparse = left.is_sparse and right.is_sparse
    most = max(1, int(left.lengths.max() + right.lengths.max())) if both_sparse else left.n_columns
    step, squares = max(1, DENSE_BYTES // (8 * most)), np.empty(len(i))
    for begin in range(0, len(i), step):
        some = slice(begin, begin + step)
        one, other = left.original[i[some]], right.original[j[some]]
        if both_sparse:
            squares[some] = np.asarray((one - other).power(2).sum(axis=1)).ravel()
        else:
            difference = (one.toarray() if left.is_sparse else one) - (other.toarray() if right.is_sparse else other)
            squares[some] = np.vecdot(difference, difference)
    return squares


def mirror(square: Matrix, height: int = 512) -> None:
    """Write the lower triangle over the upper one, in place: exactly symmetric afterwards."""
    for begin in range(0, len(square), height):
        rows = slice(begin, begin + height)
        square[:begin, rows] = square[rows, :begin].T
        corner = square[rows, rows]
        corner[...] = np.tril(corner) + np.tril(corner, -1).T

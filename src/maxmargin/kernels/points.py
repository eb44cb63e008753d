"""Rows as a kernel wants them: checked, in float64, with their squared norms at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.inputs import check_rows
from maxmargin.kept import kept_property

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

SPARSE_ROWS = 1024  # of a sparse product at a time: SciPy holds an index beside every entry of the result


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

    @kept_property
    def squares(self) -> Vector:
        """‖x‖² of every row."""
        if self.is_sparse:
            return np.asarray(self.X.power(2).sum(axis=1), dtype=np.float64).ravel()
        return np.asarray(np.einsum("ij,ij->i", self.X, self.X))

    def part(self, rows: slice) -> Points:
        """Some of the rows, with what is already known of them."""
        chosen = Points(self.X[rows], self.is_sparse)
        if "squares" in self.__dict__:
            chosen.__dict__["squares"] = self.squares[rows]
        return chosen

    def dense(self) -> Points:
        """The same rows as an array."""
        return Points(self.X.toarray(), False) if self.is_sparse else self

    def moved(self, origin: Vector) -> Points:
        """Dense rows seen from another origin."""
        return Points(self.X - origin, False)


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


def mirror(square: Matrix, height: int = 512) -> None:
    """Write the lower triangle over the upper one, in place: exactly symmetric afterwards."""
    for begin in range(0, len(square), height):
        rows = slice(begin, begin + height)
        square[:begin, rows] = square[rows, :begin].T
        corner = square[rows, rows]
        corner[...] = np.tril(corner) + np.tril(corner, -1).T

"""Kernels that come from outside: a matrix of values, or a function."""

from __future__ import annotations

import collections.abc
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxmargin.errors import InputError
from maxmargin.kernels.base import Kernel, Structure
from maxmargin.kernels.points import Matrix, Points, Vector, mirror
from maxmargin.positions import filled, shown

ASYMMETRY = 1e-5  # relative to the largest value: a product of float32 rows is symmetric to six digits only
OWN_ROWS = 64  # rows per call where only the diagonal of a function's values is wanted


class GivenKernel(Kernel):
    """What cannot be known beforehand is checked: symmetry here, finite values in the base."""

    def _gram(self, points: Points) -> Matrix:
        square = self.between(*self.sides(points, points))
        self._check_symmetric(square)
        mirror(square)
        return square

    @property
    def is_positive(self) -> bool | None:
        return None

    def _check_symmetric(self, square: Matrix) -> None:
        largest = float(np.abs(square).max(initial=0.0))
        for begin in range(0, len(square), 512):
            rows = slice(begin, begin + 512)
            off = np.abs(square[rows] - square[:, rows].T)
            if off.max() > ASYMMETRY * largest:
                i, j = (int(k) for k in np.unravel_index(off.argmax(), off.shape))
                i += begin
                raise InputError(
                    f"{self!r} is not symmetric: it is {square[i, j]} for rows {i} and {j}, but {square[j, i]} for "
                    f"rows {j} and {i}. A kernel has the same value both ways; (K + K.T) / 2 makes it so."
                )


@dataclass(frozen=True)
class Precomputed(GivenKernel):
    """The rows given are the kernel's values already.

    ``gram(X)`` wants the square matrix of all pairs of the n rows learned from; ``block(X, Z)`` wants one row of n
    values for each new row, and of Z only that it has n rows.

    Examples
    --------
    >>> kernel = Precomputed()
    >>> K = kernel.gram([[2.0, 1.0], [1.0, 2.0]])
    >>> kernel.block([[0.5, 1.5]], K)
    array([[0.5, 1.5]])
    """

    def structure(self) -> Structure:
        return ("precomputed",)

    def _check_sides(self, left: Points, right: Points) -> None:
        if left is right and left.n_rows != left.n_columns:
            raise InputError(
                f"a precomputed kernel needs a square matrix, the value of every pair of rows; got shape {left.X.shape}"
            )
        if left.n_columns != right.n_rows:
            raise InputError(
                f"a precomputed kernel needs one value for each of the {right.n_rows} rows learned from, but X has "
                f"{left.n_columns} columns"
            )

    def _values(self, left: Points, right: Points) -> Matrix:
        return np.asarray(left.X.toarray() if left.is_sparse else left.X.copy())

    def _own(self, points: Points) -> Vector:
        return np.array(points.X.diagonal())


@dataclass(frozen=True)
class Callable(GivenKernel):
    """k(X, Z) by a function that returns the values of all pairs of some rows.

    The function is called with blocks of rows, as many as memory allows or somebody needs, and never knows which rows
    of the data they are. So a value must depend on its own two rows only, not on others that come along with them: a
    function that centres or scales what it is given is no kernel.

    Parameters
    ----------
    f : callable
        ``f(X, Z, **params)`` with float64 rows, dense or CSR as they were given; returns an array of shape
        (rows of X, rows of Z) of finite numbers.
    params : mapping, optional
        Further keywords.

    Examples
    --------
    >>> kernel = Callable(lambda X, Z, power: (X @ Z.T) ** power, {"power": 2})
    >>> kernel.block([[1.0], [2.0]], [[3.0]])
    array([[ 9.],
           [36.]])
    """

    f: collections.abc.Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not callable(self.f):
            raise InputError(f"f must be a function of two arrays of rows, got {shown(self.f)}")
        if not isinstance(self.params, Mapping):
            raise InputError(f"params must be a mapping of names to values, got {shown(self.params)}")

    def __hash__(self) -> int:
        return hash(self.f)

    def __repr__(self) -> str:
        name = getattr(self.f, "__qualname__", None) or repr(self.f)
        return f"Callable({name}, {dict(self.params)!r})" if self.params else f"Callable({name})"

    def structure(self) -> Structure:
        return "callable", self.f, dict(self.params)

    def _values(self, left: Points, right: Points) -> Matrix:
        returned = self.f(left.X, right.X, **self.params)
        expected = (left.n_rows, right.n_rows)
        values = filled(returned)
        try:
            values = np.array(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"{self!r} returned {shown(returned)}; expected an array of numbers of shape {expected}"
            ) from None
        if values.shape != expected:
            raise InputError(
                f"{self!r} returned an array of shape {values.shape} for {expected[0]} and {expected[1]} rows; "
                f"expected {expected}: one value for every pair of a row of X and a row of Z"
            )
        return values

    def _own(self, points: Points) -> Vector:
        own = np.empty(points.n_rows)
        for begin in range(0, points.n_rows, OWN_ROWS):
            some = points.part(slice(begin, begin + OWN_ROWS))
            own[begin : begin + OWN_ROWS] = self._values(some, some).diagonal()
        return own

    def _advice(self) -> str:
        return "Change the function so that it returns finite numbers for all rows."

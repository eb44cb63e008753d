"""The contract of a kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np

from maxmargin.errors import InputError
from maxmargin.kernels.points import Matrix, Points, Vector, mirror

Structure = tuple[Any, ...]  # a name, then numbers or the structures of parts

BLOCK_BYTES = 64 * 2**20  # of the kernel's values held at a time where only their products are wanted


class Kernel(ABC):
    """k(x, z) = ⟨φ(x), φ(z)⟩ of two rows, for some map φ.

    A kernel is a value: it never changes, two with the same parameters are equal, and its ``repr`` rebuilds it. Rows
    are dense or sparse, of any real type; the values are always float64 and computed in float64. A kernel can be
    called with two arrays, so it also serves where scikit-learn takes a function, as in ``SVC(kernel=Gaussian(0.5))``.
    Sums and products of kernels and positive multiples of a kernel are kernels: ``+`` and ``*`` make them.
    """

    __array_ufunc__ = None  # so that np.float64(2.0) * kernel is a kernel, too

    @property
    @abstractmethod
    def is_positive(self) -> bool | None:
        """Whether every Gram matrix is positive semidefinite; None: not known."""

    @abstractmethod
    def structure(self) -> Structure:
        """The kernel as a name and plain values, from which :func:`kernel_of` makes it again.

        ``("linear",)``, ``("poly", gamma, coef0, degree)``, ``("rbf", gamma)``, ``("laplacian", gamma)``,
        ``("sigmoid", gamma, coef0)``, ``("precomputed",)``, ``("callable", f, params)``, ``("sum", part, ...)``,
        ``("product", part, ...)`` or ``("scaled", factor, part)``, where a part is such a tuple itself.
        """

    @abstractmethod
    def _values(self, left: Points, right: Points) -> Matrix:
        """k of every row on the left with every row on the right, as a new array."""

    @abstractmethod
    def _own(self, points: Points) -> Vector:
        """k(x, x) of every row."""

    def sides(self, left: Points, right: Points) -> tuple[Points, Points]:
        """The two sides as ``between`` wants them."""
        self._check_sides(left, right)
        return left, right

    def _check_sides(self, left: Points, right: Points) -> None:
        """They must have the same columns."""
        if left.n_columns != right.n_columns:
            raise InputError(
                f"a kernel compares rows with the same columns: X has {left.n_columns}, Z has {right.n_columns}"
            )

    def block(self, X: Any, Z: Any) -> Matrix:
        """k(x, z) of every row x of X and z of Z.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        Z : array-like or sparse matrix of shape (m, d)

        Returns
        -------
        array of shape (n, m)
        """
        return self.between(*self.sides(Points.from_array(X), Points.from_array(Z)))

    def __call__(self, X: Any, Z: Any) -> Matrix:
        return self.block(X, Z)

    def __add__(self, other: object) -> Kernel:
        from maxmargin.kernels.algebra import added

        return added(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: object) -> Kernel:
        from maxmargin.kernels.algebra import multiplied, scaled

        if isinstance(other, Real):
            return scaled(other, self)
        return multiplied(self, other) if isinstance(other, Kernel) else NotImplemented

    def __rmul__(self, other: object) -> Kernel:
        return self * other

    def gram(self, X: Any) -> Matrix:
        """k(x, z) of all pairs of rows of X: exactly symmetric, with ``diagonal(X)`` on its diagonal."""
        return self._gram(Points.from_array(X))

    def _gram(self, points: Points) -> Matrix:
        square = self.between(*self.sides(points, points))
        mirror(square)
        np.fill_diagonal(square, self._own(points))
        return square

    def diagonal(self, X: Any) -> Vector:
        """k(x, x) of every row of X."""
        points = Points.from_array(X)
        self._check_sides(points, points)
        with np.errstate(over="ignore", invalid="ignore"):
            own = self._own(points)
        bad = np.flatnonzero(~np.isfinite(own))
        if len(bad):
            raise self._not_finite(own[bad[0]], int(bad[0]), int(bad[0]))
        return own

    def times(self, X: Any, Z: Any, coefficients: Matrix) -> Matrix:
        """``block(X, Z) @ coefficients``, without ever holding the whole block."""
        parts = [part @ coefficients for _, part in self.blocks(X, Z)]
        return np.concatenate(parts)

    def blocks(self, X: Any, Z: Any, most_bytes: int = BLOCK_BYTES) -> Iterator[tuple[slice, Matrix]]:
        """``block(X, Z)`` in pieces of neighbouring rows, each with the slice of X it belongs to."""
        left, right = self.sides(Points.from_array(X), Points.from_array(Z))
        height = max(1, most_bytes // (8 * right.n_rows))
        for begin in range(0, left.n_rows, height):
            rows = slice(begin, min(begin + height, left.n_rows))
            yield rows, self.between(left.part(rows), right, begin)

    def between(self, left: Points, right: Points, first: int = 0) -> Matrix:
        """The values of two sides made by ``sides``, checked; ``first`` is the number of the first row on the left."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = self._values(left, right)
        self._check_finite(values, first)
        return values

    def _check_finite(self, values: Matrix, first: int = 0) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()) or np.isfinite(values).all():
                return
        i, j = (int(k) for k in np.argwhere(~np.isfinite(values))[0])
        raise self._not_finite(values[i, j], first + i, j)

    def _not_finite(self, value: float, i: int, j: int) -> InputError:
        return InputError(
            f"{self!r} is {value} for row {i} of X and row {j} of Z: its values must be finite numbers. "
            f"{self._advice()}"
        )

    def _advice(self) -> str:
        return "Scale the columns, for example with sklearn.preprocessing.StandardScaler."

"""Sums, products and positive multiples of kernels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.errors import InputError
from maxmargin.inputs import positive_number
from maxmargin.kernels.base import Kernel, Structure
from maxmargin.kernels.given import Precomputed
from maxmargin.kernels.points import Matrix, Points, Vector
from maxmargin.positions import shown


@dataclass(frozen=True, eq=False)
class Views(Points):
    """Rows together with what each part of a combined kernel makes of them."""

    views: tuple[Points, ...] = ()

    def part(self, rows: slice) -> Views:
        different = {id(view): view for view in self.views}  # most parts see the rows alike
        cut = {key: view.part(rows) for key, view in different.items()}
        return Views(self.X[rows], self.is_sparse, views=tuple(cut[id(view)] for view in self.views))


class Combined(Kernel):
    """A kernel whose value follows from those of its parts for the same two rows."""

    @property
    @abstractmethod
    def _parts(self) -> tuple[Kernel, ...]:
        """The kernels it consists of."""

    @abstractmethod
    def _combine(self, values: Iterator[Matrix]) -> Matrix:
        """Its values from those of all parts in turn, which it may overwrite."""

    @property
    def is_positive(self) -> bool | None:
        # Sums are positive semidefinite if all parts are, products by Schur's theorem. If one part is not, they may be.
        return True if all(part.is_positive for part in self._parts) else None

    def sides(self, left: Points, right: Points) -> tuple[Points, Points]:
        self._check_sides(left, right)
        pairs = [part.sides(left, right) for part in self._parts]
        seen = Views(left.X, left.is_sparse, views=tuple(one for one, _ in pairs))
        if left is right:
            return seen, seen
        return seen, Views(right.X, right.is_sparse, views=tuple(other for _, other in pairs))

    def between(self, left: Points, right: Points, first: int = 0) -> Matrix:
        assert isinstance(left, Views)
        assert isinstance(right, Views)
        views = zip(self._parts, left.views, right.views, strict=True)
        with np.errstate(over="ignore", invalid="ignore"):
            values = self._combine(part.between(one, other, first) for part, one, other in views)
        self._check_finite(values, first)
        return values

    def _values(self, left: Points, right: Points) -> Matrix:
        return self.between(left, right)

    def _gram(self, points: Points) -> Matrix:
        with np.errstate(over="ignore", invalid="ignore"):
            square = self._combine(part._gram(points) for part in self._parts)
        self._check_finite(square)
        return square

    def _own(self, points: Points) -> Vector:
        return self._combine(part._own(points) for part in self._parts)


@dataclass(frozen=True)
class Sum(Combined):
    """k(x, z) = k₁(x, z) + k₂(x, z) + …, as ``+`` makes it.

    Parameters
    ----------
    parts : tuple of Kernel
        At least one; none of them precomputed.

    References
    ----------
    Aronszajn: Theory of reproducing kernels, 1950.

    Examples
    --------
    >>> from maxmargin.kernels import Gaussian, Linear
    >>> kernel = Gaussian(0.5) + Linear()
    >>> kernel
    Sum(parts=(Gaussian(gamma=0.5), Linear()))
    >>> kernel.block([[0.0], [1.0]], [[1.0]]).round(6)
    array([[0.606531],
           [2.      ]])
    """

    parts: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", checked_parts(self.parts))

    @property
    def _parts(self) -> tuple[Kernel, ...]:
        return self.parts

    def structure(self) -> Structure:
        return "sum", *(part.structure() for part in self.parts)

    def _combine(self, values: Iterator[Matrix]) -> Matrix:
        total = next(values)
        for more in values:
            total += more
        return total


@dataclass(frozen=True)
class Product(Combined):
    """k(x, z) = k₁(x, z) · k₂(x, z) · …, as ``*`` makes it.

    Parameters
    ----------
    parts : tuple of Kernel
        At least one; none of them precomputed.

    References
    ----------
    Schur: Bemerkungen zur Theorie der beschränkten Bilinearformen mit unendlich vielen Veränderlichen, 1911.

    Examples
    --------
    >>> from maxmargin.kernels import Gaussian, Linear
    >>> (Linear() * Gaussian(0.5)).block([[0.0], [1.0]], [[3.0]]).round(6)
    array([[0.      ],
           [0.406006]])
    """

    parts: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", checked_parts(self.parts))

    @property
    def _parts(self) -> tuple[Kernel, ...]:
        return self.parts

    def structure(self) -> Structure:
        return "product", *(part.structure() for part in self.parts)

    def _combine(self, values: Iterator[Matrix]) -> Matrix:
        total = next(values)
        for more in values:
            total *= more
        return total


@dataclass(frozen=True)
class Scaled(Combined):
    """k(x, z) = factor · k₁(x, z), as ``*`` with a number makes it.

    Parameters
    ----------
    factor : float
        Greater than 0.
    kernel : Kernel
        k₁; not a precomputed one.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> kernel = 0.5 * Linear()
    >>> kernel
    Scaled(factor=0.5, kernel=Linear())
    >>> kernel.block([[4.0]], [[3.0]])
    array([[6.]])
    """

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", positive_number("the factor of a kernel", self.factor))
        checked_parts((self.kernel,))

    @property
    def is_positive(self) -> bool | None:
        return self.kernel.is_positive

    @property
    def _parts(self) -> tuple[Kernel, ...]:
        return (self.kernel,)

    def structure(self) -> Structure:
        return "scaled", self.factor, self.kernel.structure()

    def _combine(self, values: Iterator[Matrix]) -> Matrix:
        total = next(values)
        total *= self.factor
        return total


def added(one: Kernel, other: Kernel) -> Kernel:
    """Their sum; sums among them are taken apart."""
    ours = one.parts if isinstance(one, Sum) else (one,)
    return Sum(ours + (other.parts if isinstance(other, Sum) else (other,)))


def multiplied(one: Kernel, other: Kernel) -> Kernel:
    """Their product; products among them are taken apart."""
    ours = one.parts if isinstance(one, Product) else (one,)
    return Product(ours + (other.parts if isinstance(other, Product) else (other,)))


def scaled(factor: Any, kernel: Kernel) -> Kernel:
    """A multiple of the kernel; a factor that it has already is multiplied."""
    factor = positive_number("the factor of a kernel", factor)
    return Scaled(factor * kernel.factor, kernel.kernel) if isinstance(kernel, Scaled) else Scaled(factor, kernel)


def checked_parts(parts: Any) -> tuple[Kernel, ...]:
    """The parts as a tuple, if they are kernels that can be computed from the same rows."""
    if not isinstance(parts, tuple | list) or not parts:
        raise InputError(f"parts must be a tuple of at least one kernel, got {shown(parts)}")
    for part in parts:
        if not isinstance(part, Kernel):
            raise InputError(f"a part of a combined kernel must be a Kernel, got {shown(part)}")
        if isinstance(part, Precomputed):
            raise InputError(
                "a precomputed kernel cannot be part of another: its rows are values already, which other kernels "
                "would take for rows of X. Add, multiply or scale the matrix of values, and use Precomputed() for that"
            )
    return tuple(parts)

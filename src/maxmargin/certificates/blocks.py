"""X as a proof sees it: some rows at a time, in float64, without the core and without a copy of the whole.

A dense block is a view where X holds float64, else a copy of a few rows; a block of CSR shares the numbers of X.
Products come in two kinds: the fastest that NumPy and SciPy have, and such as if in twice the working precision.

References
----------
Ogita, Rump, Oishi: Accurate sum and dot product, 2005. Rump, Ogita, Oishi: Accurate floating-point summation, 2008.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.certificates.rounding import two_product, two_sum
from maxmargin.positions import check_positions

Vector = NDArray[np.float64]

NUMBERS = 1 << 18  # of X in a block: 2 MB, which stay in the cache for all that is asked of them
SLICES = 3  # of a sum: each takes some forty bits exactly, what remains is beyond twice the working precision


def readable(X: Any) -> Any:
    """X as blocks can be cut from it: CSR as it is, other sparse formats as CSR, anything else as an array."""
    if sp.issparse(X):
        check_positions(X)
        return X if X.format == "csr" else sp.csr_array(X)
    array = np.asarray(X)
    return array if array.dtype in (np.float32, np.float64) else np.asarray(array, dtype=np.float64)


def blocks(X: Any, chosen: NDArray[np.intp] | None = None) -> Iterator[Block]:
    """All rows, or those of the list ``chosen``, some at a time; ``part`` is then their place in that list."""
    n, d = X.shape
    per_row = X.indptr[-1] / max(1, n) if sp.issparse(X) else d
    step = max(1, int(NUMBERS / max(1.0, per_row)))
    n = n if chosen is None else len(chosen)
    for begin in range(0, n, step):
        part = slice(begin, min(n, begin + step))
        yield Block(part, rows_of(X, part if chosen is None else chosen[part]))


def rows_of(X: Any, which: slice | NDArray[np.intp]) -> Any:
    """Some rows in float64, as a view if that can be."""
    if not sp.issparse(X):
        return np.asarray(X[which], dtype=np.float64)
    if isinstance(which, slice):
        return _rows_of_csr(X, which)
    return _rows_of_csr(X[which], slice(0, len(which)))


def squares_of(X: Any) -> Vector:
    """‖x_i‖² of rows in float64, as float64 computes it."""
    if not sp.issparse(X):
        return np.asarray(np.einsum("ij,ij->i", X, X))
    squares = np.add.reduceat(np.append(X.data**2, 0.0), X.indptr[:-1])
    return np.asarray(np.where(np.diff(X.indptr) > 0, squares, 0.0))


def _rows_of_csr(X: Any, part: slice) -> Any:
    """Some rows as CSR without repeated entries; their numbers are shared with X unless some of them repeat."""
    begin, end = int(X.indptr[part.start]), int(X.indptr[part.stop])
    data = X.data[begin:end]
    rows = sp.csr_array((part.stop - part.start, X.shape[1]), dtype=np.float64)
    # One by one: SciPy's constructor would copy what is a slice of a larger array.
    rows.data = data if data.dtype == np.float64 else data.astype(np.float64)
    rows.indices, rows.indptr = X.indices[begin:end], X.indptr[part.start : part.stop + 1] - begin
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


class Block:
    """Some rows: ``part`` says which, ``X`` holds them."""

    def __init__(self, part: slice, X: Any) -> None:
        self.part, self.X, self.sparse = part, X, sp.issparse(X)

    def of(self, chosen: NDArray[np.intp]) -> Block:
        """Only rows of the (rising) list ``chosen``; ``part`` is then their place in that list."""
        first, last = np.searchsorted(chosen, [self.part.start, self.part.stop])
        return Block(slice(int(first), int(last)), self.X[chosen[first:last] - self.part.start])

    def __len__(self) -> int:
        return int(self.part.stop - self.part.start)

    @property
    def longest_row(self) -> int:
        """The largest number of products in a row's score."""
        return int(np.diff(self.X.indptr).max(initial=0)) if self.sparse else int(self.X.shape[1])

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.X.data if self.sparse else self.X).all())

    def norms(self) -> Vector:
        """‖x_i‖, as float64 computes it."""
        return np.asarray(np.sqrt(squares_of(self.X)))

    def scores(self, w: Vector) -> Vector:
        """⟨w, x_i⟩; one column for each column of w.

        Not by BLAS for one w: to wake its threads for every block takes longer than the products.
        """
        return np.asarray(self.X @ w if self.sparse or w.ndim > 1 else np.einsum("ij,j->i", self.X, w))

    def combine(self, c: Vector) -> Vector:
        """Σ c_i x_i; one column for each column of c."""
        return np.asarray(self.X.T @ c if self.sparse or c.ndim > 1 else np.einsum("ij,i->j", self.X, c))

    def exact_scores(self, w: Vector) -> tuple[Vector, Vector]:
        """⟨w, x_i⟩ as if in twice the working precision: the sum of two numbers."""
        if not self.sparse:
            p, error = two_product(self.X, w)
            return _added(p, error, 1)
        place = np.repeat(np.arange(len(self)), np.diff(self.X.indptr))
        p, error = two_product(self.X.data, w[self.X.indices])
        return _gathered(p, error, place, len(self))

    def exact_combine(self, c: Vector) -> tuple[Vector, Vector]:
        """Σ c_i x_i likewise."""
        if not self.sparse:
            p, error = two_product(self.X, c[:, None])
            return _added(p, error, 0)
        p, error = two_product(self.X.data, np.repeat(c, np.diff(self.X.indptr)))
        return _gathered(p, error, self.X.indices, int(self.X.shape[1]))


class ExactSum:
    """A sum of vectors as if in twice the working precision."""

    def __init__(self, size: int) -> None:
        self.high, self.low = np.zeros(size), np.zeros(size)

    def add(self, more: tuple[Vector, Vector]) -> None:
        self.high, lost = two_sum(self.high, more[0])
        self.low = self.low + (more[1] + lost)

    @property
    def value(self) -> Vector:
        """Rounded once."""
        return self.high + self.low


def _added(p: Vector, error: Vector, axis: int) -> tuple[Vector, Vector]:
    """Sums along an axis of a dense array."""
    return _sliced(
        p, error, lambda a: a.sum(axis=axis), lambda a: a.max(axis=axis, keepdims=True, initial=0.0), p.shape[axis]
    )


def _gathered(p: Vector, error: Vector, place: NDArray[Any], size: int) -> tuple[Vector, Vector]:
    """Sums of the entries that belong to each place."""

    def largest(a: Vector) -> Vector:
        out = np.zeros(size)
        np.maximum.at(out, place, a)
        return np.asarray(out[place])

    most = int(np.bincount(place, minlength=1).max(initial=0))

    def add(a: Vector) -> Vector:
        return np.asarray(np.bincount(place, weights=a, minlength=size), dtype=np.float64)

    return _sliced(p, error, add, largest, most)


def _sliced(
    p: Vector, error: Vector, add: Callable[[Vector], Vector], largest: Callable[[Vector], Vector], n_terms: int
) -> tuple[Vector, Vector]:
    """Each slice holds the leading bits of all terms, so few that their sum is exact in any order."""
    high = low = np.zeros_like(add(p))
    room = 2.0 ** (math.ceil(math.log2(n_terms + 2)) + 1)
    for _ in range(SLICES):
        _, exponent = np.frexp(largest(np.abs(p)))
        anchor = np.ldexp(room, exponent)
        slice_ = (anchor + p) - anchor
        p = p - slice_
        high, lost = two_sum(high, add(slice_))
        low = low + lost
    return high, low + (add(p) + add(error))

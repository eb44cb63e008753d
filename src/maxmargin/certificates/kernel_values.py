"""Values k(x, z) of a kernel once more, in plain arithmetic, and their sums over the support rows.

A kernel is a structure of :mod:`~maxmargin.certificates.kernel_structure`; what rounding may do to its values says
:mod:`~maxmargin.certificates.kernel_rounding`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.certificates.blocks import Block, rows_of, squares_of
from maxmargin.certificates.kernel_rounding import (
    CALLED,
    STRIP,
    RowSizes,
    blur,
    score_off,
    strips,
    sums_of_strip,
    value_off,
)
from maxmargin.certificates.kernel_structure import GIVEN, Structure, names_in, nowhere_negative, parts_of
from maxmargin.certificates.rounding import UNIT
from maxmargin.errors import InputError
from maxmargin.positions import distinct, filled

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Chosen = NDArray[np.intp]

TILE = 1 << 18  # values computed at a time: they stay in the cache, and threads are not woken for less
ALONE = 1 << 18  # multiplications for which BLAS wakes no threads
SLIM = 64  # columns: waking threads may take longer than the product
FEW_COLUMNS = 8  # differences cost no more than products
BLURRED = 1e-9  # rows whose Gaussian values products would blur by more are compared by differences
WIDE = 1 << 21  # numbers of sparse rows that are spread out at a time


# --- values -----------------------------------------------------------------------------------------------------------


class Pairs(Protocol):
    """Pairs of rows; every answer is a new array."""

    def products(self) -> Matrix:
        """⟨x, z⟩."""

    def squares(self) -> Matrix:
        """‖x − z‖²."""

    def lengths(self) -> Matrix:
        """‖x − z‖₁."""

    def precomputed(self) -> Matrix: ...

    def called(self, f: Callable[..., Any], params: dict[str, Any]) -> Matrix: ...


def evaluate(structure: Structure, pairs: Pairs) -> Matrix:
    """k of all pairs."""
    match structure:
        case ("linear",):
            return pairs.products()
        case ("poly", factor, coef0, degree):
            return _power(_affine(pairs.products(), factor, coef0), float(degree))
        case ("sigmoid", factor, coef0):
            return np.asarray(np.tanh(_affine(pairs.products(), factor, coef0)))
        case ("rbf", factor):
            return _falling(pairs.squares(), factor)
        case ("laplacian", factor):
            return _falling(pairs.lengths(), factor)
        case ("precomputed",):
            return pairs.precomputed()
        case ("callable", f, params):
            return pairs.called(f, params)
        case ("scaled", factor, part):
            return np.multiply(evaluate(part, pairs), float(factor))
    combine = np.add if structure[0] == "sum" else np.multiply
    return reduce(combine, (evaluate(part, pairs) for part in structure[1:]))


def _affine(values: Matrix, factor: float, coef0: float) -> Matrix:
    values *= float(factor)
    values += float(coef0)
    return values


def _falling(values: Matrix, factor: float) -> Matrix:
    values *= -float(factor)
    return np.asarray(np.exp(values, out=values))


def _power(base: Matrix, degree: float) -> Matrix:
    """A whole power by repeated squaring, any other by NumPy's function."""
    if not degree.is_integer() or degree > 64.0:
        return np.asarray(base**degree)
    power, exponent = np.ones_like(base), int(degree)
    while exponent:
        if exponent & 1:
            power *= base
        exponent >>= 1
        if exponent:
            base = base * base
    return power


def _of_shape(values: Any, shape: tuple[int, ...], f: Any) -> Matrix:
    array = np.array(filled(values), dtype=np.float64)
    if array.shape != shape:
        raise InputError(f"the kernel {f!r} returned an array of shape {array.shape}, expected {shape}")
    return array


@dataclass(frozen=True)
class Side:
    """Rows on one side: ``at`` says which rows of X, ``seen`` are the rows from an origin, ``apart`` their ‖x − o‖²."""

    X: Any
    at: Chosen
    seen: Any
    apart: Vector
    near: NDArray[np.bool_]  # rows that are compared by differences

    def of(self, part: slice) -> Side:
        return Side(self.X[part], self.at[part], self.seen[part], self.apart[part], self.near[part])

    def __len__(self) -> int:
        return len(self.at)


@dataclass(frozen=True)
class Tile:
    """All pairs of some rows and some support rows."""

    left: Side
    right: Side
    whole: Any  # all rows

    def products(self) -> Matrix:
        return _products(self.left.X, self.right.X)

    def squares(self) -> Matrix:
        left, right = self.left, self.right
        if left.near.all():
            return _differences(left.X, right.X, "sqeuclidean")
        squares = _products(left.seen, right.seen)
        squares *= -2.0
        squares += left.apart[:, None]
        squares += right.apart
        np.maximum(squares, 0.0, out=squares)  # NaN stays NaN
        if left.near.any():
            squares[left.near] = _differences(left.X[left.near], right.X, "sqeuclidean")
        return squares

    def lengths(self) -> Matrix:
        return _differences(self.left.X, self.right.X, "cityblock")

    def precomputed(self) -> Matrix:
        rows, columns = self.left.at, self.right.at
        if sp.issparse(self.whole):
            one, other = self.left.X[:, columns].toarray(), self.whole[columns][:, rows].toarray()
        else:
            one, other = self.left.X[:, columns], self.whole[np.ix_(columns, rows)].astype(np.float64)
        return np.asarray(0.5 * (one + other.T))

    def called(self, f: Callable[..., Any], params: dict[str, Any]) -> Matrix:
        return _of_shape(f(self.left.X, self.right.X, **params), (len(self.left), len(self.right)), f)


@dataclass(frozen=True)
class Own:
    """Every row with itself, as a column of pairs."""

    X: Any
    at: Chosen

    def products(self) -> Matrix:
        return squares_of(self.X)[:, None].copy()

    def squares(self) -> Matrix:
        return np.zeros((len(self.at), 1))

    lengths = squares

    def precomputed(self) -> Matrix:
        values = self.X[np.arange(len(self.at)), self.at]
        return np.array(filled(values), dtype=np.float64).reshape(-1, 1)

    def called(self, f: Callable[..., Any], params: dict[str, Any]) -> Matrix:
        rows = [self.X[[k]] for k in range(len(self.at))]
        return np.array([_of_shape(f(x, x, **params), (1, 1), f)[0] for x in rows]).reshape(-1, 1)


def _products(left: Any, right: Any) -> Matrix:
    if sp.issparse(left):
        return np.asarray((left @ right.T).toarray())
    if left.shape[1] > SLIM:
        return np.asarray(left @ right.T)
    out, side = np.empty((len(left), len(right))), math.isqrt(ALONE // max(1, left.shape[1]))
    for i in range(0, len(left), side):
        for j in range(0, len(right), side):
            np.matmul(left[i : i + side], right[j : j + side].T, out=out[i : i + side, j : j + side])
    return out


def _differences(left: Any, right: Any, metric: str) -> Matrix:
    """Distances by the differences of rows; sparse rows are spread out, so many columns at a time."""
    from scipy.spatial.distance import cdist

    if not sp.issparse(left):
        return np.asarray(cdist(left, right, metric))
    columns = distinct(np.concatenate([left.indices, right.indices]))
    out, width = np.zeros((left.shape[0], right.shape[0])), max(1, WIDE // (left.shape[0] + right.shape[0]))
    for begin in range(0, len(columns), width):
        some = columns[begin : begin + width]
        out += cdist(left[:, some].toarray(), right[:, some].toarray(), metric)
    return out


# --- sums over the support rows ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scores:
    """f_i = Σ a_j k(x_i, z_j) of some rows with bounds ``off`` on their errors, Σ |a_j k(x_i, z_j)|, and sizes."""

    f: Vector
    off: Vector
    sums: Vector
    sizes: RowSizes


class Support:
    """The support rows z_j with their coefficients a_j, taken once: what scores of rows are computed from.

    Parameters
    ----------
    structure : the kernel.
    X : all rows.
    chosen : which of them the support rows are.
    a : their coefficients.
    near : whether all Gaussian values are computed from differences.
    """

    def __init__(self, structure: Structure, X: Any, chosen: Chosen, a: Vector, *, near: bool) -> None:
        self.structure, self.X, self.a = structure, X, a
        self.total = float(np.abs(a).sum())
        self.sparse, self.names = sp.issparse(X), names_in(structure)
        self.positive = nowhere_negative(structure)
        self.origin: Any
        self.near = near or (not self.sparse and X.shape[1] <= FEW_COLUMNS)
        self.steepest = max((float(part[1]) for part in parts_of(structure) if part[0] == "rbf"), default=0.0)
        rows: Any = rows_of(X, chosen) if "precomputed" not in self.names else np.zeros((len(chosen), 0))
        self.largest = float(squares_of(rows).max(initial=0.0))
        self.columns = int(np.diff(rows.indptr).max(initial=0)) if sp.issparse(rows) else rows.shape[1]
        self.origin = rows.mean(axis=0) if self.steepest and not self.sparse and len(chosen) else 0.0
        self.given = 0.0
        self.rows = self._side(rows, chosen)

    def _side(self, X: Any, at: Chosen) -> Side:
        if not self.steepest or self.near:
            return Side(X, at, X, np.zeros(len(at)), np.full(len(at), self.near))
        seen = X if self.sparse else X - self.origin
        apart = squares_of(seen)
        return Side(X, at, seen, apart, ~(blur(self.columns, self.steepest, apart) <= BLURRED))

    def scores(self, block: Block, at: Chosen) -> Scores:
        """Of a block's rows; ``at`` says which rows of X they are."""
        n = len(block)
        f, sums, apart = np.zeros(n), np.zeros(n), np.zeros(n)
        size = np.abs(self.a)
        for part in self._heights(n if len(self.a) else 0):
            left = self._side(block.X[part], at[part])
            apart[part] = np.where(left.near, 0.0, left.apart)
            for strip, values in self._strips(left):
                f[part] += sums_of_strip(values, self.a[strip])
                sums[part] += sums_of_strip(values if self.positive else np.abs(values), size[strip])
        columns = max(self.columns, block.longest_row)
        sizes = RowSizes(columns, squares_of(block.X), self.largest, apart, given=self.given)
        off = score_off(self.structure, sizes, sums, self.total, strips(len(self.a)))
        return Scores(f, off, sums, sizes)

    def _heights(self, n: int) -> Iterator[slice]:
        """Rows that are compared together with a strip."""
        height = TILE // max(1, min(STRIP, len(self.a)))
        for begin in range(0, n, height):
            yield slice(begin, begin + height)

    def _strips(self, left: Side) -> Iterator[tuple[slice, Matrix]]:
        for begin in range(0, len(self.a), STRIP):
            strip = slice(begin, begin + STRIP)
            tile = Tile(left, self.rows.of(strip), self.X)
            values = evaluate(self.structure, tile)
            if not self.names.isdisjoint(GIVEN):
                self.given = max(self.given, self._largest_given(tile, values))
            yield strip, values

    def _largest_given(self, pairs: Pairs, values: Matrix) -> float:
        """The largest value that comes from outside."""
        if self.structure[0] in GIVEN:
            return float(np.abs(values).max(initial=0.0))
        given = (part for part in parts_of(self.structure) if part[0] in GIVEN)
        return max((float(np.abs(evaluate(part, pairs)).max(initial=0.0)) for part in given), default=0.0)

    def own(self, block: Block, at: Chosen) -> tuple[Vector, Vector]:
        """k(x, x) of a block's rows, and bounds on the errors."""
        pairs = Own(block.X, at)
        values, squares = evaluate(self.structure, pairs), squares_of(block.X)
        given = self._largest_given(pairs, values)
        sizes = RowSizes(max(self.columns, block.longest_row), squares, squares, given=given)
        return values[:, 0], value_off(self.structure, sizes, values[:, 0])

    def farthest(self, X: Any) -> float:
        """The largest ‖x − o‖ of some rows, where Gaussian values are computed from that."""
        if not self.steepest:
            return 0.0
        return math.sqrt(float(squares_of(X if self.sparse else X - self.origin).max()))

    def not_semidefinite(self) -> str:
        """What speaks against a kernel of which nobody knows that it is positive semidefinite, in words; or nothing."""
        n = len(self.a)
        K = np.empty((n, n))
        for part in self._heights(n):
            at = self.rows.at[part]
            for strip, values in self._strips(self._side(rows_of(self.X, at), at)):
                K[part, strip] = values
        largest = float(np.abs(K).max(initial=0.0))
        if not math.isfinite(largest):
            return "values that are not finite"
        # What rounding may have done to values that are handed over, or to those of a callable.
        unit = 2.0**-24 if self.X.dtype == np.float32 else UNIT
        unit *= CALLED * (self.columns + 16) if "callable" in self.names else 1.0
        if float(np.abs(K - K.T).max(initial=0.0)) > 4.0 * unit * largest:
            return "not symmetric"
        K, room = 0.5 * (K + K.T), 4.0 * (unit + n * UNIT) * n * largest
        try:
            np.linalg.cholesky(K + room * np.eye(n))
        except np.linalg.LinAlgError:
            lowest = float(np.linalg.eigvalsh(K)[0])
            if lowest < -room:
                return f"not positive semidefinite: an eigenvalue of the support rows is {lowest:.3g}"
        return ""

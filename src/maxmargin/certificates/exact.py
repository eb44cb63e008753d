"""Exact arithmetic on rows of floating-point numbers, which are rationals m·2^e.

Signs of scores are decided by rounded arithmetic where a bound on its error allows it, by integers where not; means are
compared by integers only. Nothing here can answer wrongly because of rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.errors import InputError
from maxmargin.positions import as_array, check_positions, numbers_from_objects

Vector = NDArray[np.float64]
UNIT = 2.0**-53  # largest relative error of one rounding
SMALLEST = (
    2.0**-1022
)  # what a product or an operand may lose by underflow, even where subnormal numbers are flushed to 0
Integers = NDArray[np.object_]  # of Python's integers, which do not overflow
BLOCK = 1_000_000  # numbers of a dense X that are looked at at once
MOST_EXACT = 2_000_000  # products of integers that `intercept_between` spends on rows too close to call


@dataclass(frozen=True)
class Weights:
    """Rows with rational weights numerator/denominator; nothing is promised until `means_coincide` has checked them."""

    rows: tuple[int, ...]
    numerators: tuple[int, ...]
    denominator: int

    @staticmethod
    def of(rows: NDArray[np.intp], numerators: Sequence[int], denominator: int) -> Weights:
        """Without the rows of weight zero."""
        kept = [(int(i), a) for i, a in zip(rows, numerators, strict=True) if a]
        return Weights(tuple(i for i, _ in kept), tuple(a for _, a in kept), denominator)


def matrix(X: Any) -> Any:
    """X in float64 or float32: CSR if it is sparse, a two-dimensional array otherwise; InputError if it is neither."""
    if sp.issparse(X):
        check_positions(X)
        X = sp.csr_array(X)
    else:
        X = as_array(X, "X")
    if X.ndim != 2 or X.dtype.kind not in "fiubO":
        raise InputError(f"X is {X.ndim}-dimensional of dtype {X.dtype}, expected two dimensions and numbers")
    if X.dtype not in (np.float32, np.float64):
        X = numbers_from_objects(X) if X.dtype.kind == "O" else X.astype(np.float64)
    if not np.isfinite(X.data if sp.issparse(X) else X).all():
        raise InputError("X has NaN or infinity; remove or fill such rows first")
    return X


def misplaced(X: Any, sign: Vector, w: Vector, b: float) -> int | None:
    """A row with sign·(⟨w, x⟩ + b) ≤ 0, in exact arithmetic; None if there is none."""
    scores, error = _scores(X, w, b)
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(sign * scores < -error)
        open_rows = np.flatnonzero(~(sign * scores > error))
    if len(wrong):
        return int(wrong[0])
    for i, score in _exact_scores(X, w, open_rows):
        moved = score + Fraction(b)  # not to be multiplied by a NumPy number, which would round it
        if moved == 0 or (moved > 0) != (sign[i] > 0.0):
            return i
    return None


def intercept_between(X: Any, sign: Vector, w: Vector) -> float | None:
    """A number b with sign·(⟨w, x⟩ + b) > 0 for every row; None if none was found."""
    scores, error = _scores(X, w, 0.0)
    if not (np.isfinite(scores).all() and np.isfinite(error).all()):
        return None
    plus, minus = sign > 0.0, sign < 0.0
    lowest, highest = float((scores - error)[plus].min()), float((scores + error)[minus].max())
    if (scores + error)[plus].min() < (scores - error)[minus].max():
        return None
    middle = Fraction(lowest) / 2 + Fraction(highest) / 2
    if lowest <= highest:
        close = np.flatnonzero((plus & (scores - error <= highest)) | (minus & (scores + error >= lowest)))
        if len(close) * max(1, int(np.count_nonzero(w))) > MOST_EXACT:
            return None
        exact = list(_exact_scores(X, w, close))
        low = min(score for i, score in exact if plus[i])
        high = max(score for i, score in exact if minus[i])
        if low <= high:
            return None
        middle = (low + high) / 2
    b = -_nearest(middle)
    return b if np.isfinite(b) and misplaced(X, sign, w, b) is None else None


def are_convex(weights: Weights, sign: Vector) -> bool:
    """Whether the weights are integers over a denominator, on rows that exist, and convex in each class."""
    rows, numerators, denominator = weights.rows, weights.numerators, weights.denominator
    if len(rows) != len(numerators) or not all(type(a) is int for a in (*rows, *numerators, denominator)):
        return False  # NumPy's integers would overflow
    if not all(0 <= i < len(sign) for i in rows) or not all(a >= 0 for a in numerators) or denominator <= 0:
        return False
    sums = [sum(a for i, a in zip(rows, numerators, strict=True) if sign[i] == s) for s in (-1.0, 1.0)]
    return sums == [denominator, denominator]


def means_coincide(X: Any, sign: Vector, weights: Weights) -> bool:
    """Whether the classes' means under these weights, which are convex, are equal."""
    apart: dict[int, list[int]] = {}  # of each column: an integer times a power of two
    for i, a in zip(weights.rows, weights.numerators, strict=True):
        signed = a if sign[i] > 0.0 else -a
        columns, values = _row(X, i)
        for j, value in zip(columns, values, strict=True):
            top, bottom = value.as_integer_ratio()
            power, total = bottom.bit_length() - 1, apart.setdefault(j, [0, 0])
            if power > total[1]:
                total[0] <<= power - total[1]
                total[1] = power
            total[0] += signed * top << total[1] - power
    return not any(total for total, _ in apart.values())


def _scores(X: Any, w: Vector, b: float) -> tuple[Vector, Vector]:
    """⟨w, x⟩ + b, rounded, and a bound on the error, whatever the order of the sum; infinite or NaN on overflow.

    A sum of k products has an error of at most γ_k Σ |w||x|, γ_k = k UNIT/(1 − k UNIT), and what underflow takes
    (Higham: Accuracy and stability of numerical algorithms, 2002, ch. 3). Twice that covers the rounding of the bound.
    """
    n, d = X.shape
    scores, error = np.empty(n), np.empty(n)
    size, largest = np.abs(w), float(np.abs(w).max(initial=0.0))
    sparse = sp.issparse(X)
    terms = 4 + (int(np.diff(X.indptr).max(initial=0)) if sparse else d)
    step = max(1, n if sparse else BLOCK // max(1, d))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for start in range(0, n, step):
            part = X[start : start + step]
            if not sparse:
                part = part.astype(np.float64, copy=False)
            positive = abs(part)
            reach = float((positive.data if sparse else positive).max(initial=0.0))
            lost = 4.0 * terms * SMALLEST * (1.0 + largest + reach)
            scores[start : start + step] = part @ w + b
            error[start : start + step] = 2.0 * terms * UNIT * (positive @ size + abs(b)) + lost
    error[~np.isfinite(scores)] = np.inf
    return scores, error


def _exact_scores(X: Any, w: Vector, rows: NDArray[np.intp]) -> Iterator[tuple[int, Fraction]]:
    used, down = common_power(w.tolist())
    for i in rows.tolist():
        columns, values = _row(X, i)
        integers, more = common_power(values)
        products = map(mul, integers, used if isinstance(columns, range) else (used[j] for j in columns))
        yield i, Fraction(sum(products), 1 << (down + more))


def common_power(values: list[float]) -> tuple[list[int], int]:
    """Integers and a power p with value = integer·2^−p."""
    ratios = [value.as_integer_ratio() for value in values]
    power = max((bottom.bit_length() for _, bottom in ratios), default=1) - 1
    return [top << power - bottom.bit_length() + 1 for top, bottom in ratios], power


def _row(X: Any, i: int) -> tuple[Sequence[int], list[float]]:
    if not sp.issparse(X):
        return range(X.shape[1]), X[i].tolist()
    part = slice(X.indptr[i], X.indptr[i + 1])
    return X.indices[part].tolist(), X.data[part].tolist()


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return float(np.inf)


def integer_rows(X: Any, rows: NDArray[np.intp]) -> tuple[Integers, NDArray[np.intp]]:
    """Integers D, and an exponent per column, with D·2^exponent the differences of the rows to the first of them."""
    part = X[rows]
    part = part.toarray() if sp.issparse(part) else part
    part = part.astype(np.float64, copy=False)
    fraction, exponent = np.frexp(part)
    mantissa = np.ldexp(fraction, 53).astype(np.int64)
    lowest = exponent.astype(np.int64) - 53
    trailing = np.frexp((mantissa & -mantissa).astype(np.float64))[1] - 1  # zeros at the end of the mantissa
    unit = np.where(mantissa != 0, lowest + trailing, np.iinfo(np.int64).max).min(axis=0)
    unit = np.where(mantissa.any(axis=0), unit, 0)
    up = np.where(mantissa != 0, lowest - unit, 0)
    flat = [m << k if k >= 0 else m >> -k for m, k in zip(mantissa.ravel().tolist(), up.ravel().tolist(), strict=True)]
    out = np.empty(len(flat), dtype=object)
    out[:] = flat
    out = out.reshape(part.shape)
    return out - out[0], unit.astype(np.intp)

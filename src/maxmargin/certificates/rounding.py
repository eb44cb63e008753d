"""Sums and products in float64 whose distance from the exact value is known.

Every bound here is a theorem about IEEE arithmetic, for any order of additions. A sum of k products differs from the
exact one by at most gamma(k + 1) times the sum of their sizes; sums of more terms are added block by block. NumPy's
exp, log, log1p, power and tanh are assumed right to :data:`ELEMENTARY` units in the last place.

References
----------
Higham: Accuracy and stability of numerical algorithms, 2002. Ogita, Rump, Oishi: Accurate sum and dot product, 2005.
Rump, Ogita, Oishi: Accurate floating-point summation, 2008.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

UNIT = 2.0**-53  # the largest relative error of one operation
ELEMENTARY = 4.0  # units in the last place: each is two UNITs
BLOCK = 128  # terms that are added in any order; few, so that little can be lost
FEW = 2048  # terms that are added exactly
TOGETHER = 1 << 14  # terms that are summed up at a time, so that they stay in the cache
TINY = 1e-150  # added to norms: the squares of smaller numbers vanish
VANISHED = 1e-300  # more than all products of a row that are too small for a float
NEARLY = 1.0 + 1e-6  # norms of at most a thousand million numbers are rounded by less
SPLIT = 2.0**27 + 1.0  # halves a number of 53 bits


def gamma(k: float) -> float:
    """k UNIT / (1 − k UNIT), the bound of k roundings in a row.

    Examples
    --------
    >>> gamma(2.0**20) < 1.2e-10
    True
    """
    return k * UNIT / (1.0 - k * UNIT)


@dataclass(frozen=True)
class Approximate:
    """``value + tail`` with a bound on the distance from the exact value, one for each entry or for the 2-norm."""

    value: Vector
    off: Any
    tail: Vector | None = None

    def of(self, part: slice) -> Approximate:
        """Of some rows."""
        off = self.off[part] if np.ndim(self.off) else self.off
        return Approximate(self.value[part], off, None if self.tail is None else self.tail[part])


@dataclass(frozen=True)
class Interval:
    """Two numbers with the exact one between them.

    Examples
    --------
    >>> difference = Interval(1.0, 2.0) - Interval(0.0, 0.5)
    >>> 0.5 - 1e-15 < difference.low < 0.5, 2.0 < difference.high < 2.0 + 1e-15
    (True, True)
    """

    low: float
    high: float

    def __add__(self, other: Interval) -> Interval:
        low, high = self.low + other.low, self.high + other.high
        return Interval(low - 2.0 * UNIT * abs(low), high + 2.0 * UNIT * abs(high))

    def __sub__(self, other: Interval) -> Interval:
        return self + Interval(-other.high, -other.low)

    def times(self, factor: float) -> Interval:
        """Times a power of two."""
        return Interval(factor * self.low, factor * self.high)


def total(terms: Vector, off: float = 0.0, *, factor: float = 1.0) -> Interval:
    """The sum of the terms, which are together wrong by at most ``off``; ``factor`` widens what rounding may add.

    Examples
    --------
    >>> total(np.array([1e16, 1.0, -1e16]))
    Interval(low=1.0, high=1.0)
    """
    if len(terms) <= FEW:
        few = terms.tolist()
        value = _exact_sum(few)
        lost = UNIT * abs(value) if _exact_sum([*few, -value]) != 0.0 else 0.0
    else:
        whole = len(terms) - len(terms) % BLOCK
        sums = terms[:whole].reshape(-1, BLOCK).sum(axis=1).tolist()
        value = _exact_sum([*sums, *terms[whole:].tolist()])
        lost = gamma(2 * BLOCK) * float(np.abs(terms).sum())  # twice: the sum of sizes is rounded, too
    if not math.isfinite(value):
        return Interval(-math.inf, math.inf)
    lost = factor * (off + lost)
    if lost == 0.0:
        return Interval(value, value)
    lost += 4.0 * UNIT * (abs(value) + lost)  # of the last lines themselves
    return Interval(value - lost, value + lost)


class Total:
    """:func:`total` of terms that come in pieces: it does not matter which.

    Examples
    --------
    >>> sums = Total()
    >>> for term in (1e16, 1.0, -1e16):
    ...     sums.add(np.array([term]))
    >>> sums.value
    Interval(low=1.0, high=1.0)
    """

    def __init__(self, factor: float = 1.0) -> None:
        self.factor, self._off = factor, 0.0
        self._done: list[Interval] = []
        self._waiting: list[Vector] = []
        self._n_waiting = 0

    def add(self, terms: Vector, off: float = 0.0) -> None:
        """More terms, which are together wrong by at most ``off``."""
        self._waiting.append(terms)
        self._off += off * NEARLY
        self._n_waiting += len(terms)
        if self._n_waiting >= TOGETHER:
            self._sum_up()

    def _sum_up(self) -> None:
        if self._n_waiting:
            self._done.append(total(np.concatenate(self._waiting), self._off, factor=self.factor))
        self._waiting, self._n_waiting, self._off = [], 0, 0.0

    @property
    def value(self) -> Interval:
        self._sum_up()
        if len(self._done) == 1:
            return self._done[0]
        ends = np.array([(part.low, part.high) for part in self._done]).reshape(-1, 2)
        return Interval(total(ends[:, 0]).low, total(ends[:, 1]).high)


def _exact_sum(terms: list[float]) -> float:
    try:
        return math.fsum(terms)
    except (OverflowError, ValueError):
        return math.nan


def square_norm(v: Vector, off: float = 0.0, *, factor: float = 1.0) -> Interval:
    """‖v‖², where v is wrong by at most ``off`` in the 2-norm; what is too small to be squared counts as TINY."""
    square = total(v * v, 0.0, factor=factor)
    extra = factor * 4.0 * UNIT
    low = max(0.0, math.sqrt(max(0.0, square.low * (1.0 - extra))) - factor * off)
    high = math.sqrt(max(0.0, square.high) * (1.0 + extra)) * (1.0 + 2.0 * UNIT) + factor * off
    if high == 0.0 and not v.any():
        return Interval(0.0, 0.0)
    high += TINY if high < 1e-130 else 0.0
    return Interval(low * low * (1.0 - 4.0 * UNIT), high * high * (1.0 + 4.0 * UNIT))


def norm(v: Vector) -> float:
    """An upper bound of ‖v‖."""
    if not v.any():
        return 0.0
    return math.sqrt(float(v @ v)) * (1.0 + gamma(len(v) + 4)) + TINY


def sums_to_zero(terms: Vector) -> bool:
    """Whether the exact sum is zero.

    Examples
    --------
    >>> sums_to_zero(np.array([0.1, 0.2, -0.3])), sums_to_zero(np.array([0.5, 0.25, -0.75]))
    (False, True)
    """
    parts = (terms[begin : begin + FEW].tolist() for begin in range(0, len(terms), FEW))
    try:
        return math.fsum(chain.from_iterable(parts)) == 0.0
    except (OverflowError, ValueError):
        return False


def lines_sum_to_zero(lines: Vector) -> bool:
    """Whether the exact sum of every line is zero."""
    sums, lost = np.zeros(len(lines)), np.zeros(len(lines), dtype=bool)
    for column in lines.T:
        sums, error = two_sum(sums, column)
        lost |= error != 0.0
    return bool((sums[~lost] == 0.0).all()) and all(sums_to_zero(line) for line in lines[lost])


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """fl(a + b), and what is missing from it, exactly."""
    s = a + b
    z = s - a
    return s, (a - (s - z)) + (b - z)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """fl(a b), and what is missing from it, exactly unless it is below 1e-290."""
    p = a * b
    a_high, b_high = _upper_half(a), _upper_half(b)
    a_low, b_low = a - a_high, b - b_high
    return p, a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _upper_half(a: Any) -> Any:
    c = SPLIT * a
    return c - (c - a)


# --- bounds of products with rows ----------------------------------------------------------------------------------


def scores_off(n_products: int, size_of_w: float, norms: Vector) -> Vector:
    """Bound on the error of ⟨w, x_i⟩ by any order of additions; ``size_of_w`` is at least ‖w‖."""
    factor = gamma(n_products + 3) * NEARLY * size_of_w
    return factor * norms + (factor * TINY + VANISHED if size_of_w else 0.0)


def combination_off(n_rows: int, alpha: Vector, norms: Vector) -> float:
    """Bound on the 2-norm of the error of Σ alpha_i sign_i x_i by any order of additions."""
    return gamma(n_rows + 3) * size_of_combination(alpha, norms)


def size_of_combination(alpha: Vector, norms: Vector) -> float:
    """An upper bound of Σ |alpha_i| ‖x_i‖."""
    size = np.abs(alpha)
    return (float(size @ norms) + TINY * float(size.sum())) * NEARLY


def size_by_squares(alpha: Vector, squares: Vector) -> float:
    """An upper bound of Σ |alpha_i| ‖x_i‖, by Cauchy and Schwarz."""
    size = np.abs(alpha)
    total_size = float(size.sum())
    return (math.sqrt(total_size * float(size @ squares)) + TINY * total_size) * NEARLY


def exact_scores_off(n_products: int, size_of_w: float, norms: Vector) -> Vector:
    """The same for scores of twice the working precision, whose tail is kept."""
    factor = doubled(n_products) * NEARLY * size_of_w
    return factor * norms + (factor * TINY + VANISHED if size_of_w else 0.0)


def exact_combination_off(alpha: Vector, induced: Vector, norms: Vector) -> float:
    """The same for a combination of twice the working precision that was rounded at its end."""
    return UNIT * norm(induced) + doubled(len(alpha)) * size_of_combination(alpha, norms)


def doubled(n_terms: int) -> float:
    """Error of a sum of products in twice the working precision, beside the sum of their sizes."""
    return gamma(2 * n_terms + 8) ** 2 + 2.0 * UNIT**2

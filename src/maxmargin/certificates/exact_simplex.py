"""The distance of two convex hulls in integers: min Σ c_j |Σ λ_i x_ij − Σ μ_i x_ij| over convex weights.

The simplex method with the inverse of its basis kept as integers over one denominator, the basis' determinant, so
that nothing is rounded. It serves where floating point cannot tell, on problems small enough for it.

References
----------
Edmonds: Systems of distinct representatives and linear algebra, 1967 (integer pivoting). Bland: New finite pivoting
rules for the simplex method, 1977.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.certificates.exact import Integers, Vector, Weights, integer_rows

MOST_NUMBERS = 250_000  # of the rows, in Python's integers
MOST_EQUATIONS = 120
MOST_WORK = 5e8  # in units of 10 ns or so


@dataclass(frozen=True)
class Closest:
    """Weights if the hulls meet; else a direction along which they lie apart, integers·2^−exponents.

    ``active`` are the rows that decided.
    """

    active: NDArray[np.intp]
    weights: Weights | None
    direction: list[int]
    exponents: NDArray[np.intp]


def closest(X: Any, sign: Vector, rows: NDArray[np.intp]) -> Closest | None:
    """Decide for these rows, which are of both classes; None if it takes too much work."""
    d = X.shape[1]
    if len(rows) * d > MOST_NUMBERS or d + 2 > MOST_EQUATIONS:
        return None
    plus, minus = rows[sign[rows] > 0.0], rows[sign[rows] < 0.0]
    rows = np.concatenate([plus, minus])
    D, exponents = integer_rows(X, rows)
    program = _Program(D, len(plus))
    if not program.run():
        return None
    active = rows[program.active]
    if program.value() > 0:
        return Closest(active, None, program.direction(), exponents)
    numerators = program.numerators()
    weights = Weights.of(rows[list(numerators)], list(numerators.values()), program.den)
    return Closest(active, weights, [], exponents)


class _Program:
    """Equations: the two sums of weights, then Σ s_i λ_i D_ij + u_j − v_j = 0 for every column j.

    Variables are numbered λ_0, λ_1, …, u_0, v_0, u_1, v_1, …. ``inverse``/``den`` is the inverse of the basis, ``den``
    the absolute value of its determinant. The first row of D is zero, and row ``n_plus`` is the first of the other
    class: these two rows and one slack per column are the first basis.
    """

    def __init__(self, D: Integers, n_plus: int) -> None:
        n, d = D.shape
        self.n, self.d, self.work_left = n, d, MOST_WORK
        positive = np.arange(n) < n_plus
        sums = np.stack([positive, ~positive], axis=1).astype(np.int64).astype(object)
        self.columns = np.hstack([sums, D * np.where(positive, 1, -1).astype(object)[:, None]])
        size = [int(a).bit_length() for a in np.abs(D).max(axis=0, initial=0)]
        self.cost = [1 << max(size, default=0) - bits for bits in size]  # so that columns of any unit count alike
        self.basis = [0, n_plus, *(n + 2 * j + int(D[n_plus, j] < 0) for j in range(d))]
        self.den = 1
        self.inverse = np.zeros((d + 2, d + 2), dtype=object)
        self.inverse[0, 0] = self.inverse[1, 1] = 1
        for j in range(d):
            s = -1 if D[n_plus, j] < 0 else 1
            self.inverse[2 + j, 2 + j], self.inverse[2 + j, 1] = s, s * D[n_plus, j]
        self.active = np.array([0, n_plus], dtype=np.intp)  # rows that may enter the basis

    def run(self) -> bool:
        """Whether the optimum was reached (or 0, which is one) before the work ran out."""
        while self._optimise():
            if self.value() == 0:
                return True
            reduced = self.columns @ self._multipliers()
            self._spend(self.n * (self.d + 2))
            order = np.argsort(-np.array([_order(int(a)) for a in reduced]), kind="stable")[: self.d + 2]
            new = [i for i in order.tolist() if reduced[i] > 0]
            if not new:
                return True
            self.active = np.union1d(self.active, new)
        return False

    def value(self) -> int:
        """The objective, times a positive number."""
        y = self._multipliers()
        return int(y[0] + y[1])

    def numerators(self) -> dict[int, int]:
        """Weights of the basic rows, times ``den``."""
        levels = self.inverse[:, 0] + self.inverse[:, 1]
        return {k: int(a) for k, a in zip(self.basis, levels, strict=True) if k < self.n}

    def direction(self) -> list[int]:
        """w with ⟨w, x⟩ above a number for the first class and below it for the second, by optimality."""
        w = [-int(a) for a in self._multipliers()[2:]]
        common = math.gcd(*w) or 1
        return [a // common for a in w]

    def _multipliers(self) -> Integers:
        """Of the equations, times ``den``."""
        y = np.zeros(self.d + 2, dtype=object)
        for k, row in zip(self.basis, self.inverse, strict=True):
            if k >= self.n:
                y = y + row * self.cost[(k - self.n) // 2]
        return y

    def _spend(self, products: float) -> None:
        words = self.den.bit_length() / 64.0
        self.work_left -= products * (10.0 + words + 0.1 * words * words)

    def _optimise(self) -> bool:
        """Pivots until no active row and no slack would improve the objective; False if the work runs out."""
        stalled = False
        while self.work_left > 0.0:
            entering = self._entering(stalled)
            if entering is None:
                return True
            column = self._column(entering)
            levels = self.inverse[:, 0] + self.inverse[:, 1]
            r = self._leaving(column, levels)
            stalled = levels[r] == 0
            rest = (self.inverse * column[r] - np.outer(column, self.inverse[r])) // self.den
            rest[r] = self.inverse[r]
            self.inverse, self.den, self.basis[r] = rest, int(column[r]), entering
            self._spend((self.d + 2) * (4.0 * (self.d + 2) + len(self.active)))
            if self.value() == 0:
                return True
        return False

    def _entering(self, stalled: bool) -> int | None:
        """The variable that improves most; after a step of length 0 the first that improves, which rules out cycles."""
        y = self._multipliers()
        gains = dict(zip(self.active.tolist(), self.columns[self.active] @ y, strict=True))
        for j, (multiplier, cost) in enumerate(zip(y[2:], self.cost, strict=True)):
            gains[self.n + 2 * j] = multiplier - cost * self.den
            gains[self.n + 2 * j + 1] = -multiplier - cost * self.den
        better: dict[int, int] = {k: gain for k, gain in gains.items() if gain > 0}
        if not better:
            return None
        return min(better) if stalled else max(better, key=lambda k: better[k])

    def _column(self, k: int) -> Integers:
        """Of variable k in terms of the basis, times ``den``."""
        if k < self.n:
            return np.asarray(self.inverse @ self.columns[k])
        j, negative = divmod(k - self.n, 2)
        return -self.inverse[:, 2 + j] if negative else self.inverse[:, 2 + j].copy()

    def _leaving(self, column: Integers, levels: Integers) -> int:
        """The first basic variable that falls to 0, of several the one of least number."""
        best = -1
        for r in np.flatnonzero(column > 0).tolist():
            if best < 0:
                best = r
                continue
            here, there = levels[r] * column[best], levels[best] * column[r]
            if here < there or (here == there and self.basis[r] < self.basis[best]):
                best = r
        return best


def _order(value: int) -> float:
    """A number that orders integers of any size by sign and magnitude, roughly."""
    size = value.bit_length() + abs(value) / (1 << value.bit_length())
    return size if value > 0 else -size

"""Weights of given rows under which the means of both classes coincide, as rationals by p-adic lifting.

Equal means are linear equations in the weights, Σ λ_i x_i − Σ μ_j x_j = 0, Σ λ_i = Σ μ_j = 1. Modulo a prime they are
solved by elimination; the further digits to base p follow one by one, and enough digits determine the fractions.

References
----------
Dixon: Exact solution of linear equations using p-adic expansions, 1982.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.certificates.exact import Integers, Vector, Weights, integer_rows

PRIME = 2**30 - 35  # the largest prime below 2^30
LIMB_BITS = 22  # LIMB_BITS + 30 + log2(MOST_UNKNOWNS) bits fit into int64
MOST_UNKNOWNS = 512
MOST_ENTRIES = 1_000_000  # of a system of equations in Python's integers
MOST_STEPS = 4_000  # of the lifting: 120,000 bits


def solved(X: Any, sign: Vector, rows: NDArray[np.intp]) -> Weights | None:
    """The weights of these rows that solve the equations exactly, if they are unique and not negative."""
    k = len(rows)
    if not 2 <= k <= MOST_UNKNOWNS:
        return None
    part = X[rows]
    if sp.issparse(part):  # columns of zeros are no equations
        part = part[:, np.unique(part.indices)]
    if k * part.shape[1] > MOST_ENTRIES:
        return None
    D, _ = integer_rows(part, np.arange(k))
    means = (D * sign[rows].astype(np.int64)[:, None]).T
    A = np.vstack([(sign[rows] > 0).astype(object), (sign[rows] < 0).astype(object), means])
    chosen = _independent((A % PRIME).astype(np.int64))
    if chosen is None:
        return None
    right = np.where(chosen < 2, 1, 0).astype(object)
    found = _lifted(A[chosen], right)
    if found is None:
        return None
    numerators, denominator = found
    if min(numerators) < 0:
        return None
    return Weights.of(rows, numerators, denominator)


def _independent(A: NDArray[np.int64]) -> NDArray[np.intp] | None:
    """As many rows as there are columns, independent modulo the prime; None if there are not so many."""
    E, k = A.T.copy(), A.shape[1]  # its columns are the equations
    chosen = []
    for r in range(k):
        candidates = np.flatnonzero(E[r])
        if not len(candidates):
            return None
        c = int(candidates[0])
        chosen.append(c)
        E[r] = E[r] * pow(int(E[r, c]), -1, PRIME) % PRIME
        E[r + 1 :] = (E[r + 1 :] - E[r + 1 :, c : c + 1] * E[r] % PRIME) % PRIME
    return np.array(chosen, dtype=np.intp)


def _inverse(B: NDArray[np.int64]) -> NDArray[np.int64]:
    """The inverse modulo the prime, by Gauss and Jordan's method."""
    k = len(B)
    E = np.hstack([B, np.eye(k, dtype=np.int64)])
    for r in range(k):
        pivot = r + int(np.flatnonzero(E[r:, r])[0])
        E[[r, pivot]] = E[[pivot, r]]
        E[r] = E[r] * pow(int(E[r, r]), -1, PRIME) % PRIME
        factors = E[:, r].copy()
        factors[r] = 0
        E = (E - factors[:, None] * E[r] % PRIME) % PRIME
    return E[:, k:]


def _lifted(B: Integers, right: Integers) -> tuple[list[int], int] | None:
    """The rational solution of B x = right, whose digits to base p come one by one; then numerators and denominator."""
    k = len(B)
    # Hadamard: no numerator or denominator (Cramer's rule) has more bits.
    bits = sum(math.isqrt(sum(int(a) ** 2 for a in row)).bit_length() + 1 for row in B) + k.bit_length() + 2
    steps = (2 * bits + 2) // (PRIME.bit_length() - 1) + 1
    if steps > MOST_STEPS:
        return None
    inverse = _inverse((B % PRIME).astype(np.int64))
    low, high = inverse & 0x7FFF, inverse >> 15  # halves, so that sums of products fit into int64
    limbs = _limbs(B)
    rest, digits = right.copy(), []
    for _ in range(steps):
        residue = (rest % PRIME).astype(np.int64)
        digit = ((high @ residue % PRIME << 15) + low @ residue) % PRIME
        digits.append(digit)
        product = (limbs[0] @ digit).astype(object)
        for position, limb in enumerate(limbs[1:], 1):
            product = product + ((limb @ digit).astype(object) << (LIMB_BITS * position))
        rest = (rest - product) // PRIME
    modulus = PRIME**steps
    values = [_joined([int(digit[i]) for digit in digits]) for i in range(k)]
    return _common_fractions(values, modulus)


def _limbs(B: Integers) -> list[NDArray[np.int64]]:
    """B = Σ limb·2^(22 position), every limb of B's sign."""
    size, sign = np.abs(B), np.where(B < 0, -1, 1)
    limbs, mask = [], (1 << LIMB_BITS) - 1
    while True:
        limbs.append((size & mask).astype(np.int64) * sign)
        size = size >> LIMB_BITS
        if not size.any():
            return limbs


def _joined(digits: list[int]) -> int:
    """Σ digit_t PRIME^t, by halves."""
    base = PRIME
    while len(digits) > 1:
        if len(digits) % 2:
            digits.append(0)
        digits = [a + b * base for a, b in zip(digits[::2], digits[1::2], strict=True)]
        base *= base
    return digits[0]


def _common_fractions(values: list[int], modulus: int) -> tuple[list[int], int] | None:
    """Numerators and one denominator below √(modulus/2) with value·denominator ≡ numerator."""
    bound = math.isqrt(modulus // 2)
    denominator = 1
    for value in values:
        here = value * denominator % modulus
        if min(here, modulus - here) <= bound:
            continue
        denominator *= _denominator(here, modulus, bound)
        if denominator > bound:
            return None
    numerators = [value * denominator % modulus for value in values]
    return [a if a <= modulus // 2 else a - modulus for a in numerators], denominator


def _denominator(value: int, modulus: int, bound: int) -> int:
    """The denominator of the fraction that ``value`` stands for, by Euclid's algorithm."""
    a, b, s, t = modulus, value, 0, 1
    while b > bound:
        q, c = divmod(a, b)
        a, b, s, t = b, c, t, s - q * t
    return abs(t)

"""What rounding may do to values of a kernel and to sums of them, known from the lengths of rows alone.

Every bound here holds for any order of additions and any way of computing ⟨x, z⟩ in float64, so that solvers state
their claims with the bounds by which a certificate checks them. Let t = γ‖x − z‖² and let its parts ‖x‖², ‖z‖² and
2⟨x, z⟩ be rounded: t is off by at most c γ (‖x‖² + ‖z‖²), c a few times the number of columns times UNIT. Since ‖z‖ is
at most ‖x‖ + √(t/γ), that is at most 3 c γ ‖x‖² + 2 c t; and t exp(−t) is at most 1/e. So however far the other rows
are, the value is off by the factor exp(± 3 c γ ‖x‖²) and by little more than 2 c/e beside that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.certificates.kernel_structure import Structure
from maxmargin.certificates.rounding import ELEMENTARY, NEARLY, TINY, UNIT, VANISHED, gamma

Vector = NDArray[np.float64]

STRIP = 512  # values that are summed up before their sum is added to those of others
PIECE = 32  # values of a strip that are added in any order, before the sums of pieces are added
FUNCTION = (2.0 * ELEMENTARY + 2.0) * UNIT  # of exp, a power or tanh
COARSE = 0.5  # a logarithm known no better says nothing: the value is then only known to be between 0 and 1
CALLED = 8.0  # times the roundings of a product: what values of a callable may be off by


@dataclass(frozen=True)
class RowSizes:
    """What the rounding of values k(x_i, z_j) depends on, for some rows x_i beside all support rows z_j.

    Parameters
    ----------
    columns : most products in a ⟨x, z⟩: the columns, or the entries of the longest of sparse rows.
    squares : ‖x_i‖², as float64 computes it.
    largest : the largest ‖z_j‖².
    centred : ‖x_i − o‖², where ‖x − z‖² was computed as ‖x − o‖² + ‖z − o‖² − 2⟨x − o, z − o⟩, whatever the point o
        is; 0 where it was the sum of squared differences.
    corrected : values for which k γ (‖x − o‖² + ‖z − o‖²) UNIT was more than that were computed from differences.
    given : the largest size of a value that is precomputed or comes from a callable.
    """

    columns: int
    squares: Any = 0.0
    largest: Any = 0.0
    centred: Any = 0.0
    corrected: float = math.inf
    given: float = math.inf

    @property
    def products(self) -> Any:
        """At least ‖x_i‖ ‖z_j‖."""
        return (np.sqrt(self.squares) * NEARLY + TINY) * (np.sqrt(self.largest) * NEARLY + TINY)


@dataclass(frozen=True)
class Wrong:
    """A computed value is θ k + δ with |ln θ| ≤ ``ratio`` and |δ| ≤ ``more``, where |k| ≤ ``most``; one a row."""

    ratio: Any
    more: Any
    most: Any

    def off(self, sizes: Any, total: Any) -> Any:
        """Of Σ |a_j| times the error, where Σ |a_j k_j| of computed values is at most ``sizes``, Σ |a_j| ``total``."""
        return np.expm1(self.ratio) * (sizes + self.more * total) + self.more * total


def strips(n: int) -> int:
    """The most additions that a term of a sum by strips takes part in: in its piece, in its strip, and of strips.

    Examples
    --------
    >>> strips(20), strips(512), strips(51200)
    (21, 49, 148)
    """
    return min(n, PIECE + STRIP // PIECE) + -(-n // STRIP)


def sums_of_strip(values: Vector, factors: Vector) -> Vector:
    """Σ_j values_ij factors_j of at most a strip, every term in few additions."""
    n, size = values.shape
    whole = size - size % PIECE
    pieces = values[:, :whole].reshape(n, -1, PIECE)
    found = np.einsum("isk,sk->is", pieces, factors[:whole].reshape(-1, PIECE)).sum(axis=1)
    if whole < size:
        found = found + np.einsum("ij,j->i", values[:, whole:], factors[whole:])
    return np.asarray(found)


def score_off(
    structure: Structure, sizes: RowSizes, sums: Vector, total: float, additions: int, *, moved: float = 0.0
) -> Vector:
    """Bound on the error of f_i = Σ_j a_j k(x_i, z_j) in float64.

    Parameters
    ----------
    structure : the kernel, see :mod:`~maxmargin.certificates.kernel_structure`.
    sizes : of the rows x_i.
    sums : Σ_j |a_j k(x_i, z_j)| of computed values, themselves added up in any order.
    total : Σ_j |a_j|.
    additions : the most additions that a term of f_i takes part in: the number of support rows, or fewer.
    moved : Σ_j |change| of the a_j since f was computed.

    Examples
    --------
    >>> bool(score_off(("rbf", 0.5), RowSizes(10, centred=np.ones(1)), np.ones(1), 2.0, 100)[0] < 4e-14)
    True
    """
    if not total and not moved:
        return np.zeros_like(sums)
    reach, size = (total + moved) * NEARLY, sums * NEARLY
    with np.errstate(over="ignore", invalid="ignore"):
        wrong = wrong_values(structure, sizes, np.minimum(size / reach, 1.0))
        off = wrong.off(size, reach) + gamma(additions + 4) * size + VANISHED
        return np.asarray((off + moved * wrong.most if moved else off) * NEARLY)


def value_off(structure: Structure, sizes: RowSizes, values: Vector) -> Vector:
    """Bound on the errors of computed values, one for each row."""
    with np.errstate(over="ignore", invalid="ignore"):
        off = wrong_values(structure, sizes).off(np.abs(values), 1.0)
        return np.asarray(np.broadcast_to(off, values.shape) * NEARLY)


def largest_value(structure: Structure, sizes: RowSizes) -> float:
    """A bound on |k(x_i, z_j)|."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.max(wrong_values(structure, sizes).most))


def wrong_values(structure: Structure, sizes: RowSizes, share: Any = 1.0) -> Wrong:
    """What rounding does to values of a kernel; of two bounds, the better one if Σ |a_j k_ij| is ``share`` Σ |a_j|."""
    if structure[0] in PARTS:
        return PARTS[structure[0]](structure[1:], sizes, share)
    return KINDS[structure[0]](sizes, share, *structure[1:])


# --- one kernel each --------------------------------------------------------------------------------------------------


def _linear(sizes: RowSizes, share: Any) -> Wrong:
    size = sizes.products
    return Wrong(0.0, gamma(sizes.columns + 3) * size + VANISHED, size)


def _polynomial(sizes: RowSizes, share: Any, factor: float, coef0: float, degree: float) -> Wrong:
    base = (factor * sizes.products + abs(coef0)) * NEARLY
    of_base, most = (sizes.columns + 6) * UNIT, base**degree * NEARLY
    if 0.0 < degree < 1.0:  # |a^p − b^p| ≤ |a − b|^p
        return Wrong(0.0, (of_base * base) ** degree * NEARLY + 2.0 * FUNCTION * most + VANISHED, most)
    # Powers by repeated products, or by the power function.
    relative = np.expm1((degree * (of_base + UNIT) + FUNCTION) * NEARLY)
    return Wrong(0.0, relative * most + VANISHED, most)


def blur(columns: int, factor: float, centred: Any) -> Any:
    """3 c γ ‖x_i − o‖², the logarithm by which Gaussian values of a row may be off."""
    return 6.0 * (columns + 16) * UNIT * factor * (np.asarray(centred) + VANISHED) * NEARLY


def _gaussian(sizes: RowSizes, share: Any, factor: float) -> Wrong:
    c, exponent = 2.0 * (sizes.columns + 16) * UNIT, blur(sizes.columns, factor, sizes.centred)
    known, blurred = exponent <= COARSE, np.exp(np.minimum(exponent, COARSE))
    ratio, more = exponent + FUNCTION, 0.8 * c * blurred + VANISHED
    # Values that were not computed from differences are off by so little anyhow.
    corrected = 2.8 * (sizes.columns + 16) * max(sizes.corrected, UNIT)
    better = known & (np.expm1(np.minimum(exponent, COARSE)) * share > corrected)
    ratio, more = np.where(better, FUNCTION, ratio), np.where(better, corrected + 0.8 * c + VANISHED, more)
    return Wrong(np.where(known, ratio, 0.0), np.where(known, more, 1.0 + FUNCTION), 1.0)


def _laplacian(sizes: RowSizes, share: Any, factor: float) -> Wrong:
    return Wrong(FUNCTION, 0.8 * (sizes.columns + 8) * UNIT + VANISHED, 1.0)  # of sparse rows: twice the entries


def _sigmoid(sizes: RowSizes, share: Any, factor: float, coef0: float) -> Wrong:
    base = (factor * sizes.products + abs(coef0)) * NEARLY
    return Wrong(0.0, (sizes.columns + 6) * UNIT * base + 2.0 * FUNCTION + VANISHED, 1.0)


def _precomputed(sizes: RowSizes, share: Any) -> Wrong:
    return Wrong(2.0 * UNIT, VANISHED, sizes.given * NEARLY)


def _callable(sizes: RowSizes, share: Any, f: Any, params: Any) -> Wrong:
    return Wrong(CALLED * (sizes.columns + 16) * UNIT, VANISHED, sizes.given * NEARLY)


# --- sums and products ------------------------------------------------------------------------------------------------


def _sum(parts: Structure, sizes: RowSizes, share: Any) -> Wrong:
    found = [wrong_values(part, sizes, share) for part in parts]
    most: Any = sum(wrong.most for wrong in found)
    more: Any = sum(wrong.off(wrong.most * np.exp(wrong.ratio), 1.0) for wrong in found)
    return Wrong(0.0, (more + len(parts) * UNIT * (most + more)) * NEARLY, most * NEARLY)


def _product(parts: Structure, sizes: RowSizes, share: Any) -> Wrong:
    first, *others = (wrong_values(part, sizes, share) for part in parts)
    ratio, more, most = first.ratio, first.more, first.most
    for wrong in others:
        here, there = most * np.exp(ratio), wrong.most * np.exp(wrong.ratio)
        more = (here * wrong.more + there * more + more * wrong.more) * NEARLY + VANISHED
        ratio, most = ratio + wrong.ratio + 2.0 * UNIT, most * wrong.most * NEARLY
    return Wrong(ratio, more, most)


def _scaled(parts: Structure, sizes: RowSizes, share: Any) -> Wrong:
    factor, wrong = abs(parts[0]), wrong_values(parts[1], sizes, share)
    more = factor * wrong.more * NEARLY + VANISHED
    return Wrong(wrong.ratio + 2.0 * UNIT, more, factor * wrong.most * NEARLY)


KINDS: dict[str, Callable[..., Wrong]] = {
    "linear": _linear, "poly": _polynomial, "rbf": _gaussian, "laplacian": _laplacian, "sigmoid": _sigmoid,
    "precomputed": _precomputed, "callable": _callable,
}  # fmt: skip
PARTS: dict[str, Callable[[Structure, RowSizes, Any], Wrong]] = {"sum": _sum, "product": _product, "scaled": _scaled}

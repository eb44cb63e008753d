"""Objectives of w = Σ sign_i alpha_i φ(x_i), which is hyperplane and dual point in one, with all rounding.

With a_i = sign_i alpha_i, f = K a and the square q = aᵀK a = ‖w‖²,

    P = q/2 + Σ cost_i h(target_i − sign_i (f_i + b))        D = Σ (target_i alpha_i − cost_i h*(alpha_i/cost_i)) − q/2

:func:`expansion_claim` states a solver's claim; :mod:`~maxmargin.certificates.expansion` checks it, from other values
of the kernel, by the same sums. A claim by :data:`~maxmargin.certificates.terms.CAREFUL` times the bounds is confirmed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin.certificates.kernel_rounding import RowSizes, score_off
from maxmargin.certificates.kernel_structure import Structure
from maxmargin.certificates.rounding import NEARLY, UNIT, Approximate, Interval, Total
from maxmargin.certificates.terms import CAREFUL, Terms, chunks

Vector = NDArray[np.float64]

NO_COLUMNS = np.empty(0)  # of w, which has no coordinates


class ExpansionSums:
    """Both objectives, some rows at a time; ``factor`` widens what rounding may add.

    ``definite`` says that q cannot be negative; the hyperplane is ``stretch`` times w.
    """

    def __init__(self, terms: Terms, b: float, *, definite: bool, factor: float = 1.0, stretch: float = 1.0) -> None:
        self.terms, self.b, self.definite, self.factor, self.stretch = terms, b, definite, factor, stretch
        self.least, self.most, self.gain = Total(factor), Total(factor), Total(factor)
        self.balance, self._square = Total(factor), Total(factor)

    def add(self, alpha: Vector, scores: Approximate, part: slice) -> None:
        """The multipliers of some rows and their scores without the bias, with a bound on the error of each."""
        terms, a = self.terms, self.terms.coefficients(alpha, part)
        low, high = terms.loss_terms(self.b, self._stretched(scores), part, factor=self.factor)
        self.least.add(low)
        self.most.add(high)
        self.gain.add(*terms.gain_terms(alpha, part))
        self.balance.add(terms.balance_terms(alpha, part))
        products = a * scores.value
        off = float(np.abs(a) @ scores.off) + 2.0 * UNIT * float(np.abs(products).sum())
        self._square.add(products, off * NEARLY)

    def _stretched(self, scores: Approximate) -> Approximate:
        if self.stretch == 1.0:
            return scores
        value = self.stretch * scores.value
        return Approximate(value, self.stretch * scores.off * NEARLY + 2.0 * UNIT * np.abs(value))

    @property
    def square(self) -> Interval:
        """q."""
        value = self._square.value
        return Interval(max(0.0, value.low), value.high) if self.definite else value

    @property
    def losses(self) -> Interval:
        return self.terms.losses(self.least.value, self.most.value, factor=self.factor)

    @property
    def primal(self) -> Interval:
        half = self.square.times(0.5)
        if self.stretch != 1.0:
            by, several = self.stretch * self.stretch, 4.0 * UNIT
            ends = by * half.low, by * half.high
            half = Interval(ends[0] - several * abs(ends[0]), ends[1] + several * abs(ends[1]))
        return self.terms.penalties(NO_COLUMNS, self.b, factor=self.factor) + self.losses + half

    @property
    def dual(self) -> Interval:
        none = Approximate(NO_COLUMNS, 0.0)
        value = self.terms.dual_of(self.gain.value, self.balance.value, none, factor=self.factor)
        return value - self.square.times(0.5)


def expansion_claim(
    terms: Terms, structure: Structure, alpha: Vector, b: float, f: Vector, sums: Vector, sizes: RowSizes, *,
    definite: bool = True, additions: int | None = None, moved: float = 0.0, factor: float = CAREFUL,
    stretch: float = 1.0,
) -> tuple[float, float]:  # fmt: skip
    """The strongest claim (primal, dual) that a certificate confirms, about multipliers that are feasible exactly.

    Parameters
    ----------
    terms : the problem, as :class:`~maxmargin.certificates.terms.Terms` or
        :class:`~maxmargin.certificates.nu.NuTerms`.
    structure : the kernel, see :mod:`~maxmargin.certificates.kernel_structure`.
    alpha, b : the multipliers as the certificate will have them, and the bias.
    f : Σ_j a_j k(x_i, z_j) of every row, by float64 in any order.
    sums : Σ_j |a_j k(x_i, z_j)| likewise.
    sizes : of all rows, as the values in ``f`` were computed.
    definite : whether the kernel is positive semidefinite, or taken to be.
    additions : the most additions that a term of ``f`` takes part in; by default the number of support rows.
    stretch : what the hyperplane is longer by than the sum over the multipliers. Little more than 1, it takes rows on
        the margin so far beyond it that rounding does not put a price on them.
    moved : Σ |change| of the multipliers since ``f`` was computed, as they were made feasible.

    Examples
    --------
    >>> from maxmargin.certificates.losses import arithmetic_of
    >>> sign, one, k = np.array([-1.0, 1.0]), np.ones(2), np.exp(-1.0)  # k of two rows a distance of 1 apart
    >>> terms = Terms(arithmetic_of("hinge", np.nan, 0.0), sign, one, 10.0 * one)
    >>> alpha = one / (1.0 - k)
    >>> f, sums = alpha[0] * (1.0 - k) * sign, alpha[0] * (1.0 + k) * one
    >>> primal, dual = expansion_claim(terms, ("rbf", 1.0), alpha, 0.0, f, sums, RowSizes(1))
    >>> 0.0 < primal - dual < 1e-12
    True
    """
    a = np.abs(alpha)
    n_support = int(np.count_nonzero(a)) if additions is None else additions
    off = score_off(structure, sizes, sums, float(a.sum()), n_support, moved=moved)
    scores, found = Approximate(f, off), ExpansionSums(terms, b, definite=definite, factor=factor, stretch=stretch)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in chunks(len(alpha)):
            found.add(alpha[part], scores.of(part), part)
        return found.primal.high, found.dual.low

"""Proof that a hyperplane, or all hyperplanes of a joint machine, are within a stated gap of the best ones.

Weak duality: for every (w, b) and every feasible alpha, P(w, b) ≥ D(alpha). So the pair (w, b), alpha proves that no
hyperplane has an objective below D(alpha), and that this one is within P − D of the best. For k classes whose scores
are coupled, with p_i a point of the probability simplex and multipliers alpha_i = c_i (e_y − p_i),

    ½ Σ_m ‖w_m‖² + Σ c_i ℓ(f_i, y_i)  ≥  −½ Σ_m ‖Σ_i alpha_im x_i‖² − Σ c_i g(p_i),

where g(p) = p_y − 1 for the joint hinge (Crammer and Singer) and g(p) = Σ p ln p for the multinomial loss. Free biases
ask for Σ alpha sign = 0, or Σ_i alpha_im = 0 for every class m. Nothing of the solvers, the losses or the core is used
here. What rounding may have changed is part of the proof: see :mod:`~maxmargin.certificates.terms`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.certificates.blocks import Block, ExactSum
from maxmargin.certificates.claim import Claim
from maxmargin.certificates.joint_terms import JointTerms
from maxmargin.certificates.rounding import (
    NEARLY,
    TINY,
    UNIT,
    Approximate,
    Total,
    doubled,
    exact_scores_off,
    gamma,
    norm,
    scores_off,
)
from maxmargin.certificates.terms import Terms
from maxmargin.certificates.verdict import Proven

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OptimalityCertificate(Claim):
    """A claim about hyperplanes, with its proof: the hyperplanes themselves and a dual point.

    ``coef`` has one number a column and ``alpha`` one a row; of a joint machine, one line and one column a class.

    Examples
    --------
    >>> from maxmargin import LinearSVC
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> certificate = LinearSVC().fit(X, y).certificate_
    >>> bool(certificate.verify(X, y))
    True
    >>> bool(certificate.verify([[-2.0], [-1.0], [1.1], [2.0]], y))
    False
    """

    coef: Vector

    def __repr__(self) -> str:
        shape = f"{len(self.classes)} classes, " if self.joint and self.classes is not None else ""
        about = f"{self.loss}, C={self.C:g}, {shape}{len(self.alpha)} rows, {np.shape(self.coef)[-1]} columns"
        return (
            f"OptimalityCertificate({about}: objective {self.primal:.6g}, none below {self.dual:.6g}, "
            f"gap {self.gap:.1e} of {self.tol:.0e} asked)"
        )

    def _fits(self, shape: tuple[int, int]) -> bool:
        n, d = shape
        outputs = (np.size(np.asarray(self.classes)),) if self.joint else ()
        given = np.shape(self.coef), np.shape(self.alpha), np.shape(self.intercept)
        return given == ((*outputs, d), (n, *outputs), outputs)

    def _shapes(self, X: Any, labels: NDArray[Any]) -> str:
        return (
            f"the claim is about multipliers of shape {np.shape(self.alpha)} and weights of shape "
            f"{np.shape(self.coef)}; X has shape {X.shape}, y has {len(labels)} entries, and weights must be one or as "
            "many"
        )

    def _numbers(self) -> tuple[Any, ...]:
        return self.coef, self.intercept, self.alpha

    def sums(self, terms: Terms | JointTerms, X: Any, chosen: NDArray[np.intp] | None, *, exact: bool) -> LinearSums:
        return LinearSums(self, terms, exact)


class LinearSums:
    """Both objectives of hyperplanes and a dual point, block by block; rounding is bounded on the way."""

    def __init__(self, claim: OptimalityCertificate, terms: Any, exact: bool) -> None:
        self.claim, self.terms, self.exact = claim, terms, exact
        self.W = np.atleast_2d(claim.coef)
        self.sizes_of_w = [norm(w) for w in self.W]
        k, d = self.W.shape
        self.least, self.most, self.gain = Total(), Total(), Total()
        self.balance = [Total() for _ in range(k)]
        self.exactly = [ExactSum(d) for _ in range(k if exact else 0)]
        self.induced: Vector = np.zeros((k, d))
        self.total, self.by_norms, self.by_squares = np.zeros(k), np.zeros(k), np.zeros(k)  # Σ |alpha| 1, ‖x‖, ‖x‖²
        self.largest, self.longest = 0.0, 0

    def add(self, block: Block) -> None:
        terms, part, norms = self.terms, block.part, block.norms()
        alpha = self.claim.alpha[part]
        scores, longest = self._scores(block, norms), block.longest_row
        self._combine(block, terms.coefficients(alpha, part))
        low, high = terms.loss_terms(self.claim.intercept, self._each(scores), part)
        self.least.add(low)
        self.most.add(high)
        self.gain.add(*terms.gain_terms(alpha, part))
        columns = alpha.reshape(len(alpha), -1).T
        for sums, column in zip(self.balance, columns, strict=True):
            sums.add(terms.balance_terms(column, part))
        size = np.abs(columns)
        self.total = self.total + size.sum(axis=1)
        self.by_norms = self.by_norms + size @ norms
        self.by_squares = self.by_squares + size @ (norms * norms)
        self.largest, self.longest = max(self.largest, float(norms.max())), max(self.longest, longest)

    def _each(self, per_class: list[Any]) -> Any:
        """One thing for one hyperplane, a list for those of a joint machine."""
        return per_class if self.claim.joint else per_class[0]

    def _scores(self, block: Block, norms: Vector) -> list[Approximate]:
        if self.exact:
            pairs = [block.exact_scores(w) for w in self.W]
            off = [exact_scores_off(block.longest_row, size, norms) for size in self.sizes_of_w]
            return [Approximate(high, o, low) for (high, low), o in zip(pairs, off, strict=True)]
        scores = block.scores(self.W.T) if self.claim.joint else block.scores(self.W[0])[:, None]
        off = [scores_off(block.longest_row, size, norms) for size in self.sizes_of_w]
        return [Approximate(scores[:, m], o) for m, o in enumerate(off)]

    def _combine(self, block: Block, coefficients: Vector) -> None:
        columns = coefficients.reshape(len(coefficients), -1)
        if self.exact:
            for line, column in zip(self.exactly, columns.T, strict=True):
                line.add(block.exact_combine(column))
        else:
            more = block.combine(columns).T if self.claim.joint else block.combine(columns[:, 0])
            self.induced = self.induced + more

    def proven(self) -> Proven:
        claim, terms, n = self.claim, self.terms, len(self.claim.alpha)
        reach = (self.by_norms + TINY * self.total) * NEARLY  # Σ |alpha| ‖x‖
        if self.exact:
            lines = np.stack([line.value for line in self.exactly])
            off = [UNIT * norm(line) + doubled(n) * size for line, size in zip(lines, reach, strict=True)]
        else:
            lines, off = self.induced, [gamma(n + 3) * size for size in reach]
        induced = [Approximate(line, o) for line, o in zip(lines, off, strict=True)]
        primal = terms.penalties(claim.coef, claim.intercept) + terms.losses(self.least.value, self.most.value)
        balance = [sums.value for sums in self.balance]
        dual = terms.dual_of(self.gain.value, self._each(balance), self._each(induced))
        # Cauchy and Schwarz, as solvers bound it.
        lengths = [
            (math.sqrt(size * square) + TINY * size) * NEARLY
            for size, square in zip(self.total.tolist(), self.by_squares.tolist(), strict=True)
        ]
        farthest = terms.farthest(
            claim.primal, claim.dual, claim.coef, claim.intercept, claim.alpha, lines if claim.joint else lines[0],
            self.longest, lengths, self.largest,
        )  # fmt: skip
        return Proven(primal, dual, farthest)

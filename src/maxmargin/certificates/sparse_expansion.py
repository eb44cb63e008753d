"""Proof that the coefficients of a sparse expansion are within a stated gap of the best ones.

With Q_ij = y_i y_j k(x_i, x_j), costs C c_i and coefficients α ≥ 0, weak duality says
    Σ α_j + C Σ c_i max(0, 1 − (Qα)_i − y_i b)         ≥  Σ β_i                               if Qβ ≤ 1 ("l1"),
    ½ Σ α_j²/c_j + C Σ c_i max(0, 1 − (Qα)_i − y_i b)  ≥  Σ β_i − ½ Σ c_j max(0, (Qβ)_j)²     ("l2")
for all 0 ≤ β ≤ C c with Σ β_i y_i = 0. Nothing is asked of the kernel but symmetry: it may be indefinite. Only rows of
weight c_i > 0 take part.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.certificates.blocks import blocks, readable
from maxmargin.certificates.kernel_structure import Structure, known
from maxmargin.certificates.kernel_values import Support
from maxmargin.certificates.losses import arithmetic_of, class_costs
from maxmargin.certificates.rounding import UNIT, Approximate, Interval, Total, sums_to_zero, total
from maxmargin.certificates.terms import FARTHEST, Terms, chunks
from maxmargin.certificates.verdict import (
    Checks,
    Claimed,
    Outcome,
    Proven,
    Verdict,
    all_finite,
    known_class_weight,
    known_labels,
    plain_weights,
    verdict_of,
)
from maxmargin.errors import InputError
from maxmargin.solution import relative_gap

Vector = NDArray[np.float64]
Chosen = NDArray[np.intp]


@dataclass(frozen=True)
class TwoClasses:
    """Both objectives of one machine: signs, weights above zero and costs of the rows that it is about."""

    y: Vector
    weight: Vector
    cost: Vector
    penalty: str

    def relative_gap(self, primal: float, dual: float) -> float:
        """Relative as everywhere; without any coefficient, the best bias leaves twice the costs of one class."""
        smaller = min(float(self.cost[self.y > 0.0].sum()), float(self.cost[self.y < 0.0].sum()))
        return relative_gap(primal, dual, 2.0 * smaller)

    def primal(self, alpha: Vector, b: float, sums: Approximate, factor: float = 1.0) -> Interval:
        """Lower and upper bound of the objective; ``sums`` are Σ_j alpha_j y_j k(x_i, x_j)."""
        h = arithmetic_of("hinge", math.nan, 0.0)
        assert h is not None
        terms = Terms(h, self.y, np.ones(len(self.y)), self.cost)
        least, most = Total(factor), Total(factor)
        for part in chunks(len(self.y)):
            low, high = terms.loss_terms(b, sums.of(part), part, factor=factor)
            least.add(low)
            most.add(high)
        size = alpha if self.penalty == "l1" else 0.5 * alpha * alpha / self.weight
        off = 0.0 if self.penalty == "l1" else 4.0 * UNIT * float(size.sum())
        return total(size, off, factor=factor) + terms.losses(least.value, most.value, factor=factor)

    def dual(self, beta: Vector, sums: Approximate, factor: float = 1.0) -> Interval:
        """Lower and upper bound of the dual objective; ``sums`` are Σ_i beta_i y_i k(x_i, x_j).

        Of "l1" both are about Σ beta: it counts only where ``steepest`` is at most 1.
        """
        gain = total(beta, factor=factor)
        if self.penalty == "l1":
            return gain
        slope, off = self.y * sums.value, factor * np.asarray(sums.off)
        least, most = (np.maximum(slope + end, 0.0) ** 2 for end in (-off, off))
        several = 8.0 * UNIT * factor
        low, high = total(self.weight * least, factor=factor), total(self.weight * most, factor=factor)
        return gain - Interval(0.5 * low.low * (1.0 - several), 0.5 * high.high * (1.0 + several))

    def steepest(self, sums: Approximate, factor: float = 1.0) -> float:
        """An upper bound of the largest (Q beta)_j."""
        return float((self.y * sums.value + factor * np.asarray(sums.off)).max()) * (1.0 + 2.0 * UNIT)

    def sums(self, kernel: Structure, X: Any, chosen: Chosen, coefficients: Vector, *, near: bool) -> Approximate:
        """Σ_j coefficients_j y_j k(x_i, x_j), with bounds of the error; ``chosen`` are the machine's rows of X.

        ``near`` asks for the sharpest values: distances are computed from differences.
        """
        signed, taken = self.y * coefficients, np.flatnonzero(coefficients)
        support = Support(kernel, X, chosen[taken], signed[taken], near=near)
        value, off = np.zeros(len(chosen)), np.zeros(len(chosen))
        for block in blocks(X, chosen):
            found = support.scores(block, chosen[block.part])
            value[block.part], off[block.part] = found.f, found.off
        return Approximate(value, off)

    def proven(self, part: Expansion, kernel: Structure, X: Any, chosen: Chosen, *, near: bool) -> Proven:
        """Both objectives of a claim, and how far from them it may be."""
        alpha, beta, b = part.alpha[chosen], part.beta[chosen], part.intercept
        of_alpha, of_beta = (self.sums(kernel, X, chosen, each, near=near) for each in (alpha, beta))
        primal, dual = self.primal(alpha, b, of_alpha), self.dual(beta, of_beta)
        farthest = (
            self.primal(alpha, b, of_alpha, FARTHEST).high - primal.high,
            dual.low - self.dual(beta, of_beta, FARTHEST).low,
        )
        if self.penalty == "l1" and beta.any() and not self.steepest(of_beta) <= 1.0:
            dual = Interval(-math.inf, dual.high)
        return Proven(primal, dual, farthest)


@dataclass(frozen=True, eq=False)
class Expansion:
    """What is claimed of one machine, with its proof: the function Σ alpha_j y_j k(x_j, x) + b and a dual point.

    Attributes
    ----------
    alpha, intercept : the function; ``alpha`` has one number for each row of X.
    beta : multipliers, one for each row.
    primal, dual, gap : the objective is at most ``primal``, and no other function's is below ``dual``.
    """

    alpha: Vector
    intercept: float
    beta: Vector
    primal: float
    dual: float
    gap: float

    def is_float64(self) -> bool:
        """Whether all numbers are what the bounds are about."""
        arrays = all(getattr(part, "dtype", None) == np.float64 for part in (self.alpha, self.beta))
        return arrays and all(isinstance(x, float) for x in (self.intercept, self.primal, self.dual, self.gap))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SparseExpansionCertificate:
    """The claims about all machines of a :class:`~maxmargin.svm.sparse.SparseSVC`. Solves nothing.

    Guarantees
    ----------
    If ``verify`` does not reject, no function of the form Σ α_j y_j k(x_j, ·) + b with α ≥ 0 has an objective below
    ``dual`` (weak duality; no hypothesis on the kernel but its symmetry), and the one that was found has at most
    ``primal``; of several machines both are sums. Values of the kernel are real numbers, whatever their rounding:
    :mod:`~maxmargin.certificates.kernel_values` says what is known of those that are precomputed or called for.

    Attributes
    ----------
    parts : one claim for each machine.
    kernel : name and parameters, as ``Kernel.structure()`` states them.
    scheme : "ovr" or "ovo"; of two classes there is one machine.

    Examples
    --------
    >>> from maxmargin.svm.sparse import SparseSVC
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> certificate = SparseSVC(kernel="linear").fit(X, y).certificate_
    >>> certificate
    SparseExpansionCertificate(l1, linear, C=1, 4 rows: objective 0.666667, none below 0.666667, gap ...)
    >>> bool(certificate.verify(X, y)), bool(certificate.verify([[0.0], [1.0], [2.5], [3.0]], y))
    (True, False)
    """

    parts: tuple[Expansion, ...]
    kernel: Structure
    penalty: str
    C: float
    classes: NDArray[Any]
    scheme: str
    tol: float
    class_weight: dict[Any, float] | str | None = None

    def __repr__(self) -> str:
        machines = f", {len(self.parts)} machines" if len(self.parts) > 1 else ""
        return (
            f"SparseExpansionCertificate({self.penalty}, {self.kernel[0]}, C={self.C:g}, {len(self.parts[0].alpha)} "
            f"rows{machines}: objective {self.primal:.6g}, none below {self.dual:.6g}, gap {self.gap:.1e} of "
            f"{self.tol:.0e} asked)"
        )

    @property
    def gap(self) -> float:
        """The worst machine's."""
        return max(part.gap for part in self.parts)

    @property
    def primal(self) -> float:
        return sum(part.primal for part in self.parts)

    @property
    def dual(self) -> float:
        return sum(part.dual for part in self.parts)

    @verdict_of
    def verify(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, max_gap: float | None = None
    ) -> Verdict:
        """Recompute everything from data, coefficients and multipliers.

        Parameters
        ----------
        X, y, sample_weight : what the machine was fitted to.
        max_gap : largest relative gap that counts as near-optimal; by default the ``tol`` that the fit was asked for.
        """
        max_gap = self.tol if max_gap is None else max_gap
        checks, X, labels = Checks(), readable(X), np.asarray(y).ravel()
        weight = plain_weights(sample_weight, len(labels))
        if not self._is_claim(X, labels, weight, checks) or weight is None:
            return checks.rejected(max_gap)
        position = np.searchsorted(self.classes, labels)
        weight = class_costs(weight, position, self.classes.tolist(), self.class_weight)
        what = "C or a weight is negative or not finite, or a class has none"
        if not checks.note("weights", self._usable(weight, position), what):
            return checks.rejected(max_gap)
        machines = two_classes(position, weight, self.C, sides(len(self.classes), self.scheme), self.penalty)
        verdicts = []
        for part, (about, chosen) in zip(self.parts, machines, strict=True):
            own = Checks(dict(checks.found))
            _check_points(part, about, chosen, own)
            try:
                proven = self._proven(part, about, X, chosen)
            except InputError as error:  # about a function that is no kernel
                own.note("kernel", False, str(error))
                return own.rejected(max_gap)
            claimed = Claimed(part.primal, part.dual, part.gap)
            verdicts.append(own.verdict(claimed, proven, about.relative_gap, max_gap))
        return _worst(verdicts)

    def _proven(self, part: Expansion, about: TwoClasses, X: Any, chosen: Chosen) -> Proven:
        """What is true of a machine, from sharper values where plain ones do not confirm its claim."""
        found = about.proven(part, self.kernel, X, chosen, near=False)
        if found.confirm(Claimed(part.primal, part.dual, part.gap)):
            return found
        sharp = about.proven(part, self.kernel, X, chosen, near=True)
        farthest = max(found.farthest[0], sharp.farthest[0]), max(found.farthest[1], sharp.farthest[1])
        return replace(sharp, farthest=farthest)

    def _is_claim(self, X: Any, labels: NDArray[Any], weight: Vector | None, checks: Checks) -> bool:
        """Whether the claim is one about data of this shape, in numbers that are finite."""
        plain = all(part.is_float64() for part in self.parts) and isinstance(self.C, float)
        if not checks.note("numbers", plain and isinstance(self.tol, float), "a claim is made of float64 numbers"):
            return False
        right = self.penalty in ("l1", "l2") and self.scheme in ("ovr", "ovo") and known_class_weight(self.class_weight)
        checks.note("problem", right, f"nobody knows penalty {self.penalty!r}, {self.scheme!r} and these class weights")
        checks.note("kernel", known(self.kernel), f"nobody knows the kernel {self.kernel!r:.80}")
        right = known_labels(labels, self.classes) and np.size(self.classes) > 1
        if not checks.note("labels", right, f"y, or the list of classes, is another one than {self.classes!r:.60}"):
            return False
        fits = X.ndim == 2 and X.shape[:1] == labels.shape and weight is not None
        fits = fits and (self.kernel[:1] != ("precomputed",) or X.shape[0] == X.shape[1])
        fits = fits and all(part.alpha.shape == part.beta.shape == labels.shape for part in self.parts)
        about = f"{len(self.parts)} machines of {len(self.parts[0].alpha) if self.parts else 0} rows are claimed"
        machines = len(self.parts) == len(sides(len(self.classes), self.scheme))
        checks.note("shape", fits and machines, f"{about}; X has shape {X.shape}, y has {len(labels)} entries")
        numbers = [(p.alpha, p.beta, p.intercept, p.primal, p.dual, p.gap) for p in self.parts]
        finite = all_finite(X.data if hasattr(X, "indptr") else X, self.C, self.tol, *itertools.chain(*numbers))
        checks.note("finite", finite, "NaN or infinity among the data or the claims")
        return not checks.failed

    def _usable(self, weight: Vector, position: NDArray[np.intp]) -> bool:
        """Whether there are costs to speak of in every class, and none below zero."""
        most = np.zeros(len(self.classes))
        np.maximum.at(most, position, self.C * weight)
        return bool(self.C > 0.0 and weight.min() >= 0.0 and np.isfinite(most).all() and most.min() > 0.0)


def _check_points(part: Expansion, about: TwoClasses, chosen: Chosen, checks: Checks) -> None:
    """Whether coefficients and multipliers are allowed, exactly."""
    beta, alpha = part.beta[chosen], part.alpha[chosen]
    inside = bool((alpha >= 0.0).all() and (beta >= 0.0).all() and (beta <= about.cost).all())
    inside = inside and not np.delete(part.alpha, chosen).any() and not np.delete(part.beta, chosen).any()
    checks.note(
        "feasibility",
        inside,
        "a coefficient is negative, a multiplier outside of its range, or a row is not in the problem",
    )
    checks.note("balance", sums_to_zero(about.y * beta), "the multipliers of both classes must have the same sum")


def _worst(verdicts: list[Verdict]) -> Verdict:
    """That of the worst machine, with sums of the objective values."""
    rank = [Outcome.PROVEN, Outcome.HONEST, Outcome.REJECTED]
    worst = max(verdicts, key=lambda v: (rank.index(v.outcome), v.gap if math.isfinite(v.gap) else math.inf))
    primal, dual = sum(v.primal for v in verdicts), sum(v.dual for v in verdicts)
    return replace(worst, primal=primal, dual=dual, gap=max(v.gap for v in verdicts))


def sides(n_classes: int, scheme: str) -> list[tuple[int, int | None]]:
    """The positive and the negative class of every machine; None: all others."""
    if n_classes == 2:
        return [(1, 0)]
    if scheme == "ovr":
        return [(k, None) for k in range(n_classes)]
    return [(second, first) for first, second in itertools.combinations(range(n_classes), 2)]


def two_classes(
    position: NDArray[np.intp], weight: Vector, C: float, machines: list[tuple[int, int | None]], penalty: str
) -> list[tuple[TwoClasses, Chosen]]:
    """The problem of every machine, with the rows that it is about."""
    found = []
    for positive, negative in machines:
        among = (position == positive) | ((position == negative) if negative is not None else True)
        chosen = np.flatnonzero(among & (weight > 0.0))
        y = np.where(position[chosen] == positive, 1.0, -1.0)
        found.append((TwoClasses(y, weight[chosen], C * weight[chosen], penalty), chosen))
    return found

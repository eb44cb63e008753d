"""Proofs for machines of more than two classes: one certificate per hyperplane, or one for all of them together."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.certificates.arithmetic import FARTHEST, class_costs
from maxmargin.certificates.joint_arithmetic import JointTerms
from maxmargin.certificates.optimality import OptimalityCertificate
from maxmargin.certificates.rounding import (
    Approximate,
    combination_off,
    exact_combination,
    exact_scores,
    lines_sum_to_zero,
    longest_row,
    norm,
    row_norms,
    scores_off,
    sums_to_zero,
)
from maxmargin.certificates.verdict import (
    Checks,
    Claimed,
    Outcome,
    Proven,
    Verdict,
    all_finite,
    known_class_weight,
    known_labels,
    plain_matrix,
    plain_weights,
    usable_scale,
    verdict_of,
)

Vector = NDArray[np.float64]
SAME = ("C", "loss", "tol", "fit_intercept", "penalty_scale", "penalty", "power", "epsilon")  # of all parts


@dataclass(frozen=True, eq=False, repr=False)
class CombinedCertificate:
    """The certificates of one machine per class (``scheme="ovr"``) or per pair of classes (``"ovo"``).

    Each part is about labels False and True: is it this class, or is it the second one of the pair?

    Examples
    --------
    >>> from maxmargin import LinearSVC
    >>> X, y = [[0.0], [1.0], [2.0]], ["a", "b", "c"]
    >>> certificate = LinearSVC().fit(X, y).certificate_
    >>> len(certificate.parts), bool(certificate.verify(X, y))
    (3, True)
    """

    parts: tuple[OptimalityCertificate, ...]
    scheme: str
    classes: NDArray[Any]
    loss: str
    C: float
    tol: float
    class_weight: dict[Any, float] | str | None = None
    fit_intercept: bool = True
    penalty_scale: float | None = None
    penalty: str = "l2"
    power: float = math.nan
    epsilon: float = 0.0

    def __repr__(self) -> str:
        return (
            f"CombinedCertificate({self.scheme}, {self.loss}, C={self.C:g}, {len(self.classes)} classes, "
            f"{len(self.parts)} machines: worst gap {self.gap:.1e} of {self.tol:.0e} asked)"
        )

    @property
    def gap(self) -> float:
        """The worst part's."""
        return max(part.gap for part in self.parts)

    @property
    def primal(self) -> float:
        return sum(part.primal for part in self.parts)

    @property
    def dual(self) -> float:
        return sum(part.dual for part in self.parts)

    @property
    def distance_bound(self) -> float:
        """Largest possible ‖w − w*‖ of any part."""
        return max(part.distance_bound for part in self.parts)

    @verdict_of
    def verify(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, max_gap: float | None = None
    ) -> Verdict:
        """Verify every part; the verdict is that of the worst one, with sums of the objective values."""
        checks, X, labels = Checks(), plain_matrix(X), np.asarray(y).ravel()
        weight = plain_weights(sample_weight, len(labels))
        max_gap = self.tol if max_gap is None else max_gap
        if not checks.note("labels", known_labels(labels, self.classes), "y, or the list of classes, is another one"):
            return checks.rejected(max_gap)
        shaped = X.ndim == 2 and X.shape[0] == len(labels) and weight is not None
        whole = len(self.parts) == len(self._jobs()) > 0 and self.scheme in ("ovr", "ovo")
        whole = whole and all(np.shape(part.alpha) == labels.shape for part in self.parts)
        found = f"{len(self.parts)} machines, X of shape {X.shape}, {len(labels)} labels"
        checks.note("shape", shaped and whole, found)
        alike = all(_same(getattr(part, name), getattr(self, name)) for part in self.parts for name in SAME)
        alike = alike and known_class_weight(self.class_weight)
        checks.note("parts", alike, "the machines do not share loss, C, penalty, bias and tolerance")
        asked = [np.array_equal(part.classes, np.array([False, True])) for part in self.parts]  # type: ignore[arg-type]
        plain = all(asked) and all(part.class_weight is None for part in self.parts)
        checks.note("labels of parts", plain, "a machine answers another question than: is it this class?")
        if checks.failed or weight is None:
            return checks.rejected(max_gap)
        position = np.searchsorted(self.classes, labels)
        weight = class_costs(weight, position, self.classes.tolist(), self.class_weight)
        jobs = zip(self.parts, self._jobs(), strict=True)
        verdicts = [_verify_part(part, job, X, position, weight, max_gap) for part, job in jobs]
        rank = [Outcome.PROVEN, Outcome.HONEST, Outcome.REJECTED]
        worst = max(verdicts, key=lambda v: (rank.index(v.outcome), v.gap if math.isfinite(v.gap) else math.inf))
        return replace(
            worst,
            primal=sum(v.primal for v in verdicts),
            dual=sum(v.dual for v in verdicts),
            gap=max(v.gap for v in verdicts),
        )

    def _jobs(self) -> list[tuple[int, ...]]:
        n = len(self.classes)
        return [(k,) for k in range(n)] if self.scheme == "ovr" else list(itertools.combinations(range(n), 2))


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


def _verify_part(
    part: OptimalityCertificate, job: tuple[int, ...], X: Any, position: NDArray[np.intp], weight: Vector,
    max_gap: float,
) -> Verdict:  # fmt: skip
    if len(job) == 1:
        return part.verify(X, position == job[0], weight, max_gap=max_gap)
    chosen = np.flatnonzero((position == job[0]) | (position == job[1]))
    if np.delete(part.alpha, chosen).any():
        checks = Checks()
        checks.note("feasibility", False, "a row of a class outside of the pair has a multiplier")
        return checks.rejected(max_gap)
    own = replace(part, alpha=part.alpha[chosen])
    return own.verify(X[chosen], position[chosen] == job[1], weight[chosen], max_gap=max_gap)


@dataclass(frozen=True, eq=False, repr=False)
class JointCertificate:
    """Proof for all hyperplanes of a joint multi-class machine at once.

    With p_i a point of the probability simplex and multipliers alpha_i = c_i (e_y − p_i), weak duality says

        ½ Σ_m ‖w_m‖² + Σ c_i ℓ(f_i, y_i)  ≥  −½ Σ_m ‖Σ_i alpha_im x_i‖² − Σ c_i g(p_i),

    where g(p) = p_y − 1 for the joint hinge (Crammer and Singer) and g(p) = Σ p ln p for the multinomial loss.
    Without a penalty on the biases Σ_i alpha_im = 0 for every class m.
    """

    coef: Vector
    intercept: Vector
    alpha: Vector
    primal: float
    dual: float
    gap: float
    loss: str
    C: float
    classes: NDArray[Any]
    tol: float
    class_weight: dict[Any, float] | str | None = None
    fit_intercept: bool = True
    penalty_scale: float | None = None

    def __repr__(self) -> str:
        return (
            f"JointCertificate({self.loss}, C={self.C:g}, {len(self.classes)} classes, {len(self.alpha)} rows: "
            f"objective {self.primal:.6g}, none below {self.dual:.6g}, gap {self.gap:.1e} of {self.tol:.0e} asked)"
        )

    @property
    def distance_bound(self) -> float:
        """Largest possible distance of all weights together from the optimal ones."""
        return math.sqrt(2.0 * max(0.0, self.primal - self.dual))

    @verdict_of
    def verify(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, max_gap: float | None = None
    ) -> Verdict:
        """Recompute primal, dual and gap from data, hyperplanes and dual point."""
        checks, X, labels = Checks(), plain_matrix(X), np.asarray(y).ravel()
        max_gap, k, n = self.tol if max_gap is None else max_gap, int(np.size(self.classes)), len(labels)
        weight = plain_weights(sample_weight, n)
        fits = X.ndim == 2 and X.shape[0] == n and weight is not None
        fits = fits and np.shape(self.coef) == (k, X.shape[1]) and np.shape(self.intercept) == (k,)
        checks.note("shape", fits and np.shape(self.alpha) == (n, k), f"{k} classes, X of shape {X.shape}, {n} labels")
        checks.note("labels", known_labels(labels, self.classes), "y, or the list of classes, is another one")
        known = self.loss in ("crammer_singer", "multinomial") and usable_scale(self.penalty_scale)
        known = known and known_class_weight(self.class_weight)
        checks.note("loss", known, f"nobody knows the loss {self.loss!r} with these parameters")
        if checks.failed or weight is None:
            return checks.rejected(max_gap)
        position = np.searchsorted(self.classes, labels)
        weight = class_costs(weight, position, self.classes.tolist(), self.class_weight)
        numbers = (self.primal, self.dual, self.gap, self.tol)
        finite = all_finite(X, weight, self.coef, self.intercept, self.alpha, numbers)
        if not checks.note("finite", finite, "NaN or infinity among the data or the claims"):
            return checks.rejected(max_gap)
        usable = 0.0 < self.C < np.inf and weight.min(initial=0.0) >= 0.0 and bool(weight.any())
        checks.note("weights", usable, "C or a weight is negative, or all weights are zero")
        scale = float(self.penalty_scale or 0.0) if self.fit_intercept else 0.0
        terms = JointTerms(self.loss, position, self.C * weight, scale)
        self._check_feasibility(terms, checks)
        return checks.rejected(max_gap) if checks.failed else self._compare(terms, X, checks, max_gap)

    def _check_feasibility(self, terms: JointTerms, checks: Checks) -> None:
        """alpha_i = c_i (e_y − p_i) with p_i on the simplex, and balanced classes where biases are free: exactly."""
        rows, alpha = np.arange(len(terms.cost)), self.alpha
        own, others = alpha[rows, terms.position], alpha.copy()
        others[rows, terms.position] = 0.0
        inside = bool((others <= 0.0).all() and (own <= terms.cost).all()) and lines_sum_to_zero(alpha)
        checks.note("feasibility", inside, "the multipliers of a row are outside of their range, or do not sum to zero")
        balanced = not self.fit_intercept or bool(terms.scale) or all(sums_to_zero(column) for column in alpha.T)
        checks.note("balance", balanced, "with free biases the multipliers of every class must sum to zero")
        without = self.fit_intercept or not self.intercept.any()
        checks.note("intercept", without, "a machine without biases cannot have one")

    def _compare(self, terms: JointTerms, X: Any, checks: Checks, max_gap: float) -> Verdict:
        claimed = Claimed(self.primal, self.dual, self.gap)
        proven = self._objectives(terms, X, exact=False)
        if not proven.confirm(claimed):
            proven = self._objectives(terms, X, exact=True)
        zero = Approximate(np.zeros(len(terms.cost)), 0.0)
        k = len(self.classes)
        null = terms.primal(np.zeros((k, 1)), np.zeros(k), [zero] * k)
        return checks.verdict(claimed, proven, 0.5 * (null.low + null.high), max_gap)

    def _objectives(self, terms: JointTerms, X: Any, *, exact: bool) -> Proven:
        norms, most = row_norms(X), longest_row(X)
        if exact:
            scores = [exact_scores(X, w) for w in self.coef]
            induced = [exact_combination(X, column) for column in self.alpha.T]
        else:
            products, sums = np.asarray(X @ self.coef.T), np.asarray(X.T @ self.alpha)
            scores = [Approximate(products[:, m], scores_off(most, norm(w), norms)) for m, w in enumerate(self.coef)]
            induced = [
                Approximate(sums[:, m], combination_off(len(norms), column, norms))
                for m, column in enumerate(self.alpha.T)
            ]
        primal, dual = terms.primal(self.coef, self.intercept, scores), terms.dual(self.alpha, induced)
        largest, lines = float(norms.max(initial=0.0)), np.stack([part.value for part in induced])
        above = terms.primal_above(self.primal, self.coef, self.intercept, most, largest, factor=FARTHEST)
        moved = terms.most_moved(self.alpha.size)
        below = FARTHEST * terms.dual_lost(self.dual, self.alpha, moved, lines, norms * norms)
        return Proven(primal, dual, (above - self.primal, below))

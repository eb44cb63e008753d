"""Proof that a hyperplane is within a stated gap of the best one.

Weak duality: for every (w, b) and every feasible alpha, P(w, b) ≥ D(alpha). So the pair (w, b), alpha proves that no
hyperplane has an objective below D(alpha), and that this one is within P − D of the best. Checking it takes
two matrix products; nothing of the solvers, the losses or the core is used here. What rounding may have changed in
those products is part of the proof: see :mod:`~maxmargin.certificates.arithmetic`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.certificates.arithmetic import Terms, arithmetic_of, best_constant, class_costs
from maxmargin.certificates.rounding import (
    Approximate,
    combination_off,
    exact_combination,
    exact_scores,
    longest_row,
    norm,
    row_norms,
    scores_off,
    sums_to_zero,
)
from maxmargin.certificates.verdict import (
    Checks,
    Claimed,
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

NO_HARD_MARGIN = ("logistic", "epsilon_insensitive", "squared_epsilon_insensitive")


@dataclass(frozen=True, eq=False, repr=False)
class OptimalityCertificate:
    """What a fit claims: a hyperplane, a dual point, and how far apart their objectives are.

    Solves nothing; :meth:`verify` recomputes everything from the data.

    Guarantees
    ----------
    If ``verify`` does not reject, no hyperplane's objective is below ``dual`` (weak duality; no hypothesis on the
    data), that of ``coef`` and ``intercept`` is at most ``primal``, and, for the penalty ½‖w‖²,
    ‖w − w*‖ ≤ √(2 (primal − dual)). Both values contain what rounding may have changed. The data are the floating-point
    numbers handed over, and costs are C times weights as float64 computes them.

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
    intercept: float
    alpha: Vector
    primal: float
    dual: float
    gap: float
    loss: str
    C: float
    classes: NDArray[Any] | None
    tol: float
    class_weight: dict[Any, float] | str | None = None
    fit_intercept: bool = True
    penalty_scale: float | None = None
    penalty: str = "l2"
    power: float = math.nan
    epsilon: float = 0.0

    def __repr__(self) -> str:
        about = f"{self.loss}, C={self.C:g}, {len(self.alpha)} rows, {len(self.coef)} columns"
        return (
            f"OptimalityCertificate({about}: objective {self.primal:.6g}, none below {self.dual:.6g}, "
            f"gap {self.gap:.1e} of {self.tol:.0e} asked)"
        )

    @property
    def distance_bound(self) -> float:
        """Largest possible ‖w − w*‖; infinite for the ℓ1 penalty, which is not strongly convex."""
        return math.sqrt(2.0 * max(0.0, self.primal - self.dual)) if self.penalty == "l2" else math.inf

    @property
    def regression(self) -> bool:
        return self.loss.endswith("epsilon_insensitive")

    @verdict_of
    def verify(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, max_gap: float | None = None
    ) -> Verdict:
        """Recompute everything from data, hyperplane and dual point.

        Parameters
        ----------
        X, y, sample_weight : what the machine was fitted to.
        max_gap : largest relative gap that counts as near-optimal; by default the ``tol`` that the fit was asked for.
        """
        checks, X, labels = Checks(), plain_matrix(X), np.asarray(y).ravel()
        max_gap = self.tol if max_gap is None else max_gap
        weight = plain_weights(sample_weight, len(labels))
        fits = (
            X.ndim == 2 and np.shape(self.coef) == X.shape[1:] and np.shape(self.alpha) == X.shape[:1] == labels.shape
        )
        if not checks.note("shape", fits and weight is not None, self._shapes(X, labels)) or weight is None:
            return checks.rejected(max_gap)
        terms = self._terms(X, labels, weight, checks)
        return checks.rejected(max_gap) if terms is None else _Check(self, terms, X, checks).verdict(max_gap)

    def _terms(self, X: Any, labels: NDArray[Any], weight: Vector, checks: Checks) -> Terms | None:
        """The problem that the claim is about; None, with a note, if there is no such problem."""
        h = arithmetic_of(self.loss, self.power, self.epsilon)
        known = h is not None and self.penalty in ("l1", "l2") and (self.classes is None) == self.regression
        known = known and (np.inf > self.C or self.loss not in NO_HARD_MARGIN) and usable_scale(self.penalty_scale)
        known = known and known_class_weight(self.class_weight)
        what = f"nobody knows loss {self.loss!r} with penalty {self.penalty!r}, C={self.C!r} and these class weights"
        if not checks.note("loss", known, what) or h is None:
            return None
        if self.classes is None:
            try:
                sign, target = np.ones(len(labels)), np.asarray(labels, dtype=np.float64)
            except (TypeError, ValueError):
                checks.note("labels", False, "y holds something that is no number")
                return None
        else:
            two = len(self.classes) == 2 and known_labels(labels, self.classes)
            if not checks.note("labels", two, f"y is not made of the two classes {self.classes!r}"):
                return None
            position = (labels == self.classes[1]).astype(np.intp)
            sign, target = 2.0 * position - 1.0, np.full(len(labels), h.margin)
            weight = class_costs(weight, position, self.classes.tolist(), self.class_weight)
        numbers = (self.primal, self.dual, self.gap, self.intercept, self.tol)
        finite = all_finite(X, weight, target, self.coef, self.alpha, numbers)
        if not checks.note("finite", finite, "NaN or infinity among the data or the claims"):
            return None
        hard = np.inf == self.C
        cost = np.where(weight > 0.0, 1.0, 0.0) if hard else self.C * weight
        usable = self._usable(cost, weight, sign)
        checks.note("weights", usable, "C or a weight is negative, or a class has none")
        scale = float(self.penalty_scale or 0.0)
        return Terms(h, sign, target, cost, self.penalty, scale, hard) if usable else None

    def _shapes(self, X: Any, labels: NDArray[Any]) -> str:
        return (
            f"the claim is about {np.shape(self.alpha)} rows and {np.shape(self.coef)} columns; X has shape {X.shape}, "
            f"y has {len(labels)} entries, and weights must be one or as many"
        )

    def _usable(self, cost: Vector, weight: Vector, sign: Vector) -> bool:
        if not self.C > 0.0 or weight.min(initial=0.0) < 0.0 or not np.isfinite(cost).all() or not cost.any():
            return False
        return self.classes is None or bool(cost[sign > 0].any() and cost[sign < 0].any())


class _Check:
    """One verification: the dual point must be feasible as it is, then both objectives are compared with the claims."""

    def __init__(self, claim: OptimalityCertificate, terms: Terms, X: Any, checks: Checks) -> None:
        self.claim, self.terms, self.X, self.checks = claim, terms, X, checks
        self.norms = row_norms(X)

    def verdict(self, max_gap: float) -> Verdict:
        claim, terms, checks = self.claim, self.terms, self.checks
        low, high = terms.h.range(np.where(terms.cost > 0.0, np.inf, 0.0) if terms.hard else terms.cost)
        feasible = bool(((low <= claim.alpha) & (claim.alpha <= high)).all())
        checks.note("feasibility", feasible, "a multiplier is outside of its range")
        free = claim.fit_intercept and not terms.scale
        balanced = not free or sums_to_zero(terms.sign * claim.alpha)
        checks.note("balance", balanced, "with a free bias the multipliers of both classes must have the same sum")
        if not claim.fit_intercept:
            checks.note("intercept", claim.intercept == 0.0, "a machine without a bias cannot have one")
        if checks.failed:
            return checks.rejected(max_gap)
        claimed = Claimed(claim.primal, claim.dual, claim.gap)
        proven = self._objectives(*self._products())
        if not proven.confirm(claimed):
            proven = self._objectives(*self._exact_products())
        return checks.verdict(claimed, proven, self._null_primal(), max_gap)

    def _products(self) -> tuple[Approximate, Approximate]:
        """Scores and Σ alpha sign x, by the fastest products there are."""
        X, w, alpha = self.X, self.claim.coef, self.claim.alpha
        norms = self.norms
        scores = np.asarray(X @ w, dtype=np.float64).ravel()
        induced = np.asarray(X.T @ (self.terms.sign * alpha), dtype=np.float64).ravel()
        return (
            Approximate(scores, scores_off(longest_row(X), norm(w), norms)),
            Approximate(induced, combination_off(len(alpha), alpha, norms)),
        )

    def _exact_products(self) -> tuple[Approximate, Approximate]:
        return exact_scores(self.X, self.claim.coef), exact_combination(self.X, self.terms.sign * self.claim.alpha)

    def _objectives(self, scores: Approximate, induced: Approximate) -> Proven:
        claim = self.claim
        primal = self.terms.primal(claim.coef, claim.intercept, scores)
        dual = self.terms.dual(claim.alpha, induced)
        farthest = self.terms.farthest(
            claim.primal, claim.dual, claim.coef, claim.intercept, claim.alpha, induced.value, longest_row(self.X),
            self.norms,
        )  # fmt: skip
        return Proven(primal, dual, farthest)

    def _null_primal(self) -> float:
        """The objective at w = 0 with the best constant bias; in a regression without the tube."""
        claim, terms = self.claim, self.terms
        if terms.hard:
            return 0.0
        h = arithmetic_of(claim.loss, claim.power, 0.0)
        assert h is not None
        b, sign, target, cost = 0.0, terms.sign, terms.target, terms.cost
        if claim.fit_intercept and not terms.scale:
            if claim.classes is not None:  # at w = 0 all rows of a class are alike
                sign, target = np.array([-1.0, 1.0]), np.full(2, h.margin)
                cost = np.array([float(terms.cost[terms.sign == s].sum()) for s in sign])
            b = best_constant(sign, target, cost, h)
        return float(terms.cost @ h.value(terms.target - terms.sign * b))

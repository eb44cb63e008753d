"""Proof that a hyperplane is within a stated gap of the best one.

Weak duality: for every (w, b) and every feasible alpha, P(w, b) ≥ D(alpha). So the pair (w, b), alpha proves that no
hyperplane has an objective below D(alpha), and that this one is within P − D of the best. Checking it takes
two matrix products; nothing of the solvers, the losses or the core is used here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from maxmargin.certificates.arithmetic import Arithmetic, arithmetic_of, balanced, bias_interval, class_costs
from maxmargin.positions import check_positions

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """Result of a verification; true if and only if every check holds within ``tolerance``.

    Attributes
    ----------
    accepted : whether all checks hold.
    worst : name of the check with the largest violation.
    violation : that violation (relative, 0 = none).
    checks : every check's violation.
    primal, dual, gap : recomputed in float64 from the data.
    complementarity : Σ of the products that vanish at the optimum, relative to the objective.
    """

    accepted: bool
    worst: str
    violation: float
    tolerance: float
    checks: dict[str, float]
    primal: float
    dual: float
    gap: float
    complementarity: float

    def __bool__(self) -> bool:
        return self.accepted

    def __str__(self) -> str:
        if self.accepted:
            return (
                f"verified: no hyperplane has an objective below {self.dual:.10g}; this one has {self.primal:.10g} "
                f"(relative gap {self.gap:.1e})"
            )
        return f"REJECTED: the check '{self.worst}' is violated by {self.violation:.2e} (allowed: {self.tolerance:.0e})"


@dataclass(frozen=True, eq=False)
class OptimalityCertificate:
    """What a fit claims: a hyperplane, a dual point, and how far apart their objectives are.

    Solves nothing; :meth:`verify` recomputes everything from the data.

    Guarantees
    ----------
    If ``verify`` accepts, no hyperplane's objective is below the verdict's ``dual`` (weak duality; no hypothesis on the
    data, up to rounding), ``coef`` and ``intercept`` have objective ``primal``, and, for the penalty ½‖w‖²,
    ‖w − w*‖ ≤ √(2 (primal − dual)).

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
    class_weight: dict[Any, float] | str | None = None
    fit_intercept: bool = True
    penalty_scale: float | None = None
    penalty: str = "l2"
    power: float = math.nan
    epsilon: float = 0.0

    @property
    def distance_bound(self) -> float:
        """Largest possible ‖w − w*‖; infinite for the ℓ1 penalty, which is not strongly convex."""
        return math.sqrt(2.0 * max(0.0, self.primal - self.dual)) if self.penalty == "l2" else math.inf

    @property
    def regression(self) -> bool:
        return self.loss.endswith("epsilon_insensitive")

    def verify(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, tolerance: float = 1e-6) -> Verdict:
        """Recompute primal, dual, gap and optimality conditions from data, hyperplane and dual point."""
        X = plain_matrix(X)
        labels = np.asarray(y).ravel()
        shape = (len(labels), len(self.coef))
        weight = np.asarray(1.0 if sample_weight is None else sample_weight, dtype=np.float64)
        if X.shape != shape or len(self.alpha) != len(labels) or weight.shape not in ((), (len(labels),)):
            return rejected("shape", tolerance)
        h = arithmetic_of(self.loss, self.power, self.epsilon)
        if h is None or self.penalty not in ("l1", "l2") or (self.classes is None) != self.regression:
            return rejected("loss", tolerance)
        weight = np.broadcast_to(weight, labels.shape)
        if self.classes is None:
            sign, target = np.ones(len(labels)), np.asarray(labels, dtype=np.float64)
        else:
            if len(self.classes) != 2 or not np.isin(labels, self.classes).all():
                return rejected("labels", tolerance)
            position = (labels == self.classes[1]).astype(np.intp)
            sign, target = 2.0 * position - 1.0, np.full(len(labels), h.margin)
            weight = class_costs(weight, position, self.classes.tolist(), self.class_weight)
        cost = np.where(weight > 0.0, np.inf, 0.0) if np.inf == self.C else self.C * weight
        numbers = (self.primal, self.dual, self.gap, self.intercept)
        values = X.data if sp.issparse(X) else X
        if not all(np.isfinite(part).all() for part in (values, weight, target, self.coef, self.alpha, numbers)):
            return rejected("finite", tolerance)
        if not self.C > 0.0 or cost.min() < 0.0 or not cost.any():
            return rejected("weights", tolerance)
        if self.classes is not None and not (cost[sign > 0].any() and cost[sign < 0].any()):
            return rejected("weights", tolerance)
        return _Check(self, h, X, sign, target, cost).verdict(tolerance)


class _Check:
    """One verification: a dual point that is certainly feasible, both objectives, and what was claimed."""

    def __init__(
        self, claim: OptimalityCertificate, h: Arithmetic, X: Any, sign: Vector, target: Vector, cost: Vector
    ) -> None:
        self.claim, self.h, self.X, self.sign, self.target, self.cost = claim, h, X, sign, target, cost
        self.hard = np.inf == claim.C
        self.live = cost > 0.0
        self.scores = np.asarray(X @ claim.coef).ravel()
        self.r = target - sign * (self.scores + claim.intercept)
        self.alpha, self.induced = self._feasible()

    def _feasible(self) -> tuple[Vector, Vector]:
        """The nearest point that is certainly feasible, and the sum Σ alpha sign x it makes."""
        claim, h, sign = self.claim, self.h, self.sign
        with np.errstate(invalid="ignore"):
            lowest = np.where(self.live, h.lowest * self.cost if h.lowest else 0.0, 0.0)
            highest = np.where(self.live, h.highest * self.cost, 0.0)
        alpha = np.clip(claim.alpha, lowest, highest)
        if claim.fit_intercept and not claim.penalty_scale:
            alpha = sign * balanced(sign * alpha)
        induced = np.asarray(self.X.T @ (sign * alpha)).ravel()
        self.rounding = 64.0 * float(np.finfo(np.float64).eps) * np.asarray(abs(self.X).T @ np.abs(alpha)).ravel()
        if claim.penalty == "l1":  # no column may pull with more than 1, beyond what rounding of its sum explains
            most = max(1.0, float((np.abs(induced) - self.rounding).max(initial=0.0)))
            alpha, induced = alpha / most, induced / most
        return alpha, induced

    def verdict(self, tolerance: float) -> Verdict:
        claim = self.claim
        primal, dual = self._primal(), self._dual()
        size = max(abs(primal), abs(dual), 1e-10 * self._null_primal(), 1e-300)
        gap = (primal - dual) / size
        checks = {
            "feasibility": float(np.abs(self.alpha - claim.alpha).max() / max(float(np.abs(self.alpha).max()), 1e-300)),
            "primal value": abs(primal - claim.primal) / size,
            "dual value": abs(dual - claim.dual) / size,
            "gap": max(0.0, gap - claim.gap, claim.gap - gap - 1e-12),
            "weak duality": max(0.0, -gap),
            "intercept": self._intercept_off(),
        }
        if claim.penalty == "l2":
            checks["stationarity"] = self._stationarity_off(max(0.0, claim.primal - claim.dual) + 1e-13 * size)
        if self.hard:
            checks["margin"] = max(0.0, float(self.r[self.live].max()))
        worst = max(checks, key=lambda k: checks[k])
        return Verdict(
            accepted=all(bool(violation <= tolerance) for violation in checks.values()),
            worst=worst,
            violation=checks[worst],
            tolerance=tolerance,
            checks=checks,
            primal=primal,
            dual=dual,
            gap=max(0.0, gap),
            complementarity=self._complementarity() / size,
        )

    def _primal(self) -> float:
        claim, w = self.claim, self.claim.coef
        penalty = 0.5 * float(w @ w) if claim.penalty == "l2" else float(np.abs(w).sum())
        of_bias = 0.5 * (claim.intercept / claim.penalty_scale) ** 2 if claim.penalty_scale else 0.0
        if self.hard:
            return penalty + of_bias
        return penalty + of_bias + float(self.cost @ self.h.value(self.r))

    def _dual(self) -> float:
        claim = self.claim
        value = -0.5 * float(self.induced @ self.induced) if claim.penalty == "l2" else 0.0
        if claim.penalty_scale:
            value -= 0.5 * (claim.penalty_scale * float((self.sign * self.alpha).sum())) ** 2
        return value + float(self.alpha @ self.target) - float(self._conjugates().sum())

    def _conjugates(self) -> Vector:
        """c h*(alpha/c) of every row."""
        out = np.zeros_like(self.alpha)
        if not self.hard:
            cost = self.cost[self.live]
            out[self.live] = cost * self.h.conjugate(self.alpha[self.live] / cost)
        return out

    def _complementarity(self) -> float:
        """Σ c h(r) + c h*(alpha/c) − alpha r: every term is at least 0, and 0 at the optimum."""
        if self.hard:
            return float(-self.alpha @ self.r)
        terms = self.cost * self.h.value(self.r) + self._conjugates() - self.alpha * self.r
        return float(np.maximum(terms, 0.0).sum())

    def _null_primal(self) -> float:
        """The objective at w = 0 with the best constant bias; in a regression without the tube."""
        if self.hard:
            return 0.0
        b = 0.0
        if self.h.width > 0.0:
            bare = arithmetic_of(self.claim.loss, math.nan, 0.0)
            assert bare is not None
            return _Check(self.claim, bare, self.X, self.sign, self.target, self.cost)._null_primal()
        if self.claim.fit_intercept and not self.claim.penalty_scale:
            sign, target, cost = self.sign, self.target, self.cost
            if self.claim.classes is not None:  # at w = 0 all rows of a class are alike
                sign, target = np.array([-1.0, 1.0]), np.full(2, self.h.margin)
                cost = np.array([float(self.cost[self.sign == s].sum()) for s in sign])
            b = 0.5 * sum(bias_interval(np.zeros_like(sign), sign, target, cost, self.h))
        return float(self.cost @ self.h.value(self.target - self.sign * b))

    def _stationarity_off(self, apart: float) -> float:
        """How much further w is from Σ alpha sign x than the gap allows: ‖w − Σ alpha sign x‖² ≤ 2 (P − D)."""
        w = self.claim.coef
        off = float(np.linalg.norm(np.maximum(0.0, np.abs(w - self.induced) - self.rounding)))
        excess = max(0.0, off - math.sqrt(2.0 * apart))
        return excess / max(float(np.linalg.norm(w)), float(np.linalg.norm(self.rounding)), 1e-300)

    def _intercept_off(self) -> float:
        claim, b = self.claim, self.claim.intercept
        if not claim.fit_intercept:
            return abs(b)
        rounding = 1e-9 * max(1.0, float(np.abs(self.scores).max()))
        size = max(abs(b), rounding)
        if claim.penalty_scale:
            # (b/scale − scale Σ alpha sign)² ≤ 2 (P − D), as for w
            apart = math.sqrt(2.0 * max(0.0, claim.primal - claim.dual) + 2e-13 * abs(claim.primal))
            off = abs(b - claim.penalty_scale**2 * float((self.sign * self.alpha).sum()))
            return max(0.0, off - rounding - apart * claim.penalty_scale) / size
        if self.hard:
            low = float((1.0 - self.scores[self.live & (self.sign > 0)]).max())
            high = float((-1.0 - self.scores[self.live & (self.sign < 0)]).min())
        else:
            low, high = bias_interval(self.scores, self.sign, self.target, self.cost, self.h)
        if self.h.corners or self.hard:
            return max(0.0, abs(b - 0.5 * (low + high)) - rounding) / size
        return max(0.0, b - high - rounding, low - b - rounding) / size


def plain_matrix(X: Any) -> Any:
    """X in float64: CSR if it is sparse, an array otherwise."""
    if sp.issparse(X):
        check_positions(X)
        return sp.csr_array(X).astype(np.float64)
    return np.asarray(X, dtype=np.float64)


def rejected(check: str, tolerance: float) -> Verdict:
    """A verdict on something that cannot even be computed."""
    nan = math.nan
    return Verdict(False, check, math.inf, tolerance, {check: math.inf}, nan, nan, nan, nan)

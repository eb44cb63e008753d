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
    data, up to rounding), ``coef`` and ``intercept`` have objective ``primal``, and ‖w − w*‖ ≤ √(2 (primal − dual)).

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
    classes: NDArray[Any]
    class_weight: dict[Any, float] | str | None = None
    fit_intercept: bool = True
    penalty_scale: float | None = None

    @property
    def distance_bound(self) -> float:
        """Largest possible ‖w − w*‖."""
        return math.sqrt(2.0 * max(0.0, self.primal - self.dual))

    def verify(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, tolerance: float = 1e-6) -> Verdict:
        """Recompute primal, dual, gap and optimality conditions from data, hyperplane and dual point."""
        if sp.issparse(X):
            check_positions(X)
        X = sp.csr_array(X).astype(np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        labels = np.asarray(y).ravel()
        shape = (len(labels), len(self.coef))
        weight = np.asarray(1.0 if sample_weight is None else sample_weight, dtype=np.float64)
        if X.shape != shape or len(self.alpha) != len(labels) or weight.shape not in ((), (len(labels),)):
            return _rejected("shape", tolerance)
        if len(self.classes) != 2 or not np.isin(labels, self.classes).all():
            return _rejected("labels", tolerance)
        if self.loss not in ("hinge", "squared_hinge"):
            return _rejected("loss", tolerance)
        sign = np.where(labels == self.classes[1], 1.0, -1.0)
        cost = self._costs(sign, np.broadcast_to(weight, sign.shape))
        numbers = (self.primal, self.dual, self.gap, self.intercept)
        values = X.data if sp.issparse(X) else X
        if not all(np.isfinite(part).all() for part in (values, cost, self.coef, self.alpha, numbers)):
            return _rejected("finite", tolerance)
        if self.C <= 0.0 or cost.min() < 0.0 or not (cost[sign > 0].any() and cost[sign < 0].any()):
            return _rejected("weights", tolerance)
        return self._check(X, sign, cost, tolerance)

    def _costs(self, sign: Vector, weight: Vector) -> Vector:
        factor = {-1.0: 1.0, 1.0: 1.0}
        if isinstance(self.class_weight, str):
            total = {s: float(weight[sign == s].sum()) for s in factor}
            factor = {s: 0.5 * sum(total.values()) / total[s] if total[s] > 0.0 else 0.0 for s in factor}
        elif self.class_weight is not None:
            pairs = zip((-1.0, 1.0), self.classes.tolist(), strict=True)
            factor = {s: float(self.class_weight.get(label, 1.0)) for s, label in pairs}
        return self.C * weight * np.where(sign > 0, factor[1.0], factor[-1.0])

    def _check(self, X: Any, sign: Vector, cost: Vector, tolerance: float) -> Verdict:
        squared = self.loss == "squared_hinge"
        alpha = self._feasible(sign, cost, squared)
        w, b = self.coef, self.intercept
        pull = sign * alpha
        induced = np.asarray(X.T @ pull).ravel()
        scores = np.asarray(X @ w).ravel()
        slack = np.maximum(0.0, 1.0 - sign * (scores + b))
        scale = self.penalty_scale
        penalty = 0.5 * (b / scale) ** 2 if scale else 0.0
        primal = 0.5 * float(w @ w) + penalty + float(cost @ (slack**2 if squared else slack))
        live = cost > 0.0
        dual_bias = 0.5 * (scale * float(pull.sum())) ** 2 if scale else 0.0
        dual = float(alpha.sum()) - 0.5 * float(induced @ induced) - dual_bias
        if squared:
            dual -= float((alpha[live] * (alpha[live] / (4.0 * cost[live]))).sum())
        size = max(abs(primal), abs(dual), 1e-10 * self._null_primal(sign, cost), 1e-300)
        checks = {
            "feasibility": float(np.abs(alpha - self.alpha).max() / max(float(np.abs(alpha).max()), 1e-300)),
            "stationarity": _beyond_rounding(X, alpha, induced, w),
            "primal value": abs(primal - self.primal) / size,
            "dual value": abs(dual - self.dual) / size,
            "gap": max(0.0, (primal - dual) / size - self.gap, self.gap - (primal - dual) / size - 1e-12),
            "weak duality": max(0.0, (dual - primal) / size),
            **self._bias_checks(scores, sign, cost, pull, squared),
        }
        over = np.maximum(0.0, sign * (scores + b) - 1.0)
        products = float(alpha @ over)
        if squared:
            products += float((cost[live] * (slack[live] - alpha[live] / (2.0 * cost[live])) ** 2).sum())
        else:
            products += float((cost - alpha) @ slack)
        worst = max(checks, key=lambda k: checks[k])
        return Verdict(
            accepted=all(bool(violation <= tolerance) for violation in checks.values()),
            worst=worst,
            violation=checks[worst],
            tolerance=tolerance,
            checks=checks,
            primal=primal,
            dual=dual,
            gap=max(0.0, (primal - dual) / size),
            complementarity=products / size,
        )

    def _feasible(self, sign: Vector, cost: Vector, squared: bool) -> Vector:
        """The nearest point that is certainly feasible: clipped to the box, the heavier class scaled down."""
        alpha = np.clip(self.alpha, 0.0, np.where(cost > 0.0, np.inf, 0.0) if squared else cost)
        if self.fit_intercept and not self.penalty_scale:
            plus, minus = float(alpha[sign > 0].sum()), float(alpha[sign < 0].sum())
            if plus > minus:
                alpha[sign > 0] *= minus / plus
            elif minus > plus:
                alpha[sign < 0] *= plus / minus
        return alpha

    def _null_primal(self, sign: Vector, cost: Vector) -> float:
        """The objective at w = 0 with the best constant bias, in closed form."""
        plus, minus = float(cost[sign > 0].sum()), float(cost[sign < 0].sum())
        if not self.fit_intercept or self.penalty_scale:
            return plus + minus
        if self.loss == "hinge":
            return 2.0 * min(plus, minus)
        return 4.0 * plus * (minus / (plus + minus))

    def _bias_checks(self, scores: Vector, sign: Vector, cost: Vector, pull: Vector, squared: bool) -> dict[str, float]:
        b = self.intercept
        if not self.fit_intercept:
            return {"intercept": abs(b)}
        rounding = 1e-9 * max(1.0, float(np.abs(scores).max()))
        if self.penalty_scale:
            off = abs(b - self.penalty_scale**2 * float(pull.sum()))
            return {"intercept": max(0.0, off - rounding) / max(abs(b), rounding)}
        best = _best_bias(scores, sign, cost, squared)
        return {"intercept": max(0.0, abs(b - best) - rounding) / max(abs(b), rounding)}


def _rejected(check: str, tolerance: float) -> Verdict:
    nan = math.nan
    return Verdict(False, check, math.inf, tolerance, {check: math.inf}, nan, nan, nan, nan)


def _beyond_rounding(X: Any, alpha: Vector, induced: Vector, w: Vector) -> float:
    """‖w − Σ alpha y x‖ beside ‖w‖, less what rounding of each column's sum can cause."""
    rounding = 64.0 * float(np.finfo(np.float64).eps) * np.asarray(abs(X).T @ np.abs(alpha)).ravel()
    off = float(np.linalg.norm(np.maximum(0.0, np.abs(w - induced) - rounding)))
    return off / max(float(np.linalg.norm(w)), float(np.linalg.norm(rounding)), 1e-300)


def _best_bias(scores: Vector, sign: Vector, cost: Vector, squared: bool) -> float:
    """Midpoint of the biases that minimise the loss, by bisection on its slope."""
    point = sign - scores
    reach = 1.0 + float(np.abs(point).max())
    flat = 1e-12 * float(cost.sum()) * (reach if squared else 1.0)

    def slope(b: float) -> float:
        short = 1.0 - sign * (scores + b)
        power = 2.0 * np.maximum(short, 0.0) if squared else (short > 0.0)
        return float(-(cost * sign) @ power)

    def first_above(level: float) -> float:
        low, high = -reach, reach
        while high - low > 1e-15 * reach and low < 0.5 * (low + high) < high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if slope(middle) > level else (middle, high)
        return 0.5 * (low + high)

    return 0.5 * (first_above(-flat) + first_above(flat))

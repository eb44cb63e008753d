"""Proof that a hyperplane is within a stated gap of the best one.

Weak duality: for every (w, b) and every feasible alpha, P(w, b) ≥ D(alpha). So the pair (w, b), alpha proves that no
hyperplane has an objective below D(alpha), and that this one is within P − D of the best. Checking it takes
two matrix products; nothing of the solvers, the losses or the core is used here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

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
                f"verified: no hyperplane has an objective below {self.dual:.10g}; this one has {self.primal:.10g}, "
                f"within a fraction {self.gap:.1e} of the best"
            )
        return f"REJECTED: the check '{self.worst}' is violated by {self.violation:.2e} (allowed: {self.tolerance:.0e})"


@dataclass(frozen=True)
class OptimalityCertificate:
    """What a fit claims: a hyperplane, a dual point, and how far apart their objectives are.

    Solves nothing; :meth:`verify` recomputes everything from the data.

    Guarantees
    ----------
    If ``verify`` accepts, every hyperplane's objective is at least ``dual`` and ``coef``, ``intercept`` have
    objective ``primal`` (weak duality; no hypothesis on the data), so ‖w − w*‖ ≤ √(2 (primal − dual)).

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
    classes: tuple[Any, Any]
    class_weight: dict[Any, float] | str | None = None
    fit_intercept: bool = True
    penalty_scale: float | None = None
    null_primal: float = field(default=0.0, repr=False)

    @property
    def distance_bound(self) -> float:
        """Largest possible ‖w − w*‖."""
        return math.sqrt(2.0 * max(0.0, self.primal - self.dual))

    def verify(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, tolerance: float = 1e-6) -> Verdict:
        """Recompute primal, dual, gap and optimality conditions from data, hyperplane and dual point."""
        X = sp.csr_array(X).astype(np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        labels = np.asarray(y).ravel()
        n = X.shape[0]
        if X.shape[1] != len(self.coef) or len(labels) != n or len(self.alpha) != n:
            return _rejected("shape", math.inf, tolerance)
        if not np.isin(labels, np.asarray(self.classes)).all():
            return _rejected("labels", math.inf, tolerance)
        numbers = (self.primal, self.dual, self.gap, self.intercept)
        if not (np.isfinite(self.coef).all() and np.isfinite(self.alpha).all() and np.isfinite(numbers).all()):
            return _rejected("finite", math.inf, tolerance)
        sign = np.where(labels == self.classes[1], 1.0, -1.0)
        cost = self._costs(sign, sample_weight)
        return self._check(X, sign, cost, tolerance)

    def _costs(self, sign: Vector, sample_weight: ArrayLike | None) -> Vector:
        weight = np.ones_like(sign) if sample_weight is None else np.broadcast_to(sample_weight, sign.shape)
        weight = np.asarray(weight, dtype=np.float64)
        factor = {-1.0: 1.0, 1.0: 1.0}
        if self.class_weight == "balanced":
            factor = {s: 0.5 * weight.sum() / weight[sign == s].sum() for s in factor}
        elif isinstance(self.class_weight, dict):
            factor = {s: self.class_weight.get(c, 1.0) for s, c in zip((-1.0, 1.0), self.classes, strict=True)}
        return self.C * weight * np.where(sign > 0, factor[1.0], factor[-1.0])

    def _check(self, X: Any, sign: Vector, cost: Vector, tolerance: float) -> Verdict:
        w, b, alpha = self.coef, self.intercept, self.alpha
        pull = sign * alpha
        induced = np.asarray(X.T @ pull).ravel()
        scores = np.asarray(X @ w).ravel()
        slack = np.maximum(0.0, 1.0 - sign * (scores + b))
        squared = self.loss == "squared_hinge"
        scale = self.penalty_scale
        penalty = 0.5 * (b / scale) ** 2 if scale else 0.0
        primal = 0.5 * float(w @ w) + penalty + float(cost @ (slack**2 if squared else slack))
        live = cost > 0.0
        dual_bias = 0.5 * (scale * float(pull.sum())) ** 2 if scale else 0.0
        dual = float(alpha.sum()) - 0.5 * float(induced @ induced) - dual_bias
        if squared:
            dual -= float((alpha[live] ** 2 / (4.0 * cost[live])).sum())
        size = max(abs(primal), abs(dual), 1e-10 * self.null_primal, 1e-300)
        checks = {
            "box": self._box(alpha, cost, squared),
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
            accepted=bool(checks[worst] <= tolerance),
            worst=worst,
            violation=checks[worst],
            tolerance=tolerance,
            checks=checks,
            primal=primal,
            dual=dual,
            gap=max(0.0, (primal - dual) / size),
            complementarity=products / size,
        )

    def _box(self, alpha: Vector, cost: Vector, squared: bool) -> float:
        """Largest relative excess over 0 ≤ alpha_i ≤ cost_i (squared hinge: only rows of cost 0 have a bound)."""
        size = max(float(cost.max()), float(np.abs(alpha).max()), 1e-300)
        below = float(np.maximum(0.0, -alpha).max())
        bound = np.where(cost > 0.0, np.inf, 0.0) if squared else cost
        return max(below, float(np.maximum(0.0, alpha - bound).max())) / size

    def _bias_checks(self, scores: Vector, sign: Vector, cost: Vector, pull: Vector, squared: bool) -> dict[str, float]:
        b = self.intercept
        if not self.fit_intercept:
            return {"intercept": abs(b)}
        rounding = 1e-9 * max(1.0, float(np.abs(scores).max()))
        if self.penalty_scale:
            off = abs(b - self.penalty_scale**2 * float(pull.sum()))
            return {"intercept": max(0.0, off - rounding) / max(abs(b), rounding)}
        total = max(float(self.alpha.sum()), 1e-300)
        best = _best_bias(scores, sign, cost, squared)
        return {
            "balance": abs(float(pull.sum())) / total,
            "intercept": max(0.0, abs(b - best) - rounding) / max(abs(b), rounding),
        }


def _rejected(check: str, violation: float, tolerance: float) -> Verdict:
    nan = math.nan
    return Verdict(False, check, violation, tolerance, {check: violation}, nan, nan, nan, nan)


def _beyond_rounding(X: Any, alpha: Vector, induced: Vector, w: Vector) -> float:
    """‖w − Σ alpha y x‖ beside ‖w‖, less what rounding of so large a sum can cause."""
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    rounding = 64.0 * float(np.finfo(np.float64).eps) * float(np.abs(alpha) @ np.sqrt(squares))
    off = float(np.linalg.norm(w - induced))
    return max(0.0, off - rounding) / max(float(np.linalg.norm(w)), rounding, 1e-300)


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

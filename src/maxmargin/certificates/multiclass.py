"""Proofs for machines of more than two classes: one certificate per hyperplane, or one for all of them together."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from maxmargin.certificates.arithmetic import class_costs
from maxmargin.certificates.optimality import OptimalityCertificate, Verdict, plain_matrix, rejected

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CombinedCertificate:
    """The certificates of one machine per class (``scheme="ovr"``) or per pair of classes (``"ovo"``).

    Each part is about labels False and True ("ovr": is it this class?) or about the pair's own labels.

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
    class_weight: dict[Any, float] | str | None = None

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

    def verify(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, tolerance: float = 1e-6) -> Verdict:
        """Verify every part; the verdict is that of the worst one, with sums of the objective values."""
        X, labels = plain_matrix(X), np.asarray(y).ravel()
        if X.shape[0] != len(labels) or not np.isin(labels, self.classes).all():
            return rejected("labels", tolerance)
        weight = np.asarray(1.0 if sample_weight is None else sample_weight, dtype=np.float64)
        if weight.shape not in ((), (len(labels),)):
            return rejected("shape", tolerance)
        position = np.searchsorted(self.classes, labels)
        weight = class_costs(np.broadcast_to(weight, labels.shape), position, self.classes.tolist(), self.class_weight)
        if len(self.parts) != len(self._jobs()) or any(len(part.alpha) != len(labels) for part in self.parts):
            return rejected("shape", tolerance)
        verdicts = [
            self._verify_part(part, job, X, position, weight, tolerance)
            for part, job in zip(self.parts, self._jobs(), strict=True)
        ]
        worst = max(verdicts, key=lambda v: v.violation)
        return replace(
            worst,
            accepted=all(v.accepted for v in verdicts),
            primal=sum(v.primal for v in verdicts),
            dual=sum(v.dual for v in verdicts),
            gap=max(v.gap for v in verdicts),
            complementarity=max(v.complementarity for v in verdicts),
        )

    def _jobs(self) -> list[tuple[int, ...]]:
        n = len(self.classes)
        return [(k,) for k in range(n)] if self.scheme == "ovr" else list(itertools.combinations(range(n), 2))

    def _verify_part(
        self, part: OptimalityCertificate, job: tuple[int, ...], X: Any, position: NDArray[np.intp], weight: Vector,
        tolerance: float,
    ) -> Verdict:  # fmt: skip
        if len(job) == 1:
            own = replace(part, classes=np.array([False, True]), class_weight=None)
            return own.verify(X, position == job[0], weight, tolerance=tolerance)
        chosen = np.flatnonzero((position == job[0]) | (position == job[1]))
        own = replace(part, classes=np.array([False, True]), class_weight=None, alpha=part.alpha[chosen])
        return own.verify(X[chosen], position[chosen] == job[1], weight[chosen], tolerance=tolerance)


@dataclass(frozen=True, eq=False)
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
    class_weight: dict[Any, float] | str | None = None
    fit_intercept: bool = True
    penalty_scale: float | None = None

    @property
    def distance_bound(self) -> float:
        """Largest possible distance of all weights together from the optimal ones."""
        return math.sqrt(2.0 * max(0.0, self.primal - self.dual))

    def verify(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, tolerance: float = 1e-6) -> Verdict:
        """Recompute primal, dual and gap from data, hyperplanes and dual point."""
        X, labels = plain_matrix(X), np.asarray(y).ravel()
        k = len(self.classes)
        weight = np.asarray(1.0 if sample_weight is None else sample_weight, dtype=np.float64)
        shapes = (
            self.coef.shape == (k, X.shape[-1]),
            self.intercept.shape == (k,),
            self.alpha.shape == (len(labels), k),
        )
        if X.ndim != 2 or X.shape[0] != len(labels) or weight.shape not in ((), (len(labels),)) or not all(shapes):
            return rejected("shape", tolerance)
        if not np.isin(labels, self.classes).all():
            return rejected("labels", tolerance)
        if self.loss not in ("crammer_singer", "multinomial"):
            return rejected("loss", tolerance)
        position = np.searchsorted(self.classes, labels)
        weight = class_costs(np.broadcast_to(weight, labels.shape), position, self.classes.tolist(), self.class_weight)
        numbers = (self.primal, self.dual, self.gap)
        values = X.data if sp.issparse(X) else X
        parts = (values, weight, self.coef, self.intercept, self.alpha, numbers)
        if not all(np.isfinite(part).all() for part in parts):
            return rejected("finite", tolerance)
        if not 0.0 < self.C < np.inf or weight.min() < 0.0 or not weight.any():
            return rejected("weights", tolerance)
        return self._check(X, position, self.C * weight, tolerance)

    def _check(self, X: Any, position: NDArray[np.intp], cost: Vector, tolerance: float) -> Verdict:
        rows = np.arange(len(cost))
        share = self._simplex(position, cost)
        alpha = -cost[:, None] * share
        alpha[rows, position] += cost
        scores = np.asarray(X @ self.coef.T) + self.intercept
        induced = np.asarray(X.T @ alpha).T
        sums = alpha.sum(axis=0)
        primal = 0.5 * float((self.coef**2).sum()) + float(cost @ self._loss(scores, position))
        dual = -0.5 * float((induced**2).sum()) - float(cost @ self._conjugate(share, position))
        size_of_alpha = max(float(np.abs(alpha).sum()), 1e-300)
        balance, intercept = 0.0, 0.0
        if self.penalty_scale and self.fit_intercept:
            primal += 0.5 * float((self.intercept**2).sum()) / self.penalty_scale**2
            dual -= 0.5 * self.penalty_scale**2 * float((sums**2).sum())
        elif self.fit_intercept:
            balance = float(np.abs(sums).max()) / size_of_alpha
        else:
            intercept = float(np.abs(self.intercept).max())
        null = float(cost @ self._loss(np.zeros_like(scores), position))
        size = max(abs(primal), abs(dual), 1e-10 * null, 1e-300)
        gap = (primal - dual) / size
        checks = {
            "feasibility": float(np.abs(alpha - self.alpha).max()) / max(float(np.abs(alpha).max()), 1e-300),
            # What remains of Σ alpha = 0 must be rounding: biases of usual size could gain no more than this.
            "balance": balance * max(1.0, float(np.abs(self.intercept).max())) * 1e3,
            "intercept": intercept,
            "primal value": abs(primal - self.primal) / size,
            "dual value": abs(dual - self.dual) / size,
            "gap": max(0.0, gap - self.gap, self.gap - gap - 1e-12),
            "weak duality": max(0.0, -gap),
            "stationarity": self._stationarity_off(X, alpha, induced, size),
        }
        worst = max(checks, key=lambda name: checks[name])
        return Verdict(
            accepted=all(bool(violation <= tolerance) for violation in checks.values()),
            worst=worst,
            violation=checks[worst],
            tolerance=tolerance,
            checks=checks,
            primal=primal,
            dual=dual,
            gap=max(0.0, gap),
            complementarity=max(0.0, (primal - dual - 0.5 * float(((self.coef - induced) ** 2).sum())) / size),
        )

    def _simplex(self, position: NDArray[np.intp], cost: Vector) -> Vector:
        """The points p_i of the simplex nearest to what the multipliers say: none negative, sums 1."""
        live = cost > 0.0
        share = np.zeros_like(self.alpha)
        share[live] = np.maximum(-self.alpha[live] / cost[live, None], 0.0)
        rows = np.arange(len(cost))
        share[rows, position] = 0.0
        others = share.sum(axis=1)
        share /= np.maximum(1.0, others)[:, None]
        share[rows, position] = 1.0 - np.minimum(others, 1.0)
        return share

    def _loss(self, scores: Vector, position: NDArray[np.intp]) -> Vector:
        rows = np.arange(len(position))
        own = scores[rows, position]
        if self.loss == "multinomial":
            top = scores.max(axis=1)
            return np.asarray(top + np.log(np.exp(scores - top[:, None]).sum(axis=1)) - own)
        raised = scores + 1.0
        raised[rows, position] -= 1.0
        return np.asarray(raised.max(axis=1) - own)

    def _conjugate(self, share: Vector, position: NDArray[np.intp]) -> Vector:
        if self.loss == "multinomial":
            return np.asarray(np.where(share > 0.0, share * np.log(np.where(share > 0.0, share, 1.0)), 0.0).sum(axis=1))
        return share[np.arange(len(position)), position] - 1.0

    def _stationarity_off(self, X: Any, alpha: Vector, induced: Vector, size: float) -> float:
        """How much further the weights are from Σ alpha x than the gap allows."""
        rounding = 64.0 * float(np.finfo(np.float64).eps) * np.asarray(abs(X).T @ np.abs(alpha)).T
        off = float(np.linalg.norm(np.maximum(0.0, np.abs(self.coef - induced) - rounding)))
        apart = max(0.0, self.primal - self.dual) + 1e-13 * size
        norm = max(float(np.linalg.norm(self.coef)), float(np.linalg.norm(rounding)), 1e-300)
        return max(0.0, off - math.sqrt(2.0 * apart)) / norm

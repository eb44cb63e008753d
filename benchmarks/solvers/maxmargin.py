"""maxmargin's own machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.forms import FORMS, REGRESSION, SEVERAL, TWO, Form
from benchmarks.solvers.base import BaseSolver, Setting, Vector

DEFAULT = Setting("default")


def at(tol: float) -> Setting:
    """The setting that promises the given accuracy, no more."""
    return Setting("tol", {"tol": tol})


def reference(max_seconds: float) -> Setting:
    """The setting for the certified optimum everyone is measured against; its time counts for nothing."""
    return Setting("reference", {"tol": 1e-10, "max_seconds": max_seconds})


class Solver(BaseSolver):
    name = "maxmargin"
    distribution = "maxmargin"
    module = "maxmargin"
    forms = tuple(FORMS)
    kinds = (TWO, SEVERAL, REGRESSION)

    def supports(self, form: Form, kind: str, sparse: bool) -> bool:
        return kind in self.kinds and form.fits(kind)

    def settings(self, form: Form) -> list[Setting]:
        return [*(at(tol) for tol in (1e-2, 1e-3, 1e-4)), DEFAULT]

    def fit(self, X: Any, y: Vector, C: float, form: Form, setting: Setting) -> Vector:
        self._machine = machine(C, form, setting.options).fit(X, y)
        return np.asarray(self._machine.coef_)

    def score(self, X: Any, y: Vector) -> float:
        return float(self._machine.score(X, y))

    def details(self, X: Any, y: Vector) -> dict[str, Any]:
        solution, verdict = self._machine.solution_, self._machine.certificate_.verify(X, y)
        many = hasattr(solution, "parts")  # then the gaps are those of the sums, as everything else here
        return {
            "primal": solution.primal,
            "dual": solution.dual,
            "gap": _of_sums(solution) if many else solution.gap,
            "status": solution.status.name,
            "solver": solution.solver,
            "reason": solution.reason,
            "iterations": solution.n_iter,
            "verified": bool(verdict),
            "verified_gap": _of_sums(verdict) if many else verdict.gap,
        }


def machine(C: float, form: Form, options: Any) -> Any:
    """The class for this form, not yet fitted."""
    from maxmargin import LinearSVC, LinearSVR, LogisticRegression

    if form.regression:
        return LinearSVR(C=C, loss=form.loss, epsilon=form.epsilon, **options)
    if form.loss in ("logistic", "multinomial"):
        scheme = "multinomial" if form.joint else _split(form)
        return LogisticRegression(C=C, penalty=form.penalty, multi_class=scheme, **options)
    if form.loss == "crammer_singer":
        return LinearSVC(C=C, multi_class="crammer_singer", **options)
    loss = form.power or form.loss
    return LinearSVC(C=C, loss=loss, penalty=form.penalty, multi_class=_split(form), **options)


def _split(form: Form) -> str:
    return "ovo" if form.pairs else "ovr"


def _of_sums(values: Any) -> float:
    """Relative gap of primal and dual values summed over all machines."""
    return float((values.primal - values.dual) / values.primal)

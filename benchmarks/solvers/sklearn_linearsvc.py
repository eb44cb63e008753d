"""sklearn.svm.LinearSVC: scikit-learn's copy of LIBLINEAR. Same objective, but the bias is penalised."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.forms import SEVERAL, TWO, Form
from benchmarks.solvers.base import INTERCEPT_SCALINGS, BaseSolver, Setting, Vector, exhausted

# (tol, max_iter): the default is (1e-4, 1000). Later rungs let the tolerance decide, not the iteration limit.
DUAL = (
    *((1e-1, 100), (1e-1, 300), (1e-1, 1000), (1e-2, 1000), (1e-3, 1000), (1e-4, 1000)),
    *((1e-4, 3000), (1e-4, 10**4), (1e-6, 10**5), (1e-8, 10**6)),
)
JOINT = tuple((tol, 10**5) for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8))  # its own limit, whatever is asked for
PRIMAL = ((1e-2, 1000), (1e-3, 1000), (1e-4, 1000), (1e-6, 1000), (1e-8, 10**5))
LADDERS: dict[str, list[tuple[bool, Any]]] = {
    "hinge": [(True, DUAL)],
    "squared_hinge": [(False, PRIMAL), (True, DUAL)],
    "squared_hinge-l1": [(False, PRIMAL)],
    "crammer_singer": [(True, JOINT)],
}


class Solver(BaseSolver):
    name = "sklearn_linearsvc"
    distribution = "scikit-learn"
    module = "sklearn"
    forms = tuple(LADDERS)
    kinds = (TWO, SEVERAL)

    def settings(self, form: Form) -> list[Setting]:
        return [
            Setting(
                f"dual={dual}, scaling {scaling:g}",
                {"dual": dual, "intercept_scaling": scaling, "tol": tol, "max_iter": max_iter},
            )
            for dual, ladder in LADDERS[form.name]
            for scaling in INTERCEPT_SCALINGS
            for tol, max_iter in ladder
        ]

    def fit(self, X: Any, y: Vector, C: float, form: Form, setting: Setting) -> Vector:
        from sklearn.svm import LinearSVC

        what = {"multi_class": form.loss} if form.joint else {"loss": form.loss, "penalty": form.penalty}
        self._machine = LinearSVC(C=C, random_state=0, **what, **setting.options).fit(X, y)
        return np.asarray(self._machine.coef_)

    def score(self, X: Any, y: Vector) -> float:
        return float(self._machine.score(X, y))

    def details(self, X: Any, y: Vector) -> dict[str, Any]:
        return exhausted(self._machine)

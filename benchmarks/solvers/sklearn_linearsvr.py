"""sklearn.svm.LinearSVR: scikit-learn's copy of LIBLINEAR for regression. Same objective, but the bias is penalised."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.forms import REGRESSION, Form
from benchmarks.solvers.base import INTERCEPT_SCALINGS, BaseSolver, Setting, Vector, exhausted
from benchmarks.solvers.sklearn_linearsvc import DUAL, PRIMAL


class Solver(BaseSolver):
    name = "sklearn_linearsvr"
    distribution = "scikit-learn"
    module = "sklearn"
    forms = ("epsilon_insensitive", "squared_epsilon_insensitive")
    kinds = (REGRESSION,)

    def settings(self, form: Form) -> list[Setting]:
        ladders = [(True, DUAL)] if form.loss == "epsilon_insensitive" else [(False, PRIMAL), (True, DUAL)]
        return [
            Setting(
                f"dual={dual}, scaling {scaling:g}",
                {"dual": dual, "intercept_scaling": scaling, "tol": tol, "max_iter": max_iter},
            )
            for dual, ladder in ladders
            for scaling in INTERCEPT_SCALINGS
            for tol, max_iter in ladder
        ]

    def fit(self, X: Any, y: Vector, C: float, form: Form, setting: Setting) -> Vector:
        from sklearn.svm import LinearSVR

        machine = LinearSVR(C=C, loss=form.loss, epsilon=form.epsilon, random_state=0, **setting.options)
        self._machine = machine.fit(X, y)
        return np.asarray(machine.coef_)

    def score(self, X: Any, y: Vector) -> float:
        return float(self._machine.score(X, y))

    def details(self, X: Any, y: Vector) -> dict[str, Any]:
        return exhausted(self._machine)

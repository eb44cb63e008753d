"""cyanure.estimators: (1/n) Σ ℓ + R(w), with ℓ = ½ max(0, 1 − y f)² or ln(1 + exp(−y f)) and R = ½ λ ‖w‖² or λ ‖w‖₁.

So λ = 1/(2 n C) for the squared hinge and 1/(n C) for the logistic loss. The bias is not penalised.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.forms import Form
from benchmarks.solvers.base import BaseSolver, Setting, Vector, exhausted

ALGORITHMS = ("auto", "qning-miso", "catalyst-miso", "qning-ista")
# (tol, max_iter): the default is (1e-3, 500).
LADDER = ((1e-2, 500), (1e-3, 500), (1e-4, 500), (1e-6, 5000), (1e-8, 50000))


class Solver(BaseSolver):
    name = "cyanure"
    distribution = "cyanure"
    module = "cyanure"
    forms = ("squared_hinge", "logistic", "squared_hinge-l1", "logistic-l1")

    def settings(self, form: Form) -> list[Setting]:
        return [
            Setting(algorithm, {"solver": algorithm, "tol": tol, "max_iter": max_iter})
            for algorithm in ALGORITHMS
            for tol, max_iter in LADDER
        ]

    def fit(self, X: Any, y: Vector, C: float, form: Form, setting: Setting) -> Vector:
        from cyanure.estimators import LinearSVC, LogisticRegression

        squared = form.loss == "squared_hinge"
        machine = (LinearSVC if squared else LogisticRegression)(
            lambda_1=1.0 / ((2.0 if squared else 1.0) * X.shape[0] * C),
            penalty=form.penalty,
            fit_intercept=True,
            verbose=False,
            **setting.options,
        )
        self._machine = machine.fit(X, y)
        return np.asarray(machine.coef_, dtype=np.float64).ravel()

    def details(self, X: Any, y: Vector) -> dict[str, Any]:
        return exhausted(self._machine)

"""sklearn.linear_model.LogisticRegression, all of its algorithms that can solve the form. Same objective.

The bias is free, except with the algorithm "liblinear". "newton-cholesky" holds a square matrix of all columns (of all
classes), so it is left out where that would take more than 2 GB.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.forms import SEVERAL, TWO, Form
from benchmarks.solvers.base import INTERCEPT_SCALINGS, BaseSolver, Setting, Vector, exhausted

LARGEST_MATRIX = 16_000  # lines

# (tol, max_iter): the default is (1e-4, 100).
LBFGS = ((1e-1, 10**4), (1e-2, 10**4), (1e-3, 10**4), (1e-4, 10**4), (1e-6, 10**5), (1e-8, 10**5))
NEWTON = ((1e-2, 100), (1e-4, 100), (1e-6, 100), (1e-8, 1000))
SAGA = ((1e-2, 1000), (1e-3, 1000), (1e-4, 10**4), (1e-6, 10**5), (1e-8, 10**6))
LIBLINEAR = ((1e-1, 1000), (1e-2, 1000), (1e-3, 1000), (1e-4, 1000), (1e-6, 10**5), (1e-8, 10**6))
FREE: dict[str, dict[str, Any]] = {
    "logistic": {"lbfgs": LBFGS, "newton-cholesky": NEWTON, "newton-cg": NEWTON},
    "multinomial": {"lbfgs": LBFGS, "newton-cholesky": NEWTON, "newton-cg": NEWTON},
    "logistic-l1": {"saga": SAGA},
}


class Solver(BaseSolver):
    name = "sklearn_logistic"
    distribution = "scikit-learn"
    module = "sklearn"
    forms = tuple(FREE)
    kinds = (TWO, SEVERAL)

    def supports(self, form: Form, kind: str, sparse: bool) -> bool:
        return super().supports(form, kind, sparse) and form.joint == (kind == SEVERAL)

    def settings(self, form: Form) -> list[Setting]:
        free = [
            Setting(algorithm, {"solver": algorithm, "tol": tol, "max_iter": max_iter})
            for algorithm, ladder in FREE[form.name].items()
            for tol, max_iter in ladder
        ]
        if form.joint:
            return free
        return free + [
            Setting(
                f"liblinear, dual={dual}, scaling {scaling:g}",
                {"solver": "liblinear", "dual": dual, "intercept_scaling": scaling, "tol": tol, "max_iter": max_iter},
            )
            for dual in ((False, True) if form.penalty == "l2" else (False,))
            for scaling in INTERCEPT_SCALINGS
            for tol, max_iter in LIBLINEAR
        ]

    def fit(self, X: Any, y: Vector, C: float, form: Form, setting: Setting) -> Vector:
        from sklearn.linear_model import LogisticRegression

        lines = X.shape[1] * (int(y.max()) + 1 if form.joint else 1)
        if setting.options.get("solver") == "newton-cholesky" and lines > LARGEST_MATRIX:
            raise ValueError(f"a matrix of {lines} lines is too large")
        l1_ratio = 1.0 if form.penalty == "l1" else 0.0
        machine = LogisticRegression(C=C, l1_ratio=l1_ratio, random_state=0, **setting.options)
        self._machine = machine.fit(X, y)
        return np.asarray(machine.coef_)

    def score(self, X: Any, y: Vector) -> float:
        return float(self._machine.score(X, y))

    def details(self, X: Any, y: Vector) -> dict[str, Any]:
        return exhausted(self._machine)

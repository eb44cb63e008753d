"""skglm: (1/n) Σ ℓ + α ‖w‖₁, so α = 1/(n C). The bias is not penalised.

Its code is compiled while it runs; the first fit, on tiny data of the same types, is not timed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.forms import Form
from benchmarks.solvers.base import BaseSolver, Setting, Vector, exhausted

# (tol, max_iter): the default is (1e-4, 20).
LADDER = ((1e-2, 100), (1e-3, 100), (1e-4, 100), (1e-6, 1000), (1e-8, 1000))


class Solver(BaseSolver):
    name = "skglm"
    distribution = "skglm"
    module = "skglm"
    forms = ("logistic-l1",)

    def settings(self, form: Form) -> list[Setting]:
        return [Setting("tol", {"tol": tol, "max_iter": max_iter}) for tol, max_iter in LADDER]

    def fit(self, X: Any, y: Vector, C: float, form: Form, setting: Setting) -> Vector:
        from skglm import SparseLogisticRegression

        machine = SparseLogisticRegression(alpha=1.0 / (X.shape[0] * C), fit_intercept=True, **setting.options)
        self._machine = machine.fit(X, y)
        return np.asarray(machine.coef_, dtype=np.float64).ravel()

    def details(self, X: Any, y: Vector) -> dict[str, Any]:
        return exhausted(self._machine)

"""cyanure.estimators.LinearSVC: (1/n) Σ ½ max(0, 1 − y f)² + ½ λ ‖w‖², so λ = 1/(2 n C).

The bias is not penalised.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.solvers.base import BaseSolver, Setting, Vector

ALGORITHMS = ("auto", "qning-miso", "catalyst-miso", "qning-ista")
# (tol, max_iter): the default is (1e-3, 500).
LADDER = ((1e-2, 500), (1e-3, 500), (1e-4, 500), (1e-6, 5000), (1e-8, 50000))


class Solver(BaseSolver):
    name = "cyanure"
    distribution = "cyanure"
    module = "cyanure"

    def supports(self, loss: str, sparse: bool) -> bool:
        return loss == "squared_hinge"

    def settings(self, loss: str) -> list[Setting]:
        return [
            Setting(algorithm, {"solver": algorithm, "tol": tol, "max_iter": max_iter})
            for algorithm in ALGORITHMS
            for tol, max_iter in LADDER
        ]

    def fit(self, X: Any, y: Vector, C: float, loss: str, setting: Setting) -> Vector:
        from cyanure.estimators import LinearSVC

        penalty = 1.0 / (2.0 * X.shape[0] * C)
        machine = LinearSVC(lambda_1=penalty, fit_intercept=True, verbose=False, **setting.options)
        self._machine = machine.fit(X, y)
        return np.asarray(machine.coef_, dtype=np.float64).ravel()

    def details(self, X: Any, y: Vector) -> dict[str, Any]:
        n_iter = int(np.max(self._machine.n_iter_))
        return {"iterations": n_iter, "iterations_exhausted": n_iter >= self._machine.max_iter}

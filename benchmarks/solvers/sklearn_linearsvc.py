"""sklearn.svm.LinearSVC: scikit-learn's copy of LIBLINEAR. Same objective, but the bias is penalised."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.solvers.base import INTERCEPT_SCALINGS, BaseSolver, Setting, Vector

# (tol, max_iter): the default is (1e-4, 1000). Later rungs let the tolerance decide, not the iteration limit.
DUAL = (
    *((1e-1, 100), (1e-1, 300), (1e-1, 1000), (1e-2, 1000), (1e-3, 1000), (1e-4, 1000)),
    *((1e-4, 3000), (1e-4, 10**4), (1e-6, 10**5), (1e-8, 10**6)),
)
PRIMAL = ((1e-2, 1000), (1e-3, 1000), (1e-4, 1000), (1e-6, 1000), (1e-8, 10**5))


class Solver(BaseSolver):
    name = "sklearn_linearsvc"
    distribution = "scikit-learn"
    module = "sklearn"

    def settings(self, loss: str) -> list[Setting]:
        ladders = [(True, DUAL)] if loss == "hinge" else [(False, PRIMAL), (True, DUAL)]
        return [
            Setting(
                f"dual={dual}, scaling {scaling:g}",
                {"dual": dual, "intercept_scaling": scaling, "tol": tol, "max_iter": max_iter},
            )
            for dual, ladder in ladders
            for scaling in INTERCEPT_SCALINGS
            for tol, max_iter in ladder
        ]

    def fit(self, X: Any, y: Vector, C: float, loss: str, setting: Setting) -> Vector:
        from sklearn.svm import LinearSVC

        self._machine = LinearSVC(C=C, loss=loss, random_state=0, **setting.options).fit(X, y)
        return np.asarray(self._machine.coef_[0])

    def details(self, X: Any, y: Vector) -> dict[str, Any]:
        n_iter = int(self._machine.n_iter_)
        return {"iterations": n_iter, "iterations_exhausted": n_iter >= self._machine.max_iter}

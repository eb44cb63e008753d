"""sklearn.linear_model.SGDClassifier as documented: (1/n) Σ ℓ + ½ α ‖w‖², so α = 1/(n C) for both losses.

Default step sizes, swept over its tolerance, with and without averaging. The bias is not penalised.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.solvers.base import BaseSolver, Setting, Vector

TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


class Solver(BaseSolver):
    name = "sgd"
    distribution = "scikit-learn"
    module = "sklearn"

    def settings(self, loss: str) -> list[Setting]:
        return [
            Setting(f"average={average}", {"average": average, "tol": tol})
            for average in (True, False)
            for tol in TOLERANCES
        ]

    def fit(self, X: Any, y: Vector, C: float, loss: str, setting: Setting) -> Vector:
        from sklearn.linear_model import SGDClassifier

        machine = SGDClassifier(
            loss=loss, alpha=1.0 / (X.shape[0] * C), max_iter=10**6, random_state=0, **setting.options
        )
        return np.asarray(machine.fit(X, y).coef_[0])

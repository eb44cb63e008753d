"""sklearn.linear_model.SGDClassifier as documented: (1/n) Σ ℓ + ½ α ‖w‖², so α = 1/(n C) for all losses.

Default step sizes, swept over its tolerance, with and without averaging. The bias is not penalised.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.forms import SEVERAL, TWO, Form
from benchmarks.solvers.base import BaseSolver, Setting, Vector, usable_cores

TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
LOSSES = {"hinge": "hinge", "squared_hinge": "squared_hinge", "logistic": "log_loss"}


class Solver(BaseSolver):
    name = "sgd"
    distribution = "scikit-learn"
    module = "sklearn"
    forms = tuple(LOSSES)
    kinds = (TWO, SEVERAL)

    def settings(self, form: Form) -> list[Setting]:
        return [
            Setting(f"average={average}", {"average": average, "tol": tol})
            for average in (True, False)
            for tol in TOLERANCES
        ]

    def fit(self, X: Any, y: Vector, C: float, form: Form, setting: Setting) -> Vector:
        from sklearn.linear_model import SGDClassifier

        machine = SGDClassifier(
            loss=LOSSES[form.loss],
            alpha=1.0 / (X.shape[0] * C),
            max_iter=10**6,
            random_state=0,
            n_jobs=usable_cores(),
            **setting.options,
        )
        return np.asarray(machine.fit(X, y).coef_)

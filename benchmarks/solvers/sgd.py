"""sklearn.linear_model.SGDClassifier with averaging: (1/n) Σ ℓ + ½ α ‖w‖², so α = 1/(n C) for both losses.

The bias is not penalised. There is no tolerance to trust, so the number of passes is the ladder (``tol=None``).
The schedule "adaptive" lowers its step only with a tolerance; it gets 0, and stops by itself at the smallest step.
"tail" averages over the second half of the passes only, which is nearly always the better average here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.solvers.base import BaseSolver, Setting

PASSES = (1, 2, 5, 10, 20, 50, 100, 1000)
SCHEDULES: tuple[tuple[str, float], ...] = (
    ("optimal", 0.0),
    ("invscaling", 0.1),
    ("invscaling", 1.0),
    ("invscaling", 0.01),
    ("adaptive", 0.001),
    ("adaptive", 0.01),
    ("adaptive", 0.1),
)


class Solver(BaseSolver):
    name = "sgd"
    distribution = "scikit-learn"
    module = "sklearn"

    def settings(self, loss: str) -> list[Setting]:
        return [
            Setting(
                f"{schedule} {eta0:g}, {average}",
                {"learning_rate": schedule, "eta0": eta0, "average": average, "max_iter": passes},
            )
            for average in ("tail", "all")
            for schedule, eta0 in SCHEDULES
            for passes in PASSES
        ]

    def fit(
        self, X: Any, y: NDArray[np.float64], C: float, loss: str, setting: Setting
    ) -> NDArray[np.float64]:
        from sklearn.linear_model import SGDClassifier

        options, n_rows = dict(setting.options), X.shape[0]
        tail = options["average"] == "tail"
        options["average"] = max(1, n_rows * options["max_iter"] // 2) if tail else True
        if options["learning_rate"] == "optimal":
            del options["eta0"]
        tol = 0.0 if options["learning_rate"] == "adaptive" else None
        machine = SGDClassifier(loss=loss, alpha=1.0 / (n_rows * C), tol=tol, random_state=0, **options).fit(
            X, y
        )
        return np.asarray(machine.coef_[0])

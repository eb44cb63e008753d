"""SGDClassifier with step sizes and averaging tuned in hindsight: (1/n) Σ ℓ + ½ α ‖w‖², α = 1/(n C).

Not part of the default run: nobody knows these settings beforehand. It shows the best that SGD could do.
The bias is not penalised. Its tolerance says little, so the ladder is the number of passes (``tol=None``).
The schedule "adaptive" lowers its step only if it has a tolerance; it gets 0 and stops at the smallest step.
"tail" averages over the second half of the passes only, nearly always the better average on these data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.forms import Form
from benchmarks.solvers.base import BaseSolver, Setting, Vector
from benchmarks.solvers.sgd import LOSSES

PASSES = (1, 2, 5, 10, 20, 50, 100, 1000)
GROUPS: tuple[tuple[str, str, float | None], ...] = (
    ("tail", "invscaling", 0.1),
    ("tail", "adaptive", 0.001),
    ("tail", "adaptive", 0.01),
    ("tail", "adaptive", 0.1),
    ("tail", "invscaling", 1.0),
    ("tail", "invscaling", 0.01),
    ("tail", "optimal", None),
    ("all", "optimal", None),
    ("all", "invscaling", 0.1),
    ("all", "adaptive", 0.001),
    ("all", "adaptive", 0.01),
)


class Solver(BaseSolver):
    name = "sgd_tuned"
    distribution = "scikit-learn"
    module = "sklearn"
    forms = tuple(LOSSES)

    def settings(self, form: Form) -> list[Setting]:
        return [
            Setting(
                f"{schedule} {eta0}, {average}",
                {"learning_rate": schedule, **_step(eta0), "average": average, "max_iter": passes},
            )
            for average, schedule, eta0 in GROUPS
            for passes in PASSES
        ]

    def fit(self, X: Any, y: Vector, C: float, form: Form, setting: Setting) -> Vector:
        from sklearn.linear_model import SGDClassifier

        options, n_rows = dict(setting.options), X.shape[0]
        tail = options["average"] == "tail"
        options["average"] = max(1, n_rows * options["max_iter"] // 2) if tail else True
        tol = 0.0 if options["learning_rate"] == "adaptive" else None
        alpha = 1.0 / (n_rows * C)
        machine = SGDClassifier(loss=LOSSES[form.loss], alpha=alpha, tol=tol, random_state=0, **options)
        return np.asarray(machine.fit(X, y).coef_[0])


def _step(eta0: float | None) -> dict[str, float]:
    return {} if eta0 is None else {"eta0": eta0}

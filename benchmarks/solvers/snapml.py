"""snapml (IBM Snap ML): r R(w) + Σ ℓ with R = ½‖w‖² or ‖w‖₁ and r the regularizer, so r = 1/C for all losses.

The bias is penalised. Data are rounded to float32 inside.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.forms import SEVERAL, TWO, Form
from benchmarks.solvers.base import INTERCEPT_SCALINGS, BaseSolver, Setting, Vector, usable_cores

# (tol, max_iter): the default is (1e-3, 1000).
LADDER = (
    *((tol, 1000) for tol in (1e-2, 1e-3, 1e-4)),
    *((1e-5, 10**4), (1e-6, 10**5), (1e-8, 10**6), (1e-10, 10**7)),
)


class Solver(BaseSolver):
    name = "snapml"
    distribution = "snapml"
    module = "snapml"
    forms = ("hinge", "squared_hinge", "logistic", "logistic-l1")
    kinds = (TWO, SEVERAL)

    def settings(self, form: Form) -> list[Setting]:
        ways = {"hinge": ({},), "squared_hinge": ({},), "logistic": ({"dual": True}, {"dual": False})}
        return [
            Setting(
                ", ".join([*(f"{k}={v}" for k, v in way.items()), f"scaling {scaling:g}"]),
                {**way, "n_jobs": usable_cores(), "intercept_scaling": scaling, "tol": tol, "max_iter": max_iter},
            )
            for way in ways.get(form.name, ({"dual": False},))
            for scaling in INTERCEPT_SCALINGS
            for tol, max_iter in LADDER
        ]

    def fit(self, X: Any, y: Vector, C: float, form: Form, setting: Setting) -> Vector:
        from snapml import LogisticRegression, SupportVectorMachine

        logistic = form.loss == "logistic"
        kind = LogisticRegression if logistic else SupportVectorMachine
        what = {"penalty": form.penalty} if logistic else {"loss": form.loss}
        machine = kind(regularizer=1.0 / C, fit_intercept=True, random_state=0, **what, **setting.options)
        return np.asarray(machine.fit(X, y).coef_, dtype=np.float64)

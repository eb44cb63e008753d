"""snapml.SupportVectorMachine (IBM Snap ML): ½ r ‖w‖² + Σ ℓ, r the regularizer, so r = 1/C for both losses.

The bias is penalised. Data are rounded to float32 inside.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from benchmarks.solvers.base import INTERCEPT_SCALINGS, BaseSolver, Setting, Vector

# (tol, max_iter): the default is (1e-3, 1000).
LADDER = (
    *((tol, 1000) for tol in (1e-2, 1e-3, 1e-4)),
    *((1e-5, 10**4), (1e-6, 10**5), (1e-8, 10**6), (1e-10, 10**7)),
)


class Solver(BaseSolver):
    name = "snapml"
    distribution = "snapml"
    module = "snapml"

    def settings(self, loss: str) -> list[Setting]:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return [
            Setting(
                f"scaling {scaling:g}",
                {"n_jobs": cores, "intercept_scaling": scaling, "tol": tol, "max_iter": max_iter},
            )
            for scaling in INTERCEPT_SCALINGS
            for tol, max_iter in LADDER
        ]

    def fit(self, X: Any, y: Vector, C: float, loss: str, setting: Setting) -> Vector:
        from snapml import SupportVectorMachine

        machine = SupportVectorMachine(
            loss=loss, regularizer=1.0 / C, fit_intercept=True, random_state=0, **setting.options
        )
        return np.asarray(machine.fit(X, y).coef_, dtype=np.float64).ravel()

"""maxmargin.LinearSVC."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.solvers.base import BaseSolver, Setting, Vector

DEFAULT = Setting("default")


def reference(max_seconds: float) -> Setting:
    """The setting for the certified optimum everyone is measured against; its time counts for nothing."""
    return Setting("reference", {"tol": 1e-10, "max_seconds": max_seconds})


class Solver(BaseSolver):
    name = "maxmargin"
    distribution = "maxmargin"
    module = "maxmargin"

    def settings(self, loss: str) -> list[Setting]:
        return [*(Setting("tol", {"tol": tol}) for tol in (1e-2, 1e-3, 1e-4)), DEFAULT]

    def fit(self, X: Any, y: Vector, C: float, loss: str, setting: Setting) -> Vector:
        from maxmargin import LinearSVC

        self._machine = LinearSVC(C=C, loss=loss, **setting.options).fit(X, y)
        return np.asarray(self._machine.coef_[0])

    def details(self, X: Any, y: Vector) -> dict[str, Any]:
        solution, verdict = self._machine.solution_, self._machine.certificate_.verify(X, y)
        return {
            "primal": solution.primal,
            "dual": solution.dual,
            "gap": solution.gap,
            "status": solution.status.name,
            "solver": solution.solver,
            "reason": solution.reason,
            "iterations": solution.n_iter,
            "verified": bool(verdict),
            "verified_gap": verdict.gap,
        }

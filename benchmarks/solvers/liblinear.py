"""LIBLINEAR by its own Python interface. Same objective; the bias is penalised, except with -s 2 -R.

The interface walks dense rows number by number in Python, so dense X goes through ``csr_matrix`` first, which
is far faster. The timed call contains this conversion; ``train_seconds`` is the solver alone.
LIBLINEAR has no option for its iteration limit (300 passes in the dual solvers): a tight -e cannot lift it.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.solvers.base import INTERCEPT_SCALINGS, BaseSolver, Setting, Vector

HINGE_DUAL, SQUARED_DUAL, SQUARED_PRIMAL = 3, 1, 2
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)


class Solver(BaseSolver):
    name = "liblinear"
    distribution = "liblinear-official"
    module = "liblinear"

    def settings(self, loss: str) -> list[Setting]:
        if loss == "hinge":
            return _scaled(HINGE_DUAL)
        free = [Setting("-s 2 -B 1 -R", {"s": SQUARED_PRIMAL, "B": 1.0, "R": True, "e": e}) for e in TOLERANCES]
        return free + _scaled(SQUARED_PRIMAL) + _scaled(SQUARED_DUAL)

    def fit(self, X: Any, y: Vector, C: float, loss: str, setting: Setting) -> Vector:
        from liblinear.liblinearutil import parameter, problem, train
        from scipy.sparse import csr_matrix

        asked = setting.options
        unpenalised = " -R" if asked.get("R") else ""
        options = f"-s {asked['s']} -c {C!r} -B {asked['B']!r} -e {asked['e']!r} -q{unpenalised}"
        rows = problem(y, csr_matrix(X, dtype=np.float64), asked["B"])
        start = time.perf_counter()
        model = train(rows, parameter(options))
        self._train_seconds = time.perf_counter() - start
        w = np.array(model.w[: X.shape[1]])  # the bias comes after these
        return w if model.get_labels()[0] == 1 else -w

    def details(self, X: Any, y: Vector) -> dict[str, Any]:
        return {"train_seconds": self._train_seconds}


def _scaled(s: int) -> list[Setting]:
    return [
        Setting(f"-s {s} -B {scaling:g}", {"s": s, "B": scaling, "e": e})
        for scaling in INTERCEPT_SCALINGS
        for e in TOLERANCES
    ]

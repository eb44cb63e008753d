"""LIBLINEAR by its own Python interface. Same objective; the bias is penalised, except with -s 2 -R.

The interface walks dense rows number by number in Python, so dense X goes through ``csr_matrix`` first, which
is far faster. The timed call contains this conversion; ``train_seconds`` is the solver alone.
LIBLINEAR has no option for its iteration limit (300 passes for the hinge loss): a tighter -e cannot lift it.
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
        from liblinear.liblinear import PRINT_STRING_FUN
        from liblinear.liblinearutil import parameter, problem, train
        from scipy.sparse import csr_matrix

        asked = setting.options
        unpenalised = " -R" if asked.get("R") else ""
        text = f"-s {asked['s']} -c {C!r} -B {asked['B']!r} -e {asked['e']!r}{unpenalised}"
        rows = problem(y, csr_matrix(X, dtype=np.float64), asked["B"])
        said: list[bytes] = []
        options = parameter(text)
        options.print_func = PRINT_STRING_FUN(said.append)
        start = time.perf_counter()
        model = train(rows, options)
        self._train_seconds = time.perf_counter() - start
        self._exhausted = any(b"reaching max number" in line and b"Switching" not in line for line in said)
        w = np.array(model.w[: X.shape[1]])  # the bias comes after these
        return w if model.get_labels()[0] == 1 else -w

    def details(self, X: Any, y: Vector) -> dict[str, Any]:
        return {"train_seconds": self._train_seconds, "iterations_exhausted": self._exhausted}


def _scaled(s: int) -> list[Setting]:
    return [
        Setting(f"-s {s} -B {scaling:g}", {"s": s, "B": scaling, "e": e})
        for scaling in INTERCEPT_SCALINGS
        for e in TOLERANCES
    ]

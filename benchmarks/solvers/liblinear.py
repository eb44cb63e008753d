"""LIBLINEAR by its own Python interface. Same objective; the bias is penalised, except with -s 2 -R.

The interface walks dense rows one number at a time in Python, so dense X goes through ``csr_matrix`` first,
which is far faster. The timed call holds this conversion; ``train_seconds`` is the solver alone.
LIBLINEAR has no option for its iteration limit (300 passes in the dual solvers): a tight -e cannot lift it.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.solvers.base import INTERCEPT_SCALINGS, BaseSolver, Setting

HINGE_DUAL, SQUARED_DUAL, SQUARED_PRIMAL = 3, 1, 2
DUAL_TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
PRIMAL_TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)


class Solver(BaseSolver):
    name = "liblinear"
    distribution = "liblinear-official"
    module = "liblinear"

    def settings(self, loss: str) -> list[Setting]:
        if loss == "hinge":
            return self._scaled(HINGE_DUAL, DUAL_TOLERANCES)
        free_bias = [
            Setting(f"-s {SQUARED_PRIMAL} -B 1 -R", {"s": SQUARED_PRIMAL, "B": 1.0, "e": e, "R": True})
            for e in PRIMAL_TOLERANCES
        ]
        scaled = self._scaled(SQUARED_PRIMAL, PRIMAL_TOLERANCES) + self._scaled(SQUARED_DUAL, DUAL_TOLERANCES)
        return free_bias + scaled

    def _scaled(self, s: int, tolerances: tuple[float, ...]) -> list[Setting]:
        return [
            Setting(f"-s {s} -B {scaling:g}", {"s": s, "B": scaling, "e": e})
            for scaling in INTERCEPT_SCALINGS
            for e in tolerances
        ]

    def fit(
        self, X: Any, y: NDArray[np.float64], C: float, loss: str, setting: Setting
    ) -> NDArray[np.float64]:
        from liblinear.liblinearutil import parameter, problem, train
        from scipy.sparse import csr_matrix

        asked = setting.options
        unpenalised = " -R" if asked.get("R") else ""
        options = f"-s {asked['s']} -c {C!r} -B {asked['B']!r} -e {asked['e']!r} -q{unpenalised}"
        rows = problem(y, csr_matrix(X, dtype=np.float64), asked["B"])
        start = time.perf_counter()
        model = train(rows, parameter(options))
        self._train_seconds = time.perf_counter() - start
        w = np.array(model.w[: X.shape[1]])  # the last weight is the bias
        return w if model.get_labels()[0] == 1 else -w

    def details(self, X: Any, y: NDArray[np.float64]) -> dict[str, Any]:
        return {"train_seconds": self._train_seconds}

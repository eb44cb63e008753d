"""LIBLINEAR by its own Python interface. Same objective; the bias is penalised, except with -R.

The interface walks dense rows number by number in Python, so dense X goes through ``csr_matrix`` first, which
is far faster. The timed call contains this conversion; ``train_seconds`` is the solver alone.
LIBLINEAR has no option for its iteration limits (300 passes for the hinge loss): a tighter -e cannot lift them.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.forms import REGRESSION, SEVERAL, TWO, Form
from benchmarks.solvers.base import INTERCEPT_SCALINGS, BaseSolver, Setting, Vector

# Numbers of LIBLINEAR's solvers: those with which -R frees the bias, and those that always penalise it.
FREE = {"squared_hinge": 2, "logistic": 0, "squared_hinge-l1": 5, "logistic-l1": 6, "squared_epsilon_insensitive": 11}
PENALISED = {
    "hinge": (3,),
    "squared_hinge": (2, 1),
    "logistic": (0, 7),
    "squared_hinge-l1": (5,),
    "logistic-l1": (6,),
    "epsilon_insensitive": (13,),
    "squared_epsilon_insensitive": (11, 12),
    "crammer_singer": (4,),
}
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)


class Solver(BaseSolver):
    name = "liblinear"
    distribution = "liblinear-official"
    module = "liblinear"
    forms = tuple(PENALISED)
    kinds = (TWO, SEVERAL, REGRESSION)

    def settings(self, form: Form) -> list[Setting]:
        free = [
            Setting(f"-s {FREE[form.name]} -B 1 -R", {"s": FREE[form.name], "B": 1.0, "R": True, "e": e})
            for e in TOLERANCES
            if form.name in FREE
        ]
        return free + [
            Setting(f"-s {s} -B {scaling:g}", {"s": s, "B": scaling, "e": e})
            for s in PENALISED[form.name]
            for scaling in INTERCEPT_SCALINGS
            for e in TOLERANCES
        ]

    def fit(self, X: Any, y: Vector, C: float, form: Form, setting: Setting) -> Vector:
        from liblinear.liblinear import PRINT_STRING_FUN
        from liblinear.liblinearutil import parameter, problem, train
        from scipy.sparse import csr_matrix

        asked = setting.options
        unpenalised = " -R" if asked.get("R") else ""
        text = f"-s {asked['s']} -c {C!r} -B {asked['B']!r} -e {asked['e']!r} -p {form.epsilon!r}{unpenalised}"
        rows = problem(y, csr_matrix(X, dtype=np.float64), asked["B"])
        said: list[bytes] = []
        options = parameter(text + self._more(asked["s"]))
        options.print_func = PRINT_STRING_FUN(said.append)
        start = time.perf_counter()
        model = train(rows, options)
        self._train_seconds = time.perf_counter() - start
        self._exhausted = any(b"reaching max number" in line and b"Switching" not in line for line in said)
        return _weights(model, X.shape[1], form.regression)

    def _more(self, s: int) -> str:
        """Further options for solver ``s``."""
        return ""

    def details(self, X: Any, y: Vector) -> dict[str, Any]:
        return {"train_seconds": self._train_seconds, "iterations_exhausted": self._exhausted}


def _weights(model: Any, n_cols: int, regression: bool) -> Vector:
    """Weights of every machine in the order of the classes; LIBLINEAR's is that of their first rows."""
    if regression:
        return np.ctypeslib.as_array(model.w, shape=(n_cols,)).copy()
    labels = np.array(model.get_labels())
    n_machines = 1 if len(labels) == 2 else len(labels)
    by_column = np.ctypeslib.as_array(model.w, shape=(n_cols, n_machines))  # the bias comes after these
    if n_machines == 1:
        return by_column[:, 0].copy() if labels[0] == 1 else -by_column[:, 0]
    return np.ascontiguousarray(by_column[:, np.argsort(labels)].T)

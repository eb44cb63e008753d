"""What the machines of the kernel race have in common: scikit-learn's shape, the same kernel, the same cache.

Each has a file of its own in ``benchmarks.solvers``; none takes part in the linear races, whose answers are weights.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets
from benchmarks.forms import REGRESSION, SEVERAL, TWO, Form
from benchmarks.kernel_objective import Kernel
from benchmarks.solvers.base import BaseSolver, Setting, Vector

OURS = "maxmargin_svc"
PEERS = ("sklearn_svc", "sklearnex_svc", "libsvm_svc", "thundersvm_svc")
CACHE_MB = 2000  # for values of the kernel, for everybody
LADDER = tuple(10.0**-k for k in range(1, 9))
FITS, CALLS = 20, 200  # of a small problem in one process; the median counts
FEW = 10  # rows that are predicted before the clock runs


def setting(kernel: Kernel, tol: float | None = None, *, again: bool = False, test: Path | None = None) -> Setting:
    """What to fit with; without ``tol`` at the machine's own default.

    ``again`` asks for the details of repeated fits and of one-row calls, ``test`` for those of predicting the rows that
    were handed over in that folder.
    """
    return Setting("kernel", {"kernel": kernel, "tol": tol, "again": again, "test": test})


class KernelSolver(BaseSolver):
    """A kernel machine with scikit-learn's parameters and attributes.

    ``fit`` returns ``dual_coef_``; the details hold what else an answer consists of: ``support`` and ``n_support``.
    """

    forms = ()
    kinds = (TWO, SEVERAL, REGRESSION)

    @abstractmethod
    def machine(self, form: Form, parameters: dict[str, Any]) -> Any:
        """The classifier, or in a regression the regressor, not yet fitted."""

    def settings(self, form: Form) -> list[Setting]:
        raise NotImplementedError(f"{self.name} takes part in python -m benchmarks.kernel, which has its own sweep")

    def fit(self, X: Any, y: Vector, C: float, form: Form, setting: Setting) -> Vector:
        self._task = (C, form, setting)
        self._machine = self.machine(form, parameters(C, form, setting)).fit(X, y)
        coef = self._machine.dual_coef_
        return np.asarray(coef.toarray() if sp.issparse(coef) else coef)

    def details(self, X: Any, y: Vector) -> dict[str, Any]:
        machine, (_, form, setting) = self._machine, self._task
        found = {
            "support": np.asarray(machine.support_),
            "n_support": np.asarray(getattr(machine, "n_support_", ())),
            "n_support_vectors": len(machine.support_),
            **self.more(),
        }
        call = machine.predict if form.regression else machine.decision_function
        if setting.options["test"] is not None:
            found["prediction"] = _prediction(machine, call, *datasets.take_over(setting.options["test"]))
        if setting.options["again"]:
            row = X[:1]
            found["one_row_seconds"] = _median_seconds(CALLS, lambda: call(row))
            found["seconds_again"] = _median_seconds(FITS, lambda: self.fit(X, y, *self._task))
        return found

    def more(self) -> dict[str, Any]:
        """What this machine alone has to say of its last fit."""
        return {}


def parameters(C: float, form: Form, setting: Setting) -> dict[str, Any]:
    """Those of scikit-learn's SVC or SVR."""
    kernel, tol = setting.options["kernel"], setting.options["tol"]
    told: dict[str, Any] = {"C": C, "kernel": kernel.name, "gamma": kernel.gamma, "cache_size": CACHE_MB}
    if kernel.name == "poly":
        told |= {"degree": kernel.degree, "coef0": kernel.coef0}
    if tol is not None:
        told["tol"] = tol
    if form.regression:
        told["epsilon"] = form.epsilon
    return told


def _prediction(machine: Any, call: Callable[[Any], Any], X: Any, y: Vector) -> dict[str, Any]:
    """Seconds of the scores and of the predictions of all rows, and how many predictions are right (or their R²)."""
    call(X[:FEW])
    start = time.perf_counter()
    call(X)
    between = time.perf_counter()
    predicted = np.asarray(machine.predict(X))
    end = time.perf_counter()
    return {
        "n_rows": X.shape[0],
        "decision_seconds": between - start,
        "predict_seconds": end - between,
        "right": float(np.mean(predicted == y)),
    }


def _median_seconds(count: int, work: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return median(seconds)

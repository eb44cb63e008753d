"""LIBSVM by its own Python package; dense rows are handed over as sparse ones, its quickest way in."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.forms import Form
from benchmarks.kernel_peers import KernelSolver
from benchmarks.solvers.base import Vector

C_SVC, EPSILON_SVR = 0, 3
KERNELS = {"linear": 0, "poly": 1, "rbf": 2}
LETTERS = {"C": "c", "gamma": "g", "degree": "d", "coef0": "r", "cache_size": "m", "tol": "e", "epsilon": "p"}


class Solver(KernelSolver):
    name = "libsvm_svc"
    distribution = "libsvm-official"
    module = "libsvm"

    def machine(self, form: Form, parameters: dict[str, Any]) -> Any:
        words = [f"-{LETTERS[name]} {value!r}" for name, value in parameters.items() if name in LETTERS]
        kind = EPSILON_SVR if form.regression else C_SVC
        return Machine(" ".join([f"-s {kind} -t {KERNELS[parameters['kernel']]} -q", *words]))


class Machine:
    """LIBSVM's functions in scikit-learn's shape."""

    def __init__(self, options: str) -> None:
        self.options = options

    def fit(self, X: Any, y: Vector) -> Machine:
        from libsvm.svmutil import svm_train

        self._model = svm_train(y, sp.csr_matrix(X), self.options)
        self.support_ = np.array(self._model.get_sv_indices()) - 1
        self.dual_coef_ = np.array(self._model.get_sv_coef()).T
        self.n_support_ = [self._model.nSV[k] for k in range(self._model.nr_class)] if self._model.nSV else []
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        return np.array(self._answers(X)[1])

    def predict(self, X: Any) -> NDArray[np.float64]:
        return np.array(self._answers(X)[0])

    def _answers(self, X: Any) -> tuple[list[float], list[list[float]]]:
        from libsvm.svmutil import svm_predict

        labels, _, values = svm_predict([], sp.csr_matrix(X), self._model, "-q")
        return labels, values

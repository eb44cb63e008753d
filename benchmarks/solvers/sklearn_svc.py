"""sklearn.svm.SVC and SVR: scikit-learn's copy of LIBSVM. ``tol`` bounds the largest violation of optimality."""

from __future__ import annotations

from typing import Any

from benchmarks.forms import Form
from benchmarks.kernel_peers import KernelSolver


class Solver(KernelSolver):
    name = "sklearn_svc"
    distribution = "scikit-learn"
    module = "sklearn"

    def machine(self, form: Form, parameters: dict[str, Any]) -> Any:
        from sklearn.svm import SVC, SVR

        return (SVR if form.regression else SVC)(**parameters)

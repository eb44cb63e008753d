"""sklearnex.svm.SVC and SVR: scikit-learn's classes on Intel's oneDAL, or scikit-learn itself where that cannot."""

from __future__ import annotations

from typing import Any

from benchmarks.forms import Form
from benchmarks.kernel_peers import KernelSolver


class Solver(KernelSolver):
    name = "sklearnex_svc"
    distribution = "scikit-learn-intelex"
    module = "sklearnex"

    def machine(self, form: Form, parameters: dict[str, Any]) -> Any:
        from sklearnex.svm import SVC, SVR

        return (SVR if form.regression else SVC)(**parameters)

    def more(self) -> dict[str, Any]:
        return {"accelerated": hasattr(self._machine, "_onedal_estimator")}

"""thundersvm's SVC and SVR on the CPU. Everything is float32, rows included; it has one allowance of memory for all."""

from __future__ import annotations

from typing import Any

from benchmarks.forms import Form
from benchmarks.kernel_peers import CACHE_MB, KernelSolver
from benchmarks.solvers.base import Setting, Vector


class Solver(KernelSolver):
    name = "thundersvm_svc"
    distribution = "thundersvm-cpu"
    module = "thundersvm"

    def machine(self, form: Form, parameters: dict[str, Any]) -> Any:
        from thundersvm import SVC, SVR

        kernel = {"poly": "polynomial"}.get(parameters["kernel"], parameters["kernel"])
        told = {**parameters, "kernel": kernel, "max_mem_size": CACHE_MB}
        return (SVR if form.regression else SVC)(**told)

    def fit(self, X: Any, y: Vector, C: float, form: Form, setting: Setting) -> Vector:
        return super().fit(X.copy(), y, C, form, setting)  # it writes into sparse rows

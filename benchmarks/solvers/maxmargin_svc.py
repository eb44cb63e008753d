"""maxmargin.SVC and SVR."""

from __future__ import annotations

from typing import Any

from benchmarks.forms import Form
from benchmarks.kernel_peers import KernelSolver


class Solver(KernelSolver):
    name = "maxmargin_svc"
    distribution = "maxmargin"
    module = "maxmargin"

    def machine(self, form: Form, parameters: dict[str, Any]) -> Any:
        from maxmargin import SVC, SVR

        return (SVR if form.regression else SVC)(**parameters)

    def more(self) -> dict[str, Any]:
        solution = self._machine.solution_  # of several machines, with the gap of the worst one
        return {
            "status": solution.status.name,
            "certified_gap": solution.gap,
            "solver": solution.solver,
            "reason": solution.reason,
            "iterations": solution.n_iter,
        }

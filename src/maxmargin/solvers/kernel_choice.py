"""Which solver a machine with a kernel gets."""

from __future__ import annotations

from typing import Any

from maxmargin.errors import InputError
from maxmargin.solvers.pair_steps import PairSteps
from maxmargin.solvers.run import Solver

KERNEL_SOLVERS = ("pair_steps",)


def make_kernel_solver(
    problem: Any, name: str = "auto", *, tol: float, max_iter: int, n_threads: int | None, seed: int = 0
) -> Solver:
    """The solver of that name, or the automatic choice."""
    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "n_threads": n_threads}
    if name == "auto" or name == "pair_steps":
        reason = "asked for" if name != "auto" else "steps on pairs, and Newton's method on the free multipliers"
        return PairSteps(reason=reason, **options)
    raise InputError(f"solver must be 'auto' or one of {', '.join(KERNEL_SOLVERS)}, got {name!r}")

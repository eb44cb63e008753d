"""Which solver a machine with a kernel gets."""

from __future__ import annotations

from typing import Any

from maxmargin.errors import InputError
from maxmargin.kernels import Linear
from maxmargin.problem import Problem
from maxmargin.solvers.by_factor import ByFactor
from maxmargin.solvers.choice import make_solver
from maxmargin.solvers.nu_machines import NuProblem
from maxmargin.solvers.pair_steps import PairSteps
from maxmargin.solvers.run import Solver
from maxmargin.solvers.textbook import Adatron, TextbookSMO

PAIRS = "steps on pairs, and Newton's method on the free multipliers"
MOST_RELAYED = 2000  # rows up to which a factor may help where slopes in float64 are too rough
LANDMARKS = 1000  # rows whose columns of the kernel matrix make a partial factor

KERNEL_SOLVERS = ("pair_steps", "interior_point", "nystrom", "adatron", "smo_textbook")


def make_kernel_solver(
    problem: Any, name: str = "auto", *, tol: float, max_iter: int, n_threads: int | None, seed: int = 0
) -> Solver:
    """The solver of that name, or the automatic choice.

    ``auto`` takes steps on pairs where the dual is a box, and a factor of the kernel matrix for any other loss.
    """
    if not isinstance(name, str) or name not in ("auto", *KERNEL_SOLVERS):
        raise InputError(f"solver must be 'auto' or one of {', '.join(KERNEL_SOLVERS)}, got {name!r}")
    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "n_threads": n_threads}
    boxed = isinstance(problem, NuProblem) or (problem.loss.has_box and not problem.hard)
    if name == "auto":
        if isinstance(problem, NuProblem):
            return PairSteps(reason=PAIRS, **options)
        if isinstance(problem.space.kernel, Linear):
            return by_factor(problem, "auto", "the rows themselves are a factor", seed, **options)
        if not boxed:
            return by_factor(problem, "auto", "the dual is no box", seed, **options)
        follower = None
        if problem.n_rows <= MOST_RELAYED and problem.space.kernel.is_positive:
            follower = by_factor(problem, "interior_point", "", seed, **options)
        return PairSteps(reason=PAIRS, follower=follower, **options)
    if isinstance(problem, NuProblem) and name != "pair_steps":
        raise InputError(f"solver={name!r} is not for machines with nu; use 'auto' or 'pair_steps'")
    if name == "interior_point":
        return by_factor(problem, "interior_point", "asked for", seed, **options)
    if name == "nystrom" and not boxed and not problem.hard:
        return by_factor(problem, "auto", "asked for", seed, rank=LANDMARKS, **options)
    if not boxed:
        raise InputError(f"solver={name!r} needs loss 'hinge' or 'squared_hinge' and a finite C; use 'auto'")
    if name == "nystrom":
        polish = PairSteps(**options)
        return by_factor(problem, "auto", "asked for", seed, rank=LANDMARKS, polish=polish, **options)
    makers: dict[str, Any] = {"pair_steps": PairSteps, "adatron": Adatron, "smo_textbook": TextbookSMO}
    return makers[name](**options)  # type: ignore[no-any-return]


def by_factor(
    problem: Any, inner: str, reason: str, seed: int, *, tol: float, max_iter: int, n_threads: int | None,
    **more: Any,
) -> ByFactor:  # fmt: skip
    """A solver for linear machines on the rows of a factor."""
    if problem.space.kernel.is_positive is False:
        raise InputError(
            f"{problem.space.kernel!r} is not positive semidefinite, so that its matrix has no factor; use "
            "loss='hinge' or 'squared_hinge' with solver='auto'"
        )

    def make(linear: Problem, sharp: float) -> Solver:
        return make_solver(linear, inner, tol=sharp, max_iter=min(max_iter, MOST_ITER), n_threads=n_threads, seed=seed)

    return ByFactor(tol=tol, max_iter=max_iter, n_threads=n_threads, reason=reason, make=make, **more)


MOST_ITER = 10_000  # of a solver for linear machines

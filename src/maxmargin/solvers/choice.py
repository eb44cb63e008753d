"""``solver="auto"``: rules and a cost model in seconds, so that the choice can be explained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin.problem import Problem
from maxmargin.runtime import Watch
from maxmargin.solution import Solution, Status
from maxmargin.solvers.base import Solver, Start
from maxmargin.solvers.dual_cd import DualCoordinateDescent
from maxmargin.solvers.hard_margin import HardMargin
from maxmargin.solvers.interior_point import InteriorPoint
from maxmargin.solvers.newton import Newton, worth_sampling
from maxmargin.solvers.proximal_newton import ProximalNewton

SOLVERS: dict[str, Any] = {
    "interior_point": InteriorPoint,
    "dual_cd": DualCoordinateDescent,
    "newton": Newton,
    "proximal_newton": ProximalNewton,
}

LARGEST_NORMAL_MATRIX = 5000
LARGEST_SPREAD = 1e3
MANY_NUMBERS = 500_000  # in X, from which the start from a sample pays
HIGH_DIMENSION = 3000  # columns of sparse rows from which their normal matrix costs more than many passes


def supported(problem: Problem) -> list[str]:
    """Names of the solvers that can solve the problem."""
    if problem.penalty == "l1":
        return ["proximal_newton"]
    if problem.loss.has_box:
        return ["interior_point", "dual_cd", "newton"]
    return ["dual_cd", "newton"] if problem.loss.entropic else ["newton"]


def has_interior_point(problem: Problem) -> bool:
    """Whether the interior point method can solve the problem and its normal matrix can be held."""
    size = min(problem.n_rows, max(problem.n_cols, 1)) + 1
    return size <= LARGEST_NORMAL_MATRIX and "interior_point" in supported(problem)


def interior_point_seconds(problem: Problem) -> float:
    """Iterations of one matrix XᵀDX, one factorisation and six passes; more iterations for unequal classes."""
    n, d = problem.n_rows, problem.n_cols
    size = min(n, max(d, 1)) + 1
    if not has_interior_point(problem):
        return float("inf")
    if d > n:  # dense rows in their span
        outer = n * n * size / 3e10
    elif problem.space.sparse:
        outer = float(np.square(problem.space.lengths, dtype=np.float64).sum()) * 0.6e-9
    else:
        outer = n * size * size / 3e10
    passes = 6 * min(problem.nnz, n * size) * 0.7e-9 + n * 5e-8
    iterations = 20.0
    if not problem.loss.regression:
        plus, minus = float(problem.cost[problem.y > 0].sum()), float(problem.cost[problem.y < 0].sum())
        imbalance = max(plus, minus) / min(plus, minus)
        iterations *= 1.0 + 1.5 * float(np.log10(max(1.0, min(imbalance, 1e3))))
    return float(iterations * (outer + size**3 / 3 / 2e10 + passes))


def high_dimensional(problem: Problem) -> bool:
    """So many columns that sparse rows are nearly orthogonal, and normal matrices expensive."""
    return problem.n_cols > problem.n_rows or problem.n_cols > HIGH_DIMENSION


def choose(problem: Problem) -> tuple[str, str]:
    """Name of the solver, and the sentence that explains the choice."""
    n, d, sparse = problem.n_rows, problem.n_cols, problem.space.sparse
    able = supported(problem)
    about = f"chosen for {n} rows and {d} columns"
    if len(able) == 1:
        return able[0], f"{about}: the solver for penalty {problem.penalty!r} and loss {problem.loss.name!r}"
    direct = has_interior_point(problem)
    spread = problem.space.facts.column_spread if direct else 1.0
    if spread > LARGEST_SPREAD:
        return "interior_point", f"{about}, whose scales differ by a factor of {spread:.0e}"
    if sparse and high_dimensional(problem):
        return "dual_cd", f"{about}: sparse rows in many dimensions are nearly orthogonal, single steps suffice"
    if problem.loss.smooth:
        return "newton", f"{about}: the loss is smooth, a few Newton steps suffice"
    if not sparse and d > n and direct:
        return "interior_point", f"{about}: with fewer rows than columns the equations are small"
    if worth_sampling(problem) and problem.nnz > MANY_NUMBERS:
        return "newton", f"{about}: so many rows that a sample of them gives a good start"
    seconds = interior_point_seconds(problem)
    if seconds < 0.01:
        return "interior_point", f"{about}: so small that it takes about {seconds:.1g} s"
    return "dual_cd", f"{about}: some coordinate steps, then Newton's method; interior_point would take {seconds:.1g} s"


@dataclass(frozen=True)
class Relay:
    """A solver with another one behind it, which takes over where the first does not reach ``tol``."""

    first: Solver
    second: Solver

    @property
    def name(self) -> str:
        return self.first.name

    def solve(self, problem: Problem, *, start: Start = None, watch: Watch | None = None) -> Solution:
        watch = watch or Watch()
        one = self.first.solve(problem, start=start, watch=watch)
        if one.status not in (Status.NUMERICAL_LIMIT, Status.ITERATION_LIMIT):
            return one
        two = self.second.solve(problem, watch=watch)
        best = two if two.gap <= one.gap else one
        history = replace(one.history, records=[*one.history.records, *two.history.records])
        reason = f"{one.reason}; after a gap of {one.gap:.0e} {self.second.name} took over"
        if best is one and two.status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            best = replace(one, status=two.status)
        return replace(
            best,
            history=history,
            reason=reason,
            n_iter=one.n_iter + two.n_iter,
            seconds=watch.seconds,
            solver=one.solver,
        )


def automatic(problem: Problem, *, tol: float, max_iter: int, n_threads: int | None, seed: int) -> Solver:
    """The chosen solver, with another one behind it where that may help."""
    name, reason = choose(problem)
    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "n_threads": n_threads}
    barrier = InteriorPoint(**options)
    direct = has_interior_point(problem)
    if name == "proximal_newton":
        return ProximalNewton(**options, reason=reason)
    if name == "interior_point":
        return Relay(replace(barrier, reason=reason), Newton(**options))
    if name == "newton":
        newton = Newton(**options, reason=reason)
        return Relay(newton, barrier) if direct else newton
    descent = DualCoordinateDescent(**options, seed=seed, reason=reason, patient=not direct)
    return Relay(descent, barrier) if direct else descent


def make_solver(
    problem: Problem, name: str, *, tol: float, max_iter: int, n_threads: int | None, seed: int = 0
) -> Solver:
    """The solver of that name, or the automatic choice; wrapped for the hard margin."""
    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "n_threads": n_threads}
    if problem.hard:
        return HardMargin(tol=tol, make=lambda p: make_solver(p, name, **{**options, "tol": 1e-9, "seed": seed}))
    if name == "auto":
        return automatic(problem, seed=seed, **options)
    able = supported(problem)
    if name not in able:
        raise ValueError(
            f"solver={name!r} cannot solve loss {problem.loss.name!r} with penalty {problem.penalty!r}; "
            f"use 'auto' or one of {able}"
        )
    if name == "dual_cd":
        options["seed"] = seed
    solver: Solver = SOLVERS[name](**options)
    return solver

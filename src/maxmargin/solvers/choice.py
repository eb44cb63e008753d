"""``solver="auto"``: a cost model in seconds, so that the choice can be explained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.problem import Problem
from maxmargin.solvers.base import Solver
from maxmargin.solvers.dual_cd import DualCoordinateDescent
from maxmargin.solvers.interior_point import InteriorPoint
from maxmargin.solvers.newton import Newton

SOLVERS: dict[str, type[InteriorPoint] | type[DualCoordinateDescent] | type[Newton]] = {
    "interior_point": InteriorPoint,
    "dual_cd": DualCoordinateDescent,
    "newton": Newton,
}

LARGEST_NORMAL_MATRIX = 5000
LARGEST_SPREAD = 1e3


def interior_point_seconds(problem: Problem) -> float:
    """Iterations of one matrix XᵀDX, one factorisation and six passes; more iterations for unequal classes."""
    n, d = problem.n_rows, problem.n_cols
    size = min(n, max(d, 1)) + 1
    if size > LARGEST_NORMAL_MATRIX:
        return float("inf")
    if d > n:  # dense rows in their span
        outer = n * n * size / 3e10
    elif sp.issparse(problem.X):
        outer = float(np.square(np.diff(problem.X.indptr).astype(np.float64)).sum()) * 0.6e-9
    else:
        outer = n * size * size / 3e10
    passes = 6 * min(problem.nnz, n * size) * 0.7e-9 + n * 5e-8
    plus, minus = float(problem.cost[problem.y > 0].sum()), float(problem.cost[problem.y < 0].sum())
    imbalance = max(plus, minus) / min(plus, minus)
    iterations = 20.0 * (1.0 + 1.5 * float(np.log10(max(1.0, min(imbalance, 1e3)))))
    return float(iterations * (outer + size**3 / 3 / 2e10 + passes))


def dual_cd_seconds(problem: Problem) -> float:
    """About a hundred Newton steps, each two passes over part of the rows and a small factorisation.

    Sparse rows in more dimensions than rows are nearly orthogonal: there, some hundred epochs need no polish.
    """
    if sp.issparse(problem.X) and problem.n_cols > problem.n_rows:
        return float(300.0 * problem.nnz * 3e-9 + 1e-3)
    size = min(problem.n_rows, problem.n_cols, 1500)
    return float(100.0 * (problem.nnz * 0.8e-9 + problem.n_rows * 2e-8 + size**3 / 3 / 2e10 + 1e-4))


def column_spread(X: NDArray[np.floating]) -> float:
    """Largest over smallest root mean square of the columns, from at most 2000 rows spread over X."""
    part = X[:: max(1, len(X) // 2000)]
    mean = np.square(part, dtype=np.float64).sum(axis=0)
    mean = mean[mean > 0.0]
    return float(np.sqrt(mean.max() / mean.min())) if len(mean) else 1.0


def choose(problem: Problem) -> tuple[str, str]:
    """Name of the cheaper solver, and the sentence that explains the choice."""
    seconds = {"interior_point": interior_point_seconds(problem), "dual_cd": dual_cd_seconds(problem)}
    about = f"chosen for {problem.n_rows} rows and {problem.n_cols} columns"
    spread = 1.0 if sp.issparse(problem.X) else column_spread(problem.X)
    if spread > LARGEST_SPREAD and np.isfinite(seconds["interior_point"]):
        return "interior_point", f"{about}, whose scales differ by a factor of {spread:.0e}"
    name = min(seconds, key=lambda k: seconds[k])
    other = "dual_cd" if name == "interior_point" else "interior_point"
    beside = f"{other} {seconds[other]:.2g} s" if np.isfinite(seconds[other]) else f"{other} not possible"
    return name, f"{about}: estimated {seconds[name]:.2g} s, {beside}"


def automatic(problem: Problem, *, tol: float, max_iter: int, n_threads: int | None, seed: int) -> Solver:
    """The chosen solver; coordinate descent with the interior point method behind it where that is possible."""
    name, reason = choose(problem)
    spare = InteriorPoint(tol=tol, max_iter=max_iter, n_threads=n_threads)
    if name == "interior_point":
        return replace(spare, reason=reason)
    fallback = spare if np.isfinite(interior_point_seconds(problem)) else None
    return DualCoordinateDescent(
        tol=tol, max_iter=max_iter, n_threads=n_threads, seed=seed, fallback=fallback, reason=reason
    )

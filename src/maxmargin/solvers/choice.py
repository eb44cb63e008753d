"""``solver="auto"``: a cost model in seconds, so that the choice can be explained."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxmargin.problem import Problem
from maxmargin.solvers.dual_cd import DualCoordinateDescent
from maxmargin.solvers.interior_point import InteriorPoint

SOLVERS: dict[str, type[InteriorPoint] | type[DualCoordinateDescent]] = {
    "interior_point": InteriorPoint,
    "dual_cd": DualCoordinateDescent,
}

LARGEST_NORMAL_MATRIX = 5000


def interior_point_seconds(problem: Problem) -> float:
    """25 iterations of one matrix XᵀDX, one factorisation and six passes."""
    n, d = problem.n_rows, problem.n_cols
    size = min(n, d) + 1
    if size > LARGEST_NORMAL_MATRIX:
        return float("inf")
    if d > n:  # dense rows in their span
        outer = n * n * size / 3e10
    elif sp.issparse(problem.X):
        outer = float(np.square(np.diff(problem.X.indptr).astype(np.float64)).sum()) * 0.6e-9
    else:
        outer = n * size * size / 3e10
    outer += size**3 / 3 / 2e10
    passes = 6 * min(problem.nnz, n * size) * 0.7e-9 + n * 5e-8
    return float(25.0 * (outer + passes))


def dual_cd_seconds(problem: Problem) -> float:
    """Epochs grow with the cost of a row beside its squared norm; the polish costs as much again."""
    values = problem.X.data if sp.issparse(problem.X) else problem.X
    mean_square = float(np.mean(np.square(values[:4096], dtype=np.float64))) * problem.nnz / problem.n_rows
    strength = float(problem.cost.mean()) * mean_square
    epochs = 30.0 * max(1.0, strength) ** 0.7
    return float(2.0 * epochs * problem.nnz * 2e-9)


def choose(problem: Problem) -> tuple[str, str]:
    """Name of the cheaper solver, and the sentence that explains the choice."""
    seconds = {"interior_point": interior_point_seconds(problem), "dual_cd": dual_cd_seconds(problem)}
    name = min(seconds, key=lambda k: seconds[k])
    other = "dual_cd" if name == "interior_point" else "interior_point"
    why = f"estimated {seconds[name]:.2g} s, {other} {seconds[other]:.2g} s"
    return name, f"chosen for {problem.n_rows} rows and {problem.n_cols} columns: {why}"

"""Independent answers: an interior point QP solver (Clarabel) and plain arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def objective(X: Any, y: np.ndarray, cost: np.ndarray, w: np.ndarray, b: float, power: int) -> float:
    """½‖w‖² + Σ cost ξ^power, written out."""
    total = 0.5 * float(np.dot(w, w))
    dense = X.toarray() if sp.issparse(X) else np.asarray(X)
    for x, label, c in zip(dense, y, cost, strict=True):
        total += c * max(0.0, 1.0 - label * (float(np.dot(x, w)) + b)) ** power
    return total


def clarabel_optimum(X: Any, y: np.ndarray, cost: np.ndarray, power: int, bias: bool = True) -> float | None:
    """Optimal value of the primal over (w, b, ξ), or None where Clarabel does not converge."""
    import clarabel

    X = sp.csr_array(X)[cost > 0.0]
    y, cost = y[cost > 0.0], cost[cost > 0.0]
    n, d = X.shape
    quadratic = np.concatenate([np.ones(d), [0.0], np.full(n, 0.0) if power == 1 else 2.0 * cost])
    linear = np.concatenate([np.zeros(d + 1), cost if power == 1 else np.zeros(n)])
    signed = sp.diags_array(y.astype(float)) @ X
    column = y.astype(float)[:, None] if bias else np.zeros((n, 1))
    rows = sp.vstack(
        [
            sp.hstack([-signed, sp.csr_array(-column), -sp.eye_array(n)]),
            sp.hstack([sp.csr_array((n, d + 1)), -sp.eye_array(n)]),
        ]
    )
    limits = np.concatenate([-np.ones(n), np.zeros(n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-10
    solver = clarabel.DefaultSolver(
        sp.csc_matrix(sp.diags_array(quadratic)), linear, sp.csc_matrix(rows), limits,
        [clarabel.NonnegativeConeT(2 * n)], settings,
    )  # fmt: skip
    answer = solver.solve()
    return float(answer.obj_val) if str(answer.status) == "Solved" else None

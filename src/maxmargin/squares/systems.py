"""Solving (H + αI) W = R for symmetric positive semidefinite H: fast where that is safe, and carefully where not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from maxmargin.squares.centred import CentredRows, DenseRows, Matrix, Vector

WORST_CONDITION = 1e-10  # reciprocal; below it digits are worth more than time
REFINE_ABOVE = 1e-12  # residual relative to the right-hand side
EPS = float(np.finfo(np.float64).eps)


def solve_positive(H: Matrix, R: Matrix, residual: Callable[[Matrix], Matrix]) -> Matrix | None:
    """H⁻¹R by Cholesky's factors, or None if H is not positive definite by a safe distance.

    The columns are scaled to a unit diagonal first, so that columns of different size do not look like a bad
    condition. ``residual(W)`` is R − H W, as exactly as it can be had; if it is not small, one step of refinement
    follows.
    """
    diagonal = H.diagonal()
    if not (diagonal > 0.0).all():
        return None
    scale = 1.0 / np.sqrt(diagonal)
    scaled = H * scale[:, None]
    scaled *= scale
    size = float(np.abs(scaled).sum(axis=0).max())
    # The transpose of a C-ordered symmetric matrix is the same matrix in the order LAPACK wants.
    factor, failed = scipy.linalg.lapack.dpotrf(scaled.T, lower=1, overwrite_a=1, clean=0)
    if failed:
        return None
    condition, _ = scipy.linalg.lapack.dpocon(factor, size, uplo="L")
    if condition < WORST_CONDITION:
        return None

    def solve(right: Matrix) -> Matrix:
        solution = scipy.linalg.cho_solve((factor, True), scale[:, None] * right, check_finite=False)
        return np.asarray(scale[:, None] * solution)

    W = solve(R)
    rest = residual(W)
    if np.any(column_norms(rest) > REFINE_ABOVE * column_norms(R)):
        W += solve(rest)
    return W


def column_norms(M: Matrix) -> Vector:
    """Euclidean length of every column."""
    return np.asarray(np.linalg.norm(M, axis=0))


@dataclass(frozen=True)
class MinimalSolution:
    """The W of smallest norm that minimises ‖B − AW‖² + α‖W‖², for any rank of A and any α ≥ 0.

    ``a`` is the smallest with W = Aᵀa.
    """

    W: Matrix
    a: Matrix
    rank: int
    singular: Vector

    @classmethod
    def of(cls, rows: CentredRows, B: Matrix, alpha: float, by_columns: bool) -> MinimalSolution:
        """By the singular values of dense rows; of sparse rows by the eigenvalues of AᵀA (``by_columns``) or AAᵀ."""
        if isinstance(rows, DenseRows):
            return _by_singular_values(rows, B, alpha)
        return _by_eigenvalues(rows, B, alpha, by_columns)


def _by_singular_values(rows: DenseRows, B: Matrix, alpha: float) -> MinimalSolution:
    left, singular, right = scipy.linalg.svd(rows.A, full_matrices=False, check_finite=False)
    rank = int(np.count_nonzero(singular > EPS * max(rows.shape) * singular[0]))
    left, right, some = left[:, :rank], right[:rank], singular[:rank, None]
    with np.errstate(over="ignore"):
        part = (left.T @ B) / (some + alpha / some)  # s/(s² + α) without squares that could underflow
        return MinimalSolution(right.T @ part, left @ (part / some), rank, singular)


def _by_eigenvalues(rows: CentredRows, B: Matrix, alpha: float, by_columns: bool) -> MinimalSolution:
    """Sees singular values only down to about 1e-8 of the largest; a step of refinement restores the digits lost."""
    n, d = rows.shape
    products = rows.column_products() if by_columns else rows.row_products()
    values, vectors = scipy.linalg.eigh(products, overwrite_a=True, check_finite=False)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    rank = int(np.count_nonzero(values > EPS * max(n, d) * max(values[0], rows.uncentred_size)))
    basis, factor = vectors[:, :rank], 1.0 / (values[:rank, None] + alpha)

    def solve(right: Matrix) -> Matrix:
        return np.asarray(basis @ (factor * (basis.T @ right)))

    singular = np.sqrt(values[: min(n, d)])
    if by_columns:
        W = solve(rows.back(B))
        W += solve(rows.back(B - rows.times(W)) - alpha * W)
        a = rows.times(basis @ ((basis.T @ W) / values[:rank, None]))
        return MinimalSolution(W, a, rank, singular)
    a = solve(B)
    a += solve(B - rows.times(rows.back(a)) - alpha * a)
    return MinimalSolution(rows.back(a), a, rank, singular)

"""The linear system (R + XᵀDX) v = g of every Newton-like step, with the bias as last unknown.

Solved in the smaller of two sizes: columns (normal equations) or rows with D > 0 (their Gram matrix).
"""

from __future__ import annotations

import numpy as np
import scipy.linalg.blas as blas
import scipy.linalg.lapack as lapack
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.problem import Bias
from maxmargin.runtime import borrowed_blas

Vector = NDArray[np.float64]


class Breakdown(ArithmeticError):
    """The matrix is not positive definite to working precision."""


class Cholesky:
    """Factor of a symmetric matrix (row-major upper triangle), which it overwrites.

    ``careful`` scales the matrix to unit diagonal, shifts it by rounding if it must, and refines solutions.
    """

    def __init__(self, H: Vector, *, careful: bool = True) -> None:
        diagonal = np.diag(H).copy()
        if not np.all(np.isfinite(diagonal)) or np.any(diagonal < 1e-290):
            raise Breakdown("a diagonal entry is not positive")
        self.careful = careful
        if careful:
            self._scale_and_factor(H, 1.0 / np.sqrt(diagonal))
        else:
            # The transpose of a row-major array is column-major: its lower triangle, no copy.
            self.factor, info = lapack.dpotrf(H.T, lower=1, clean=0, overwrite_a=1)
            if info != 0:
                raise Breakdown("no Cholesky factor")

    def _scale_and_factor(self, H: Vector, scale: Vector) -> None:
        H *= scale
        H *= scale[:, None]
        self.matrix, self.scale = H, scale
        shift = 1e-15
        while True:
            work = H.copy()
            work[np.diag_indices_from(work)] += shift
            self.factor, info = lapack.dpotrf(work.T, lower=1, clean=0, overwrite_a=1)
            if info == 0:
                return
            shift *= 100.0
            if info < 0 or shift > 1e-6:
                raise Breakdown("no Cholesky factor")

    def solve(self, rhs: Vector) -> Vector:
        if not self.careful:
            return np.asarray(lapack.dpotrs(self.factor, rhs, lower=1)[0])
        rhs = rhs * self.scale
        x = lapack.dpotrs(self.factor, rhs, lower=1)[0]
        x = x + lapack.dpotrs(self.factor, rhs - blas.dsymv(1.0, self.matrix.T, x, lower=1), lower=1)[0]
        return np.asarray(x * self.scale)


class NormalSystem:
    """Size of the columns: R + XᵀDX formed and factored."""

    def __init__(
        self,
        rows: _core.Rows,
        D: Vector,
        bias: Bias,
        n_threads: int,
        *,
        bias_ridge: float = 0.0,
        careful: bool = True,
        watch: _core.Watch | None = None,
    ) -> None:
        d = rows.shape[1]
        size = d + (bias.value != 0.0)
        H = np.zeros((size, size))  # the core fills one triangle; garbage in the other would warn when it is scaled
        _core.normal_matrix(rows, D, bias.value, H, borrowed_blas(), n_threads, watch)
        H[np.arange(d), np.arange(d)] += 1.0
        if bias.value != 0.0:
            H[d, d] += 1.0 if bias.penalised else bias_ridge
        self.factor = Cholesky(H, careful=careful)

    def solve(self, g: Vector) -> Vector:
        return self.factor.solve(g)


class GramSystem:
    """Size of the active rows F: (D⁻¹ + X_F X_Fᵀ), by the identity of Woodbury."""

    def __init__(
        self,
        rows: _core.Rows,
        D: Vector,
        bias: Bias,
        n_threads: int,
        *,
        bias_ridge: float = 0.0,
        watch: _core.Watch | None = None,
    ) -> None:
        self.rows, self.bias, self.n_threads, self.watch = rows, bias, n_threads, watch
        self.ridge = 1.0 if bias.penalised else bias_ridge
        self.active = np.flatnonzero(D).astype(np.int64)
        n = len(self.active)
        K = np.zeros((n, n))
        if n:
            _core.gram(rows, self.active, K, n_threads, watch)
            K[np.arange(n), np.arange(n)] += 1.0 / D[self.active]
            self.factor = Cholesky(K)
            self.ones = self.factor.solve(np.full(n, bias.value)) if bias.value else np.zeros(n)

    def _spread(self, c: Vector) -> Vector:
        full = np.zeros(self.rows.shape[0])
        full[self.active] = c
        out = np.empty(self.rows.shape[1])
        _core.combine(self.rows, full, out, self.n_threads, self.watch)
        return out

    def solve(self, g: Vector) -> Vector:
        # With K = D⁻¹ + X_F X_Fᵀ and h = K⁻¹ X_F g_w:  v_b (ridge + βᵀK⁻¹β) = g_b − βᵀh,
        # v_w = g_w − X_Fᵀ (h + K⁻¹β v_b), where β is the constant bias column.
        d = self.rows.shape[1]
        g_w, out = g[:d], g.copy()
        if not len(self.active):
            if self.bias.value:
                out[d] = g[d] / self.ridge if self.ridge else 0.0
            return out
        projected = np.empty(self.rows.shape[0])
        _core.scores(self.rows, np.ascontiguousarray(g_w), 0.0, projected, self.n_threads, self.watch)
        h = self.factor.solve(projected[self.active])
        if self.bias.value:
            curvature = self.ridge + self.bias.value * float(self.ones.sum())
            out[d] = (g[d] - self.bias.value * float(h.sum())) / curvature
            h = h + self.ones * out[d]
        out[:d] = g_w - self._spread(h)
        return out


def newton_system(
    rows: _core.Rows,
    D: Vector,
    bias: Bias,
    n_threads: int,
    *,
    bias_ridge: float = 0.0,
    watch: _core.Watch | None = None,
) -> NormalSystem | GramSystem:
    """The smaller of the two forms."""
    if rows.shape[1] > max(int(np.count_nonzero(D)), 100):
        return GramSystem(rows, D, bias, n_threads, bias_ridge=bias_ridge, watch=watch)
    try:
        return NormalSystem(rows, D, bias, n_threads, bias_ridge=bias_ridge, careful=False, watch=watch)
    except Breakdown:
        return NormalSystem(rows, D, bias, n_threads, bias_ridge=bias_ridge, watch=watch)

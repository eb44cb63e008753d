"""The linear system (R + XᵀDX) v = g of every Newton-like step, with the bias as last unknown.

Solved in the smaller of two sizes: columns (normal equations) or rows with D > 0 (their Gram matrix).
"""

from __future__ import annotations

import numpy as np
import scipy.linalg.blas as blas
import scipy.linalg.lapack as lapack
from numpy.typing import NDArray

from maxmargin.kept import kept_property
from maxmargin.runtime import Execution
from maxmargin.space import prices
from maxmargin.space.base import Space
from maxmargin.space.bias import Bias
from maxmargin.space.budget import FACTORED, KNOWN_PRODUCTS, SECOND_MATRIX, largest_square
from maxmargin.space.conjugate_gradients import conjugate_gradients

Vector = NDArray[np.float64]


class Breakdown(ArithmeticError):
    """The matrix is not positive definite to working precision."""


class Cholesky:
    """Factor of a symmetric matrix (row-major upper triangle), which it overwrites.

    ``careful`` scales the matrix to unit diagonal, shifts it by rounding if it must, and refines solutions.
    """

    def __init__(self, H: Vector, *, careful: bool = True) -> None:
        diagonal = H.reshape(-1)[:: len(H) + 1]
        if not 1e-290 <= diagonal.min() <= diagonal.max() < np.inf:  # false for NaN, too
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
            work.reshape(-1)[:: len(work) + 1] += shift
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


class NormalCache:
    """XᵀDX of the last D. Where D has two values only, few rows change sides from step to step, and only they count.

    Kept for max D = 1: a penalty that grows changes nothing but a factor. What rows leave behind when they are taken
    away is rounding; beside the identity in the system it must stay small, or the matrix is formed afresh.
    """

    LARGEST = largest_square(SECOND_MATRIX)  # columns
    ROUNDING = 1e-10

    def __init__(self, rows: Space, bias: Bias) -> None:
        self.rows, self.bias = rows, bias
        self.known: Vector | None = None
        self.products = np.empty((0, 0))
        self.active = 0  # rows when the matrix was formed
        self.moved = 0.0  # trace of what was added and taken away since

    @kept_property
    def squares(self) -> Vector:
        """Traces of the rows' parts."""
        return self.rows.diagonal + self.bias.value**2

    def matrix(self, D: Vector, how: Execution) -> Vector:
        """XᵀDX, row-major upper triangle, as a matrix of its own."""
        largest = float(D.max()) if len(D) else 0.0
        if not 0.0 < largest < np.inf or self.rows.d > self.LARGEST:
            return self._form(D, how)
        unit = D / largest
        before, self.known = self.known, None  # nothing is known if the core is interrupted
        change = unit if before is None else unit - before
        count, moved = int(np.count_nonzero(change)), self.moved + float(np.abs(change) @ self.squares)
        resolved = float(np.finfo(np.float64).eps) * largest * moved <= self.ROUNDING
        if before is None or 2 * count > self.active or not resolved:
            self.active = count if before is None else int(np.count_nonzero(unit))
            self.products, self.moved = self._form(unit, how, active=self.active), 0.0
        elif count:
            self._form(change, how, self.products, active=count)
            self.moved = moved
        self.known = unit
        return self.products * largest

    def forget(self) -> None:
        """The next matrix is formed afresh."""
        self.known = None

    def _form(self, D: Vector, how: Execution, add_to: Vector | None = None, *, active: int | None = None) -> Vector:
        return self.rows.normal_matrix(D, self.bias.value, how, add_to=add_to, active=active)


class NormalSystem:
    """Size of the columns: R + XᵀDX formed and factored."""

    iterative = False

    def __init__(
        self,
        rows: Space,
        D: Vector,
        bias: Bias,
        how: Execution,
        *,
        bias_ridge: float = 0.0,
        careful: bool = True,
        cache: NormalCache | None = None,
    ) -> None:
        d = rows.d
        size = d + (bias.value != 0.0)
        how.spend(prices.factor(size))
        H = cache.matrix(D, how) if cache else rows.normal_matrix(D, bias.value, how)
        H.reshape(-1)[: d * size : size + 1] += 1.0
        if bias.value != 0.0:
            H[d, d] += 1.0 if bias.penalised else bias_ridge
        self.factor = Cholesky(H, careful=careful)

    def solve(self, g: Vector) -> Vector:
        return self.factor.solve(g)


class GramCache:
    """Inner products of rows that were active before: active sets change little from step to step."""

    MOST_ROWS = largest_square(KNOWN_PRODUCTS)

    def __init__(self, rows: Space) -> None:
        self.rows = rows
        self.known = np.empty(0, dtype=np.int64)
        self.place = np.full(0, -1, dtype=np.int64)
        self.products = np.empty((0, 0))

    def gram(self, chosen: NDArray[np.int64], how: Execution) -> Vector:
        """⟨x_j, x_k⟩ of the chosen rows, as a matrix of its own."""
        if len(self.place) == 0:
            self.place = np.full(self.rows.n, -1, dtype=np.int64)
        new = chosen[self.place[chosen] < 0]
        if len(self.known) + len(new) > self.MOST_ROWS or 2 * len(new) > len(chosen):
            return self._afresh(chosen, how)
        if len(new):
            old = len(self.known)
            together = np.concatenate([self.known, new])
            block = self.rows.block(new, together, how)
            grown = np.empty((len(together), len(together)))
            grown[:old, :old] = self.products
            grown[old:] = block
            grown[:old, old:] = block[:, :old].T
            self._keep(together, grown)
        at = self.place[chosen]
        return np.ascontiguousarray(self.products[np.ix_(at, at)])

    def _afresh(self, chosen: NDArray[np.int64], how: Execution) -> Vector:
        G = self.rows.gram(chosen, how)
        G = np.triu(G) + np.triu(G, 1).T
        if len(chosen) <= self.MOST_ROWS:
            self.place[self.known] = -1
            self._keep(chosen.copy(), G)
            return G.copy()
        return G

    def _keep(self, known: NDArray[np.int64], products: Vector) -> None:
        self.known, self.products = known, products
        self.place[known] = np.arange(len(known))


class GramSystem:
    """Size of the active rows F: (D⁻¹ + X_F X_Fᵀ), by the identity of Woodbury."""

    iterative = False

    def __init__(
        self,
        rows: Space,
        D: Vector,
        bias: Bias,
        how: Execution,
        *,
        bias_ridge: float = 0.0,
        cache: GramCache | None = None,
    ) -> None:
        self.rows, self.bias, self.how = rows, bias, how
        self.ridge = 1.0 if bias.penalised else bias_ridge
        self.active = np.flatnonzero(D).astype(np.int64)
        n = len(self.active)
        if n:
            how.spend(prices.factor(n))
            K = (cache or GramCache(rows)).gram(self.active, how)
            K.reshape(-1)[:: n + 1] += 1.0 / D[self.active]
            self.factor = Cholesky(K)
            self.ones = self.factor.solve(np.full(n, bias.value)) if bias.value else np.zeros(n)

    def _spread(self, c: Vector) -> Vector:
        full = np.zeros(self.rows.n)
        full[self.active] = c
        return self.rows.combine(full, self.how)

    def solve(self, g: Vector) -> Vector:
        # With K = D⁻¹ + X_F X_Fᵀ and h = K⁻¹ X_F g_w:  v_b (ridge + βᵀK⁻¹β) = g_b − βᵀh,
        # v_w = g_w − X_Fᵀ (h + K⁻¹β v_b), where β is the constant bias column.
        d = self.rows.d
        g_w, out = g[:d], g.copy()
        if not len(self.active):
            if self.bias.value:
                out[d] = g[d] / self.ridge if self.ridge else 0.0
            return out
        projected = self.rows.scores(np.ascontiguousarray(g_w), self.how)
        h = self.factor.solve(projected[self.active])
        if self.bias.value:
            curvature = self.ridge + self.bias.value * float(self.ones.sum())
            out[d] = (g[d] - self.bias.value * float(h.sum())) / curvature
            h = h + self.ones * out[d]
        out[:d] = g_w - self._spread(h)
        return out


class ConjugateGradients:
    """No matrix at all: products with X, scaled by the diagonal of the system."""

    iterative = True
    MOST_STEPS = 500

    def __init__(
        self,
        rows: Space,
        D: Vector,
        bias: Bias,
        how: Execution,
        *,
        bias_ridge: float = 0.0,
    ) -> None:
        self.rows, self.D, self.bias, self.how = rows, D, bias, how
        self.ridge = 1.0 if bias.penalised else bias_ridge
        d = rows.d
        diagonal = np.empty(d + (bias.value != 0.0))
        rows.squared.combine(D, how, out=diagonal[:d])
        diagonal[:d] += 1.0
        if bias.value:
            diagonal[d] = max(self.ridge + bias.value**2 * float(D.sum()), 1e-280)
        self.diagonal, self.forcing = diagonal, 0.01
        self.scores = np.empty(rows.n)

    def times(self, v: Vector) -> Vector:
        d, beta = self.rows.d, self.bias.value
        of_bias = beta * float(v[d]) if beta else 0.0
        self.rows.scores(np.ascontiguousarray(v[:d]), self.how, bias=of_bias, out=self.scores)
        self.scores *= self.D
        out = np.empty_like(v)
        self.rows.combine(self.scores, self.how, out=out[:d])
        out[:d] += v[:d]
        if beta:
            out[d] = beta * float(self.scores.sum()) + self.ridge * float(v[d])
        return out

    def solve(self, g: Vector) -> Vector:
        """Until the residual is ``forcing`` times the right-hand side."""
        return conjugate_gradients(self.times, g, self.diagonal, forcing=self.forcing, most_steps=self.MOST_STEPS)


NewtonSystem = NormalSystem | GramSystem | ConjugateGradients
LARGEST_SYSTEM = largest_square(FACTORED)
SMALL_SYSTEM = 300  # is factored in a millisecond, whatever else could be done
MANY_PRODUCTS = 100  # with X: what conjugate gradients need for a step, both ways; unmeasured


def newton_system(
    rows: Space,
    D: Vector,
    bias: Bias,
    how: Execution,
    *,
    bias_ridge: float = 0.0,
    cache: GramCache | None = None,
    normal: NormalCache | None = None,
    iterative: bool = False,
) -> NewtonSystem | None:
    """The cheapest form, conjugate gradients only where ``iterative`` allows them; None if none is possible."""
    d, active = rows.d, int(np.count_nonzero(D))
    size = min(d, active)
    if iterative and size > SMALL_SYSTEM:
        direct, products = prices.system(rows, active), MANY_PRODUCTS * prices.read(rows)
        if size > LARGEST_SYSTEM or direct > products:
            return ConjugateGradients(rows, D, bias, how, bias_ridge=bias_ridge)
    if size > LARGEST_SYSTEM:
        return None
    if d > max(active, 100):
        return GramSystem(rows, D, bias, how, bias_ridge=bias_ridge, cache=cache)
    try:
        return NormalSystem(rows, D, bias, how, bias_ridge=bias_ridge, careful=False, cache=normal)
    except Breakdown:
        if normal is not None:
            normal.forget()
        return NormalSystem(rows, D, bias, how, bias_ridge=bias_ridge)

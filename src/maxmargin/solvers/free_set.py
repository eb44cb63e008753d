"""Newton's method on the free variables of a quadratic over a box: those that are at no bound.

With the others held, optimality is the linear system  K_FF d + λ = −slope_F,  Σ d = 0 (a λ for every group). A
variable that would leave its box stops at the bound, and the rest is solved for again. The matrix is factored once, in
float32 with a little added to its diagonal; conjugate gradients on the matrix itself, with that factor as their
preconditioner, bring the digits back (Golub, Van Loan: Matrix computations, 2013).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.linalg as linalg
import scipy.linalg.blas as blas
import scipy.linalg.lapack as lapack
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.process import borrowed_blas
from maxmargin.runtime import Execution

Vector = NDArray[np.float64]

SHIFTS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)  # times the largest diagonal entry: until float32 finds a factor
RESOLVED = 4  # times that a system is solved again without the variables that reached a bound
ROUGHLY = 0.2  # of the residual at first, in the block's own norm: while variables still reach bounds
MOST_STEPS = 60  # of conjugate gradients
TINIEST = 1e-300
MOST_TAKEN_OUT = 300  # variables
PIVOTS = 50  # of a partial factor that are drawn together
FARTHEST = 1e30  # of a direction in which the quadratic is flat: float32 has no larger numbers
ROUNDED = 1e-7  # of the largest diagonal entry is what float32 leaves of an eigenvalue
NEGLIGIBLE = 1e-9  # of the diagonal's sum: what is left of it then is not worth more columns


@dataclass(frozen=True)
class Move:
    """A direction of the free variables that keeps them in the box, and how it changes their slopes."""

    step: Vector
    along: Vector


class Preconditioner(Protocol):
    """An approximate inverse of the block of the free variables, and products with the block itself.

    ``least`` is how small a Schur complement may be beside it, relative to the largest value; infinite beside an
    inverse that is so rough that none is worth computing.
    """

    least: float

    def times(self, v: Vector) -> Vector:
        """K v."""
        ...

    def precondition(self, r: Vector) -> Vector:
        """Nearly K⁻¹ r."""
        ...


class Factored:
    """A Cholesky factor of K, which is overwritten: the factor takes the lower triangle, K stays in the upper one."""

    def __init__(self, K: NDArray[Any], how: Execution) -> None:
        self.K, self.how, self.least = K, how, 1e-6 if K.dtype == np.float32 else 1e-12
        self.single = K.dtype == np.float32
        self.diagonal = K.diagonal().copy()
        self.found = self._factor()

    def _factor(self) -> bool:
        K, largest = self.K, float(self.diagonal.max(initial=0.0))
        on_diagonal = K.reshape(-1)[:: len(K) + 1]
        for attempt, shift in enumerate(SHIFTS if self.single else (1e-13, *SHIFTS)):
            if attempt:
                lower = np.tril_indices(len(K), -1)
                K[lower] = K.T[lower]
            on_diagonal[:] = self.diagonal + K.dtype.type(shift * largest)
            if _core.cholesky(K, borrowed_blas(), self.how.n_threads, self.how.watch):
                return True
        return False

    def times(self, v: Vector) -> Vector:
        x = v.astype(self.K.dtype)
        product = (blas.ssymv if self.single else blas.dsymv)(1.0, self.K.T, x, lower=1)
        return np.asarray(product + (self.diagonal - self.K.diagonal()) * x, dtype=np.float64)

    def precondition(self, r: Vector) -> Vector:
        solve = lapack.spotrs if self.single else lapack.dpotrs
        return np.asarray(solve(self.K.T, r.astype(self.K.dtype), lower=0)[0], dtype=np.float64)


class LowRank:
    """K ≈ B Bᵀ + δI, by a partial Cholesky factor whose pivots are drawn by what is left of the diagonal.

    For blocks that are too large to be factored (Chen, Epperly, Tropp, Webber: Randomly pivoted Cholesky, 2023).

    Parameters
    ----------
    times : function of a vector, K v.
    columns : function of a list of variables, their columns of K.
    """

    def __init__(
        self, times: Callable[[Vector], Vector], columns: Callable[[NDArray[np.intp]], NDArray[Any]], diagonal: Vector,
        rank: int,
    ) -> None:  # fmt: skip
        self.times, self.least = times, math.inf
        left, m = diagonal.astype(np.float64), len(diagonal)
        rng, B = np.random.default_rng(0), np.empty((m, 0))
        smallest, largest = NEGLIGIBLE * float(left.sum()), float(left.max(initial=0.0))
        while B.shape[1] < rank and float(left.sum()) > smallest:
            size = min(PIVOTS, rank - B.shape[1])
            chosen = np.unique(rng.choice(m, size, p=left / left.sum()))
            fresh = columns(chosen).astype(np.float64) - B @ B[chosen].T
            corner = fresh[chosen]
            values, vectors = np.linalg.eigh(0.5 * (corner + corner.T))
            good = values > max(1e-6 * float(values[-1]), ROUNDED * largest)
            if not good.any():  # what is left is rounding, or a ridge that no column has
                break
            B = np.concatenate([B, fresh @ (vectors[:, good] / np.sqrt(values[good]))], axis=1)
            left = np.maximum(diagonal - np.einsum("ij,ij->i", B, B), 0.0)
        self.B = B
        self.rest = max(float(left.mean()), 1e-6 * float(diagonal.mean())) or 1.0
        inner = B.T @ B
        inner.reshape(-1)[:: len(inner) + 1] += self.rest
        self.inner = lapack.dpotrf(inner, lower=1)[0] if len(inner) else inner

    def precondition(self, r: Vector) -> Vector:
        if not self.B.shape[1]:
            return r / self.rest
        return np.asarray((r - self.B @ lapack.dpotrs(self.inner, self.B.T @ r, lower=1)[0]) / self.rest)


class Bordered:
    """A block with some more variables, whose lines are held beside it; the inverse grows by Schur's complement.

    Parameters
    ----------
    lines : array of shape (k, m + k)
        Values of the k new variables with all, with the ridge.
    """

    def __init__(self, block: Preconditioner, lines: NDArray[Any]) -> None:
        self.block, self.lines, self.m, self.least = block, lines, lines.shape[1] - len(lines), block.least
        corner = lines[:, self.m :].astype(np.float64)
        if np.isinf(block.least):
            self.images, self.inverse = (
                np.zeros((self.m, len(lines))),
                np.diag(1.0 / np.maximum(corner.diagonal(), TINIEST)),
            )
            return
        old = lines[:, : self.m].astype(np.float64)
        self.images = block.precondition(old.T)
        largest = float(np.abs(corner).max()) or 1.0  # a kernel may be 0 everywhere
        least = block.least * largest
        corner -= old @ self.images
        values, vectors = np.linalg.eigh(0.5 * (corner + corner.T))
        self.inverse = (vectors / np.maximum(values, least)) @ vectors.T

    def times(self, v: Vector) -> Vector:
        x = v.astype(self.lines.dtype)
        old = self.block.times(v[: self.m]) + self.lines[:, : self.m].T @ x[self.m :]
        return np.concatenate([old, self.lines @ x])

    def precondition(self, r: Vector) -> Vector:
        old = self.block.precondition(r[: self.m])
        new = self.inverse @ (r[self.m :] - self.images.T @ r[: self.m])
        return np.concatenate([old - self.images @ new, new])


class FreeSet:
    """The free variables with their block of the matrix.

    Parameters
    ----------
    block : Preconditioner
        Of the matrix of all pairs of free variables, with the ridge.
    groups : array of shape (m,)
        The group of every free variable.
    """

    def __init__(self, block: Preconditioner, groups: NDArray[np.intp]) -> None:
        self.block, self.times, self._precondition = block, block.times, block.precondition
        _, self.groups = np.unique(groups, return_inverse=True)
        self.n_groups = int(self.groups.max()) + 1

    def _solve(self, rhs: Vector, alive: NDArray[np.bool_], precision: float) -> Vector:
        """d with K d + λ = rhs and Σ d = 0 on the variables that are alive, 0 elsewhere."""
        inverse = self._inverse_among(alive)
        ones = [np.where(alive & (self.groups == g), 1.0, 0.0) for g in range(self.n_groups)]
        ones = [one for one in ones if one.any()]
        images = [inverse(one) for one in ones]
        border = np.array([[float(one @ image) for image in images] for one in ones])

        def centred(r: Vector) -> Vector:  # λ takes the rest, which products with r must not drown in
            r = np.where(alive, r, 0.0)
            for one in ones:
                r -= float(one @ r) / float(one.sum()) * one
            return r

        def project(r: Vector) -> Vector:
            z = inverse(r)
            shares = np.linalg.solve(border, np.array([float(one @ z) for one in ones]))
            for share, image in zip(shares, images, strict=True):
                z -= share * image
            return z

        d, r = np.zeros(len(rhs)), centred(rhs)
        z = project(r)
        p, rz = z.copy(), float(r @ z)
        first = rz
        for self.n_steps in range(MOST_STEPS):
            if not rz > precision**2 * first or float(np.abs(p).max()) > FARTHEST:
                break
            Kp = self.times(p)
            curvature = float(p @ Kp)
            if not curvature > 0.0:
                break
            t = rz / curvature
            d, r = d + t * p, centred(r - t * Kp)
            z = project(r)
            before, rz = rz, float(r @ z)
            p = z + (rz / before) * p
        return d

    def _inverse_among(self, alive: NDArray[np.bool_]) -> Callable[[Vector], Vector]:
        """Nearly the inverse of the block of those that are alive, for vectors that are 0 elsewhere.

        Few others are taken out of the inverse by Schur's complement; many are only left out.
        """
        dead = np.flatnonzero(~alive)
        if not 0 < len(dead) <= MOST_TAKEN_OUT:
            return lambda r: np.where(alive, self._precondition(r), 0.0)
        units = np.zeros((len(alive), len(dead)))
        units[dead, np.arange(len(dead))] = 1.0
        images = self._precondition(units)
        corner = linalg.lu_factor(images[dead])

        def inverse(r: Vector) -> Vector:
            z = self._precondition(r)
            z -= images @ linalg.lu_solve(corner, z[dead])
            z[dead] = 0.0
            return z

        return inverse

    def direction(
        self, slope: Vector, beta: Vector, lower: Vector, upper: Vector, alive: NDArray[np.bool_], precision: float
    ) -> Move | None:
        """Newton's step of the variables that are alive, ended at the bounds; None where there is nothing to gain."""
        # A common part of all slopes is the bias: what is solved for must not drown in it.
        slope, alive = slope.copy(), alive.copy()
        for g in np.unique(self.groups[alive]):
            own = self.groups == g
            slope[own] -= np.median(slope[own & alive])
        total, along = np.zeros(len(beta)), np.zeros(len(beta))
        for attempt in range(RESOLVED):
            if not alive.any():
                break
            to = precision if attempt else max(precision, ROUGHLY)
            wanted = total + self._solve(np.where(alive, -(slope + along), 0.0), alive, to)
            reached = alive & ((beta + wanted < lower) | (beta + wanted > upper))
            total = np.clip(beta + wanted, lower, upper) - beta
            if not reached.any() and to <= precision:
                break
            alive &= ~reached
            total = self._balanced(total)
            along = self.times(total)
        return self._searched(self._balanced(total), slope)

    def _balanced(self, total: Vector) -> Vector:
        """The same step with a sum of zero in every group: what is missing is taken from where it was added."""
        for g in range(self.n_groups):
            own = np.flatnonzero(self.groups == g)
            excess = float(total[own].sum())
            if excess == 0.0:
                continue
            heavy = own[np.sign(total[own]) == np.sign(excess)]
            size = float(np.abs(total[heavy]).sum())
            total[heavy] *= (size - abs(excess)) / size
        return total

    def _searched(self, step: Vector, slope: Vector) -> Move | None:
        """The step that minimises the quadratic along the direction, not beyond its end."""
        along = self.times(step)
        descent, curvature = -float(slope @ step), float(step @ along)
        if not 0.0 < descent < np.inf or not np.isfinite(curvature):
            return None
        t = min(1.0, descent / curvature) if curvature > 0.0 else 1.0
        return Move(t * step, t * along)

"""Newton's method on the free variables of a quadratic over a box: those that are at no bound.

With the others held, optimality is the linear system  K_FF d + λ = −slope_F,  Σ d = 0 (a λ for every group). A
variable that would leave its box stops at the bound, and the rest is solved for again. The matrix is factored once, in
float32 with a little added to its diagonal; conjugate gradients on the matrix itself, with that factor as their
preconditioner, bring the digits back (Golub, Van Loan: Matrix computations, 2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg.blas as blas
import scipy.linalg.lapack as lapack
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.process import borrowed_blas
from maxmargin.runtime import Execution

Vector = NDArray[np.float64]

SHIFTS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)  # times the largest diagonal entry: until float32 finds a factor
RESOLVED = 4  # times that a system is solved again without the variables that reached a bound
ROUGHLY, FINELY = 1e-2, 1e-6  # residuals: while variables still reach bounds, and when none does any more
MOST_STEPS = 60  # of conjugate gradients


@dataclass(frozen=True)
class Move:
    """A direction of the free variables that keeps them in the box, and how it changes their slopes."""

    step: Vector
    along: Vector


class FreeSet:
    """The free variables, their block of the matrix, and its factor.

    Parameters
    ----------
    K : array of shape (m, m)
        float32 or float64, symmetric, with the ridge; it is overwritten.
    groups : array of shape (m,)
        The group of every free variable.
    """

    def __init__(self, K: NDArray[Any], groups: NDArray[np.intp], how: Execution) -> None:
        self.K, self.how = K, how
        _, self.groups = np.unique(groups, return_inverse=True)
        self.n_groups = int(self.groups.max()) + 1
        self.single = K.dtype == np.float32
        self.diagonal = K.diagonal().copy()
        self.has_factor = self._factored()

    def _factored(self) -> bool:
        """The factor takes the lower triangle; the matrix itself stays in the upper one, but for its diagonal."""
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

    def _precondition(self, r: Vector) -> Vector:
        solve = lapack.spotrs if self.single else lapack.dpotrs
        return np.asarray(solve(self.K.T, r.astype(self.K.dtype), lower=0)[0], dtype=np.float64)

    def _solve(self, rhs: Vector, alive: NDArray[np.bool_], precision: float) -> Vector:
        """d with K d + λ = rhs and Σ d = 0 on the variables that are alive, 0 elsewhere."""
        ones = [np.where(alive & (self.groups == g), 1.0, 0.0) for g in range(self.n_groups)]
        ones = [one for one in ones if one.any()]
        images = [np.where(alive, self._precondition(one), 0.0) for one in ones]
        border = np.array([[float(one @ image) for image in images] for one in ones])

        def project(r: Vector) -> Vector:
            z = np.where(alive, self._precondition(np.where(alive, r, 0.0)), 0.0)
            shares = np.linalg.solve(border, np.array([float(one @ z) for one in ones]))
            for share, image in zip(shares, images, strict=True):
                z -= share * image
            return z

        d, r = np.zeros(len(rhs)), rhs.copy()
        z = project(r)
        p, rz = z.copy(), float(r @ z)
        first = rz
        for _ in range(MOST_STEPS):
            if not rz > precision**2 * first:
                break
            Kp = self.times(p)
            curvature = float(p @ Kp)
            if not curvature > 0.0:
                break
            t = rz / curvature
            d, r = d + t * p, r - t * Kp
            z = project(r)
            before, rz = rz, float(r @ z)
            p = z + (rz / before) * p
        return d

    def direction(self, slope: Vector, beta: Vector, lower: Vector, upper: Vector) -> Move | None:
        """Newton's step, ended at the bounds; None where there is no factor or nothing to gain."""
        if not self.has_factor:
            return None
        # A common part of all slopes is the bias: what is solved for must not drown in it.
        slope = slope - np.array([np.median(slope[self.groups == g]) for g in range(self.n_groups)])[self.groups]
        alive = np.ones(len(beta), dtype=bool)
        total, along = np.zeros(len(beta)), np.zeros(len(beta))
        for attempt in range(RESOLVED):
            precision = FINELY if attempt == RESOLVED - 1 or alive.all() else ROUGHLY
            wanted = total + self._solve(-(slope + along), alive, precision)
            reached = alive & ((beta + wanted < lower) | (beta + wanted > upper))
            if not reached.any():
                total = wanted
                break
            total = np.clip(beta + wanted, lower, upper) - beta
            alive &= ~reached
            total = self._balanced(total, beta, lower, upper, alive)
            along = self.times(total)
            if not alive.any():
                break
        total = self._balanced(total, beta, lower, upper, alive)
        return self._searched(total, slope)

    def _balanced(
        self, total: Vector, beta: Vector, lower: Vector, upper: Vector, alive: NDArray[np.bool_]
    ) -> Vector:
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
        if not descent > 0.0:
            return None
        t = min(1.0, descent / curvature) if curvature > 0.0 else 1.0
        return Move(t * step, t * along)

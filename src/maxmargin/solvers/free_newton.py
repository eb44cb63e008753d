"""Newton's method on the free variables of a machine with a kernel: the block of the matrix that it works with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg.blas as blas
from numpy.typing import NDArray

from maxmargin.kernels.held_lines import HeldLines
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.solvers.free_set import Bordered, Factored, FreeSet, LowRank, Preconditioner
from maxmargin.solvers.kernel_run import KernelRun
from maxmargin.solvers.pair_problem import PairProblem
from maxmargin.space import prices

Vector = NDArray[np.float64]

MOST_FREE = 5000  # variables whose block is factored; of more, conjugate gradients have an approximate inverse
RANK = 500  # of that
STALE_FACTOR, STALE_APPROXIMATION = 0.05, 0.005  # of a block's variables may have come or gone since it was made
FIXED = 1e6  # nanoseconds of a Newton step, however few variables there are
FINISH = 0.01  # of the gap that is asked for is what a last Newton step leaves
FAR, COARSEST = 1e-2, 0.1  # gaps at which bounds are still unsettled, and what is enough then
PRODUCTS = 4.0  # nanoseconds for each of the block's values: some tens of products


def _symmetric_times(K: NDArray[Any], v: Vector) -> Vector:
    return np.asarray((blas.ssymv if K.dtype == np.float32 else blas.dsymv)(1.0, K.T, v), dtype=np.float64)


class NewtonOnFree:
    """An iterate, beta and the slopes of the quadratic there, that can make Newton steps."""

    run: KernelRun
    task: PairProblem
    space: KernelRows
    beta: Vector
    slope: Vector
    groups: NDArray[np.intp]
    square: NDArray[Any] | None  # all values, where they are at hand
    lines: HeldLines | None  # else lines of them
    free_set: FreeSet | None
    among: NDArray[np.intp]  # variables that it is about
    n_factored: int  # of its variables, when its block was made

    def add(self, lines: HeldLines, changed: NDArray[np.int32], change: Vector) -> None:
        """Bring the slopes up to date."""
        raise NotImplementedError

    @property
    def free(self) -> NDArray[np.intp]:
        """Variables at no bound, and not where a tube has its corner."""
        task, beta = self.task, self.beta
        inside = (beta > task.lower) & (beta < task.upper)
        return np.flatnonzero(inside & (beta != 0.0) if task.tube else inside)

    def newton_cost(self) -> float:
        """In the units of :mod:`maxmargin.space.prices`."""
        m = float(len(self.free))
        solved = prices.factor(m) / 2.0 if m <= MOST_FREE else m * m * (PRODUCTS + RANK * RANK / m * prices.GRAM_DENSE)
        return FIXED + solved + m * (m + len(self.beta)) * self.space.value_price

    def block_of(self, free: NDArray[np.intp]) -> Preconditioner | None:
        """The free variables' block: factored, or approximated where it is large; None where it cannot be."""
        rows, how, m = free % self.space.n, self.run.how, len(free)
        ridge = 0.0 if self.task.ridge is None else self.task.ridge[free]
        if self.square is not None:
            K = np.ascontiguousarray(self.square[np.ix_(free, free)])
        elif m * m * 4 <= self.space.cache_bytes:
            K = self.space.square_of(rows, how)
        else:
            return self.without_square(free, ridge)
        K.reshape(-1)[:: m + 1] += np.asarray(ridge, dtype=K.dtype)
        if m > MOST_FREE:
            return LowRank(lambda v: _symmetric_times(K, v), lambda some: K[:, some], K.diagonal().copy(), RANK)
        factored = Factored(K, how)
        return factored if factored.found else None

    def without_square(self, free: NDArray[np.intp], ridge: Any) -> Preconditioner:
        """The same where the block is too large to be held: its values are computed for every product."""
        part, how = self.space.take(free % self.space.n), self.run.how

        def columns(some: NDArray[np.intp]) -> NDArray[Any]:
            out = np.empty((len(some), len(free)), dtype=part.value_type)
            part.lines(some.astype(np.int64), how, out)
            return out.T

        own = part.diagonal + ridge
        return LowRank(lambda v: part.rough_scores(v, how) + ridge * v, columns, own, RANK)

    def newton(self, gap: float) -> bool:
        """A step on the free variables; whether it was taken. What is left of the gap is about precision² of it."""
        precision = math.sqrt(FINISH * self.run.aim / max(gap, self.run.aim))
        precision = max(precision, COARSEST) if gap > FAR else precision
        task, free = self.task, self.free
        if len(free) < 2 or not self.has_block_for(free):
            return False
        among = self.among
        beta, lower, upper = self.beta[among], task.lower[among], task.upper[among]
        slope = self.slope[among] + task.tube * np.sign(beta)
        if task.tube:  # a multiplier keeps its side of the tube
            lower, upper = np.where(beta > 0.0, 0.0, lower), np.where(beta < 0.0, 0.0, upper)
        alive = np.isin(among, free, assume_unique=True)
        assert self.free_set is not None
        move = self.free_set.direction(slope, beta, lower, upper, alive, precision)
        if move is None:
            return False
        self.move(np.clip(beta + move.step, lower, upper))
        self.run.add_steps(1)
        return True

    def has_block_for(self, free: NDArray[np.intp]) -> bool:
        """The block of the free variables: made anew, or an earlier one with lines for those that are new."""
        fresh = free[~np.isin(free, self.among, assume_unique=True)]
        apart = len(fresh) + len(self.among) - (len(free) - len(fresh))  # in one of both only
        worn = STALE_FACTOR if self.n_factored <= MOST_FREE else STALE_APPROXIMATION
        grown = len(self.among) + len(fresh) - self.n_factored
        if self.free_set is None or max(apart, grown) > worn * self.n_factored:
            self.free_set, self.among, self.n_factored = None, free, len(free)
            block = self.block_of(free)
            if block is not None:
                self.free_set = FreeSet(block, self.groups[free])
        elif len(fresh):
            self.among = np.concatenate([self.among, fresh])
            self.free_set = FreeSet(self.bordered(self.free_set.block, fresh), self.groups[self.among])
        return self.free_set is not None

    def bordered(self, block: Preconditioner, fresh: NDArray[np.intp]) -> Preconditioner:
        if self.square is not None:
            lines = self.square[np.ix_(fresh, self.among)]
        else:
            lines = self.space.cross(fresh % self.space.n, self.among % self.space.n, self.run.how)
        ridge = 0.0 if self.task.ridge is None else self.task.ridge[fresh]
        own = np.arange(len(fresh)), np.arange(lines.shape[1] - len(fresh), lines.shape[1])
        lines[own] = self.space.diagonal[fresh % self.space.n] + ridge
        return Bordered(block, lines)

    def move(self, to: Vector) -> None:
        """Change the variables of the block, and all slopes with them; bounds are met exactly."""
        task, among = self.task, self.among
        change = to - self.beta[among]
        self.beta[among] = to
        if self.square is not None:
            self.slope += self.square[:, among] @ change.astype(self.square.dtype)
        elif self.lines is not None and 2 * len(among) <= self.lines.capacity:
            moved = np.flatnonzero(change)
            self.add(self.lines, among[moved].astype(np.int32), change[moved])
        else:
            self.move_all(change)
        if task.ridge is not None:
            self.slope[among] += task.ridge[among] * change

    def move_all(self, change: Vector) -> None:
        """The slopes, where the lines are too many to be held."""
        task, among, how = self.task, self.among, self.run.how
        c = np.zeros(self.space.n)
        np.add.at(c, among % self.space.n, change)
        if task.copies > 1 or self.free_set is None:
            self.slope += np.tile(self.space.rough_scores(c, how), task.copies)
            return
        ridge = 0.0 if task.ridge is None else task.ridge[among]
        self.slope[among] += self.free_set.times(change) - ridge * change
        others = np.setdiff1d(np.arange(self.space.n), among, assume_unique=True)
        self.slope[others] += self.space.rough_scores(c, how, others)

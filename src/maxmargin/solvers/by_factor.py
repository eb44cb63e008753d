"""Machines with a kernel through rows whose inner products are its values: K = LLᵀ, or nearly so.

The rows of L make the machine a linear one, which every solver for linear machines can solve, whatever its loss. Its
multipliers are those of the machine with the kernel; the claim is made about them there, with the kernel's own values,
so that nothing that L lacks is hidden. Where L is only near, steps on pairs go on from them.

References
----------
Fine, Scheinberg: Efficient SVM training using low-rank kernel representations, 2001. Williams, Seeger: Using the
Nyström method to speed up kernel machines, 2001. Chen, Epperly, Tropp, Webber: Randomly pivoted Cholesky, 2023.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.linalg.lapack as lapack
from numpy.typing import NDArray

from maxmargin.certificates import NotSeparableError, judge_separability
from maxmargin.certificates.terms import CAREFUL
from maxmargin.errors import InputError
from maxmargin.kernels import Linear
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem import Problem
from maxmargin.process import blas_guard
from maxmargin.runtime import Execution, Watch
from maxmargin.solution import Solution, Status
from maxmargin.solvers.free_set import LowRank
from maxmargin.solvers.kernel_claims import expansion_stated, scores_off
from maxmargin.solvers.points import make_feasible
from maxmargin.solvers.run import STOPPED, Run, Settings, Solver, Start, handed_on, settled
from maxmargin.space import Rows

Vector = NDArray[np.float64]

MOST_FACTORED = 6000  # rows of a matrix that is factored to the end
SMALLEST_PIVOT = 1e-14  # of the largest diagonal entry: what is left of the matrix is rounding
INNER_TOL = 1e-3  # of the tolerance: what the linear machine is solved to
SHARPER = (1.0, 1e-2, 1e-4)  # times that, until the claim is good enough
NO_MULTIPLIER = 1e-11  # of the largest one: what a barrier leaves of a multiplier that is zero
IDLE = 1e-6  # of the cost, and of the margin: a row beyond with no larger multiplier has none
SAFELY = 1.0 + 1e-9  # longer than margins of 1 ask for, so that rounding cannot take them away


@dataclass(frozen=True, kw_only=True)
class ByFactor(Settings):
    """Any loss, by a solver for linear machines on the rows of a factor of the kernel matrix.

    Parameters
    ----------
    make : a solver for the linear problem, given a tolerance.
    rank : columns of the factor; None: a factor to the end, for at most :data:`MOST_FACTORED` rows.
    polish : what goes on with the multipliers where they are not good enough; None: nobody.
    """

    make: Callable[[Problem, float], Solver] = field(repr=False)
    rank: int | None = None
    polish: Solver | None = field(default=None, repr=False)
    name: str = field(default="by_factor", init=False)

    def solve(self, problem: Problem, *, start: Start = None, watch: Watch | None = None) -> Solution:
        assert isinstance(problem.space, KernelRows)
        watch = watch or Watch()
        run = Run(self, problem, watch)
        live = np.flatnonzero(problem.cost > 0.0)
        if len(live) == problem.n_rows:
            part = problem
        else:
            part = replace(problem, space=problem.space.take(live), y=problem.y[live], cost=problem.cost[live])
        with blas_guard:
            assert isinstance(part.space, KernelRows)
            rows = self.rows_of(part.space, run.sure)
            linear = replace(part, space=rows)
            begin = start.alpha if isinstance(start, Solution) else start
            begin = None if begin is None else begin[live]
            found: Solution | None = None
            for sharper in SHARPER:
                answer = self.make(linear, self.tol * INNER_TOL * sharper).solve(linear, start=begin, watch=watch)
                if answer.status is Status.INFEASIBLE or (part.hard and self.has_twins(part, answer)):
                    refuse_inseparable(part, rows, live, problem.n_rows)
                better = self.stated(part, live, problem.n_rows, answer, run.sure)
                found = better if found is None or better.gap < found.gap else found
                begin = answer.alpha
                if found.gap <= self.tol or answer.status in STOPPED or self.rank is not None:
                    break
        assert found is not None
        if found.gap > self.tol and self.polish is not None and found.status not in STOPPED:
            return self.polished(problem, found, watch)
        return found

    def has_twins(self, part: Problem, answer: Solution) -> bool:
        """Whether two equal rows of different classes explain why there is no answer: rounding parts them in L."""
        assert isinstance(part.space, KernelRows)
        stuck = answer.status is Status.NUMERICAL_LIMIT
        return stuck and opposite_twins(part.space, part.y > 0.0) is not None

    def rows_of(self, space: KernelRows, how: Execution) -> Rows:
        """L: of the linear kernel the rows themselves."""
        if isinstance(space.kernel, Linear):
            return space.rows
        if self.rank is not None:
            return Rows.of(partial_factor(space, self.rank, how), how.n_threads)
        return Rows.of(factor(space, how), how.n_threads)

    def stated(self, part: Problem, live: NDArray[np.intp], n: int, answer: Solution, how: Execution) -> Solution:
        """The multipliers as those of the machine with the kernel, and what can be claimed of them there."""
        space, alpha, b, interval = part.space, answer.alpha.copy(), answer.b, answer.bias_interval
        alpha[np.abs(alpha) <= NO_MULTIPLIER * float(np.abs(alpha).max(initial=0.0))] = 0.0
        assert isinstance(space, KernelRows)
        f, sizes = space.exact_scores(part.sign * alpha, how)
        idle = (np.abs(alpha) <= IDLE * part.cost) & (part.loss.residual(f + b, part.y) < -IDLE)
        if not part.loss.regression and not part.hard and alpha[idle].any():  # beyond the margin: no support vectors
            alpha[idle] = 0.0
            alpha = make_feasible(part, alpha)
            f, sizes = space.exact_scores(part.sign * alpha, how)
        if part.hard:
            alpha, b, f, sizes = stretched(part, alpha, b, f, sizes)
        elif part.bias.free:
            interval = part.loss.best_bias(f, part.y, part.cost, answer.b)
            b = 0.5 * (interval[0] + interval[1])
        found = expansion_stated(part, alpha, b, f, sizes, self.tol)
        full = np.zeros(n)
        full[live] = found.alpha
        c = np.zeros(n)
        c[live] = found.stretch * part.sign * found.alpha
        return replace(
            answer, w=c, alpha=full, b=found.b, stretch=found.stretch,
            bias_interval=interval, primal=found.primal, dual=found.dual, gap=found.gap,
            status=settled(answer.status, found.gap, self.tol), solver=self.name,
            reason=f"{self.reason}; {answer.solver} on the rows of a factor",
        )  # fmt: skip

    def polished(self, problem: Problem, found: Solution, watch: Watch) -> Solution:
        """Goes on where the factor was not near enough."""
        assert self.polish is not None
        return handed_on(found, self.polish.solve(problem, start=found, watch=watch))


def factor(space: KernelRows, how: Execution) -> Vector:
    """L with LLᵀ = K to rounding, one column for every pivot that is not rounding.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> space = KernelRows.of(Rows.of(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]])), Linear())
    >>> L = factor(space, Execution(1))
    >>> L.shape, np.allclose(L @ L.T, space.X @ space.X.T)
    ((3, 2), True)
    """
    if space.n > MOST_FACTORED:
        raise InputError(
            f"this needs a factor of the whole kernel matrix, which {space.n} rows are too many for (at most "
            f"{MOST_FACTORED}); use solver='nystrom', or loss 'hinge' or 'squared_hinge'"
        )
    K = space.square(how, np.float64)
    largest = float(K.diagonal().max(initial=0.0))
    # A row-major lower triangle is a column-major upper one.
    U, pivots, rank, _ = lapack.dpstrf(K.T, lower=1, tol=SMALLEST_PIVOT * largest * space.n, overwrite_a=1)
    L = np.empty((space.n, max(1, rank)))
    L[pivots - 1] = np.tril(U)[:, : max(1, rank)] if rank else 0.0
    return L


def partial_factor(space: KernelRows, rank: int, how: Execution) -> NDArray[np.float32]:
    """L with LLᵀ near K, from columns of K that are drawn by what is left of its diagonal."""

    def columns(some: NDArray[np.intp]) -> NDArray[Any]:
        out = np.empty((len(some), space.n), dtype=space.value_type)
        space.lines(some.astype(np.int64), how, out)
        return out.T

    near = LowRank(lambda v: v, columns, space.diagonal, min(rank, space.n))
    return np.ascontiguousarray(near.B, dtype=np.float32)


def refuse_inseparable(part: Problem, rows: Rows, live: NDArray[np.intp], n_rows: int) -> None:
    """The error that says why there is no hard margin, with its proof where one can be had."""
    space, labels = part.space, part.y > 0.0
    assert isinstance(space, KernelRows)
    twins = opposite_twins(space, labels)
    if twins is not None:
        proof = judge_separability(twin_rows(space, twins), labels[twins])
        among = live[twins]
    else:
        proof, among = judge_separability(rows.X, labels, max_seconds=60.0), live
    if proof.separable is False:
        where = tuple(among[list(proof.rows)].tolist())
        exactly = twins is not None or isinstance(space.kernel, Linear)
        why = "their means coincide" if exactly else "their means coincide in the kernel's space, but for rounding"
        raise NotSeparableError(
            "C=inf asks for a function without any slack, but the classes cannot be separated: under convex weights on "
            f"{len(where)} rows {why} (error.proof has them). Use a finite C.",
            replace(proof, rows=where, n_rows=n_rows),
        )
    raise InputError(
        "C=inf asks for a function without any slack. None was found, and the proof that there is none could not be "
        "computed: the classes nearly touch in the kernel's space. Scale the columns, or use a finite C."
    )


def opposite_twins(space: KernelRows, labels: NDArray[np.bool_]) -> NDArray[np.intp] | None:
    """Two equal rows of different classes, which no kernel separates; None if there are none."""
    if space.is_given:
        return None
    X = space.X
    first: dict[bytes, int] = {}
    for i in range(space.n):
        row = X[[i]].toarray() if space.sparse else X[i]
        key = (np.asarray(row, dtype=np.float64) + 0.0).tobytes()  # −0 is 0
        j = first.setdefault(key, i)
        if labels[i] != labels[j]:
            return np.array([j, i])
    return None


def twin_rows(space: KernelRows, twins: NDArray[np.intp]) -> Vector:
    some = space.X[twins]
    return np.asarray(some.toarray() if space.sparse else some, dtype=np.float64)


def stretched(
    problem: Problem, alpha: Vector, b: float, f: Vector, sizes: Vector
) -> tuple[Vector, float, Vector, Vector]:
    """Multipliers and bias of a hard margin, longer until no margin is below 1."""
    y, live = problem.y, problem.cost > 0.0
    if problem.bias.free:
        b = -0.5 * (float(f[live & (y > 0.0)].min()) + float(f[live & (y < 0.0)].max()))
    least = float((y * (f + b))[live].min())
    if not least > 0.0:
        return alpha, b, f, sizes
    off = CAREFUL * scores_off(problem, alpha, sizes) + 8.0 * math.ulp(abs(b) + float(np.abs(f).max()))
    lost = float(off[live].max())
    by = SAFELY / max(least - lost, 0.5 * least)
    return by * alpha, by * b, by * f, by * sizes

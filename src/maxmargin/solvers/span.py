"""Fewer rows than columns: the problem seen within the span of its rows.

A solution w = Σ alpha_i sign_i x_i never leaves the span, and only inner products of rows matter there. With
XXᵀ = LLᵀ the rows of L, at most as many columns as there are rows, have the same inner products, so that every pass and
every equation has the size of the rows. The answer is certified with X itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np
import scipy.linalg.lapack as lapack
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.problem import Problem
from maxmargin.runtime import Watch, borrowed_blas, effective_threads
from maxmargin.solution import History, Solution, Status, relative_gap
from maxmargin.solvers.base import Point, Start, as_solution, better, recover
from maxmargin.solvers.newton_method import NewtonMethod

Vector = NDArray[np.float64]
Run = Callable[[Problem, Start], Solution]

FEW_COLUMNS = 100  # up to which matrices are so small that nothing is gained


def is_wide(problem: Problem, most_rows: int) -> bool:
    """More columns than rows, and rows few enough for their Gram matrix."""
    return problem.n_cols > max(problem.n_rows, FEW_COLUMNS) and problem.n_rows <= most_rows


class Span:
    """``problem`` in coordinates of its rows' span: ``inside`` has the same inner products, labels, costs and bias."""

    def __init__(self, problem: Problem, n_threads: int, watch: _core.Watch | None = None) -> None:
        n = problem.n_rows
        self.problem, self.n_threads = problem, n_threads
        G = np.empty((n, n))
        _core.gram(problem.rows, np.arange(n, dtype=np.int64), G, borrowed_blas(), n_threads, watch)
        norms = np.diag(G).copy()
        # Scaled to unit diagonal, or short rows would be lost beside long ones.
        size = np.sqrt(np.where(norms > 0.0, norms, 1.0))
        G /= size
        G /= size[:, None]
        factor, pivot, rank, _ = lapack.dpstrf(G.T, lower=1, overwrite_a=1)
        self.basis = pivot[: max(int(rank), 1)] - 1  # rows that span all others
        L = np.empty((n, len(self.basis)))
        L[pivot - 1] = np.tril(factor)[:, : len(self.basis)]
        L *= size[:, None]
        self.inside = replace(problem, X=L, rows=_core.Rows.dense(L))
        self.inside.__dict__.update(squared_norms=norms, null_primal=problem.null_primal)

    @property
    def triangle(self) -> Vector:
        """The basis in its own coordinates, lower triangular."""
        return np.asarray(self.inside.X[self.basis])

    def enter(self, start: Start) -> Start:
        """A start, seen from inside; what of its w is orthogonal to all rows only costs norm and is dropped."""
        if not isinstance(start, Solution):
            return start
        scores = np.empty(self.problem.n_rows)
        _core.scores(self.problem.rows, start.w, 0.0, scores, self.n_threads)
        w, info = lapack.dtrtrs(self.triangle, scores[self.basis], lower=1)
        return replace(start, w=np.ascontiguousarray(w)) if info == 0 and np.all(np.isfinite(w)) else start.alpha

    def leave(self, answer: Solution) -> Point:
        """The answer as a certified point of the problem itself."""
        problem = self.problem
        point = recover(problem, answer.alpha, self.n_threads, b=answer.b)
        if point.gap <= max(2.0 * answer.gap, 1e-12):
            return point
        share, info = lapack.dtrtrs(self.triangle, answer.w, lower=1, trans=1)
        if info != 0 or not np.all(np.isfinite(share)):
            return point
        coefficient, w = np.zeros(problem.n_rows), np.empty(problem.n_cols)
        coefficient[self.basis] = share
        _core.combine(problem.rows, coefficient, w, self.n_threads)
        return better(point, recover(problem, answer.alpha, self.n_threads, w, answer.b, compete=False))


class _Limited(Protocol):
    """What is needed of a solver to speak for it."""

    @property
    def tol(self) -> float: ...
    @property
    def n_threads(self) -> int | None: ...
    @property
    def name(self) -> str: ...
    @property
    def reason(self) -> str: ...


def solve_in_span(solver: _Limited, run: Run, problem: Problem, start: Start, watch: Watch) -> Solution:
    """What ``run`` finds inside the span, as a solution of the problem itself.

    Inner products of columns of very different size lose digits; Newton's method on X itself finds them again.
    """
    tol, n_threads = solver.tol, effective_threads(solver.n_threads)
    history, n_iter = History(), 0
    point, status = None, Status.CONVERGED
    try:
        span = Span(problem, n_threads, watch.core)
        answer = run(span.inside, span.enter(start))
        history, n_iter, status = answer.history, answer.n_iter, answer.status
        point = span.leave(answer)
        if not _reached(problem, point, tol) and status in (Status.CONVERGED, Status.NUMERICAL_LIMIT):
            polish = NewtonMethod(problem, n_threads, watch, max_steps=200, enough=tol)
            try:
                polish.run(point)
            finally:
                point, n_iter = better(point, polish.best), n_iter + polish.steps
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except _core.DeadlineReached:
        status = Status.TIME_LIMIT
    point = point or recover(problem, np.zeros(problem.n_rows), 1)
    return as_solution(problem, point, status, tol, history, n_iter, watch, solver.name, solver.reason)


def _reached(problem: Problem, point: Point, tol: float) -> bool:
    return relative_gap(point.primal, point.dual, problem.null_primal) <= tol

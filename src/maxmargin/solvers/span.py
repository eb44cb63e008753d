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
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.problem import Problem
from maxmargin.runtime import Execution, Watch, blas_guard, effective_threads
from maxmargin.solution import History, Solution, Status, relative_gap
from maxmargin.solvers.base import LOOSE, Point, Start, as_solution, better, recover, starting_point
from maxmargin.solvers.claims import AIM
from maxmargin.solvers.newton_method import NewtonMethod

Vector = NDArray[np.float64]
Run = Callable[[Problem, Start], Solution]

FEW_COLUMNS = 100  # up to which matrices are so small that nothing is gained
MOST_STEPS = 200  # of Newton's method on X itself, where the span was too rough


class Span:
    """``problem`` in coordinates of its rows' span: ``inside`` has the same inner products, labels, costs and bias."""

    def __init__(self, problem: Problem, how: Execution) -> None:
        self.problem, self.how = problem, Execution(how.n_threads)
        self.span = problem.space.span(how)
        self.inside = replace(problem, space=self.span.rows, auxiliary=True)

    def enter(self, start: Start) -> Start:
        """A start, seen from inside; what of its w is orthogonal to all rows only costs norm and is dropped."""
        if not isinstance(start, Solution):
            return start
        if len(start.w) != self.problem.n_cols:
            return start.alpha
        w = self.span.coordinates(self.problem.space.scores(start.w, self.how))
        return start.alpha if w is None else replace(start, w=w)

    def leave(self, answer: Solution) -> Point:
        """The answer as a certified point of the problem itself."""
        problem, n_threads = self.problem, self.how.n_threads
        point = recover(problem, answer.alpha, n_threads, b=answer.b)
        if point.gap <= max(answer.gap, 1e-12):
            return point
        coefficients = self.span.coefficients(answer.w)
        if coefficients is None:
            return point
        w = problem.space.combine(coefficients, self.how)
        return better(point, recover(problem, answer.alpha, n_threads, w, answer.b, compete=False))


class _Limited(Protocol):
    """What is needed of a solver to speak for it."""

    @property
    def tol(self) -> float: ...
    @property
    def max_iter(self) -> int: ...
    @property
    def n_threads(self) -> int | None: ...
    @property
    def name(self) -> str: ...
    @property
    def reason(self) -> str: ...


def is_wide(problem: Problem, most_rows: int, sparse: bool) -> bool:
    """More columns than rows, and rows few enough for their Gram matrix."""
    if problem.space.sparse and not sparse:
        return False
    return problem.n_cols > max(problem.n_rows, FEW_COLUMNS) and problem.n_rows <= most_rows


def solve_where_small(
    solver: _Limited, run: Run, problem: Problem, start: Start, watch: Watch, *, most_rows: int, sparse: bool = False
) -> Solution:
    """What ``run`` finds: in the span of the rows where they are few (at most ``most_rows``), else on X itself.

    ``sparse`` rows are cheap as they are; a method that needs dense equations says so.
    """
    with blas_guard:
        if is_wide(problem, most_rows, sparse):
            return solve_in_span(solver, run, problem, start, watch)
        return run(problem, start)


def solve_in_span(solver: _Limited, run: Run, problem: Problem, start: Start, watch: Watch) -> Solution:
    """What ``run`` finds inside the span, as a solution of the problem itself."""
    return _Stay(solver, problem, watch).solve(run, start)


class _Stay:
    """One call of solve: in, out again, and what is known so far."""

    def __init__(self, solver: _Limited, problem: Problem, watch: Watch) -> None:
        self.solver, self.problem, self.watch = solver, problem, watch
        self.n_threads = effective_threads(solver.n_threads)
        self.history, self.n_iter, self.status = History(), 0, Status.CONVERGED
        self.best: Point | None = None

    def solve(self, run: Run, start: Start) -> Solution:
        problem, solver, answer = self.problem, self.solver, None
        try:
            usable = not isinstance(start, Solution) or len(start.w) == problem.n_cols
            self.best = starting_point(problem, start, self.n_threads) if usable else None
            if not self._reached():
                span = Span(problem, Execution(self.n_threads, self.watch.core))
                answer = run(span.inside, span.enter(start))
                self._take_notes(answer)
                self.best = better(self.best, span.leave(answer))
                self._polish()
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        except _core.DeadlineReached:
            self.status = Status.TIME_LIMIT
        if self.best is None:
            alpha = np.zeros(problem.n_rows) if answer is None else answer.alpha
            self.best = recover(problem, alpha, self.n_threads)
        return as_solution(
            problem, self.best, self.status, solver.tol, self.history, self.n_iter, self.watch, solver.name,
            solver.reason, n_threads=self.n_threads,
        )  # fmt: skip

    def _take_notes(self, answer: Solution) -> None:
        # Gaps inside the span are those of X up to rounding, but nobody has proven them there.
        records = [replace(record, certified=False) for record in answer.history.records]
        self.history, self.n_iter, self.status = History(records), answer.n_iter, answer.status

    def _reached(self) -> bool:
        if self.best is None:
            return False
        return relative_gap(self.best.primal, self.best.dual, self.problem.null_primal) <= AIM * self.solver.tol

    def _polish(self) -> None:
        """Inner products of columns of very different size lose digits; Newton's method on X finds them again."""
        stopped = self.status not in (Status.CONVERGED, Status.NUMERICAL_LIMIT)
        if self.best is None or self._reached() or stopped or not getattr(self.solver, "polish", True):
            return
        tol = self.solver.tol
        steps = min(MOST_STEPS, max(1, self.solver.max_iter - self.n_iter))
        polish = NewtonMethod(
            self.problem, self.n_threads, self.watch, max_steps=steps, enough=AIM * tol, exact=tol <= LOOSE
        )  # fmt: skip
        polish.best = self.best
        try:
            polish.run(self.best)
        finally:
            self.best, self.n_iter = better(self.best, polish.best), self.n_iter + polish.steps
        if not self._reached():
            if self.watch.past_deadline:
                self.status = Status.TIME_LIMIT
            elif self.watch.stop_requested:
                self.status = Status.INTERRUPTED

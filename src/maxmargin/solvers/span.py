"""Fewer rows than columns: the problem seen within the span of its rows.

A solution w = Σ alpha_i sign_i x_i never leaves the span, and only inner products of rows matter there. With
XXᵀ = LLᵀ the rows of L, at most as many columns as there are rows, have the same inner products, so that every pass and
every equation has the size of the rows. The answer is certified with X itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from maxmargin.problem import Problem
from maxmargin.process import blas_guard
from maxmargin.runtime import Execution, Watch
from maxmargin.solution import Solution, Status
from maxmargin.solvers.multipliers import MethodOfMultipliers
from maxmargin.solvers.points import LOOSE, ROUNDING, Point, better, recover, recover_start
from maxmargin.solvers.run import Run, Settings, Start
from maxmargin.space import Rows, in_memory

Solve = Callable[[Problem, Start], Solution]

FEW_COLUMNS = 100  # up to which matrices are so small that nothing is gained
MOST_STEPS = 200  # of Newton's method on X itself, where the span was too rough


class Span:
    """``problem`` in coordinates of its rows' span: ``inside`` has the same inner products, labels, costs and bias."""

    def __init__(self, problem: Problem, how: Execution) -> None:
        self.problem, self.how = problem, replace(how, watch=None)
        self.span = in_memory(problem.space).span(how)
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
        problem = self.problem
        point = recover(problem, answer.alpha, self.how, b=answer.b)
        if point.gap <= max(answer.gap, ROUNDING):
            return point
        coefficients = self.span.coefficients(answer.w)
        if coefficients is None:
            return point
        w = problem.space.combine(coefficients, self.how)
        return better(point, recover(problem, answer.alpha, self.how, w, answer.b, compete=False))


def is_wide(problem: Problem, most_rows: int, sparse: bool) -> bool:
    """More columns than rows, and rows few enough for their Gram matrix."""
    if not isinstance(problem.space, Rows) or (problem.space.sparse and not sparse):
        return False
    return problem.n_cols > max(problem.n_rows, FEW_COLUMNS) and problem.n_rows <= most_rows


def solve_where_small(
    settings: Settings, solve: Solve, problem: Problem, start: Start, watch: Watch, *, most_rows: int,
    sparse: bool = False,
) -> Solution:  # fmt: skip
    """What ``solve`` finds: in the span of the rows where they are few (at most ``most_rows``), else on X itself.

    ``sparse`` rows are cheap as they are; a method that needs dense equations says so.
    """
    with blas_guard:
        if is_wide(problem, most_rows, sparse):
            return solve_in_span(settings, solve, problem, start, watch)
        return solve(problem, start)


def solve_in_span(settings: Settings, solve: Solve, problem: Problem, start: Start, watch: Watch) -> Solution:
    """What ``solve`` finds inside the span, as a solution of the problem itself."""
    run, inside = Run(settings, problem, watch), list[Solution]()

    def work() -> Status:
        usable = not isinstance(start, Solution) or len(start.w) == problem.n_cols
        if start is not None and usable:
            run.keep(recover_start(problem, start, run.sure))
        if run.reached:
            return Status.CONVERGED
        span = Span(problem, run.how)
        answer = solve(span.inside, span.enter(start))
        inside.append(answer)
        # Gaps inside the span are those of X up to rounding, but nobody has proven them there.
        run.history.records += [replace(record, certified=False) for record in answer.history.records]
        run.n_iter = answer.n_iter
        run.keep(span.leave(answer))
        return _polish(run, answer.status)

    status = run.until_stopped(work)
    if run.best is None and inside:  # stopped on the way out: the multipliers are those of the problem, too
        run.keep(recover(problem, inside[0].alpha, run.sure))
    return run.solution(status)


def _polish(run: Run, status: Status) -> Status:
    """Inner products of columns of very different size lose digits; Newton's method on X finds them again."""
    stopped = status not in (Status.CONVERGED, Status.NUMERICAL_LIMIT)
    if run.reached or stopped or not getattr(run.settings, "polish", True):
        return status
    exact = run.tol <= LOOSE
    MethodOfMultipliers(run, max_steps=MOST_STEPS, enough=run.aim, exact=exact).run(run.best)
    return Status.CONVERGED if run.reached else run.stop() or status

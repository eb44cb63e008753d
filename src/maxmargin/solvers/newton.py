"""Newton's method from a nested sequence of samples.

Solves the primal for smooth losses, and the augmented Lagrangian for the others (see
:mod:`~maxmargin.solvers.newton_method`). Many rows of few columns are overdetermined: the solution of an eighth of
them is within the noise of the sample from the solution of all, so that all rows are only needed for the last few
steps.

References
----------
Mangasarian: A finite Newton method for classification, 2002. Keerthi, DeCoste: A modified finite Newton method for
fast solution of large scale linear SVMs, 2005. Lin, Weng, Keerthi: Trust region Newton method for large-scale
logistic regression, 2008. Yan, Li: An efficient augmented Lagrangian method for support vector machine, 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.positions import distinct
from maxmargin.problem import Problem
from maxmargin.runtime import Execution, Watch, effective_threads
from maxmargin.solution import History, Solution, Status
from maxmargin.solvers.base import LOOSE, Point, Start, as_solution, better, recover, starting_point, uncertified
from maxmargin.solvers.claims import AIM
from maxmargin.solvers.newton_method import NewtonMethod
from maxmargin.solvers.span import solve_where_small

Vector = NDArray[np.float64]

MOST_ROWS = 5000  # of few rows with many columns, whose Gram matrix is held
SAMPLE = 8  # a sample holds one row in eight


@dataclass(frozen=True)
class Newton:
    """Newton's method.

    Parameters
    ----------
    tol : relative duality gap to reach.
    max_iter : limit on Newton steps.
    n_threads : threads, None for all that the process may use.
    sampling : solve samples of the rows first, where there are many more rows than columns.
    exact : go on to rounding level where that is cheap, instead of stopping at ``tol``, unless ``tol`` is loose.

    Guarantees
    ----------
    The returned dual point is feasible and the gap is computed from it; the bits do not depend on n_threads.

    Examples
    --------
    >>> from maxmargin import Problem
    >>> problem = Problem.from_arrays([[-1.0], [1.0]], [0, 1], loss="hinge")
    >>> Newton().solve(problem).w.round(9)
    array([1.])
    """

    tol: float = 1e-6
    max_iter: int = 1000
    n_threads: int | None = None
    sampling: bool = True
    exact: bool = True
    reason: str = "asked for"
    name: str = field(default="newton", init=False)

    def solve(self, problem: Problem, *, start: Start = None, watch: Watch | None = None) -> Solution:
        watch = watch or Watch()

        def run(problem: Problem, start: Start) -> Solution:
            return _Run(self, problem, watch).solve(start)

        return solve_where_small(self, run, problem, start, watch, most_rows=MOST_ROWS)


class _Run:
    def __init__(self, solver: Newton, problem: Problem, watch: Watch) -> None:
        self.solver, self.problem, self.watch = solver, problem, watch
        self.n_threads = effective_threads(solver.n_threads)
        self.history, self.n_iter, self.aim = History(), 0, AIM * solver.tol
        self.best: Point | None = None

    def solve(self, start: Start) -> Solution:
        status = Status.CONVERGED
        try:
            near = isinstance(start, Solution)
            if isinstance(start, Solution):
                self.best = uncertified(self.problem, start, self.n_threads)
            else:
                self.best = starting_point(self.problem, start, self.n_threads)
            width = self._from_sample() if self.best is None else 0.0
            if self.best is None:
                self.best = from_nothing(self.problem, self.n_threads)
            if self.best.gap > self.aim or start is None:
                self._newton(width, near)
            if self.best.gap > self.aim:
                out_of_steps = self.n_iter >= self.solver.max_iter
                status = Status.ITERATION_LIMIT if out_of_steps else Status.NUMERICAL_LIMIT
                if self.watch.past_deadline:
                    status = Status.TIME_LIMIT
                elif self.watch.stop_requested:
                    status = Status.INTERRUPTED
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except _core.DeadlineReached:
            status = Status.TIME_LIMIT
        best = self.best if self.best is not None else recover(self.problem, np.zeros(self.problem.n_rows), 1)
        solver = self.solver
        return as_solution(
            self.problem, best, status, solver.tol, self.history, self.n_iter, self.watch, solver.name, solver.reason,
            n_threads=self.n_threads,
        )  # fmt: skip

    def _newton(self, width: float, near: bool) -> None:
        """``width`` of the band of rows whose multipliers are between bounds; 0 if nothing is known."""
        assert self.best is not None
        left = max(1, self.solver.max_iter - self.n_iter)
        method = NewtonMethod(
            self.problem,
            self.n_threads,
            self.watch,
            max_steps=left,
            enough=self.aim,
            exact=self.solver.exact and self.solver.tol <= LOOSE,
        )
        try:
            if width > 0.0:
                cost = self.problem.cost
                method.run(self.best, sigma=float(cost[cost > 0.0].mean()) / (2.0 * width), share=0.3)
            elif near:
                method.run(self.best, penalty=1000.0, share=0.1)
            else:
                method.run(self.best, penalty=10.0, sigma=first_sigma(self.problem, self.best))
        finally:
            self.best = better(self.best, method.best)
            self.n_iter += method.steps
            gap = self.best.gap
            self.history.add(self.n_iter, self.watch.seconds, gap, "newton", certified=math.isfinite(gap))

    def _from_sample(self) -> float:
        """Start at the hyperplane of a sample, if that pays; the width of the band around its margin."""
        problem = self.problem
        if not self.solver.sampling or not worth_sampling(problem):
            return 0.0
        chosen = sample_rows(problem)
        part = problem.part(chosen, problem.n_rows / len(chosen))
        if not problem.loss.regression and len(distinct(part.y[part.cost > 0.0])) < 2:
            return 0.0
        solver = replace(self.solver, tol=max(self.solver.tol, 1e-4))
        answer = _Run(solver, part, self.watch).solve(None)
        self.n_iter += answer.n_iter
        self.history.add(self.n_iter, self.watch.seconds, answer.gap, f"sample of {len(chosen)} rows")
        if answer.status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            self._start_at(answer)
            raise KeyboardInterrupt if answer.status is Status.INTERRUPTED else _core.DeadlineReached
        return self._start_at(answer)

    def _start_at(self, answer: Solution) -> float:
        """The multipliers that belong to a hyperplane: exact for smooth losses, centred at the margin for others."""
        problem = self.problem
        if problem.loss.smooth and answer.status is Status.CONVERGED:
            self.best = uncertified(problem, answer, self.n_threads)
            return 0.0
        scores = problem.space.scores(answer.w, Execution(self.n_threads), bias=answer.b)
        r = problem.loss.residual(scores, problem.y)
        width = 0.0
        if problem.loss.smooth or not problem.loss.has_box:
            alpha = problem.cost * problem.loss.share(r)
        else:
            alpha, width = centred(problem, r)
        self.best = recover(problem, alpha, self.n_threads, answer.w, answer.b)
        return width


def from_nothing(problem: Problem, n_threads: int) -> Point:
    """w = 0, with multipliers in the middle of their range where they have two ends and the loss has corners."""
    if problem.loss.smooth:
        return uncertified(problem, None, n_threads)
    lower, upper = problem.loss.domain(problem.cost)
    bounded = np.isfinite(upper)
    middle = np.where(bounded, 0.5 * (np.where(bounded, lower, 0.0) + np.where(bounded, upper, 0.0)), 0.0)
    return recover(problem, middle, n_threads, np.zeros(problem.n_cols), 0.0)


def first_sigma(problem: Problem, point: Point) -> float | None:
    """A penalty under which most rows of a rough start are between their bounds; None if the usual one is."""
    if not problem.loss.has_box or problem.loss.smooth:
        return None
    live = problem.cost > 0.0
    r = np.abs(problem.target - problem.sign * (point.scores + point.b))[live] - problem.box.kink
    scale = float(np.median(np.abs(r)))
    cost = float(problem.cost[live].mean())
    usual = 10.0 * min(cost, 1.0 / max(float(problem.squared_norms.mean()), 1e-300))
    return 0.25 * cost / scale if point.gap > 0.5 and scale > 0.0 and 0.25 * cost / scale < usual else None


def worth_sampling(problem: Problem) -> bool:
    """Many more rows than unknowns."""
    unknowns = problem.n_cols + 1
    if problem.space.sparse:
        unknowns = min(unknowns, int(problem.nnz / problem.n_rows * 20.0))
    return problem.n_rows >= SAMPLE * max(1000, 50 * unknowns)


def sample_rows(problem: Problem) -> NDArray[np.intp]:
    """One row in eight, at random but always the same."""
    order = np.random.default_rng(problem.n_rows).permutation(problem.n_rows)
    return np.sort(order[: problem.n_rows // SAMPLE])


def centred(problem: Problem, r: Vector) -> tuple[Vector, float]:
    """Multipliers half-way between their bounds on the margin, at a bound outside a band of rows; its width."""
    box = problem.box
    few = min(problem.n_rows - 1, max(30 * (problem.n_cols + 1), int(5.0 * math.sqrt(problem.n_rows))))
    outside = np.abs(r) - box.kink if box.kink > 0.0 else r
    width = max(float(np.partition(np.abs(outside), few)[few]), 1e-300)
    part = np.clip(0.5 + 0.5 * outside / width, 0.0, 1.0)
    if box.kink > 0.0:
        return np.sign(r) * box.upper * part, width
    return box.lower + (box.upper - box.lower) * part, width

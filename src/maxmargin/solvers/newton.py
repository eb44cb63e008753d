"""Newton's method from a nested sequence of samples.

Solves the primal for smooth losses, and the augmented Lagrangian for the others (see
:mod:`~maxmargin.solvers.multipliers`). Many rows of few columns are overdetermined: the solution of an eighth of
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

from maxmargin.positions import distinct
from maxmargin.problem import Problem
from maxmargin.runtime import Execution, Watch
from maxmargin.solution import Solution, Status
from maxmargin.solvers.multipliers import FAR, NEAR, MethodOfMultipliers
from maxmargin.solvers.points import LOOSE, ROUGH, Point, recover, recover_start, uncertified
from maxmargin.solvers.run import Run, Settings, Start, obey
from maxmargin.solvers.span import solve_where_small
from maxmargin.space.budget import HELD, largest_square

Vector = NDArray[np.float64]

MOST_ROWS = largest_square(HELD)  # of few rows with many columns, whose Gram matrix is held
SAMPLE = 8  # a sample holds one row in eight
SAMPLE_TOL = 1e-4  # of a sample's answer: the noise of the sample itself is larger
SPARSE_UNKNOWNS = 20.0  # times the numbers of a row: columns of sparse rows that count as unknowns, at most
PER_UNKNOWN, SPREAD = 30, 5.0  # rows of the band for each unknown, or times the root of n; unmeasured
AROUND_THE_BAND, AROUND_A_START = 0.3, 0.1  # of the rows make the first working set


@dataclass(frozen=True, kw_only=True)
class Newton(Settings):
    """Newton's method; ``max_iter`` counts its steps.

    Costs, in reads of X: two for a step, one for the matrix of a step (fewer where few rows change sides), two for a
    certified point, from which the next working set is chosen. A sample costs an eighth of that.

    Parameters
    ----------
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

    max_iter: int = 1000
    sampling: bool = True
    exact: bool = True
    name: str = field(default="newton", init=False)

    def solve(self, problem: Problem, *, start: Start = None, watch: Watch | None = None) -> Solution:
        watch = watch or Watch()

        def run(problem: Problem, start: Start) -> Solution:
            return _Newton(self, problem, watch).solve(start)

        return solve_where_small(self, run, problem, start, watch, most_rows=MOST_ROWS)


class _Newton:
    """One call of solve."""

    def __init__(self, settings: Newton, problem: Problem, watch: Watch) -> None:
        self.settings, self.problem = settings, problem
        self.run = Run(settings, problem, watch)

    def solve(self, start: Start) -> Solution:
        return self.run.solution(self.run.until_stopped(lambda: self._work(start)))

    def _work(self, start: Start) -> Status:
        run, problem = self.run, self.problem
        near = isinstance(start, Solution) and start.gap <= ROUGH
        if isinstance(start, Solution) and near:
            run.keep(uncertified(problem, start, run.sure))
        elif start is not None:
            run.keep(recover_start(problem, start, run.sure))
        if near or run.gap <= ROUGH:
            if not run.reached:
                self._minimise(0.0, near=near)
            return self._ended()
        rough, run.best = run.best, None  # a start that is no better than none
        try:
            width = self._from_sample()
            if run.best is None:
                run.keep(from_nothing(problem, run.sure))
            self._minimise(width, near=False)
        finally:
            if rough is not None:
                run.keep(rough)
        return self._ended()

    def _ended(self) -> Status:
        run = self.run
        return Status.CONVERGED if run.reached else run.stop() or Status.NUMERICAL_LIMIT

    def _minimise(self, width: float, *, near: bool) -> None:
        """``width`` of the band of rows whose multipliers are between bounds; 0 if nothing is known."""
        run, cost, settings = self.run, self.problem.cost, self.settings
        method = MethodOfMultipliers(
            run, max_steps=max(1, settings.max_iter - run.n_iter), enough=run.aim,
            exact=settings.exact and settings.tol <= LOOSE,
        )  # fmt: skip
        try:
            if width > 0.0:
                method.run(run.best, sigma=float(cost[cost > 0.0].mean()) / (2.0 * width), fraction=AROUND_THE_BAND)
            elif near:
                method.run(run.best, penalty=NEAR, fraction=AROUND_A_START)
            else:
                method.run(run.best, penalty=FAR, sigma=first_sigma(self.problem, run.best))
        finally:
            run.count = run.n_iter  # here every step is the solver's own
            run.note(run.gap, "newton", certified=math.isfinite(run.gap))

    def _from_sample(self) -> float:
        """Start at the hyperplane of a sample, if that pays; the width of the band around its margin."""
        problem, settings, run = self.problem, self.settings, self.run
        if not settings.sampling or not worth_sampling(problem):
            return 0.0
        chosen = sample_rows(problem)
        part = problem.part(chosen, problem.n_rows / len(chosen))
        if not problem.loss.regression and len(distinct(part.y[part.cost > 0.0])) < 2:
            return 0.0
        rough = replace(settings, tol=max(settings.tol, SAMPLE_TOL))
        answer = _Newton(rough, part, run.watch).solve(None)
        run.part(answer, f"sample of {len(chosen)} rows")
        width = self._start_at(answer)
        obey(answer.status)
        return width

    def _start_at(self, answer: Solution) -> float:
        """The multipliers that belong to a hyperplane: exact for smooth losses, centred at the margin for others."""
        problem, run = self.problem, self.run
        if problem.loss.smooth and answer.status is Status.CONVERGED:
            run.keep(uncertified(problem, answer, run.sure))
            return 0.0
        r = problem.loss.residual(problem.space.scores(answer.w, run.sure, bias=answer.b), problem.y)
        width = 0.0
        if problem.loss.smooth or not problem.loss.has_box:
            alpha = problem.cost * problem.loss.slope(r)
        else:
            alpha, width = centred(problem, r)
        run.keep(recover(problem, alpha, run.sure, answer.w, answer.b))
        return width


def from_nothing(problem: Problem, how: Execution) -> Point:
    """w = 0, with multipliers in the middle of their range where they have two ends and the loss has corners."""
    if problem.loss.smooth:
        return uncertified(problem, None, how)
    lower, upper = problem.loss.domain(problem.cost)
    bounded = np.isfinite(upper)
    middle = np.where(bounded, 0.5 * (np.where(bounded, lower, 0.0) + np.where(bounded, upper, 0.0)), 0.0)
    return recover(problem, middle, how, np.zeros(problem.n_cols), 0.0)


def first_sigma(problem: Problem, point: Point) -> float | None:
    """A penalty under which most rows of a rough start are between their bounds; None if the usual one is."""
    if not problem.loss.has_box or problem.loss.smooth:
        return None
    live = problem.cost > 0.0
    r = np.abs(problem.target - problem.sign * (point.scores + point.b))[live] - problem.box.tube
    scale = float(np.median(np.abs(r)))
    cost = float(problem.cost[live].mean())
    usual = 10.0 * min(cost, 1.0 / max(float(problem.squared_norms.mean()), 1e-300))
    return 0.25 * cost / scale if point.gap > 0.5 and scale > 0.0 and 0.25 * cost / scale < usual else None


def worth_sampling(problem: Problem) -> bool:
    """Many more rows than unknowns."""
    unknowns = problem.n_cols + 1
    if problem.space.sparse:
        unknowns = min(unknowns, int(problem.nnz / problem.n_rows * SPARSE_UNKNOWNS))
    return problem.n_rows >= SAMPLE * max(1000, 50 * unknowns)


def sample_rows(problem: Problem) -> NDArray[np.intp]:
    """One row in eight, at random but always the same."""
    order = np.random.default_rng(problem.n_rows).permutation(problem.n_rows)
    return np.sort(order[: problem.n_rows // SAMPLE])


def centred(problem: Problem, r: Vector) -> tuple[Vector, float]:
    """Multipliers half-way between their bounds on the margin, at a bound outside a band of rows; its width."""
    box = problem.box
    few = min(problem.n_rows - 1, max(PER_UNKNOWN * (problem.n_cols + 1), int(SPREAD * math.sqrt(problem.n_rows))))
    outside = np.abs(r) - box.tube if box.tube > 0.0 else r
    width = max(float(np.partition(np.abs(outside), few)[few]), 1e-300)
    part = np.clip(0.5 + 0.5 * outside / width, 0.0, 1.0)
    if box.tube > 0.0:
        return np.sign(r) * box.upper * part, width
    return box.lower + (box.upper - box.lower) * part, width

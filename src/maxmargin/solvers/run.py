"""One call of solve: what it has found and spent, whom it tells, and when it must end.

Every solver works inside a :class:`Run`: it keeps the best point, counts steps, reports and asks ``stop``, the one
ladder of reasons to end. What ends a pass over the rows from outside, Ctrl-C or a deadline, is caught in
``until_stopped``; so a fit that is stopped always returns the best point it has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.problem import Problem
from maxmargin.runtime import Execution, Watch, effective_threads
from maxmargin.solution import History, Solution, Status
from maxmargin.solvers.claims import AIM, claim
from maxmargin.solvers.points import (
    USABLE,
    Point,
    better,
    claim_of_constant,
    constant_fit,
    recover,
    with_hyperplane,
)
from maxmargin.space import prices

Vector = NDArray[np.float64]
Start = Vector | Solution | None
TRIFLE = 2.0 * prices.SECOND  # counted work that no budget forbids: estimates are no better than that
STOPPED = (Status.INTERRUPTED, Status.TIME_LIMIT)  # by the user, not by the problem


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What every solver can be told.

    Parameters
    ----------
    tol : relative duality gap to reach.
    max_iter : limit on steps (epochs, iterations, Newton steps: each solver's own unit).
    n_threads : threads, None for all that the process may use; no bit of a result depends on it.
    budget : limit on counted work, in the units of :mod:`maxmargin.space.prices`; another solver goes on from there. A
        function is only asked once the work is no trifle.
    reason : why this solver was chosen, in words.
    """

    tol: float = 1e-6
    max_iter: int = 10000
    n_threads: int | None = None
    budget: float | Callable[[], float] = field(default=math.inf, repr=False)
    reason: str = "asked for"
    name: str = field(default="", init=False)


class Solver(Protocol):
    """Problem in, Solution out. ``start`` is a dual point, or a whole solution, to continue from."""

    @property
    def name(self) -> str: ...

    def solve(self, problem: Problem, *, start: Start = None, watch: Watch | None = None) -> Solution: ...


class Run:
    """The state that all solvers share.

    Attributes
    ----------
    how, sure : passes that Ctrl-C and the deadline may interrupt, and passes that must end.
    best : the point with the smallest gap so far.
    aim : the gap that solvers steer for, a little less than ``tol``.
    n_iter, count : steps of all kinds, and those that ``max_iter`` limits: the solver's own.
    """

    def __init__(
        self, settings: Settings, problem: Any, watch: Watch, *,
        better: Callable[[Any, Any], Any] = better,
    ) -> None:  # fmt: skip
        self.settings, self.problem, self.watch = settings, problem, watch
        self.n_threads = effective_threads(settings.n_threads)
        self.how = Execution(self.n_threads, watch.core, watch.meter)
        self.sure = Execution(self.n_threads, None, watch.meter)
        self.tol, self.aim, self.max_iter = settings.tol, AIM * settings.tol, settings.max_iter
        self.history, self.n_iter, self.count = History(), 0, 0
        self.best: Any = None
        self._better, self._begun, self._asked = better, watch.meter.spent, cast("float | None", None)

    # --- what it knows ----------------------------------------------------------------------------------------

    def keep(self, point: Any) -> Any:
        """The point itself; it is remembered if it is the best so far."""
        self.best = self._better(self.best, point)
        return point

    @property
    def gap(self) -> float:
        """Of the best point."""
        return math.inf if self.best is None else float(self.best.gap)

    @property
    def reached(self) -> bool:
        """Whether the best point is as good as was asked."""
        return self.gap <= self.aim

    @property
    def _budget(self) -> float:
        budget = self.settings.budget
        if not callable(budget):
            return budget
        if self.spent <= TRIFLE:
            return math.inf
        if self._asked is None:
            self._asked = budget()
        return self._asked

    @property
    def spent(self) -> float:
        """Counted work of this call."""
        return self.watch.meter.spent - self._begun

    # --- whom it tells, and when it ends ----------------------------------------------------------------------

    def step(self) -> None:
        """One more of the solver's own steps."""
        self.n_iter, self.count = self.n_iter + 1, self.count + 1

    def note(self, gap: float, phase: str, *, certified: bool = False) -> None:
        """A line of the history."""
        self.history.add(self.n_iter, self.watch.seconds, gap, phase, certified=certified)

    def report(self, gap: float) -> Status | None:
        """Tell listeners how far it is; the status if the work must end here."""
        self.watch.report(self.n_iter, gap)
        return self.stop()

    def stop(self) -> Status | None:
        """The one ladder: why the work must end, None if it may go on."""
        stopped = self.stopped_from_outside()
        if stopped is None and self.count >= self.max_iter:
            return Status.ITERATION_LIMIT
        return stopped

    def stopped_from_outside(self) -> Status | None:
        """The ladder without the solver's own steps, for a part of its work that has a limit of its own."""
        if self.watch.past_deadline:
            return Status.TIME_LIMIT
        if self.watch.stop_requested:
            return Status.INTERRUPTED
        return Status.BUDGET_SPENT if self.spent > self._budget else None

    def until_stopped(self, work: Callable[[], Status]) -> Status:
        """What ``work`` returns, or what ended it from outside."""
        try:
            return work()
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        except _core.DeadlineReached:
            return Status.TIME_LIMIT

    def part(self, answer: Solution, phase: str) -> Solution:
        """The answer to a smaller problem on the way; if it was stopped from outside, so is this run."""
        self.n_iter += answer.n_iter
        self.note(answer.gap, phase)
        return answer

    # --- the answer -------------------------------------------------------------------------------------------

    def solution(self, status: Status) -> Solution:
        """The best point with its gap as everybody else sees it; CONVERGED if that is at most ``tol``."""
        problem, point = self.problem, self.best
        if point is None:
            point = recover(problem, np.zeros(problem.n_rows), self.sure)
        if problem.auxiliary:
            return self.answer(point, settled(status, point.gap, self.tol))
        met = point.reached
        if met is not None and point.gap > self.tol and met.primal <= USABLE * problem.null_primal:
            point = with_hyperplane(problem, point, met)  # w = 0 classifies nothing
        if point.induced is None:
            point = recover(problem, point.alpha, self.sure, point.w, point.b, compete=False)
        found = claim(
            problem, point.alpha, point.w, point.b, self.tol, self.sure, primal=point.primal, dual=point.dual,
            induced=point.induced,
        )  # fmt: skip
        w, b, interval = point.w, point.b, point.bias_interval
        if found.gap > self.tol and problem.loss.regression:
            constant = claim_of_constant(problem)
            if constant.gap <= self.tol:
                b = constant_fit(problem)
                w, interval, found = np.zeros(problem.n_cols), (b, b), constant
        claimed = replace(
            point, alpha=found.alpha, w=w, b=b, bias_interval=interval, primal=found.primal, dual=found.dual,
            gap=found.gap,
        )  # fmt: skip
        return self.answer(claimed, settled(status, found.gap, self.tol))

    def answer(self, point: Point, status: Status) -> Solution:
        """A point as what a solver returns."""
        self.note(point.gap, "certified", certified=True)
        return Solution(
            w=point.w, b=point.b, alpha=point.alpha, primal=point.primal, dual=point.dual, gap=point.gap,
            status=status, history=self.history, n_iter=self.n_iter, seconds=self.watch.seconds,
            bias_interval=point.bias_interval, solver=self.settings.name, reason=self.settings.reason,
            penalty=self.problem.penalty,
        )  # fmt: skip


def settled(status: Status, gap: float, tol: float) -> Status:
    """CONVERGED if the gap is reached and nobody interrupted; a solver that only thought so was stopped by rounding."""
    if gap <= tol * (1.0 - 1e-9) and status is not Status.INTERRUPTED:
        return Status.CONVERGED
    return Status.NUMERICAL_LIMIT if status is Status.CONVERGED else status


def handed_on(first: Solution, second: Solution) -> Solution:
    """The better of two answers, with the story of both turns."""
    best = second if not second.gap > first.gap else first
    status = second.status if second.status in STOPPED else best.status
    return replace(
        best, status=status, reason=f"{first.reason}; after a gap of {first.gap:.0e} {second.solver} took over",
        history=History([*first.history.records, *second.history.records]), n_iter=first.n_iter + second.n_iter,
        seconds=second.seconds,
    )  # fmt: skip


def obey(status: Status) -> None:
    """Go on being stopped: a part of the work was."""
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if status is Status.TIME_LIMIT:
        raise _core.DeadlineReached

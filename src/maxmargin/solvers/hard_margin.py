"""The hard margin, C = infinity: the hyperplane of largest margin between two classes that can be separated.

Solves
    minimise ½‖w‖²  subject to  y_i (⟨w, x_i⟩ + b) ≥ 1

by soft-margin problems of growing C: once C exceeds every multiplier, no slack is left and both solutions are the
same. Any hyperplane that separates is scaled to margin 1, any multipliers alpha ≥ 0 with Σ alpha y = 0 to their best
length, so that both objectives bound the optimum: ½‖w‖² from above, ½ (Σ alpha)² / ‖Σ alpha y x‖² from below. At the
optimum ‖w‖² = Σ alpha, and the margin is 1/‖w‖.

References
----------
Vapnik, Lerner: Pattern recognition using generalized portrait method, 1963. Boser, Guyon, Vapnik: A training
algorithm for optimal margin classifiers, 1992.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from maxmargin.losses import LOSSES
from maxmargin.problem import Problem
from maxmargin.runtime import Execution, Watch
from maxmargin.solution import Solution, Status
from maxmargin.solvers.claims import hard_claim
from maxmargin.solvers.points import PLAIN
from maxmargin.solvers.run import STOPPED, Run, Settings, Solver, Start

LARGEST = 1e13  # C‖x‖² beyond which rounding decides
FIRST, GROWTH = 10.0, 100.0  # the first C times the mean ‖x‖², and the factor from one to the next
INNER_TOL = 1e-9  # of a soft margin: what is left of its slack hides a hard one


@dataclass(frozen=True, kw_only=True)
class HardMargin(Settings):
    """Soft margins of growing C; ``make`` builds their solver.

    Costs what its soft margins cost, and three reads of X for each of them.

    Examples
    --------
    >>> from maxmargin import Problem
    >>> from maxmargin.solvers import InteriorPoint
    >>> problem = Problem.from_arrays([[-3.0], [-1.0], [1.0]], [0, 0, 1], C=np.inf)
    >>> solution = HardMargin(tol=1e-9, make=lambda _: InteriorPoint(tol=1e-9)).solve(problem)
    >>> solution.w.round(9), solution.alpha.round(9)
    (array([1.]), array([0. , 0.5, 0.5]))
    """

    make: Callable[[Problem], Solver]
    name: str = field(default="hard_margin", init=False)

    def solve(self, problem: Problem, *, start: Start = None, watch: Watch | None = None) -> Solution:
        """Status INFEASIBLE if no hyperplane was found; the caller may then look for the proof that there is none."""
        return _HardMargin(self, problem, watch or Watch()).solve(start)


class _HardMargin:
    """One call of solve; ``best`` of its run is the best hyperplane without slack."""

    def __init__(self, settings: HardMargin, problem: Problem, watch: Watch) -> None:
        self.settings, self.problem = settings, problem
        self.run = Run(settings, problem, watch, better=_nearer)

    def solve(self, start: Start) -> Solution:
        run, problem = self.run, self.problem
        soft: Start = start
        C = FIRST / max(float(problem.squared_norms.mean()), 1e-300)
        largest = LARGEST / max(float(problem.squared_norms.max()), 1e-300)
        while True:
            part = replace(problem.with_costs(C * problem.cost, loss=LOSSES["hinge"]), auxiliary=True)
            answer = self.settings.make(part).solve(part, start=soft, watch=run.watch)
            run.n_iter += answer.n_iter
            found = separating(problem, answer, run.sure)
            run.note(1.0 if found is None else found.gap, f"C = {C:.1e}", certified=found is not None)
            if found is not None:
                run.keep(found)
            if run.gap <= run.tol:
                return self._finish(answer, Status.CONVERGED)
            stopped = answer.status if answer.status in STOPPED else run.stopped_from_outside()
            if stopped is not None:
                if run.best is None and stopped is Status.INTERRUPTED:
                    raise KeyboardInterrupt  # a soft hyperplane says nothing about a hard margin
                return self._finish(answer, stopped)
            # Rows at their bound take part at the new one, too.
            soft = np.where(answer.alpha >= part.cost * (1.0 - 1e-9), GROWTH * part.cost, answer.alpha)
            C *= GROWTH
            if not largest > C:
                return self._finish(answer, Status.NUMERICAL_LIMIT)

    def _finish(self, answer: Solution, status: Status) -> Solution:
        run = self.run
        best: Solution = run.best or answer
        return replace(
            best, status=Status.INFEASIBLE if run.best is None else status, history=run.history, n_iter=run.n_iter,
            seconds=run.watch.seconds, solver=run.settings.name,
            reason=f"soft margins of growing C, by {best.solver}, {best.reason}",
        )  # fmt: skip


def _nearer(best: Solution | None, found: Solution) -> Solution:
    return found if best is None or found.gap < best.gap else best


def separating(problem: Problem, soft: Solution, how: Execution = PLAIN) -> Solution | None:
    """The soft solution as a hard one: scaled to margin 1; None if it does not separate."""
    live, bias = problem.cost > 0.0, problem.bias
    # Scores of large columns may hide the margin unless their second half is kept.
    scores, tail = problem.space.exact_scores(soft.w, how)
    above, below = live & (problem.y > 0), live & (problem.y < 0)
    b = -0.5 * float((scores + tail)[above].min() + (scores + tail)[below].max()) if bias.free else soft.b
    plus, minus = ((scores + b) + tail)[above], ((scores + b) + tail)[below]
    margin = min(float(plus.min()), -float(minus.max()))
    total = float(soft.alpha.sum())
    if not margin > 0.0 or not total > 0.0:
        return None
    w, b = soft.w / margin, b / margin
    induced = problem.space.combine(soft.alpha * problem.y, how)
    square = float(induced @ induced)
    if bias.penalised:
        square += (bias.value * float(soft.alpha @ problem.y)) ** 2
    length = total / square if square > 0.0 else 1.0
    found, w, b = hard_claim(problem, length * soft.alpha, w, b, how)
    if not np.isfinite(found.primal):
        return None
    ends = b + 1.0 - float(plus.min()) / margin, b - 1.0 - float(minus.max()) / margin
    return Solution(
        w=w, b=b, alpha=found.alpha, primal=found.primal, dual=found.dual, gap=found.gap,
        status=Status.CONVERGED, history=soft.history, n_iter=soft.n_iter, seconds=soft.seconds,
        bias_interval=(min(ends), max(ends)) if bias.free else (b, b), solver=soft.solver, reason=soft.reason,
    )  # fmt: skip

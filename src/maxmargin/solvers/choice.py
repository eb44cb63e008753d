"""The table of solvers: what each needs and costs, which one has the first turn, and who goes on where it ends.

``solver="auto"`` reads the table. The first of ``RULES`` that holds names the solver of the first turn; those of
``FOLLOWERS`` that can solve the problem have the next ones. Every turn but the last has a budget of counted work (once
that is no trifle), so no solver can fall off a cliff unnoticed; each goes on from the best point so far, unless that is
rough. ``solution_.reason`` tells the whole story. Costs are in the units of :mod:`~maxmargin.space.prices`, never in
seconds of a clock. A hard margin is a solver around these; joint machines have one of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from maxmargin.errors import InputError
from maxmargin.losses import SlackPower
from maxmargin.problem import Problem
from maxmargin.runtime import Watch
from maxmargin.solution import History, Solution, Status
from maxmargin.solvers.dual_cd import DualCoordinateDescent
from maxmargin.solvers.hard_margin import INNER_TOL, HardMargin
from maxmargin.solvers.interior_point import InteriorPoint
from maxmargin.solvers.newton import Newton, worth_sampling
from maxmargin.solvers.proximal import ProximalNewton
from maxmargin.solvers.run import Settings, Solver, Start
from maxmargin.space import Rows, in_memory, prices
from maxmargin.space.budget import HELD, largest_square

LARGEST_NORMAL_MATRIX = largest_square(HELD)  # of an interior point method, which forms one in every iteration
LARGEST_SPREAD = 1e3  # of the sizes of columns: coordinate and Newton steps take the longer, the larger it is
MANY_NUMBERS = 500_000  # in X, from which the start from a sample pays
HIGH_DIMENSION = 3000  # columns of sparse rows from which their normal matrix costs more than many passes
SMALL = 0.01 * prices.SECOND  # a cost at which nothing better is looked for
INTERIOR_ITERATIONS = 20.0  # for classes of equal cost; 1.5 times as many more for each power of ten between them
INTERIOR_NUMBER, INTERIOR_ROW = 4.2, 50.0  # an iteration's visits to a number of X, and to the other arrays of a row
NEWTON_STEPS, ROUNDS_STEPS = 10.0, 60.0  # of a smooth loss, and of the method of multipliers
EPOCHS = 30.0  # of coordinate descent before its polish
BUDGET = 5.0  # times the cost of the next solver, so that a cliff costs no more than that
ROUGH_START = 0.5  # a gap above which a point is no better than no start


@dataclass(frozen=True)
class Line:
    """A solver in the table: ``lacks`` is "" or what it would need; ``cost`` is what it may cost."""

    make: type[Settings]
    lacks: Callable[[Problem], str]
    cost: Callable[[Problem], float]

    def __call__(self, **options: Any) -> Solver:
        """The solver with these settings."""
        solver: Any = self.make(**options)
        return cast(Solver, solver)


@dataclass(frozen=True)
class Rule:
    """When a solver has the first turn, and the words that explain it."""

    solver: str
    holds: Callable[[Problem], bool]
    why: Callable[[Problem], str]


def interior_point_cost(problem: Problem) -> float:
    """Iterations of one matrix XᵀDX, one factorisation and some passes; more iterations for unequal classes."""
    n, d, space = problem.n_rows, problem.n_cols, problem.space
    size = min(n, max(d, 1)) + 1
    if d > n:  # dense rows in their span
        outer = prices.FORM_DENSE * n * n * size
    elif space.sparse:
        outer = prices.FORM_SPARSE * float((in_memory(space).lengths.astype(float) ** 2).sum())
    else:
        outer = prices.FORM_DENSE * n * size * size
    passes = INTERIOR_NUMBER * min(space.nnz, n * size) + INTERIOR_ROW * n
    iterations = INTERIOR_ITERATIONS
    if not problem.loss.regression:
        plus, minus = float(problem.cost[problem.y > 0].sum()), float(problem.cost[problem.y < 0].sum())
        imbalance = max(plus, minus) / min(plus, minus)
        iterations *= 1.0 + 1.5 * math.log10(max(1.0, min(imbalance, 1e3)))
    return iterations * (outer + prices.factor(size) + passes)


def newton_cost(problem: Problem) -> float:
    """Steps of one system and two reads; rows with corners need rounds of multipliers."""
    steps = NEWTON_STEPS if problem.loss.smooth else ROUNDS_STEPS
    return steps * (prices.system(problem.space, problem.n_rows) + 2.0 * prices.read(problem.space))


def descent_cost(problem: Problem) -> float:
    """Epochs, and the polish of a small active set."""
    active = min(problem.n_rows, problem.n_cols + 1)
    return EPOCHS * prices.epoch(problem.space) + ROUNDS_STEPS * prices.system(problem.space, active)


def _lacks_l2(problem: Problem) -> str:
    return "penalty 'l2'" if problem.penalty == "l1" else ""


def _lacks_curve(problem: Problem) -> str:
    loss = problem.loss
    fits = loss.smooth or loss.has_box or isinstance(loss, SlackPower)
    return _lacks_l2(problem) or ("" if fits else "a loss with a curvature, with a box, or the slack to a power")


def _lacks_l1(problem: Problem) -> str:
    return "" if problem.penalty == "l1" else "penalty 'l1'"


def _lacks_memory(problem: Problem) -> str:
    return _lacks_l2(problem) or ("" if isinstance(problem.space, Rows) else "rows in this memory")


def _lacks_box(problem: Problem) -> str:
    return _lacks_memory(problem) or ("" if problem.loss.has_box else "a piecewise quadratic loss of power 1 or 2")


def _lacks_multipliers(problem: Problem) -> str:
    fits = problem.loss.has_box or problem.loss.entropic
    return _lacks_memory(problem) or ("" if fits else "a loss whose multipliers can be moved one at a time")


SOLVERS: dict[str, Line] = {}  # the table


def add(line: Line) -> None:
    """Write a line into the table."""
    SOLVERS[line.make.name] = line


add(Line(InteriorPoint, _lacks_box, interior_point_cost))
add(Line(DualCoordinateDescent, _lacks_multipliers, descent_cost))
add(Line(Newton, _lacks_curve, newton_cost))
add(Line(ProximalNewton, _lacks_l1, newton_cost))


def supported(problem: Problem) -> list[str]:
    """Names of the solvers that can solve the problem."""
    return [name for name, line in SOLVERS.items() if not line.lacks(problem)]


def has_interior_point(problem: Problem) -> bool:
    """Whether the interior point method can solve the problem and its normal matrix can be held."""
    size = min(problem.n_rows, max(problem.n_cols, 1)) + 1
    return size <= LARGEST_NORMAL_MATRIX and not _lacks_box(problem)


def high_dimensional(problem: Problem) -> bool:
    """So many columns that sparse rows are nearly orthogonal, and normal matrices expensive."""
    return problem.n_cols > problem.n_rows or problem.n_cols > HIGH_DIMENSION


def _spread(problem: Problem) -> float:
    return problem.space.facts.column_spread


# Read from above: the first that holds has the first turn.
RULES: tuple[Rule, ...] = (
    Rule("proximal_newton", lambda p: p.penalty == "l1", lambda p: f"the solver for penalty {p.penalty!r}"),
    Rule(
        "newton",
        lambda p: supported(p) == ["newton"],
        lambda p: f"the solver for penalty 'l2' and loss {p.loss.name!r}",
    ),
    Rule(
        "interior_point", lambda p: has_interior_point(p) and _spread(p) > LARGEST_SPREAD,
        lambda p: f"column scales differ by a factor of {_spread(p):.0e}",
    ),
    Rule(
        "dual_cd", lambda p: p.space.sparse and high_dimensional(p),
        lambda p: "sparse rows in many dimensions are nearly orthogonal, single steps suffice",
    ),
    Rule("newton", lambda p: p.loss.smooth, lambda p: "the loss is smooth, a few Newton steps suffice"),
    Rule(
        "interior_point", lambda p: not p.space.sparse and p.n_cols > p.n_rows and has_interior_point(p),
        lambda p: "with fewer rows than columns the equations are small",
    ),
    Rule(
        "newton", lambda p: worth_sampling(p) and p.nnz > MANY_NUMBERS,
        lambda p: "so many rows that a sample of them gives a good start",
    ),
    Rule(
        "interior_point", lambda p: has_interior_point(p) and interior_point_cost(p) < SMALL,
        lambda p: "so small that every iteration costs next to nothing",
    ),
    Rule("dual_cd", lambda p: True, lambda p: "some coordinate steps, then Newton's method"),
)  # fmt: skip


def choose(problem: Problem) -> tuple[str, str]:
    """Name of the solver of the first turn, and the sentence that explains the choice."""
    rule = next(rule for rule in RULES if rule.holds(problem))
    return rule.solver, f"chosen for {problem.n_rows} rows and {problem.n_cols} columns: {rule.why(problem)}"


def turns(problem: Problem, *, tol: float, max_iter: int, n_threads: int | None, seed: int) -> tuple[Solver, ...]:
    """The solvers in the order of their turns, with their budgets; the last has none."""
    first, reason = choose(problem)
    able = supported(problem)
    if not has_interior_point(problem):
        able = [name for name in able if name != "interior_point"]
    names = [first, *(name for name in FOLLOWERS if name in able and name != first)]
    out: list[Solver] = []
    for k, name in enumerate(names):
        options: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "n_threads": n_threads}
        if k == 0:
            options["reason"] = reason
        if name == "dual_cd":
            options |= {"seed": seed, "patient": "interior_point" not in names[k + 1 :]}
        if k + 1 < len(names):
            options["budget"] = partial(budget_before, names[k + 1], problem)
        out.append(SOLVERS[name](**options))
    return tuple(out)


def budget_before(name: str, problem: Problem) -> float:
    """What a turn may cost when the solver of this name has the next one."""
    return BUDGET * SOLVERS[name].cost(problem)


FOLLOWERS = ("interior_point", "newton")  # whoever needs no more than a matrix ends surely, or says that it cannot


@dataclass(frozen=True)
class Relay:
    """Solvers that take turns: each goes on from the best point so far where the one before did not reach ``tol``."""

    turns: tuple[Solver, ...]

    @property
    def name(self) -> str:
        return self.turns[0].name

    def solve(self, problem: Problem, *, start: Start = None, watch: Watch | None = None) -> Solution:
        watch, answers = watch or Watch(), list[Solution]()
        best: Solution | None = None
        for solver in self.turns:
            if best is not None:
                start = best if best.gap <= ROUGH_START else None
            answers.append(solver.solve(problem, start=start, watch=watch))
            best = answers[-1] if best is None or answers[-1].gap <= best.gap else best
            if answers[-1].status not in HANDED_ON:
                break
        assert best is not None
        return _told(answers, best) if len(answers) > 1 else best


HANDED_ON = (Status.NUMERICAL_LIMIT, Status.ITERATION_LIMIT, Status.BUDGET_SPENT)


def _told(answers: list[Solution], best: Solution) -> Solution:
    """The best answer with the story of all turns."""
    reason, lowest = answers[0].reason, answers[0].gap
    for answer in answers[1:]:
        reason += f"; after a gap of {lowest:.0e} {answer.solver} took over"
        lowest = min(lowest, answer.gap)
    last = answers[-1].status
    stopped = last in (Status.INTERRUPTED, Status.TIME_LIMIT) or best.status is Status.BUDGET_SPENT
    return replace(
        best, status=last if best is not answers[-1] and stopped else best.status, reason=reason,
        history=History([record for answer in answers for record in answer.history.records]),
        n_iter=sum(answer.n_iter for answer in answers), seconds=answers[-1].seconds,
    )  # fmt: skip


def automatic(problem: Problem, *, tol: float, max_iter: int, n_threads: int | None, seed: int) -> Solver:
    """The chosen solver, with others behind it where that may help."""
    chosen = turns(problem, tol=tol, max_iter=max_iter, n_threads=n_threads, seed=seed)
    return chosen[0] if len(chosen) == 1 else Relay(chosen)


def make_solver(
    problem: Problem, name: str, *, tol: float, max_iter: int, n_threads: int | None, seed: int = 0
) -> Solver:
    """The solver of that name, or the automatic choice; wrapped for the hard margin."""
    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "n_threads": n_threads}
    if problem.hard:
        inner = {**options, "tol": INNER_TOL, "seed": seed}
        return HardMargin(make=lambda part: make_solver(part, name, **inner), **options)
    if name == "auto":
        return automatic(problem, seed=seed, **options)
    lacks = SOLVERS[name].lacks(problem)
    if lacks:
        raise InputError(
            f"solver={name!r} cannot solve loss {problem.loss.name!r} with penalty {problem.penalty!r}: it needs "
            f"{lacks}; use 'auto' or one of {supported(problem)}"
        )
    if name == "dual_cd":
        options["seed"] = seed
    return SOLVERS[name](**options)

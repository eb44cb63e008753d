"""Solvers that take turns: who follows whom, at what budget, from where each goes on, and what the answer says."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem, Status
from maxmargin.runtime import Watch
from maxmargin.solution import Solution
from maxmargin.solvers import DualCoordinateDescent, InteriorPoint, Newton, choice
from maxmargin.solvers.choice import SOLVERS, Relay, automatic, choose, turns
from maxmargin.solvers.proximal import ProximalNewton
from maxmargin.solvers.run import Run
from tests.conftest import tall
from tests.oracles import clarabel_optimum
from tests.solvers.inside import Passing, asks_to_stop, calls


def border(monkeypatch, name, value):
    monkeypatch.setattr(choice, name, value)


def starts_seen(monkeypatch, solver):
    """The start of every call of this solver."""
    return calls(monkeypatch, solver, "solve", lambda out, self, problem, *, start=None, **_: start)


def problem(n=60, d=4, *, layout=np.asarray, seed=0, **options):
    X, y = tall(n, d, seed)
    return Problem.from_arrays(layout(X), y, **{"loss": "hinge", **options})


WIDE = {"n": 20, "d": 40, "layout": sp.csr_array}
OPTIONS = {"tol": 1e-5, "max_iter": 170, "n_threads": 2, "seed": 5}


# ---------------------------------------------------------------- who follows whom


@pytest.mark.parametrize(
    ("given", "able", "wanted"),
    [
        ({"loss": "squared_hinge", "penalty": "l1"}, True, [ProximalNewton]),
        ({"loss": 1.5}, True, [Newton]),
        ({"loss": "logistic"}, True, [Newton]),
        ({}, True, [InteriorPoint, Newton]),
        ({"loss": "squared_hinge"}, True, [Newton, InteriorPoint]),
        ({"loss": "squared_hinge"}, False, [Newton]),
        (WIDE, True, [DualCoordinateDescent, InteriorPoint, Newton]),
        (WIDE, False, [DualCoordinateDescent, Newton]),
        ({**WIDE, "loss": "logistic"}, True, [DualCoordinateDescent, Newton]),
    ],
)
def test_whoever_needs_no_more_than_a_matrix_follows_where_it_is_able(monkeypatch, given, able, wanted):
    if not able:
        border(monkeypatch, "LARGEST_NORMAL_MATRIX", 2)
    made = problem(**given)
    solver = automatic(made, **OPTIONS)
    parts = solver.turns if isinstance(solver, Relay) else (solver,)
    assert [type(part) for part in parts] == wanted
    assert solver.name == parts[0].name
    assert isinstance(solver, Relay) == (len(wanted) > 1)
    assert {(part.tol, part.max_iter, part.n_threads) for part in parts} == {(1e-5, 170, 2)}
    assert [part.reason for part in parts] == [choose(made)[1], *["asked for"] * (len(parts) - 1)]
    if wanted[0] is DualCoordinateDescent:  # it goes on by itself unless somebody surer follows
        assert (parts[0].seed, parts[0].patient) == (5, InteriorPoint not in wanted)


@pytest.mark.parametrize("given", [{}, {"loss": "squared_hinge"}, WIDE, {**WIDE, "loss": "logistic"}])
def test_every_turn_but_the_last_may_spend_some_times_what_the_next_one_costs(given):
    made = problem(**given)
    parts = turns(made, **OPTIONS)
    budgets = [part.budget() for part in parts[:-1]]
    assert budgets == [5.0 * SOLVERS[after.name].cost(made) for after in parts[1:]]
    assert min(budgets) > 0.0
    assert parts[-1].budget == np.inf


@pytest.mark.parametrize(("spent", "asked", "status"), [(1.9e9, 0, None), (2.1e9, 1, Status.BUDGET_SPENT)])
def test_a_small_fit_may_take_two_seconds_of_work_whatever_the_estimates_say(spent, asked, status):
    asks = []
    watch = Watch()
    run = Run(Newton(budget=lambda: asks.append(1) or 1.0), problem(), watch)
    run.how.spend(spent)
    assert [run.stop(), run.stop()] == [status, status]
    assert len(asks) == asked  # and never again


# ---------------------------------------------------------------- solvers that say what they are told


@dataclass
class Says:
    """A solver that answers what it is told and remembers how it was asked."""

    name: str
    gap: float
    status: Status
    n_iter: int = 3
    asked: list = field(default_factory=list)

    def solve(self, problem, *, start=None, watch=None):
        self.asked.append((problem, start, watch))
        answer = InteriorPoint(reason=f"{self.name} said so").solve(problem)
        answer.history.records[:] = [replace(answer.history.records[0], phase=self.name)]
        self.answer = replace(answer, gap=self.gap, status=self.status, n_iter=self.n_iter, solver=self.name)
        return self.answer


LIMITS = [Status.NUMERICAL_LIMIT, Status.ITERATION_LIMIT, Status.BUDGET_SPENT]
STOPS = [Status.INTERRUPTED, Status.TIME_LIMIT]


@pytest.mark.parametrize("status", [Status.CONVERGED, Status.INFEASIBLE, *STOPS])
def test_nobody_takes_over_from_a_solver_that_has_finished_or_was_stopped(status):
    one, two = Says("one", 0.5, status), Says("two", 0.0, Status.CONVERGED)
    given, watch, start = problem(), Watch(), np.zeros(60)
    found = Relay((one, two)).solve(given, start=start, watch=watch)
    assert (found.solver, found.gap, found.status, found.reason) == ("one", 0.5, status, "one said so")
    assert found is one.answer
    assert one.asked == [(given, start, watch)]
    assert not two.asked


@pytest.mark.parametrize("first", LIMITS)
@pytest.mark.parametrize(
    ("gap", "second", "best", "status"),
    [
        (1e-9, Status.CONVERGED, "two", Status.CONVERGED),
        (0.2, Status.ITERATION_LIMIT, "two", Status.ITERATION_LIMIT),
        (0.4, Status.CONVERGED, "two", Status.CONVERGED),  # the second's where both are equal
        (0.2, Status.TIME_LIMIT, "two", Status.TIME_LIMIT),
        (0.9, Status.TIME_LIMIT, "one", Status.TIME_LIMIT),  # the first's point, but what stopped the fit
        (0.9, Status.INTERRUPTED, "one", Status.INTERRUPTED),
        (0.9, Status.NUMERICAL_LIMIT, "one", None),
        (0.9, Status.ITERATION_LIMIT, "one", None),
    ],
)
def test_the_second_takes_over_from_one_that_met_a_limit_and_the_better_point_is_kept(first, gap, second, best, status):
    one, two, watch = Says("one", 0.4, first), Says("two", gap, second, 40), Watch()
    relay = Relay((one, two))
    found = relay.solve(problem(), start=np.zeros(60), watch=watch)
    assert (found.solver, found.gap) == (best, min(gap, 0.4))
    # A budget was the first turn's, not the fit's: then the last turn says why there is no more.
    own = second if first is Status.BUDGET_SPENT else first
    assert found.status is (status or own)
    assert two.asked[0][1] is one.answer
    assert two.asked[0][2] is watch
    assert (relay.name, found.n_iter) == ("one", 43)
    assert found.reason == "one said so; after a gap of 4e-01 two took over"
    assert [record.phase for record in found.history.records] == ["one", "two"]
    assert found.seconds == two.answer.seconds
    np.testing.assert_array_equal(found.w, (one if best == "one" else two).answer.w)


@pytest.mark.parametrize(("gap", "kept"), [(0.5, True), (0.50001, False), (1.0, False), (np.inf, False)])
def test_only_a_point_that_is_worth_more_than_none_is_handed_on(gap, kept):
    one, two = Says("one", gap, Status.BUDGET_SPENT), Says("two", 1e-9, Status.CONVERGED)
    found = Relay((one, two)).solve(problem(), start=np.zeros(60))
    assert two.asked[0][1] is (one.answer if kept else None)
    assert (found.solver, found.status) == ("two", Status.CONVERGED)


@pytest.mark.parametrize(
    ("gaps", "from_whom", "best"),
    [((0.3, 0.2, 0.1), "two", "three"), ((0.2, 0.3, 0.25), "one", "one"), ((0.9, 0.3, 0.4), "two", "two"),
     ((0.3, 0.3, 0.3), "two", "three"), ((0.9, 0.8, 0.7), None, "three")],
)  # fmt: skip
def test_the_third_goes_on_from_the_best_point_so_far(gaps, from_whom, best):
    names = ("one", "two", "three")
    parts = [Says(name, gap, Status.NUMERICAL_LIMIT) for name, gap in zip(names, gaps, strict=True)]
    found = Relay(tuple(parts)).solve(problem())
    given = dict(zip(names, parts, strict=True))
    assert parts[2].asked[0][1] is (given[from_whom].answer if from_whom else None)
    assert (found.solver, found.gap, found.n_iter) == (best, min(gaps), 9)
    two, three = (f"{gap:.0e}" for gap in (gaps[0], min(gaps[:2])))
    assert found.reason == f"one said so; after a gap of {two} two took over; after a gap of {three} three took over"


@pytest.mark.parametrize("status", STOPS)
def test_who_is_stopped_in_the_middle_has_no_successor(status):
    one, two, three = Says("one", 0.1, LIMITS[0]), Says("two", 0.9, status), Says("three", 0.0, Status.CONVERGED)
    found = Relay((one, two, three)).solve(problem())
    assert (found.solver, found.status, found.gap, three.asked) == ("one", status, 0.1, [])


# ---------------------------------------------------------------- solvers that work


def hard(C=100.0):
    return problem(300, 5, seed=1, C=C)


def test_a_spent_budget_hands_the_best_point_on_and_the_answer_is_the_optimum(monkeypatch):
    given, starts = hard(C=1.0), starts_seen(monkeypatch, InteriorPoint)
    first = DualCoordinateDescent(reason="tried", polish=False, tol=1e-9, budget=2e4)
    alone = first.solve(given)
    assert alone.status is Status.BUDGET_SPENT
    assert alone.gap < 0.5
    found = Relay((first, InteriorPoint(tol=1e-9))).solve(given)
    assert isinstance(starts[0], Solution)
    assert (starts[0].solver, starts[0].gap) == ("dual_cd", alone.gap)
    assert (found.status, found.solver) == (Status.CONVERGED, "interior_point")
    assert found.reason == f"tried; after a gap of {alone.gap:.0e} interior_point took over"
    assert found.n_iter > alone.n_iter
    optimum = clarabel_optimum(given.space.X, given.y, given.cost, 1)
    assert found.primal == pytest.approx(optimum, rel=1e-8)


@pytest.mark.parametrize("given", [{}, {"loss": "squared_hinge"}, {"n": 30, "d": 60, "layout": sp.csr_array}])
def test_the_automatic_choice_at_tiny_budgets_still_ends_at_the_optimum(monkeypatch, given):
    monkeypatch.setattr("maxmargin.solvers.run.TRIFLE", 0.0)
    border(monkeypatch, "BUDGET", 1e-9)
    made = problem(**{"C": 10.0, "n": 300, **given})
    options = {**OPTIONS, "tol": 1e-9}
    found, again = (automatic(made, **{**options, "n_threads": k}).solve(made) for k in (1, 2))
    assert (found.status, found.solver) == (Status.CONVERGED, turns(made, **options)[-1].name)
    assert found.reason.count("took over") == len(turns(made, **options)) - 1
    power = 1 if made.loss.name == "hinge" else 2
    assert found.primal == pytest.approx(clarabel_optimum(made.space.X, made.y, made.cost, power), rel=1e-7)
    assert found.w.tobytes() == again.w.tobytes()  # work is counted, not timed


def test_a_budget_is_each_turns_own():
    watch, first = Watch(), DualCoordinateDescent(polish=False, tol=1e-12, budget=2e4)
    one, two = (first.solve(hard(), watch=watch) for _ in range(2))
    assert one.status is two.status is Status.BUDGET_SPENT
    assert one.n_iter == two.n_iter > 2
    assert watch.meter.spent > 4e4


def test_a_limit_on_steps_is_each_solvers_own():
    first = DualCoordinateDescent(max_iter=2, polish=False)
    found = Relay((first, first)).solve(hard())
    assert (found.status, found.n_iter) == (Status.ITERATION_LIMIT, 4)


def test_a_deadline_or_a_listener_ends_the_relay_with_the_best_point():
    given, watch = hard(), asks_to_stop(4)
    first = DualCoordinateDescent(max_iter=2, polish=False, reason="tried")
    found = Relay((first, InteriorPoint(tol=1e-12))).solve(given, watch=watch)
    assert found.status is Status.INTERRUPTED
    assert "took over" in found.reason
    assert found.gap <= min(record.gap for record in found.history.records if record.certified)
    late = Passing(progress=lambda *_: setattr(late, "passed", True))
    found = Relay((first, InteriorPoint())).solve(given, watch=late)
    assert (found.status, found.reason, found.solver) == (Status.TIME_LIMIT, "tried", "dual_cd")

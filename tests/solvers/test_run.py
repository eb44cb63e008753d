"""One call of solve: what it keeps and counts, why it must end, and what it hands on to whoever has the next turn."""

import itertools
import math
import time
from dataclasses import replace

import numpy as np
import pytest

from maxmargin import Problem, Status, _core
from maxmargin.runtime import Watch
from maxmargin.solution import History, Record
from maxmargin.solvers import DualCoordinateDescent, InteriorPoint, Newton, points
from maxmargin.solvers.choice import FOLLOWERS, Relay, choose, turns
from maxmargin.solvers.multipliers import MethodOfMultipliers
from maxmargin.solvers.newton import from_nothing
from maxmargin.solvers.run import Run, obey
from tests.solvers.plain import LOSSES, ONE, assert_feasible, dual, induced, optimum, primal, run_on, small

STOPS = {KeyboardInterrupt: Status.INTERRUPTED, _core.DeadlineReached: Status.TIME_LIMIT}


def time_is_over(monkeypatch):
    monkeypatch.setattr(Watch, "past_deadline", True)


def work_for(run, cost):
    """Counted work that leaves nothing behind."""
    run.how.spend(cost)


# --- the ladder -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", list(itertools.product([False, True], repeat=4)))
def test_the_first_reason_of_the_ladder_is_the_status(what, monkeypatch):
    late, asked, spent, counted = what
    watch = Watch()
    run = run_on(small("hinge"), watch, budget=100.0, max_iter=3)
    for _ in range(3 if counted else 2):
        run.step()
    work_for(run, 101.0 if spent else 100.0)
    watch.stop_requested = asked
    if late:
        time_is_over(monkeypatch)
    ladder = [Status.TIME_LIMIT, Status.INTERRUPTED, Status.BUDGET_SPENT, Status.ITERATION_LIMIT]
    reasons = [status for status, holds in zip(ladder, what, strict=True) if holds]
    assert run.stop() is (reasons[0] if reasons else None)
    outside = [status for status in reasons if status is not Status.ITERATION_LIMIT]
    assert run.stopped_from_outside() is (outside[0] if outside else None)


def test_only_a_solvers_own_steps_are_limited():
    run = run_on(small("hinge"), max_iter=2)
    run.n_iter += 100  # of a polish
    assert run.stop() is None
    run.part(replace(Newton().solve(small("hinge")), n_iter=50), "sample")
    assert (run.stop(), run.n_iter, run.count) == (None, 150, 0)
    run.step()
    assert (run.stop(), run.n_iter, run.count) == (None, 151, 1)
    run.step()
    assert (run.stop(), run.n_iter, run.count) == (Status.ITERATION_LIMIT, 152, 2)


def test_a_budget_is_of_one_call_and_not_of_the_watch():
    watch, problem = Watch(), small("hinge")
    first = run_on(problem, watch, budget=10.0)
    work_for(first, 11.0)
    second = run_on(problem, watch, budget=10.0)
    assert (first.spent, second.spent) == (11.0, 0.0)
    assert (first.stop(), second.stop()) == (Status.BUDGET_SPENT, None)
    work_for(second, 10.5)
    assert (first.spent, second.stop()) == (21.5, Status.BUDGET_SPENT)
    assert run_on(problem, watch).stop() is None  # no limit unless asked for


def test_passes_that_must_end_are_counted_but_not_interrupted():
    watch, problem = Watch(), small("hinge")
    run = run_on(problem, watch)
    watch.cancel()
    problem.space.scores(np.ones(4), run.sure)
    assert watch.meter.reads == problem.nnz
    assert run.spent > 0.0
    with pytest.raises((KeyboardInterrupt, _core.DeadlineReached)):
        problem.space.scores(np.ones(4), run.how)


# --- from outside -----------------------------------------------------------------------------------------------


def fail(error):
    raise error


@pytest.mark.parametrize(("error", "status"), list(STOPS.items()))
def test_what_ends_work_from_outside_is_a_status(error, status):
    run = run_on(small("hinge"))

    def work():
        run.keep(points.recover(run.problem, np.full(60, 0.01)))
        fail(error())

    assert run.until_stopped(work) is status
    assert run.solution(status).gap == pytest.approx(run.best.gap)
    assert run.best.gap < 1.0


@pytest.mark.parametrize("status", Status)
def test_what_work_returns_is_the_status_otherwise(status):
    assert run_on(small("hinge")).until_stopped(lambda: status) is status


def test_errors_are_nobodys_status():
    with pytest.raises(ZeroDivisionError):
        run_on(small("hinge")).until_stopped(lambda: fail(ZeroDivisionError()))


@pytest.mark.parametrize("status", Status)
def test_who_obeys_a_part_is_stopped_like_it(status):
    def work():
        obey(status)
        return Status.CONVERGED

    wanted = status if status in STOPS.values() else Status.CONVERGED
    assert run_on(small("hinge")).until_stopped(work) is wanted


def test_a_cancelled_pass_and_a_deadline_are_told_apart():
    problem = small("hinge")
    for watch, status in ((Watch(1e-9), Status.TIME_LIMIT), (Watch(), Status.INTERRUPTED)):
        run = run_on(problem, watch)
        if status is Status.INTERRUPTED:
            watch.cancel()
        time.sleep(0.06)  # passes look at the clock now and then
        assert run.until_stopped(lambda run=run: problem.space.scores(np.ones(4), run.how)) is status
        assert run.stop() is status


@pytest.mark.parametrize("wish", [True, False, None])
def test_a_report_tells_a_listener_and_asks_the_ladder(wish):
    seen = []
    watch = Watch(None, lambda *told: seen.append(told) or wish)
    run = run_on(small("hinge"), watch, max_iter=1)
    assert run.report(0.5) is (Status.INTERRUPTED if wish else None)
    run.step()
    assert run.report(0.25) is (Status.INTERRUPTED if wish else Status.ITERATION_LIMIT)
    assert [told[:2] for told in seen] == [(0, 0.5), (1, 0.25)]
    assert 0.0 <= seen[0][2] <= seen[1][2]


# --- what it knows ----------------------------------------------------------------------------------------------


def test_the_best_point_is_kept_and_every_point_returned():
    problem = small("hinge", C=0.05)
    run = run_on(problem, tol=1e-4)
    assert (run.gap, run.reached) == (math.inf, False)
    rough, fair = (points.recover(problem, np.full(60, a)) for a in (0.01, 0.04))
    assert fair.gap < rough.gap
    for point, best in ((rough, rough.gap), (fair, fair.gap), (rough, fair.gap)):
        assert run.keep(point) is point
        assert run.gap == best
    assert run.best.alpha is fair.alpha
    for gap, reached in ((0.951e-4, False), (0.949e-4, True)):  # a little is left for rounding
        run.keep(replace(fair, gap=gap))
        assert run.reached is reached


def test_who_compares_points_otherwise_keeps_others():
    run = Run(Newton(), small("hinge"), Watch(), better=lambda best, point: point)
    first, second = (points.recover(run.problem, np.full(60, a)) for a in (0.01, 0.9))
    run.keep(first)
    run.keep(second)
    assert run.best is second


def test_history_has_a_line_for_every_note():
    run = run_on(small("hinge"))
    run.note(0.5, "steps")
    run.step()
    run.note(0.25, "more steps", certified=True)
    answer = run.part(Newton().solve(run.problem), "a part")
    lines = [(r.iteration, r.gap, r.phase, r.certified) for r in run.history.records]
    assert lines == [
        (0, 0.5, "steps", False),
        (1, 0.25, "more steps", True),
        (1 + answer.n_iter, answer.gap, "a part", False),
    ]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_call_that_found_nothing_returns_no_multipliers(loss):
    problem = small(loss)
    found = run_on(problem).solution(Status.INTERRUPTED)
    assert (found.status, found.n_iter, found.alpha.any(), found.w.any()) == (Status.INTERRUPTED, 0, False, False)
    assert found.primal == pytest.approx(primal(problem, found.w, found.b), rel=1e-12)
    assert found.dual <= dual(problem, found.alpha) + 1e-300


# --- the method of multipliers within it ------------------------------------------------------------------------


class Steps:
    """Something that happens at the end of the k-th Newton step of a method."""

    def __init__(self, method, k, happens):
        self.method, self.k, self.happens, self.original = method, k, happens, method._step
        method._step = self

    def __call__(self, *arguments):
        out = self.original(*arguments)
        if self.method.steps == self.k:
            self.happens()
        return out


@pytest.mark.parametrize("loss", ["hinge", "logistic", 1.5])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("reason", ["deadline", "listener", "budget"])
def test_newton_steps_end_between_two_of_them(loss, k, reason, monkeypatch):
    problem, watch = small(loss, n=150), Watch()
    run = run_on(problem, watch, budget=1e12)
    happens = {
        "deadline": lambda: time_is_over(monkeypatch),
        "listener": lambda: setattr(watch, "stop_requested", True),
        "budget": lambda: work_for(run, 1e13),
    }
    method = MethodOfMultipliers(run)
    Steps(method, k, happens[reason])
    begin = run.keep(from_nothing(problem, ONE))
    end = method.run(begin)
    assert (method.steps, run.n_iter, run.count) == (k, k, 0)
    assert run.gap == end.gap <= begin.gap  # what there was at the stop is certified and kept
    assert math.isfinite(end.gap)
    np.testing.assert_array_equal(run.best.alpha, end.alpha)
    assert_feasible(problem, end.alpha)
    assert end.dual <= optimum(problem) * (1.0 + 1e-6) <= end.primal * (1.0 + 2e-6)
    assert MethodOfMultipliers(run).run(end) is end  # and nothing begins any more


def test_points_met_are_kept_in_the_run_and_rounds_reported():
    problem, seen = small("hinge", n=150), []
    run = run_on(problem, Watch(None, lambda iteration, gap, seconds: seen.append((iteration, gap))))
    run.n_iter = 1000  # of others
    method = MethodOfMultipliers(run)
    end = method.run(from_nothing(problem, ONE))
    assert run.best is end
    assert run.n_iter == 1000 + method.steps
    assert seen[-1] == (run.n_iter, end.gap)
    assert len(seen) >= 2
    assert [gap for _, gap in seen] == sorted((gap for _, gap in seen), reverse=True)


# --- turns ------------------------------------------------------------------------------------------------------


class Fake:
    """Answers as told, and remembers where it was asked to begin."""

    def __init__(self, name, gap, status, n_iter=3, reason="asked for"):
        problem = small("hinge")
        point = points.recover(problem, np.full(60, 0.01))
        records = [Record(n_iter, 0.0, gap, name, True)]
        self.name, self.starts = name, []
        self.answer = replace(
            Run(Newton(), problem, Watch()).solution(status), w=point.w, gap=gap, status=status, n_iter=n_iter,
            solver=name, reason=reason, history=History(records), seconds=float(n_iter),
        )  # fmt: skip

    def solve(self, problem, *, start=None, watch=None):
        self.starts.append(start)
        self.watch = watch
        return self.answer


SPENT, LIMIT, STUCK = Status.BUDGET_SPENT, Status.ITERATION_LIMIT, Status.NUMERICAL_LIMIT


@pytest.mark.parametrize("status", Status)
def test_the_next_solver_has_its_turn_where_another_way_may_help(status):
    first, second = Fake("first", 1e-3, status), Fake("second", 1e-9, Status.CONVERGED)
    relay, start, watch = Relay((first, second)), np.ones(60), Watch()
    found = relay.solve(small("hinge"), start=start, watch=watch)
    assert relay.name == "first"
    assert first.starts == [start]
    if status not in (SPENT, LIMIT, STUCK):
        assert second.starts == []
        assert found is first.answer
        return
    assert second.starts == [first.answer]
    assert first.watch is second.watch is watch  # one deadline, one listener, one meter
    assert (found.status, found.solver, found.gap, found.n_iter, found.seconds) == (
        Status.CONVERGED, "second", 1e-9, 6, 3.0,
    )  # fmt: skip
    assert found.reason == "asked for; after a gap of 1e-03 second took over"
    assert [record.phase for record in found.history.records] == ["first", "second"]


@pytest.mark.parametrize(
    ("gaps", "starts"),
    [
        ([0.4, 0.1, 1e-9], [None, 0, 1]),
        ([0.4, 0.45, 1e-9], [None, 0, 0]),  # the best so far, whoever found it
        ([0.5, 0.5, 1e-9], [None, 0, 1]),  # of two that are equally good the later one
        ([0.51, 0.4, 1e-9], [None, None, 1]),  # no better than no start
        ([0.9, 0.7, 1e-9], [None, None, None]),
    ],
)
def test_it_begins_at_the_best_point_so_far(gaps, starts):
    solvers = [Fake(f"s{k}", gap, SPENT if k < 2 else Status.CONVERGED) for k, gap in enumerate(gaps)]
    found = Relay(tuple(solvers)).solve(small("hinge"))
    for solver, start in zip(solvers, starts, strict=True):
        assert solver.starts == [None if start is None else solvers[start].answer]
    assert (found.solver, found.n_iter) == ("s2", 9)
    lowest = [f"{gaps[0]:.0e}", f"{min(gaps[:2]):.0e}"]
    assert (
        found.reason == f"asked for; after a gap of {lowest[0]} s1 took over; after a gap of {lowest[1]} s2 took over"
    )


@pytest.mark.parametrize(
    ("statuses", "gaps", "solver", "status"),
    [
        ([SPENT, STUCK], [1e-3, 1e-2], "s0", STUCK),  # a budget was for others, its end is not the last word
        ([STUCK, LIMIT], [1e-3, 1e-2], "s0", STUCK),
        ([STUCK, LIMIT], [1e-3, 1e-4], "s1", LIMIT),
        ([STUCK, Status.INTERRUPTED], [1e-3, 1e-2], "s0", Status.INTERRUPTED),
        ([LIMIT, Status.TIME_LIMIT], [1e-3, 1e-2], "s0", Status.TIME_LIMIT),
        ([SPENT, Status.TIME_LIMIT], [1e-3, 1e-4], "s1", Status.TIME_LIMIT),
    ],
)
def test_the_best_answer_is_named_and_says_why_the_last_turn_ended(statuses, gaps, solver, status):
    solvers = [Fake(f"s{k}", *told) for k, told in enumerate(zip(gaps, statuses, strict=True))]
    found = Relay(tuple(solvers)).solve(small("hinge"))
    assert (found.solver, found.gap, found.status, found.n_iter) == (solver, min(gaps), status, 6)


@pytest.mark.parametrize("first", [DualCoordinateDescent(tol=1e-9, budget=1.0), InteriorPoint(tol=1e-9, budget=4e3)])
def test_a_solver_goes_on_where_a_spent_budget_ended_another(first):
    problem, seen = small("hinge", n=150), []
    alone = first.solve(problem)
    assert alone.status is SPENT
    assert 1e-9 < alone.gap <= 0.5

    class Listens(Newton):
        def solve(self, problem, *, start=None, watch=None):
            seen.append(start)
            return super().solve(problem, start=start, watch=watch)

    found = Relay((first, Listens(tol=1e-9))).solve(problem)
    assert found.status is Status.CONVERGED
    assert found.solver == "newton"
    np.testing.assert_array_equal(seen[0].alpha, alone.alpha)
    np.testing.assert_array_equal(seen[0].w, alone.w)
    assert found.n_iter == alone.n_iter + Newton(tol=1e-9).solve(problem, start=alone).n_iter
    assert found.primal == pytest.approx(optimum(problem), rel=1e-6)
    np.testing.assert_allclose(found.w, induced(problem, found.alpha), atol=found.distance_bound + 1e-12)


@pytest.mark.parametrize(
    ("loss", "d", "names"),
    [
        ("hinge", 4, ["interior_point", "newton"]),
        ("hinge", 200, ["interior_point", "newton"]),
        ("squared_hinge", 4, ["newton", "interior_point"]),
        ("logistic", 4, ["newton"]),
        (1.5, 4, ["newton"]),
    ],
)
def test_all_but_the_last_have_a_budget(loss, d, names):
    X, y = np.random.default_rng(0).standard_normal((100, d)), np.arange(100) % 2
    problem = Problem.from_arrays(X, y, loss=loss)
    solvers = turns(problem, tol=1e-5, max_iter=77, n_threads=1, seed=3)
    assert [solver.name for solver in solvers] == names
    assert names[0] == choose(problem)[0]
    assert set(names[1:]) <= set(FOLLOWERS)
    assert all(0.0 < solver.budget() < math.inf for solver in solvers[:-1])
    assert solvers[-1].budget == math.inf
    assert {(solver.tol, solver.max_iter, solver.n_threads) for solver in solvers} == {(1e-5, 77, 1)}
    assert [solver.reason for solver in solvers] == [choose(problem)[1]] + ["asked for"] * (len(names) - 1)

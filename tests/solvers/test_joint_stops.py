"""Joint machines that are stopped, continued or refused: whoever ends a fit gets its best point and the reason."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import maxmargin._core as core
from maxmargin import InputError, Status
from maxmargin.runtime import Watch
from maxmargin.solvers import joint as module
from tests.solvers.joint_cases import (
    BIASES,
    LOSSES,
    JointMachine,
    assert_feasible,
    blobs,
    drawn,
    joint,
    make_solver,
    optimum,
    phases,
)

CASES = [(loss, bias) for loss in LOSSES for bias in BIASES]


@pytest.mark.parametrize("loss", LOSSES)
def test_the_iteration_limit_is_kept(loss):
    problem = drawn(loss, seed=6, n=150, C=100.0)
    solution = JointMachine(tol=1e-10, max_iter=4).solve(problem)
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.n_iter == 4
    assert_feasible(problem, solution.alpha)


def test_the_limit_holds_for_epochs_and_for_newton_each_by_itself_and_all_steps_are_counted():
    heard = []
    watch = Watch(None, lambda step, *_: bool(heard.append(step)))
    solution = JointMachine(tol=1e-6, max_iter=12).solve(drawn(seed=6, n=150, C=100.0), watch=watch)
    assert phases(solution) == ["coordinate descent", "newton", "certified"]
    assert solution.status is Status.ITERATION_LIMIT
    assert [record.iteration for record in solution.history.records] == [10, 22, 24, 24]
    assert solution.n_iter == 24
    assert heard == sorted(heard)
    assert set(heard) == {10, *range(11, 23), 24}


def test_newtons_steps_use_up_no_epochs(monkeypatch):
    def newton(call):
        call.run.n_iter += 100
        return Status.CONVERGED

    monkeypatch.setattr(module._Joint, "_newton", newton)
    solution = JointMachine(tol=1e-17, max_iter=25).solve(drawn(seed=6, n=150, C=100.0))
    assert [record.iteration for record in solution.history.records] == [10, 120, 125, 125]
    assert solution.status is Status.ITERATION_LIMIT


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("part", [0.0, 0.3, 0.6])
def test_who_has_spent_the_budget_leaves_what_has_been_found(loss, part):
    problem, watch = drawn(loss, seed=6, n=150, C=100.0), Watch()
    whole = JointMachine(tol=1e-9).solve(problem, watch=watch)
    budget, watch = part * watch.meter.spent, Watch()
    solution = JointMachine(tol=1e-9, budget=budget).solve(problem, watch=watch)
    assert solution.status is Status.BUDGET_SPENT
    assert solution.n_iter < whole.n_iter
    assert_feasible(problem, solution.alpha)
    assert whole.primal <= solution.primal * (1.0 + 1e-9)
    assert budget < watch.meter.spent


def test_a_budget_is_that_of_one_call_whatever_its_watch_has_seen_before():
    problem, watch = drawn(seed=6), Watch()
    JointMachine(tol=1e-9).solve(problem, watch=watch)
    again = JointMachine(tol=1e-9, budget=1.1 * watch.meter.spent).solve(problem, watch=watch)
    assert again.status is Status.CONVERGED


def test_a_fit_that_is_interrupted_says_so_although_its_gap_is_reached():
    solution = JointMachine(tol=0.5).solve(drawn(seed=6), watch=Watch(None, lambda *_: True))
    assert solution.gap < 0.5 * 0.9
    assert solution.status is Status.INTERRUPTED


def test_of_equally_good_points_the_later_one_stays():
    first, same, better = (SimpleNamespace(gap=gap) for gap in (0.5, 0.5, 0.4))
    assert module.nearer(None, first) is first
    assert module.nearer(first, same) is same
    assert module.nearer(same, better) is better
    assert module.nearer(better, same) is better


def interrupted(*_):
    raise KeyboardInterrupt


STOPS = {
    "deadline": (lambda: Watch(1e-9), Status.TIME_LIMIT),
    "listener": (lambda: Watch(None, lambda *_: True), Status.INTERRUPTED),
    "Ctrl-C": (lambda: Watch(None, interrupted), Status.INTERRUPTED),
}


@pytest.mark.parametrize(("loss", "bias"), CASES)
@pytest.mark.parametrize("how", STOPS)
def test_whoever_stops_a_fit_gets_a_feasible_point_and_the_reason(loss, bias, how):
    watch, status = STOPS[how]
    problem = drawn(loss, bias, seed=6, n=150, C=100.0)
    solution = JointMachine(tol=1e-17).solve(problem, watch=watch())
    assert solution.status is status
    assert_feasible(problem, solution.alpha)
    assert solution.dual <= optimum(problem)[0] * (1.0 + 1e-6) <= solution.primal * (1.0 + 2e-6)
    assert solution.history.records[-1].phase == "certified"


def test_a_deadline_within_the_first_epoch_leaves_nothing_but_zero(monkeypatch):
    def late(*_):
        raise core.DeadlineReached("too late")

    monkeypatch.setattr(module._DescentState, "epoch", late)
    problem = drawn()
    solution = JointMachine().solve(problem)
    assert solution.status is Status.TIME_LIMIT
    assert solution.n_iter == 0
    assert not solution.alpha.any()
    assert not solution.W.any()
    assert solution.primal == pytest.approx(problem.cost.sum(), rel=1e-9)
    assert solution.dual == 0.0


@pytest.mark.parametrize(("loss", "bias"), CASES)
def test_a_start_at_the_optimum_is_the_answer_and_a_worse_one_is_improved(loss, bias):
    problem = drawn(loss, bias, seed=6)
    first = JointMachine(tol=1e-7).solve(problem)
    again = JointMachine(tol=1e-7).solve(problem, start=first)
    assert again.n_iter == 0
    assert again.status is Status.CONVERGED
    np.testing.assert_allclose(again.W, first.W, atol=1e-6)
    worse = replace(first, W=2.0 * first.W, alpha=0.5 * first.alpha)
    better = JointMachine(tol=1e-7).solve(problem, start=worse)
    assert better.n_iter > 0
    assert better.primal == pytest.approx(first.primal, rel=1e-6)


def test_solvers_that_a_loss_does_not_have_are_refused():
    for solver in ("auto", "dual_cd", "newton"):
        assert make_solver(solver, "crammer_singer", tol=1e-3).tol == 1e-3
    with pytest.raises(ValueError, match=r"solver='dual_cd' cannot solve multi_class='multinomial'"):
        make_solver("dual_cd", "multinomial")
    with pytest.raises(ValueError, match="interior_point"):
        make_solver("interior_point", "crammer_singer")
    with pytest.raises(InputError, match="overflows"):
        joint(*blobs(), C=1e308)
    with pytest.raises(InputError, match="too large"):
        joint(1e100 * blobs()[0], blobs()[1], C=1e60)

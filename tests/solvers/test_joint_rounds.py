"""The joint Newton method as a whole: it ends at the optimum, for the reason it should, and never without a point."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Status
from maxmargin.runtime import Watch
from maxmargin.solvers import joint_second_order as module
from maxmargin.space.systems import Breakdown
from tests.solvers.joint_cases import (
    BIASES,
    LOSSES,
    assert_feasible,
    certified,
    drawn,
    joint,
    labels_of,
    optimum,
    rows_of,
    run_of,
    second_order,
)

CASES = [(loss, bias) for loss in LOSSES for bias in BIASES]


def run(problem, *, start=None, direct=True, change=None, **given):
    """The method after its run; ``change`` may spoil it before."""
    method = second_order(problem, direct=direct, **given)
    if change:
        change(method)
    method.run(start or certified(problem, np.zeros(problem.shape)))
    return method


def rounds_of(monkeypatch):
    """The penalty sigma of every round of the hinge from now on."""
    sigmas, make = [], module._Hinge
    monkeypatch.setattr(module, "_Hinge", spied := type("Hinge", (make,), {}))
    spied.__init__ = lambda self, problem, anchor, sigma: (
        sigmas.append(sigma) or make.__init__(self, problem, anchor, sigma)
    )
    return sigmas


@pytest.mark.parametrize(("loss", "bias"), CASES)
@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("sparse", [False, True])
def test_newton_ends_at_the_optimum(loss, bias, direct, sparse):
    problem = drawn(loss, bias, seed=3)
    if sparse:
        X = np.where(np.abs(rows_of(problem)) < 0.3, 0.0, rows_of(problem))
        problem = joint(sp.csr_array(X), labels_of(problem), loss, bias, C=0.7)
    best, W, _ = optimum(problem)
    point = run(problem, direct=direct).best
    assert point.gap <= 1e-9
    assert point.primal == pytest.approx(best, rel=1e-7)
    np.testing.assert_allclose(point.W - point.W.mean(axis=0), W - W.mean(axis=0), atol=1e-3)
    assert_feasible(problem, point.alpha)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-4, 1e5])
def test_costs_of_any_size_are_no_stall(loss, C):
    """While the penalty is small beside the costs, the multipliers only creep."""
    problem = drawn(loss, C=C)
    assert run(problem, tol=1e-7).best.gap <= 1e-7


def test_method_by_size_of_the_system():
    assert not second_order(drawn(d=500)).direct  # 3 · 501 unknowns
    assert second_order(drawn(d=499)).direct


@pytest.mark.parametrize("loss", LOSSES)
def test_what_all_classes_have_in_common_at_the_start_is_gone_at_the_end(loss):
    problem = drawn(loss)
    start = certified(problem, np.zeros(problem.shape))
    point = run(problem, start=replace(start, W=start.W + 4.0, b=start.b + 4.0)).best
    assert point.gap <= 1e-9
    np.testing.assert_allclose(point.W.sum(axis=0), 0.0, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_limit_on_steps_is_kept_and_leaves_a_certified_point(loss, monkeypatch):
    problem = drawn(loss)
    sigmas = rounds_of(monkeypatch)
    for most in (0, 1, 3):
        sigmas.clear()
        method = run(problem, max_steps=most)
        assert method.steps == most
        assert len(sigmas) <= most
        assert_feasible(problem, method.best.alpha)
        assert method.best.gap < (np.inf if most == 0 else certified(problem, np.zeros(problem.shape)).gap + 1e-15)


def test_a_matrix_is_worth_rounding_level_and_products_only_the_tolerance(monkeypatch):
    problem = drawn(seed=5)
    sigmas = rounds_of(monkeypatch)
    direct = run(problem, tol=1e-3)
    n_direct = len(sigmas)
    sigmas.clear()
    by_products = run(problem, tol=1e-3, direct=False)
    assert direct.best.gap <= 1e-10
    assert 1e-10 < by_products.best.gap <= 1e-3
    assert len(sigmas) < n_direct
    assert np.allclose(np.diff(np.log10(sigmas)), 1.0)
    steps = {tol: run(drawn("multinomial"), tol=tol, direct=False).steps for tol in (1e-1, 1e-10)}
    assert steps[1e-1] < steps[1e-10]
    assert run(drawn("multinomial"), tol=1e-1).best.gap <= 1e-10


def test_rounds_end_when_nothing_moves_any_more(monkeypatch):
    """A gap of zero is asked for; four rounds that bring neither the gap nor the multipliers nearer are enough."""
    problem = drawn(seed=5)
    sigmas = rounds_of(monkeypatch)
    method = run(
        problem, tol=0.0, change=lambda m: setattr(m, "_minimise", lambda curve, W, b, a: a - 1e-3 * curve.sigma)
    )
    first = 10.0 * min(problem.cost[problem.cost > 0.0].mean(), 1.0 / problem.squared_norms.mean())
    assert sigmas[0] == pytest.approx(first)
    large = sum(sigma > 10.0 * problem.cost.max() for sigma in sigmas)
    assert large == 4
    assert method.best.gap > 0.1


def test_a_gap_that_still_falls_is_no_stall(monkeypatch):
    problem = drawn(seed=5)
    sigmas, gaps = rounds_of(monkeypatch), iter(0.4 ** np.arange(100))

    def spoil(method):
        method._minimise = lambda curve, W, b, a: a - 1e-3 * curve.sigma
        method._keep = lambda *_: SimpleNamespace(primal=next(gaps), dual=0.0, gap=1.0)

    run(problem, tol=0.0, change=spoil)
    assert sigmas[-1] > 1e11 * problem.cost.max()


def test_the_penalty_has_an_end(monkeypatch):
    """Multipliers that agree with their anchors ever better do not go on for ever."""
    problem = drawn(seed=5)
    sigmas = rounds_of(monkeypatch)
    run(problem, tol=0.0, change=lambda m: setattr(m, "_minimise", lambda curve, W, b, anchor: anchor))
    assert 1e11 * problem.cost.max() < sigmas[-1] <= 1e12 * problem.cost.max()


def test_a_start_without_a_gap_needs_no_round():
    problem = drawn(seed=5)
    best = run(problem).best
    assert run(problem, start=replace(best, gap=1e-14), tol=0.0).steps == 0
    assert run(problem, start=replace(best, gap=1e-3), tol=0.0).steps > 0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("tol", "length", "patience"), [(1e-9, 1e-9, 60), (2.0, 1e-9, 12), (1e-9, 1e-13, 1)])
def test_steps_that_promise_as_much_as_before_end_after_a_while(loss, tol, length, patience):
    """Longer while the gap is not reached, at once if a step has no length."""
    problem = drawn(loss, seed=5)
    start = certified(problem, np.zeros(problem.shape))
    method = second_order(problem, tol=tol)
    method._line_search, method.best = (lambda *_: length), start
    curve = module._Multinomial(problem) if loss == "multinomial" else module._Hinge(problem, start.alpha, 1.0)
    method._minimise(curve, start.W.copy(), start.b.copy(), start.alpha)
    assert method.steps == patience


def test_where_the_slope_is_zero_no_step_is_made():
    problem = joint(np.zeros((4, 2)), [0, 1, 0, 1], "multinomial")
    method = run(problem)
    assert method.steps == 0
    assert method.best.primal == pytest.approx(4.0 * np.log(2.0), rel=1e-15)
    assert method.best.gap <= 1e-15


def test_a_round_ends_when_its_gain_is_little_beside_what_the_multipliers_moved():
    problem = drawn(seed=5, n=200, d=8, k=4)
    method = run(problem)
    exact = run(problem, change=lambda m: setattr(m, "_enough", lambda *_: 0.0))
    assert method.best.gap <= 1e-9
    assert method.steps < 0.8 * exact.steps


def break_down(method):
    """The third system cannot be solved."""
    solve, calls = method._factored, []

    def spoiled(*given):
        calls.append(1)
        if len(calls) == 3:
            raise Breakdown("no factor")
        return solve(*given)

    method._factored = spoiled


def interrupt(method):
    step, calls = method._direction, []

    def pressed(*given):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return step(*given)

    method._direction = pressed


@pytest.mark.parametrize("loss", LOSSES)
def test_a_breakdown_leaves_the_best_point_so_far(loss):
    problem = drawn(loss)
    start = certified(problem, np.zeros(problem.shape))
    point = run(problem, start=start, change=break_down).best
    assert_feasible(problem, point.alpha)
    assert point.gap < start.gap if loss == "multinomial" else point.gap <= start.gap


def test_an_interrupt_of_the_smooth_loss_keeps_its_last_step():
    problem = drawn("multinomial")
    start = certified(problem, np.zeros(problem.shape))
    method = second_order(problem)
    interrupt(method)
    with pytest.raises(KeyboardInterrupt):
        method.run(start)
    assert method.steps == 2
    assert method.best.gap < 0.5 * start.gap
    assert run_of(method).best is method.best


@pytest.mark.parametrize("loss", LOSSES)
def test_every_step_is_reported_and_counted_but_not_as_one_of_the_solvers_own(loss):
    problem, heard = drawn(loss, seed=5), []
    method = run(problem, watch=Watch(None, lambda step, gap, _: bool(heard.append((step, gap)))))
    steps, gaps = zip(*heard, strict=True)
    assert list(steps) == sorted(steps)
    assert list(gaps) == sorted(gaps, reverse=True)
    assert set(steps) == set(range(1, method.steps + 1))
    assert (run_of(method).n_iter, run_of(method).count) == (method.steps, 0)
    assert run_of(method).best.gap == method.best.gap


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("direct", [True, False])
def test_a_listener_a_deadline_or_a_spent_budget_stops_between_two_steps(loss, direct):
    problem, spent = drawn(loss, seed=5), []
    watch = Watch(None, lambda step, *_: bool(spent.append((step, watch.meter.spent))))
    steps = run(problem, direct=direct, watch=watch).steps
    for k in range(1, 6):
        asked = run(problem, direct=direct, watch=Watch(None, lambda step, *_, k=k: step == k))
        budget = next(cost for step, cost in spent if step == k)
        bought = run(problem, direct=direct, budget=budget)
        assert asked.steps == bought.steps == k < steps
        for method in (asked, bought):
            assert_feasible(problem, method.best.alpha)
            assert run_of(method).best.gap == method.best.gap < np.inf
    assert run_of(bought).stop() is Status.BUDGET_SPENT
    assert run(problem, direct=direct, watch=Watch(1e-9)).steps == 0
    assert run(problem, direct=direct, budget=0.0).steps == 0

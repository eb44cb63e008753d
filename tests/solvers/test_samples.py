"""Newton's method from nothing, from samples and from starts: where it begins, and how it says that it ended."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem, Status, _core
from maxmargin.runtime import Watch
from maxmargin.solvers import Newton, multipliers, newton
from maxmargin.space.systems import Breakdown
from tests.conftest import tall
from tests.solvers.plain import (
    BIASES,
    LOSSES,
    ONE,
    SMOOTH,
    assert_feasible,
    dense,
    dual,
    primal,
    residuals,
    signs,
    small,
)

BOXED = ["hinge", "epsilon_insensitive"]
MANY = 8100


def runs(monkeypatch, outcome=None):
    """The calls of the method of multipliers: the point it began at, and what it was told. It may fail instead."""
    seen, original = [], newton.MethodOfMultipliers.run

    def run(method, point, **told):
        seen.append((method, point, told))
        if outcome is None:
            return original(method, point, **told)
        method.best = point
        return outcome(method)

    monkeypatch.setattr(newton.MethodOfMultipliers, "run", run)
    return seen


def run_of(method):
    """The call of solve that it works for."""
    return method.work


def on_all(seen, problem):
    """The calls for the whole problem, not for its samples."""
    return [call for call in seen if call[0].problem is problem]


def time_is_over(monkeypatch):
    monkeypatch.setattr(Watch, "past_deadline", True)


def begin_with(monkeypatch, outcome):
    """What happens where a fit begins at nothing."""
    monkeypatch.setattr(newton, "from_nothing", lambda *_: outcome(None))


def break_systems(monkeypatch):
    broken = fail(Breakdown("no Cholesky factor"))
    monkeypatch.setattr(multipliers, "newton_system", lambda *_, **__: broken(None))


def fail(error):
    def outcome(method):
        raise error

    return outcome


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_is_no_weights_and_multipliers_in_the_middle(loss, bias):
    problem = small(loss, bias=bias, sample_weight=np.r_[0.0, 0.0, 0.5 * np.ones(58)])
    point = newton.from_nothing(problem, ONE)
    assert point.primal == pytest.approx(primal(problem, point.w, point.b), rel=1e-12)
    if loss in SMOOTH:
        assert not point.w.any()
        assert point.gap == math.inf
        return
    assert_feasible(problem, point.alpha)
    assert point.dual == pytest.approx(dual(problem, point.alpha), rel=1e-10, abs=1e-12)
    assert point.primal <= primal(problem, np.zeros(4), 0.0) * (1.0 + 1e-12)
    if loss == "hinge" and bias != "free":
        np.testing.assert_array_equal(point.alpha, 0.5 * problem.cost)
    elif loss == "hinge":  # the heavier side is scaled down
        assert np.max(point.alpha) == 0.25
    else:  # between −c and c, or without an upper end
        assert not point.alpha.any()


@pytest.mark.parametrize(
    ("loss", "epsilon"), [("hinge", 0.0), ("epsilon_insensitive", 0.0), ("epsilon_insensitive", 0.4)]
)
def test_multipliers_are_centred_at_the_margin(loss, epsilon):
    problem = small(loss, n=3000, d=2, epsilon=epsilon, C=0.7)
    r = residuals(problem, np.array([0.5, -0.3]), 0.1)
    alpha, width = newton.centred(problem, r)
    tube = epsilon if problem.loss.regression else 0.0
    outside = np.abs(r) - tube if tube else r
    assert np.count_nonzero(np.abs(outside) < width) == 273  # five times the root of the rows
    np.testing.assert_array_equal(alpha[outside <= -width], 0.0 if tube or loss == "hinge" else -0.7)
    np.testing.assert_array_equal(np.abs(alpha[outside >= width]), 0.7)
    if problem.loss.regression:
        assert np.all(alpha * r >= 0.0)
    inside = np.abs(outside) < width
    low = -0.7 if loss != "hinge" and not tube else 0.0
    line = low + (0.7 - low) * 0.5 * (1.0 + outside / width)
    np.testing.assert_allclose(np.abs(alpha[inside]) if tube else alpha[inside], line[inside], rtol=1e-12)


@pytest.mark.parametrize(("n", "d", "few"), [(3000, 2, 273), (3000, 20, 630), (3000, 200, 2999), (9000, 1, 474)])
def test_the_band_is_as_wide_as_unknowns_and_rows_ask(n, d, few):
    problem = small("hinge", n=n, d=d)
    r = np.random.default_rng(0).standard_normal(n)
    _, width = newton.centred(problem, r)
    assert width == np.sort(np.abs(r))[few]


def test_rows_all_on_the_margin_have_a_band_of_no_width():
    problem = small("hinge")
    alpha, width = newton.centred(problem, np.zeros(60))
    assert 0.0 < width < 1e-200
    np.testing.assert_array_equal(alpha, 0.5)


@pytest.mark.parametrize("loss", BOXED)
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_under_the_first_penalty_most_rows_are_between_their_bounds(loss, C):
    weight = np.r_[np.zeros(100), np.ones(200), 3.0 * np.ones(100)]
    problem = small(loss, n=400, sample_weight=weight, C=C, epsilon=0.1)
    point = newton.from_nothing(problem, ONE)
    scaled = replace(point, w=9.0 * np.ones(4), scores=dense(problem) @ np.full(4, 9.0), gap=0.51)
    sigma = newton.first_sigma(problem, scaled)
    assert sigma is not None
    live = weight > 0.0
    r = residuals(problem, scaled.w, scaled.b)[live]
    tube = getattr(problem.loss, "epsilon", 0.0)
    moved = sigma * np.median(np.abs(np.abs(r) - tube))
    assert moved == pytest.approx(0.25 * C * weight[live].mean())
    # From the middle of the box, half of all rows stay inside; those that do not are at least at half their costs.
    assert np.mean(sigma * np.abs(np.abs(r) - tube) <= 0.5 * C * weight[live]) >= 0.5


def test_the_usual_penalty_is_enough_where_a_start_is_fair_or_short():
    problem = small("hinge")
    point = newton.from_nothing(problem, ONE)
    far = replace(point, scores=50.0 * np.ones(60), gap=0.6)
    assert newton.first_sigma(problem, far) is not None
    assert newton.first_sigma(problem, replace(far, gap=0.5)) is None
    near = replace(point, scores=signs(problem) * (1.0 + 1e-3) - point.b, gap=0.6)
    assert newton.first_sigma(problem, near) is None  # it would be larger than usual
    exact = replace(point, scores=signs(problem) - point.b, gap=0.6)
    assert newton.first_sigma(problem, exact) is None
    # Usual is ten times the cost, or ten over the square of a row's length.
    square = float((dense(problem) ** 2).sum(axis=1).mean())
    usual = 10.0 / square
    for factor, wanted in ((0.99, True), (1.01, False)):
        scale = 0.25 / (factor * usual)
        there = replace(point, w=np.zeros(4), b=0.0, scores=signs(problem) * (1.0 - scale), gap=0.6)
        assert (newton.first_sigma(problem, there) is not None) is wanted


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", 1.5, 3.0, "squared_epsilon_insensitive"])
def test_losses_without_a_box_have_no_first_penalty(loss):
    problem = small(loss)
    point = replace(newton.from_nothing(problem, ONE), scores=50.0 * np.ones(60), gap=0.6)
    assert newton.first_sigma(problem, point) is None


@pytest.mark.parametrize(
    ("n", "d", "per_row", "wanted"),
    [
        (8000, 5, None, True),
        (7999, 5, None, False),
        (8000, 19, None, True),
        (8000, 20, None, False),
        (8400, 20, None, True),
        (8000, 30, 0.5, True),  # ten numbers' worth of unknowns
        (8000, 30, 2.0, False),
        (8000, 19, 5.0, True),
    ],
)
def test_samples_pay_for_many_more_rows_than_unknowns(n, d, per_row, wanted):
    X = np.ones((n, d))
    if per_row is not None:
        count = int(per_row * n)
        X = sp.csr_array((np.ones(count), (np.arange(count) % n, np.arange(count) // n)), shape=(n, d))
    assert newton.worth_sampling(Problem.from_arrays(X, np.arange(n) % 2)) is wanted


def test_a_sample_is_an_eighth_of_the_rows_and_always_the_same():
    problem = small("hinge", n=1003)
    chosen = newton.sample_rows(problem)
    assert len(chosen) == 125
    assert np.all(np.diff(chosen) > 0)
    assert 0 <= chosen[0] < 30
    assert 970 < chosen[-1] < 1003
    np.testing.assert_array_equal(chosen, newton.sample_rows(small("hinge", n=1003, seed=4)))
    assert not np.array_equal(chosen, newton.sample_rows(small("hinge", n=1004)))


@pytest.mark.parametrize("loss", LOSSES)
def test_all_rows_begin_at_the_hyperplane_of_a_sample(loss, monkeypatch):
    problem = small(loss, n=MANY, bias="penalised", sample_weight=np.arange(MANY) % 3)
    seen = runs(monkeypatch)
    solution = Newton(tol=1e-7).solve(problem)
    (sample, first, _), (method, start, told) = seen
    chosen = newton.sample_rows(problem)
    np.testing.assert_allclose(sample.problem.cost, MANY / (MANY // 8) * problem.cost[chosen])
    np.testing.assert_array_equal(sample.problem.space.X, problem.space.X[chosen])
    assert method.max_steps == 1000 - sample.steps
    assert (sample.enough, method.enough) == (pytest.approx(0.95e-4), 0.95 * 1e-7)
    assert not first.w.any()
    r = residuals(problem, sample.best.w, sample.best.b)
    if loss in BOXED:
        alpha, width = newton.centred(problem, r)
        assert told == {
            "sigma": pytest.approx(1.5 / (2.0 * width)),
            "fraction": 0.3,
        }  # 1.5 is the mean of costs that count
    else:
        alpha = problem.cost * problem.loss.slope(r)
        assert told == {"penalty": 10.0, "sigma": None}
    np.testing.assert_allclose(start.alpha, alpha, rtol=1e-7, atol=1e-9)
    if loss in SMOOTH:  # their multipliers are exact, their dual value not worth a pass
        assert start.gap == math.inf
        np.testing.assert_array_equal(start.w, sample.best.w)
    else:
        assert math.isfinite(start.gap)
        assert start.primal <= primal(problem, sample.best.w, sample.best.b) * (1.0 + 1e-12)
    records = solution.history.records
    assert records[0].phase == f"sample of {MANY // 8} rows"
    assert records[0].gap <= 1e-4
    assert [record.phase for record in records[1:]] == ["newton", "certified"]
    assert solution.n_iter == sample.steps + method.steps
    assert solution.status is Status.CONVERGED


@pytest.mark.parametrize("loss", SMOOTH)
def test_a_smooth_sample_that_did_not_converge_is_certified_first(loss, monkeypatch):
    problem = small(loss, n=MANY)
    seen = runs(monkeypatch)
    Newton(tol=1e-9, max_iter=1).solve(problem)
    _, start, told = on_all(seen, problem)[0]
    assert math.isfinite(start.gap)
    assert start.dual == pytest.approx(dual(problem, start.alpha), rel=1e-9)
    assert told["penalty"] == 10.0


@pytest.mark.parametrize(
    ("options", "n"), [({"sampling": False}, MANY), ({}, 4000), ({"sampling": False}, 300)], ids=str
)
def test_without_a_sample_it_begins_at_nothing(options, n, monkeypatch):
    problem, seen = small("hinge", n=n), runs(monkeypatch)
    assert Newton(**options).solve(problem).status is Status.CONVERGED
    [(_, start, told)] = seen
    wanted = newton.from_nothing(problem, ONE)
    np.testing.assert_array_equal(start.alpha, wanted.alpha)
    assert told == {"penalty": 10.0, "sigma": newton.first_sigma(problem, wanted)}


def test_a_sample_of_one_class_is_left_alone(monkeypatch):
    X, y = tall(MANY, 3)
    chosen = newton.sample_rows(Problem.from_arrays(X, y))
    y[chosen] = 1
    y[chosen[0]] = -1
    weight = np.ones(MANY)
    weight[chosen[0]] = 0.0  # it is there, but does not count
    problem, seen = Problem.from_arrays(X, y, loss="hinge", sample_weight=weight), runs(monkeypatch)
    assert Newton().solve(problem).status is Status.CONVERGED
    assert len(seen) == 1


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), Status.INTERRUPTED),
                                               (_core.DeadlineReached(), Status.TIME_LIMIT)])  # fmt: skip
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_sample_that_is_stopped_stops_all(loss, error, status, monkeypatch):
    problem, seen = small(loss, n=MANY), runs(monkeypatch, fail(error))
    solution = Newton().solve(problem)
    assert (len(seen), solution.status) == (1, status)
    assert solution.primal == pytest.approx(primal(problem, solution.w, solution.b), rel=1e-9)
    assert_feasible(problem, solution.alpha)


@pytest.mark.parametrize("loss", ["hinge", "logistic", 1.5])
def test_what_a_stopped_sample_found_is_handed_out(loss):
    def press(iteration, gap, seconds):
        if gap < 1e-2:  # the sample is nearly done
            raise KeyboardInterrupt

    problem = small(loss, n=MANY)
    solution = Newton(tol=1e-12).solve(problem, watch=Watch(None, press))
    assert solution.status is Status.INTERRUPTED
    assert not any(record.phase == "newton" for record in solution.history.records)
    assert solution.primal == pytest.approx(primal(problem, solution.w, solution.b), rel=1e-9)
    assert solution.primal <= 1.05 * Newton().solve(problem).primal


@pytest.mark.parametrize("loss", ["hinge", "logistic", 1.5])
def test_a_solution_is_a_start_and_needs_no_step_if_it_is_one(loss, monkeypatch):
    problem = small(loss)
    done = Newton(tol=1e-9).solve(problem)
    seen = runs(monkeypatch)
    again = Newton(tol=1e-6).solve(problem, start=done.alpha)
    assert (len(seen), again.n_iter, again.status) == (0, 0, Status.CONVERGED)
    # A whole solution comes without a dual value, so that it is looked at once.
    other = small(loss, C=1.3)
    near = Newton().solve(other, start=done)
    assert near.status is Status.CONVERGED
    [(method, start, told)] = on_all(seen, other)
    np.testing.assert_array_equal(start.w, done.w)
    assert start.gap == math.inf
    assert told == {"penalty": 1000.0, "fraction": 0.1}
    assert near.n_iter == method.steps
    far = Newton().solve(other, start=np.full(60, 0.5))
    assert far.primal == pytest.approx(near.primal, rel=1e-6)
    assert on_all(seen, other)[1][2]["penalty"] == 10.0


def test_with_a_start_no_sample_is_solved(monkeypatch):
    problem = small("hinge", n=MANY)
    start = Newton(tol=1e-3, exact=False).solve(problem)
    seen = runs(monkeypatch)
    for begin in (start, start.alpha):
        Newton().solve(problem, start=begin)
    assert [method.problem for method, *_ in seen] == [problem, problem]


def test_without_a_start_more_digits_are_asked_for_than_the_gap_needs(monkeypatch):
    problem, seen = Problem.regression(np.ones((5, 1)), np.full(5, 2.0), epsilon=0.5), runs(monkeypatch)
    solution = Newton().solve(problem)
    assert (solution.gap, solution.n_iter, len(seen)) == (0.0, 0, 1)


@pytest.mark.parametrize(
    ("outcome", "options", "status"),
    [
        (lambda method: method.best, {}, Status.NUMERICAL_LIMIT),
        (fail(KeyboardInterrupt()), {}, Status.INTERRUPTED),
        (fail(_core.DeadlineReached()), {}, Status.TIME_LIMIT),
        (lambda method: setattr(run_of(method), "n_iter", 9), {"max_iter": 9}, Status.ITERATION_LIMIT),
        (lambda method: setattr(run_of(method), "n_iter", 8), {"max_iter": 9}, Status.NUMERICAL_LIMIT),
        (lambda method: setattr(run_of(method).watch, "stop_requested", True), {}, Status.INTERRUPTED),
    ],
)
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_status_says_why_it_ended(loss, outcome, options, status, monkeypatch):
    problem = small(loss)
    runs(monkeypatch, outcome)
    solution = Newton(**options).solve(problem)
    assert solution.status is status
    assert_feasible(problem, solution.alpha)
    assert solution.primal == pytest.approx(primal(problem, solution.w, solution.b), rel=1e-9)
    assert [record.phase for record in solution.history.records] == ["newton", "certified"]


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_deadline_that_passes_unnoticed_is_the_status(loss, monkeypatch):
    runs(monkeypatch, lambda method: method.best)
    time_is_over(monkeypatch)
    assert Newton().solve(small(loss)).status is Status.TIME_LIMIT


def test_an_interrupt_before_anything_is_known_leaves_no_weights(monkeypatch):
    begin_with(monkeypatch, fail(KeyboardInterrupt()))
    solution = Newton().solve(small("hinge"))
    assert solution.status is Status.INTERRUPTED
    assert not solution.w.any()
    assert solution.gap == 1.0


def test_who_asks_for_little_is_in_a_hurry(monkeypatch):
    seen = runs(monkeypatch)
    for tol, exact, wanted in ((1e-5, True, True), (1.1e-5, True, False), (1e-5, False, False)):
        Newton(tol=tol, exact=exact).solve(small("hinge"))
        method = seen[-1][0]
        assert method.exact is wanted
        assert method.enough == 0.95 * tol
    assert len(seen) == 3


def test_equations_that_break_down_are_a_numerical_limit(monkeypatch):
    break_systems(monkeypatch)
    solution = Newton().solve(small("hinge"))
    assert (solution.status, solution.n_iter) == (Status.NUMERICAL_LIMIT, 0)

"""Any dual point becomes a feasible one with a hyperplane and both objectives; the better of two points is kept."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from maxmargin import Problem
from maxmargin.solvers import Newton, points
from tests.solvers.plain import (
    BIASES,
    LOSSES,
    ONE,
    REGRESSION,
    SMOOTH,
    assert_feasible,
    dense,
    dual,
    induced,
    primal,
    residuals,
    scale_of_bias,
    signs,
    small,
)

ROUGH = 0.5


def count_passes(monkeypatch):
    """The hyperplanes whose scores are computed, as they come."""
    planes, original = [], points._hyperplane
    monkeypatch.setattr(
        points, "_hyperplane", lambda problem, w, *rest: planes.append(w) or original(problem, w, *rest)
    )
    return planes


def some_multipliers(problem, seed=0):
    """Far from feasible: of both signs, out of balance, some beyond their costs."""
    return 2.0 * np.random.default_rng(seed).standard_normal(len(problem.y)) + 0.5


def solution(problem, w, b, seed=0):
    """A whole solution whose multipliers have nothing to do with its hyperplane."""
    alpha = points.make_feasible(problem, some_multipliers(problem, seed))
    return replace(Newton().solve(small("hinge")), w=w, b=b, alpha=alpha)


def best_bias(problem, w):
    """The lowest objective over b, by SciPy."""
    if not problem.bias.free:
        return None
    reach = 10.0 + float(np.abs(dense(problem) @ w).max()) + float(np.abs(problem.y).max())
    return minimize_scalar(lambda b: primal(problem, w, b), bounds=(-reach, reach), options={"xatol": 1e-12}).fun


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_feasible_multipliers_are_clipped_and_balanced(loss, bias):
    problem = small(loss, bias=bias, sample_weight=np.r_[0.0, 0.0, np.ones(58)])
    alpha = some_multipliers(problem)
    given = alpha.copy()
    found = points.make_feasible(problem, alpha)
    np.testing.assert_array_equal(alpha, given)
    assert_feasible(problem, found)
    lower, upper = problem.loss.domain(problem.cost)
    clipped = np.clip(given, lower, upper)
    if not problem.bias.free:
        np.testing.assert_array_equal(found, clipped)
        return
    # A side that weighs too much is scaled down as a whole; the other is left alone.
    signed = clipped * signs(problem)
    heavy = signed > 0.0 if signed.sum() > 0.0 else signed < 0.0
    np.testing.assert_array_equal(found[~heavy], clipped[~heavy])
    factor = -signed[~heavy].sum() / signed[heavy].sum()
    np.testing.assert_allclose(found[heavy], factor * clipped[heavy], rtol=1e-12)
    assert 0.0 < factor < 1.0


@pytest.mark.parametrize(
    ("loss", "alpha", "wanted"),
    [
        ("hinge", [1.0, 0.4, 0.0, 1.0, 0.4001], [1.0, 0.4, 0.0, 1.0, 0.4]),
        ("hinge", [1.0, 0.4001, 0.0, 1.0, 0.4], [1.0, 0.4, 0.0, 1.0, 0.4]),
        ("hinge", [1.0, 0.9, 0.0, 1.0, 0.90005], [1.0, 0.9, 0.0, 1.0, 0.9]),
        ("squared_hinge", [3.0, 0.4, 0.0, 3.001, 0.4], [3.0, 0.4, 0.0, 3.0, 0.4]),
        ("hinge", [0.5, 0.4, 0.0, 0.6, 0.3], [0.5, 0.4, 0.0, 0.6, 0.3]),
    ],
)
def test_a_little_imbalance_is_taken_from_one_free_multiplier(loss, alpha, wanted):
    problem = Problem.from_arrays(np.arange(5.0)[:, None], [1, 1, 1, -1, -1], loss=loss)
    found = points.make_feasible(problem, np.array(alpha))
    np.testing.assert_allclose(found, wanted, atol=1e-15)
    assert np.count_nonzero(found != alpha) <= 1
    assert abs(float(found @ signs(problem))) <= 1e-15


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_little_imbalance_in_a_regression_is_taken_from_its_own_side(side):
    problem = Problem.regression(np.arange(4.0)[:, None], [0.0, 1.0, 0.0, 2.0])
    found = points.make_feasible(problem, side * np.array([0.5003, -0.5, 1.0, -1.0]))
    np.testing.assert_allclose(found, side * np.array([0.5, -0.5, 1.0, -1.0]), atol=1e-15)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_point_has_the_objectives_of_its_parts(loss, bias):
    problem = small(loss, bias=bias)
    alpha = some_multipliers(problem)
    point = points.recover(problem, alpha, ONE)
    assert_feasible(problem, point.alpha)
    assert point.dual == pytest.approx(dual(problem, point.alpha), rel=1e-10)
    np.testing.assert_allclose(point.induced, induced(problem, point.alpha), atol=1e-12)
    np.testing.assert_array_equal(point.w, point.induced)
    assert point.primal == pytest.approx(primal(problem, point.w, point.b), rel=1e-12)
    np.testing.assert_allclose(point.scores, dense(problem) @ point.w, atol=1e-12)
    assert point.dual <= point.primal
    assert point.gap == pytest.approx((point.primal - point.dual) / max(abs(point.primal), abs(point.dual)))
    low, high = point.bias_interval
    if problem.bias.free:
        assert point.primal <= best_bias(problem, point.w) * (1.0 + 1e-9)
        assert low <= point.b <= high
        for b in (low, high):
            assert primal(problem, point.w, b) == pytest.approx(point.primal, rel=1e-12)
    else:
        scale = scale_of_bias(problem)
        assert point.b == low == high == pytest.approx(scale**2 * float(point.alpha @ signs(problem)), abs=1e-12)


@pytest.mark.parametrize("loss", [*REGRESSION, "hinge", "squared_hinge"])
def test_a_gap_is_measured_beside_the_objective_of_no_weights_at_least(loss):
    # Rows so long that hardly any weights are needed: both objectives are tiny.
    X, side = np.linspace(1e7, 1.4e7, 8)[:, None], np.tile([-1.0, 1.0], 4)
    if loss in REGRESSION:
        problem = Problem.regression(X * side[:, None], side, loss=loss, epsilon=0.5, fit_intercept=False)
    else:
        problem = Problem.from_arrays(X * side[:, None], side, loss=loss, fit_intercept=False)
    point = points.recover(problem, 1e-17 * (side if loss in REGRESSION else np.ones(8)), w=np.array([1e-7]))
    assert 0.0 < point.dual < point.primal < 1e-11 * 8.0
    assert point.gap == pytest.approx((point.primal - point.dual) / (1e-10 * 8.0))


@pytest.mark.parametrize("compete", [True, False])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_lower_of_two_hyperplanes_wins_if_they_compete(loss, bias, compete):
    problem = small(loss, bias=bias, C=0.05)
    good = Newton().solve(problem)
    alpha = 0.01 * np.abs(some_multipliers(problem))
    of_alpha = points.recover(problem, alpha, ONE)
    kept = set()
    for size in (1.0, 0.0, -1.0, 4.0):
        given, b = size * good.w, good.b
        w = given.copy()
        point = points.recover(problem, alpha, ONE, w, b, compete=compete)
        np.testing.assert_array_equal(w, given)
        assert point.w is not w
        own = best_bias(problem, w) if problem.bias.free else primal(problem, w, b)
        assert point.primal == pytest.approx(min(own, of_alpha.primal) if compete else own, rel=1e-8)
        assert point.primal == pytest.approx(primal(problem, point.w, point.b), rel=1e-12)
        np.testing.assert_array_equal(point.w, given if not compete or own < of_alpha.primal else of_alpha.w)
        np.testing.assert_array_equal(point.alpha, of_alpha.alpha)
        kept.add(bool(np.array_equal(point.w, given)))
    assert kept == ({True, False} if compete else {True})


def test_hyperplanes_that_hardly_differ_cost_one_pass(monkeypatch):
    problem = small("hinge", bias="penalised")
    alpha = 0.01 * np.ones(60)
    alone = points.recover(problem, alpha, ONE)
    gap, scale = alone.primal - alone.dual, scale_of_bias(problem)
    planes = count_passes(monkeypatch)

    def passes(dw, db):
        planes.clear()
        w = alone.w + dw * np.array([0.6, 0.8, 0.0, 0.0])
        points.recover(problem, alpha, ONE, w, alone.b + db)
        return len(planes)

    little = math.sqrt(1e-3 * gap)
    assert passes(0.0, 0.0) == 1
    assert [passes(0.9 * little, 0.0), passes(1.1 * little, 0.0)] == [1, 2]
    assert [passes(0.0, 0.9 * scale * little), passes(0.0, -1.1 * scale * little)] == [1, 2]
    assert passes(0.8 * little, 0.8 * scale * little) == 2


def test_at_the_optimum_nothing_competes(monkeypatch):
    # With all slack positive the objective is quadratic: the gap is half the square of the difference.
    problem = Problem.from_arrays([[-1.0], [1.0]], [0, 1], loss="hinge", C=0.1)
    planes = count_passes(monkeypatch)
    for off, passes in ((1e-7, 1), (1e-5, 2)):
        planes.clear()
        point = points.recover(problem, np.array([0.1, 0.1]), ONE, np.array([0.2 + off]), 0.0)
        assert point.primal == pytest.approx(0.18)
        assert len(planes) == passes


def test_the_bias_of_no_hyperplane_is_a_guess_if_free_and_nothing_if_penalised():
    for bias in BIASES:
        problem = small(3.0, bias=bias)
        alone, told = (points.recover(problem, 0.1 * np.ones(60), ONE, b=b) for b in (None, 123.0))
        assert told.b == pytest.approx(alone.b, abs=1e-9)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_dual_of_the_loss_leaves_out_rows_without_cost(loss, bias):
    weight = np.r_[np.zeros(5), np.ones(55), np.zeros(3), 2.0 * np.ones(7)]
    problem = small(loss, n=70, bias=bias, sample_weight=weight)
    alpha = points.make_feasible(problem, some_multipliers(problem))
    v = induced(problem, alpha)
    square = float(v @ v) + (scale_of_bias(problem) * float(alpha @ signs(problem))) ** 2
    assert points.dual_loss(problem, alpha) == pytest.approx(-0.5 * square - dual(problem, alpha), rel=1e-10)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_point_without_a_dual_value_has_an_infinite_gap(loss, bias):
    problem = small(loss, bias=bias, C=0.3)
    nothing = points.uncertified(problem, None, ONE)
    assert (nothing.dual, nothing.gap, nothing.induced) == (-math.inf, math.inf, None)
    assert not nothing.w.any()
    assert nothing.primal == pytest.approx(primal(problem, nothing.w, nothing.b), rel=1e-12)
    if problem.bias.free:
        assert nothing.primal <= best_bias(problem, nothing.w) * (1.0 + 1e-9)
    else:
        assert nothing.b == 0.0
    start = solution(problem, w=np.array([1.0, -2.0, 0.5, 0.0]), b=0.25)
    point = points.uncertified(problem, start, ONE)
    assert (point.b, point.bias_interval, point.gap) == (0.25, (0.25, 0.25), math.inf)
    assert point.primal == pytest.approx(primal(problem, start.w, 0.25), rel=1e-12)
    np.testing.assert_allclose(point.scores, dense(problem) @ start.w, atol=1e-12)
    if loss in SMOOTH:  # c h'(r), by differences
        r, h = residuals(problem, start.w, 0.25), 1e-6
        slope = (problem.loss.of_residual(r + h) - problem.loss.of_residual(r - h)) / (2.0 * h)
        np.testing.assert_allclose(point.alpha, 0.3 * slope, atol=1e-4)
    else:
        np.testing.assert_array_equal(point.alpha, start.alpha)
        assert not nothing.alpha.any()


def test_a_fit_starts_where_it_is_told():
    problem = small("hinge", bias="penalised")
    alpha = 0.2 * np.ones(60)
    by_alpha = points.recover_start(problem, alpha, ONE)
    np.testing.assert_array_equal(by_alpha.w, by_alpha.induced)
    good = points.recover(problem, 0.02 * np.ones(60), ONE)
    start = replace(solution(problem, good.w, good.b), alpha=alpha)
    whole = points.recover_start(problem, start, ONE)
    np.testing.assert_array_equal(whole.w, good.w)
    np.testing.assert_array_equal(whole.alpha, alpha)
    assert whole.primal == pytest.approx(good.primal) != pytest.approx(by_alpha.primal)


def test_a_weak_gain_ties_the_bias():
    assert points.bias_gain(np.array([1.0, 4.0, 9.0, 5.0])) == pytest.approx(4.5 / 2.0)
    assert points.bias_gain(np.array([0.0, 0.0, 0.0, 8.0])) == pytest.approx(2.0 / 2.0)
    assert points.bias_gain(np.zeros(4)) == pytest.approx(1e-300 / 2.0)


def point(gap, primal=10.0, w=1.0, dual=0.0, reached=None):
    return points.Point(np.zeros(1), np.array([w]), 0.0, (0.0, 0.0), primal, dual, gap, np.zeros(1), None, reached)


def test_the_point_with_the_smaller_gap_is_better():
    small_gap, large_gap = point(0.1), point(0.4)
    assert points.better(None, large_gap) is large_gap
    assert points.better(small_gap, large_gap) is small_gap
    assert points.better(large_gap, small_gap) is small_gap
    assert points.better(small_gap, twin := point(0.1)) is twin


@pytest.mark.parametrize("turned", [False, True])
def test_a_rough_point_remembers_the_lowest_hyperplane(turned):
    def both(a, b):
        return points.better(b, a) if turned else points.better(a, b)

    nearer, lower = point(0.8, primal=9.0), point(0.9, primal=5.0)
    found = both(nearer, lower)
    assert (found.gap, found.primal) == (0.8, 9.0)
    assert found.reached == lower
    # What it remembers stays as long as nothing lower comes, and never nests.
    again = both(found, point(0.85, primal=7.0))
    assert again.reached.primal == 5.0
    handed_on = both(point(0.7, primal=8.0), found)
    assert (handed_on.gap, handed_on.reached.primal, handed_on.reached.reached) == (0.7, 5.0, None)
    assert both(found, point(0.9, primal=3.0)).reached.primal == 3.0
    assert both(nearer, point(0.9, primal=9.5)).reached is None
    assert both(nearer, replace(lower, reached=nearer)).reached == lower
    assert both(point(ROUGH, primal=9.0), lower).reached is None
    assert both(point(ROUGH + 1e-9, primal=9.0), lower).reached is not None


def test_a_hyperplane_of_zeros_is_not_worth_remembering():
    assert points.better(point(0.8, primal=9.0), point(0.9, primal=5.0, w=0.0)).reached is None
    # but any hyperplane is, beside one of zeros
    assert points.better(point(0.8, primal=5.0, w=0.0), point(0.9, primal=9.0)).reached.primal == 9.0
    assert points.better(point(0.8, w=0.0), point(0.9, w=0.0)).reached is None


def test_points_without_a_dual_value_remember_nothing():
    unknown = point(math.inf, dual=-math.inf)
    assert points.better(point(math.inf, primal=1.0, dual=-math.inf), unknown) is unknown
    assert points.better(unknown, rough := point(0.9)) is rough  # of the same height


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", REGRESSION)
def test_a_constant_is_the_best_bias_of_no_weights(loss, bias):
    problem = small(loss, bias=bias)
    b = points.constant_fit(problem)
    if not problem.bias.free:
        assert b == 0.0
    else:
        assert primal(problem, np.zeros(4), b) <= best_bias(problem, np.zeros(4)) * (1.0 + 1e-9)
        assert b != 0.0

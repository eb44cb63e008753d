"""The interval of best biases, against grids and a slow obvious bisection."""

import math

import numpy as np
import pytest

from tests.losses.every import EVERY, slope_in_score

every = pytest.mark.parametrize("name", EVERY)
COSTS = [0.0, 0.5, 1.0, 3.0]  # sums of these are exact


def rows(loss, n, seed, scale=1.0, balance=0.5):
    """Scores, labels and costs without order; both classes have a cost."""
    rng = np.random.default_rng(seed)
    score, cost = rng.normal(size=n) * scale, rng.choice(COSTS, n)
    y = rng.normal(size=n) * scale if loss.regression else np.where(rng.random(n) < balance, 1.0, -1.0)
    if not loss.regression:
        y[:2] = 1.0, -1.0
    cost[:2] = 1.0
    return score, y, cost


def calm_rows(loss, n, seed, shift=0.0, balance=0.5):
    """Rows for which some biases leave no slack at all (logistic loss and ε = 0 know no such thing)."""
    rng = np.random.default_rng(seed)
    _, y, cost = rows(loss, n, seed, balance=balance)
    if loss.regression:
        y = rng.uniform(-0.5, 0.5, n) * loss.epsilon
        return np.full(n, shift), y, cost
    return y * (1.5 + rng.exponential(size=n)) + shift, y, cost


def rising(loss, score, y, cost):
    """The slope of the costs in the bias, exactly rounded."""
    live = cost > 0.0
    score, y, cost = score[live], y[live], cost[live]
    return lambda b: math.fsum(cost * slope_in_score(loss, score + b, y))


def bisected(goes_left, low, high):
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (low, middle) if goes_left(middle) else (middle, high)
    return 0.5 * (low + high)


def slow_interval(loss, score, y, cost):
    slope, reach = rising(loss, score, y, cost), 10.0 + np.abs(score).max() + np.abs(y).max()
    return bisected(lambda b: slope(b) >= 0.0, -reach, reach), bisected(lambda b: slope(b) > 0.0, -reach, reach)


def agrees(name, score, y, cost):
    loss = EVERY[name]
    low, high = loss.best_bias(score, y, cost)
    np.testing.assert_allclose((low, high), slow_interval(loss, score, y, cost), rtol=1e-9, atol=1e-9)
    assert isinstance(low, float)
    assert isinstance(high, float)
    return low, high


@every
@pytest.mark.parametrize("seed", range(25))
def test_best_bias_beats_a_fine_grid(name, seed):
    rng, loss = np.random.default_rng(seed), EVERY[name]
    score, y, cost = rows(loss, int(rng.integers(2, 30)), seed, scale=10.0 ** rng.uniform(-2, 2))
    total = lambda b: float(cost @ loss.value(score + b, y))  # noqa: E731
    low, high = loss.best_bias(score, y, cost)
    assert low <= high
    best = min(total(b) for b in np.linspace((y - score).min() - 1, (y - score).max() + 1, 4001))
    for b in (low, 0.5 * (low + high), high):
        assert total(b) <= best + 1e-9 * (1.0 + best)
    width = 1e-3 * (1.0 + abs(low))
    assert total(low - width) > total(low) - 1e-12 * (1.0 + best)
    assert total(high + width) > total(high) - 1e-12 * (1.0 + best)


@every
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n", [2, 3, 10, 101])
def test_the_interval_is_whole(name, n, seed):
    agrees(name, *rows(EVERY[name], n, seed))


@every
@pytest.mark.parametrize("balance", [0.5, 0.01, 0.99])
@pytest.mark.parametrize("n", [6000, 40000])
def test_the_interval_is_whole_for_many_rows(name, n, balance):
    agrees(name, *rows(EVERY[name], n, 1, balance=balance))


@every
@pytest.mark.parametrize("shift", [-5.0, 5.0])
def test_the_interval_is_whole_when_some_rows_differ_from_the_others(name, shift):
    """A sample of every so many rows would mislead."""
    score, y, cost = rows(EVERY[name], 40000, 9)
    stride = (2 if EVERY[name].regression else 1) * len(score) // 8192
    score[::stride] += shift
    agrees(name, score, y, cost)


@every
@pytest.mark.parametrize("n", [50, 6000, 40000])
def test_the_interval_of_tied_rows(name, n):
    """Scores and labels of few values: many breakpoints coincide, and steps stay at zero for long."""
    score, y, cost = rows(EVERY[name], n, 2)
    if EVERY[name].regression:
        y = np.round(y)
    agrees(name, np.round(2.0 * score) / 2.0, y, cost)


CALM = [name for name in EVERY if name not in ("logistic", "epsilon 0.0", "squared epsilon 0.0")]


def biases_without_slack(loss, score, y, cost):
    live, error = cost > 0.0, y - score
    if loss.regression:
        return error[live].max() - loss.epsilon, error[live].min() + loss.epsilon
    return error[live & (y > 0)].max(), error[live & (y < 0)].min()


@pytest.mark.parametrize("name", CALM)
@pytest.mark.parametrize("shift", [0.0, -17.7, 1000.0])
@pytest.mark.parametrize("balance", [0.5, 0.01, 0.99])
@pytest.mark.parametrize("n", [2, 30, 4000, 6000, 40000])
def test_biases_without_slack_are_reported_whole(name, n, balance, shift):
    score, y, cost = calm_rows(EVERY[name], n, 3, shift, balance)
    expected = biases_without_slack(EVERY[name], score, y, cost)
    assert expected[1] - expected[0] > 0.5
    assert EVERY[name].best_bias(score, y, cost) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", CALM)
def test_biases_without_slack_are_reported_whole_for_costs_that_do_not_sum_exactly(name):
    score, y, cost = calm_rows(EVERY[name], 40000, 3, balance=0.99)
    expected = biases_without_slack(EVERY[name], score, y, cost)
    assert EVERY[name].best_bias(score, y, cost / 30.0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [4, 1000, 6000, 40000])
def test_a_median_between_two_rows_is_an_interval(n):
    """Half of the cost on either side: every bias between the two middle errors is best."""
    error = np.random.default_rng(n).permutation(np.arange(1.0, n + 1.0))
    assert EVERY["epsilon 0.0"].best_bias(np.zeros(n), error, np.full(n, 0.25)) == (n / 2, n / 2 + 1)
    assert EVERY["epsilon 0.0"].best_bias(np.zeros(n), error, np.full(n, 0.1)) == (n / 2, n / 2 + 1)


@pytest.mark.parametrize("n", [10, 6000])
def test_a_squared_error_without_tube_is_best_at_the_mean(n):
    score, y, cost = rows(EVERY["squared epsilon 0.0"], n, 4)
    mean = np.average(y - score, weights=cost)
    assert EVERY["squared epsilon 0.0"].best_bias(score, y, cost) == pytest.approx((mean, mean), rel=1e-12)


@pytest.mark.parametrize("name", [name for name in CALM if not EVERY[name].regression])
def test_two_separated_points(name):
    # Every bias in [-1, 1] leaves no slack.
    score, y, cost = np.array([-2.0, 2.0]), np.array([-1.0, 1.0]), np.ones(2)
    assert EVERY[name].best_bias(score, y, cost) == pytest.approx((-1.0, 1.0))


@every
def test_heavy_rows_of_both_classes_at_one_breakpoint(name):
    """For powers below 2, the slope in the bias is vertical there."""
    score, y = np.array([-1.0, 0.0, -1.0, 1.0]), np.array([1.0, -1.0, -1.0, 1.0])
    agrees(name, score, y, np.array([1.0, 1.0, 300.0, 300.0]))


def test_logistic_bias_of_equal_scores_is_the_log_odds():
    score, y, cost = np.full(4, 0.3), np.array([1.0, 1.0, 1.0, -1.0]), np.ones(4)
    expected = math.log(3.0) - 0.3
    assert EVERY["logistic"].best_bias(score, y, cost) == pytest.approx((expected, expected), rel=1e-14)


@every
@pytest.mark.parametrize("n", [30, 6000])
def test_the_start_does_not_matter(name, n):
    loss = EVERY[name]
    score, y, cost = rows(loss, n, 5)
    expected = loss.best_bias(score, y, cost)
    for start in (expected[0], -1.0, 3.7, -1e6, 1e6):
        assert loss.best_bias(score, y, cost, start) == pytest.approx(expected, rel=1e-10, abs=1e-10)


@every
@pytest.mark.parametrize("n", [30, 6000])
def test_rows_without_cost_do_not_matter(name, n):
    loss = EVERY[name]
    score, y, cost = rows(loss, n, 6)
    cost[2::3] = 0.0
    live = cost > 0.0
    expected = loss.best_bias(score[live], y[live], cost[live])
    score[~live] *= 100.0
    assert loss.best_bias(score, y, cost) == pytest.approx(expected, rel=1e-10, abs=1e-10)


@every
@pytest.mark.parametrize("n", [30, 6000])
def test_the_order_and_the_unit_of_the_costs_do_not_matter(name, n):
    loss = EVERY[name]
    score, y, cost = rows(loss, n, 7)
    order = np.random.default_rng(8).permutation(n)
    expected = loss.best_bias(score, y, cost)
    for unit in (1e-6, 1.0, 1e6):
        found = loss.best_bias(score[order], y[order], unit * cost[order])
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)

"""Multipliers and curvatures of a loss are those of the maximisation that defines the augmented Lagrangian.

maximise over u   u r − c h*(u/c) − (u − a)²/(2 sigma);   for smooth losses phi is c h(r) itself.
"""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from maxmargin import Problem
from maxmargin.losses import SlackPower
from maxmargin.solvers import curves
from tests.solvers.plain import CORNERS, LOSSES, REGRESSION, SMOOTH, conjugate, form, signs, targets

N, B = 40, 0.3


def curve_of(problem, sigma, anchor, n_threads=1):
    """As Newton's method makes it."""
    sign, target, loss, cost = problem.sign, problem.target, problem.loss, problem.cost
    if loss.has_box:
        return curves.Piecewise(sign, target, problem.box, sigma, anchor, n_threads)
    if loss.smooth:
        return curves.Smooth(sign, target, cost, loss)
    return curves.LowPower(sign, target, cost, loss, sigma, anchor)


def low_power(power, z, sigma, cost):
    """The curve of ξ^power where anchor + sigma r is z."""
    one = np.ones(len(z))
    curve = curves.LowPower(one, 0.0 * one, cost, SlackPower(power), sigma, z)
    return curve, curve.at(np.zeros(len(z)), 0.0)


def rows(loss, n=N):
    """Labels or numbers; the rows themselves do not matter. Costs of several sizes, some of zero."""
    rng = np.random.default_rng(0)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], n, p=[0.2, 0.2, 0.3, 0.3])
    weight[:2] = 1.0
    X = rng.standard_normal((n, 1))
    if loss in REGRESSION:
        return Problem.regression(X, rng.standard_normal(n), sample_weight=weight, loss=loss, epsilon=0.4)
    return Problem.from_arrays(X, np.arange(n) % 2, sample_weight=weight, loss=loss)


class Looked:
    """A curve at random scores, with anchors within their bounds, some of them at a bound."""

    def __init__(self, loss, n=N, n_threads=1):
        rng = np.random.default_rng(2)
        self.problem = problem = rows(loss, n)
        self.smooth = problem.loss.smooth
        self.scores, self.d_scores, self.db = 1.5 * rng.standard_normal(n), rng.standard_normal(n), -0.7
        sides = [-1.0, 1.0] if problem.loss.regression else [1.0]
        self.anchor = problem.cost * rng.choice([0.0, 0.2, 0.8, 1.0], n) * rng.choice(sides, n)
        self.sigma = 0.7 * (1.0 + np.arange(n) % 3)
        if self.smooth:  # no anchors; a box's penalty is then the loss's own curvature
            self.anchor, self.sigma = np.zeros(n), np.where(problem.cost > 0.0, 2.0 * problem.cost, 1.0)
        self.curve = curve_of(problem, self.sigma, self.anchor, n_threads)
        self.r = self.residuals(0.0)
        self.at = self.curve.at(self.scores, B)

    def residuals(self, t):
        f = self.scores + B + t * (self.d_scores + self.db)
        return targets(self.problem) - signs(self.problem) * f

    def phi(self, r):
        """Every row's phi at residuals r."""
        if self.smooth:
            return np.array([self._loss(i, x) for i, x in enumerate(r)])
        return np.array([self._maximum(i, x)[1] for i, x in enumerate(r)])

    def _loss(self, i, r):
        problem = self.problem
        f = signs(problem)[i] * (targets(problem)[i] - r)
        return form(problem).objective(np.zeros((1, 1)), problem.y[[i]], problem.cost[[i]], np.zeros(1), f)

    def maximisers(self):
        return np.array([self._maximum(i, x)[0] for i, x in enumerate(self.r)])

    def _maximum(self, i, r):
        problem, a, sigma = self.problem, self.anchor[i], self.sigma[i]
        c = problem.cost[i]
        if c == 0.0:
            return 0.0, 0.0

        def loss(u):
            return -u * r + c * float(conjugate(problem, np.array([u / c]))[0]) + (u - a) ** 2 / (2.0 * sigma)

        high = abs(a) + sigma * abs(r) if problem.loss.name == "slack_power" else c
        pieces = [(-c, 0.0), (0.0, c)] if problem.loss.regression else [(0.0, high)]
        inner = [minimize_scalar(loss, bounds=p, method="bounded", options={"xatol": 1e-13}).x for p in pieces]
        u = min([end for piece in pieces for end in piece] + inner, key=loss)
        return u, -loss(u)


@pytest.mark.parametrize("loss", CORNERS)
def test_multipliers_maximise_the_augmented_lagrangian(loss):
    looked = Looked(loss)
    wanted = looked.maximisers()
    np.testing.assert_allclose(looked.at.pi, wanted, atol=1e-6)
    live = looked.problem.cost > 0.0
    at_zero = (wanted == 0.0) & live
    assert 3 < at_zero.sum() < live.sum() - 4
    assert np.all(looked.at.pi[at_zero | ~live] == 0.0)  # exactly, not about
    if loss != 1.5:
        assert (np.abs(looked.at.pi) == looked.problem.cost)[live].sum() > 4


@pytest.mark.parametrize("loss", LOSSES)
def test_multipliers_are_the_slopes_of_phi(loss):
    looked, h = Looked(loss), 1e-5
    slope = (looked.phi(looked.r + h) - looked.phi(looked.r - h)) / (2.0 * h)
    np.testing.assert_allclose(looked.at.pi, slope, atol=1e-5)
    assert np.abs(slope).max() > 0.5


@pytest.mark.parametrize("loss", LOSSES)
def test_curvatures_are_the_slopes_of_the_multipliers(loss):
    looked, h = Looked(loss), 1e-6
    # Scores move by −sign h where residuals move by h.
    high, low = (looked.curve.at(looked.scores - k * h * signs(looked.problem), B).pi for k in (1.0, -1.0))
    slope = (high - low) / (2.0 * h)
    np.testing.assert_allclose(looked.at.D, slope, rtol=1e-4, atol=1e-6)
    active = looked.at.D > 0.0
    assert active.sum() > 4
    if loss != "logistic":
        assert np.all(looked.at.D[~active] == 0.0)
        assert (~active & (looked.problem.cost > 0.0)).sum() > 4
    free = looked.problem.cost == 0.0
    assert free.sum() > 4
    assert not looked.at.D[free].any()
    assert not looked.at.pi[free].any()


@pytest.mark.parametrize("loss", LOSSES)
def test_sums_are_those_of_the_multipliers(loss):
    looked = Looked(loss)
    at, sign = looked.at, signs(looked.problem)
    np.testing.assert_array_equal(at.signed, sign * at.pi)
    assert at.balance == pytest.approx(float(at.pi @ sign), abs=1e-12)
    assert at.size == pytest.approx(float(np.abs(at.pi).sum()), rel=1e-13)
    assert at.curvature == pytest.approx(float(at.D.sum()), rel=1e-13)
    if loss in SMOOTH and not looked.problem.loss.has_box:
        assert at.moved == 0.0
    else:
        assert at.moved == pytest.approx(float(((at.pi - looked.anchor) ** 2).sum()), rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("t", [0.0, 0.4, 1.0, -2.0])
def test_the_slope_is_the_derivative_along_the_direction(loss, t):
    looked, h = Looked(loss), 1e-5
    looked.curve.along(looked.d_scores, looked.db)
    totals = [float(looked.phi(looked.residuals(t + k * h)).sum()) for k in (1.0, -1.0)]
    slope = (totals[0] - totals[1]) / (2.0 * h)
    assert looked.curve.slope(t) == pytest.approx(-slope, rel=1e-5, abs=1e-4)
    there = looked.curve.at(looked.scores + t * looked.d_scores, B + t * looked.db)
    assert looked.curve.slope(0.0) == pytest.approx(float(there.signed @ (looked.d_scores + looked.db)), rel=1e-12)


def test_only_boxes_are_quadratic_in_pieces():
    exact = {loss: Looked(loss).curve.exact for loss in LOSSES}
    assert [loss for loss in LOSSES if exact[loss]] == ["hinge", "squared_hinge", *REGRESSION]


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_pieces_have_the_same_bits_for_any_threads(loss):
    one, two = (Looked(loss, n=130_001, n_threads=k) for k in (1, 2))
    assert one.at.pi.tobytes() == two.at.pi.tobytes()
    assert one.at[3:] == two.at[3:]
    assert one.at.balance == pytest.approx(float(one.at.pi @ signs(one.problem)), rel=1e-10)


@pytest.mark.parametrize("power", [1.01, 1.2, 1.5, 1.8, 1.99])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_low_powers_solve_their_equation_for_any_size(power, size):
    # At the maximum u = a + sigma (r − slack), with u = p c slack^(p − 1).
    rng = np.random.default_rng(0)
    z, sigma, cost = size * rng.uniform(0.01, 1.0, 3000), 10.0 ** rng.uniform(-3, 3, 3000), rng.uniform(0.1, 9.0, 3000)
    _, at = low_power(power, z, sigma, cost)
    slack = (at.pi / (power * cost)) ** (1.0 / (power - 1.0))
    np.testing.assert_allclose(sigma * slack + at.pi, z, rtol=1e-12 / (power - 1.0))
    d_slack = slack / ((power - 1.0) * at.pi)
    np.testing.assert_allclose(at.D * (1.0 + sigma * d_slack), sigma, rtol=1e-12 / (power - 1.0))


def test_low_powers_are_zero_without_slack_or_cost():
    z, cost = np.array([-1.0, 0.0, 2.0, 1e-300, 3.0]), np.array([1.0, 1.0, 0.0, 1.0, 1.0])
    curve, at = low_power(1.5, z, np.full(5, 2.0), cost)
    np.testing.assert_array_equal(at.pi[:3], 0.0)
    np.testing.assert_array_equal(at.D[:3], 0.0)
    assert 0.0 < at.pi[3] <= 1e-300
    assert at.D[3] == pytest.approx(2.0)  # where the slack begins, the penalty alone bounds the curvature
    assert 0.0 < at.pi[4] < 3.0
    curve.along(np.ones(5), 0.0)
    assert curve.slope(0.0) == pytest.approx(at.pi.sum())


@pytest.mark.parametrize("loss", ["squared_hinge", "squared_epsilon_insensitive"])
def test_a_square_is_the_same_curve_as_a_box_and_by_its_slopes(loss):
    boxed = Looked(loss)
    problem = boxed.problem
    by_slopes = curves.Smooth(problem.sign, problem.target, problem.cost, problem.loss)
    at = by_slopes.at(boxed.scores, B)
    np.testing.assert_allclose(at.pi, boxed.at.pi, atol=1e-14)
    np.testing.assert_allclose(at.D, boxed.at.D, atol=1e-14)
    assert at.size == pytest.approx(float(np.abs(at.pi).sum()), rel=1e-13)
    for curve in (by_slopes, boxed.curve):
        curve.along(boxed.d_scores, boxed.db)
    assert by_slopes.slope(0.8) == pytest.approx(boxed.curve.slope(0.8), rel=1e-12)

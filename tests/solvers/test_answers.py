"""A last point becomes a solution: which hyperplane is handed out, what is claimed of it, and with which status."""

from dataclasses import replace

import numpy as np
import pytest

from maxmargin import Problem, Status
from maxmargin.solvers import Newton, points, run
from tests.solvers.plain import LOSSES, ONE, REGRESSION, assert_feasible, dual, induced, optimum, primal, run_on, small


def answer(problem, point, status=Status.CONVERGED, tol=1e-6):
    work = run_on(problem, tol=tol, reason="some words")
    work.best, work.n_iter = point, 7
    return work.solution(status)


def auxiliary(problem):
    """The problem as a step on the way to another's solution."""
    return replace(problem, auxiliary=True)


def optimal_point(problem):
    found = Newton(tol=1e-10).solve(problem)
    return points.recover(problem, found.alpha, ONE, found.w, found.b)


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_claimed_encloses_the_optimum(loss):
    problem = small(loss)
    point = optimal_point(problem)
    found = answer(problem, point)
    assert (found.status, found.n_iter, found.solver, found.reason) == (Status.CONVERGED, 7, "newton", "some words")
    assert found.dual <= dual(problem, found.alpha) + 1e-15 * abs(found.dual)
    assert found.primal >= primal(problem, found.w, found.b) * (1.0 - 1e-15)
    assert found.dual * (1.0 - 1e-6) <= optimum(problem) <= found.primal * (1.0 + 1e-6)
    assert found.gap == pytest.approx((found.primal - found.dual) / found.primal)
    assert 0.0 <= found.gap <= 1e-9
    assert found.history.gaps == [found.gap]
    assert found.history.records[0].certified
    assert_feasible(problem, found.alpha)
    np.testing.assert_array_equal(found.w, point.w)
    assert (found.b, found.bias_interval) == (point.b, point.bias_interval)


def test_a_point_of_which_little_is_known_is_completed_first():
    problem = small("logistic")
    start = Newton(tol=1e-9).solve(problem)
    found = answer(problem, points.uncertified(problem, start, ONE))
    assert found.status is Status.CONVERGED
    np.testing.assert_array_equal(found.w, start.w)
    assert found.dual == pytest.approx(dual(problem, found.alpha), rel=1e-12)
    # It does not compete with what its multipliers induce, be that lower.
    problem = small("logistic", C=1e-3)
    nothing = points.uncertified(problem, None, ONE)
    found = answer(problem, nothing)
    assert not found.w.any()
    assert primal(problem, induced(problem, found.alpha), found.b) < found.primal


def test_steps_on_the_way_are_computed_but_not_claimed():
    problem = auxiliary(small("hinge"))
    point = replace(optimal_point(problem), primal=12.5, dual=12.0, gap=0.04)
    found = answer(problem, point, tol=0.05)
    assert (found.primal, found.dual, found.gap, found.status) == (12.5, 12.0, 0.04, Status.CONVERGED)
    assert found.alpha is point.alpha
    assert answer(problem, point, tol=0.03).status is Status.NUMERICAL_LIMIT


class TestReached:
    """The lowest hyperplane met on the way, where the last point is a poor one."""

    def points(self, factor):
        """A poor point that remembers a hyperplane, which is ``factor`` times as high as no hyperplane at all."""
        problem = small("hinge", C=1.0)
        poor = points.recover(problem, 1e-3 * np.ones(60), ONE, np.zeros(4), 0.0, compete=False)
        good = optimal_point(problem)
        return problem, poor, replace(good, primal=factor * problem.null_primal) if factor else good

    def test_it_is_handed_out_with_the_multipliers_of_the_point(self):
        problem, poor, good = self.points(None)
        found = answer(problem, replace(poor, reached=good), Status.ITERATION_LIMIT)
        np.testing.assert_array_equal(found.w, good.w)
        assert (found.b, found.bias_interval) == (good.b, good.bias_interval)
        assert found.primal == pytest.approx(primal(problem, good.w, good.b), rel=1e-12)
        assert found.dual == pytest.approx(dual(problem, poor.alpha), rel=1e-9)
        assert found.status is Status.ITERATION_LIMIT

    def test_it_is_forgotten_where_the_point_is_good_enough(self):
        problem, _, good = self.points(None)
        found = answer(problem, replace(good, reached=replace(good, w=np.ones(4))))
        np.testing.assert_array_equal(found.w, good.w)

    @pytest.mark.parametrize(("factor", "usable"), [(0.9e6, True), (1.1e6, False)])
    def test_it_is_useless_if_rounding_threw_it_away(self, factor, usable):
        problem, poor, far = self.points(factor)
        found = answer(problem, replace(poor, reached=far), Status.NUMERICAL_LIMIT)
        assert found.w.any() == usable

    def test_hyperplanes_of_others_come_with_a_gap_of_their_own(self):
        problem, poor, good = self.points(None)
        both = points.with_hyperplane(problem, replace(poor, reached=good), good)
        assert both.gap == pytest.approx((good.primal - poor.dual) / good.primal)
        assert both.reached is None
        np.testing.assert_array_equal(both.alpha, poor.alpha)
        np.testing.assert_array_equal(both.scores, good.scores)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", REGRESSION)
@pytest.mark.parametrize("n", [30, 7002])
def test_targets_within_a_tube_need_no_multipliers(loss, fit_intercept, n):
    X = np.random.default_rng(0).standard_normal((n, 3))
    level = 5.0 if fit_intercept else 0.0
    y = level + np.linspace(-0.9, 0.9, n)
    problem = Problem.regression(X, y, loss=loss, epsilon=1.0, fit_intercept=fit_intercept)
    poor = points.recover(problem, np.where(np.arange(n) % 2, 0.5, -0.5), ONE, np.ones(3), level)
    found = answer(problem, poor)
    assert found.status is Status.CONVERGED
    assert not found.w.any()
    assert not found.alpha.any()
    assert found.bias_interval == (found.b, found.b)
    assert found.b == pytest.approx(level, abs=1e-12)
    assert found.primal == found.dual == found.gap == 0.0
    # The best of no weights is not the optimum where a target is outside of every tube.
    other = Problem.regression(X, 3.0 * y, loss=loss, epsilon=1.0, fit_intercept=fit_intercept)
    poor = points.recover(other, np.where(np.arange(n) % 2, 0.5, -0.5), ONE, np.ones(3), level)
    found = answer(other, poor)
    assert found.status is Status.NUMERICAL_LIMIT
    assert found.w.any()
    assert found.primal == pytest.approx(primal(other, found.w, found.b), rel=1e-10)


def test_a_constant_is_claimed_by_its_objective():
    y = np.linspace(-2.0, 2.0, 9)
    problem = Problem.regression(np.ones((9, 1)) * y[:, None], y + 1.0, epsilon=0.5)
    found = points.claim_of_constant(problem)
    assert found.primal == pytest.approx(primal(problem, np.zeros(1), points.constant_fit(problem)), rel=1e-12)
    assert (found.dual, found.gap) == (0.0, 1.0)


@pytest.mark.parametrize("status", Status)
def test_a_status_follows_the_gap(status):
    reached = Status.INTERRUPTED if status is Status.INTERRUPTED else Status.CONVERGED
    missed = Status.NUMERICAL_LIMIT if status is Status.CONVERGED else status
    assert run.settled(status, 0.9e-6, 1e-6) is reached
    assert run.settled(status, 0.0, 1e-6) is reached
    assert run.settled(status, 1.1e-6, 1e-6) is missed
    assert run.settled(status, 1e-6, 1e-6) is missed  # a certificate rounds, too
    assert run.settled(status, np.nan, 1e-6) is missed

"""Rows that are proven from a rough point have that multiplier at the optimum."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem
from maxmargin.runtime import Execution
from maxmargin.solvers import InteriorPoint, Newton
from maxmargin.solvers.points import recover
from maxmargin.solvers.screening import proven
from tests.conftest import tall

HOW = Execution(1)
BIASES = {
    "free": {},
    "none": {"fit_intercept": False},
    "penalised": {"penalize_intercept": True, "intercept_scaling": 2.0},
}
LOSSES = ["hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive"]


def make(loss, bias, seed, sparse=False):
    X, y = tall(250, 3, seed=seed)
    weight = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 3.0], len(y))
    C = float(10.0 ** np.random.default_rng(seed).uniform(-2, 1))
    X = sp.csr_array(np.where(np.abs(X) < 0.5, 0.0, X)) if sparse else X
    options = {"sample_weight": weight, "C": C, "loss": loss, **BIASES[bias]}
    if loss.endswith("epsilon_insensitive"):
        target = np.asarray(X @ [1.0, -2.0, 0.5]).ravel() + np.random.default_rng(seed + 1).standard_normal(len(y))
        return Problem.regression(X, target, epsilon=0.7, **options)
    return Problem.from_arrays(X, y, **options)


def sides(problem, point):
    """The multiplier of the side on which a row lies."""
    r = problem.target - problem.sign * (point.scores + point.b)
    tube, box = problem.box.tube, problem.box
    if problem.loss.regression:
        return np.where(r > tube, box.upper, np.where(r < -tube, box.lower, 0.0))
    return np.where(r > 0.0, box.upper, 0.0)


def rough_points(problem, best):
    """From far away to close by."""
    rng = np.random.default_rng(0)
    lower, upper = problem.loss.domain(problem.cost)
    for size in (1.0, 0.1, 1e-2, 1e-3, 1e-5, 1e-8):
        shaken = best.alpha * (1.0 + size * rng.standard_normal(problem.n_rows))
        yield recover(problem, np.clip(shaken, lower, upper), HOW)
        yield recover(problem, best.alpha, HOW, best.w + size * rng.standard_normal(problem.n_cols), best.b)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("sparse", [False, True])
def test_proven_rows_have_their_optimal_multiplier(loss, bias, sparse):
    for seed in range(3):
        problem = make(loss, bias, seed, sparse)
        best = InteriorPoint(tol=1e-12, n_threads=1).solve(problem)
        assert best.gap <= 1e-9
        seen = []
        for point in rough_points(problem, best):
            sure = proven(problem, point)
            np.testing.assert_allclose(best.alpha[sure], sides(problem, point)[sure], atol=1e-9 * problem.cost.max())
            seen.append((point.gap, sure.sum()))
        closest = min(seen)
        assert closest[1] > 0
        if not problem.loss.smooth:
            assert closest[1] > 0.9 * problem.n_rows


def test_squared_slack_proves_only_rows_without_any():
    problem = make("squared_hinge", "free", 0)
    best = InteriorPoint(tol=1e-12, n_threads=1).solve(problem)
    sure = proven(problem, recover(problem, best.alpha, HOW, best.w, best.b))
    assert sure.any()
    assert not best.alpha[sure].any()


def test_nothing_is_proven_far_away():
    problem = make("hinge", "free", 0)
    point = recover(problem, np.zeros(problem.n_rows), HOW)
    assert point.gap == 1.0
    assert not proven(problem, point).any()


@pytest.mark.parametrize("loss", ["logistic", 1.5])
def test_losses_without_a_box_prove_nothing(loss):
    X, y = tall(50, 2)
    problem = Problem.from_arrays(X, y, loss=loss)
    best = Newton(n_threads=1).solve(problem)
    assert not proven(problem, recover(problem, best.alpha, HOW, best.w, best.b)).any()


def test_rows_of_weight_zero_do_not_widen_the_doubt():
    X, y = tall(200, 3)
    weight = np.ones(len(y))
    weight[0] = 0.0
    counts = []
    for scale in (1.0, 1e6):
        far = X.copy()
        far[0] *= scale
        problem = Problem.from_arrays(far, y, loss="hinge", sample_weight=weight)
        best = InteriorPoint(tol=1e-8, n_threads=1).solve(problem)
        counts.append(proven(problem, recover(problem, 0.9999 * best.alpha, HOW, best.w, best.b))[1:].sum())
    assert counts[0] > 50
    assert counts[1] == pytest.approx(counts[0], abs=2)


def test_a_wide_interval_of_biases_is_taken_into_account():
    # Any bias in [−1, 1] is optimal for w = 0 here; the row in the middle must not be proven by the midpoint.
    problem = Problem.from_arrays([[0.0], [0.0], [0.0], [0.0]], [0, 1, 0, 1], loss="hinge")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        point = recover(problem, np.ones(4), HOW)
        assert point.gap == 0.0
        assert point.bias_interval == (-1.0, 1.0)
        assert not proven(problem, point).any()


def test_the_radius_is_no_smaller_than_theory_says():
    # Where the loss is linear, P(w) − P* is ½(w − w*)² exactly: from w = ½ the optimum, w* = 1, is as far as it can be.
    # The second row is on the other side of the margin there.
    problem = Problem.from_arrays(
        [[0.01], [1.001], [-1e-9]], [1, 1, 0], loss="hinge", sample_weight=[100.0, 1e-7, 1e-7], fit_intercept=False
    )
    best = InteriorPoint(tol=1e-12, n_threads=1).solve(problem)
    assert best.w[0] == pytest.approx(1.0, abs=1e-6)
    assert best.alpha[1] == 0.0
    point = recover(problem, best.alpha, HOW, np.array([0.5]), 0.0, compete=False)
    assert point.primal - point.dual == pytest.approx(0.125, rel=1e-5)
    np.testing.assert_array_equal(proven(problem, point), [True, False, True])


def test_without_a_finite_gap_nothing_is_proven():
    problem = Problem.from_arrays([[0.0], [-9.0], [1.0]], [0, 0, 1], loss="hinge", fit_intercept=False)
    point = recover(problem, np.array([1.0, 0.0, 1.0]), HOW)
    assert not proven(problem, replace(point, dual=-np.inf)).any()
    assert proven(problem, replace(point, dual=point.primal + 1e-9))[:2].all()  # rounding may turn both round


@pytest.mark.parametrize("end", [0, 1])
def test_a_bias_at_an_end_of_its_interval_may_move_to_the_other_one_only(end):
    # With w = 0 any bias in [0.1, 1.9] is optimal: the targets −1 and 3 stay outside of the tube, 0 and 2 may touch it.
    problem = Problem.regression(np.zeros((4, 1)), [-1.0, 0.0, 2.0, 3.0], epsilon=0.1)
    point = recover(problem, np.array([-1.0, -1.0, 1.0, 1.0]), HOW)
    assert point.gap == pytest.approx(0.0, abs=1e-15)
    assert point.bias_interval == pytest.approx((0.1, 1.9))
    at_end = replace(point, b=point.bias_interval[end])
    np.testing.assert_array_equal(proven(problem, at_end), [True, False, False, True])

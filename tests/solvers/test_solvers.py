"""Both solvers reach the optimum, whatever the data layout, and say the same."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem, Status
from maxmargin.solvers import SOLVERS, DualCoordinateDescent, InteriorPoint, choose
from maxmargin.solvers.choice import Relay
from maxmargin.solvers.interior_point import centred_hinge, centred_squared_hinge
from tests.conftest import tall
from tests.oracles import clarabel_optimum, objective

SLACK_SOLVERS = ("dual_cd", "interior_point", "newton")  # for hinge and squared hinge, with the penalty ½‖w‖²

LAYOUTS = {
    "dense64": lambda X: X,
    "dense32": lambda X: X.astype(np.float32),
    "csr": lambda X: sp.csr_array(X),
    "csr32 wide indices": lambda X: wide(sp.csr_array(X.astype(np.float32))),
}


def wide(X):
    return sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)


@pytest.mark.parametrize("solver", SLACK_SOLVERS)
@pytest.mark.parametrize(("loss", "power"), [("hinge", 1), ("squared_hinge", 2)])
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_reaches_the_optimum(solver, loss, power, layout, instruction_set):
    X, y = tall(250, 5, seed=3)
    X = np.where(np.abs(X) < 0.4, 0.0, X).astype(np.float32).astype(np.float64)
    problem = Problem.from_arrays(LAYOUTS[layout](X), y, C=2.0, loss=loss)
    solution = SOLVERS[solver](tol=1e-9).solve(problem)
    assert solution.status is Status.CONVERGED
    assert solution.gap <= 1e-9
    assert solution.primal == pytest.approx(clarabel_optimum(X, y, problem.cost, power), rel=1e-8)
    assert solution.primal == pytest.approx(objective(X, y, problem.cost, solution.w, solution.b, power), rel=1e-12)
    assert abs(float(solution.alpha @ problem.y)) <= 1e-12 * float(solution.alpha.sum())


@pytest.mark.parametrize("solver", ["dual_cd", "interior_point"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_without_polish_the_gap_is_still_certified(solver, loss, C):
    X, y = tall(200, 4, seed=5)
    problem = Problem.from_arrays(X, y, C=C, loss=loss)
    solution = SOLVERS[solver](tol=1e-4, polish=False, max_iter=400).solve(problem)
    power = 1 if loss == "hinge" else 2
    optimum = clarabel_optimum(X, y, problem.cost, power)
    assert solution.dual <= optimum * (1 + 1e-9)
    assert solution.primal >= optimum * (1 - 1e-9)
    assert (solution.status is Status.CONVERGED) == (solution.gap <= 1e-4)


@pytest.mark.parametrize("solver", SLACK_SOLVERS)
def test_more_columns_than_rows(solver):
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 2000), density=0.02, rng=rng, format="csr")
    y = np.where(np.arange(60) % 2 == 0, 1, -1)
    problem = Problem.from_arrays(X, y, C=1.0, loss="hinge")
    solution = SOLVERS[solver](tol=1e-9).solve(problem)
    assert solution.gap <= 1e-9
    assert solution.primal == pytest.approx(clarabel_optimum(X, y, problem.cost, 1), rel=1e-8)


@pytest.mark.parametrize("solver", SLACK_SOLVERS)
def test_where_no_multiplier_is_free_the_bias_is_the_midpoint(solver):
    # Small C: all multipliers sit at C, and every bias in an interval is optimal.
    X, y = np.array([[-1.0], [-0.5], [0.5], [1.0]]), np.array([-1, -1, 1, 1])
    solution = SOLVERS[solver](tol=1e-9).solve(Problem.from_arrays(X, y, C=0.01, loss="hinge"))
    assert solution.alpha == pytest.approx(np.full(4, 0.01))
    low, high = solution.bias_interval
    assert high - low > 1.0
    assert solution.b == pytest.approx(0.5 * (low + high))


@pytest.mark.parametrize("solver", SLACK_SOLVERS)
def test_history_ends_with_the_certified_gap(solver):
    X, y = tall(200, 4)
    solution = SOLVERS[solver]().solve(Problem.from_arrays(X, y, loss="hinge"))
    assert solution.history.records[-1].certified
    assert solution.history.gaps[-1] == solution.gap
    assert len(solution.history) >= 2
    assert solution.history.seconds == sorted(solution.history.seconds)
    assert "CONVERGED" in repr(solution)
    assert solution.distance_bound == pytest.approx(np.sqrt(2 * solution.absolute_gap))


@pytest.mark.parametrize("solver", SLACK_SOLVERS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_continues_from_a_rough_dual_point(solver, loss):
    X, y = tall(400, 6, seed=4)
    problem = Problem.from_arrays(X, y, C=0.5, loss=loss)
    rough = InteriorPoint(tol=0.3, polish=False).solve(problem)
    assert 1e-6 < rough.gap < 0.5
    solution = SOLVERS[solver](tol=1e-9).solve(problem, start=rough.alpha)
    assert solution.status is Status.CONVERGED
    assert solution.primal == pytest.approx(SOLVERS[solver](tol=1e-9).solve(problem).primal, rel=1e-9)


@pytest.mark.parametrize("shortfall", [-1e6, -1.0, -1e-9, 0.0, 1e-9, 1.0, 1e6])
def test_centred_multipliers_satisfy_the_central_path(shortfall):
    r, cost, mu = np.array([shortfall]), np.array([2.0]), 1e-3
    alpha, t = centred_hinge(r, cost, mu)
    assert alpha + t == pytest.approx(cost)
    assert mu / t - mu / alpha == pytest.approx(r, rel=1e-9, abs=1e-12)
    alpha = centred_squared_hinge(r, cost, mu)
    assert alpha / (2.0 * cost) - mu / alpha == pytest.approx(r, rel=1e-9, abs=1e-9)


def test_where_the_first_solver_fails_the_second_takes_over():
    X, y = tall(300, 5, seed=1)
    problem = Problem.from_arrays(X, y, C=100.0, loss="hinge")
    first = DualCoordinateDescent(reason="tried", max_iter=2, polish=False)
    solution = Relay((first, InteriorPoint())).solve(problem)
    assert solution.status is Status.CONVERGED
    assert "interior_point took over" in solution.reason
    assert solution.n_iter > 2
    assert solution.primal == pytest.approx(InteriorPoint().solve(problem).primal, rel=1e-9)
    assert Relay((first, first)).solve(problem).status is Status.ITERATION_LIMIT


def test_automatic_avoids_newton_for_columns_of_very_different_scale():
    X, y = tall(300, 5, seed=1)
    name, reason = choose(Problem.from_arrays(X * 10.0 ** np.arange(-4, 6, 2), y))
    assert name == "interior_point"
    assert "scales differ" in reason


def test_choice_explains_itself():
    X, y = tall(400, 5)
    name, reason = choose(Problem.from_arrays(X, y, C=100.0, loss="hinge"))
    assert name == "interior_point"
    assert "400 rows" in reason
    name, reason = choose(Problem.from_arrays(X, y, C=100.0))
    assert (name, "smooth" in reason) == ("newton", True)
    assert choose(Problem.from_arrays(X, y, penalty="l1"))[0] == "proximal_newton"
    assert choose(Problem.from_arrays(X, y, loss=1.5))[0] == "newton"
    rng = np.random.default_rng(0)
    text = sp.random_array((6000, 20000), density=0.001, rng=rng, format="csr")
    assert choose(Problem.from_arrays(text, np.arange(6000) % 2))[0] == "dual_cd"
    X, y = tall(30000, 20)
    assert choose(Problem.from_arrays(X, y, loss="hinge"))[0] == "newton"
    assert choose(Problem.from_arrays(X[:, :5], y, loss="hinge"))[0] == "dual_cd"


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("scale", "C"), [(1e4, 1.0), (1e8, 1.0), (1e12, 1.0), (1.0, 1e8), (1.0, 1e20)])
def test_separable_data_of_any_scale_give_the_same_direction(loss, scale, C):
    # The optimum is tiny beside the objective at w = 0; the hard-margin direction must come out all the same.
    X = np.array([[-2.0, 0.3], [-1.0, -0.7], [1.2, 0.1], [2.0, -0.4]])
    y = np.array([-1, -1, 1, 1])
    expected = InteriorPoint().solve(Problem.from_arrays(X, y, C=1e6, loss="hinge")).w
    solution = InteriorPoint().solve(Problem.from_arrays(X * scale, y, C=C, loss=loss))
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.w * scale, expected, rtol=1e-4)

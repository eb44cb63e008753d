"""Fewer rows than columns: what is solved in the span of the rows is certified on the rows themselves."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem
from maxmargin.runtime import Watch
from maxmargin.solution import Status
from maxmargin.solvers import SOLVERS
from maxmargin.solvers.span import Span, is_wide, solve_in_span
from tests.oracles import clarabel_optimum

SLACK = ("interior_point", "dual_cd", "newton")


def wide(n=40, d=400, seed=0, scale=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (1.0 if scale is None else scale)
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1, -1)


def test_inside_all_inner_products_are_the_same():
    X, y = wide(12)
    X[5] = X[2] + X[3]  # rank 11
    X[7] *= 1e-9  # short rows count, too
    span = Span(Problem.from_arrays(X, y), 1)
    L = span.inside.X
    assert L.shape == (12, 11)
    size = np.linalg.norm(X, axis=1)
    np.testing.assert_allclose(L @ L.T / np.outer(size, size), X @ X.T / np.outer(size, size), atol=1e-14)
    np.testing.assert_allclose(span.inside.squared_norms, size**2, rtol=1e-14)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_a_hyperplane_goes_in_and_comes_out(layout):
    X, y = wide()
    problem = Problem.from_arrays(layout(X), y, loss="hinge")
    found = SOLVERS["dual_cd"](tol=1e-3).solve(problem)
    span = Span(problem, 1)
    inside = span.enter(found)
    assert inside.w.shape == (40,)
    np.testing.assert_allclose(span.inside.X @ inside.w, X @ found.w, atol=1e-10)
    outside = span.leave(inside)
    assert outside.gap <= found.gap * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("name", SLACK)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("bias", [{}, {"penalize_intercept": True}, {"fit_intercept": False}])
def test_every_solver_finds_the_optimum_there(name, loss, bias):
    X, y = wide()
    problem = Problem.from_arrays(X, y, C=0.05, loss=loss, **bias)
    solution = SOLVERS[name](tol=1e-9).solve(problem)
    assert solution.status is Status.CONVERGED
    assert solution.w.shape == (400,)
    if not bias:
        power = 1 if loss == "hinge" else 2
        assert solution.primal == pytest.approx(clarabel_optimum(X, y, problem.cost, power), rel=1e-7)
    tall = SOLVERS[name](tol=1e-9).solve(Problem.from_arrays(Span(problem, 1).inside.X, y, C=0.05, loss=loss, **bias))
    assert solution.primal == pytest.approx(tall.primal, rel=1e-8)


@pytest.mark.parametrize("loss", ["logistic", 1.5, 3.0])
def test_other_losses(loss):
    X, y = wide()
    problem = Problem.from_arrays(X, y, C=0.1, loss=loss)
    assert is_wide(problem, 5000)
    solution = SOLVERS["newton"](tol=1e-9).solve(problem)
    assert solution.status is Status.CONVERGED
    near = SOLVERS["newton"](tol=1e-9).solve(Problem.from_arrays(X, y, C=0.11, loss=loss), start=solution)
    assert near.status is Status.CONVERGED


@pytest.mark.parametrize("name", SLACK)
def test_columns_of_very_different_size_do_not_cost_the_proof(name):
    # Inner products lose what the small columns say; the certificate is that of X itself.
    X, y = wide(scale=np.where(np.arange(400) % 2 == 0, 1e6, 1e-3))
    solution = SOLVERS[name](tol=1e-6).solve(Problem.from_arrays(X, y, C=1.0, loss="hinge"))
    assert solution.gap <= 1e-6 or solution.status is Status.NUMERICAL_LIMIT


def test_newton_takes_over_where_the_span_is_too_rough():
    X, y = wide()
    problem = Problem.from_arrays(X, y, C=0.05, loss="hinge")
    solver = SOLVERS["newton"](tol=1e-9)

    def rough(inside, start):
        return SOLVERS["newton"](tol=1e-2, exact=False).solve(inside, start=start)

    solution = solve_in_span(solver, rough, problem, None, Watch())
    assert solution.gap <= 1e-9
    assert solution.status is Status.CONVERGED


@pytest.mark.parametrize("name", SLACK)
def test_a_deadline_and_an_interrupt_leave_a_certified_point(name):
    X, y = wide(400, 3000)
    problem = Problem.from_arrays(X, y, C=1e4, loss="hinge")
    watch = Watch(max_seconds=1e-9)
    time.sleep(0.01)
    late = SOLVERS[name](tol=1e-12).solve(problem, watch=watch)
    assert late.status is Status.TIME_LIMIT
    assert np.isfinite(late.primal)
    watch = Watch()
    watch.cancel()
    stopped = SOLVERS[name](tol=1e-12).solve(problem, watch=watch)
    assert stopped.status is Status.INTERRUPTED
    assert np.isfinite(stopped.primal)

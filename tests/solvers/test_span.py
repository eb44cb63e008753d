"""Fewer rows than columns: what is solved in the span of the rows is certified on the rows themselves."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem
from maxmargin.runtime import Execution, Watch
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
    span = Span(Problem.from_arrays(X, y), Execution(1))
    L = span.inside.space.X
    assert L.shape == (12, 11)
    size = np.linalg.norm(X, axis=1)
    np.testing.assert_allclose(L @ L.T / np.outer(size, size), X @ X.T / np.outer(size, size), atol=1e-14)
    np.testing.assert_allclose(span.inside.squared_norms, size**2, rtol=1e-14)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_a_hyperplane_goes_in_and_comes_out(layout):
    X, y = wide()
    problem = Problem.from_arrays(layout(X), y, loss="hinge")
    found = SOLVERS["dual_cd"](tol=1e-3).solve(problem)
    span = Span(problem, Execution(1))
    inside = span.enter(found)
    assert inside.w.shape == (40,)
    np.testing.assert_allclose(span.inside.space.X @ inside.w, X @ found.w, atol=1e-10)
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
    tall = SOLVERS[name](tol=1e-9).solve(
        Problem.from_arrays(Span(problem, Execution(1)).inside.space.X, y, C=0.05, loss=loss, **bias)
    )
    assert solution.primal == pytest.approx(tall.primal, rel=1e-8)


@pytest.mark.parametrize("loss", ["logistic", 1.5, 3.0])
def test_other_losses(loss):
    X, y = wide()
    problem = Problem.from_arrays(X, y, C=0.1, loss=loss)
    assert is_wide(problem, 5000, False)
    solution = SOLVERS["newton"](tol=1e-9).solve(problem)
    assert solution.status is Status.CONVERGED
    near = SOLVERS["newton"](tol=1e-9).solve(Problem.from_arrays(X, y, C=0.11, loss=loss), start=solution)
    assert near.status is Status.CONVERGED


@pytest.mark.parametrize("name", SLACK)
def test_columns_of_very_different_size_do_not_cost_the_proof(name):
    # Inner products lose what the small columns say; the certificate is that of X itself.
    X, y = wide(scale=np.where(np.arange(400) % 2 == 0, 1e3, 1e-3))
    solution = SOLVERS[name](tol=1e-6).solve(Problem.from_arrays(X, y, C=1.0, loss="hinge"))
    assert solution.status is Status.CONVERGED
    assert solution.gap <= 1e-6


@pytest.mark.parametrize("name", SLACK)
@pytest.mark.parametrize("kind", ["float32", "zero rows", "no numbers", "cost 0", "contradictions", "one row twice"])
def test_odd_rows(name, kind):
    X, y = wide()
    weight = np.ones(40)
    if kind == "float32":
        X = X.astype(np.float32)
    elif kind == "zero rows":
        X[:7] = 0.0
    elif kind == "no numbers":
        X[:] = 0.0
    elif kind == "cost 0":
        weight[::3] = 0.0
    elif kind == "contradictions":
        X[20:], y[20:] = X[:20], -y[:20]
    else:
        X[20:], y[20:] = X[:20], y[:20]
    problem = Problem.from_arrays(X, y, C=0.05, loss="hinge", sample_weight=weight)
    solution = SOLVERS[name](tol=1e-8).solve(problem)
    assert solution.status is Status.CONVERGED
    optimum = clarabel_optimum(np.asarray(X, dtype=np.float64), y, problem.cost, 1)
    assert solution.primal == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("name", SLACK)
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("bias", [{}, {"penalize_intercept": True, "intercept_scaling": 3.0}])
def test_regression(name, loss, bias):
    X, _ = wide()
    y = X[:, 0] + 0.1 * X[:, 1] + 5.0
    options = {"C": 0.02, "loss": loss, "epsilon": 0.1, **bias}
    problem = Problem.regression(X, y, **options)
    solution = SOLVERS[name](tol=1e-8).solve(problem)
    assert solution.status is Status.CONVERGED
    other = SOLVERS[name](tol=1e-8).solve(Problem.regression(Span(problem, Execution(1)).inside.space.X, y, **options))
    assert solution.primal == pytest.approx(other.primal, rel=1e-7)


@pytest.mark.parametrize("name", SLACK)
def test_starts(name):
    X, y = wide()
    problem = Problem.from_arrays(X, y, C=0.05, loss="hinge")
    solution = SOLVERS[name](tol=1e-8).solve(problem)
    again = SOLVERS[name](tol=1e-7).solve(problem, start=solution)
    assert (again.n_iter, again.status) == (0, Status.CONVERGED)
    from_alpha = SOLVERS[name](tol=1e-8).solve(problem, start=0.5 * solution.alpha)
    assert from_alpha.primal == pytest.approx(solution.primal, rel=1e-7)
    fewer = Problem.from_arrays(X[:, :300], y, C=0.05, loss="hinge")  # other columns: the multipliers still help
    assert SOLVERS[name](tol=1e-8).solve(fewer, start=solution.alpha).status is Status.CONVERGED


def test_newton_takes_over_where_the_span_is_too_rough():
    X, y = wide()
    problem = Problem.from_arrays(X, y, C=0.05, loss="hinge")

    def rough(inside, start):
        return SOLVERS["newton"](tol=1e-2, exact=False).solve(inside, start=start)

    solution = solve_in_span(SOLVERS["newton"](tol=1e-9), rough, problem, None, Watch())
    assert solution.gap <= 1e-9
    assert solution.status is Status.CONVERGED
    assert [record.certified for record in solution.history.records][-1:] == [True]
    assert not any(record.certified for record in solution.history.records[:-1])
    alone = solve_in_span(SOLVERS["dual_cd"](tol=1e-9, polish=False), rough, problem, None, Watch())
    assert 1e-9 < alone.gap <= 1.01e-2
    assert alone.status is Status.NUMERICAL_LIMIT
    stopped = solve_in_span(SOLVERS["newton"](tol=1e-9), rough, problem, None, Watch(progress=lambda *_: True))
    assert stopped.gap > 1e-9
    assert stopped.status is Status.INTERRUPTED


@pytest.mark.parametrize("name", SLACK)
def test_a_deadline_and_an_interrupt_leave_a_certified_point(name):
    X, y = wide(400, 3000)
    problem = Problem.from_arrays(X, y, C=1e4, loss="hinge")
    watch = Watch(max_seconds=1e-9)
    time.sleep(0.01)
    late = SOLVERS[name](tol=1e-12).solve(problem, watch=watch)
    assert late.status is Status.TIME_LIMIT
    assert late.gap <= 1.0
    watch = Watch()
    watch.cancel()
    stopped = SOLVERS[name](tol=1e-12).solve(problem, watch=watch)
    assert stopped.status is Status.INTERRUPTED
    assert stopped.gap <= 1.0


def test_what_was_known_survives_a_stop():
    X, y = wide()
    problem = Problem.from_arrays(X, y, C=0.05, loss="hinge")
    solver = SOLVERS["newton"](tol=1e-12)
    start = SOLVERS["newton"](tol=1e-4, exact=False).solve(problem)

    def interrupted(inside, start):
        raise KeyboardInterrupt

    stopped = solve_in_span(solver, interrupted, problem, start, Watch())
    assert stopped.status is Status.INTERRUPTED
    assert stopped.gap <= start.gap * (1 + 1e-9)


def test_problems_with_the_same_rows_share_the_span():
    X, y = wide()
    problem = Problem.from_arrays(X, y, C=0.05, loss="hinge")
    first = Span(problem, Execution(1))
    assert Span(problem.with_costs(2.0 * problem.cost), Execution(1)).inside.space.X is first.inside.space.X
    assert Span(problem.part(np.arange(0, 40, 2)), Execution(1)).inside.space.X.shape == (20, 20)

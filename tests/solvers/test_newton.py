"""Newton's method: samples, thinned curvature and conjugate gradients all end at the same optimum."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import OptimalityCertificate, Problem, Status
from maxmargin.certificates import Outcome
from maxmargin.runtime import Watch
from maxmargin.solvers import InteriorPoint, Newton, multipliers
from maxmargin.solvers.newton import sample_rows, worth_sampling
from maxmargin.solvers.proximal import ProximalNewton
from tests.conftest import tall
from tests.contracts import fits_data

LOSSES = ["hinge", "squared_hinge", "logistic", 1.5, 3.0]
BIASES = {"free": {}, "none": {"fit_intercept": False}, "penalised": {"penalize_intercept": True}}


def many(loss="hinge", n=8100, d=5, seed=0, **options):
    X, y = tall(n, d, seed)
    return Problem.from_arrays(X, y, loss=loss, **options)


def certified(problem, solution):
    """Whether the claim of a solution is true, near-optimal or not, checked from the data alone."""
    loss = problem.loss
    regression = loss.regression
    claim = OptimalityCertificate(
        coef=solution.w,
        intercept=solution.b,
        alpha=solution.alpha,
        primal=solution.primal,
        dual=solution.dual,
        gap=solution.gap,
        loss=loss.name,
        C=1.0,
        classes=None if regression else np.array([-1.0, 1.0]),
        tol=1e-6,
        fit_intercept=problem.bias.value != 0.0,
        penalty_scale=problem.bias.value if problem.bias.penalised else None,
        penalty=problem.penalty,
        power=float(getattr(loss, "power", np.nan)),
        epsilon=float(getattr(loss, "epsilon", 0.0)),
    )
    return claim.verify(problem.space.X, problem.y, problem.cost).outcome is not Outcome.REJECTED


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", BIASES)
def test_sampling_changes_the_way_but_not_the_optimum(loss, bias):
    problem = many(loss, **BIASES[bias])
    assert worth_sampling(problem)
    with_samples, without = (Newton(tol=1e-9, sampling=s).solve(problem) for s in (True, False))
    assert any("sample" in record.phase for record in with_samples.history.records)
    assert not any("sample" in record.phase for record in without.history.records)
    for solution in (with_samples, without):
        assert solution.status is Status.CONVERGED
        assert certified(problem, solution)
    assert with_samples.primal == pytest.approx(without.primal, rel=2e-9)
    apart = np.linalg.norm(with_samples.w - without.w)
    assert apart <= with_samples.distance_bound + without.distance_bound + 1e-9


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_sampling_in_a_regression(loss):
    X, _ = tall(9000, 5)
    y = X @ np.arange(5.0) + np.random.default_rng(0).standard_normal(9000)
    problem = Problem.regression(X, y, loss=loss, epsilon=0.3)
    a, b = (Newton(tol=1e-9, sampling=s).solve(problem) for s in (True, False))
    assert a.primal == pytest.approx(b.primal, rel=2e-9)
    assert certified(problem, a)


def test_samples_with_one_class_are_left_alone():
    X, y = tall(9000, 5)
    y[:] = -1
    y[np.setdiff1d(np.arange(9000), sample_rows(Problem.from_arrays(X, np.where(X[:, 0] > 0, 1, -1))))[:3]] = 1
    problem = Problem.from_arrays(X, y, loss="hinge")
    solution = Newton().solve(problem)
    assert solution.status is Status.CONVERGED
    assert solution.primal == pytest.approx(InteriorPoint().solve(problem).primal, rel=1e-6)


def test_samples_where_a_column_is_missing():
    X, y = tall(9000, 5)
    chosen = sample_rows(Problem.from_arrays(X, y))
    X[chosen, 0] = 0.0
    problem = Problem.from_arrays(X, y, loss="squared_hinge")
    assert Newton().solve(problem).gap <= 1e-6
    problem = Problem.from_arrays(np.where(np.arange(5) == 0, 1e4, 1.0) * X, y, loss="logistic")
    assert Newton().solve(problem).gap <= 1e-6


def test_samples_with_weights():
    weight = np.random.default_rng(0).choice([0.0, 1.0, 1000.0], 8100, p=[0.5, 0.49, 0.01])
    problem = many("hinge", sample_weight=weight)
    a, b = (Newton(tol=1e-9, sampling=s).solve(problem) for s in (True, False))
    assert a.primal == pytest.approx(b.primal, rel=2e-9)
    assert not a.alpha[weight == 0.0].any()


def test_few_rows_are_not_sampled():
    assert not worth_sampling(many(n=7000))
    assert not worth_sampling(many(n=9000, d=100))


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_thinned_curvature_ends_at_the_same_optimum(loss, monkeypatch):
    problem = many(loss, n=7000, d=4)
    called = []
    original = multipliers._thinned

    def recorded(D, n_cols):
        thin = original(D, n_cols)
        called.append((np.count_nonzero(thin), np.count_nonzero(D), thin.sum() / D.sum()))
        return thin

    monkeypatch.setattr(multipliers, "_thinned", recorded)
    thinned = Newton(tol=1e-12, sampling=False).solve(problem)
    assert any(few < some for few, some, _ in called)
    assert all(0.7 < ratio < 1.4 for _, _, ratio in called)
    monkeypatch.setattr(multipliers, "_thinned", lambda D, n_cols: D)
    whole = Newton(tol=1e-12, sampling=False).solve(problem)
    np.testing.assert_allclose(thinned.w, whole.w, rtol=1e-6, atol=1e-8)
    assert thinned.primal == pytest.approx(whole.primal, rel=1e-12)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("bias", BIASES)
def test_conjugate_gradients_agree_with_a_dense_solve(loss, bias, monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random_array((6000, 5500), density=0.002, rng=rng, format="csr")
    y = np.where(X @ rng.standard_normal(5500) + 0.1 * rng.standard_normal(6000) > 0, 1, -1)
    problem = Problem.from_arrays(X, y, loss=loss, C=0.5, **BIASES[bias])
    used = []
    original = multipliers.newton_system

    def recorded(*args, **options):
        used.append(original(*args, **options))
        return used[-1]

    monkeypatch.setattr(multipliers, "newton_system", recorded)
    solution = Newton(tol=1e-7).solve(problem)
    assert any(system.iterative for system in used)
    assert solution.status is Status.CONVERGED
    assert certified(problem, solution)
    system, g = next(s for s in used if s.iterative), rng.standard_normal(5500 + (bias != "none"))
    np.testing.assert_allclose(system.times(system.solve(g)), g, atol=0.2 * np.linalg.norm(g))
    columns = np.column_stack([system.times(e) for e in np.eye(len(g))[:3]])
    np.testing.assert_allclose(columns[:3], columns[:3].T, atol=1e-12)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_sparse_and_dense_rows_have_the_same_optimum(loss):
    rng = np.random.default_rng(0)
    X = sp.random_array((800, 300), density=0.03, rng=rng, format="csr")
    y = np.where(X @ rng.standard_normal(300) + 0.1 * rng.standard_normal(800) > 0, 1, -1)
    sparse, dense = (Newton(tol=1e-10).solve(Problem.from_arrays(Z, y, loss=loss)) for Z in (X, X.toarray()))
    np.testing.assert_allclose(sparse.w, dense.w, atol=1e-4)
    assert sparse.primal == pytest.approx(dense.primal, rel=2e-10)


class StopAfter:
    """A listener that asks to stop at the k-th report, or presses Ctrl-C there."""

    def __init__(self, k, press):
        self.left, self.press = k, press

    def __call__(self, iteration, gap, seconds):
        self.left -= 1
        if self.left == 0 and self.press:
            raise KeyboardInterrupt
        return self.left <= 0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", 1.5])
@pytest.mark.parametrize("press", [True, False])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_interrupts_inside_a_sample_leave_a_certified_point(loss, press, k):
    problem = many(loss)
    solution = Newton(tol=1e-13).solve(problem, watch=Watch(None, StopAfter(k, press)))
    assert certified(problem, solution)
    assert np.isfinite([solution.primal, solution.dual, solution.b]).all()
    assert solution.gap <= 1.0
    if solution.status is not Status.INTERRUPTED:  # there were fewer reports than k
        assert k > 1
        assert solution.gap <= 1e-9


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seconds", [1e-6, 2e-3])
def test_deadlines_inside_a_sample_leave_a_certified_point(loss, seconds):
    problem = many(loss, n=8100, d=15)
    solution = Newton(tol=1e-12).solve(problem, watch=Watch(seconds))
    assert certified(problem, solution)
    assert solution.status in (Status.TIME_LIMIT, Status.CONVERGED)
    assert seconds > 1e-6 or solution.status is Status.TIME_LIMIT


@pytest.mark.parametrize("press", [True, False])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_interrupts_and_deadlines_of_the_proximal_method(loss, press):
    problem = many(loss, penalty="l1")
    for watch in (Watch(None, StopAfter(1, press)), Watch(1e-6), Watch(3e-3)):
        solution = ProximalNewton(tol=1e-12).solve(problem, watch=watch)
        assert certified(problem, solution)
        assert np.isfinite([solution.primal, solution.dual]).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_rough_answer_is_a_start(loss):
    problem = many(loss)
    rough = Newton(tol=1e-12, max_iter=2).solve(problem)
    assert rough.status is Status.ITERATION_LIMIT
    assert certified(problem, rough)
    again, cold = Newton().solve(problem, start=rough), Newton().solve(problem)
    assert again.status is Status.CONVERGED
    assert again.primal == pytest.approx(cold.primal, rel=1e-6)
    done = Newton().solve(problem, start=again)
    assert done.n_iter <= cold.n_iter


@pytest.mark.parametrize("loss", LOSSES)
def test_same_bits_for_any_threads(loss):
    problem = many(loss)
    one, two = (Newton(n_threads=t).solve(problem) for t in (1, 2))
    assert one.w.tobytes() == two.w.tobytes()
    assert one.alpha.tobytes() == two.alpha.tobytes()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rounds_that_hardly_help_do_not_overflow_the_working_set(loss):
    X, y, _ = fits_data.scaled(fits_data.collinear(fits_data.two(60, 4, seed=19)), (0, 60))
    problem = Problem.from_arrays(X, y, loss=loss)
    solution = Newton(max_iter=10_000).solve(problem)
    assert solution.status in (Status.NUMERICAL_LIMIT, Status.ITERATION_LIMIT)
    assert solution.primal <= problem.null_primal * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_a_start_that_is_no_better_than_none_counts_as_none(loss):
    problem = many(loss, n=3000, d=10)
    nothing = Newton(tol=1e-9).solve(problem, watch=Watch(1e-9))
    assert nothing.status is Status.TIME_LIMIT
    for start in (nothing, np.zeros(3000)):
        found = Newton(tol=1e-9).solve(problem, start=start)
        assert found.status is Status.CONVERGED
        assert found.n_iter < 100

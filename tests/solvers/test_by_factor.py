"""Any loss through a factor of the kernel matrix: optima beside other solvers', hard margins, and proofs of neither."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import InputError, LinearSVC, LogisticRegression, Problem, Status
from maxmargin.certificates import NotSeparableError
from maxmargin.kernels import Callable, Gaussian, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.process import blas_guard
from maxmargin.runtime import Watch
from maxmargin.solvers import InteriorPoint, by_factor, kernel_choice
from maxmargin.solvers.by_factor import ByFactor, factor, opposite_twins, partial_factor
from maxmargin.solvers.kernel_choice import make_kernel_solver
from maxmargin.solvers.pair_steps import PairSteps
from maxmargin.space import Rows
from tests.oracles import Form, hard_margin
from tests.solvers.inside import calls, cancelled
from tests.solvers.kernel_cases import CLASSES, LOSSES, ONE, machine, optimum, scores, verdict, with_kernel

ANY = [*LOSSES, "logistic", 1.5, 3.0]
KERNELS = [
    Gaussian(0.5),
    Laplacian(0.5),
    Polynomial(0.5, 1.0, 2),
    Linear(),
    Callable(lambda X, Z: (1.0 + X @ Z.T) ** 2),
    Gaussian(0.3) + 0.5 * Linear(),
]


def solver(problem, name="auto", **options):
    return make_kernel_solver(problem, name, **({"tol": 1e-6, "max_iter": 10**6, "n_threads": 1} | options))


def square_root(problem):
    """Rows whose inner products are the kernel's values, by eigenvalues."""
    values, vectors = np.linalg.eigh(problem.space.kernel.gram(problem.space.X))
    good = values > 1e-12 * values[-1]
    return vectors[:, good] * np.sqrt(values[good])


def best_by_clarabel(problem):
    """The optimum of the linear machine on those rows."""
    loss = problem.loss
    kind = "logistic" if loss.name == "logistic" else "error" if loss.regression else "slack"
    power = 2.0 if "squared" in loss.name else getattr(loss, "power", 1.0)
    form = Form(kind, power=power, epsilon=getattr(loss, "epsilon", 0.0))
    return form.solve(square_root(problem), problem.y, problem.cost).value


def assert_optimal(problem, found, best, tol=1e-6):
    assert found.status is Status.CONVERGED, repr(found)
    assert found.gap <= tol
    assert found.dual <= best * (1.0 + 1e-7)
    assert found.primal >= best * (1.0 - 3e-7)
    assert found.primal <= best * (1.0 + tol + 1e-7)
    checked = verdict(problem, found, tol)
    assert checked, str(checked)
    assert np.all(found.alpha[problem.cost == 0.0] == 0.0)


# --- optima -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("loss", ANY)
def test_every_loss_by_a_whole_factor(loss, weights):
    for C in (0.1, 20.0):
        problem = machine(loss, 60, weights=weights, C=C)
        found = solver(problem, "interior_point" if loss in LOSSES else "auto").solve(problem)
        assert found.solver == "by_factor"
        assert_optimal(problem, found, best_by_clarabel(problem))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_every_kernel_with_logistic_loss(kernel, layout):
    if layout is sp.csr_array and isinstance(kernel, Callable):
        kernel = Callable(lambda X, Z: (1.0 + (X @ Z.T).toarray()) ** 2)
    problem = machine("logistic", 70, kernel=kernel, layout=layout, weights=True)
    found = solver(problem).solve(problem)
    assert_optimal(problem, found, best_by_clarabel(problem))


@pytest.mark.parametrize("loss", ["logistic", 1.5, "hinge"])
def test_precomputed_values(loss):
    problem = machine(loss, 60, weights=True)
    K = problem.space.kernel.gram(problem.space.X)
    given = replace(problem, space=KernelRows.of(Rows.of(K), Precomputed()))
    found = solver(given, "interior_point" if loss == "hinge" else "auto").solve(given)
    assert found.primal == pytest.approx(best_by_clarabel(problem), rel=1e-6)
    assert verdict(given, found)


def test_the_linear_kernel_is_the_linear_machine():
    for loss in (*CLASSES, 1.5, "logistic"):
        problem = machine(loss, 90, d=5, kernel=Linear(), C=0.7)
        found = solver(problem).solve(problem)
        plain = LogisticRegression(C=0.7, tol=1e-8) if loss == "logistic" else LinearSVC(loss=loss, C=0.7, tol=1e-8)
        plain.fit(problem.space.X, problem.y)
        w = problem.space.X.T @ found.w
        np.testing.assert_allclose(w, plain.coef_[0], atol=2e-3 * np.linalg.norm(plain.coef_))
        assert found.primal == pytest.approx(plain.solution_.primal, rel=1e-6)
        assert "the rows themselves are a factor" in found.reason


@pytest.mark.parametrize("loss", LOSSES)
def test_a_start_leads_to_the_same_optimum(loss):
    problem = machine(loss, 60, weights=True)
    by = solver(problem, "interior_point")
    first = by.solve(problem)
    for start in (first, first.alpha, np.ones(60)):
        assert by.solve(problem, start=start).primal == pytest.approx(first.primal, rel=2e-6)


# --- parts of a factor ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_factor_multiplies_to_the_matrix(kernel):
    X = np.random.default_rng(0).standard_normal((80, 3))
    X[40:60] = X[:20]
    space = KernelRows.of(Rows.of(X), kernel)
    K = kernel.gram(X)
    with blas_guard:
        L, near = factor(space, ONE), partial_factor(space, 30, ONE)
    rank = np.linalg.matrix_rank(K, tol=1e-10 * np.trace(K))
    np.testing.assert_allclose(L @ L.T, K, rtol=0.0, atol=1e-11 * np.trace(K))
    assert rank <= L.shape[1] <= 60
    assert near.shape[1] <= 30
    left = K - near.astype(float) @ near.T.astype(float)
    assert np.trace(left) <= 0.5 * np.trace(K)
    assert left.diagonal().min() >= -1e-5 * K.max()


def test_a_matrix_of_zeros_has_a_factor():
    space = KernelRows.of(Rows.of(np.zeros((5, 2))), Polynomial(1.0, 0.0, 2))
    with blas_guard:
        np.testing.assert_array_equal(factor(space, ONE), np.zeros((5, 1)))


def test_too_many_rows_are_refused_before_any_work(monkeypatch):
    problem = machine("logistic", 60)
    monkeypatch.setattr(by_factor, "MOST_FACTORED", 59)
    with pytest.raises(InputError, match="60 rows are too many"):
        solver(problem).solve(problem)


@pytest.mark.parametrize("rank", [2, 20, 200])
@pytest.mark.parametrize("loss", LOSSES)
def test_nystrom_is_polished_until_it_is_the_optimum(loss, rank, monkeypatch):
    monkeypatch.setattr(kernel_choice, "LANDMARKS", rank)
    polished = calls(monkeypatch, PairSteps, "solve", lambda out, *_, **options: options["start"])
    problem = machine(loss, 120, C=5.0, weights=True)
    found = solver(problem, "nystrom").solve(problem)
    assert_optimal(problem, found, optimum(problem))
    assert len(polished) == (rank < 120 or found.solver == "pair_steps")
    if rank == 2:
        assert polished[0].gap > 1e-3
        assert "took over" in found.reason


def test_a_rough_factor_without_polish_says_how_rough_it_is(monkeypatch):
    monkeypatch.setattr(kernel_choice, "LANDMARKS", 6)
    problem = machine("logistic", 120)
    found = solver(problem, "nystrom").solve(problem)
    best = best_by_clarabel(problem)
    assert found.status is Status.NUMERICAL_LIMIT
    assert 1e-4 < found.gap < 1.0
    assert found.dual <= best <= found.primal
    assert verdict(problem, found, 1.01 * found.gap)


# --- hard margins -----------------------------------------------------------------------------------------------


def separable(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    X[:, 0] += 0.4 * np.sign(X[:, 0] * X[:, 1]) * np.sign(X[:, 1])
    return X, np.where(X[:, 0] * X[:, 1] > 0.0, 1, -1)


def hard(X, y, kernel, **options):
    return with_kernel(Problem.from_arrays(X, y, C=np.inf, loss="hinge", **options), kernel)


def of_second_degree(X):
    """Columns whose inner products are (⟨x, z⟩ + 1)²."""
    one, two = X.T
    root = math.sqrt(2.0)
    return np.stack([one**2, two**2, root * one * two, root * one, root * two, np.ones(len(X))], axis=1)


@pytest.mark.parametrize("bias", [True, False])
def test_a_hard_margin_is_that_of_the_columns_written_out(bias):
    X, y = separable()
    problem = hard(X, y, Polynomial(1.0, 1.0, 2), fit_intercept=bias)
    found = solver(problem).solve(problem)
    assert found.status is Status.CONVERGED
    plain = LinearSVC(C=np.inf, loss="hinge", fit_intercept=bias, tol=1e-8).fit(of_second_degree(X), y)
    w = of_second_degree(X).T @ found.w
    assert 0.5 * w @ w == pytest.approx(plain.solution_.primal, rel=1e-5)
    np.testing.assert_allclose(scores(problem, found), plain.decision_function(of_second_degree(X)), atol=0.05)
    assert (y * scores(problem, found)).min() >= 1.0
    if bias:
        assert verdict(problem, found)
        assert hard_margin(of_second_degree(X), y)[1] == pytest.approx(found.primal, rel=1e-5)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0), Gaussian(20.0)], ids=repr)
def test_a_hard_margin_in_a_kernels_space(kernel, layout):
    X, y = separable()
    weight = np.arange(60) % 7 != 3
    problem = hard(layout(X), y, kernel, sample_weight=weight.astype(float))
    found = solver(problem).solve(problem)
    assert found.status is Status.CONVERGED
    assert verdict(problem, found)
    L = square_root(problem)
    assert hard_margin(L[weight], y[weight])[1] == pytest.approx(found.primal, rel=1e-5)
    assert (y * scores(problem, found))[weight].min() >= 1.0
    assert not found.alpha[~weight].any()


# --- no margin --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Polynomial(1.0, 1.0, 2), Linear()], ids=repr)
def test_equal_rows_of_both_classes_are_a_proof(kernel, layout):
    X, y = separable()
    X[17] = X[40] = [0.0, 0.5]
    y[17], y[40] = 1, -1
    X[17, 0] = -0.0  # the same number
    weight = np.ones(60)
    weight[:3] = 0.0  # rows in front that do not count
    problem = hard(layout(X), y, kernel, sample_weight=weight)
    with pytest.raises(NotSeparableError, match="their means coincide") as caught:
        solver(problem).solve(problem)
    proof = caught.value.proof
    assert proof.separable is False
    assert proof.n_rows == 60
    assert proof.verify(X, y > 0)
    if kernel != Linear():
        assert proof.rows == (17, 40)
    without = np.delete(X, 17, axis=0), np.delete(y > 0, 17)
    assert not proof.verify(*without)


def test_a_linear_kernel_that_separates_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 2)), np.arange(40) % 2 * 2 - 1
    with pytest.raises(NotSeparableError, match="their means coincide") as caught:
        solver(hard(X, y, Linear())).solve(hard(X, y, Linear()))
    proof = caught.value.proof
    assert "but for rounding" not in str(caught.value)
    assert proof.verify(X, y > 0)
    weights = proof.weights
    np.testing.assert_allclose(weights[y > 0] @ X[y > 0], weights[y < 0] @ X[y < 0], atol=1e-12)


def test_a_polynomial_that_separates_nothing_is_known_but_for_rounding():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 2)), np.arange(40) % 2 * 2 - 1
    problem = hard(X, y, Polynomial(1.0, 1.0, 2))
    with pytest.raises(NotSeparableError, match="but for rounding") as caught:
        solver(problem).solve(problem)
    weights, wide = caught.value.proof.weights, of_second_degree(X)
    np.testing.assert_allclose(weights[y > 0] @ wide[y > 0], weights[y < 0] @ wide[y < 0], atol=1e-9)


def test_twins_are_rows_of_different_classes():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0], [2.0, 0.0]])
    for layout in (np.asarray, sp.csr_array):
        space = KernelRows.of(Rows.of(layout(X)), Gaussian(1.0))
        assert opposite_twins(space, np.array([True, False, True, False])) is None
        np.testing.assert_array_equal(opposite_twins(space, np.array([True, False, False, False])), [0, 2])
        part = space.take(np.array([1, 2, 3]))
        np.testing.assert_array_equal(opposite_twins(part, np.array([True, True, False])), [0, 2])
    given = KernelRows.of(Rows.of(X[[0, 1]] @ X[[0, 1]].T), Precomputed())
    assert opposite_twins(given, np.array([True, False])) is None


# --- ends and choices -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", 1.5, "hinge"])
def test_a_fit_that_is_stopped_has_a_claim(loss):
    problem = machine(loss, 80, C=10.0)
    name = "interior_point" if loss == "hinge" else "auto"
    for watch, status in (
        (cancelled(), Status.INTERRUPTED),
        (Watch(max_seconds=0.0), Status.TIME_LIMIT),
        (Watch(progress=lambda *_: True), Status.INTERRUPTED),
    ):
        found = solver(problem, name).solve(problem, watch=watch)
        assert found.status is status
        best = best_by_clarabel(problem)
        assert found.dual <= best * (1.0 + 1e-7)
        assert found.primal >= best * (1.0 - 1e-7)
        assert verdict(problem, found, max(1.01 * found.gap, 1e-9))


def test_a_linear_solver_that_was_too_rough_is_asked_again():
    problem, asked = machine("hinge", 60), []

    def make(linear, tol):
        asked.append(tol)
        return InteriorPoint(tol=tol, max_iter=4 if len(asked) == 1 else 1000)

    found = ByFactor(tol=1e-6, make=make).solve(problem)
    assert_optimal(problem, found, optimum(problem))
    assert asked == pytest.approx([1e-9, 1e-11])


def test_who_solves_what():
    hinge, logistic = machine("hinge", 10), machine("logistic", 10)
    linear = machine("hinge", 10, kernel=Linear())
    assert isinstance(solver(hinge), PairSteps)
    assert isinstance(solver(hinge).follower, ByFactor)
    assert isinstance(solver(linear), ByFactor)
    assert isinstance(solver(logistic), ByFactor)
    assert solver(hinge, "nystrom").rank == kernel_choice.LANDMARKS
    indefinite = machine("logistic", 10, kernel=Sigmoid(1.0, 0.0))
    with pytest.raises(InputError, match="not positive semidefinite"):
        solver(indefinite)
    assert solver(machine("hinge", 10, kernel=Sigmoid(1.0, 0.0))).follower is None
    for name in ("pair_steps", "adatron", "smo_textbook"):
        with pytest.raises(InputError, match="needs loss"):
            solver(logistic, name)
    for name in ("newton", "", None, 3):
        with pytest.raises(InputError, match="solver must be"):
            solver(hinge, name)

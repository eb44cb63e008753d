"""Machines with a kernel by steps on pairs and Newton's method: the optimum, with a proof, from any start."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem, Status
from maxmargin.kernels import Callable, Gaussian, Laplacian, Linear, Polynomial, Precomputed
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.solvers import free_newton, pair_steps
from maxmargin.solvers.free_set import LowRank
from maxmargin.solvers.pair_steps import Descent, products_in_strips
from maxmargin.space import Rows
from tests.solvers.inside import calls
from tests.solvers.kernel_cases import (
    CLASSES,
    LOSSES,
    assert_consistent,
    by_lines,
    machine,
    optimum,
    scores,
    solved,
    verdict,
    with_kernel,
)

KERNELS = [
    Linear(),
    Polynomial(0.5, 1.0, 3),
    Laplacian(0.5),
    Callable(lambda X, Z: np.exp(-0.3 * ((X[:, None] - Z[None]) ** 2).sum(axis=2))),
    Gaussian(0.3) + 0.5 * Linear(),
]


def assert_optimal(problem, found, best, tol=1e-7):
    """The optimum as Clarabel has it lies between the bounds claimed, which are confirmed."""
    assert found.status is Status.CONVERGED
    assert found.gap <= tol
    room = 1e-8 * abs(best)
    assert found.dual - room <= best <= found.primal + room
    assert found.primal <= best * (1.0 + tol) + room
    checked = verdict(problem, found, tol)
    assert checked, str(checked)
    assert_consistent(problem, found)


# --- the optimum ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_with_all_values_at_hand(loss, weights):
    for C in (0.05, 3.0, 300.0):
        problem = machine(loss, weights=weights, C=C)
        assert_optimal(problem, solved(problem), optimum(problem))


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_that_have_no_loss_have_no_multiplier(loss, lines, monkeypatch):
    """Inside of the tube or beyond the margin: not even one that is rounding."""
    if lines:
        by_lines(monkeypatch)
    for seed in range(4):
        problem = machine(loss, 120, seed=seed, weights=True)
        found = solved(problem, tol=1e-9)
        r = problem.target - problem.sign * scores(problem, found)
        idle = np.abs(r) < 0.199 if problem.loss.regression else r < -1e-3
        assert np.count_nonzero(idle) > 10
        assert not found.alpha[idle].any()


@pytest.mark.parametrize("cache", [1, 10**8])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_by_lines(loss, weights, cache, monkeypatch):
    by_lines(monkeypatch)
    problem = machine(loss, 160, weights=weights, cache_bytes=cache)
    without = calls(monkeypatch, Descent, "without_square", lambda *_: 1)
    assert_optimal(problem, solved(problem), optimum(problem))
    assert bool(without) == (cache == 1)


@pytest.mark.parametrize("loss", LOSSES)
def test_both_sides_of_the_limit_agree(loss, monkeypatch):
    problem = machine(loss, 120)
    found = []
    for limit in (119, 120):
        monkeypatch.setattr(pair_steps, "SQUARE_ROWS", limit)
        squares = calls(monkeypatch, Descent, "descend_on_square", lambda *_: 1)
        found.append(solved(problem, tol=1e-10))
        assert len(squares) == (limit == 120)
    assert found[0].primal == pytest.approx(found[1].primal, rel=1e-9)
    np.testing.assert_allclose(scores(problem, found[0]), scores(problem, found[1]), atol=1e-3)


def test_both_sides_of_the_limit_as_it_is():
    for n in (pair_steps.SQUARE_ROWS, pair_steps.SQUARE_ROWS + 1):
        problem = machine("hinge", n)
        assert_optimal(problem, solved(problem), optimum(problem))


@pytest.mark.parametrize("size", [8, 24, 1024])
@pytest.mark.parametrize("loss", LOSSES)
def test_working_sets_of_any_size(loss, size, monkeypatch):
    by_lines(monkeypatch)
    for name in ("WORKING_SET", "FEWEST_VARIABLES"):
        monkeypatch.setattr(pair_steps, name, size)
    problem = machine(loss, 130)
    assert_optimal(problem, solved(problem), optimum(problem))


@pytest.mark.parametrize("cache", [1, 10**8])
@pytest.mark.parametrize("loss", LOSSES)
def test_free_sets_that_are_too_large_to_be_factored(loss, cache, monkeypatch):
    by_lines(monkeypatch)
    monkeypatch.setattr(free_newton, "MOST_FREE", 4)
    monkeypatch.setattr(free_newton, "RANK", 12)
    blocks = calls(monkeypatch, Descent, "block_of", lambda out, *_: type(out))
    problem = machine(loss, 160, C=20.0, cache_bytes=cache)
    assert_optimal(problem, solved(problem), optimum(problem))
    assert LowRank in blocks


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_every_kernel(kernel, layout, lines, monkeypatch):
    if layout is sp.csr_array and isinstance(kernel, Callable):
        kernel = Callable(lambda X, Z: (1.0 + (X @ Z.T).toarray()) ** 2)
    if lines:
        by_lines(monkeypatch)
    for loss in ("hinge", "squared_epsilon_insensitive"):
        problem = machine(loss, 90, layout=layout, kernel=kernel, C=0.5, weights=True)
        assert_optimal(problem, solved(problem), optimum(problem))


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("chosen", [None, slice(20, 110), slice(0, 120, 2)])
@pytest.mark.parametrize("loss", CLASSES)
def test_precomputed_values_of_all_rows_or_of_some(loss, chosen, lines, monkeypatch):
    if lines:
        by_lines(monkeypatch)
    problem = machine(loss, 120)
    K = problem.space.kernel.gram(problem.space.X)
    given = replace(problem, space=KernelRows.of(Rows.of(K), Precomputed()))
    if chosen is not None:
        some = np.arange(120)[chosen]
        given = replace(given, space=given.space.take(some), y=given.y[some], cost=given.cost[some])
        problem = replace(problem, space=problem.space.take(some), y=problem.y[some], cost=problem.cost[some])
    found, expected = solved(given), solved(problem)
    best = optimum(problem)
    assert found.status is Status.CONVERGED
    for one in (found, expected):
        assert one.dual <= best * (1.0 + 1e-8)
        assert one.primal >= best * (1.0 - 1e-8)
        assert one.gap <= 1e-7
    if chosen is None:
        assert verdict(given, found)


def test_values_at_the_edge_of_what_can_be_separated():
    """Two rows, one row a class, rows that are all the same, and one class much larger than the other."""
    for X, y in (
        ([[0.0], [1.0]], [1, -1]),
        ([[2.0]] * 5, [1, -1, 1, 1, -1]),
        (np.arange(30.0)[:, None], [1] + [-1] * 29),
        (np.zeros((4, 2)), [1, -1, 1, -1]),
    ):
        for loss in CLASSES:
            for kernel in (Gaussian(0.3), Linear(), Polynomial(1.0, 0.0, 2)):
                plain = pair_steps_problem(X, y, loss, kernel)
                found, best = solved(plain), optimum(plain)
                assert found.status is Status.CONVERGED
                assert found.primal == pytest.approx(best, rel=1e-6)
                assert verdict(plain, found)


def pair_steps_problem(X, y, loss, kernel, **options):
    return with_kernel(Problem.from_arrays(np.asarray(X, dtype=float), y, loss=loss, **options), kernel)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_that_the_kernel_does_not_see(loss, monkeypatch):
    """Rows of zeros have no length in a linear kernel: a zero on the diagonal, and no slope of their own."""
    by_lines(monkeypatch)
    problem = machine(loss, 100, C=2.0, kernel=Polynomial(0.5, 0.0, 2))
    problem.space.X[::4] = 0.0
    fresh = with_kernel(replace(problem, space=Rows.of(problem.space.X.copy())), Polynomial(0.5, 0.0, 2))
    assert_optimal(fresh, solved(fresh), optimum(fresh))


@pytest.mark.parametrize("C", [1e6, 1e8, 1e10])
@pytest.mark.parametrize("loss", CLASSES)
def test_costs_beside_which_rounding_is_no_longer_small_are_confirmed(loss, C):
    """Separable classes: margins are met exactly but for rounding, on which a large cost puts a price."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 3))
        y = np.where(np.sin(2.0 * X[:, 0]) > 0.0, 1, -1)
        problem = pair_steps_problem(X, y, loss, Gaussian(0.5), C=C)
        found = solved(problem, tol=1e-6)
        assert found.status is Status.CONVERGED
        checked = verdict(problem, found, 1e-6)
        assert checked, str(checked)
        assert 1.0 <= found.stretch < 1.01
        assert_consistent(problem, found)
        assert (problem.sign * scores(problem, found)).min() > 0.999


def test_many_steps_leave_no_rounding_in_sums():
    """A linear kernel of few columns with large costs: hundreds of thousands of steps, each of which rounds."""
    for seed in (0, 1, 2):
        problem = machine("epsilon_insensitive", 43, C=800.0, kernel=Linear(), seed=seed, weights=True, epsilon=0.0)
        assert_optimal(problem, solved(problem, max_iter=10**9), optimum(problem))


@pytest.mark.parametrize("loss", ["squared_hinge", "squared_epsilon_insensitive"])
def test_multipliers_without_bounds_do_not_run_away_where_float32_is_rough(loss, monkeypatch):
    """Values of 1e4 and more beside a ridge of 1e-3: rounded to float32, the matrix is indefinite."""
    by_lines(monkeypatch)
    problem = machine(loss, 130, C=500.0, kernel=Polynomial(1.2, 1.0, 4))
    found, best = solved(problem, tol=1e-6, max_iter=10**7), optimum(problem)
    assert found.gap < 1e-2
    assert found.dual <= best * (1.0 + 1e-6)
    assert found.primal >= best * (1.0 - 1e-6)
    assert verdict(problem, found, 1e-2)


@pytest.mark.parametrize("seed", range(60))
def test_claims_about_any_problem_hold(seed, monkeypatch):
    """However far it came: bounds are bounds, and what is claimed is confirmed."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(pair_steps, "SQUARE_ROWS", int(rng.choice([3, 600])))
    monkeypatch.setattr(free_newton, "MOST_FREE", int(rng.choice([3, 2000])))
    kernel = (
        Gaussian(10.0 ** rng.uniform(-3, 2)), Linear(), Laplacian(10.0 ** rng.uniform(-2, 1)),
        Polynomial(10.0 ** rng.uniform(-1.5, 0.5), float(rng.choice([0.0, 1.0])), int(rng.integers(1, 5))),
        Gaussian(0.3) + 0.5 * Linear(),
    )[rng.integers(5)]  # fmt: skip
    problem = machine(
        LOSSES[seed % 4], int(rng.integers(8, 120)), int(rng.integers(1, 8)), C=10.0 ** rng.uniform(-3, 3),
        kernel=kernel, seed=seed, weights=seed % 3 == 0, epsilon=float(rng.choice([0.0, 0.01, 0.2, 1.0])),
        cache_bytes=int(rng.choice([1, 10**8])),
    )  # fmt: skip
    found, best = solved(problem, tol=1e-6, max_iter=10**6), optimum(problem)
    room = 1e-7 * max(abs(best), 1e-6)
    assert found.dual - room <= best <= found.primal + room
    checked = verdict(problem, found)
    assert checked.outcome.name != "REJECTED", str(checked)
    assert bool(checked) == (found.status is Status.CONVERGED)
    assert_consistent(problem, found)


# --- a start ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_any_multipliers_are_a_start(loss, weights, lines, monkeypatch):
    if lines:
        by_lines(monkeypatch)
    problem, rng = machine(loss, 90, weights=weights), np.random.default_rng(1)
    best = optimum(problem)
    good = solved(problem)
    for start in (
        np.zeros(90),
        rng.standard_normal(90),
        1e9 * np.ones(90),
        solved(machine(loss, 90, weights=weights, C=30.0)).alpha,
        good,
        good.alpha,
    ):
        found = solved(problem, start=start)
        assert_optimal(problem, found, best)
        if start is good:
            assert found.n_iter == 0


# --- parts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 31, 32, 33, 100])
def test_products_in_strips_are_products(n):
    K, c = np.random.default_rng(n).standard_normal((2 * n, 2 * n)), np.random.default_rng(0).standard_normal(n)
    f, sizes = products_in_strips(K, c)
    np.testing.assert_allclose(f, K[:n, :n] @ c, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sizes, np.abs(K[:n, :n]) @ np.abs(c), rtol=1e-13)

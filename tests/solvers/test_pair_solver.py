"""Machines with a kernel by steps on pairs and Newton's method: the optimum, proofs, and ways to end early."""

import math
import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem, Status, _core
from maxmargin.kernels import Callable, Gaussian, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from maxmargin.kernels.held_lines import HeldLines
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.runtime import Watch
from maxmargin.solvers import free_newton, pair_steps
from maxmargin.solvers.free_set import FreeSet, LowRank
from maxmargin.solvers.pair_steps import Descent, PairSteps, products_in_strips
from maxmargin.solvers.run import Settings
from maxmargin.space import Rows
from tests.solvers.inside import calls
from tests.solvers.kernel_cases import CLASSES, LOSSES, machine, optimum, scores, verdict, with_kernel

KERNELS = [
    Linear(),
    Polynomial(0.5, 1.0, 3),
    Laplacian(0.5),
    Callable(lambda X, Z: np.exp(-0.3 * ((X[:, None] - Z[None]) ** 2).sum(axis=2))),
    Gaussian(0.3) + 0.5 * Linear(),
]
INDEFINITE = [Sigmoid(0.5, -1.0), Sigmoid(1.0, 0.5), Sigmoid(0.3, -6.0), Polynomial(1.0, -0.5, 2)]


def solved(problem, *, watch=None, start=None, **options):
    return PairSteps(**({"tol": 1e-7, "n_threads": 1} | options)).solve(problem, start=start, watch=watch)


def by_lines(monkeypatch):
    """Lines of the matrix when they are needed, however few rows there are."""
    monkeypatch.setattr(pair_steps, "SQUARE_ROWS", 0)


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


def assert_consistent(problem, found):
    """Multipliers are feasible, none of a row without cost, and w is what they make."""
    box, sign = problem.box, problem.sign
    assert np.all((found.alpha >= box.lower) & (found.alpha <= box.upper))
    assert np.all(found.alpha[problem.cost == 0.0] == 0.0)
    assert abs(math.fsum((sign * found.alpha).tolist())) <= 1e-12 * np.abs(found.alpha).sum()
    np.testing.assert_array_equal(found.w, found.stretch * sign * found.alpha)


# --- the optimum ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_with_all_values_at_hand(loss, weights):
    for C in (0.05, 3.0, 300.0):
        problem = machine(loss, weights=weights, C=C)
        assert_optimal(problem, solved(problem), optimum(problem))


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
    assert len({solved(problem, start=good.alpha * by).primal for by in (0.5, 2.0)}) <= 2


# --- ends -------------------------------------------------------------------------------------------------------


def slowly(monkeypatch, lines):
    """So few steps at a time that there are many reports."""
    if lines:
        by_lines(monkeypatch)
    monkeypatch.setattr(pair_steps, "SMALL_STEPS", 0)
    monkeypatch.setattr(pair_steps, "FEWEST_STEPS", 3)
    monkeypatch.setattr(pair_steps, "MOST_STEPS", 0)


def rough(problem, found, status):
    """An answer before the end: bounds that hold, confirmed as what they are."""
    assert found.status is status
    best = optimum(problem)
    assert found.dual <= best * (1.0 + 1e-8)
    assert found.primal >= best * (1.0 - 1e-8)
    checked = verdict(problem, replace(found), max(found.gap * 1.01, 1e-12))
    assert checked, str(checked)
    assert_consistent(problem, found)


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_limit_on_iterations(loss, lines, monkeypatch):
    if lines:
        by_lines(monkeypatch)
    problem = machine(loss, 150, C=50.0)
    for max_iter in (1, 2, 40):
        found = solved(problem, max_iter=max_iter)
        rough(problem, found, Status.ITERATION_LIMIT)
        assert found.n_iter == max_iter


@pytest.mark.parametrize("lines", [False, True])
def test_a_limit_on_seconds(lines, monkeypatch):
    slowly(monkeypatch, lines)
    for loss in LOSSES:
        problem = machine(loss, 150, C=50.0)
        rough(problem, solved(problem, tol=1e-10, watch=Watch(max_seconds=0.0)), Status.TIME_LIMIT)


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("at", [1, 3])
@pytest.mark.parametrize("how", ["asks", "raises", "signal"])
def test_listeners_end_it(how, at, lines, monkeypatch):
    slowly(monkeypatch, lines)
    seen = []

    def listener(iteration, gap, seconds):
        seen.append(gap)
        if len(seen) < at:
            return False
        if how == "raises":
            raise KeyboardInterrupt
        if how == "signal":
            signal.raise_signal(signal.SIGINT)
        return how == "asks"

    problem = machine("hinge", 150, C=50.0)
    rough(problem, solved(problem, tol=1e-10, watch=Watch(progress=listener)), Status.INTERRUPTED)
    assert len(seen) == at


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("how", ["ctrl-c", "cancel"])
def test_another_thread_ends_it_while_the_core_steps(how, lines, monkeypatch):
    if lines:
        by_lines(monkeypatch)
    problem, watch, begun, inside = machine("hinge", 400, C=1e6), Watch(), threading.Event(), _core.PairSteps
    watch.core = _core.Watch(0.0, None)  # which looks at the world outside as often as it is asked

    def press():
        begun.wait(30)
        os.kill(os.getpid(), signal.SIGINT) if how == "ctrl-c" else watch.cancel()

    thread = threading.Thread(target=press)

    class Pressed:
        """The core's steps, told that somebody presses Ctrl-C."""

        def __init__(self, *given):
            self.steps = inside(*given)

        def __getattr__(self, name):
            if name in ("loop", "solve"):
                begun.set()
                thread.join()
            return getattr(self.steps, name)

    monkeypatch.setattr(_core, "PairSteps", Pressed)
    thread.start()
    found = solved(problem, tol=1e-13, watch=watch)
    assert not thread.is_alive()
    assert found.status is Status.INTERRUPTED
    assert verdict(problem, found, max(1.01 * found.gap, 1e-12))
    assert_consistent(problem, found)


@pytest.mark.parametrize(
    ("where", "at"), [("places", 1), ("square_of", 1), ("exact_scores", 0), ("rough_scores", 0), ("direction", 0)]
)
def test_ctrl_c_anywhere_leaves_a_point_that_can_be_claimed(where, at, monkeypatch):
    slowly(monkeypatch, lines=True)
    problem = machine("squared_hinge", 150, C=50.0, cache_bytes=1)
    owner = {"places": HeldLines, "direction": FreeSet}.get(where, KernelRows)
    original, count = getattr(owner, where), iter(range(10**6))

    def interrupted(*given, **options):
        if next(count) == at:
            raise KeyboardInterrupt
        return original(*given, **options)

    monkeypatch.setattr(owner, where, interrupted)
    rough(problem, solved(problem, tol=1e-10), Status.INTERRUPTED)
    assert next(count) > at


def test_who_goes_on_where_rounding_ends_it():
    problem, turns = machine("hinge", 100), []

    class Next(Settings):
        """Answers with what it was given."""

        def solve(self, problem, *, start=None, watch=None):
            turns.append(start)
            return replace(start, gap=0.5 * start.gap, solver="next", status=Status.NUMERICAL_LIMIT)

    found = solved(problem, tol=1e-16, follower=Next())
    assert found.solver == "next"
    assert "next took over" in found.reason
    assert found.gap == 0.5 * turns[0].gap
    assert turns[0].status is Status.NUMERICAL_LIMIT
    assert turns[0].gap < 1e-10
    assert verdict(problem, turns[0], 1e-9)
    solved(problem, follower=Next())
    assert len(turns) == 1


# --- bits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_epsilon_insensitive"])
def test_bits_do_not_depend_on_threads(loss, lines, monkeypatch):
    if lines:
        by_lines(monkeypatch)
    problem = machine(loss, 500, C=10.0, d=6)
    found = [solved(problem, n_threads=n) for n in (1, 2, 8)]
    assert len({(one.alpha.tobytes(), one.b, one.primal, one.dual, one.n_iter) for one in found}) == 1


# --- kernels that are no inner products -------------------------------------------------------------------------


def assert_stationary(problem, found, tol=1e-6):
    """Every multiplier is a slope of its row's loss: what each lacks of that (Fenchel), all together."""
    assert_consistent(problem, found)
    K = problem.space.kernel.gram(problem.space.X)
    f, a, epsilon = K @ (problem.sign * found.alpha) + found.b, found.alpha, getattr(problem.loss, "epsilon", 0.0)
    r = problem.target - problem.sign * f
    if problem.loss.regression:
        lost = problem.cost * np.maximum(0.0, np.abs(r) - epsilon) + epsilon * np.abs(a) - a * r
    else:
        lost = problem.cost * np.maximum(0.0, r) - a * r
    assert np.all(lost >= -1e-9 * abs(found.primal))
    assert lost.sum() <= tol * abs(found.primal)


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("kernel", INDEFINITE, ids=repr)
@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_an_indefinite_kernel_leaves_a_stationary_point(loss, kernel, lines, monkeypatch):
    if lines:
        by_lines(monkeypatch)
    for seed in range(3):
        problem = machine(loss, 80, kernel=kernel, seed=seed)
        found = solved(problem, tol=1e-6)
        assert found.status is Status.STATIONARY
        assert math.isnan(found.gap)
        assert math.isnan(found.dual)
        assert_stationary(problem, found)
        checked = verdict(problem, found)
        assert not checked
        assert checked.outcome.name == "HONEST"


def test_a_matrix_whose_pairs_betray_it_is_indefinite():
    rng = np.random.default_rng(0)
    K = rng.standard_normal((60, 60))
    K = K + K.T
    problem = machine("hinge", 60)
    given = replace(problem, space=KernelRows.of(Rows.of(K), Precomputed()))
    found = solved(given)
    assert found.status is Status.STATIONARY
    assert math.isnan(found.gap)
    assert_stationary(given, found)


# --- parts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 31, 32, 33, 100])
def test_products_in_strips_are_products(n):
    K, c = np.random.default_rng(n).standard_normal((2 * n, 2 * n)), np.random.default_rng(0).standard_normal(n)
    f, sizes = products_in_strips(K, c)
    np.testing.assert_allclose(f, K[:n, :n] @ c, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sizes, np.abs(K[:n, :n]) @ np.abs(c), rtol=1e-13)


def test_the_story_of_a_run():
    problem, seen = machine("hinge", 300, C=100.0), []
    found = solved(problem, watch=Watch(progress=lambda *report: seen.append(report) and None))
    assert found.solver == "pair_steps"
    assert len(found.history) >= 2
    assert found.history.records[-1].certified
    assert found.history.gaps[-1] == found.gap
    assert [gap for _, gap, _ in seen] == found.history.gaps[: len(seen)]
    assert found.n_iter == found.history.records[-1].iteration
    low, high = found.bias_interval
    assert low <= found.b <= high

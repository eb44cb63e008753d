"""Newton's method on free multipliers beside dense solutions: factors, inverses that are only near, and directions."""

import numpy as np
import pytest

from maxmargin.process import blas_guard
from maxmargin.runtime import Execution
from maxmargin.solvers.free_set import Bordered, Factored, FreeSet, LowRank

TYPES = [np.float32, np.float64]


def gram(m, d=4, ridge=0.1, seed=0):
    """Values of a Gaussian kernel, with a ridge."""
    X = np.random.default_rng(seed).standard_normal((m, d))
    return np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2)) + ridge * np.eye(m)


def factored(K, dtype=np.float64, n_threads=1):
    with blas_guard:
        return Factored(K.astype(dtype), Execution(n_threads))


def single(K):
    return factored(K, np.float32)


def low_rank(K, rank=20):
    return LowRank(lambda v: K @ v, lambda some: K[:, some], K.diagonal().copy(), rank)


# --- inverses ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m", [1, 2, 50, 300])
def test_a_factor_knows_the_matrix_and_its_inverse(dtype, m):
    K, v = gram(m), np.random.default_rng(1).standard_normal(m)
    block = factored(K, dtype)
    assert block.found
    off = 1e-5 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(block.times(v), K @ v, rtol=0.0, atol=off * m)
    np.testing.assert_allclose(block.precondition(v), np.linalg.solve(K, v), rtol=0.0, atol=300 * off)


def test_bits_of_a_factor_do_not_depend_on_threads():
    for dtype in TYPES:
        K, v = gram(600), np.random.default_rng(1).standard_normal(600)
        found = [factored(K, dtype, n_threads).precondition(v).tobytes() for n_threads in (1, 2, 8)]
        assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("dtype", TYPES)
def test_a_singular_matrix_has_a_factor_nearby_and_products_of_its_own(dtype):
    """Rows that occur twice: float32 finds no factor before something is added to the diagonal."""
    K = np.tile(gram(40, ridge=0.0), (2, 2))
    v = np.random.default_rng(1).standard_normal(80)
    block = factored(K, dtype)
    assert block.found
    np.testing.assert_allclose(block.times(v), K @ v, rtol=0.0, atol=1e-4 if dtype == np.float32 else 1e-11)
    assert np.isfinite(block.precondition(v)).all()


def test_what_is_far_from_positive_has_no_factor():
    for dtype in TYPES:
        K = gram(30)
        K[3, 4] = K[4, 3] = 5.0
        assert not factored(K, dtype).found
        assert not factored(np.zeros((3, 3)), dtype).found


def test_a_matrix_of_low_rank_is_found_entirely():
    B = np.random.default_rng(0).standard_normal((200, 6))
    K, r = B @ B.T, np.random.default_rng(1).standard_normal(200)
    block = low_rank(K, 50)
    assert block.B.shape[1] == 6
    np.testing.assert_allclose(block.B @ block.B.T, K, rtol=0.0, atol=1e-10)
    near = block.B @ block.B.T + block.rest * np.eye(200)
    np.testing.assert_allclose(near @ block.precondition(r), r, rtol=0.0, atol=1e-6)
    np.testing.assert_array_equal(block.times(r), K @ r)


@pytest.mark.parametrize("rank", [1, 7, 60, 130])
def test_a_partial_factor_has_the_rank_that_was_asked_for(rank):
    K = gram(150, ridge=0.0)
    block = low_rank(K, rank)
    assert block.B.shape[1] <= rank
    left = K - block.B @ block.B.T
    assert np.linalg.eigvalsh(left)[0] > -1e-6  # never more than the matrix
    values = np.linalg.eigvalsh(K)[::-1]
    assert np.trace(left) <= 3.0 * values[max(1, rank // 3) :].sum() + 1e-4  # nearly as near as it can be
    assert block.rest == pytest.approx(max(left.diagonal().clip(0.0).mean(), 1e-6), rel=1e-3)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("what", ["ridge", "zeros", "nothing", "noise", "indefinite"])
def test_columns_that_run_out_end_a_partial_factor(what, dtype):
    """The diagonal has a ridge that no column has, or what is left of all columns is rounding."""
    m, rng = 120, np.random.default_rng(0)
    B = rng.standard_normal((m, 3))
    K = {"zeros": np.zeros((m, m)), "nothing": np.zeros((m, m))}.get(what, B @ B.T)
    own = np.zeros(m) if what == "nothing" else K.diagonal() + 0.5
    if what == "noise":
        E = 1e-8 * rng.standard_normal((m, m))
        K = K + E + E.T
    if what == "indefinite":
        K = -K
    K = K.astype(dtype)
    block = LowRank(lambda v: K @ v, lambda some: K[:, some], own, 500)
    assert block.B.shape[1] <= 3 if what != "noise" else block.B.shape[1] <= m
    r = rng.standard_normal(m)
    z = block.precondition(r)
    assert np.isfinite(z).all()
    assert r @ z > 0.0


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("k", [1, 9])
def test_a_block_with_more_variables_is_that_of_all(k, dtype):
    K, v = gram(60), np.random.default_rng(1).standard_normal(60)
    m = 60 - k
    block = Bordered(factored(K[:m, :m]), K[m:].astype(dtype))
    off = 1e-5 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(block.times(v), K @ v, rtol=0.0, atol=60 * off)
    np.testing.assert_allclose(block.precondition(v), np.linalg.solve(K, v), rtol=0.0, atol=100 * off)
    twice = Bordered(Bordered(factored(K[:40, :40]), K[40:m, :m].astype(dtype)), K[m:].astype(dtype))
    np.testing.assert_allclose(twice.times(v), K @ v, rtol=0.0, atol=60 * off)
    np.testing.assert_allclose(twice.precondition(v), np.linalg.solve(K, v), rtol=0.0, atol=100 * off)


@pytest.mark.parametrize("kind", ["again", "zero"])
def test_more_variables_that_bring_nothing_new(kind):
    """Rows that are there already, or that the kernel does not see: an inverse must still be one of finite numbers."""
    K = gram(30, ridge=0.0)
    wide = np.zeros((32, 32))
    wide[:30, :30] = K
    if kind == "again":
        wide[30:] = wide[[3, 4]]
        wide[:, 30:] = wide[:, [3, 4]]
    block, r = Bordered(factored(K), wide[30:]), np.random.default_rng(0).standard_normal(32)
    assert np.isfinite(block.precondition(r)).all()
    np.testing.assert_allclose(block.times(r), wide @ r, rtol=0.0, atol=1e-11)


# --- directions -------------------------------------------------------------------------------------------------


def newton_step(K, slope, groups, alive):
    """K d + λ = −slope of those that are alive, Σ d = 0 in every group: the dense system."""
    own = np.flatnonzero(alive)
    sums = np.array([(groups[own] == g).astype(float) for g in np.unique(groups[own])])
    k = len(sums)
    whole = np.block([[K[np.ix_(own, own)], sums.T], [sums, np.zeros((k, k))]])
    d = np.zeros(len(slope))
    d[own] = np.linalg.solve(whole, np.concatenate([-slope[own], np.zeros(k)]))[: len(own)]
    return d


WIDE = np.full(60, -1e9), np.full(60, 1e9)


@pytest.mark.parametrize("share", [1.0, 0.9, 0.3])
@pytest.mark.parametrize("n_groups", [1, 2, 3])
@pytest.mark.parametrize("make", [factored, single, low_rank])
def test_the_step_without_bounds_solves_the_dense_system(make, n_groups, share):
    K, rng = gram(60), np.random.default_rng(2)
    groups, alive = rng.integers(0, n_groups, 60), rng.random(60) < share
    slope = rng.standard_normal(60) + 100.0 * groups  # a common part that is the bias of each group
    free = FreeSet(make(K), 7 * groups + 3)
    move = free.direction(slope, np.zeros(60), *WIDE, alive, 1e-9)
    expected = newton_step(K, slope, groups, alive)
    off = 1e-5 if make is single else 1e-7
    np.testing.assert_allclose(move.step, expected, rtol=0.0, atol=off * np.abs(expected).max())
    np.testing.assert_allclose(move.along, K @ expected, rtol=0.0, atol=10 * off * np.abs(expected).max())
    assert not move.step[~alive].any()


@pytest.mark.parametrize("seed", range(12))
def test_a_step_ends_within_the_box_and_lowers_the_quadratic(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 60))
    K, groups, cost = gram(m, seed=seed), rng.integers(0, 1 + seed % 3, m), rng.choice([0.5, 2.0], m)
    beta, slope = cost * rng.uniform(0.05, 0.95, m), 3.0 * rng.standard_normal(m)
    alive = rng.random(m) < 0.8
    move = FreeSet(factored(K), groups).direction(slope, beta, np.zeros(m), cost, alive, 1e-8)
    if move is None:
        assert all(np.count_nonzero(alive & (groups == g)) < 2 for g in np.unique(groups))
        return
    to = beta + move.step
    assert np.all((to >= -1e-12) & (to <= cost + 1e-12))
    for g in np.unique(groups):
        assert abs(move.step[groups == g].sum()) <= 1e-12 * np.abs(move.step).sum()
    assert not move.step[~alive].any()
    np.testing.assert_allclose(move.along, K @ move.step, rtol=0.0, atol=1e-10)
    change = slope @ move.step + 0.5 * move.step @ K @ move.step
    assert change < 0.0
    for t in (0.9, 0.99):  # no shorter step is better
        assert t * slope @ move.step + 0.5 * t * t * move.step @ K @ move.step >= change - 1e-12


def test_a_step_is_as_good_as_the_bounds_allow():
    """One bound in the way: the others are solved for again."""
    K, rng = gram(20), np.random.default_rng(0)
    slope, groups, alive = rng.standard_normal(20), np.zeros(20, dtype=int), np.ones(20, dtype=bool)
    full = newton_step(K, slope, groups, alive)
    i = int(np.argmax(full))
    upper = np.full(20, 1e9)
    upper[i] = 0.5 * full[i]
    move = FreeSet(factored(K), groups).direction(slope, np.zeros(20), -upper, upper, alive, 1e-10)
    most = slope @ full + 0.5 * full @ K @ full
    gained = slope @ move.step + 0.5 * move.step @ K @ move.step
    assert most <= gained <= 0.9 * most
    assert move.step[i] <= upper[i]


def test_nothing_is_gained_where_all_slopes_are_the_same():
    K = gram(10)
    free = FreeSet(factored(K), np.zeros(10, dtype=int))
    box = np.zeros(10), np.ones(10)
    for alive in (np.ones(10, dtype=bool), np.zeros(10, dtype=bool), np.arange(10) == 3):
        assert free.direction(np.full(10, 4.0), np.full(10, 0.5), *box, alive, 1e-6) is None


@pytest.mark.parametrize("make", [factored, single, low_rank])
def test_a_flat_quadratic_is_followed_to_the_bounds(make):
    """Rows twice with slopes that differ: nothing curves, and numbers stay finite."""
    K = np.tile(gram(15, ridge=0.0), (2, 2))
    slope = np.concatenate([np.ones(15), -np.ones(15)])
    move = FreeSet(make(K), np.zeros(30, dtype=int)).direction(
        slope, np.full(30, 0.5), np.zeros(30), np.ones(30), np.ones(30, dtype=bool), 1e-6
    )
    if make is single and move is None:  # by the rounding of float32 it may even curve downwards
        return
    assert np.isfinite(move.step).all()
    assert slope @ move.step < -10.0  # the most there is: −15
    assert np.abs(move.step).max() <= 0.5 + 1e-9

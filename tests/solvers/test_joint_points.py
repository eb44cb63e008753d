"""Points of a joint machine: what is certified is feasible, and both its objectives are what the data say."""

import numpy as np
import pytest
import scipy.sparse as sp

from tests.solvers.joint_cases import (
    BIASES,
    LOSSES,
    assert_feasible,
    blobs,
    certified,
    combine,
    drawn,
    dual_of,
    feasible,
    feasible_simplex,
    joint,
    labels_of,
    loss_of_row,
    optimum,
    primal_of,
    rows_of,
    scores_of,
)

CASES = [(loss, bias) for loss in LOSSES for bias in BIASES]


def hyperplanes(problem, seed=0, size=0.5):
    """Weights and biases that nobody optimised; biases only where there are any."""
    rng = np.random.default_rng(seed)
    k, d = problem.n_classes, problem.n_cols
    W, b = size * rng.standard_normal((k, d)), size * rng.standard_normal(k)
    return W, b if problem.bias.value else np.zeros(k)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("size", [0.0, 1.0, 800.0, 1e6])
def test_the_loss_of_a_row_is_its_formula_at_any_size_of_the_scores(loss, size):
    problem = drawn(loss)
    scores = size * np.random.default_rng(1).standard_normal(problem.shape)
    expected = [loss_of_row(loss, f.tolist(), y) for f, y in zip(scores, labels_of(problem), strict=True)]
    np.testing.assert_allclose(problem.losses(scores), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("loss", LOSSES)
def test_loss_and_conjugate_obey_fenchel_and_young_with_equality_at_the_slope(loss):
    """ℓ(f) = max over the simplex of Σ p_m f_m − f_y − g(p), reached at softmax or at the highest raised score."""
    problem, rng = drawn(loss, k=4), np.random.default_rng(2)
    scores = 2.0 * rng.standard_normal(problem.shape)
    own = scores[np.arange(problem.n_rows), labels_of(problem)]
    corners = np.eye(4)[rng.integers(0, 4, problem.n_rows)]
    edges = rng.dirichlet([0.3, 0.3, 0.3, 1e-9], problem.n_rows)
    for share in (corners, edges, rng.dirichlet(np.ones(4), problem.n_rows)):
        value = (share * scores).sum(axis=1) - own - problem.conjugates(share)
        assert (value <= problem.losses(scores) + 1e-12).all()
    if loss == "multinomial":
        best = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    else:
        best = np.eye(4)[(scores + (np.arange(4) != labels_of(problem)[:, None])).argmax(axis=1)]
    reached = (best * scores).sum(axis=1) - own - problem.conjugates(best)
    np.testing.assert_allclose(reached, problem.losses(scores), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("loss", "bias"), CASES)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_problem_counts_and_multiplies_its_rows(loss, bias, sparse):
    X, label = blobs(30, 5, 3)
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    X[4], X[np.arange(30), np.arange(30) % 5] = 0.0, 0.0
    problem = joint(sp.csr_array(X) if sparse else X, label, loss, bias, C=0.3, weight=np.linspace(0.1, 2.0, 30))
    W, b = hyperplanes(problem)
    assert problem.shape == (30, 3)
    assert problem.n_cols == 5
    assert problem.nnz == (np.count_nonzero(X) if sparse else 150)
    assert problem.space.facts.longest_row == (np.count_nonzero(X, axis=1).max() if sparse else 5)
    np.testing.assert_allclose(problem.squared_norms, (X**2).sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(problem.cost, 0.3 * np.linspace(0.1, 2.0, 30), rtol=1e-15)
    np.testing.assert_allclose(scores_of(problem, W, b), [[w @ x + v for w, v in zip(W, b, strict=True)] for x in X])
    alpha = feasible(problem)
    np.testing.assert_allclose(combine(problem, alpha), sum(np.outer(a, x) for a, x in zip(alpha, X, strict=True)))
    assert combine(problem, alpha).flags.c_contiguous
    assert problem.null_primal == pytest.approx(primal_of(problem, 0.0 * W, 0.0 * b), rel=1e-13)
    assert problem.primal(W, b, scores_of(problem, W, b)) == pytest.approx(primal_of(problem, W, b), rel=1e-13)


@pytest.mark.parametrize(("loss", "bias"), CASES)
def test_a_certified_point_is_feasible_and_its_objectives_are_true(loss, bias):
    problem = drawn(loss, bias)
    W, b = hyperplanes(problem)
    for point in (
        certified(problem, feasible(problem)),
        certified(problem, feasible(problem), W, b),
        certified(problem, 3.0 * np.random.default_rng(3).standard_normal(problem.shape), W, b),
        certified(problem, np.zeros(problem.shape)),
    ):
        assert_feasible(problem, point.alpha)
        assert point.dual == pytest.approx(dual_of(problem, point.alpha), rel=1e-11, abs=1e-11)
        assert point.primal == pytest.approx(primal_of(problem, point.W, point.b), rel=1e-12)
        assert point.gap == pytest.approx((point.primal - point.dual) / max(point.primal, abs(point.dual)))
        np.testing.assert_allclose(point.products, rows_of(problem) @ point.W.T, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(point.induced, (rows_of(problem).T @ point.alpha).T, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("size", [1e8, 1e3])
def test_a_gap_is_measured_with_ten_digits_less_than_the_objective_at_zero_where_no_more_is_left(size):
    """Rows far apart are separated by weights next to nothing."""
    problem = joint(size * np.eye(3), np.arange(3))
    point = certified(problem, np.zeros((3, 3)), 2.0 / size * np.eye(3), np.zeros(3))
    assert point.primal == pytest.approx(6.0 / size**2, rel=1e-12)
    assert point.gap == pytest.approx(point.primal / max(point.primal, 3e-10), rel=1e-12)


@pytest.mark.parametrize(("loss", "bias"), CASES)
def test_no_dual_value_is_above_the_optimum_and_no_primal_value_below(loss, bias):
    problem = drawn(loss, bias, n=25)
    best, W, b = optimum(problem)
    rng = np.random.default_rng(5)
    for seed in range(10):
        point = certified(problem, rng.uniform(0.0, 1.5) * feasible(problem, seed), *hyperplanes(problem, seed))
        assert point.dual <= best * (1.0 + 1e-8)
        assert point.primal >= best * (1.0 - 1e-8)
    assert certified(problem, np.zeros(problem.shape), W, b).primal == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize(("loss", "bias"), CASES)
def test_the_better_hyperplanes_win_and_nobody_else_writes_into_them(loss, bias):
    problem = drawn(loss, bias)
    _, W, b = optimum(problem)
    alpha = 0.02 * feasible(problem)
    good, bad = certified(problem, alpha, W, b), certified(problem, alpha, 50.0 * W, b)
    assert np.array_equal(good.W, W)
    assert np.array_equal(good.b, b)
    assert np.array_equal(bad.W, bad.induced)
    sums = bad.alpha.sum(axis=0)
    expected = {"free": b, "none": np.zeros(3), "penalised": BIASES["penalised"].value ** 2 * sums}[bias]
    np.testing.assert_allclose(bad.b, expected, rtol=1e-12, atol=1e-15)
    alone = certified(problem, alpha)
    assert np.array_equal(alone.W, alone.induced)
    np.testing.assert_allclose(alone.b, expected if bias == "penalised" else np.zeros(3), rtol=1e-12, atol=1e-15)
    before = good.W.copy(), good.b.copy()
    W += 1.0
    b += 1.0
    assert np.array_equal(good.W, before[0])
    assert np.array_equal(good.b, before[1])


def slow_share(problem, alpha):
    """One row after the other: what goes to other classes is cut to a simplex, the rest stays with its own."""
    out = np.zeros(problem.shape)
    for i, y in enumerate(labels_of(problem)):
        c = problem.cost[i]
        given = [0.0 if m == y or c == 0.0 else max(-alpha[i, m] / c, 0.0) for m in range(problem.n_classes)]
        out[i] = np.array(given) / max(1.0, sum(given))
        out[i, y] = 1.0 - sum(out[i])
    return out


@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_shares_are_cut_to_the_simplex_row_by_row(bias):
    problem = drawn(bias=bias, k=4)
    for size in (0.01, 1.0, 10.0):
        alpha = size * np.random.default_rng(0).standard_normal(problem.shape)
        share = feasible_simplex(problem, alpha)
        np.testing.assert_allclose(share, slow_share(problem, alpha), rtol=1e-13, atol=1e-15)
        assert share.min() >= 0.0
        assert (share[problem.cost == 0.0, labels_of(problem)[problem.cost == 0.0]] == 1.0).all()


def test_shares_without_a_penalty_on_the_biases_are_lowered_until_every_class_gives_what_it_gets():
    problem = drawn(k=4)
    alpha = feasible(problem)
    share, cut = feasible_simplex(problem, alpha), slow_share(problem, alpha)
    label, cost = labels_of(problem), problem.cost
    others = np.arange(4) != label[:, None]
    assert (share[others] <= cut[others] * (1.0 + 1e-15)).all()
    np.testing.assert_allclose(share.sum(axis=1), 1.0, rtol=1e-14)
    flows = np.array([[(cost * share[:, m])[label == y].sum() for m in range(4)] for y in range(4)])
    np.fill_diagonal(flows, 0.0)
    np.testing.assert_allclose(flows.sum(axis=0), flows.sum(axis=1), rtol=1e-13)
    assert flows.sum() > 0.0
    for y in range(4):  # one factor for all rows of a class
        ratios = (share / np.where(cut > 0.0, cut, 1.0))[(label == y) & (cost > 0.0)]
        np.testing.assert_allclose(ratios[:, np.arange(4) != y].std(axis=0), 0.0, atol=1e-13)


@pytest.mark.parametrize("bias", BIASES)
def test_feasible_multipliers_stay_what_they_are(bias):
    problem = drawn(bias=bias)
    once = certified(problem, feasible(problem)).alpha
    np.testing.assert_allclose(certified(problem, once).alpha, once, rtol=1e-12, atol=1e-14)

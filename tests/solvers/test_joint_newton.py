"""Newton's method of joint machines, part by part: projection, slopes and curvatures, directions, step lengths."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.runtime import Watch
from maxmargin.solvers import joint_second_order as module
from maxmargin.solvers.line_search import exact_step
from maxmargin.space import Rows
from maxmargin.space.systems import Breakdown
from tests.solvers.joint_cases import (
    BIASES,
    LOSSES,
    blobs,
    combine,
    drawn,
    feasible,
    joint,
    labels_of,
    rows_of,
    scores_of,
    second_order,
)

project = module.project
RIDGE = 0.3
CASES = [(loss, bias) for loss in LOSSES for bias in BIASES]


def method_for(problem, *, direct=True, watch=None):
    return second_order(problem, direct=direct, watch=watch)


def curve_of(problem, seed=0, sigma=0.7):
    """The loss itself, or the hinge's augmented Lagrangian at anchors that are feasible."""
    if problem.loss == "multinomial":
        return module._Multinomial(problem)
    return module._Hinge(problem, feasible(problem, seed), sigma)


def matrices_formed(monkeypatch):
    """Counts the matrices XᵀDX from now on."""
    formed, form = [], Rows.normal_matrix
    monkeypatch.setattr(Rows, "normal_matrix", lambda *given, **how: formed.append(1) or form(*given, **how))
    return formed


def direction(method, curve, g_W, g_b, ridge=RIDGE):
    return method._direction(curve, g_W, g_b, ridge)


def step_length(method, curve, W, b, dW, db, centre):
    scores = scores_of(method.problem, W, b), scores_of(method.problem, dW, db)
    return method._line_search(curve, W, b, dW, db, *scores, RIDGE, centre)


# --- projection --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("size", [0.1, 1.0, 1e4])
@pytest.mark.parametrize("ties", [False, True])
def test_the_projection_is_the_nearest_feasible_point(k, size, ties):
    """Nearest in a simplex: no corner, 0 or cost (e_y − e_m), lies on the side that v is on."""
    rng = np.random.default_rng(k)
    v = size * rng.standard_normal((300, k))
    v = np.round(v, 0 if size > 1.0 else 1) if ties else v
    cost = rng.choice([0.0, 0.1, 1.0, 5.0], 300)
    label = rng.integers(0, k, 300)
    alpha, free = project(v, (np.arange(300), label), cost)
    upper = np.where(np.arange(k) == label[:, None], cost[:, None], 0.0)
    tight = 1e-13 * max(1.0, size)
    assert (alpha <= upper).all()
    np.testing.assert_allclose(alpha.sum(axis=1), 0.0, atol=5.0 * tight)
    for m in range(k):
        corner = upper.copy()
        corner[:, m] -= cost
        assert ((v - alpha) * (corner - alpha)).sum(axis=1).max() <= 100.0 * tight * max(1.0, size)
    assert np.array_equal(free, alpha < upper)
    level = alpha - v
    for i in range(300):  # one level for all that are free
        assert not free[i].any() or np.ptp(level[i, free[i]]) <= tight
    assert size > 1.0 or len(set(free.sum(axis=1).tolist())) >= min(k, 3)


# --- slopes and curvatures ---------------------------------------------------------------------------------------


def envelope(curve, problem, scores):
    """Per row, what is minimised: the loss, or max over feasible alpha of −⟨alpha, f + e⟩ − |alpha − anchor|²/2σ."""
    if problem.loss == "multinomial":
        return problem.cost * problem.losses(scores)
    alpha = curve.multipliers(scores)
    raised = scores + (np.arange(scores.shape[1]) != labels_of(problem)[:, None])
    return -(alpha * raised).sum(axis=1) - ((alpha - curve.anchor) ** 2).sum(axis=1) / (2.0 * curve.sigma)


def dense_curvature(curve, problem):
    """Q of every row from its entries."""
    k = problem.n_classes
    return np.array([[curve.weight(m, other) for other in range(k)] for m in range(k)]).transpose(2, 0, 1)


def drawn_scores(problem, seed=1):
    return 1.5 * np.random.default_rng(seed).standard_normal(problem.shape)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("k", [2, 4])
def test_multipliers_are_the_slope_and_curvatures_the_slope_of_the_multipliers(loss, k):
    problem = drawn(loss, k=k)
    curve, scores, h = curve_of(problem), drawn_scores(problem), 1e-6
    alpha = curve.multipliers(scores)
    Q = dense_curvature(curve, problem)
    S = np.random.default_rng(3).standard_normal(problem.shape)
    np.testing.assert_allclose(curve.times(S), np.einsum("imo,io->im", Q, S), rtol=1e-12, atol=1e-14)
    for m in range(k):
        e = h * (np.arange(k) == m)
        slope = (envelope(curve, problem, scores + e) - envelope(curve, problem, scores - e)) / (2.0 * h)
        np.testing.assert_allclose(slope, -alpha[:, m], atol=1e-8)
        change = (curve.multipliers(scores + e) - curve.multipliers(scores - e)) / (2.0 * h)
        np.testing.assert_allclose(Q[:, :, m], -change, atol=1e-8)
    np.testing.assert_allclose(Q, Q.transpose(0, 2, 1))
    assert np.array_equal(Q[problem.cost == 0.0], np.zeros((2, k, k)))


def test_scores_of_any_size_have_multipliers():
    problem = drawn("multinomial")
    alpha = curve_of(problem).multipliers(1e5 * drawn_scores(problem))
    assert np.isfinite(alpha).all()
    np.testing.assert_allclose(alpha.sum(axis=1), 0.0, atol=1e-12)


# --- directions --------------------------------------------------------------------------------------------------


def dense_hessian(problem, Q, ridge=RIDGE):
    """Of ψ over weights and, as last column, the bias in units of its size; one block for each pair of classes."""
    X, bias = rows_of(problem), problem.bias
    X = X.toarray() if sp.issparse(X) else X
    X = np.column_stack([X, np.full(len(X), bias.value)]) if bias.value else X
    own = np.ones(X.shape[1])
    own[-1] = ridge if bias.free else 1.0
    k, d = problem.n_classes, X.shape[1]
    return np.einsum("imo,ij,il->mjol", Q, X, X).reshape(k * d, k * d) + np.diag(np.tile(own, k))


def right_side(problem, seed=4, *, centred=False):
    rng = np.random.default_rng(seed)
    g_W, g_b = rng.standard_normal((problem.n_classes, problem.n_cols)), rng.standard_normal(problem.n_classes)
    return (g_W - g_W.mean(axis=0), g_b - g_b.mean()) if centred else (g_W, g_b)


def residual(problem, Q, v_W, v_b, g_W, g_b, ridge=RIDGE):
    """Of the dense system, and its diagonal."""
    value = problem.bias.value
    v, g = (np.column_stack([v_W, v_b / value]), np.column_stack([g_W, g_b])) if value else (v_W, g_W)
    g = g - g.mean(axis=0)
    H = dense_hessian(problem, Q, ridge)
    return g.ravel() - H @ v.ravel(), g.ravel(), np.diag(H)


@pytest.mark.parametrize(("loss", "bias"), CASES)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_direction_by_a_matrix_solves_the_dense_system_without_its_common_part(loss, bias, sparse):
    problem = drawn(loss, bias, k=4)
    if sparse:
        problem = joint(sp.csr_array(rows_of(problem)), labels_of(problem), loss, bias)
    curve = curve_of(problem)
    curve.multipliers(drawn_scores(problem))
    g_W, g_b = right_side(problem)
    v_W, v_b = direction(method_for(problem), curve, g_W, g_b)
    off, g, _ = residual(problem, dense_curvature(curve, problem), v_W, v_b, g_W, g_b)
    assert np.linalg.norm(off) <= 1e-11 * np.linalg.norm(g)
    np.testing.assert_allclose(v_W.sum(axis=0), 0.0, atol=1e-12)
    assert v_W.flags.c_contiguous
    if not problem.bias.value:
        assert not v_b.any()


@pytest.mark.parametrize("loss", LOSSES)
def test_biases_that_hardly_anything_holds_have_a_direction_all_the_same(loss):
    """One constant for all biases changes no loss: without a part in the right-hand side it gets none in the answer."""
    problem = drawn(loss)
    curve = curve_of(problem)
    curve.multipliers(drawn_scores(problem))
    g_W, g_b = right_side(problem, centred=True)
    v_W, v_b = direction(method_for(problem), curve, g_W, g_b, ridge=1e-280)
    off, g, _ = residual(problem, dense_curvature(curve, problem), v_W, v_b, g_W, g_b, ridge=0.0)
    assert np.linalg.norm(off) <= 1e-12 * np.linalg.norm(g)
    assert abs(v_b.sum()) <= 1e-12 * np.abs(v_b).sum()


def test_a_class_without_curvature_has_a_direction_of_its_own_and_forms_no_block(monkeypatch):
    """Where no row lets a class move, its block is the identity."""
    problem = drawn(k=4)
    scores = drawn_scores(problem)
    scores[:, 3] = -50.0
    curve = curve_of(problem, sigma=5.0)
    curve.anchor = np.zeros(problem.shape)
    curve.multipliers(np.where(labels_of(problem)[:, None] == 3, 50.0 * (np.arange(4) == 3), scores))
    assert not curve.weight(3, 3).any()
    blocks = matrices_formed(monkeypatch)
    g_W, g_b = right_side(problem)
    off, g, _ = residual(
        problem, dense_curvature(curve, problem), *direction(method_for(problem), curve, g_W, g_b), g_W, g_b
    )
    assert np.linalg.norm(off) <= 1e-11 * np.linalg.norm(g)
    assert len(blocks) == sum(curve.weight(m, other).any() for m in range(4) for other in range(m, 4)) < 10


@pytest.mark.parametrize(("loss", "bias"), CASES)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_direction_by_conjugate_gradients_leaves_a_hundredth_in_the_norm_of_the_diagonal(loss, bias, sparse):
    X, label = blobs(60, 20, 3)
    X *= 10.0 ** np.linspace(-1.0, 2.0, 20)
    problem = joint(sp.csr_array(np.where(np.abs(X) < 0.5, 0.0, X)) if sparse else X, label, loss, bias, C=3.0)
    curve = curve_of(problem)
    curve.multipliers(drawn_scores(problem))
    g_W, g_b = right_side(problem, centred=True)
    v_W, v_b = direction(method_for(problem, direct=False), curve, g_W, g_b)
    off, g, diagonal = residual(problem, dense_curvature(curve, problem), v_W, v_b, g_W, g_b)
    assert off @ (off / diagonal) <= 1.001e-4 * (g @ (g / diagonal))
    assert np.linalg.norm(off) > 0.0


def counting(curve):
    """How often a curve is multiplied with."""
    calls, times = [], curve.times
    curve.times = lambda S: calls.append(1) or times(S)
    return calls


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("bias", BIASES)
def test_columns_of_any_scale_cost_conjugate_gradients_no_more_products(sparse, bias):
    X, label = blobs(80, 12, 3)
    counts = []
    for scale in (np.full(12, 30.0), 10.0 ** np.linspace(0.5, 4.5, 12)):
        problem = joint(sp.csr_array(X * scale) if sparse else X * scale, label, "multinomial", bias)
        curve = curve_of(problem)
        curve.multipliers(drawn_scores(problem))
        calls = counting(curve)
        alpha = feasible(problem)
        direction(method_for(problem, direct=False), curve, combine(problem, alpha), alpha.sum(axis=0))
        counts.append(len(calls))
    assert 3 < counts[0] < 40
    assert counts[1] <= 1.5 * counts[0]


def test_conjugate_gradients_need_no_more_products_than_there_are_unknowns():
    X, label = blobs(50, 2, 3)
    problem = joint(np.column_stack([X[:, 0], X[:, 0] + 0.02 * X[:, 1]]), label, "multinomial", "none", C=10.0)
    curve = curve_of(problem)
    curve.multipliers(drawn_scores(problem))
    calls = counting(curve)
    direction(method_for(problem, direct=False), curve, *right_side(problem, centred=True))
    assert len(calls) <= 6


def test_conjugate_gradients_end_after_300_products_or_at_the_deadline():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 40)) @ np.linalg.matrix_power(np.tri(40), 3)  # columns that are all but alike
    problem = joint(X, rng.permutation(np.arange(60) % 3), C=1e8)
    for watch, expected in ((Watch(), 300), (Watch(1e-9), 0)):
        curve = curve_of(problem, sigma=1e8)
        curve.multipliers(0.0 * drawn_scores(problem))
        calls = counting(curve)
        direction(method_for(problem, direct=False, watch=watch), curve, *right_side(problem, centred=True))
        assert len(calls) == expected


@pytest.mark.parametrize("direct", [True, False])
def test_a_direction_that_is_no_number_is_a_breakdown(direct):
    problem = drawn("multinomial")
    curve = curve_of(problem)
    curve.multipliers(drawn_scores(problem))
    g_W, g_b = right_side(problem)
    g_W[0, 0] = np.nan
    with pytest.raises(Breakdown, match="not finite"):
        direction(method_for(problem, direct=direct), curve, g_W, g_b)


# --- step lengths ------------------------------------------------------------------------------------------------


def along(curve, problem, W, b, dW, db, centre):
    """ψ(t), written out."""
    bias = problem.bias

    def psi(t):
        V, c = W + t * dW, b + t * db
        value = 0.5 * (V**2).sum() + envelope(curve, problem, scores_of(problem, V, c)).sum()
        if bias.penalised:
            value += 0.5 * ((c / bias.value) ** 2).sum()
        elif bias.free:
            value += 0.5 * RIDGE * (((c - centre) / bias.value) ** 2).sum()
        return value

    return psi


@pytest.mark.parametrize(("loss", "bias"), CASES)
@pytest.mark.parametrize("stretch", [0.01, 1.0, 7.0, 300.0])
def test_the_step_ends_where_the_slope_along_the_direction_is_next_to_nothing(loss, bias, stretch):
    problem = drawn(loss, bias, seed=2)
    curve, rng = curve_of(problem), np.random.default_rng(6)
    W, b, centre = 0.3 * rng.standard_normal((3, 3)), rng.standard_normal(3), rng.standard_normal(3)
    if not problem.bias.value:
        b = centre = np.zeros(3)
    alpha = curve.multipliers(scores_of(problem, W, b))
    held = b / problem.bias.value if problem.bias.penalised else RIDGE * (b - centre)
    g_b = problem.bias.value * alpha.sum(axis=0) - held
    dW, db = (stretch * v for v in direction(method_for(problem), curve, combine(problem, alpha) - W, g_b))
    psi, h = along(curve, problem, W, b, dW, db, centre), 1e-5 / stretch
    t = step_length(method_for(problem), curve, W, b, dW, db, centre)

    def slope(at):
        return (psi(at + h) - psi(at - h)) / (2.0 * h)

    assert slope(0.0) < 0.0
    if t == 1.0:
        assert slope(1.0) <= 0.11 * abs(slope(0.0))
    else:
        assert 0.0 < t < 1.0
        assert abs(slope(t)) <= 2e-3 * abs(slope(0.0))
    assert (t == 1.0) == (slope(1.0) <= 0.1 * abs(slope(0.0)))
    assert t == 1.0 or stretch > 0.01
    assert t < 1.0 or stretch < 300.0


@pytest.mark.parametrize("bias", ["free", "penalised"])
def test_the_step_of_the_biases_alone_is_that_of_their_own_parabola(bias):
    """At next to no cost, ψ is what holds the biases: its minimum lies where they meet their centre."""
    problem, rng = drawn("multinomial", bias, C=1e-9), np.random.default_rng(7)
    b, centre, W = 5.0 + rng.standard_normal(3), rng.standard_normal(3), rng.standard_normal((3, 3))
    db = -(b - (centre if bias == "free" else 0.0)) / 0.4
    t = step_length(method_for(problem), curve_of(problem), W, b, 0.0 * W, db, centre)
    assert t == pytest.approx(0.4, rel=1e-6)


def searched(slope):
    """The step, and how often the slope was looked at."""
    looks = []
    return exact_step(lambda t: looks.append(t) or slope(t), slope(0.0)), len(looks)


SLOPES = {  # slope, its root, most looks at it
    "late rise": (lambda t: 50.0 * t**9 - 1.0, 50.0 ** (-1 / 9), 15),
    "early rise": (lambda t: 1.5 * t ** (1 / 9) - 1.0, 1.5**-9, 11),
    "straight": (lambda t: 3.0 * t - 1.0, 1 / 3, 2),
    "jump": (lambda t: -1.0 if t < 0.999 else 1.0, 0.999, 39),
    "early jump": (lambda t: -1.0 if t < 1e-5 else 1.0, 1e-5, 40),
    "jump in the middle": (lambda t: -1.0 if t < 0.3 else 1.0, 0.3, 41),
}


@pytest.mark.parametrize("name", SLOPES)
def test_a_root_of_the_slope_is_found_in_few_looks(name):
    slope, root, most = SLOPES[name]
    step, looks = searched(slope)
    assert step == pytest.approx(root, rel=1e-2, abs=1e-9)
    assert looks <= most


def test_a_search_that_runs_out_of_looks_ends_on_the_descending_side():
    step, looks = searched(SLOPES["jump in the middle"][0])
    assert 0.29 < step < 0.3
    assert looks == 41


def test_slopes_that_are_no_numbers_end_the_search_within_the_bracket():
    step, looks = searched(lambda t: -1.0 if t == 0.0 else np.nan)
    assert 0.0 < step <= 1.0
    assert looks == 41


@pytest.mark.parametrize(("whole", "step"), [(0.1, 2 / 3), (0.5, 1.0)])
def test_how_far_upwards_a_whole_step_may_end_can_be_said(whole, step):
    assert exact_step(lambda t: 1.5 * t - 1.0, -1.0, whole=whole) == pytest.approx(step, rel=1e-12)

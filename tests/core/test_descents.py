"""Coordinate descents of the core: invariants, falling objectives, and optima with no gap to their primal."""

import numpy as np
import pytest

from maxmargin import _core
from maxmargin.losses import EpsilonInsensitive, Hinge, SquaredEpsilonInsensitive, SquaredHinge
from tests.core.rows import KINDS, make, near

N, D = 60, 5
LOSSES = [
    Hinge(),
    SquaredHinge(),
    EpsilonInsensitive(0.0),
    EpsilonInsensitive(0.3),
    SquaredEpsilonInsensitive(0.0),
    SquaredEpsilonInsensitive(0.3),
]


def i32(*numbers):
    return np.array(numbers, dtype=np.int32)


def loss_id(loss):
    return f"{loss.name} {getattr(loss, 'epsilon', '')}".strip()


def until_optimal(state, rows):
    """Epochs without shrinking, until hardly anything is violated."""
    for _ in range(50000):
        state.unshrink()
        if state.epoch(rows) <= 1e-10:
            return
    raise AssertionError("no convergence")


def falls(values):
    return np.all(np.diff(values) <= 1e-12 * (1.0 + np.abs(values[-1])))


def slopes(loss, X, alpha, w, bias, y, box):
    """One-sided derivatives of the dual's objective (to be minimised) in each multiplier: leftwards and rightwards."""
    slope = loss.sign(y) * (X @ w + bias) - loss.target(y) + box.diagonal * alpha
    left, right = np.where(alpha > 0.0, box.tube, -box.tube), np.where(alpha >= 0.0, box.tube, -box.tube)
    return slope + left, slope + right


@pytest.mark.parametrize("gain", [0.0, 0.3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_descent_reaches_the_optimum(instruction_set, loss, kind, gain):
    rows, X = make(kind, N, D)
    rng = np.random.default_rng(5)
    y = X @ rng.normal(size=D) + rng.normal(size=N) if loss.regression else np.where(np.arange(N) % 3, 1.0, -1.0)
    cost = np.linspace(0.5, 1.5, N)
    cost[::9] = 0.0
    box, sign, target = loss.dual_box(cost), loss.sign(y), loss.target(y).copy()
    alpha, w, norms = np.zeros(N), np.zeros(D), np.square(X).sum(axis=1)
    parts = (sign, box.lower, box.upper, box.diagonal, box.tube, target, norms, alpha, w)
    descent = _core.Descent(*parts, bias_center=0.1, bias_gain=gain, signed_sum=0.0, seed=3)
    assert (descent.n_active, descent.bias, descent.bias_center) == (N, 0.1, 0.1)

    def check_invariants():
        near(w, X.T @ (alpha * sign))
        assert descent.bias == pytest.approx(0.1 + gain * (alpha @ sign), abs=1e-12)
        assert np.all((box.lower <= alpha) & (alpha <= box.upper))

    def objective():
        quadratic, total = w @ w + box.diagonal @ alpha**2, alpha @ sign
        linear = target @ alpha - box.tube * np.abs(alpha).sum()
        return 0.5 * (quadratic + gain * total**2) + 0.1 * total - linear

    values, fewest = [0.0], N
    for epoch in range(60):
        descent.epoch(rows)
        check_invariants()
        values.append(objective())
        fewest = min(fewest, descent.n_active)
        if epoch % 20 == 19:
            descent.unshrink()
            assert descent.n_active == N
    assert falls(values)
    assert fewest < N or box.diagonal.any()  # rows that stay at a bound or a tube are left out
    until_optimal(descent, rows)
    check_invariants()
    left, right = slopes(loss, X, alpha, w, descent.bias, y, box)
    assert np.all((left <= 1e-8) | (alpha == box.lower))
    assert np.all((right >= -1e-8) | (alpha == box.upper))
    price_of_bias = 0.5 * gain * (alpha @ sign) ** 2  # (b − center)² / (2 gain)
    primal = 0.5 * w @ w + price_of_bias + cost @ loss.value(X @ w + descent.bias, y)
    assert primal == pytest.approx(-objective(), rel=1e-8)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("workers", [1, 2, 8])
def test_workers_lower_the_objective_whatever_the_rows_and_the_threads(workers, n_threads):
    # Equal rows are the worst case: every worker takes the same step, and together they go too far.
    X = np.ones((400, 3)) * np.repeat([1.0, -1.0], 200)[:, None]
    y, one, zero = np.repeat([1.0, -1.0], 200), np.ones(400), np.zeros(400)
    alpha, w = np.zeros(400), np.zeros(3)
    parts = (y, zero, one, zero, 0.0, one, np.full(400, 3.0), alpha, w, 0.0, 0.1, 0.0, 1)
    descent, values, halved = _core.Descent(*parts, workers=workers, exchanges=2), [0.0], 0
    for _ in range(60):
        descent.epoch(_core.Rows.dense(X), None, n_threads)
        halved += descent.n_halved
        near(w, X.T @ (alpha * y))
        assert np.all((alpha >= 0.0) & (alpha <= 1.0))
        values.append(0.5 * w @ w + 0.05 * (alpha @ y) ** 2 - alpha.sum())
    assert falls(values)
    assert (halved > 0) == (workers > 1)
    assert values[-1] == pytest.approx(-1.0 / 6.0, rel=1e-4)  # margin 1 at w = (1, 1, 1) / 3


def test_lanes_give_the_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 30))
    found = []
    for n_threads in (1, 2, 4):
        y, one, zero, alpha, w = (
            np.where(X[:, 0] > 0, 1.0, -1.0),
            np.ones(3000),
            np.zeros(3000),
            np.zeros(3000),
            np.zeros(30),
        )
        parts = (y, zero, one, zero, 0.0, one, np.square(X).sum(axis=1), alpha, w, 0.0, 0.1, 0.0, 1)
        descent = _core.Descent(*parts, workers=2, exchanges=4)
        for _ in range(5):
            descent.epoch(_core.Rows.dense(X), None, n_threads)
        found.append((alpha, w))
    assert all(np.array_equal(a, found[0][0]) and np.array_equal(w, found[0][1]) for a, w in found)


@pytest.mark.parametrize(("workers", "exchanges"), [(0, 1), (9, 1), (2, 0), (-1, 1)])
def test_workers_out_of_range_are_refused(workers, exchanges):
    one = np.ones(2)
    parts = (one, 0.0 * one, one, 0.0 * one, 0.0, one, one, one.copy(), np.ones(3), 0.0, 0.0, 0.0, 1)
    with pytest.raises(ValueError, match="workers or exchanges"):
        _core.Descent(*parts, workers=workers, exchanges=exchanges)


def test_the_kink_keeps_multipliers_of_small_errors_at_zero():
    X, y = np.eye(4), np.array([0.2, -0.2, 2.0, -5.0])
    alpha, w, one, zero = np.zeros(4), np.zeros(4), np.ones(4), np.zeros(4)
    descent = _core.Descent(one, -one, one, zero, 0.3, y, one, alpha, w, 0.0, 0.0, 0.0, 1)
    descent.epoch(_core.Rows.dense(X))
    assert alpha.tolist() == [0.0, 0.0, 1.0, -1.0]
    assert w.tolist() == alpha.tolist()


def test_a_multiplier_at_the_kink_is_left_out_only_while_it_wants_to_stay():
    X, target = _core.Rows.dense(np.eye(3)), np.array([0.4, -0.4, 0.0])
    for bias, n_left in ((0.0, 1), (5.0, 0), (-5.0, 0)):
        alpha, w, one = np.zeros(3), np.zeros(3), np.ones(3)
        parts = (one, -one, one, np.zeros(3), 0.3, target, one, alpha, w)
        descent = _core.Descent(*parts, 0.0, 0.0, 0.0, seed=1)
        assert descent.epoch(X) == pytest.approx(0.2)
        descent.bias_center = bias
        descent.epoch(X)
        assert descent.n_active == 3 - n_left
        near(alpha, np.sign(-bias) * one if bias else np.array([0.1, -0.1, 0.0]))


# --- the joint multi-class machine -----------------------------------------------------------------------


class Joint:
    """The arrays of a joint problem by name, the core's state over them, and its objective in NumPy."""

    def __init__(self, X, n_classes, gain, seed=0, **changed):
        rng, (n, d) = np.random.default_rng(seed), X.shape
        arrays = {
            "label": rng.integers(0, n_classes, n).astype(np.int32),
            "cost": rng.choice([0.0, 0.5, 1.0, 2.0], n),
            "sq_norm": np.square(X).sum(axis=1),
            "alpha": np.zeros((n, n_classes)),
            "W": np.zeros((d, n_classes)),
            "class_sum": np.zeros(n_classes),
            "bias_center": rng.uniform(-0.3, 0.3, n_classes),
            "bias_gain": gain,
            "scratch": np.full(3 * n_classes, np.nan),
        } | changed
        self.core = _core.Joint(**arrays, seed=4)
        vars(self).update(arrays)
        self.X = X
        self.own = np.arange(n_classes) == self.label[:, None]

    def objective(self):
        s = self.class_sum
        quadratic = np.sum(self.W**2) + self.bias_gain * np.sum(s**2)
        return 0.5 * quadratic + np.sum(self.alpha[~self.own]) + self.bias_center @ s

    def slope(self):
        return self.X @ self.W + self.bias_center + self.bias_gain * self.class_sum + ~self.own

    def primal(self):
        """½‖W‖² + ‖b − center‖² / (2 gain) + the costs of the worst margins."""
        price = 0.5 * np.sum(self.W**2) + 0.5 * self.bias_gain * np.sum(self.class_sum**2)
        slope = self.slope()
        return price + self.cost @ (slope.max(axis=1) - slope[self.own])

    def upper(self):
        return np.where(self.own, self.cost[:, None], 0.0)

    def check_invariants(self):
        near(self.W, self.X.T @ self.alpha)
        near(self.class_sum, self.alpha.sum(axis=0))
        near(self.alpha.sum(axis=1), np.zeros(len(self.X)))
        assert np.all(self.alpha <= self.upper())


@pytest.mark.parametrize("gain", [0.0, 0.5])
@pytest.mark.parametrize("n_classes", [2, 3, 17])
@pytest.mark.parametrize("kind", KINDS)
def test_joint_reaches_the_optimum(instruction_set, kind, n_classes, gain):
    rows, X = make(kind, N, D)
    p = Joint(X, n_classes, gain)
    if gain == 0.0:
        p.cost[p.sq_norm == 0.0] = 0.0  # without a bias, empty rows are left alone
    values = [p.objective()]
    for epoch in range(30):
        p.core.epoch(rows)
        p.check_invariants()
        values.append(p.objective())
        if epoch % 10 == 9:
            p.core.unshrink()
            assert p.core.n_active == N
    assert falls(values)
    assert values[-1] < values[0]
    p.core.unshrink()
    until_optimal(p.core, rows)
    p.check_invariants()
    slope, live = p.slope(), p.cost > 0.0
    lowest = np.where(p.alpha < p.upper(), slope, np.inf).min(axis=1)
    assert np.all((slope.max(axis=1) - lowest)[live] <= 1e-8)
    assert p.primal() == pytest.approx(-p.objective(), rel=1e-7)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("csr")])
def test_joint_is_the_same_for_dense_and_sparse_rows(instruction_set, kind):
    rows, X = make(kind, 500, 20)
    sparse, dense = Joint(X, 4, 0.5), Joint(X, 4, 0.5)
    for _ in range(5):
        reported = [sparse.core.epoch(rows), dense.core.epoch(_core.Rows.dense(X))]
        assert reported[0] == pytest.approx(reported[1], rel=1e-9)
        assert sparse.core.n_active == dense.core.n_active
    near(sparse.alpha, dense.alpha)
    near(sparse.W, dense.W)


@pytest.mark.parametrize("size", [1.0, 1e-4, 1e-8])
def test_multipliers_of_short_rows_sum_to_zero(instruction_set, size):
    X = size * np.random.default_rng(0).normal(size=(50, 3))
    p = Joint(X, 5, 0.0)
    p.core.epoch(_core.Rows.dense(X))
    p.check_invariants()


def test_joint_reports_the_largest_violation_and_leaves_out_rows_firmly_in_a_corner():
    # Margins of 0.8, −0.8 and 4, where 1 is wanted: the last row's multipliers stay 0, whatever the others do.
    X, W = np.diag([1.0, -1.0, 5.0]), np.tile([-0.4, 0.4], (3, 1))
    p = Joint(X, 2, 0.0, label=i32(1, 1, 1), cost=np.ones(3), bias_center=np.zeros(2), W=W)
    rows = _core.Rows.dense(X)
    assert p.core.epoch(rows) == pytest.approx(1.8)
    assert p.core.n_active == 3  # nothing to compare with yet
    near(p.alpha, np.array([[-0.1, 0.1], [-0.9, 0.9], [0.0, 0.0]]))
    assert p.core.epoch(rows) == pytest.approx(0.0, abs=1e-12)
    assert p.core.n_active == 2  # 3 beyond what is wanted, more than any violation
    p.core.unshrink()
    assert p.core.n_active == 3


WRONG = [
    {"label": i32(0, 1, 2, 3)},
    {"label": i32(0, 1, 2, -1)},
    {"label": i32(0, 1, 2)},
    {"label": np.arange(4) % 3},
    {"alpha": np.zeros((3, 3))},
    {"alpha": np.zeros((4, 2))},
    {"alpha": np.zeros(12)},
    {"alpha": np.zeros((4, 3), np.float32)},
    {"alpha": np.zeros((4, 3), order="F")},
    {"W": np.zeros((2, 4))},
    {"W": np.zeros((2, 3), order="F")},
    {"cost": np.ones(3)},
    {"cost": np.ones(4, np.float32)},
    {"sq_norm": np.ones(5)},
    {"class_sum": np.zeros(4)},
    {"class_sum": np.zeros(6)[::2]},
    {"bias_center": np.zeros(2)},
    {"scratch": np.zeros(8)},
    {"label": i32(0, 0, 0, 0), "alpha": np.zeros((4, 1)), "W": np.zeros((2, 1))}
    | {"class_sum": np.zeros(1), "bias_center": np.zeros(1), "scratch": np.zeros(3)},
]


@pytest.mark.parametrize("changed", WRONG, ids=lambda changed: ", ".join(f"{k}={v!r}" for k, v in changed.items()))
def test_joint_refuses_wrong_arrays(changed):
    X = np.ones((4, 2))
    good = {"label": i32(0, 1, 2, 0), "cost": np.ones(4), "sq_norm": np.ones(4), "alpha": np.zeros((4, 3))}
    good |= {"W": np.zeros((2, 3)), "class_sum": np.zeros(3), "bias_center": np.zeros(3), "scratch": np.zeros(9)}
    Joint(X, 3, 0.0, **good)
    with pytest.raises((TypeError, ValueError)):
        Joint(X, 3, 0.0, **good | changed)


@pytest.mark.parametrize("shape", [(3, 2), (5, 2), (4, 1), (4, 3)])
def test_joint_refuses_rows_of_another_shape(shape):
    p = Joint(np.ones((4, 2)), 3, 0.0)
    p.core.epoch(_core.Rows.dense(p.X))
    with pytest.raises(ValueError, match="differ in shape"):
        p.core.epoch(_core.Rows.dense(np.ones(shape)))


# --- lasso -----------------------------------------------------------------------------------------------


def lasso_problem(n, seed, rank=None):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(rank or n + 5, n))
    price, w = rng.uniform(0.5, 5.0, n), rng.normal(size=n) * (rng.random(n) < 0.5)
    price[-1] = 0.0  # the bias
    H = B.T @ B
    return H, H @ rng.normal(size=n) + rng.uniform(-0.9, 0.9, n) * price, price, w


def slow_lasso(H, g, price, w, sweeps):
    """Plain coordinate descent on v = w + d, straight from the objective."""
    v = w.copy()
    for _ in range(sweeps):
        for j in range(len(w)):
            slope = g[j] + H[j] @ (v - w) - H[j, j] * v[j]
            v[j] = -np.sign(slope) * max(abs(slope) - price[j], 0.0) / H[j, j]
    return v


def lasso_objective(H, g, price, w, d):
    return g @ d + 0.5 * d @ H @ d + price @ np.abs(w + d)


@pytest.mark.parametrize("n", [1, 2, 7, 16, 33])
@pytest.mark.parametrize("seed", range(3))
def test_lasso_agrees_with_slow_coordinate_descent(instruction_set, n, seed):
    H, g, price, w = lasso_problem(n, seed)
    d, Hd = np.zeros(n), np.zeros(n)
    sweeps = _core.lasso_sweeps(H, g, price, w, d, Hd, 100000, 1e-26)
    assert 1 <= sweeps < 100000
    near(Hd, H @ d)
    v = slow_lasso(H, g, price, w, 3000)
    np.testing.assert_allclose(w + d, v, atol=1e-9)
    np.testing.assert_array_equal(w + d == 0.0, v == 0.0)
    assert abs(g[-1] + Hd[-1]) <= 1e-9  # the coordinate without price


@pytest.mark.parametrize("seed", range(10))
def test_lasso_of_low_rank_keeps_the_optimality_conditions(instruction_set, seed):
    H, g, price, w = lasso_problem(40, seed, rank=6)
    d, Hd = np.zeros(40), np.zeros(40)
    values = [lasso_objective(H, g, price, w, d)]
    while _core.lasso_sweeps(H, g, price, w, d, Hd, 3, 1e-24) > 1 and len(values) < 100000:
        values.append(lasso_objective(H, g, price, w, d))
    assert len(values) < 100000
    assert falls(values)
    near(Hd, H @ d)
    v, slope = w + d, g + H @ d
    assert (v == 0.0).sum() >= 10
    np.testing.assert_allclose(slope[v != 0.0], -(np.sign(v) * price)[v != 0.0], atol=1e-8)
    assert np.all(np.abs(slope) <= price + 1e-8)


def test_lasso_starts_where_it_is_told_and_counts_its_sweeps():
    H, g, price, w = lasso_problem(12, 0)
    d, Hd = np.zeros(12), np.zeros(12)
    assert _core.lasso_sweeps(H, g, price, w, d, Hd, 0, 0.0) == 0
    assert not d.any()
    assert _core.lasso_sweeps(H, g, price, w, d, Hd, 2, 0.0) == 2
    once = d.copy()
    assert 1 < _core.lasso_sweeps(H, g, price, w, d, Hd, 100000, 1e-24) < 100000
    assert not np.array_equal(d, once)
    assert _core.lasso_sweeps(H, g, price, w, d, Hd, 100000, 1e-24) == 1
    assert _core.lasso_sweeps(np.zeros((0, 0)), *np.zeros((5, 0)), 10, 0.0) == 1


@pytest.mark.parametrize("wrong", [np.ones(2), np.ones(4), np.ones(3, np.float32), np.ones(6)[::2], [1.0] * 3], ids=str)
@pytest.mark.parametrize("name", ["g", "price", "w", "d", "Hd"])
def test_lasso_refuses_wrong_vectors(name, wrong):
    good = {name: np.ones(3) for name in ("g", "price", "w", "d", "Hd")} | {"max_sweeps": 1, "tol": 0.0}
    _core.lasso_sweeps(np.eye(3), **good)
    with pytest.raises((TypeError, ValueError)):
        _core.lasso_sweeps(np.eye(3), **good | {name: wrong})


@pytest.mark.parametrize("H", [np.eye(2), np.ones((3, 4)), np.ones((4, 3)), np.ones(9), np.eye(3, dtype=np.float32)])
def test_lasso_refuses_a_wrong_matrix(H):
    with pytest.raises((TypeError, ValueError)):
        _core.lasso_sweeps(H, *np.ones((5, 3)), 1, 0.0)

"""The l1 penalty step by step: the jump to the exact solution of a support, and the length of a step."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from maxmargin.solvers import proximal
from maxmargin.solvers.proximal import ProximalNewton
from tests.solvers.inside import (
    BIASES,
    SMOOTH,
    Step,
    calls,
    dense,
    l1_jump,
    l1_setting,
    l1_step_is,
    objective,
    slack,
    with_l1,
)


def jump(H, g, price, v, step):
    return l1_jump(H, g, price, v, step, H @ step)


def lengths_of(monkeypatch):
    return calls(monkeypatch, proximal._Proximal, "_step_length")


def quadratic(seed, m=6, condition=1.0):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((m, m)))[0]
    H = Q @ np.diag(10.0 ** rng.uniform(-condition, condition, m)) @ Q.T
    return 0.5 * (H + H.T), rng.standard_normal(m) * 3.0, rng


def model(H, g, price, v, step):
    return float(g @ step + 0.5 * step @ H @ step + price @ (np.abs(v + step) - np.abs(v)))


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_the_jump_ends_at_the_lowest_point_on_the_way_to_the_exact_solution_of_the_support(seed, free):
    H, g, rng = quadratic(seed)
    price, v = np.ones(6), rng.standard_normal(6) * (rng.random(6) < 0.7)
    if free:
        price[5] = 0.0
    step = 0.3 * rng.standard_normal(6) * (v != 0.0)
    there = (v + step != 0.0) | (price == 0.0)
    out, whole = jump(H, g, price, v, step)
    np.testing.assert_array_equal(out[~there], step[~there])
    # The exact solution, with the signs as they are.
    sign = (price * np.sign(v + step))[there]
    exact = step.copy()
    exact[there] = np.linalg.solve(H[np.ix_(there, there)], -(g + sign_of_rest(H, step, there))[there] - sign)
    same = np.sign(v + exact) == np.sign(v + step)
    assert whole == bool(same[there & (price > 0.0)].all())
    if whole:
        np.testing.assert_allclose(out, exact, rtol=1e-9, atol=1e-10)
        return
    shares = np.linspace(0.0, 1.0, 2001)
    crossings = -(v + step)[there] / np.where(exact == step, 1.0, exact - step)[there]
    shares = np.concatenate([shares, crossings[(crossings > 0.0) & (crossings < 1.0)]])
    lowest = min(model(H, g, price, v, step + t * (exact - step)) for t in shares)
    reached = model(H, g, price, v, out)
    assert reached <= lowest + 1e-9 * abs(lowest)
    moved = np.flatnonzero(exact != step)
    t = (out - step)[moved] / (exact - step)[moved]
    np.testing.assert_allclose(t, t[0], atol=1e-9)
    assert lowest - 1e-4 * (1.0 + abs(lowest)) <= reached


def sign_of_rest(H, step, there):
    """H step of the coordinates that stay."""
    return H @ np.where(there, 0.0, step)


def test_crossings_of_every_kind_happen_among_those():
    """The lowest point is exactly at the first crossing, beyond some and at another, or beyond some and between."""
    kinds = set()
    for seed in range(40):
        H, g, rng = quadratic(seed)
        v = rng.standard_normal(6) * (rng.random(6) < 0.7)
        step = 0.3 * rng.standard_normal(6) * (v != 0.0)
        out, whole = jump(H, g, np.ones(6), v, step)
        if not whole:
            old, new = np.sign(v + step), np.sign(v + out)
            kinds.add(("at zero" if (new[old != 0.0] == 0.0).any() else "between", bool((new * old < 0.0).any())))
    assert kinds == {("at zero", False), ("at zero", True), ("between", True)}


def test_a_weight_that_lands_on_zero_is_exactly_zero():
    v, H, step = np.array([0.1, 2.0]), np.eye(2), np.zeros(2)
    out, whole = jump(H, np.array([-0.3, -1.0]), np.ones(2), v, step)  # to 0.1 − 0.7, across zero
    assert not whole
    assert list(v + out) == [0.0, 2.0]
    for x in np.linspace(0.11, 0.37, 20):  # from a weight that was zero before the step
        out, _ = jump(H, np.array([-0.3 - x, -1.0]), np.ones(2), np.array([0.0, 2.0]), np.array([x, 0.0]))
        assert list(out) == [0.0, 0.0]
    out, whole = jump(np.eye(1), np.array([-0.875]), np.ones(1), np.array([0.125]), np.zeros(1))  # to zero itself
    assert abs(0.125 + out[0]) <= 1e-16


def test_where_there_is_no_exact_solution_none_is_returned(monkeypatch):
    H, g, _ = quadratic(0)
    assert jump(H, g, np.ones(6), np.zeros(6), np.zeros(6)) is None  # no support
    assert jump(-H, g, np.ones(6), np.ones(6), np.zeros(6)) is None  # no minimum
    g[2] = np.inf
    with np.errstate(invalid="ignore"):
        assert jump(H, g, np.ones(6), np.ones(6), np.zeros(6)) is None
    free = np.append(np.ones(5), 0.0)
    assert jump(H, quadratic(0)[1], free, np.zeros(6), np.zeros(6)) is not None  # the bias is always there


@pytest.mark.parametrize(("size", "possible"), [(3000, True), (3001, False)])
def test_a_support_too_large_to_factor_is_left_to_sweeps(monkeypatch, size, possible):
    factored = []

    class Diagonal:
        def __init__(self, H):
            factored.append(len(H))

        def solve(self, rhs):
            return 0.0 * rhs

    l1_setting(monkeypatch, "Cholesky", Diagonal)
    H = np.broadcast_to(np.float64(1.0), (size, size))
    ones = np.ones(size)
    found = l1_jump(H, ones, ones, ones, 0.0 * ones, 0.0 * ones)
    assert (found is not None) == possible
    assert factored == ([size] if possible else [])


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("size", [0.3, 3.0, 40.0])
def test_a_step_that_breaks_its_promise_goes_to_the_lowest_point_on_its_way(loss, bias, size):
    problem = with_l1(loss, C=0.5, **BIASES[bias])
    w = np.array([0.3, -0.2, 0.0, 0.5, 0.0, 1.0])
    b = 0.0 if bias == "none" else 0.4
    step = Step(problem, w, b)
    promised, dw, db = step.direction(w, 1e-10)
    dw, db, promised = size * dw, size * db, size * promised
    t = step.length(w, dw, db, dense(problem) @ dw, promised)

    def value(t):
        return objective(problem, w + t * dw, b + t * db)

    if value(1.0) <= value(0.0) + 0.1 * promised:
        assert t == 1.0
    else:
        assert size > 0.5
        h, flat = 1e-7, 1e-3 * (value(0.0) - value(1e-7)) / 1e-7  # of the first slope
        assert (value(t) - value(t - h)) / h <= 1.01 * flat
        assert (value(t + h) - value(t)) / h >= -1.01 * flat
        best = minimize_scalar(value, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-10})
        assert value(t) <= best.fun + 1.01 * flat * abs(t - best.x) + 1e-12 * abs(best.fun)
    assert (t == 1.0) == (size < 1.0)


def test_no_step_is_made_uphill(monkeypatch):
    problem = with_l1(C=0.5)
    w = np.array([0.3, -0.2, 0.0, 0.5, 0.0, 1.0])
    step = Step(problem, w, 0.4)
    promised, dw, db = step.direction(w, 1e-10)
    l1_setting(monkeypatch, "exact_step", lambda *_, **__: 0.25)
    assert step.length(w, -dw, -db, -(dense(problem) @ dw), promised) == 0.0
    assert step.length(w, 4.0 * dw, 4.0 * db, 4.0 * (dense(problem) @ dw), 10.0 * promised) == 0.25


@pytest.mark.parametrize("loss", SMOOTH)
def test_steps_never_raise_the_objective_and_end_where_the_model_promises_little(monkeypatch, loss):
    problem = with_l1(loss, C=3.0, n=300)
    taken = lengths_of(monkeypatch)
    step = Step(problem)
    step.certify()
    values = [objective(problem, step.run.w, step.run.b)]
    for enough in (np.inf, np.inf, 1e-3):
        step.improve(enough)
        values.append(objective(problem, step.run.w, step.run.b))
    assert values == sorted(values, reverse=True)
    assert step.n_iter == len(taken) > 3
    np.testing.assert_allclose(step.run.scores, dense(problem) @ step.run.w, atol=1e-12)
    with_more = Step(problem)
    with_more.improve(0.0)
    assert with_more.n_iter <= 8
    solved = ProximalNewton(tol=1e-10).solve(problem)
    assert values[-1] - solved.primal <= 1e-2


def test_with_chosen_columns_all_other_weights_stay():
    problem = with_l1(C=3.0)
    w = np.array([0.3, -0.2, 0.0, 0.5, 0.0, 1.0])
    step = Step(problem, w, 0.4)
    step.improve(1e-9, np.array([1, 4]))
    same = [0, 2, 3, 5]
    np.testing.assert_array_equal(step.run.w[same], w[same])
    assert (step.run.w[[1, 4]] != w[[1, 4]]).all()
    np.testing.assert_allclose(step.run.scores, dense(problem) @ step.run.w, atol=1e-12)
    X, (_, a, _) = dense(problem), slack(problem, step.run.w, step.run.b)
    pull = X.T @ (a * problem.y)
    np.testing.assert_allclose(pull[[1, 4]], np.sign(step.run.w[[1, 4]]), atol=1e-6)
    assert a @ problem.y == pytest.approx(0.0, abs=1e-6)


def test_at_the_optimum_there_is_nothing_to_improve():
    problem = with_l1(C=1e-4)
    solved = ProximalNewton().solve(problem)
    step = Step(problem, solved.w, solved.b)
    step.run.b = solved.b
    step.improve(1e-12)
    assert step.n_iter <= 1  # the bias may move by rounding
    assert not step.run.w.any()


@pytest.mark.parametrize("promised", [0.0, 1.0, np.nan, -np.inf])
def test_a_direction_that_promises_nothing_is_not_gone(monkeypatch, promised):
    l1_step_is(monkeypatch, lambda: (promised, np.ones(6), 1.0))
    step = Step(with_l1())
    step.improve(1e-9)
    assert (step.n_iter, step.run.b, step.run.w.any()) == (0, 0.0, False)


@pytest.mark.parametrize(("length", "steps"), [(1.0, 8), (0.25, 8), (0.5, 8), (0.0, 1)])
def test_a_step_that_was_cut_makes_the_next_one_more_careful(monkeypatch, length, steps):
    problem = with_l1("squared_hinge", C=1.0)
    directions = [(k * np.array([0.2, -0.1, 0.3, 0.0, 0.1, -0.2]), 0.1 * k) for k in (1, 2, -4, 1, 3, -2, -1, 9)]
    ahead = iter(directions)
    l1_step_is(monkeypatch, lambda: (-1.0, *next(ahead)), length)
    step = Step(problem)
    step.run.damping = 1e-3
    step.improve(0.5)
    assert step.n_iter == steps
    assert step.run.damping == pytest.approx({1.0: 1e-11, 0.0: 1e-2}.get(length, 1e2))
    w, b, met = np.zeros(6), 0.0, np.zeros(80)
    for dw, db in directions[:steps]:  # the largest curvature met at the far end of a step that was cut
        met = np.maximum(met, slack(problem, w + dw, b + db)[2])
        w, b = w + length * dw, b + length * db
    last = slack(problem, step.run.w + (1.0 - length) * dw, step.run.b + (1.0 - length) * db)[2]
    assert length == 0.0 or (last < met).any()  # the last step alone does not say it
    np.testing.assert_array_equal(step.run.expected, met if length < 0.5 else [0.0])
    np.testing.assert_allclose(np.append(step.run.w, step.run.b), np.append(w, b), atol=1e-15)
    np.testing.assert_allclose(step.run.scores, dense(problem) @ w, atol=1e-14)


def test_a_weight_of_zero_has_no_sign(monkeypatch):
    w = np.array([0.1, -0.3, -0.0, 0.7, -0.0, 0.0])
    l1_step_is(monkeypatch, lambda: (-1.0, np.where(w == 0.0, -0.0, -w), 0.0), 1.0)
    step = Step(with_l1(), w)
    step.improve(2.0)
    assert step.n_iter == 1
    assert not np.signbit(step.run.w).any()

"""The l1 penalty step by step: the certified point, the columns of a step, and the minimiser of its model."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

from maxmargin import Problem
from maxmargin.solvers import proximal
from maxmargin.solvers.proximal import ProximalNewton
from tests.solvers.inside import (
    BIASES,
    HOW,
    SMOOTH,
    Step,
    core_calls,
    dense,
    l1_jump_is,
    l1_setting,
    objective,
    slack,
    with_l1,
)


def every_model_is_as_low(monkeypatch):
    l1_setting(monkeypatch, "_model", lambda *_: 0.0)


def too_few_sweeps(monkeypatch, times):
    """The first so many calls make one sweep instead of thirty."""
    core, seen = proximal._core.lasso_sweeps, []

    def sweeps(*given):
        seen.append(1)
        if len(seen) > times:
            return core(*given)
        core(*given[:6], 1, *given[7:])
        return given[6]

    monkeypatch.setattr(proximal._core, "lasso_sweeps", sweeps)
    return seen


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("bias", BIASES)
def test_the_multipliers_of_any_hyperplane_are_scaled_until_no_column_pulls_with_more_than_one(loss, bias):
    problem = with_l1(loss, C=5.0, **BIASES[bias])
    w = np.array([0.3, -0.2, 0.0, 0.5, 0.0, 1.0])
    step = Step(problem, w, 0.0 if bias == "none" else 0.7)
    point, slopes = step.certify()
    X, y = dense(problem), problem.y
    assert point.primal == pytest.approx(objective(problem, w, point.b), rel=1e-12)
    if bias == "free":  # no other bias is better
        assert minimize_scalar(lambda b: objective(problem, w, b)).fun == pytest.approx(point.primal, rel=1e-10)
    else:
        assert point.b == step.run.b
    alpha = slack(problem, w, point.b)[1]
    np.testing.assert_allclose(slopes, X.T @ (alpha * y), atol=1e-9)
    most = np.abs(slopes).max()
    assert most > 1.0
    np.testing.assert_allclose(point.alpha, alpha / most, rtol=1e-8)
    np.testing.assert_allclose(point.induced, X.T @ (point.alpha * y), atol=1e-12)
    assert 1.0 - 1e-8 < np.abs(point.induced).max() < 1.0
    assert point.dual <= point.primal
    inside = Step(with_l1(loss, C=1e-4, **BIASES[bias]))
    point, slopes = inside.certify()
    np.testing.assert_array_equal(point.induced, slopes)  # pulls with less than 1 already


def test_the_best_point_is_the_one_of_the_least_gap():
    problem = with_l1(C=1.0)
    good = ProximalNewton().solve(problem)
    step = Step(problem, good.w, good.b)
    first, _ = step.certify()
    step.move_to(good.w + 1.0, good.b)
    assert step.certify()[0].gap > first.gap
    assert step.best is first


def many_columns(d=300, layout=np.asarray):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((40, d)) < 0.4, rng.standard_normal((40, d)), 0.0)
    return Problem.from_arrays(layout(X), np.arange(40) % 2, penalty="l1", C=0.2)


@pytest.mark.parametrize(("used", "most", "size"), [(0, 6000, 100), (7, 6000, 107), (120, 6000, 240), (120, 150, 150)])
def test_columns_in_use_and_those_that_pull_most_are_chosen(monkeypatch, used, most, size):
    l1_setting(monkeypatch, "FEW_COLUMNS", 299)
    l1_setting(monkeypatch, "MOST_COLUMNS", most)
    problem = many_columns()
    w = np.zeros(300)
    w[np.random.default_rng(1).permutation(300)[:used]] = 0.01
    step = Step(problem, w)
    chosen = step.working_set()
    pull = np.abs(step.certify()[1])
    rest = np.flatnonzero(w == 0.0)
    wanted = np.append(np.flatnonzero(w), rest[np.argsort(-pull[rest])[: size - used]])
    np.testing.assert_array_equal(chosen, np.sort(wanted))


def test_few_columns_are_all_chosen(monkeypatch):
    everything = slice(None)
    assert Step(many_columns()).working_set() == everything
    l1_setting(monkeypatch, "FEW_COLUMNS", 50)
    assert Step(many_columns(100)).working_set() == everything
    assert len(Step(many_columns(101)).working_set()) == 100


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, lambda X: np.float32(X)])
def test_chosen_columns_are_those_of_the_rows(layout):
    problem = many_columns(layout=layout)
    step, X = Step(problem), dense(problem)
    for chosen in (np.array([3, 4, 200]), np.array([0, 299]), slice(None)):
        rows = step.columns(chosen)
        w = np.random.default_rng(0).standard_normal(X[:, chosen].shape[1])
        np.testing.assert_allclose(rows.scores(w, HOW), X[:, chosen] @ w, atol=1e-6 if X.dtype == np.float32 else 1e-12)


def model_of(step, damping):
    """g and H of the quadratic model at the present point, by dense arithmetic."""
    problem, run = step.run.problem, step.run
    _, a, c = slack(problem, run.w, run.b)
    c = problem.cost * np.maximum(c / problem.cost, run.expected)
    wide = dense(problem)
    if problem.bias.value:
        wide = np.column_stack([wide, np.full(len(wide), problem.bias.value)])
    H, g = wide.T @ (c[:, None] * wide), -wide.T @ (a * problem.y)
    if problem.bias.penalised:
        g[-1] += run.b / problem.bias.value
        H[-1, -1] += 1.0
    return H + np.diag(damping * np.diag(H)), g


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("expected", [False, True])
@pytest.mark.parametrize("damping", [1e-12, 0.5])
def test_the_direction_minimises_the_model_with_its_penalty(loss, bias, expected, damping):
    problem = with_l1(loss, C=0.5, **BIASES[bias])
    w = np.array([0.3, -0.2, 0.0, 0.5, 0.0, 1.0])
    step = Step(problem, w, 0.0 if bias == "none" else 0.4)
    step.run.damping = damping
    if expected:
        step.run.expected = np.random.default_rng(2).choice([0.0, 0.1, 3.0], 80)
    H, g = model_of(step, damping)
    promised, dw, db = step.direction(w, 1e-10)
    value = problem.bias.value
    move = np.append(dw, db / value) if value else dw
    slope, after = g + H @ move, w + dw
    used = np.append(after != 0.0, value != 0.0) if value else after != 0.0
    sign = np.append(np.sign(after), 0.0) if value else np.sign(after)
    np.testing.assert_allclose((slope + sign)[used], 0.0, atol=1e-8)
    assert (np.abs(slope[~used]) <= 1.0 + 1e-8).all()
    assert promised == pytest.approx(g @ move + np.abs(after).sum() - np.abs(w).sum(), rel=1e-8)
    assert promised < 0.0


def test_a_column_without_numbers_and_a_bias_that_no_row_holds_do_not_move():
    X = np.array([[0.0, 2.0], [0.0, -3.0], [0.0, 2.5]])
    problem = Problem.from_arrays(X, [1, 0, 1], penalty="l1", C=0.5)
    step = Step(problem, [0.0, 5.0], 0.0)  # no row has slack: nothing bends
    promised, dw, db = step.direction(np.array([0.0, 5.0]), 1e-8)
    assert dw[0] == 0.0
    assert db == 0.0
    assert (dw[1], promised) == (-5.0, -5.0)  # what needs no weight loses it


def test_weights_that_stay_at_zero_have_no_direction(monkeypatch):
    sweeps = core_calls(monkeypatch, "lasso_sweeps")
    step = Step(with_l1(C=1e-4, **BIASES["none"]))
    promised, dw, db = step.direction(np.zeros(6), 1e-8)
    assert (promised, dw.any(), db) == (0.0, False, 0.0)
    assert len(sweeps) == 1


def test_sweeps_go_on_where_they_were_too_few_to_find_the_support(monkeypatch):
    problem = with_l1("logistic", C=0.5, d=12)
    w = np.zeros(12)
    w[:3] = 0.2
    promised, dw, _ = Step(problem, w, 0.4).direction(w, 1e-10)
    sweeps = too_few_sweeps(monkeypatch, 4)
    again, other, _ = Step(problem, w, 0.4).direction(w, 1e-10)
    assert len(sweeps) > 4
    assert again == pytest.approx(promised, rel=1e-6)
    np.testing.assert_allclose(other, dw, atol=1e-5)


@pytest.mark.parametrize(("d", "most"), [(299, 400), (300, 40)])
def test_sweeps_and_jumps_that_never_agree_end(monkeypatch, d, most):
    X = np.random.default_rng(0).standard_normal((20, d))
    problem = Problem.from_arrays(X, np.arange(20) % 2, penalty="l1", C=1.0)
    l1_jump_is(monkeypatch, lambda *given: (given[4].copy(), False))
    every_model_is_as_low(monkeypatch)
    sweeps = core_calls(monkeypatch, "lasso_sweeps")
    Step(problem).direction(np.zeros(d), 1e-9)
    assert len(sweeps) == most


def test_a_jump_that_does_not_lower_the_model_is_not_with_l1(monkeypatch):
    problem = with_l1(C=0.5)
    w = np.array([0.3, -0.2, 0.0, 0.5, 0.0, 1.0])
    wanted = Step(problem, w, 0.4).direction(w, 1e-10)
    l1_jump_is(monkeypatch, lambda *given: (given[4] + 100.0, True))
    promised, dw, db = Step(problem, w, 0.4).direction(w, 1e-10)
    assert promised == pytest.approx(wanted[0], rel=0.01)
    np.testing.assert_allclose(np.append(dw, db), np.append(*wanted[1:]), atol=0.05)


def test_a_rough_model_needs_fewer_sweeps(monkeypatch):
    problem = with_l1("logistic", C=3.0, n=200, d=30)
    sweeps = core_calls(monkeypatch, "lasso_sweeps")
    counts = []
    for enough in (1e3, 1e-9):
        before = len(sweeps)
        Step(problem).direction(np.zeros(30), enough)
        counts.append(sum(sweeps[before:]))
    assert counts[0] < counts[1]

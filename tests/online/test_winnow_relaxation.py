"""Winnow's and the relaxation procedures' promises."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import BalancedWinnow, ConvergenceWarning, InputError, Perceptron, Relaxation, Winnow
from maxmargin import alternating_projections as projections
from maxmargin.theory import winnow
from tests.online.oracles import mixed, separable


def balanced_winnow(X, y, base, passes):
    plus, minus = np.ones(X.shape[1]), np.ones(X.shape[1])
    mistakes = []
    for _ in range(passes):
        made = 0
        for x, label in zip(X, y, strict=True):
            if label * (x @ (plus - minus)) <= 0:
                plus, minus = plus * base ** (label * x), minus * base ** (-label * x)
                made += 1
        mistakes.append(made)
    return plus - minus, mistakes


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_balanced_winnow_multiplies_and_equals_the_hyperbolic_sine(layout):
    X, y = mixed(np.random.default_rng(0), 40, 4)
    X = X / np.abs(X).max()
    w, mistakes = balanced_winnow(X, y, 1.3, 3)
    machine = BalancedWinnow(base=1.3, fit_intercept=False, shuffle=False, max_iter=3, tol=None).fit(layout(X), y)
    np.testing.assert_allclose(machine.coef_[0], w, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(machine.coef_[0], 2 * np.sinh(machine.exponent_[0] * math.log(1.3)), rtol=1e-12)
    assert machine.mistakes_per_pass_.tolist() == mistakes


def test_weights_that_would_overflow_are_scaled_and_decide_the_same():
    X, y = mixed(np.random.default_rng(1), 30, 3)
    X = 60 * X / np.abs(X).max()
    machine = BalancedWinnow(base=3.0, shuffle=False, max_iter=30, tol=None).fit(X, y)
    assert np.isfinite(machine.coef_).all()
    s, log_base = machine.exponent_[0], math.log(3.0)
    assert np.abs(s * log_base).max() > 710  # sinh would be infinite
    shift = np.abs(s * log_base).max() - 5
    small = np.exp(np.abs(s * log_base) - shift) * np.sign(s)
    np.testing.assert_allclose(machine.coef_[0] / machine.coef_[0].max(), small / small.max(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_of_winnow_is_never_exceeded(seed):
    rng = np.random.default_rng([seed, 7])
    for _ in range(40):
        X, y = separable(rng, gap=0.05)
        best = winnow(X, y)
        base = math.exp(best.constants["ln base"])
        machine = BalancedWinnow(base=base, max_iter=10**6, n_iter_no_change=None).fit(X, y)
        assert machine.mistakes_per_pass_[-1] == 0
        assert machine.n_mistakes_ <= best.value
        smaller = BalancedWinnow(base=math.sqrt(base), max_iter=10**6, n_iter_no_change=None).fit(X, y)
        assert smaller.n_mistakes_ <= smaller.mistake_bound_.value
    assert winnow(X, y, log_base=2.1 * best.constants["ln base"]) is None
    assert BalancedWinnow(max_iter=1, tol=None).fit(*mixed(rng, 60, 2)).mistake_bound_ is None


def test_irrelevant_columns_hardly_matter_to_winnow():
    winnows, perceptrons = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.choice([-1.0, 1.0], (3000, 1003))
        y = np.where(X[:, :3].sum(axis=1) > 0, 1, -1)  # three relevant columns among 1003
        settings = {"fit_intercept": False, "max_iter": 1, "tol": None, "random_state": seed}
        winnows.append(BalancedWinnow(base=math.exp(1 / 3), **settings).fit(X, y).n_mistakes_)
        perceptrons.append(Perceptron(**settings).fit(X, y).n_mistakes_)
    assert np.mean(winnows) < 0.25 * np.mean(perceptrons)


def test_positive_winnow_learns_disjunctions_and_refuses_negative_entries():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (400, 300)).astype(float)
    y = X[:, [4, 9]].any(axis=1)
    machine = Winnow(base=2.0, threshold=150.0, n_iter_no_change=None).fit(X, y)
    assert machine.score(X, y) == 1.0
    np.testing.assert_allclose(machine.coef_[0], 2.0 ** machine.exponent_[0])
    # Littlestone: at most about 2 + 2 r (log2(d) + 1) mistakes for r relevant columns, threshold d/2, factor 2.
    assert machine.n_mistakes_ <= 2 + 3 * 2 * (math.log2(300) + 1)
    with pytest.raises(InputError, match=r"Negative values.*-1"):
        Winnow().fit(-X, y)
    for options, message in [({"base": 1.0}, "greater than 1"), ({"base": -2.0}, "base"), ({"threshold": 0}, "thres")]:
        with pytest.raises(ValueError, match=message):
            Winnow(**options).fit(X, y)


@pytest.mark.parametrize("eta", [0.3, 1.0, 1.7])
def test_relaxation_never_moves_away_from_a_solution(eta):
    rng = np.random.default_rng(4)
    for _ in range(25):
        X, y = separable(rng, gap=0.2)
        Z = y[:, None] * np.hstack([X, np.ones((len(X), 1))])
        inside = Perceptron(margin=0.0, n_iter_no_change=None, max_iter=10**6).fit(X, y)
        solution = np.r_[inside.coef_[0], inside.intercept_]
        solution = solution / (Z @ solution).min() * 1.5  # every ⟨solution, z⟩ ≥ 1.5 > margin
        machine = Relaxation(eta=eta, trace=True, max_iter=200, n_iter_no_change=None).fit(X, y)
        path = np.hstack([machine.trace_.coef, machine.trace_.intercept[:, None]])
        path = np.vstack([np.zeros(path.shape[1]), path])
        distance = np.linalg.norm(path - solution, axis=1)
        assert (np.diff(distance) <= 1e-9 * distance[0]).all()
        assert machine.mistakes_per_pass_[-1] == 0  # margin > 0: separated after finitely many corrections


@pytest.mark.parametrize("eta", [0.3, 1.0, 1.7])
def test_a_corrected_row_keeps_a_share_of_its_residual(eta):
    X, y = separable(np.random.default_rng(5), 30, 3)
    Z = y[:, None] * np.hstack([X, np.ones((len(X), 1))])
    machine = Relaxation(eta=eta, margin=0.8, shuffle=False, trace=True, max_iter=3, tol=None).fit(X, y)
    before = np.zeros(4)
    for w, b, seen in zip(machine.trace_.coef, machine.trace_.intercept, machine.trace_.seen, strict=True):
        row, after = Z[(seen - 1) % len(y)], np.r_[w, b]
        assert row @ before <= 0.8
        assert row @ after - 0.8 == pytest.approx((1 - eta) * (row @ before - 0.8), abs=1e-9)
        before = after


def test_batch_relaxation_descends_to_a_solution():
    rng = np.random.default_rng(6)
    for _ in range(15):
        X, y = separable(rng, gap=0.2)
        machine = Relaxation(batch_size="all", eta=1.9, max_iter=10**5, n_iter_no_change=None).fit(X, y)
        assert (machine.predict(X) == y).all()
        assert machine.criteria(X, y)["J_p"] == 0.0


def test_criteria_are_the_textbooks():
    X, y = mixed(np.random.default_rng(7), 50, 2)
    machine = Relaxation(max_iter=2, tol=None).fit(X, y)
    Z = y[:, None] * np.hstack([X, np.ones((len(X), 1))])
    a = Z @ np.r_[machine.coef_[0], machine.intercept_]
    found = machine.criteria(sp.csr_array(X), y)
    assert found["J_p"] == pytest.approx(-a[a <= 0].sum())
    assert found["J_q"] == pytest.approx(np.square(a[a <= 0]).sum())
    short = a <= 1
    assert found["J_r"] == pytest.approx(0.5 * (np.square(a[short] - 1) / np.square(Z[short]).sum(axis=1)).sum())


def test_alternating_projections_need_a_start():
    X, y = separable(np.random.default_rng(8), 40, 3, gap=0.2)
    with pytest.raises(ValueError, match="coef_init"):
        projections().fit(X, y)
    machine = projections(shuffle=False, n_iter_no_change=None, max_iter=10**5)
    machine.fit(X, y, coef_init=[1.0, 1.0, 1.0], intercept_init=0.5)
    w = np.array([1.0, 1.0, 1.0, 0.5])
    Z = y[:, None] * np.hstack([X, np.ones((len(X), 1))])
    for _ in range(machine.n_iter_):
        for z in Z:
            w = w + z / (z @ z) * max(0.0, -(z @ w))
    np.testing.assert_allclose(np.r_[machine.coef_[0], machine.intercept_], w, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("options", [{"eta": 0.0}, {"eta": 2.0}, {"eta": -1.0}, {"margin": -1.0}])
def test_bad_parameters_are_named(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Relaxation(**options).fit([[-1.0], [1.0]], [0, 1])


def test_a_base_that_is_too_large_is_spoken_of():
    X, y = mixed(np.random.default_rng(9), 60, 3)
    with pytest.warns(ConvergenceWarning, match="smaller base"):
        BalancedWinnow(base=10.0, max_iter=30).fit(X, y)

"""Stochastic subgradients reach what the exact solvers prove; LMS, Hebb and Oja do as their theorems say."""

import warnings

import clarabel  # noqa: F401  (the independent solver behind tests.oracles)
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from maxmargin import (
    Adaline,
    AdalineRegressor,
    ConvergenceWarning,
    HebbRule,
    LeastSquaresRegressor,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    OjaRule,
    OnlineSVC,
    OnlineSVR,
)
from tests.online.oracles import descent, mixed, steps

LOSSES = {
    "hinge": (lambda m: np.maximum(0, 1 - m), lambda y, f: -y if y * f <= 1 else 0.0),
    "logistic": (lambda m: np.logaddexp(0, -m), lambda y, f: -y / (1 + np.exp(y * f))),
    "exponential": (lambda m: np.exp(-m), lambda y, f: -y * np.exp(-y * f)),
}


def risk(machine, X, y, rho, loss):
    w, b = machine.coef_.ravel(), machine.intercept_[0]
    return rho * w @ w + LOSSES[loss][0](y * (X @ w + b)).mean()


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_takes_the_steps_of_the_textbook(loss, layout, instruction_set):
    X, y = mixed(np.random.default_rng(0), 60, 3)
    X = X / np.abs(X).max()
    path = descent(X, y, LOSSES[loss][1], passes=3, eta=steps(0.5, 4.0), rho=0.02)
    options = {
        "loss": loss,
        "rho": 0.02,
        "eta0": 0.5,
        "schedule": "inverse",
        "t0": 4.0,
        "shuffle": False,
        "max_iter": 3,
    }
    machine = OnlineSVC(**options).fit(layout(X), y)
    np.testing.assert_allclose(machine.coef_[0], path[-1][0], rtol=1e-9)
    mean = OnlineSVC(average=True, **options).fit(layout(X), y)
    np.testing.assert_allclose(mean.coef_[0], np.mean([w for w, _ in path], axis=0), rtol=1e-9)


def exact_risk(X, y, rho, loss):
    n = len(y)
    if loss == "hinge":
        return LinearSVC(loss="hinge", C=1 / (2 * n * rho), tol=1e-9).fit(X, y).solution_.primal * 2 * rho
    if loss == "logistic":
        return LogisticRegression(C=1 / (2 * n * rho), tol=1e-9).fit(X, y).solution_.primal * 2 * rho

    def value(v):
        e = np.exp(-y * (X @ v[:-1] + v[-1]))
        slope = -(y * e) / n
        return rho * v[:-1] @ v[:-1] + e.mean(), np.r_[2 * rho * v[:-1] + X.T @ slope, slope.sum()]

    return minimize(value, np.zeros(X.shape[1] + 1), jac=True, tol=1e-12).fun


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_decreasing_steps_with_averaging_reach_the_exact_optimum(loss):
    X, y = mixed(np.random.default_rng(1), 300, 4)
    X = X / np.abs(X).max()
    rho, best = 0.02, exact_risk(X, y, 0.02, loss)
    found = [
        risk(OnlineSVC(loss=loss, rho=rho, average=True, max_iter=passes).fit(X, y), X, y, rho, loss)
        for passes in (3, 30, 1000)
    ]
    assert best <= min(found) + 1e-9
    assert found[2] <= best * 1.001
    assert found[2] <= found[0]


def test_constant_steps_reach_a_neighbourhood_that_shrinks_with_them():
    X, y = mixed(np.random.default_rng(2), 300, 4)
    X = X / np.abs(X).max()
    best = exact_risk(X, y, 0.02, "hinge")
    above = []
    for eta in (0.5, 0.05, 0.005):
        machine = OnlineSVC(rho=0.02, schedule="constant", eta0=eta, max_iter=1, warm_start=True).fit(X, y)
        values = []
        for k in range(int(60 / eta**0.5)):
            machine.set_params(random_state=k).fit(X, y)
            values.append(risk(machine, X, y, 0.02, "hinge"))
        above.append(np.mean(values[len(values) // 2 :]) - best)
    assert above[0] > above[1] > above[2] > 0


@pytest.mark.parametrize("batch", [8, "all"])
def test_summed_batches_minimise_with_rho_over_the_batch(batch):
    X, y = mixed(np.random.default_rng(3), 200, 3)
    X = X / np.abs(X).max()
    size = 200 if batch == "all" else batch
    rho = 0.8
    machine = OnlineSVC(
        rho=rho, batch_size=batch, reduction="sum", schedule="inverse", eta0=1.0 / size, t0=5.0, power_t=0.6,
        average=True, max_iter=4000 if batch == "all" else 400,
    ).fit(X, y)  # fmt: skip
    assert risk(machine, X, y, rho / size, "hinge") <= 1.01 * exact_risk(X, y, rho / size, "hinge")


def test_online_regression_reaches_the_exact_tube():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 4)) / 2
    y = X @ [1.0, -2.0, 0.0, 0.5] + 0.3 + 0.3 * rng.standard_normal(300)
    rho, epsilon = 0.01, 0.1
    exact = LinearSVR(C=1 / (2 * 300 * rho), epsilon=epsilon, tol=1e-9).fit(X, y).solution_.primal * 2 * rho
    machine = OnlineSVR(rho=rho, epsilon=epsilon, schedule="optimal", max_iter=500).fit(X, y)
    w, b = machine.coef_, machine.intercept_[0]
    value = rho * w @ w + np.maximum(0, np.abs(y - X @ w - b) - epsilon).mean()
    assert exact * (1 - 1e-9) <= value <= 1.002 * exact


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_l1_squared_tube_against_a_convex_solver(layout):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((200, 6)) / 2 * (rng.random((200, 6)) < 0.7)
    y = X @ [2.0, -1.0, 0.0, 0.0, 0.0, 0.3] + 0.5 + 0.2 * rng.standard_normal(200)
    rho, epsilon = 0.1, 0.02

    def value(w, b):
        return rho * np.abs(w).sum() + np.maximum(0, (y - X @ w - b) ** 2 - epsilon).mean()

    best = np.inf  # split w = p − q, smooth the corner ever less
    v = np.zeros(13)
    for sharp in (1e-2, 1e-4, 1e-6, 1e-8):

        def smooth(v, sharp=sharp):
            r = y - X @ (v[:6] - v[6:12]) - v[12]
            s = r * r - epsilon
            root = np.sqrt(s * s + sharp)
            g = (1 + s / root) / 2 * 2 * r / len(y)
            gw = -X.T @ g
            return rho * v[:12].sum() + ((s + root) / 2).mean(), np.r_[gw + rho, rho - gw, -g.sum()]

        found = minimize(
            smooth, v, jac=True, bounds=[(0, None)] * 12 + [(None, None)], method="L-BFGS-B", options={"maxiter": 5000}
        )
        v = found.x
        best = min(best, value(v[:6] - v[6:12], v[12]))
    options = {"loss": "squared_tube", "penalty": "l1", "rho": rho, "epsilon": epsilon, "eta0": 0.2, "t0": 10.0}
    machine = OnlineSVR(power_t=0.7, max_iter=2000, **options).fit(layout(X), y)
    assert best * (1 - 1e-6) <= value(machine.coef_, machine.intercept_[0]) <= 1.005 * best
    last = OnlineSVR(power_t=0.7, average=False, max_iter=300, **options).fit(layout(X), y)
    assert np.abs(last.coef_[2:5]).max() < 0.01
    assert (last.coef_[2:5] == 0.0).any()  # exactly 0, not nearly


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_gradient_descent_turns_towards_the_largest_margin(loss):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((40, 2))
    y = np.where(X @ [1.0, 0.4] > 0, 1, -1)
    X = X + 0.3 * y[:, None] * np.array([1.0, 0.4])
    widest = LinearSVC(C=np.inf, loss="hinge", fit_intercept=False).fit(X, y).coef_[0]
    angles = []
    for passes in (10**3, 10**4, 10**5):
        machine = OnlineSVC(
            loss=loss, rho=0.0, schedule="constant", eta0=0.1, fit_intercept=False, batch_size="all", max_iter=passes
        ).fit(X, y)
        w = machine.coef_[0]
        angles.append(np.arccos(min(1.0, w @ widest / np.linalg.norm(w) / np.linalg.norm(widest))))
    assert (np.diff(angles) < 0).all()
    assert angles[-1] < 0.8 * angles[0]


def test_lms_tends_to_the_least_squares_solution():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((100, 3))
    y = X @ [1.0, -1.0, 2.0] + 0.5 + 0.5 * rng.standard_normal(100)
    exact = LeastSquaresRegressor().fit(X, y)
    target = np.r_[exact.coef_, exact.intercept_]
    spread = []
    for eta in (0.05, 0.005):
        ends = []
        for seed in range(60):
            machine = AdalineRegressor(eta0=eta, shuffle="replacement", max_iter=60, random_state=seed).fit(X, y)
            ends.append(np.r_[machine.coef_, machine.intercept_])
        ends = np.array(ends)
        spread.append(ends.std(axis=0).max())
        assert np.abs(ends.mean(axis=0) - target).max() < 5 * spread[-1] / np.sqrt(60) + 0.02
    assert spread[1] < 0.5 * spread[0]
    machine = AdalineRegressor(schedule="inverse", t0=500.0, max_iter=3000, random_state=0).fit(X, y)
    np.testing.assert_allclose(np.r_[machine.coef_, machine.intercept_], target, atol=0.01)


@pytest.mark.parametrize("kind", [Adaline, AdalineRegressor])
def test_a_step_that_is_too_large_is_reported_with_the_admissible_one(kind):
    X, y = mixed(np.random.default_rng(8), 60, 3)
    X = 10 * X / np.abs(X).max()
    largest = np.square(X).sum(axis=1).max() + 1
    with pytest.warns(ConvergenceWarning, match=rf"diverged.*{2 / largest:.3g}"):
        kind(eta0=3.0, max_iter=1000).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind(eta0=1.9 / largest, max_iter=200).fit(X, y)
        kind(max_iter=200).fit(X, y)


def test_hebb_diverges_and_says_so_while_oja_finds_the_leading_direction():
    rng = np.random.default_rng(9)
    A = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    X = rng.standard_normal((2000, 4)) * [3.0, 1.5, 1.0, 0.5] @ A.T + 5.0
    leading = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][0]
    with pytest.warns(ConvergenceWarning, match="without limit"):
        hebb = HebbRule(max_iter=3).fit(X)
    assert hebb.norm_ > 1e3
    with pytest.warns(ConvergenceWarning, match="OjaRule"):
        HebbRule(max_iter=100).fit(X)
    oja = OjaRule().fit(X)
    assert abs(oja.components_[0] @ leading) > 0.999
    assert oja.norm_ == pytest.approx(1.0, abs=0.02)
    np.testing.assert_allclose(oja.transform(X)[:, 0], (X - X.mean(axis=0)) @ oja.components_[0])
    assert oja.get_feature_names_out().tolist() == ["ojarule0"]
    with pytest.warns(ConvergenceWarning, match=r"diverged.*safe"):
        OjaRule(eta0=10.0, schedule="constant").fit(100 * X)


def test_oja_takes_the_steps_of_the_textbook():
    X = np.random.default_rng(10).standard_normal((50, 3))
    start = np.array([0.5, 0.5, 0.5])
    w = start.copy()
    for x in X:
        f = w @ x
        w = w + 0.1 * f * (x - f * w)
    machine = OjaRule(eta0=0.1, schedule="constant", center=False, shuffle=False, max_iter=1).fit(X, coef_init=start)
    np.testing.assert_allclose(machine.components_[0], w, rtol=1e-10)
    hebb = HebbRule(eta0=0.01, center=False, shuffle=False).fit(X, coef_init=start)
    v = start.copy()
    for x in X:
        v = v + 0.01 * (v @ x) * x
    np.testing.assert_allclose(hebb.components_[0], v, rtol=1e-10)
    with pytest.raises(ValueError, match="not all 0"):
        OjaRule().fit(X, coef_init=np.zeros(3))
    assert not hasattr(OjaRule(), "partial_fit")

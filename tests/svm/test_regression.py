"""LinearSVR as people use it."""

import os
import pickle
import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVR as SklearnLinearSVR
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import ConvergenceWarning, LinearSVR, Status
from maxmargin.certificates import Outcome
from maxmargin.svm.progress import reporting_to
from tests.oracles import Form

LOSSES = {"epsilon_insensitive": 1.0, "squared_epsilon_insensitive": 2.0}


@parametrize_with_checks([LinearSVR(), LinearSVR(loss="squared_epsilon_insensitive"), LinearSVR(epsilon=0.1)])
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def noisy(n=200, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + 3.0 + rng.standard_normal(n)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
@pytest.mark.parametrize("C", [0.01, 10.0])
def test_objective_against_clarabel(loss, epsilon, C):
    X, y = noisy(100, 3)
    machine = LinearSVR(loss=loss, epsilon=epsilon, C=C).fit(X, y)
    form = Form("error", LOSSES[loss], epsilon)
    cost = np.full(len(y), C)
    assert machine.solution_.primal == pytest.approx(form.solve(X, y, cost).value, rel=1e-6)
    assert machine.solution_.primal == pytest.approx(
        form.objective(X, y, cost, machine.coef_, machine.intercept_), rel=1e-9
    )
    assert machine.certificate_.verify(X, y)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_penalised_bias_equals_liblinear(loss, epsilon):
    X, y = noisy()
    ours = LinearSVR(loss=loss, epsilon=epsilon, penalize_intercept=True, intercept_scaling=2.0).fit(X, y)
    theirs = SklearnLinearSVR(
        random_state=0, loss=loss, epsilon=epsilon, intercept_scaling=2.0, tol=1e-8, max_iter=10**6, dual=True
    )
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_worse_than_liblinear_without_a_penalty_on_the_bias(loss):
    X, y = noisy()
    ours = LinearSVR(loss=loss, epsilon=0.2).fit(X, y)
    theirs = SklearnLinearSVR(
        random_state=0, loss=loss, epsilon=0.2, intercept_scaling=30.0, tol=1e-7, max_iter=10**6, dual=True
    )
    theirs.fit(X, y)
    a, b = (
        Form("error", LOSSES[loss], 0.2).objective(X, y, np.ones(len(y)), m.coef_, m.intercept_) for m in (ours, theirs)
    )
    assert a <= b * (1 + 1e-9)
    assert a == pytest.approx(b, rel=1e-3)


def test_tube_and_multipliers():
    X, y = noisy()
    machine = LinearSVR(epsilon=0.5, C=2.0).fit(X, y)
    alpha, error = machine.solution_.alpha, y - machine.predict(X)
    assert np.all(alpha[np.abs(error) < 0.5 - 1e-9] == 0.0)
    assert np.all(alpha[error > 0.5 + 1e-9] == 2.0)
    assert np.all(alpha[error < -0.5 - 1e-9] == -2.0)
    free = (alpha != 0.0) & (np.abs(alpha) < 2.0)
    assert free.any()
    np.testing.assert_allclose(np.abs(error[free]), 0.5, atol=1e-9)
    assert np.array_equal(machine.support_, np.flatnonzero(alpha))
    assert machine.dual_coef_.shape == (1, len(machine.support_))
    np.testing.assert_allclose(machine.dual_coef_[0] @ X[machine.support_], machine.coef_, rtol=1e-9)
    assert machine.dual_coef_.sum() == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(machine.slacks(X, y), np.maximum(0.0, np.abs(error) - 0.5))


def test_squared_multipliers_are_twice_the_priced_excess():
    X, y = noisy()
    machine = LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.5, C=2.0).fit(X, y)
    error = y - machine.predict(X)
    np.testing.assert_allclose(machine.solution_.alpha, 4.0 * np.sign(error) * machine.slacks(X, y), atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_tube_around_all_rows_needs_no_weights(loss):
    X, y = noisy(50)
    machine = LinearSVR(loss=loss, epsilon=1.01 * np.ptp(y) / 2).fit(X, y)
    np.testing.assert_allclose(machine.coef_, 0.0, atol=1e-12)
    assert np.abs(y - machine.predict(X)).max() <= machine.epsilon
    assert machine.certificate_.verify(X, y)


def test_the_absolute_error_finds_the_median():
    y = np.array([1.0, 2.0, 3.0, 10.0, 100.0])
    assert LinearSVR().fit(np.zeros((5, 1)), y).predict([[0.0]]) == pytest.approx(3.0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["interior_point", "dual_cd", "newton"])
def test_solvers_agree(loss, solver):
    X, y = noisy()
    options = {"loss": loss, "epsilon": 0.2, "tol": 1e-9}
    one, other = LinearSVR(**options).fit(X, y), LinearSVR(solver=solver, **options).fit(X, y)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-4)
    assert one.solution_.primal == pytest.approx(other.solution_.primal, rel=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_weight_equals_repetition(loss):
    X, y = noisy()
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = LinearSVR(loss=loss).fit(X, y, weight)
    repeated = LinearSVR(loss=loss).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6, atol=1e-7)
    assert weighted.certificate_.verify(X, y, weight)
    assert not weighted.certificate_.verify(X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_and_float32(loss):
    X, y = noisy()
    X = np.where(np.abs(X) < 0.7, 0.0, X).astype(np.float32)
    expected = LinearSVR(loss=loss).fit(X.astype(np.float64), y)
    for layout in (X, sp.csr_array(X), sp.csc_array(X.astype(np.float64)), np.asfortranarray(X), X.tolist()):
        machine = LinearSVR(loss=loss).fit(layout, y)
        np.testing.assert_allclose(machine.coef_, expected.coef_, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(machine.predict(layout), expected.predict(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n_threads", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_same_bits_for_any_threads(loss, n_threads):
    X, y = noisy(9000, 10)
    one, many = (LinearSVR(loss=loss, n_threads=t).fit(X, y) for t in (1, n_threads))
    assert one.coef_.tobytes() == many.coef_.tobytes()


@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_and_iteration_limit(loss):
    X, y = noisy(1000, 6)
    cold = LinearSVR(loss=loss, epsilon=0.3).fit(X, y)
    machine = LinearSVR(loss=loss, epsilon=0.3, max_iter=1, warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y)
    assert machine.certificate_.verify(X, y).outcome is not Outcome.REJECTED
    machine.set_params(max_iter=10000).fit(X, y)
    assert machine.solution_.primal == pytest.approx(cold.solution_.primal, rel=1e-6)
    machine.fit(X, y)
    assert machine.n_iter_ <= cold.n_iter_
    with pytest.warns(UserWarning, match="had 1000 rows, this one has 900"):
        machine.fit(X[:900], y[:900])


@pytest.mark.parametrize("loss", LOSSES)
def test_time_limit_leaves_a_certified_model(loss):
    X, y = noisy(20_000, 200)
    machine = LinearSVR(loss=loss, C=100.0, max_seconds=0.001)
    with pytest.warns(ConvergenceWarning, match=r"time limit .* Raise max_seconds"):
        machine.fit(X, y)
    assert machine.certificate_.verify(X, y).outcome is not Outcome.REJECTED
    assert machine.solution_.status is Status.TIME_LIMIT


def test_ctrl_c_keeps_a_usable_model():
    X, y = noisy(2000, 20)
    machine = LinearSVR(C=1e3, epsilon=0.01, solver="interior_point")

    def press(iteration, gap, seconds):
        if iteration == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with reporting_to(press), pytest.raises(KeyboardInterrupt):
        machine.fit(X, y)
    assert machine.solution_.status is Status.INTERRUPTED
    assert machine.certificate_.verify(X, y).outcome is not Outcome.REJECTED


ERRORS = [
    ({"epsilon": -0.1}, "epsilon must be a number from 0"),
    ({"epsilon": np.nan}, "epsilon must be"),
    ({"epsilon": np.inf}, "epsilon must be"),
    ({"epsilon": "small"}, "epsilon must be"),
    ({"epsilon": True}, "epsilon must be"),
    ({"epsilon": None}, "epsilon must be"),
    ({"C": 0.0}, "C must be"),
    ({"C": np.inf}, "C must be a finite number"),
    ({"loss": "hinge"}, "loss must be one of"),
    ({"loss": 1.5}, "loss must be one of"),
    ({"solver": "proximal_newton"}, "cannot solve"),
    ({"dual": "no"}, "dual must be"),
]


@pytest.mark.parametrize(("options", "message"), ERRORS)
def test_bad_parameters_raise(options, message):
    with pytest.raises(ValueError, match=message):
        LinearSVR(**options).fit(*noisy(10))


def test_bad_targets_raise_and_name_the_row():
    X, y = noisy(10)
    for value in (np.nan, np.inf):
        broken = y.copy()
        broken[7] = value
        with pytest.raises(ValueError, match="7"):
            LinearSVR().fit(X, broken)
    with pytest.raises(ValueError, match="y"):
        LinearSVR().fit(X, ["a"] * 10)
    with pytest.raises(ValueError, match="requires y"):
        LinearSVR().fit(X, None)
    with pytest.raises(ValueError, match="9"):
        LinearSVR().fit(X, y[:9])
    with pytest.raises(ValueError, match=r"[Cc]omplex"):
        LinearSVR().fit(X, y + 1j)


def test_certificate_rejects_changes():
    from dataclasses import replace

    X, y = noisy()
    claim = LinearSVR(epsilon=0.2).fit(X, y).certificate_
    assert claim.verify(X, y)
    assert not replace(claim, coef=1.001 * claim.coef).verify(X, y)
    assert not replace(claim, intercept=claim.intercept + 1e-3).verify(X, y)
    assert not replace(claim, alpha=0.999 * claim.alpha).verify(X, y)
    assert not replace(claim, epsilon=0.21).verify(X, y)
    assert not replace(claim, C=1.01).verify(X, y)
    assert not replace(claim, dual=claim.primal, gap=0.0).verify(X, 1.01 * y)
    assert not claim.verify(X, np.roll(y, 1))
    assert not claim.verify(X[:-1], y[:-1])


def test_lives_in_pickles_and_sparse_weights():
    X, y = noisy()
    machine = LinearSVR().fit(X, y)
    expected = machine.predict(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(machine)).predict(X), expected)
    np.testing.assert_allclose(machine.sparsify().predict(sp.csr_array(X)), expected)
    np.testing.assert_allclose(machine.densify().predict(X), expected)

"""SVR: the same functions as LIBSVM's, in scikit-learn's layouts, with more digits."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVR, ConvergenceWarning, LinearSVR
from tests.svm.kernel_data import assert_alike, dense, gaussian, rows_and_numbers


@parametrize_with_checks(
    [
        SVR(tol=1e-10),
        SVR(kernel="linear", loss="squared_epsilon_insensitive", tol=1e-10),
        SVR(kernel="precomputed", tol=1e-10),
    ]
)
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "options",
    [{"gamma": 0.05}, {"kernel": "linear", "epsilon": 0.5}, {"kernel": "poly", "coef0": 1.0, "gamma": 0.05, "C": 0.1}],
    ids=str,
)
def test_the_same_function_as_libsvm(options, layout):
    X, y = rows_and_numbers()
    X = layout(X)
    ours, theirs = SVR(**options, tol=1e-9).fit(X, y), sklearn.svm.SVR(**options, tol=1e-8).fit(X, y)
    assert_alike(ours, theirs, atol=2e-3)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3)
    assert isinstance(ours.n_iter_, int)
    assert ours.shape_fit_ == theirs.shape_fit_
    if options.get("kernel") == "linear":
        np.testing.assert_allclose(dense(ours.coef_), dense(theirs.coef_), atol=1e-3)


def test_the_squared_error_is_that_of_the_linear_machine():
    X, y = rows_and_numbers()
    options = {"loss": "squared_epsilon_insensitive", "epsilon": 0.3, "C": 0.5}
    kernel, linear = SVR(kernel="linear", **options).fit(X, y), LinearSVR(**options).fit(X, y)
    np.testing.assert_allclose(kernel.coef_[0], linear.coef_, atol=2e-3)
    np.testing.assert_allclose(kernel.objective_, linear.solution_.primal, rtol=1e-6)
    assert len(kernel.bounded_) == 0


def test_given_values_and_functions_are_the_kernel():
    X, y = rows_and_numbers()
    K = gaussian(0.1, X, X)
    expected = SVR(gamma=0.1, tol=1e-9).fit(X, y)
    given = SVR(kernel="precomputed", tol=1e-9).fit(K, y)
    function = SVR(kernel=lambda X, Z: gaussian(0.1, X, Z), tol=1e-9).fit(X, y)
    np.testing.assert_allclose(given.predict(K), expected.predict(X), atol=1e-3)
    np.testing.assert_allclose(function.predict(X), expected.predict(X), atol=1e-3)
    np.testing.assert_array_equal(given.violating_, expected.violating_)


def test_rows_lie_inside_the_tube_on_its_border_or_outside():
    X, y = rows_and_numbers()
    machine = SVR(epsilon=0.4, tol=1e-9).fit(X, y)
    error = y - machine.predict(X)
    free, bounded = machine.free_, machine.bounded_
    np.testing.assert_array_equal(np.sort(np.concatenate([free, bounded])), machine.support_)
    np.testing.assert_allclose(np.abs(error[free]), 0.4, atol=1e-3)
    assert np.all(np.abs(error[bounded]) > 0.4 - 1e-3)
    assert np.all(np.abs(np.delete(error, machine.support_)) < 0.4 + 1e-3)
    np.testing.assert_array_equal(machine.violating_, bounded[np.abs(error[bounded]) > 0.4 + 1e-9])
    np.testing.assert_array_equal(np.sign(machine.dual_coef_[0]), np.sign(error[machine.support_]))


def test_weight_equals_repetition():
    X, y = rows_and_numbers()
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = SVR(tol=1e-10).fit(X, y, weight)
    repeated = SVR(tol=1e-10).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-4)
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-8)


def test_a_tube_that_holds_all_rows_leaves_a_constant():
    X, y = rows_and_numbers()
    for rows in (X, sp.csr_array(X)):
        machine = SVR(kernel="linear", epsilon=100.0).fit(rows, y)
        assert machine.support_.shape == (0,)
        assert machine.dual_coef_.shape == (1, 0)
        np.testing.assert_array_equal(machine.predict(rows), machine.intercept_[0])
        assert not dense(machine.coef_).any()
        assert len(machine.violating_) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -0.1}, "epsilon must be"),
        ({"C": np.inf}, "C must be a finite number"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"shrinking": None}, "shrinking must be True or False"),
    ],
)
def test_bad_parameters(options, message):
    X, y = rows_and_numbers()
    with pytest.raises(ValueError, match=message):
        SVR(**options).fit(X, y)


def test_numbers_too_large_are_named():
    with pytest.raises(ValueError, match="scale y"):
        SVR(C=1e100).fit([[0.0], [1.0]], [1e50, -1e50])


def test_a_fit_that_was_stopped_goes_on():
    X, y = rows_and_numbers()
    machine = SVR(C=100.0, max_iter=1, warm_start=True)
    with pytest.warns(ConvergenceWarning, match="the iteration limit was reached first"):
        machine.fit(X, y)
    assert machine.fit_status_ == 1
    machine.set_params(max_iter=-1).fit(X, y)
    np.testing.assert_allclose(machine.predict(X), SVR(C=100.0).fit(X, y).predict(X), atol=2e-2)

"""NuSVC and NuSVR: what ν promises, and the same machines as LIBSVM's."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, SVR, NuSVC, NuSVR
from tests.svm.kernel_data import assert_alike, gaussian, rows_and_labels, rows_and_numbers


def infeasible(estimator):
    """ν may be no more than twice the share of the smaller class, which that check makes next to nothing."""
    why = "class weights of 1000 and 0.0001 leave no feasible nu"
    return {"check_class_weight_classifiers": why} if isinstance(estimator, NuSVC) else {}


@parametrize_with_checks(
    [
        NuSVC(nu=0.1, break_ties=True, tol=1e-10),
        NuSVC(nu=0.2, multi_class="ovr", tol=1e-10),
        NuSVR(tol=1e-11),
        NuSVR(kernel="precomputed", tol=1e-11),
    ],
    expected_failed_checks=infeasible,
)
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


# --- classes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", ["iris", "digits", "breast"])
@pytest.mark.parametrize("nu", [0.1, 0.4])
def test_the_same_machines_as_libsvm(name, nu, layout):
    X, y = rows_and_labels(name)
    X = layout(X)
    options = {"nu": nu, "gamma": 0.1, "decision_function_shape": "ovo"}
    ours, theirs = NuSVC(**options, tol=1e-8).fit(X, y), sklearn.svm.NuSVC(**options, tol=1e-8).fit(X, y)
    assert_alike(ours, theirs, atol=2e-2 * np.abs(ours.dual_coef_).max())
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-2)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("nu", [0.1, 0.3, 0.6])
def test_what_nu_bounds(nu):
    X, y = rows_and_labels("breast")
    machine = NuSVC(nu=nu, tol=1e-9).fit(X, y)
    n = len(y)
    assert len(machine.violating_) <= nu * n + 1e-6
    assert len(machine.support_) >= nu * n - 1e-6
    margin = np.where(y == machine.classes_[1], 1.0, -1.0) * machine.decision_function(X)
    np.testing.assert_allclose(margin[machine.free_], 1.0, atol=5e-3)
    assert np.all(margin[machine.bounded_] < 1.0 + 5e-3)


def test_it_is_the_machine_of_another_price():
    X, y = rows_and_labels("breast")
    machine = NuSVC(nu=0.2, gamma=0.05, tol=1e-9).fit(X, y)
    other = SVC(C=1.0 / machine.solution_.rho, gamma=0.05, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), other.decision_function(X), atol=1e-2)
    np.testing.assert_allclose(machine.margin_, other.margin_, rtol=1e-3)


@pytest.mark.parametrize("weight", [None, "first", "second"])
def test_infeasible_nu_names_the_class_and_what_would_do(weight):
    X, y = np.arange(10.0)[:, None], np.repeat(["few", "many"], [2, 8])
    weights = {"first": np.where(y == "few", 4.0, 1.0), "second": np.where(y == "many", 0.05, 1.0)}.get(weight)
    least, most = {None: ("few", 0.4), "first": ("many", 1.0), "second": ("many", 1.0 / 3.0)}[weight]
    if weight == "first":
        NuSVC(nu=1.0).fit(X, y, weights)
        return
    with pytest.raises(ValueError, match=rf"specified nu is infeasible.*class '{least}'.*Lower nu to {most:g}"):
        NuSVC(nu=most + 0.01).fit(X, y, weights)
    NuSVC(nu=most - 0.01).fit(X, y, weights)


def test_infeasible_nu_of_one_machine_per_class():
    X, y = rows_and_labels("iris")
    with pytest.raises(ValueError, match=r"specified nu is infeasible.*but class 'a'"):
        NuSVC(nu=0.9, multi_class="ovr").fit(X, y)
    assert NuSVC(nu=0.3, multi_class="ovr").fit(X, y).dual_coef_.shape[0] == 3


def test_nu_so_small_that_there_is_no_margin():
    """Both classes have the same rows: whatever ν, w = 0."""
    X, y = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0, 0, 1, 1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        machine = NuSVC(nu=0.5, kernel="linear").fit(X, y)
    assert any("nu=0.5 is too small" in str(warning.message) for warning in caught)
    np.testing.assert_allclose(machine.coef_, 0.0, atol=1e-9)


def test_class_weights_count():
    X, y = rows_and_labels("breast")
    weighted = NuSVC(nu=0.2, class_weight={"a": 3.0}, tol=1e-9).fit(X, y)
    by_rows = NuSVC(nu=0.2, tol=1e-9).fit(X, y, np.where(y == "a", 3.0, 1.0))
    plain = NuSVC(nu=0.2, tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(weighted.class_weight_, [3.0, 1.0])
    assert abs(weighted.decision_function(X) - plain.decision_function(X)).max() > 0.05
    by_rows = by_rows.set_params(gamma=weighted._gamma).fit(X, y, np.where(y == "a", 3.0, 1.0))
    np.testing.assert_allclose(weighted.decision_function(X), by_rows.decision_function(X), atol=1e-2)


def test_weight_equals_repetition():
    X, y = rows_and_labels("breast")
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = NuSVC(nu=0.3, tol=1e-10).fit(X, y, weight)
    repeated = NuSVC(nu=0.3, tol=1e-10).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=2e-3)


# --- numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("nu", [0.2, 0.7])
def test_the_same_function_as_libsvm(nu, layout):
    X, y = rows_and_numbers()
    X = layout(X)
    ours, theirs = (
        package(nu=nu, gamma=0.05, tol=tol).fit(X, y) for package, tol in ((NuSVR, 1e-9), (sklearn.svm.NuSVR, 1e-8))
    )
    assert_alike(ours, theirs, atol=5e-3)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=2e-3)
    assert isinstance(ours.n_iter_, int)


@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_the_tube_that_nu_asks_for(nu):
    X, y = rows_and_numbers()
    machine = NuSVR(nu=nu, C=2.0, tol=1e-9).fit(X, y)
    error = np.abs(y - machine.predict(X))
    assert np.count_nonzero(error > machine.epsilon_ + 1e-3) <= len(machine.violating_) <= nu * len(y) + 1e-6
    assert len(machine.support_) >= nu * len(y) - 1e-6
    np.testing.assert_allclose(error[machine.free_], machine.epsilon_, atol=2e-3)
    other = SVR(epsilon=machine.epsilon_, C=2.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(machine.predict(X), other.predict(X), atol=5e-3)


def test_given_values_are_the_kernel():
    X, y = rows_and_numbers()
    K = gaussian(0.1, X, X)
    given, own = NuSVR(kernel="precomputed", tol=1e-9).fit(K, y), NuSVR(gamma=0.1, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(given.predict(K), own.predict(X), atol=2e-3)
    X, y = rows_and_labels("iris")
    K = gaussian(0.1, X, X)
    given, own = NuSVC(kernel="precomputed", tol=1e-9).fit(K, y), NuSVC(gamma=0.1, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(given.decision_function(K), own.decision_function(X), atol=5e-3)


@pytest.mark.parametrize("nu", [0.0, -1.0, 1.5, np.nan, "half", True])
@pytest.mark.parametrize("machine", [NuSVC, NuSVR])
def test_nu_out_of_range(machine, nu):
    X, y = rows_and_labels("breast") if machine is NuSVC else rows_and_numbers()
    with pytest.raises(ValueError, match="nu must be a number above 0 and at most 1"):
        machine(nu=nu).fit(X, y)

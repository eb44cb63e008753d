"""OneClassSVM and SVDD: half-spaces and balls that hold most rows."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVDD, OneClassSVM
from tests.svm.kernel_data import assert_alike, gaussian, rows_and_numbers


@parametrize_with_checks(
    [
        OneClassSVM(tol=1e-11),
        OneClassSVM(kernel="linear", tol=1e-12),
        SVDD(tol=1e-11),
        SVDD(kernel="linear", nu=0.1, tol=1e-11),
    ]
)
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def some_rows():
    return rows_and_numbers()[0][:, :5]


# --- half-spaces ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("nu", [0.05, 0.5])
@pytest.mark.parametrize(
    "options", [{"gamma": 0.1}, {"kernel": "poly", "gamma": 0.5, "coef0": 1.0, "degree": 2}], ids=str
)
def test_the_same_half_space_as_libsvm(options, nu, layout):
    X = layout(some_rows())
    ours, theirs = (
        OneClassSVM(nu=nu, **options, tol=1e-9).fit(X),
        sklearn.svm.OneClassSVM(nu=nu, **options, tol=1e-8).fit(X),
    )
    size = np.abs(theirs.offset_[0])
    assert_alike(ours, theirs, atol=2e-3 * max(1.0, size))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3 * size)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-3 * size)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=1e-3)
    sure = np.abs(theirs.decision_function(X)) > 1e-3 * size
    np.testing.assert_array_equal(ours.predict(X)[sure], theirs.predict(X)[sure])


@pytest.mark.parametrize("machine", [OneClassSVM, SVDD])
@pytest.mark.parametrize("nu", [0.1, 0.5, 1.0])
def test_what_nu_bounds(machine, nu):
    X = some_rows()
    found = machine(nu=nu, tol=1e-9).fit(X)
    scores = found.decision_function(X)
    assert len(found.violating_) <= nu * len(X) + 1e-6
    assert len(found.support_) >= nu * len(X) - 1e-6
    small = 1e-4 * np.abs(scores).max()
    np.testing.assert_allclose(scores[found.free_], 0.0, atol=small)
    assert np.all(scores[found.bounded_] < small)
    assert np.all(np.delete(scores, found.support_) > -small)


def test_the_distance_from_the_origin():
    X = np.random.default_rng(0).standard_normal((50, 3)) + 5.0
    machine = OneClassSVM(kernel="linear", nu=0.1, tol=1e-9).fit(X)
    np.testing.assert_allclose(machine.margin_, machine.offset_ / np.linalg.norm(machine.coef_), rtol=1e-6)


@pytest.mark.parametrize("machine", [OneClassSVM, SVDD])
def test_weight_equals_repetition(machine):
    X = some_rows()
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = machine(nu=0.3, tol=1e-10).fit(X, sample_weight=weight)
    repeated = machine(nu=0.3, tol=1e-10).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-3)
    with pytest.raises(ValueError, match="every sample has weight zero"):
        machine().fit(X, sample_weight=np.zeros(len(X)))


@pytest.mark.parametrize("machine", [OneClassSVM, SVDD])
def test_given_values_and_functions_are_the_kernel(machine):
    X = some_rows()
    K = gaussian(0.2, X, X)
    expected = machine(gamma=0.2, tol=1e-9).fit(X)
    given = machine(kernel="precomputed", tol=1e-9).fit(K)
    function = machine(kernel=lambda X, Z: gaussian(0.2, X, Z), tol=1e-9).fit(sp.csr_array(X).toarray())
    sparse = machine(gamma=0.2, tol=1e-9).fit(sp.csr_array(X))
    size = np.abs(expected.decision_function(X)).max()
    for found, rows in ((given, K), (function, X), (sparse, X), (sparse, sp.csr_array(X))):
        np.testing.assert_allclose(found.decision_function(rows), expected.decision_function(X), atol=1e-4 * size)
        np.testing.assert_array_equal(found.violating_, expected.violating_)


@pytest.mark.parametrize("machine", [OneClassSVM, SVDD])
@pytest.mark.parametrize(
    "options", [{"nu": 0.0}, {"nu": 1.1}, {"tol": 0.0}, {"max_iter": 0}, {"kernel": "ball"}], ids=str
)
def test_bad_parameters(machine, options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        machine(**options).fit(some_rows())


def test_shrinking_must_be_a_truth_value():
    with pytest.raises(ValueError, match="shrinking must be True or False"):
        OneClassSVM(shrinking=2).fit(some_rows())


# --- balls ------------------------------------------------------------------------------------------------------


def test_where_all_rows_have_the_same_length_the_ball_is_the_half_space():
    X = some_rows()
    ball, half = SVDD(gamma=0.1, nu=0.2, tol=1e-9).fit(X), OneClassSVM(gamma=0.1, nu=0.2, tol=1e-9).fit(X)
    np.testing.assert_array_equal(ball.support_, half.support_)
    share = half.dual_coef_.sum()
    np.testing.assert_allclose(ball.dual_coef_, half.dual_coef_ / share, atol=1e-4)
    np.testing.assert_allclose(ball.decision_function(X), 2.0 * half.decision_function(X) / share, atol=1e-4)


@pytest.mark.parametrize(
    "rows", [[[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]], [[0.0, 1.0], [2.0, 1.0], [1.0, 1.3]]]
)
def test_the_smallest_ball_of_a_few_points(rows):
    machine = SVDD(kernel="linear", nu=1e-3).fit(rows)
    np.testing.assert_allclose(machine.coef_, [[1.0, 1.0]], atol=1e-3)
    assert machine.radius_**2 == pytest.approx(2.0 if len(rows) == 4 else 1.0, abs=1e-3)
    assert len(machine.violating_) == 0


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("nu", [0.05, 0.3])
def test_no_other_ball_is_better(kernel, nu):
    """Its own centre moved a little, or another radius, costs more."""
    X = some_rows()
    machine = SVDD(kernel=kernel, nu=nu, gamma=0.2, coef0=1.0, degree=2, tol=1e-10).fit(X)
    K = X @ X.T if kernel == "linear" else (0.2 * X @ X.T + 1.0) ** 2

    def objective(beta, radius):
        distance = K.diagonal() - 2.0 * K @ beta + beta @ K @ beta
        return radius**2 + np.maximum(0.0, distance - radius**2).sum() / (nu * len(X))

    beta = np.zeros(len(X))
    beta[machine.support_] = machine.dual_coef_[0]
    assert beta.sum() == pytest.approx(1.0)
    least, rng = objective(beta, machine.radius_), np.random.default_rng(0)
    for step in np.geomspace(1e-3, 0.3, 20):
        other = (1.0 - step) * beta + step * rng.dirichlet(np.ones(len(X)))
        assert objective(other, machine.radius_) >= least * (1.0 - 1e-6)
        assert objective(beta, machine.radius_ * (1.0 + step)) >= least * (1.0 - 1e-6)
        assert objective(beta, machine.radius_ * (1.0 - step)) >= least * (1.0 - 1e-6)
    np.testing.assert_allclose(machine.decision_function(X), machine.score_samples(X) - machine.offset_)
    np.testing.assert_allclose(-machine.score_samples(X), K.diagonal() - 2.0 * K @ beta + beta @ K @ beta, rtol=1e-8)


def test_given_values_must_have_one_value_on_the_diagonal():
    X = some_rows()
    with pytest.raises(ValueError, match="same value on the whole diagonal"):
        SVDD(kernel="precomputed").fit(X @ X.T)

"""SVC(probability=True): one steepness from held-out scores, and probabilities that agree with the decision."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, NuSVC
from tests.svm.kernel_data import gaussian, rows_and_labels
from tests.svm.test_multiclass import blobs

pytestmark = pytest.mark.filterwarnings("ignore:the probability parameter:FutureWarning")


@parametrize_with_checks([SVC(probability=True, tol=1e-10)])
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("machine", [SVC, NuSVC])
@pytest.mark.parametrize("value", [True, False])
def test_the_parameter_is_deprecated_as_in_scikit_learn(machine, value):
    X, y = rows_and_labels("breast")
    with pytest.warns(
        FutureWarning, match=rf"probability parameter is deprecated.*CalibratedClassifierCV.{machine.__name__}"
    ):
        machine(probability=value).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine().fit(X, y)


def test_whether_there_are_probabilities():
    X, y = rows_and_labels("breast")
    assert hasattr(SVC(probability=True), "predict_proba")
    for without in (SVC(), SVC(probability=False)):
        assert not hasattr(without, "predict_proba")
        assert not hasattr(without, "predict_log_proba")
        without.fit(X, y).probability = True
        with pytest.raises(NotFittedError, match="not available when fitted with probability=False"):
            without.predict_proba(X)


def test_two_classes_have_a_sigmoid_through_one_half():
    X, y = rows_and_labels("breast")
    machine = SVC(probability=True).fit(X, y)
    scores, p = machine.decision_function(X), machine.predict_proba(X)
    np.testing.assert_allclose(p[:, 1], 1.0 / (1.0 + np.exp(-machine.steepness_ * scores)), rtol=1e-12)
    machine.dual_coef_, machine.intercept_ = np.zeros_like(machine.dual_coef_), np.zeros(1)
    np.testing.assert_array_equal(machine.predict_proba(X[:2]), 0.5)


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("machine", [SVC(C=3.0), NuSVC(nu=0.4)], ids=["SVC", "NuSVC"])
def test_arg_max_is_predict(machine, scheme, k):
    X, y = blobs(80, 3, k)
    machine = type(machine)(**{**machine.get_params(), "multi_class": scheme, "probability": True})
    if scheme == "ovr" and k > 2 and isinstance(machine, NuSVC):
        machine.set_params(nu=0.2)
    machine.fit(X, y)
    more = np.random.default_rng(0).standard_normal((200, 3)) * np.geomspace(1e-3, 1e3, 200)[:, None]
    for rows in (X, more, np.zeros((1, 3))):
        p = machine.predict_proba(rows)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
        assert np.array_equal(machine.classes_[p.argmax(axis=1)], machine.predict(rows))
        with np.errstate(divide="ignore"):
            np.testing.assert_array_equal(machine.predict_log_proba(rows), np.log(p))


def test_better_than_ten_times_steeper_or_flatter():
    X, y = blobs(300, 4, 2, seed=5)
    machine = SVC(probability=True, C=100.0).fit(X[:150], y[:150])
    found, losses = machine.steepness_, []
    for factor in (0.1, 1.0, 10.0):
        machine.steepness_ = factor * found
        losses.append(log_loss(y[150:], machine.predict_proba(X[150:])))
    assert losses[1] < min(losses[0], losses[2])


def test_scores_of_rows_that_were_learned_from_say_nothing():
    """A narrow kernel fits every row: learned from, all scores are right; held out, they are not."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 5)), np.repeat([0, 1], 30)
    machine = SVC(gamma=1.0, C=1e3, probability=True).fit(X, y)
    assert machine.score(X, y) == 1.0
    assert machine.predict_proba(X).max() < 0.9


@pytest.mark.parametrize("k", [2, 3])
def test_weight_equals_repetition(k):
    X, y = blobs(60, 3, k)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = SVC(probability=True, gamma=0.5, tol=1e-9).fit(X, y, weight)
    repeated = SVC(probability=True, gamma=0.5, tol=1e-9).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-3)


def test_given_values_and_sparse_rows():
    X, y = rows_and_labels("iris")
    K = gaussian(0.5, X, X)
    dense, given, sparse = (
        SVC(probability=True, **options).fit(Z, y)
        for options, Z in (({"gamma": 0.5}, X), ({"kernel": "precomputed"}, K), ({"gamma": 0.5}, sp.csr_array(X)))
    )
    np.testing.assert_allclose(sparse.predict_proba(X), dense.predict_proba(X), atol=1e-3)
    assert given.steepness_ == pytest.approx(dense.steepness_, rel=0.5)  # other folds
    assert np.array_equal(given.predict(K), dense.predict(X))


def test_random_state_draws_the_folds_and_nothing_else():
    X, y = rows_and_labels("iris")
    machines = [SVC(probability=True, random_state=seed).fit(X, y) for seed in (None, 1, 1, 2)]
    steepness = [machine.steepness_ for machine in machines]
    assert steepness[1] == steepness[2]
    assert len(set(steepness)) == 3
    for machine in machines:
        np.testing.assert_array_equal(machine.dual_coef_, machines[0].dual_coef_)

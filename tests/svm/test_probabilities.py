"""LinearSVC(probability=True): one steepness, and probabilities that agree with the decision."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import LinearSVC
from maxmargin.svm.calibration import fit_steepness, log_probabilities
from tests.conftest import tall
from tests.svm.test_multiclass import blobs

SCHEMES = ["ovr", "ovo", "crammer_singer"]


@parametrize_with_checks([LinearSVC(probability=True)])
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_two_classes_have_a_sigmoid_through_one_half():
    X, y = tall(200, 3)
    machine = LinearSVC(probability=True).fit(X, y)
    assert machine.steepness_ > 0.0
    scores = machine.decision_function(X)
    p = machine.predict_proba(X)
    np.testing.assert_allclose(p[:, 1], 1.0 / (1.0 + np.exp(-machine.steepness_ * scores)), rtol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-15)
    machine.coef_, machine.intercept_ = np.zeros((1, 3)), np.zeros(1)  # score 0
    np.testing.assert_array_equal(machine.predict_proba(X[:2]), 0.5)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_arg_max_is_predict(scheme, k):
    X, y = blobs(80, 3, k)
    machine = LinearSVC(probability=True, multi_class=scheme).fit(X, y)
    more = np.random.default_rng(0).standard_normal((500, 3)) * np.geomspace(1e-9, 1e6, 500)[:, None]
    for rows in (X, more, np.zeros((1, 3))):
        p = machine.predict_proba(rows)
        assert p.shape == (len(rows), k)
        assert np.all((p >= 0.0) & (p <= 1.0))
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
        assert np.array_equal(machine.classes_[p.argmax(axis=1)], machine.predict(rows))
        with np.errstate(divide="ignore"):
            np.testing.assert_array_equal(machine.predict_log_proba(rows), np.log(p))


@pytest.mark.parametrize("k", [2, 3])
def test_ties_and_huge_scores_keep_the_decision(k):
    rng = np.random.default_rng(0)
    machine = LinearSVC(probability=True).fit(*blobs(120, 3, k))
    for scale in (0.0, 1e-300, 1e-17, 1.0, 1e5, 1e150):
        machine.coef_ = scale * np.round(rng.standard_normal(machine.coef_.shape))
        machine.intercept_ = scale * np.round(rng.standard_normal(machine.intercept_.shape))
        X = np.round(rng.standard_normal((300, 3)))
        p = machine.predict_proba(X)
        assert np.all((p >= 0.0) & (p <= 1.0))
        assert np.array_equal(machine.classes_[p.argmax(axis=1)], machine.predict(X)), scale


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
def test_better_than_ten_times_steeper_or_flatter(k, C):
    X, y = blobs(900, 4, k, seed=5)
    machine = LinearSVC(probability=True, C=C).fit(X[:450], y[:450])
    found = machine.steepness_
    losses = []
    for factor in (0.1, 1.0, 10.0):
        machine.steepness_ = factor * found
        losses.append(log_loss(y[450:], machine.predict_proba(X[450:])))
    assert losses[1] < min(losses[0], losses[2])


def test_the_steepness_is_the_best_one_for_its_scores():
    rng = np.random.default_rng(0)
    for k in (1, 3):
        scores = rng.standard_normal((300, k)).squeeze()
        position = (scores + rng.standard_normal(300) > 0).astype(int) if k == 1 else scores.argmax(axis=1)
        if k == 3:
            position = np.where(rng.random(300) < 0.3, rng.integers(0, 3, 300), position)
        weight = rng.uniform(0.0, 2.0, 300)

        def cost(a, scores=scores, position=position, weight=weight):
            return -float(weight @ log_probabilities(scores, a)[np.arange(300), position])

        best = fit_steepness(scores, position, weight)
        assert cost(best) < min(cost(0.999 * best), cost(1.001 * best))


def test_the_steepness_stays_positive_and_finite_on_scores_without_meaning():
    assert fit_steepness(np.zeros(4), np.array([0, 1, 0, 1]), np.ones(4)) > 0.0
    wrong = fit_steepness(np.array([1.0, -1.0]), np.array([0, 1]), np.ones(2))
    right = fit_steepness(np.array([1.0, -1.0]), np.array([1, 0]), np.ones(2))
    assert 0.0 < wrong < right < np.inf


@pytest.mark.parametrize(
    "weights", [{"sample_weight": True}, {"class_weight": "balanced"}, {"class_weight": {"b": 3.0}}]
)
def test_weights(weights):
    X, y = blobs(200, 3, 2)
    weight = np.random.default_rng(0).integers(0, 3, len(y)) if weights.pop("sample_weight", False) else None
    machine = LinearSVC(probability=True, **weights).fit(X, y, weight)
    assert machine.steepness_ > 0.0
    np.testing.assert_array_equal(machine.coef_, LinearSVC(**weights).fit(X, y, weight).coef_)


def test_rows_of_weight_zero_do_not_count():
    X, y = blobs(200, 3, 2)
    weight = np.ones(len(y))
    weight[:50] = 0.0
    strange = y.copy()
    strange[:50] = np.where(y[:50] == "a", "b", "a")
    one, other = (LinearSVC(probability=True).fit(X, labels, weight) for labels in (y, strange))
    assert one.steepness_ == other.steepness_


def test_a_class_of_one_row_is_learned_from_and_never_tested_on():
    X, y = blobs(40, 3, 2)
    X, y = np.vstack([X, [[9.0, 9.0, 9.0]]]), np.append(y, 7)
    machine = LinearSVC(probability=True).fit(X, y)
    assert machine.steepness_ > 0.0
    assert np.array_equal(machine.classes_[machine.predict_proba(X).argmax(axis=1)], machine.predict(X))
    assert LinearSVC(probability=True).fit([[0.0], [1.0]], [0, 1]).steepness_ > 0.0


def test_without_it_there_are_none():
    X, y = tall(30, 2)
    machine = LinearSVC().fit(X, y)
    assert not hasattr(machine, "predict_proba")
    assert not hasattr(machine, "predict_log_proba")
    assert not hasattr(machine, "steepness_")
    with pytest.raises(AttributeError):
        machine.predict_proba(X)
    with pytest.raises(NotFittedError):
        LinearSVC(probability=True).predict_proba(X)


def test_set_after_the_fit_it_says_what_to_do():
    X, y = tall(30, 2)
    machine = LinearSVC().fit(X, y).set_params(probability=True)
    with pytest.raises((AttributeError, NotFittedError)):
        machine.predict_proba(X)


def test_a_refit_without_it_forgets_the_old_steepness():
    X, y = tall(60, 2)
    machine = LinearSVC(probability=True).fit(X, y)
    machine.set_params(probability=False).fit(X[::-1], -y)
    assert not hasattr(machine, "steepness_")


def test_sparse_float32_pickle_clone_and_threads():
    X, y = blobs(150, 4, 3)
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    machine = LinearSVC(probability=True).fit(X, y)
    expected = machine.predict_proba(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(machine)).predict_proba(X), expected)
    for layout in (sp.csr_array(X), X.astype(np.float32)):
        np.testing.assert_allclose(clone(machine).fit(layout, y).predict_proba(layout), expected, atol=1e-5)
    one, two = (clone(machine).set_params(n_threads=t).fit(X, y).steepness_ for t in (1, 2))
    assert one == two == machine.steepness_


def test_hard_margin():
    X = np.array([[-2.0], [-1.5], [-1.0], [1.0], [1.5], [2.0]])
    machine = LinearSVC(C=np.inf, probability=True).fit(X, [0, 0, 0, 1, 1, 1])
    assert machine.predict_proba([[2.0]])[0, 1] > 0.9


WITH_A_BAR = """
import multiprocessing, os, threading
from sklearn.callback import ProgressBar
from maxmargin import LinearSVC
LinearSVC(probability=True).set_callbacks(ProgressBar()).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
left = [thread for thread in threading.enumerate() if not thread.daemon]
for child in multiprocessing.active_children():
    child.terminate()
print("threads left:", len(left) - 1, flush=True)
os._exit(0)
"""


def test_a_progress_bar_ends_with_the_fit():
    done = subprocess.run([sys.executable, "-c", WITH_A_BAR], capture_output=True, timeout=60, check=True, text=True)
    assert done.stdout.splitlines()[-1] == "threads left: 0"


def test_the_fits_for_probabilities_report_as_part_of_the_one_fit():
    class Counter:
        begun = ended = 0

        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context):
            self.begun += 1

        def on_fit_task_end(self, estimator, context):
            self.ended += 1

    counter = Counter()
    LinearSVC(probability=True).set_callbacks(counter).fit(*tall(60, 2))
    assert counter.begun == counter.ended == 21

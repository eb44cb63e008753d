"""Predictions of machines with a kernel: a row's bits are its own, and support vectors are packed once."""

import copy
import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin
from maxmargin import SVC, SVR, InputError
from maxmargin.kernels import Gaussian, Laplacian, Linear
from maxmargin.kernels.support_rows import SupportRows
from maxmargin.svm import kernel_prediction
from maxmargin.svm.kernel_prediction import expansion_sums, most_votes, pairs, scores_of_pairs
from tests.svm.kernel_data import gaussian, rows_and_labels, rows_and_numbers

METHODS = ("decision_function", "predict", "predict_proba", "score_samples")


def assert_own_bits(machine, X):
    """Every row alone, and some beside others, are what they are among all."""
    for method in METHODS:
        if not hasattr(machine, method):
            continue
        answer = getattr(machine, method)
        whole = answer(X)
        for i in range(0, X.shape[0], 3):
            np.testing.assert_array_equal(answer(X[[i]])[0], whole[i], err_msg=method)
        for n in (2, 9, 65):
            np.testing.assert_array_equal(answer(X[:n]), whole[:n], err_msg=method)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
@pytest.mark.parametrize("name", ["breast", "iris", "digits"])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", Laplacian(0.1)], ids=str)
def test_a_row_has_the_same_bits_alone_and_in_a_batch(name, kernel, scheme, layout):
    X, y = rows_and_labels(name)
    assert_own_bits(SVC(kernel=kernel, multi_class=scheme, tol=1e-3).fit(layout(X), y), layout(X))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", ["breast", "digits"])
def test_a_row_of_given_values_has_the_same_bits_alone_and_in_a_batch(name, layout):
    X, y = rows_and_labels(name)
    K = layout(gaussian(0.1, X, X))
    assert_own_bits(SVC(kernel="precomputed", tol=1e-3).fit(K, y), K)


@pytest.mark.parametrize("name", ["SVR", "NuSVR", "OneClassSVM", "SVDD"])
def test_a_row_has_the_same_bits_for_every_machine(name):
    X, y = rows_and_numbers()
    assert_own_bits(getattr(maxmargin, name)().fit(X, y), X)


def test_probabilities_have_the_same_bits():
    X, y = rows_and_labels("iris")
    with pytest.warns(FutureWarning, match="deprecated"):
        machine = SVC(probability=True).fit(X, y)
    assert_own_bits(machine, X)


def test_bits_do_not_depend_on_the_number_of_threads():
    X, y = rows_and_labels("digits")
    many = np.vstack([X] * 20)
    one, two = (SVC(n_threads=n).fit(X, y).decision_function(many) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


# --- packed once ------------------------------------------------------------------------------------------------


@pytest.fixture
def packings(monkeypatch):
    """Grows by one whenever support vectors are packed."""
    seen = []

    class Counted(SupportRows):
        def __init__(self, kernel, Z):
            seen.append(len(Z))
            super().__init__(kernel, Z)

    monkeypatch.setattr(kernel_prediction, "SupportRows", Counted)
    return seen


@pytest.mark.parametrize("name", ["breast", "iris"])
def test_support_vectors_are_packed_once_for_a_fit(packings, name):
    X, y = rows_and_labels(name)
    machine = SVC().fit(X, y)
    assert packings == []
    first = machine.decision_function(X)
    for _ in range(3):
        np.testing.assert_array_equal(machine.decision_function(X), first)
    machine.predict(X[:1])
    assert packings == [len(machine.support_)]
    machine.set_params(C=0.1).fit(X, y)
    assert not np.array_equal(machine.decision_function(X), first)
    assert packings[1:] == [len(machine.support_)]


@pytest.mark.parametrize("again", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
def test_pickles_and_copies_hold_nothing_that_was_packed(packings, again):
    X, y = rows_and_labels("iris")
    machine = SVC().fit(X, y)
    size = len(pickle.dumps(machine))
    scores = machine.decision_function(X)
    assert len(pickle.dumps(machine)) == size
    np.testing.assert_array_equal(again(machine).decision_function(X), scores)
    assert len(packings) == 2


def test_threads_get_the_same_numbers():
    X, y = rows_and_labels("digits")
    machine, found = SVC().fit(X, y), []
    threads = [threading.Thread(target=lambda: found.append(machine.decision_function(X))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    for scores in found:
        np.testing.assert_array_equal(scores, found[0])


def test_attributes_that_are_replaced_take_effect():
    X, y = rows_and_labels("breast")
    machine = SVC(kernel="linear").fit(X, y)
    before, b = machine.decision_function(X), machine.intercept_
    machine.dual_coef_ = 2.0 * machine.dual_coef_
    np.testing.assert_allclose(machine.decision_function(X) - b, 2.0 * (before - b), atol=1e-12)
    machine.support_vectors_ = 0.5 * machine.support_vectors_
    np.testing.assert_allclose(machine.decision_function(X), before, atol=1e-12)
    machine.kernel_ = Gaussian(0.1)
    expected = gaussian(0.1, X, machine.support_vectors_) @ machine.dual_coef_[0] + b
    np.testing.assert_allclose(machine.decision_function(X), expected, atol=1e-12)
    machine.dual_coef_ = machine.dual_coef_[:, :-1]
    with pytest.raises(ValueError, match="shape"):
        machine.decision_function(X)


# --- what is predicted ------------------------------------------------------------------------------------------


def test_rows_of_every_kind_have_the_same_scores():
    X, y = rows_and_labels("digits")
    X = np.round(X * 16.0)
    machine = SVC().fit(X, y)
    scores = machine.decision_function(X)
    layouts = [np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X.tolist(), sp.csr_array(X), sp.csc_matrix(X)]
    for rows in layouts + [X.astype(dtype) for dtype in (np.int8, np.float16, np.float32, ">f8")]:
        np.testing.assert_array_equal(machine.decision_function(rows), scores)


def test_rows_that_cannot_be_predicted_are_refused():
    X, y = rows_and_numbers()
    machine = SVR().fit(X, y)
    nan, infinite = X.copy(), X.copy()
    nan[3, 2], infinite[3, 2] = np.nan, np.inf
    cases = [(nan, "NaN"), (infinite, "infinity"), (X[:, 1:], "features"), (X[0], "2D"), (X[:0], "0 sample")]
    for rows, message in cases:
        with pytest.raises(ValueError, match=message):
            machine.predict(rows)


def test_values_beyond_all_numbers_are_an_error_that_names_the_row():
    X, y = rows_and_labels("iris")
    machine = SVC(kernel="poly", degree=5).fit(X, y)
    far = np.vstack([X[:2], 1e200 * X[:1]])
    with pytest.raises(InputError, match=r"Polynomial.*for row 2 of X"):
        machine.predict(far)


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Gaussian(0.5) + Linear()], ids=["by tiles", "by Python"])
def test_a_part_without_support_vectors_adds_nothing(kernel):
    X = np.random.default_rng(0).standard_normal((5, 3))
    parts = [(slice(0, 0), np.empty((0, 2))), (slice(0, 5), np.ones((5, 1)))]
    nothing, rest = expansion_sums(SupportRows(kernel, X), X, parts)
    np.testing.assert_array_equal(nothing, np.zeros((5, 2)))
    np.testing.assert_allclose(rest, kernel.gram(X).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("k", [3, 4, 7, 11])
def test_votes_and_scores_of_pairs_are_those_of_a_loop(k):
    rng = np.random.default_rng(k)
    for_second, by_class = rng.random((50, len(pairs(k)))) < 0.5, [rng.standard_normal((50, k - 1)) for _ in range(k)]
    votes, scores = np.zeros((50, k)), np.empty((50, len(pairs(k))))
    for m, (i, j) in enumerate(pairs(k)):
        votes[~for_second[:, m], i] += 1
        votes[for_second[:, m], j] += 1
        scores[:, m] = by_class[i][:, j - 1] + by_class[j][:, i]
    np.testing.assert_array_equal(most_votes(for_second, k), votes.argmax(axis=1))
    np.testing.assert_array_equal(scores_of_pairs(by_class), scores)


def test_the_same_weight_for_all_rows_is_no_weight():
    X, y = rows_and_labels("breast")
    one = SVC().fit(X, y)
    two = SVC(C=8.0).fit(X, y, sample_weight=np.full(len(y), 0.125))
    assert one.kernel_ == two.kernel_
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)

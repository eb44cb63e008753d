"""SVC: the same machines as LIBSVM's, in scikit-learn's layouts, with more digits."""

import itertools
import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, ConvergenceWarning, LinearSVC, LogisticRegression, Status
from maxmargin.certificates import Outcome
from maxmargin.kernels import Gaussian
from maxmargin.svm.progress import reporting_to
from tests.conftest import tall
from tests.svm.kernel_data import assert_alike, dense, gaussian, rows_and_labels

KERNELS = [
    {"kernel": "rbf", "gamma": 0.1},
    {"kernel": "linear", "C": 0.1},
    {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.1},
]


@parametrize_with_checks(
    [
        SVC(tol=1e-10),
        SVC(kernel="linear", loss="squared_hinge"),
        SVC(kernel="poly", multi_class="ovr", tol=1e-10),
        SVC(kernel="precomputed", tol=1e-10),
        SVC(class_weight="balanced", break_ties=True, tol=1e-10),
    ]
)
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        # The checks build odd inputs themselves and turn warnings into errors where they matter.
        warnings.simplefilter("ignore")
        check(estimator)


# --- beside LIBSVM ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("options", KERNELS, ids=lambda options: options["kernel"])
@pytest.mark.parametrize("name", ["iris", "digits", "breast"])
def test_the_same_machines_as_libsvm(name, options, layout):
    X, y = rows_and_labels(name)
    X = layout(X)
    ours, theirs = (
        package(**options, tol=tol, decision_function_shape="ovo").fit(X, y)
        for package, tol in ((SVC, 1e-9), (sklearn.svm.SVC, 1e-8))
    )
    assert_alike(ours, theirs, atol=2e-3)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert type(ours.support_vectors_) is type(X)
    if options["kernel"] == "linear":
        assert hasattr(ours.coef_, "toarray") == sp.issparse(X)
        np.testing.assert_allclose(dense(ours.coef_), dense(theirs.coef_), atol=1e-3)
    per_class = [machine.set_params(decision_function_shape="ovr").decision_function(X) for machine in (ours, theirs)]
    np.testing.assert_allclose(*per_class, atol=1e-3)


def test_attributes_of_one_number_or_of_one_per_class():
    X, y = rows_and_labels("iris")
    ours, theirs = SVC(class_weight={"a": 2.0}).fit(X, y), sklearn.svm.SVC(class_weight={"a": 2.0}).fit(X, y)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_array_equal(ours.class_weight_, theirs.class_weight_)
    assert (ours.fit_status_, ours.shape_fit_, ours.n_features_in_) == (0, (140, 4), 4)
    assert ours._gamma == pytest.approx(theirs._gamma)
    assert ours.n_iter_.shape == theirs.n_iter_.shape == (3,)
    assert ours.n_support_.dtype == theirs.n_support_.dtype
    balanced = [package(class_weight="balanced").fit(X, y) for package in (SVC, sklearn.svm.SVC)]
    np.testing.assert_allclose(balanced[0].class_weight_, balanced[1].class_weight_)
    np.testing.assert_allclose(balanced[0].decision_function(X), balanced[1].decision_function(X), atol=1e-2)


@pytest.mark.parametrize("scores", [(1.0, 0.0, -1.0), (1.0, -2.0, 1.0), (0.0, 0.0, 0.0)])
@pytest.mark.parametrize("break_ties", [False, True])
def test_votes_and_their_ties(scores, break_ties):
    """Three pairs that decide for one class each leave a tie."""
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 2])
    machine = SVC(kernel="linear", break_ties=break_ties).fit(X, y)
    machine.dual_coef_, machine.intercept_ = np.zeros_like(machine.dual_coef_), np.array(scores)
    sides = itertools.combinations(range(3), 2)
    votes = np.bincount([j if score < 0.0 else i for score, (i, j) in zip(scores, sides, strict=True)], minlength=3)
    per_class = machine.decision_function(X[:1])[0]
    np.testing.assert_allclose(per_class, votes, atol=1.0 / 3.0)
    assert machine.predict(X[:1])[0] == (np.argmax(per_class) if break_ties else np.argmax(votes))


def test_scores_of_pairs_cannot_break_ties():
    X, y = rows_and_labels("iris")
    machine = SVC(break_ties=True, decision_function_shape="ovo").fit(X, y)
    with pytest.raises(ValueError, match="break_ties must be False when decision_function_shape is 'ovo'"):
        machine.predict(X)


# --- one machine per class --------------------------------------------------------------------------------------


def test_one_machine_per_class_is_that_of_its_labels():
    X, y = rows_and_labels("iris")
    machine = SVC(multi_class="ovr", C=3.0).fit(X, y)
    scores = machine.decision_function(X)
    for k, label in enumerate("abc"):
        own = SVC(C=3.0).fit(X, y == label)
        np.testing.assert_allclose(scores[:, k], own.decision_function(X), atol=2e-2)
    assert machine.dual_coef_.shape == (3, len(machine.support_))
    np.testing.assert_array_equal(machine.predict(X), machine.classes_[scores.argmax(axis=1)])
    with pytest.raises(ValueError, match="scores of pairs"):
        machine.set_params(decision_function_shape="ovo").decision_function(X)


@pytest.mark.parametrize("loss", ["squared_hinge", 1.5, "logistic"])
def test_other_losses_are_those_of_the_linear_machines(loss):
    X, y = tall(80, 4, seed=7)
    linear = LogisticRegression() if loss == "logistic" else LinearSVC(loss=loss)
    kernel, linear = SVC(kernel="linear", loss=loss).fit(X, y), linear.fit(X, y)
    np.testing.assert_allclose(kernel.coef_, linear.coef_, atol=2e-3)
    np.testing.assert_allclose(kernel.intercept_, linear.intercept_, atol=2e-3)
    np.testing.assert_allclose(kernel.objective_, linear.solution_.primal, rtol=1e-6)
    assert len(kernel.bounded_) == 0
    assert kernel.certificate_.verify(X, y)


def test_the_hard_margin():
    X, y = rows_and_labels("iris")
    two = y != "a"
    X, y = X[two] + 2.0 * (y[two] == "b")[:, None], y[two]
    kernel, linear = SVC(kernel="linear", C=np.inf).fit(X, y), LinearSVC(loss="hinge", C=np.inf).fit(X, y)
    np.testing.assert_allclose(kernel.margin_, linear.margin_, rtol=1e-6)
    assert len(kernel.bounded_) == len(kernel.violating_) == 0
    assert kernel.certificate_.verify(X, y)


# --- kernels and layouts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["iris", "breast"])
def test_given_values_and_functions_are_the_kernel(name):
    X, y = rows_and_labels(name)
    K = gaussian(0.2, X, X)
    expected = SVC(gamma=0.2, tol=1e-9).fit(X, y)
    given = SVC(kernel="precomputed", tol=1e-9).fit(K, y)
    function = SVC(kernel=lambda X, Z, gamma: gaussian(gamma, X, Z), kernel_params={"gamma": 0.2}, tol=1e-9).fit(X, y)
    own = SVC(kernel=Gaussian(0.2), tol=1e-9).fit(X, y)
    sparse = SVC(kernel="precomputed", tol=1e-9).fit(sp.csr_array(K), y)
    for machine, rows in ((given, K), (function, X), (own, X), (sparse, sp.csr_array(K))):
        np.testing.assert_allclose(machine.decision_function(rows), expected.decision_function(X), atol=2e-3)
        np.testing.assert_allclose(machine.margin_, expected.margin_, rtol=1e-3)
        assert np.all(machine.violating_ == expected.violating_) if len(machine.classes_) == 2 else True
    assert given.support_vectors_.shape == (0, 0)


def test_only_values_at_support_vectors_are_looked_at():
    X, y = rows_and_labels("iris")
    K = gaussian(0.2, X, X)
    machine = SVC(kernel="precomputed").fit(K, y)
    others = np.delete(np.arange(len(y)), machine.support_)
    broken = K[:10].copy()
    broken[:, others] = 1e6
    np.testing.assert_array_equal(machine.predict(broken), machine.predict(K[:10]))


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.ones((4, 3)), "square matrix"),
        (np.array([[1.0, 0.5, 0.0, 0.0], [0.1, 1.0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1.0]]), "not symmetric"),
    ],
)
def test_given_values_are_checked(K, message):
    with pytest.raises(ValueError, match=message):
        SVC(kernel="precomputed").fit(K, [0, 1, 0, 1])


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_rows_to_predict_may_be_sparse_or_dense_whatever_was_fitted(kernel):
    X, y = rows_and_labels("digits")
    long = sp.csr_array(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    machines = [
        SVC(kernel=kernel).fit(rows, y) for rows in (X, sp.csr_array(X), long, sp.csc_array(X), sp.lil_array(X))
    ]
    expected = machines[0].decision_function(X)
    for machine, rows in itertools.product(machines, (X, X.astype(np.float32), long, sp.coo_array(X))):
        np.testing.assert_allclose(machine.decision_function(rows), expected, atol=1e-3)
    assert all(sp.issparse(machine.dual_coef_) for machine in machines[1:])
    assert machines[2].support_vectors_.format == "csr"


def test_the_weights_of_a_linear_kernel_cannot_be_written_to_and_others_have_none():
    X, y = rows_and_labels("breast")
    for rows in (X, sp.csr_array(X)):
        coef = SVC(kernel="linear").fit(rows, y).coef_
        with pytest.raises(ValueError, match="read-only"):
            (coef.data if sp.issparse(coef) else coef)[...] = 1.0
    assert not hasattr(SVC().fit(X, y), "coef_")
    assert not hasattr(SVC(kernel="linear"), "coef_")


def test_a_row_has_the_same_score_alone_and_among_others():
    X, y = rows_and_labels("digits")
    machine = SVC().fit(X, y)
    together = machine.decision_function(X)
    for i in (0, 7, 139):
        np.testing.assert_allclose(machine.decision_function(X[i : i + 1])[0], together[i], rtol=1e-12)


# --- weights ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 3.0}])
@pytest.mark.parametrize("name", ["iris", "breast"])
def test_weight_equals_repetition(name, class_weight):
    X, y = rows_and_labels(name)
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    options = {"class_weight": class_weight, "tol": 1e-10}
    weighted = SVC(**options).fit(X, y, weight)
    repeated = SVC(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-4)
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-8)
    np.testing.assert_allclose(weighted.class_weight_, repeated.class_weight_)
    assert not np.isin(weighted.support_, np.flatnonzero(weight == 0)).any()


def test_weights_are_costs_as_in_libsvm():
    X, y = rows_and_labels("breast")
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    ours, theirs = SVC(gamma=0.05).fit(X, y, weight), sklearn.svm.SVC(gamma=0.05, tol=1e-8).fit(X, y, weight)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=5e-3)


# --- what the multipliers say -----------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.3, 30.0])
def test_rows_lie_on_the_margin_beyond_it_or_have_no_multiplier(C):
    X, y = rows_and_labels("breast")
    machine = SVC(C=C, tol=1e-9).fit(X, y)
    margin = np.where(y == machine.classes_[1], 1.0, -1.0) * machine.decision_function(X)
    free, bounded, violating = machine.free_, machine.bounded_, machine.violating_
    np.testing.assert_array_equal(np.sort(np.concatenate([free, bounded])), np.sort(machine.support_))
    np.testing.assert_allclose(margin[free], 1.0, atol=2e-3)
    assert np.all(margin[bounded] < 1.0 + 2e-3)
    assert np.all(np.delete(margin, machine.support_) > 1.0 - 2e-3)
    np.testing.assert_array_equal(violating, bounded[margin[bounded] < 1.0 - 1e-9])
    alpha = np.abs(machine.dual_coef_[0])
    np.testing.assert_allclose(alpha[np.isin(machine.support_, bounded)], C)
    assert np.all(alpha[np.isin(machine.support_, free)] < C)


def test_every_machine_has_its_own_readings():
    X, y = rows_and_labels("iris")
    machine = SVC(kernel="linear", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(machine.margin_, 1.0 / np.linalg.norm(machine.coef_, axis=1), rtol=1e-6)
    assert machine.objective_.shape == (3,)
    scores = machine.set_params(decision_function_shape="ovo").decision_function(X)
    for m, (i, j) in enumerate([("a", "b"), ("a", "c"), ("b", "c")]):
        sign = (y == i) * 1.0 - (y == j)
        free, violating = machine.free_[m], machine.violating_[m]
        assert np.all(sign[np.concatenate([free, machine.bounded_[m]])] != 0.0)
        np.testing.assert_allclose((sign * scores[:, m])[free], 1.0, atol=2e-3)
        assert np.all((sign * scores[:, m])[violating] < 1.0)
        alone = SVC(kernel="linear", tol=1e-9).fit(X[sign != 0.0], y[sign != 0.0])
        np.testing.assert_allclose(machine.objective_[m], alone.objective_, rtol=1e-8)
        assert set(np.flatnonzero(sign)[alone.violating_]) == set(violating)


# --- the course of a fit ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0.0}, "C must be"),
        ({"tol": -1.0}, "tol must be"),
        ({"cache_size": 0}, "cache_size must be"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1, or -1"),
        ({"max_iter": -2}, "max_iter must be"),
        ({"max_seconds": 0.0}, "max_seconds must be"),
        ({"shrinking": 1}, "shrinking must be True or False"),
        ({"warm_start": "yes"}, "warm_start must be True or False"),
        ({"break_ties": 2}, "break_ties must be True or False"),
        ({"multi_class": "all"}, "multi_class must be one of"),
        ({"decision_function_shape": None}, "decision_function_shape must be one of"),
        ({"kernel": "gauss"}, "kernel must be one of"),
        ({"gamma": "large"}, "gamma must be"),
        ({"loss": "huber"}, "loss must be one of"),
        ({"class_weight": {"z": 1.0}}, "not in class_weight"),
        ({"solver": "magic"}, "magic"),
        ({"verbose": -1}, "verbose must be"),
        ({"n_threads": 0}, "n_threads must be"),
    ],
)
def test_bad_parameters(options, message):
    X, y = rows_and_labels("iris")
    with pytest.raises(ValueError, match=message):
        SVC(**options).fit(X, y)


def test_a_failed_refit_leaves_the_old_model():
    X, y = rows_and_labels("iris")
    machine = SVC().fit(X, y)
    expected = machine.decision_function(X)
    with pytest.raises(ValueError, match="C must be"):
        machine.set_params(C=-1.0).fit(X[:, :2], y)
    np.testing.assert_array_equal(machine.decision_function(X), expected)


def test_shrinking_changes_nothing():
    X, y = rows_and_labels("iris")
    one, two = (SVC(shrinking=shrinking).fit(X, y) for shrinking in (True, False))
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


@pytest.mark.parametrize("name", ["iris", "breast"])
def test_a_fit_that_was_stopped_says_how_far_it_is_and_goes_on(name):
    X, y = rows_and_labels(name)
    machine = SVC(C=100.0, max_iter=1, warm_start=True)
    with pytest.warns(ConvergenceWarning, match="the iteration limit was reached first"):
        machine.fit(X, y)
    assert machine.fit_status_ == 1
    assert machine.solution_.status is Status.ITERATION_LIMIT
    machine.set_params(max_iter=-1).fit(X, y)
    assert machine.fit_status_ == 0
    np.testing.assert_allclose(machine.decision_function(X), SVC(C=100.0).fit(X, y).decision_function(X), atol=5e-2)


@pytest.mark.parametrize("name", ["iris", "breast"])
def test_a_warm_start_goes_on_from_the_answer(name):
    X, y = rows_and_labels(name)
    machine = SVC(warm_start=True).fit(X, y)
    first = machine.n_iter_.sum()
    machine.fit(X, y)
    assert machine.n_iter_.sum() < first
    with pytest.warns(UserWarning, match="starting afresh"):
        machine.fit(X[:100], y[:100])


def test_listeners_hear_of_the_fit(capsys):
    X, y = rows_and_labels("iris")
    gaps = []
    with reporting_to(lambda iteration, gap, seconds: gaps.append(gap)):
        SVC(verbose=1).fit(X, y)
    assert len(gaps) == len(capsys.readouterr().out.splitlines()) > 0


def test_ctrl_c_leaves_what_there_is():
    X, y = rows_and_labels("breast")
    machine, pressed = SVC(C=100.0, tol=1e-12), []

    def press(iteration, gap, seconds):
        if not pressed:
            pressed.append(gap)
            signal.raise_signal(signal.SIGINT)

    with reporting_to(press), pytest.raises(KeyboardInterrupt):
        machine.fit(X, y)
    assert machine.solution_.status is Status.INTERRUPTED
    assert machine.predict(X).shape == y.shape
    assert machine.certificate_.verify(X, y).outcome is not Outcome.REJECTED


def test_a_fit_that_runs_out_of_time_keeps_what_there_is():
    X, y = rows_and_labels("breast")
    with pytest.warns(ConvergenceWarning, match="time limit"):
        machine = SVC(C=100.0, tol=1e-12, max_seconds=1e-9).fit(X, y)
    assert machine.solution_.status is Status.TIME_LIMIT
    assert machine.certificate_.verify(X, y).outcome is not Outcome.REJECTED


@pytest.mark.parametrize("name", ["iris", "breast"])
def test_the_result_does_not_depend_on_the_number_of_threads(name):
    X, y = rows_and_labels(name)
    one, two = (SVC(n_threads=n).fit(X, y) for n in (1, 3))
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))

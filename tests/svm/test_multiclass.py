"""LinearSVC with more than two classes: one machine per class, per pair, or one for all."""

import itertools
import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC as SklearnLinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import ConvergenceWarning, LinearSVC, Solutions, Status
from maxmargin.certificates import Outcome
from maxmargin.runtime import Watch
from maxmargin.solvers import joint_claims
from maxmargin.svm.progress import reporting_to
from tests.oracles import Form
from tests.solvers.joint_cases import threads_of_exact_products

SCHEMES = ["ovr", "ovo", "crammer_singer"]


@parametrize_with_checks(
    [
        LinearSVC(multi_class="ovo"),
        LinearSVC(multi_class="crammer_singer"),
        LinearSVC(penalty="l1"),
        LinearSVC(loss=1.5, tol=1e-14),  # the checks compare seven digits
    ]
)
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def blobs(n=150, d=4, k=4, seed=0):
    """Overlapping classes "a", "b", … of unequal sizes."""
    rng = np.random.default_rng(seed)
    position = np.sort(np.concatenate([np.arange(k), rng.choice(k, n - k, p=np.arange(1, k + 1) / (k * (k + 1) / 2))]))
    X = 3.0 / np.sqrt(d) * rng.standard_normal((k, d))[position] + rng.standard_normal((n, d))
    order = rng.permutation(n)
    return X[order], np.array(list("abcdefghij"))[position][order]


def fit(X, y, weight=None, **options):
    return LinearSVC(**{"loss": "hinge", **options}).fit(X, y, weight)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("k", [3, 4])
def test_shapes_and_arg_max(scheme, k):
    X, y = blobs(k=k)
    machine = fit(X, y, multi_class=scheme)
    n_machines = k * (k - 1) // 2 if scheme == "ovo" else k
    assert machine.coef_.shape == (n_machines, X.shape[1])
    assert machine.intercept_.shape == (n_machines,)
    assert machine.decision_function(X).shape == (len(y), k)
    assert machine.classes_.tolist() == sorted(set(y))
    assert np.array_equal(machine.predict(X), machine.classes_[machine.decision_function(X).argmax(axis=1)])
    if scheme != "ovo":
        np.testing.assert_allclose(machine.decision_function(X), X @ machine.coef_.T + machine.intercept_)


def test_pairs_vote():
    X, y = blobs()
    machine = fit(X, y, multi_class="ovo")
    scores = X @ machine.coef_.T + machine.intercept_
    votes = np.zeros((len(y), 4))
    for m, (i, j) in enumerate(itertools.combinations(range(4), 2)):
        votes[np.arange(len(y)), np.where(scores[:, m] > 0.0, j, i)] += 1
    predicted = np.searchsorted(machine.classes_, machine.predict(X))
    assert np.array_equal(votes[np.arange(len(y)), predicted], votes.max(axis=1))
    # Confidences only break ties.
    assert np.abs(machine.decision_function(X) - votes).max() < 0.5


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", 1.5])
@pytest.mark.parametrize("sparse", [False, True])
def test_parts_are_two_class_machines_bit_for_bit(loss, sparse):
    X, y = blobs()
    if sparse:
        X = sp.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    weight = np.random.default_rng(1).integers(0, 3, len(y)) + 0.5
    machine = fit(X, y, weight, loss=loss, class_weight={"b": 2.0})
    for k, label in enumerate(machine.classes_):
        part = fit(X, y == label, weight * np.where(y == "b", 2.0, 1.0), loss=loss)
        assert part.coef_[0].tobytes() == machine.coef_[k].tobytes()
        assert part.intercept_[0] == machine.intercept_[k]


def test_pairs_are_two_class_machines_bit_for_bit():
    X, y = blobs()
    machine = fit(X, y, multi_class="ovo")
    for m, (i, j) in enumerate(itertools.combinations("abcd", 2)):
        rows = (y == i) | (y == j)
        part = fit(X[rows], y[rows])
        assert part.coef_[0].tobytes() == machine.coef_[m].tobytes()
        assert part.intercept_[0] == machine.intercept_[m]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_same_bits_for_any_threads(scheme, loss, monkeypatch):
    """Of machines, claims and multipliers; one machine for all classes hands all threads to its products."""
    joint = scheme == "crammer_singer"
    X, y = blobs(*((4200, 60) if joint else (400, 6)))  # several chunks of rows, and worth a thread
    monkeypatch.setattr(joint_claims, "SMALL", X.size)
    n_machines = {"ovr": 4, "ovo": 6, "crammer_singer": 1}[scheme]
    threads, found = threads_of_exact_products(monkeypatch), []
    for n_threads in (1, 2, 3, 13):
        machine = fit(X, y, loss=loss, multi_class=scheme, n_threads=n_threads, tol=0.3 if joint else 1e-6)
        assert set(threads) == {max(1, n_threads // min(n_threads, n_machines))}
        threads.clear()
        parts = [machine.solution_] if n_machines == 1 else list(machine.solution_)
        claimed = np.array([[part.primal, part.dual, part.gap] for part in parts])
        found.append([v.tobytes() for v in (machine.coef_, machine.intercept_, machine.dual_coef_, claimed)])
    assert found[0] == found[1] == found[2] == found[3]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("class_weight", [None, {"a": 3.0, "c": 0.5}])
def test_weight_equals_repetition(scheme, class_weight):
    X, y = blobs(seed=3)
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    options = {"multi_class": scheme, "class_weight": class_weight, "C": 0.3}
    weighted = fit(X, y, weight, **options)
    repeated = fit(np.repeat(X, weight, axis=0), np.repeat(y, weight), **options)
    assert weighted.solution_.primal == pytest.approx(repeated.solution_.primal, rel=1e-7)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-5)
    assert weighted.certificate_.verify(X, y, weight)
    assert not weighted.certificate_.verify(X, y)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_balanced_equals_its_weights(scheme):
    X, y = blobs(seed=4)
    labels, counts = np.unique(y, return_counts=True)
    written_out = dict(zip(labels.tolist(), len(y) / (4 * counts), strict=True))
    balanced = fit(X, y, class_weight="balanced", multi_class=scheme)
    np.testing.assert_allclose(balanced.coef_, fit(X, y, class_weight=written_out, multi_class=scheme).coef_, rtol=1e-6)
    assert balanced.certificate_.verify(X, y)
    assert not np.allclose(balanced.coef_, fit(X, y, multi_class=scheme).coef_, rtol=1e-3)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("bias", [{}, {"fit_intercept": False}, {"penalize_intercept": True}])
def test_multipliers_make_the_weights(scheme, bias):
    X, y = blobs()
    machine = fit(X, y, multi_class=scheme, **bias)
    assert machine.dual_coef_.shape == (len(machine.coef_), len(machine.support_))
    assert machine.dual_coef_.any(axis=0).all()
    np.testing.assert_allclose(machine.dual_coef_ @ X[machine.support_], machine.coef_, rtol=1e-5, atol=1e-5)
    if not bias:
        np.testing.assert_allclose(machine.dual_coef_.sum(axis=1), 0.0, atol=1e-9)
    else:
        expected = np.zeros(len(machine.coef_)) if "fit_intercept" in bias else machine.dual_coef_.sum(axis=1)
        np.testing.assert_allclose(machine.intercept_, expected, rtol=1e-4, atol=1e-5)
    assert machine.certificate_.verify(X, y)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_margins_and_slacks(scheme):
    X, y = blobs()
    machine = fit(X, y, multi_class=scheme)
    scores, margins = machine.decision_function(X), machine.margins(X, y)
    for i in range(0, len(y), 7):
        own = machine.classes_ == y[i]
        assert margins[i] == scores[i, own][0] - scores[i, ~own].max()
    np.testing.assert_array_equal(machine.slacks(X, y), np.maximum(0.0, 1.0 - margins))
    assert np.array_equal(machine.predict(X)[margins != 0] == y[margins != 0], margins[margins != 0] > 0)
    if scheme == "crammer_singer":  # the slacks are the loss itself
        loss = machine.solution_.primal - 0.5 * float((machine.coef_**2).sum())
        assert machine.slacks(X, y).sum() == pytest.approx(loss, rel=1e-9)
    with pytest.raises(ValueError, match=r"y\[0\] is .*none of the classes"):
        machine.margins(X[:1], ["z"])
    with pytest.raises(ValueError, match="one label per row"):
        machine.margins(X[:2], ["a"])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_objective_against_clarabel(scheme):
    X, y = blobs(90, 3, 3)
    machine, position = fit(X, y, multi_class=scheme, C=0.7), np.searchsorted(["a", "b", "c"], y)
    if scheme == "crammer_singer":
        assert machine.solution_.primal == pytest.approx(
            Form("crammer_singer").solve(X, position, np.full(90, 0.7)).value, rel=1e-6
        )
        return
    parts = [np.arange(90)] * 3
    if scheme == "ovo":
        parts = [np.flatnonzero((position == i) | (position == j)) for i, j in itertools.combinations(range(3), 2)]
    for m, rows in enumerate(parts):
        positive = m if scheme == "ovr" else position[rows].max()
        best = Form("slack").solve(X[rows], np.where(position[rows] == positive, 1, -1), np.full(len(rows), 0.7))
        assert machine.solution_[m].primal == pytest.approx(best.value, rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_no_worse_than_liblinear(loss):
    X, y = blobs(300, 5)
    ours = fit(X, y, loss=loss)
    theirs = SklearnLinearSVC(loss=loss, intercept_scaling=10.0, tol=1e-4, max_iter=10**6, random_state=0).fit(X, y)
    power = 1 if loss == "hinge" else 2
    for k, label in enumerate(ours.classes_):
        sign, cost = np.where(y == label, 1, -1), np.ones(len(y))
        a, b = (Form("slack", power).objective(X, sign, cost, m.coef_[k], m.intercept_[k]) for m in (ours, theirs))
        assert a <= b * (1 + 1e-9)
        assert a == pytest.approx(b, rel=5e-3)


def test_crammer_singer_against_liblinear():
    X, y = blobs(200, 4, 3)
    options = {"multi_class": "crammer_singer", "fit_intercept": False}
    ours = fit(X, y, **options)
    theirs = SklearnLinearSVC(tol=1e-8, max_iter=10**6, random_state=0, **options).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


def test_crammer_singer_of_many_rows_at_a_large_C():
    X, y = blobs(3000, 40, 4)
    assert fit(X, y, multi_class="crammer_singer", C=100.0).solution_.status is Status.CONVERGED


@pytest.mark.parametrize("bias", [{}, {"fit_intercept": False}])
def test_crammer_singer_of_two_classes_is_the_hinge_at_twice_C(bias):
    X, y = blobs(120, 3, 2)
    joint = fit(X, y, multi_class="crammer_singer", C=0.4, **bias)
    plain = fit(X, y, C=0.8, **bias)
    assert joint.coef_.shape == (1, 3)
    np.testing.assert_allclose(joint.coef_, plain.coef_, rtol=1e-9)
    np.testing.assert_allclose(joint.intercept_, plain.intercept_, rtol=1e-9)
    assert joint.certificate_.verify(X, y)
    # The joint problem itself has W = ±w/2.
    W, b = np.vstack([-joint.coef_, joint.coef_]) / 2, np.array([-1, 1]) * joint.intercept_ / 2
    value = Form("crammer_singer").objective(X, (y == "b").astype(int), np.full(len(y), 0.4), W, b)
    assert value == pytest.approx(joint.solution_.primal / 2, rel=1e-9)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_warm_start(scheme):
    X, y = blobs(300, 4)
    cold = fit(X, y, multi_class=scheme)
    machine = LinearSVC(loss="hinge", multi_class=scheme, max_iter=1, warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y)
    first = machine.solution_.gap
    machine.set_params(max_iter=10000).fit(X, y)
    assert machine.solution_.status is Status.CONVERGED
    assert machine.solution_.gap <= first
    assert machine.solution_.primal == pytest.approx(cold.solution_.primal, rel=1e-6)
    machine.fit(X, y)
    assert machine.n_iter_ <= cold.n_iter_
    assert machine.certificate_.verify(X, y)


def test_warm_start_with_other_classes_begins_afresh():
    X, y = blobs()
    machine = fit(X, y, warm_start=True)
    with pytest.warns(UserWarning, match="starting afresh"):
        machine.fit(X, np.where(y == "d", "c", y))
    assert machine.coef_.shape[0] == 3
    np.testing.assert_array_equal(machine.coef_, fit(X, np.where(y == "d", "c", y)).coef_)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_time_limit_leaves_a_certified_model(scheme):
    X, y = blobs(4000, 100, 4, seed=2)
    machine = LinearSVC(loss="hinge", C=100.0, multi_class=scheme, max_seconds=0.003)
    with pytest.warns(ConvergenceWarning, match=r"time limit .* Raise max_seconds"):
        machine.fit(X, y)
    assert machine.solution_.status is Status.TIME_LIMIT
    assert machine.certificate_.verify(X, y).outcome is not Outcome.REJECTED
    assert machine.predict(X[:3]).shape == (3,)


class Presser:
    """A callback that presses Ctrl-C, or asks to stop, after so many tasks."""

    def __init__(self, after, press=True):
        self.after, self.press, self.ended = after, press, 0

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        self.ended += 1
        if self.ended == self.after and self.press:
            os.kill(os.getpid(), signal.SIGINT)
        return not self.press and self.ended >= self.after


def cancelled(watch):
    """Whether somebody cancels the watch; a minute is more than any machine needs for that."""
    for _ in range(60_000):
        if watch.stop_requested:
            return True
        time.sleep(0.001)
    return False


PRESSED = [(scheme, after) for scheme in SCHEMES for after in (1, 5, 20, 21)]


@pytest.mark.parametrize(("scheme", "after"), PRESSED)
def test_ctrl_c_in_a_callback_is_not_lost(scheme, after):
    X, y = blobs(200, 4, 3)
    machine = LinearSVC(loss="hinge", multi_class=scheme).set_callbacks(Presser(after))
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, y)
    assert machine.certificate_.verify(X, y).outcome is not Outcome.REJECTED


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_ctrl_c_after_the_last_machine_is_not_lost(scheme):
    def press(iteration, gap, seconds):
        if iteration == 3:  # all machines are done, the fit is not
            raise KeyboardInterrupt

    X, y = blobs(200, 4, 3)
    machine = LinearSVC(multi_class=scheme)
    with reporting_to(press), pytest.raises(KeyboardInterrupt):
        machine.fit(X, y)
    assert machine.certificate_.verify(X, y).outcome is not Outcome.REJECTED


@pytest.mark.parametrize("scheme", SCHEMES)
def test_ctrl_c_from_outside_keeps_a_usable_model(scheme, monkeypatch):
    X, y = blobs(1200, 15, 4, seed=2)
    solver = "auto" if scheme == "crammer_singer" else "interior_point"
    machine = LinearSVC(loss="hinge", C=1e4, multi_class=scheme, solver=solver)
    pressed = []

    def report(watch, *_):
        """A solver is at work, in a thread of its own if there are several; the main thread hears Ctrl-C."""
        if not pressed:
            pressed.append(watch)
            os.kill(os.getpid(), signal.SIGINT)
        if threading.current_thread() is not threading.main_thread():
            assert cancelled(watch)

    monkeypatch.setattr(Watch, "report", report)
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, y)
    assert len(pressed) == 1
    assert machine.solution_.status is Status.INTERRUPTED
    assert machine.certificate_.verify(X, y).outcome is not Outcome.REJECTED
    assert machine.predict(X[:3]).shape == (3,)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_callback_can_stop_the_fit(scheme):
    X, y = blobs(1000, 20, 4)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        machine = LinearSVC(loss="hinge", C=100.0, multi_class=scheme).set_callbacks(Presser(1, press=False)).fit(X, y)
    assert machine.solution_.gap > 1e-6
    assert machine.certificate_.verify(X, y).outcome is not Outcome.REJECTED


@pytest.mark.parametrize("scheme", SCHEMES)
def test_callbacks_come_in_chunks(scheme):
    counter = Presser(1000, press=False)
    LinearSVC(multi_class=scheme).set_callbacks(counter).fit(*blobs())
    assert counter.ended == 21


def test_solutions_behave_like_a_list():
    solutions = fit(*blobs()).solution_
    assert isinstance(solutions, Solutions)
    assert len(solutions) == 4
    assert solutions.primal == pytest.approx(sum(part.primal for part in solutions))
    assert solutions.gap == max(part.gap for part in solutions)
    assert solutions.status is Status.CONVERGED


@pytest.mark.parametrize(("before", "after"), [("ovr", "ovo"), ("ovo", "ovr")])
def test_parameters_set_after_the_fit_do_not_change_the_model(before, after):
    X, y = blobs(k=3)
    machine = fit(X, y, multi_class=before)
    expected = machine.predict(X)
    assert np.array_equal(machine.set_params(multi_class=after).predict(X), expected)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_sparsify_and_back(scheme):
    X, y = blobs()
    machine = fit(X, y, multi_class=scheme)
    expected = machine.decision_function(X)
    np.testing.assert_allclose(machine.sparsify().decision_function(X), expected)
    np.testing.assert_allclose(machine.densify().decision_function(X), expected)

"""LinearSVC as people use it."""

import multiprocessing
import os
import pickle
import signal
import threading
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as SklearnLinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import ConvergenceWarning, LinearSVC, Status
from maxmargin.certificates import Outcome
from tests.conftest import tall


@parametrize_with_checks(
    [
        LinearSVC(),
        LinearSVC(loss="hinge"),
        LinearSVC(solver="dual_cd"),
        LinearSVC(solver="dual_cd", loss="hinge"),
        LinearSVC(solver="interior_point", loss="hinge"),
    ]
)
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        # The checks build odd inputs themselves and turn warnings into errors where they matter.
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_equals_libsvm_with_a_linear_kernel(C):
    X, y = tall(80, 4, seed=7)
    ours = LinearSVC(loss="hinge", C=C).fit(X, y)
    theirs = SVC(kernel="linear", C=C, tol=1e-4).fit(X, y)  # tighter, it runs for minutes
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("scaling", [1.0, 5.0])
def test_penalised_bias_equals_liblinear(loss, scaling):
    X, y = tall(200, 4, seed=8)
    ours = LinearSVC(loss=loss, penalize_intercept=True, intercept_scaling=scaling).fit(X, y)
    theirs = SklearnLinearSVC(loss=loss, intercept_scaling=scaling, tol=1e-8, max_iter=10**6, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {1: 3.0}])
def test_weight_equals_repetition(loss, class_weight):
    X, y = tall(120, 5, seed=9)
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = LinearSVC(loss=loss, class_weight=class_weight).fit(X, y, weight)
    repeated = LinearSVC(loss=loss, class_weight=class_weight).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-7, atol=1e-9)
    assert weighted.solution_.primal == pytest.approx(repeated.solution_.primal, rel=1e-10)


def test_very_unequal_costs():
    machine = LinearSVC(class_weight={0: 1e-20}).fit([[1.0], [-1.0], [2.0], [-2.0]], [1, 0, 1, 0])
    assert machine.solution_.gap <= 1e-6


def test_bad_positions_are_named_wherever_a_matrix_enters():
    X, y = tall(30, 3)
    machine = LinearSVC().fit(X, y)
    broken = sp.csr_array(X)
    broken.indices[4] = 10**8
    for call in (machine.predict, machine.decision_function, lambda Z: machine.certificate_.verify(Z, y)):
        with pytest.raises(ValueError, match="row 1 names column 100000000"):
            call(broken)


def test_a_failed_refit_leaves_the_old_model():
    X, y = tall(30, 3)
    machine = LinearSVC().fit(X, y)
    expected = machine.predict(X)
    with pytest.raises(ValueError, match="C must be"):
        machine.set_params(C=-1.0).fit(X[:, :2], y)
    assert machine.n_features_in_ == 3
    assert np.array_equal(machine.predict(X), expected)


def test_multipliers_tell_where_a_row_lies():
    X, y = tall(200, 3, seed=4)
    machine = LinearSVC(loss="hinge", C=2.0).fit(X, y)
    alpha, margin = machine.solution_.alpha, y * machine.decision_function(X)
    assert np.all(alpha[margin > 1 + 1e-9] == 0.0)
    assert np.all(alpha[margin < 1 - 1e-9] == 2.0)
    free = (alpha > 0.0) & (alpha < 2.0)
    assert free.any()
    np.testing.assert_allclose(margin[free], 1.0, atol=1e-9)
    assert machine.dual_coef_.shape == (1, len(machine.support_))
    np.testing.assert_allclose(machine.dual_coef_ @ X[machine.support_], machine.coef_, rtol=1e-9)


def test_squared_hinge_multipliers_are_twice_the_priced_slack():
    X, y = tall(200, 3, seed=4)
    machine = LinearSVC(C=2.0).fit(X, y)
    slack = np.maximum(0.0, 1.0 - y * machine.decision_function(X))
    np.testing.assert_allclose(machine.solution_.alpha, 4.0 * slack, atol=1e-9)


def fit_bits(args):
    X, y, options = args
    machine = LinearSVC(**options).fit(X, y)
    return machine.coef_.tobytes() + machine.intercept_.tobytes()


@pytest.mark.parametrize("solver", ["interior_point", "dual_cd"])
@pytest.mark.parametrize("sparse", [False, True])
def test_same_bits_for_any_threads_repeats_forks_and_callers(solver, sparse, instruction_set):
    X, y = tall(9000, 20, seed=11)
    X[np.abs(X) < 0.5] = 0.0
    X = sp.csr_array(X) if sparse else X
    options = {"loss": "hinge", "solver": solver, "C": 0.1}
    expected = fit_bits((X, y, {**options, "n_threads": 1}))
    for n_threads in (1, 2, 4):
        assert fit_bits((X, y, {**options, "n_threads": n_threads})) == expected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking a process that has threads is the point
        with multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.map(fit_bits, [(X, y, {**options, "n_threads": 2})])[0] == expected
    found = []
    callers = [
        threading.Thread(target=lambda: found.append(fit_bits((X, y, {**options, "n_threads": 2})))) for _ in range(2)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert found == [expected] * 2


def test_random_state_changes_the_order_but_not_the_answer():
    X, y = tall(300, 5)
    a, b = (LinearSVC(loss="hinge", solver="dual_cd", random_state=s).fit(X, y) for s in (1, 2))
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-7)


class Interrupter:
    """A callback that presses Ctrl-C in the middle of the first fit it sees."""

    def __init__(self):
        self.pressed = False

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        if not self.pressed:
            self.pressed = True
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("solver", ["interior_point", "dual_cd"])
def test_ctrl_c_keeps_a_usable_model(solver):
    X, y = tall(20000, 30, seed=2)
    machine = LinearSVC(loss="hinge", C=1e3, solver=solver, warm_start=True)
    machine.set_callbacks(Interrupter())
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, y)
    assert machine.solution_.status is Status.INTERRUPTED
    assert machine.solution_.gap > 1e-6
    assert machine.predict(X[:5]).shape == (5,)
    assert machine.certificate_.verify(X, y).outcome is Outcome.HONEST
    machine.fit(X, y)
    assert machine.solution_.status is Status.CONVERGED


@pytest.mark.parametrize("solver", ["interior_point", "dual_cd"])
def test_time_limit_warns_and_warm_start_continues(solver):
    X, y = tall(40000, 40, seed=2)
    machine = LinearSVC(loss="hinge", C=100.0, solver=solver, max_seconds=0.02, warm_start=True)
    with pytest.warns(ConvergenceWarning, match=r"time limit .* Raise max_seconds"):
        machine.fit(X, y)
    assert machine.solution_.status is Status.TIME_LIMIT
    assert machine.certificate_.verify(X, y).outcome is Outcome.HONEST
    first = machine.solution_.gap
    machine.set_params(max_seconds=None, max_iter=10**6).fit(X, y)
    assert machine.solution_.status is Status.CONVERGED
    assert machine.solution_.gap < first


def test_warm_start_of_a_finished_fit_costs_nothing():
    X, y = tall(500, 5)
    machine = LinearSVC(loss="hinge", solver="interior_point", warm_start=True).fit(X, y)
    machine.fit(X, y)
    assert machine.n_iter_ <= 5
    with pytest.warns(UserWarning, match="had 500 rows, this one has 400"):
        machine.fit(X[:400], y[:400])


def test_early_stop_says_how_far_off_and_what_to_do():
    X, y = tall(300, 5)
    with pytest.warns(ConvergenceWarning, match=r"relative gap of .* Raise max_iter") as caught:
        LinearSVC(loss="hinge", max_iter=2, solver="interior_point").fit(X, y)
    assert issubclass(caught[0].category, SklearnConvergenceWarning)
    assert caught[0].filename == __file__


NO_EFFECT = [
    ({"dual": True}, "dual=True has no effect"),
    ({"intercept_scaling": 2.0}, "intercept_scaling=2.0 has no"),
]


@pytest.mark.parametrize(("options", "message"), NO_EFFECT)
def test_parameters_without_effect_warn(options, message, overlapping):
    with pytest.warns(UserWarning, match=message) as caught:
        LinearSVC(**options).fit(*overlapping)
    assert len(caught) == 1
    assert caught[0].filename == __file__


UNSUPPORTED = [
    ({"penalty": "l0"}, "penalty must be 'l1' or 'l2'"),
    ({"penalty": "l1", "loss": "hinge"}, "goes with loss 'squared_hinge'"),
    ({"penalty": "l1", "solver": "dual_cd"}, "cannot solve loss 'squared_hinge' with penalty 'l1'"),
    ({"multi_class": "joint"}, "multi_class must be"),
    ({"multi_class": "crammer_singer", "penalty": "l1"}, "penalty='l2' only"),
    ({"dual": "yes"}, "dual must be"),
    ({"solver": "simplex"}, "solver must be"),
    ({"loss": 5.0}, "loss must be"),
    ({"loss": "logistic"}, "belongs to maxmargin.LogisticRegression"),
    ({"tol": 0.0}, "tol must be"),
    ({"max_iter": 0}, "max_iter must be"),
    ({"max_iter": 1.5}, "max_iter must be"),
    ({"max_seconds": -1.0}, "max_seconds must be"),
    ({"n_threads": 0}, "n_threads must be"),
    ({"n_threads": 2**31}, "n_threads must be"),
    ({"verbose": -1}, "verbose must be"),
    ({"loss": "log"}, "loss must be"),
    ({"C": 0}, "C must be"),
]


@pytest.mark.parametrize(("options", "message"), UNSUPPORTED)
def test_unsupported_values_raise(options, message, overlapping):
    with pytest.raises(ValueError, match=message):
        LinearSVC(**options).fit(*overlapping)


class Recorder:
    """A callback that counts tasks and may ask to stop."""

    def __init__(self, stop_after=None):
        self.stop_after, self.begun, self.ended = stop_after, 0, 0

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context):
        self.begun += 1

    def on_fit_task_end(self, estimator, context):
        self.ended += 1
        return self.stop_after is not None and self.ended >= self.stop_after


@pytest.mark.parametrize("solver", ["interior_point", "dual_cd"])
def test_callbacks_come_in_chunks(solver, overlapping):
    recorder = Recorder()
    LinearSVC(loss="hinge", solver=solver).set_callbacks(recorder).fit(*overlapping)
    assert recorder.begun == recorder.ended == 21  # twenty chunks and the fit itself


def test_a_callback_can_stop_the_fit(overlapping):
    recorder = Recorder(stop_after=1)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        machine = LinearSVC(loss="hinge", solver="interior_point").set_callbacks(recorder).fit(*overlapping)
    assert machine.solution_.gap > 1e-6


def test_scikit_learns_progress_bar(overlapping, capsys):
    LinearSVC(loss="hinge").set_callbacks(ProgressBar()).fit(*overlapping)
    assert "LinearSVC" in capsys.readouterr().out


def test_verbose_prints_gaps(overlapping, capsys):
    LinearSVC(loss="hinge", verbose=1).fit(*overlapping)
    assert "[LinearSVC] iteration" in capsys.readouterr().out


def test_lives_in_pipelines_searches_and_pickles(overlapping):
    X, y = overlapping
    search = GridSearchCV(make_pipeline(StandardScaler(), LinearSVC()), {"linearsvc__C": [0.1, 1.0]}, cv=3).fit(X, y)
    best = search.best_estimator_
    again = pickle.loads(pickle.dumps(best))
    assert np.array_equal(again.predict(X), best.predict(X))
    assert clone(best[-1]).get_params() == best[-1].get_params()


def test_sparsify_and_back(overlapping):
    X, y = overlapping
    machine = LinearSVC().fit(X, y)
    expected = machine.decision_function(X)
    assert sp.issparse(machine.sparsify().coef_)
    np.testing.assert_allclose(machine.decision_function(X), expected)
    assert isinstance(machine.densify().coef_, np.ndarray)


def test_predict_is_the_sign_of_the_score(overlapping):
    X, y = overlapping
    machine = LinearSVC().fit(X, y)
    assert np.array_equal(machine.predict(X), machine.classes_[(machine.decision_function(X) > 0).astype(int)])


def test_memory_map_without_copy(tmp_path, overlapping):
    X, y = overlapping
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    np.testing.assert_array_equal(LinearSVC().fit(mapped, y).coef_, LinearSVC().fit(X, y).coef_)


@pytest.mark.parametrize("solver", ["interior_point", "dual_cd"])
@pytest.mark.parametrize("layout", ["float64", "float32", "csr"])
def test_memory_beyond_the_data(solver, layout):
    X, y = tall(30000, 40, seed=6)
    if layout == "csr":
        X[np.abs(X) < 1.0] = 0.0
        X = sp.csr_array(X)
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    else:
        X = X.astype(layout)
        size = X.nbytes
    machine = LinearSVC(loss="hinge", solver=solver)
    machine.fit(X[:100], y[:100])  # imports
    tracemalloc.start()
    try:
        machine.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= size + 200 * X.shape[0]


def test_a_watch_polls_when_its_interval_has_passed_and_not_before():
    from maxmargin import _core

    rows, w, out = _core.Rows.dense(np.ones((20000, 20))), np.ones(20), np.empty(20000)
    rare, eager = _core.Watch(3600.0), _core.Watch(0.0)
    for calls in range(1, 6):
        _core.scores(rows, w, 0.0, out, 1, rare)
        _core.scores(rows, w, 0.0, out, 1, eager)
        assert rare.n_polls == 0
        assert eager.n_polls >= calls

"""LogisticRegression as people use it."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import ConvergenceWarning, LogisticRegression, Problem, Status
from maxmargin.certificates import Outcome
from maxmargin.solvers import DualCoordinateDescent
from tests.conftest import tall
from tests.oracles import Form
from tests.svm.test_multiclass import blobs

SCHEMES = ["multinomial", "ovr", "ovo"]


@parametrize_with_checks(
    [
        LogisticRegression(),
        LogisticRegression(penalty="l1"),
        LogisticRegression(multi_class="ovr"),
        LogisticRegression(multi_class="ovo"),
    ]
)
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("bias", [True, False])
def test_equals_scikit_learn(C, k, bias):
    X, y = blobs(200, 4, k)
    ours = LogisticRegression(C=C, tol=1e-12, fit_intercept=bias).fit(X, y)
    theirs = SklearnLogisticRegression(C=C, tol=1e-10, max_iter=10**4, fit_intercept=bias, solver="newton-cg").fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-5 * max(1.0, np.abs(theirs.coef_).max()))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert ours.certificate_.verify(X, y)


def test_weights_equal_scikit_learns():
    X, y = blobs(200, 4, 3)
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    options = {"class_weight": {"a": 2.0, "b": 0.5}}
    ours = LogisticRegression(tol=1e-12, **options).fit(X, y, weight)
    theirs = SklearnLogisticRegression(tol=1e-10, max_iter=10**4, solver="newton-cg", **options).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.certificate_.verify(X, y, weight)
    assert not ours.certificate_.verify(X, y)


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_parts_are_two_class_machines_bit_for_bit(scheme):
    X, y = blobs(k=3)
    machine = LogisticRegression(multi_class=scheme).fit(X, y)
    for m, pair in enumerate([("a", "b"), ("a", "c"), ("b", "c")]):
        rows = np.isin(y, pair) if scheme == "ovo" else np.ones(len(y), dtype=bool)
        part = LogisticRegression().fit(X[rows], y[rows] == ("abc"[m] if scheme == "ovr" else pair[1]))
        assert part.coef_[0].tobytes() == machine.coef_[m].tobytes()


@pytest.mark.parametrize("scheme", ["auto", *SCHEMES])
def test_two_classes_are_one_machine_whatever_the_scheme(scheme):
    X, y = tall(100, 3)
    machine = LogisticRegression(multi_class=scheme).fit(X, y)
    assert machine.coef_.shape == (1, 3)
    np.testing.assert_allclose(machine.coef_, LogisticRegression().fit(X, y).coef_, rtol=1e-9)
    assert machine.certificate_.verify(X, y)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_probabilities(scheme, k):
    X, y = blobs(k=k)
    machine = LogisticRegression(multi_class=scheme).fit(X, y)
    p = machine.predict_proba(X)
    assert p.shape == (len(y), k)
    assert p.min() >= 0.0
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert np.array_equal(machine.classes_[p.argmax(axis=1)], machine.predict(X))
    np.testing.assert_allclose(np.exp(machine.predict_log_proba(X)), p, atol=1e-12)


def test_a_free_bias_makes_mean_probabilities_the_frequencies():
    X, y = blobs(300, 4, 3)
    p = LogisticRegression(tol=1e-12).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p.mean(axis=0), [np.mean(y == c) for c in "abc"], atol=1e-7)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_arg_max_is_predict_whatever_the_scores(scheme, k):
    rng = np.random.default_rng(0)
    machine = LogisticRegression(multi_class=scheme).fit(*blobs(k=k))
    for scale in (1e-300, 1e-17, 1e-8, 1.0, 40.0, 800.0, 1e5, 1e150):
        for ties in (False, True):
            coef = rng.standard_normal(machine.coef_.shape)
            machine.coef_ = scale * (np.round(coef) if ties else coef)
            machine.intercept_ = scale * np.round(rng.standard_normal(machine.intercept_.shape))
            X = np.round(rng.standard_normal((300, 4))) if ties else rng.standard_normal((300, 4))
            p = machine.predict_proba(X)
            assert np.all((p >= 0.0) & (p <= 1.0 + 1e-12))
            np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
            assert np.array_equal(machine.classes_[p.argmax(axis=1)], machine.predict(X)), (scale, ties)


@pytest.mark.parametrize("C", [0.03, 0.3, 3.0])
def test_l1_equals_liblinear(C):
    X, y = tall(200, 10, seed=3)
    X[:, 5:] = np.random.default_rng(0).standard_normal((200, 5))
    ours = LogisticRegression(penalty="l1", C=C, fit_intercept=False, tol=1e-10).fit(X, y)
    theirs = SklearnLogisticRegression(
        l1_ratio=1.0, C=C, fit_intercept=False, solver="liblinear", tol=1e-10, max_iter=10**5
    ).fit(X, y)
    form, cost = Form("logistic", penalty="l1"), np.full(len(y), C)
    a, b = (form.objective(X, y, cost, m.coef_, np.zeros(1)) for m in (ours, theirs))
    assert a <= b * (1 + 1e-9)
    assert a == pytest.approx(b, rel=1e-6)
    assert np.array_equal(ours.coef_ == 0.0, theirs.coef_ == 0.0)
    assert ours.certificate_.verify(X, y)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_objective_against_clarabel(penalty):
    X, y = tall(120, 5, seed=5)
    machine = LogisticRegression(penalty=penalty, C=0.2).fit(X, y)
    best = Form("logistic", penalty=penalty).solve(X, y, np.full(len(y), 0.2)).value
    assert machine.solution_.primal == pytest.approx(best, rel=1e-6)


def test_l1_zeros_are_exact_and_grow_as_C_falls():
    X, y = tall(300, 30, seed=3)
    used = [np.count_nonzero(LogisticRegression(penalty="l1", C=C).fit(X, y).coef_) for C in (1e-4, 0.02, 0.1, 10.0)]
    assert used[0] == 0
    assert used[1] < used[2] < used[3]


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_sparse_and_float32(penalty):
    X, y = blobs(k=3)
    X = np.where(np.abs(X) < 0.7, 0.0, X).astype(np.float32)
    expected = LogisticRegression(penalty, tol=1e-10).fit(X.astype(np.float64), y)
    for layout in (X, sp.csr_array(X), sp.csc_array(X)):
        machine = LogisticRegression(penalty, tol=1e-10).fit(layout, y)
        np.testing.assert_allclose(machine.coef_, expected.coef_, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(machine.predict_proba(layout), expected.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("options", [{}, {"penalty": "l1"}, {"multi_class": "ovr"}, {"multi_class": "ovo"}])
def test_same_bits_for_any_threads(options):
    X, y = blobs(9000, 6, 3)
    one, two = (LogisticRegression(n_threads=t, **options).fit(X, y) for t in (1, 2))
    assert one.coef_.tobytes() == two.coef_.tobytes()


@pytest.mark.parametrize("options", [{}, {"penalty": "l1"}, {"multi_class": "ovr"}])
def test_warm_start_and_limits(options):
    X, y = blobs(3000, 10, 3)
    cold = LogisticRegression(**options).fit(X, y)
    machine = LogisticRegression(max_iter=1, warm_start=True, **options)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        machine.fit(X, y)
    assert machine.certificate_.verify(X, y).outcome is not Outcome.REJECTED
    machine.set_params(max_iter=1000).fit(X, y)
    assert machine.solution_.status is Status.CONVERGED
    assert machine.solution_.primal == pytest.approx(cold.solution_.primal, rel=1e-6)


@pytest.mark.parametrize("options", [{}, {"penalty": "l1"}, {"multi_class": "ovr"}])
def test_warm_start_of_a_finished_fit_costs_little(options):
    X, y = blobs(3000, 10, 3)
    machine = LogisticRegression(warm_start=True, **options).fit(X, y)
    cold = machine.n_iter_
    assert machine.fit(X, y).n_iter_ <= min(5, cold)


@pytest.mark.parametrize("options", [{}, {"penalty": "l1"}, {"multi_class": "ovr"}])
def test_time_limit_leaves_a_certified_model(options):
    X, y = blobs(4000, 100, 4)
    machine = LogisticRegression(C=100.0, max_seconds=1e-5, **options)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        machine.fit(X, y)
    assert machine.certificate_.verify(X, y).outcome is not Outcome.REJECTED
    assert machine.predict_proba(X[:3]).shape == (3, 4)


def test_separable_classes_are_no_problem():
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    machine = LogisticRegression(C=1e6).fit(X, [0, 0, 1, 1])
    assert machine.solution_.gap <= 1e-6
    assert machine.predict_proba([[0.0]]) == pytest.approx(0.5)
    best = Form("logistic").solve(X, np.array([-1, -1, 1, 1]), np.full(4, 1e6))
    assert machine.solution_.primal <= best.value * (1 + 1e-6)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("bias", [{}, {"fit_intercept": False}, {"penalize_intercept": True}])
def test_coordinate_steps_on_the_entropy_alone_reach_the_optimum_of_newton(C, bias):
    rng = np.random.default_rng(7)
    X = sp.random_array((300, 2000), density=0.01, rng=rng, format="csr")
    y = np.where(X[:, :1000].sum(axis=1) > X[:, 1000:].sum(axis=1), 1, -1)
    weight = rng.integers(0, 3, 300).astype(float)  # rows without cost among them
    exact = LogisticRegression(C=C, solver="newton", tol=1e-12, **bias).fit(X, y, sample_weight=weight).solution_
    problem = Problem.from_arrays(X, y, C=C, loss="logistic", sample_weight=weight, **bias)
    found = DualCoordinateDescent(tol=1e-9, polish=False).solve(problem)
    assert found.status is Status.CONVERGED
    assert found.primal == pytest.approx(exact.primal, rel=1e-9)
    np.testing.assert_allclose(found.w, exact.w, atol=found.distance_bound + exact.distance_bound)


ERRORS = [
    ({"multi_class": "crammer_singer"}, "multi_class must be"),
    ({"multi_class": "multinomial", "penalty": "l1"}, "penalty='l2' only"),
    ({"penalty": "elasticnet"}, "penalty must be"),
    ({"C": np.inf}, "C"),
    ({"C": -1.0}, "C must be"),
    ({"solver": "interior_point"}, "cannot solve"),
    ({"solver": "lbfgs"}, "solver must be"),
]


@pytest.mark.parametrize(("options", "message"), ERRORS)
def test_bad_parameters_raise(options, message):
    with pytest.raises(ValueError, match=message):
        LogisticRegression(**options).fit(*blobs(k=2))


@pytest.mark.parametrize(("options", "message"), ERRORS)
def test_bad_parameters_raise_with_three_classes(options, message):
    with pytest.raises(ValueError, match=message):
        LogisticRegression(**options).fit(*blobs(k=3))


def test_parameters_set_after_the_fit_do_not_change_the_model():
    X, y = blobs(k=3)
    machine = LogisticRegression().fit(X, y)
    expected = machine.predict_proba(X)
    np.testing.assert_array_equal(machine.set_params(multi_class="ovr").predict_proba(X), expected)

"""Ridge regression: primal, dual, scikit-learn, and badly conditioned rows."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.linear_model import RidgeClassifier as SklearnRidgeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import InputError
from maxmargin.squares import LeastSquaresRegressor, Ridge, RidgeClassifier, ridge, systems
from tests.squares.problems import by_bordered_system, deficient, noisy


@parametrize_with_checks(
    [
        Ridge(),
        Ridge(form="primal"),
        Ridge(form="dual"),
        Ridge(alpha=0.0),
        Ridge(fit_intercept=False),
        RidgeClassifier(),
        RidgeClassifier(form="dual"),
    ]
)
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.fixture(params=["dense", "sparse", "large_sparse"])
def layout(request, monkeypatch):
    """Rows as an array, as a sparse matrix, and as one too large to be made dense."""
    if request.param == "large_sparse":
        monkeypatch.setattr(ridge, "MOST_DENSE", 0)
    return np.asarray if request.param == "dense" else sp.csr_array


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("outputs", [None, 1, 3])
def test_primal_is_dual_is_scikit_learn(fit_intercept, outputs, layout):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X, y = noisy(int(rng.integers(2, 40)), int(rng.integers(1, 40)), seed, outputs)
        alpha, weight = 10.0 ** rng.integers(-3, 4), rng.uniform(0.1, 3.0, len(y))
        theirs = SklearnRidge(alpha=alpha, fit_intercept=fit_intercept, solver="svd").fit(X, y, weight)
        for form in ("primal", "dual", "auto"):
            ours = Ridge(alpha=alpha, fit_intercept=fit_intercept, form=form).fit(layout(X), y, weight)
            # scikit-learn flattens the weights of a single output in a column; here they keep the shape of y.
            assert ours.coef_.shape == (*y.shape[1:], X.shape[1])
            assert ours.predict(X).shape == y.shape
            np.testing.assert_allclose(ours.coef_, theirs.coef_.reshape(ours.coef_.shape), rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-8, atol=1e-8)


def test_the_form_is_that_of_fewer_unknowns():
    X, y = noisy(10, 10)
    assert Ridge().fit(X, y).form_ == "primal"
    wide = Ridge().fit(X[:9], y[:9])
    assert wide.form_ == "dual"
    assert wide.dual_coef_.shape == (9,)
    # Rows of weight zero do not count.
    assert Ridge().fit(X, y, [0.0] + [1.0] * 9).form_ == "dual"
    wide.set_params(form="primal").fit(X[:9], y[:9])
    assert wide.form_ == "primal"
    assert not hasattr(wide, "dual_coef_")


def test_normal_equations_hold(layout):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X, y = noisy(int(rng.integers(5, 40)), int(rng.integers(1, 40)), seed)
        alpha, weight = 10.0 ** rng.integers(-3, 4), rng.uniform(0.1, 3.0, len(y))
        for form in ("primal", "dual"):
            machine = Ridge(alpha=alpha, form=form).fit(layout(X), y, weight)
            error = weight * (y - machine.predict(X))
            right = X.T @ (weight * (y - np.average(y, weights=weight)))
            assert np.linalg.norm(X.T @ error - alpha * machine.coef_) <= 1e-10 * np.linalg.norm(right) + 1e-12
            assert abs(error.sum()) <= 1e-10 * np.abs(weight * y).sum()


def test_dual_coefficients_solve_the_bordered_system(layout):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X, y = noisy(int(rng.integers(2, 15)), 20, seed, outputs=2)
        alpha, weight = 10.0 ** rng.integers(-2, 3), rng.uniform(0.1, 3.0, len(y))
        machine = Ridge(alpha=alpha, form="dual").fit(layout(X), y, weight)
        a, b = by_bordered_system(X @ X.T, y, weight, alpha)
        np.testing.assert_allclose(machine.dual_coef_, a, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(machine.intercept_, b, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(machine.coef_, machine.dual_coef_.T @ X, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("shape", [(30, 8), (8, 30), (30, 30)])
def test_alpha_zero_is_least_squares(form, shape, layout):
    for seed in range(10):
        X, y = noisy(*shape, seed)
        ours, expected = Ridge(alpha=0.0, form=form).fit(layout(X), y), LeastSquaresRegressor().fit(X, y)
        np.testing.assert_allclose(ours.coef_, expected.coef_, rtol=1e-5, atol=1e-6)
        X, y = deficient(*shape, seed=seed)
        ours, expected = Ridge(alpha=0.0, form=form).fit(layout(X), y), LeastSquaresRegressor().fit(X, y)
        np.testing.assert_allclose(ours.coef_, expected.coef_, rtol=1e-7, atol=1e-8)
        if form == "dual":
            np.testing.assert_allclose(ours.dual_coef_ @ X, ours.coef_, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("form", ["primal", "dual"])
def test_badly_conditioned_rows(form, layout):
    """Singular values from 1 to 1e-7: their squares are below rounding, the answer is not."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        left, right = np.linalg.qr(rng.standard_normal((30, 8)))[0], np.linalg.qr(rng.standard_normal((8, 8)))[0]
        smallest = 1e-7 if layout is np.asarray else 1e-4
        X = left * np.geomspace(1.0, smallest, 8) @ right
        y = rng.standard_normal(30)
        for alpha in (0.0, 0.1 * smallest**2, smallest**2):
            machine = Ridge(alpha=alpha, form=form, fit_intercept=False).fit(layout(X), y)
            U, s, V = np.linalg.svd(X, full_matrices=False)
            w = V.T @ (s / (s**2 + alpha) * (U.T @ y))
            assert np.linalg.norm(machine.coef_ - w) <= 1e-5 * np.linalg.norm(w)


def test_columns_of_very_different_size_need_no_singular_values(monkeypatch):
    monkeypatch.setattr(systems.scipy.linalg, "svd", None)
    X, y = noisy(50, 4)
    units = np.array([1e6, 1.0, 1e-3, 1e3])
    machine = Ridge(alpha=0.0, form="primal").fit(X * units, y)
    np.testing.assert_allclose(machine.coef_ * units, LeastSquaresRegressor().fit(X, y).coef_, rtol=1e-9)


@pytest.mark.parametrize("machine", [Ridge(0.5), RidgeClassifier(0.5)], ids=repr)
@pytest.mark.parametrize("form", ["primal", "dual"])
def test_weight_equals_repetition(machine, form, layout):
    for seed in range(10):
        X, y = noisy(30, 10, seed)
        if isinstance(machine, RidgeClassifier):
            y = np.arange(30) % 3
        weight = np.random.default_rng(seed).integers(0, 4, 30)
        weight[:3] = 1
        weighted = clone(machine).set_params(form=form).fit(layout(X), y, weight)
        repeated = clone(machine).set_params(form=form).fit(layout(np.repeat(X, weight, axis=0)), np.repeat(y, weight))
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-9, atol=1e-11)
        if form == "dual":
            assert weighted.dual_coef_.shape[0] == 30
            assert np.all(weighted.dual_coef_[weight == 0] == 0.0)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_classifier_equals_scikit_learn(class_weight, n_classes):
    X, _ = noisy(80, 6)
    y = np.random.default_rng(1).integers(0, n_classes, 80)
    y[:n_classes] = np.arange(n_classes)
    theirs = SklearnRidgeClassifier(alpha=2.0, class_weight=class_weight, solver="svd").fit(X, y)
    for form in ("primal", "dual"):
        ours = RidgeClassifier(2.0, class_weight=class_weight, form=form).fit(X, y)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-9, atol=1e-10)
        assert ours.coef_.shape == (1 if n_classes == 2 else n_classes, 6)
        np.testing.assert_allclose(ours.coef_.ravel(), theirs.coef_.ravel(), rtol=1e-9, atol=1e-10)
        assert np.array_equal(ours.predict(X), theirs.predict(X))
        assert ours.form_ == form


def test_large_offsets_do_not_hurt():
    X, y = noisy(40, 3)
    machine, moved = Ridge(0.1).fit(X, y), Ridge(0.1).fit(X + 2.0**20, y)
    np.testing.assert_allclose(moved.coef_, machine.coef_, rtol=1e-8)
    wide, moved = Ridge(0.1, form="dual").fit(X, y), Ridge(0.1, form="dual").fit(X + 2.0**20, y)
    np.testing.assert_allclose(moved.coef_, wide.coef_, rtol=1e-8)


def test_one_row_and_constant_rows():
    for form in ("primal", "dual"):
        for alpha in (0.0, 1.0):
            machine = Ridge(alpha, form=form).fit([[1.0, 2.0]], [3.0])
            assert machine.predict([[5.0, 6.0]]) == 3.0
            machine = Ridge(alpha, form=form).fit(np.full((5, 2), 0.1), np.arange(5.0))
            np.testing.assert_allclose(machine.coef_, 0.0, atol=1e-12)
            assert machine.intercept_ == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": -1.0}, "alpha must be a number from 0"),
        ({"alpha": np.inf}, "alpha must be finite"),
        ({"alpha": "1"}, "alpha"),
        ({"alpha": True}, "alpha"),
        ({"form": "best"}, "form must be one of auto, primal, dual, got 'best'"),
        ({"form": None}, "form must be one of"),
    ],
)
@pytest.mark.parametrize("machine", [Ridge, RidgeClassifier])
def test_errors(machine, options, message):
    with pytest.raises(InputError, match=message):
        machine(**options).fit([[1.0], [2.0]], [0, 1])

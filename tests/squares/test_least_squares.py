"""Least squares: normal equations, any rank, weights."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import InputError
from maxmargin.squares import LeastSquaresClassifier, LeastSquaresRegressor, Ridge, least_squares
from tests.squares.problems import centred_pinv, deficient, noisy


@parametrize_with_checks(
    [
        LeastSquaresRegressor(),
        LeastSquaresRegressor(fit_intercept=False),
        LeastSquaresClassifier(),
        LeastSquaresClassifier(fit_intercept=False),
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
        monkeypatch.setattr(least_squares, "MOST_DENSE", 0)
    return np.asarray if request.param == "dense" else sp.csr_array


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_errors_are_orthogonal_to_the_columns(fit_intercept, layout):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X, y = noisy(int(rng.integers(20, 60)), int(rng.integers(1, 12)), seed)
        weight = rng.uniform(0.1, 3.0, len(y)) if seed % 2 else np.ones(len(y))
        machine = LeastSquaresRegressor(fit_intercept=fit_intercept).fit(layout(X), y, weight)
        error = weight * (y - machine.predict(X))
        size = np.linalg.norm(X * np.sqrt(weight)[:, None]) * np.linalg.norm(np.sqrt(weight) * y)
        assert np.linalg.norm(X.T @ error) <= 1e-12 * size
        if fit_intercept:
            assert abs(error.sum()) <= 1e-12 * size
        assert machine.residual_ == pytest.approx(error @ error if seed % 2 == 0 else error @ (error / weight))
        assert machine.rank_ == X.shape[1]
        assert machine.singular_.shape == (min(X.shape),)


def test_equals_scikit_learn():
    for outputs in (None, 3):
        X, y = noisy(50, 6, outputs=outputs)
        weight = np.random.default_rng(1).uniform(0.5, 2.0, 50)
        ours, theirs = LeastSquaresRegressor().fit(X, y, weight), LinearRegression().fit(X, y, weight)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-10)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-10)
        assert np.shape(ours.coef_) == np.shape(theirs.coef_)
        assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-10)
        assert np.shape(ours.residual_) == (() if outputs is None else (3,))


@pytest.mark.parametrize("shape", [(30, 8), (6, 20), (2, 3), (1, 4)])
def test_of_many_solutions_the_smallest(shape, layout):
    for seed in range(25):
        X, y = deficient(*shape, rank=min(3, *shape), seed=seed)
        weight = np.random.default_rng(seed).uniform(0.5, 2.0, len(y))
        machine = LeastSquaresRegressor().fit(layout(X), y, weight)
        w, b = centred_pinv(X, y, weight)
        np.testing.assert_allclose(machine.coef_, w, rtol=1e-7, atol=1e-8)
        assert machine.intercept_ == pytest.approx(b, rel=1e-7, abs=1e-7)
        centred = X - X.mean(axis=0)
        assert machine.rank_ == np.linalg.matrix_rank(centred, rtol=1e-10) == min(3, len(y) - 1, shape[1])
        # Moving along a direction in which no row differs changes nothing but the norm.
        null = np.linalg.svd(centred)[2][machine.rank_ :]
        assert np.linalg.norm(null @ machine.coef_) <= 1e-7 * (1.0 + np.linalg.norm(w))


def test_is_the_limit_of_ridge():
    for seed in range(50):
        X, y = deficient(seed=seed)
        limit = LeastSquaresRegressor().fit(X, y)
        gaps = []
        for alpha in (1e-2, 1e-4, 1e-6, 1e-8):
            ridge = Ridge(alpha=alpha).fit(X, y)
            gaps.append(np.linalg.norm(ridge.coef_ - limit.coef_))
            assert np.linalg.norm(ridge.coef_) <= np.linalg.norm(limit.coef_) * (1.0 + 1e-9)
        assert gaps[-1] <= 1e-6 * (1.0 + np.linalg.norm(limit.coef_))
        assert gaps[-1] <= gaps[0]


def test_large_constant_columns_are_no_directions():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X, y = noisy(int(rng.integers(10, 60)), 3, seed)
        weight = rng.uniform(0.1, 2.0, len(y))
        constant = np.full((len(y), 2), 10.0 ** rng.integers(3, 10) / 3.0)
        machine = LeastSquaresRegressor().fit(np.hstack([X, constant]), y, weight)
        assert machine.rank_ == 3
        np.testing.assert_allclose(machine.coef_[3:], 0.0, atol=1e-12)
        np.testing.assert_allclose(machine.coef_[:3], centred_pinv(X, y, weight)[0], rtol=1e-9)


@pytest.mark.parametrize("machine", [LeastSquaresRegressor(), LeastSquaresClassifier()], ids=repr)
@pytest.mark.parametrize("shape", [(40, 5), (8, 20)])
def test_weight_equals_repetition(machine, shape, layout):
    for seed in range(10):
        X, y = noisy(*shape, seed)
        weight = np.random.default_rng(seed).integers(0, 4, len(y))
        weight[:4] = 1
        if isinstance(machine, LeastSquaresClassifier):
            y = np.arange(len(y)) % 3
        weighted = clone(machine).fit(layout(X), y, weight)
        repeated = clone(machine).fit(layout(np.repeat(X, weight, axis=0)), np.repeat(y, weight))
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(weighted.residual_, repeated.residual_, rtol=1e-6, atol=1e-7)


def test_classifier_is_regression_on_signs(layout):
    X, y = noisy(60, 4)
    labels = np.where(y > np.median(y), "up", "down")
    machine = LeastSquaresClassifier().fit(layout(X), labels)
    regression = LeastSquaresRegressor().fit(X, np.where(labels == "up", 1.0, -1.0))
    assert machine.classes_.tolist() == ["down", "up"]
    assert machine.coef_.shape == (1, 4)
    np.testing.assert_allclose(machine.decision_function(X), regression.predict(X), rtol=1e-8, atol=1e-10)
    assert np.array_equal(machine.predict(layout(X)), np.where(regression.predict(X) > 0, "up", "down"))
    assert machine.residual_ == pytest.approx(regression.residual_)


def test_three_classes_are_three_regressions():
    X, _ = noisy(60, 4)
    y = np.digitize(X[:, 0] + 0.1 * X[:, 1], [-1.0, 1.0])
    y = y if len(np.unique(y)) == 3 else np.arange(60) % 3
    machine = LeastSquaresClassifier().fit(X, y)
    assert machine.coef_.shape == (3, 4)
    assert machine.residual_.shape == (3,)
    for k in range(3):
        one = LeastSquaresRegressor().fit(X, np.where(y == k, 1.0, -1.0))
        np.testing.assert_allclose(machine.decision_function(X)[:, k], one.predict(X), rtol=1e-9, atol=1e-12)
    assert np.array_equal(machine.predict(X), machine.decision_function(X).argmax(axis=1))


def test_a_score_of_zero_goes_to_the_first_class():
    machine = LeastSquaresClassifier().fit([[-1.0], [1.0]], ["a", "b"])
    assert machine.decision_function([[0.0]]) == 0.0
    assert machine.predict([[0.0]]).tolist() == ["a"]


def test_float32_and_layouts():
    X, y = noisy(50, 4)
    X = np.where(np.abs(X) < 0.7, 0.0, X).astype(np.float32)
    expected = LeastSquaresRegressor().fit(X.astype(np.float64), y)
    for given in (X, sp.csr_array(X), sp.csc_matrix(X.astype(np.float64)), np.asfortranarray(X), X.tolist()):
        machine = LeastSquaresRegressor().fit(given, y)
        np.testing.assert_allclose(machine.coef_, expected.coef_, rtol=1e-12)
        np.testing.assert_allclose(machine.predict(given), expected.predict(X), rtol=1e-5)


def test_pickle_and_inputs_unchanged():
    X, y = noisy()
    before = X.copy(), y.copy()
    machine = LeastSquaresRegressor().fit(X, y)
    assert np.array_equal(X, before[0])
    assert np.array_equal(y, before[1])
    assert np.array_equal(pickle.loads(pickle.dumps(machine)).predict(X), machine.predict(X))


@pytest.mark.parametrize(
    ("X", "y", "weight", "message"),
    [
        ([[1.0], [np.nan]], [1.0, 2.0], None, "row 1, column 0"),
        ([[1.0], [2.0]], [1.0], None, "X has 2 rows, y has 1"),
        ([[1.0], [2.0]], [1.0, np.inf], None, "y contains infinity: row 1"),
        ([[1.0], [2.0]], [[1.0, 2.0], [3.0, np.nan]], None, r"y contains NaN: row 1.*\(output 1 of y\)"),
        ([[1.0], [2.0]], np.empty((2, 0)), None, "at least one number per row"),
        ([[1.0], [2.0]], ["a", "b"], None, "y must hold numbers"),
        ([[1.0], [2.0]], [1.0, 2.0], [0.0, 0.0], "every sample has weight zero"),
        ([[1.0], [2.0]], [1.0, 2.0], [1.0, -1.0], r"sample_weight\[1\] is -1"),
        ([[1.0], [2.0]], [1.0, 2.0], [1e308, 1e308], "overflows|too large"),
        ([[1e200], [2.0]], [1.0, 2.0], None, "too large for float64"),
        ([[1.0], [2.0]], [1e308, -1e308], None, "overflow"),
    ],
)
def test_errors(X, y, weight, message):
    with pytest.raises(InputError, match=message):
        LeastSquaresRegressor().fit(X, y, weight)


def test_a_column_of_labels_warns():
    with pytest.warns(DataConversionWarning):
        LeastSquaresClassifier().fit([[1.0], [2.0]], [[0], [1]])

"""Kernel ridge regression against the bordered system, ridge regression and scikit-learn."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import InputError
from maxmargin.kernels import Gaussian, Linear, Polynomial, make_kernel
from maxmargin.squares import KernelRidge, Ridge
from tests.squares.problems import by_bordered_system, noisy


@parametrize_with_checks(
    [
        KernelRidge(),
        KernelRidge(kernel="rbf", gamma="scale"),
        KernelRidge(kernel="poly"),
        KernelRidge(fit_intercept=False),
        KernelRidge(kernel="precomputed"),
    ]
)
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.parametrize("options", [{"kernel": "linear"}, {"kernel": "rbf"}, {"kernel": "poly", "degree": 2}], ids=str)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_bordered_system(options, layout):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X, y = noisy(int(rng.integers(2, 40)), 4, seed, outputs=None if seed % 2 else 2)
        alpha, weight = 10.0 ** rng.integers(-2, 3), rng.uniform(0.1, 3.0, len(y))
        machine = KernelRidge(alpha, **options).fit(layout(X), y, weight)
        K = make_kernel(**options, gamma="auto", coef0=1.0, X=X).gram(X)
        a, b = by_bordered_system(K, y, weight, alpha)
        np.testing.assert_allclose(machine.dual_coef_, a, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(machine.intercept_, b, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(machine.predict(layout(X)), K @ a + b, rtol=1e-7, atol=1e-7)
        right = np.linalg.norm(y)
        error = K @ machine.dual_coef_ + (alpha / weight * machine.dual_coef_.T).T + machine.intercept_ - y
        assert np.linalg.norm(error) <= 1e-10 * right
        assert np.all(np.abs(machine.dual_coef_.sum(axis=0)) <= 1e-10 * np.abs(machine.dual_coef_).sum() + 1e-14)


def test_linear_is_ridge():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X, y = noisy(int(rng.integers(5, 40)), 6, seed)
        for fit_intercept in (True, False):
            options = {"alpha": 10.0 ** rng.integers(-2, 3), "fit_intercept": fit_intercept}
            ours, expected = KernelRidge(**options).fit(X, y), Ridge(**options).fit(X, y)
            np.testing.assert_allclose(ours.predict(X), expected.predict(X), rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(ours.dual_coef_ @ X, expected.coef_, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid"])
def test_without_a_bias_it_is_scikit_learns(kernel):
    X, y = noisy(30, 4)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = SklearnKernelRidge(alpha=0.5, kernel=kernel).fit(X, y, weight)
        ours = KernelRidge(0.5, kernel=kernel, fit_intercept=False).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-7)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-6)


def test_ways_to_name_a_kernel():
    X, y = noisy(30, 4)
    expected = KernelRidge(0.1, kernel="rbf", gamma=0.3).fit(X, y)
    assert expected.kernel_ == Gaussian(0.3)
    others = {
        "kernel": Gaussian(0.3),
        "callable": lambda X, Z: Gaussian(0.3).block(X, Z),
    }
    for kernel in others.values():
        machine = clone(KernelRidge(0.1, kernel=kernel)).fit(X, y)
        np.testing.assert_allclose(machine.predict(X[:5]), expected.predict(X[:5]), rtol=1e-9)
    given = KernelRidge(0.1, kernel="precomputed").fit(Gaussian(0.3).gram(X), y)
    np.testing.assert_allclose(given.predict(Gaussian(0.3).block(X[:5], X)), expected.predict(X[:5]), rtol=1e-9)

    def power(X, Z, degree):
        return (X @ Z.T + 1.0) ** degree

    machine = KernelRidge(kernel=power, kernel_params={"degree": 2}).fit(X, y)
    expected = KernelRidge(kernel=Polynomial(1.0, 1.0, 2)).fit(X, y)
    np.testing.assert_allclose(machine.predict(X), expected.predict(X), rtol=1e-8)


@pytest.mark.parametrize("options", [{"kernel": "rbf", "gamma": "scale"}, {"kernel": "linear"}], ids=str)
def test_weight_equals_repetition(options):
    for seed in range(10):
        X, y = noisy(30, 4, seed)
        weight = np.random.default_rng(seed).integers(0, 4, 30)
        for alpha in (1.0, 0.01):
            weighted = KernelRidge(alpha, **options).fit(X, y, weight)
            repeated = KernelRidge(alpha, **options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
            np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-7, atol=1e-7)
            assert np.all(weighted.dual_coef_[weight == 0] == 0.0)
            assert weighted.X_fit_.shape == (30, 4)


def test_weights_with_precomputed_values():
    X, y = noisy(30, 4)
    weight = np.random.default_rng(0).integers(0, 4, 30)
    K = Linear().gram(X)
    given = KernelRidge(kernel="precomputed").fit(K, y, weight)
    np.testing.assert_allclose(given.predict(K), KernelRidge().fit(X, y, weight).predict(X), rtol=1e-8)


def test_alpha_zero_interpolates_with_the_smallest_norm():
    X, y = noisy(15, 2)
    machine = KernelRidge(0.0, kernel="rbf", gamma=5.0).fit(X, y)
    np.testing.assert_allclose(machine.predict(X), y, atol=1e-8)
    X, y = noisy(30, 4)  # rank 4: no interpolation
    np.testing.assert_allclose(KernelRidge(0.0).fit(X, y).predict(X), Ridge(0.0).fit(X, y).predict(X), atol=1e-9)
    twice = KernelRidge(0.0, kernel="rbf").fit(np.vstack([X, X]), np.concatenate([y, y + 2.0]))
    np.testing.assert_allclose(twice.predict(X), y + 1.0, atol=1e-5)


def test_tiny_alpha_is_close_to_zero():
    X, y = noisy(30, 4)
    for alpha in (1e-10, 1e-14, 1e-18):
        np.testing.assert_allclose(KernelRidge(alpha).fit(X, y).predict(X), Ridge(0.0).fit(X, y).predict(X), atol=1e-7)


def test_a_large_constant_in_the_kernel_does_not_hurt():
    X, y = noisy(30, 4)
    moved = KernelRidge(kernel=lambda X, Z: X @ Z.T + 1e6).fit(X, y)
    np.testing.assert_allclose(moved.predict(X), KernelRidge().fit(X, y).predict(X), rtol=1e-6)


def test_kernels_that_are_not_positive_are_noticed():
    X, y = noisy(30, 4)
    with pytest.warns(UserWarning, match="not positive semidefinite on these rows"):
        machine = KernelRidge(1e-3, kernel=lambda X, Z: -(X @ Z.T)).fit(X, y)
    a, b = by_bordered_system(-X @ X.T, y, np.ones(30), 1e-3)
    np.testing.assert_allclose(machine.predict(X), -X @ X.T @ a + b, rtol=1e-6)


def test_as_people_use_it():
    X, y = noisy(60, 4)
    search = GridSearchCV(KernelRidge(), {"alpha": [0.1, 1.0], "kernel": ["linear", "rbf"]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.5
    K = Linear().gram(X)
    np.testing.assert_allclose(
        cross_val_score(KernelRidge(kernel="precomputed"), K, y, cv=3), cross_val_score(KernelRidge(), X, y, cv=3)
    )
    machine = KernelRidge(kernel="rbf").fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(machine)).predict(X), machine.predict(X))
    before = machine.predict(X)
    X_later = X.copy()
    X *= 2.0
    assert np.array_equal(machine.predict(X_later), before)


def test_errors():
    X, y = noisy(10, 3)
    with pytest.raises(InputError, match="square matrix"):
        KernelRidge(kernel="precomputed").fit(X, y)
    with pytest.raises(InputError, match="kernel must be one of"):
        KernelRidge(kernel="cosine").fit(X, y)
    with pytest.raises(InputError, match="alpha must be a number from 0"):
        KernelRidge(-1.0).fit(X, y)
    with pytest.raises(InputError, match="gamma must be"):
        KernelRidge(kernel="rbf", gamma="best").fit(X, y)
    with pytest.raises(ValueError, match="4 features"):
        KernelRidge().fit(X, y).predict(np.ones((2, 4)))
    with pytest.raises(ValueError, match="9 features"):
        KernelRidge(kernel="precomputed").fit(X @ X.T, y).predict(np.ones((2, 9)))
    with pytest.raises(InputError, match="every sample has weight zero"):
        KernelRidge().fit(X, y, np.zeros(10))

"""Values of the Gaussian and Laplacian kernel beside exact differences: wrong by at most 1e-13, wherever rows lie."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin.kernels.gaussian as gaussian_room
import maxmargin.kernels.points as points_room
from maxmargin.kernels import Gaussian, Laplacian, Linear

LAYOUTS = {
    "dense": (np.asarray, np.asarray),
    "sparse": (sp.csr_array, sp.csr_array),
    "sparse and dense": (sp.csr_array, np.asarray),
    "dense and sparse": (np.asarray, sp.csr_matrix),
}


def exact(X, Z, gamma, power):
    """exp(−γ Σ|x − z|^power): exact but for the last two operations."""
    X, Z = ([[Fraction(value) for value in row] for row in rows.tolist()] for rows in (X, Z))
    values = [[sum(abs(a - b) ** power for a, b in zip(x, z, strict=True)) for z in Z] for x in X]
    return np.array([[math.exp(-float(Fraction(gamma) * value)) for value in row] for row in values])


def far(rng, n, d):
    return 1e6 + rng.standard_normal((n, d))


def clusters(rng, n, d):
    return 1e8 * (np.arange(n) % 2)[:, None] + rng.standard_normal((n, d))


def tight_clusters(rng, n, d):
    return 1e8 * (np.arange(n) % 2)[:, None] + 1e-3 * rng.standard_normal((n, d))


def neighbours(rng, n, d):
    """Rows far from each other, but for one pair."""
    X = 1e5 * rng.standard_normal((n, d))
    X[1] = X[0] + 0.1 * rng.standard_normal(d)
    return X


def scales(rng, n, d):
    return rng.standard_normal((n, d)) * 10.0 ** rng.integers(-8, 8, n)[:, None]


def constant(rng, n, d):
    """Equal products, whose rounding adds up in one direction."""
    return np.full((n, d), 0.7) + 1e-9 * rng.standard_normal((n, d))


def outlier(rng, n, d):
    X = rng.standard_normal((n, d))
    X[-1] = 1e12
    return X


def few_entries(rng, n, d):
    X = 1e4 * (rng.random((1, d)) < 0.3) + rng.standard_normal((n, d))
    return X * (rng.random((n, d)) < 0.9)


ROWS = [far, clusters, tight_clusters, neighbours, scales, constant, outlier, few_entries]


@cache
def known_values(make, d, power):
    """Rows, and the exact values of three of them with all for some gamma."""
    n = 20 if d < 800 else 10
    X = make(np.random.default_rng(d), n, d)
    chosen = [0, 1, n - 1]
    gammas = (1.0 / d, 50.0 / np.square(X).sum(axis=1).max(), 1e-3)
    return X, chosen, [(gamma, exact(X[chosen], X, gamma, power)) for gamma in gammas]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("make", ROWS)
@pytest.mark.parametrize("d", [1, 30, 800])
def test_gaussian_values(make, d, layout, monkeypatch):
    left, right = LAYOUTS[layout]
    X, chosen, known = known_values(make, d, 2)
    for gamma, expected in known:
        for most_dense in (gaussian_room.MOST_DENSE, 0):  # 0: rows stay sparse beside dense ones
            monkeypatch.setattr(gaussian_room, "MOST_DENSE", most_dense)
            K = Gaussian(gamma).block(left(X[chosen]), right(X))
            np.testing.assert_allclose(K, expected, rtol=0.0, atol=1e-13)
        K = Gaussian(gamma).gram(left(X))
        assert np.array_equal(K, K.T)
        np.testing.assert_allclose(K[chosen], expected, rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("make", [tight_clusters, clusters, scales, neighbours])
def test_the_expanded_square_alone_is_not_enough_there(make):
    X = make(np.random.default_rng(30), 20, 30)
    away = X - X.mean(axis=0)
    squares = (away * away).sum(axis=1)
    expanded = np.exp(-np.maximum(squares[:, None] + squares - 2.0 * (away @ away.T), 0.0) / 30)
    assert np.abs(expanded - exact(X, X, 1.0 / 30, 2)).max() > 1e-8


@pytest.mark.parametrize("make", ROWS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_laplacian_values(make, layout):
    left, right = LAYOUTS[layout]
    for d in (1, 30, 800):
        X, chosen, known = known_values(make, d, 1)
        for gamma, expected in known:
            K = Laplacian(gamma).block(left(X[chosen]), right(X))
            np.testing.assert_allclose(K, expected, rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("make", [clusters, neighbours])
def test_memory_does_not_change_values(make, layout, monkeypatch):
    left, right = LAYOUTS[layout]
    X = make(np.random.default_rng(0), 50, 4)
    kernels = (Gaussian(0.5), Laplacian(0.5))
    whole = [kernel.block(left(X), right(X)) for kernel in kernels]
    monkeypatch.setattr(gaussian_room, "MOST_AT_ONCE", 120)
    monkeypatch.setattr(points_room, "DENSE_BYTES", 8 * 4 * 7)
    monkeypatch.setattr(points_room, "TOGETHER", 3)
    for kernel, values in zip(kernels, whole, strict=True):
        np.testing.assert_allclose(kernel.block(left(X), right(X)), values, rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_rows_whose_squares_overflow(layout):
    X = layout([[1e200, 0.0], [1.0, 1.0], [1e200, 1.0]])
    expected = [[1.0, 0.0, math.exp(-0.5)], [0.0, 1.0, 0.0], [math.exp(-0.5), 0.0, 1.0]]
    np.testing.assert_allclose(Gaussian(0.5).gram(X), expected, rtol=1e-15)
    np.testing.assert_allclose(Gaussian(0.5).block(X, X), expected, rtol=1e-15)
    np.testing.assert_allclose(Laplacian(0.5).gram(X), expected, rtol=1e-15)
    largest = layout([[1.7e308], [1.7e308], [-1.7e308]])
    expected = [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    np.testing.assert_array_equal(Gaussian().gram(largest), expected)
    np.testing.assert_array_equal(Laplacian().gram(largest), expected)


def test_sparse_rows_without_entries():
    X = sp.csr_array(np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 0.0]]))
    for kernel in (Gaussian(0.1), Laplacian(0.3)):
        value = math.exp(-0.9)
        np.testing.assert_allclose(kernel.gram(X), [[1.0, value, 1.0], [value, 1.0, value], [1.0, value, 1.0]])
        np.testing.assert_array_equal(kernel.block(X[[0]], X[[0, 2]]), [[1.0, 1.0]])


def test_parts_of_a_sum_are_as_exact():
    X = clusters(np.random.default_rng(1), 12, 3)
    K = (Gaussian(0.5) + 1e-16 * Linear()).gram(X)
    np.testing.assert_allclose(K, exact(X, X, 0.5, 2) + 1e-16 * (X @ X.T), rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_clusters_from_near_to_far_apart(layout):
    """On the way from values that need no differences to values that do."""
    left, right = LAYOUTS[layout]
    rng = np.random.default_rng(0)
    spread, side = 0.1 * rng.standard_normal((16, 10)), rng.choice([-1.0, 1.0], (16, 1))
    for apart in 2.0 ** np.arange(0, 16):
        X = spread + apart * side * rng.uniform(0.5, 1.5, 10)
        K = Gaussian(0.5).block(left(X), right(X))
        np.testing.assert_allclose(K, exact(X, X, 0.5, 2), rtol=0.0, atol=1e-13)

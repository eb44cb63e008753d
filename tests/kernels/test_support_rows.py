"""Sums over support vectors: the same as slow ones, and of the same bits for a row alone and in a batch."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import InputError
from maxmargin.kernels import Callable, Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from maxmargin.kernels.support_rows import SupportRows

CORE = [Linear(), Gaussian(0.3), Laplacian(0.2), Polynomial(0.2, 1.0, 3), Sigmoid(0.1, 0.2)]
KERNELS = [*CORE, Gaussian(0.1) + Linear()]
LAYOUTS = [np.asarray, sp.csr_array]


def some(n, d, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, d))
    X[np.abs(X) < 0.6] = 0.0
    return X


@pytest.mark.parametrize("of_rows", LAYOUTS)
@pytest.mark.parametrize("of_support", LAYOUTS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_sums_are_those_of_the_kernel_whatever_is_sparse(kernel, of_support, of_rows):
    Z, X, C = some(130, 6), some(33, 6, 1), np.random.default_rng(2).standard_normal((130, 3))
    support, K = SupportRows(kernel, of_support(Z)), kernel.block(X, Z)
    off = {"rtol": 0.0, "atol": 1e-11 * np.abs(K).max()}
    np.testing.assert_allclose(support.sums(of_rows(X), C), K @ C, **off)
    parts = [(slice(None), C), (slice(5, 90), C[5:90, :1]), (slice(100, None), C[100:])]
    found = support.sums_of_parts(of_rows(X), parts)
    for (part, coefficients), sums in zip(parts, found, strict=True):
        assert sums.shape == (33, coefficients.shape[1])
        np.testing.assert_allclose(sums, K[:, part] @ coefficients, **off)
    X = X.astype(np.float32)
    np.testing.assert_allclose(support.sums(of_rows(X), C), kernel.block(X.astype(np.float64), Z) @ C, **off)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("d", [1, 6, 70])
@pytest.mark.parametrize("kernel", CORE, ids=repr)
def test_a_row_has_the_same_bits_alone_and_in_a_batch(instruction_set, kernel, d, layout):
    Z, X, C = some(600, d), layout(some(150, d, 1)), np.random.default_rng(2).standard_normal((600, 2))
    support = SupportRows(kernel, layout(Z))
    whole = support.sums(X, C, 2)
    for n in (1, 2, 7, 8, 9, 63, 64, 65, 149):
        np.testing.assert_array_equal(support.sums(X[:n], C, 1), whole[:n])
        np.testing.assert_array_equal(support.sums(X[150 - n :], C, 2), whole[150 - n :])
    for i in (0, 77, 149):
        np.testing.assert_array_equal(support.sums(X[[i]], C)[0], whole[i])
        np.testing.assert_array_equal(support.sums(X[[i, 3]], C)[0], whole[i])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_digits_are_kept_wherever_rows_lie(layout):
    rng = np.random.default_rng(0)
    Z, X = 1e6 + rng.standard_normal((40, 3)), 1e6 + rng.standard_normal((20, 3))
    expected = np.exp(-0.5 * ((X[:, None] - Z[None]) ** 2).sum(axis=2)).sum(axis=1)
    found = SupportRows(Gaussian(0.5), layout(Z)).sums(layout(X), np.ones((40, 1)))[:, 0]
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-11)


def test_functions_are_asked_as_they_are():
    shapes = []

    def k(X, Z):
        shapes.append((len(X), len(Z)))
        return np.minimum(X, Z.T)

    support = SupportRows(Callable(k), np.arange(5.0)[:, None])
    found = support.sums([[2.0], [9.0]], np.ones((5, 1)))
    np.testing.assert_array_equal(found, [[0.0 + 1 + 2 + 2 + 2], [10.0]])
    assert shapes == [(2, 5)]


def test_rows_of_another_width_or_without_numbers_are_refused():
    support = SupportRows(Gaussian(1.0), np.eye(3))
    for wrong in (np.ones((2, 2)), [[np.nan, 0.0, 0.0]], np.ones((0, 3))):
        with pytest.raises((InputError, ValueError)):
            support.sums(wrong, np.ones((3, 1)))

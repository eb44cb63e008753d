"""Sums, products and multiples of kernels: values, operators, and what is refused."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import InputError
from maxmargin.kernels import (
    Callable,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Product,
    Scaled,
    Sigmoid,
    Sum,
)

K1, K2, K3 = Gaussian(0.5), Linear(), Polynomial(0.5, 1.0, 2)


def some_rows(n=30, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def test_operators():
    assert Sum((K1, K2)) == K1 + K2
    assert Product((K1, K2)) == K1 * K2
    assert (K1 + K2) + K3 == K1 + (K2 + K3) == Sum((K1, K2, K3))
    assert (K1 * K2) * K3 == K1 * (K2 * K3) == Product((K1, K2, K3))
    assert Product((K1, Sum((K2, K3)))) == K1 * (K2 + K3)
    assert 2.0 * K1 == K1 * 2.0 == 2 * K1 == np.float64(2.0) * K1 == K1 * np.float32(2.0) == Scaled(2.0, K1)
    assert Scaled(6.0, K1) == 3.0 * (2.0 * K1)
    assert K1 + K2 != K2 + K1
    assert Sum([K1, K2]) == Sum((K1, K2))
    assert Sum((K1, K2)) != Product((K1, K2))


def test_a_combined_kernel_is_a_value():
    for kernel in (K1 + K2, K1 * K2 * K3, 2.0 * K1, 0.5 * (K1 + 2.0 * K2) * K3):
        assert eval(repr(kernel)) == kernel
        assert hash(eval(repr(kernel))) == hash(kernel)
        assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert isinstance(hash(K1 + Callable(np.dot, {"out": None})), int)
    with pytest.raises(AttributeError):
        (K1 + K2).parts = ()


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_values_are_those_of_the_parts(layout):
    X, Z = some_rows(30) + 3.0, some_rows(20, seed=1)
    one, other, third = (kernel.block(X, Z) for kernel in (K1, K2, K3))
    X, Z = layout(X), layout(Z)
    np.testing.assert_allclose((K1 + K2 + K3).block(X, Z), one + other + third, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose((K1 * K2 * K3).block(X, Z), one * other * third, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose((2.5 * K1).block(X, Z), 2.5 * one, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose((K1 * (K2 + 3.0 * K3)).block(X, Z), one * (other + 3.0 * third), rtol=1e-12, atol=1e-14)


def test_every_part_sees_its_own_origin():
    X = some_rows(20) + 1e6
    gaussian, linear = Gaussian(0.5).gram(X), Linear().gram(X)
    assert np.array_equal((K1 + K2).gram(X), gaussian + linear)
    assert np.array_equal((K1 * K2).gram(X), gaussian * linear)
    sum_of_two = Gaussian(0.5) + Gaussian(2.0)
    assert np.array_equal(sum_of_two.gram(X), gaussian + Gaussian(2.0).gram(X))
    pieces = [piece for _, piece in (K1 + K2).blocks(X[:7], X, most_bytes=8 * 20 * 3)]
    np.testing.assert_allclose(np.concatenate(pieces), gaussian[:7] + linear[:7], rtol=1e-14)


def test_gram_and_diagonal():
    kernel = K1 * K2 + 0.1 * (Laplacian(0.3) + K3)
    for n in (1, 40, 700):
        X = some_rows(n)
        K = kernel.gram(X)
        assert np.array_equal(K, K.T)
        assert np.array_equal(K.diagonal(), kernel.diagonal(X))
        np.testing.assert_allclose(K, kernel.block(X, X), rtol=1e-11, atol=1e-13)


def test_which_are_known_to_be_positive():
    unknown, negative = Callable(np.dot), Sigmoid(1.0, -1.0)
    for combine in (lambda *parts: Sum(parts), lambda *parts: Product(parts)):
        assert combine(K1, K2, K3).is_positive is True
        assert combine(K1, unknown).is_positive is None
        assert combine(K1, negative).is_positive is None
        assert combine(negative, unknown).is_positive is None
        assert combine(K1, combine(K2, negative)).is_positive is None
    assert (2.0 * K1).is_positive is True
    assert (2.0 * unknown).is_positive is None
    assert (2.0 * negative).is_positive is False


def test_a_function_among_the_parts_must_be_symmetric():
    uneven = Callable(lambda X, Z: X @ Z.T + np.arange(len(X))[:, None])
    for kernel in (K1 + uneven, K1 * uneven, 2.0 * uneven):
        with pytest.raises(InputError, match=r"Callable\(.*is not symmetric"):
            kernel.gram(some_rows())


def test_precomputed_values_are_no_part():
    for combine in (
        lambda: Precomputed() + K1,
        lambda: K1 * Precomputed(),
        lambda: Precomputed() + Precomputed(),
        lambda: 2.0 * Precomputed(),
        lambda: Sum((K1, Precomputed())),
        lambda: Scaled(2.0, Precomputed()),
    ):
        with pytest.raises(InputError, match=r"precomputed kernel cannot be part.*scale the matrix of values"):
            combine()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: 0.0 * K1, "factor of a kernel must be a finite number greater than 0, got 0.0"),
        (lambda: -1 * K1, "factor of a kernel must be a finite number greater than 0, got -1"),
        (lambda: np.nan * K1, "factor of a kernel"),
        (lambda: True * K1, "factor of a kernel.*got True"),
        (lambda: 1e200 * (1e200 * K1), "factor of a kernel.*got inf"),
        (lambda: Scaled("2", K1), "factor of a kernel.*got '2'"),
        (lambda: Scaled(2.0, "rbf"), "must be a Kernel, got 'rbf'"),
        (lambda: Sum(()), "at least one kernel"),
        (lambda: Sum(K1), "at least one kernel, got Gaussian"),
        (lambda: Product((K1, "rbf")), "must be a Kernel, got 'rbf'"),
        (lambda: (K1 + K2).block([[1.0, 2.0]], [[1.0]]), "X has 2, Z has 1"),
        (lambda: (K1 + K2).diagonal([[1e200]]), r"Sum\(.*inf for row 0.*Scale the columns"),
        (lambda: (K1 + K2).gram([[1e200]]), r"^Linear\(\) is inf for row 0.*Scale the columns"),
        (lambda: (K2 * K2).gram([[1e80]]), r"^Product\(.*inf for row 0"),
        (lambda: (K2 * K2).block([[1.0], [1e80]], [[1e80]]), r"^Product\(.*inf for row 1 of X and row 0 of Z"),
    ],
)
def test_errors(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("other", ["2", None, 2j, [2.0], np.ones(2)], ids=str)
def test_what_is_neither_a_kernel_nor_a_number(other):
    for combine in (lambda: K1 + other, lambda: other + K1, lambda: K1 * other, lambda: other * K1):
        with pytest.raises(TypeError):
            combine()


def test_rows_of_a_later_block_are_counted_from_the_first_row():
    X = np.ones((9, 1))
    X[7] = 1e200
    with pytest.raises(InputError, match=r"^Linear\(\) is inf for row 7 of X and row 7 of Z"):
        list((K1 + K2).blocks(X, X, most_bytes=8 * 9 * 2))

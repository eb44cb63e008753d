"""Kernels against obvious loops, and what must hold of every Gram matrix."""

import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from maxmargin import InputError
from maxmargin.kernels import (
    Callable,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Product,
    Scaled,
    Sigmoid,
    Sum,
)


def gaussian(x, z, gamma):
    return math.exp(-gamma * sum((a - b) ** 2 for a, b in zip(x, z, strict=True)))


def laplacian(x, z, gamma):
    return math.exp(-gamma * sum(abs(a - b) for a, b in zip(x, z, strict=True)))


FORMULAS = {
    Linear(): lambda x, z: x @ z,
    Polynomial(gamma=0.5, coef0=1.0, degree=3): lambda x, z: (0.5 * (x @ z) + 1.0) ** 3,
    Polynomial(gamma=2.0, coef0=0.0, degree=2): lambda x, z: (2.0 * (x @ z)) ** 2,
    Polynomial(gamma=1.0, coef0=3.0, degree=0): lambda x, z: 1.0,
    Polynomial(gamma=1.0, coef0=-1.0, degree=5): lambda x, z: (x @ z - 1.0) ** 5,
    Gaussian(gamma=0.3): lambda x, z: gaussian(x, z, 0.3),
    Laplacian(gamma=0.3): lambda x, z: laplacian(x, z, 0.3),
    Sigmoid(gamma=0.2, coef0=-0.5): lambda x, z: math.tanh(0.2 * (x @ z) - 0.5),
    Callable(lambda X, Z, c: X @ Z.T + c, {"c": 2.0}): lambda x, z: x @ z + 2.0,
    Sum((Gaussian(0.3), Linear(), Gaussian(0.1))): lambda x, z: gaussian(x, z, 0.3) + x @ z + gaussian(x, z, 0.1),
    Product((Polynomial(0.5, 1.0, 2), Laplacian(0.2))): lambda x, z: (0.5 * (x @ z) + 1.0) ** 2 * laplacian(x, z, 0.2),
    Scaled(2.5, Gaussian(0.3)): lambda x, z: 2.5 * gaussian(x, z, 0.3),
    Sum((Scaled(0.5, Linear()), Product((Linear(), Sigmoid(0.1, 0.5))))): lambda x, z: (
        0.5 * (x @ z) + (x @ z) * math.tanh(0.1 * (x @ z) + 0.5)
    ),
}
KERNELS = list(FORMULAS)


def some_rows(n=7, d=3, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, d))
    X[np.abs(X) < 0.3] = 0.0
    return X


def by_loops(kernel, X, Z):
    return np.array([[FORMULAS[kernel](x, z) for z in Z] for x in X])


def layouts(X):
    return (X, X.tolist(), np.asfortranarray(X), sp.csr_array(X), sp.csc_matrix(X), sp.coo_array(X))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_block_against_loops(kernel):
    X, Z = some_rows(7), some_rows(5, seed=1)
    expected = by_loops(kernel, X, Z)
    for left in layouts(X):
        block = kernel.block(left, Z)
        assert block.dtype == np.float64
        assert block.shape == (7, 5)
        assert block.flags.c_contiguous
        np.testing.assert_allclose(block, expected, rtol=1e-12, atol=1e-14)


BUILT_IN = [kernel for kernel in KERNELS if not isinstance(kernel, Callable)]


@pytest.mark.parametrize("kernel", BUILT_IN, ids=repr)
@pytest.mark.parametrize("left", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("right", [np.asarray, sp.csr_array])
def test_sparse_is_dense(kernel, left, right):
    X, Z = some_rows(40), some_rows(30, seed=1)
    np.testing.assert_allclose(kernel.block(left(X), right(Z)), kernel.block(X, Z), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.gram(left(X)), kernel.block(X, X), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diagonal(right(Z)), kernel.block(Z, Z).diagonal(), rtol=1e-12)


@pytest.mark.parametrize("kernel", BUILT_IN, ids=repr)
def test_float32_rows_are_computed_in_float64(kernel):
    X, Z = some_rows(20).astype(np.float32), some_rows(10, seed=1).astype(np.float32)
    exact = kernel.block(X.astype(np.float64), Z.astype(np.float64))
    assert np.array_equal(kernel.block(X, Z), exact)
    np.testing.assert_allclose(kernel.block(sp.csr_array(X), Z), exact, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gram_is_exactly_symmetric(kernel):
    for n in (1, 2, 31, 511, 512, 1200):
        X = some_rows(n, seed=n)
        K = kernel.gram(X)
        assert np.array_equal(K, K.T)
        np.testing.assert_allclose(K, kernel.block(X, X), rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(K.diagonal(), kernel.diagonal(X), rtol=1e-14)


@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if kernel.is_positive], ids=repr)
def test_positive_kernels_have_no_negative_eigenvalues(kernel):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((rng.integers(2, 40), rng.integers(1, 6))) * 10.0 ** rng.integers(-2, 2)
        values = np.linalg.eigvalsh(kernel.gram(X))
        assert values[0] >= -1e-12 * max(values[-1], 1.0)


def test_which_kernels_are_known_to_be_positive():
    assert Linear().is_positive is True
    assert Gaussian(2.0).is_positive is True
    assert Laplacian(2.0).is_positive is True
    assert Polynomial(1.0, 0.0, 3).is_positive is True
    assert Polynomial(1.0, 0.0, 3.0).is_positive is True
    assert Polynomial(1.0, -1e-9, 3).is_positive is False
    assert Polynomial(1.0, 1.0, 2.5).is_positive is False
    assert Sigmoid().is_positive is False
    assert Precomputed().is_positive is None
    assert Callable(lambda X, Z: X @ Z.T).is_positive is None


def test_a_sigmoid_is_not_positive():
    X = np.random.default_rng(0).standard_normal((20, 3))
    assert np.linalg.eigvalsh(Sigmoid(1.0, -1.0).gram(X))[0] < -0.1


def test_gaussian_diagonal_is_one_and_distances_are_never_negative():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X = np.repeat(rng.standard_normal((5, 4)), 3, axis=0) * 10.0 ** rng.integers(-6, 6) + rng.integers(0, 1000)
        gamma = 10.0 ** rng.integers(-3, 3)
        K = Gaussian(gamma).gram(X)
        assert np.all(K.diagonal() == 1.0)
        assert np.all((K >= 0.0) & (K <= 1.0))
        for k in range(5):  # repeated rows
            rounding = 1e-15 * gamma * np.square(X - X.mean(axis=0)).sum(axis=1).max()
            np.testing.assert_allclose(K[3 * k : 3 * k + 3, 3 * k : 3 * k + 3], 1.0, rtol=1e-14 + 4.0 * rounding)


def test_times_and_blocks_are_the_block():
    X, Z, V = some_rows(23), some_rows(11, seed=1), np.random.default_rng(2).standard_normal((11, 2))
    kernel = Gaussian(0.4)
    np.testing.assert_allclose(kernel.times(X, Z, V), kernel.block(X, Z) @ V, rtol=1e-12)
    np.testing.assert_allclose(kernel.times(X, Z, V[:, 0]), kernel.block(X, Z) @ V[:, 0], rtol=1e-12)
    pieces = list(kernel.blocks(X, Z, most_bytes=8 * 11 * 5))
    assert [rows.stop - rows.start for rows, _ in pieces] == [5, 5, 5, 5, 3]
    np.testing.assert_allclose(np.concatenate([piece for _, piece in pieces]), kernel.block(X, Z), rtol=1e-12)


def test_a_kernel_is_a_value():
    assert Gaussian(0.5) == Gaussian(0.5) != Gaussian(0.6)
    assert hash(Polynomial(1.0, 0.0, 2)) == hash(Polynomial(1.0, 0.0, 2))
    assert repr(Polynomial(1.0, 0.0, 2)) == "Polynomial(gamma=1.0, coef0=0.0, degree=2)"
    assert repr(Callable(math.dist, {"p": 2})) == "Callable(dist, {'p': 2})"
    assert repr(Callable(math.dist)) == "Callable(dist)"
    assert isinstance(hash(Callable(math.dist, {"p": 2})), int)
    for kernel in BUILT_IN:
        assert eval(repr(kernel)) == kernel
        assert pickle.loads(pickle.dumps(kernel)) == kernel
    with pytest.raises(AttributeError):
        Gaussian(0.5).gamma = 1.0


def test_parameters_are_plain_numbers():
    for kernel in (
        Gaussian(np.float64(0.5)),
        Laplacian(np.float32(0.5)),
        Polynomial(np.int64(2), np.float64(1.0), np.float64(3.0)),
        Sigmoid(np.float64(1.0), np.int32(-1)),
        np.float64(2.0) * Gaussian(np.float64(0.5)),
    ):
        assert eval(repr(kernel)) == kernel
    assert repr(Gaussian(1)) == "Gaussian(gamma=1.0)"
    assert repr(Polynomial(1, 0, 2.0)) == "Polynomial(gamma=1.0, coef0=0.0, degree=2)"
    assert repr(Polynomial(1, 0, 2.5)) == "Polynomial(gamma=1.0, coef0=0.0, degree=2.5)"


def test_a_kernel_serves_scikit_learn_as_a_function():
    X = some_rows(30)
    y = X[:, 0] > 0
    ours, theirs = SVC(kernel=Gaussian(0.5)).fit(X, y), SVC(kernel="rbf", gamma=0.5).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)


def test_precomputed():
    K = Linear().gram(some_rows(6))
    kernel = Precomputed()
    assert np.array_equal(kernel.gram(K), K)
    assert kernel.gram(K) is not K
    assert np.array_equal(kernel.gram(sp.csr_array(K)), K)
    assert np.array_equal(kernel.diagonal(K), K.diagonal())
    assert np.array_equal(kernel.block(K[:2], K), K[:2])
    with pytest.raises(InputError, match=r"square matrix.*got shape \(5, 6\)"):
        kernel.gram(K[:5])
    with pytest.raises(InputError, match=r"square matrix"):
        kernel.diagonal(K[:5])
    with pytest.raises(InputError, match=r"each of the 6 rows learned from, but X has 4 columns"):
        kernel.block(K[:, :4], K)
    K[1, 2] += 1.0
    with pytest.raises(InputError, match=r"not symmetric.*rows 1 and 2"):
        kernel.gram(K)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X, Z: np.ones(len(X)), r"array of shape \(7,\) for 7 and 5 rows; expected \(7, 5\)"),
        (lambda X, Z: np.ones((5, 7)), r"array of shape \(5, 7\)"),
        (lambda X, Z: 1.0, r"array of shape \(\)"),
        (lambda X, Z: "text", r"returned 'text'; expected an array of numbers of shape \(7, 5\)"),
        (lambda X, Z: None, r"array of shape \(\)"),
        (lambda X, Z: np.where(np.eye(7, 5) > 0, np.nan, 0.0), r"is nan for row 0 of X and row 0 of Z"),
        (lambda X, Z: np.full((7, 5), np.inf), r"is inf for row 0.*finite numbers"),
    ],
)
def test_what_a_function_may_not_return(function, message):
    with pytest.raises(InputError, match=message):
        Callable(function).block(some_rows(7), some_rows(5))


def test_nan_from_a_function_is_an_error_wherever_it_is_called():
    X = some_rows(7)
    kernel = Callable(lambda X, Z: np.where(X[:, :1] == X_bad, np.nan, X @ Z.T))
    X_bad = X[5, 0]
    for ask in (lambda: kernel.block(X, X), lambda: kernel.gram(X), lambda: kernel.times(X, X, np.ones(7))):
        with pytest.raises(InputError, match=r"is nan for row 5 of X and row 0 of Z.*Change the function"):
            ask()
    with pytest.raises(InputError, match="is nan for row 5 of X and row 5 of Z"):
        kernel.diagonal(X)
    with pytest.raises(InputError, match=r"Callable\(.*is nan for row 5 of X and row 0 of Z.*Change the function"):
        list((kernel + Linear()).blocks(X, X, most_bytes=8 * 7 * 2))


def test_a_function_is_called_with_some_rows_at_a_time():
    X, heights = some_rows(9), []
    kernel = Callable(lambda X, Z: heights.append(len(X)) or X @ Z.T)
    np.testing.assert_allclose(np.concatenate([part for _, part in kernel.blocks(X, X, 8 * 9 * 4)]), X @ X.T)
    assert heights == [4, 4, 1]


def test_a_function_must_be_symmetric_and_may_be_sparse():
    X = some_rows(6)
    with pytest.raises(InputError, match="not symmetric"):
        Callable(lambda X, Z: X @ Z.T + np.arange(len(X))[:, None]).gram(X)
    K = Callable(lambda X, Z: X @ Z.T).gram(sp.csr_array(X))
    np.testing.assert_allclose(K, X @ X.T, atol=1e-14)
    with pytest.raises(InputError, match="f must be a function"):
        Callable("rbf")
    with pytest.raises(InputError, match="params must be a mapping of names to values, got 3"):
        Callable(np.dot, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(0.0), "gamma must be a finite number greater than 0"),
        (lambda: Gaussian("scale"), "gamma must be a finite number greater than 0"),
        (lambda: Laplacian(0.0), "gamma must be a finite number greater than 0"),
        (lambda: Laplacian().block([[1.0, 2.0]], [[1.0]]), "X has 2, Z has 1"),
        (lambda: Sigmoid(-1.0), "gamma"),
        (lambda: Sigmoid(1.0, np.nan), "coef0"),
        (lambda: Polynomial(1.0, np.inf), "coef0 must be a finite number"),
        (lambda: Polynomial(1.0, 0.0, -1), "degree must be a number from 0"),
        (lambda: Polynomial(1.0, 0.0, np.inf), "degree must be a finite number"),
        (lambda: Linear().block([[1.0, 2.0]], [[1.0]]), "X has 2, Z has 1"),
        (lambda: Gaussian().block([[1.0, 2.0]], [[1.0]]), "X has 2, Z has 1"),
        (lambda: Linear().block([[np.nan]], [[1.0]]), "NaN: row 0, column 0"),
        (lambda: Linear().block([1.0], [[1.0]]), "Expected 2D array"),
        (lambda: Linear().gram([[1e200], [1.0]]), "inf for row 0 of X and row 0 of Z.*Scale the columns"),
        (lambda: Linear().diagonal([[1.0], [1e200]]), "inf for row 1 of X and row 1 of Z"),
        (lambda: Polynomial(1.0, 0.0, 1000).gram([[10.0]]), "smaller gamma or degree"),
        (lambda: Polynomial(1.0, 0.0, 0.5).block([[1.0]], [[-1.0]]), "use a whole degree"),
    ],
)
def test_errors(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_function_that_returns_a_broken_sparse_matrix_is_found_out():
    broken = sp.csr_array(np.eye(2))
    broken.indices[1] = 10**6
    with pytest.raises(InputError, match="row 1 names column 1000000"):
        Callable(lambda X, Z: broken).block(np.eye(2), np.eye(2))


def test_kernel_is_abstract():
    with pytest.raises(TypeError):
        Kernel()

"""Values of kernels by the core's tiles beside values written out in NumPy, for every kind of rows and both types."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.kernels import Callable, Gaussian, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from maxmargin.kernels.core_tiles import PackedRows, function_of, origin_of, tile_scores
from maxmargin.process import blas_guard, borrowed_blas
from maxmargin.runtime import Execution
from maxmargin.space import Rows

KERNELS = [
    Linear(),
    Polynomial(0.3, 1.0, 3),
    Polynomial(0.5, -1.0, 2),
    Polynomial(0.2, 0.0, 1),
    Polynomial(0.2, 3.0, 0),
    Polynomial(0.01, 1.0, 65),
    Gaussian(0.3),
    Laplacian(0.2),
    Sigmoid(0.2, -0.3),
]
LAYOUTS = ["dense", "csr int32", "csr int64"]
PRECISION = {np.float32: 1e-6, np.float64: 1e-13}  # of values up to 1; of larger ones, relative to the largest


def rows_of(X, layout="dense"):
    if layout == "dense":
        return Rows.of(np.ascontiguousarray(X))
    S, index = sp.csr_array(X), np.int64 if layout.endswith("int64") else np.int32
    return Rows.of(sp.csr_array((S.data, S.indices.astype(index), S.indptr.astype(index)), shape=S.shape))


def ordinary(n, d, seed=0):
    """Rows of length 1 or so, some entries and every seventh row zero."""
    X = np.random.default_rng(seed).standard_normal((n, d)) / np.sqrt(d)
    X[np.abs(X) < 0.3 / np.sqrt(d)] = 0.0
    X[3::7] = 0.0
    return X


def written_out(kernel, X, Z):
    """k in extended precision where NumPy has it, by the definitions."""
    X, Z = X.astype(np.longdouble), Z.astype(np.longdouble)
    gamma = np.longdouble(getattr(kernel, "gamma", 1.0))
    if isinstance(kernel, Gaussian | Laplacian):
        apart = [np.abs(X - z) ** (2 if isinstance(kernel, Gaussian) else 1) for z in Z]
        return np.exp(-gamma * np.stack([a.sum(axis=1) for a in apart], axis=1)).astype(np.float64)
    products = np.einsum("ij,kj->ik", X, Z)
    if isinstance(kernel, Linear):
        return products.astype(np.float64)
    inner = gamma * products + np.longdouble(kernel.coef0)
    return (np.tanh(inner) if isinstance(kernel, Sigmoid) else inner**kernel.degree).astype(np.float64)


def pack(kernel, rows, dtype, origin=None):
    return PackedRows.of(rows, dtype, origin_of(kernel, rows) if origin is None else origin)


def block(kernel, left, lines, right, dtype, n_threads=1):
    """Written into the middle of wider lines, of which the rest stays what it is."""
    wide, lines = np.full((len(lines), right.given.n + 3), 7.0, dtype=dtype), np.asarray(lines, np.int64)
    with blas_guard:
        _core.kernel_block(function_of(kernel), left.tiles, lines, right.tiles, wide, 2, borrowed_blas(), n_threads)
    assert np.all(wide[:, [0, 1, -1]] == 7.0)
    return wide[:, 2:-1]


def gram(kernel, packed, own, dtype, n_threads=1):
    out = np.full((packed.given.n, packed.given.n), np.nan, dtype=dtype)
    with blas_guard:
        _core.kernel_gram(function_of(kernel), packed.tiles, own, out, borrowed_blas(), n_threads)
    return out


def scores(kernel, left, right, coefficients, n_threads=1, sizes=None, lines=None):
    with blas_guard:
        return tile_scores(function_of(kernel), left, right, coefficients, Execution(n_threads), sizes, lines)


def allowed(kernel, dtype):
    """A power multiplies the relative error of what it is taken of."""
    return PRECISION[dtype] * max(1.0, getattr(kernel, "degree", 0.0) / 8.0)


def near(found, expected, kernel, dtype):
    most = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=allowed(kernel, dtype) * most)


# --- values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_values_are_those_of_the_definition(instruction_set, kernel, layout, dtype):
    for n, m, d in ((1, 1, 1), (3, 70, 5), (65, 513, 9)):  # on both sides of tiles of 64 lines and 512 columns
        X, Z = ordinary(n, d), ordinary(m, d, seed=1)
        expected = written_out(kernel, X, Z)
        left, right = rows_of(X, layout), rows_of(Z, layout)
        origin = origin_of(kernel, right)
        sides = [pack(kernel, rows, dtype, origin) for rows in (left, right)]
        near(block(kernel, sides[0], np.arange(n), sides[1], dtype), expected, kernel, dtype)
        lines = np.random.default_rng(0).integers(0, n, 2 * n)  # in any order, some twice
        near(block(kernel, sides[0], lines, sides[1], dtype), expected[lines], kernel, dtype)
        C = np.random.default_rng(2).standard_normal((3, m))
        found, size = scores(kernel, *sides, C), np.zeros(n)
        np.testing.assert_array_equal(found, scores(kernel, *sides, C, sizes=size))
        some = scores(kernel, *sides, C, lines=lines)
        near(some, found[lines], kernel, dtype)
        if dtype == np.float64:  # a row has the same bits beside others, which is promised of what decides
            np.testing.assert_array_equal(some, found[lines])
        most = max(1.0, np.abs(expected).max()) * np.abs(C).sum(axis=1)
        assert np.all(np.abs(found - expected @ C.T) <= allowed(kernel, dtype) * most)
        assert np.all(np.abs(size - np.abs(expected * C[0]).sum(axis=1)) <= allowed(kernel, dtype) * most[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_gram_matrix_is_symmetric_with_the_diagonal_that_was_given(instruction_set, kernel, layout, dtype):
    for n in (1, 63, 130, 321):  # on both sides of bands of 256
        X = ordinary(n, 4)
        rows, own = rows_of(X, layout), np.arange(n) + 0.25
        K = gram(kernel, pack(kernel, rows, dtype), own, dtype)
        assert K.dtype == dtype
        assert np.array_equal(K, K.T)
        assert np.array_equal(K.diagonal(), own.astype(dtype))
        expected = written_out(kernel, X, X)
        np.fill_diagonal(expected, own)
        near(K - np.diag(K.diagonal()), expected - np.diag(own), kernel, dtype)


@pytest.mark.parametrize("given", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["dense", "csr int32"])
def test_rows_of_either_type_for_values_of_either_type(given, layout):
    X = ordinary(50, 6).astype(given)
    for kernel in KERNELS:
        expected = written_out(kernel, X, X)
        for dtype in PRECISION:
            packed = pack(kernel, rows_of(X, layout), dtype)
            near(block(kernel, packed, np.arange(50), packed, dtype), expected, kernel, dtype)


# --- cancellation -----------------------------------------------------------------------------------------------


def far(rng, n, d):
    return 1e6 + rng.standard_normal((n, d))


def clusters(rng, n, d):
    return 1e6 * (np.arange(n) % 2)[:, None] + rng.standard_normal((n, d))


def tight_clusters(rng, n, d):
    return 1e5 * (np.arange(n) % 2)[:, None] + 1e-2 * rng.standard_normal((n, d))


def outlier(rng, n, d):
    X = rng.standard_normal((n, d))
    X[n // 2] = 1e9
    return X


def scales(rng, n, d):
    return rng.standard_normal((n, d)) * 10.0 ** rng.integers(-6, 6, n)[:, None]


CROWDS = [far, clusters, tight_clusters, outlier, scales]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("make", CROWDS)
def test_distances_keep_their_digits_wherever_rows_lie(instruction_set, make, layout, dtype):
    for n, d in ((150, 3), (70, 40)):
        X = make(np.random.default_rng(d), n, d)
        for gamma in (1.0 / d, 1e-3, 1e4 / d):
            for kernel in (Gaussian(gamma), Laplacian(gamma)):
                expected, packed = written_out(kernel, X, X), pack(kernel, rows_of(X, layout), dtype)
                found = block(kernel, packed, np.arange(n), packed, dtype)
                np.testing.assert_allclose(found, expected, rtol=0.0, atol=PRECISION[dtype])
                K = gram(kernel, packed, np.ones(n), dtype)
                np.testing.assert_allclose(K, expected, rtol=0.0, atol=PRECISION[dtype])
                ones = np.ones((1, n))
                np.testing.assert_allclose(
                    scores(kernel, packed, packed, ones)[:, 0],
                    expected.sum(axis=1),
                    rtol=0.0,
                    atol=n * PRECISION[dtype],
                )


@pytest.mark.parametrize("make", [clusters, tight_clusters, scales])
def test_products_alone_would_not_be_enough_there(make):
    X = make(np.random.default_rng(3), 40, 3)
    away = (X - X.mean(axis=0)).astype(np.float32)
    squares = (away * away).sum(axis=1)
    expanded = np.exp(-np.maximum(squares[:, None] + squares - 2.0 * (away @ away.T), 0.0) / 3.0)
    assert np.abs(expanded - written_out(Gaussian(1.0 / 3.0), X, X)).max() > 1e-3


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_of_rows_that_are_far_apart_vanish(instruction_set, layout):
    """Where exp underflows a value is 0 but for less than anybody can see, and never negative or not a number."""
    X = np.array([[0.0], [1e-3], [5.0], [20.0], [27.0], [40.0], [1e3], [1e150]])
    for kernel in (Gaussian(1.0), Laplacian(1.0), Gaussian(1e6), Laplacian(1e6)):
        expected = written_out(kernel, X, X)
        for dtype, smallest in ((np.float32, 1e-37), (np.float64, 1e-307)):
            with np.errstate(over="ignore"):  # 1e150 as a float32
                packed = pack(kernel, rows_of(X, layout), dtype)
            found = block(kernel, packed, np.arange(len(X)), packed, dtype)
            assert np.all((found >= 0.0) & (found <= 1.0))
            np.testing.assert_allclose(found, expected, rtol=0.0, atol=PRECISION[dtype])
            assert np.all(found[expected < 1e-320] <= smallest)


def test_exponentials_are_right_to_the_last_digits_over_their_whole_range(instruction_set):
    t = np.concatenate([np.linspace(0.0, 700.0, 4001), 10.0 ** np.linspace(-18, 0, 300)])
    for dtype, most, off in ((np.float32, 85.0, 3e-7), (np.float64, 700.0, 5e-16)):
        some = t[t <= most]
        kernel, zero = Laplacian(1.0), pack(Laplacian(1.0), Rows.of(np.zeros((1, 1))), dtype)
        found = block(kernel, zero, [0], pack(kernel, Rows.of(some[:, None]), dtype), dtype)[0]
        argument = (-some).astype(dtype).astype(np.longdouble)
        np.testing.assert_allclose(found, np.exp(argument).astype(np.float64), rtol=off)


@pytest.mark.parametrize("coef0", [-1e3, -2.0, 0.0, 2.0, 1e3])
def test_a_sigmoid_is_bounded_by_one(instruction_set, coef0):
    X = np.linspace(-3e3, 3e3, 130)[:, None]
    kernel = Sigmoid(1.0, coef0)
    for dtype in PRECISION:
        packed = pack(kernel, Rows.of(X), dtype)
        found = block(kernel, packed, np.arange(130), packed, dtype)
        assert np.abs(found).max() <= 1.0
        near(found, written_out(kernel, X, X), kernel, dtype)


# --- bits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_bits_do_not_depend_on_threads(instruction_set, layout, dtype):
    X = tight_clusters(np.random.default_rng(0), 700, 6)
    C = np.random.default_rng(1).standard_normal((2, 700))
    for kernel in (Gaussian(0.5), Laplacian(0.01), Polynomial(1e-9, 1.0, 3)):
        packed = pack(kernel, rows_of(X, layout), dtype)
        lines, found = np.arange(690, -1, -3), []
        for n_threads in (1, 2, 8):
            K = gram(kernel, packed, np.ones(700), dtype, n_threads)
            values = block(kernel, packed, lines, packed, dtype, n_threads)
            sizes = np.zeros(700)
            sums = scores(kernel, packed, packed, C, n_threads, sizes)
            found.append([a.tobytes() for a in (K, values, sums, sizes)])
        assert found[0] == found[1] == found[2]


# --- what is refused --------------------------------------------------------------------------------------------


def test_kernels_that_only_python_knows_are_not_for_the_core():
    for kernel in (Precomputed(), Callable(lambda X, Z: X @ Z.T), Gaussian(1.0) + Linear(), Polynomial(1.0, 9.0, 2.5)):
        assert function_of(kernel) is None
    for number in (-1, 5):
        with pytest.raises(ValueError, match="no such kernel"):
            _core.KernelFunction(number, 1.0, 0.0, 1.0)


def test_nothing_is_written_where_shapes_or_rows_are_wrong():
    kernel, X = function_of(Linear()), np.eye(4)
    tiles = PackedRows.of(Rows.of(X), np.float64, None).tiles
    narrow = PackedRows.of(Rows.of(X[:, :3].copy()), np.float64, None).tiles
    single = PackedRows.of(Rows.of(X), np.float32, None).tiles
    sparse = PackedRows.of(rows_of(X, "csr int32"), np.float64, None).tiles
    blas, out, lines, sums = borrowed_blas(), np.zeros((2, 4)), np.arange(2), np.zeros((4, 1))
    for right in (narrow, single, sparse):
        with pytest.raises(ValueError, match="both sides"):
            _core.kernel_block(kernel, tiles, lines, right, out, 0, blas, 1)
        with pytest.raises(ValueError, match="both sides"):
            _core.kernel_scores(kernel, tiles, None, right, np.ones((1, 4)), sums, None, blas, 1)
    for wrong in ([0, 4], [-1, 0]):
        with pytest.raises(ValueError, match="does not exist"):
            _core.kernel_block(kernel, tiles, np.array(wrong), tiles, out, 0, blas, 1)
        with pytest.raises(ValueError, match="does not exist"):
            _core.kernel_scores(kernel, tiles, np.array(wrong), tiles, np.ones((1, 4)), sums[:2], None, blas, 1)
    for shape, column in (((3, 4), 0), ((2, 3), 0), ((2, 4), 1), ((2, 4), -1)):
        with pytest.raises(ValueError, match="shape"):
            _core.kernel_block(kernel, tiles, lines, tiles, np.zeros(shape), column, blas, 1)
    with pytest.raises(ValueError, match="type"):
        _core.kernel_block(kernel, tiles, lines, tiles, out.astype(np.float32), 0, blas, 1)
    with pytest.raises(ValueError, match="shape"):
        _core.kernel_gram(kernel, tiles, np.ones(4), np.zeros((4, 3)), blas, 1)
    with pytest.raises(ValueError, match="own"):
        _core.kernel_gram(kernel, tiles, np.ones(3), np.zeros((4, 4)), blas, 1)
    for c, into, sizes, message in (
        (np.ones((1, 3)), sums, None, "coefficient"),
        (np.ones((1, 4)), np.zeros((4, 2)), None, "out"),
        (np.ones((1, 4)), np.zeros((3, 1)), None, "out"),
        (np.ones((1, 4)), sums, np.zeros(3), "sizes"),
    ):
        with pytest.raises(ValueError, match=message):
            _core.kernel_scores(kernel, tiles, None, tiles, c, into, sizes, blas, 1)
    with pytest.raises(ValueError, match="other ones"):
        _core.Tiles(Rows.of(X).core, Rows.of(X[:3].copy()).core, np.ones(4))
    assert not out.any()
    assert not sums.any()


def test_values_are_not_computed_after_the_deadline():
    packed, watch = PackedRows.of(Rows.of(np.ones((5, 2))), np.float64, None), _core.Watch(0.0, 0.0)
    kernel, blas = function_of(Linear()), borrowed_blas()
    tiles, K = packed.tiles, np.zeros((5, 5))
    calls = [
        lambda: _core.kernel_block(kernel, tiles, np.arange(5), tiles, K, 0, blas, 1, watch),
        lambda: _core.kernel_gram(kernel, tiles, np.ones(5), K, blas, 1, watch),
        lambda: tile_scores(kernel, packed, packed, np.ones((1, 5)), Execution(1, watch)),
    ]
    for call in calls:
        with pytest.raises(_core.DeadlineReached):
            call()


# --- factors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_cholesky_factor_is_that_of_lapack(instruction_set, dtype):
    for n in (1, 5, 255, 256, 257, 600):  # on both sides of tiles of 256
        A = np.random.default_rng(n).standard_normal((n, 8))
        K = (A @ A.T + 8.0 * np.eye(n)).astype(dtype)
        factors = []
        for n_threads in (1, 2, 8):
            L = K.copy()
            L[np.triu_indices(n, 1)] = 77.0
            with blas_guard:
                assert _core.cholesky(L, borrowed_blas(), n_threads)
            assert np.all(L[np.triu_indices(n, 1)] == 77.0)
            factors.append(np.tril(L))
        assert factors[0].tobytes() == factors[1].tobytes() == factors[2].tobytes()
        off = 100.0 * np.finfo(dtype).eps
        np.testing.assert_allclose(factors[0], np.linalg.cholesky(K.astype(np.float64)), rtol=0.0, atol=off * 10.0)


@pytest.mark.parametrize("at", [0, 200, 256, 599])
def test_a_matrix_that_is_not_positive_definite_has_no_factor(instruction_set, at):
    for dtype in (np.float32, np.float64):
        K = np.eye(600, dtype=dtype)
        K[at, at] = -1.0
        with blas_guard:
            assert not _core.cholesky(K, borrowed_blas(), 2)
    with pytest.raises(ValueError, match="square"):
        _core.cholesky(np.ones((2, 3)), borrowed_blas(), 1)

"""Rows as a kernel sees them: the same values by every way to ask for them."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import InputError
from maxmargin.kernels import Callable, Gaussian, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from maxmargin.kernels import kernel_rows as room
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.process import blas_guard
from maxmargin.runtime import Execution
from maxmargin.space import Rows

ONE = Execution(1)
KERNELS = [
    Linear(),
    Gaussian(0.3),
    Laplacian(0.3),
    Polynomial(0.3, 1.0, 3),
    Sigmoid(0.2, 0.1),
    Precomputed(),
    Callable(lambda X, Z: np.asarray((X @ Z.T).toarray() if sp.issparse(X) else X @ Z.T) ** 2),
    Gaussian(0.3) + 0.5 * Linear(),
]


def rows_for(kernel, n=90, layout=np.asarray, dtype=np.float64):
    """Rows, and all values of the kernel."""
    X = np.random.default_rng(0).standard_normal((n, 4)).round(3)
    X[np.abs(X) < 0.5] = 0.0
    K = Gaussian(0.2).gram(X) if isinstance(kernel, Precomputed) else kernel.gram(X)
    given = K if isinstance(kernel, Precomputed) else X
    return KernelRows.of(Rows.of(layout(given.astype(dtype))), kernel), K


def assert_all_ways_agree(space, K):
    """Lines, squares, parts and sums over them are those of K, and exactly what they promise of one another."""
    n, rng = space.n, np.random.default_rng(1)
    rough = {"rtol": 0.0, "atol": (2e-6 if space.value_type == np.float32 else 1e-12) * np.abs(K).max()}
    fine = {"rtol": 0.0, "atol": 1e-12 * np.abs(K).max()}
    assert K.shape == (n, n)
    np.testing.assert_allclose(space.diagonal, K.diagonal(), **fine)
    chosen, others = rng.integers(0, n, 17), rng.permutation(n)[:11]
    with blas_guard:
        lines = np.full((17, n), np.nan, dtype=space.value_type)
        space.lines(chosen, ONE, lines)
        np.testing.assert_allclose(lines, K[chosen], **rough)
        np.testing.assert_array_equal(lines[np.arange(17), chosen], space.diagonal[chosen].astype(lines.dtype))
        for dtype, off in ((np.float32, 2e-6), (np.float64, 1e-12)):
            square = space.square(ONE, dtype)
            assert square.dtype == dtype
            assert square.flags.c_contiguous
            assert np.array_equal(square, square.T)
            np.testing.assert_array_equal(square.diagonal(), space.diagonal.astype(dtype))
            np.testing.assert_allclose(square, K, rtol=0.0, atol=off * np.abs(K).max())
        part = space.square_of(others, ONE)
        assert part.dtype == space.value_type
        assert np.array_equal(part, part.T)
        np.testing.assert_allclose(part, K[np.ix_(others, others)], **rough)
        cross = space.cross(others, chosen, ONE)
        assert cross.shape == (len(others), 17)
        assert cross.dtype == space.value_type
        np.testing.assert_allclose(cross, K[np.ix_(others, chosen)], **rough)
        c = np.where(rng.random(n) < 0.5, 0.0, rng.standard_normal(n))
        scores, sizes = space.exact_scores(c, ONE)
        many = {"rtol": 0.0, "atol": n * fine["atol"]}
        np.testing.assert_allclose(scores, K @ c, **many)
        np.testing.assert_allclose(sizes, np.abs(K) @ np.abs(c), **many)
        np.testing.assert_allclose(space.rough_scores(c, ONE), K @ c, rtol=0.0, atol=n * rough["atol"])
        for sums in (*space.exact_scores(np.zeros(n), ONE), space.rough_scores(np.zeros(n), ONE)):
            np.testing.assert_array_equal(sums, np.zeros(n))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_every_way_to_ask_gives_the_same_values(kernel, layout, dtype):
    X = rows_for(kernel, layout=layout, dtype=dtype)[0].X
    exact = KernelRows.of(Rows.of(layout(X.astype(np.float64))), kernel)
    K = exact.square(ONE, np.float64)
    space = KernelRows.of(Rows.of(X), kernel)
    assert_all_ways_agree(space, K)
    assert space.value_type == (np.float32 if kernel in KERNELS[:5] else np.float64)
    first = np.array([5, 80, 3, 4, 44, 43, 42, 10, 11, 12, 13, 0, 1, 2, 89, 61, 60, 7, 8, 9])
    part = space.take(first)
    assert_all_ways_agree(part, K[np.ix_(first, first)])
    second = np.array([1, 0, 19, 4, 5, 12, 11, 2, 8, 7, 6, 15])
    assert_all_ways_agree(part.take(second), K[np.ix_(first[second], first[second])])
    assert_all_ways_agree(space.take(first[second]), K[np.ix_(first[second], first[second])])


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_values_are_those_of_the_kernel(kernel):
    space, K = rows_for(kernel)
    np.testing.assert_allclose(space.square(ONE, np.float64), K, rtol=0.0, atol=1e-13 * np.abs(K).max())


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_part_of_a_part_has_the_bits_of_the_rows_themselves(kernel):
    space, _ = rows_for(kernel)
    first, second = np.arange(89, 19, -2), np.array([3, 30, 4, 5, 20])
    twice, once = space.take(first).take(second), space.take(first[second])
    assert (twice.n, twice.d) == (once.n, once.d) == (5, space.d)
    np.testing.assert_array_equal(twice.X, space.X[first[second]])
    for dtype in (np.float32, np.float64):
        np.testing.assert_array_equal(twice.square(ONE, dtype), once.square(ONE, dtype))
    c = np.arange(5.0)
    np.testing.assert_array_equal(twice.exact_scores(c, ONE), once.exact_scores(c, ONE))


def test_what_is_known_of_rows_is_known_of_parts():
    space, _ = rows_for(Gaussian(0.3))
    part = space.take(np.array([4, 2]))
    np.testing.assert_array_equal(part.facts.squared_norms, space.facts.squared_norms[[4, 2]])
    assert part.shape == (2, 4)
    assert space.unchanged(1)
    space.X[0, 0] += 1.0
    assert not space.unchanged(1)


def test_released_parts_can_be_asked_again():
    for kernel in (Gaussian(0.3), Precomputed()):
        space, K = rows_for(kernel)
        own = space.rows
        part = space.take(np.array([7, 5, 6]))
        before = part.square(ONE, np.float64)
        for one in (part, space):
            one.release()
        assert part._rows is None
        np.testing.assert_array_equal(part.square(ONE, np.float64), before)
        assert_all_ways_agree(part, K[np.ix_([7, 5, 6], [7, 5, 6])])
        assert space.rows is own  # rows that cannot be made again are kept


# --- precomputed values -----------------------------------------------------------------------------------------


def test_an_exactly_symmetric_matrix_is_not_copied():
    for dtype in (np.float32, np.float64):
        K = np.random.default_rng(0).standard_normal((300, 300)).astype(dtype)  # more rows than are compared at once
        K += K.T
        rows = Rows.of(K)
        space = KernelRows.of(rows, Precomputed())
        assert space.rows is rows
        assert space.take(np.array([1, 2])).rows is rows
        assert np.shares_memory(space.X, K)


@pytest.mark.parametrize("at", [(0, 299), (299, 298), (260, 10)])
def test_a_nearly_symmetric_matrix_is_mirrored(at):
    K = np.random.default_rng(0).standard_normal((300, 300))
    K += K.T
    original = K.copy()
    K[at] *= 1.0 + 1e-9
    given = K.copy()
    space = KernelRows.of(Rows.of(K), Precomputed())
    found = space.square(ONE, np.float64)
    assert np.array_equal(found, found.T)
    np.testing.assert_allclose(found, original, rtol=2e-9)
    np.testing.assert_array_equal(K, given)  # the caller's matrix is left alone


def test_matrices_that_are_no_kernels_are_refused():
    K = np.eye(300)
    K[299, 3] = 0.1
    with pytest.raises(InputError, match="not symmetric"):
        KernelRows.of(Rows.of(K), Precomputed())
    for layout in (np.asarray, sp.csr_array):
        with pytest.raises(InputError, match="square matrix"):
            KernelRows.of(Rows.of(layout(np.ones((3, 2)))), Precomputed())
    with pytest.raises(InputError, match="not symmetric"):
        KernelRows.of(Rows.of(sp.csr_array(K)), Precomputed())


# --- functions --------------------------------------------------------------------------------------------------


class Counted:
    """A kernel in Python that remembers the shapes it was called with, and may fail."""

    def __init__(self, fail_at=None):
        self.shapes, self.fail_at = [], fail_at

    def __call__(self, X, Z):
        self.shapes.append((X.shape[0], Z.shape[0]))
        if len(self.shapes) == self.fail_at:
            raise ZeroDivisionError
        return X @ Z.T + 1.0


def test_functions_are_called_with_blocks_that_fit_into_memory(monkeypatch):
    X, f = np.random.default_rng(0).standard_normal((100, 3)), Counted()
    space = KernelRows.of(Rows.of(X), Callable(f))
    monkeypatch.setattr(room, "BLOCK_BYTES", 8 * 100 * 7)
    f.shapes.clear()
    out = np.empty((20, 100))
    space.lines(np.arange(30, 50), ONE, out)
    np.testing.assert_allclose(out, X[30:50] @ X.T + 1.0, rtol=1e-14)
    assert f.shapes == [(7, 100), (7, 100), (6, 100)]
    f.shapes.clear()
    c = np.zeros(100)
    c[:9] = 1.0
    space.exact_scores(c, ONE)
    assert {columns for _, columns in f.shapes} == {9}  # only rows with a coefficient
    assert sum(rows for rows, _ in f.shapes) == 100
    f.shapes.clear()
    space.square_of(np.array([5, 6, 7]), ONE)
    assert f.shapes == [(3, 3)]


def test_a_precomputed_matrix_is_summed_up_in_blocks(monkeypatch):
    space, K = rows_for(Precomputed())
    c = np.random.default_rng(0).standard_normal(90)
    whole = space.exact_scores(c, ONE)
    monkeypatch.setattr(room, "BLOCK_BYTES", 8 * 90 * 7)
    np.testing.assert_allclose(space.exact_scores(c, ONE), whole, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(whole[0], K @ c, rtol=1e-13, atol=1e-13)


def test_kernels_that_are_not_finite_on_the_diagonal_are_refused():
    with pytest.raises(InputError, match="finite"):
        KernelRows.of(Rows.of(np.array([[1e200], [1.0]])), Linear())
    with pytest.raises(InputError, match="finite"):
        KernelRows.of(Rows.of(np.ones((2, 1))), Callable(lambda X, Z: np.full((len(X), len(Z)), np.nan)))


PARTS = [np.arange(30, 60), np.arange(1, 80, 2), np.array([40, 41, 42, 7, 8, 9, 70]), np.arange(79, 60, -1)]


@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize("chosen", PARTS, ids=len)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_parts_of_rows_far_from_zero(layout, chosen, precise):
    """Neighbours, or rows from many places: all sides see them from one origin. Float32 leaves 0.01 of a distance."""
    rng = np.random.default_rng(0)
    X = 1e5 * (3.0 + (np.arange(80) > 40))[:, None] + rng.standard_normal((80, 3))
    space = KernelRows.of(Rows.of(layout(X)), Gaussian(0.4))
    part, n = space.take(chosen), len(chosen)
    expected = np.exp(-0.4 * ((X[chosen, None] - X[None, chosen]) ** 2).sum(axis=2))
    some, ones, mask = np.arange(n)[::-1].copy(), np.ones(n), np.isin(np.arange(80), chosen)
    space.precise = part.precise = precise
    rough, lines = {"rtol": 0.0, "atol": 1e-13 if precise else 0.02}, np.empty((n, n), dtype=part.value_type)
    if precise and layout is sp.csr_array:
        rough["atol"] = 1e-12
    with blas_guard:
        np.testing.assert_allclose(part.square(ONE, np.float64), expected, rtol=0.0, atol=1e-13)
        np.testing.assert_allclose(part.exact_scores(ones, ONE)[0], expected.sum(axis=1), rtol=0.0, atol=n * 1e-13)
        part.lines(some, ONE, lines)
        np.testing.assert_allclose(lines, expected[some], **rough)
        np.testing.assert_allclose(part.square_of(some, ONE), expected[np.ix_(some, some)], **rough)
        np.testing.assert_allclose(part.cross(some, some[:3], ONE), expected[np.ix_(some, some[:3])], **rough)
        np.testing.assert_allclose(space.cross(chosen, chosen, ONE), expected, **rough)
        rough["atol"] *= n
        np.testing.assert_allclose(part.rough_scores(ones, ONE), expected.sum(axis=1), **rough)
        found = space.rough_scores(mask.astype(float), ONE)[chosen]
        np.testing.assert_allclose(found, expected.sum(axis=1), **rough)

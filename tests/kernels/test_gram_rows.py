"""GramRows: the same values as the whole matrix, within its memory."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import InputError
from maxmargin.kernels import Callable, Gaussian, GramRows, Laplacian, Linear, Polynomial, Precomputed

KERNELS = [
    Linear(),
    Gaussian(0.3),
    Laplacian(0.3),
    Polynomial(1.0, 1.0, 3),
    Callable(lambda X, Z: X @ Z.T),
    Gaussian(0.3) + 0.5 * Linear() * Laplacian(0.1),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("budget", [1, 8 * 100, 8 * 100 * 9, 8 * 100 * 99, 8 * 100 * 100, 10**9])
def test_rows_are_the_gram_matrix(kernel, layout, budget):
    X = layout(np.random.default_rng(0).standard_normal((100, 3)) + 5.0)
    K, rows = kernel.gram(X), GramRows(kernel, X, most_bytes=budget)
    assert len(rows) == 100
    assert rows.shape == (100, 100)
    for i in np.random.default_rng(1).permutation(100):
        row = rows.row(i)
        assert row.shape == (100,)
        np.testing.assert_allclose(row, K[i], rtol=1e-10, atol=1e-12)
        assert row[i] == rows.diagonal[i]
        assert sum(block.nbytes for block in rows._blocks.values()) <= max(budget, 8 * 100)


def test_precomputed_rows():
    K = Linear().gram(np.random.default_rng(0).standard_normal((50, 3)))
    rows = GramRows(Precomputed(), K, most_bytes=8 * 50 * 8)
    for i in range(50):
        assert np.array_equal(rows.row(i), K[i])
    with pytest.raises(InputError, match="square"):
        GramRows(Precomputed(), K[:, :4])


def test_a_matrix_that_fits_is_computed_once_and_is_symmetric():
    X = np.random.default_rng(0).standard_normal((60, 3))
    rows = GramRows(Gaussian(0.5), X)
    assert np.array_equal(np.stack([rows.row(i) for i in range(60)]), Gaussian(0.5).gram(X))
    assert rows.n_blocks_computed == 1
    assert repr(rows) == "GramRows(Gaussian(gamma=0.5), 60 rows, held)"


def test_recently_used_blocks_stay():
    rows = GramRows(Linear(), np.ones((100, 1)), most_bytes=8 * 100 * 4)  # four blocks of one row
    assert repr(rows) == "GramRows(Linear(), 100 rows, 4 blocks of 1 rows held)"
    for i in (0, 1, 2, 3):
        rows.row(i)
    rows.row(0)
    rows.row(4)  # forgets 1
    assert rows.n_blocks_computed == 5
    rows.row(0)
    assert rows.n_blocks_computed == 5
    rows.row(1)
    assert rows.n_blocks_computed == 6


def test_neighbours_are_computed_together():
    rows = GramRows(Linear(), np.ones((200, 1)), most_bytes=8 * 200 * 80)
    for i in range(20):
        rows.row(i)
    assert rows.n_blocks_computed == 1


def test_rows_cannot_be_written_to_and_stay_valid():
    rows = GramRows(Linear(), np.arange(10.0)[:, None], most_bytes=80)
    first = rows.row(3)
    for i in range(10):
        rows.row(i)
    np.testing.assert_array_equal(first, 3.0 * np.arange(10.0))
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1.0
    for i in (-1, 10):
        with pytest.raises(IndexError, match="rows 0 to 9"):
            rows.row(i)


def test_errors():
    for most_bytes in (0, -1, "much"):
        with pytest.raises(InputError, match="most_bytes"):
            GramRows(Linear(), [[1.0]], most_bytes=most_bytes)
    with pytest.raises(InputError, match="Scale the columns"):
        GramRows(Linear(), [[1e200]])

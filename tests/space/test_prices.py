"""Prices grow as the operations they count, and memory limits are sizes of matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.space import Rows, budget, prices
from maxmargin.space.systems import LARGEST_SYSTEM, GramCache, NormalCache


def rows(n, d, sparse=False, share=1.0):
    X = np.where(np.random.default_rng(0).random((n, d)) < share, 1.0, 0.0)
    return Rows.of(sp.csr_array(X) if sparse else X)


@pytest.mark.parametrize(
    ("sparse", "per_read", "per_epoch", "per_form", "per_gram"),
    [(False, 0.3, 0.6, 0.035, 0.025), (True, 0.8, 3.0, 0.6, 0.2)],
)
def test_what_an_operation_costs_in_nanoseconds(sparse, per_read, per_epoch, per_form, per_gram):
    given = rows(40, 30, sparse, 0.5)
    nnz = given.nnz
    assert (nnz == 1200) != sparse
    assert prices.read(given) == pytest.approx(per_read * nnz)
    assert prices.epoch(given) == pytest.approx(per_epoch * nnz)
    # Products of every pair of numbers in a row; of every pair of rows.
    assert prices.form(given, 7) == pytest.approx(per_form * 7 * (nnz / 40) ** 2)
    assert prices.gram(given, 7) == pytest.approx(per_gram * 7 * 7 * nnz / 40)
    assert prices.factor(50) == pytest.approx(0.012 * 50**3)


def test_a_sparse_number_costs_more_than_a_dense_one_but_there_are_fewer():
    dense, full, few = rows(200, 50), rows(200, 50, True), rows(200, 50, True, 0.1)
    for price in (
        prices.read,
        prices.epoch,
        lambda given: prices.form(given, 100),
        lambda given: prices.gram(given, 9),
    ):
        assert price(few) < price(full)
        assert price(dense) < price(full)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_system_has_the_smaller_of_its_two_sizes(sparse):
    given = rows(60, 30, sparse)
    for active in (1, 29):
        assert prices.system(given, active) == prices.gram(given, active) + prices.factor(active)
    for active in (30, 60):
        assert prices.system(given, active) == prices.form(given, active) + prices.factor(30)


def test_rows_without_numbers_cost_nothing():
    for given in (rows(5, 4, True, 0.0), Rows.of(np.ones((0, 4)))):
        assert [prices.read(given), prices.epoch(given), prices.form(given, 3), prices.gram(given, 3)].count(0.0) >= 3


@pytest.mark.parametrize("n_bytes", [0, 7, 8, 31, 32, 10**6, 128 * 10**6, 10**15 + 1])
def test_the_largest_square_fits_and_the_next_one_does_not(n_bytes):
    size = budget.largest_square(n_bytes)
    assert 8 * size**2 <= n_bytes < 8 * (size + 1) ** 2


def test_matrices_that_are_kept_or_factored_have_their_limits_from_one_place():
    assert (GramCache.MOST_ROWS, NormalCache.LARGEST, LARGEST_SYSTEM) == (4000, 1000, 6000)
    assert 0.5 <= budget.COPIED_ROWS < 1.0

"""Prices follow the operations that are counted, and passes over rows are charged with them."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.runtime import Execution, Meter
from maxmargin.space import Rows, prices

LAYOUTS = {"dense": np.asarray, "sparse": sp.csr_array}


def rows(layout="dense", n=20, d=6):
    X = np.random.default_rng(0).standard_normal((n, d))
    return Rows.of(LAYOUTS[layout](np.where(np.abs(X) < 0.5, 0.0, X) if layout == "sparse" else X))


def metered():
    meter = Meter()
    return Execution(1, None, meter), meter


@pytest.mark.parametrize("layout", LAYOUTS)
def test_passes_grow_with_the_numbers_in_x(layout):
    small, large = rows(layout), rows(layout, n=300)
    for price in (prices.read, prices.epoch):
        assert price(large) / price(small) == pytest.approx(large.nnz / small.nnz)
    assert prices.epoch(small) > prices.read(small) > 0.0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_matrices_grow_with_their_products(layout):
    few, many = rows(layout, d=6), rows(layout, d=60)
    longer = many.per_row / few.per_row
    assert prices.form(few, 14.0) == pytest.approx(2.0 * prices.form(few, 7.0))
    assert prices.form(many, 7.0) == pytest.approx(longer**2 * prices.form(few, 7.0))
    assert prices.gram(few, 14.0) == pytest.approx(4.0 * prices.gram(few, 7.0))
    assert prices.gram(many, 7.0) == pytest.approx(longer * prices.gram(few, 7.0))
    assert prices.factor(30.0) == pytest.approx(27.0 * prices.factor(10.0))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("active", [3.0, 5.9, 6.0, 17.0])
def test_a_system_is_solved_in_the_smaller_of_its_sizes(layout, active):
    X = rows(layout)
    by_rows = prices.gram(X, active) + prices.factor(active)
    by_columns = prices.form(X, active) + prices.factor(6)
    assert prices.system(X, active) == (by_rows if active < 6.0 else by_columns)


def test_a_stored_number_of_sparse_rows_costs_more():
    dense, sparse = rows(), Rows.of(sp.csr_array(rows().X))
    for price in (prices.read, prices.epoch):
        assert price(sparse) > price(dense)
    for price in (prices.form, prices.gram):
        assert price(sparse, 5.0) > price(dense, 5.0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_pass_is_charged_and_every_number_of_x_counted(layout):
    X = rows(layout)
    D, some = np.where(np.arange(20) % 4, 0.0, 1.0), np.arange(5)
    w, c, W, C = np.ones(6), np.ones(20), np.ones((3, 6)), np.ones((20, 3))
    passes = [
        (lambda how: X.scores(w, how), prices.read(X), X.nnz),
        (lambda how: X.combine(c, how), prices.read(X), X.nnz),
        (lambda how: X.exact_scores(w, how), prices.read(X), X.nnz),
        (lambda how: X.exact_combine(c, how), prices.read(X), X.nnz),
        (lambda how: X.scores_of_all(W, how), 3.0 * prices.read(X), X.nnz),
        (lambda how: X.combine_all(C, how), 3.0 * prices.read(X), X.nnz),
        (lambda how: X.normal_matrix(D, 1.0, how), prices.form(X, 5), 5.0 * X.per_row),
        (lambda how: X.gram(some, how), prices.gram(X, 5), 5.0 * X.per_row),
        (lambda how: X.block(some[:1], some[1:], how), prices.gram(X, 2.0), 4.0 * X.per_row),
    ]
    how, meter = metered()
    spent = reads = 0.0
    for work, cost, numbers in passes:
        work(how)
        spent, reads = spent + cost, reads + numbers
        assert meter.spent == pytest.approx(spent)
        assert meter.reads == pytest.approx(reads)


def test_who_has_no_meter_is_not_charged():
    X = rows()
    assert X.scores(np.ones(6), Execution(1)).shape == (20,)

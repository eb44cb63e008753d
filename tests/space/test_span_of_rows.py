"""Few rows of many columns: coordinates of their span have the same inner products, and there is a way back."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.runtime import Execution
from maxmargin.space import Rows
from tests.solvers.inside import cancelled, core_calls

HOW = Execution(1)


def made(n=12, d=60, rank=None, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.5, rng.standard_normal((n, d)), 0.0)
    if rank is not None:
        X = rng.standard_normal((n, rank)) @ X[:rank]
    return X


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("rank", [None, 5, 1])
def test_inner_products_are_kept_and_the_basis_spans_all_rows(layout, rank):
    rows = Rows.of(layout(made(rank=rank)))
    X = np.asarray(rows.X.toarray() if rows.sparse else rows.X, dtype=np.float64)
    span = rows.span(HOW)
    L = span.rows.X
    wanted = rank or 12
    if X.dtype != rows.X.dtype and rank is not None:  # rounded to float32 no row is a combination of others
        wanted = L.shape[1]
    assert L.shape == (12, wanted)
    np.testing.assert_allclose(L @ L.T, X @ X.T, atol=1e-12 * np.abs(X @ X.T).max())
    assert np.linalg.matrix_rank(X[span.basis], tol=1e-9 * np.abs(X).max()) == wanted
    np.testing.assert_array_equal(span.triangle, np.tril(span.triangle))
    np.testing.assert_allclose(span.rows.facts.squared_norms, (X * X).sum(axis=1), rtol=1e-12)
    assert span.rows.facts.finite
    assert span.rows.facts.longest_row == wanted


def test_weights_go_in_by_their_scores_and_come_out_as_sums_of_rows():
    X = made(rank=7)
    rows = Rows.of(X)
    span = rows.span(HOW)
    w = np.random.default_rng(1).standard_normal(60)
    inside = span.coordinates(rows.scores(w, HOW))
    assert inside.shape == (7,)
    np.testing.assert_allclose(span.rows.scores(inside, HOW), X @ w, atol=1e-11)
    c = span.coefficients(inside)
    assert np.count_nonzero(c) <= 7
    outside = rows.combine(c, HOW)
    np.testing.assert_allclose(X @ outside, X @ w, atol=1e-10)
    projected = X.T @ np.linalg.lstsq(X.T, w, rcond=1e-10)[0]  # what no row sees is gone
    np.testing.assert_allclose(outside, projected, atol=1e-10)


def test_short_rows_count_beside_long_ones():
    X = made()
    X[7] *= 1e-9
    L = Rows.of(X).span(HOW).rows.X
    assert L.shape == (12, 12)
    size = np.linalg.norm(X, axis=1)
    np.testing.assert_allclose(L @ L.T / np.outer(size, size), X @ X.T / np.outer(size, size), atol=1e-14)


def test_rows_without_numbers_have_one_coordinate_and_no_way_in_or_out():
    span = Rows.of(np.zeros((4, 30))).span(HOW)
    np.testing.assert_array_equal(span.rows.X, np.zeros((4, 1)))
    assert span.coordinates(np.ones(4)) is None
    assert span.coefficients(np.ones(1)) is None


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_goes_nowhere(value):
    span = Rows.of(made()).span(HOW)
    assert span.coordinates(np.full(12, value)) is None
    assert span.coefficients(np.full(12, value)) is None


def test_the_span_is_computed_once_and_may_be_interrupted_before(monkeypatch):
    grams, rows = core_calls(monkeypatch, "gram"), Rows.of(made())
    with pytest.raises(KeyboardInterrupt):
        rows.span(Execution(1, cancelled().core))
    assert rows.span(HOW) is rows.span(HOW)
    assert len(grams) == 1

"""The matrix of Newton's steps, kept from step to step."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.process import borrowed_blas
from maxmargin.runtime import Execution, Watch
from maxmargin.space import Bias, Rows
from maxmargin.space.systems import NormalCache

HOW = Execution(2)


def normal_matrix(X, D, bias):
    wide = np.column_stack([X, np.full(len(X), bias)]) if bias else X
    return np.triu(wide.T @ (D[:, None] * wide))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_rows_that_change_sides_change_the_matrix(layout, bias):
    rng = np.random.default_rng(0)
    X = np.float32(rng.standard_normal((500, 7))).astype(np.float64)
    rows = Rows.of(layout(X))
    cache = NormalCache(rows, Bias(bias, False))
    active = rng.random(500) < 0.5
    for step, sigma in enumerate([3.0, 3.0, 3.0, 30.0, 30.0, 1e12, 0.0, 2.0]):
        active = active ^ (rng.random(500) < 0.02)
        D = np.where(active, sigma, 0.0)
        found = np.triu(cache.matrix(D, HOW))
        wanted = normal_matrix(X, D, bias)
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10 + 1e-12 * sigma, err_msg=f"step {step}")
        found[:] = np.nan  # what was handed out may be overwritten


def test_it_is_formed_afresh_where_rounding_would_show(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((500, 5))
    rows = Rows.of(X)
    added = []
    core = _core.normal_matrix

    def watched(*arguments, add):
        added.append(add)
        core(*arguments, add=add)

    monkeypatch.setattr(_core, "normal_matrix", watched)
    cache = NormalCache(rows, Bias(1.0, False))
    D = np.where(np.arange(500) < 300, 1.0, 0.0)
    cache.matrix(D, HOW)
    D[:5] = 0.0
    cache.matrix(D, HOW)
    assert added == [False, True]
    cache.matrix(1e6 * np.roll(D, 3), HOW)  # few rows, but a large penalty
    cache.matrix(1e6 * D[::-1], HOW)  # many rows
    assert added == [False, True, False, False]


def test_a_long_row_that_came_and_went_leaves_nothing_behind():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((400, 4))
    X[0] *= 1e8
    rows = Rows.of(X)
    cache = NormalCache(rows, Bias(1.0, False))
    without = np.ones(400)
    without[0] = 0.0
    for D in (without, np.ones(400), without):
        found = np.triu(cache.matrix(D, HOW))
    np.testing.assert_allclose(found, normal_matrix(X, without, 1.0), rtol=1e-12, atol=1e-12)


def test_after_an_interrupt_nothing_is_known():
    rows = Rows.of(np.ones((50, 3)))
    cache = NormalCache(rows, Bias(0.0, False))
    D = np.ones(50)
    cache.matrix(D, HOW)
    stopped = Watch()
    stopped.cancel()
    D[0] = 0.0
    with pytest.raises(KeyboardInterrupt):
        cache.matrix(D, Execution(1, stopped.core))
    np.testing.assert_allclose(np.triu(cache.matrix(D, HOW)), np.triu(np.full((3, 3), 49.0)))


def test_garbage_in_the_multipliers_is_not_hidden():
    rows = Rows.of(np.ones((4, 2)))
    H = np.empty((2, 2))
    _core.normal_matrix(rows.core, np.array([1.0, np.nan, 0.0, 1.0]), 0.0, H, borrowed_blas(), 1)
    assert np.isnan(H[0]).all()

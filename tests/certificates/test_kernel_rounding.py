"""Bounds on what rounding does to kernels are theorems: compared with 240 bits, on data where float64 loses much."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.certificates.blocks import blocks, readable
from maxmargin.certificates.kernel_rounding import RowSizes, largest_value, score_off, value_off
from maxmargin.certificates.kernel_structure import definite, known, nowhere_negative
from maxmargin.certificates.kernel_values import Own, Support, evaluate
from tests.certificates.expansions import (
    STRUCTURES,
    exact_scores,
    exact_value,
    hostile,
    other_values,
    scaled_to,
    spread_of,
)
from tests.exact.objectives import Ball, rational, vector

UNUSUAL = [
    ("poly", 0.7, 5.0, 2.5),
    ("poly", 0.7, 5.0, 0.5),
    ("poly", 2.0, 1.0, 0),
    ("poly", 1e-3, 1.0, 70),
    ("scaled", -0.5, ("rbf", 0.5)),
    ("product", ("laplacian", 0.1), ("laplacian", 0.2), ("poly", 1.0, 0.0, 1)),
]


def wrong_by(found, exact):
    return [abs(Ball(rational(value)) - truth) for value, truth in zip(found, exact, strict=True)]


def case(seed, structure):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 12)), int(rng.integers(1, 20))
    X = hostile(rng, n, d)
    if structure[0] == "poly" and not float(structure[3]).is_integer():
        X = np.abs(X)  # the base must not be negative
    if structure[-1] == 70:
        return rng, X / np.abs(X).max(), structure, rng.standard_normal(n)  # nor may its power overflow
    a = rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 3, n) * (rng.random(n) < 0.8)
    return rng, X, scaled_to(structure, spread_of(X)), a


def kept_within(found, off, exact):
    assert all(error <= Ball(rational(bound)) for error, bound in zip(wrong_by(found, exact), off, strict=True))


@pytest.mark.parametrize("structure", STRUCTURES + UNUSUAL, ids=str)
def test_scores_are_off_by_no_more_than_their_bounds(structure):
    for seed in range(14):
        rng, X, kernel, a = case(seed, structure)
        exact, own = exact_scores(kernel, X, a), np.flatnonzero(a)
        for given in (X, sp.csr_array(X)):
            for near in (False, True):
                support = Support(kernel, readable(given), own, a[own], near=near)
                block = next(blocks(readable(given)))
                scores = support.scores(block, np.arange(len(X)))
                kept_within(scores.f, scores.off, exact)
        # A solver's arithmetic: about a point of its own, in another order.
        origin, order = X[rng.integers(0, len(X))], rng.permutation(own)
        with np.errstate(over="ignore"):
            K = other_values(kernel, X, order, rng, origin)
        squares, centred = (X * X).sum(axis=1), ((X - origin) ** 2).sum(axis=1)
        sizes = RowSizes(X.shape[1], squares, float(squares[order].max(initial=0.0)), centred)
        off = score_off(kernel, sizes, np.abs(K) @ np.abs(a[order]), float(np.abs(a).sum()), len(order))
        kept_within(K @ a[order], off, exact)


@pytest.mark.parametrize("structure", STRUCTURES + UNUSUAL, ids=str)
def test_values_of_a_row_with_itself(structure):
    for seed in range(6):
        X, kernel = case(seed, structure)[1:3]
        support = Support(kernel, X, np.arange(len(X)), np.ones(len(X)), near=False)
        values, off = support.own(next(blocks(X)), np.arange(len(X)))
        kept_within(values, off, [exact_value(kernel, vector(x), vector(x)) for x in X])


def test_bounds_are_not_vacuous():
    """On rows of ordinary size a score is right to ten digits at least, and is known to be."""
    rng = np.random.default_rng(0)
    X, a = rng.standard_normal((40, 9)), rng.standard_normal(40)
    for structure in STRUCTURES:
        support = Support(structure, X, np.arange(40), a, near=False)
        scores = support.scores(next(blocks(X)), np.arange(40))
        assert (scores.off <= 1e-10 * np.maximum(1.0, scores.sums)).all(), structure
        assert (scores.off > 0.0).all()


def test_an_outlier_blurs_its_own_score_only():
    rng = np.random.default_rng(0)
    X, a = rng.standard_normal((40, 9)), np.ones(40)
    squares = (X * X).sum(axis=1)
    squares[3] = 1e20
    off = score_off(("rbf", 0.1), RowSizes(9, squares, 1e20, squares), np.full(40, 5.0), float(a.sum()), 40)
    assert off[3] > 1.0
    assert (np.delete(off, 3) < 1e-12).all()


def test_values_corrected_from_differences_are_known_however_far_the_origin_is():
    sums, far = np.full(1, 5.0), np.full(1, 1e6)
    plain = score_off(("rbf", 1.0), RowSizes(9, centred=far), sums, 40.0, 40)
    corrected = score_off(("rbf", 1.0), RowSizes(9, centred=far, corrected=1e-14), sums, 40.0, 40)
    direct = score_off(("rbf", 1.0), RowSizes(9), sums, 40.0, 40)
    assert direct < corrected < 1e-3 * plain


def test_corrections_are_accounted_for():
    """Only values beyond the threshold are computed from differences; the others stay as products made them."""
    threshold = 1e-15
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d = 8, int(rng.integers(1, 20))
        X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 1) + 10.0 ** rng.uniform(0, 4)
        kernel, a = ("rbf", 10.0 ** rng.uniform(-2, 0)), rng.standard_normal(n)
        squares = (X * X).sum(axis=1)
        together = squares[:, None] + squares
        K = other_values(kernel, X, np.arange(n), rng, 0.0)
        near = other_values(kernel, X - X[0], np.arange(n), rng, 0.0)  # no digits are lost here
        K = np.where(K * kernel[1] * together * 2.0**-53 > threshold, near, K)
        sizes = RowSizes(d, squares, float(squares.max()), squares, corrected=threshold)
        off = score_off(kernel, sizes, np.abs(K) @ np.abs(a), float(np.abs(a).sum()), n)
        kept_within(K @ a, off, exact_scores(kernel, X, a))


def test_multipliers_that_moved_widen_the_bound_by_their_move():
    sizes, sums = RowSizes(3, np.ones(2), 4.0, np.ones(2)), np.ones(2)
    for structure, most in ((("rbf", 1.0), 1.0), (("linear",), 2.0), (("poly", 1.0, 1.0, 2), 9.0)):
        plain = score_off(structure, sizes, sums, 2.0, 5)
        moved = score_off(structure, sizes, sums, 2.0, 5, moved=0.5)
        assert ((moved - plain >= 0.5 * most) & (moved - plain <= 0.5001 * most)).all()
        assert largest_value(structure, sizes) == pytest.approx(most, rel=1e-5)


def test_nothing_is_known_of_values_from_outside_unless_they_are_looked_at():
    assert np.isinf(score_off(("precomputed",), RowSizes(2), np.ones(1), 2.0, 5, moved=0.1)).all()
    assert score_off(("precomputed",), RowSizes(2, given=3.0), np.ones(1), 2.0, 5, moved=0.1)[0] < 0.31
    assert value_off(("callable", len, {}), RowSizes(2), np.ones(2)).shape == (2,)


def test_which_kernels_there_are():
    for structure in STRUCTURES + UNUSUAL:
        assert known(structure)
        assert definite(structure) is (structure in [*STRUCTURES[:-2], UNUSUAL[2], UNUSUAL[3], UNUSUAL[5]])
    wrong = [(), ("rbf",), ("rbf", 0.0), ("rbf", np.inf), ("rbf", True), ("rbf", "scale"), ("poly", 1.0, 0.0, -1)]
    wrong += [("sum",), ("sum", ("rbf", -1.0)), ("sum", ("precomputed",)), ("scaled", 1.0), ("cosine",)]
    wrong += [("scaled", np.nan, ("linear",)), ("callable", 3, {}), ("callable", len), ["rbf", 1.0], "rbf", None]
    assert not any(known(structure) for structure in wrong)
    deep = ("linear",)
    for _ in range(50):
        deep = ("sum", deep)
    assert not known(deep)
    assert definite(("sum", ("callable", len, {}), ("linear",))) is None
    assert definite(("product", ("callable", len, {}), ("sigmoid", 1.0, 0.0))) is False


def test_where_values_cannot_be_negative():
    assert nowhere_negative(("sum", ("rbf", 1.0), ("scaled", 2.0, ("laplacian", 1.0))))
    assert not nowhere_negative(("sum", ("rbf", 1.0), ("scaled", -2.0, ("laplacian", 1.0))))
    assert not nowhere_negative(("linear",))


def test_a_tile_of_wide_sparse_rows(monkeypatch):
    """Differences of sparse rows are taken a few columns at a time."""
    from maxmargin.certificates import kernel_values

    X = sp.random_array((30, 400), density=0.05, rng=np.random.default_rng(0)).tocsr()
    a = np.ones(30)
    found = []
    for wide in (1 << 21, 200):
        monkeypatch.setattr(kernel_values, "WIDE", wide)
        support = Support(("laplacian", 0.3), X, np.arange(30), a, near=True)
        found.append(support.scores(next(blocks(X)), np.arange(30)).f)
    D = np.abs(X.toarray()[:, None] - X.toarray()).sum(axis=2)
    np.testing.assert_allclose(found[0], np.exp(-0.3 * D).sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-13)


def test_rows_with_themselves_from_outside():
    K = np.arange(9.0).reshape(3, 3)
    for given in (K, sp.csr_array(K)):
        np.testing.assert_array_equal(
            evaluate(("precomputed",), Own(given[[1, 2]], np.array([1, 2])))[:, 0], [4.0, 8.0]
        )
    called = evaluate(("callable", lambda X, Z, shift: X @ Z.T + shift, {"shift": 1.0}), Own(K, np.arange(3)))
    np.testing.assert_array_equal(called[:, 0], (K * K).sum(axis=1) + 1.0)

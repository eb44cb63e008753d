"""Every pass over rows, and every part of them, is what NumPy says of the matrix, whatever the format and precision."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.runtime import Execution, Meter, Watch
from maxmargin.space import Rows, prices

HOW = Execution(2)


def csr(X, index=np.int32):
    S = sp.csr_array(X)
    return sp.csr_array((S.data, S.indices.astype(index), S.indptr.astype(index)), shape=S.shape)


LAYOUTS = {
    "dense": lambda X: X,
    "dense32": lambda X: X.astype(np.float32),
    "csr": csr,
    "csr32": lambda X: csr(X.astype(np.float32)),
    "csr64": lambda X: csr(X, np.int64),
    "csr32 wide": lambda X: csr(X.astype(np.float32), np.int64),
}


def made(n=23, d=7, seed=0):
    """Numbers that float32 holds, half of them zeros, with an empty row and an empty column."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.5, rng.standard_normal((n, d)), 0.0)
    X[3], X[:, 2] = 0.0, 0.0
    return X.astype(np.float32).astype(np.float64)


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return LAYOUTS[request.param]


@pytest.fixture
def both(layout):
    """The matrix and its rows."""
    X = made()
    return X, Rows.of(layout(X))


def vector(size, seed=1):
    return np.random.default_rng(seed).standard_normal(size)


def surveys(monkeypatch):
    """The shape of every matrix whose values were all visited for facts."""
    before, seen = _core.survey, []
    monkeypatch.setattr(_core, "survey", lambda core, *rest: (seen.append(core.shape), before(core, *rest))[1])
    return seen


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


# ---------------------------------------------------------------- what they are


def test_rows_know_their_shape_and_their_numbers(both):
    X, rows = both
    assert rows.shape == (rows.n, rows.d) == X.shape
    assert rows.sparse == sp.issparse(rows.X)
    assert rows.nnz == (np.count_nonzero(X) if rows.sparse else X.size)
    lengths = (X != 0.0).sum(axis=1) if rows.sparse else np.full(23, 7)
    np.testing.assert_array_equal(rows.lengths, lengths)
    assert rows.per_row == pytest.approx(lengths.mean())


def test_the_matrix_is_used_where_it_is(layout):
    X = layout(made())
    rows = Rows.of(X)
    assert rows.X is X
    before = rows.scores(np.ones(7), HOW)
    (X.data if sp.issparse(X) else X).__imul__(2.0)
    close(rows.scores(np.ones(7), HOW), 2.0 * before)


def test_columns_of_a_sparse_row_must_rise():
    with pytest.raises(ValueError):
        Rows.of(sp.csr_array((np.ones(2), np.array([1, 0]), np.array([0, 2])), shape=(1, 2)))


# ---------------------------------------------------------------- passes


@pytest.mark.parametrize("out", [False, True])
@pytest.mark.parametrize("bias", [0.0, -1.5])
def test_scores_and_sums(both, out, bias):
    X, rows = both
    w, c = vector(7), vector(23)
    c[::3] = 0.0
    places = (np.full(23, np.nan), np.full(7, np.nan)) if out else (None, None)
    scores, total = rows.scores(w, HOW, bias=bias, out=places[0]), rows.combine(c, HOW, out=places[1])
    close(scores, X @ w + bias)
    close(total, X.T @ c)
    assert not out or (scores is places[0] and total is places[1])


def test_exact_passes_have_twice_the_digits(layout):
    # The first two products cancel up to 2⁻⁶⁰ of them; what is left is far below rounding.
    X = np.array([[1.0 + 2.0**-20, 1.0 - 2.0**-20, 2.0**-30], [3.0, 5.0, 7.0], [0.0, 0.0, 0.0]])
    w = np.array([1.0 - 2.0**-20 + 2.0**-50, -1.0 - 2.0**-20, 1.0 / 3.0])
    rows = Rows.of(layout(X))
    high, low = rows.exact_scores(w, HOW)
    for x, *found in zip(X, high, low, strict=True):
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(x, w, strict=True))
        apart = abs(sum(map(Fraction, found)) - exact)
        size = sum(abs(Fraction(a) * Fraction(b)) for a, b in zip(x, w, strict=True))
        assert apart <= 2.0**-98 * size
    c = np.array([5.0, -5.0 / 3.0, 1e300])
    for j, found in enumerate(rows.exact_combine(c, HOW)):
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(X[:, j], c, strict=True))
        assert found == float(exact)


def test_several_hyperplanes_at_once(both):
    X, rows = both
    W, C = vector((3, 7)), vector((23, 3))
    scores, sums = rows.scores_of_all(W, HOW), rows.combine_all(C, HOW)
    close(scores, X @ W.T)
    close(sums, C.T @ X)
    assert (scores.dtype, sums.dtype) == (np.float64, np.float64)
    assert sums.flags.c_contiguous


# ---------------------------------------------------------------- matrices


@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_the_normal_matrix_and_what_is_added_to_one(both, bias):
    X, rows = both
    D = np.where(np.arange(23) % 3 == 0, 0.0, np.abs(vector(23)))
    wide = np.column_stack([X, np.full(23, bias)]) if bias else X
    H = rows.normal_matrix(D, bias, HOW)
    assert H.shape == (wide.shape[1],) * 2
    close(np.triu(H), np.triu(wide.T @ (D[:, None] * wide)))
    assert rows.normal_matrix(-0.5 * D, bias, HOW, add_to=H) is H
    close(np.triu(H), np.triu(wide.T @ (0.5 * D[:, None] * wide)))


def test_inner_products_of_rows(both):
    X, rows = both
    chosen, others = np.array([1, 3, 8, 22]), np.array([0, 8, 5])
    G = rows.gram(chosen, HOW)
    close(np.triu(G), np.triu(X[chosen] @ X[chosen].T))
    np.testing.assert_array_equal(np.tril(G, -1), 0.0)
    close(rows.block(chosen, others, HOW), X[chosen] @ X[others].T)
    close(rows.diagonal, (X * X).sum(axis=1))
    for i in (0, 3, 22):
        row = rows.row(i)
        np.testing.assert_array_equal(row, X[i])
        assert (row.shape, row.dtype) == ((7,), np.float64)


# ---------------------------------------------------------------- other rows


@pytest.mark.parametrize("chosen", [[4, 0, 4, 22, 3], [3], [], list(range(23))])
def test_some_rows(both, chosen):
    X, rows = both
    chosen = np.array(chosen, dtype=np.intp)
    part = rows.take(chosen)
    assert part.shape == (len(chosen), 7)
    if len(chosen):
        close(part.scores(vector(7), HOW), X[chosen] @ vector(7))
    found = part.X.toarray() if part.sparse else part.X
    np.testing.assert_array_equal(found, X[chosen])
    assert part.X.dtype == rows.X.dtype
    assert part.sparse == rows.sparse
    np.testing.assert_array_equal(part.lengths, rows.lengths[chosen])
    again = part.take(np.arange(len(chosen))[::-1])  # of rows whose matrix nobody has asked for
    np.testing.assert_array_equal(again.X.toarray() if again.sparse else again.X, X[chosen][::-1])


def test_rows_of_rows_before_anybody_asks_for_the_matrix(both):
    X, rows = both
    first, second = np.array([9, 1, 5, 5, 20]), np.array([3, 0])
    part = rows.take(first).take(second)
    close(part.scores(vector(7), HOW), X[first][second] @ vector(7))
    close(part.combine(np.array([2.0, -1.0]), HOW), 2.0 * X[5] - X[9])
    assert type(part.X) is type(rows.X)


@pytest.mark.parametrize("chosen", [[0, 2, 6], [5], [6, 1]])
def test_some_columns_scaled_and_squared(both, chosen):
    X, rows = both
    w = vector(len(chosen))
    close(rows.columns(np.array(chosen)).scores(w, HOW), X[:, chosen] @ w)
    assert rows.columns(np.array(chosen)).X.dtype == rows.X.dtype
    scaled = rows.scaled(0.25)
    close(scaled.scores(vector(7), HOW), 0.25 * X @ vector(7))
    assert scaled.sparse == rows.sparse
    close(rows.combine(np.ones(23), HOW), X.sum(axis=0))  # the rows themselves are as before


def test_squares_have_all_their_digits_and_are_made_once(both):
    X, rows = both
    assert rows.squared is rows.squared
    assert rows.squared.X.dtype == np.float64
    np.testing.assert_allclose(rows.squared.combine(np.ones(23), HOW), (X * X).sum(axis=0), rtol=1e-15)
    huge = Rows.of(np.float32([[1e30, 1e-30]]))  # squares beyond float32
    np.testing.assert_allclose(huge.squared.X, np.square(np.float64(huge.X)), rtol=1e-15)


def test_a_change_of_any_value_is_noticed(layout):
    X = layout(made())
    rows = Rows.of(X)
    assert rows.facts.finite
    assert rows.unchanged(1)
    values = X.data if sp.issparse(X) else X.reshape(-1)
    values[5] = 17.0
    assert not rows.unchanged(2)


# ---------------------------------------------------------------- facts


def test_facts_are_what_one_visit_says(both):
    X, rows = both
    facts = rows.facts
    assert facts.finite is True
    assert facts.largest == np.abs(X).max()
    assert facts.longest_row == ((X != 0.0).sum(axis=1).max() if rows.sparse else 7)
    close(facts.squared_norms, (X * X).sum(axis=1))
    if rows.sparse:
        assert facts.column_squares is None
    else:
        close(facts.column_squares, (X * X).sum(axis=0))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (22, 6), (11, 4)])
def test_a_value_that_is_not_finite_is_found(layout, value, place):
    X = made()
    X[place] = value
    assert Rows.of(layout(X)).facts.finite is False


def test_columns_spread_by_their_root_mean_squares(layout):
    X = np.ones((6, 3)) * [3.0, 0.0, 0.015625]
    X[::2, 0] = 0.0
    rows = Rows.of(layout(X))
    spread = 1.0 if rows.sparse else 3.0 / math.sqrt(2.0) / 0.015625
    assert rows.facts.column_spread == pytest.approx(spread, rel=1e-12)
    assert Rows.of(layout(np.zeros((4, 2)))).facts.column_spread == 1.0
    assert Rows.of(layout(np.ones((0, 2)))).facts.column_spread == 1.0


def test_every_row_counts_for_the_spread():
    X = np.ones((4001, 2))
    X[4000, 0] = 1e9
    assert Rows.of(X).facts.column_spread == pytest.approx(1e9 / math.sqrt(4001), rel=1e-9)
    assert Rows.of(np.float32([[1e30, 1.0]])).facts.column_spread == pytest.approx(1e30, rel=1e-6)


def test_nobody_visits_all_values_twice(monkeypatch, layout):
    rows, seen = Rows.of(layout(made())), surveys(monkeypatch)
    assert seen == []
    first = rows.facts
    for _ in range(3):
        assert rows.facts is first
        assert rows.diagonal is first.squared_norms
        assert len(rows.take(np.arange(5)).take(np.array([2, 1])).facts.squared_norms) == 2
    assert seen == [(23, 7)]


def test_of_some_rows_facts_are_sliced_kept_or_dropped(monkeypatch, both):
    X, rows = both
    whole, chosen = rows.facts, np.array([4, 3, 4, 0])
    seen = surveys(monkeypatch)
    facts = rows.take(chosen).facts
    assert seen == []
    np.testing.assert_array_equal(facts.squared_norms, whole.squared_norms[chosen])
    assert (facts.finite, facts.largest) == (whole.finite, whole.largest)  # kept: a bound
    assert facts.largest >= np.abs(X[chosen]).max()
    assert facts.longest_row == rows.lengths[chosen].max()
    assert facts.column_squares is None
    assert facts.column_spread == 1.0


def test_what_was_kept_of_all_rows_says_nothing_of_some(both):
    X, rows = both
    squared, span = rows.squared, rows.span(HOW)
    assert rows.span(HOW) is span
    part = rows.take(np.array([6, 2]))
    assert part.squared is not squared
    close(part.squared.combine(np.ones(2), HOW), (X * X)[[6, 2]].sum(axis=0))
    assert part.span(HOW).rows.n == 2
    close(part.columns(np.array([1, 5])).combine(np.ones(2), HOW), X[[6, 2]][:, [1, 5]].sum(axis=0))


def test_rows_that_nobody_has_checked_are_visited_when_asked(monkeypatch, both):
    X, rows = both
    seen = surveys(monkeypatch)
    part = rows.take(np.array([4, 1]))
    assert seen == []
    close(part.facts.squared_norms, (X * X)[[4, 1]].sum(axis=1))
    other = rows.columns(np.array([1, 5]))
    close(other.facts.squared_norms, (X * X)[:, [1, 5]].sum(axis=1))
    close(rows.scaled(2.0).facts.squared_norms, 4.0 * (X * X).sum(axis=1))
    assert seen == [(2, 7), (23, 2), (23, 7)]


# ---------------------------------------------------------------- counted work, and interrupts


def work(rows):
    """Name, pass, numbers visited and price of everything that visits numbers."""
    n, d, some = rows.n, rows.d, np.array([0, 5, 9, 11])
    nnz, per, price = rows.nnz, rows.nnz / rows.n, prices.read(rows)
    D = np.where(np.arange(n) < 6, 2.0, 0.0)
    return [
        ("scores", lambda how: rows.scores(np.ones(d), how), nnz, price),
        ("combine", lambda how: rows.combine(np.ones(n), how), nnz, price),
        ("exact_scores", lambda how: rows.exact_scores(np.ones(d), how), nnz, price),
        ("exact_combine", lambda how: rows.exact_combine(np.ones(n), how), nnz, price),
        ("scores_of_all", lambda how: rows.scores_of_all(np.ones((3, d)), how), nnz, 3 * price),
        ("combine_all", lambda how: rows.combine_all(np.ones((n, 3)), how), nnz, 3 * price),
        ("normal_matrix", lambda how: rows.normal_matrix(D, 1.0, how), 6 * per, prices.form(rows, 6.0)),
        ("gram", lambda how: rows.gram(some, how), 4 * per, prices.gram(rows, 4)),
        ("block", lambda how: rows.block(some, some[:1], how), per, prices.gram(rows, 2.0)),
    ]


def test_a_meter_counts_visits_and_their_price(both):
    for name, passing, reads, price in work(both[1]):
        meter = Meter()
        how = Execution(1, None, meter)
        passing(how)
        assert meter.reads == pytest.approx(reads), name
        assert meter.spent == pytest.approx(price), name
        passing(how)
        assert meter.reads == pytest.approx(2 * reads), name


def test_who_waits_for_a_pass_may_interrupt_it(both):
    watch = Watch()
    watch.cancel()
    interruptible = {"scores", "combine", "normal_matrix", "gram", "block"}
    for name, passing, *_ in work(both[1]):
        if name in interruptible:
            with pytest.raises(KeyboardInterrupt):
                passing(Execution(1, watch.core))


def test_no_bit_depends_on_the_number_of_threads(layout):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((3000, 40)) < 0.4, rng.standard_normal((3000, 40)), 0.0)
    rows = Rows.of(layout(X))
    w, c = vector(40), np.abs(vector(3000))
    for passing in (
        lambda how: rows.scores(w, how), lambda how: rows.combine(c, how), lambda how: rows.exact_combine(c, how),
        lambda how: np.triu(rows.normal_matrix(c, 1.0, how)), lambda how: rows.gram(np.arange(0, 3000, 100), how),
    ):  # fmt: skip
        one, two, three = (passing(Execution(k)).tobytes() for k in (1, 2, 3))
        assert one == two == three

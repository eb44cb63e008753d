"""Every form of the linear system of a Newton step solves what a dense matrix says; the cheapest form is chosen."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.runtime import Execution
from maxmargin.space import Bias, Rows, systems
from maxmargin.space.systems import (
    Breakdown,
    Cholesky,
    ConjugateGradients,
    GramCache,
    GramSystem,
    NormalCache,
    NormalSystem,
    newton_system,
)
from tests.solvers.inside import HOW, cancelled, core_calls

BIASES = {"none": Bias(0.0, False), "free": Bias(1.0, False), "penalised": Bias(3.0, True)}
LAYOUTS = {"dense": np.asarray, "sparse": sp.csr_array}


def rows_of(X):
    return Rows.of(X if sp.issparse(X) else np.ascontiguousarray(X))


def largest_system(monkeypatch, size):
    monkeypatch.setattr(systems, "LARGEST_SYSTEM", size)


def gram_calls(monkeypatch):
    """("whole", rows) or ("block", new rows) for every Gram product."""
    whole = core_calls(monkeypatch, "gram", lambda out, rows, chosen, *_: ("whole", len(chosen)))
    block = core_calls(monkeypatch, "gram_block", lambda out, rows, new, *_: ("block", len(new)))
    return whole, block


def reference(X, D, bias, ridge):
    """R + XᵀDX with the bias as last column, written out."""
    wide = np.column_stack([X, np.full(len(X), bias.value)]) if bias.value else X
    last = [1.0 if bias.penalised else ridge] if bias.value else []
    return np.diag(np.concatenate([np.ones(X.shape[1]), last])) + wide.T @ (D[:, None] * wide)


def made(n, d, seed=0, share=0.6):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.5, rng.standard_normal((n, d)), 0.0)
    D = np.where(rng.random(n) < share, rng.uniform(0.1, 3.0, n), 0.0)
    return X, D, rng


def rotated(eigenvalues, seed=0):
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(eigenvalues),) * 2))[0]
    G = Q @ np.diag(eigenvalues) @ Q.T
    return 0.5 * (G + G.T), Q


@pytest.mark.parametrize("careful", [True, False])
def test_a_factor_solves_with_the_upper_triangle_only(careful):
    G, _ = rotated(np.linspace(1.0, 50.0, 7))
    x = np.arange(7.0)
    got = Cholesky(np.triu(G), careful=careful).solve(G @ x)
    np.testing.assert_allclose(got, x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("careful", [True, False])
@pytest.mark.parametrize("entry", [0.0, -1.0, np.nan, np.inf, 1e-300])
def test_a_diagonal_that_is_not_positive_breaks_down(careful, entry):
    G = np.eye(3)
    G[1, 1] = entry
    with pytest.raises(Breakdown, match="diagonal"):
        Cholesky(G, careful=careful)


def test_care_scales_unknowns_of_very_different_size():
    G, _ = rotated(np.linspace(1.0, 5.0, 6))
    scale = 10.0 ** np.array([-100.0, -50.0, 0.0, 3.0, 50.0, 100.0])
    x = np.arange(1.0, 7.0)
    got = Cholesky(G * scale * scale[:, None]).solve(scale * (G @ x))
    np.testing.assert_allclose(got * scale, x, rtol=1e-12)


@pytest.mark.parametrize("below", [-1e-12, -1e-9, -5e-8])
def test_care_shifts_a_matrix_that_rounding_made_indefinite_and_refines_the_answer(below):
    # Circulant, so that its diagonal is constant: equal rows sum to ``below``, and only they make it indefinite.
    of_shift = np.fft.ifft([below, 1.0, 1.1, 1.3, 1.3, 1.1, 1.0]).real
    G = of_shift[np.subtract.outer(np.arange(7), np.arange(7)) % 7]
    x = np.arange(7.0) - 3.0
    with pytest.raises(Breakdown, match="factor"):
        Cholesky(G.copy(), careful=False)
    got = Cholesky(G.copy()).solve(G @ x)
    # The shift alone would leave an error of its own size, more than |below|.
    np.testing.assert_allclose(got - got.mean(), x, rtol=0.0, atol=1e-13)


def test_even_care_breaks_down_where_no_rounding_explains_the_matrix():
    G, _ = rotated(np.array([-5e-6, 1.0, 1.1, 1.2, 1.3, 1.4]))
    with pytest.raises(Breakdown, match="factor"):
        Cholesky(G)


@pytest.mark.parametrize("largest", [1000, 3])
def test_with_many_columns_nothing_is_kept(monkeypatch, largest):
    X, D, _ = made(60, 4)
    cache = NormalCache(rows_of(X), Bias(1.0, False))
    cache.LARGEST = largest
    added = core_calls(monkeypatch, "normal_matrix", lambda out, *_, add: add)
    for k in range(3):
        D[k] = 3.0 - D[k]
        np.testing.assert_allclose(
            np.triu(cache.matrix(D, HOW)), np.triu(reference(X, D, cache.bias, 0.0) - np.diag([1.0] * 4 + [0.0])),
            atol=1e-10,
        )  # fmt: skip
    assert added == ([False, True, True] if largest == 1000 else [False] * 3)


def test_the_same_curvatures_are_not_added_again(monkeypatch):
    X, D, _ = made(60, 4)
    cache = NormalCache(rows_of(X), Bias(0.0, False))
    added = core_calls(monkeypatch, "normal_matrix", lambda out, *_, add: add)
    first = cache.matrix(D, HOW)
    np.testing.assert_array_equal(2.0 * first, cache.matrix(2.0 * D, HOW))
    assert added == [False]
    cache.forget()
    np.testing.assert_array_equal(first, cache.matrix(D, HOW))
    assert added == [False, False]


@pytest.mark.parametrize("D", [np.zeros(5), np.empty(0)])
def test_without_curvature_the_matrix_is_zero(D):
    X = np.ones((len(D), 3))
    cache = NormalCache(rows_of(X), Bias(1.0, False))
    np.testing.assert_array_equal(cache.matrix(D, HOW), np.zeros((4, 4)))
    assert cache.known is None


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("most", [4000, 30])
def test_inner_products_are_those_of_the_chosen_rows_however_many_are_known(monkeypatch, layout, most):
    X, _, rng = made(80, 9)
    cache = GramCache(rows_of(LAYOUTS[layout](X)))
    cache.MOST_ROWS = most
    for size in (12, 12, 20, 25, 40, 6, 10, 70, 80, 33):
        chosen = np.sort(rng.permutation(80)[:size]).astype(np.int64)
        G = cache.gram(chosen, HOW)
        np.testing.assert_allclose(G, X[chosen] @ X[chosen].T, atol=1e-12)
        G[:] = np.nan  # what was handed out may be overwritten
        assert len(cache.known) <= most


def test_only_rows_that_are_not_known_are_multiplied(monkeypatch):
    X, _, _ = made(80, 9)
    cache = GramCache(rows_of(X))
    cache.MOST_ROWS = 25
    whole, block = gram_calls(monkeypatch)
    for first, last, wanted in [
        (0, 10, ("whole", 10)),  # nothing is known
        (0, 12, ("block", 2)),
        (5, 12, None),  # all is known
        (6, 18, ("block", 6)),  # half of them are new
        (10, 26, ("whole", 16)),  # 18 known and 8 new ones are too many: only the last ones stay
        (0, 6, ("whole", 6)),  # more than half are new
        (40, 70, ("whole", 30)),  # too many to be kept at all
        (0, 6, None),  # the ones before are still there
    ]:
        before = len(whole), len(block)
        cache.gram(np.arange(first, last), HOW)
        made_now = [*whole[before[0] :], *block[before[1] :]]
        assert made_now == ([] if wanted is None else [wanted]), (first, last)


def every_system(rows, D, bias, ridge):
    yield NormalSystem(rows, D, bias, HOW, bias_ridge=ridge)
    yield NormalSystem(rows, D, bias, HOW, bias_ridge=ridge, careful=False)
    yield NormalSystem(rows, D, bias, HOW, bias_ridge=ridge, cache=NormalCache(rows, bias))
    yield GramSystem(rows, D, bias, HOW, bias_ridge=ridge)
    yield GramSystem(rows, D, bias, HOW, bias_ridge=ridge, cache=GramCache(rows))
    iterative = ConjugateGradients(rows, D, bias, HOW, bias_ridge=ridge)
    iterative.forcing = 1e-13
    yield iterative


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("share", [0.6, 0.0])
@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
def test_every_form_solves_the_system(layout, bias, share, shape):
    X, D, rng = made(*shape, share=share)
    bias, ridge = BIASES[bias], 0.25
    rows = rows_of(LAYOUTS[layout](X))
    g = rng.standard_normal(shape[1] + (bias.value != 0.0))
    wanted = np.linalg.solve(reference(X, D, bias, ridge), g)
    for system in every_system(rows, D, bias, ridge):
        np.testing.assert_allclose(system.solve(g.copy()), wanted, rtol=1e-9, atol=1e-10, err_msg=repr(system))


def test_a_bias_that_nothing_determines_stays_where_it_is():
    system = GramSystem(rows_of(np.ones((4, 3))), np.zeros(4), Bias(1.0, False), HOW)
    np.testing.assert_array_equal(system.solve(np.array([1.0, 2.0, 3.0, 4.0])), [1.0, 2.0, 3.0, 0.0])


def test_a_bias_without_curvature_does_not_stop_conjugate_gradients():
    rows = rows_of(np.ones((4, 3)))
    system = ConjugateGradients(rows, np.zeros(4), Bias(1.0, False), HOW)
    np.testing.assert_allclose(system.solve(np.array([1.0, 2.0, 3.0, 0.0])), [1.0, 2.0, 3.0, 0.0], rtol=1e-12)


@pytest.mark.parametrize("bias", BIASES)
def test_the_diagonal_makes_conjugate_gradients_end_after_one_product_where_columns_are_orthogonal(monkeypatch, bias):
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(np.column_stack([np.ones(40), rng.standard_normal((40, 5))]))[0][:, 1:]
    X, D, bias = Q * 10.0 ** np.arange(-4, 6, 2), np.full(40, 2.0), BIASES[bias]
    system = ConjugateGradients(rows_of(X), D, bias, HOW, bias_ridge=0.5)
    products = core_calls(monkeypatch, "scores")
    g = rng.standard_normal(5 + (bias.value != 0.0))
    np.testing.assert_allclose(system.solve(g), np.linalg.solve(reference(X, D, bias, 0.5), g), rtol=1e-8)
    assert len(products) == 1


def test_conjugate_gradients_stop_at_their_tolerance_or_after_so_many_steps(monkeypatch):
    X, D, rng = made(200, 60, share=1.0)
    H, g = reference(X, D, BIASES["none"], 0.0), rng.standard_normal(60)
    products, steps = core_calls(monkeypatch, "scores"), []
    system = ConjugateGradients(rows_of(X), D, BIASES["none"], HOW)

    def size(r):
        return float(np.sqrt(r @ (r / np.diag(H))))

    for forcing in (0.5, 0.1, 1e-3, 1e-6):
        system.forcing, before = forcing, len(products)
        residual = g - H @ system.solve(g)
        assert 1e-3 * forcing * size(g) < size(residual) <= forcing * size(g)
        steps.append(len(products) - before)
    assert steps == sorted(set(steps))
    system.forcing, system.MOST_STEPS, before = 0.0, 3, len(products)
    system.solve(g)
    assert len(products) - before == 3


@pytest.mark.parametrize("form", [NormalSystem, GramSystem, ConjugateGradients])
def test_ctrl_c_is_heard_while_a_system_is_made(form):
    X, D, _ = made(50, 6)
    with pytest.raises(KeyboardInterrupt):
        form(rows_of(X), D, BIASES["free"], Execution(1, cancelled().core))


def chosen(n, d, active, *, iterative=False, per_row=None, bias="free"):
    """The form chosen for so many rows, columns and active rows; its answer is checked."""
    rng = np.random.default_rng(0)
    X = 0.1 * rng.standard_normal((n, d))
    if per_row is not None:
        place = np.array([rng.permutation(d)[:per_row] for _ in range(n)])
        X = sp.csr_array(
            (rng.standard_normal(n * per_row), place.ravel(), np.arange(0, n * per_row + 1, per_row)), (n, d)
        )
        X.sort_indices()
    D = np.zeros(n)
    D[:active] = 1.0
    bias = BIASES[bias]
    system = newton_system(rows_of(X), D, bias, HOW, bias_ridge=0.5, iterative=iterative)
    if system is None:
        return None
    g = rng.standard_normal(d + (bias.value != 0.0))
    if system.iterative:
        system.forcing = 1e-10
    whole = X.toarray() if sp.issparse(X) else X
    np.testing.assert_allclose(reference(whole, D, bias, 0.5) @ system.solve(g), g, atol=1e-7)
    return type(system)


@pytest.mark.parametrize(
    ("shape", "form"),
    [
        ((300, 100, 20), NormalSystem),  # up to 100 columns their matrix costs nothing
        ((300, 101, 100), GramSystem),
        ((300, 101, 101), NormalSystem),
        ((120, 150, 120), GramSystem),
    ],
)
@pytest.mark.parametrize("bias", BIASES)
def test_the_smaller_size_is_chosen(shape, form, bias):
    assert chosen(*shape, bias=bias) is form
    assert chosen(*shape, iterative=True, bias=bias) is form  # too small for products to be cheaper


@pytest.mark.parametrize(
    ("shape", "per_row", "form"),
    [
        ((1200, 800, 1200), None, ConjugateGradients),  # a matrix costs n d² beside n d of a product
        ((1200, 800, 1000), None, NormalSystem),  # only active rows enter it
        ((1000, 300, 1000), 2, NormalSystem),  # small in any case
        ((1000, 301, 1000), 2, ConjugateGradients),
        ((1000, 400, 1000), 5, ConjugateGradients),  # the factorisation costs more than products
        ((1000, 400, 1000), 20, NormalSystem),  # sparse rows add few numbers each
        ((3000, 1200, 630), 20, GramSystem),
        ((3000, 1200, 650), 20, ConjugateGradients),  # neither forming nor factoring costs too much, both do
    ],
)
def test_products_are_chosen_where_they_cost_less(shape, per_row, form):
    assert chosen(*shape, iterative=True, per_row=per_row) is form


@pytest.mark.parametrize(("shape", "largest"), [((800, 320, 330), 319), ((1200, 400, 310), 309)])
def test_beyond_the_largest_size_only_products_are_possible(monkeypatch, shape, largest):
    largest_system(monkeypatch, largest)
    assert chosen(*shape) is None
    assert chosen(*shape, iterative=True) is ConjugateGradients
    largest_system(monkeypatch, largest + 1)
    assert chosen(*shape) in (NormalSystem, GramSystem)


@pytest.mark.parametrize("kept", [True, False])
def test_a_breakdown_is_answered_with_care_and_nothing_known(monkeypatch, kept):
    x = np.random.default_rng(0).standard_normal(40)
    X = 1e9 * np.column_stack([x, x, x])  # beside 1e18 the identity is lost
    bias, D = BIASES["none"], np.ones(40)
    with pytest.raises(Breakdown):
        NormalSystem(rows_of(X), D, bias, HOW, careful=False)
    cache = NormalCache(rows_of(X), bias) if kept else None
    g = X.T @ np.ones(40)
    found = newton_system(rows_of(X), D, bias, HOW, normal=cache).solve(g)
    np.testing.assert_allclose(X @ found, X @ np.linalg.lstsq(X.T @ X, g)[0], rtol=1e-9)
    assert cache is None or cache.known is None

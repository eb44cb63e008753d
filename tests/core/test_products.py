"""Products and passes of the core against NumPy: the same numbers, and the same bits for any threads."""

import multiprocessing
import threading
import warnings

import numpy as np
import pytest

from maxmargin import _core
from maxmargin.process import blas_guard, borrowed_blas
from tests.core.rows import KINDS, make, near

SIZES = [(1, 1), (7, 17), (257, 5), (2049, 3), (5000, 33)]


def vectors(n, d, seed=1):
    rng = np.random.default_rng(seed)
    w, c, D = rng.uniform(-1, 1, d), rng.uniform(-1, 1, n), rng.uniform(0, 2, n)
    c[::5] = D[::5] = 0.0
    return w, c, D, rng.integers(0, n, min(n + 3, 300))


def products(rows, n_threads, bias=2.5):
    """Every product of the core, of H and G the upper triangle."""
    n, d = rows.shape
    w, c, D, chosen = vectors(n, d)
    size, m = d + (bias != 0.0), len(chosen)
    out = {"scores": np.full(n, np.nan), "combine": np.full(d, np.nan), "norms": np.full(n, np.nan)}
    out |= {"H": np.full((size, size), np.nan), "G": np.full((m, m), np.nan), "block": np.full((m // 2, m), np.nan)}
    with blas_guard:
        _core.scores(rows, w, 0.3, out["scores"], n_threads)
        _core.combine(rows, c, out["combine"], n_threads)
        _core.squared_norms(rows, out["norms"], n_threads)
        _core.normal_matrix(rows, D, bias, out["H"], borrowed_blas(), n_threads)
        _core.gram(rows, chosen, out["G"], borrowed_blas(), n_threads)
        _core.gram_block(rows, chosen[: m // 2], chosen, out["block"], n_threads)
    return {name: np.triu(a) if name in "GH" else a for name, a in out.items()}


def bits(rows, n_threads):
    return b"".join(a.tobytes() for a in products(rows, n_threads).values())


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_products_agree_with_numpy(instruction_set, kind, size):
    rows, X = make(kind, *size)
    w, c, D, chosen = vectors(*size)
    for bias in (0.0, 1.0, 2.5):
        found = products(rows, 2, bias)
        wide = np.column_stack([X, np.full(len(X), bias)]) if bias else X
        near(found["H"], np.triu(wide.T @ (D[:, None] * wide)))
    near(found["scores"], X @ w + 0.3)
    near(found["combine"], X.T @ c)
    near(found["norms"], np.square(X).sum(axis=1))
    near(found["G"], np.triu(X[chosen] @ X[chosen].T))
    near(found["block"], X[chosen[: len(chosen) // 2]] @ X[chosen].T)


@pytest.mark.parametrize("kind", KINDS)
def test_bits_do_not_depend_on_threads(instruction_set, kind):
    rows, _ = make(kind, 30000, 24)
    one = bits(rows, 1)
    assert bits(rows, 2) == one
    assert bits(rows, 4) == one


@pytest.mark.parametrize("kind", ["dense32", "csr64 int32"])
def test_bits_after_a_fork(instruction_set, kind):
    rows, _ = make(kind, 30000, 24)
    expected = bits(rows, 4)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send_bytes(bits(rows, 4)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of the threads of BLAS
        child.start()
    answered = receiver.poll(30)
    received = receiver.recv_bytes() if answered else b""
    if not answered:
        child.kill()
    child.join()
    assert received == expected
    assert child.exitcode == 0


@pytest.mark.parametrize("kind", ["dense64", "csr32 int64"])
def test_bits_from_two_python_threads_at_once(instruction_set, kind):
    matrices = [make(kind, 30000, 24, seed)[0] for seed in (0, 1)]
    expected = [bits(rows, 1) for rows in matrices]
    assert expected[0] != expected[1]
    start, found = threading.Barrier(2), [[], []]

    def work(k):
        start.wait(30)
        found[k] = [bits(matrices[k], 2) for _ in range(3)]

    threads = [threading.Thread(target=work, args=(k,)) for k in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[bytes_] * 3 for bytes_ in expected]


@pytest.mark.parametrize(
    ("chosen", "shape"),
    [([4], (1, 1)), ([-1], (1, 1)), ([0, 1], (1, 1)), ([0, 1], (2, 3))],
)
def test_gram_refuses_rows_that_do_not_exist_and_wrong_shapes(chosen, shape):
    rows, _ = make("dense64", 4, 3)
    with pytest.raises(ValueError):
        _core.gram(rows, np.array(chosen), np.zeros(shape), borrowed_blas(), 1)


@pytest.mark.parametrize("lines", [[], [2], [3, 0, 3]], ids=str)
@pytest.mark.parametrize("columns", [[], [1], [2, 2, 0, 1, 3]], ids=str)
def test_gram_block_of_few_rows(instruction_set, lines, columns):
    rows, X = make("dense64", 4, 3)
    G = np.full((len(lines), len(columns)), np.nan)
    lines, columns = np.array(lines, np.int64), np.array(columns, np.int64)
    _core.gram_block(rows, lines, columns, G, 1)
    near(G, X[lines] @ X[columns].T)


@pytest.mark.parametrize(
    "changed",
    [
        {"lines": np.array([0, 4])},
        {"lines": np.array([-1, 0])},
        {"lines": np.arange(2, dtype=np.int32)},
        {"lines": np.arange(4)[::2]},
        {"lines": np.arange(3)},
        {"columns": np.array([0, 1, 4])},
        {"columns": np.array([0, -1, 1])},
        {"columns": np.arange(3.0)},
        {"columns": np.arange(2)},
        {"G": np.zeros((3, 2))},
        {"G": np.zeros(6)},
        {"G": np.zeros((2, 3), np.float32)},
        {"G": np.zeros((2, 3), order="F")},
        {"n_threads": 0},
    ],
    ids=str,
)
def test_gram_block_refuses_rows_that_do_not_exist_and_wrong_shapes(changed):
    rows, _ = make("dense64", 4, 3)
    good = {"rows": rows, "lines": np.arange(2), "columns": np.arange(3), "G": np.zeros((2, 3)), "n_threads": 1}
    _core.gram_block(**good)
    with pytest.raises((TypeError, ValueError)):
        _core.gram_block(**good | changed)


@pytest.mark.parametrize("H", [np.zeros((3, 3)), np.zeros((4, 4), order="F"), np.zeros((4, 4), np.float32)])
def test_normal_matrix_refuses_a_wrong_output(H):
    rows, _ = make("dense64", 4, 3)
    with pytest.raises((TypeError, ValueError)):
        _core.normal_matrix(rows, np.ones(4), 1.0, H, borrowed_blas(), 1)


# Parts of the columns, pieces of parts, and tiles of the rows.
@pytest.mark.parametrize("shape", [(0, 5), (60, 3000), (300, 5000), (512, 40000), (513, 1), (700, 600), (1100, 300)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_of_wide_and_of_many_rows(shape, dtype):
    X = np.random.default_rng(0).standard_normal(shape, dtype=dtype)
    rows, chosen = _core.Rows.dense(X), np.arange(shape[0])[::-1].copy()
    found = []
    with blas_guard:
        for n_threads in (1, 2, 5):
            G = np.full((shape[0], shape[0]), np.nan)
            _core.gram(rows, chosen, G, borrowed_blas(), n_threads)
            found.append(np.triu(G))
    X = X[::-1].astype(np.float64)
    np.testing.assert_allclose(found[0], np.triu(X @ X.T), rtol=1e-11, atol=1e-11 * shape[1])
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@pytest.mark.parametrize("tube", [0.0, 0.4])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 1000])
def test_clipped_slope(instruction_set, n, tube):
    rng = np.random.default_rng(n)
    z, dm, sigma = rng.uniform(-3, 3, n), rng.uniform(-1, 1, n), rng.uniform(0, 2, n)
    lower, upper = rng.uniform(-2, 0, n), rng.uniform(0, 2, n)
    upper[::4] = np.inf
    moved = z - 0.7 * sigma * dm
    shrunk = np.sign(moved) * np.maximum(np.abs(moved) - tube * sigma, 0.0)
    expected = np.clip(shrunk, lower, upper) @ dm
    found = _core.clipped_slope(z, dm, lower, upper, sigma, tube, 0.7, 2)
    assert found == pytest.approx(expected, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("name", ["dm", "lower", "upper", "sigma"])
@pytest.mark.parametrize("wrong", [np.ones(3), np.ones(4, np.float32), np.ones(8)[::2], [1.0] * 4], ids=str)
def test_clipped_slope_refuses_wrong_vectors(name, wrong):
    good = {name: np.ones(4) for name in ("z", "dm", "lower", "upper", "sigma")}
    good |= {"tube": 0.0, "t": 1.0, "n_threads": 1}
    assert _core.clipped_slope(**good) == 4.0
    with pytest.raises((TypeError, ValueError)):
        _core.clipped_slope(**good | {name: wrong})


@pytest.mark.parametrize("tube", [0.0, 0.4])
@pytest.mark.parametrize("n", [0, 1, 17, 5000])
def test_clipped_point(instruction_set, n, tube):
    rng = np.random.default_rng(n)
    scores, target, anchor = (rng.uniform(-3, 3, n) for _ in range(3))
    sign, sigma = rng.choice([-1.0, 1.0], n), rng.uniform(0.1, 2, n)
    lower, upper = rng.uniform(-2, 0, n), rng.uniform(0, 2, n)
    upper[::4] = np.inf
    z, pi, pull, D = (np.full(n, np.nan) for _ in range(4))
    sums = _core.clipped_point(scores, 0.3, sign, target, anchor, lower, upper, sigma, tube, z, pi, pull, D, 2)
    wanted = anchor + sigma * (target - sign * (scores + 0.3))
    shrunk = np.sign(wanted) * np.maximum(np.abs(wanted) - tube * sigma, 0.0)
    np.testing.assert_allclose(z, wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(pi, np.clip(shrunk, lower, upper), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(pull, sign * pi)
    np.testing.assert_array_equal(D, np.where((pi > lower) & (pi < upper) & ((tube == 0) | (pi != 0)), sigma, 0.0))
    expected = (pull.sum(), ((pi - anchor) ** 2).sum(), np.abs(pi).sum(), D.sum())
    assert sums == pytest.approx(expected, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("name", ["sign", "target", "anchor", "lower", "upper", "sigma", "z", "pi", "signed_pi", "D"])
@pytest.mark.parametrize("wrong", [np.ones(3), np.ones(4, np.float32), np.ones(8)[::2], [1.0] * 4], ids=str)
def test_clipped_point_refuses_wrong_vectors(name, wrong):
    names = ("scores", "sign", "target", "anchor", "lower", "upper", "sigma", "z", "pi", "signed_pi", "D")
    good = {name: np.ones(4) for name in names} | {"b": 0.0, "tube": 0.0, "n_threads": 1}
    _core.clipped_point(**good)
    with pytest.raises((TypeError, ValueError)):
        _core.clipped_point(**good | {name: wrong})


class Iterate:
    """A random interior-point iterate, its arrays by name, and its Newton directions in NumPy."""

    def __init__(self, n, boxed, seed=2):
        rng = np.random.default_rng(seed)
        for name in ("target", "alpha", "t", "s", "xi", "margin", "e_s", "e_xi"):
            setattr(self, name, rng.uniform(0.1, 1.5, n))
        self.y, self.C = rng.choice([-1.0, 1.0], n), self.alpha + self.t
        self.D, self.d_alpha, self.d_margin = np.zeros(n), np.zeros(n), np.zeros(n)
        if not boxed:
            self.t = self.xi = self.e_xi = np.zeros(0)
        self.core = _core.Barrier(boxed=boxed, **vars(self))

    def pairs(self):
        """(u, v, e, du, dv) of alpha s = −e_s and, if boxed, t xi = −e_xi, both linearised."""
        for u, v, e, du in ((self.alpha, self.s, self.e_s, 1.0), (self.t, self.xi, self.e_xi, -1.0)):
            if len(u):
                step = du * self.d_alpha
                yield u.copy(), v.copy(), e.copy(), step.copy(), -v - (e + v * step) / u


@pytest.mark.parametrize("boxed", [True, False])
@pytest.mark.parametrize("kind", ["dense32", "csr64 int64"])
def test_barrier_passes_agree_with_numpy(instruction_set, kind, boxed):
    rows, X = make(kind, 3000, 4)
    it, dw, out = Iterate(3000, boxed), np.array([0.1, -0.2, 0.3, 0.05]), np.zeros(3000)
    flat = it.xi / it.t if boxed else 0.5 / it.C
    it.core.scale(2)
    near(it.D, 1.0 / (flat + it.s / it.alpha))
    rho = it.target - it.margin - it.e_s / it.alpha + (it.e_xi / it.t if boxed else -0.5 * it.alpha / it.C)
    it.core.coefficient(out, 2)
    near(out, it.y * (it.D * rho + it.alpha))

    longest = it.core.direction(rows, dw, 0.4, 2)
    near(it.d_margin, it.y * (X @ dw + 0.4))
    near(it.d_alpha, it.D * (rho - it.d_margin))
    ratios = [-a[da < 0] / da[da < 0] for u, v, _, du, dv in it.pairs() for a, da in ((u, du), (v, dv))]
    assert longest == pytest.approx(min(2.0, *(r.min(initial=2.0) for r in ratios)), rel=1e-11)
    after = [(u + 0.5 * du) * (v + 0.5 * dv) for u, v, _, du, dv in it.pairs()]
    assert it.core.complementarity(0.5, 2) == pytest.approx(np.sum(after), rel=1e-9)

    expected = list(it.pairs())
    it.core.recentre(0.5, 0.05, 2)
    for (*_, e, _, _), product, (_, _, now, _, _) in zip(expected, after, it.pairs(), strict=True):
        near(now, e - np.maximum(np.clip(product, 0.005, 0.5) - product, -0.5))
    expected = list(it.pairs())
    it.core.second_order(0.05, 2)
    for (_, _, _, du, dv), (_, _, now, _, _) in zip(expected, it.pairs(), strict=True):
        near(now, du * dv - 0.05)
    expected, margin = list(it.pairs()), it.margin.copy()
    it.core.move(0.5, 2)
    near(it.margin, margin + 0.5 * it.d_margin)
    for (u, v, _, du, dv), (new_u, new_v, *_) in zip(expected, it.pairs(), strict=True):
        near(new_u, u + 0.5 * du)
        near(new_v, v + 0.5 * dv)

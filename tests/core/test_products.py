"""Products and passes of the core against NumPy: the same numbers, and the same bits for any threads."""

import multiprocessing
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.runtime import blas_guard, borrowed_blas

KINDS = ["dense32", "dense64", "csr32 int32", "csr32 int64", "csr64 int32", "csr64 int64"]
SIZES = [(1, 1), (7, 17), (257, 5), (2049, 3), (5000, 33)]


@pytest.fixture(params=["baseline", "avx2"])
def isa(request):
    before = _core.info()["instruction_set"]
    try:
        _core.use_isa(request.param)
    except ValueError:
        pytest.skip(f"this processor has no {request.param}")
    yield request.param
    _core.use_isa(before)


def make(kind, n, d, seed=0):
    """Rows of one kind and the float64 matrix they stand for; every seventh row is empty."""
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, (n, d))
    X[3::7] = 0.0
    values = np.float32 if "32" in kind.split()[0] else np.float64
    if kind.startswith("dense"):
        X = X.astype(values)
        return _core.Rows.dense(X), X.astype(np.float64)
    X[np.abs(X) < 0.5] = 0.0
    S = sp.csr_array(X.astype(values))
    index = np.int64 if kind.endswith("int64") else np.int32
    rows = _core.Rows.csr(S.data, S.indices.astype(index), S.indptr.astype(index), d)
    return rows, S.toarray().astype(np.float64)


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
    out |= {"H": np.full((size, size), np.nan), "G": np.full((m, m), np.nan)}
    with blas_guard:
        _core.scores(rows, w, 0.3, out["scores"], n_threads)
        _core.combine(rows, c, out["combine"], n_threads)
        _core.squared_norms(rows, out["norms"], n_threads)
        _core.normal_matrix(rows, D, bias, out["H"], borrowed_blas(), n_threads)
        _core.gram(rows, chosen, out["G"], n_threads)
    return {name: np.triu(a) if a.ndim == 2 else a for name, a in out.items()}


def bits(rows, n_threads):
    return b"".join(a.tobytes() for a in products(rows, n_threads).values())


def near(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11 * (1.0 + np.max(np.abs(b), initial=0.0)))


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_products_agree_with_numpy(isa, kind, size):
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


@pytest.mark.parametrize("kind", KINDS)
def test_bits_do_not_depend_on_threads(isa, kind):
    rows, _ = make(kind, 30000, 24)
    one = bits(rows, 1)
    assert bits(rows, 2) == one
    assert bits(rows, 4) == one


@pytest.mark.parametrize("kind", ["dense32", "csr64 int32"])
def test_bits_after_a_fork(isa, kind):
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
def test_bits_from_two_python_threads_at_once(isa, kind):
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
        _core.gram(rows, np.array(chosen), np.zeros(shape), 1)


@pytest.mark.parametrize("H", [np.zeros((3, 3)), np.zeros((4, 4), order="F"), np.zeros((4, 4), np.float32)])
def test_normal_matrix_refuses_a_wrong_output(H):
    rows, _ = make("dense64", 4, 3)
    with pytest.raises((TypeError, ValueError)):
        _core.normal_matrix(rows, np.ones(4), 1.0, H, borrowed_blas(), 1)


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 1000])
def test_clipped_slope(isa, n):
    rng = np.random.default_rng(n)
    z, dm, C, sigma = rng.uniform(-1, 3, n), rng.uniform(-1, 1, n), rng.uniform(0, 2, n), rng.uniform(0, 2, n)
    expected = np.clip(z - 0.7 * sigma * dm, 0.0, C) @ dm
    assert _core.clipped_slope(z, dm, C, sigma, 0.7) == pytest.approx(expected, rel=1e-11, abs=1e-11)


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
def test_barrier_passes_agree_with_numpy(isa, kind, boxed):
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


@pytest.mark.parametrize("kind", KINDS)
def test_descent_reaches_the_optimum(isa, kind):
    n, rows, X = 60, *make(kind, 60, 5)
    y, C = np.where(np.arange(n) % 3, 1.0, -1.0), np.linspace(0.5, 1.5, n)
    alpha, w, diagonal, upper = np.zeros(n), np.zeros(5), 0.5 / C, np.full(n, np.inf)
    order, norms = np.arange(n, dtype=np.int32), np.square(X).sum(axis=1)
    descent = _core.Descent(y, upper, diagonal, np.ones(n), norms, alpha, w, order, 0.1, 0.3, 0.0, seed=3)
    assert (descent.n_active, descent.bias, descent.bias_center) == (n, 0.1, 0.1)
    values = [0.0]
    for epoch in range(400):
        violation = descent.epoch(rows)
        near(w, X.T @ (alpha * y))
        assert descent.bias == pytest.approx(0.1 + 0.3 * (alpha @ y), abs=1e-12)
        assert np.all(alpha >= 0.0)
        penalty = diagonal @ alpha**2 + 0.3 * (alpha @ y) ** 2
        values.append(alpha.sum() - 0.1 * (alpha @ y) - 0.5 * (w @ w + penalty))
        if epoch % 10 == 9:
            descent.unshrink()
            assert descent.n_active == n
    assert np.all(np.diff(values) >= -1e-12 * values[-1])
    slope = y * (X @ w + descent.bias) - 1.0 + diagonal * alpha
    assert violation <= 1e-9
    assert np.all(np.abs(np.where(alpha > 0.0, slope, np.minimum(slope, 0.0))) <= 1e-9)

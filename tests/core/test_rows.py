"""What enters the core: views over the caller's arrays that copy nothing and convert nothing."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _core

VALUES = [np.float32, np.float64]
INDICES = [np.int32, np.int64]
DENSE = np.array([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0], [4.0, 0.0, -0.25], [0.0, 8.0, 0.0]])
W = np.array([3.0, 5.0, 7.0])


def scores(rows):
    out = np.full(rows.shape[0], np.nan)
    _core.scores(rows, W[: rows.shape[1]], 0.0, out, 1)
    return out


def csr_parts(values=np.float64, index=np.int32):
    X = sp.csr_array(DENSE)
    return X.data.astype(values), X.indices.astype(index), X.indptr.astype(index)


def on_disk(path, array, mode="r"):
    if mode == "r":
        array.tofile(path)
    return np.memmap(path, dtype=array.dtype, mode=mode, shape=array.shape)


@pytest.mark.parametrize("values", VALUES)
def test_dense_rows_are_a_view(values):
    X = DENSE.astype(values)
    rows = _core.Rows.dense(X)
    assert rows.shape == (4, 3)
    assert not rows.is_sparse
    assert rows.nnz == 12
    np.testing.assert_array_equal(scores(rows), DENSE @ W)
    X[1, 2] = 2.0
    assert scores(rows)[1] == 14.0


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("values", VALUES)
def test_csr_rows_are_a_view(values, index):
    data, indices, indptr = csr_parts(values, index)
    rows = _core.Rows.csr(data, indices, indptr, 3)
    assert rows.shape == (4, 3)
    assert rows.is_sparse
    assert rows.nnz == 6
    np.testing.assert_array_equal(scores(rows), DENSE @ W)
    data[-1] = 16.0
    assert scores(rows)[3] == 80.0


@pytest.mark.parametrize("values", VALUES)
def test_a_read_only_memory_map_is_used_in_place(tmp_path, values):
    X = on_disk(tmp_path / "X", DENSE.astype(values))
    assert not X.flags.writeable
    rows = _core.Rows.dense(X)
    np.testing.assert_array_equal(scores(rows), DENSE @ W)
    on_disk(tmp_path / "X", X, "r+")[1, 2] = 2.0
    assert scores(rows)[1] == 14.0


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("values", VALUES)
def test_read_only_memory_maps_of_csr_parts_are_used_in_place(tmp_path, values, index):
    parts = [on_disk(tmp_path / str(k), part) for k, part in enumerate(csr_parts(values, index))]
    rows = _core.Rows.csr(*parts, 3)
    np.testing.assert_array_equal(scores(rows), DENSE @ W)
    on_disk(tmp_path / "0", parts[0], "r+")[-1] = 16.0
    assert scores(rows)[3] == 80.0


def test_read_only_inputs_are_accepted_and_read_only_outputs_refused():
    X, w, out = DENSE.copy(), W.copy(), np.zeros(4)
    for array in (X, w, out):
        array.flags.writeable = False
    rows = _core.Rows.dense(X)
    with pytest.raises(TypeError):
        _core.scores(rows, w, 0.0, out, 1)
    fresh = np.zeros(4)
    _core.scores(rows, w, 0.0, fresh, 1)
    np.testing.assert_array_equal(fresh, DENSE @ W)


@pytest.mark.parametrize("arrays", [(DENSE.copy(),), csr_parts()], ids=["dense", "csr"])
def test_rows_keep_their_arrays_alive_and_let_go_of_them(arrays):
    before = [sys.getrefcount(a) for a in arrays]
    rows = _core.Rows.dense(*arrays) if len(arrays) == 1 else _core.Rows.csr(*arrays, 3)
    assert all(sys.getrefcount(a) > n for a, n in zip(arrays, before, strict=True))
    del rows
    assert [sys.getrefcount(a) for a in arrays] == before


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1)])
@pytest.mark.parametrize("index", INDICES)
def test_empty_and_tiny_shapes(shape, index):
    n, d = shape
    nothing = _core.Rows.csr(np.zeros(0), np.zeros(0, index), np.zeros(n + 1, index), d)
    dense = _core.Rows.dense(np.zeros(shape))
    assert nothing.shape == dense.shape == shape
    assert (nothing.nnz, dense.nnz) == (0, n * d)
    np.testing.assert_array_equal(scores(nothing), np.zeros(n))
    np.testing.assert_array_equal(scores(dense), np.zeros(n))


@pytest.mark.parametrize(
    "X",
    [
        pytest.param(DENSE.tolist(), id="list"),
        pytest.param(None, id="None"),
        pytest.param(DENSE.astype(np.int64), id="int64"),
        pytest.param(DENSE.astype(bool), id="bool"),
        pytest.param(DENSE.astype(np.float16), id="float16"),
        pytest.param(DENSE.astype(np.longdouble), id="longdouble"),
        pytest.param(DENSE.astype(np.complex128), id="complex"),
        pytest.param(DENSE.astype(object), id="object"),
        pytest.param(DENSE.astype(DENSE.dtype.newbyteorder()), id="swapped bytes"),
        pytest.param(np.asfortranarray(DENSE), id="F order"),
        pytest.param(np.repeat(DENSE, 2, axis=0)[::2], id="every second row"),
        pytest.param(DENSE[:, :2], id="some columns"),
        pytest.param(DENSE[::-1], id="reversed"),
        pytest.param(DENSE[0], id="one dimension"),
        pytest.param(DENSE[None], id="three dimensions"),
        pytest.param(sp.csr_array(DENSE), id="sparse"),
    ],
)
def test_dense_refuses_what_it_would_have_to_convert(X):
    with pytest.raises((TypeError, ValueError)):
        _core.Rows.dense(X)


def bad_csr(**changed):
    data, indices, indptr = csr_parts()
    parts = {"data": data, "indices": indices, "indptr": indptr, "n_cols": 3} | changed
    return pytest.param(parts, id=", ".join(f"{k}={v!r}" for k, v in changed.items()))


def i32(*numbers):
    return np.array(numbers, dtype=np.int32)


@pytest.mark.parametrize(
    "parts",
    [
        # DENSE holds columns 0 1 2 | – | 0 2 | 1
        bad_csr(indices=i32(0, 1, 3, 0, 2, 1)),
        bad_csr(indices=i32(0, 1, 2, 0, 2, -1)),
        bad_csr(indices=i32(1, 0, 2, 0, 2, 1)),
        bad_csr(indices=i32(0, 1, 1, 0, 2, 1)),
        bad_csr(n_cols=2),
        bad_csr(n_cols=-1),
        bad_csr(n_cols=3.0),
        bad_csr(indptr=i32(1, 3, 3, 5, 6)),
        bad_csr(indptr=i32(0, 3, 2, 5, 6)),
        bad_csr(indptr=i32(0, 3, 3, 5, 7)),
        bad_csr(indptr=i32(0, -1, 3, 5, 6)),
        bad_csr(indptr=i32()),
        bad_csr(indptr=np.array([0, 3, 3, 5, 6])),
        bad_csr(indices=np.array([0, 1, 2, 0, 2, 1])),
        bad_csr(indices=i32(0, 1, 2, 0, 2)),
        bad_csr(data=np.ones(5)),
        bad_csr(data=np.ones(6, dtype=np.int64)),
        bad_csr(data=np.ones(6, dtype=np.float16)),
        bad_csr(data=np.ones(12)[::2]),
        bad_csr(data=[1.0] * 6),
        bad_csr(indices=np.ones(6, dtype=np.uint32), indptr=np.ones(5, dtype=np.uint32)),
        bad_csr(indices=np.zeros(6), indptr=np.zeros(5)),
        bad_csr(indices=np.zeros(6, np.int64), indptr=np.array([0, 2**40, 3, 5, 6])),
    ],
)
def test_csr_refuses_what_is_invalid_or_would_have_to_be_converted(parts):
    with pytest.raises((TypeError, ValueError)):
        _core.Rows.csr(**parts)


@pytest.mark.parametrize(
    "changed",
    [
        {"w": np.zeros(2)},
        {"w": np.zeros(3, dtype=np.float32)},
        {"w": np.zeros(6)[::2]},
        {"w": [0.0, 0.0, 0.0]},
        {"out": np.zeros(3)},
        {"out": np.zeros(4, dtype=np.float32)},
        {"out": np.zeros(8)[::2]},
        {"out": np.zeros((4, 1))},
        {"n_threads": 0},
        {"n_threads": -1},
        {"n_threads": 1.5},
        {"rows": DENSE},
    ],
)
def test_a_product_refuses_wrong_vectors(changed):
    arguments = {"rows": _core.Rows.dense(DENSE), "w": W, "bias": 0.0, "out": np.zeros(4), "n_threads": 1}
    with pytest.raises((TypeError, ValueError)):
        _core.scores(**arguments | changed)


BARRIER = ["y", "C", "target", "alpha", "t", "s", "xi", "margin", "D", "e_s", "e_xi", "d_alpha", "d_margin"]
DESCENT = ["y", "lower", "upper", "diagonal", "target", "sq_norm", "alpha"]


def state(kind, **changed):
    if kind == "barrier":
        return _core.Barrier(boxed=True, **{name: np.ones(4) for name in BARRIER} | changed)
    arrays = {name: np.ones(4) for name in DESCENT} | {"w": np.ones(3)} | changed
    return _core.Descent(**arrays, tube=0.0, bias_center=0.0, bias_gain=0.0, signed_sum=0.0, seed=0)


@pytest.mark.parametrize("wrong", [np.ones(3), np.ones(4, np.float32), np.ones(8)[::2], [1.0] * 4], ids=str)
@pytest.mark.parametrize(
    ("kind", "name"), [("barrier", name) for name in BARRIER] + [("descent", name) for name in DESCENT]
)
def test_a_state_refuses_wrong_vectors(kind, name, wrong):
    state(kind)
    with pytest.raises((TypeError, ValueError)):
        state(kind, **{name: wrong})


def test_descent_refuses_rows_that_do_not_fit_its_hyperplane():
    with pytest.raises(ValueError):
        state("descent").epoch(_core.Rows.dense(DENSE[:, :2].copy()))


@pytest.mark.parametrize("out", [np.zeros(4, np.float32), np.zeros(4, np.int64), np.zeros(8)[::2]], ids=str)
def test_barrier_coefficient_refuses_to_convert_its_output(out):
    with pytest.raises(TypeError):
        state("barrier").coefficient(out, 1)


def test_unaligned_numbers_are_refused():
    """A view into bytes may start anywhere; vector loads may not."""
    odd = np.frombuffer(b"\0" + np.ones(4).tobytes(), "u1")[1:].view("f8")
    with pytest.raises(ValueError, match="X is not aligned"):
        _core.Rows.dense(odd.reshape(2, 2))
    indices, indptr = np.array([0, 1, 0, 1], np.int32), np.array([0, 2, 4], np.int32)
    with pytest.raises(ValueError, match="data is not aligned"):
        _core.Rows.csr(odd, indices, indptr, 2)

"""Bad input: a correct answer or an error that names the place, never a crash."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from maxmargin import InputError, LinearSVC, Problem
from tests.conftest import tall

X, Y = tall(30, 3)


def altered(i, j, value, dtype=float):
    out = X.astype(dtype)
    out[i, j] = value
    return out


def broken_csr(indices=None, indptr=None):
    out = sp.csr_array(X)
    if indices is not None:
        out.indices = indices(out.indices.copy())
    if indptr is not None:
        out.indptr = indptr(out.indptr.copy())
    return out


def put(array, k, value):
    array[k] = value
    return array


def broken(form, part, k, value):
    """A sparse matrix with one corrupt position."""
    out = sp.csr_array(X).asformat(form)
    setattr(out, part, put(getattr(out, part).copy(), k, value))
    return out


def unsigned_indptr():
    out = sp.csr_array(X)
    out.indptr = put(out.indptr.astype(np.uint32), 3, 10**8)
    return out


def short_lil():
    out = sp.lil_array(X)
    out.data[2] = out.data[2][:1]
    return out


def replaced(form, **parts):
    """A sparse matrix with parts that its format does not allow."""
    out = sp.csr_array(X).asformat(form)
    for name, part in parts.items():
        setattr(out, name, part)
    return out


def odd_lil(columns):
    out = sp.lil_array(X)
    out.rows[2] = columns
    return out


def with_cell(value):
    out = X.astype(object)
    cell = np.empty(1, dtype=object)
    cell[0] = value
    out[3:4, 0] = cell
    return out


BAD = {
    "ragged lists": ([[1.0, 2.0], [3.0]] * 15, Y, "X is no array"),
    "structured": (np.zeros((30, 3), dtype="i4,f8"), Y, "row 0, column 0"),
    "masked structure": (np.ma.masked_array(np.zeros((30, 3), dtype="i4,f8")), Y, "row 0, column 0"),
    "array as cell": (with_cell(np.array([1.0])), Y, "row 3, column 0"),
    "dictionary as cell": (with_cell({"a": 1}), Y, "row 3, column 0"),
    "NumPy complex as cell": (with_cell(np.complex64(1j)), Y, "Complex data not supported: row 3, column 0"),
    "long double beyond float64": (altered(1, 1, np.longdouble("1e4000"), np.longdouble), Y, "row 1, column 1"),
    "long double as cell": (with_cell(np.longdouble("1e4000")), Y, "infinity: row 3, column 0"),
    "integer too long to write": (with_cell(10**5000), Y, "row 3, column 0 is int"),
    "csr data list": (replaced("csr", data=[1.0] * 90), Y, "data is list"),
    "csr data matrix": (replaced("csr", data=np.ones((90, 1))), Y, "data is 2-dimensional"),
    "csr data dates": (replaced("csr", data=np.zeros(90, dtype="M8[s]")), Y, "array of numbers"),
    "csr masked indices": (replaced("csr", indices=np.ma.zeros(90, dtype=int)), Y, "indices is MaskedArray"),
    "bsr flat data": (replaced("bsr", data=np.ones(90)), Y, "data is 1-dimensional"),
    "bsr empty blocks": (replaced("bsr", data=np.ones((90, 0, 1))), Y, "blocks of 0 by 1"),
    "coo coordinates": (replaced("coo", coords=()), Y, "coords must be two arrays"),
    "coo data": (replaced("coo", data=np.float64(1.0)), Y, "data is float64"),
    "dia offsets": (replaced("dia", offsets=np.int32(0)), Y, "offsets is int32"),
    "dia far offset": (replaced("dia", data=np.ones((1, 3)), offsets=np.array([2**32])), Y, "has offset 4294967296"),
    "lil column": (odd_lil([0, 1, 10**6]), Y, "row 2 names column 1000000"),
    "lil text column": (odd_lil([0, 1, "a"]), Y, "row 2 names column 'a'"),
    "lil no list": (odd_lil(None), Y, "row 2 must have a list"),
    "ragged labels": (X, [1, [2]] * 15, "y is no array"),
    "labels of pandas.NA": (X, np.array([pd.NA, 1] * 15, dtype=object), "row 0 has no label"),
    "labels of signalling NaN": (X, np.array([Decimal("sNaN"), 1] * 15, dtype=object), "row 0 has no label"),
    "labels of arrays": (X, [*map(np.ma.array, [[1, 2], [3]] * 15)], "y is no array"),
    "labels of lists": (
        X,
        np.array([*([[1], [1, 2]] * 15), None], dtype=object)[:-1],
        "Unknown label type: y holds list",
    ),
    "structured labels": (X, np.array([(i % 2, 1) for i in range(30)], dtype="i4,i4"), "Unknown label type"),
    "csc index": (broken("csc", "indices", 3, 50), Y, "column 0 names row 50"),
    "csc negative index": (broken("csc", "indices", 3, -1), Y, "column 0 names row -1"),
    "csc indptr": (broken("csc", "indptr", 1, 10**7), Y, "leaves the data at column"),
    "coo row": (broken("coo", "row", 3, 50), Y, "entry 3 names row 50"),
    "coo column": (broken("coo", "col", 3, -2), Y, "entry 3 names column -2"),
    "bsr indptr": (broken("bsr", "indptr", 1, 10**7), Y, "leaves the data at block row"),
    "lil": (short_lil(), Y, "row 2 has 3 columns but 1 values"),
    "unsigned indptr": (unsigned_indptr(), Y, "leaves the data at row"),
    "masked": (np.ma.masked_array(X, mask=X > 2.0), Y, "X is masked at"),
    "dates as labels": (X, np.where(Y > 0, "2020", "2021").astype("datetime64[Y]"), "Unknown label type"),
    "missing label": (X, np.where(np.arange(30) == 3, None, "a"), "row 3 has no label"),
    "huge integer": (altered(1, 1, 10**400, object), Y, "row 1, column 1"),
    "nan": (altered(4, 1, np.nan), Y, "NaN: row 4, column 1"),
    "inf": (altered(7, 2, np.inf), Y, "infinity: row 7, column 2"),
    "float32 nan": (altered(4, 1, np.nan, np.float32), Y, "NaN: row 4, column 1"),
    "sparse nan": (sp.csr_array(altered(4, 1, np.nan)), Y, "NaN: row 4, column 1"),
    "no rows": (np.empty((0, 3)), np.empty(0), "0 sample"),
    "no columns": (np.empty((30, 0)), Y, "0 feature"),
    "one dimension": (X[:, 0], Y, "Expected 2D array"),
    "three dimensions": (X[None], Y, "Expected 2D array"),
    "one class": (X, np.ones(30), "one class only"),
    "three classes": (X, np.arange(30) % 3, "y has 3"),
    "lengths": (X, Y[:-1], "X has 30 rows, y has 29"),
    "text": (altered(3, 0, "red", object), Y, "row 3, column 0 is 'red'"),
    "text array": (X.astype(str), Y, "row 0, column 0"),
    "dates": (X.astype("datetime64[s]"), Y, "row 0, column 0"),
    "beyond float64": (X * 1e160, Y, "too large for"),
    "complex": (X + 0j, Y, "Complex data not supported"),
    "sparse complex": (sp.csr_array(X + 0j), Y, "Complex data not supported"),
    "continuous labels": (X, Y + 0.5 * np.arange(30), "Unknown label type"),
    "nan label": (X, np.where(np.arange(30) == 5, np.nan, Y), "y contains NaN: row 5"),
    "mixed labels": (X, np.array([1, "a"] * 15, dtype=object), "Unknown label type"),
    "complex labels": (X, Y + 0j, "Complex data not supported"),
    "label matrix": (X, np.stack([Y, Y], axis=1), "one label per row"),
    "index too large": (broken_csr(indices=lambda a: put(a, 10, 3)), Y, "row 3 names column 3"),
    "index negative": (broken_csr(indices=lambda a: put(a, 10, -1)), Y, "row 3 names column -1"),
    "indptr falls": (broken_csr(indptr=lambda a: put(a, 4, 3)), Y, "row 3"),
    "indptr beyond data": (broken_csr(indptr=lambda a: put(a, 30, 1000)), Y, "leaves the data"),
    "indptr start": (broken_csr(indptr=lambda a: put(a, 0, 1)), Y, "start at 0"),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_data_is_named(name):
    data, labels, message = BAD[name]
    with pytest.raises(InputError, match=message):
        Problem.from_arrays(data, labels)
    # scikit-learn's own message comes first, or more than two classes are fine
    if name not in ("label matrix", "ragged labels", "labels of arrays", "three classes"):
        with pytest.raises(ValueError, match=message):
            LinearSVC().fit(data, labels)


BAD_OPTIONS = {
    "C zero": ({"C": 0.0}, "C must be"),
    "C negative": ({"C": -1.0}, "C must be"),
    "C nan": ({"C": np.nan}, "C must be"),
    "C text": ({"C": "1"}, "C must be"),
    "C beyond float": ({"C": 10**400}, "C must be"),
    "C too long to write": ({"C": 10**5000}, "C must be"),
    "class weight beyond float": ({"class_weight": {1: 10**400}}, "class_weight must hold"),
    "class weight of pandas.NA": ({"class_weight": {pd.NA: 1.0}}, "not in class_weight's data"),
    "weight long double": ({"sample_weight": np.full(30, np.longdouble("1e4000"))}, r"sample_weight\[0\] is inf"),
    "weight complex": ({"sample_weight": [*[1] * 29, np.complex64(1)]}, "sample_weight must hold numbers"),
    "weight ragged": ({"sample_weight": [[1], [1, 2]]}, "sample_weight is no array"),
    "infinite times nothing": ({"C": 1e308, "sample_weight": 1e10, "class_weight": {1: 0.0}}, "weight zero"),
    "C tiny": ({"C": 1e-300}, "below 1e-100"),
    "intercept flag": ({"fit_intercept": "no"}, "fit_intercept must be"),
    "weight dates": ({"sample_weight": np.full(30, "2020", "datetime64[Y]")}, "sample_weight must hold numbers"),
    "loss list": ({"loss": ["hinge"]}, "loss must be one of"),
    "scaling huge": ({"penalize_intercept": True, "intercept_scaling": 1e300}, "intercept_scaling must lie"),
    "C huge": ({"C": 1e308, "sample_weight": np.full(30, 1e10)}, "overflows"),
    "negative weight": (
        {"sample_weight": np.where(np.arange(30) == 4, -1.0, 1.0)},
        r"sample_weight\[4\] is -1",
    ),
    "nan weight": (
        {"sample_weight": np.where(np.arange(30) == 4, np.nan, 1.0)},
        r"sample_weight\[4\] is nan",
    ),
    "weight length": ({"sample_weight": np.ones(29)}, "sample_weight must have shape"),
    "weight text": ({"sample_weight": ["a"] * 30}, "sample_weight must hold numbers"),
    "class without weight": ({"sample_weight": (Y > 0).astype(float)}, "class -1 has weight zero"),
    "balanced without weight": ({"sample_weight": (Y > 0) * 1.0, "class_weight": "balanced"}, "weight zero"),
    "unknown class": ({"class_weight": {5: 1.0}}, r"\[5\]"),
    "class weight text": ({"class_weight": "equal"}, "balanced"),
    "class weight list": ({"class_weight": [1, 2]}, "class_weight must be"),
    "class weight negative": ({"class_weight": {1: -2.0}}, "class_weight must hold"),
    "loss": ({"loss": "log"}, "loss must be one of"),
    "scaling": ({"penalize_intercept": True, "intercept_scaling": 0.0}, "intercept_scaling must be"),
}


@pytest.mark.parametrize("name", sorted(BAD_OPTIONS))
def test_bad_options_are_named(name):
    options, message = BAD_OPTIONS[name]
    with pytest.raises(InputError, match=message):
        Problem.from_arrays(X, Y, **options)


def shuffled_csr():
    out = sp.csr_array(X)
    for i in range(out.shape[0]):
        part = slice(out.indptr[i], out.indptr[i + 1])
        out.indices[part], out.data[part] = out.indices[part][::-1].copy(), out.data[part][::-1].copy()
    out.has_sorted_indices = False
    return out


def doubled_csr():
    """Every entry given as two halves."""
    base = sp.csr_array(X)
    out = sp.csr_array((np.repeat(base.data / 2, 2), np.repeat(base.indices, 2), base.indptr * 2), shape=base.shape)
    assert not out.has_canonical_format
    return out


def read_only():
    out = X.copy()
    out.setflags(write=False)
    return out


def int64_csr():
    base = sp.csr_array(X)
    return sp.csr_array((base.data, base.indices.astype(np.int64), base.indptr.astype(np.int64)), shape=base.shape)


def big_endian_csr():
    out = sp.csr_array(X)
    out.data = out.data.astype(">f8")
    return out


def unaligned(array):
    return np.frombuffer(b"\0" + array.tobytes(), dtype=np.uint8)[1:].view(array.dtype).reshape(array.shape)


def unaligned_csr():
    out = sp.csr_array(X)
    out.data, out.indices, out.indptr = unaligned(out.data), unaligned(out.indices), unaligned(out.indptr)
    return out


def roomy_csr():
    """Stored entries that belong to no row."""
    out = sp.csr_array(X)
    out.data, out.indices = np.append(out.data, np.nan), np.append(out.indices, 77)
    return out


ODD = {
    "unaligned": lambda: unaligned(X),
    "unaligned csr": unaligned_csr,
    "roomy csr": roomy_csr,
    "fortran order": lambda: np.asfortranarray(X),
    "strided": lambda: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda: X[::-1][::-1],
    "big endian": lambda: X.astype(">f8"),
    "objects": lambda: X.astype(object),
    "long double": lambda: X.astype(np.longdouble),
    "lists": lambda: X.tolist(),
    "read only": read_only,
    "unsorted csr": shuffled_csr,
    "duplicate csr": doubled_csr,
    "int64 csr": int64_csr,
    "csc": lambda: sp.csc_array(X),
    "coo": lambda: sp.coo_array(X),
    "csr matrix": lambda: sp.csr_matrix(X),
    "big endian csr": big_endian_csr,
}


@pytest.mark.parametrize("name", sorted(ODD))
def test_odd_but_valid_data_gives_the_same_answer(name):
    given = ODD[name]()
    expected = LinearSVC(loss="hinge").fit(X, Y)
    machine = LinearSVC(loss="hinge").fit(given, Y)
    np.testing.assert_allclose(machine.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(machine.intercept_, expected.intercept_, rtol=1e-9)


def test_unsorted_input_is_left_alone():
    given = shuffled_csr()
    before = given.indices.copy()
    LinearSVC().fit(given, Y)
    assert np.array_equal(given.indices, before)


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint64, bool])
def test_other_numbers_are_converted(dtype):
    small = np.abs(X * 3).astype(dtype)
    expected = LinearSVC().fit(small.astype(float), Y)
    np.testing.assert_allclose(LinearSVC().fit(small, Y).coef_, expected.coef_, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_contiguous_floats_are_not_copied(dtype):
    given = np.ascontiguousarray(X, dtype=dtype)
    assert Problem.from_arrays(given, Y).space.X is given
    sparse = sp.csr_array(given)
    assert Problem.from_arrays(sparse, Y).space.X.data is sparse.data


def test_large_float32_values_are_finite():
    given = np.full((4, 2), 3e38, dtype=np.float32)
    given[::2] *= -1
    assert Problem.from_arrays(given, [0, 1, 0, 1]).n_rows == 4


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [3, 8], [-1.0, 1.0], [b"a", b"b"]])
def test_any_two_labels(labels):
    y = np.asarray(labels)[(Y > 0).astype(int)]
    machine = LinearSVC().fit(X, y)
    assert machine.classes_.tolist() == sorted(labels)
    assert set(machine.predict(X).tolist()) <= set(labels)
    assert machine.certificate_.verify(X, y)


def test_scalar_weight_is_a_factor_on_C():
    a = Problem.from_arrays(X, Y, sample_weight=2.0, C=3.0)
    assert np.array_equal(a.cost, np.full(30, 6.0))

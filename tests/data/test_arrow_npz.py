"""Parquet, Arrow and npz files: column types, and files that are not what they say."""

import datetime
import decimal
import sys
import zipfile
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from maxmargin.data import DataError, Encoding, read_arrow, read_npz, read_parquet, read_table, table_from_arrow
from maxmargin.data.arrow import import_arrow, labels_from

X = np.array([[1.0, 2.0], [3.0, 0.0]])


def write_stream(table, path):
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


def write_file(table, path):
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


WRITERS = {
    "parquet": (pq.write_table, read_parquet),
    "arrow file": (write_file, read_arrow),
    "arrow stream": (write_stream, read_arrow),
    "feather": (pyarrow.feather.write_feather, read_arrow),
}


@pytest.fixture(params=WRITERS)
def stored(request, tmp_path):
    """Columns, written in one of the formats and read back."""
    write, read = WRITERS[request.param]

    def through(columns, **options):
        write(pa.table(columns), str(tmp_path / "t"))
        return read(tmp_path / "t", **options)

    return through


def matrix(table, **options):
    return Encoding.learn(table, **options).apply(table)


def test_columns_and_labels(stored):
    table = stored({"a": [1, 2], "b": [0.5, 1.5], "label": ["u", "v"]})
    assert table.names == ("a", "b")
    assert table.y.tolist() == ["u", "v"]
    assert matrix(table).tolist() == [[1.0, 0.5], [2.0, 1.5]]
    assert stored({"a": [1, 2], "b": [3, 4]}, target="a").y.tolist() == [1, 2]
    assert stored({"a": [1, 2], "b": [3, 4]}, target=-1).y.tolist() == [3, 4]
    assert stored({"a": [1, 2], "label": [3, 4]}, target=False).y is None
    assert stored({"a": [1, 2], "b": [3, 4]}, drop=["a"]).names == ("b",)


NUMBERS = [pa.int8(), pa.uint8(), pa.int32(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_()]


@pytest.mark.parametrize("kind", NUMBERS)
def test_types_of_numbers(kind, stored):
    found = matrix(stored({"a": pa.array([0, 1], pa.int8()).cast(kind), "b": pa.array([1, 0]).cast(kind)}))
    assert found.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert found.dtype == (np.float32 if kind == pa.float32() else np.float64)


def test_float32_is_kept_only_if_all_columns_are(stored):
    values = np.array([0.1, 0.2], np.float32)
    found = matrix(stored({"a": values, "b": values}))
    assert found.dtype == np.float32
    assert found[:, 0].tobytes() == values.tobytes()
    found = matrix(stored({"a": values, "b": values.astype(float)}))
    assert found.dtype == np.float64
    assert found[:, 0].tolist() == values.astype(float).tolist()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_types_of_text(kind, stored):
    table = stored({"a": pa.array(["u", " v ", "u"]).cast(kind), "label": pa.array(["p ", "q", "q"]).cast(kind)})
    assert table.y.tolist() == ["p", "q", "q"]
    assert matrix(table, text="onehot").tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    with pytest.raises(DataError, match="column 'a', row 0: expected numbers, found the text 'u'"):
        matrix(table)


def test_decimals_become_the_nearest_float(tmp_path):
    rng = np.random.default_rng(0)
    for scale in (2, 9, 18):
        numbers = [decimal.Decimal(int(v)).scaleb(-scale) for v in rng.integers(-(10**17), 10**17, 1000)]
        pq.write_table(pa.table({"a": pa.array(numbers, pa.decimal128(38, scale))}), tmp_path / "t.parquet")
        found = matrix(read_parquet(tmp_path / "t.parquet"))
        assert found[:, 0].tolist() == [float(value) for value in numbers]
    labels = pa.array([decimal.Decimal("1.00"), decimal.Decimal("0.29")])
    assert labels_from(pa.chunked_array([labels]), "t", "label").tolist() == [1.0, 0.29]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([True, False], [True, False]),
        ([1, 2], [1, 2]),
        ([1.0, 2.0], [1, 2]),
        ([0.5, 2.0], [0.5, 2.0]),
        (pa.array([1, 2]).dictionary_encode(), [1, 2]),
        (pa.array([3, 4], pa.uint8()), [3, 4]),
        (pa.array([decimal.Decimal("1.0"), decimal.Decimal("2.0")]), [1, 2]),
    ],
)
def test_labels(labels, expected):
    table = table_from_arrow(pa.table({"a": [1, 2], "label": labels}), "t")
    assert table.y.tolist() == expected


@pytest.mark.parametrize("labels", [[1, None, None], [0.5, np.nan, None], ["u", None, None], [True, None, None]])
def test_missing_labels(labels):
    with pytest.raises(DataError, match=r"column 'label', row 1: the label is missing \(2 in all; rows count from 0\)"):
        table_from_arrow(pa.table({"a": [1, 2, 3], "label": labels}), "t")


def test_labels_of_odd_types():
    day = datetime.date(2020, 1, 1)
    with pytest.raises(DataError, match="labels must be text, numbers or truth values; this column holds date32"):
        table_from_arrow(pa.table({"a": [1], "label": [day]}), "t")


def test_tables_that_cannot_be_used(stored):
    with pytest.raises(DataError, match="there are no rows"):
        stored({"a": pa.array([], pa.float64())})
    with pytest.raises(DataError, match="no feature column is left"):
        stored({"label": [1, 2]})
    with pytest.raises(DataError, match="there is no column 'z'; the columns are 'a', 'b'"):
        stored({"a": [1], "b": [2]}, target="z")


def test_same_names(tmp_path):
    table = pa.table([[1], [2], [3]], names=["a", "b", "a "])
    for write, read in WRITERS.values():
        write(table, str(tmp_path / "t"))
        with pytest.raises(DataError, match=r"columns 0 and 2 \(counted from 0\) are both called 'a'; rename one"):
            read(tmp_path / "t")


@pytest.mark.parametrize("read", [read_parquet, read_arrow, read_npz])
def test_files_that_are_something_else(read, tmp_path):
    path = tmp_path / "t"
    np.savez(tmp_path / "n.npz", X=np.ones((50, 50)))
    pq.write_table(pa.table({"a": np.ones(1000)}), tmp_path / "p")
    write_file(pa.table({"a": np.ones(1000)}), tmp_path / "a")
    archives = [(tmp_path / name).read_bytes() for name in ("n.npz", "p", "a")]
    for content in (
        b"",
        b"a,b\n1,2\n",
        b"PK\x03\x04junk",
        b"PAR1PAR1",
        b"ARROW1",
        *(whole[:-100] for whole in archives),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"this is no (readable )?(Parquet|Arrow|\.npz) ") as caught:
            read(path)
        assert caught.value.source == str(path)
        assert caught.value.place == "file"
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        read(tmp_path)


def test_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"reading CSV needs PyArrow; install it with: .*'maxmargin\[files\]'"):
        import_arrow("reading CSV")


def npz(tmp_path, **parts):
    np.savez(tmp_path / "t.npz", **parts)
    return read_npz(tmp_path / "t.npz")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.uint8, bool, ">f8", np.longdouble])
def test_npz_types(dtype, tmp_path):
    table = npz(tmp_path, X=X.astype(dtype), y=[1.0, 2.0])
    assert table.columns.tolist() == X.astype(dtype).astype(float).tolist()
    assert table.columns.dtype == (np.float32 if dtype == np.float32 else np.float64)
    assert table.columns.flags.c_contiguous
    assert table.y.dtype == np.int64
    assert npz(tmp_path, X=np.asfortranarray(X)).columns.flags.c_contiguous


def test_npz_names_and_labels(tmp_path):
    table = npz(tmp_path, X=X, y=["u", "v"], feature_names=["a", "b"])
    assert table.names == ("a", "b")
    assert table.y.tolist() == ["u", "v"]
    assert npz(tmp_path, X=X).y is None
    with pytest.raises(DataError, match="there are no labels in this file"):
        npz(tmp_path, X=X).labels()


def test_npz_csr(tmp_path):
    S = sp.csr_array(X)
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape}
    assert npz(tmp_path, **parts).columns.toarray().tolist() == X.tolist()
    doubled = parts | {"data": [1.0, 2.0, 3.0], "indices": [1, 1, 0], "indptr": [0, 2, 3]}
    assert npz(tmp_path, **doubled).columns.data.tolist() == [3.0, 3.0]
    for kind in (sp.csr_array, sp.csr_matrix):
        sp.save_npz(tmp_path / "t.npz", kind(X))
        assert read_table(tmp_path / "t.npz").columns.toarray().tolist() == X.tolist()
    sp.save_npz(tmp_path / "t.npz", sp.csc_array(X))
    with pytest.raises(DataError, match="expected a CSR matrix; convert it with X"):
        read_npz(tmp_path / "t.npz")


CSR = {"data": [1.0, 2.0], "indices": [0, 1], "indptr": [0, 1, 2], "shape": [2, 2]}
BAD = {
    "one dimension": ({"X": X[0]}, "array 'X': expected a two-dimensional array of numbers, got 1 dimensions"),
    "text": ({"X": [["a"]]}, "array 'X': expected a two-dimensional array of numbers, got 2 dimensions of <U1"),
    "complex": ({"X": X + 1j}, "array 'X': expected a two-dimensional array of numbers"),
    "no rows": ({"X": X[:0]}, "there are no rows"),
    "no columns": ({"X": X[:, :0]}, "there are no columns"),
    "labels": ({"X": X, "y": [1]}, r"array 'y': expected shape \(2,\), got \(1,\)"),
    "label columns": ({"X": X, "y": [[1], [2]]}, r"array 'y': expected shape \(2,\), got \(2, 1\)"),
    "names": ({"X": X, "feature_names": ["a"]}, r"array 'feature_names': expected 2 texts, got shape \(1,\)"),
    "same names": ({"X": X, "feature_names": ["a", "a"]}, "columns 0 and 1 .* are both called 'a'"),
    "number names": ({"X": X, "feature_names": [1, 2]}, "array 'feature_names': expected 2 texts"),
    "nothing": ({"A": X}, r"expected an array 'X', or a CSR matrix as data, .*; the archive has \['A'\]"),
    "pickle": ({"X": X, "y": np.array(["a", None], object)}, "it holds pickled objects, which could run code"),
    "csr column": (CSR | {"indices": [0, 7]}, "CSR matrix: .*row 1 names column 7, but there are columns 0 to 1"),
    "csr negative": (CSR | {"indices": [0, -1]}, "CSR matrix: .*row 1 names column -1"),
    "csr indptr": (CSR | {"indptr": [0, 2]}, "CSR matrix"),
    "csr falls": (CSR | {"indptr": [0, 2, 1]}, "CSR matrix"),
    "csr beyond": (CSR | {"indptr": [0, 1, 9]}, "CSR matrix"),
    "csr lengths": (CSR | {"indices": [0]}, "CSR matrix"),
    "csr fractions": (CSR | {"indices": [0.5, 1.0]}, "array 'indices': expected whole numbers, got float64"),
    "csr text": (CSR | {"data": ["a", "b"]}, "array 'data': expected numbers"),
    "csr shape": (CSR | {"shape": [-2, 2]}, "CSR matrix"),
    "csr three": (CSR | {"shape": [2, 2, 2]}, "two whole numbers as shape"),
}


@pytest.mark.parametrize("name", BAD)
def test_npz_that_cannot_be_used(name, tmp_path):
    parts, words = BAD[name]
    with pytest.raises(DataError, match=words):
        npz(tmp_path, **parts)


def test_npz_damaged(tmp_path):
    path = tmp_path / "t.npz"
    np.save(tmp_path / "single.npy", X)
    path.write_bytes((tmp_path / "single.npy").read_bytes())
    with pytest.raises(DataError, match=r"this is a single .npy array; expected an .npz archive with X and y"):
        read_npz(path)
    np.savez_compressed(path, X=np.random.default_rng(0).standard_normal((100, 100)))
    whole = path.read_bytes()
    for at in range(100, len(whole) - 300, len(whole) // 20):
        path.write_bytes(whole[:at] + bytes(byte ^ 255 for byte in whole[at : at + 4]) + whole[at + 4 :])
        with pytest.raises(DataError, match=r"this is no readable .npz archive"):
            read_npz(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", b"not an array")
        archive.writestr("notes.txt", b"hello")
    with pytest.raises(DataError, match="'X' is no array"):
        read_npz(path)


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
def test_damaged_columns(name, tmp_path):
    """A flipped byte gives an error of ours or a table, never a crash or another exception."""
    path = tmp_path / name
    table = pa.table({"a": np.arange(500.0), "label": [str(i) for i in range(500)]})
    (pq.write_table if name == "x.parquet" else write_file)(table, path)
    whole = path.read_bytes()
    read = read_parquet if name == "x.parquet" else read_arrow
    for at in [*range(4, 12), *range(len(whole) - 60, len(whole) - 1)]:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        with suppress(DataError):
            assert read(path).n_rows <= 500

"""Reading batch by batch gives the rows of read_table, from the beginning and from any batch on."""

import csv
import io
import json
import os
import random

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from maxmargin.data import CsvOptions, DataError, open_batches, read_table, survey, table_from_arrays, write_table
from maxmargin.data import batches_pieces as pieces_module
from maxmargin.data import batches_svmlight as svmlight_module
from maxmargin.data.batches_csv import end_of_rows
from maxmargin.data.layout import Layout
from tests.data.svmlight_cases import random_text

SIZES = [{}, {"batch_rows": 1}, {"batch_rows": 7}, {"batch_bytes": 1}, {"batch_bytes": 150}]
SIZES += [{"batch_rows": 5, "batch_bytes": 64}, {"batch_rows": 1000}]
FILES = ["t.svm", "t.svm.gz", "t.svm.bz2", "t.svm.xz", "t.csv", "t.csv.gz", "t.csv.bz2", "t.csv.xz", "t.tsv"]
FILES += ["t.parquet", "t.arrow", "t.feather", "stream.arrow", "t.npz", "sparse.npz"]
LABELS = {
    "classes": lambda rng, n: rng.integers(-1, 2, n),
    "fractions": lambda rng, n: np.where(rng.random(n) < 0.5, rng.integers(-5, 5, n), rng.standard_normal(n)),
    "text": lambda rng, n: np.array(["no", "yes", "perhaps, or not"])[rng.integers(0, 3, n)],
}


def write(path, X, y):
    """A file of the kind its name tells; Parquet and Arrow files with groups of 10 rows."""
    names = [f"c{j}" for j in range(X.shape[1])]
    columns = pa.table([*X.T, pa.array(y.tolist())], names=[*names, "label"])
    if path.name == "sparse.npz":
        write_table(table_from_arrays(sp.csr_array(X), y), path)
    elif path.name == "t.parquet":
        pq.write_table(columns, path, row_group_size=10)
    elif path.name == "t.feather":
        pyarrow.feather.write_feather(columns, str(path), chunksize=10)
    elif path.name == "stream.arrow":
        with pa.ipc.new_stream(str(path), columns.schema) as writer:
            writer.write_table(columns, max_chunksize=10)
    else:
        write_table(table_from_arrays(X, y, names=names), path)


@pytest.fixture(params=[(name, kind) for name in FILES for kind in LABELS if kind != "text" or ".svm" not in name])
def written(request, tmp_path):
    name, kind = request.param
    rng = np.random.default_rng(5)
    X = np.where(rng.random((43, 4)) < 0.6, rng.standard_normal((43, 4)), 0.0)
    X[:, 2] = rng.integers(0, 5, 43)
    X[-1] = 1.0  # else a svmlight file has fewer columns
    write(tmp_path / name, X, LABELS[kind](rng, 43))
    return tmp_path / name


def full(X):
    return X.toarray() if sp.issparse(X) else X


def rows_of(batches):
    batches = list(batches)
    return np.concatenate([full(batch.X) for batch in batches]), np.concatenate([batch.y for batch in batches])


def agrees(path, sizes, **options):
    """Whether the batches are the rows of the whole table, and begin where they say."""
    csv_options = {"csv": options["csv"]} if "csv" in options else {}
    X, y = read_table(path, target=options.get("target"), **csv_options).arrays()
    batches = list(open_batches(path, **sizes, **options))
    found, labels = rows_of(batches)
    assert found.dtype == X.dtype
    np.testing.assert_array_equal(found, full(X))
    assert labels.tolist() == y.tolist()
    assert {batch.y.dtype.kind for batch in batches} == {y.dtype.kind}
    assert [batch.first_row for batch in batches] == np.cumsum([0, *(len(b.y) for b in batches[:-1])]).tolist()
    for batch in batches:
        assert sp.issparse(batch.X) == sp.issparse(X)
        assert batch.X.has_canonical_format if sp.issparse(X) else batch.X.flags.c_contiguous
    if "batch_rows" in sizes:
        assert {len(batch.y) for batch in batches[:-1]} <= {sizes["batch_rows"]}
    return True


def same(batch, other):
    assert full(batch.X).tobytes() == full(other.X).tobytes()
    assert batch.y.tolist() == other.y.tolist()
    assert batch.y.dtype.kind == other.y.dtype.kind
    return batch.first_row == other.first_row and batch.position == other.position


def continues(path, sizes, **options):
    """Whether reading goes on behind every batch as if it had never stopped; also after an exchange by JSON."""
    batches = open_batches(path, **sizes, **options)
    whole = list(batches)
    shares = [batches.slope(batch.position) for batch in whole]
    assert batches.slope(None) == 0.0
    assert shares == sorted(shares)
    assert all(0.0 < share <= 1.0 for share in shares)
    for k in range(len(whole)):
        again = open_batches(path, **sizes, **options) if k % 10 == 0 else batches
        rest = list(again.read(json.loads(json.dumps(whole[k].position))))
        assert len(rest) == len(whole) - k - 1
        assert all(same(*pair) for pair in zip(rest, whole[k + 1 :], strict=True))
    return True


@pytest.mark.parametrize("sizes", SIZES)
def test_batches_are_the_table(written, sizes):
    assert agrees(written, sizes)
    batches = open_batches(written, **sizes)
    assert batches.n_features == 4
    assert batches.n_bytes == os.path.getsize(written)
    assert batches.path == written
    assert batches.names in (None, ["c0", "c1", "c2", "c3"])


@pytest.mark.parametrize("sizes", SIZES)
def test_reading_continues(written, sizes):
    assert continues(written, sizes)


def test_reading_continues_with_other_sizes(written):
    X, y = rows_of(open_batches(written))
    for sizes in SIZES:
        for batch in open_batches(written, **sizes):
            done = batch.first_row + len(batch.y)
            rest = list(open_batches(written, batch_rows=11, batch_bytes=99).read(batch.position))
            assert sum(len(b.y) for b in rest) == len(y) - done
            if rest:
                assert rows_of(rest)[0].tobytes() == X[done:].tobytes()


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("size", [1, 40, 333, 1 << 20])
def test_svmlight_text(seed, size, tmp_path, monkeypatch):
    """Blank lines, comments, both line ends, and a last line without one."""
    monkeypatch.setattr(svmlight_module, "STEP", 16)
    path = tmp_path / "t.svm"
    path.write_bytes(random_text(seed))
    assert agrees(path, {"batch_bytes": size})
    assert continues(path, {"batch_bytes": size})


def test_a_byte_order_mark_is_one_at_the_beginning_only(tmp_path):
    path = tmp_path / "t.svm"
    path.write_bytes(b"\xef\xbb\xbf1 1:1\n-1 1:2\n")
    assert [label for batch in open_batches(path, batch_bytes=4) for label in batch.y.tolist()] == [1, -1]
    path.write_bytes(b"1 1:1\n\xef\xbb\xbf-1 1:2\n")
    with pytest.raises(DataError, match="line 2, column 1"):
        open_batches(path, batch_bytes=4)
    path.write_bytes(b"1 1:1\n" * 200000 + b"\xef\xbb\xbf-1 1:2\n")
    batches = open_batches(path, n_features=1, zero_based=False, batch_bytes=1 << 20)
    first = next(iter(batches))
    for start in (None, first.position):
        with pytest.raises(DataError, match="line 200001, column 1"):
            list(batches.read(start))


CSV_TEXTS = {
    "plain": "a,b,label\n1,2.5,x\n3,-4,y\n5,6,x\n",
    "CRLF": "a,b,label\r\n1,2.5,x\r\n3,-4,y\r\n5,6,x",
    "CR": "a,b,label\r1,2.5,x\r3,-4,y\r5,6,x\r",
    "blank lines": "\n\na,b,label\n\n1,2.5,x\n\n\n3,-4,y\n5,6,x\n\n",
    "byte order mark": "\ufeffa,b,label\n1,2.5,x\n3,-4,y\n",
    "quotes": 'a,b,label\n"1",2.5,"x"\n3,"-4","y, or\nz"\n5,6,"say ""x"""\n7,8,"\r\n"""\n',
    "strange quotes": 'a,b,label\n1,2.5,5" wide\n3,-4,"y\nz"\n5,6,12"x"\n7,8,"x" y\n',
    "semicolons": "a;b;label\n1;2.5;x\n3;-4;y\n",
    "blanks": "a, b ,label\n 1, 2.5 , x\n3 ,-4 ,y \n",
    "a delimiter at the end": "a,b,label,\n1,2.5,x,\n3,-4,y,\n5,6,x,\n",
    "truth": "a,b,label\ntrue,2.5,x\nfalse,1,y\nTrue,0,y\n",
    "names that are numbers": "a,b,label\n1,2,01\n3,4,1\n5,6,10\n",
    "whole and not": "a,b,label\n1,2,1\n3.5,4,1.5\n1e3,6e-3,2\n",
    "whole as fractions": "a,b,label\n1,2,1.0\n3.5,4,2.0\n1e3,6e-3,-3\n",
    "labels first": "label,a,b\n1,2,3\n0,5,6\n",
    "umlauts": "ä,b,label\n1,2,größer\n3,4,kleiner\n",
}


@pytest.mark.parametrize("sizes", [*SIZES, {"batch_bytes": 9}, {"batch_bytes": 17}, {"batch_bytes": 30}])
@pytest.mark.parametrize("name", CSV_TEXTS)
def test_csv_text(name, sizes, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(CSV_TEXTS[name].encode())
    assert agrees(path, sizes)
    assert continues(path, sizes)


def test_csv_options(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,5;2;7\n-0,5;?;8\n1;3;9\n")
    options = CsvOptions(decimal=",", na=("?",))
    batches = open_batches(path, csv=options, target=-1, missing="drop", batch_bytes=4)
    assert [(b.X.tolist(), b.y.tolist(), b.first_row) for b in batches] == [
        ([[1.5, 2.0]], [7], 0),
        ([[1.0, 3.0]], [9], 1),
    ]
    assert batches.names == ["x0", "x1"]
    with pytest.raises(DataError, match="column 'x1', row 1, line 2: expected a number, found the text"):
        open_batches(path, csv=CsvOptions(decimal=","), target=-1)
    (tmp_path / "n.csv").write_text("1,2,3\n4,5,6\n")
    assert agrees(tmp_path / "n.csv", {"batch_bytes": 3}, target=0)


@pytest.mark.parametrize("seed", range(400))
def test_rows_are_not_cut_in_two(seed):
    rng = random.Random(seed)
    cells = ["1", "", '"', 'a"', '"a"', '"a,b"', '"a\nb"', '"a""\n"', "a b", '"\r\n"', '"x']
    weights = [9, 3, *(rng.choice([0, 0, 1]) for _ in cells[2:])]
    ends = rng.choice([["\n"], ["\r\n"], ["\n", "\n\n"]])
    text = ""
    for _ in range(rng.randint(1, 12)):
        text += ",".join(rng.choices(cells, weights, k=3)) + rng.choice(ends)

    def rows(part):
        return [row for row in csv.reader(io.StringIO(part, newline="")) if row]

    for end in range(len(text)):
        cut = end_of_rows(text[:end].encode(), ",")
        assert cut <= end
        assert rows(text[:cut]) + rows(text[cut:]) == rows(text)


def test_long_rows(tmp_path, monkeypatch):
    path = tmp_path / "t.svm"
    path.write_text("1 1:1\n-1 " + " ".join(f"{j}:1" for j in range(1, 500)) + "\n1 2:1\n1 3:1")
    assert agrees(path, {"batch_bytes": 20})
    assert continues(path, {"batch_bytes": 20})
    (tmp_path / "t.csv").write_text("a,label\n1,x\n2," + "y" * 3000 + "\n3,z\n4,z")
    assert agrees(tmp_path / "t.csv", {"batch_bytes": 20})
    assert continues(tmp_path / "t.csv", {"batch_bytes": 20})
    monkeypatch.setattr(pieces_module, "LONGEST_ROW", 200)
    with pytest.raises(DataError, match="line 2: this line is longer than 64 MB"):
        list(open_batches(path, batch_bytes=20, n_features=500, zero_based=False))
    with pytest.raises(DataError, match="line 3: the row that begins here is longer than 64 MB"):
        list(open_batches(tmp_path / "t.csv", batch_bytes=20))


def test_a_long_header(tmp_path, monkeypatch):
    monkeypatch.setattr("maxmargin.data.batches_csv.HEAD", 16)
    path = tmp_path / "t.csv"
    path.write_text('"' + "long\n" * 300 + '",b,label\n1,2,x\n3,4,y\n')
    assert agrees(path, {"batch_bytes": 3})
    path.write_text("\n" * 300 + "a,b,label\n1,2,x\n3,4,y\n")
    assert agrees(path, {})


def test_float32_stays_if_all_columns_are(tmp_path):
    values = np.linspace(0.1, 2.0, 30, dtype=np.float32)
    table = pa.table({"a": values, "b": values[::-1], "label": np.arange(30) % 2})
    for path, put in (
        (tmp_path / "t.parquet", pq.write_table),
        (tmp_path / "t.feather", pyarrow.feather.write_feather),
    ):
        put(table, str(path))
        assert agrees(path, {"batch_rows": 7})
        assert next(iter(open_batches(path))).X.dtype == np.float32
        put(table.set_column(0, "a", pa.array(np.arange(30))), str(path))
        assert agrees(path, {"batch_rows": 7})
        assert next(iter(open_batches(path))).X.dtype == np.float64


def test_types_do_not_change_from_batch_to_batch(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,label\n" + "1,2\n" * 50 + "1.5,2.5\n" + "1,3\n" * 50)
    batches = list(open_batches(path, batch_rows=10))
    assert {batch.X.dtype for batch in batches} == {np.dtype(float)}
    assert {batch.y.dtype for batch in batches} == {np.dtype(float)}
    pq.write_table(pa.table({"a": range(30), "label": [0.5, *map(float, range(29))]}), tmp_path / "t.parquet")
    assert {batch.y.dtype for batch in open_batches(tmp_path / "t.parquet", batch_rows=3)} == {np.dtype(float)}
    (tmp_path / "t.svm").write_text("0.5 1:1\n" + "1 1:1\n" * 30)
    assert {batch.y.dtype for batch in open_batches(tmp_path / "t.svm", batch_rows=3)} == {np.dtype(float)}


def test_columns_can_be_dropped(tmp_path):
    for name in ("t.csv", "t.parquet", "t.arrow"):
        write_columns(tmp_path / name, {"id": ["u", "v"], "a": [1, 2], "b": [3, 4], "label": [0, 1]})
        batches = open_batches(tmp_path / name, drop=["id", "b"])
        assert batches.names == ["a"]
        assert rows_of(batches)[0].tolist() == [[1.0], [2.0]]
        with pytest.raises(DataError, match="holds the labels; it cannot be dropped"):
            open_batches(tmp_path / name, drop=["label", "id"])
        with pytest.raises(DataError, match="no feature column is left"):
            open_batches(tmp_path / name, drop=["id", "a", "b"])
        with pytest.raises(DataError, match="there is no column 'z'"):
            open_batches(tmp_path / name, drop=["z"])
    write(tmp_path / "t.svm", np.ones((2, 2)), np.array([0, 1]))
    with pytest.raises(DataError, match="drop needs named columns, which svmlight files do not have"):
        open_batches(tmp_path / "t.svm", drop=["z"])
    with pytest.raises(DataError, match="target needs named columns"):
        open_batches(tmp_path / "t.svm", target="z")


def write_columns(path, columns):
    table = pa.table(columns)
    if path.suffix == ".csv":
        lines = [table.column_names, *(row.values() for row in table.to_pylist())]
        path.write_text("".join(",".join("" if c is None else str(c) for c in line) + "\n" for line in lines))
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)


def test_without_labels(tmp_path):
    for name in ("t.csv", "t.parquet", "t.arrow"):
        write_columns(tmp_path / name, {"a": [1, 2, 3], "b": [3, 4, 5]})
        batches = open_batches(tmp_path / name, target=False, batch_rows=2)
        assert [(len(batch.X), batch.y) for batch in batches] == [(2, None), (1, None)]
        assert survey(batches).classes is None
        with pytest.raises(DataError, match=r"which column holds the labels\? Name it .* The columns are 'a', 'b'"):
            open_batches(tmp_path / name)
    np.savez(tmp_path / "t.npz", X=np.ones((3, 2)))
    assert [batch.y for batch in open_batches(tmp_path / "t.npz", target=False, batch_rows=2)] == [None, None]
    with pytest.raises(DataError, match="there are no labels"):
        open_batches(tmp_path / "t.npz")


@pytest.mark.parametrize("name", FILES)
def test_survey(name, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.integers(0, 3, 60)
    write(tmp_path / name, X, y)
    batches = open_batches(tmp_path / name, batch_bytes=500)
    found = survey(batches)
    assert survey(batches) is found
    assert (found.n_rows, found.n_features) == (60, 3)
    assert found.classes.tolist() == [0, 1, 2]
    assert found.classes.dtype.kind == "i"
    assert found.largest_squared_norm == pytest.approx((X**2).sum(axis=1).max(), rel=1e-12)
    assert found.zero_based is (False if ".svm" in name else None)
    assert survey(tmp_path / name, batch_rows=9).n_rows == 60
    write(tmp_path / name, X, np.full(60, 0.5))
    assert survey(tmp_path / name).classes.tolist() == [0.5]
    with pytest.raises(ValueError, match="open already; give batch_rows to open_batches"):
        survey(batches, batch_rows=9)


def test_survey_gives_up_on_many_labels(tmp_path):
    for n, known in ((1000, True), (1001, False)):
        (tmp_path / "t.svm").write_text("".join(f"{i} 1:1\n" for i in range(n)))
        found = survey(tmp_path / "t.svm", batch_rows=300)
        assert (found.classes is not None) == known
        assert found.n_rows == n


def test_columns_of_svmlight_files(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("# comment\n1 1:1 4:2\n-1\n1 2:3\n")
    assert survey(path).zero_based is False
    assert next(iter(open_batches(path))).X.shape == (3, 4)
    assert next(iter(open_batches(path, zero_based=True))).X.shape == (3, 5)
    assert next(iter(open_batches(path, n_features=9))).X.shape == (3, 9)
    assert next(iter(open_batches(path, n_features=9, zero_based=True))).X.toarray()[0, 4] == 2.0
    for options in ({}, {"zero_based": False}):
        with pytest.raises(DataError, match="line 2: column 4 occurs, but there should be only 3 columns"):
            list(open_batches(path, n_features=3, **options))
    with pytest.raises(DataError, match="line 2: column 4 occurs"):
        survey(path, n_features=4, zero_based=True)
    path.write_text("1 3:1\n\n1 4:2\n-1 0:1\n")
    assert survey(path).zero_based is True
    with pytest.raises(DataError, match="line 4: column 0 occurs, but columns count from 1"):
        list(open_batches(path, zero_based=False))
    with pytest.raises(DataError, match="line 3: column 4 occurs, but there should be only 4 columns"):
        survey(path, n_features=4)
    path.write_text("1\n-1\n")
    assert rows_of(open_batches(path))[0].tolist() == [[0.0], [0.0]]
    assert survey(path).largest_squared_norm == 0.0


@pytest.mark.parametrize("name", ["t.svm", "t.svm.gz"])
def test_errors_of_svmlight_text_name_the_line(name, tmp_path):
    import gzip

    path, lines = tmp_path / name, ["1 1:1\n"] * 300000
    lines[280000] = "1 1:x\n"
    text = "".join(lines).encode()
    path.write_bytes(gzip.compress(text, 1) if name.endswith("gz") else text)
    batches = open_batches(path, n_features=1, zero_based=False, batch_bytes=300000)
    seen = []
    with pytest.raises(DataError, match="line 280001, column 5: the value of column 1, 'x', is not a finite number"):
        seen.extend(batches)
    assert sum(len(batch.y) for batch in seen) <= 280000
    with pytest.raises(DataError, match="line 280001, column 5"):
        list(batches.read(seen[-1].position))
    with pytest.raises(DataError, match="line 280001, column 5"):
        survey(path, batch_bytes=1000)


GAPS = {
    "t.csv": (r"column 'b', row 1, line 3: the value is missing; give it, or leave out all rows with gaps", None),
    "t.parquet": (r"column 'b', row 1: the value is missing", None),
    "t.arrow": (r"column 'b', row 1: the value is missing", None),
}


@pytest.mark.parametrize("sizes", [{}, {"batch_rows": 2}, {"batch_bytes": 8}])
@pytest.mark.parametrize("name", GAPS)
def test_gaps(name, sizes, tmp_path):
    path = tmp_path / name
    write_columns(path, {"a": [1, 2, 3, None, 5], "b": [1.5, None, 2.5, None, 3], "label": list("uvuvu")})
    with pytest.raises(DataError, match=GAPS[name][0]):
        list(open_batches(path, **sizes))
    batches = open_batches(path, missing="drop", **sizes)
    X, y = rows_of(batches)
    assert X.tolist() == [[1.0, 1.5], [3.0, 2.5], [5.0, 3.0]]
    assert y.tolist() == ["u", "u", "u"]
    assert survey(batches).n_rows == 3
    assert continues(path, sizes, missing="drop")
    write_columns(path, {"a": [1, 2], "b": pa.array([None, None], pa.float64()), "label": [0, 1]})
    with pytest.raises(DataError, match="every row has a missing value"):
        list(open_batches(path, missing="drop", **sizes))
    with pytest.raises(DataError, match="every row has a missing value"):
        survey(path, missing="drop", **sizes)
    write_columns(path, {"a": [1, 2, 3], "b": [1, 2, 3], "label": [0, 1, None]})
    with pytest.raises(DataError, match=r"column 'label', row 2.*the label is missing"):
        list(open_batches(path, missing="drop", **sizes))


@pytest.mark.parametrize("sparse", [False, True])
def test_gaps_in_npz(sparse, tmp_path):
    X = np.array([[1.0, 2.0], [np.nan, 3.0], [4.0, 5.0]])
    S = sp.csr_array(X)
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape} if sparse else {"X": X}
    np.savez(tmp_path / "t.npz", y=[0, 1, 0], **parts)
    with pytest.raises(DataError, match="column 0, row 1: the value is missing"):
        list(open_batches(tmp_path / "t.npz", batch_rows=2))
    X, y = rows_of(open_batches(tmp_path / "t.npz", batch_rows=2, missing="drop"))
    assert (X.tolist(), y.tolist()) == ([[1.0, 2.0], [4.0, 5.0]], [0, 0])


def test_infinities(tmp_path):
    for name, place in (("t.csv", "row 2, line 4"), ("t.parquet", "row 2"), ("t.arrow", "row 2")):
        write_columns(tmp_path / name, {"a": [1.0, None, -np.inf], "label": [0, 1, 0]})
        for sizes in ({"batch_rows": 1}, {}):
            with pytest.raises(DataError, match=f"column 'a', {place}: the value is -inf; expected a finite number"):
                list(open_batches(tmp_path / name, missing="drop", **sizes))


def later(text, column=0, n_rows=150000):
    """A CSV text whose first megabyte has numbers only."""
    row = ["1.25", "2.5", "1"]
    odd = [*row[:column], text, *row[column + 1 :]]
    return "a,b,label\n" + (",".join(row) + "\n") * n_rows + ",".join(odd) + "\n" + (",".join(row) + "\n") * 10


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "a,b,label\n1,2,x\n\n3,u,y\n",
            "column 'b', row 1, line 4: expected a number, found the text 'u'. Batches hold",
        ),
        ("a,b,label\n1,2,x\n3,4-,y\n", "column 'b', row 1, line 3: expected a number, found the text '4-'"),
        (later("?"), "column 'a', row 150000, line 150002: expected a number, found the text '?'"),
        (later("", 1), "column 'b', row 150000, line 150002: the value is missing"),
        (later(" NA ", 1), "column 'b', row 150000, line 150002: the value is missing"),
        (later("true", 1), "column 'b', row 150000, line 150002: expected a number, found the text 'true'"),
        (later("no", 2), "column 'label', row 150000, line 150002: expected a number as label, as in the rows before"),
        (later("01", 2), "column 'label', row 150000, line 150002: expected a number as label"),
        (later("NA", 2), "column 'label', row 150000, line 150002: the label is missing"),
        (later("1,2"), "line 150002: expected 3 cells as in line 1, found 4 ('1,2,2.5,1')"),
        (later('"1', 2), "line 150002: a quote is opened in this row and never closed"),
        (
            later("2.5").replace("1.25", "false"),
            "column 'a', row 150000, line 150002: expected true or false as before",
        ),
    ],
)
def test_errors_of_csv_text(text, problem, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        list(open_batches(path, batch_bytes=1 << 18))
    assert str(caught.value).startswith(f"{path}, {problem}")


def test_truth_values_as_numbers_later(tmp_path):
    path = tmp_path / "t.csv"
    for cell in ("true", " 1"):
        path.write_text(later(cell).replace("1.25", "false"))
        assert agrees(path, {"batch_bytes": 1 << 18})


def test_cells_below_no_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,label,\n" + "1,2,\n" * 300000 + "1,2,odd\n")
    with pytest.raises(DataError, match="row 300000, line 300002: there is a cell, 'odd', below an empty place"):
        list(open_batches(path))


def test_text_that_is_not_utf8(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,label\n" + b"1,x\n" * 300000 + b"1,gr\xf6\xdfer\n")
    with pytest.raises(DataError, match="line 300002: the text is not UTF-8"):
        list(open_batches(path, batch_bytes=1 << 20))


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_columns_that_are_no_numbers(name, tmp_path):
    path = tmp_path / name
    for values, found in ((["u"], "text"), ([[1.0]], "values of type list"), ([b"x"], "values of type binary")):
        write_columns(path, {"a": [1], "b": values, "label": [0]})
        with pytest.raises(DataError, match=f"column 'b': expected a number, found {found}.* drop=.'b'.*read_table"):
            open_batches(path)
        assert open_batches(path, drop="b").names == ["a"]
    write_columns(path, {"a": [1, 2**53 + 1], "label": [0, 1]})
    with pytest.raises(DataError, match="its whole numbers are too large for float64"):
        list(open_batches(path))
    write_columns(path, {"a": pa.array([], pa.float64()), "label": pa.array([], pa.int64())})
    with pytest.raises(DataError, match="there are no rows"):
        open_batches(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="this is no readable"):
        open_batches(path)


def test_files_without_rows(tmp_path):
    for name, content in (("t.svm", ""), ("t.svm", "# nothing\n\n"), ("t.csv", ""), ("t.csv", "a,label\n")):
        (tmp_path / name).write_text(content)
        with pytest.raises(DataError, match=r"no row|file is empty"):
            open_batches(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        open_batches(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError):
        open_batches(tmp_path / "folder.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="a pipe or device cannot be read again and again"):
        open_batches(tmp_path / "pipe.csv")


def test_options_are_checked(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(CSV_TEXTS["plain"])
    for options in ({"batch_rows": 0}, {"batch_rows": 1.5}, {"batch_bytes": None}, {"batch_bytes": True}):
        with pytest.raises(ValueError, match="must be a whole number above 0"):
            open_batches(path, **options)
    with pytest.raises(ValueError, match=r"missing must be one of .'error', 'drop'., got 'mean'; to fill gaps"):
        open_batches(path, missing="mean")
    with pytest.raises(DataError, match="there are 2 feature columns, but there should be 3"):
        open_batches(path, n_features=3)
    assert open_batches(path, n_features=2).n_features == 2
    with pytest.raises(DataError, match="the format must be one of"):
        open_batches(path, format="xls")
    for start in (3, {}, {"rows": 3}, "1"):
        with pytest.raises(ValueError, match="start must be the position of a batch"):
            open_batches(path).read(start)


@pytest.mark.parametrize("name", FILES)
def test_files_that_change(name, tmp_path):
    path = tmp_path / name
    write(path, np.ones((50, 3)), np.arange(50) % 2)
    batches = open_batches(path, batch_rows=10)
    reading = iter(batches)
    position = next(reading).position
    os.utime(path, (1, 1))
    for use in (lambda: list(batches), lambda: list(reading), lambda: survey(batches), lambda: batches.read(position)):
        with pytest.raises(DataError, match="the file changed while it was being read"):
            use()
    write(path, np.ones((51, 3)), np.arange(51) % 2)
    if os.path.getsize(path) != position["size"]:
        with pytest.raises(DataError, match=r"this file has \d+ bytes of \w+, but the position is one in"):
            open_batches(path).read(position)


def test_a_file_that_breaks_while_it_is_read(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("1 1:1\n" * 1000)
    reading = iter(open_batches(path, batch_bytes=600))
    next(reading)
    with path.open("r+") as file:
        file.seek(700)
        file.write("broken")
    os.utime(path, (1, 1))
    with pytest.raises(DataError, match="the file changed while it was being read"):
        list(reading)


def test_layout_is_that_of_the_whole_file(tmp_path):
    """The first megabyte decides; the layout it gives is that of all the text."""
    path = tmp_path / "t.csv"
    path.write_text(later("3"))
    batches = open_batches(path, batch_bytes=1 << 19)
    assert batches._reader.layout == Layout.of(path.read_bytes(), str(path))
    assert agrees(path, {"batch_bytes": 1 << 19})
    assert continues(path, {"batch_bytes": 1 << 19})

"""One door for all formats: round trips to the last bit, the same digest, and names that decide."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.data import (
    CsvOptions,
    DataError,
    Encoding,
    Table,
    breast_cancer,
    digest,
    read_svmlight,
    read_table,
    table_from_arrays,
    write_table,
)
from maxmargin.data import formats as module
from maxmargin.data.check import check_file
from maxmargin.data.formats import FORMATS, SUFFIXES, format_of
from maxmargin.data.labels import label_text, plain_labels
from maxmargin.data.table import find_target, shortened, unique_names

ENDINGS = [*SUFFIXES, ".csv.gz", ".tsv.bz2", ".svm.xz"]
WITH_TEXT = [ending for ending in ENDINGS if "svm" not in ending]  # and with names
LABELS = [(ending, kind) for ending in ENDINGS for kind in ("whole", "fractions")] + [(e, "text") for e in WITH_TEXT]


def matrix(table):
    return table.columns if table.is_matrix else Encoding.learn(table).apply(table)


def full(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def random_bits(rng, shape):
    """Finite float64 of every magnitude, subnormal ones too, and zeros."""
    X = rng.integers(0, 2**64, shape, dtype=np.uint64).view(np.float64)
    X[~np.isfinite(X)] = 0.1
    X[rng.random(shape) < 0.3] = 0.0
    X[0] = 1.0  # every column occurs, so that svmlight files show their number
    return X


@pytest.mark.parametrize(("ending", "labels"), LABELS)
@pytest.mark.parametrize("sparse", [False, True])
def test_round_trips(ending, sparse, labels, tmp_path):
    rng = np.random.default_rng(3)
    X = random_bits(rng, (200, 7))
    y = {
        "whole": rng.integers(-5, 5, 200),
        "fractions": rng.choice([0.25, -1.5, 1e-300, 1e300, 0.1], 200),
        "text": rng.choice(["u", "two words", "a,b", 'say "hi"', "é", "line\nend", "tab\t"], 200),
    }[labels]
    y = np.char.strip(y) if labels == "text" else y
    table = table_from_arrays(sp.csr_array(X) if sparse else X, y)
    write_table(table, tmp_path / f"t{ending}")
    back = read_table(tmp_path / f"t{ending}")
    assert full(matrix(back)).dtype == np.float64
    assert (full(matrix(back)) + 0.0).tobytes() == (X + 0.0).tobytes()
    assert back.y.tolist() == y.tolist()
    assert digest(matrix(back), back.y) == digest(table.columns, table.y)


@pytest.mark.parametrize("ending", WITH_TEXT)
def test_names_are_kept(ending, tmp_path):
    names = ("plain", "two words", "com,ma", 'quo"te', "é", "line\nend")
    table = table_from_arrays(np.ones((2, 6)), [1, 2], names=names)
    write_table(table, tmp_path / f"t{ending}")
    back = read_table(tmp_path / f"t{ending}")
    assert back.names == names
    assert back.y.tolist() == [1, 2]
    bundled = breast_cancer()
    write_table(bundled, tmp_path / f"t{ending}")
    back = read_table(tmp_path / f"t{ending}", target=None if ending == ".npz" else "diagnosis")
    assert back.names == bundled.names
    assert digest(matrix(back), back.y) == digest(bundled.columns, bundled.y)


@pytest.mark.parametrize("ending", ENDINGS)
def test_float32_values_and_their_digest(ending, tmp_path):
    X = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    table = Table("arrays", X, None, np.arange(20))
    write_table(table, tmp_path / f"t{ending}")
    back = read_table(tmp_path / f"t{ending}")
    assert full(matrix(back)).astype(np.float32).tobytes() == X.tobytes()
    assert digest(matrix(back), back.y) == digest(X, table.y) == digest(X.astype(float), table.y)


def test_without_labels(tmp_path):
    table = table_from_arrays(np.array([[1.0, 2.0]]))
    for ending in WITH_TEXT:
        write_table(table, tmp_path / f"t{ending}")
        assert read_table(tmp_path / f"t{ending}").y is None
    with pytest.raises(DataError, match="there are no labels"):
        write_table(table, tmp_path / "t.svm")
    assert not (tmp_path / "t.svm").exists()


def test_labels_of_any_type(tmp_path):
    X = np.ones((2, 1))
    for y, expected in (([True, False], ["true", "false"]), (np.array(["a", "b"], object), ["a", "b"])):
        for ending in (".csv", ".parquet", ".npz"):
            write_table(table_from_arrays(X, y), tmp_path / f"t{ending}")
            assert [label_text(label) for label in read_table(tmp_path / f"t{ending}").y.tolist()] == expected
    for y in ([1.0, 2.0], np.array([1, 2], np.uint8), np.array([1, 2], np.float32)):
        for ending in ENDINGS:
            write_table(table_from_arrays(X, y), tmp_path / f"t{ending}")
            back = read_table(tmp_path / f"t{ending}")
            assert digest(matrix(back), back.y) == digest(X, np.array([1, 2])) == digest(X, np.asarray(y))


def test_gaps_survive_where_they_can(tmp_path):
    table = table_from_arrays(np.array([[np.nan, 1.0], [2.0, 3.0]]), [1, 2])
    for ending in (".csv", ".tsv", ".parquet", ".arrow"):
        write_table(table, tmp_path / f"t{ending}")
        back = read_table(tmp_path / f"t{ending}")
        assert Encoding.learn(back, missing="mean").apply(back).tolist() == [[2.0, 1.0], [2.0, 3.0]]
    write_table(table_from_arrays(np.array([[np.inf, 1.0]]), [1]), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "x0,x1,label\ninf,1,1\n"


def test_a_feature_with_the_name_of_the_labels(tmp_path):
    table = table_from_arrays(np.ones((2, 2)), [1, 2], names=("a", "label"))
    for ending in (".csv", ".parquet", ".arrow"):
        with pytest.raises(DataError, match=r"columns 1 and 2 \(counted from 0\) are both called 'label'; rename one"):
            write_table(table, tmp_path / f"t{ending}")
    assert list(tmp_path.iterdir()) == []


def test_writing_what_is_no_matrix_or_too_large(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a,label\nx,1\n")
    with pytest.raises(DataError, match="columns: encode text and gaps as numbers first"):
        write_table(read_table(tmp_path / "t.csv"), tmp_path / "t.npz")
    monkeypatch.setattr(module, "MOST_CELLS", 100)
    wide = table_from_arrays(sp.csr_array((11, 10)), np.arange(11))
    for ending in (".csv", ".parquet", ".arrow"):
        with pytest.raises(DataError, match="11 × 10 cells would be written, nearly all of them 0; use svmlight"):
            write_table(wide, tmp_path / f"wide{ending}")
    write_table(wide, tmp_path / "wide.npz")
    assert read_table(tmp_path / "wide.npz").columns.shape == (11, 10)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "wide.npz"]


def test_an_older_file_stays_if_writing_fails(tmp_path):
    (tmp_path / "t.svm").write_text("old")
    with pytest.raises(DataError):
        write_table(table_from_arrays(np.ones((2, 1)), ["a", "b"]), tmp_path / "t.svm")
    assert (tmp_path / "t.svm").read_text() == "old"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.svm", "svmlight"), ("a.LIBSVM.gz", "svmlight"), ("a.tsv", "csv"), ("a.PQ", "parquet"), ("a.feather", "arrow")],
)
def test_names_that_tell_the_format(name, expected):
    assert format_of(name) == expected


def test_names_that_do_not_tell(tmp_path):
    (tmp_path / "a9a.t").write_text("# LIBSVM\n1 1:2\n-1 3:4\n")
    assert format_of(tmp_path / "a9a.t", reading=True) == "svmlight"
    assert read_table(tmp_path / "a9a.t").n_rows == 2
    for name in ("data.txt", "data.dat", "data"):
        (tmp_path / name).write_text("a,b,label\n1,2,3\n")
        assert read_table(tmp_path / name).y.tolist() == [3]
    (tmp_path / "data.xls").write_text("a,b,label\n1,2,3\n")
    with pytest.raises(DataError, match=r"the name's ending '.xls' stands for no known format; use one of .*npz\)"):
        read_table(tmp_path / "data.xls")
    assert read_table(tmp_path / "data.xls", format="csv").y.tolist() == [3]
    with pytest.raises(DataError, match="stands for no known format"):
        write_table(table_from_arrays(np.ones((1, 1)), [1]), tmp_path / "a9a.t")
    write_table(table_from_arrays(np.ones((1, 1)), [1]), tmp_path / "a9a.t", format="svmlight")
    assert read_svmlight(tmp_path / "a9a.t").n_rows == 1
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_table(tmp_path / "none")
    problem = "the format must be one of svmlight, csv, parquet, arrow, npz, got 'xls'"
    with pytest.raises(DataError, match=problem):
        read_table(tmp_path / "a.csv", format="xls")
    with pytest.raises(DataError, match=problem):
        write_table(breast_cancer(), tmp_path / "a.csv", format="xls")


def test_options_that_need_named_columns(tmp_path):
    for ending in (".svm", ".npz"):
        write_table(table_from_arrays(np.ones((1, 1)), [1]), tmp_path / f"t{ending}")
        for options, word in (({"target": "a"}, "--target"), ({"drop": ["a"]}, "--drop")):
            with pytest.raises(DataError, match=f"{word} needs named columns, which"):
                read_table(tmp_path / f"t{ending}", **options)


def test_csv_options_through_the_door(tmp_path):
    (tmp_path / "t.tsv").write_text("a,b\tlabel\n1\t2\n?\t3\n")
    table = read_table(tmp_path / "t.tsv", csv=CsvOptions(na=["?"]))
    assert table.columns.to_pydict() == {"a,b": [1.0, None]}
    (tmp_path / "t.csv").write_text("1;2\n3;4\n")
    assert read_table(tmp_path / "t.csv", target=-1, csv=CsvOptions(header=False)).y.tolist() == [2, 4]


def test_digest():
    X = np.array([[0.0, 2.0], [1.0, 0.0], [-0.0, 3.0]])
    y = np.array([0, 1, 1])
    S = sp.csr_array(
        (np.array([2.0, 1.0, 0.0, 1.0, 2.0]), np.array([1, 0, 0, 1, 1]), np.array([0, 1, 2, 5])), shape=(3, 2)
    )
    before = [part.copy() for part in (S.data, S.indices, S.indptr)]
    for part in (S.data, S.indices, S.indptr):
        part.flags.writeable = False
    assert digest(X, y) == digest(S, y)  # explicit zeros and entries in two parts
    assert all(np.array_equal(a, b) for a, b in zip(before, (S.data, S.indices, S.indptr), strict=True))
    assert digest(X, y) == digest(X, y.astype(float)) == digest(np.asfortranarray(X), y)
    others = [
        (X[:, ::-1], y),
        (X[::-1], y),
        (X, y[::-1]),
        (X[:2], y[:2]),
        (np.hstack([X, X * 0]), y),
    ]
    assert len({digest(*pair) for pair in [(X, y), *others]}) == 6
    assert digest(X, y.astype(str)) == digest(X, y)  # as a CSV file may hold them
    changed = X.copy()
    changed[1, 0] = np.nextafter(1.0, 2.0)
    assert digest(changed, y) != digest(X, y)
    tall = np.random.default_rng(0).standard_normal((9000, 2))
    assert digest(tall, np.zeros(9000)) == digest(sp.csr_array(tall), np.zeros(9000))
    assert digest(tall, np.zeros(9000)) != digest(tall[::-1], np.zeros(9000))


def test_names_in_tables():
    assert find_target("t", ["a", "7", "c"], "7") == 1
    assert find_target("t", ["a", "7", "c"], 2) == 2
    assert find_target("t", ["y", "label"], None) is None
    assert unique_names("t", [" a", "b "]) == ("a", "b")
    assert shortened(list(range(12))).count("4 more") == 1
    assert plain_labels(np.array([1.0, 2.0])).dtype == np.int64
    assert plain_labels(np.array([1.0, np.nan])).dtype == np.float64
    assert plain_labels(np.array([2.0**60])).dtype == np.float64
    table = table_from_arrays(np.arange(6.0).reshape(3, 2), ["a", "b", "c"])
    assert table.take(np.array([2, 0])).y.tolist() == ["c", "a"]
    assert table.take(np.array([2, 0])).columns.tolist() == [[4.0, 5.0], [0.0, 1.0]]
    assert set(FORMATS) == set(SUFFIXES.values())


def test_the_checker_names_lines(tmp_path):
    (tmp_path / "t.csv").write_text('\na,b,label\n1,2,x\n3\n\n4,"5\n",y\n6,7,8,9\n')
    places = [problem.place for problem in check_file(tmp_path / "t.csv").problems if problem.severity == "error"]
    assert places[:2] == ["line 4", "line 8"]
    (tmp_path / "t.csv").write_bytes(b"\na,b,label\n1,2,x\n3,4,\xff\n")
    assert "line 4" in check_file(tmp_path / "t.csv").problems[0].place
    (tmp_path / "t.svm").write_text("1 1:2\nx\n-1 1:3\n1 2:y\n")
    places = [problem.place for problem in check_file(tmp_path / "t.svm").problems if problem.severity == "error"]
    assert places == ["line 2, column 1", "line 4, column 5"]


def test_errors_can_be_told_apart():
    error = DataError("t.csv", "file", "the file is empty")
    assert str(error) == "t.csv: the file is empty"
    assert isinstance(error, ValueError)
    assert str(DataError("t.csv", "line 3", "wrong")) == "t.csv, line 3: wrong"

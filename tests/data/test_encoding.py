"""From columns to a matrix, for training rows and for later ones."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from maxmargin.data import DataError, Encoding, complete_rows, table_from_arrow
from maxmargin.data.csv import parse_csv
from maxmargin.data.encoding import MOST_LEVELS, Column, strange_cells


def table(columns, source="t"):
    return table_from_arrow(pa.table(columns), source, target=False)


def learned(columns, **options):
    """Names of the features, and the matrix."""
    rows = table(columns)
    encoding = Encoding.learn(rows, **options)
    X = encoding.apply(rows)
    assert X.shape == (rows.n_rows, len(encoding.feature_names))
    return encoding.feature_names, (X.toarray() if sp.issparse(X) else X).tolist()


def refused(columns, **options):
    with pytest.raises(DataError) as caught:
        learned(columns, **options)
    return caught.value.place, caught.value.problem


def later(training, rows, **options):
    """The matrix of CSV rows that come after the training rows."""
    X = Encoding.learn(parse_csv(training, "train.csv"), **options).apply(parse_csv(rows, "new.csv"))
    return (X.toarray() if sp.issparse(X) else X).tolist()


def test_numbers():
    names, X = learned({"a": [1, 2], "b": [True, False], "c": [0.5, -0.5]})
    assert names == ("a", "b", "c")
    assert X == [[1.0, 1.0, 0.5], [2.0, 0.0, -0.5]]


def test_options_are_checked():
    for wrong in ({"missing": "median"}, {"text": "ordinal"}, {"missing": None}):
        with pytest.raises(ValueError, match=r"missing must be one of .*; text one of"):
            learned({"a": [1], "t": ["u"]}, **wrong)


GAPS = {
    "null": [1.0, None, 3.0],
    "nan": [1.0, np.nan, 3.0],
    "whole": [1, None, 3],
    "float32": pa.array([1.0, None, 3.0], pa.float32()),
    "float16": pa.array(np.array([1.0, np.nan, 3.0], np.float16)),
    "decimal": pa.array([1.0, None, 3.0]).cast(pa.decimal128(5, 1)),
}


@pytest.mark.parametrize("values", GAPS.values(), ids=GAPS)
def test_gaps_in_numbers(values):
    for missing in ("error", "drop"):
        place, what = refused({"b": [1, 2, 3], "a": values}, missing=missing)
        assert place == "column 'a', row 1"
        assert what.startswith(
            "1 value is missing. Fill gaps with the column's mean (--missing mean), leave such rows "
        )
        assert what.endswith("rows out (--missing drop), or the column (--drop 'a')")
    assert learned({"a": values}, missing="mean") == (("a",), [[1.0], [2.0], [3.0]])
    rows = table({"a": values, "b": [1, 2, 3]})
    kept = rows.take(complete_rows(rows))
    assert Encoding.learn(kept).apply(kept).tolist() == [[1.0, 1.0], [3.0, 3.0]]


def test_gaps_in_text():
    columns = {"t": ["u", None, "v"], "a": [1, 2, 3]}
    place, what = refused(columns, text="onehot")
    assert place == "column 't', row 1"
    assert what.startswith("1 value is missing. Let gaps stand for none of the texts (--missing mean), leave such rows")
    assert learned(columns, text="onehot", missing="mean")[1] == [[1.0, 0.0, 1.0], [0.0, 0.0, 2.0], [0.0, 1.0, 3.0]]
    assert complete_rows(table(columns)).tolist() == [0, 2]


def test_columns_without_any_value():
    for kind in (pa.null(), pa.float64(), pa.string()):
        columns = {"a": pa.nulls(3, kind), "b": [1, 2, 3]}
        assert refused(columns, missing="mean", text="onehot") == (
            "column 'a'",
            "no row has a value; leave it out with --drop 'a'",
        )
        with pytest.raises(DataError, match=r"every row has a missing value; fill them \(--missing mean\) or drop"):
            complete_rows(table(columns))


def test_the_mean_is_that_of_the_training_rows():
    assert later(b"a,b\n1,1\n,2\n3,3\n", b"a,b\n,7\n", missing="mean") == [[2.0, 7.0]]
    with pytest.raises(DataError, match=r"new.csv, column 'a', row 1: 1 value is missing"):
        later(b"a,b\n1,1\n3,3\n", b"a,b\n5,6\n,7\n")
    assert later(b"a,b\n1,1\n3,3\n", b"a,b\n,7\n", missing="mean") == [[2.0, 7.0]]  # no gap in training


def test_text_columns():
    columns = {"a": [1, 2, 3], "t": ["v", "u", " v"], "s": ["p", "p", "q"]}
    place, what = refused(columns)
    assert place == "column 't', row 0"
    assert what.startswith(
        "expected numbers, found the text 'v' (and 1 more: 's'). Give each text a column of its own "
    )
    assert learned(columns, text="drop") == (("a",), [[1.0], [2.0], [3.0]])
    names, X = learned(columns, text="onehot")
    assert names == ("a", "t=u", "t=v", "s=p", "s=q")
    assert X == [[1.0, 0.0, 1.0, 1.0, 0.0], [2.0, 1.0, 0.0, 1.0, 0.0], [3.0, 0.0, 1.0, 0.0, 1.0]]
    assert refused({"t": ["u", "v"]}, text="drop") == ("header", "no column of numbers is left")


def test_numbers_with_a_few_strange_cells():
    _, what = refused({"a": ["1", "2", "?", "3", "?"]})
    assert "found the text '?'. If '?' means a missing value, say so with --na '?', or leave the column out" in what
    place, what = refused({"a": ["1", " x", "2", "3", "y"]})
    assert place == "column 'a', row 1"
    assert "found the text 'x'. Correct these cells, or say what means a missing value with --na, or leave" in what
    place, what = refused({"a": ["1", "2", "1_000"]})
    assert place == "column 'a', row 2"
    assert "found the text '1_000'" in what
    assert strange_cells(pa.chunked_array([["1", None, "x", "inf", "x"]])) == (2, "x", {"x"}, 0.4)


def test_unseen_and_missing_texts_set_no_level():
    training = b"t,b\nu,1\nv,2\n"
    with pytest.raises(DataError, match=r"'t', row 2: 1 value is missing\. The model was trained on rows without gaps"):
        later(training, b"b,t\n5,v\n6,w\n7,\n8, u \n", text="onehot")
    assert later(training, b"b,t\n5,v\n6,w\n7,\n8, u \n", text="onehot", missing="mean") == [
        [0.0, 1.0, 5.0],
        [0.0, 0.0, 6.0],
        [0.0, 0.0, 7.0],
        [1.0, 0.0, 8.0],
    ]


@pytest.mark.parametrize(
    ("level", "cell"),
    [("1.50", "1.50"), ("01", "01"), ("True", "TRUE"), ("1e3", "1000"), ("7", "7")],
)
def test_texts_that_look_like_numbers_in_a_later_file(level, cell):
    """The same cell means the same level, also in a file that has nothing but numbers in the column."""
    training = f"t,b\n{level},1\nother,2\n".encode()
    [[*levels, b]] = later(training, f"t,b\n{cell},3\n".encode(), text="onehot")
    assert sorted(levels) == [0.0, 1.0]
    assert levels == later(training, f"t,b\n{level},3\nother,4\n".encode(), text="onehot")[0][:2]
    assert b == 3.0
    assert later(training, b"t,b\n99.5,3\n,4\n", text="onehot", missing="mean") == [[0.0, 0.0, 3.0], [0.0, 0.0, 4.0]]


def test_columns_are_found_by_name():
    assert later(b"a,b\n1,2\n", b"c,b,x,a\n9,5,text,7\n") == [[7.0, 5.0]]
    with pytest.raises(DataError) as caught:
        later(b"a,b,c\n1,2,3\n", b"c,d\n9,5\n")
    assert str(caught.value) == (
        "new.csv, header: the columns 'a', 'b' of the training data are missing; there are 'c', 'd'"
    )
    with pytest.raises(DataError, match="the column 'a' of the training data is missing; there are 'b'"):
        later(b"a,b\n1,2\n", b"b\n9\n")
    with pytest.raises(DataError, match=r"new.csv, column 'a', row 1: expected numbers, found the text 'x'"):
        later(b"a,b\n1,2\n", b"a,b\n1,2\nx,3\n3,3\n")


DAY = datetime.date(2020, 1, 1)
ODD = {
    "date": [DAY],
    "time": [datetime.datetime(2020, 1, 1)],
    "duration": [datetime.timedelta(1)],
    "list": [[1, 2]],
    "struct": [{"x": 1}],
    "binary": [b"x"],
    "dictionary of numbers": pa.array([1]).dictionary_encode(),
}


@pytest.mark.parametrize("values", ODD.values(), ids=ODD)
def test_types_that_are_neither_numbers_nor_text(values):
    columns = {"a": values, "b": [1]}
    for options in ({}, {"text": "onehot", "missing": "mean"}):
        place, what = refused(columns, **options)
        assert place == "column 'a'"
        assert what.startswith("it holds ")
        assert what.endswith("; leave it out with --drop 'a', or turn it into numbers")
    for column in (Column("a"), Column("a", ("x",))):
        with pytest.raises(DataError, match="column 'a': it holds"):
            Encoding((column,)).apply(table(columns))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinities(value):
    place, what = refused({"b": [1.0, 2.0], "a": [1.0, value]})
    assert place == "column 'a', row 1"
    assert what == f"the value is {value}; expected a finite number"
    assert refused({"a": [1.0, None, value]}, missing="mean")[0] == "column 'a', row 2"
    # a table of so many texts is sparse, and is encoded in several blocks
    rows = 9000
    columns = {"a": np.ones(rows), "t": [f"t{i % 50}" for i in range(rows)]}
    columns["a"][8500] = value
    assert refused(columns, text="onehot")[0] == "column 'a', row 8500"


@pytest.mark.parametrize("n_levels", [3, 200])
@pytest.mark.parametrize("n_rows", [500, 20_000])
def test_dense_and_sparse_one_hot(n_levels, n_rows):
    """Against the obvious loop; wide tables become CSR, long ones come in several blocks."""
    rng = np.random.default_rng(n_levels)
    texts = rng.integers(0, n_levels, n_rows)
    texts[:n_levels] = np.arange(n_levels)
    a = rng.standard_normal(n_rows)
    rows = table({"a": a, "t": [f"{k:03}" for k in texts]})
    encoding = Encoding.learn(rows, text="onehot")
    X = encoding.apply(rows)
    assert sp.issparse(X) == (n_levels == 200)
    expected = np.zeros((n_rows, 1 + n_levels))
    expected[:, 0] = a
    expected[np.arange(n_rows), 1 + texts] = 1.0
    assert np.array_equal(X.toarray() if sp.issparse(X) else X, expected)


def test_too_many_texts():
    values = [str(i) for i in range(MOST_LEVELS + 1)]
    assert (
        len(learned({"a": [0] * MOST_LEVELS, "t": [f"t{v}" for v in values[:-1]]}, text="onehot")[0]) == MOST_LEVELS + 1
    )
    place, what = refused({"a": [0] * len(values), "t": [f"t{v}" for v in values]}, text="onehot")
    assert place == "column 't'"
    assert (
        what
        == "there are 1001 different texts, too many for one column each (at most 1000); leave it out with --drop 't'"
    )


def test_chunks_do_not_matter():
    whole = pa.table({"a": np.arange(30.0), "t": ["u", "v", "w"] * 10})
    pieces = pa.concat_tables([whole.slice(0, 7), whole.slice(7, 1), whole.slice(8, 22)])
    for options in ({"text": "onehot"}, {"text": "drop"}):
        encoding = Encoding.learn(table_from_arrow(whole, "t"), **options)
        assert encoding == Encoding.learn(table_from_arrow(pieces, "t"), **options)
        expected = encoding.apply(table_from_arrow(whole, "t"))
        assert np.array_equal(encoding.apply(table_from_arrow(pieces, "t")), expected)

"""CSV text of every shape: header, delimiter, labels, gaps, columns."""

import bz2
import gzip
import lzma
import random
import tempfile
from pathlib import Path

import numpy as np
import pytest

from maxmargin.data import DataError, Encoding, read_csv
from tests.data.csv_cases import EXPECTED, PLAIN, cells, parse, problem


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN[:-1],
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.replace("\n", "\n\n"),
        "\n\n" + PLAIN,
        "\r\n  \r\n\t\n" + PLAIN.replace("\n", "\r\n"),
        "\ufeff" + PLAIN,
        "\ufeff\n" + PLAIN,
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", "|"),
        PLAIN.replace(",", ", "),
        PLAIN.replace(",", " ,\t"),
        '"a","b","label"\n"1","2.5","x"\n"3","-4","y"\n',
        'a,b,label\n1,2.50e0,x\n+3,"-4.",y\n',
        PLAIN.replace("x", " x ").replace("a,", " a ,"),
    ],
)
def test_layouts_of_the_same_table(text):
    table = parse(text)
    assert cells(table) == EXPECTED
    assert table.names == ("a", "b")
    assert table.target == "label"
    assert table.y.tolist() == ["x", "y"]


def test_files_packed_and_not(tmp_path):
    for suffix, pack in (("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)):
        path = tmp_path / f"t.csv{suffix}"
        path.write_bytes(pack(PLAIN.encode()))
        assert cells(read_csv(path)) == EXPECTED
        path.write_bytes(pack(b""))
        with pytest.raises(DataError, match="the file is empty"):
            read_csv(path)
    with pytest.raises(FileNotFoundError):
        read_csv(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("first", "header"),
    [
        ("a,b,c", True),
        ("1,b,c", False),
        ("1,2,3", False),
        ("-1e5,b,c", False),
        ("nan,inf,c", True),
        ('"1",b,c', False),
        ("1_1,1_2,c", True),
        ("a1,b2,c", True),
    ],
)
def test_whether_there_is_a_header(first, header):
    table = parse(f"{first}\n5,6,7\n")
    assert table.n_rows == (1 if header else 2)
    assert table.names == (tuple(first.split(",")) if header else ("x0", "x1", "x2"))


def test_header_as_told():
    assert parse("1,2\n3,4\n", header=True).names == ("1", "2")
    assert parse("a,b\n3,4\n", header=False).n_rows == 2
    assert cells(parse("1,2\n3,4\n5,6", header=False)) == {"x0": [1.0, 3.0, 5.0], "x1": [2.0, 4.0, 6.0]}
    assert parse("1,2,7\n3,4,8\n", target=-1).y.tolist() == [7, 8]
    assert cells(parse("1,2,3")) == {"x0": [1.0], "x1": [2.0], "x2": [3.0]}


def test_names_with_anything_in_them():
    assert parse('"a, b","line\nend","say ""hi""",é\n1,2,3,4\n').names == ("a, b", "line\nend", 'say "hi"', "é")
    assert cells(parse('"a\r\n\r\nb",c\n1,2\n')) == {"a\r\n\r\nb": [1.0], "c": [2.0]}
    assert cells(parse("a\u2028b;c\n1;2\n")) == {"a\u2028b": [1.0], "c": [2.0]}
    assert parse('"x;y;z",b\n1,2\n').names == ("x;y;z", "b")  # delimiters inside quotes do not count


def test_delimiters():
    assert cells(parse("a b\n1 2\n", delimiter=" ")) == {"a": [1.0], "b": [2.0]}
    assert cells(parse("a,x;b\n1;2\n", delimiter=";")) == {"a,x": [1.0], "b": [2.0]}
    for bad in (",,", '"', "\n", "é"):
        assert problem(PLAIN, delimiter=bad) == ("file", f"the delimiter must be one character, got {bad!r}")


def test_one_column():
    assert cells(parse("a\n1\n2\n")) == {"a": [1.0, 2.0]}
    assert cells(parse("1\n2\n")) == {"x0": [1.0, 2.0]}
    assert problem("label\n1\n") == (
        "header",
        "no feature column is left beside the labels and the dropped columns",
    )


@pytest.mark.parametrize(
    ("labels", "expected", "kind"),
    [
        (["x", "y"], ["x", "y"], "U"),
        (["1", "-1"], [1, -1], "i"),
        (["+1", "-1"], [1, -1], "i"),
        (["1.0", "2"], [1, 2], "i"),
        (["1.5", "2"], [1.5, 2.0], "f"),
        (["true", "False"], ["true", "False"], "U"),
        (["1", "x"], ["1", "x"], "U"),
        (["2020-01-01", "2021-01-01"], ["2020-01-01", "2021-01-01"], "U"),
        (['"a,b"', '"c\nd"'], ["a,b", "c\nd"], "U"),
        ([" spam ", "ham"], ["spam", "ham"], "U"),
        (["é", "漢"], ["é", "漢"], "U"),
    ],
)
def test_labels(labels, expected, kind):
    y = parse("a,label\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels))).y
    assert y.tolist() == expected
    assert y.dtype.kind == kind


@pytest.mark.parametrize("gap", ["", "NA", "nan", '""', " ", " NA "])
def test_missing_labels(gap):
    place, what = problem(f"a,label\n1,x\n2,{gap}\n3,{gap}\n4,y\n")
    assert place == "column 'label', row 1"
    assert what.startswith("the label is missing (2 in all; rows count from 0); give it, or remove such rows")


@pytest.mark.parametrize(
    "gap", ["", "NA", "N/A", "#N/A", "NaN", "nan", "null", "None", "<NA>", " NA", "NA ", " ", '"NA"']
)
def test_missing_values(gap):
    assert cells(parse(f"a,b\n1,{gap}\n3,4\n")) == {"a": [1.0, 3.0], "b": [None, 4.0]}
    assert cells(parse(f"a,b\n1,{gap}\n3,u\n"))["b"] == [None, "u"]


@pytest.mark.parametrize("gap", ["?", " ?", "-999"])
def test_texts_that_mean_missing(gap):
    text = f"a,b,label\n1,2,x\n1,{gap},y\n3,4,x\n5,6,y\n"
    assert cells(parse(text, na=[gap.strip()]))["b"] == [2.0, None, 4.0, 6.0]
    if gap == "-999":
        return
    with pytest.raises(DataError) as caught:
        Encoding.learn(parse(text))
    assert caught.value.place == "column 'b', row 1"
    assert "found the text '?'. If '?' means a missing value, say so with --na '?'" in caught.value.problem


def test_values_of_features():
    table = parse("a,b,c,d\ntrue,2020-01-01,9007199254740993,x\nFALSE,2020-01-02,99999999999999999999,2\n")
    assert cells(table) == {
        "a": [True, False],
        "b": ["2020-01-01", "2020-01-02"],
        "c": [9007199254740992.0, 1e20],
        "d": ["x", "2"],
    }


def test_numbers_are_rounded_as_python_rounds_them():
    rng = random.Random(0)
    texts = [
        f"{rng.choice(['', '-'])}{rng.randint(0, 10 ** rng.randint(1, 25))}.{rng.getrandbits(80)}" for _ in range(5000)
    ]
    texts += [repr(np.uint64(rng.getrandbits(62)).view(np.float64).item()) for _ in range(5000)]
    found = parse("a\n" + "\n".join(texts)).columns.column("a").to_numpy()
    assert found.tobytes() == np.array([float(text) for text in texts]).tobytes()


def test_same_names():
    place, what = problem("a,b, a\n1,2,3\n")
    assert place == "header"
    assert what == "columns 0 and 2 (counted from 0) are both called 'a'; rename one of them"


@pytest.mark.parametrize(
    ("target", "names", "y"),
    [
        (None, ("a", "b", "c"), None),
        ("b", ("a", "c"), [2]),
        ("1", ("a", "c"), [2]),
        (1, ("a", "c"), [2]),
        ("-1", ("a", "b"), [3]),
        (-3, ("b", "c"), [1]),
    ],
)
def test_target(target, names, y):
    table = parse("a,b,c\n1,2,3\n", target=target)
    assert table.names == names
    assert (table.y if y is None else table.y.tolist()) == y


def test_target_that_is_not_there():
    assert problem(PLAIN, target="z") == ("header", "there is no column 'z'; the columns are 'a', 'b', 'label'")
    assert problem(PLAIN, target=3) == ("header", "there is no column 3; there are 3, counted from 0")
    assert problem(PLAIN, target="-4") == ("header", "there is no column -4; there are 3, counted from 0")
    with pytest.raises(DataError, match=r"which column holds the labels\? Name it with --target .*'a', 'b'"):
        parse("a,b\n1,2\n").labels()


@pytest.mark.parametrize("name", ["label", "Target", " CLASS ", "y"])
def test_likely_targets(name):
    assert parse(f"a,{name}\n1,2\n").target == name.strip()
    assert parse(f"a,{name},{'y' if name == 'label' else 'label'}\n1,2,3\n").y is None  # two of them: ask


def test_drop():
    assert parse(PLAIN, drop=["a"]).names == ("b",)
    assert parse(PLAIN, drop=["0"]).names == ("b",)
    assert parse(PLAIN, drop=["-2"]).names == ("a",)
    assert problem(PLAIN, drop=["a", "b"])[1] == "no feature column is left beside the labels and the dropped columns"
    assert problem(PLAIN, drop=["z"]) == ("header", "there is no column 'z'; the columns are 'a', 'b', 'label'")


def test_mapped_files_are_let_go_of():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_text(PLAIN)
        table = read_csv(path)
        path.write_text("changed")
        assert cells(table) == EXPECTED

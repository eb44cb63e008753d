"""Rows of CSV text: over many blocks, with line ends in quotes, broken, and the lines that errors name."""

import csv
import io
import random

import pytest

from maxmargin.data import DataError, Encoding
from maxmargin.data import layout as layout_module
from maxmargin.data.layout import Layout, never_closed
from tests.data.csv_cases import PLAIN, cells, parse, problem


@pytest.fixture
def small_blocks(monkeypatch):
    """PyArrow looks at a kilobyte at a time, so that small files have many blocks."""
    monkeypatch.setattr(layout_module, "BLOCK", 1024)


@pytest.mark.parametrize("seed", range(20))
def test_random_tables(seed, small_blocks):
    """Against Python's own csv module, with line ends, quotes and delimiters in cells, over many blocks."""
    rng = random.Random(seed)
    mark, end = rng.choice(",;\t|"), rng.choice(["\n", "\r\n"])
    # PyArrow drops half of a quoted line end of two bytes that two blocks share, so there is none here.
    pieces = ["x", "y z", mark, "\n", '"', '""', "é", "1", "'", "#"]
    rows = [
        [f"{k}.25", "t" + "".join(rng.choices(pieces, k=rng.randint(0, 12))) + "t", str(k)]
        for k in range(rng.choice([1, 5, 300]))
    ]
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=mark, lineterminator=end).writerows([["num,ber", "text", "label"], *rows])
    table = parse(text.getvalue(), delimiter=mark)
    assert cells(table) == {"num,ber": [float(row[0]) for row in rows], "text": [row[1] for row in rows]}
    assert table.y.tolist() == list(range(len(rows)))


def long_column(cell, n_rows=300_000):
    """Two columns of more than a megabyte, whose last row is given."""
    return "a,b\n" + "\n".join(f"{i},{i % 7}" for i in range(n_rows)) + f"\n{cell}\n"


def test_a_number_column_that_turns_to_text_after_the_first_block():
    table = parse(long_column("1,oops"))
    values = table.columns.column("b").to_pylist()
    assert values[:3] == ["0", "1", "2"]
    assert values[-1] == "oops"
    assert table.columns.column("a").to_numpy()[-2] == 299_999.0
    with pytest.raises(DataError, match="row 300000: expected numbers, found the text 'oops'"):
        Encoding.learn(table)


@pytest.mark.parametrize("target", [None, "b"])
def test_whole_numbers_that_turn_to_fractions_after_the_first_block(target):
    table = parse(long_column("1,0.5"), target=target)
    values = table.columns.column("b").to_numpy() if target is None else table.y
    assert values[:3].tolist() == [0.0, 1.0, 2.0]
    assert values[-1] == 0.5


def test_what_shows_only_after_the_first_block(small_blocks):
    rows = "".join(f"{i},{i % 2 == 0},{i}\n" for i in range(500))
    text = "a,b,label\n" + rows
    assert parse(text).y.tolist() == list(range(500))
    table = parse(text + "1,true,x\n")  # labels turn to text: the whole file is read once more
    assert table.y.tolist() == [*map(str, range(500)), "x"]
    assert table.columns.column("b").to_pylist()[:2] == [True, False]
    assert cells(parse(text + "?,true,1\n", na=["?"]))["a"][-1] is None
    assert cells(parse(text + " NA,true,1\n"))["a"][-1] is None


def test_a_quoted_line_end_at_every_place_of_a_block(small_blocks):
    for shift in range(40):
        filler = "".join(f"{i},u\n" for i in range(180))
        text = "a,b\n" + filler + "7," + '"' + "x" * shift + '\n9,9"\n' + filler
        table = parse(text)
        assert table.n_rows == 361
        assert cells(table)["b"][180] == "x" * shift + "\n9,9"


def test_rows_and_headers_longer_than_a_block(small_blocks):
    n_columns = 5000
    header = ",".join(f"column{j}" for j in range(n_columns))
    row = ",".join(str(j + 0.25) for j in range(n_columns))
    table = parse(f"{header}\n{row}\n{row}\n")
    assert table.n_columns == n_columns
    assert [column[1].as_py() for column in table.columns.columns] == [j + 0.25 for j in range(n_columns)]
    long = "x" * 100_000
    table = parse(f'a,b\n1,u\n2,"{long}\n{long}"\n3,v\n')
    assert cells(table)["b"] == ["u", f"{long}\n{long}", "v"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a,b\n1,2\n3\n", 3),
        ("a,b\n1,2\n3,4,5\n", 3),
        ("a,b\r\n1,2\r\n3\r\n", 3),
        ("a,b\r1,2\r3\r", 3),
        ("\n\na,b\n\n1,2\n\n\n3\n", 8),
        ('a,b\n1,"x\n\ny"\n3\n', 5),
        ('"a\nb",c\n1,2\n3\n', 4),
        ("1,2\n3\n", 2),
        ("a,b\n1,2\n   \n3,4\n", 3),
        ("\ufeffa,b\n1\n", 2),
        (long_column("1,2,3") + '4,"5', 300_002),
        ("a,b\n" + '1,"2\n"\n' * 200_000 + "1\n" + "1,2\n" * 10, 400_002),
    ],
    ids=range(12),
)
def test_ragged_rows(text, line):
    place, what = problem(text)
    assert place == f"line {line}"
    assert what.startswith("expected 2 cells as in line ")
    assert what.endswith("Quote cells that contain ',', or name another delimiter")


def test_ragged_rows_put_aside():
    bad = []
    table = parse('\na,b\n1,2\n3\n\n4,"x\ny"\n5,6,7\n8,9\n', bad_rows=bad)
    assert [(row.line, row.expected, row.found, row.text) for row in bad] == [(4, 2, 1, "3"), (8, 2, 3, "5,6,7")]
    assert cells(table) == {"a": [1.0, 4.0, 8.0], "b": ["2", "x\ny", "9"]}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a,b\n1,"2\n3,4\n', 2),
        ('a,b\n1,2\n3,"4', 3),
        ('a,b\n1,2\n3,"4\n\n\n', 3),
        ('a,b\n1,2\n"3,4\n5,6\n', 3),
        ('a,b\n1,"x\ny"\n3,"z\n5,6\n', 4),
        ('a,"b\n1,2\n3,4\n', 1),
        ('\n"a,b\n1,2\n', 2),
        ('1,"2\n3,4\n', 1),
        ("a,b\n" + "1,2\n" * 500_000 + '3,"4\n' + "5,6\n" * 500_000, 500_002),
        ("a,b\n1,2\n" + '3,"4\n' + "5,6\n" * 500_000, 3),
        ('a,"b\n' + "5,6\n" * 500_000, 1),
    ],
    ids=range(11),
)
def test_quotes_that_are_never_closed(text, line):
    place, what = problem(text)
    assert place == f"line {line}"
    assert 'never closed: look for a lone " character' in what


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
@pytest.mark.parametrize(
    "row", ['1,"x\n"', '"x\n",1', '"\n","\n"', '1,5" pipe', '1,"say ""hi"""', '1,""', '"a\n",""', '1,"\r\n"']
)
def test_quotes_that_look_never_closed(row, end):
    assert parse("a,b\n" + row + end).n_rows == 1
    assert parse("a,b\n2,3\n" + row + end).n_rows == 2


def test_what_is_not_utf8():
    where = "the text is not UTF-8; convert the file, for example with iconv"
    place, what = problem(b'a,b\n1,"x\ny"\n\n2,\xff\n')
    assert place == "column 'b', line 5"
    assert what.startswith(where)
    place, what = problem(b"a,label\n" + b"1,ok\n" * 300_000 + "1,Zürich\n".encode("latin-1"))
    assert place == "column 'label', line 300002"
    assert what.startswith(where)
    assert problem("prénom,b\n1,2\n".encode("latin-1"))[0] == "line 1"
    for encoding in ("utf-16", "utf-16-be"):
        text = PLAIN.encode(encoding) if encoding == "utf-16" else b"\xfe\xff" + PLAIN.encode(encoding)
        assert problem(text) == ("file", "the text is UTF-16; convert it with iconv -f utf-16 -t utf-8")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "the file is empty"),
        ("\n \n\r\n", "the file is empty"),
        ("\ufeff", "the file is empty"),
        ("a,b", "there is no row below the header"),
        ("a,b\r\n", "there is no row below the header"),
        ("a,b\n\n\n", "there are no rows"),
    ],
)
def test_no_rows(text, what):
    assert problem(text) == ("file", what)


def test_layout_of_rows():
    raw = b'\n"a\nb",c\n1,2\n\n"x\ny",3\n4,5\n'
    layout = Layout.of(raw, "t.csv")
    assert (layout.first, layout.line, raw[layout.begin :][:3]) == (2, 4, b"1,2")
    places = list(layout.places(raw[layout.begin :], [1, 2, 3, 4]))
    assert [line for line, _ in places] == [4, 6, 8]
    assert [raw[layout.begin :][span] for _, span in places] == [b"1,2\n", b'"x\ny",3\n', b"4,5\n"]
    assert never_closed(b'a,"' + b"x" * 200_000, ",")
    assert Layout.of(b"a,b\n" + b"1," * 3_000_000 + b"\n2,3\n", "t.csv").block > 6_000_000  # whole rows fit

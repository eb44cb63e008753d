"""The svmlight reader against an obvious parser, scikit-learn's reader and Python's float()."""

import bz2
import gzip
import io
import lzma
import os
import random
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from maxmargin import _core
from maxmargin.data import DataError, read_svmlight, table_from_arrays
from maxmargin.data import svmlight as module
from maxmargin.data.svmlight import feed, looks_like_svmlight, number, parse_svmlight, write_svmlight
from tests.data.svmlight_cases import decimal_strings, random_text, slowly


def parse(text, **options):
    return parse_svmlight(io.BytesIO(text), "t.svm", **options)


def agrees(table, text):
    labels, rows = slowly(text)
    columns = [column for row in rows for column in row]
    first = 0 if 0 in columns else 1
    X, y = table.columns, table.y
    assert X.shape == (len(rows), max([*columns, first]) - first + 1)
    assert y.tolist() == labels
    found = [
        {int(j) + first: v for j, v in zip(X.indices[a:b], X.data[a:b].tolist(), strict=True)}
        for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]
    assert found == rows
    return True


def same(table, other):
    X, Z = table.columns, other.columns
    assert X.shape == Z.shape
    assert X.indptr.tobytes() == Z.indptr.tobytes()
    assert X.indices.tobytes() == Z.indices.tobytes()
    assert X.data.tobytes() == Z.data.tobytes()
    assert table.y.tobytes() == other.y.tobytes()
    return True


@pytest.mark.parametrize("seed", range(60))
def test_random_text(seed, monkeypatch):
    text = random_text(seed)
    table = parse(text)
    assert agrees(table, text)
    X, y = load_svmlight_file(io.BytesIO(text))
    assert X.shape == table.columns.shape
    assert (sp.csr_array(X) != table.columns).nnz == 0
    np.testing.assert_array_equal(y, table.y)
    monkeypatch.setattr(module, "PIECE", 64)
    assert same(parse(text, n_threads=1), table)
    assert same(parse(text, n_threads=3), table)


def test_numbers_are_rounded_as_python_rounds_them():
    texts = list(decimal_strings(random.Random(1), 60000))
    texts += ["0", "-0", "+0.0", "0e99999", ".5", "5.", "5.e3", "1e22", "1e23", "1e-22", "1e-23", "123e-25"]
    texts += ["9007199254740993", "18446744073709551615", "18446744073709551616", "1.7976931348623158e308"]
    texts += ["2.2250738585072011e-308", "2.4703282292062327e-324", "2.4703282292062328e-324", "5e-324", "1e-400"]
    texts += ["0." + "0" * 400 + "17e403", "17" + "0" * 400 + "e-401", "0" * 3000 + "1.5", "1e-99999999999"]
    texts += ["1e-4294967297", "7e-4294967296", "7e-18446744073709551616"]  # exponents that other integers wrap
    texts += ["0." + "0" * 400 + "1e60", "17" + "0" * 400 + "e-900"]  # underflow, however it is written
    table = parse("\n".join(f"{text} 1:{text}" for text in texts).encode())
    expected = np.array([float(text) for text in texts])
    assert table.columns.data.tobytes() == expected.tobytes()
    np.testing.assert_array_equal(table.y, expected)


@pytest.mark.parametrize(
    "text", ["0." + "0" * 100001 + "1e100001", "1" + "0" * 200000 + "e-300000"], ids=["many zeros", "underflow"]
)
def test_digits_and_exponent_that_cancel(text):
    assert parse(f"1 1:{text}".encode()).columns.data.tolist() == [float(text)]


@pytest.mark.parametrize(
    "text", ["1e309", "-1e309", "1.7976931348623159e308", "9" * 400, "1e99999999999", "0.01e311", "1e4294967297"]
)
def test_overflow(text):
    for line, place in ((f"1 3:{text}", "line 1, column 5"), (f"{text} 3:1", "line 1, column 1")):
        with pytest.raises(DataError, match="too large for a float64") as caught:
            parse(line.encode())
        assert caught.value.place == place


LARGE = b"\n".join(random_text(seed, 200) for seed in range(40))


@pytest.mark.parametrize("piece", [64, 1000, 90001, 4 << 20])
def test_pieces_and_threads_do_not_matter(piece, monkeypatch):
    expected = parse(LARGE, n_threads=1)
    assert agrees(expected, LARGE)
    monkeypatch.setattr(module, "PIECE", piece)
    for n_threads in (1, 2, 4):
        assert same(parse(LARGE, n_threads=n_threads), expected)


def test_a_line_longer_than_a_piece(monkeypatch):
    line = b"1 " + b" ".join(b"%d:%d" % (j, j) for j in range(1, 3000)) + b" # " + b"long " * 2000
    text = b"-1 1:1\n" + line + b"\n-1 2:2\n" + line
    expected = parse(text)
    assert agrees(expected, text)
    for piece in (1, 7, 64, 4096):
        monkeypatch.setattr(module, "PIECE", piece)
        assert same(parse(text, n_threads=2), expected)


PLAIN = b"1 1:2 4:-3.5\n-1\n1 2:1e-3\n"


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace(b"\n", b"\r\n"),
        PLAIN[:-1],
        PLAIN.replace(b"\n", b"\n\n\r\n \t\n"),
        PLAIN.replace(b"\n", b" # 9:9\n# 1 1:1\n   # x\n"),
        PLAIN.replace(b"\n", b"#9:9\n"),
        PLAIN.replace(b" ", b"\t"),
        PLAIN.replace(b" ", b" \t\f\v "),
        PLAIN.replace(b"\n", b"   \n   "),
        PLAIN.replace(b"1 ", b"+1.0 "),
    ],
    ids=["crlf", "no final newline", "blank lines", "comments", "tight", "tabs", "blanks", "indented", "plus"],
)
def test_layouts_of_the_same_rows(text):
    assert same(parse(text), parse(PLAIN))


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed(suffix, tmp_path):
    path = tmp_path / f"t.svm{suffix.upper()}"
    path.write_bytes(PACKERS[suffix](LARGE))
    assert same(read_svmlight(path), parse(LARGE))
    path.write_bytes(PACKERS[suffix](LARGE) + PACKERS[suffix](b"\n" + LARGE))  # two archives in one file
    assert read_svmlight(path).n_rows == 2 * parse(LARGE).n_rows


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("damage", ["cut", "start", "middle", "not packed"])
def test_damaged_archives(suffix, damage, tmp_path):
    packed = bytearray(PACKERS[suffix](LARGE))
    if damage == "cut":
        packed = packed[: len(packed) // 2]
    elif damage == "not packed":
        packed = LARGE
    else:
        at = 0 if damage == "start" else len(packed) // 2
        packed[at : at + 8] = bytes(byte ^ 255 for byte in packed[at : at + 8])
    path = tmp_path / f"t.svm{suffix}"
    path.write_bytes(packed)
    with pytest.raises(DataError, match="the compressed file is damaged") as caught:
        read_svmlight(path)
    assert caught.value.source == str(path)
    assert suffix in caught.value.problem  # says what to do about the name


@pytest.mark.parametrize("name", ["none.svm", "none.svm.gz"])
def test_no_such_file(name, tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        read_svmlight(tmp_path / name)


def test_a_pipe_that_brings_a_few_bytes_at_a_time(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write():
        with open(path, "wb", buffering=0) as pipe:
            for begin in range(0, len(PLAIN), 3):
                pipe.write(PLAIN[begin : begin + 3])

    writer = threading.Thread(target=write)
    writer.start()
    table = read_svmlight(path)
    writer.join(30)
    assert same(table, parse(PLAIN))


ERRORS = {
    "x 1:2": (1, "the label 'x' is not a number; svmlight files hold numeric labels"),
    "  nan 1:2": (3, "the label 'nan' is not a number"),
    "1e999 1:2": (1, "the label '1e999' is too large for a float64"),
    "1,2 1:2": (1, "several labels in one row, '1,2', are not supported; keep one"),
    "1:2 3:4": (1, "a row starts with its label, but this one with '1:2'"),
    "1 2:3 x": (7, "expected column:value with a whole number as column, found 'x'"),
    "1 2:3\t7": (7, "expected column:value with a whole number as column, found '7'"),
    "1 -1:3": (3, "found '-1:3'"),
    "1 1.5:3": (3, "found '1.5:3'"),
    "1 :3": (3, "found ':3'"),
    "1 2 :3": (3, "found '2'"),
    "1 qid:3 1:2": (3, "query ids ('qid:3') are for ranking, which is not supported; remove them"),
    "1 2:3 2:4": (7, "column 2 occurs twice in this row; keep one"),
    "1 12:3  2:4": (9, "column 2 comes after column 12"),
    "1 2147483647:3": (3, "column '2147483647' is above the largest allowed, 2147483646"),
    "1 2:3 4:": (9, "the value of column 4 is missing; leave the column out if it is zero"),
    "1 2:3 4: 5": (9, "the value of column 4 is missing"),
    "1 4:abc": (5, "the value of column 4, 'abc', is not a finite number"),
    "1 4:1e": (5, "the value of column 4, '1e', is not a finite number"),
    "1 4:1:2": (5, "the value of column 4, '1:2', is not a finite number"),
    "1 4:inf": (5, "the value of column 4, 'inf', is not a finite number"),
    "1 4:é": (5, r"the value of column 4, '\xc3\xa9', is not a finite number"),
}


@pytest.mark.parametrize("line", ERRORS)
def test_errors_name_line_and_column(line, monkeypatch):
    column, problem = ERRORS[line]
    early = b"# comment\n\n1 1:1\r\n" + line.encode() + b"\n1 1:1\nx\n"
    late = LARGE + b"\n" + line.encode()
    last = LARGE.count(b"\n") + 2
    for piece, n_threads in ((64, 1), (64, 4), (100000, 4), (4 << 20, 1), (4 << 20, 4)):
        monkeypatch.setattr(module, "PIECE", piece)
        for text, number_of_line in ((early, 4), (late, last)):
            with pytest.raises(DataError) as caught:
                parse(text, n_threads=n_threads)
            assert caught.value.place == f"line {number_of_line}, column {column}"
            assert problem in caught.value.problem
            assert str(caught.value).startswith(f"t.svm, line {number_of_line}, column {column}: ")


def test_the_first_error_wins_whatever_thread_finds_it(monkeypatch):
    lines = LARGE.split(b"\n")
    for k in (700, 3000, 6500):
        lines[k] = b"1 3:x"
    for n_threads in (1, 2, 4, 8):
        with pytest.raises(DataError, match="line 701, column 5"):
            parse(b"\n".join(lines), n_threads=n_threads)


@pytest.mark.parametrize("piece", [64, 4 << 20])
@pytest.mark.parametrize("n_threads", [1, 4])
def test_going_on_behind_errors(piece, n_threads, monkeypatch):
    monkeypatch.setattr(module, "PIECE", piece)
    lines = LARGE.split(b"\n")
    bad = [5, 6, 777, 5000, len(lines) - 1]
    good = b"\n".join(b"" if k in bad else line for k, line in enumerate(lines))
    for k in bad:
        lines[k] = b"-1 500:1 y"
    parser = _core.SvmlightParser(True)
    places = []
    for _ in feed(parser, io.BytesIO(b"\n".join(lines)), n_threads):
        if parser.error is not None:
            places.append(parser.error[:2])
            parser.forgive()
    assert places == [(k + 1, 10) for k in bad]
    expected = parse(good)
    assert parser.n_lines == len(lines)
    assert parser.n_rows == expected.n_rows
    values, _, row_ends, labels, where = parser.take()
    assert values.tobytes() == expected.columns.data.tobytes()
    np.testing.assert_array_equal(labels, expected.y)
    np.testing.assert_array_equal(row_ends, expected.columns.indptr[1:])
    rows = [k + 1 for k, line in enumerate(good.split(b"\n")) if line.split(b"#")[0].split()]
    assert where.tolist() == rows


def test_where_columns_count_from():
    assert parse(b"1 1:5 3:6\n").columns.toarray().tolist() == [[5.0, 0.0, 6.0]]
    assert parse(b"1 0:5 2:6\n").columns.toarray().tolist() == [[5.0, 0.0, 6.0]]
    assert parse(b"1 2:6\n1 0:5\n").columns.shape == (2, 3)
    assert parse(b"1 1:5 3:6\n", zero_based=True).columns.toarray().tolist() == [[0.0, 5.0, 0.0, 6.0]]
    assert parse(b"1 1:5\n", zero_based=False).columns.toarray().tolist() == [[5.0]]
    with pytest.raises(DataError, match="column 0 occurs, but columns count from 1"):
        parse(b"1 1:1\n1 0:5\n", zero_based=False)
    assert parse(b"1 2147483646:1\n").columns.shape == (1, 2147483646)


def test_number_of_columns():
    assert parse(PLAIN, n_features=4).columns.shape == (3, 4)
    assert parse(PLAIN, n_features=9).columns.shape == (3, 9)
    assert parse(PLAIN, n_features=5, zero_based=True).columns.shape == (3, 5)
    for options in ({"n_features": 3}, {"n_features": 4, "zero_based": True}):
        with pytest.raises(DataError, match="column 4 occurs, but there should be only"):
            parse(PLAIN, **options)
    assert parse(b"1\n-1\n").columns.shape == (2, 1)
    assert parse(b"1\n-1\n", n_features=3).columns.shape == (2, 3)


@pytest.mark.parametrize("text", [b"", b"\n", b"\r\n\n", b"# only\n# comments", b"  \t \n"])
def test_no_rows(text):
    with pytest.raises(DataError, match="there are no rows: the file is empty or holds only comments"):
        parse(text)


def test_labels():
    assert parse(b"+1 1:1\n-1 1:1\n").y.dtype == np.int64
    assert parse(b"1.0 1:1\n2e0 1:1\n").y.tolist() == [1, 2]
    assert parse(b"1.5 1:1\n2 1:1\n").y.tolist() == [1.5, 2.0]
    assert parse(b"1e300 1:1\n2 1:1\n").y.tolist() == [1e300, 2.0]


def written(table, **options):
    file = io.BytesIO()
    write_svmlight(table, file, **options)
    return file.getvalue()


def test_writing_against_sklearn(tmp_path):
    rng = np.random.default_rng(0)
    X = sp.random_array((50, 30), density=0.2, rng=rng, format="csr", data_sampler=rng.standard_normal)
    X.data[:4] = 5e-324, 1e300, -0.1, 12345678901234567.0
    y = rng.integers(-3, 3, 50)
    text = written(table_from_arrays(X, y))
    Z, labels = load_svmlight_file(io.BytesIO(text), n_features=30)
    assert (sp.csr_array(Z) != X).nnz == 0
    np.testing.assert_array_equal(labels, y)
    assert same(parse(written(table_from_arrays(X, y), zero_based=True), zero_based=True), parse(text))
    dump_svmlight_file(X, y, str(tmp_path / "dumped.svm"), zero_based=False)
    assert read_svmlight(tmp_path / "dumped.svm").n_rows == 50


def test_writing_what_readers_would_refuse():
    parts = (np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3]))
    X = sp.csr_array(parts, shape=(1, 3))
    assert written(table_from_arrays(X, [1])) == b"1 1:2 3:5\n"  # sorted, and added up
    assert X.indices.tolist() == [2, 0, 2]  # the caller's matrix is left alone
    stored_zero = sp.csr_array((np.array([0.0, 4.0]), np.array([0, 2]), np.array([0, 2])), shape=(1, 3))
    assert written(table_from_arrays(stored_zero, [1])) == b"1 3:4\n"
    for bad in (np.nan, np.inf):
        Z = np.ones((3, 4))
        Z[2, 1] = bad
        with pytest.raises(DataError, match=r"column 1, row 2: the value is .* finite"):
            written(table_from_arrays(Z, [1, 2, 3]))
        with pytest.raises(DataError, match="column of labels, row 1: the label is"):
            written(table_from_arrays(np.ones((2, 1)), [1.0, bad]))
    with pytest.raises(DataError, match="these are text such as 'a'; number them with --number-labels"):
        written(table_from_arrays(np.ones((2, 1)), ["a", "b"]))
    with pytest.raises(DataError, match="there are no labels"):
        written(table_from_arrays(np.ones((2, 1))))


def test_numbers_written_read_back():
    rng = random.Random(0)
    values = [np.uint64(rng.getrandbits(62)).view(np.float64).item() for _ in range(2000)]
    values += [0.0, 1.0, -1.0, 1e15, 1e15 - 1, -1e16, 2.0**53, 0.1, 5e-324, 123456.5]
    assert [float(number(value)) for value in values] == values
    assert number(True) == "1"
    assert number(-7) == "-7"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PLAIN, True),
        (b"# c\n\n1 1:2", True),
        (b"a,b\n1,2\n", False),
        (b"", False),
        (b"1:2 3\n", False),
        (b"1 2\n", False),
    ],
)
def test_looking_like_svmlight(text, expected, tmp_path):
    path = tmp_path / "data"
    path.write_bytes(text)
    assert looks_like_svmlight(path) is expected
    assert looks_like_svmlight(tmp_path) is False


def test_a_utf8_mark_is_no_label(tmp_path):
    (tmp_path / "t.svm").write_bytes(b"\xef\xbb\xbf+1 1:2\n-1 2:3\n")
    assert read_svmlight(tmp_path / "t.svm").y.tolist() == [1, -1]


def test_rows_that_fail_do_not_move_the_first_column():
    parser = _core.SvmlightParser()
    parser.feed(np.frombuffer(b"1 0:1 0:2\n", np.uint8), True, 1)
    assert parser.error is not None
    parser.forgive()
    parser.feed(np.frombuffer(b"1 3:1 7:2\n", np.uint8), True, 1)
    assert (parser.smallest_column, parser.largest_column) == (3, 7)

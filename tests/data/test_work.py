"""How much work reading is, counted: proportional to bytes, rows and columns, whatever the file looks like."""

import io
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import maxmargin._core as _core
from maxmargin.data import batches_pieces, svmlight
from maxmargin.data.batches_pieces import whole_rows
from maxmargin.data.check import check_file
from maxmargin.data.csv import parse_csv
from maxmargin.data.layout import Layout
from maxmargin.data.svmlight import feed, parse_svmlight

PIPE = 4096  # bytes that arrive at a time


class Pipe(io.BytesIO):
    """Hands over few bytes at a time, as pipes do."""

    def readinto(self, buffer):
        return super().readinto(memoryview(buffer)[:PIPE])


class CountingParser:
    """The core's parser, and how many bytes it was given to look at."""

    def __init__(self):
        self.parser, self.n_bytes, self.n_calls = _core.SvmlightParser(), 0, 0

    def feed(self, text, last, n_threads):
        self.n_bytes, self.n_calls = self.n_bytes + len(text), self.n_calls + 1
        return self.parser.feed(text, last, n_threads)

    def __getattr__(self, name):
        return getattr(self.parser, name)


def long_line(n_bytes):
    return b"1" + b"".join(b" %d:1" % j for j in range(1, n_bytes // 8)) + b"\n"


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(svmlight, "PIECE", 1 << 14)


@pytest.mark.parametrize("text", [long_line(1 << 20), long_line(1 << 20) * 3, b"1 1:2\n" * 5 + long_line(1 << 20)])
def test_one_line_through_a_pipe_is_looked_at_once(text, small_pieces):
    parser = CountingParser()
    for _ in feed(parser, Pipe(text), 1):
        pass
    assert parser.n_bytes == len(text)
    assert parser.n_calls <= text.count(b"\n") + 1
    assert parser.parser.n_rows == text.count(b"\n")


def test_the_search_for_line_ends_looks_at_each_byte_once(small_pieces, monkeypatch):
    n_bytes, search = [0], svmlight._last_line_end

    def counted(text):
        n_bytes[0] += len(text)
        return search(text)

    monkeypatch.setattr(svmlight, "_last_line_end", counted)
    text = long_line(1 << 20)
    table = parse_svmlight(Pipe(text), "t.svm", n_threads=1)
    assert table.columns.nnz == (1 << 17) - 1
    assert n_bytes[0] == len(text)


def test_errors_before_a_long_line_do_not_make_it_longer(small_pieces, monkeypatch):
    """The parser looks for the last line end each time; after an error it goes on behind it."""
    monkeypatch.setattr(svmlight, "PIECE", 1 << 18)
    text = b"x\n" * 2000 + long_line(1 << 19)
    seen, parser = [], CountingParser()

    def give(text, last, n_threads, feed=parser.feed):
        assert last or text[-1] == ord("\n")  # a line end is where it is looked for first
        return feed(text, last, n_threads)

    parser.feed = give
    for _ in feed(parser, io.BytesIO(text), 1):
        if parser.error is not None:
            seen.append(parser.error[0])
            parser.parser.forgive()
    assert seen == list(range(1, 2001))
    assert parser.n_rows == 1


def test_rows_behind_a_long_one_are_not_copied_again_and_again(monkeypatch):
    monkeypatch.setattr(batches_pieces, "LONGEST_ROW", 1 << 22)
    text = b"x" * (1 << 19) + b"\n" + b"123456789\n" * (1 << 16)
    n_bytes = [0]

    def end_of_rows(block):
        n_bytes[0] += len(block)
        return block.rfind(b"\n") + 1

    copied, filled = [0], batches_pieces._filled

    def counted(file, rest, size):
        copied[0] += len(rest)
        return filled(file, rest, size)

    monkeypatch.setattr(batches_pieces, "_filled", counted)
    blocks = [block for block, _ in whole_rows(io.BytesIO(text), 1000, end_of_rows)]
    assert b"".join(blocks) == text
    assert n_bytes[0] <= 4 * len(text)
    assert copied[0] <= 4 * len(text)


def wide(n_columns, n_rows=3):
    """A table of numbers, with some gaps, text and constant columns."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n_rows, n_columns)).round(3).astype(object)
    rows[0, 3::50], rows[:, 4::50], rows[:, 5::50] = "", "x", 1
    header = ",".join([*(f"c{j}" for j in range(n_columns)), "label"])
    lines = [",".join(map(str, [*row, i % 2])) for i, row in enumerate(rows)]
    return "\n".join([header, *lines, ""]).encode()


def n_calls(function):
    """Calls of Python and C functions while a function runs."""
    count = [0]

    def look(frame, event, argument):
        count[0] += event in ("call", "c_call")

    sys.setprofile(look)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count[0]


def test_checking_a_wide_table_is_few_calls_per_column(tmp_path):
    counts = {}
    for n_columns in (2000, 4000, 8000):
        path = tmp_path / f"{n_columns}.csv"
        path.write_bytes(wide(n_columns))
        check_file(path)  # imports
        counts[n_columns] = n_calls(lambda path=path: check_file(path))
    first, second = (counts[2 * n] - counts[n] for n in (2000, 4000))
    assert first <= 40 * 2000
    assert second <= 2.2 * first


def test_blocks_of_wide_tables_have_many_rows():
    """PyArrow's work is proportional to columns × blocks, too."""
    text = wide(200_000, n_rows=2)
    layout = Layout.of(text, "t.csv")
    assert layout.block >= 64 * (len(text) - layout.begin) // 2 * 0.99


def test_types_of_wide_tables_are_guessed_for_few_columns(monkeypatch):
    from pyarrow import csv

    asked, open_csv = [], csv.open_csv

    def noted(*arguments, convert_options, **options):
        asked.extend(convert_options.include_columns)
        return open_csv(*arguments, convert_options=convert_options, **options)

    monkeypatch.setattr(csv, "open_csv", noted)
    table = parse_csv(wide(5000), "t.csv")
    assert sorted(asked) == sorted(f"c{j}" for j in range(5000) if j % 50 in (3, 4))
    types = {str(kind) for kind in table.columns.schema.types}
    assert types == {"double", "string"}


@pytest.mark.parametrize("late", ["x", "true", ""])
def test_a_wide_table_reads_as_a_narrow_one(late, monkeypatch):
    """What the first row shows is only a guess."""
    from maxmargin.data import csv

    names = [f"c{j}" for j in range(30)]
    rows = [["1"] * 30, ["0.5"] * 15 + [late] * 15, ["1"] * 30]
    text = "\n".join(",".join([*row, "yes"]) for row in [names, *rows]).replace("yes", "label", 1).encode()
    narrow = parse_csv(text, "t.csv").columns
    monkeypatch.setattr(csv, "WIDE", 5)
    found = parse_csv(text, "t.csv").columns
    assert found.equals(narrow)


def test_summaries_are_those_of_each_column():
    from maxmargin.data.summaries import Summaries

    rng = np.random.default_rng(0)
    floats = rng.standard_normal(50)
    floats[[3, 7]] = np.nan
    singles = floats.astype(np.float32)
    columns = {
        "floats": pa.array(floats),
        "gaps": pa.array([None, *floats[1:]], from_pandas=True),
        "singles": pa.array(singles),
        "whole": pa.array([None, *range(49)], pa.int64()),
        "text": pa.array(["x"] * 50),
        "truth": pa.array([True, None] * 25),
        "decimal": pa.array(map(Decimal, range(50)), pa.decimal128(5, 2)),
        "infinite": pa.array([0.0] * 10 + [np.inf] * 40),
        "nothing": pa.array([None] * 50, pa.float64()),
    }
    table = pa.concat_tables([pa.table(columns).slice(0, 20), pa.table(columns).slice(20)])
    found = Summaries.of(table)
    assert found.positions.tolist() == [0, 1, 2, 3, 5, 6, 7, 8]
    assert found.n_gaps.tolist() == [2, 3, 2, 1, 25, 0, 0, 50]
    assert found.first_gap.tolist() == [3, 0, 3, 0, 1, 0, 0, 0]
    assert found.first_infinite.tolist() == [-1] * 6 + [10, -1]
    assert found.low.tolist() == [
        *(float(np.nanmin(values)) for values in (floats, floats[1:], singles)), 0.0, 1.0, 0.0, 0.0, np.inf
    ]  # fmt: skip
    assert found.high[3:7].tolist() == [48.0, 1.0, 49.0, np.inf]

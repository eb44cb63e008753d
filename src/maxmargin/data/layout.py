"""Where the rows of a CSV text are: header, delimiter, and the lines that rows stand on."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from maxmargin.data.errors import DataError
from maxmargin.data.table import is_number, unique_names

BLOCK = 1 << 20
LARGEST_BLOCK = 1 << 30
ROWS_OF_BLOCK = 64  # at least: PyArrow pays for each column of each block about as much as for 30 cells


@dataclass(frozen=True)
class Layout:
    """What the first line tells.

    Attributes
    ----------
    names : of the columns.
    delimiter : one character.
    begin, line : the byte and the line at which the rows begin, behind marks, blank lines and header.
    first : the line of the header or, without one, of the first row.
    block : bytes to parse at a time; the longest row must fit.
    """

    names: tuple[str, ...]
    delimiter: str
    begin: int
    line: int
    first: int
    block: int = BLOCK

    @classmethod
    def of(cls, raw: Any, source: str, header: bool | None = None, delimiter: str | None = None) -> Layout:
        """Look at the first line; what is not given, it decides."""
        view = memoryview(raw)
        if bytes(view[:2]) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise DataError(source, "file", "the text is UTF-16; convert it with iconv -f utf-16 -t utf-8")
        begin = 3 if bytes(view[:3]) == codecs.BOM_UTF8 else 0
        size, cells = BLOCK, None
        while cells is None:
            # Latin-1 makes each byte one character, and all that matters here is ASCII.
            text = io.StringIO(bytes(view[begin : begin + size]).decode("latin-1"), newline="")
            line, start, first = _first_line(text)
            if first is None:
                raise DataError(source, "file", "the file is empty")
            mark = delimiter or max(",;\t|", key=re.sub('"[^"]*"', "", first).count)
            if len(mark) != 1 or mark in '"\r\n\0' or not mark.isascii():
                raise DataError(source, "file", f"the delimiter must be one character, got {mark!r}")
            text.seek(start)
            cells, n_lines = _first_row(text, source, line, mark, whole=begin + size >= len(view))
            size *= 8
        if header if header is not None else not any(map(is_number, cells)):
            start, names = text.tell(), unique_names(source, _decoded(cells, source, line))
            after = line + n_lines
        else:
            names, after = tuple(f"x{i}" for i in range(len(cells))), line
        block = min(LARGEST_BLOCK, max(BLOCK, ROWS_OF_BLOCK * _line_length(view, begin + start)))
        return cls(names, mark, begin + start, after, line, block)

    def places(self, body: Any, rows: Sequence[int]) -> Iterator[tuple[int, slice]]:
        """First line and bytes of rows; they are counted from 1, increase, and leave out empty lines."""
        wanted, count = iter(rows), 0
        text = io.TextIOWrapper(io.BytesIO(body), encoding="latin-1", newline="")
        lines = _Counted(text)
        reader = csv.reader(lines, delimiter=self.delimiter)
        row = next(wanted, None)
        while row is not None:
            line, byte = self.line + reader.line_num, lines.n_read
            try:
                cells = next(reader, None)
            except csv.Error:  # a cell without end
                cells = ["", ""]
            if cells is None:
                return
            count += bool(cells)
            if count == row and cells:
                yield line, slice(byte, lines.n_read)
                row = next(wanted, None)


class _Counted:
    """The lines of a text, and how many characters they had so far."""

    def __init__(self, text: Any) -> None:
        self.text, self.n_read = text, 0

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> str:
        line: str = next(self.text)
        self.n_read += len(line)
        return line


def never_closed(text: bytes, delimiter: str) -> bool:
    """Whether a quote is opened in whole rows of text and never closed.

    Examples
    --------
    >>> never_closed(b'1,"a', ","), never_closed(b'1,"a"', ","), never_closed(b'5" pipe,2', ",")
    (True, False, False)
    """
    return _patterns(delimiter)[1].match(text, whole_rows_end(text, delimiter)) is not None


def whole_rows_end(text: bytes, delimiter: str) -> int:
    """How many bytes of a text that begins with a row are whole rows.

    A quote at the beginning of a cell opens it, "" in it is a quote, any other quote closes it for good.

    Examples
    --------
    >>> whole_rows_end(b'1,"a\\nb"\\n2,"c\\n', ",")
    8
    """
    row, end = _patterns(delimiter)[0], 0
    while found := row.match(text, end):
        end = found.end()
    return end


@cache
def _patterns(delimiter: str) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """A whole row with its line end; and the beginning of a row whose last cell is opened and never closed."""
    mark = re.escape(delimiter).encode("latin-1")
    opened = rb'"[^"]*+(?:""[^"]*+)*+'
    cell = rb"(?:%b\"?+)?+[^%b\r\n]*+" % (opened, mark)
    cells = rb"(?:%b%b)*+" % (cell, mark)
    # A carriage return at the very end may be half a line end.
    return re.compile(rb"%b%b(?:\r\n|\n|\r(?!\Z))" % (cells, cell)), re.compile(rb"%b%b\Z" % (cells, opened))


def _first_line(text: io.StringIO) -> tuple[int, int, str | None]:
    """Number, place and content of the first line that is not blank."""
    number, start = 1, 0
    for line in text:
        if line.strip():
            return number, start, line
        number, start = number + 1, text.tell()
    return number, start, None


def _first_row(text: io.StringIO, source: str, line: int, delimiter: str, whole: bool) -> tuple[list[str] | None, int]:
    """Cells of the row at which the text stands, and its lines; None if more text is needed to tell."""
    start = text.tell()
    reader = csv.reader(text, delimiter=delimiter)
    problem = 'a quote is opened here and never closed: look for a lone " character'
    try:
        cells = next(reader)
    except csv.Error:
        raise DataError(source, f"line {line}", problem) from None
    end = text.tell()
    text.seek(start)
    row = text.read(end - start)
    if text.read(1) == "" and not whole:
        return None, 0
    if never_closed(row.encode("latin-1"), delimiter):
        raise DataError(source, f"line {line}", problem)
    text.seek(end)
    return cells, reader.line_num


def _decoded(cells: list[str], source: str, line: int) -> list[str]:
    try:
        return [cell.encode("latin-1").decode("utf-8") for cell in cells]
    except UnicodeDecodeError:
        problem = "the header is not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"
        raise DataError(source, f"line {line}", problem) from None


def _line_length(view: memoryview, begin: int) -> int:
    size = BLOCK
    while True:
        end = bytes(view[begin : begin + size]).find(b"\n")
        if end >= 0 or begin + size >= len(view):
            return end if end >= 0 else len(view) - begin
        size *= 8

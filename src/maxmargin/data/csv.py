"""Comma-separated text: header, quotes, text labels, gaps. PyArrow does the parsing."""

from __future__ import annotations

import csv as textbook_csv
import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from maxmargin.data.arrow import import_arrow, table_from_arrow
from maxmargin.data.errors import DataError
from maxmargin.data.files import suffix_of, whole_content
from maxmargin.data.labels import label_text
from maxmargin.data.layout import LARGEST_BLOCK, Layout, never_closed
from maxmargin.data.svmlight import number
from maxmargin.data.table import Table, Target, find_target, is_number, written_names

GAPS = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "-NaN", "-nan", "<NA>")
WIDE = 1000  # columns; beyond, PyArrow's guesses about types take longer than the parsing
FEW = 8  # columns that are replaced one by one
SEARCHED = 1 << 16  # bytes that are looked through at a time: they fit in a cache


@dataclass(frozen=True)
class CsvOptions:
    """How the text is laid out; None lets the first line decide.

    Attributes
    ----------
    header : whether the first line holds names. None: it does unless one of its cells is a number.
    delimiter : one character. None: the one of , ; tab | that the first line has most of.
    na : texts that mean a missing value, beside the usual ones.
    decimal : the decimal point, one character. None: a point.
    """

    header: bool | None = None
    delimiter: str | None = None
    na: Sequence[str] = field(default=())
    decimal: str | None = None


def read_csv(
    path: str | os.PathLike[str],
    *,
    target: Target = None,
    drop: Sequence[str] = (),
    options: CsvOptions | None = None,
    max_bytes: int | None = None,
) -> Table:
    """Read a CSV file, compressed or not.

    Parameters
    ----------
    path : file name; .gz, .bz2 and .xz are unpacked on the way.
    target : the labels' column, by name or index.
    drop : names or indices of columns to leave out.
    options : header, delimiter and texts that mean a missing value.
    max_bytes : most bytes of text; None: a quarter of the memory for what is compressed or comes through a pipe.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "t.csv").write_text('age,"blood pressure",class\\n61,140,sick\\n35,120,well\\n')
    ...     table = read_csv(f"{folder}/t.csv")
    >>> table.names, table.y
    (('age', 'blood pressure'), array(['sick', 'well'], dtype='<U4'))
    """
    import_arrow("reading CSV")
    raw = whole_content(path, max_bytes)
    return parse_csv(raw, str(path), target=target, drop=drop, options=options_for(path, options))


def options_for(path: str | os.PathLike[str], options: CsvOptions | None) -> CsvOptions:
    """The options, with the delimiter that a name ending in .tsv stands for."""
    options = options or CsvOptions()
    if options.delimiter is None and suffix_of(path) == ".tsv":
        return replace(options, delimiter="\t")
    return options


def parse_csv(
    raw: Any,
    source: str,
    *,
    target: Target = None,
    drop: Sequence[str] = (),
    options: CsvOptions | None = None,
    bad_rows: list[BadRow] | None = None,
) -> Table:
    """Read CSV text from bytes or an Arrow buffer; with ``bad_rows``, rows of a wrong length go there instead."""
    options = options or CsvOptions()
    layout = Layout.of(raw, source, options.header, options.delimiter)
    body = import_arrow("reading CSV").py_buffer(raw).slice(layout.begin)
    if len(body) == 0:
        raise DataError(source, "file", "there is no row below the header")
    if options.decimal is not None and (len(options.decimal) != 1 or options.decimal == layout.delimiter):
        raise DataError(
            source, "file", f"the decimal point must be one character, not the delimiter; got {options.decimal!r}"
        )
    position = find_target(source, layout.names, target)
    arrow = _read(body, source, layout, options, position, bad_rows)
    # A delimiter at the end of every line makes a column without name and content.
    nameless = [i for i, column in enumerate(arrow.columns) if not layout.names[i] and column.null_count == len(column)]
    arrow = arrow.drop_columns([arrow.column_names[i] for i in nameless]) if nameless else arrow
    name = layout.names[position] if position is not None else False
    return table_from_arrow(arrow, source, target=name, drop=drop)


@dataclass(frozen=True)
class BadRow:
    """A row with more or fewer cells than the first one."""

    line: int
    expected: int
    found: int
    text: str


def _read(
    body: Any, source: str, layout: Layout, options: CsvOptions, target: int | None, bad_rows: list[BadRow] | None
) -> Any:
    """The Arrow table: numbers where the first block shows numbers, and text where it does not."""
    pa = import_arrow("reading CSV")
    # Without quotes, every line end ends a row, and blocks can be cut at line ends.
    parse = {"delimiter": layout.delimiter, "newlines_in_values": _has_quotes(body)}
    gaps = [*GAPS, *options.na]
    try:
        types = _types_of_first_block(body, layout, gaps, parse, target)
        arrow = _parse(body, layout, gaps, parse, types, layout.block)
    except pa.ArrowInvalid:
        arrow = _read_as_text(body, source, layout, gaps, parse, bad_rows)
    if parse["newlines_in_values"] and _left_open(arrow, body, layout):
        n_rows = arrow.num_rows + len(bad_rows or ())
        raise _open_quote(source, next(layout.places(body, [n_rows]))[0])
    return _numbers_where_possible(arrow, gaps, target, options.decimal)


def _has_quotes(body: Any) -> bool:
    view = memoryview(body)
    return any(b'"' in bytes(view[begin : begin + SEARCHED]) for begin in range(0, len(view), SEARCHED))


def _read_as_text(
    body: Any, source: str, layout: Layout, gaps: list[str], parse: dict[str, Any], bad_rows: list[BadRow] | None
) -> Any:
    """All columns as text, one row after the other: for a column of numbers that turns to text, or a broken line."""
    pa = import_arrow("reading CSV")
    text = {name: pa.string() for name in layout.names}
    block = layout.block
    undecodable = None if bad_rows is None else _undecodable(body, source, layout)
    if undecodable:  # PyArrow could not hand such rows over
        raise undecodable
    while True:
        skipped: list[Any] = []
        skip = {} if bad_rows is None else {"invalid_row_handler": _collector(skipped)}
        try:
            arrow = _parse(body, layout, gaps, parse | skip, text, block, threads=False)
            break
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error) or block >= min(len(body), LARGEST_BLOCK):
                raise _explain(str(error), body, source, layout) from None
        block = min(16 * block, LARGEST_BLOCK)
    if bad_rows is not None:
        lines = layout.places(body, [row.number for row in skipped])
        for row, (line, _) in zip(skipped, lines, strict=False):
            bad_rows.append(BadRow(line, row.expected_columns, row.actual_columns, row.text))
    return arrow


def _collector(skipped: list[Any]) -> Any:
    def skip(row: Any) -> str:
        skipped.append(row)
        return "skip"

    return skip


def _parse(
    body: Any, layout: Layout, gaps: list[str], parse: dict[str, Any], types: Any, block: int, threads: bool = True
) -> Any:
    pa = import_arrow("reading CSV")
    from pyarrow import csv

    return csv.read_csv(
        pa.BufferReader(body),
        read_options=csv.ReadOptions(column_names=list(layout.names), use_threads=threads, block_size=block),
        parse_options=csv.ParseOptions(**parse),
        convert_options=csv.ConvertOptions(null_values=gaps, strings_can_be_null=True, column_types=types),
    )


def _types_of_first_block(
    body: Any, layout: Layout, gaps: list[str], parse: dict[str, Any], target: int | None
) -> dict[str, Any]:
    pa = import_arrow("reading CSV")
    from pyarrow import csv

    types: dict[str, Any] = {}
    if target is not None:
        types[layout.names[target]] = pa.string()  # 01 and 1 may be two labels: _numbers_where_possible decides
    if len(layout.names) > WIDE:
        types |= dict.fromkeys(_numbers_in_first_row(body, layout) - types.keys(), pa.float64())
    unknown = [name for name in layout.names if name not in types]
    if not unknown:
        return types
    reader = csv.open_csv(
        pa.BufferReader(body),
        read_options=csv.ReadOptions(column_names=list(layout.names), block_size=layout.block),
        parse_options=csv.ParseOptions(**parse),
        convert_options=csv.ConvertOptions(null_values=gaps, strings_can_be_null=True, include_columns=unknown),
    )
    for column in reader.schema:
        if pa.types.is_integer(column.type) or pa.types.is_null(column.type):
            types[column.name] = pa.float64()
        elif pa.types.is_floating(column.type) or pa.types.is_boolean(column.type):
            types[column.name] = column.type
        else:
            types[column.name] = pa.string()
    return types


def _numbers_in_first_row(body: Any, layout: Layout) -> set[str]:
    """Columns that begin with a number; where one goes on with text, the table is read as text after all."""
    body = body.slice(0, min(len(body), layout.block))  # a block has the first row, unless that row is too long for any
    for _, span in layout.places(body, [1]):
        text = io.StringIO(bytes(memoryview(body)[span]).decode("latin-1"), newline="")
        cells = next(textbook_csv.reader(text, delimiter=layout.delimiter))
        return {name for name, cell in zip(layout.names, cells, strict=False) if is_number(cell)}
    return set()


def _numbers_where_possible(table: Any, gaps: list[str], target: int | None, decimal: str | None) -> Any:
    """Text columns without the gaps that blanks surround, and as numbers if nothing but numbers is left."""
    pa = import_arrow("reading CSV")
    from pyarrow import compute

    texts = [position for position, kind in enumerate(table.schema.types) if pa.types.is_string(kind)]
    converted = {}
    for position in texts:
        column = table.column(position)
        trimmed = compute.utf8_trim_whitespace(column)
        missing = compute.is_in(trimmed, value_set=pa.array(gaps))
        if compute.any(missing).as_py():
            trimmed = compute.if_else(missing, None, trimmed)
            column = compute.if_else(missing, None, column)
        if decimal is not None and position != target:
            trimmed = compute.replace_substring(trimmed, decimal, ".")
        for kind in _kinds(trimmed, position == target):
            try:
                column = compute.cast(trimmed, kind)
                break
            except pa.ArrowInvalid:
                continue
        converted[position] = column
    return _with_columns(table, converted)


def _with_columns(table: Any, new: dict[int, Any]) -> Any:
    """The table with some columns replaced. Each replacement by itself takes as long as the table is wide."""
    if len(new) <= FEW:
        for position, column in new.items():
            table = table.set_column(position, table.schema.field(position).name, column)
        return table
    columns = [new.get(position, column) for position, column in enumerate(table.columns)]
    return import_arrow("reading CSV").table(columns, names=table.column_names)


def _kinds(text: Any, is_target: bool) -> list[Any]:
    """The types that a text column may turn into; labels such as 01 are names, not numbers."""
    pa = import_arrow("reading CSV")
    from pyarrow import compute

    if not is_target:
        return [pa.float64(), pa.bool_()]
    names = compute.any(compute.match_substring_regex(text, r"^[+-]?0\d")).as_py()
    return [] if names else [pa.int64(), pa.float64()]


def _left_open(arrow: Any, body: Any, layout: Layout) -> bool:
    """Whether a quote is never closed: PyArrow takes all that follows it for one cell, so it is in the last row."""
    pa = import_arrow("reading CSV")
    if arrow.num_rows == 0:
        return False
    cells = [c[-1].as_py() or "" if pa.types.is_string(c.type) else "" for c in arrow.columns]
    tail = bytes(memoryview(body)[-layout.block :])
    stripped = tail.rstrip(b"\r\n")
    if len(stripped) < len(tail):
        return cells[-1].endswith(("\r", "\n")) and not stripped.endswith(b'"')
    lines = re.split(rb"(?<=\n)|(?<=\r)(?!\n)", tail)
    n_lines = 1 + sum(len(re.findall(r"\r\n?|\n", cell)) for cell in cells)
    return never_closed(b"".join(lines[-n_lines:]), layout.delimiter)


def _open_quote(source: str, line: int) -> DataError:
    return DataError(
        source, f"line {line}", 'a quote is opened in this row and never closed: look for a lone " character'
    )


def _explain(message: str, body: Any, source: str, layout: Layout) -> DataError:
    """PyArrow's message with the place as ours."""
    found = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)(?:: (.*))?", message, re.DOTALL)
    if found:
        row, expected, got, text = found.groups()
        for line, span in layout.places(body, [int(row)]):
            if never_closed(bytes(memoryview(body)[span]), layout.delimiter):
                return _open_quote(source, line)
            shown = (text or "").strip()[:60]
            return DataError(
                source,
                f"line {line}",
                f"expected {expected} cells as in line {layout.first}, found {got} ({shown!r}). Quote cells that "
                f"contain {layout.delimiter!r}, or name another delimiter",
            )
    found = re.search(r"In CSV column #(\d+):.*invalid UTF8", message, re.DOTALL)
    undecodable = _undecodable(body, source, layout, f"column {layout.names[int(found[1])]!r}, ") if found else None
    if undecodable:
        return undecodable
    if "straddling" in message:
        return DataError(source, "file", "a row is longer than 1 GB; is the delimiter right?")
    return DataError(source, "file", message.strip()[:200])


def _undecodable(body: Any, source: str, layout: Layout, column: str = "") -> DataError | None:
    """The error for text that is not UTF-8, if it is not."""
    try:
        str(body, "utf-8")
    except UnicodeDecodeError as error:
        line = layout.line + len(re.findall(rb"\r\n?|\n", memoryview(body)[: error.start]))
        problem = "the text is not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"
        return DataError(source, f"{column}line {line}", problem)
    return None


def write_csv(table: Table, file: IO[bytes], *, delimiter: str = ",") -> None:
    """Write feature columns and labels, with a header; every value reads back as the same float64."""
    text = io.StringIO()
    writer = textbook_csv.writer(text, delimiter=delimiter, lineterminator="\n")
    _refuse_what_reads_back_otherwise(table)
    writer.writerow(written_names(table))
    block = 1024
    for begin in range(0, table.n_rows, block):
        part = table.columns[begin : begin + block]
        rows = (part.toarray() if sp.issparse(part) else part).astype(np.float64).tolist()
        labels = None if table.y is None else [label_text(v) for v in table.y[begin : begin + block].tolist()]
        for i, row in enumerate(rows):
            cells = [number(value) for value in row]
            writer.writerow(cells if labels is None else [*cells, labels[i]])
        file.write(text.getvalue().encode())
        text.seek(0)
        text.truncate()


def _refuse_what_reads_back_otherwise(table: Table) -> None:
    """Names that make the header look like a row, and labels that look like gaps."""
    numbers = [name for name in written_names(table) if is_number(name)]
    if numbers:
        raise DataError(
            table.source,
            "header",
            f"the column name {numbers[0]!r} is a number, so a CSV header would look like a row; "
            "rename the column, or write Parquet",
        )
    if table.y is None:
        return
    gaps = sorted({label_text(label) for label in np.unique(table.y).tolist()} & set(GAPS))
    if gaps:
        raise DataError(
            table.source, "labels", f"in CSV the label {gaps[0]!r} means a missing value; rename it, or write Parquet"
        )

"""Comma-separated text: header, quotes, text labels, gaps. PyArrow does the parsing."""

from __future__ import annotations

import csv as textbook_csv
import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from maxmargin.data.arrow import import_arrow, table_from_arrow
from maxmargin.data.errors import DataError
from maxmargin.data.files import open_bytes
from maxmargin.data.svmlight import number
from maxmargin.data.table import Table, find_target, unique_names

GAPS = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "-NaN", "-nan", "<NA>")
BLOCK = 1 << 20


@dataclass(frozen=True)
class CsvOptions:
    """How the text is laid out; None lets the first line decide.

    Attributes
    ----------
    header : whether the first line holds names. None: it does unless one of its cells is a number.
    delimiter : one character. None: the one of , ; tab | that the first line has most of.
    na : texts that mean a missing value, beside the usual ones.
    """

    header: bool | None = None
    delimiter: str | None = None
    na: Sequence[str] = field(default=())


def read_csv(
    path: str | os.PathLike[str],
    *,
    target: str | int | None = None,
    drop: Sequence[str] = (),
    options: CsvOptions | None = None,
) -> Table:
    """Read a CSV file, compressed or not.

    Parameters
    ----------
    path : file name; .gz, .bz2 and .xz are unpacked on the way.
    target : the labels' column, by name or index.
    drop : names or indices of columns to leave out.
    options : header, delimiter and texts that mean a missing value.

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
    with open_bytes(path) as file:
        raw = _map_if_plain(path) or file.read()
    return parse_csv(raw, str(path), target=target, drop=drop, options=options)


def _map_if_plain(path: str | os.PathLike[str]) -> Any:
    """A memory map of an uncompressed file: PyArrow parses it without a copy."""
    from maxmargin.data.files import COMPRESSED

    pa = import_arrow("reading CSV")
    if os.path.splitext(path)[1].lower() in COMPRESSED or os.path.getsize(path) == 0:
        return None
    if not os.path.isfile(path):  # a pipe
        return None
    return pa.memory_map(os.fspath(path)).read_buffer()


def parse_csv(
    raw: Any,
    source: str,
    *,
    target: str | int | None = None,
    drop: Sequence[str] = (),
    options: CsvOptions | None = None,
    bad_rows: list[Any] | None = None,
) -> Table:
    """Read CSV text from bytes or an Arrow buffer; with ``bad_rows``, rows of a wrong length go there instead."""
    options = options or CsvOptions()
    layout = Layout.of(raw, source, options)
    arrow = _read(raw, source, layout, options, find_target(source, layout.names, target), bad_rows)
    return table_from_arrow(arrow, source, target=target, drop=drop)


@dataclass(frozen=True)
class Layout:
    """Names, delimiter, and whether the first line holds the names."""

    names: tuple[str, ...]
    delimiter: str
    header: bool

    @classmethod
    def of(cls, raw: Any, source: str, options: CsvOptions) -> Layout:
        head = bytes(memoryview(raw)[:BLOCK]).decode("utf-8-sig", errors="replace")
        first = next((line for line in head.splitlines() if line.strip()), None)
        if first is None:
            raise DataError(source, "file", "the file is empty")
        delimiter = options.delimiter or max(",;\t|", key=_outside_quotes(first).count)
        if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
            raise DataError(source, "file", f"the delimiter must be one character, got {delimiter!r}")
        try:
            # A name in quotes may contain line ends, so the reader gets more than the first line.
            cells = next(textbook_csv.reader(io.StringIO(head.lstrip("\r\n")), delimiter=delimiter))
        except (textbook_csv.Error, StopIteration) as error:
            raise DataError(source, "line 1", f"the first line cannot be read: {error}") from None
        header = options.header if options.header is not None else not any(map(_is_number, cells))
        if not header:
            return cls(tuple(f"x{i}" for i in range(len(cells))), delimiter, False)
        return cls(unique_names(source, cells), delimiter, True)


def _outside_quotes(line: str) -> str:
    return re.sub(r'"[^"]*"', "", line)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return cell.strip().lower().lstrip("+-") not in ("nan", "inf", "infinity")


def _read(
    raw: Any, source: str, layout: Layout, options: CsvOptions, target: int | None, bad_rows: list[Any] | None
) -> Any:
    """The Arrow table: numbers where the first block shows numbers, and text where it does not."""
    pa = import_arrow("reading CSV")
    parse: dict[str, Any] = {"delimiter": layout.delimiter, "newlines_in_values": False}
    try:
        types = _types_of_first_block(raw, layout, options, parse, target)
        return _parse(raw, layout, options, parse, types)
    except pa.ArrowInvalid:
        pass
    # A number column that turns to text further down, a line end inside quotes, or a broken line: take everything
    # as text, one row after the other, and decide column by column.
    parse["newlines_in_values"] = True
    if bad_rows is not None:
        parse["invalid_row_handler"] = _collector(bad_rows)
    try:
        text = _parse(raw, layout, options, parse, {name: pa.string() for name in layout.names}, threads=False)
    except pa.ArrowInvalid as error:
        raise _explain(str(error), source, layout) from None
    return _numbers_where_possible(text, target)


def _collector(bad_rows: list[Any]) -> Any:
    def skip(row: Any) -> str:
        bad_rows.append(row)
        return "skip"

    return skip


def _parse(
    raw: Any, layout: Layout, options: CsvOptions, parse: dict[str, Any], types: dict[str, Any], threads: bool = True
) -> Any:
    pa = import_arrow("reading CSV")
    from pyarrow import csv

    return csv.read_csv(
        pa.BufferReader(raw),
        read_options=_read_options(layout, threads),
        parse_options=csv.ParseOptions(**parse),
        convert_options=_convert_options(options, types),
    )


def _read_options(layout: Layout, threads: bool = True) -> Any:
    from pyarrow import csv

    return csv.ReadOptions(
        column_names=list(layout.names), skip_rows_after_names=int(layout.header), use_threads=threads, block_size=BLOCK
    )


def _convert_options(options: CsvOptions, types: dict[str, Any] | None = None) -> Any:
    from pyarrow import csv

    gaps = [*GAPS, *options.na]
    return csv.ConvertOptions(null_values=gaps, strings_can_be_null=True, column_types=types)


def _types_of_first_block(
    raw: Any, layout: Layout, options: CsvOptions, parse: dict[str, Any], target: int | None
) -> dict[str, Any]:
    pa = import_arrow("reading CSV")
    from pyarrow import csv

    reader = csv.open_csv(
        pa.BufferReader(raw),
        read_options=_read_options(layout),
        parse_options=csv.ParseOptions(**parse),
        convert_options=_convert_options(options),
    )
    types: dict[str, Any] = {}
    for position, column in enumerate(reader.schema):
        if position == target:
            # Whole numbers stay whole; what is not a number is text.
            keep = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
            types[column.name] = column.type if keep else pa.string()
        elif pa.types.is_integer(column.type) or pa.types.is_null(column.type):
            types[column.name] = pa.float64()
        elif pa.types.is_floating(column.type) or pa.types.is_boolean(column.type):
            types[column.name] = column.type
        else:
            types[column.name] = pa.string()
    return types


def _numbers_where_possible(text: Any, target: int | None) -> Any:
    pa = import_arrow("reading CSV")
    from pyarrow import compute

    columns = []
    for position, column in enumerate(text.columns):
        trimmed = compute.utf8_trim_whitespace(column)
        for kind in ([pa.int64()] if position == target else []) + [pa.float64()]:
            try:
                column = compute.cast(trimmed, kind)
                break
            except pa.ArrowInvalid:
                continue
        columns.append(column)
    return pa.table(columns, names=text.column_names)


def _explain(message: str, source: str, layout: Layout) -> DataError:
    """PyArrow's message with the place as ours."""
    found = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)(?:: (.*))?", message, re.DOTALL)
    if found:
        row, expected, got, text = found.groups()
        shown = (text or "").strip()[:60]
        return DataError(
            source,
            f"line {row}",
            f"expected {expected} cells as in the first line, found {got} ({shown!r}). Quote cells that contain "
            f"{layout.delimiter!r}, or name another delimiter",
        )
    found = re.search(r"In CSV column #(\d+): (?:Row #(\d+): )?(.*)", message, re.DOTALL)
    if found:
        column, row, what = found.groups()
        name = layout.names[int(column)] if int(column) < len(layout.names) else column
        place = f"column {name!r}" + (f", line {row}" if row else "")
        if "invalid UTF8" in what:
            what = "the text is not UTF-8; convert the file, for example with iconv -f latin1 -t utf8"
        return DataError(source, place, what.strip()[:200])
    if "straddling" in message:
        return DataError(
            source,
            "file",
            'a row is longer than 1 MB, or a quote is opened and never closed: look for a lone " character',
        )
    if "Empty CSV" in message:
        return DataError(source, "file", "there is no row below the header")
    return DataError(source, "file", message.strip()[:200])


def write_csv(table: Table, file: IO[bytes]) -> None:
    """Write feature columns and labels, with a header; every value reads back as the same float64."""
    names = list(table.names or (f"x{i}" for i in range(table.n_columns)))
    target = [] if table.y is None else [table.target or "label"]
    text = io.StringIO()
    writer = textbook_csv.writer(text, lineterminator="\n")
    writer.writerow(names + target)
    block = 1024
    for begin in range(0, table.n_rows, block):
        part = table.columns[begin : begin + block]
        rows = (part.toarray() if sp.issparse(part) else part).astype(np.float64).tolist()
        labels = None if table.y is None else table.y[begin : begin + block].tolist()
        for i, row in enumerate(rows):
            cells = [number(value) for value in row]
            writer.writerow(cells if labels is None else [*cells, labels[i]])
        file.write(text.getvalue().encode())
        text.seek(0)
        text.truncate()

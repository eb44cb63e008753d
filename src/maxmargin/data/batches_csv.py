"""CSV text, some megabytes at a time: the rows as :mod:`maxmargin.data.csv` reads them, numbers only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from maxmargin.data.arrow import import_arrow
from maxmargin.data.batches_pieces import (
    HEAD,
    Anchor,
    Choice,
    Piece,
    PieceReader,
    RowTooLong,
    bytes_on_disk,
    go_behind_row,
    matrix_of,
    refuse_missing_labels,
    steady,
    text_error,
    whole_rows,
    without_gaps,
)
from maxmargin.data.csv import (
    GAPS,
    CsvOptions,
    _numbers_where_possible,
    _open_quote,
    _parse,
    _read_as_text,
    options_for,
    parse_csv,
)
from maxmargin.data.encoding import is_text
from maxmargin.data.errors import DataError
from maxmargin.data.files import open_bytes
from maxmargin.data.labels import plain_labels
from maxmargin.data.layout import Layout, whole_rows_end
from maxmargin.data.table import Table, Target

LONGEST_HEAD = 1 << 26
TRUTH = ("true", "false", "1", "0")


class CsvPieces(PieceReader):
    """Rows of a CSV file; its first megabyte decides what the columns and the labels are.

    An anchor holds the byte in the unpacked text, the line, and the row. To continue in a compressed file, it is
    unpacked again from the beginning.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        target: Target,
        drop: Sequence[str],
        options: CsvOptions | None,
        batch_bytes: int,
        missing: str,
        max_bytes: int | None = None,
    ) -> None:
        import_arrow("reading CSV")
        self.path, self.source, self.batch_bytes, self.missing = path, str(path), batch_bytes, missing
        self.max_bytes = max_bytes
        self.size = os.path.getsize(path)
        self.options = options_for(path, options)
        self.gaps = [*GAPS, *self.options.na]
        head, self.layout = self._head()
        table = parse_csv(head, self.source, target=target, drop=drop, options=self.options)
        labels = None if target is False else table.labels()
        self._choose(table, Choice.of(self.source, self.layout.names, target, drop))
        self._refuse_text_columns(table, head)
        self.label_type = np.dtype(float) if labels is None else labels.dtype

    def _head(self) -> tuple[bytes, Layout]:
        """The first whole rows, and the layout; more than a megabyte if the first rows are longer."""
        size = HEAD
        while True:
            with open_bytes(self.path, self.max_bytes) as file:
                head, more = file.read(size), b"?"
                while len(head) < size and more:
                    more = file.read(size - len(head))
                    head += more
            whole = len(head) < size
            try:
                layout = Layout.of(head, self.source, self.options.header, self.options.delimiter)
            except DataError:
                if whole or size >= LONGEST_HEAD:
                    raise
            else:
                end = len(head) if whole else layout.begin + end_of_rows(head[layout.begin :], layout.delimiter)
                if whole or end > layout.begin or size >= LONGEST_HEAD:
                    return head[:end], layout
            size *= 8

    def _choose(self, table: Table, choice: Choice) -> None:
        pa = import_arrow("reading CSV")
        kept = set(table.names or ())
        # A delimiter at the end of every line makes a column without name and content, which is no feature.
        nameless = [i for i in choice.features if choice.names[i] not in kept]
        self.nameless = nameless[0] if nameless else None
        self.choice = replace(choice, features=tuple(i for i in choice.features if i not in nameless))
        self.names = self.choice.feature_names
        self.n_features = len(self.names)
        self.truth = [pa.types.is_boolean(table.columns.column(name).type) for name in self.names]
        self.types = {name: pa.string() for name in choice.names}
        self.types |= {
            name: pa.bool_() if truth else pa.float64() for name, truth in zip(self.names, self.truth, strict=True)
        }

    def _refuse_text_columns(self, table: Table, head: bytes) -> None:
        for position, name in enumerate(self.names or ()):
            column = table.columns.column(name)
            if is_text(column):
                place = _places(head[self.layout.begin :], self.layout, 0)
                self._refuse_cell(column.to_pylist(), position, place)

    def pieces(self, begin: Anchor | None = None) -> Iterator[Piece]:
        layout = self.layout
        at = begin or {"row": 0, "share": 0.0, "disk": 0, "byte": layout.begin, "line": layout.line}
        with open_bytes(self.path, self.max_bytes) as file:
            go_behind_row(file, self.source, at)
            try:
                for text, last in whole_rows(file, self.batch_bytes, lambda text: end_of_rows(text, layout.delimiter)):
                    if last:
                        self._refuse_open_quote(text, at)
                    byte = at["byte"] + len(text)
                    disk, line = bytes_on_disk(self.path, file, byte), at["line"] + _count_lines(text)
                    share = min(1.0, disk / self.size)
                    end = {"row": at["row"], "share": share, "disk": disk, "byte": byte, "line": line}
                    piece = None
                    if text.strip(b"\r\n"):
                        X, y, end["row"] = self._rows(text, at)
                        piece = Piece(X, y, at, end)
                        del X, y
                    at, text = end, b""  # whoever has the rows does not need their text
                    if piece is not None:
                        yield piece
            except RowTooLong:
                problem = "the row that begins here is longer than 64 MB, too long for a batch"
                raise DataError(self.source, f"line {at['line']}", f'{problem}; look for a lone " character') from None

    def _rows(self, text: bytes, at: Anchor) -> tuple[Any, Any, int]:
        """Matrix and labels of whole rows of text, and how many rows of the file are behind then."""
        here = replace(self.layout, line=at["line"])
        place = _places(text, here, at["row"])
        arrow, features = self._columns(text, here, place)
        if self.nameless is not None:
            self._refuse_nameless(arrow.column(self.nameless), place)
        y = None if self.choice.target is None else self._labels(arrow.column(self.choice.target), place)
        X = matrix_of(features, np.float64)
        end = at["row"] + arrow.num_rows
        del arrow, features
        import_arrow("reading CSV").default_memory_pool().release_unused()  # or every batch leaves some behind
        X, y = without_gaps(X, y, self.missing, self.source, self.names, place)
        return X, y, end

    def _columns(self, text: bytes, here: Layout, place: Callable[[int], str]) -> tuple[Any, Any]:
        """All columns, and those of the features as numbers."""
        pa = import_arrow("reading CSV")
        body, quoted = pa.py_buffer(text), b'"' in text
        parse = {"delimiter": here.delimiter, "newlines_in_values": quoted}
        if self.options.decimal is None:
            try:
                arrow = _parse(body, here, self.gaps, parse, self.types, here.block)
                return arrow, arrow.select(list(self.choice.features))
            except pa.ArrowInvalid:
                pass  # blanks around a gap, or an error that is found below
        arrow = _read_as_text(body, self.source, here, self.gaps, parse, None)
        written = arrow.select(list(self.choice.features))
        features = _numbers_where_possible(written, self.gaps, None, self.options.decimal)
        for position, column in enumerate(features.columns):
            if not _fits(column, self.truth[position]):
                self._refuse_cell(written.column(position).to_pylist(), position, place)
        return arrow, features

    def _refuse_cell(self, cells: list[str | None], position: int, place: Callable[[int], str]) -> NoReturn:
        """The error for the first cell that is not what its column holds; one of them is not."""
        name, truth = (self.names or [])[position], self.truth[position]
        decimal = self.options.decimal or "."
        for row, cell in enumerate(cells):
            text = (cell or "").strip()
            if text in self.gaps:
                continue
            if truth and text.lower() not in TRUTH:
                where = f"column {name!r}, {place(row)}"
                raise DataError(self.source, where, f"expected true or false as before, found {text[:60]!r}")
            if not truth and not _is_read_as_number(text.replace(decimal, ".")):
                raise text_error(self.source, f"column {name!r}, {place(row)}", name, f"the text {text[:60]!r}")
        raise text_error(self.source, f"column {name!r}, {place(0)}", name, f"the text {(cells[0] or '')[:60]!r}")

    def _refuse_nameless(self, column: Any, place: Callable[[int], str]) -> None:
        filled = np.flatnonzero(np.asarray(column.is_valid().to_numpy()))
        if len(filled):
            raise DataError(
                self.source,
                place(int(filled[0])),
                f"there is a cell, {column[int(filled[0])].as_py()[:60]!r}, below an empty place of the header; name "
                "the column, or remove the cell",
            )

    def _labels(self, column: Any, place: Callable[[int], str]) -> NDArray[Any]:
        """Labels as text or numbers, whichever the first rows of the file have."""
        pa = import_arrow("reading labels")
        from pyarrow import compute

        assert self.choice.target is not None
        name = self.choice.names[self.choice.target]
        trimmed = compute.utf8_trim_whitespace(column).combine_chunks()
        missing = compute.or_kleene(compute.is_null(trimmed), compute.is_in(trimmed, value_set=pa.array(self.gaps)))
        refuse_missing_labels(np.asarray(missing.to_numpy(zero_copy_only=False)), self.source, name, place)
        if self.label_type.kind == "U":
            coded = trimmed.dictionary_encode()
            return np.asarray(np.asarray(coded.dictionary.to_pylist())[coded.indices.to_numpy()])
        return steady(self._numeric_labels(trimmed, name, place), self.label_type)

    def _numeric_labels(self, cells: Any, name: str, place: Callable[[int], str]) -> NDArray[Any]:
        pa = import_arrow("reading labels")
        from pyarrow import compute

        # 01 is a name, not a number
        named = np.asarray(compute.match_substring_regex(cells, r"^[+-]?0\d").to_numpy(zero_copy_only=False))
        for kind in () if named.any() else (pa.int64(), pa.float64()):
            try:
                numbers = np.asarray(cells.cast(kind).to_numpy())
            except pa.ArrowInvalid:
                continue
            refuse_missing_labels(np.isnan(numbers), self.source, name, place)
            return plain_labels(numbers)
        texts = cells.to_pylist()
        row = next((i for i, text in enumerate(texts) if named[i] or not _is_read_as_number(text)), 0)
        raise DataError(
            self.source,
            f"column {name!r}, {place(row)}",
            f"expected a number as label, as in the rows before, found the text {texts[row][:60]!r}. Write all labels "
            "as numbers, or all as text",
        )

    def _refuse_open_quote(self, text: bytes, at: Anchor) -> None:
        if b'"' not in text:
            return
        end = end_of_rows(text + b"\n", self.layout.delimiter)
        if end <= len(text):
            raise _open_quote(self.source, at["line"] + _count_lines(text[:end]))


def _fits(column: Any, truth: bool) -> bool:
    """Whether a column is what the first rows have: numbers, or truth values, which 0 and 1 may stand for."""
    pa = import_arrow("reading CSV")
    if not truth or not pa.types.is_floating(column.type):
        return bool(pa.types.is_boolean(column.type) if truth else pa.types.is_floating(column.type))
    from pyarrow import compute

    return bool(compute.all(compute.is_in(column.drop_null(), value_set=pa.array([0.0, 1.0])), min_count=0).as_py())


def _is_read_as_number(cell: str) -> bool:
    """Whether PyArrow takes a cell for a number; some versions refuse the sign +."""
    pa = import_arrow("reading CSV")
    try:
        pa.array([cell]).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _count_lines(text: bytes) -> int:
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")


def _places(text: bytes, here: Layout, first_row: int) -> Callable[[int], str]:
    """Where a row of the text is, for messages."""

    def place(row: int) -> str:
        for line, _ in here.places(text, [row + 1]):
            return f"row {first_row + row}, line {line}"
        return f"row {first_row + row}"

    return place


def end_of_rows(text: bytes, delimiter: str) -> int:
    """How many bytes of a text that begins with a row are whole rows; quoted cells may hold line ends.

    Examples
    --------
    >>> end_of_rows(b"1,2\\n3,", ","), end_of_rows(b'1,2\\n3,"a\\nb', ","), end_of_rows(b'1,2\\n3,5" wide\\n', ",")
    (4, 4, 14)
    """
    end = _last_line_end(text, len(text))
    if end == 0 or b'"' not in text:
        return end
    marks = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(marks == ord('"'))
    if not _in_pairs(marks, quotes, delimiter):
        return whole_rows_end(text, delimiter)
    while end:
        before = int(np.searchsorted(quotes, end))
        if before % 2 == 0:
            return end
        end = _last_line_end(text, int(quotes[before - 1]))  # this line end is inside a quoted cell
    return 0


def _last_line_end(text: bytes, stop: int) -> int:
    found = text.rfind(b"\n", 0, stop)
    # A carriage return at the very end may be half a line end.
    return found + 1 if found >= 0 else text.rfind(b"\r", 0, max(0, stop - 1)) + 1


def _in_pairs(marks: NDArray[np.uint8], quotes: NDArray[Any], delimiter: str) -> bool:
    """Whether every other quote opens a cell and every other closes one; "" in a cell closes and opens it."""
    borders = np.frombuffer(f'{delimiter}\r\n"'.encode(), np.uint8)
    opening, closing = quotes[0::2], quotes[1::2]
    before, after = marks[opening[opening > 0] - 1], marks[closing[closing < len(marks) - 1] + 1]
    return bool(np.isin(before, borders).all() and np.isin(after, borders).all())

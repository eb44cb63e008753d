"""svmlight text, some megabytes at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.data.batches_pieces import (
    HEAD,
    Anchor,
    Piece,
    PieceReader,
    RowTooLong,
    bytes_on_disk,
    go_behind_row,
    whole_rows,
)
from maxmargin.data.errors import DataError
from maxmargin.data.files import open_bytes
from maxmargin.data.labels import plain_labels
from maxmargin.data.svmlight import _matrix
from maxmargin.runtime import effective_threads

STEP = 1 << 20  # bytes a thread is given at a time: what it finds is copied, so this stays small
LARGEST_WIDTH = int(np.iinfo(np.int32).max)


@dataclass(frozen=True)
class _Found:
    """What the parser made of some lines; columns are as written, ``lines`` tells where each row stands."""

    values: NDArray[Any]
    columns: NDArray[Any]
    row_ends: NDArray[Any]
    labels: NDArray[Any]
    lines: NDArray[Any]
    begin: Anchor
    end: Anchor


class SvmlightPieces(PieceReader):
    """Rows of a svmlight file; what is not known of its columns, the first pass finds out.

    An anchor holds the byte in the unpacked text, the line, and the row. To continue in a compressed file, it is
    unpacked again from the beginning.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        n_features: int | None,
        zero_based: bool | None,
        batch_bytes: int,
        max_bytes: int | None = None,
    ) -> None:
        self.path, self.source, self.batch_bytes, self.max_bytes = path, str(path), batch_bytes, max_bytes
        self.asked_features, self.zero_based = n_features, zero_based
        if zero_based is not None:
            self.n_features = n_features  # else whether the columns count from 0 is not known yet
        self.size = os.path.getsize(path)
        head = next(self._found(None, HEAD), None)
        if head is None:
            raise DataError(self.source, "file", "there are no rows: the file is empty or holds only comments")
        self.whole_labels = plain_labels(head.labels).dtype.kind == "i"

    def pieces(self, begin: Anchor | None = None) -> Iterator[Piece]:
        assert self.n_features is not None  # given, or found by a first pass
        first = 0 if self.zero_based else 1
        for found in self._found(begin, self.batch_bytes):
            self._refuse_columns(found, first, first + self.n_features)
            np.subtract(found.columns, first, out=found.columns)
            yield self._piece(found, self.n_features)

    def first_pass(self) -> Iterator[Piece]:
        """All rows; as long as the columns are not known, they are numbered as in the file."""
        if self.n_features is not None:
            yield from self.pieces()
            return
        smallest, largest = LARGEST_WIDTH, -1
        # A column above all that could be meant is refused at once.
        end = LARGEST_WIDTH if self.asked_features is None else self.asked_features + (self.zero_based is not True)
        for found in self._found(None, self.batch_bytes):
            self._refuse_columns(found, 1 if self.zero_based is False else 0, end)
            if len(found.columns):
                smallest = min(smallest, int(found.columns.min()))
                largest = max(largest, int(found.columns.max()))
            yield self._piece(found, LARGEST_WIDTH)
        self._settle(smallest, largest)

    def _settle(self, smallest: int, largest: int) -> None:
        if self.zero_based is None:
            self.zero_based = smallest == 0
        width = max(largest - (not self.zero_based) + 1, 1)
        self.n_features = width if self.asked_features is None else self.asked_features
        if width > self.n_features and largest >= 0:
            for _ in self.pieces():  # says in which line
                pass

    def _piece(self, found: _Found, width: int) -> Piece:
        X = _matrix(found.values, found.columns, found.row_ends, width)
        return Piece(X, plain_labels(found.labels) if self.whole_labels else found.labels, found.begin, found.end)

    def _refuse_columns(self, found: _Found, first: int, end: int) -> None:
        columns = found.columns
        if len(columns) == 0 or (columns.min() >= first and columns.max() < end):
            return
        entry = int(np.argmax((columns < first) | (columns >= end)))
        row = int(np.searchsorted(found.row_ends, entry, side="right"))
        place, column = f"line {found.lines[row]}", int(columns[entry])
        if column < first:
            raise DataError(
                self.source, place, "column 0 occurs, but columns count from 1; if they count from 0: zero_based=True"
            )
        n_features = self.asked_features if self.n_features is None else self.n_features
        raise DataError(
            self.source,
            place,
            f"column {column} occurs, but there should be only {n_features} columns; remove it, "
            "or give a larger n_features",
        )

    def _found(self, begin: Anchor | None, size: int) -> Iterator[_Found]:
        """Lines with rows behind a place, about ``size`` bytes of text at a time."""
        at = begin or {"row": 0, "share": 0.0, "disk": 0, "byte": 0, "line": 0}
        n_threads = effective_threads()
        parser = _core.SvmlightParser(True)
        lines_before = at["line"]
        if at["byte"]:
            # The parser skips a byte order mark before the first line it sees: that is an empty one here.
            parser.feed(np.frombuffer(b"\n", np.uint8), True, 1)
            lines_before -= 1
        with open_bytes(self.path, self.max_bytes) as file:
            go_behind_row(file, self.source, at)
            try:
                for text, _ in whole_rows(file, size, lambda text: text.rfind(b"\n") + 1):
                    self._feed(parser, np.frombuffer(text, np.uint8), lines_before, n_threads)
                    values, columns, row_ends, labels, lines = parser.take()
                    byte = at["byte"] + len(text)
                    disk = bytes_on_disk(self.path, file, byte)
                    share = min(1.0, disk / self.size)
                    row, line = at["row"] + len(labels), lines_before + parser.n_lines
                    end = {"row": row, "share": share, "disk": disk, "byte": byte, "line": line}
                    if len(labels):
                        yield _Found(values, columns, row_ends, labels, lines + lines_before, at, end)
                    at = end
            except RowTooLong:
                problem = "this line is longer than 64 MB, too long for a batch; is it svmlight text? If so, read it "
                raise DataError(self.source, f"line {at['line'] + 1}", f"{problem}with read_table") from None

    def _feed(self, parser: _core.SvmlightParser, text: NDArray[np.uint8], lines_before: int, n_threads: int) -> None:
        done, step = 0, STEP * n_threads
        while done < len(text):
            end = min(done + step, len(text))
            used = parser.feed(text[done:end], end == len(text), n_threads)
            if parser.error is not None:
                line, column, problem = parser.error
                raise DataError(self.source, f"line {lines_before + line}, column {column}", problem)
            done += used
            if used == 0:  # one line is longer
                step *= 2

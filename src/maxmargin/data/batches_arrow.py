"""Parquet, Arrow and npz files, some rows at a time."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.data.arrow import import_arrow, labels_from, open_ipc, readable, refuse_too_large
from maxmargin.data.arrow_sizes import size_of_parquet
from maxmargin.data.batches_pieces import (
    HEAD,
    Anchor,
    Choice,
    Piece,
    PieceReader,
    matrix_of,
    place_by_row,
    refuse_missing_labels,
    steady,
    text_error,
    without_gaps,
)
from maxmargin.data.encoding import _refuse_odd_types, gaps, is_text
from maxmargin.data.errors import DataError
from maxmargin.data.limits import too_large
from maxmargin.data.npz import read_npz
from maxmargin.data.table import Target

PAGE = 1 << 20  # bytes of a Parquet column that are fetched at a time


class ColumnPieces(PieceReader):
    """Rows of a file that knows the types of its columns."""

    kind: str

    def __init__(
        self,
        path: str | os.PathLike[str],
        target: Target,
        drop: Sequence[str],
        batch_bytes: int,
        missing: str,
        max_bytes: int | None = None,
    ) -> None:
        self.pa = import_arrow(f"reading {self.kind} files")
        self.max_bytes = max_bytes
        self.path, self.source, self.missing = path, str(path), missing
        self.size = os.path.getsize(path)
        schema = self._guarded_schema()
        self.choice = Choice.of(self.source, schema.names, target, drop)
        self.names = self.choice.feature_names
        self.n_features = len(self.names)
        for position, name in zip(self.choice.features, self.names, strict=True):
            self._refuse_type(schema.field(position), name)
        single = all(schema.field(i).type == self.pa.float32() for i in self.choice.features)
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self.rows = max(1, batch_bytes // (self.dtype.itemsize * self.n_features))
        self.label_type = self._label_type()

    def _guarded_schema(self) -> Any:
        with readable(self.path, self.kind):
            return self._schema()

    def _label_type(self) -> np.dtype[Any]:
        """What the first labels are."""
        rows = max(1, HEAD // (self.dtype.itemsize * (self.n_features or 1)))
        head = next((batch for batch, _, _ in self._guarded_tables(None, rows)), None)
        if head is None:
            raise DataError(self.source, "file", "there are no rows")
        if self.choice.target is None:
            return np.dtype(np.float64)
        return self._labels(head, place_by_row(0)).dtype

    @abstractmethod
    def _schema(self) -> Any:
        """Names and types of the columns."""

    @abstractmethod
    def _tables(self, begin: Anchor | None, rows: int) -> Iterator[tuple[Any, Anchor, Anchor]]:
        """At most so many rows at a time, never none, with the places before and behind."""

    def _guarded_tables(self, begin: Anchor | None, rows: int) -> Iterator[tuple[Any, Anchor, Anchor]]:
        with readable(self.path, self.kind):
            yield from self._tables(begin, rows)

    def pieces(self, begin: Anchor | None = None) -> Iterator[Piece]:
        assert self.rows is not None
        for batch, first, end in self._guarded_tables(begin, self.rows):
            place = place_by_row(first["row"])
            y = None if self.choice.target is None else steady(self._labels(batch, place), self.label_type)
            table = self.pa.Table.from_batches([batch]).select(list(self.choice.features))
            for name, column in zip(self.names or (), table.columns, strict=True):
                _refuse_odd_types(column, self.source, name)  # whole numbers beyond 2⁵³
            X = matrix_of(table, self.dtype)
            X, y = without_gaps(X, y, self.missing, self.source, self.names, place)
            yield Piece(X, y, first, end)

    def _labels(self, batch: Any, place: Callable[[int], str]) -> NDArray[Any]:
        assert self.choice.target is not None
        name = self.choice.names[self.choice.target]
        column = self.pa.chunked_array([batch.column(self.choice.target)])
        refuse_missing_labels(gaps(column), self.source, name, place)
        return labels_from(column, self.source, name)

    def _refuse_type(self, field: Any, name: str) -> None:
        if is_text(field):
            raise text_error(self.source, f"column {name!r}", name, "text")
        types = self.pa.types
        numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
        if not any(is_kind(field.type) for is_kind in numbers):
            raise text_error(self.source, f"column {name!r}", name, f"values of type {field.type}")


class ParquetPieces(ColumnPieces):
    """Rows of a Parquet file; an anchor holds the row, and row groups before it are not read."""

    kind = "Parquet"

    def _schema(self) -> Any:
        import pyarrow.parquet as parquet

        with open(self.path, "rb") as file:
            return parquet.ParquetFile(file).schema_arrow

    def _tables(self, begin: Anchor | None, rows: int) -> Iterator[tuple[Any, Anchor, Anchor]]:
        import pyarrow.parquet as parquet

        first, row = begin["row"] if begin else 0, 0
        with open(self.path, "rb") as raw:
            file = parquet.ParquetFile(raw, buffer_size=PAGE, pre_buffer=False)
            n_rows, disk = file.metadata.num_rows, 0
            if self.max_bytes is not None and (size := size_of_parquet(file)) > self.max_bytes:
                raise too_large(self.source, size, self.max_bytes)
            for group in range(file.metadata.num_row_groups):
                in_group = file.metadata.row_group(group).num_rows
                disk = max(disk, _end_of_group(file.metadata.row_group(group)))
                if row + in_group <= first:
                    row += in_group
                    continue
                for batch in file.iter_batches(rows, row_groups=[group]):
                    end = row + batch.num_rows
                    part = batch.slice(max(0, first - row))
                    if part.num_rows:
                        yield part, _row_anchor(max(first, row), n_rows, disk), _row_anchor(end, n_rows, disk)
                    row = end


class ArrowPieces(ColumnPieces):
    """Rows of an Arrow file or stream; an anchor holds the record batch and the row in it.

    A stream is read from the beginning again to continue.
    """

    kind = "Arrow"

    def _schema(self) -> Any:
        with open(self.path, "rb"), self.pa.OSFile(os.fspath(self.path), "rb") as file:
            return open_ipc(file).schema

    def _record_batches(self, file: Any, first: int) -> Iterator[tuple[int, Any, float, float, int]]:
        """Number and content of each record batch from the first on, the shares of the file before and behind, and the
        bytes on disk that it depends on (of a file with a list of contents, all).
        """
        reader = open_ipc(file)
        if hasattr(reader, "num_record_batches"):
            n = reader.num_record_batches
            for i in range(first, n):
                yield i, reader.get_batch(i), i / n, (i + 1) / n, self.size
            return
        before = 0.0
        for i, batch in enumerate(reader):
            behind = min(1.0, file.tell() / self.size)
            if i >= first:
                yield i, batch, before, behind, file.tell()
            before = behind

    def _tables(self, begin: Anchor | None, rows: int) -> Iterator[tuple[Any, Anchor, Anchor]]:
        at = begin or {"row": 0, "share": 0.0, "disk": 0, "batch": 0, "offset": 0}
        with open(self.path, "rb"), self.pa.OSFile(os.fspath(self.path), "rb") as file:
            refuse_too_large(file, self.max_bytes, self.source)
            for i, batch, before, behind, disk in self._record_batches(file, at["batch"]):
                offset = at["offset"] if i == at["batch"] else 0
                n = batch.num_rows
                while offset < n:
                    part = batch.slice(offset, rows)
                    offset += part.num_rows
                    end = {
                        "row": at["row"] + part.num_rows,
                        "share": before + (behind - before) * offset / n,
                        "disk": disk,
                        "batch": i if offset < n else i + 1,
                        "offset": offset if offset < n else 0,
                    }
                    yield part, at, end
                    at = end


class NpzPieces(PieceReader):
    """Rows of an npz archive, which is read whole: it is compressed, or its matrix does not begin with its rows."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        target: Target,
        batch_bytes: int,
        missing: str,
        max_bytes: int | None = None,
    ) -> None:
        self.table, self.size = read_npz(path, max_bytes=max_bytes), os.path.getsize(path)
        self.source, self.missing = self.table.source, missing
        self.y = self.table.y if target is False else self.table.labels()
        X = self.table.columns
        self.names = None if self.table.names is None else list(self.table.names)
        self.n_features = int(X.shape[1])
        n_bytes = X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes
        self.rows = max(1, batch_bytes * X.shape[0] // max(1, n_bytes))

    def pieces(self, begin: Anchor | None = None) -> Iterator[Piece]:
        assert self.rows is not None
        X, y, n_rows = self.table.columns, self.y, self.table.n_rows
        for first in range(begin["row"] if begin else 0, n_rows, self.rows):
            end = min(n_rows, first + self.rows)
            part, labels = without_gaps(
                X[first:end],
                None if y is None else y[first:end],
                self.missing,
                self.source,
                self.names,
                place_by_row(first),
            )
            yield Piece(part, labels, _row_anchor(first, n_rows, self.size), _row_anchor(end, n_rows, self.size))


def _row_anchor(row: int, n_rows: int, disk: int) -> Anchor:
    return {"row": row, "share": row / max(1, n_rows), "disk": disk}


def _end_of_group(group: Any) -> int:
    """Where the columns of a row group end in the file."""
    columns = [group.column(k) for k in range(group.num_columns)]
    ends = [(c.dictionary_page_offset or c.data_page_offset) + c.total_compressed_size for c in columns]
    return int(max(ends))

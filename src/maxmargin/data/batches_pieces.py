"""What the chunked readers of all formats share: pieces of a file, the columns chosen from it, and gaps."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.data.encoding import _as_float
from maxmargin.data.errors import DataError, MissingLabel
from maxmargin.data.files import is_packed
from maxmargin.data.table import Table, Target, find_target, unique_names

HEAD = 1 << 20  # bytes of a file that decide what its columns and labels are, whatever the size of a batch
LONGEST_ROW = 1 << 26  # bytes of text

# A place between two rows, as JSON: "row" rows and the share "share" of the file are before it, and these rows depend
# on the first "disk" bytes of the file; the other entries are what the format needs to get there.
Anchor = dict[str, Any]


@dataclass(frozen=True)
class Piece:
    """Some rows that follow each other, and the places before and behind them."""

    X: Any
    y: Any
    begin: Anchor
    end: Anchor

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    def part(self, first: int, end: int) -> tuple[Any, Any]:
        """Rows and labels from the first up to the end."""
        if first == 0 and end == self.n_rows:
            return self.X, self.y
        return self.X[first:end], None if self.y is None else self.y[first:end]


class PieceReader(ABC):
    """A file that is read piece by piece.

    Attributes
    ----------
    source : the file's name, for messages.
    names : of the feature columns, if they have any.
    n_features : None as long as only a whole pass can tell.
    rows : how many rows make a batch of the size asked for; None: a piece is a batch.
    zero_based : whether the columns of a svmlight file count from 0.
    """

    source: str
    names: list[str] | None = None
    n_features: int | None = None
    rows: int | None = None
    zero_based: bool | None = None

    @abstractmethod
    def pieces(self, begin: Anchor | None = None) -> Iterator[Piece]:
        """The rows behind a place, in order; they depend on the file and the place alone."""

    def first_pass(self) -> Iterator[Piece]:
        """All rows; whoever takes them all leaves nothing undecided."""
        return self.pieces()


@dataclass(frozen=True)
class Choice:
    """Positions of the columns that hold features, and of the one that holds the labels (None: there is none)."""

    names: tuple[str, ...]
    features: tuple[int, ...]
    target: int | None

    @classmethod
    def of(cls, source: str, names: Sequence[str], target: Target, drop: Sequence[str]) -> Choice:
        """As :func:`read_table` chooses them, but labels must be there unless ``target`` is False.

        Examples
        --------
        >>> Choice.of("t.csv", ["id", "age", "label"], None, ["id"]).features
        (1,)
        """
        clean = unique_names(source, names)
        position = find_target(source, clean, target)
        if position is None and target is not False:
            Table(source, np.empty((0, len(clean))), clean).labels()  # says how to name them
        dropped = {find_target(source, clean, name) for name in ([drop] if isinstance(drop, str) else drop)}
        if position is not None and position in dropped:
            raise DataError(
                source, "header", f"the column {clean[position]!r} holds the labels; it cannot be dropped, too"
            )
        kept = tuple(i for i in range(len(clean)) if i != position and i not in dropped)
        if not kept:
            raise DataError(source, "header", "no feature column is left beside the labels and the dropped columns")
        return cls(clean, kept, position)

    @property
    def feature_names(self) -> list[str]:
        return [self.names[i] for i in self.features]


def text_error(source: str, place: str, name: str, found: str) -> DataError:
    """The error for a column that holds something else than numbers."""
    return DataError(
        source,
        place,
        f"expected a number, found {found}. Batches hold numbers only: write numbers instead of text, leave the "
        f"column out with drop=[{name!r}], or read the table whole (read_table) and encode it (Encoding)",
    )


def matrix_of(table: Any, dtype: Any) -> NDArray[Any]:
    """The columns of an Arrow table as a C-contiguous matrix; gaps become NaN."""
    X = np.empty((table.num_rows, table.num_columns), dtype=dtype)
    begin = 0
    for batch in table.to_batches(max_chunksize=max(64, min(8192, 8_000_000 // table.num_columns))):
        end = begin + batch.num_rows
        np.stack([_as_float(column) for column in batch.columns], axis=1, out=X[begin:end])
        begin = end
    return X


def without_gaps(
    X: Any, y: Any, missing: str, source: str, names: Sequence[str] | None, place: Callable[[int], str]
) -> tuple[Any, Any]:
    """Rows and labels without the rows that have gaps (NaN); or an error for the first of them, and for infinities.

    ``place`` tells where in the file a row is.
    """
    rows, columns, values = _not_finite(X)
    if len(rows) == 0:
        return X, y
    gap = np.isnan(values)
    bad = np.flatnonzero(~gap) if missing == "drop" else np.arange(len(values))
    if len(bad) == 0:
        kept = np.ones(X.shape[0], dtype=bool)
        kept[rows] = False
        return X[kept], None if y is None else y[kept]
    row, column = int(rows[bad[0]]), int(columns[bad[0]])
    where = f"column {column if names is None else repr(names[column])}, {place(row)}"
    if gap[bad[0]]:
        raise DataError(
            source, where, "the value is missing; give it, or leave out all rows with gaps (missing='drop')"
        )
    raise DataError(source, where, f"the value is {values[bad[0]]}; expected a finite number")


def _not_finite(X: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Row, column and value of the entries that are no finite numbers, row by row."""
    if sp.issparse(X):
        entries = np.flatnonzero(~np.isfinite(X.data))
        return np.searchsorted(X.indptr, entries, side="right") - 1, X.indices[entries], X.data[entries]
    rows, columns = np.nonzero(~np.isfinite(X))
    return rows, columns, X[rows, columns]


def refuse_missing_labels(missing: NDArray[np.bool_], source: str, name: str, place: Callable[[int], str]) -> None:
    """An error for the first row without a label."""
    if missing.any():
        raise MissingLabel(
            source,
            f"column {name!r}, {place(int(np.argmax(missing)))}",
            "the label is missing; give it, or remove such rows (to read rows without labels: target=False)",
        )


def steady(y: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Labels that happen to be whole numbers as fractions, if the file's first labels are fractions.

    Examples
    --------
    >>> steady(np.array([1, 2]), np.dtype(float))
    array([1., 2.])
    """
    return y.astype(dtype) if dtype.kind == "f" and y.dtype.kind in "iu" else y


class RowTooLong(Exception):
    """A row of text that does not fit into any batch."""


def place_by_row(first: int) -> Callable[[int], str]:
    """Where a row is, for messages, if so many rows are before the piece that it is counted in."""
    return lambda row: f"row {first + row}"


def whole_rows(file: IO[bytes], size: int, end_of_rows: Callable[[bytes], int]) -> Iterator[tuple[bytes, bool]]:
    """Text of whole rows, about ``size`` bytes at a time, and whether it is the last.

    Where a text ends depends only on where it begins: a file that is read from the middle gives the same texts.

    Parameters
    ----------
    file : from where it stands to its end.
    size : bytes; a longer row makes a text of up to twice its length.
    end_of_rows : how many bytes of a text are whole rows.

    Raises
    ------
    RowTooLong : if a row has more than 64 MB.

    Examples
    --------
    >>> import io
    >>> list(whole_rows(io.BytesIO(b"1\\n22\\n333"), 4, lambda text: text.rfind(b"\\n") + 1))
    [(b'1\\n', False), (b'22\\n', False), (b'333', True)]
    """
    text, begin, ended, window = b"", 0, False, size  # what is before ``begin`` was handed over
    while True:
        if not ended and len(text) - begin < window:
            text, begin = _filled(file, text[begin:], window), 0
            ended = len(text) < window
        last = ended and len(text) - begin <= window
        end = len(text) - begin if last else end_of_rows(text[begin : begin + window])
        if end == 0 and not last:
            if window >= max(LONGEST_ROW, size):
                raise RowTooLong
            window *= 2
            continue
        block, begin, window = text[begin : begin + end], begin + end, size
        if len(text) - begin <= size:  # more than that, behind a long row, is not copied for every block
            text, begin = text[begin:], 0
        if block:
            yield block, last
        if last:
            return


def _filled(file: IO[bytes], text: bytes, size: int) -> bytes:
    """The text and what follows it in the file, so many bytes in all unless the file ends."""
    parts, have = [text], len(text)
    while have < size:
        more = file.read(size - have)
        if not more:
            break
        parts.append(more)
        have += len(more)
    return b"".join(parts)


def go_behind_row(file: IO[bytes], source: str, at: Anchor) -> None:
    """Go to a place in a text, which must be the beginning of a line.

    It is not where a file without a line end at its end was read, and has grown since then: what is new may go on in
    the line that was taken for whole.
    """
    if at["byte"] == 0:
        return
    file.seek(at["byte"] - 1)
    before, behind = file.read(1), file.read(1)
    if behind and before not in (b"\n", b"\r"):
        raise DataError(
            source,
            f"line {at['line']}",
            "the last line had no line end when it was read, and now it goes on; start from the beginning",
        )
    file.seek(at["byte"])


def bytes_on_disk(path: str | os.PathLike[str], file: IO[bytes], byte: int) -> int:
    """How many bytes of the file as it is on disk a place in its text depends on."""
    return os.lseek(file.fileno(), 0, os.SEEK_CUR) if is_packed(path) else byte

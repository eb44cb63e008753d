"""The svmlight/LIBSVM text format: ``label column:value column:value … # comment``, one row a line."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.data.errors import DataError
from maxmargin.data.files import open_bytes, open_text
from maxmargin.data.labels import plain_labels
from maxmargin.data.table import Table
from maxmargin.runtime import effective_threads

PIECE = 4 << 20  # bytes a thread is given at a time
WINDOW = 1 << 16  # bytes in which a line end is looked for at a time


def read_svmlight(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    n_threads: int | None = None,
    max_bytes: int | None = None,
) -> Table:
    """Read a svmlight/LIBSVM file, compressed or not.

    Parameters
    ----------
    path : file name; .gz, .bz2 and .xz are unpacked on the way.
    n_features : number of columns; None takes the largest index in the file.
    zero_based : whether column indices count from 0; None: they do if an index 0 occurs.
    n_threads : None uses all that are allowed. The result does not depend on it.
    max_bytes : most bytes of text; None: a quarter of the memory for what is compressed or comes through a pipe.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "two.svm").write_text("+1 1:0.5 3:2  # comment\\n-1 2:1\\n")
    ...     table = read_svmlight(f"{folder}/two.svm")
    >>> table.columns.toarray(), table.y
    (array([[0.5, 0. , 2. ], [0. , 1. , 0. ]]), array([ 1, -1]))
    """
    with open_text(path, max_bytes) as file:
        return parse_svmlight(file, str(path), n_features=n_features, zero_based=zero_based, n_threads=n_threads)


def parse_svmlight(
    file: IO[bytes],
    source: str,
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    n_threads: int | None = None,
) -> Table:
    """Read svmlight text from an open file of bytes."""
    parser = _core.SvmlightParser()
    for _ in feed(parser, file, effective_threads(n_threads)):
        if parser.error is not None:
            line, column, problem = parser.error
            raise DataError(source, f"line {line}, column {column}", problem)
    if parser.n_rows == 0:
        raise DataError(source, "file", "there are no rows: the file is empty or holds only comments")
    smallest, largest = parser.smallest_column, parser.largest_column
    if zero_based is False and smallest == 0:
        raise DataError(source, "file", "column 0 occurs, but columns count from 1 (--zero-based)")
    first = 0 if (zero_based if zero_based is not None else smallest == 0) else 1
    width = max(largest - first + 1, 1)
    if n_features is not None:
        if n_features < width and largest >= 0:
            raise DataError(source, "file", f"column {largest} occurs, but there should be only {n_features} columns")
        width = n_features
    values, columns, row_ends, labels, _ = parser.take()
    columns -= first
    matrix = _matrix(values, columns, row_ends, width)
    return Table(source, matrix, None, plain_labels(labels), zero_based=first == 0)


def _matrix(values: NDArray[Any], columns: NDArray[Any], row_ends: NDArray[Any], width: int) -> sp.csr_array:
    small = len(values) <= np.iinfo(np.int32).max
    indptr = np.zeros(len(row_ends) + 1, dtype=np.int32 if small else np.int64)
    indptr[1:] = row_ends
    matrix = sp.csr_array(
        (values, columns if small else columns.astype(np.int64), indptr), shape=(len(row_ends), width)
    )
    matrix.has_sorted_indices = matrix.has_canonical_format = True  # the parser accepts nothing else
    return matrix


def feed(parser: _core.SvmlightParser, file: IO[bytes], n_threads: int) -> Iterator[None]:
    """Feed the whole file; stops for the caller after each piece, and goes on behind an erroneous line.

    The parser sees whole lines only: the work is proportional to the bytes, however long a line is and however small
    the pieces are in which the file arrives.
    """
    text = np.empty(PIECE * n_threads, dtype=np.uint8)
    have = 0  # bytes at hand: the beginning of one line
    last = False
    while not last:
        if have == len(text):
            text = np.concatenate([text, np.empty_like(text)])
        n_new, last = _fill(file, text[have:])
        found = _last_line_end(text[have : have + n_new])
        end = have + n_new if last else (have + found if found else 0)
        have += n_new
        done = 0
        while done < end:
            done += parser.feed(text[done:end], last, n_threads)
            stopped = parser.error is not None
            yield
            if not stopped:
                break
        if end:
            text[: have - end] = text[end:have]
            have -= end


def _last_line_end(text: NDArray[np.uint8]) -> int:
    """The place behind the last line end, or 0; looks backwards, and at no byte twice."""
    stop = len(text)
    while stop > 0:
        begin = max(0, stop - WINDOW)
        found = text[begin:stop].tobytes().rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        stop = begin
    return 0


def _fill(file: IO[bytes], room: NDArray[np.uint8]) -> tuple[int, bool]:
    """Read until the room is full or the file ends; how many bytes came, and whether that was the end."""
    have = 0
    while have < len(room):
        n_read: int = file.readinto(room[have:])  # type: ignore[attr-defined]
        if n_read == 0:
            return have, True
        have += n_read
    return have, False


def write_svmlight(table: Table, file: IO[bytes], *, zero_based: bool = False) -> None:
    """Write rows as svmlight text; every value reads back as the same float64."""
    y = table.labels()
    if y.dtype.kind not in "iufb":
        raise DataError(
            table.source,
            "labels",
            f"svmlight files hold numeric labels, but these are text such as {str(y[0])!r}; number them with "
            "--number-labels (convert), or write CSV",
        )
    X = sp.csr_array(table.columns, copy=True)
    X.sum_duplicates()  # readers expect each column once, and columns that increase
    _refuse_unwritable(X, y, table)
    first = 0 if zero_based else 1
    block = 4096
    for begin in range(0, X.shape[0], block):
        lines = []
        for i in range(begin, min(begin + block, X.shape[0])):
            span = slice(int(X.indptr[i]), int(X.indptr[i + 1]))
            columns = (X.indices[span] + first).tolist()
            values = X.data[span].astype(np.float64).tolist()
            cells = [f"{j}:{number(v)}" for j, v in zip(columns, values, strict=True) if v != 0.0]
            lines.append(" ".join([number(y[i].item()), *cells]))
        file.write(("\n".join(lines) + "\n").encode())


def _refuse_unwritable(X: sp.csr_array, y: NDArray[Any], table: Table) -> None:
    bad = np.flatnonzero(~np.isfinite(X.data))
    if len(bad):
        row, column = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1, int(X.indices[bad[0]])
        name = column if table.names is None else repr(table.names[column])
        what = f"the value is {X.data[bad[0]]}"
    elif y.dtype.kind == "f" and not np.isfinite(y).all():
        row, name = int(np.argmin(np.isfinite(y))), "of labels"
        what = f"the label is {y[row]}"
    else:
        return
    raise DataError(
        table.source,
        f"column {name}, row {row}",
        f"{what}, but svmlight files hold finite numbers only; fill or leave out such rows, or write npz",
    )


def number(value: float | int | bool) -> str:
    """The shortest text that reads back as the same number.

    Examples
    --------
    >>> number(2.0), number(0.1), number(True), number(float("nan"))
    ('2', '0.1', '1', 'nan')
    """
    if isinstance(value, int):
        return str(int(value))
    if not math.isfinite(value):
        return repr(value)
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def looks_like_svmlight(path: str | os.PathLike[str]) -> bool:
    """Whether the first lines have the shape of svmlight text; for files whose name does not tell."""
    if not Path(path).is_file():
        return False
    with open_bytes(path) as file:
        head = file.read(WINDOW)
    for line in head.splitlines():
        tokens = line.split(b"#", 1)[0].split()
        if tokens:
            return b":" not in tokens[0] and len(tokens) > 1 and all(b":" in t for t in tokens[1:2])
    return False

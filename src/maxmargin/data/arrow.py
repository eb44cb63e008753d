"""Parquet, Feather and Arrow files, and Arrow tables as ours."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.data.arrow_sizes import size_of_parquet, sizes_of_messages
from maxmargin.data.errors import DataError, MissingLabel, need
from maxmargin.data.files import open_plain
from maxmargin.data.labels import plain_labels
from maxmargin.data.limits import byte_limit, too_large
from maxmargin.data.table import Table, Target, find_target, unique_names, written_names


def import_arrow(purpose: str) -> Any:
    """PyArrow, or an error that says how to install it."""
    try:
        import pyarrow
    except ImportError:
        raise need("PyArrow", purpose, "files") from None
    return pyarrow


def read_parquet(
    path: str | os.PathLike[str], *, target: Target = None, drop: Sequence[str] = (), max_bytes: int | None = None
) -> Table:
    """Read a Parquet file.

    Parameters
    ----------
    path : file name.
    target : the labels' column, by name or index.
    drop : names or indices of columns to leave out.
    max_bytes : most bytes of the columns, unpacked; None: a quarter of the memory, or the size on disk if larger.

    Examples
    --------
    >>> import tempfile, pyarrow, pyarrow.parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pyarrow.parquet.write_table(pyarrow.table({"x": [1.0, 2.0], "y": ["a", "b"]}), f"{folder}/t.parquet")
    ...     read_parquet(f"{folder}/t.parquet").y
    array(['a', 'b'], dtype='<U1')
    """
    import_arrow("reading Parquet")
    import pyarrow.parquet as parquet

    limit = byte_limit(path, max_bytes, packed=True)
    with open_plain(path) as file, readable(path, "Parquet"):
        opened = parquet.ParquetFile(file)
        size = size_of_parquet(opened)
        if limit is not None and size > limit:
            raise too_large(str(path), size, limit)
        arrow = opened.read()
    return table_from_arrow(arrow, str(path), target=target, drop=drop)


def read_arrow(
    path: str | os.PathLike[str], *, target: Target = None, drop: Sequence[str] = (), max_bytes: int | None = None
) -> Table:
    """Read an Arrow file (IPC file or stream, Feather).

    Parameters
    ----------
    path : file name.
    target : the labels' column, by name or index.
    drop : names or indices of columns to leave out.
    max_bytes : most bytes of the columns, unpacked; None: a quarter of the memory, or the size on disk if larger.
    """
    pa = import_arrow("reading Arrow files")
    limit = byte_limit(path, max_bytes, packed=True)
    # Python's own open says best what is wrong with a path.
    with open_plain(path), readable(path, "Arrow"), pa.OSFile(os.fspath(path), "rb") as file:
        refuse_too_large(file, limit, str(path))
        arrow = open_ipc(file).read_all()
    return table_from_arrow(arrow, str(path), target=target, drop=drop)


def open_ipc(file: Any) -> Any:
    """The reader of an Arrow file or stream."""
    pa = import_arrow("reading Arrow files")
    head = file.read(6)
    file.seek(0)
    return pa.ipc.open_file(file) if head == b"ARROW1" else pa.ipc.open_stream(file)


def refuse_too_large(file: Any, limit: int | None, source: str) -> None:
    """An error for an Arrow file or stream beyond the limit; afterwards the file stands at its beginning."""
    if limit is None:
        return
    size = 0
    for n_bytes in sizes_of_messages(file):
        size += n_bytes
        if size > limit:
            raise too_large(source, size, limit)
    file.seek(0)


@contextmanager
def readable(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """What PyArrow raises on damaged files, as an error of ours."""
    pa = import_arrow(f"reading {kind} files")
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, kind, error) from None


def _unreadable(path: str | os.PathLike[str], kind: str, error: Exception) -> Exception:
    if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
        return error
    return DataError(str(path), "file", f"this is no readable {kind} file: {str(error).strip()[:200]}")


def table_from_arrow(arrow: Any, source: str, *, target: Target = None, drop: Sequence[str] = ()) -> Table:
    """Split an Arrow table into feature columns and labels."""
    names = unique_names(source, arrow.column_names)
    arrow = arrow.rename_columns(list(names))
    if arrow.num_rows == 0:
        raise DataError(source, "file", "there are no rows")
    position = find_target(source, names, target)
    labels = None
    if position is not None and arrow.column(position).null_count < arrow.num_rows:  # else: rows to predict
        labels = labels_from(arrow.column(position), source, names[position])
    dropped = {names[_existing(source, names, name)] for name in ([drop] if isinstance(drop, str) else drop)}
    if position is not None and names[position] in dropped:
        raise DataError(source, "header", f"the column {names[position]!r} holds the labels; it cannot be dropped, too")
    kept = [n for i, n in enumerate(names) if i != position and n not in dropped]
    if not kept:
        raise DataError(source, "header", "no feature column is left beside the labels and the dropped columns")
    label_name = None if position is None else names[position]
    return Table(source, arrow.select(kept), tuple(kept), labels, label_name)


def table_from_frame(frame: Any) -> Table:
    """The columns of a pandas data frame, none of which holds labels."""
    pa = import_arrow("reading data frames")
    try:
        arrow = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError("data frame", "columns", f"a column mixes types: {str(error)[:200]}") from None
    return table_from_arrow(arrow, "data frame", target=False)


def _existing(source: str, names: Sequence[str], name: str) -> int:
    position = find_target(source, names, name)
    assert position is not None  # a name was given
    return position


def labels_from(column: Any, source: str, name: str) -> NDArray[Any]:
    """A label column as NumPy array: whole numbers, numbers, truth values or text without surrounding blanks."""
    pa = import_arrow("reading labels")
    from pyarrow import compute

    missing = np.flatnonzero(column.is_null(nan_is_null=pa.types.is_floating(column.type)).to_numpy())
    if len(missing):
        raise MissingLabel(
            source,
            f"column {name!r}, row {missing[0]}",
            f"the label is missing ({len(missing)} in all; rows count from 0); give it, or remove such rows",
        )
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return np.asarray(compute.utf8_trim_whitespace(column.cast(pa.large_string())).to_pylist())
    if pa.types.is_decimal(kind):
        column = numbers_from_decimals(column)
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise DataError(
            source, f"column {name!r}", f"labels must be text, numbers or truth values; this column holds {kind}"
        )
    return plain_labels(np.asarray(column.to_numpy()))


def numbers_from_decimals(values: Any) -> Any:
    """The nearest float64 of each decimal number: by way of text, since the direct cast rounds twice."""
    pa = import_arrow("reading decimal numbers")
    return values.cast(pa.string()).cast(pa.float64())


def _arrow_from(table: Table) -> Any:
    pa = import_arrow("writing Parquet and Arrow")
    X = table.columns.toarray() if sp.issparse(table.columns) else table.columns
    columns = [pa.array(np.ascontiguousarray(X[:, j])) for j in range(X.shape[1])]
    if table.y is not None:
        columns.append(pa.array(table.y.tolist()))
    return pa.table(columns, names=written_names(table))


def write_parquet(table: Table, file: IO[bytes]) -> None:
    """Write feature columns and labels as Parquet."""
    import_arrow("writing Parquet")
    import pyarrow.parquet as parquet

    parquet.write_table(_arrow_from(table), file)


def write_arrow(table: Table, file: IO[bytes]) -> None:
    """Write feature columns and labels as an Arrow file."""
    pa = import_arrow("writing Arrow files")
    arrow = _arrow_from(table)
    with pa.ipc.new_file(file, arrow.schema) as writer:
        writer.write_table(arrow)

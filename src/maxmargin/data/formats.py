"""One door for all formats: the file's name decides, or the caller does."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from maxmargin.data.arrow import read_arrow, read_parquet, write_arrow, write_parquet
from maxmargin.data.csv import CsvOptions, read_csv, write_csv
from maxmargin.data.errors import DataError
from maxmargin.data.files import atomic_write, suffix_of
from maxmargin.data.npz import read_npz, write_npz
from maxmargin.data.svmlight import looks_like_svmlight, read_svmlight, write_svmlight
from maxmargin.data.table import Table, Target

SUFFIXES = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".npz": "npz",
}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
WRITERS: dict[str, Callable[[Table, IO[bytes]], None]] = {
    "svmlight": write_svmlight,
    "csv": write_csv,
    "parquet": write_parquet,
    "arrow": write_arrow,
    "npz": write_npz,
}
MOST_CELLS = 10**9  # of a sparse matrix written as a full table


PACKERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda file: gzip.GzipFile("", "wb", fileobj=file, mtime=0),  # without name and time: same rows, same bytes
    ".bz2": lambda file: bz2.BZ2File(file, "wb"),
    ".xz": lambda file: lzma.LZMAFile(file, "wb"),  # noqa: SIM115
}


def knows_suffix(path: str | os.PathLike[str]) -> bool:
    """Whether the file's name tells its format."""
    return suffix_of(path) in SUFFIXES


def format_of(path: str | os.PathLike[str], *, reading: bool = False) -> str:
    """The format a file name stands for; when reading, an unknown suffix is decided by a look at the first line.

    Examples
    --------
    >>> format_of("a9a.svm.bz2"), format_of("table.PARQUET")
    ('svmlight', 'parquet')
    """
    suffix = suffix_of(path)
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    if reading:
        if not Path(path).exists():
            raise FileNotFoundError(f"there is no file {str(path)!r}")
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, "this is a folder, not a file", str(path))
        if looks_like_svmlight(path):
            return "svmlight"
        if suffix in ("", ".txt", ".dat", ".data"):
            return "csv"
    raise DataError(
        str(path),
        "file",
        f"the name's ending {suffix!r} stands for no known format; use one of {', '.join(SUFFIXES)}, or name the "
        f"format (--format, --to-format: {', '.join(FORMATS)})",
    )


def _known(path: str | os.PathLike[str], kind: str) -> str:
    """The format, if there is such a one and it may be packed as the name says."""
    if kind not in FORMATS:
        raise DataError(str(path), "file", f"the format must be one of {', '.join(FORMATS)}, got {kind!r}")
    packed = Path(path).suffix.lower()
    if packed in PACKERS and kind not in ("svmlight", "csv"):
        raise DataError(
            str(path), "file", f"{kind} files are packed inside and not once more; unpack it, or leave the {packed} off"
        )
    return kind


def read_table(
    path: str | os.PathLike[str],
    *,
    target: Target = None,
    drop: Sequence[str] = (),
    format: str | None = None,
    csv: CsvOptions | None = None,
    zero_based: bool | None = None,
    max_bytes: int | None = None,
) -> Table:
    """Read a data file of any known format.

    Parameters
    ----------
    path : file name.
    target : the labels' column, by name or index (CSV, Parquet, Arrow). None: a column called label, target,
        class or y; False: no column. In svmlight and npz files the labels have their own place.
    drop : columns to leave out.
    format : one of svmlight, csv, parquet, arrow, npz; None goes by the file's name.
    csv : layout of CSV text.
    zero_based : whether a svmlight file counts columns from 0; None: it does if a column 0 occurs.
    max_bytes : most bytes that the content may have once it is unpacked; more is an error before memory is full. None:
        a quarter of the memory, or the size on disk if that is more; files of plain text have no limit then.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "t.csv").write_text("a,b,label\\n1,2,no\\n3,4,yes\\n")
    ...     table = read_table(f"{folder}/t.csv")
    >>> table.n_rows, table.names, table.target
    (2, ('a', 'b'), 'label')
    """
    kind = _known(path, format or format_of(path, reading=True))
    if kind in ("svmlight", "npz"):
        if (target is not None and target is not False) or drop:
            option = "--drop" if drop else "--target"
            raise DataError(str(path), "file", f"{option} needs named columns, which {kind} files do not have")
        if kind == "npz":
            return read_npz(path, max_bytes=max_bytes)
        return read_svmlight(path, zero_based=zero_based, max_bytes=max_bytes)
    if kind == "csv":
        return read_csv(path, target=target, drop=drop, options=csv, max_bytes=max_bytes)
    reader = read_parquet if kind == "parquet" else read_arrow
    return reader(path, target=target, drop=drop, max_bytes=max_bytes)


def write_table(table: Table, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a table of numbers in any known format; the file appears whole or not at all."""
    kind = _known(path, format or format_of(path))
    if not table.is_matrix:
        raise DataError(table.source, "columns", "encode text and gaps as numbers first (Encoding.learn, .apply)")
    full = kind in ("csv", "parquet", "arrow")
    if full and sp.issparse(table.columns) and table.n_rows * table.n_columns > MOST_CELLS:
        raise DataError(
            table.source,
            "columns",
            f"as {kind}, {table.n_rows} × {table.n_columns} cells would be written, nearly all of them 0; "
            "use svmlight or npz",
        )
    pack = PACKERS.get(Path(path).suffix.lower(), nullcontext)
    with atomic_write(path) as file, pack(file) as packed:
        if kind == "csv" and suffix_of(path) == ".tsv":
            write_csv(table, packed, delimiter="\t")
        else:
            WRITERS[kind](table, packed)


def table_from_arrays(X: Any, y: Any = None, *, names: Sequence[str] | None = None, source: str = "arrays") -> Table:
    """Arrays as a table, for the functions that take one."""
    matrix = sp.csr_array(X) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
    return Table(source, matrix, None if names is None else tuple(names), None if y is None else np.asarray(y))

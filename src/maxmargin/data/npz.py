"""NumPy's .npz archives: dense ``X``, or CSR as ``data, indices, indptr, shape``; labels as ``y``."""

from __future__ import annotations

import os
import zipfile
import zlib
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from maxmargin.data.errors import DataError
from maxmargin.data.files import open_plain
from maxmargin.data.labels import plain_labels
from maxmargin.data.limits import byte_limit, too_large
from maxmargin.data.table import Table, unique_names
from maxmargin.errors import InputError
from maxmargin.positions import check_positions

NPY = b"\x93NUMPY"
# What NumPy and zipfile raise on damaged or encrypted archives.
DAMAGE = (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, RuntimeError)
SPARSE_PARTS = ("data", "indices", "indptr", "shape")


def read_npz(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> Table:
    """Read an .npz archive; nothing in it is executed (pickled objects are refused).

    Parameters
    ----------
    path : file name.
    max_bytes : most bytes of all arrays together; None: a quarter of the memory, or the size on disk if larger.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/t.npz", X=[[1.0, 2.0], [3.0, 4.0]], y=["no", "yes"])
    ...     read_npz(f"{folder}/t.npz").y
    array(['no', 'yes'], dtype='<U3')
    """
    source = str(path)
    limit = byte_limit(path, max_bytes, packed=True)
    with open_plain(path) as file:
        head = file.read(len(NPY))
        file.seek(0)
        if head == NPY:
            raise DataError(source, "file", "this is a single .npy array; expected an .npz archive with X and y")
        if not head.startswith(b"PK"):
            raise DataError(source, "file", "this is no .npz archive; write one with numpy.savez(name, X=X, y=y)")
        return _table(_arrays(file, source, limit), source)


def _arrays(file: IO[bytes], source: str, limit: int | None) -> dict[str, Any]:
    """All arrays of the archive. No array is larger than its entry in the archive's list of contents says."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            size = sum(entry.file_size for entry in archive.zip.infolist())
            if limit is not None and size > limit:
                raise too_large(source, size, limit)
            parts = {name: archive[name] for name in archive.files}
            foreign = [name for name, part in parts.items() if not isinstance(part, np.ndarray)]
            if foreign:
                raise ValueError(f"{foreign[0]!r} is no array")
    except DataError:
        raise
    except DAMAGE as error:
        reason = "it holds pickled objects, which could run code" if "pickle" in str(error).lower() else str(error)
        raise DataError(source, "file", f"this is no readable .npz archive: {reason[:200]}") from None
    return parts


def _table(parts: dict[str, Any], source: str) -> Table:
    X = _matrix(parts, source)
    if 0 in X.shape:
        raise DataError(source, "file", f"there are no {'rows' if X.shape[0] == 0 else 'columns'}")
    y = parts.get("y")
    if y is not None:
        if y.shape != (X.shape[0],):
            raise DataError(source, "array 'y'", f"expected shape ({X.shape[0]},), got {y.shape}")
        y = plain_labels(y)
    names = parts.get("feature_names")
    if names is not None:
        if names.shape != (X.shape[1],) or names.dtype.kind != "U":
            raise DataError(source, "array 'feature_names'", f"expected {X.shape[1]} texts, got shape {names.shape}")
        names = unique_names(source, names.tolist())
    return Table(source, X, names, y)


def _matrix(parts: dict[str, Any], source: str) -> Any:
    if "X" in parts:
        X = parts["X"]
        if X.ndim != 2 or X.dtype.kind not in "fiub":
            raise DataError(
                source,
                "array 'X'",
                f"expected a two-dimensional array of numbers, got {X.ndim} dimensions of {X.dtype}",
            )
        return np.ascontiguousarray(X, dtype=X.dtype if X.dtype in (np.float32, np.float64) else np.float64)
    missing = [name for name in SPARSE_PARTS if name not in parts]
    if missing:
        raise DataError(
            source,
            "file",
            f"expected an array 'X', or a CSR matrix as {', '.join(SPARSE_PARTS)}; the archive has {sorted(parts)}",
        )
    data, indices, indptr, shape = (parts[name] for name in SPARSE_PARTS)
    if data.dtype.kind not in "fiub" or shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise DataError(source, "array 'data'", "expected numbers, and two whole numbers as shape")
    for name, part in (("indices", indices), ("indptr", indptr)):
        if part.dtype.kind not in "iu":
            raise DataError(source, f"array {name!r}", f"expected whole numbers, got {part.dtype}")
    if "format" in parts and parts["format"].tobytes() not in (b"csr", "csr".encode("utf-32-le")):
        raise DataError(source, "array 'format'", "expected a CSR matrix; convert it with X.tocsr()")
    values = data if data.dtype in (np.float32, np.float64) else data.astype(np.float64)
    try:
        X = sp.csr_array((values, indices, indptr), shape=tuple(shape.tolist()))
        check_positions(X)
    except (InputError, ValueError) as error:
        raise DataError(source, "CSR matrix", str(error)) from None
    X.sum_duplicates()
    return X


def write_npz(table: Table, file: IO[bytes]) -> None:
    """Write feature columns, names and labels as .npz."""
    X = table.columns
    parts: dict[str, Any] = {}
    if sp.issparse(X):
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
    else:
        parts["X"] = X
    if table.y is not None:
        # An array of objects could be written only as code to run; as text or numbers it is plain.
        parts["y"] = np.asarray(table.y.tolist()) if table.y.dtype.kind == "O" else table.y
    if table.names is not None:
        parts["feature_names"] = np.array(table.names)
    np.savez_compressed(file, allow_pickle=False, **parts)

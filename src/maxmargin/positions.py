"""Checks of a sparse matrix's positions, which SciPy's own conversions and products trust blindly.

A bad index would make them read or write anywhere, so it must be found before the first of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class InputError(ValueError):
    """Input that cannot be used; the message says what, where, and what to do."""


def check_positions(X: Any) -> None:
    """Raise InputError if a sparse matrix names a row or column that it does not have."""
    checks = {"csr": _check_rows, "csc": _check_columns, "bsr": _check_blocks, "coo": _check_coordinates}
    if X.ndim != 2:
        raise InputError(f"Expected 2D array, got {X.ndim}D sparse array instead. Reshape your data.")
    if X.format in checks:
        checks[X.format](X)
    elif X.format == "dia" and (X.data.ndim != 2 or len(X.offsets) != X.data.shape[0]):
        raise InputError("sparse X: a dia matrix needs one offset for each row of its data")
    elif X.format == "lil":
        for i, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
            if len(columns) != len(values):
                raise InputError(f"sparse X: row {i} has {len(columns)} columns but {len(values)} values")


def _check_rows(X: Any) -> None:
    _check_compressed(X.indptr, X.indices, X.data, X.shape[0], X.shape[1], ("row", "column"))


def _check_columns(X: Any) -> None:
    _check_compressed(X.indptr, X.indices, X.data, X.shape[1], X.shape[0], ("column", "row"))


def _check_blocks(X: Any) -> None:
    height, width = X.blocksize
    names = ("block row", "block column")
    _check_compressed(X.indptr, X.indices, X.data, X.shape[0] // height, X.shape[1] // width, names)


def _check_compressed(indptr: Any, indices: Any, data: Any, n_major: int, n_minor: int, names: tuple[str, str]) -> None:
    major, minor = names
    for name, part in (("indptr", indptr), ("indices", indices)):
        if not isinstance(part, np.ndarray) or part.ndim != 1 or part.dtype.kind not in "iu":
            raise InputError(f"sparse X: {name} must be a one-dimensional array of integers")
    if len(indptr) != n_major + 1 or indptr[0] != 0:
        raise InputError(f"sparse X: indptr must have {n_major + 1} entries and start at 0")
    if len(indices) != len(data):
        raise InputError(f"sparse X: there are {len(indices)} indices but {len(data)} values")
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if len(falls) or indptr.max() > len(data):
        at = int(falls[0]) if len(falls) else int(np.argmax(indptr > len(data))) - 1
        raise InputError(f"sparse X: indptr falls or leaves the data at {major} {at}")
    stored = indices[: int(indptr[-1])]
    bad = _first_outside(stored, n_minor)
    if bad is not None:
        at = int(np.searchsorted(indptr, bad, side="right")) - 1
        raise InputError(
            f"sparse X: {major} {at} names {minor} {stored[bad]}, but there are {minor}s 0 to {n_minor - 1}"
        )


def _check_coordinates(X: Any) -> None:
    for name, size, index in zip(("row", "column"), X.shape, (X.row, X.col), strict=True):
        if len(index) != len(X.data) or index.dtype.kind not in "iu":
            raise InputError(f"sparse X: {len(X.data)} values need as many integer {name} indices")
        bad = _first_outside(index, size)
        if bad is not None:
            raise InputError(f"sparse X: entry {bad} names {name} {index[bad]}, but there are {name}s 0 to {size - 1}")


def _first_outside(index: NDArray[Any], size: int) -> int | None:
    if len(index) == 0 or (index.min() >= 0 and index.max() < size):
        return None
    return int(np.flatnonzero((index < 0) | (index >= size))[0])

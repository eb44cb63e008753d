"""What must be checked before NumPy and SciPy are let near an input.

SciPy's conversions and products trust a sparse matrix's positions blindly: a bad index would make them read or write
anywhere, so it must be found before the first of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.errors import InputError, InputTypeError


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The different values, sorted. ``np.unique`` alone may abort the process if Python ends meanwhile.

    Its hash table takes the GIL back in a destructor; with positions asked for, it sorts instead.

    Examples
    --------
    >>> distinct(np.array([2, 1, 2]))
    array([1, 2])
    """
    return np.unique(values, return_index=True)[0]


def shown(value: Any, most: int = 60) -> str:
    """A value for a message.

    Examples
    --------
    >>> shown("text"), shown(10**5000)
    ("'text'", 'int')
    """
    try:
        return repr(value)[:most]
    except ValueError:  # Python does not write integers of so many digits
        return type(value).__name__


def as_array(values: Any, name: str) -> NDArray[Any]:
    """``values`` as an array of any type; an error if they are masked or no array can be made of them."""
    if isinstance(values, np.ma.MaskedArray) and values.dtype.names is None and np.ma.getmaskarray(values).any():
        where = tuple(int(k) for k in np.argwhere(np.ma.getmaskarray(values))[0])
        raise InputError(f"{name} is masked at {where}; fill or remove masked entries first")
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} is no array: {error}. Are all rows of the same length?") from None


def plain(values: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array the core can read: C-contiguous, aligned, of its own byte order. No copy where it already is one."""
    with np.errstate(over="ignore"):  # from long double; infinity is refused by name later
        return np.require(values, dtype=dtype, requirements=("C", "A"))


def numbers_from_objects(array: NDArray[Any]) -> NDArray[np.float64]:
    """Object or text arrays, if every cell is a number; otherwise name the first that is not."""
    if array.size == 0:
        return np.empty(array.shape)
    if array.dtype.kind == "O" and not has_complex(array):
        try:
            return plain(array, np.dtype(np.float64))
        except (TypeError, ValueError, OverflowError):
            pass
    for i, j in np.ndindex(*array.shape):
        cell = array[i, j]
        if isinstance(cell, complex | np.complexfloating):
            raise InputError(f"Complex data not supported: row {i}, column {j} of X is {cell!r}.")
        try:
            if array.dtype.kind in "Mm" or isinstance(cell, str | bytes | np.ndarray):
                raise TypeError
            float(cell)
        except (TypeError, ValueError, OverflowError):
            kind = InputTypeError if isinstance(cell, dict | list | tuple) else InputError
            raise kind(
                f"could not convert X to numbers: row {i}, column {j} is {shown(cell)}; an argument must be no text "
                "string but a number. Encode text and dates first, for example with "
                "sklearn.preprocessing.OneHotEncoder."
            ) from None
    raise InputError(f"could not convert X, an array of dtype {array.dtype}, to numbers")


def has_complex(array: NDArray[Any]) -> bool:
    """Whether a cell is a NumPy complex number, whose imaginary part NumPy would drop."""
    return any(isinstance(cell, np.complexfloating) for cell in array.flat)


def filled(values: Any) -> Any:
    """A sparse matrix with its zeros filled in, as an array; anything else as it is."""
    check_positions(values)
    return values.toarray() if sp.issparse(values) else values


def check_positions(X: Any) -> None:
    """Raise InputError if a sparse matrix is not made as its format says, or names a row or column it does not have.

    Anything else has no positions that could be wrong.
    """
    if not sp.issparse(X):
        return
    checks = {
        "csr": _check_rows,
        "csc": _check_columns,
        "bsr": _check_blocks,
        "coo": _check_coordinates,
        "dia": _check_diagonals,
        "lil": _check_lists,
    }
    if X.ndim != 2:
        raise InputError(f"Expected 2D array, got {X.ndim}D sparse array instead. Reshape your data.")
    if X.format in checks:
        checks[X.format](X)


def _part(X: Any, name: str, ndim: int, kinds: str = "iu") -> NDArray[Any]:
    """One of the arrays a sparse matrix consists of."""
    part: NDArray[Any] = getattr(X, name)
    usual = isinstance(part, np.ndarray) and not isinstance(part, np.ma.MaskedArray)
    if not usual or part.ndim != ndim or part.dtype.kind not in kinds:
        dimension = {1: "one", 2: "two", 3: "three"}[ndim]
        what = {"iu": "integers", "O": "lists"}.get(kinds, "numbers, as X.astype(float) makes it")
        found = f"{part.ndim}-dimensional of dtype {part.dtype}" if usual else type(part).__name__
        raise InputError(f"sparse X: {name} is {found}, expected a {dimension}-dimensional array of {what}")
    return part


def _check_rows(X: Any) -> None:
    _check_compressed(X, _part(X, "data", 1, "biufc"), X.shape[0], X.shape[1], ("row", "column"))


def _check_columns(X: Any) -> None:
    _check_compressed(X, _part(X, "data", 1, "biufc"), X.shape[1], X.shape[0], ("column", "row"))


def _check_blocks(X: Any) -> None:
    data = _part(X, "data", 3, "biufc")
    height, width = data.shape[1:]
    if height < 1 or width < 1 or X.shape[0] % height or X.shape[1] % width:
        raise InputError(f"sparse X: blocks of {height} by {width} do not fill a matrix of shape {X.shape}")
    _check_compressed(X, data, X.shape[0] // height, X.shape[1] // width, ("block row", "block column"))


def _check_compressed(X: Any, data: NDArray[Any], n_major: int, n_minor: int, names: tuple[str, str]) -> None:
    major, minor = names
    indptr, indices = _part(X, "indptr", 1), _part(X, "indices", 1)
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
    data = _part(X, "data", 1, "biufc")
    if not isinstance(X.coords, tuple | list) or len(X.coords) != 2:
        raise InputError("sparse X: coords must be two arrays, of row and of column indices")
    for name, size, index in zip(("row", "column"), X.shape, (_part(X, "row", 1), _part(X, "col", 1)), strict=True):
        if len(index) != len(data):
            raise InputError(f"sparse X: {len(data)} values need as many integer {name} indices, got {len(index)}")
        bad = _first_outside(index, size)
        if bad is not None:
            raise InputError(f"sparse X: entry {bad} names {name} {index[bad]}, but there are {name}s 0 to {size - 1}")


def _check_diagonals(X: Any) -> None:
    data, offsets = _part(X, "data", 2, "biufc"), _part(X, "offsets", 1)
    if len(offsets) != len(data):
        raise InputError("sparse X: a dia matrix needs one offset for each row of its data")
    # SciPy narrows offsets to 32 bits after it has counted the entries.
    far = np.flatnonzero((offsets < -(2**30)) | (offsets > 2**30))
    if len(far):
        raise InputError(f"sparse X: diagonal {far[0]} has offset {offsets[far[0]]}, far outside of shape {X.shape}")


def _check_lists(X: Any) -> None:
    rows, data = _part(X, "rows", 1, "O"), _part(X, "data", 1, "O")
    if len(rows) != X.shape[0] or len(data) != X.shape[0]:
        raise InputError(
            f"sparse X: there are {len(rows)} lists of columns and {len(data)} of values, expected {X.shape[0]}"
        )
    for i, (columns, values) in enumerate(zip(rows, data, strict=True)):
        if not (isinstance(columns, list) and isinstance(values, list)):
            raise InputError(f"sparse X: row {i} must have a list of columns and a list of values")
        if len(columns) != len(values):
            raise InputError(f"sparse X: row {i} has {len(columns)} columns but {len(values)} values")
        for j in columns:
            if not isinstance(j, int | np.integer) or not 0 <= j < X.shape[1]:
                raise InputError(
                    f"sparse X: row {i} names column {shown(j)}, but there are columns 0 to {X.shape[1] - 1}"
                )


def _first_outside(index: NDArray[Any], size: int) -> int | None:
    if len(index) == 0 or (index.min() >= 0 and index.max() < size):
        return None
    return int(np.flatnonzero((index < 0) | (index >= size))[0])

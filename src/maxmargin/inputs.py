"""Every check of input, and every error about it: what was wrong, where, and what to do."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from maxmargin.errors import InputError, InputTypeError
from maxmargin.positions import as_array, check_positions, distinct, has_complex, numbers_from_objects, plain, shown
from maxmargin.runtime import effective_threads
from maxmargin.space import Rows, Space

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class LabelledRows:
    """Rows with a class and a weight each: ``position`` says which of ``classes``.

    Examples
    --------
    >>> data = LabelledRows.from_arrays([[0.0], [1.0], [2.0]], ["no", "yes", "no"], class_weight="balanced")
    >>> data.position, data.weight
    (array([0, 1, 0]), array([0.75, 1.5 , 0.75]))
    """

    space: Rows
    position: NDArray[np.intp]
    classes: NDArray[Any]
    weight: Vector

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        class_weight: dict[Any, float] | str | None = None,
        n_threads: int | None = None,
    ) -> LabelledRows:
        """Check everything; float32 and float64 C-contiguous rows are not copied."""
        space = check_rows(X, n_threads)
        position, classes = check_labels(y, space.n)
        weight = check_weights(sample_weight, space.n)
        if sample_weight is None and class_weight is None:
            return cls(space, position, classes, weight)
        with np.errstate(over="ignore", invalid="ignore"):  # check_costs speaks of it
            weight = weight * class_factors(class_weight, classes, position, weight)
        check_class_weights(weight, position, classes)
        return cls(space, position, classes, weight)

    def pair(self, first: int, second: int) -> tuple[LabelledRows, NDArray[np.intp]]:
        """Only the rows of two classes, and where they were."""
        chosen = np.flatnonzero((self.position == first) | (self.position == second))
        position = (self.position[chosen] == second).astype(np.intp)
        classes = self.classes[[first, second]]
        return LabelledRows(self.space.take(chosen), position, classes, self.weight[chosen]), chosen


def positive_number(name: str, value: Any, *, infinite: bool = False) -> float:
    """``value`` as a float if it is a number above zero, and finite unless ``infinite`` allows more."""
    number = _number_or_nan(value)
    if not 0.0 < number <= (np.inf if infinite else np.finfo(np.float64).max) or isinstance(value, bool):
        finite = "" if infinite else "finite "
        raise InputError(f"{name} must be a {finite}number greater than 0, got {shown(value)}")
    return number


def number_in(name: str, value: Any, low: float, high: float) -> float:
    """``value`` as a float if it is a number between low and high."""
    number = _number_or_nan(value)
    if not low <= number <= high or isinstance(value, bool):
        raise InputError(f"{name} must be a number from {low:g} to {high:g}, got {shown(value)}")
    return number


def truth_value(name: str, value: Any) -> bool:
    """``value`` as a bool if it is one."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def _number_or_nan(value: Any) -> float:
    try:
        return float(value) if isinstance(value, numbers.Real) else np.nan
    except OverflowError:
        return np.nan


def refuse_sparse(X: Any, why: str) -> None:
    """Raise InputError if X is sparse; ``why`` says what would become of it. scikit-learn promises a TypeError, too."""
    if sp.issparse(X):
        raise InputTypeError(f"Sparse data was passed, but {why}. Use X.toarray() if it fits in memory.")


def check_rows(X: Any, n_threads: int | None = None) -> Rows:
    """X as C-contiguous float32/float64 array or sorted CSR, without a copy where it already is one.

    Rows that have been checked already are returned as they are.
    """
    if isinstance(X, Rows):
        return X
    X = _canonical_csr(X) if sp.issparse(X) else _canonical_dense(X)
    if X.shape[0] < 1:
        raise InputError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.shape[1] < 1:
        raise InputError(f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    threads = effective_threads(n_threads)
    rows = _rising_csr(X, threads) if sp.issparse(X) else Rows.of(X, threads)
    if not rows.facts.finite:
        _refuse_infinite(rows.X)
    return rows


def _canonical_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind == "c":
        raise InputError(f"Complex data not supported: X has dtype {dtype}. Use X.real or X.imag.")
    if dtype.kind == "f" and dtype.itemsize == 4:
        return np.dtype(np.float32)
    return np.dtype(np.float64)


def _canonical_dense(X: Any) -> NDArray[Any]:
    array = as_array(X, "X")
    if array.ndim != 2:
        hint = "X.reshape(-1, 1) makes one column of it, X.reshape(1, -1) one row"
        raise InputError(
            f"Expected 2D array, got {'scalar' if array.ndim == 0 else f'{array.ndim}D'} array instead "
            f"(shape {array.shape}). Reshape your data: {hint}."
        )
    target = _canonical_dtype(array.dtype)
    if array.dtype.kind in "OUSVMm":
        return numbers_from_objects(array)
    return plain(array, target)


def _canonical_csr(X: Any) -> Any:
    check_positions(X)
    target = _canonical_dtype(X.dtype)
    try:
        X = X.tocsr()
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"sparse X cannot be converted to CSR: {error}. Rebuild it, for example with scipy.sparse.coo_array."
        ) from None
    index_type = np.promote_types(X.indices.dtype, X.indptr.dtype)
    if index_type not in (np.dtype(np.int32), np.dtype(np.int64)):
        index_type = np.dtype(np.int64)
    data = plain(X.data, target)
    indices, indptr = (plain(part, index_type) for part in (X.indices, X.indptr))
    if len(data) > indptr[-1]:  # room for more
        data, indices = data[: indptr[-1]], indices[: indptr[-1]]
    if data is not X.data or indices is not X.indices or indptr is not X.indptr:
        X = sp.csr_array((data, indices, indptr), shape=X.shape)
    return X


def _rising_csr(X: Any, n_threads: int) -> Rows:
    """X with rising columns in every row, as the core wants them; a copy if they are not so already."""
    try:
        return Rows.of(X, n_threads)
    except ValueError:
        X = X.copy()
        X.sum_duplicates()
    try:
        return Rows.of(X, n_threads)
    except ValueError as error:
        raise InputError(f"{error}. Rebuild the matrix, for example with X.tocoo().tocsr().") from None


def _refuse_infinite(X: Any) -> None:
    """The error that names the first value that is not finite."""
    for begin in range(0, X.shape[0], 4096):
        block = X[begin : begin + 4096]
        bad = np.argwhere(~np.isfinite(block.toarray() if sp.issparse(block) else block))
        if len(bad):
            i, j = int(bad[0][0]), int(bad[0][1])
            value = block[i, j]
            what = "NaN" if np.isnan(value) else "infinity"
            raise InputError(
                f"Input X contains {what}: row {begin + i}, column {j} is {value}. Expected finite numbers; impute "
                "missing values first, for example with sklearn.impute.SimpleImputer."
            )


def _one_per_row(y: Any, n_rows: int, what: str) -> NDArray[Any]:
    """y as a vector with one entry per row of X."""
    given = as_array(y, "y")
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1:
        raise InputError(f"y must have one {what} per row of X, got an array of shape {given.shape}")
    if len(given) != n_rows:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y has {len(given)}"
        )
    return given


def check_targets(y: Any, n_rows: int) -> Vector:
    """y as finite float64 numbers, one per row."""
    given = _one_per_row(y, n_rows, "number")
    if given.dtype.kind == "c":
        raise InputError("Complex data not supported: y must hold real numbers")
    try:
        if given.dtype.kind not in "biufO" or (given.dtype.kind == "O" and has_complex(given)):
            raise TypeError
        with np.errstate(over="ignore"):
            target = np.array(given, dtype=np.float64)  # a copy: nobody may change it during a fit
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"y must hold numbers, got dtype {given.dtype}; a regression needs a number per row") from None
    bad = np.flatnonzero(~np.isfinite(target))
    if len(bad):
        what = "NaN" if np.isnan(target[bad[0]]) else "infinity"
        raise InputError(f"Input y contains {what}: row {bad[0]}. Every row needs a finite number.")
    return target


def check_labels(y: Any, n_rows: int) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """The position of every label among the classes, and the classes, sorted."""
    labels = _one_per_row(y, n_rows, "label")
    if labels.dtype.kind == "c":
        raise InputError("Complex data not supported: y must hold class labels")
    if labels.dtype.kind in "mMV":
        raise InputError(f"Unknown label type: y has dtype {labels.dtype}; turn dates into text or numbers first")
    if labels.dtype.kind == "O":
        missing = [i for i, label in enumerate(labels) if _is_missing(label)]
        if missing:
            raise InputError(f"Input y contains NaN: row {missing[0]} has no label. Every row needs a label.")
    if labels.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(labels))
        if len(bad):
            what = "NaN" if np.isnan(labels[bad[0]]) else "infinity"
            raise InputError(f"Input y contains {what}: row {bad[0]}. Every row needs a label.")
        odd = np.flatnonzero(labels != np.floor(labels))
        if len(odd):
            raise InputError(
                f"Unknown label type: continuous. y[{odd[0]}] is {labels[odd[0]]}; a classifier needs class labels."
            )
    try:
        classes, position = _distinct(labels)
        hash(tuple(classes.tolist()))  # a class is a key of class_weight
    except (TypeError, ValueError):
        kinds = sorted({type(v).__name__ for v in labels.tolist()})
        raise InputError(
            f"Unknown label type: y holds {', '.join(kinds)}; use numbers, text or truth values, and one type only"
        ) from None
    if len(classes) == 1:
        raise InputError(
            f"y contains one class only, {classes.tolist()[0]!r}; a classifier needs samples of two classes"
        )
    return position, classes


def _is_missing(label: Any) -> bool:
    """None, NaN, or something like pandas.NA that does not say whether it is itself."""
    try:
        return label is None or bool(label != label)
    except (TypeError, ArithmeticError):
        return True
    except ValueError:  # an array: np.unique refuses it
        return False


def _distinct(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """``np.unique`` with positions. Numbers are not sorted if a few of them already show every class."""
    if labels.dtype.kind in "biuf" and len(labels) > 4096:
        classes = distinct(labels[:: len(labels) // 1024])
        if len(classes) == 2:
            second = labels == classes[1]
            if bool(np.logical_or(second, labels == classes[0]).all()):
                return classes, second.astype(np.intp)
        position = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        if len(classes) <= 64 and np.array_equal(classes[position], labels):
            return classes, position
    return np.unique(labels, return_inverse=True)


def check_weights(sample_weight: ArrayLike | None, n_rows: int) -> Vector:
    """Non-negative finite weights, one per row."""
    if sample_weight is None:
        return np.ones(n_rows)
    given = as_array(sample_weight, "sample_weight")
    try:
        if given.dtype.kind not in "biufO" or (given.dtype.kind == "O" and has_complex(given)):
            raise TypeError
        with np.errstate(over="ignore"):
            weight = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError("sample_weight must hold numbers") from None
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise InputError(f"sample_weight must have shape ({n_rows},), got {weight.shape}")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0.0)))
    if len(bad):
        raise InputError(
            f"sample_weight[{bad[0]}] is {weight[bad[0]]}; weights must be finite and not negative (0 leaves a row out)"
        )
    return weight


def class_factors(
    class_weight: dict[Any, float] | str | None, classes: NDArray[Any], position: NDArray[np.intp], weight: Vector
) -> Vector | float:
    """The factor each row's class puts on its cost; 'balanced' gives all classes the same total."""
    if class_weight is None:
        return 1.0
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise InputError(f"class_weight must be 'balanced', a dict or None, got {class_weight!r}")
        total = np.bincount(position, weights=weight, minlength=len(classes))
        if total.min() <= 0.0:
            return 1.0  # check_costs names the class without weight
        return np.asarray((total.sum() / len(classes) / total)[position])
    if not isinstance(class_weight, dict):
        raise InputError(f"class_weight must be 'balanced', a dict or None, got {class_weight!r}")
    known = classes.tolist()
    unknown = [label for label in class_weight if not _occurs(label, known)]
    if unknown:
        raise InputError(f"The classes, {unknown}, are not in class_weight's data: y has {known}")
    factors = [class_weight.get(label, 1.0) for label in known]
    for value in factors:
        if not 0.0 <= _number_or_nan(value) < np.inf:
            raise InputError(f"class_weight must hold finite numbers of at least 0, got {shown(value)}")
    return np.asarray(np.array(factors, dtype=np.float64)[position])


def _occurs(label: Any, known: list[Any]) -> bool:
    try:
        return label in known
    except (TypeError, ValueError):  # pandas.NA, arrays: equal to nothing
        return False


def check_costs(cost: Vector) -> None:
    """No cost may overflow, or be too small to compute with; some must be above zero."""
    with np.errstate(over="ignore"):
        total = float(cost.sum())
    if not np.isfinite(total):
        raise InputError("C times the weights overflows; use a smaller C or smaller weights")
    smallest = float(cost[cost > 0.0].min(initial=np.inf))
    if smallest < 1e-100:
        raise InputError(
            f"C times a weight is {smallest:.2g}; costs below 1e-100 cannot be computed with, use 0 instead"
        )
    if total <= 0.0:
        raise InputError("every sample has weight zero; some need a weight above zero")


def check_class_weights(weight: Vector, position: NDArray[np.intp], classes: NDArray[Any]) -> None:
    """Every class must keep some weight."""
    total = np.bincount(position, weights=weight > 0.0, minlength=len(classes))
    if total.min() <= 0.0:
        label = classes.tolist()[int(total.argmin())]
        all_of_them = "both classes" if len(classes) == 2 else "all classes"
        raise InputError(f"every sample of class {label!r} has weight zero; {all_of_them} need some weight above zero")


def check_sizes(rows: Space, cost: Vector) -> None:
    """Σ cost ‖x‖² must be far from overflow, or no objective can be computed."""
    largest = rows.facts.largest
    with np.errstate(over="ignore"):
        total = float(cost.sum())
    if largest * max(1.0, total) > 1e140:
        raise InputError(
            f"the largest value in X, {largest:.2g}, times the total cost, {total:.2g}, is too large for "
            "float64 arithmetic; scale the columns, for example with sklearn.preprocessing.StandardScaler"
        )

"""The .npz files of the folder named by the environment variable MAXMARGIN_DATA.

A file holds dense ``X`` and ``y``, or CSR ``data``, ``indices``, ``indptr``, ``shape`` and ``y``. Of two
classes the larger label is +1; of more, the class with most rows (the smallest label among equals) is +1 and
the rest -1, unless all classes are asked for. A regression set is a file with more than 200 distinct targets, or with
more than two that are stored as floating-point numbers. Numbers become float64: some peers compute in the precision
they are given, and single precision misses the targets.

``X_test``, ``y_test`` (or ``data_test``, …) are the part that is held out, where that is asked for.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets.base import UNKNOWN, Dataset, csr
from benchmarks.forms import REGRESSION, SEVERAL, TWO

VARIABLE = "MAXMARGIN_DATA"
MOST_CLASSES = 200
HELD_OUT_SHARE = 0.3  # of the rows of a file without a test part
SPLIT_SEED = 0


@cache
def names() -> tuple[str, ...]:
    """Names of the sets in the folder; empty if the variable is not set."""
    place = os.environ.get(VARIABLE)
    if not place:
        return ()
    return tuple(path.stem for path in sorted(Path(place).glob("*.npz")) if _is_usable(path))


def load(name: str, all_classes: bool = False, held_out: bool = False) -> Dataset:
    """A file's training part; ``all_classes`` keeps several classes apart, ``held_out`` adds rows to test on."""
    with np.load(Path(os.environ[VARIABLE]) / f"{name}.npz") as parts:
        X, y = _rows(parts), parts["y"].ravel()
        if not held_out:
            return Dataset(name, X, *_targets(y, y, all_classes))
        if "y_test" in parts:
            test_X, test_y = _rows(parts, "_test"), parts["y_test"].ravel()
        else:
            order = np.random.default_rng(SPLIT_SEED).permutation(len(y))
            test, rest = np.split(order, [max(1, round(HELD_OUT_SHARE * len(y)))])
            test_X, test_y, X, y = X[test], y[test], X[rest], y[rest]
    learned, kind = _targets(y, y, all_classes)
    return Dataset(name, X, learned, kind, (test_X, _targets(y, test_y, all_classes)[0]))


def _rows(parts: Any, ending: str = "") -> Any:
    """The rows of the training part, or of that with the ending."""
    if f"X{ending}" in parts:
        return np.ascontiguousarray(parts[f"X{ending}"], dtype=np.float64)
    data, *positions = (parts[f"{name}{ending}"] for name in ("data", "indices", "indptr", "shape"))
    return csr(data.astype(np.float64), *positions)


def _targets(known: NDArray[Any], y: NDArray[Any], all_classes: bool) -> tuple[NDArray[np.float64], str]:
    """y as a data set holds it, with the classes of the ``known`` labels; a label that is not among them is UNKNOWN."""
    classes = np.unique(known)
    if len(classes) > MOST_CLASSES or (len(classes) > 2 and known.dtype.kind == "f"):
        return y.astype(np.float64), REGRESSION
    if not all_classes or len(classes) <= 2:
        return signs(y, positive_class(known)), TWO
    place = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return np.where(classes[place] == y, place, UNKNOWN).astype(np.float64), SEVERAL


def positive_class(y: NDArray[Any]) -> Any:
    """The label that becomes +1."""
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise ValueError("only one class")
    return classes[-1] if len(classes) == 2 else classes[np.argmax(counts)]


def signs(y: NDArray[Any], positive: Any) -> NDArray[np.float64]:
    """Labels as -1 and +1."""
    return np.where(y == positive, 1.0, -1.0)


def _is_usable(path: Path) -> bool:
    with np.load(path) as parts:
        held = set(parts.files)
        if "y" not in held or not ("X" in held or {"data", "indices", "indptr", "shape"} <= held):
            return False
        return len(np.unique(parts["y"])) >= 2

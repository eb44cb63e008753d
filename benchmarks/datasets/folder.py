"""The .npz files of the folder named by the environment variable MAXMARGIN_DATA.

A file holds dense ``X`` and ``y``, or CSR ``data``, ``indices``, ``indptr``, ``shape`` and ``y``. Of two
classes the larger label is +1; of more, the class with most rows (the smallest label among equals) is +1 and
the rest -1, unless all classes are asked for. Files with more than 200 distinct targets are regression sets.
Numbers become float64: some peers compute in the precision they are given, and single precision misses the targets.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets.base import Dataset, csr
from benchmarks.forms import REGRESSION, SEVERAL, TWO

VARIABLE = "MAXMARGIN_DATA"
MOST_CLASSES = 200


@cache
def names() -> tuple[str, ...]:
    """Names of the sets in the folder; empty if the variable is not set."""
    place = os.environ.get(VARIABLE)
    if not place:
        return ()
    return tuple(path.stem for path in sorted(Path(place).glob("*.npz")) if _is_usable(path))


def load(name: str, all_classes: bool = False) -> Dataset:
    """A file's training part; ``all_classes`` keeps several classes apart."""
    with np.load(Path(os.environ[VARIABLE]) / f"{name}.npz") as parts:
        kind, y = _targets(parts["y"].ravel(), all_classes)
        if "X" in parts:
            return Dataset(name, np.ascontiguousarray(parts["X"], dtype=np.float64), y, kind)
        X = csr(parts["data"].astype(np.float64), parts["indices"], parts["indptr"], parts["shape"])
        return Dataset(name, X, y, kind)


def _targets(y: NDArray[Any], all_classes: bool) -> tuple[str, NDArray[np.float64]]:
    n_classes = len(np.unique(y))
    if n_classes > MOST_CLASSES:
        return REGRESSION, y.astype(np.float64)
    if all_classes and n_classes > 2:
        return SEVERAL, np.unique(y, return_inverse=True)[1].astype(np.float64)
    return TWO, signs(y)


def signs(y: NDArray[Any]) -> NDArray[np.float64]:
    """Labels as -1 and +1."""
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise ValueError("only one class")
    positive = classes[-1] if len(classes) == 2 else classes[np.argmax(counts)]
    return np.where(y == positive, 1.0, -1.0)


def _is_usable(path: Path) -> bool:
    with np.load(path) as parts:
        held = set(parts.files)
        if "y" not in held or not ("X" in held or {"data", "indices", "indptr", "shape"} <= held):
            return False
        return len(np.unique(parts["y"])) >= 2

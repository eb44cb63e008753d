"""Labels as machines see them: ±1 for every hyperplane, and classes that are known before they come."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.errors import InputError
from maxmargin.positions import as_array, shown


def machines_of(classes: NDArray[Any]) -> int:
    return 1 if len(classes) == 2 else len(classes)


def signed_labels(position: NDArray[np.intp], n_classes: int) -> list[NDArray[np.float64]]:
    """y = ±1 of every machine."""
    positives = [1] if n_classes == 2 else range(n_classes)
    return [np.where(position == k, 1.0, -1.0) for k in positives]


def declared_classes(machine: Any, classes: ArrayLike | None) -> NDArray[Any]:
    """The classes of partial_fit: given at the first call, the same ever after."""
    if classes is None:
        if not hasattr(machine, "classes_"):
            raise InputError("classes must be passed on the first call to partial_fit: all labels that may ever come")
        known: NDArray[Any] = machine.classes_
        return known
    try:
        given = np.unique(as_array(classes, "classes"))
    except TypeError:
        raise InputError(f"classes must hold numbers, text or truth values of one type, got {shown(classes)}") from None
    if hasattr(machine, "classes_") and not np.array_equal(machine.classes_, given):
        raise InputError(
            f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {machine.classes_!r}"
        )
    if len(given) < 2:
        raise InputError(f"classes must name at least two labels, got {given.tolist()}")
    return given


def known_labels(y: NDArray[Any], n_rows: int, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Where every label stands among the classes."""
    if len(y) != n_rows:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y has {len(y)}"
        )
    try:
        position = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    except TypeError:
        raise InputError(f"y holds labels that cannot be compared with the classes {classes.tolist()}") from None
    unknown = np.flatnonzero(classes[position] != y)
    if len(unknown):
        i = int(unknown[0])
        raise InputError(f"y[{i}] is {y[i]!r}, which is none of the classes {classes.tolist()} of the first call")
    return position

"""What every estimator shares: warnings that point at the caller, labels in one column, pickles with a version."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning as _SklearnConvergenceWarning
from sklearn.utils import column_or_1d

import maxmargin._core as _core

KEY = "_maxmargin_version"


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points at the caller's line, outside this package and scikit-learn's wrappers around fit."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_inside(module: str) -> bool:
    return module.split(".")[0] == "maxmargin" or module.startswith("sklearn.callback")


def one_column(y: Any) -> Any:
    """y as a vector; a table of one column counts as one, with scikit-learn's warning."""
    return y if type(y) is np.ndarray and y.ndim == 1 else column_or_1d(y, warn=True)


class ConvergenceWarning(_SklearnConvergenceWarning):
    """A fit stopped before the requested gap; the message says how far off it can be and what to change."""


def major(version: str) -> str:
    """The number before the first dot.

    Examples
    --------
    >>> major("2.10.1")
    '2'
    """
    return version.split(".", 1)[0]


class VersionedState:
    """Stamps a pickled estimator with the version, and refuses one of another major version."""

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        state[KEY] = _core.info()["version"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        here, there = _core.info()["version"], str(state.get(KEY, "unknown"))
        if major(there) != major(here):
            raise ValueError(
                f"this {type(self).__name__} was pickled by maxmargin {there}; this is {here}. Pickles are not read "
                "across major versions: install that version, or fit again. maxmargin.save writes files that last."
            )
        rest = {name: value for name, value in state.items() if name != KEY}
        parent = super()
        if hasattr(parent, "__setstate__"):
            parent.__setstate__(rest)
        else:
            self.__dict__.update(rest)

"""What every estimator shares: warnings that point at the caller, checks that go by scikit-learn, versioned pickles."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning as _SklearnConvergenceWarning
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

import maxmargin._core as _core
from maxmargin.errors import InputError
from maxmargin.positions import check_positions

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
    if type(y) is np.ndarray and y.ndim == 1:
        return y
    try:
        return column_or_1d(y, warn=True)
    except ValueError as error:
        raise InputError(str(error)) from None


def require_targets(machine: Any, y: Any) -> None:
    """Raise the error that scikit-learn promises where y is missing."""
    if y is None:
        raise InputError(f"{type(machine).__name__} requires y to be passed, but the target y is None")


def check_names(machine: Any, X: Any, *, first: bool = True) -> None:
    """Names and number of columns: remembered at the first fit, later compared. Before anything is learned."""
    validate_data(machine, X, skip_check_array=True, reset=first)


def checked_for_scores(machine: Any, X: Any) -> Any:
    """X of a prediction, as an array or CSR matrix with the columns that the machine was fitted to."""
    check_is_fitted(machine)
    check_positions(X)
    return validate_data(machine, X, accept_sparse="csr", reset=False)


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

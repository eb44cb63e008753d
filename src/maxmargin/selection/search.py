"""C by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from maxmargin.models import Scaling
from maxmargin.selection.split import folds
from maxmargin.solution import Status
from maxmargin.svm import ConvergenceWarning, LinearSVC

DEFAULT_CS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True, eq=False)
class Search:
    """Validation errors for each C and fold, and the C they speak for.

    Attributes
    ----------
    Cs : the values tried, increasing.
    errors : share of wrong answers, one row for each C, one column for each fold.
    n_unfinished : fits that stopped before their gap.
    """

    Cs: tuple[float, ...]
    errors: NDArray[np.float64]
    n_unfinished: int = 0

    @property
    def mean(self) -> NDArray[np.float64]:
        return np.asarray(self.errors.mean(axis=1))

    @property
    def standard_error(self) -> NDArray[np.float64]:
        return np.asarray(self.errors.std(axis=1, ddof=1) / np.sqrt(self.errors.shape[1]))

    @property
    def best(self) -> int:
        """Position of the smallest mean error; of equals, the smallest C, whose margin is widest."""
        mean = self.mean
        return int(np.flatnonzero(mean <= mean.min() + 1e-12)[0])

    @property
    def best_C(self) -> float:
        return self.Cs[self.best]


def choose_C(
    X: Any,
    y: NDArray[Any],
    machine: LinearSVC,
    *,
    Cs: Sequence[float] = DEFAULT_CS,
    n_folds: int = 5,
    seed: int = 0,
    scale: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Search:
    """Fit the machine for every C on every fold; each fold is scaled by its own learning rows.

    Parameters
    ----------
    X, y : encoded, unscaled rows and their labels.
    machine : all parameters but C.
    progress : called with (fits done, fits in all).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> choose_C(X, y, LinearSVC(loss="hinge"), Cs=[0.001, 0.1]).best_C
    0.1
    """
    values = tuple(sorted(float(C) for C in Cs))
    parts = folds(y, n_folds, seed)
    errors = np.empty((len(values), n_folds))
    unfinished = 0
    for k, (learn, validate) in enumerate(parts):
        X_learn, X_validate = X[learn], X[validate]
        if scale:
            scaling = Scaling.learn(X_learn)
            X_learn, X_validate = scaling.apply(X_learn), scaling.apply(X_validate)
        for i, C in enumerate(values):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                fitted = clone(machine).set_params(C=C).fit(X_learn, y[learn])
            unfinished += fitted.solution_.status is not Status.CONVERGED
            errors[i, k] = np.mean(fitted.predict(X_validate) != y[validate])
            if progress is not None:
                progress(k * len(values) + i + 1, len(values) * n_folds)
    return Search(values, errors, unfinished)

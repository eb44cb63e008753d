"""What the machines of squared errors share: the way from arrays to a system of equations, and from weights to
scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin

from maxmargin.errors import InputError
from maxmargin.estimators import VersionedState, check_names, checked_for_scores, one_column, require_targets
from maxmargin.foreign import LinearClassifierMixin
from maxmargin.inputs import (
    LabelledRows,
    check_rows,
    check_sizes,
    check_targets,
    check_weights,
    number_in,
    truth_value,
)
from maxmargin.positions import as_array
from maxmargin.space import Rows
from maxmargin.squares.centred import Matrix, Vector
from maxmargin.undisturbed import undisturbed


@dataclass(frozen=True, eq=False)
class Found:
    """What was found for all outputs: weights (d, k), biases (k,), and further attributes of the machine by name."""

    W: Matrix
    b: Vector
    about: dict[str, Any]


class LinearMachine(VersionedState, BaseEstimator):
    """A subclass says how weights and biases are found for several outputs at once."""

    def _check_parameters(self) -> None:
        """Raise InputError for a parameter that cannot be used, before any work."""

    def _find(self, space: Rows, Y: Matrix, weight: Vector, single: bool) -> Found:
        """The solution for the targets Y (n, k); attributes of a ``single`` output have no axis for outputs."""
        raise NotImplementedError

    def _found(self, space: Rows, Y: Matrix, weight: Vector, single: bool) -> Found:
        """What ``_find`` finds, if it can be computed with. The machine is as it was before."""
        truth_value("fit_intercept", self.fit_intercept)
        check_sizes(space, weight)
        with undisturbed(space), np.errstate(over="ignore", invalid="ignore"):
            found = self._find(space, Y, weight, single)
        check_solution(found.W, found.b)
        return found

    def _keep(self, found: Found) -> None:
        """The attributes that only some machines have."""
        for name, value in found.about.items():
            setattr(self, name, value)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LinearRegressor(MultiOutputMixin, RegressorMixin, LinearMachine):
    """Fit, store and predict one number per row, or several."""

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Find the hyperplane.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Numbers to approximate.
        sample_weight : array-like of shape (n_samples,), optional
            Weights c_i ≥ 0; a weight of k counts as k repetitions, 0 leaves a row out.
        """
        self._check_parameters()
        require_targets(self, y)
        space = check_rows(X)
        Y = check_outputs(y, space.n)
        single = Y.ndim == 1
        check_names(self, X)
        found = self._found(space, Y.reshape(len(Y), -1), check_weights(sample_weight, space.n), single)
        self._keep(found)
        self.coef_ = np.ascontiguousarray(found.W[:, 0] if single else found.W.T)
        self.intercept_: Any = float(found.b[0]) if single else found.b
        return self

    def predict(self, X: Any) -> Any:
        """⟨w, x⟩ + b of every row."""
        return np.asarray(checked_for_scores(self, X) @ self.coef_.T + self.intercept_)


class LinearClassifier(LinearClassifierMixin, LinearMachine):
    """Fit to targets −1 and +1, and predict classes: one machine for two of them, one for each of more."""

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Find the hyperplane, or one for each of three classes or more.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels: numbers, text or truth values.
        sample_weight : array-like of shape (n_samples,), optional
            Weights c_i ≥ 0; a weight of k counts as k repetitions, 0 leaves a row out.
        """
        self._check_parameters()
        require_targets(self, y)
        class_weight = getattr(self, "class_weight", None)
        data = LabelledRows.from_arrays(X, one_column(y), sample_weight, class_weight)
        positive = range(1, 2) if len(data.classes) == 2 else range(len(data.classes))
        Y = np.stack([np.where(data.position == k, 1.0, -1.0) for k in positive], axis=1)
        check_names(self, X)
        found = self._found(data.space, Y, data.weight, Y.shape[1] == 1)
        self._keep(found)
        self.classes_, self.intercept_ = data.classes, found.b
        self.coef_ = np.ascontiguousarray(found.W.T)
        return self

    def decision_function(self, X: Any) -> Any:
        """Scores ⟨w, x⟩ + b: one per row for two classes (positive means ``classes_[1]``), one per class for more."""
        scores = np.asarray(checked_for_scores(self, X) @ self.coef_.T + self.intercept_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Any:
        """The class of each row; a score of exactly 0 goes to ``classes_[0]``."""
        return super().predict(X)


def check_outputs(y: Any, n_rows: int) -> Matrix:
    """y as finite float64 numbers: a vector, or a matrix with a column per output.

    Examples
    --------
    >>> check_outputs([[1, 2], [3, 4]], 2)
    array([[1., 2.],
           [3., 4.]])
    """
    given = as_array(y, "y")
    if given.ndim != 2:
        return check_targets(y, n_rows)
    if given.shape[1] == 0:
        raise InputError(f"y has shape {given.shape}; expected at least one number per row of X")
    outputs = []
    for j in range(given.shape[1]):
        try:
            outputs.append(check_targets(given[:, j], n_rows))
        except InputError as error:
            raise InputError(f"{error} (output {j} of y)") from None
    return np.stack(outputs, axis=1)


def check_alpha(alpha: Any) -> float:
    """The price of ‖w‖²: a finite number of at least 0."""
    number = number_in("alpha", alpha, 0.0, np.inf)
    if np.isinf(number):
        raise InputError("alpha must be finite, got inf: no weights are worth an infinite price")
    return number


def check_solution(*parts: Matrix) -> None:
    """What was computed must be finite; if it is not, the input was too large or too small for float64."""
    if not all(np.isfinite(part).all() for part in parts):
        raise InputError(
            "the equations overflow float64 arithmetic: values in X or y, or weights, are too large or too small. "
            "Scale the columns, for example with sklearn.preprocessing.StandardScaler, and y"
        )

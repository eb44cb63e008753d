"""What the machines of squared errors share: the way from arrays to a system of equations, and from weights to
scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin.estimators import VersionedState, one_column
from maxmargin.inputs import (
    LabelledRows,
    check_rows,
    check_sizes,
    check_targets,
    check_weights,
    number_in,
    truth_value,
)
from maxmargin.positions import InputError, as_array, check_positions
from maxmargin.space import Rows
from maxmargin.squares.centred import Matrix, Vector
from maxmargin.undisturbed import undisturbed


class LinearMachine(VersionedState, BaseEstimator):
    """A subclass says how weights and biases are found for several outputs at once."""

    def _check_parameters(self) -> None:
        """Raise InputError for a parameter that cannot be used, before any work."""

    def _find(self, X: Any, Y: Matrix, weight: Vector) -> tuple[Matrix, Vector]:
        """Weights (d, k) and biases (k,) for the targets Y (n, k); may set attributes of its own."""
        raise NotImplementedError

    def _found(self, rows: Rows, Y: Matrix, weight: Vector) -> tuple[Matrix, Vector]:
        """What ``_find`` finds, if it can be computed with."""
        truth_value("fit_intercept", self.fit_intercept)
        check_sizes(rows, weight)
        with undisturbed(rows), np.errstate(over="ignore", invalid="ignore"):
            W, b = self._find(rows.X, Y, weight)
        check_solution(W, b)
        return W, b

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
        rows = check_rows(X)
        Y = check_outputs(y, rows.n)
        self._single = Y.ndim == 1
        W, b = self._found(rows, Y.reshape(len(Y), -1), check_weights(sample_weight, rows.n))
        validate_data(self, X, skip_check_array=True)  # feature names and count, for predict
        self.coef_ = np.ascontiguousarray(W[:, 0] if self._single else W.T)
        self.intercept_: Any = float(b[0]) if self._single else b
        return self

    def predict(self, X: Any) -> Any:
        """⟨w, x⟩ + b of every row."""
        check_is_fitted(self)
        X = checked_for_scores(self, X)
        return np.asarray(X @ self.coef_.T + self.intercept_)


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
        self._single = Y.shape[1] == 1
        W, self.intercept_ = self._found(data.space, Y, data.weight)
        validate_data(self, X, skip_check_array=True)  # feature names and count, for predict
        self.classes_ = data.classes
        self.coef_ = np.ascontiguousarray(W.T)
        return self

    def decision_function(self, X: Any) -> Any:
        """Scores ⟨w, x⟩ + b: one per row for two classes (positive means ``classes_[1]``), one per class for more."""
        check_is_fitted(self)
        scores = np.asarray(checked_for_scores(self, X) @ self.coef_.T + self.intercept_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Any:
        """The class of each row; a score of exactly 0 goes to ``classes_[0]``."""
        return super().predict(X)


def require_targets(machine: Any, y: Any) -> None:
    """Raise the error that scikit-learn promises where y is missing."""
    if y is None:
        raise ValueError(f"{type(machine).__name__} requires y to be passed, but the target y is None")


def checked_for_scores(machine: Any, X: Any) -> Any:
    """X as an array or CSR matrix with the columns the machine was fitted to."""
    if sp.issparse(X):
        check_positions(X)
    return validate_data(machine, X, accept_sparse="csr", reset=False)


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

"""A fitted machine with all that is needed to use it on a file: how columns are encoded and scaled, and what it saw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.certificates import OptimalityCertificate
from maxmargin.data import DataError, Encoding, Table, digest
from maxmargin.data.labels import as_classes, label_text
from maxmargin.data.table import shortened
from maxmargin.errors import InputError
from maxmargin.models.scaling import Scaling
from maxmargin.positions import check_positions
from maxmargin.svm import LinearSVC


@dataclass(frozen=True, eq=False)
class Training:
    """What the machine was fitted on.

    Attributes
    ----------
    n_rows : number of rows.
    digest : fingerprint of the encoded, unscaled rows and their labels; None if the rows were not given.
    source, target : file and label column, as far as they are known.
    rows : positions of the rows in the file; None means all of them.
    positive : the label that was set against all others, if the file has more than two.
    zero_based : whether the svmlight file counted its columns from 0.
    layout : what was said about the CSV file: ``na``, ``header``, ``delimiter``, ``decimal``.
    """

    n_rows: int
    digest: str | None = None
    source: str | None = None
    target: str | None = None
    rows: NDArray[np.int64] | None = None
    positive: str | None = None
    zero_based: bool | None = None
    layout: dict[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Model:
    """A machine as it is saved and loaded.

    Examples
    --------
    >>> X, y = np.array([[0.0, 1.0], [2.0, 2.5], [3.0, 0.5]]), np.array(["no", "yes", "yes"])
    >>> scaling = Scaling.learn(X)
    >>> model = Model(LinearSVC().fit(scaling.apply(X), y), Training(3), scaling=scaling)
    >>> model.predict(X)
    array(['no', 'yes', 'yes'], dtype='<U3')
    """

    machine: LinearSVC
    training: Training
    encoding: Encoding | None = None
    scaling: Scaling | None = None
    names: tuple[str, ...] | None = None
    has_dual: bool = field(default=True)

    @property
    def n_features(self) -> int:
        return int(self.machine.coef_.shape[1])

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the weights; x0, x1, … if the data had none."""
        first = 1 if self.training.zero_based is False else 0
        return self.names or tuple(f"x{j + first}" for j in range(self.n_features))

    @property
    def coef_(self) -> NDArray[np.float64]:
        return np.asarray(self.machine.coef_)

    @property
    def intercept_(self) -> NDArray[np.float64]:
        return np.asarray(self.machine.intercept_)

    @property
    def classes_(self) -> NDArray[Any]:
        return np.asarray(self.machine.classes_)

    @property
    def certificate_(self) -> OptimalityCertificate:
        """The machine's certificate; it speaks of the encoded and scaled rows, ``matrix(table)``."""
        certificate: OptimalityCertificate = self.machine.certificate_
        return certificate

    def score(self, data: Any, y: Any = None) -> float:
        """Share of right answers; a table brings its own labels."""
        labels = self.labels(data) if y is None else np.asarray(y)
        return float(np.mean(self.predict(data) == labels))

    def encoded(self, table: Table) -> Any:
        """The table's rows as the training rows were encoded, not yet scaled."""
        if not table.is_matrix:
            if self.encoding is not None:
                return self.encoding.apply(table)
            X = Encoding.learn(table).apply(table)
            return self._fitting(X, table, self.names)
        if self.encoding is not None and any(column.levels is not None for column in self.encoding.columns):
            raise DataError(
                table.source, "columns", "the model was trained on text columns; it needs a file with named columns"
            )
        return self._fitting(table.columns, table, self.names if table.names is not None else None)

    def _fitting(self, X: Any, table: Table, names: tuple[str, ...] | None) -> Any:
        """X with exactly the model's columns, by name if both have names, else by position."""
        if names is not None and table.names is not None and tuple(table.names) != names:
            absent = [name for name in names if name not in table.names]
            if absent:
                raise DataError(table.source, "header", f"the columns {shortened(absent)} of the model are missing")
            return X[:, [table.names.index(name) for name in names]]
        if X.shape[1] == self.n_features:
            return X
        if sp.issparse(X) and table.names is None:
            # Columns that never occurred in training have weight 0; columns that do not occur here have value 0.
            return _resized(X, self.n_features)
        raise DataError(table.source, "columns", f"the model has {self.n_features} columns, this file has {X.shape[1]}")

    def matrix(self, table: Table) -> Any:
        """The rows as the machine sees them."""
        return self._scaled(self.encoded(table))

    def _scaled(self, X: Any) -> Any:
        return X if self.scaling is None else self.scaling.apply(X)

    def _rows(self, data: Any) -> Any:
        if isinstance(data, Table):
            return self.matrix(data)
        if hasattr(data, "iloc"):  # a data frame: columns are found by name
            from maxmargin.data.arrow import table_from_frame

            return self.matrix(table_from_frame(data))
        if sp.issparse(data):
            check_positions(data)
        return self._scaled(data)

    def decision_function(self, data: Any) -> NDArray[np.float64]:
        """Signed scores of a table's or a matrix's rows, all finite; positive means ``classes[1]``."""
        rows = self._rows(data)
        try:
            rows = rows if sp.issparse(rows) else np.asarray(rows, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"X must hold numbers: {error}") from None
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise InputError(f"X must be rows of {self.n_features} columns, as in training; got shape {rows.shape}")
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray(rows @ self.machine.coef_[0]).ravel() + float(self.machine.intercept_[0])
        bad = np.flatnonzero(~np.isfinite(scores))
        if len(bad):
            raise InputError(
                f"row {bad[0]} has no finite score: a value is missing or infinite, or values and weights are too large"
            )
        return scores

    def predict(self, data: Any) -> NDArray[Any]:
        """The class of each row of a table or a matrix."""
        return self.answers(self.decision_function(data))

    def answers(self, scores: NDArray[np.float64]) -> NDArray[Any]:
        """The classes that scores stand for; exactly 0 goes to the first."""
        return np.asarray(self.machine.classes_[(scores > 0.0).astype(np.intp)])

    def labels(self, table: Table) -> NDArray[Any]:
        """The table's labels as the model's classes; unknown labels are an error."""
        y = relabelled(table.labels(), self.training.positive)
        return as_classes(y, self.machine.classes_, table.source)


def relabelled(y: NDArray[Any], positive: str | None) -> NDArray[Any]:
    """Labels as one class against the rest, if ``positive`` names it.

    Examples
    --------
    >>> relabelled(np.array([1, 2, 3]), "2")
    array(['(not 2)', '2', '(not 2)'], dtype='<U7')
    """
    if positive is None:
        return y
    # The bracket sorts before letters and digits, so that the positive class is the second one, as its name says.
    is_positive = np.array([label_text(label) for label in y.tolist()]) == positive
    return np.where(is_positive, positive, f"(not {positive})")


def _resized(X: Any, n_columns: int) -> Any:
    if X.shape[1] > n_columns:
        return sp.csr_array(X[:, :n_columns])
    return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_columns))


def trained_on(X: Any, y: NDArray[Any], **known: Any) -> Training:
    """The record of encoded, unscaled rows and their labels."""
    return Training(n_rows=int(X.shape[0]), digest=digest(X, y), **known)

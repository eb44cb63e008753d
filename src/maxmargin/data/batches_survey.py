"""What one pass over a file tells, batch by batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.data.labels import plain_labels
from maxmargin.positions import distinct

MOST_CLASSES = 1000


@dataclass(frozen=True)
class Survey:
    """What one pass over a file tells.

    Attributes
    ----------
    n_rows, n_features : the shape.
    classes : the labels that occur, sorted; None if there are more than 1000, or no labels.
    largest_squared_norm : of a row.
    zero_based : whether the columns of a svmlight file count from 0; None for other formats.
    """

    n_rows: int
    n_features: int
    classes: NDArray[Any] | None
    largest_squared_norm: float
    zero_based: bool | None


class Tally:
    """Sums over the rows seen so far."""

    def __init__(self) -> None:
        self.n_rows, self.largest = 0, 0.0
        self.labels: NDArray[Any] | None = None
        self.too_many = False

    def add(self, X: Any, y: Any) -> None:
        if X.shape[0] == 0:
            return
        self.n_rows += int(X.shape[0])
        self.largest = max(self.largest, _largest_squared_norm(X))
        if y is None or self.too_many:
            return
        found = distinct(y)
        self.labels = found if self.labels is None else distinct(np.concatenate([self.labels, found]))
        self.too_many = len(self.labels) > MOST_CLASSES

    def survey(self, n_features: int, zero_based: bool | None) -> Survey:
        classes = None if self.labels is None or self.too_many else plain_labels(self.labels)
        return Survey(self.n_rows, n_features, classes, self.largest, zero_based)


def _largest_squared_norm(X: Any) -> float:
    with np.errstate(over="ignore"):
        if not sp.issparse(X):
            return float(np.einsum("ij,ij->i", X, X, dtype=np.float64).max())
        begins = X.indptr[:-1][np.diff(X.indptr) > 0].astype(np.intp)  # reduceat gives empty rows something
        squares = X.data.astype(np.float64) ** 2
        return float(np.add.reduceat(squares, begins).max()) if len(begins) else 0.0

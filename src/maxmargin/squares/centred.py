"""Rows as a sum of squares sees them: A = √c (X − 1μᵀ), with the weighted mean μ taken off.

An unpenalised bias b is then gone from the problem: Σ c_i (y_i − ⟨w, x_i⟩ − b)² is least at b = ν − ⟨w, μ⟩, where ν is
the weighted mean of y, and equals ‖B − A w‖² with B = √c (y − ν). Without a bias, μ = 0 and ν = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.errors import InputError
from maxmargin.space import Rows

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class CentredRows(Protocol):
    """A, as far as a solver needs it. Everything it is multiplied with has two dimensions."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def mean(self) -> Vector: ...

    @property
    def uncentred_size(self) -> float:
        """A bound on the squared singular values before the mean is taken off: products are rounded beside it."""
        ...

    def times(self, W: Matrix) -> Matrix:
        """A W."""
        ...

    def back(self, R: Matrix) -> Matrix:
        """Aᵀ R."""
        ...

    def column_products(self) -> Matrix:
        """AᵀA, as a new array."""
        ...

    def row_products(self) -> Matrix:
        """AAᵀ, as a new array."""
        ...


@dataclass(frozen=True, eq=False)
class DenseRows:
    """A as an array."""

    A: Matrix
    mean: Vector

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.A.shape[0]), int(self.A.shape[1])

    @property
    def uncentred_size(self) -> float:
        return 0.0  # the mean is off before any product is formed

    def times(self, W: Matrix) -> Matrix:
        return np.asarray(self.A @ W)

    def back(self, R: Matrix) -> Matrix:
        return np.asarray(self.A.T @ R)

    def column_products(self) -> Matrix:
        return np.asarray(self.A.T @ self.A)

    def row_products(self) -> Matrix:
        return np.asarray(self.A @ self.A.T)


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A as scaled = √c X, which stays sparse, and the rank-one part √c μᵀ."""

    scaled: Any
    root: Vector
    mean: Vector

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.scaled.shape[0]), int(self.scaled.shape[1])

    @property
    def uncentred_size(self) -> float:
        return float(self.scaled.data @ self.scaled.data) if self.mean.any() else 0.0

    def times(self, W: Matrix) -> Matrix:
        return np.asarray(self.scaled @ W) - np.outer(self.root, self.mean @ W)

    def back(self, R: Matrix) -> Matrix:
        return np.asarray(self.scaled.T @ R) - np.outer(self.mean, self.root @ R)

    def column_products(self) -> Matrix:
        products = (self.scaled.T @ self.scaled).toarray()
        products -= (self.root @ self.root) * np.outer(self.mean, self.mean)
        return np.asarray(products)

    def row_products(self) -> Matrix:
        products = (self.scaled @ self.scaled.T).toarray()
        along = np.outer(self.root, self.scaled @ self.mean)
        products -= along
        products -= along.T
        products += (self.mean @ self.mean) * np.outer(self.root, self.root)
        return np.asarray(products)


def centred_rows(rows: Rows, weight: Vector, fit_intercept: bool, most_dense: int) -> CentredRows:
    """A for weights above zero; sparse rows become dense if that makes at most ``most_dense`` numbers."""
    if rows.sparse and rows.n * rows.d > most_dense:
        X = rows.X.astype(np.float64)
        root = np.sqrt(weight)
        mean = np.asarray(weight @ X).ravel() / weight.sum() if fit_intercept else np.zeros(rows.d)
        return SparseRows(sp.csr_array(X.multiply(root[:, None])), root, mean)
    A, mean = centred(rows.dense(), weight, fit_intercept)
    return DenseRows(A, mean)


def centred(values: Matrix, weight: Vector, fit_intercept: bool) -> tuple[Matrix, Vector]:
    """√c (values − mean) and the mean; ``values`` are overwritten.

    The mean is taken off twice: after the first time a column that is constant and large is left with a rounding
    error in every row, which must not count as a direction in which the rows differ.
    """
    mean = np.zeros(values.shape[1])
    for _ in range(2 if fit_intercept else 0):
        step = weight @ values / weight.sum()
        values -= step
        mean += step
    if not np.all(weight == 1.0):
        values *= np.sqrt(weight)[:, None]
    return values, mean


def kept_rows(rows: Rows, weight: Vector) -> tuple[Rows, NDArray[np.intp] | slice]:
    """The rows whose weight is above zero, and where they were: all of them as a slice, so that nothing is copied."""
    total = float(weight.sum())
    if total <= 0.0:
        raise InputError("every sample has weight zero; some need a weight above zero")
    if not np.isfinite(total):
        raise InputError("the sum of sample_weight overflows; use smaller weights")
    if weight.all():
        return rows, slice(None)
    kept = np.flatnonzero(weight)
    return rows.take(kept), kept

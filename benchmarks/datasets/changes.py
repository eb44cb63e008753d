"""What is done to a data set before anybody sees it: ``news20+tfidf``, ``cadata+standard``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets.base import Dataset, csr
from benchmarks.forms import REGRESSION


def tfidf(data: Dataset) -> Dataset:
    """Counts times ln((1 + n)/(1 + n_j)) + 1, with n_j the rows that have column j; rows of length 1."""
    if not data.sparse:
        raise ValueError(f"{data.name}: tfidf needs sparse counts")
    n, d = data.X.shape
    rarity = np.log((1.0 + n) / (1.0 + np.bincount(data.X.indices, minlength=d))) + 1.0
    values = data.X.data.astype(np.float64) * rarity[data.X.indices]
    return replace(data, X=unit_rows(csr(values, data.X.indices, data.X.indptr, data.X.shape)))


def unit_rows(X: sp.csr_matrix) -> sp.csr_matrix:
    """Every row divided by its length; empty rows stay."""
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.where(length > 0.0, length, 1.0), np.diff(X.indptr))
    return X


def standard(data: Dataset) -> Dataset:
    """Dense columns of mean 0 and spread 1, and targets too in a regression."""
    if data.sparse:
        raise ValueError(f"{data.name}: standard needs dense rows")
    X = data.X.astype(np.float64)
    y = data.y
    if data.kind == REGRESSION:
        y = (y - y.mean()) / y.std()
    spread = X.std(axis=0)
    return replace(data, X=(X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0), y=y)


def float32(data: Dataset) -> Dataset:
    """Numbers in single precision; files of the folder are read as float64."""
    return replace(data, X=data.X.astype(np.float32))


CHANGES = {"tfidf": tfidf, "standard": standard, "float32": float32}

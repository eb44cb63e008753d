"""Rows for the recorded fits: small, seeded, and the same bits on every machine.

All numbers are multiples of 1/1024 (of 1/8 for rules that only add rows), so that every sum formed here is exact and no
label depends on the order of an addition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

Data = tuple[Any, np.ndarray, np.ndarray | None]  # rows, labels or numbers, weights


def rows(n: int, d: int, seed: int, grid: int = 1024) -> np.ndarray:
    """Standard normal numbers, rounded to multiples of 1/grid."""
    return np.round(np.random.default_rng(seed).standard_normal((n, d)) * grid) / grid


def scores(X: Any, seed: int, noise: float) -> np.ndarray:
    """⟨w, x⟩ of every row for some w, plus noise; exact."""
    rng = np.random.default_rng(1000 + seed)
    w = np.round(rng.standard_normal(X.shape[1]) * 8.0) / 8.0
    return np.asarray(X @ w) + np.round(noise * rng.standard_normal(X.shape[0]) * 1024) / 1024


def labels(values: np.ndarray) -> np.ndarray:
    """Two classes of nearly the same size."""
    y = np.where(values > np.median(values), 1, -1)
    y[0], y[-1] = 1, -1
    return y


def two(n: int = 120, d: int = 6, seed: int = 0, noise: float = 1.0) -> Data:
    """Two overlapping classes."""
    X = rows(n, d, seed)
    return X, labels(scores(X, seed, noise)), None


def apart(n: int = 60, d: int = 5, seed: int = 0, grid: int = 1024) -> Data:
    """Two classes with room between them."""
    X = rows(n, d, seed, grid)
    y = labels(scores(X, seed, 0.0))
    X[:, 0] += 3.0 * y
    X[:, 1] -= 2.0 * y
    return X, y, None


def several(n: int = 90, d: int = 5, k: int = 3, seed: int = 0) -> Data:
    """k overlapping classes."""
    X = rows(n, d, seed)
    y = np.stack([scores(X, 50 * seed + m, 1.0) for m in range(k)], axis=1).argmax(axis=1)
    y[:k] = np.arange(k)
    return X, y, None


def numbers(n: int = 100, d: int = 6, seed: int = 0, noise: float = 1.0) -> Data:
    """Numbers to approximate."""
    X = rows(n, d, seed)
    return X, scores(X, seed, noise) + 0.5, None


def gaps(data: Data, keep: float = 0.4, seed: int = 0) -> Data:
    """The same rows with most entries zero; what is to be learned stays."""
    X, y, weight = data
    return np.where(np.random.default_rng(2000 + seed).random(X.shape) < keep, X, 0.0), y, weight


def sparse(n: int, d: int, per_row: int, seed: int = 0, noise: float = 1.0) -> Data:
    """CSR rows of about so many entries, two classes."""
    rng = np.random.default_rng(3000 + seed)
    at = np.repeat(np.arange(n), per_row), rng.integers(0, d, n * per_row)
    X = sp.csr_array((np.round(rng.standard_normal(n * per_row) * 1024) / 1024, at), shape=(n, d))
    return X, labels(scores(X, seed, noise)), None


def sparse_numbers(n: int, d: int, per_row: int, seed: int = 0) -> Data:
    """The same with numbers to approximate."""
    X, _, _ = sparse(n, d, per_row, seed)
    return X, scores(X, seed, 1.0), None


def int64_rows(X: Any) -> Any:
    """CSR rows whose positions are 64-bit integers."""
    csr = sp.csr_array(X)
    return sp.csr_array((csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)), shape=csr.shape)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "dense": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "csr-float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "csr-int64": int64_rows,
}


def laid_out(layout: str, data: Data) -> Data:
    """The rows in another layout."""
    X, y, weight = data
    return LAYOUTS[layout](X), y, weight


def weighted(data: Data, values: tuple[float, ...] = (1.0, 2.5, 0.25)) -> Data:
    """Weights that take turns; the first row and the last one count in any case."""
    X, y, _ = data
    weight = np.resize(np.array(values), len(y))
    weight[0] = weight[-1] = 1.0
    return X, y, weight


def zeroed(data: Data) -> Data:
    """A third of all rows has weight zero."""
    return weighted(data, (1.0, 0.0, 3.0))


def repeated(data: Data) -> Data:
    """Every row three times."""
    X, y, _ = data
    return np.tile(X, (3, 1)), np.tile(y, 3), None


def contradictory(data: Data) -> Data:
    """Every row with both labels."""
    X, y, _ = data
    return np.vstack([X, X]), np.concatenate([y, -y]), None


def collinear(data: Data) -> Data:
    """Columns that are combinations of others, a constant one and an empty one."""
    X, y, weight = data
    return np.hstack([X, X[:, :1] + X[:, 1:2], np.full((len(X), 1), 3.0), np.zeros((len(X), 1))]), y, weight


def scaled(data: Data, exponents: tuple[int, ...]) -> Data:
    """Columns times powers of two, which take turns."""
    X, y, weight = data
    return X * 2.0 ** np.resize(np.array(exponents, dtype=float), X.shape[1]), y, weight


def rare(n: int, d: int, positives: int, seed: int = 0) -> Data:
    """A class of few rows."""
    X = rows(n, d, seed)
    y = np.full(n, -1)
    y[np.linspace(0, n - 1, positives).astype(int)] = 1
    X[y > 0] += 1.0
    return X, y, None


def truth(n: int = 80, d: int = 12, seed: int = 0) -> Data:
    """Zeros and ones, labelled by the disjunction of the first two columns."""
    X = (np.random.default_rng(4000 + seed).random((n, d)) < 0.3).astype(float)
    y = np.where(X[:, 0] + X[:, 1] > 0.0, 1, -1)
    return X, y, None

"""Columns of mean 0 and deviation 1, learned once and applied to every later row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scaling:
    """x ↦ (x − mean) / scale in every column; sparse rows are not centred, so that they stay sparse.

    Examples
    --------
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0]])
    >>> Scaling.learn(X).apply(X)
    array([[-1.,  0.], [ 1.,  0.]])
    """

    mean: Vector | None
    scale: Vector

    @classmethod
    def learn(cls, X: Any) -> Scaling:
        """Mean and deviation of every column; a constant column keeps its scale."""
        n = X.shape[0]
        mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        if sp.issparse(X):
            squares = np.asarray(X.astype(np.float64).power(2).sum(axis=0)).ravel() / n
            deviation = np.sqrt(np.maximum(0.0, squares - mean**2))
        else:
            deviation = np.sqrt(sum(((part - mean) ** 2).sum(axis=0) for part in _blocks(X)) / n)
        # What rounding leaves of a constant column is no deviation.
        constant = deviation <= 10.0 * np.finfo(np.float64).eps * n * np.abs(mean)
        return cls(None if sp.issparse(X) else mean, np.where(constant, 1.0, deviation))

    def apply(self, X: Any) -> Any:
        """The scaled rows, in the precision of X."""
        if sp.issparse(X):
            if self.mean is not None:
                X = X.toarray()
            else:
                scaled = sp.csr_array(X, copy=True)
                scaled.data /= self.scale.astype(scaled.dtype)[scaled.indices]
                return scaled
        X = np.asarray(X)
        kind = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
        out = np.empty(X.shape, dtype=kind)
        mean = 0.0 if self.mean is None else self.mean
        begin = 0
        for part in _blocks(X):
            out[begin : begin + len(part)] = (part - mean) / self.scale
            begin += len(part)
        return out


def _blocks(X: Any) -> Any:
    """The rows in float64, some at a time: a float32 matrix is not copied whole."""
    for begin in range(0, X.shape[0], 8192):
        yield X[begin : begin + 8192].astype(np.float64)

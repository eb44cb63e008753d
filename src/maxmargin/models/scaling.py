"""Columns of mean 0 and deviation 1, learned once and applied to every later row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.errors import InputError

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
        # Columns are measured in a power of two near their largest value: no square overflows or vanishes, and nothing
        # is rounded.
        size = np.asarray(abs(X).max(axis=0).toarray() if sp.issparse(X) else np.abs(X).max(axis=0)).ravel()
        beyond = np.flatnonzero(~np.isfinite(size))
        if len(beyond):
            raise InputError(
                f"column {beyond[0]} (counted from 0) holds a value that is not finite; remove or correct it"
            )
        unit = np.ldexp(1.0, np.clip(np.frexp(size.astype(np.float64))[1], -1000, 1000))
        if sp.issparse(X):
            Z = sp.csr_array(X, dtype=np.float64, copy=True)
            Z.data /= unit[Z.indices]
            mean = np.asarray(Z.sum(axis=0)).ravel() / n
            squares = np.asarray(Z.power(2).sum(axis=0)).ravel() / n
            deviation = np.sqrt(np.maximum(0.0, squares - mean**2))
        else:
            mean = sum((part / unit).sum(axis=0) for part in _blocks(X)) / n
            deviation = np.sqrt(sum(((part / unit - mean) ** 2).sum(axis=0) for part in _blocks(X)) / n)
        mean, deviation = mean * unit, deviation * unit
        # What rounding leaves of a constant column is no deviation.
        constant = deviation <= 10.0 * np.finfo(np.float64).eps * n * np.abs(mean)
        return cls(None if sp.issparse(X) else mean, np.where(constant, 1.0, deviation))

    def apply(self, X: Any) -> Any:
        """The scaled rows, in the precision of X, all finite."""
        if sp.issparse(X) and self.mean is not None:
            X = X.toarray()
        X = X if sp.issparse(X) else np.asarray(X)
        if X.ndim != 2 or X.shape[1] != len(self.scale):
            raise InputError(f"X must be rows of {len(self.scale)} columns, as in training; got shape {X.shape}")
        kind = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self._sparse(X, kind) if sp.issparse(X) else self._dense(X, kind)

    def _sparse(self, X: Any, kind: np.dtype[Any]) -> Any:
        out = sp.csr_array(X, dtype=kind, copy=True)
        out.data /= self.scale.astype(kind)[out.indices]
        bad = np.flatnonzero(~np.isfinite(out.data))
        if len(bad):
            raise _beyond(int(np.searchsorted(out.indptr, bad[0], side="right")) - 1, int(out.indices[bad[0]]))
        return out

    def _dense(self, X: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any]:
        out = np.empty(X.shape, dtype=kind)
        mean = 0.0 if self.mean is None else self.mean
        begin = 0
        for part in _blocks(X):
            done = out[begin : begin + len(part)]
            done[...] = (part - mean) / self.scale
            bad = np.argwhere(~np.isfinite(done))
            if len(bad):
                raise _beyond(begin + int(bad[0][0]), int(bad[0][1]))
            begin += len(part)
        return out


def _beyond(row: int, column: int) -> InputError:
    return InputError(
        f"row {row}, column {column} of X is not finite, or is not once it is scaled; remove or correct it"
    )


def _blocks(X: Any) -> Any:
    """The rows in float64, some at a time: a float32 matrix is not copied whole."""
    for begin in range(0, X.shape[0], 8192):
        yield X[begin : begin + 8192].astype(np.float64)

"""Few rows of many columns, in coordinates of their span.

With XXᵀ = LLᵀ the rows of L, at most as many columns as there are rows, have the same inner products as those of X.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg.lapack as lapack
from numpy.typing import NDArray

from maxmargin.runtime import Execution
from maxmargin.space.facts import Facts

if TYPE_CHECKING:
    from maxmargin.space.rows import Rows

Vector = NDArray[np.float64]


class SpanOfRows:
    """``rows`` have the inner products of the rows given; those named by ``basis`` span all. About 2 n² numbers.

    Examples
    --------
    >>> from maxmargin.space import Rows
    >>> span = Rows.of(np.array([[3.0, 0.0, 4.0], [6.0, 0.0, 8.0]])).span(Execution(1))
    >>> span.basis, np.abs(span.rows.X).round(12)
    (array([0], dtype=int32), array([[ 5.],
           [10.]]))
    """

    def __init__(self, rows: Rows, how: Execution) -> None:
        from maxmargin.space.rows import Rows

        n = rows.n
        G = rows.gram(np.arange(n, dtype=np.int64), how)
        squared_norms = np.diag(G).copy()
        # Scaled to unit diagonal, or short rows would be lost beside long ones.
        size = np.sqrt(np.where(squared_norms > 0.0, squared_norms, 1.0))
        G /= size
        G /= size[:, None]
        factor, pivot, rank, _ = lapack.dpstrf(G.T, lower=1, overwrite_a=1)
        rank = max(int(rank), 1)
        for j in range(1, rank):
            factor[:j, j] = 0.0
        self.basis = pivot[:rank] - 1
        L = np.empty((n, rank))
        L[pivot - 1] = factor[:, :rank]
        L *= size[:, None]
        inside = Rows.of(L)
        self.rows = Rows(L, inside.core, Facts(True, rows.facts.largest, rank, squared_norms))

    @property
    def triangle(self) -> Vector:
        """The basis in its own coordinates, lower triangular."""
        return np.asarray(self.rows.X[self.basis])

    def coordinates(self, scores: Vector) -> Vector | None:
        """The w within the span that has these scores; None if it cannot be computed."""
        w, info = lapack.dtrtrs(self.triangle, scores[self.basis], lower=1)
        return np.ascontiguousarray(w) if info == 0 and np.all(np.isfinite(w)) else None

    def coefficients(self, w: Vector) -> Vector | None:
        """One coefficient per row whose sum Σ c_i x_i is w; None if they cannot be computed."""
        of_basis, info = lapack.dtrtrs(self.triangle, w, lower=1, trans=1)
        if info != 0 or not np.all(np.isfinite(of_basis)):
            return None
        out = np.zeros(self.rows.n)
        out[self.basis] = of_basis
        return out

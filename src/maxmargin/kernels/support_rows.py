"""Support vectors as a prediction wants them: packed once, compared with any number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.inputs import check_rows
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.core_tiles import PackedRows, function_of, origin_of, tile_scores
from maxmargin.process import blas_guard
from maxmargin.runtime import Execution, effective_threads
from maxmargin.space import Rows

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

ALL = slice(None)


class SupportRows:
    """Σ_j c_jm k(x, z_j) over support vectors z_j, in float64, by all threads.

    A row's sums have the same bits however many rows are beside it.

    Parameters
    ----------
    kernel : Kernel
    Z : array or CSR matrix of shape (m, d)

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> SupportRows(Linear(), np.array([[1.0], [10.0]])).sums(np.array([[2.0], [3.0]]), np.array([[1.0], [0.5]]))
    array([[12.],
           [18.]])
    """

    def __init__(self, kernel: Kernel, Z: Any) -> None:
        self.kernel, self.rows, self.function = kernel, check_rows(Z), function_of(kernel)
        self.sparse = self.rows.sparse
        if self.function is not None:
            self.origin = origin_of(kernel, self.rows)
            self.packed = PackedRows.of(self.rows, np.float64, self.origin)
            self._parts: dict[tuple[int, int], PackedRows] = {}

    def sums(self, X: Any, coefficients: Matrix, n_threads: int | None = None) -> Matrix:
        """One column for each column of coefficients."""
        return self.sums_of_parts(X, [(ALL, coefficients)], n_threads)[0]

    def sums_of_parts(
        self, X: Any, parts: Sequence[tuple[slice, Matrix]], n_threads: int | None = None
    ) -> list[Matrix]:
        """The same over some of the support vectors each, with coefficients of their own."""
        if self.function is None:
            return [self.kernel.times(X, self.rows.X[part], coefficients) for part, coefficients in parts]
        rows = self._alike(check_rows(X))
        how = Execution(effective_threads(n_threads))
        with blas_guard:
            left = PackedRows.of(rows, np.float64, self.origin)
            found = []
            for part, coefficients in parts:
                right = self.packed if part == ALL else self._part(part)
                found.append(tile_scores(self.function, left, right, np.ascontiguousarray(coefficients.T), how))
        return found

    def _part(self, part: slice) -> PackedRows:
        begin, end, _ = part.indices(self.rows.n)
        if (begin, end) not in self._parts:
            self._parts[begin, end] = self.packed.take(np.arange(begin, end))
        return self._parts[begin, end]

    def _alike(self, rows: Rows) -> Rows:
        """Sparse beside sparse support vectors, dense beside dense ones."""
        if rows.sparse == self.sparse:
            return rows
        return check_rows(sp.csr_array(rows.X) if self.sparse else rows.dense())

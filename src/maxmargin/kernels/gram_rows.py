"""GramRows: rows of a Gram matrix that is too large to hold."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from maxmargin.inputs import check_rows, positive_number
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.points import Matrix, Points, Vector

TALLEST = 64  # rows computed at a time: enough for a matrix product to run at full speed
FEWEST = 4  # blocks kept, if the budget allows: two rows far apart must not push each other out


class GramRows:
    """Rows of the Gram matrix of X on demand.

    If the whole matrix fits into ``most_bytes`` it is computed once, at the first row asked for. If not, blocks of
    neighbouring rows are computed when a row of theirs is asked for, and those least recently used are forgotten.

    Parameters
    ----------
    kernel : Kernel
    X : array-like or sparse matrix of shape (n, d)
    most_bytes : int, default=256 MB
        Memory for values of the kernel. At least one row is always held.

    Attributes
    ----------
    diagonal : array of shape (n,)
        k(x, x) of every row; rows returned by ``row`` have these values on the diagonal.
    n_blocks_computed : int
        How many blocks were computed so far, those computed again included.

    Notes
    -----
    ``row(i)[j]`` and ``row(j)[i]`` may differ by rounding where the matrix does not fit; ``Kernel.gram`` is exactly
    symmetric.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> rows = GramRows(Linear(), [[1.0], [2.0], [3.0]], most_bytes=24)
    >>> rows.row(1)
    array([2., 4., 6.])
    """

    def __init__(self, kernel: Kernel, X: Any, most_bytes: int = 256 * 2**20) -> None:
        budget = int(positive_number("most_bytes", most_bytes))
        self.kernel = kernel
        X = check_rows(X)
        self.diagonal: Vector = kernel.diagonal(X)
        points = Points.from_array(X)
        n = points.n_rows
        self.shape = (n, n)
        self._fits = 8 * n * n <= budget
        self._left, self._right = (points, points) if self._fits else kernel.sides(points, points)
        self._height = n if self._fits else min(TALLEST, max(1, budget // (8 * n * FEWEST)))
        self._most_blocks = max(1, budget // (8 * n * self._height))
        self._blocks: OrderedDict[int, Matrix] = OrderedDict()
        self.n_blocks_computed = 0

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        held = "held" if self._fits else f"{self._most_blocks} blocks of {self._height} rows held"
        return f"GramRows({self.kernel!r}, {self.shape[0]} rows, {held})"

    def row(self, i: int) -> Vector:
        """k(x_i, x_j) for all j: a view that cannot be written to, valid however many rows are asked for later."""
        if not 0 <= i < self.shape[0]:
            raise IndexError(f"row {i} of a Gram matrix with rows 0 to {self.shape[0] - 1}")
        number, place = divmod(int(i), self._height)
        block = self._blocks.get(number)
        if block is None:
            while len(self._blocks) >= self._most_blocks:
                self._blocks.popitem(last=False)
            block = self._blocks[number] = self._compute(number)
        self._blocks.move_to_end(number)
        return np.asarray(block[place])

    def _compute(self, number: int) -> Matrix:
        self.n_blocks_computed += 1
        if self._fits:
            block = self.kernel.gram(self._left.X)
        else:
            begin = number * self._height
            rows = slice(begin, min(begin + self._height, self.shape[0]))
            block = self.kernel.between(self._left.part(rows), self._right, begin)
            columns = np.arange(rows.start, rows.stop)
            block[columns - begin, columns] = self.diagonal[columns]
        block.setflags(write=False)
        return block

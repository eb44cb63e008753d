"""Lines of a kernel matrix that are computed when they are first asked for, and kept while there is room."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import InputError
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.runtime import Execution

FEWEST = 64  # lines: less than a working set of that size cannot be worked with
KEPT_BYTES = 128 * 2**20  # of lines of few columns: memory that is touched for the first time costs more than values
CHEAP_COLUMNS = 50  # of rows whose values are computed as fast as they are written
MOST_RUNS = 8  # of neighbouring columns: more are copied into a matrix of their own


class HeldLines:
    """Lines of the kernel matrix, at places in one array; those that were used longest ago make room for others.

    Parameters
    ----------
    space : KernelRows
    copies : int
        How many variables every row has: variable v is about row v modulo the number of rows.

    Attributes
    ----------
    values : array of shape (capacity, columns)
    segments : array of shape (pieces, 2)
        The first column of every piece of the variables, and its length.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> from maxmargin.space import Rows
    >>> lines = HeldLines(KernelRows.of(Rows.of(np.array([[1.0], [2.0], [3.0]])), Linear()))
    >>> lines.values[lines.places(np.array([1]), Execution(1))]
    array([[2., 4., 6.]], dtype=float32)
    """

    def __init__(self, space: KernelRows, copies: int = 1) -> None:
        n = space.n
        self.space, self.copies = space, copies
        self.values: NDArray[Any]
        self._place = np.full(n, -1, dtype=np.int64)
        if space.is_given:
            self._hold_given(space)
            return
        self.segments = np.array([[0, n]] * copies, dtype=np.int64)
        dtype = np.dtype(space.value_type)
        most_bytes = space.cache_bytes
        if space.function is not None:
            most_bytes = min(most_bytes, int(KEPT_BYTES * max(1.0, space.per_row / CHEAP_COLUMNS)))
        self.values = _room(min(n, max(FEWEST, most_bytes // (dtype.itemsize * n))), n, dtype)
        self.capacity = len(self.values)
        self._row_at = np.full(self.capacity, -1, dtype=np.int64)
        self._used = np.zeros(self.capacity, dtype=np.int64)  # when, in requests
        self._n_held, self._now = 0, 0

    def _hold_given(self, space: KernelRows) -> None:
        """All lines of a matrix that is there, and the runs of neighbouring columns among the chosen ones."""
        self.values = space.rows.X
        rows = np.arange(space.n) if space.chosen is None else space.chosen
        first = np.concatenate([[0], np.flatnonzero(np.diff(rows) != 1) + 1])
        if len(first) > MOST_RUNS:
            self.values = space.square(Execution(1), self.values.dtype)
            rows, first = np.arange(space.n), np.array([0])
        lengths = np.diff(np.append(first, space.n))
        self.segments = np.ascontiguousarray(np.concatenate([np.stack([rows[first], lengths], axis=1)] * self.copies))
        self._place[:] = rows
        self.capacity = space.n

    def places(self, rows: NDArray[np.int64], how: Execution) -> NDArray[np.int64]:
        """Where the lines of some rows are; those that are not held are computed. At most ``capacity`` at a time."""
        missing = rows[self._place[rows] < 0]
        if not self.space.is_given:
            self._now += 1
            held = self._place[rows]
            self._used[held[held >= 0]] = self._now
        if len(missing):
            self._compute(missing, how)
        return self._place[rows]

    def _compute(self, missing: NDArray[np.int64], how: Execution) -> None:
        places = self._free_places(len(missing))
        old = self._row_at[places]
        self._place[old[old >= 0]] = -1
        self._row_at[places] = -1  # whatever interrupts the next lines, nobody takes them for what they were
        if int(places[-1]) - int(places[0]) == len(places) - 1:
            self.space.lines(missing, how, self.values[places[0] : places[-1] + 1])
        else:
            out = np.empty((len(missing), self.space.n), dtype=self.values.dtype)
            self.space.lines(missing, how, out)
            self.values[places] = out
        self._place[missing], self._row_at[places], self._used[places] = places, missing, self._now

    def _free_places(self, wanted: int) -> NDArray[np.int64]:
        """Empty places first, then those that were used longest ago."""
        fresh = min(wanted, self.capacity - self._n_held)
        places = np.arange(self._n_held, self._n_held + fresh)
        if fresh < wanted:
            oldest = np.argsort(self._used[: self._n_held], kind="stable")[: wanted - fresh]
            places = np.concatenate([np.sort(oldest), places])
        self._n_held += fresh
        return places


def _room(capacity: int, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array that takes memory only where it is written; fewer lines where the system has no room for all."""
    while True:
        try:
            return np.empty((capacity, n), dtype=dtype)
        except MemoryError:
            if capacity <= FEWEST:
                raise InputError(
                    f"there is no memory for {capacity} lines of {n} values of the kernel; use fewer rows"
                ) from None
            capacity = max(FEWEST, capacity // 2)

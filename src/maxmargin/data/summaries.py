"""Extremes and gaps of all columns of numbers at once: a table may have more columns than rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.data.arrow import import_arrow

CELLS = 1 << 22  # of the matrix that is looked at in one piece


@dataclass
class Summaries:
    """What there is to say of columns of numbers; entry k of each array is about column ``positions[k]``.

    Attributes
    ----------
    positions : of the columns in the table.
    n_gaps, first_gap : number of rows without a value, and the first of them.
    first_infinite : the first row whose value is not finite; -1 if there is none.
    low, high : of the values that are there; inf and -inf if there are none.
    """

    positions: NDArray[np.intp]
    n_gaps: NDArray[np.int64] = field(init=False)
    first_gap: NDArray[np.int64] = field(init=False)
    first_infinite: NDArray[np.int64] = field(init=False)
    low: NDArray[np.float64] = field(init=False)
    high: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.positions)
        self.n_gaps, self.first_gap, self.first_infinite = (np.zeros(n, dtype=np.int64) for _ in range(3))
        self.low, self.high = np.zeros(n), np.zeros(n)

    @classmethod
    def of(cls, table: Any) -> Summaries:
        """Of the columns of an Arrow table that hold numbers or truth values.

        Examples
        --------
        >>> import pyarrow
        >>> found = Summaries.of(pyarrow.table({"a": [3.0, None, 1.0], "b": ["x", "y", "z"], "c": [True, False, True]}))
        >>> found.positions.tolist(), found.n_gaps.tolist(), found.high.tolist()
        ([0, 2], [1, 0], [3.0, 1.0])
        """
        positions = np.array(columns_of(is_numeric, table.schema.types), dtype=np.intp)
        found = cls(positions)
        step = max(1, CELLS // max(1, table.num_rows))
        for begin in range(0, len(positions), step):
            found._add(begin, _matrix(table.select(positions[begin : begin + step].tolist())))
        return found

    def _add(self, begin: int, X: NDArray[np.float64]) -> None:
        here = slice(begin, begin + X.shape[1])
        gaps = np.isnan(X)
        infinite = np.isinf(X)
        self.n_gaps[here], self.first_gap[here] = gaps.sum(axis=0), gaps.argmax(axis=0)
        self.first_infinite[here] = np.where(infinite.any(axis=0), infinite.argmax(axis=0), -1)
        self.low[here] = np.min(X, axis=0, where=~gaps, initial=np.inf)
        self.high[here] = np.max(X, axis=0, where=~gaps, initial=-np.inf)


def columns_of(is_wanted: Callable[[Any], bool], kinds: Sequence[Any]) -> list[int]:
    """Positions of the types that are wanted; each type is asked about once, of dictionaries that of the values too."""
    known: dict[Any, bool] = {}
    found = []
    for position, kind in enumerate(kinds):
        key = kind if hasattr(kind, "value_type") else kind.id
        if key not in known:
            known[key] = is_wanted(kind)
        if known[key]:
            found.append(position)
    return found


def is_numeric(kind: Any) -> bool:
    """Whether a type is one of numbers or truth values."""
    types = import_arrow("reading columns").types
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _matrix(columns: Any) -> NDArray[np.float64]:
    """Numbers as float64, gaps as NaN."""
    pa = import_arrow("reading columns")
    other = columns_of(lambda kind: kind not in (pa.float64(), pa.float32()), columns.schema.types)
    if other:
        arrays = columns.columns
        for k in other:
            arrays[k] = arrays[k].cast(pa.float64(), safe=False)
        columns = pa.table(arrays, names=columns.column_names)
    parts = [batch.to_tensor(null_to_nan=True).to_numpy() for batch in columns.to_batches()]
    return np.concatenate(parts).astype(np.float64, copy=False)

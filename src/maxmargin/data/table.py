"""What a file holds, before anything is decided about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.data.errors import DataError, NoSuchColumn

# The labels' column by name or index; None: by its usual names; False: there is none.
Target = str | int | Literal[False] | None
LIKELY_TARGETS = ("label", "target", "class", "y")


@dataclass(frozen=True)
class Table:
    """Feature columns and, if there are any, labels.

    Attributes
    ----------
    source : name of the file, for messages.
    columns : a float matrix (dense or CSR), or a ``pyarrow.Table`` whose columns may hold text and gaps.
    names : the columns' names; None if they are known by position only.
    y : labels of any type, or None.
    target : name of the labels' column, if it had one.
    zero_based : whether a svmlight file counted its columns from 0.
    """

    source: str
    columns: Any
    names: tuple[str, ...] | None = None
    y: NDArray[Any] | None = None
    target: str | None = None
    zero_based: bool | None = None

    @property
    def is_matrix(self) -> bool:
        """Whether the columns are numbers already."""
        return isinstance(self.columns, np.ndarray) or sp.issparse(self.columns)

    @property
    def n_rows(self) -> int:
        return int(self.columns.shape[0])

    @property
    def n_columns(self) -> int:
        return int(self.columns.shape[1])

    def take(self, rows: NDArray[np.int64]) -> Table:
        """Some of the rows, in the order given."""
        columns = self.columns[rows] if self.is_matrix else _taken(self.columns, rows)
        return replace(self, columns=columns, y=None if self.y is None else self.y[rows])

    def arrays(self, *, missing: str = "error", text: str = "error") -> tuple[Any, NDArray[Any]]:
        """The rows as a matrix and their labels, ready for ``fit``.

        Parameters
        ----------
        missing : "error", or "mean": a gap becomes the column's mean.
        text : "error", "onehot": a column of 0 and 1 for each text, or "drop": leave text columns out.
        """
        from maxmargin.data.encoding import Encoding

        y = self.labels()
        X = self.columns if self.is_matrix else Encoding.learn(self, missing=missing, text=text).apply(self)
        return X, y

    def labels(self) -> NDArray[Any]:
        """The labels; an error that says how to name them if there are none."""
        if self.y is not None:
            return self.y
        if self.names is None:
            raise DataError(self.source, "file", "there are no labels in this file")
        if self.target is not None:
            raise DataError(self.source, f"column {self.target!r}", "there is no label in any row")
        raise DataError(
            self.source,
            "header",
            f"which column holds the labels? Name it with --target (in Python: target=...){self._guess()}. "
            f"The columns are {shortened(self.names)}",
        )

    def _guess(self) -> str:
        """The only text column, if there is just one: labels are often text."""
        if self.is_matrix:
            return ""
        if self.n_columns == 1:
            return "; there is only one: is the delimiter right?"
        columns = [(name, self.columns.column(name)) for name in self.columns.column_names]
        texts = [name for name, column in columns if column.type == "string"]
        pairs = [name for name in texts if len(self.columns.column(name).unique().drop_null()) == 2]
        likely = texts if len(texts) == 1 else pairs
        return f", perhaps --target {likely[0]!r}" if len(likely) == 1 else ""


def _taken(columns: Any, rows: NDArray[np.int64]) -> Any:
    """Rows of an Arrow table, whose string views cannot be taken from as they are."""
    import pyarrow as pa

    views = [i for i, field in enumerate(columns.schema) if pa.types.is_string_view(field.type)]
    for i in views:
        columns = columns.set_column(i, columns.column_names[i], columns.column(i).cast(pa.large_string()))
    return columns.take(rows)


def find_target(source: str, names: Sequence[str], target: Target) -> int | None:
    """Position of the labels' column: by name, else by index (from 0, or from the end if negative).

    With None, a single column called label, target, class or y is it; with False, none is.

    Examples
    --------
    >>> find_target("a.csv", ["age", "sick"], "sick"), find_target("a.csv", ["age", "sick"], "-1")
    (1, 1)
    >>> find_target("a.csv", ["age", "Class"], None)
    1
    """
    names = list(names)
    if target is False:
        return None
    if target is None:
        likely = [i for i, name in enumerate(names) if name.strip().lower() in LIKELY_TARGETS]
        return likely[0] if len(likely) == 1 else None
    if isinstance(target, str) and target in names:
        return names.index(target)
    try:
        index = int(target)
    except ValueError:
        raise NoSuchColumn(
            source, "header", f"there is no column {target!r}; the columns are {shortened(names)}"
        ) from None
    if not -len(names) <= index < len(names):
        raise NoSuchColumn(source, "header", f"there is no column {index}; there are {len(names)}, counted from 0")
    return index % len(names)


def unique_names(source: str, names: Sequence[str]) -> tuple[str, ...]:
    """Names without surrounding blanks; an error if two are the same."""
    clean = [name.strip() for name in names]
    seen: dict[str, int] = {}
    for position, name in enumerate(clean):
        if name in seen:
            raise DataError(
                source,
                "header",
                f"columns {seen[name]} and {position} (counted from 0) are both called {name!r}; rename one of them",
            )
        seen[name] = position
    return tuple(clean)


def written_names(table: Table) -> list[str]:
    """The header of a file that is to hold a table: x0, x1, … without names, and the labels' name last."""
    names = list(table.names or (f"x{i}" for i in range(table.n_columns)))
    return list(unique_names(table.source, names if table.y is None else [*names, table.target or "label"]))


def is_number(cell: str) -> bool:
    """Whether a cell of a table is a number; Python alone would also take 1_000 and NaN for one.

    Examples
    --------
    >>> [is_number(cell) for cell in ("-1.5e3", " 7", "1_000", "nan", "x")]
    [True, True, False, False, False]
    """
    try:
        return math.isfinite(float(cell)) and "_" not in cell and cell.strip().isascii()
    except ValueError:
        return False


def shortened(names: Sequence[Any], most: int = 8) -> str:
    """The first few names, for messages.

    Examples
    --------
    >>> shortened(["a", "b", "c", "d"], most=2)
    "'a', … (2 more) …, 'd'"
    """
    if len(names) <= most:
        return ", ".join(repr(name) for name in names)
    first = ", ".join(repr(name) for name in names[: most - 1])
    return f"{first}, … ({len(names) - most} more) …, {names[-1]!r}"

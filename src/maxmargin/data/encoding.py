"""From columns as read to a matrix: which columns are numbers, which are text, and what fills a gap.

What was learned from the training rows is kept, so that later rows are encoded alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.data.arrow import import_arrow, numbers_from_decimals
from maxmargin.data.errors import DataError
from maxmargin.data.table import Table, is_number, shortened

MISSING = ("error", "mean", "drop")
TEXT = ("error", "onehot", "drop")
MOST_LEVELS = 1000
LONGEST_NUMBER = 40
TRAIN_WITH_MEAN = "The model was trained on rows without gaps: fill them, or train it with --missing mean"
SPARSE_BELOW = 0.1  # one-hot tables whose share of non-zeros is smaller become CSR


@dataclass(frozen=True)
class Column:
    """One column of the file: numbers (``levels`` is None) or text with its known levels.

    ``fill`` is what a gap becomes: a number, or 0 in every level's column; None: gaps are refused.
    """

    name: str
    levels: tuple[str, ...] | None = None
    fill: float | None = None

    @property
    def width(self) -> int:
        return 1 if self.levels is None else len(self.levels)


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become a matrix.

    Examples
    --------
    >>> from maxmargin.data.csv import parse_csv
    >>> table = parse_csv(b"age,town,class\\n30,Oslo,a\\n,Rome,b\\n50,Oslo,b\\n", "t.csv")
    >>> Encoding.learn(table, text="onehot")
    Traceback (most recent call last):
    ...
    maxmargin.data.errors.DataError: t.csv, column 'age', row 1: 1 value is missing. ...
    >>> encoding = Encoding.learn(table, missing="mean", text="onehot")
    >>> encoding.feature_names
    ('age', 'town=Oslo', 'town=Rome')
    >>> encoding.apply(table)
    array([[30.,  1.,  0.], [40.,  0.,  1.], [50.,  1.,  0.]])
    """

    columns: tuple[Column, ...]

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(
            name
            for column in self.columns
            for name in (
                [column.name] if column.levels is None else [f"{column.name}={level}" for level in column.levels]
            )
        )

    @classmethod
    def learn(cls, table: Table, *, missing: str = "error", text: str = "error") -> Encoding:
        """Decide for each column of a table that is not a matrix yet.

        Parameters
        ----------
        table : the training rows.
        missing : "error", or "mean": the column's mean fills a gap (a gap in a text column sets no level).
            "drop" is "error" here: rows are dropped by :func:`complete_rows`, before.
        text : "error", "onehot": one column of 0 and 1 for each text, or "drop": leave text columns out.
        """
        if missing not in MISSING or text not in TEXT:
            raise ValueError(f"missing must be one of {MISSING}, got {missing!r}; text one of {TEXT}, got {text!r}")
        raw = {name: table.columns.column(name) for name in table.names or ()}
        texts = [(name, values) for name, values in raw.items() if is_text(values)]
        # Numbers with a few strange cells are no text: they come first, and never get a column for each.
        spoilt = [(name, values) for name, values in texts if mostly_numbers(values)]
        if spoilt and text != "drop":
            raise _text_error(table.source, spoilt)
        if texts and text == "error":
            raise _text_error(table.source, texts)
        columns = []
        for name, values in raw.items():
            if not is_text(values):
                _refuse_odd_types(values, table.source, name)
                columns.append(_learn_numbers(values, table.source, name, missing))
            elif text == "onehot":
                columns.append(_learn_levels(values, table.source, name, missing))
        if not columns:
            raise DataError(table.source, "header", "no column of numbers is left")
        return cls(tuple(columns))

    def apply(self, table: Table) -> Any:
        """The matrix of a table's rows; columns are found by name, in any order."""
        present = set(table.names or ())
        absent = [column.name for column in self.columns if column.name not in present]
        if absent:
            raise DataError(
                table.source,
                "header",
                f"the column{'s' * (len(absent) > 1)} {shortened(absent)} of the training data "
                f"{'are' if len(absent) > 1 else 'is'} missing; there are {shortened(table.names or ())}",
            )
        wanted = table.columns.select([column.name for column in self.columns])
        self._check(wanted, table.source)
        width = sum(column.width for column in self.columns)
        if len(self.columns) < SPARSE_BELOW * width:
            parts, begin = [], 0
            for part in self._blocks(wanted):
                _check_finite(part, table.source, self.feature_names, begin)
                parts.append(sp.csr_array(part))
                begin += len(part)
            return sp.csr_array(sp.vstack(parts))
        single = all(column.type == "float" for column in wanted.columns)
        X = np.empty((wanted.num_rows, width), dtype=np.float32 if single else np.float64)
        begin = 0
        for part in self._blocks(wanted, X):
            _check_finite(part, table.source, self.feature_names, begin)
            begin += len(part)
        return X

    def relearned(self, table: Table) -> Encoding:
        """What would be learned from a table's rows with the same columns and the same decisions."""
        names = tuple(column.name for column in self.columns)
        part = replace(table, columns=table.columns.select(names), names=names)
        filled = any(column.fill is not None for column in self.columns)
        return Encoding.learn(part, missing="mean" if filled else "error", text="onehot")

    def unseen(self, table: Table) -> dict[str, tuple[int, str]]:
        """For each text column: number of rows whose text did not occur in training, and one such text."""
        found = {}
        for column in self.columns:
            values = table.columns.column(column.name)
            if column.levels is not None and is_text(values):
                missed = np.flatnonzero((_level_of(column.levels, values) < 0) & ~gaps(values))
                if len(missed):
                    found[column.name] = (len(missed), str(values[int(missed[0])].as_py()))
        return found

    def _blocks(self, wanted: Any, into: NDArray[Any] | None = None) -> Any:
        """The encoded rows, some at a time; written into a matrix if there is one."""
        width = sum(column.width for column in self.columns)
        begin = 0
        for batch in wanted.to_batches(max_chunksize=max(64, min(8192, 8_000_000 // width))):
            parts = [_encode(column, batch.column(j)) for j, column in enumerate(self.columns)]
            out = None if into is None else into[begin : begin + batch.num_rows]
            begin += batch.num_rows
            if all(part.ndim == 1 for part in parts):
                yield np.stack(parts, axis=1, out=out)
            else:
                yield np.concatenate([part.reshape(batch.num_rows, -1) for part in parts], axis=1, out=out)

    def _check(self, wanted: Any, source: str) -> None:
        for column in self.columns:
            values = wanted.column(column.name)
            if column.levels is None and is_text(values):
                raise _text_error(source, [(column.name, values)])
            if not is_text(values):
                _refuse_odd_types(values, source, column.name)
            if column.fill is None:
                _refuse_gaps(values, source, column.name, TRAIN_WITH_MEAN)


def is_text(values: Any) -> bool:
    return is_text_type(values.type)


def is_text_type(kind: Any) -> bool:
    pa = import_arrow("reading columns")
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def complete_rows(table: Table, *, text: str = "error") -> NDArray[np.int64]:
    """Positions of the rows in which no feature is missing; with ``text="drop"`` text columns do not count."""
    missing = np.zeros(table.n_rows, dtype=bool)
    for name in table.names or ():
        values = table.columns.column(name)
        if not (text == "drop" and is_text(values)):
            missing |= gaps(values)
    rows = np.flatnonzero(~missing)
    if len(rows) == 0:
        raise DataError(
            table.source, "file", "every row has a missing value; fill them (--missing mean) or drop columns"
        )
    return rows


def gaps(values: Any) -> NDArray[np.bool_]:
    """Where a column has no value; NaN counts as none."""
    pa = import_arrow("reading columns")
    if pa.types.is_floating(values.type):  # NumPy gets NaN for none, and asks faster than PyArrow
        array = values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy()
        return np.asarray(np.isnan(array))
    if not values.null_count:
        return np.zeros(len(values), dtype=bool)
    return np.asarray(values.is_null().to_numpy())


def _learn_numbers(values: Any, source: str, name: str, missing: str) -> Column:
    if missing != "mean":
        _refuse_gaps(values, source, name)
        return Column(name)
    where = gaps(values)
    if where.all():
        raise DataError(source, f"column {name!r}", f"no row has a value; leave it out with --drop {name!r}")
    numbers = _as_float(values)[~where]
    fill = _mean(numbers) if np.isfinite(numbers).all() else 0.0  # infinities are refused by name later
    return Column(name, None, fill)


def _mean(numbers: NDArray[Any]) -> float:
    """The mean of finite numbers, which is finite even where their sum is not."""
    with np.errstate(over="ignore"):
        mean = float(np.mean(numbers))
    return mean if np.isfinite(mean) else float((numbers.astype(np.float64) / len(numbers)).sum())


def _learn_levels(values: Any, source: str, name: str, missing: str) -> Column:
    from pyarrow import compute

    if missing != "mean":
        _refuse_gaps(values, source, name)
    found = compute.unique(_trimmed(values)).to_pylist()
    levels = tuple(sorted(level for level in found if level is not None))
    if not levels:
        raise DataError(source, f"column {name!r}", f"no row has a value; leave it out with --drop {name!r}")
    if len(levels) > MOST_LEVELS:
        raise DataError(
            source,
            f"column {name!r}",
            f"there are {len(levels)} different texts, too many for one column each (at most {MOST_LEVELS}); leave it "
            f"out with --drop {name!r}",
        )
    return Column(name, levels, 0.0 if missing == "mean" else None)


def _trimmed(values: Any) -> Any:
    from pyarrow import compute

    pa = import_arrow("reading columns")
    return compute.utf8_trim_whitespace(values.cast(pa.large_string()))


def _encode(column: Column, values: Any) -> NDArray[Any]:
    if column.levels is None:
        numbers = _as_float(values)
        if column.fill is not None:
            numbers = np.where(np.isnan(numbers), column.fill, numbers)
        return numbers
    position = _level_of(column.levels, values)
    out = np.zeros((len(position), len(column.levels)))
    known = np.flatnonzero(position >= 0)
    out[known, position[known]] = 1.0
    return out


def _level_of(levels: tuple[str, ...], values: Any) -> NDArray[Any]:
    """Position of each row's level; -1 for unknown text and gaps."""
    from pyarrow import compute

    pa = import_arrow("reading columns")
    if is_text(values):
        keys, cells = pa.array(levels, pa.large_string()), _trimmed(values)
    else:
        # A file in which each cell of the column is a number: "1.50", "01" and "True" were read as 1.5, 1 and true.
        truth = {"true": 1.0, "false": 0.0} if pa.types.is_boolean(values.type) else {}
        keys = pa.array([truth.get(level.lower(), _number_or_nan(level)) for level in levels])
        cells = pa.array(_as_float(values), from_pandas=True)  # a gap, NaN, is none of the levels
    return np.asarray(compute.fill_null(compute.index_in(cells, keys), -1).to_numpy(zero_copy_only=False))


def _number_or_nan(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _as_float(values: Any) -> NDArray[Any]:
    """Numbers as float32 or float64, gaps as NaN."""
    pa = import_arrow("reading columns")
    if pa.types.is_decimal(values.type):
        values = numbers_from_decimals(values)
    elif not pa.types.is_floating(values.type):
        values = values.cast(pa.float64(), safe=False)  # whole numbers beyond 2⁵³ are refused before
    elif pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    array = values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy()
    return np.asarray(array)


def _refuse_odd_types(values: Any, source: str, name: str) -> None:
    pa = import_arrow("reading columns")
    kind = values.type
    good = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not (good or pa.types.is_decimal(kind) or pa.types.is_null(kind)):
        raise DataError(
            source, f"column {name!r}", f"it holds {kind}; leave it out with --drop {name!r}, or turn it into numbers"
        )
    if pa.types.is_integer(kind) and kind.bit_width == 64:
        try:
            values.cast(pa.float64())
        except pa.ArrowInvalid:
            raise DataError(
                source,
                f"column {name!r}",
                f"its whole numbers are too large for float64, as keys are; leave it out with --drop {name!r}",
            ) from None


def _refuse_gaps(values: Any, source: str, name: str, cure: str | None = None) -> None:
    where = gaps(values)
    if where.any():
        count = int(where.sum())
        if cure is None:
            fill = "Let gaps stand for none of the texts" if is_text(values) else "Fill gaps with the column's mean"
            cure = f"{fill} (--missing mean), leave such rows out (--missing drop), or the column (--drop {name!r})"
        raise DataError(
            source,
            f"column {name!r}, row {int(np.argmax(where))}",
            f"{count} value{'s are' if count > 1 else ' is'} missing. {cure}",
        )


def _text_error(source: str, problems: list[tuple[str, Any]]) -> DataError:
    """Names the text columns; a column of numbers with a few strange cells is shown with the first of them."""
    name, values = problems[0]
    row, cell, kinds, _ = strange_cells(values)
    others = f" (and {len(problems) - 1} more: {shortened([n for n, _ in problems[1:]])})" if len(problems) > 1 else ""
    if mostly_numbers(values) and _is_punctuated(cell):
        hint = "Write numbers plainly, or name their decimal point, for example --decimal ','"
    elif mostly_numbers(values) and len(kinds) == 1:
        hint = f"If {cell!r} means a missing value, say so with --na {cell!r}"
    elif mostly_numbers(values):
        hint = "Correct these cells, or say what means a missing value with --na"
    elif len(kinds) > 0.5 * len(values) and len(values) > 20:
        hint = "Leave text columns out (--text drop)"
    else:
        hint = "Give each text a column of its own (--text onehot), leave text columns out (--text drop)"
    return DataError(
        source,
        f"column {name!r}, row {row}",
        f"expected numbers, found the text {cell!r}{others}. {hint}, or leave the column out (--drop {name!r})",
    )


def _is_punctuated(cell: str) -> bool:
    """Whether a cell is digits with commas, currency or per cent signs."""
    return len(cell) <= LONGEST_NUMBER and any(map(str.isdigit, cell)) and not cell.strip("0123456789.,'+-$€£% ")


def mostly_numbers(values: Any) -> bool:
    """Whether a text column holds numbers but for some cells, or numbers with signs that do not belong there.

    Text that is nothing but plain numbers was meant as text by whoever typed the column so.
    """
    cells = [cell.strip() for cell in values.to_pylist()[:10000] if cell is not None]
    plain = sum(is_number(cell) for cell in cells)
    punctuated = sum(_is_punctuated(cell) or is_number(cell) for cell in cells)
    return plain < len(cells) < 2 * punctuated


def strange_cells(values: Any) -> tuple[int, str, set[str], float]:
    """First row and text that is no number, all such texts, and their share of the rows."""
    first: tuple[int, str] | None = None
    kinds: set[str] = set()
    count = 0
    for row, cell in enumerate(values.to_pylist()):
        if cell is None:
            continue
        if not is_number(cell) and not math.isinf(_number_or_nan(cell)):
            count += 1
            kinds.add(cell.strip())
            first = first or (row, cell.strip()[:60])
    row, cell = first or (0, next((cell for cell in values.to_pylist() if cell is not None), ""))
    return row, cell, kinds, count / max(1, len(values))


def _check_finite(X: NDArray[Any], source: str, names: tuple[str, ...], first_row: int = 0) -> None:
    finite = np.isfinite(X)
    if not finite.all():
        i, j = (int(k) for k in np.argwhere(~finite)[0])
        raise DataError(
            source, f"column {names[j]!r}, row {first_row + i}", f"the value is {X[i, j]}; expected a finite number"
        )

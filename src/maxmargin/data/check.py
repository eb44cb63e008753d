"""Everything that is wrong in a data file, not only the first thing."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.data.arrow import import_arrow
from maxmargin.data.csv import BadRow, CsvOptions, options_for, parse_csv
from maxmargin.data.encoding import gaps, is_text_type, mostly_numbers, strange_cells
from maxmargin.data.errors import DataError
from maxmargin.data.files import open_text, whole_content
from maxmargin.data.formats import format_of, read_table
from maxmargin.data.labels import plain_labels
from maxmargin.data.summaries import Summaries, columns_of
from maxmargin.data.svmlight import feed
from maxmargin.data.table import Table, Target, shortened

MOST_PROBLEMS = 20
FEW_COLUMNS = 4
FEWEST_COUNTED = 20  # rows; a shorter run of numbers may count them by chance
WIDE_RANGE = 1e4  # between the largest and the smallest column


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong; a warning does not keep the file from being used."""

    place: str
    what: str
    fix: str
    severity: str = "error"


@dataclass(frozen=True)
class Plan:
    """What training will do about gaps, text and more than two classes; then they are no errors."""

    missing: str = "error"
    text: str = "error"
    positive: str | None = None


@dataclass
class Findings:
    """What was found in a file."""

    source: str
    plan: Plan = Plan()
    facts: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    n_more: int = 0

    def add(self, problem: Problem) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)
        else:
            self.n_more += 1

    def add_columns(self, kind: str, names: Sequence[str], problem: Callable[[int], Problem]) -> None:
        """The same problem in several columns: each one by itself, or all at once if there are many."""
        if len(names) <= FEW_COLUMNS:
            for k in range(len(names)):
                self.add(problem(k))
            return
        first = problem(0)
        what = f"{kind} in {len(names)} columns: {shortened(names)}; in the first, {first.what}"
        self.add(Problem(first.place, what, first.fix, first.severity))

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "facts": self.facts,
            "problems": [vars(problem) for problem in self.problems],
            "more": self.n_more,
        }


def check_file(
    path: str | os.PathLike[str],
    *,
    target: Target = None,
    drop: Sequence[str] = (),
    format: str | None = None,
    csv: CsvOptions | None = None,
    plan: Plan | None = None,
    max_bytes: int | None = None,
) -> Findings:
    """Look through a whole data file; what ``plan`` takes care of is only mentioned.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "t.svm").write_text("1 1:2\\n-1 3:x\\n1 2:1 2:5\\n-1 1:1\\n")
    ...     for problem in check_file(f"{folder}/t.svm").problems:
    ...         print(problem.place, "|", problem.what)
    line 2, column 6 | the value of column 3, 'x', is not a finite number; correct it, or leave the column out ...
    line 3, column 7 | column 2 occurs twice in this row; keep one
    """
    findings = Findings(str(path), plan or Plan())
    kind = format or format_of(path, reading=True)
    try:
        if kind == "svmlight":
            _check_svmlight(path, findings, max_bytes)
        else:
            table = _lenient_csv(path, findings, target, drop, csv, max_bytes) if kind == "csv" else None
            table = table or read_table(path, target=target, drop=drop, format=kind, max_bytes=max_bytes)
            _check_table(table, findings)
    except DataError as error:
        findings.add(
            Problem(error.place, error.problem, "Nothing after this could be checked; mend it and check again.")
        )
    return findings


def _check_svmlight(path: str | os.PathLike[str], findings: Findings, max_bytes: int | None) -> None:
    parser = _core.SvmlightParser(True)
    with open_text(path, max_bytes) as file:
        for _ in feed(parser, file, 1):
            if parser.error is not None:
                line, column, problem = parser.error
                findings.add(Problem(f"line {line}, column {column}", problem, "Correct or remove this line."))
                parser.forgive()
    largest, n_lines = parser.largest_column, parser.n_lines
    values, columns, row_ends, labels, lines = parser.take()
    findings.facts.append(
        f"{n_lines} lines, {len(labels)} good rows, largest column {max(largest, 0)}, {len(values)} values"
    )
    if len(labels) == 0:
        findings.add(Problem("file", "there is no good row", "Is this a svmlight file: label column:value …?"))
        return
    empty = np.flatnonzero(np.diff(row_ends, prepend=0) == 0)
    if len(empty):
        place = f"line {lines[empty[0]]}"
        findings.add(Problem(place, f"{len(empty)} rows have no values at all", "Fine if they are meant.", "warning"))
    _check_labels(plain_labels(labels), findings)
    # Only the columns that occur: there may be two thousand million.
    used, position = np.unique(columns, return_inverse=True)
    most = np.zeros(len(used))
    np.maximum.at(most, position, np.abs(values))
    _check_ranges(most, used.tolist(), findings)


def _lenient_csv(
    path: str | os.PathLike[str],
    findings: Findings,
    target: Target,
    drop: Sequence[str],
    options: CsvOptions | None,
    max_bytes: int | None,
) -> Table:
    import_arrow("reading CSV")
    bad_rows: list[BadRow] = []
    layout = options_for(path, options)
    raw = whole_content(path, max_bytes)
    table = parse_csv(raw, str(path), target=target, drop=drop, options=layout, bad_rows=bad_rows)
    for row in bad_rows:
        what = f"expected {row.expected} cells as in the first line, found {row.found} ({row.text[:60]!r})"
        findings.add(Problem(f"line {row.line}", what, "Quote cells that contain the delimiter, or complete the line."))
    return table


def _check_table(table: Table, findings: Findings) -> None:
    findings.facts.append(f"{table.n_rows} rows, {table.n_columns} feature columns")
    if table.y is None and table.names is not None:
        fix = f"Name it with --target; the columns are {shortened(table.names)}."
        findings.add(Problem("header", "no column is called label, target, class or y", fix, "warning"))
    if table.y is not None:
        _check_labels(table.y, findings)
    if table.is_matrix:
        _check_matrix(table, findings)
        return
    names, kinds = list(table.names or ()), table.columns.schema.types
    texts = columns_of(is_text_type, kinds)
    findings.add_columns(
        "text",
        [names[k] for k in texts],
        lambda k: _text_problem(names[texts[k]], table.columns[texts[k]], findings.plan),
    )
    numbers = Summaries.of(table.columns)
    gappy = _gappy_columns(table.columns, numbers)
    findings.add_columns(
        "gaps",
        [names[k] for k, *_ in gappy],
        lambda k: _gap_problem(names[gappy[k][0]], *gappy[k][1:], table.n_rows, findings.plan),
    )
    odd = set(range(len(kinds))) - set(texts) - set(numbers.positions.tolist())
    known = _check_numbers(table.columns, names, numbers, odd, findings)
    largest = np.maximum(np.abs(numbers.low[known]), np.abs(numbers.high[known]))
    _check_ranges(largest, [names[k] for k in numbers.positions[known].tolist()], findings)


def _gappy_columns(columns: Any, numbers: Summaries) -> list[tuple[int, int, int]]:
    """Position, number of gaps and row of the first gap of each column that has gaps."""
    filled = numbers.n_gaps == 0
    found = {
        k: (k, n, row)
        for k, n, row in np.stack([numbers.positions, numbers.n_gaps, numbers.first_gap], axis=1)[~filled].tolist()
    }
    for k in sorted(set(range(columns.num_columns)) - set(numbers.positions.tolist())):
        values = columns[k]
        if values.null_count:
            where = gaps(values)
            found[k] = (k, int(where.sum()), int(np.argmax(where)))
    return [found[k] for k in sorted(found)]


def _text_problem(name: str, values: Any, plan: Plan) -> Problem:
    row, cell, kinds, share = strange_cells(values)
    place, leave = f"column {name!r}, row {row}", f"or leave the column out (--drop {name!r})."
    if mostly_numbers(values):
        na = f"--na {cell!r} if it means a missing value, " if len(kinds) == 1 else ""
        what = f"numbers, but for {shortened(sorted(kinds), 4)} in {share:.1%} of the rows"
        return Problem(place, what, f"Correct it, {na}{leave}", "warning" if plan.text == "drop" else "error")
    fix = f"--text onehot gives each text a column, --text drop leaves text out, {leave}"
    return Problem(place, f"text such as {cell!r}", fix, "error" if plan.text == "error" else "warning")


def _gap_problem(name: str, n_gaps: int, first: int, n_rows: int, plan: Plan) -> Problem:
    what = f"{n_gaps} of {n_rows} values are missing"
    fix = f"--missing mean, --missing drop, or leave the column out (--drop {name!r})."
    severity = "error" if plan.missing == "error" else "warning"
    return Problem(f"column {name!r}, row {first}", what, fix, severity)


def _check_numbers(
    columns: Any, names: Sequence[str], numbers: Summaries, odd: set[int], findings: Findings
) -> NDArray[np.intp]:
    """Look at numbers and at ``odd`` columns, of other types; returns which of the numbers can be compared in size."""
    n_known = columns.num_rows - numbers.n_gaps
    infinite, constant = numbers.first_infinite >= 0, (n_known > 0) & (numbers.low == numbers.high)
    with np.errstate(invalid="ignore"):  # inf - inf of columns without values
        steps = numbers.high - numbers.low - (n_known - 1)
    # The columns that may count rows: each of them is looked at as a whole.
    counting = (n_known >= FEWEST_COUNTED) & (np.abs(steps) < 0.5) & ~infinite
    strange = {int(numbers.positions[j]): j for j in np.flatnonzero(infinite | constant | counting).tolist()}
    for k in sorted(odd | strange.keys()):
        place, leave = f"column {names[k]!r}", f"or leave the column out (--drop {names[k]!r})."
        j = strange.get(k)
        if j is None:
            if str(columns[k].type) != "null":
                findings.add(Problem(place, f"it holds {columns[k].type}", f"Turn it into numbers, {leave}"))
        elif infinite[j]:
            row = int(numbers.first_infinite[j])
            value = float(columns[k][row].as_py())
            findings.add(Problem(f"{place}, row {row}", f"the value is {value}", f"Correct it, {leave}"))
        elif constant[j]:
            what = f"every row has {numbers.low[j]:g}"
            findings.add(Problem(place, what, "It tells nothing; --drop it if you like.", "warning"))
        elif _counts_rows(columns[k]):
            fix = f"Such a column tells nothing of new rows: --drop {names[k]!r}."
            findings.add(Problem(place, "it counts the rows", fix, "warning"))
    return np.flatnonzero(~infinite & ~constant & (n_known > 0))


def _counts_rows(values: Any) -> bool:
    pa = import_arrow("reading columns")
    known = np.asarray(values.cast(pa.float64(), safe=False).drop_null().to_numpy())
    return bool(np.all(np.diff(known[~np.isnan(known)]) == 1.0))


def _check_matrix(table: Table, findings: Findings) -> None:
    X = table.columns
    values = X.data if sp.issparse(X) else X
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        place = f"entry {bad[0][0]}" if sp.issparse(X) else f"row {bad[0][0]}, column {bad[0][1]}"
        what = f"{len(bad)} values are not finite"
        findings.add(Problem(place, what, "Fill or remove them before writing the file."))
        return
    largest = abs(X).max(axis=0)
    _check_ranges(np.asarray(largest.toarray() if sp.issparse(largest) else largest).ravel(), table.names, findings)


def _check_labels(y: NDArray[Any], findings: Findings) -> None:
    labels, counts = np.unique(y, return_counts=True)
    shown = ", ".join(f"{label} ({n})" for label, n in list(zip(labels.tolist(), counts.tolist(), strict=True))[:10])
    findings.facts.append(f"labels: {shown}" + (f" and {len(labels) - 10} more" if len(labels) > 10 else ""))
    if len(labels) == 1:
        findings.add(Problem("labels", f"every row has the label {labels[0]!s}", "Two classes are needed."))
    elif len(labels) > 2:
        fix = f"Set one against all others with --positive {str(labels[0])!r}."
        severity = "error" if findings.plan.positive is None else "warning"
        findings.add(Problem("labels", f"there are {len(labels)} classes, and two can be told apart", fix, severity))
    elif counts.min() < 0.01 * counts.sum():
        what = f"only {counts.min()} of {counts.sum()} rows are {labels[np.argmin(counts)]!s}"
        findings.add(Problem("labels", what, "Consider --balanced.", "warning"))


def _check_ranges(largest: NDArray[Any], names: Sequence[Any] | None, findings: Findings) -> None:
    used = np.flatnonzero(largest > 0.0)
    if len(used) < 2:
        return
    high, low = used[np.argmax(largest[used])], used[np.argmin(largest[used])]
    if largest[high] > WIDE_RANGE * largest[low]:
        big, small = (repr(names[j] if names is not None else int(j)) for j in (high, low))
        what = f"values up to {largest[high]:.3g} in column {big}, but only {largest[low]:.3g} in column {small}"
        findings.add(
            Problem("columns", what, "--scale standard brings them to one scale (train does it for tables).", "warning")
        )

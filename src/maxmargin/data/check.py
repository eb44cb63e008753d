"""Everything that is wrong in a data file, not only the first thing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.data.arrow import import_arrow
from maxmargin.data.csv import BadRow, CsvOptions, options_for, parse_csv
from maxmargin.data.encoding import gaps, is_text, mostly_numbers, strange_cells
from maxmargin.data.errors import DataError
from maxmargin.data.files import open_text, whole_content
from maxmargin.data.formats import format_of, read_table
from maxmargin.data.labels import plain_labels
from maxmargin.data.svmlight import feed
from maxmargin.data.table import Table, Target, shortened

MOST_PROBLEMS = 20
FEW_COLUMNS = 4
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

    def add_columns(self, kind: str, problems: list[tuple[str, Problem]]) -> None:
        """The same problem in several columns: each one by itself, or all at once if there are many."""
        if len(problems) <= FEW_COLUMNS:
            for _, problem in problems:
                self.add(problem)
            return
        names, first = [name for name, _ in problems], problems[0][1]
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
    raw = {name: table.columns.column(name) for name in table.names or ()}
    texts = [(name, _text_problem(name, values, findings.plan)) for name, values in raw.items() if is_text(values)]
    findings.add_columns("text", texts)
    gappy = [(name, values) for name, values in raw.items() if gaps(values).any()]
    findings.add_columns("gaps", [(name, _gap_problem(name, values, findings.plan)) for name, values in gappy])
    sizes = {name: _check_numbers(name, values, findings) for name, values in raw.items() if not is_text(values)}
    known = {name: size for name, size in sizes.items() if size is not None}
    _check_ranges(np.array(list(known.values())), list(known), findings)


def _text_problem(name: str, values: Any, plan: Plan) -> Problem:
    row, cell, kinds, share = strange_cells(values)
    place, leave = f"column {name!r}, row {row}", f"or leave the column out (--drop {name!r})."
    if mostly_numbers(values):
        na = f"--na {cell!r} if it means a missing value, " if len(kinds) == 1 else ""
        what = f"numbers, but for {shortened(sorted(kinds), 4)} in {share:.1%} of the rows"
        return Problem(place, what, f"Correct it, {na}{leave}", "warning" if plan.text == "drop" else "error")
    fix = f"--text onehot gives each text a column, --text drop leaves text out, {leave}"
    return Problem(place, f"text such as {cell!r}", fix, "error" if plan.text == "error" else "warning")


def _gap_problem(name: str, values: Any, plan: Plan) -> Problem:
    where = gaps(values)
    what = f"{int(where.sum())} of {len(where)} values are missing"
    fix = f"--missing mean, --missing drop, or leave the column out (--drop {name!r})."
    severity = "error" if plan.missing == "error" else "warning"
    return Problem(f"column {name!r}, row {int(np.argmax(where))}", what, fix, severity)


def _check_numbers(name: str, values: Any, findings: Findings) -> float | None:
    """The largest absolute value of a column of numbers; None for others."""
    pa = import_arrow("reading columns")
    place = f"column {name!r}"
    leave = f"or leave the column out (--drop {name!r})."
    where = gaps(values)
    numeric = pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_decimal(values.type)
    if not (numeric or pa.types.is_boolean(values.type)):
        if not pa.types.is_null(values.type):
            findings.add(Problem(place, f"it holds {values.type}", f"Turn it into numbers, {leave}"))
        return None
    numbers = np.asarray(values.cast(pa.float64(), safe=False).to_numpy())
    known = numbers[~where]
    bad = np.flatnonzero(~np.isfinite(numbers) & ~where)
    if len(bad):
        findings.add(Problem(f"{place}, row {bad[0]}", f"the value is {numbers[bad[0]]}", f"Correct it, {leave}"))
        return None
    if len(known) and known.min() == known.max():
        findings.add(
            Problem(place, f"every row has {known[0]:g}", "It tells nothing; --drop it if you like.", "warning")
        )
        return None
    if len(known) >= 20 and np.all(np.diff(known) == 1.0):
        findings.add(
            Problem(
                place, "it counts the rows", f"Such a column tells nothing of new rows: --drop {name!r}.", "warning"
            )
        )
    return float(np.abs(known).max()) if len(known) else None


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

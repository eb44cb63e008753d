"""``maxmargin check``."""

from __future__ import annotations

import typer

from maxmargin.cli.exit_codes import ExitCode
from maxmargin.cli.options import (
    DataFile,
    Decimal,
    Delimiter,
    Drop,
    FileFormat,
    Format,
    Header,
    Json,
    MaxBytes,
    Missing,
    MissingName,
    Na,
    Positive,
    Target,
    Text,
    TextName,
    csv_options,
)
from maxmargin.cli.output import Output


def check(
    data: DataFile,
    target: Target = None,
    drop: Drop = None,
    missing: Missing = MissingName.error,
    text: Text = TextName.error,
    positive: Positive = None,
    na: Na = None,
    header: Header = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    format: FileFormat = None,
    max_bytes: MaxBytes = None,
    as_json: Json = False,
) -> None:
    """Look for everything that is wrong in a data file: what, where, and how to fix it. Exit code 1 if something is.

    [bold]Examples[/bold]
      maxmargin check a9a.svm
      maxmargin check spam.csv --target is_spam
      maxmargin check adult.csv --text onehot --missing mean

    Name the options that train will get: what they take care of is a warning here, not an error.
    """
    from maxmargin.data.check import Plan, check_file

    output = Output(as_json)
    found = check_file(
        data,
        target=target,
        drop=drop or (),
        format=None if format is None else Format(format).value,
        csv=csv_options(header, delimiter, na, decimal),
        plan=Plan(missing.value, text.value, positive),
        max_bytes=max_bytes,
    )
    for fact in found.facts:
        output.say(fact)
    for problem in found.problems:
        output.say(f"{problem.severity}: {problem.place}: {problem.what}")
        output.say(f"    {problem.fix}")
    n_errors = sum(problem.severity == "error" for problem in found.problems)
    n_warnings = len(found.problems) - n_errors
    more = f" (and {found.n_more} more)" if found.n_more else ""
    counts = f"{_counted(n_errors, 'error')}, {_counted(n_warnings, 'warning')}{more}"
    output.say(counts if found.problems else "nothing is wrong")
    output.result(found.as_json())
    if n_errors:
        raise typer.Exit(ExitCode.NO)


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"

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
    Na,
    Target,
    csv_options,
)
from maxmargin.cli.output import Output


def check(
    data: DataFile,
    target: Target = None,
    drop: Drop = None,
    na: Na = None,
    header: Header = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    format: FileFormat = None,
    as_json: Json = False,
) -> None:
    """Look for everything that is wrong in a data file: what, where, and how to fix it. Exit code 1 if something is.

    [bold]Examples[/bold]
      maxmargin check a9a.svm
      maxmargin check spam.csv --target is_spam
    """
    from maxmargin.data.check import check_file

    output = Output(as_json)
    found = check_file(
        data,
        target=target,
        drop=drop or (),
        format=None if format is None else Format(format).value,
        csv=csv_options(header, delimiter, na, decimal),
    )
    for fact in found.facts:
        output.say(fact)
    for problem in found.problems:
        output.say(f"{problem.severity}: {problem.place}: {problem.what}")
        output.say(f"    {problem.fix}")
    n_errors = sum(problem.severity == "error" for problem in found.problems)
    n_warnings = len(found.problems) - n_errors
    more = f" (and {found.n_more} more like these)" if found.n_more else ""
    output.say(f"{n_errors} errors, {n_warnings} warnings{more}" if found.problems else "nothing is wrong")
    output.result(found.as_json())
    if n_errors:
        raise typer.Exit(ExitCode.NO)

"""``maxmargin predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.cli.options import (
    OUTPUT,
    DataFile,
    Decimal,
    Delimiter,
    FileFormat,
    Header,
    Json,
    MaxBytes,
    ModelFile,
    Na,
    read,
)
from maxmargin.cli.output import Output, check_target


def predict(
    model: ModelFile,
    data: DataFile,
    to: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="CSV file for the answers. Without it: standard output.",
            rich_help_panel=OUTPUT,
            show_default=False,
        ),
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Also write the signed scores.", rich_help_panel=OUTPUT)
    ] = False,
    na: Na = None,
    header: Header = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    format: FileFormat = None,
    max_bytes: MaxBytes = None,
    as_json: Json = False,
) -> None:
    """Answer for every row of a file; if it has the labels, say how many answers are wrong.

    [bold]Examples[/bold]
      maxmargin predict spam.safetensors new.csv --output answers.csv
      maxmargin predict spam.safetensors new.csv --scores | head

    Columns are found by name, in any order; columns the model does not know are left out.
    """

    from maxmargin.data import DataError
    from maxmargin.data.files import atomic_write
    from maxmargin.models import load
    from maxmargin.report.outcome import TestPart

    output = Output(as_json)
    if to is not None:
        check_target(to, model, data)
    loaded = load(model)
    layout: dict[str, Any] = {"na": na, "header": header, "delimiter": delimiter, "decimal": decimal}
    table = read_for(loaded, data, format=format, max_bytes=max_bytes, **layout)
    values = loaded.decision_function(table)
    answers = loaded.answers(values)
    _warn_of_unseen_texts(loaded, table, output)
    text = _as_csv(answers, values if scores else None)
    part = None
    if table.y is not None:
        try:
            part = TestPart(loaded.labels(table), answers, values, loaded.machine.classes_)
        except DataError as error:
            output.warn(f"the answers are not compared with the labels: {error}")
    if to is not None:
        with atomic_write(to) as file:
            file.write(text.encode())
        output.fact("answers", f"{len(answers)} in {to}")
        if part is not None:
            output.fact("compared", _compared(part))
    elif not as_json:
        typer.echo(text, nl=False)
        if part is not None:
            output.warn(_compared(part))
    result: dict[str, Any] = {"rows": len(answers), "output": None if to is None else str(to)}
    if part is not None:
        result |= {"wrong": part.n_wrong, "error": part.error}
    if to is None:
        result["predictions"] = answers.tolist()
        if scores:
            result["scores"] = values.tolist()
    output.result(result)


def _compared(part: Any) -> str:
    from maxmargin.report.words import percent

    return f"{part.n_wrong} of {len(part.y)} rows answered wrongly: {percent(part.error)}"


def _warn_of_unseen_texts(loaded: Any, table: Any, output: Output) -> None:
    if loaded.encoding is None or table.is_matrix:
        return
    for name, (count, text) in loaded.encoding.unseen(table).items():
        output.warn(
            f"column {name!r}: {count} rows hold a text the model has never seen, such as {text!r}; it counts for none"
        )


def read_for(loaded: Any, data: Path, **options: Any) -> Any:
    """The table, with the label column of the training if the file has it: rows to predict often have none."""
    from maxmargin.data.errors import MissingLabel, NoSuchColumn
    from maxmargin.data.formats import format_of

    kind = options["format"] or format_of(data, reading=True)
    target = loaded.training.target
    # What was said about the training file holds here, too, unless something else is said.
    options |= {key: value for key, value in (loaded.training.layout or {}).items() if options.get(key) is None}
    if kind in ("svmlight", "npz"):
        return read(data, zero_based=loaded.training.zero_based, **options)
    try:
        return read(data, target=target, **options)
    except (NoSuchColumn, MissingLabel):
        return read(data, target=False, **options)


def _as_csv(answers: Any, scores: Any) -> str:
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["prediction"] if scores is None else ["prediction", "score"])
    columns = [answers.tolist()] if scores is None else [answers.tolist(), scores.tolist()]
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()

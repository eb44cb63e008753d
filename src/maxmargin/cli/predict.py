"""``maxmargin predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.cli.options import OUTPUT, DataFile, Delimiter, FileFormat, Header, Json, ModelFile, Na, read
from maxmargin.cli.output import Output


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
    format: FileFormat = None,
    as_json: Json = False,
) -> None:
    """Answer for every row of a file; if it has the labels, say how many answers are wrong.

    [bold]Examples[/bold]
      maxmargin predict spam.safetensors new.csv --output answers.csv
      maxmargin predict spam.safetensors new.csv --scores | head

    Columns are found by name, in any order; columns the model does not know are left out.
    """
    import numpy as np

    from maxmargin.data.files import atomic_write
    from maxmargin.models import load
    from maxmargin.report.outcome import TestPart
    from maxmargin.report.words import test_in_words

    output = Output(as_json)
    loaded = load(model)
    table = read_for(loaded, data, na=na, header=header, delimiter=delimiter, format=format)
    X = loaded.matrix(table)
    answers = np.asarray(loaded.machine.predict(X))
    values = np.asarray(loaded.machine.decision_function(X))
    text = _as_csv(answers, values if scores else None)
    part = None
    if table.y is not None:
        part = TestPart(loaded.labels(table), answers, values, loaded.machine.classes_)
    if to is not None:
        with atomic_write(to) as file:
            file.write(text.encode())
        output.fact("answers", f"{len(answers)} in {to}")
        if part is not None:
            output.fact("test", test_in_words(part))
    elif not as_json:
        typer.echo(text, nl=False)
        if part is not None:
            output.warn(test_in_words(part))
    result: dict[str, Any] = {"rows": len(answers), "output": None if to is None else str(to)}
    if part is not None:
        result |= {"wrong": part.n_wrong, "error": part.error, "interval_95": list(part.interval)}
    if to is None:
        result["predictions"] = answers.tolist()
        if scores:
            result["scores"] = values.tolist()
    output.result(result)


def read_for(loaded: Any, data: Path, **options: Any) -> Any:
    """The table, with the label column of the training if the file has it: rows to predict often have none."""
    from maxmargin.data.errors import NoSuchColumn
    from maxmargin.data.formats import format_of

    kind = options["format"] or format_of(data, reading=True)
    target = loaded.training.target
    if kind in ("svmlight", "npz"):
        return read(data, **options)
    try:
        return read(data, target=target, **options)
    except NoSuchColumn:
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

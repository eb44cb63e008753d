"""``maxmargin convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.cli.options import (
    OUTPUT,
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
    Target,
    Text,
    TextName,
    ZeroBased,
    read,
)
from maxmargin.cli.output import Output, check_target


def convert(
    data: DataFile,
    to: Annotated[Path, typer.Argument(help="File to write; its ending names the format.", show_default=False)],
    target: Target = None,
    drop: Drop = None,
    missing: Missing = MissingName.error,
    text: Text = TextName.error,
    na: Na = None,
    header: Header = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    format: FileFormat = None,
    zero_based: ZeroBased = None,
    max_bytes: MaxBytes = None,
    to_format: Annotated[
        Format | None,
        typer.Option(help="Format to write, if the name does not tell.", rich_help_panel=OUTPUT, show_default=False),
    ] = None,
    number_labels: Annotated[
        bool,
        typer.Option(
            "--number-labels",
            help="Write labels as 0, 1, … in their sorted order (svmlight holds numbers only).",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Convert a data file to another format, losing nothing: every number reads back the same.

    [bold]Examples[/bold]
      maxmargin convert a9a.svm a9a.parquet
      maxmargin convert spam.csv spam.svm --target is_spam --number-labels
    """
    from dataclasses import replace

    import numpy as np

    from maxmargin.data import Encoding, complete_rows, write_table

    output = Output(as_json)
    check_target(to, data)
    layout: dict[str, Any] = {"na": na, "header": header, "delimiter": delimiter, "decimal": decimal}
    table = read(data, target=target, drop=drop, format=format, zero_based=zero_based, max_bytes=max_bytes, **layout)
    if not table.is_matrix:
        if missing is MissingName.drop:
            table = table.take(complete_rows(table, text=text.value))
        encoding = Encoding.learn(table, missing=missing.value, text=text.value)
        table = replace(table, columns=encoding.apply(table), names=encoding.feature_names)
    codes: dict[str, int] = {}
    if number_labels:
        classes, position = np.unique(table.labels(), return_inverse=True)
        codes = {str(label): k for k, label in enumerate(classes.tolist())}
        table = replace(table, y=position.astype(np.int64))
    write_table(table, to, format=None if to_format is None else to_format.value)
    output.fact("written", f"{to}: {table.n_rows} rows, {table.n_columns} columns")
    if codes:
        output.fact("labels", ", ".join(f"{label} → {k}" for label, k in codes.items()))
    output.result({"output": str(to), "rows": table.n_rows, "columns": table.n_columns, "labels": codes or None})

"""Options that several commands share."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Format(StrEnum):
    svmlight = "svmlight"
    csv = "csv"
    parquet = "parquet"
    arrow = "arrow"
    npz = "npz"


class MissingName(StrEnum):
    error = "error"
    mean = "mean"
    drop = "drop"


class TextName(StrEnum):
    error = "error"
    onehot = "onehot"
    drop = "drop"


DATA, MACHINE, OUTPUT = "The data", "The machine", "Output"

DataFile = Annotated[
    Path,
    typer.Argument(help="Data file: svmlight/LIBSVM, CSV, Parquet, Arrow or npz; .gz, .bz2, .xz.", show_default=False),
]
ModelFile = Annotated[Path, typer.Argument(help="Model file written by train.", show_default=False)]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="Column of the labels, by name or index (0 is the first, -1 the last). "
        "Without it: the column called label, target, class or y.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN", help="Column to leave out; repeat for more.", rich_help_panel=DATA, show_default=False
    ),
]
Missing = Annotated[
    MissingName,
    typer.Option(
        help="Missing values: refuse them, fill in the column's mean, or drop such rows.", rich_help_panel=DATA
    ),
]
Text = Annotated[
    TextName,
    typer.Option(
        help="Text columns: refuse them, give each text a column of 0 and 1, or drop them.", rich_help_panel=DATA
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL",
        help="Set this label against all others, if there are more than two.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Na = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="Text that means a missing value, besides the usual ones (empty, NA, NaN, null); repeat for more.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first CSV line holds names. Without it: it does unless one of its cells is a number.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        help="Between CSV cells. Without it: what the first line has most of.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        help="Decimal point of CSV numbers, if it is a comma.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
FileFormat = Annotated[
    Format | None,
    typer.Option(
        "--format", help="Format of the data file, if its name does not tell.", rich_help_panel=DATA, show_default=False
    ),
]
ZeroBased = Annotated[
    bool | None,
    typer.Option(
        "--zero-based/--one-based",
        help="From what a svmlight file counts columns. Without it: from 0 if a column 0 occurs.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
MaxBytes = Annotated[
    int | None,
    typer.Option(
        "--max-bytes",
        metavar="SIZE",
        parser=lambda text: size_in_bytes(text),
        help="Most bytes that a file may unpack to, as a number or with kB, MB, GB, TB (8GB). Without it: a quarter of "
        "the memory, or the size on disk if that is more; plain text has no limit then.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of sentences.", rich_help_panel=OUTPUT)
]


def read(
    path: Path,
    *,
    target: Any = None,
    drop: list[str] | None = None,
    na: list[str] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    format: Format | None = None,
    zero_based: bool | None = None,
    max_bytes: int | None = None,
) -> Any:
    """The table in a file, with the options above."""
    from maxmargin.data import read_table

    kind = None if format is None else format.value
    csv = csv_options(header, delimiter, na, decimal)
    return read_table(
        path, target=target, drop=drop or (), format=kind, csv=csv, zero_based=zero_based, max_bytes=max_bytes
    )


def size_in_bytes(text: Any) -> int:
    """The bytes that a size on the command line means.

    Examples
    --------
    >>> size_in_bytes("1500"), size_in_bytes("8 GB"), size_in_bytes("0.5kB")
    (1500, 8589934592, 512)
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([kmgt]?)i?b?", str(text).strip().lower())
    size = 0 if found is None else int(float(found[1]) * 1024 ** " kmgt".index(found[2] or " "))
    if size < 1:
        raise typer.BadParameter(f"expected a number of bytes such as 8GB, got {text!r}")
    return size


def csv_options(header: bool | None, delimiter: str | None, na: list[str] | None, decimal: str | None) -> Any:
    """The layout of CSV text, with a tab by name."""
    from maxmargin.data import CsvOptions

    if delimiter is not None:
        delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
    return CsvOptions(header=header, delimiter=delimiter, na=tuple(na or ()), decimal=decimal)

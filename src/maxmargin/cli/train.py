"""``maxmargin train``."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.cli.exit_codes import ExitCode
from maxmargin.cli.options import (
    DATA,
    MACHINE,
    OUTPUT,
    DataFile,
    Decimal,
    Delimiter,
    Drop,
    FileFormat,
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
    ZeroBased,
    read,
)
from maxmargin.cli.output import Output, check_target


class LossName(StrEnum):
    squared_hinge = "squared_hinge"
    hinge = "hinge"


class SolverName(StrEnum):
    auto = "auto"
    interior_point = "interior_point"
    dual_cd = "dual_cd"
    newton = "newton"
    proximal_newton = "proximal_newton"


class ScaleName(StrEnum):
    auto = "auto"
    standard = "standard"
    none = "none"


def train(
    data: DataFile,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            "-m",
            help="Where to save the model. Without it: the data file's name with .safetensors, in this folder.",
            rich_help_panel=OUTPUT,
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", "-r", help="Write a page to look at.", rich_help_panel=OUTPUT, show_default=False),
    ] = None,
    target: Target = None,
    positive: Positive = None,
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
    test: Annotated[
        Path | None,
        typer.Option(help="File with rows to test on.", rich_help_panel=DATA, show_default=False),
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.95,
            help="Share of the rows held out for the test. Without it: 0.25 if there is a report and no test file, "
            "otherwise 0.",
            rich_help_panel=DATA,
            show_default=False,
        ),
    ] = None,
    C: Annotated[
        str,
        typer.Option(
            "--C",
            "-C",
            metavar="NUMBER|LIST|auto",
            help="Price of slack; of several (0.1,1,10) the best by cross-validation. auto: 0.001 to 1000.",
            rich_help_panel=MACHINE,
        ),
    ] = "auto",
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.", rich_help_panel=MACHINE)] = 5,
    loss: Annotated[LossName, typer.Option(help="Loss.", rich_help_panel=MACHINE)] = LossName.squared_hinge,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Give both classes the same total weight.", rich_help_panel=MACHINE)
    ] = False,
    scale: Annotated[
        ScaleName,
        typer.Option(help="Scale columns to mean 0, deviation 1. auto: dense columns only.", rich_help_panel=MACHINE),
    ] = ScaleName.auto,
    tol: Annotated[
        float, typer.Option(min=1e-300, help="Relative duality gap at which to stop.", rich_help_panel=MACHINE)
    ] = 1e-6,
    max_seconds: Annotated[
        float | None,
        typer.Option(min=1e-9, help="Time limit of each fit.", rich_help_panel=MACHINE, show_default=False),
    ] = None,
    solver: Annotated[SolverName, typer.Option(help="Solver.", rich_help_panel=MACHINE)] = SolverName.auto,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of threads; the result does not depend on it.",
            rich_help_panel=MACHINE,
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split and the folds.", rich_help_panel=MACHINE)] = 0,
    no_dual: Annotated[
        bool,
        typer.Option(
            "--no-dual",
            help="Leave the dual point (one number per row) out of the model file; certify must then fit again.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Choose C, fit, certify, test, and save a linear classifier.

    [bold]Examples[/bold]
      maxmargin train spam.csv --target is_spam --report report.html
      maxmargin train a9a.svm --test a9a.t --C 1 --loss hinge
      maxmargin train adult.csv --text onehot --missing mean --balanced
      maxmargin train iris.csv --target species --positive setosa

    Ctrl-C during the fit saves the model as far as it got and says its gap.
    """
    output = Output(as_json)
    values = _values(C)
    from maxmargin.cli.job import Job, run, tell
    from maxmargin.data.formats import knows_suffix
    from maxmargin.svm import LinearSVC

    if report is not None:
        from maxmargin.report.figures import import_matplotlib

        import_matplotlib()
    path = model if model is not None else Path(_stem(data) + ".safetensors")
    for written in [path] + ([] if report is None else [report]):
        check_target(written, *[source for source in (data, test) if source is not None])
    layout: dict[str, Any] = {"na": na, "header": header, "delimiter": delimiter, "decimal": decimal}
    reading: dict[str, Any] = {"target": target, "drop": drop, "max_bytes": max_bytes, **layout}
    table = read(data, format=format, zero_based=zero_based, **reading)
    tested = None
    if test is not None:
        # Both files count columns alike, and look alike if their names do not tell.
        kind = None if knows_suffix(test) else format
        tested = read(test, format=kind, zero_based=table.zero_based, **reading)
    if tested is not None and holdout:
        raise typer.BadParameter("give either --test or --holdout", param_hint="--holdout")
    share = holdout if holdout is not None else (0.25 if report is not None and test is None else 0.0)
    outcome = run(
        Job(
            table=table,
            machine=LinearSVC(
                loss=loss.value,
                class_weight="balanced" if balanced else None,
                tol=tol,
                max_seconds=max_seconds,
                solver=solver.value,
                n_threads=threads,
            ),
            command=command_line(),
            model_path=path,
            Cs=values,
            n_folds=folds,
            seed=seed,
            holdout=share,
            test=tested,
            scale=scale.value,
            missing=missing.value,
            text=text.value,
            positive=positive,
            dual=not no_dual,
            judge=report is not None,
            layout=None if all(value is None for value in layout.values()) else layout,
        ),
        output,
    )
    tell(outcome, output)
    _hand_out(outcome, data, path, report, output)


def _hand_out(outcome: Any, data: Path, path: Path, report: Path | None, output: Output) -> None:
    """Say where everything is, write the page, and exit with the code that fits."""
    from maxmargin.certificates import Outcome as Proof

    output.fact(
        "model", f"{path}  (check it with: maxmargin certify {shlex.quote(str(path))} {shlex.quote(str(data))})"
    )
    if report is not None:
        from maxmargin.report import write_report

        write_report(outcome, report)
        output.fact("report", report)
    output.result({**outcome.as_json(), "model": str(path), "report": None if report is None else str(report)})
    if outcome.interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if outcome.verdict.outcome is Proof.REJECTED:
        raise typer.Exit(ExitCode.NO)
    if not outcome.verdict:
        raise typer.Exit(ExitCode.UNFINISHED)


def _values(text: str) -> tuple[float, ...]:
    """The values of C in ``auto``, ``1`` or ``0.1,1,10``."""
    if text == "auto":
        from maxmargin.selection import DEFAULT_CS

        return DEFAULT_CS
    try:
        values = tuple(sorted({float(part) for part in text.split(",")}))
    except ValueError:
        values = ()
    if not values or not all(0.0 < value < float("inf") for value in values):
        raise typer.BadParameter(
            f"expected auto, a number above 0, or several with commas; got {text!r}", param_hint="--C"
        )
    return values


def _stem(path: Path) -> str:
    name = path.name
    while Path(name).suffix and Path(name).suffix.lower() in (".gz", ".bz2", ".xz"):
        name = Path(name).stem
    return Path(name).stem


def command_line() -> str:
    """The command as it was typed."""
    return shlex.join(["maxmargin", *sys.argv[1:]])

"""``maxmargin demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maxmargin.cli.options import Json
from maxmargin.cli.output import Output


def demo(
    folder: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the model and the report.", file_okay=False)
    ] = Path("."),
    as_json: Json = False,
) -> None:
    """Run everything once on a bundled table: 569 tumours, benign or malignant.

    [bold]Examples[/bold]
      maxmargin demo
      maxmargin demo --output results

    Holds out a quarter of the rows, chooses C by 5-fold cross-validation, fits, certifies, tests, and writes
    report.html and breast_cancer.safetensors. Nothing is fetched from anywhere.
    """
    from maxmargin.cli.job import Job, run, tell
    from maxmargin.data import breast_cancer
    from maxmargin.report import write_report
    from maxmargin.report.figures import import_matplotlib
    from maxmargin.selection import DEFAULT_CS
    from maxmargin.svm import LinearSVC

    import_matplotlib()
    output = Output(as_json)
    folder.mkdir(parents=True, exist_ok=True)
    model, report = folder / "breast_cancer.safetensors", folder / "report.html"
    job = Job(
        table=breast_cancer(),
        machine=LinearSVC(loss="hinge"),
        command="maxmargin demo",
        model_path=model,
        Cs=DEFAULT_CS,
        holdout=0.25,
    )
    outcome = run(job, output)
    tell(outcome, output)
    write_report(outcome, report)
    output.fact("model", model)
    output.fact("report", f"{report}  (open it in a browser)")
    output.result({**outcome.as_json(), "model": str(model), "report": str(report)})

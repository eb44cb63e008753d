"""``maxmargin certify``."""

from __future__ import annotations

from typing import Annotated

import typer

from maxmargin.cli.exit_codes import ExitCode
from maxmargin.cli.options import DataFile, Decimal, Delimiter, FileFormat, Header, Json, MaxBytes, ModelFile, Na
from maxmargin.cli.output import Output


def certify(
    model: ModelFile,
    data: DataFile,
    max_gap: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="Largest relative gap that counts as near-optimal. Without it: what the fit asked for."
        ),
    ] = None,
    na: Na = None,
    header: Header = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    format: FileFormat = None,
    max_bytes: MaxBytes = None,
    as_json: Json = False,
) -> None:
    """Verify a saved model against the data it was trained on.

    Exit code 0: near-optimality is proven. 6: every claim is true, but the gap is larger than the fit asked for, or
    than --max-gap. 1: rejected, a claim is false.

    [bold]Examples[/bold]
      maxmargin certify spam.safetensors spam.csv
      maxmargin certify spam.safetensors spam.csv --max-gap 1e-3 --json

    Everything is recomputed from the rows: their fingerprint, the scaling, the objective, the lower bound that no
    hyperplane can beat, and the gap between the two. No solver is used, unless the model was saved with --no-dual.
    """
    from maxmargin.certificates import Outcome
    from maxmargin.cli.predict import read_for
    from maxmargin.models import ModelFileError, load
    from maxmargin.models import certify as verify

    output = Output(as_json)
    try:
        loaded = load(model)
    except ModelFileError as error:
        output.say(f"REJECTED: {error}")
        output.result({"outcome": Outcome.REJECTED.name, "worst": error.place, "problem": error.problem})
        raise typer.Exit(ExitCode.NO) from None
    table = read_for(
        loaded, data, na=na, header=header, delimiter=delimiter, decimal=decimal, format=format, max_bytes=max_bytes
    )
    verdict = verify(loaded, table, max_gap=max_gap)
    if verdict.worst == "training data":
        output.say(f"REJECTED: the rows or labels in {data} are not those that {model} was trained on")
    else:
        output.say(str(verdict))
    if loaded.training.digest is None:
        output.say("  the file holds no fingerprint of the training rows: whether these are the same is not checked")
    for name, wrong in verdict.checks.items():
        output.fact(f"  {name}"[:24].ljust(26), wrong or "holds")
    output.result(
        {
            "outcome": verdict.outcome.name,
            "worst": verdict.worst,
            "checks": verdict.checks,
            "max_gap": verdict.max_gap,
            "objective": verdict.primal,
            "lower_bound": verdict.dual,
            "gap": verdict.gap,
        }
    )
    if not verdict:
        raise typer.Exit(ExitCode.NOT_PROVEN if verdict.outcome is Outcome.HONEST else ExitCode.NO)

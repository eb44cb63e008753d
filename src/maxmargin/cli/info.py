"""``maxmargin info``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.cli.options import Json, MaxBytes
from maxmargin.cli.output import Output


def info(
    file: Annotated[
        Path | None, typer.Argument(help="Model or data file; none: this installation.", show_default=False)
    ] = None,
    max_bytes: MaxBytes = None,
    as_json: Json = False,
) -> None:
    """Say what a model or data file holds, or what is installed here.

    [bold]Examples[/bold]
      maxmargin info
      maxmargin info spam.safetensors
      maxmargin info spam.csv
    """
    output = Output(as_json)
    if file is None:
        facts = _installation()
    elif file.suffix == ".safetensors":
        facts = _model(file)
    else:
        facts = _data(file, max_bytes)
    for name, value in facts.items():
        output.fact(name, value)
    output.result(facts)


def _installation() -> dict[str, Any]:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from maxmargin.runtime import core_info

    facts: dict[str, Any] = {"python": f"{platform.python_version()} on {platform.platform()}"}
    for name in ("maxmargin", "numpy", "scipy", "scikit-learn", "pyarrow", "matplotlib"):
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = "not installed"
    core = core_info()
    return facts | {
        "instruction set": core["instruction_set"],
        "threads": core["n_threads"],
        "compiler": core["compiler"],
    }


def _model(file: Path) -> dict[str, Any]:
    import numpy as np

    from maxmargin.models import load

    model = load(file)
    machine, solution, training = model.machine, model.machine.solution_, model.training
    largest = np.argsort(-np.abs(machine.coef_[0]), kind="stable")[:5]
    facts: dict[str, Any] = {
        "machine": f"{type(machine).__name__}(loss={machine.loss!r}, C={machine.C:g}, {_weights(machine)})",
        "classes": ", ".join(str(c) for c in machine.classes_.tolist()),
        "label column": training.target or "unnamed",
        "features": model.n_features,
        "largest weights": ", ".join(f"{model.feature_names[j]} {machine.coef_[0, j]:+.3g}" for j in largest),
        "prepared": ", ".join(_preparation(model)) or "as they are",
        "trained on": f"{training.n_rows} rows of {training.source or 'arrays'}",
        "fingerprint": training.digest or "none",
        "status": f"{solution.status.name}: {solution.status.sentence}",
        "objective": solution.primal,
        "lower bound": solution.dual,
        "relative gap": solution.gap,
        "dual point": f"{len(machine.support_)} support vectors" if model.has_dual else "not in the file",
    }
    return facts


def _preparation(model: Any) -> list[str]:
    """What happens to rows before the machine sees them."""
    done = []
    columns = model.encoding.columns if model.encoding is not None else ()
    if any(column.levels is not None for column in columns):
        done.append("text to columns of 0 and 1")
    if any(column.levels is None and column.fill is not None for column in columns):
        done.append("gaps to means")
    if model.scaling is not None:
        done.append("columns scaled")
    return done


def _weights(machine: Any) -> str:
    return "classes weigh the same" if machine.class_weight == "balanced" else f"class_weight={machine.class_weight}"


def _data(file: Path, max_bytes: int | None) -> dict[str, Any]:
    import numpy as np

    from maxmargin.data import read_table

    table = read_table(file, max_bytes=max_bytes)
    facts: dict[str, Any] = {"rows": table.n_rows, "columns": table.n_columns}
    if table.is_matrix and hasattr(table.columns, "nnz"):
        facts["non-zeros"] = int(table.columns.nnz)
    if table.names is not None:
        facts["names"] = ", ".join(table.names[:12]) + (" …" if len(table.names) > 12 else "")
    if table.y is not None:
        labels, counts = np.unique(table.y, return_counts=True)
        shown = ", ".join(
            f"{label} ({n})" for label, n in list(zip(labels.tolist(), counts.tolist(), strict=True))[:10]
        )
        facts["labels"] = shown + (f" and {len(labels) - 10} more" if len(labels) > 10 else "")
    return facts

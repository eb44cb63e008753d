"""Run the benchmark: ``python -m benchmarks.run --help``."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import child, datasets, machine, report, solvers
from benchmarks.objective import Objective
from benchmarks.solvers.maxmargin import DEFAULT, reference
from benchmarks.sweep import Sweep

LOSSES = ("hinge", "squared_hinge")
TALL_C = (0.01, 1.0, 100.0, 1e4)
FOLDER_C = (0.1, 1.0, 10.0, 100.0)


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    peers = [name for name in solvers.names() if name != solvers.OURS]
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    add = parser.add_argument
    add(
        "--datasets",
        nargs="+",
        help="tall-<rows>x<columns>, file names in MAXMARGIN_DATA, or 'folder' for all",
    )
    add(
        "--C",
        nargs="+",
        type=float,
        help="default: 0.01 1 100 1e4 for generated data, 0.1 1 10 100 for files",
    )
    add("--loss", nargs="+", choices=LOSSES, default=["hinge"])
    add("--targets", nargs="+", type=float, default=[1e-3, 1e-4], help="relative suboptimality")
    add("--peers", nargs="+", choices=solvers.names(), default=peers)
    add("--repeats", type=int, default=3)
    add("--time-limit", type=float, default=120.0, help="seconds for one fit")
    add("--output", type=Path, default=here / "results" / "latest.json")
    add(
        "--resume",
        action="store_true",
        help="keep the results of --output that have the same plan and machine",
    )
    add("--quiet", action="store_true", help="no line for every single fit")
    return parser.parse_args(argv)


def default_datasets() -> list[str]:
    return ["tall-200000x50", *(name for name in ("a9a", "w8a") if name in datasets.folder.names())]


def cells(
    names: Sequence[str], losses: Sequence[str], costs: Sequence[float] | None
) -> Iterator[tuple[str, str, float]]:
    for name in names:
        for loss in losses:
            for C in costs or (TALL_C if datasets.generated.matches(name) else FOLDER_C):
                yield name, loss, C


class Benchmark:
    """Walks the cells; the results are on disk after every peer."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.targets = sorted(options.targets, reverse=True)
        self.results: dict[str, Any] = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine.describe(),
            "plan": {
                "targets": self.targets,
                "time_limit": options.time_limit,
                "repeats": options.repeats,
                "peers": options.peers,
            },
            "cells": [],
        }
        if options.resume and options.output.exists():
            self._resume(json.loads(options.output.read_text()))

    def _resume(self, old: dict[str, Any]) -> None:
        now = json.loads(json.dumps(self.results))
        same = all(old["plan"][k] == now["plan"][k] for k in ("targets", "time_limit", "repeats"))
        if not (same and old["machine"] == now["machine"]):
            raise SystemExit("--resume: the plan or the machine differs; choose another --output")
        self.results["cells"] = old["cells"]

    def run(self) -> None:
        names = datasets.expand(self.options.datasets or default_datasets())
        loaded = ""
        with tempfile.TemporaryDirectory() as place:
            for name, loss, C in cells(names, self.options.loss, self.options.C):
                folder = Path(place) / name
                if name != loaded:
                    data, loaded = datasets.load(name), name
                    folder.mkdir(exist_ok=True)
                    datasets.hand_over(data, folder)
                self._cell(data, folder, loss, C)
        print("\n" + report.table(self.results))

    def _cell(self, data: datasets.Dataset, folder: Path, loss: str, C: float) -> None:
        def fit(solver: str, setting: solvers.Setting, limit: float) -> child.Answer:
            return child.run(child.Task(folder, solver, C, loss, setting), limit)

        objective = Objective(data.X, data.y, C, loss)
        title = f"{data.name} {loss} C={C:g}"
        cell = self._find(data.name, loss, C)
        if cell is None:
            cell = {"dataset": data.describe(), "loss": loss, "C": C, "peers": {}}
            if not self._our_part(cell, partial(fit, solvers.OURS), objective, title):
                return
        optimum = cell["reference"]["objective"]

        def judge(answer: child.Answer) -> float:
            return float("inf") if answer.w is None else objective.suboptimality(answer.w, optimum)

        for peer in self.options.peers:
            if peer not in cell["peers"]:
                say = partial(self._say, f"[{title}] {peer}:")
                sweep = Sweep(
                    partial(fit, peer),
                    judge,
                    self.targets,
                    self.options.time_limit,
                    self.options.repeats,
                    say,
                )
                cell["peers"][peer] = self._peer(peer, data, loss, sweep)
                report.write(self.results, self.options.output)

    def _our_part(self, cell: dict[str, Any], fit: Any, objective: Objective, title: str) -> bool:
        """The certified optimum and our own time; False if there is no optimum to compare with."""
        limit = self.options.time_limit
        best = fit(reference(limit), 2.0 * limit)
        times = [fit(DEFAULT, limit) for _ in range(self.options.repeats)]
        self.results["cells"].append(cell)
        if best.w is None:
            cell["reference"] = {"outcome": best.outcome, **best.details}
            cell["maxmargin"] = {"outcome": f"no certified optimum ({best.outcome})"}
            print(f"[{title}] maxmargin: no certified optimum: {best.outcome} {best.details}", flush=True)
            report.write(self.results, self.options.output)
            return False
        optimum = objective.value(best.w)
        cell["reference"] = {"objective": optimum, "seconds": best.seconds, **best.details}
        done = [answer for answer in times if answer.seconds is not None]
        fastest = min(done, key=lambda answer: answer.seconds or 0.0, default=times[0])
        cell["maxmargin"] = {"outcome": fastest.outcome, "seconds": fastest.seconds, **fastest.details}
        if fastest.w is not None:
            cell["maxmargin"]["suboptimality"] = objective.suboptimality(fastest.w, optimum)
            cell["maxmargin"]["repeats"] = [answer.seconds for answer in done]
        shown = fastest.outcome if fastest.seconds is None else f"{fastest.seconds:.4g} s"
        print(
            f"[{title}] maxmargin: {shown}, gap {fastest.details.get('gap')}; optimum {optimum:.10g}",
            flush=True,
        )
        doubt = max(best.details["gap"], best.details["verified_gap"])
        if not best.details["verified"] or doubt > 0.1 * min(self.targets):
            cell["reference"]["doubt"] = f"gap {doubt:.1e}, verified: {best.details['verified']}"
            print(f"[{title}] WARNING: the optimum is known only to {cell['reference']['doubt']}", flush=True)
        report.write(self.results, self.options.output)
        return True

    def _peer(self, name: str, data: datasets.Dataset, loss: str, sweep: Sweep) -> dict[str, Any]:
        solver = solvers.load(name)
        there, why = solver.available()
        if not there:
            return {"outcome": "unavailable", "reason": why}
        if not solver.supports(loss, data.sparse):
            return {"outcome": "unsupported"}
        measured = sweep.measure(solver, loss)
        reached = {
            t: None if best is None else round(best["seconds"], 4) for t, best in measured["targets"].items()
        }
        print(f"{sweep.say.args[0]} seconds to target {reached}", flush=True)
        return measured

    def _find(self, name: str, loss: str, C: float) -> dict[str, Any] | None:
        for cell in self.results["cells"]:
            if (cell["dataset"]["name"], cell["loss"], cell["C"]) == (name, loss, C) and "objective" in cell[
                "reference"
            ]:
                found: dict[str, Any] = cell
                return found
        return None

    def _say(self, title: str, line: str) -> None:
        if not self.options.quiet:
            print(title, line, flush=True)


if __name__ == "__main__":
    Benchmark(arguments()).run()

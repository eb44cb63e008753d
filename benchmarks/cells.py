"""The walk over data sets, losses and C; one cell is all solvers on one problem."""

from __future__ import annotations

import json
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import child, datasets, machine, report, solvers
from benchmarks.datasets import Dataset
from benchmarks.objective import Objective
from benchmarks.solvers.maxmargin import DEFAULT, reference
from benchmarks.sweep import Sweep

LOSSES = ("hinge", "squared_hinge")
TALL_C = (0.01, 1.0, 100.0, 1e4)
FOLDER_C = (0.1, 1.0, 10.0, 100.0)

Cell = dict[str, Any]


def default_datasets() -> list[str]:
    return ["tall-200000x50", *(name for name in ("a9a", "w8a") if name in datasets.folder.names())]


class Benchmark:
    """Runs what the command line asks for; the results are on disk after every peer."""

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self.targets = sorted(set(options.targets), reverse=True)
        self.cells: list[Cell] = []
        self.results: dict[str, Any] = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine.describe(),
            "plan": {
                "targets": self.targets,
                "time_limit": options.time_limit,
                "repeats": options.repeats,
                "peers": options.peers,
            },
            "cells": self.cells,
        }
        if options.resume and options.output.exists():
            self._resume(json.loads(options.output.read_text()))

    def run(self) -> None:
        names = datasets.expand(self.options.datasets or default_datasets())
        with tempfile.TemporaryDirectory() as place:
            for number, name in enumerate(names):
                data, folder = datasets.load(name), Path(place) / str(number)
                folder.mkdir()
                datasets.hand_over(data, folder)
                for loss, C in self._problems(name):
                    self._cell(data, folder, loss, C)
        print("\n" + report.table(self.results))

    def _problems(self, name: str) -> Iterator[tuple[str, float]]:
        usual: Sequence[float] = TALL_C if datasets.generated.matches(name) else FOLDER_C
        for loss in self.options.loss:
            for C in self.options.C or usual:
                yield loss, C

    def _cell(self, data: Dataset, folder: Path, loss: str, C: float) -> None:
        def fit(solver: str, setting: solvers.Setting, limit: float) -> child.Answer:
            return child.run(child.Task(folder, solver, C, loss, setting), limit)

        def judge(answer: child.Answer) -> float:
            return float("inf") if answer.w is None else objective.suboptimality(answer.w, optimum)

        title, objective = f"[{data.name} {loss} C={C:g}]", Objective(data.X, data.y, C, loss)
        cell = self._find(data.name, loss, C)
        if "objective" not in cell.get("reference", {}):
            cell.update(dataset=data.describe(), loss=loss, C=C, peers={})
            self._reference(cell, partial(fit, solvers.OURS), objective, title)
            self._write()
        if "objective" not in cell["reference"]:
            return
        optimum = cell["reference"]["objective"]
        for peer in self.options.peers:
            if peer not in cell["peers"]:
                sweep = Sweep(
                    fit=partial(fit, peer),
                    judge=judge,
                    targets=self.targets,
                    limit=self.options.time_limit,
                    repeats=self.options.repeats,
                    say=partial(self._say, f"{title} {peer}:"),
                )
                cell["peers"][peer] = _measure(solvers.load(peer), loss, data.sparse, sweep)
                self._say(f"{title} {peer}:", _summary(cell["peers"][peer]), always=True)
                self._write()

    def _reference(self, cell: Cell, fit: Callable[..., child.Answer], objective: Objective, title: str) -> None:
        """The certified optimum, and our own time with default settings."""
        limit = self.options.time_limit
        best = fit(reference(limit), 2.0 * limit)
        cell["reference"] = {"outcome": best.outcome, "seconds": best.seconds, **best.details}
        if best.w is None:
            cell["maxmargin"] = {"outcome": f"no certified optimum: {best.outcome}"}
            self._say(title, f"no certified optimum: {best.outcome} {best.details}", always=True)
            return
        optimum = objective.value(best.w)
        cell["reference"]["objective"] = optimum
        gap = max(best.details["gap"], best.details["verified_gap"])
        if not best.details["verified"] or gap > 0.1 * min(self.targets):
            cell["reference"]["doubt"] = True
            self._say(title, f"WARNING: optimum not certified closely enough: {best.details}", always=True)
        times = [fit(DEFAULT, limit) for _ in range(self.options.repeats)]
        fastest = min(times, key=lambda answer: float("inf") if answer.seconds is None else answer.seconds)
        cell["maxmargin"] = {"outcome": fastest.outcome, "seconds": fastest.seconds, **fastest.details}
        cell["maxmargin"]["repeats"] = [answer.seconds for answer in times]
        if fastest.w is None or fastest.seconds is None:
            self._say(title, f"maxmargin: {fastest.outcome} {fastest.details}", always=True)
            return
        cell["maxmargin"]["suboptimality"] = objective.suboptimality(fastest.w, optimum)
        shown = f"maxmargin: {fastest.seconds:.4g} s, gap {fastest.details['gap']:.1e}; optimum {optimum:.10g}"
        self._say(title, shown, always=True)

    def _find(self, name: str, loss: str, C: float) -> Cell:
        """The cell of this problem, new or resumed."""
        for cell in self.cells:
            if (cell["dataset"]["name"], cell["loss"], cell["C"]) == (name, loss, C):
                return cell
        self.cells.append({"dataset": {"name": name}, "loss": loss, "C": C, "peers": {}})
        return self.cells[-1]

    def _resume(self, old: dict[str, Any]) -> None:
        now = json.loads(json.dumps(self.results))
        same = all(old["plan"][key] == now["plan"][key] for key in ("targets", "time_limit", "repeats"))
        if not same or old["machine"] != now["machine"]:
            raise SystemExit("--resume: the plan or the machine differs; choose another --output")
        self.cells.extend(old["cells"])

    def _write(self) -> None:
        report.write(self.results, self.options.output)

    def _say(self, title: str, line: str, always: bool = False) -> None:
        if always or not self.options.quiet:
            print(title, line, flush=True)


def _measure(solver: solvers.BaseSolver, loss: str, sparse: bool, sweep: Sweep) -> dict[str, Any]:
    there, why = solver.available()
    if not there:
        return {"outcome": "unavailable", "reason": why}
    if not solver.supports(loss, sparse):
        return {"outcome": "unsupported"}
    return sweep.measure(solver, loss)


def _summary(peer: dict[str, Any]) -> str:
    if peer["outcome"] != "measured":
        return f"{peer['outcome']} {peer.get('reason', '')}".rstrip()
    seconds = {target: best and best["seconds"] for target, best in peer["targets"].items()}
    times = (f"{target}: " + ("never" if s is None else f"{s:.4g} s") for target, s in seconds.items())
    return f"=> {', '.join(times)}; whole sweep {peer['sweep_seconds']:.4g} s"

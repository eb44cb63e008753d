"""The walk over data sets, forms and C; one cell is all solvers on one problem."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from benchmarks import child, datasets, machine, report, solvers, suites
from benchmarks.datasets import Dataset
from benchmarks.forms import FORMS, Form
from benchmarks.objective import Objective
from benchmarks.solvers.maxmargin import DEFAULT, at, reference
from benchmarks.sweep import Sweep
from benchmarks.workplace import Workplace

Cell = dict[str, Any]
Fit = Callable[[solvers.Setting, float], child.Answer]


def problems(options: Namespace) -> Iterator[suites.Problem]:
    """What the command line asks for: data sets and forms by name, or else whole suites."""
    if not options.datasets:
        wanted = options.loss or list(FORMS)
        for name, form, C in suites.of_suites(options.suite or suites.SUITES):
            if form.name in wanted and (not options.C or C in options.C):
                yield name, form, C
        return
    for name in datasets.expand(options.datasets):
        for loss in options.loss or ["hinge"]:
            for C in options.C or suites.usual_C(name):
                yield name, FORMS[loss], C


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
        if not self.options.datasets:
            absent = suites.missing(self.options.suite or suites.SUITES)
            if absent:
                print(f"left out, not in the folder named by {datasets.folder.VARIABLE}: {', '.join(absent)}")
        with Workplace() as work:
            for name, form, C in problems(self.options):
                data = work.load(name)
                if form.fits(data.kind):
                    self._cell(data, work, form, C)
                else:
                    self._say(f"[{name} {form.name}]", f"left out: the data are for {data.kind}", always=True)
        print("\n" + report.table(self.results))

    def _cell(self, data: Dataset, work: Workplace, form: Form, C: float) -> None:
        def judge(answer: child.Answer) -> float:
            return float("inf") if answer.w is None else objective.suboptimality(answer.w, optimum)

        title = f"[{data.name} {form.name} C={C:g}]"
        objective = Objective(data.X, data.y, C, form, data.n_classes)
        cell = self._find(data.name, form.name, C)
        if "objective" not in cell.get("reference", {}):
            cell.update(dataset=data.describe(), loss=form.name, C=C, peers={})
            self._ours(cell, partial(work.fit, solvers.OURS, form, C), objective, title)
            self._write()
        if "objective" not in cell["reference"]:
            return
        optimum = cell["reference"]["objective"]
        for peer in self.options.peers:
            if peer not in cell["peers"]:
                sweep = Sweep(
                    fit=partial(work.fit, peer, form, C),
                    judge=judge,
                    targets=self.targets,
                    limit=self.options.time_limit,
                    repeats=self.options.repeats,
                    say=partial(self._say, f"{title} {peer}:"),
                )
                cell["peers"][peer] = _measure(solvers.load(peer), form, data, sweep)
                if cell["peers"][peer]["outcome"] != "unsupported":
                    self._say(f"{title} {peer}:", _summary(cell["peers"][peer]), always=True)
                self._write()

    def _ours(self, cell: Cell, fit: Fit, objective: Objective, title: str) -> None:
        """The certified optimum; our own time with default settings, and with each target as tolerance."""
        limit = self.options.reference_limit
        best = fit(reference(limit), 2.0 * limit)
        cell["reference"] = {"outcome": best.outcome, "seconds": best.seconds, **best.details}
        if best.w is None:
            cell["maxmargin"] = {"outcome": f"no certified optimum: {best.outcome}"}
            self._say(title, f"no certified optimum: {best.outcome} {best.details}", always=True)
            return
        optimum, primal = objective.value(best.w), best.details.get("primal", float("inf"))
        if optimum > primal * (1.0 + 1e-9):
            self._say(title, f"WARNING: {optimum!r} at the best bias, but {primal!r} was reached", always=True)
        gap = max(best.details.get("gap", 1.0), best.details.get("verified_gap", 1.0))
        if not best.details.get("verified") or not gap <= 0.1 * min(self.targets):
            cell["reference"]["doubt"] = True
            optimum = best.details["dual"] if best.details.get("verified") else optimum  # nobody is below this
            self._say(title, f"WARNING: optimum not certified closely enough: {best.details}", always=True)
        settings = {"default": DEFAULT, **{f"{target:g}": at(target) for target in self.targets}}
        measured = {name: self._time(fit, setting, objective, optimum) for name, setting in settings.items()}
        cell["maxmargin"] = measured.pop("default")
        cell["at_target"] = measured
        cell["reference"]["objective"] = optimum
        for target, found in measured.items():
            if found.get("seconds") is not None and not found["suboptimality"] <= float(target):
                found["missed"] = True
                self._say(title, f"WARNING: tol={target} ended at {found['suboptimality']:.1e}", always=True)
        ours = {f"tol={target}": found for target, found in measured.items()} | {"default": cell["maxmargin"]}
        shown = (f"{name}: {_seconds(found)}" for name, found in ours.items())
        self._say(title, f"maxmargin: {', '.join(shown)}; optimum {optimum:.10g}, gap {gap:.1e}", always=True)

    def _time(self, fit: Fit, setting: solvers.Setting, objective: Objective, optimum: float) -> dict[str, Any]:
        """The fastest of some repeats."""
        answers: list[child.Answer] = []
        while len(answers) < self.options.repeats and all(answer.w is not None for answer in answers):
            answers.append(fit(setting, self.options.time_limit))
        fastest = min(answers, key=lambda answer: float("inf") if answer.seconds is None else answer.seconds)
        found: dict[str, Any] = {"outcome": fastest.outcome, "seconds": fastest.seconds, **fastest.details}
        found["repeats"] = [answer.seconds for answer in answers]
        if fastest.w is not None:
            found["suboptimality"] = objective.suboptimality(fastest.w, optimum)
        return found

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


def _measure(solver: solvers.BaseSolver, form: Form, data: Dataset, sweep: Sweep) -> dict[str, Any]:
    if not solver.supports(form, data.kind, data.sparse):
        return {"outcome": "unsupported"}
    there, why = solver.available()
    if not there:
        return {"outcome": "unavailable", "reason": why}
    return sweep.measure(solver, form)


def _seconds(found: dict[str, Any]) -> str:
    if found["seconds"] is None:
        return f"{found['outcome']} {found.get('error', '')}".rstrip()
    return f"{found['seconds']:.4g} s"


def _summary(peer: dict[str, Any]) -> str:
    if peer["outcome"] != "measured":
        return f"{peer['outcome']} {peer.get('reason', '')}".rstrip()
    seconds = {target: best and best["seconds"] for target, best in peer["targets"].items()}
    times = (f"{target}: " + ("never" if s is None else f"{s:.4g} s") for target, s in seconds.items())
    return f"=> {', '.join(times)}; whole sweep {peer['sweep_seconds']:.4g} s"

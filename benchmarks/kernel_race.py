"""The kernel race's fits: in which processes they happen, in which order, and what becomes of their answers."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks import datasets, kernel_data, solvers
from benchmarks.child import DONE, FAILED, TIME_LIMIT, Answer, Task, Worker
from benchmarks.datasets import Dataset
from benchmarks.forms import REGRESSION, SEVERAL, Form
from benchmarks.kernel_data import Cell
from benchmarks.kernel_objective import Kernel, parts, scale, worst
from benchmarks.kernel_peers import LADDER, OURS, setting
from benchmarks.solvers import Setting

Fit = dict[str, Any]
MOST_TEST_ROWS = 10_000  # that are predicted
NEVER = {DONE: "never at any tol", TIME_LIMIT: "never in time"}  # how a sweep ended that did not meet its target
ARRAYS = ("support", "n_support")  # of an answer: not for the record


def absent(machines: Iterable[str]) -> dict[str, str]:
    """Those that are not installed, and what to do."""
    found = {who: solvers.load(who).available() for who in machines}
    return {who: why for who, (there, why) in found.items() if not there}


class Race:
    """Holds the data of one cell on disk. Use it as a context manager: leaving it removes the files."""

    def __init__(self, machines: Sequence[str], kernel: str, limit: float, repeats: int, *, busy: bool = False) -> None:
        self.machines, self.limit, self.repeats, self.busy = machines, limit, repeats, busy
        self._kernel_name = kernel
        self._place = Path(tempfile.mkdtemp())

    def __enter__(self) -> Race:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._place, ignore_errors=True)

    def run(self, mode: str, cell: Cell, target: float | None) -> dict[str, Any]:
        """Every machine on one cell: default, equal, predict, small or large."""
        self._load(cell)
        if mode == "equal":
            assert target is not None
            fits = {who: self._at(who, target) if who == OURS else self._swept(who, target) for who in self.machines}
        else:
            test = self._place / "test" if mode == "predict" else None
            repeats = 1 if mode == "predict" else self.repeats
            fits = self._in_turn(setting(self._kernel, again=mode == "small", test=test), repeats)
        data = self._data.describe()
        return {"cell": cell.name, "dataset": data, "C": cell.C, "kernel": asdict(self._kernel), "fits": fits}

    def _load(self, cell: Cell) -> None:
        data = kernel_data.load(cell.data)
        shutil.rmtree(self._place, ignore_errors=True)
        (self._place / "test").mkdir(parents=True)
        if data.test is not None:
            X, y = (part[:MOST_TEST_ROWS] for part in data.test)
            datasets.hand_over(Dataset(data.name, X, y, data.kind), self._place / "test")
        self._data = replace(data, test=None)
        datasets.hand_over(self._data, self._place)
        self._cell = cell
        self._kernel = Kernel(self._kernel_name, scale(data.X))
        self._form = _form(data, cell)

    def _in_turn(self, how: Setting, repeats: int) -> dict[str, Fit]:
        """The fastest of some fits of each; what else happens on the machine meets all alike."""
        answers: dict[str, list[Answer]] = {who: [] for who in self.machines}
        for _ in range(repeats):
            for who, own in answers.items():
                if all(answer.seconds is not None for answer in own):
                    own.append(self._fit(who, how, self.limit))
        return {who: self._judged(own) for who, own in answers.items()}

    def _at(self, who: str, tol: float) -> Fit:
        """The fastest of some fits at a tolerance."""
        answers: list[Answer] = []
        while len(answers) < self.repeats and all(answer.seconds is not None for answer in answers):
            answers.append(self._fit(who, setting(self._kernel, tol), self.limit))
        return {**self._judged(answers), "tol": tol}

    def _swept(self, who: str, target: float) -> Fit:
        """The fastest fit of a peer whose true gap meets the target, at whatever tolerance that takes.

        From loose to tight; once the target is met, only as long as tighter fits are faster still. A peer that never
        arrives keeps its best gap, without seconds.
        """
        rungs: list[Fit] = []
        best: Fit | None = None
        for tol in LADDER:
            limit = self.limit if best is None else best["seconds"]
            fit = {**self._judged([self._fit(who, setting(self._kernel, tol), limit)]), "tol": tol}
            rungs.append({name: fit.get(name) for name in ("tol", "outcome", "seconds", "gap")})
            if best is not None and (fit["seconds"] is None or not fit["seconds"] < best["seconds"]):
                break
            if fit["seconds"] is None:
                break
            if fit["gap"] <= target:
                best = fit
        if best is None:
            gaps = [rung["gap"] for rung in rungs if rung["gap"] is not None]
            outcome = NEVER.get(fit["outcome"], fit["outcome"])
            return {**fit, "outcome": outcome, "seconds": None, "gap": min(gaps, default=None), "rungs": rungs}
        again = self._at(who, best["tol"])
        return {
            **(again if again["seconds"] is not None and again["seconds"] < best["seconds"] else best),
            "rungs": rungs,
        }

    def _fit(self, who: str, how: Setting, limit: float) -> Answer:
        """One fit in a fresh process."""
        worker = Worker(self._place, who, self._data.kind, busy=self.busy)
        try:
            return worker.fit(Task(self._form, self._cell.C, how), limit)
        finally:
            worker.close()

    def _judged(self, answers: Sequence[Answer]) -> Fit:
        """What is recorded of the fastest answer, its true gap among it."""
        fastest = min(answers, key=lambda answer: float("inf") if answer.seconds is None else answer.seconds)
        told = {name: value for name, value in fastest.details.items() if name not in ARRAYS}
        fit = {**told, "outcome": fastest.outcome, "seconds": fastest.seconds, "gap": None}
        fit["repeats"] = [answer.seconds for answer in answers]
        if fastest.w is None:
            return fit
        if "support" not in fastest.details:
            return {**fit, "outcome": FAILED, "seconds": None}
        data, details = self._data, fastest.details
        found = parts(fastest.w, details["support"], details["n_support"], data.y, data.n_classes)
        epsilon = self._form.epsilon if self._form.regression else None
        gap, name = worst(self._kernel, data.X, found, self._cell.C, epsilon)
        return {**fit, "gap": gap.relative, "primal": gap.primal, "dual": gap.dual, "moved": gap.moved, "worst": name}


def _form(data: Dataset, cell: Cell) -> Form:
    if data.kind == REGRESSION:
        return Form("epsilon_insensitive", epsilon=cell.epsilon)
    return Form("hinge", pairs=data.kind == SEVERAL)

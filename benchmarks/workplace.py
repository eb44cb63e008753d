"""Where fits happen: a data set on disk, and the process of the solver whose turn it is."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from types import TracebackType

from benchmarks import datasets
from benchmarks.child import Answer, Task, Worker
from benchmarks.datasets import Dataset
from benchmarks.forms import Form
from benchmarks.solvers import Setting


class Workplace:
    """Holds one data set and the processes of one solver, one per Python; they change when others are asked for.

    ``memory`` limits the bytes a fit may take; ``busy`` measures CPU time on one thread. Use it as a context manager:
    leaving it removes files and processes.
    """

    def __init__(self, *, memory: int | None = None, busy: bool = False) -> None:
        self._place = Path(tempfile.mkdtemp())
        self._memory, self._busy = memory, busy
        self._data: Dataset | None = None
        self._solver = ""
        self._workers: dict[str, Worker] = {}

    def __enter__(self) -> Workplace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._dismiss()
        shutil.rmtree(self._place, ignore_errors=True)

    def load(self, name: str) -> Dataset:
        """The data set of this name, from now on the one that is fitted."""
        if self._data is None or self._data.name != name:
            self._dismiss()
            shutil.rmtree(self._place, ignore_errors=True)
            self._place.mkdir()
            self._data = datasets.load(name)
            datasets.hand_over(self._data, self._place)
        return self._data

    def fit(
        self, solver: str, form: Form, C: float, setting: Setting, limit: float, python: str = sys.executable
    ) -> Answer:
        """One fit of the present data, ended at the limit."""
        assert self._data is not None
        if self._solver != solver:
            self._dismiss()
            self._solver = solver
        if python not in self._workers:
            self._workers[python] = Worker(
                self._place, solver, self._data.kind, python=python, memory=self._memory, busy=self._busy
            )
        return self._workers[python].fit(Task(form, C, setting), limit)

    def _dismiss(self) -> None:
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()

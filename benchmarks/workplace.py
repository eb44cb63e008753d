"""Where fits happen: a data set on disk, and the process of the solver whose turn it is."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import TracebackType

from benchmarks import datasets
from benchmarks.child import Answer, Task, Worker
from benchmarks.datasets import Dataset
from benchmarks.forms import Form
from benchmarks.solvers import Setting


class Workplace:
    """Holds one data set and one process at a time; both change when another is asked for.

    Use it as a context manager: leaving it removes files and process.
    """

    def __init__(self) -> None:
        self._place = Path(tempfile.mkdtemp())
        self._data: Dataset | None = None
        self._worker: Worker | None = None

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

    def fit(self, solver: str, form: Form, C: float, setting: Setting, limit: float) -> Answer:
        """One fit of the present data, ended at the limit."""
        assert self._data is not None
        if self._worker is None or self._worker.solver != solver:
            self._dismiss()
            self._worker = Worker(self._place, solver, self._data.kind)
        return self._worker.fit(Task(form, C, setting), limit)

    def _dismiss(self) -> None:
        if self._worker is not None:
            self._worker.close()
        self._worker = None

"""Fits of one solver in a process of its own: timed inside, killed at the limit, silent."""

from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks import datasets, solvers
from benchmarks.forms import Form
from benchmarks.solvers import Setting

UNTIMED_SECONDS = 200.0  # for loading and compiling before the fit, and for details after it
PAUSE = 0.1  # seconds before the clock starts: BLAS threads of what came before wait in busy loops for some time


@dataclass(frozen=True)
class Task:
    """What to fit."""

    form: Form
    C: float
    setting: Setting


@dataclass(frozen=True)
class Answer:
    """``seconds`` and ``w`` are None unless ``outcome`` is "done"."""

    outcome: str
    seconds: float | None = None
    w: NDArray[np.float64] | None = None
    details: dict[str, Any] = field(default_factory=dict)


def failed(why: str) -> Answer:
    return Answer("failed", details={"error": why})


class Worker:
    """A process that holds the data and fits them as often as asked; a new one begins where one was killed."""

    def __init__(self, folder: Path, solver: str, kind: str) -> None:
        self.folder, self.solver, self.kind = folder, solver, kind
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def fit(self, task: Task, limit: float) -> Answer:
        """The limit counts from the start of the fit, not of the process."""
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._pipe is not None
        try:
            self._pipe.send(task)
            answer, goes_on = _listen(self._pipe, limit)
        except (EOFError, OSError):
            self._process.join(10.0)
            answer, goes_on = failed(f"the process died, exit code {self._process.exitcode}"), False
        except BaseException:
            self.close()
            raise
        if not goes_on:
            self.close()
        return answer

    def close(self) -> None:
        if self._process is not None and self._pipe is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._process = self._pipe = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        arguments = (theirs, self.folder, self.solver, self.kind)
        self._process = context.Process(target=_work, args=arguments, daemon=True)
        self._process.start()
        theirs.close()


def _listen(pipe: Connection, limit: float) -> tuple[Answer, bool]:
    """The child says: ready; then (seconds, w); then the details. Or, at any time, why it failed.

    Second: whether the child waits for another task.
    """
    too_late = Answer("time limit", details={"stopped_after": limit})
    message: Any = None
    for wait, late in ((UNTIMED_SECONDS, failed("not ready in time")), (limit, too_late)):
        if not pipe.poll(wait):
            return late, False
        message = pipe.recv()
        if isinstance(message, Answer):
            return message, True
    seconds, w = message
    there = pipe.poll(UNTIMED_SECONDS)
    details = pipe.recv() if there else {"error": "no details in time"}
    if isinstance(details, Answer):
        details = details.details
    return (Answer("done", seconds, w, details) if seconds <= limit else too_late), there


def _work(pipe: Connection, folder: Path, name: str, kind: str) -> None:
    _silence()
    _stay_within_memory()
    X, y = datasets.take_over(folder)
    tiny_X, tiny_y = datasets.tiny(kind, X.dtype, sp.issparse(X))
    solver = solvers.load(name)
    while True:
        task: Task = pipe.recv()
        try:
            solver.fit(tiny_X, tiny_y, 1.0, task.form, task.setting)  # imports, thread pools, lazy loading, compilation
            time.sleep(PAUSE)
            pipe.send("ready")
            start = time.perf_counter()
            w = solver.fit(X, y, task.C, task.form, task.setting)
            seconds = time.perf_counter() - start
            pipe.send((seconds, w))
            pipe.send(solver.details(X, y))
        except Exception as error:
            pipe.send(failed(f"{type(error).__name__}: {error}"))


def _silence() -> None:
    """Both Python's and compiled code's output."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _stay_within_memory() -> None:
    """A fit that wants more than the machine has fails by itself, before the system ends other processes."""
    try:
        import resource

        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        resource.setrlimit(resource.RLIMIT_AS, (int(0.8 * there), resource.RLIM_INFINITY))
    except (ImportError, ValueError, OSError):
        return

"""One fit in a process of its own: timed inside, killed at the limit, silent."""

from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks import datasets, solvers
from benchmarks.forms import Form
from benchmarks.solvers import Setting

UNTIMED_SECONDS = 600.0  # for loading before the fit, and for details after it


@dataclass(frozen=True)
class Task:
    """What to fit; ``folder`` holds the arrays."""

    folder: Path
    solver: str
    C: float
    form: Form
    kind: str
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


def run(task: Task, limit: float) -> Answer:
    """Fit in a child; the limit counts from the start of the fit, not of the process."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, task), daemon=True)
    process.start()
    theirs.close()
    try:
        return _listen(ours, limit)
    except EOFError:
        process.join(10.0)
        return failed(f"the process died, exit code {process.exitcode}")
    finally:
        process.kill()
        process.join()
        ours.close()


def _listen(pipe: Connection, limit: float) -> Answer:
    """The child says: ready; then (seconds, w); then the details. Or, at any time, why it failed."""
    too_late = Answer("time limit", details={"stopped_after": limit})
    message: Any = None
    for wait, late in ((UNTIMED_SECONDS, failed("not ready in time")), (limit, too_late)):
        message = pipe.recv() if pipe.poll(wait) else late
        if isinstance(message, Answer):
            return message
    seconds, w = message
    details = pipe.recv() if pipe.poll(UNTIMED_SECONDS) else {"error": "no details in time"}
    if isinstance(details, Answer):
        details = details.details
    return Answer("done", seconds, w, details) if seconds <= limit else too_late


def _work(pipe: Connection, task: Task) -> None:
    _silence()
    _stay_within_memory()
    try:
        X, y = datasets.take_over(task.folder)
        solver = solvers.load(task.solver)
        tiny_X, tiny_y = datasets.tiny(task.kind, X.dtype, sp.issparse(X))
        solver.fit(tiny_X, tiny_y, 1.0, task.form, task.setting)  # imports, thread pools, lazy loading, compilation
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

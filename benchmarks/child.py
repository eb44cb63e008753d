"""Fits of one solver in a process of its own: timed inside, ended at the limit, silent.

The process may belong to another Python: it runs this tree's ``benchmarks`` with that Python's packages.

On a machine where other people work ("busy"), wall time says more about them than about a fit. There every fit runs on
one thread and its CPU time is what is measured and limited.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import warnings
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

UNTIMED_SECONDS = 200.0  # for loading and compiling before the fit, and for details after it
PAUSE = 0.1  # seconds before the clock starts: BLAS threads of what came before wait in busy loops for some time
LOOK = 0.1  # seconds between looks at the CPU time of a fit
MOST_PATIENCE = 50.0  # times the limit in wall time, for a fit on a busy machine: it may be waiting for something else
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
LARGEST_SHARE = 0.8  # of the machine's memory, where no limit is asked for
ROOT = Path(__file__).parents[1]
START = "import sys; from benchmarks.child import serve; serve(*sys.argv[1:])"

DONE, FAILED, TIME_LIMIT, MEMORY_LIMIT = "done", "failed", "time limit", "memory limit"


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
    return Answer(FAILED, details={"error": why})


class Worker:
    """A process that holds the data and fits them as often as asked; a new one begins where one was ended.

    ``python`` is the interpreter; ``memory`` the bytes a fit may take beyond what the process holds before it; ``busy``
    measures CPU time on one thread.
    """

    def __init__(
        self,
        folder: Path,
        solver: str,
        kind: str,
        *,
        python: str = sys.executable,
        memory: int | None = None,
        busy: bool = False,
    ) -> None:
        self.folder, self.solver, self.kind = folder, solver, kind
        self.python, self.memory, self.busy = python, memory, busy
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

    def fit(self, task: Task, limit: float) -> Answer:
        """The limit counts from the start of the fit, not of the process."""
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._pipe is not None
        try:
            self._pipe.send(task)
            answer, goes_on = _listen(self._pipe, self._process.pid, limit, self.busy)
        except (EOFError, OSError):
            answer, goes_on = failed(f"the process died, exit code {self._process.wait(10.0)}"), False
        except BaseException:
            self.close()
            raise
        if not goes_on:
            self.close()
        return answer

    def close(self) -> None:
        if self._process is not None and self._pipe is not None:
            self._process.kill()
            self._process.wait()
            self._pipe.close()
        self._process = self._pipe = None

    def _start(self) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        about = [theirs.fileno(), self.folder, self.solver, self.kind, self.memory or 0, int(self.busy)]
        self._process = subprocess.Popen(
            [self.python, "-c", START, *map(str, about)],
            cwd=ROOT,
            env={**os.environ, **(dict.fromkeys(THREAD_VARIABLES, "1") if self.busy else {})},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()


def _listen(pipe: Connection, process: int, limit: float, busy: bool) -> tuple[Answer, bool]:
    """The child says: its CPU time when ready; then (seconds, w); then the details. Or, at any time, why it failed.

    Second: whether the child waits for another task.
    """
    if not pipe.poll(UNTIMED_SECONDS):
        return failed("not ready in time"), False
    message = pipe.recv()
    if isinstance(message, Answer):
        return message, True
    ready = message
    if not _in_time(pipe, process, limit, ready if busy else None):
        spent = _cpu_seconds(process)
        used = {} if spent is None else {"cpu_seconds": spent - ready}
        return Answer(TIME_LIMIT, details={"stopped_after": limit, **used}), False
    message = pipe.recv()
    if isinstance(message, Answer):
        return message, message.outcome != MEMORY_LIMIT
    seconds, w = message
    there = pipe.poll(UNTIMED_SECONDS)
    details = pipe.recv() if there else {"error": "no details in time"}
    if isinstance(details, Answer):
        details = details.details
    if seconds > limit:
        return Answer(TIME_LIMIT, details={"stopped_after": limit, "cpu_seconds": details.get("cpu_seconds")}), there
    return Answer(DONE, seconds, w, details), there


def _in_time(pipe: Connection, process: int, limit: float, ready: float | None) -> bool:
    """Whether an answer comes within the limit: of wall time, or of CPU time after ``ready`` if that is a number."""
    if ready is None:
        return pipe.poll(limit)
    for _ in range(math.ceil(MOST_PATIENCE * limit / LOOK)):
        if pipe.poll(LOOK):
            return True
        if (_cpu_seconds(process) or 0.0) - ready > limit:
            return False
    return False


def _cpu_seconds(process: int) -> float | None:
    """CPU time of all threads of another process so far; None where the system does not say."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return None


def serve(pipe: str, folder: str, name: str, kind: str, memory: str, busy: str) -> None:
    """The process's main function: tasks come and answers go through the pipe of that number."""
    _silence()
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    try:
        _work(Connection(int(pipe)), Path(folder), name, kind, int(memory), bool(int(busy)))
    except (EOFError, BrokenPipeError):
        return  # nobody listens any more


def _end_with(parent: int) -> None:
    """End this process, in the middle of a fit if need be, once the one that started it has ended."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _work(pipe: Connection, folder: Path, name: str, kind: str, memory: int, busy: bool) -> None:
    clock = time.process_time if busy else time.perf_counter
    _stay_within_memory()
    X, y = datasets.take_over(folder)
    held_out = folder / datasets.HELD_OUT
    tiny_X, tiny_y = datasets.tiny(kind, X.dtype, sp.issparse(X))
    solver = solvers.load(name)
    while True:
        task: Task = pipe.recv()
        try:
            solver.fit(tiny_X, tiny_y, 1.0, task.form, task.setting)  # imports, thread pools, lazy loading, compilation
            time.sleep(PAUSE)
            if memory:
                _stay_within_memory(memory)
            pipe.send(time.process_time())
            with warnings.catch_warnings(record=True) as heard:
                start, cpu_start = clock(), time.process_time()
                w = solver.fit(X, y, task.C, task.form, task.setting)
                seconds, cpu_seconds = clock() - start, time.process_time() - cpu_start
            pipe.send((seconds, w))
            _stay_within_memory()  # what follows is not the fit's
            details = {**solver.details(X, y), "cpu_seconds": cpu_seconds}  # of all threads; busy waits count
            if heard:
                details["warnings"] = sorted({one.category.__name__ for one in heard})
            if held_out.exists():
                details["test_score"] = solver.score(*datasets.take_over(held_out))
            pipe.send(details)
        except MemoryError as error:
            pipe.send(Answer(MEMORY_LIMIT, details={"error": str(error)}))
        except Exception as error:
            pipe.send(failed(f"{type(error).__name__}: {error}"))


def _silence() -> None:
    """Both Python's and compiled code's output."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _stay_within_memory(beyond: int | None = None) -> None:
    """So many bytes beyond what there is now; without a number, what the machine has.

    A fit that wants more fails by itself, before the system ends other processes. Systems that do not say how much
    memory a process has, or that cannot limit it, leave it unlimited.
    """
    try:
        import resource

        page = os.sysconf("SC_PAGE_SIZE")
        most = int(LARGEST_SHARE * page * os.sysconf("SC_PHYS_PAGES"))
        if beyond is not None:
            most = page * int(Path("/proc/self/statm").read_text().split()[0]) + beyond
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    except (ImportError, ValueError, OSError):
        return

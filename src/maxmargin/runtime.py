"""What surrounds a fit: how many threads, how passes are made, the watch, and jobs side by side."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

# At once and not within a fit: a process that is forked while another thread imports can never import the same.
from joblib import cpu_count

import maxmargin._core as _core
from maxmargin.errors import InputError

Progress = Callable[[int, float, float], bool | None]
Result = TypeVar("Result")

LOOK_SECONDS = 0.1  # how often a thread that waits for others sees to listeners and Ctrl-C


def effective_threads(n_threads: int | None = None) -> int:
    """Number of threads a fit uses.

    ``None`` honours CPU affinity, cgroup limits and ``OMP_NUM_THREADS``, whichever is smallest.

    Examples
    --------
    >>> effective_threads(3)
    3
    >>> effective_threads() >= 1
    True
    """
    if n_threads is not None:
        if isinstance(n_threads, bool) or not isinstance(n_threads, Integral) or not 1 <= int(n_threads) <= 1024:
            raise InputError(f"n_threads must be a whole number from 1 to 1024 or None, got {n_threads!r}")
        return int(n_threads)
    limit = _available(*_what_may_change())
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdigit() and int(asked) >= 1:
        limit = min(limit, int(asked))
    return max(1, limit)


def _what_may_change() -> tuple[str | None, frozenset[int]]:
    """While a process runs: the user's limit and the CPUs it is tied to; cgroups hardly ever."""
    tied = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    return os.environ.get("LOKY_MAX_CPU_COUNT"), frozenset(tied)


@cache
def _available(limit: str | None, tied: frozenset[int]) -> int:
    """CPUs this process may use; asking the system takes as long as a small fit."""
    return int(cpu_count())


class Meter:
    """Counts work, so that decisions need no clock.

    Attributes
    ----------
    spent : counted operations times their prices.
    reads : numbers of X that were visited.
    """

    def __init__(self) -> None:
        self.spent, self.reads = 0.0, 0.0


@dataclass(frozen=True)
class Execution:
    """How passes over the rows are made: by how many threads, what may interrupt them, and who counts their work.

    Examples
    --------
    >>> Execution(2).n_threads
    2
    """

    n_threads: int = 1
    watch: _core.Watch | None = None
    meter: Meter | None = None

    def spend(self, cost: float, *, reads: float = 0.0) -> None:
        """Count work: in the units of :mod:`maxmargin.space.prices`, and in visits to the numbers of X."""
        if self.meter is not None:
            self.meter.spent += cost
            self.meter.reads += reads


class Watch:
    """What a solver asks while it works: how long already, must I stop, and where do I report?

    Parameters
    ----------
    max_seconds : float or None
        Deadline, counted from construction.
    progress : callable or None
        Called with (iteration, gap, seconds) after each iteration or chunk; True asks the solver to stop.
    """

    def __init__(self, max_seconds: float | None = None, progress: Progress | None = None) -> None:
        self.start = time.perf_counter()
        self.core = _core.Watch(0.05, max_seconds)
        self.meter = Meter()
        self._progress = progress
        self.stop_requested = False
        self.interrupted = False  # by Ctrl-C while other threads worked

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.start

    @property
    def past_deadline(self) -> bool:
        return self.core.past_deadline

    def cancel(self) -> None:
        """Interrupt the solver from another thread, as Ctrl-C would."""
        self.stop_requested = True
        self.core.cancel()

    def report(self, iteration: int, gap: float) -> None:
        if self._progress is not None and self._progress(iteration, gap, self.seconds):
            self.stop_requested = True


class SideBySide(Generic[Result]):
    """Jobs done side by side by threads of their own, for which an interpreter that ends does not wait.

    ``concurrent.futures`` would make the interpreter wait for a fit of any length, and refuses work from then on.
    Where no thread can be had, the thread that asks does the jobs itself.

    Parameters
    ----------
    jobs : functions without arguments.
    n_threads : most jobs at a time.

    Examples
    --------
    >>> work = SideBySide([lambda: "a", lambda: "b"], 2)
    >>> work.results()
    ['a', 'b']
    """

    def __init__(self, jobs: Sequence[Callable[[], Result]], n_threads: int) -> None:
        self._waiting = deque(enumerate(jobs))
        self._n_jobs = len(jobs)
        self._results: dict[int, Result] = {}
        self._errors: list[BaseException] = []
        self._news: SimpleQueue[None] = SimpleQueue()  # only wakes who waits: Ctrl-C may swallow any of it
        self._n_wanted, self._n_running = min(n_threads, len(jobs)), 0

    def _begin(self) -> None:
        """Start the threads that do not run yet: Ctrl-C may have come in between."""
        try:
            while self._n_running < self._n_wanted:
                threading.Thread(target=self._work, name="maxmargin", daemon=True).start()
                self._n_running += 1
        except RuntimeError:  # no more threads to be had
            self._n_wanted = self._n_running
            if self._n_running == 0:
                self._work()

    def _work(self) -> None:
        while True:
            try:
                k, job = self._waiting.popleft()
            except IndexError:
                return
            try:
                self._results[k] = job()
            except BaseException as error:  # for the thread that waits
                self._errors.append(error)
            self._news.put(None)

    @property
    def n_ended(self) -> int:
        return len(self._results) + len(self._errors)

    def looks(self) -> Iterator[list[Result]]:
        """What has ended since the last look, nothing now and then, until all is done; the first failure is raised."""
        self._begin()
        seen: set[int] = set()
        while len(seen) < self._n_jobs:
            self._sleep()
            if self._errors:
                raise self._errors[0]
            fresh = [k for k in range(self._n_jobs) if k in self._results and k not in seen]
            seen.update(fresh)
            yield [self._results[k] for k in fresh]

    def _sleep(self) -> None:
        """Until there is news, or it is time to look at the world outside."""
        if self.n_ended < self._n_jobs:
            with contextlib.suppress(Empty):
                self._news.get(timeout=LOOK_SECONDS)

    def wait(self) -> None:
        """Until all is done, well or not."""
        self._begin()
        while self.n_ended < self._n_jobs:
            self._sleep()

    def results(self) -> list[Result]:
        """Wait for all; the results in the order of the jobs."""
        self.wait()
        if self._errors:
            raise self._errors[0]
        return [self._results[k] for k in range(self._n_jobs)]


def core_info() -> dict[str, Any]:
    """What the compiled core was built with and what it runs on.

    Examples
    --------
    >>> sorted(core_info())
    ['compiler', 'instruction_set', 'n_threads', 'version']
    """
    return {**_core.info(), "n_threads": effective_threads()}


def show_versions() -> None:
    """Print the versions that matter in a bug report."""
    import platform
    import sys
    from importlib.metadata import version

    print(f"python           {sys.version.split()[0]} on {platform.platform()}")
    for name in ("maxmargin", "numpy", "scipy", "scikit-learn", "threadpoolctl"):
        print(f"{name:<16} {version(name)}")
    for key, value in core_info().items():
        print(f"core.{key:<11} {value}")

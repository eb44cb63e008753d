"""The process around a fit: threads, the borrowed BLAS, the watch, and what was compiled."""

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
from types import TracebackType
from typing import Any, Generic, TypeVar

# At once and not within a fit: a process that is forked while another thread imports can never import the same.
from joblib import cpu_count
from threadpoolctl import ThreadpoolController

import maxmargin._core as _core

Progress = Callable[[int, float, float], bool | None]
Result = TypeVar("Result")

LOOK_SECONDS = 0.1  # how often a thread that waits for others sees to listeners and Ctrl-C
FORK_SECONDS = 1.0  # how long a fork may wait until no thread sets BLAS's number of threads


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
            raise ValueError(f"n_threads must be a whole number from 1 to 1024 or None, got {n_threads!r}")
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


class BlasGuard:
    """Holds BLAS at one thread while at least one fit is running in this process.

    Two overlapping ``threadpool_limits`` restore in the wrong order, and threadpoolctl lets only one Python thread
    set limits at a time; counting entries and setting the libraries directly has neither problem. Results are the
    same bits for any number of our own threads only while BLAS starts none.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._libraries: list[Any] | None = None
        self._before: list[int] | None = None  # not None: the libraries are held at one thread
        self._forking: int | None = None  # the thread that forks and has the lock for it

    def __enter__(self) -> BlasGuard:
        with self._lock:
            self._depth += 1
            try:
                if self._before is None:
                    self._before = [library.get_num_threads() for library in self._found()]
                self._set([1] * len(self._before))
                return self
            except BaseException:  # Ctrl-C, too, must not leave the count wrong
                self._depth -= 1
                self._release()
                raise

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            # Entered before a fork and left in the child, the count is 0 already.
            self._depth = max(0, self._depth - 1)
            self._release()

    def _release(self) -> None:
        if self._depth == 0 and self._before is not None:
            self._set(self._before)
            self._before = None

    def _found(self) -> list[Any]:
        if self._libraries is None:
            # SciPy's BLAS must be loaded before the controller looks for it.
            import scipy.linalg.cython_blas  # noqa: F401

            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        return self._libraries

    def _set(self, counts: list[int]) -> None:
        for library, count in zip(self._found(), counts, strict=True):
            # OpenBLAS has one pool per process; its controller's public setter obeys one Python thread only.
            getattr(library, "_real_set_num_threads", library.set_num_threads)(count)

    def before_fork(self) -> None:
        """Let no thread be within BLAS's own locks, which a child would inherit."""
        if self._lock.acquire(timeout=FORK_SECONDS):
            self._forking = threading.get_ident()

    def after_fork_in_parent(self) -> None:
        if self._forking == threading.get_ident():
            self._forking = None
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """In a forked child the fits of the parent's other threads do not exist."""
        self._lock = threading.Lock()
        self._forking = None
        self._depth = 0
        self._release()


blas_guard = BlasGuard()
os.register_at_fork(
    before=blas_guard.before_fork,
    after_in_parent=blas_guard.after_fork_in_parent,
    after_in_child=blas_guard.after_fork_in_child,
)


@cache
def borrowed_blas() -> _core.Blas:
    """``dsyrk`` and ``dgemm`` of SciPy's BLAS."""
    from scipy.linalg import cython_blas

    return _core.Blas.borrow(cython_blas.__pyx_capi__["dsyrk"], cython_blas.__pyx_capi__["dgemm"])


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

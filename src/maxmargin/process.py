"""Everything maxmargin does to the whole process: the one place, and how to switch it off.

==========================  =====================================================  ====================================
effect                      why                                                    switch
==========================  =====================================================  ====================================
BLAS is held at one thread  results are the same bits for any number of our own    ``MAXMARGIN_HOLD_BLAS=0`` leaves BLAS
while a fit runs            threads only while BLAS starts none; many at a time    alone: bits may then depend on its
                            were up to 90 times slower                             threads
hooks of ``os.fork``        no lock may reach a child locked; a child computes     ``MAXMARGIN_FORK_HOOKS=0``: do not
                            what its parent was computing                          fork while a fit runs
arrays of a fit keep        arrays that are made in the calling context while a    ``MAXMARGIN_KEEP_MEMORY=0``; what a
their memory                fit runs take memory from blocks that earlier ones     thread keeps, 64 MB at most,
                            left: new pages took a third of a short fit            ``release_memory()`` gives back
the instruction set         code for AVX2 where the processor has it               ``MAXMARGIN_BASELINE=1`` runs the
                                                                                   same code on any processor
==========================  =====================================================  ====================================

The switches are read when maxmargin is imported. Nothing else of the process is changed: no thread outlives a call, and
neither the C library's allocator, signals nor warnings are touched.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from types import TracebackType
from typing import Any

from threadpoolctl import ThreadpoolController

import maxmargin._core as _core
from maxmargin.foreign import blas_capsules, numpy_c_api, set_blas_threads

FORK_SECONDS = 1.0  # how long a fork may wait until no thread sets BLAS's number of threads
HOLDS_BLAS = os.environ.get("MAXMARGIN_HOLD_BLAS", "1") != "0"
KEEPS_MEMORY = os.environ.get("MAXMARGIN_KEEP_MEMORY", "1") != "0"
HOOKS_FORKS = os.environ.get("MAXMARGIN_FORK_HOOKS", "1") != "0"


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
            blas_capsules()  # SciPy's BLAS must be loaded before the controller looks for it
            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers if HOLDS_BLAS else []
        return self._libraries

    def _set(self, counts: list[int]) -> None:
        for library, count in zip(self._found(), counts, strict=True):
            set_blas_threads(library, count)

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


class KeptMemory:
    """Arrays made inside the block take their memory from blocks that earlier ones left.

    Only in the calling context: neither other threads nor other libraries' memory are touched.

    Examples
    --------
    >>> import numpy as np
    >>> with KeptMemory():
    ...     np.zeros(3)
    array([0., 0., 0.])
    """

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = _core.pool_enter()

    def __exit__(self, *_: object) -> None:
        _core.pool_leave(self._before)


def release_memory() -> int:
    """Give back what the calling thread keeps for the next fit; how many bytes that was.

    Examples
    --------
    >>> release_memory() >= 0, release_memory()
    (True, 0)
    """
    return _core.pool_kept(release=True)


if KEEPS_MEMORY:
    _core.pool_connect(numpy_c_api())


@cache
def borrowed_blas() -> _core.Blas:
    """Products and Cholesky factors of SciPy's BLAS."""
    return _core.Blas.borrow(blas_capsules())


_n_forks = 0


def n_forks() -> int:
    """How many forks lie between this process and the first one."""
    return _n_forks


def _count_fork() -> None:
    global _n_forks
    _n_forks += 1


if HOOKS_FORKS:
    os.register_at_fork(after_in_child=_count_fork)
    os.register_at_fork(
        before=blas_guard.before_fork,
        after_in_parent=blas_guard.after_fork_in_parent,
        after_in_child=blas_guard.after_fork_in_child,
    )

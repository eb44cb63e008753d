"""Forked children that must come to an end."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Callable

LONGEST = 300.0  # seconds after which a child has hung; those that are well take one, or ten on a busy machine


def forked(work: Callable[[], None]) -> int:
    """The process that does ``work`` and ends at once, without a word of the interpreter's own end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of the other threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def fate(child: int) -> str:
    """How a child ended: "well", "hung" (it is killed then), or with what."""
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return "well" if code == 0 else f"code {code}"
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"

"""The machine a result belongs to."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import solvers
from benchmarks.child import THREAD_VARIABLES
from maxmargin import core_info


def describe() -> dict[str, Any]:
    """CPU, memory, operating system, versions of all packages, and what our core was compiled with."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": _memory(),
        "os": platform.platform(),
        "python": sys.version.split()[0],
        "packages": _packages(),
        "core": core_info(),
        "environment": {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
    }


def _cpu() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _packages() -> dict[str, str]:
    peers = [solvers.load(name) for name in solvers.names()]
    found = {name: version(name) for name in ("numpy", "scipy", "threadpoolctl")}
    found.update({peer.distribution: peer.version() for peer in peers})
    return dict(sorted(found.items()))

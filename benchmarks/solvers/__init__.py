"""Solvers by name: every module of this folder but ``base`` holds one class ``Solver``."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from benchmarks.solvers.base import BaseSolver, Setting

OURS = "maxmargin"


def names() -> list[str]:
    """Every solver, ours first."""
    found = [m.name for m in pkgutil.iter_modules(__path__) if m.name not in ("base", OURS)]
    return [OURS, *sorted(found)]


def load(name: str) -> BaseSolver:
    """A new solver; its package is imported only by its first fit."""
    if name not in names():
        raise ValueError(f"no solver {name!r}; there are {', '.join(names())}")
    solver: BaseSolver = import_module(f"{__name__}.{name}").Solver()
    return solver


__all__ = ["OURS", "BaseSolver", "Setting", "load", "names"]

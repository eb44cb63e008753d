"""The contract of a solver."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.forms import TWO, Form

Vector = NDArray[np.float64]

INTERCEPT_SCALINGS = (1.0, 10.0, 100.0)


@dataclass(frozen=True)
class Setting:
    """One point of a sweep.

    ``group`` names what stays fixed while the settings get tighter (intercept scaling, schedule, algorithm).
    Within a group the order is from loosest and fastest to tightest and slowest.
    """

    group: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        named = (f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in self.options.items())
        return ", ".join(named) or self.group


class BaseSolver(ABC):
    """A peer, or we ourselves."""

    name: ClassVar[str]
    distribution: ClassVar[str]  # on the package index
    module: ClassVar[str]  # to import
    forms: ClassVar[tuple[str, ...]]  # names of the forms it solves
    kinds: ClassVar[tuple[str, ...]] = (TWO,)  # of data

    def available(self) -> tuple[bool, str]:
        """Whether the package is installed, and if not, what to do."""
        if find_spec(self.module) is None:
            return False, f"not installed: pip install {self.distribution}"
        return True, ""

    def version(self) -> str:
        """Of the package, for the record."""
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return "not installed"

    def supports(self, form: Form, kind: str, sparse: bool) -> bool:
        """Whether it solves this form on this kind of data."""
        return form.name in self.forms and kind in self.kinds

    @abstractmethod
    def settings(self, form: Form) -> list[Setting]:
        """The sweep, group by group."""

    @abstractmethod
    def fit(self, X: Any, y: Vector, C: float, form: Form, setting: Setting) -> Vector:
        """The weights, one line per machine; this call alone is timed."""

    def score(self, X: Any, y: Vector) -> float:
        """The fitted machine's own score on rows it has not seen: accuracy, or R² of a regression."""
        raise NotImplementedError(f"{self.name} keeps no machine that predicts")

    def details(self, X: Any, y: Vector) -> dict[str, Any]:
        """What else there is to record of the last fit; not timed.

        ``iterations_exhausted`` says that tighter settings with the same ``max_iter`` would be the same fit.
        """
        return {}


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def exhausted(machine: Any) -> dict[str, Any]:
    """Details of a machine in scikit-learn's shape: iterations, and whether they were used up."""
    n_iter = int(np.max(machine.n_iter_))
    return {"iterations": n_iter, "iterations_exhausted": n_iter >= machine.max_iter}

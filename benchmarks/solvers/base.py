"""The contract of a solver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

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

    def available(self) -> tuple[bool, str]:
        """Whether the package is installed, and if not, what to do."""
        if find_spec(self.module) is None:
            return False, f"not installed: pip install {self.distribution}"
        return True, ""

    def supports(self, loss: str, sparse: bool) -> bool:
        """Whether it solves this loss on this kind of data."""
        return True

    @abstractmethod
    def settings(self, loss: str) -> list[Setting]:
        """The sweep, group by group."""

    @abstractmethod
    def fit(self, X: Any, y: Vector, C: float, loss: str, setting: Setting) -> Vector:
        """The weights; this call alone is timed."""

    def details(self, X: Any, y: Vector) -> dict[str, Any]:
        """What else there is to record of the last fit; not timed.

        ``iterations_exhausted`` says that tighter settings with the same ``max_iter`` would be the same fit.
        """
        return {}

"""Where a solver of a machine with a kernel is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class KernelPoint:
    """Multipliers, their scores K c without the bias, and both objectives.

    ``exact`` scores are those of float64 values; ``sizes`` are then Σ_j |c_j k_ij|, which bound their rounding.
    """

    beta: Vector
    scores: Vector
    b: float
    bias_interval: tuple[float, float]
    primal: float
    dual: float
    gap: float
    offset: float = 0.0  # of a nu-machine: its margin, or the half-width of its tube
    exact: bool = False
    sizes: Vector | None = None

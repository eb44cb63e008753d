"""How large the k-th step is: the schedules that all machines here share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from maxmargin.errors import InputError
from maxmargin.inputs import number_in, positive_number

SCHEDULES = ("constant", "inverse", "optimal", "performance")


@dataclass(frozen=True)
class Steps:
    """η(k) = rate / (k + offset)^power, times the recent share of mistakes if ``by_performance``.

    Examples
    --------
    >>> Steps.of("inverse", eta0=2.0, t0=3.0).size(1)
    0.5
    """

    rate: float
    offset: float = 1.0
    power: float = 0.0
    by_performance: bool = False

    @classmethod
    def of(cls, schedule: Any, *, eta0: float, t0: float = 1.0, power_t: float = 1.0, rho: float = 0.0) -> Steps:
        """Check the parameters and build the schedule.

        "constant": eta0. "inverse": eta0 / (k + t0)^power_t. "performance": eta0 times the share of mistakes among
        recent rows. "optimal": 1 / (2 rho (k + t₀)) with the t₀ that Bottou's rule of thumb gives.
        """
        if not isinstance(schedule, str) or schedule not in SCHEDULES:
            raise InputError(f"schedule must be one of {SCHEDULES}, got {schedule!r}")
        if schedule == "optimal":
            if rho <= 0.0:
                raise InputError("schedule='optimal' needs rho > 0: its steps are 1 / (2 rho (k + t0))")
            if not rho > 1e-100:
                raise InputError(f"schedule='optimal' needs rho of at least 1e-100, got {rho!r}")
            typical = math.sqrt(1.0 / math.sqrt(2.0 * rho))
            return cls(0.5 / rho, max(1.0, 1.0 / (typical * 2.0 * rho)), 1.0)
        rate = _moderate("eta0", eta0)
        if schedule == "inverse":
            return cls(rate, _moderate("t0", t0), number_in("power_t", power_t, 0.0, 2.0))
        return cls(rate, by_performance=schedule == "performance")

    def size(self, k: int) -> float:
        """η(k) of the k-th step, counted from 0 (as if every recent row were a mistake)."""
        return float(self.rate / (k + self.offset) ** self.power)

    def set_on(self, core: Any) -> None:
        core.rate, core.offset, core.power, core.by_performance = (
            self.rate, self.offset, self.power, self.by_performance,
        )  # fmt: skip


def _moderate(name: str, value: float) -> float:
    """A number above zero whose square is far from overflow."""
    if not positive_number(name, value) <= 1e100:
        raise InputError(f"{name} must be at most 1e100, got {value!r}")
    return float(value)

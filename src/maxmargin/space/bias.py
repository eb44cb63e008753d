"""The bias as a column: every row ends in the same number."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bias:
    """How the bias enters: ``value`` is the implicit last column (0: no bias).

    Examples
    --------
    >>> Bias(1.0, penalised=False).free, Bias(1.0, penalised=True).free
    (True, False)
    """

    value: float
    penalised: bool

    @property
    def free(self) -> bool:
        return self.value != 0.0 and not self.penalised

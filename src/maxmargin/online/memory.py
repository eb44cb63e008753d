"""What a machine remembers between two rows: arrays and numbers, so that it can be saved anywhere and continued."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

COUNTS = ("n_seen", "n_steps", "n_mistakes", "n_corrections")


@dataclass
class Memory:
    """The state of one machine. The core works on ``arrays`` in place; ``numbers`` are copied in and out.

    Examples
    --------
    >>> import numpy as np
    >>> Memory({"v": np.zeros(2)}, {"b": 0.5}).copy().numbers
    {'b': 0.5}
    """

    arrays: dict[str, NDArray[Any]]
    numbers: dict[str, float] = field(default_factory=dict)

    def set_on(self, core: Any) -> None:
        for name, value in self.numbers.items():
            setattr(core, name, value)

    def set_counts_on(self, core: Any) -> None:
        for name in COUNTS:
            setattr(core, name, self.count(name))

    def read_from(self, core: Any, names: Iterable[str]) -> None:
        self.numbers = {name: getattr(core, name) for name in (*names, *COUNTS)}

    def count(self, name: str) -> int:
        return int(self.numbers.get(name, 0))

    def copy(self) -> Memory:
        return Memory({name: array.copy() for name, array in self.arrays.items()}, dict(self.numbers))

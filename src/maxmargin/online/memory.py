"""What a machine remembers between two rows: arrays and numbers, so that it can be saved anywhere and continued."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.positions import InputError

VOTERS = ("W", "B", "votes")  # arrays that grow with the hyperplanes that have a vote
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


def set_start(memories: list[Memory], coef: ArrayLike | None, intercept: ArrayLike | None) -> None:
    """Begin at given weights."""
    k, d = len(memories), len(memories[0].arrays["v"])
    if coef is not None:
        given = np.asarray(coef, dtype=np.float64).reshape(-1, d) if np.size(coef) == k * d else None
        if given is None or not np.all(np.isfinite(given)):
            raise InputError(f"coef_init must hold {k * d} finite numbers ({k} times {d}), got shape {np.shape(coef)}")
        for memory, w in zip(memories, given, strict=True):
            memory.arrays["v"][:] = w
    if intercept is not None:
        b = np.asarray(intercept, dtype=np.float64).ravel()
        if len(b) != k or not np.all(np.isfinite(b)):
            raise InputError(f"intercept_init must hold {k} finite numbers, got shape {np.shape(intercept)}")
        for memory, value in zip(memories, b, strict=True):
            memory.numbers["b"] = float(value)


def same_kind(known: list[Memory], fresh: list[Memory]) -> list[Memory]:
    """The known memories, if they are such as the present parameters and rows make them."""
    if [_shape(memory) for memory in known] != [_shape(memory) for memory in fresh]:
        raise ValueError(
            "the machine cannot go on from its last fit: parameters that decide what it remembers (average, penalty, "
            "form), or the number of rows or columns, have changed; use a new machine"
        )
    return known


def _shape(memory: Memory) -> dict[str, tuple[int, ...]]:
    """Shapes of all arrays, without the number of hyperplanes that have a vote."""
    return {name: array.shape if name not in VOTERS else array.shape[1:] for name, array in memory.arrays.items()}

"""What a machine remembers between two rows: arrays and numbers, so that it can be saved anywhere and continued."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.errors import InputError
from maxmargin.positions import shown

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

    @property
    def is_finite(self) -> bool:
        """Whether all that was learned are finite numbers."""
        learned: list[Any] = [*self.arrays.values(), *self.numbers.values()]
        return all(bool(np.isfinite(part).all()) for part in learned)

    def copy(self) -> Memory:
        return Memory({name: array.copy() for name, array in self.arrays.items()}, dict(self.numbers))


def set_start(memories: list[Memory], coef: ArrayLike | None, intercept: ArrayLike | None, fit_intercept: bool) -> None:
    """Begin at given weights; nothing is changed unless all is well."""
    k, d = len(memories), len(memories[0].arrays["v"])
    w = None if coef is None else _finite("coef_init", coef, ((k, d), (d,)) if k == 1 else ((k, d),))
    b = None if intercept is None else _finite("intercept_init", intercept, ((k,), ()) if k == 1 else ((k,),))
    if b is not None and b.any() and not fit_intercept:
        raise InputError("intercept_init is a bias to start from, but fit_intercept is False")
    for position, memory in enumerate(memories):
        if w is not None:
            memory.arrays["v"][:] = w.reshape(k, d)[position]
        if b is not None:
            memory.numbers["b"] = float(b.ravel()[position])


def _finite(name: str, given: ArrayLike, shapes: tuple[tuple[int, ...], ...]) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.full(1, np.nan)
    if np.shape(given) not in shapes or not np.all(np.isfinite(numbers)):
        raise InputError(f"{name} must hold finite numbers in shape {shapes[0]}, got {shown(given)}")
    return numbers


def refuse_two_starts(given: bool) -> None:
    """With warm_start the weights of the last fit are the start."""
    if given:
        raise InputError("coef_init and intercept_init contradict warm_start, which goes on from the last fit")


def same_kind(known: list[Memory], fresh: list[Memory]) -> list[Memory]:
    """The known memories, if they are such as the present parameters and rows make them."""
    if [shape_of(memory) for memory in known] != [shape_of(memory) for memory in fresh]:
        raise InputError(
            "the machine cannot go on from its last fit: parameters that decide what it remembers (average, penalty, "
            "form), or the number of rows or columns, have changed; use a new machine"
        )
    return known


def shape_of(memory: Memory) -> dict[str, tuple[int, ...]]:
    """Shapes of all arrays, without the number of hyperplanes that have a vote."""
    return {name: array.shape if name not in VOTERS else array.shape[1:] for name, array in memory.arrays.items()}

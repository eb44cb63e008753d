"""McCulloch and Pitts' threshold units, and every Boolean gate from NANDs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.errors import InputError


@dataclass(frozen=True)
class ThresholdUnit:
    """Fires (1) where ⟨weights, x⟩ ≥ threshold, else 0.

    A sum of exactly the threshold fires: the textbooks' rule. The estimators of this library follow scikit-learn
    instead, which gives a score of exactly 0 to the first class.

    References
    ----------
    McCulloch, Pitts: A logical calculus of the ideas immanent in nervous activity, 1943.

    Examples
    --------
    >>> ThresholdUnit((1.0, 1.0), 2.0)([[0, 0], [0, 1], [1, 1]])
    array([0, 0, 1])
    """

    weights: tuple[float, ...]
    threshold: float

    def __call__(self, inputs: ArrayLike) -> NDArray[np.int64]:
        x = np.atleast_2d(np.asarray(inputs, dtype=np.float64))
        if x.shape[1] != len(self.weights):
            raise InputError(f"the unit has {len(self.weights)} inputs, got rows of {x.shape[1]}")
        fires = (x @ np.asarray(self.weights) >= self.threshold).astype(np.int64)
        return np.asarray(fires if np.ndim(inputs) > 1 else fires[0])

    @classmethod
    def of(cls, machine: Any) -> ThresholdUnit:
        """The unit of a fitted linear classifier for two classes; ``classes_[1]`` fires."""
        if machine.coef_.shape[0] != 1:
            raise InputError(
                f"a unit decides between two classes; the machine has {machine.coef_.shape[0]} hyperplanes"
            )
        return cls(tuple(machine.coef_[0].tolist()), -float(machine.intercept_[0]))


AND = ThresholdUnit((1.0, 1.0), 2.0)
OR = ThresholdUnit((1.0, 1.0), 1.0)
NOT = ThresholdUnit((-1.0,), 0.0)
NAND = ThresholdUnit((-1.0, -1.0), -1.0)
NOR = ThresholdUnit((-1.0, -1.0), 0.0)

Wire = str | tuple["Wire", "Wire"]  # an input's name, or the NAND of two wires


def _nand_of(wire: Any, inputs: dict[str, int]) -> int:
    if isinstance(wire, str):
        return inputs[wire]
    return int(NAND([_nand_of(wire[0], inputs), _nand_of(wire[1], inputs)]))


_NAND_AB = ("a", "b")
_XOR = (("a", _NAND_AB), ("b", _NAND_AB))
NETWORKS: dict[str, Any] = {
    "not": ("a", "a"),
    "and": (_NAND_AB, _NAND_AB),
    "or": (("a", "a"), ("b", "b")),
    "nand": _NAND_AB,
    "nor": ((("a", "a"), ("b", "b")), (("a", "a"), ("b", "b"))),
    "xor": _XOR,
    "xnor": (_XOR, _XOR),
}
"""Every gate as a tree of NANDs over the inputs "a" and "b"."""


def gate(name: str) -> Callable[..., int]:
    """The gate of that name, built from NAND units alone.

    Examples
    --------
    >>> xor = gate("xor")
    >>> [xor(a, b) for a in (0, 1) for b in (0, 1)]
    [0, 1, 1, 0]
    """
    if name not in NETWORKS:
        raise InputError(f"no gate {name!r}; there are {sorted(NETWORKS)}")
    network = NETWORKS[name]

    def compute(*inputs: int) -> int:
        wanted = 1 if name == "not" else 2
        if len(inputs) != wanted or any(value not in (0, 1) for value in inputs):
            raise InputError(f"the gate {name!r} takes {wanted} inputs of 0 or 1, got {inputs}")
        return _nand_of(network, dict(zip("ab", map(int, inputs), strict=False)))

    return compute


def truth_table(function: Callable[..., int], n_inputs: int = 2) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All inputs of 0 and 1, and the function's value for each.

    Examples
    --------
    >>> truth_table(gate("and"))[1]
    array([0, 0, 0, 1])
    """
    rows: Sequence[tuple[int, ...]] = list(itertools.product((0, 1), repeat=n_inputs))
    return np.array(rows, dtype=np.int64), np.array([int(function(*row)) for row in rows], dtype=np.int64)

"""The path a machine took: its weights after every correction."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Trace:
    """Weights after every step that corrected something, oldest first.

    Attributes
    ----------
    coef : array of shape (n_steps, n_features)
    intercept : array of shape (n_steps,)
    seen : array of shape (n_steps,)
        How many rows had been seen, the corrected one included.
    passes : array of shape (n_steps,)
        In which pass, or in which call of ``partial_fit``, counted from 0.
    mistakes : array of shape (n_steps,)
        How many mistakes had been made.
    step : array of shape (n_steps,)
        Step size of the correction.

    Examples
    --------
    >>> from maxmargin import Perceptron
    >>> machine = Perceptron(shuffle=False, trace=True).fit([[-1.0], [2.0]], [0, 1])
    >>> machine.trace_.coef.ravel(), machine.trace_.passes
    (array([1.]), array([0]))
    """

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    seen: NDArray[np.int64]
    passes: NDArray[np.int64]
    mistakes: NDArray[np.int64]
    step: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.intercept)

    def followed_by(self, other: Trace) -> Trace:
        """Both paths, one after the other."""
        pairs = ((getattr(self, name.name), getattr(other, name.name)) for name in fields(self))
        return Trace(*(np.concatenate(pair) for pair in pairs))


class Recorder:
    """Collects a trace, line by line."""

    def __init__(self) -> None:
        self.lines: list[tuple[NDArray[np.float64], float, int, int, int, float]] = []

    def add(self, w: NDArray[np.float64], b: float, seen: int, passes: int, mistakes: int, step: float) -> None:
        self.lines.append((w, b, seen, passes, mistakes, step))

    def trace(self, n_cols: int) -> Trace:
        columns: Any = list(zip(*self.lines, strict=True)) if self.lines else [[]] * 6
        coef = np.array(columns[0]).reshape(len(self.lines), n_cols)
        seen, passes, mistakes = (np.array(column, dtype=np.int64) for column in columns[2:5])
        intercept, step = (np.array(columns[k], dtype=np.float64) for k in (1, 5))
        return Trace(coef, intercept, seen, passes, mistakes, step)

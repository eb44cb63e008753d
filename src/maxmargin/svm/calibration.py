"""Probabilities from scores, by one number: the steepness of a sigmoid through ½ at score 0.

Solves
    minimise over a ≥ 0   −Σ c_i ln p_i(y_i),   p = 1/(1 + exp(−a f)) for two classes, softmax(a f) for more

on scores that machines trained on other rows have given (cross-validation). One steepness for all classes never changes
which class has the largest probability.

References
----------
Platt: Probabilistic outputs for support vector machines, 1999 (a sigmoid with an offset; without it, probability and
decision agree). Guo, Pleiss, Sun, Weinberger: On calibration of modern neural networks, 2017 (one temperature for all
classes).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def log_probabilities(scores: Vector, steepness: float) -> Vector:
    """ln p of every class, shape (n, k); scores of two classes may be one column.

    Examples
    --------
    >>> np.exp(log_probabilities(np.array([0.0]), 2.0))
    array([[0.5, 0.5]])
    """
    if scores.ndim == 1:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    z = steepness * (scores - scores.max(axis=1, keepdims=True))
    return np.asarray(z - np.log(np.exp(z).sum(axis=1, keepdims=True)))


def fit_steepness(scores: Vector, position: NDArray[np.intp], weight: Vector) -> float:
    """The steepness under which the labels are most probable: bisection on the slope, which rises with a."""
    if scores.ndim == 1:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    centred = scores - scores.mean(axis=1, keepdims=True)
    size = float(np.abs(centred).max())
    if size == 0.0:
        return 1.0
    centred /= size
    own = centred[np.arange(len(position)), position]

    def slope(a: float) -> float:
        p = np.exp(log_probabilities(centred, a))
        return float(weight @ ((p * centred).sum(axis=1) - own))

    low, high = 1e-6, 1e6  # never quite flat, never quite a step
    if slope(low) >= 0.0:
        return low / size
    if slope(high) <= 0.0:
        return high / size
    while high / low > 1.0 + 1e-12:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if slope(middle) > 0.0 else (middle, high)
    return float(np.sqrt(low * high)) / size


def probabilities(scores: Vector, steepness: float, decided: NDArray[np.intp]) -> Vector:
    """p of every class; where rounding makes two classes equal, the decided one stays ahead."""
    p = np.exp(log_probabilities(scores, steepness))
    return ahead(p, decided)


def ahead(p: Vector, decided: NDArray[np.intp]) -> Vector:
    """The same probabilities with their first largest at the decided class."""
    rows = np.flatnonzero(p.argmax(axis=1) != decided)
    for i in rows:
        p[i, decided[i]] = np.nextafter(p[i].max(), 2.0)
        p[i] /= p[i].sum()
        if p[i].argmax() != decided[i]:
            p[i, decided[i]] = np.nextafter(p[i].max(), 2.0)
    return p

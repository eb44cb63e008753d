"""Joint losses of several classes, and the best biases for given weights.

Solves
    minimise over b   Σ_i T ln Σ_m exp((f_im + b_m + δ_im) / T) − f_iy − b_y

by Newton's method. With T = 1 and δ = 0 this is the multinomial loss itself. With δ = 1 off the own class and T down to
1e-6 it ends at Crammer and Singer's loss, whose T is 0; the value that counts is always that of T = 0. T begins at the
spread of the scores: where scores are in the hundreds, every probability at T = 1 is 0 or 1, and Newton's method has no
curvature to go by.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Labels = NDArray[np.intp]

COOLING = 10.0**0.5  # from one T to the next
COLDEST = {"multinomial": 1.0, "crammer_singer": 1e-6}
MOST_STEPS = 40
LEAST_DAMPING, MOST_DAMPING = 1e-10, 1e10  # in units of the mean curvature


def least_loss(scores: Vector, label: Labels, loss: str) -> float:
    """Σ of the losses at the best biases; ``scores`` has a line per row and a column per class."""
    own = scores[np.arange(len(label)), label].sum()
    raised, judged_at = scores, 1.0
    if loss == "crammer_singer":
        raised, judged_at = scores + 1.0, 0.0
        raised[np.arange(len(label)), label] -= 1.0
    b = np.zeros(scores.shape[1])
    values = [_value(raised, label, b, judged_at)]
    for temperature in _temperatures(float(np.ptp(scores)), COLDEST[loss]):
        b = _best(raised, label, b, temperature)
        values.append(_value(raised, label, b, judged_at))
    return min(values) - float(own)


def _temperatures(spread: float, coldest: float) -> Vector:
    """From the spread, or 1, down to the coldest."""
    warmest = max(1.0, spread)
    return np.geomspace(warmest, coldest, 1 + math.ceil(math.log(warmest / coldest) / math.log(COOLING)))


def _value(raised: Vector, label: Labels, b: Vector, temperature: float) -> float:
    moved = raised + b
    top = moved.max(axis=1)
    total = float(top.sum()) - float(b[label].sum())
    if temperature == 0.0:
        return total
    return total + temperature * float(np.log(np.exp((moved - top[:, None]) / temperature).sum(axis=1)).sum())


def _best(raised: Vector, label: Labels, b: Vector, temperature: float) -> Vector:
    """Newton's method; where a step does not help, its matrix is made heavier until it does."""
    n_classes, damping = len(b), LEAST_DAMPING
    counts = np.bincount(label, minlength=n_classes).astype(np.float64)
    value = _value(raised, label, b, temperature)
    for _ in range(MOST_STEPS):
        z = (raised + b) / temperature
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        gradient = p.sum(axis=0) - counts
        curvature = (np.diag(p.sum(axis=0)) - p.T @ p) / temperature
        size = max(float(np.trace(curvature)), 1e-12 * len(label) / temperature) / n_classes
        curvature += size / n_classes  # equal shifts of all biases change nothing: fill that direction up
        while damping <= MOST_DAMPING:
            step = -np.linalg.solve(curvature + damping * size * np.eye(n_classes), gradient)
            gain = -float(gradient @ step)
            new = _value(raised, label, b + step, temperature)
            if new <= value - 1e-4 * gain:
                break
            damping *= 10.0
        else:
            return b
        b, value, damping = b + step, new, max(LEAST_DAMPING, 0.1 * damping)
        if gain <= 1e-10 * abs(value) and damping <= 1e-6:
            return b
    return b

"""Joint losses of several classes, and the best biases for given weights.

Solves
    minimise over b   Σ_i T ln Σ_m exp((f_im + b_m + δ_im) / T) − f_iy − b_y

by Newton's method. With T = 1 and δ = 0 this is the multinomial loss itself. With δ = 1 off the own class and T from 1
down to 1e-6 it ends at Crammer and Singer's loss, whose T is 0; the value that counts is always that of T = 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Labels = NDArray[np.intp]

COOLING = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
MOST_STEPS = 60


def least_loss(scores: Vector, label: Labels, loss: str) -> float:
    """Σ of the losses at the best biases; ``scores`` has a line per row and a column per class."""
    own = scores[np.arange(len(label)), label].sum()
    if loss == "multinomial":
        b = _best(scores, label, np.zeros(scores.shape[1]), 1.0)
        return _value(scores, label, b, 1.0) - float(own)
    raised = scores + 1.0
    raised[np.arange(len(label)), label] -= 1.0
    b, values = np.zeros(scores.shape[1]), []
    for temperature in COOLING:
        values.append(_value(raised, label, b, 0.0))
        b = _best(raised, label, b, temperature)
    return min(*values, _value(raised, label, b, 0.0)) - float(own)


def _value(raised: Vector, label: Labels, b: Vector, temperature: float) -> float:
    moved = raised + b
    top = moved.max(axis=1)
    total = float(top.sum()) - float(b[label].sum())
    if temperature == 0.0:
        return total
    return total + temperature * float(np.log(np.exp((moved - top[:, None]) / temperature).sum(axis=1)).sum())


def _best(raised: Vector, label: Labels, b: Vector, temperature: float) -> Vector:
    counts = np.bincount(label, minlength=len(b)).astype(np.float64)
    value = _value(raised, label, b, temperature)
    for _ in range(MOST_STEPS):
        z = (raised + b) / temperature
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        gradient = p.sum(axis=0) - counts
        curvature = (np.diag(p.sum(axis=0)) - p.T @ p) / temperature
        size = float(np.trace(curvature)) / len(b)
        # Equal shifts of all biases change nothing: the constant direction is filled up. A little more for flat ones.
        curvature += size / len(b) + (1e-9 * size + 1e-12) * np.eye(len(b))
        step = -np.linalg.solve(curvature, gradient)
        gain = -float(gradient @ step)
        if not gain > 1e-13 * abs(value):
            break
        length = 1.0
        while length > 1e-6:
            new = _value(raised, label, b + length * step, temperature)
            if new <= value - 1e-4 * length * gain:
                break
            length *= 0.5
        else:
            break
        b, value = b + length * step, new
    return b

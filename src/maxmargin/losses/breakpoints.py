"""Best bias of piecewise linear and piecewise quadratic losses, from their breakpoints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin.losses.base import Vector, rising_root


def zero_of_steps(point: Vector, jump: Vector, start: float) -> tuple[float, float]:
    """Where a rising step function is zero: it begins at ``start`` and rises by ``jump`` at each point."""
    rounding = 1e-12 * float(jump.sum())
    if len(point) > 4096:
        point, jump, start = _around_zero(point, jump, start, rounding)
    order = np.argsort(point)
    slope = start + np.cumsum(jump[order])
    last = len(order) - 1
    first = min(int(np.searchsorted(slope, -rounding)), last)
    after = min(int(np.searchsorted(slope, rounding, side="right")), last)
    return float(point[order[first]]), float(point[order[after]])


def _around_zero(point: Vector, jump: Vector, start: float, rounding: float) -> tuple[Vector, Vector, float]:
    """Only the breakpoints near the zero: guessed from a sorted sample, then checked on all of them."""
    stride = max(1, len(point) // 8192)
    order = np.argsort(point[::stride])
    sample = point[::stride][order]
    guess = int(np.searchsorted(start + stride * np.cumsum(jump[::stride][order]), 0.0))

    def slope(b: float) -> float:
        return start + float(jump[point <= b].sum())

    reach = 256
    low, high = guess - reach, guess + reach
    below = slope(float(sample[low])) if low >= 0 else start
    while low >= 0 and below >= -2.0 * rounding:
        reach, low = 2 * reach, low - reach
        below = slope(float(sample[low])) if low >= 0 else start
    reach = 256
    while high < len(sample) and slope(float(sample[high])) <= 2.0 * rounding:
        reach, high = 2 * reach, high + reach
    inside = np.ones(len(point), dtype=bool)
    if low >= 0:
        inside &= point > sample[low]
    if high < len(sample):
        inside &= point <= sample[high]
    return point[inside], jump[inside], below


def zero_of_ramps(
    beta: Vector, cost: Vector, below: NDArray[np.bool_], start: float | None = None
) -> tuple[float, float]:
    """Where Σ c_i (b − beta_i) over active rows is zero: rows ``below`` are active under beta_i, others above it.

    The sum is continuous, piecewise linear and rising; ``start`` is a guess.
    """
    live = cost > 0.0
    if not live.all():
        beta, cost, below = beta[live], cost[live], below[live]
    last, first = float(beta[below].max(initial=-np.inf)), float(beta[~below].min(initial=np.inf))
    if last <= first:  # no row is active between them
        return (last if np.isfinite(last) else first), (first if np.isfinite(first) else last)
    if len(beta) > 4096:
        root = _newton_on_ramps(beta, cost, below, start)
        return root, root
    order = np.argsort(beta)
    b, c, plus = beta[order], cost[order], below[order]
    c_plus, c_minus = np.where(plus, c, 0.0), np.where(plus, 0.0, c)
    weight = c_plus.sum() - np.cumsum(c_plus) + np.cumsum(c_minus)  # just above the k-th breakpoint
    centre = b.mean()  # against cancellation
    shifted = b - centre
    moment = (c_plus @ shifted) - np.cumsum(c_plus * shifted) + np.cumsum(c_minus * shifted)
    rising = weight * shifted - moment  # the sum at the k-th breakpoint
    rounding = 1e-14 * float(c @ np.abs(shifted))
    k = min(max(int(np.searchsorted(rising, -rounding)) - 1, 0), len(b) - 1)
    root = float(moment[k] / weight[k] + centre) if weight[k] > 0.0 else float(b[k])
    return root, root


def _newton_on_ramps(beta: Vector, cost: Vector, below: NDArray[np.bool_], start: float | None) -> float:
    """The root without sorting: each step solves the present linear piece."""
    signed = np.where(below, -1.0, 1.0)
    signed_cost = signed * cost
    low, high = float(beta.min()), float(beta.max())
    guess = float(np.median(beta[:: max(1, len(beta) // 1001)])) if start is None else start
    guess = min(max(guess, low), high)  # what counts as rounding below must not grow with a wild guess

    def slope(b: float) -> tuple[float, float]:
        active = np.maximum(signed * (b - beta), 0.0)
        return float(signed_cost @ active), float(cost @ (active > 0.0))

    size = float(cost @ np.maximum(signed * (guess - beta), 0.0))
    return rising_root(slope, low, high, guess, 1e-15 * size)

"""Ratios of times: their mean, and how a ratio with an unfinished fit is said."""

from __future__ import annotations

import math
from collections.abc import Iterable


def geometric_mean(ratios: Iterable[float]) -> float:
    """Of those that are finite; not a number if there is none.

    Examples
    --------
    >>> geometric_mean([0.5, 2.0, 4.0, float("inf")])
    1.5874010519681994
    """
    logs = [math.log(ratio) for ratio in ratios if 0.0 < ratio < math.inf]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def said(ratio: float) -> str:
    """In a table: three digits, words where one of the two never got there."""
    if math.isnan(ratio):
        return "—"
    if ratio in (0.0, math.inf):
        return "never / best" if ratio else "best / never"
    return f"{ratio:.3g}"

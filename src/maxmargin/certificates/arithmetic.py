"""The losses once more, in plain arithmetic: nothing here is shared with ``losses`` or the solvers.

Every loss is h(r) of a residual r = target − sign·score. ``share`` is its slope, ``conjugate`` its convex conjugate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Function = Callable[[Vector], Vector]


@dataclass(frozen=True)
class Arithmetic:
    """h, its slope, its conjugate, and the range of multipliers per unit of cost."""

    value: Function
    share: Function
    conjugate: Function
    lowest: float
    highest: float
    margin: float = 1.0  # the target of a classifier
    corners: bool = False  # the best bias may be an interval
    width: float = 0.0  # half-width of the tube


def arithmetic_of(loss: str, power: float, epsilon: float) -> Arithmetic | None:
    """None for a loss that nobody knows."""
    inf = np.inf
    border = epsilon * (1.0 + 1e-14)  # a row on the tube's border is not outside by rounding
    if loss == "hinge":
        return Arithmetic(
            lambda r: np.maximum(r, 0.0), lambda r: np.where(r > 0.0, 1.0, 0.0), np.zeros_like, 0.0, 1.0, corners=True
        )
    if loss == "squared_hinge" or (loss == "slack_power" and 1.0 < power <= 4.0):
        p = 2.0 if loss == "squared_hinge" else power
        return Arithmetic(
            lambda r: np.maximum(r, 0.0) ** p,
            lambda r: p * np.maximum(r, 0.0) ** (p - 1.0),
            lambda a: (p - 1.0) * (a / p) ** (p / (p - 1.0)),
            0.0,
            inf,
        )
    if loss == "logistic":
        return Arithmetic(
            lambda r: np.logaddexp(0.0, r),
            lambda r: np.exp(-np.logaddexp(0.0, -r)),
            lambda a: _x_log_x(a) + _x_log_x(1.0 - a),
            0.0,
            1.0,
            margin=0.0,
        )
    if loss == "epsilon_insensitive" and epsilon >= 0.0:
        return Arithmetic(
            lambda r: np.maximum(np.abs(r) - border, 0.0),
            lambda r: np.where(np.abs(r) > epsilon, np.sign(r), 0.0),
            lambda a: epsilon * np.abs(a),
            -1.0,
            1.0,
            corners=True,
            width=epsilon,
        )
    if loss == "squared_epsilon_insensitive" and epsilon >= 0.0:
        return Arithmetic(
            lambda r: np.maximum(np.abs(r) - border, 0.0) ** 2,
            lambda r: 2.0 * np.sign(r) * np.maximum(np.abs(r) - epsilon, 0.0),
            lambda a: epsilon * np.abs(a) + a * a / 4.0,
            -inf,
            inf,
            width=epsilon,
        )
    return None


def _x_log_x(x: Vector) -> Vector:
    return np.where(x > 0.0, x * np.log(np.where(x > 0.0, x, 1.0)), 0.0)


def class_costs(
    weight: Vector, position: NDArray[np.intp], labels: list[object], class_weight: dict[object, float] | str | None
) -> Vector:
    """Weights times the factors of the rows' classes."""
    if class_weight is None:
        return weight
    if isinstance(class_weight, str):
        total = np.maximum(np.bincount(position, weights=weight, minlength=len(labels)), 0.0)
        with np.errstate(invalid="ignore", over="ignore"):  # weights that are not finite are refused later
            factor = np.where(total > 0.0, total.sum() / len(labels) / np.maximum(total, 1e-300), 0.0)
    else:
        factor = np.array([float(class_weight.get(label, 1.0)) for label in labels])
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(weight * factor[position])


def balanced(pull: Vector) -> Vector:
    """A point whose sum is zero: the heavier side scaled down."""
    plus, minus = float(pull[pull > 0.0].sum()), -float(pull[pull < 0.0].sum())
    if plus > minus:
        return np.where(pull > 0.0, pull * (minus / plus), pull)
    return np.where(pull < 0.0, pull * (plus / minus), pull) if minus > plus else pull


def bias_interval(scores: Vector, sign: Vector, target: Vector, cost: Vector, h: Arithmetic) -> tuple[float, float]:
    """All biases that minimise the loss, up to rounding, by bisection on its slope."""
    point, share = (target - sign * scores) / sign, h.share
    reach = 1.0 + float(np.abs(point).max()) + h.width
    if not target.any():  # no target: the level where the slope is zero depends on the classes' totals
        totals = [float(cost[sign == s].sum()) for s in (-1.0, 1.0)]
        reach += abs(float(np.log(totals[1] / totals[0])))
    flat = 1e-12 * float(cost @ np.abs(share(target - sign * scores))) + 1e-300

    def slope(b: float) -> float:
        return float(-(cost * sign) @ share(target - sign * (scores + b)))

    def first_above(level: float) -> float:
        low, high = -2.0 * reach, 2.0 * reach
        while high - low > 1e-15 * reach and low < 0.5 * (low + high) < high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if slope(middle) > level else (middle, high)
        return 0.5 * (low + high)

    return first_above(-flat), first_above(flat)

"""The losses once more, in plain arithmetic: what certificates know of them, without importing ``losses`` or solvers.

Every loss is h(r) of a residual r = target − sign·score, with slope h' and conjugate h*. What rounding may do to each
is part of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin.certificates.rounding import ELEMENTARY, UNIT

Vector = NDArray[np.float64]
Function = Callable[[Vector], Vector]


@dataclass(frozen=True)
class Arithmetic:
    """h, its slope, its conjugate, and the range of multipliers per unit of cost.

    ``value`` is right to ``roundings`` UNITs. ``priced`` is c h*(alpha/c) and the error it may have. A loss whose
    ``lowest`` multiplier is negative is an even function of r; one of ``margin`` 0 rises with r everywhere.
    """

    value: Function
    slope: Function
    priced: Callable[[Vector, Vector], tuple[Vector, Vector]]
    lowest: float
    highest: float
    margin: float = 1.0  # the target of a classifier
    width: float = 0.0  # half-width of the tube
    roundings: float = 4.0
    power: float = 1.0  # h(r + e)^(1/power) ≤ h(r)^(1/power) + e
    boxed: bool = False  # c h* is width |alpha|, and alpha²/(4 c) more where power is 2: few sums bound it

    def range(self, cost: Vector) -> tuple[Vector, Vector]:
        """Smallest and largest multiplier of rows with these costs."""
        with np.errstate(invalid="ignore"):
            low = np.where(cost > 0.0, self.lowest * cost if self.lowest else 0.0, 0.0)
            return low, np.where(cost > 0.0, self.highest * cost, 0.0)


def _hinge(power: float, epsilon: float) -> Arithmetic:
    return Arithmetic(
        value=lambda r: np.maximum(r, 0.0), slope=lambda r: np.where(r > 0.0, 1.0, 0.0),
        priced=lambda a, c: (0.0 * a, 0.0 * a), lowest=0.0, highest=1.0, boxed=True,
    )  # fmt: skip


def _slack(p: float) -> Arithmetic | None:
    if not 1.0 < p <= 4.0:
        return None
    return Arithmetic(
        value=lambda r: np.maximum(r, 0.0) ** p, slope=lambda r: p * np.maximum(r, 0.0) ** (p - 1.0),
        priced=lambda a, c: _power_priced(a, c, p), lowest=0.0, highest=np.inf,
        roundings=2.0 * ELEMENTARY + 2.0, power=p, boxed=p == 2.0,
    )  # fmt: skip


def _logistic(power: float, epsilon: float) -> Arithmetic:
    return Arithmetic(
        value=lambda r: np.maximum(r, 0.0) + np.log1p(np.exp(-np.abs(r))),
        slope=lambda r: np.exp(-np.logaddexp(0.0, -r)), priced=_entropy_priced, lowest=0.0, highest=1.0,
        margin=0.0, roundings=4.0 * ELEMENTARY + 2.0,
    )  # fmt: skip


def _tube(epsilon: float, *, squared: bool) -> Arithmetic | None:
    if not epsilon >= 0.0:
        return None
    if not squared:
        return Arithmetic(
            value=lambda r: np.maximum(np.abs(r) - epsilon, 0.0),
            slope=lambda r: np.where(np.abs(r) > epsilon, np.sign(r), 0.0),
            priced=lambda a, c: _tube_priced(a, c, epsilon, squared=False), lowest=-1.0, highest=1.0, width=epsilon,
            boxed=True,
        )  # fmt: skip
    return Arithmetic(
        value=lambda r: np.maximum(np.abs(r) - epsilon, 0.0) ** 2,
        slope=lambda r: 2.0 * np.sign(r) * np.maximum(np.abs(r) - epsilon, 0.0),
        priced=lambda a, c: _tube_priced(a, c, epsilon, squared=True), lowest=-np.inf, highest=np.inf,
        width=epsilon, roundings=8.0, power=2.0, boxed=True,
    )  # fmt: skip


# Every loss by name: its arithmetic for a power and a half-width of the tube, None where it has none.
ARITHMETIC: dict[str, Callable[[float, float], Arithmetic | None]] = {
    "hinge": _hinge,
    "squared_hinge": lambda power, epsilon: _slack(2.0),
    "slack_power": lambda power, epsilon: _slack(power),
    "logistic": _logistic,
    "epsilon_insensitive": lambda power, epsilon: _tube(epsilon, squared=False),
    "squared_epsilon_insensitive": lambda power, epsilon: _tube(epsilon, squared=True),
}


def arithmetic_of(loss: str, power: float, epsilon: float) -> Arithmetic | None:
    """None for a loss that nobody knows."""
    return ARITHMETIC[loss](power, epsilon) if isinstance(loss, str) and loss in ARITHMETIC else None


def _power_priced(alpha: Vector, cost: Vector, p: float) -> tuple[Vector, Vector]:
    if p == 2.0:
        value = alpha * alpha / (4.0 * cost)
        return value, 3.0 * UNIT * value
    q = p / (p - 1.0)
    base = alpha / cost / p
    with np.errstate(over="ignore"):
        value = cost * (p - 1.0) * base**q
    # The exponent itself is rounded: base^q changes by q |ln base| roundings of it.
    steep = q * np.abs(np.log(np.where(base > 0.0, base, 1.0)))
    return value, UNIT * value * (2.0 * ELEMENTARY + 4.0 + 4.0 * q + 4.0 * steep)


def _entropy_priced(alpha: Vector, cost: Vector) -> tuple[Vector, Vector]:
    a = alpha / cost
    value = cost * (x_log_x(a) + np.where(a < 1.0, (1.0 - a) * np.log1p(-np.minimum(a, 0.9999999999999999)), 0.0))
    # a is rounded; the slope of the entropy there is at most 40, as 1 − a is 0 or above UNIT.
    return value, UNIT * ((4.0 * ELEMENTARY + 8.0) * np.abs(value) + 64.0 * alpha)


def _tube_priced(alpha: Vector, cost: Vector, epsilon: float, *, squared: bool) -> tuple[Vector, Vector]:
    value = epsilon * np.abs(alpha)
    if squared:
        value = value + alpha * alpha / (4.0 * cost)
    return value, (4.0 if squared else 1.0) * UNIT * value


def x_log_x(x: Vector) -> Vector:
    """x ln x, and 0 at 0."""
    return np.where(x > 0.0, x * np.log(np.where(x > 0.0, x, 1.0)), 0.0)


def best_constant(sign: Vector, target: Vector, cost: Vector, h: Arithmetic) -> float:
    """A bias that minimises the loss at w = 0, up to rounding, by bisection on its slope."""
    point = target / sign
    reach = float(np.abs(point).max()) + h.width
    if h.margin == 0.0:  # logistic: the level where the slope is zero depends on the classes' totals
        below, above = (float(cost[sign == s].sum()) for s in (-1.0, 1.0))
        reach = 1.0 + abs(math.log(above) - math.log(below))
    flat = 1e-12 * float(cost @ np.abs(h.slope(target))) + 1e-300

    def slope(b: float) -> float:
        return float(-(cost * sign) @ h.slope(target - sign * b))

    def first_above(level: float) -> float:
        low, high = -2.0 * reach, 2.0 * reach
        while high - low > 1e-15 * reach and low < 0.5 * (low + high) < high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if slope(middle) > level else (middle, high)
        return 0.5 * (low + high)

    return 0.5 * (first_above(-flat) + first_above(flat))


def class_costs(
    weight: Vector, position: NDArray[np.intp], labels: list[object], class_weight: dict[object, float] | str | None
) -> Vector:
    """Weights times the factors of the rows' classes."""
    if class_weight is None:
        return weight
    if isinstance(class_weight, str):
        totals = np.maximum(np.bincount(position, weights=weight, minlength=len(labels)), 0.0)
        with np.errstate(invalid="ignore", over="ignore"):  # weights that are not finite are refused later
            factor = np.where(totals > 0.0, totals.sum() / len(labels) / np.maximum(totals, 1e-300), 0.0)
    else:
        factor = np.array([float(class_weight.get(label, 1.0)) for label in labels])
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(weight * factor[position])

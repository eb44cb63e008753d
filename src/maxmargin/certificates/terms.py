"""Primal and dual objective of a hyperplane and a dual point, with everything that rounding may have changed.

:class:`Terms` is the one place where objectives are stated: solvers state their claims with it, from products by the
core, and certificates check them with it, from products by NumPy. A solver widens all rounding by :data:`CAREFUL`, so
that whoever checks its claim finds it true.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin.certificates.losses import Arithmetic, arithmetic_of, best_constant
from maxmargin.certificates.rounding import (
    NEARLY,
    TINY,
    TOGETHER,
    UNIT,
    Approximate,
    Interval,
    Total,
    gamma,
    norm,
    square_norm,
    sums_to_zero,
    total,
    two_sum,
)

Vector = NDArray[np.float64]

# Two computations of a number, each wrong by at most A, differ by at most 2 A: who claims the first one with 3 A is
# confirmed by the second one with A.
CAREFUL = 3.0
FARTHEST = 8.0  # times what rounding explains: the farthest that a claim may be from the exact value
VANISHING = 1e-300  # added to what may be too small for a float, per unit of cost
STEEPEST = 750.0  # ln of the ratio of the largest to the smallest number
BORDER = 2e-14  # of a tube's half-width: solvers let rows so near its border pass as inside


@dataclass(frozen=True)
class Terms:
    """One hyperplane's problem: R(w) + ½ (b/scale)² + Σ cost_i h(target_i − sign_i (⟨w, x_i⟩ + b)).

    Without a ``scale`` the bias costs nothing. ``hard``: no loss at all is allowed, and every row of cost above 0 must
    have a residual of at most 0.
    """

    h: Arithmetic
    sign: Vector
    target: Vector
    cost: Vector
    penalty: str = "l2"
    scale: float = 0.0
    hard: bool = False

    def primal(self, w: Vector, b: float, scores: Approximate, *, factor: float = 1.0) -> Interval:
        """Lower and upper bound of the objective; the upper one is infinite where the hard margin is not proven."""
        least, most = Total(factor), Total(factor)
        for part in chunks(len(self.cost)):
            low, high = self.loss_terms(b, scores.of(part), part, factor=factor)
            least.add(low)
            most.add(high)
        return self.penalties(w, b, factor=factor) + self.losses(least.value, most.value, factor=factor)

    def penalties(self, w: Vector, b: float, *, factor: float = 1.0) -> Interval:
        """R(w), and what the bias costs."""
        l2 = self.penalty == "l2"
        value = square_norm(w, factor=factor).times(0.5) if l2 else total(np.abs(w), factor=factor)
        if self.scale:
            of_bias = 0.5 * (b / self.scale) ** 2
            value = value + Interval(of_bias * (1.0 - 4.0 * factor * UNIT), of_bias * (1.0 + 4.0 * factor * UNIT))
        return value

    def loss_terms(self, b: float, scores: Approximate, part: slice, *, factor: float = 1.0) -> tuple[Vector, Vector]:
        """The least and the most that cost h may be, for some rows; in a hard margin 0 or infinite."""
        r, off = self._residual(b, scores, part)
        cost = self.cost[part]
        if self.hard:
            refuted, proven = r - factor * off > 0.0, r + factor * off <= 0.0
            live = cost > 0.0
            return np.where(live & refuted, np.inf, 0.0), np.where(live & ~proven, np.inf, 0.0)
        least, most = self._loss_range(r, factor * off)
        return cost * least, cost * most

    def losses(self, least: Interval, most: Interval, *, factor: float = 1.0) -> Interval:
        """Σ cost h from the sums of its bounds."""
        several = (self.h.roundings + 8.0) * factor * UNIT
        return Interval(max(0.0, least.low * (1.0 - several)), most.high * (1.0 + several))

    def largest_residual(self, b: float, scores: Approximate, *, factor: float) -> float:
        """Over the rows with a cost: an upper bound."""
        largest = [-math.inf]
        for part in chunks(len(self.cost)):
            r, off = self._residual(b, scores.of(part), part)
            largest.append(float((r + factor * off)[self.cost[part] > 0.0].max(initial=-math.inf)))
        return float(np.max(largest))  # NaN stays NaN, and proves nothing

    def _loss_range(self, r: Vector, off: Vector) -> tuple[Vector, Vector]:
        """h is convex, so that its largest value is at an end; tubes have their smallest inside."""
        h = self.h
        if h.lowest < 0.0:
            size = np.abs(r)
            least, most, zero = h.value(np.maximum(size - off, 0.0)), h.value(size + off), size + off <= h.width
        else:
            least, most = h.value(r - off), h.value(r + off)
            zero = np.zeros(len(r), dtype=bool) if h.margin == 0.0 else r + off <= 0.0
        return least, most + np.where(zero, 0.0, VANISHING)

    def _residual(self, b: float, scores: Approximate, part: slice) -> tuple[Vector, Vector]:
        """target − sign (score + b), and how far that may be off."""
        sign, off = self.sign[part], scores.off
        base, lost = two_sum(self.target[part], -sign * b)
        r, more = two_sum(base, -sign * scores.value)
        lost = lost + more
        if scores.tail is not None:
            lost = lost - sign * scores.tail
        inexact = (lost != 0.0) | (off > 0.0)
        return r + lost, off + np.where(inexact, 4.0 * UNIT * (np.abs(r) + np.abs(lost)), 0.0)

    def primal_above(
        self, computed: float, w: Vector, b: float, n_products: int, largest: float, *, factor: float
    ) -> float:
        """An upper bound of the objective, given what plain arithmetic in any order made of it.

        Residuals are off by at most e, whatever the row: ``largest`` is the largest ‖x_i‖. By Minkowski's inequality
        Σ c h(r + e) is at most (Σ c h(r))^(1/p) + e (Σ c)^(1/p), to the power p.
        """
        n, size = len(self.cost), norm(w)
        reach = (size * largest + TINY * size) * NEARLY  # of scores
        target = float(np.abs(self.target).max(initial=0.0)) if self.h.lowest < 0.0 else 1.0
        off = gamma(n_products + 3) * reach + 6.0 * UNIT * (reach + abs(b) + target) + BORDER * self.h.width
        of_w = 0.5 * float(w @ w) if self.penalty == "l2" else float(np.abs(w).sum())
        of_bias = 0.5 * (b / self.scale) ** 2 if self.scale else 0.0
        several = gamma(n + self.h.roundings + 16) * factor
        loss = max(0.0, computed - of_w - of_bias) * (1.0 + several) + 8.0 * factor * UNIT * abs(computed)
        return self.loss_above(loss, factor * off) + (of_w + of_bias) * (1.0 + factor * gamma(len(w) + 16))

    def loss_above(self, loss: float, off: float) -> float:
        """An upper bound of Σ cost h(r_i + e_i), given Σ cost h(r_i) and that no |e_i| is above ``off``."""
        p, cost = self.h.power, float(self.cost.sum()) * NEARLY
        rounded = (64.0 + 4.0 * abs(math.log(max(loss, VANISHING)))) * UNIT
        return float((loss ** (1.0 / p) + off * cost ** (1.0 / p)) ** p) * (1.0 + rounded) + VANISHING * cost

    def dual_below(self, alpha: Vector, induced: Vector, off: float, *, factor: float) -> float:
        """A lower bound of the dual objective of feasible multipliers of a boxed loss, by few passes over them."""
        n, size = len(alpha), np.abs(alpha) if self.h.lowest < 0.0 else alpha
        total_size = float(size.sum())
        if self.h.lowest < 0.0:
            gain, sizes = float(alpha @ self.target), float(size @ np.abs(self.target))
        else:
            gain = sizes = total_size
        price = self.h.width * total_size
        if self.h.power == 2.0 and not self.hard:
            live = self.cost if self.cost.min() > 0.0 else np.where(self.cost > 0.0, self.cost, 1.0)
            price += 0.25 * float((alpha / live) @ alpha)
        square = (math.sqrt(float(induced @ induced)) * (1.0 + gamma(len(induced) + 8)) + factor * off) ** 2
        of_bias = 0.0
        if self.scale:
            balance = abs(float(self.sign @ alpha)) + factor * gamma(n + 4) * total_size
            of_bias = 0.5 * (self.scale * balance) ** 2
        lost = factor * gamma(n + 16) * (sizes + price) + 16.0 * UNIT * (square + of_bias)
        return gain - price - 0.5 * square - of_bias - lost

    def entropy_below(
        self, computed: float, alpha: Vector, moved: float, induced: Vector, off: float, *, factor: float
    ) -> float:
        """A lower bound for the logistic loss, given what plain arithmetic made of it before alpha moved a little.

        An entropy is no steeper than STEEPEST wherever both of its parts are numbers.
        """
        n, length, total_size = len(alpha), norm(induced), float(alpha.sum()) + moved
        several = factor * gamma(n + 48)
        of_bias = 0.0
        if self.scale:
            balance, wrong = abs(float(self.sign @ alpha)), factor * gamma(n + 4) * total_size
            of_bias = self.scale**2 * wrong * (balance + wrong)
        entropy = abs(computed) + 0.5 * length**2 + (self.scale * total_size) ** 2
        lost = several * entropy + 64.0 * factor * UNIT * total_size + STEEPEST * moved
        return computed - factor * off * (length + 0.5 * factor * off) - of_bias - lost

    def farthest(
        self, primal: float, dual: float, w: Vector, b: float, alpha: Vector, induced: Vector, n_products: int,
        lengths: list[float], largest: float,
    ) -> tuple[float, float]:  # fmt: skip
        """How far a claim from plain arithmetic may be from the exact objectives: little more than what solvers add.

        ``lengths`` has one number, a bound of Σ |alpha_i| ‖x_i‖; ``largest`` is the largest ‖x_i‖.
        """
        above = self.primal_above(primal, w, b, n_products, largest, factor=FARTHEST) - primal
        length, off = norm(induced), gamma(len(alpha) + 3) * lengths[0] + most_moved(alpha) * largest
        if self.penalty != "l2":
            length = off = 0.0
        below = off * (length + off) + self.gain_lost(dual, alpha, length**2)
        below += gamma(len(induced) + 16) * length**2  # of the sum over columns
        return above, FARTHEST * below

    def gain_lost(self, dual: float, alpha: Vector, square: float) -> float:
        """By how much plain sums over all rows may be wrong about a dual value, once alpha moved a little."""
        size = np.abs(alpha)
        total_size = float(size.sum())
        sizes = abs(dual) + square + (self.scale * total_size) ** 2 + float(size @ np.abs(self.target))
        sizes += self.h.width * total_size
        lost = gamma(len(alpha) + 64) * sizes + (64.0 * UNIT + 2.0 * UNIT * STEEPEST) * total_size
        return lost + (0.0 if self.h.boxed else STEEPEST * most_moved(alpha))

    def dual(self, alpha: Vector, induced: Approximate, *, factor: float = 1.0) -> Interval:
        """Lower and upper bound of the dual objective of multipliers that are feasible.

        With ‖w‖₁ the lower one is −∞ unless it is proven that no column's slope |Σ alpha sign x_j| exceeds 1.
        """
        gain, balance = Total(factor), Total(factor)
        for part in chunks(len(alpha)):
            gain.add(*self.gain_terms(alpha[part], part))
            balance.add(self.balance_terms(alpha[part], part))
        return self.dual_of(gain.value, balance.value, induced, factor=factor)

    def gain_terms(self, alpha: Vector, part: slice) -> tuple[Vector, float]:
        """target alpha − cost h*(alpha/cost) of some rows, and by how much they are wrong together."""
        cost, gain = self.cost[part], alpha * self.target[part]
        price, wrong = 0.0 * alpha, 0.0 * alpha
        if not self.hard:
            live = cost > 0.0
            price[live], wrong[live] = self.h.priced(alpha[live], cost[live])
        off = float((wrong + 2.0 * UNIT * (np.abs(gain) + np.abs(price))).sum()) * (1.0 + 1e-9)
        return gain - price, off

    def balance_terms(self, alpha: Vector, part: slice) -> Vector:
        """alpha sign of some rows, whose sum a penalised bias asks for."""
        return self.sign[part] * alpha if self.scale else np.empty(0)

    def dual_of(self, gain: Interval, balance: Interval, induced: Approximate, *, factor: float = 1.0) -> Interval:
        """The dual objective from its sums over all rows."""
        value = gain
        if self.penalty == "l2":
            value = value - square_norm(induced.value, float(induced.off), factor=factor).times(0.5)
        else:
            steepest = float(np.abs(induced.value).max(initial=0.0))
            proven = steepest + factor * float(induced.off) < 1.0  # also if the sum was rounded
            refuted = steepest - factor * float(induced.off) > 1.0
            value = Interval(value.low if proven else -math.inf, -math.inf if refuted else value.high)
        if self.scale:
            ends = sorted((abs(balance.low), abs(balance.high)))
            least = 0.0 if balance.low <= 0.0 <= balance.high else ends[0]
            of_bias = [0.5 * (self.scale * end) ** 2 for end in (least, ends[1])]
            several = 6.0 * factor * UNIT
            value = value - Interval(of_bias[0] * (1.0 - several), of_bias[1] * (1.0 + several))
        return value

    # --- what a verification asks besides ----------------------------------------------------------------------

    def feasible(self, alpha: Vector, part: slice) -> bool:
        """Whether multipliers of some rows are inside of their range."""
        cost = self.cost[part]
        low, high = self.h.range(np.where(cost > 0.0, np.inf, 0.0) if self.hard else cost)
        return bool(((low <= alpha) & (alpha <= high)).all())

    def balanced(self, alpha: Vector) -> bool:
        """Whether Σ alpha sign is zero, exactly."""
        return sums_to_zero(self.sign * alpha)

    def coefficients(self, alpha: Vector, part: slice) -> Vector:
        """Of the rows in Σ alpha sign x."""
        return self.sign[part] * alpha

    def at_most(self) -> float:
        """The objective at w = 0 and b = 0, without the tube: more than that of the best constant bias."""
        if self.hard:  # w = 0 is not feasible
            return 0.0
        return float(self.cost @ self._without_tube().value(self.target)) * NEARLY

    def _without_tube(self) -> Arithmetic:
        h = self.h
        if not h.width:
            return h
        found = arithmetic_of("epsilon_insensitive" if h.power == 1.0 else "squared_epsilon_insensitive", math.nan, 0.0)
        assert found is not None
        return found

    def null_primal(self, *, free: bool) -> float:
        """The objective at w = 0 with the best constant bias, if it is ``free``; in a regression without the tube."""
        if self.hard:
            return 0.0
        h, b, sign, target, cost = self._without_tube(), 0.0, self.sign, self.target, self.cost
        if free:
            if h.lowest >= 0.0:  # at w = 0 all rows of a class are alike
                sign, target = np.array([-1.0, 1.0]), np.full(2, h.margin)
                cost = np.array([float(self.cost[self.sign == s].sum()) for s in sign])
            b = best_constant(sign, target, cost, h)
        return float(self.cost @ h.value(self.target - self.sign * b))


def most_moved(alpha: Vector) -> float:
    """By how much, all together, multipliers may be moved on their way to feasible ones for a claim by plain sums."""
    return 4.0 * UNIT * alpha.size * float(np.abs(alpha).max(initial=0.0))


def chunks(n: int) -> list[slice]:
    return [slice(begin, begin + TOGETHER) for begin in range(0, n, TOGETHER)]

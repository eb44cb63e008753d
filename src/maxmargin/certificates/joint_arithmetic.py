"""Primal and dual objective of all classes of a joint machine, with everything that rounding may have changed.

The same as :mod:`~maxmargin.certificates.arithmetic` for machines whose rows have one score per class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin.certificates.arithmetic import STEEPEST, VANISHING, x_log_x
from maxmargin.certificates.rounding import (
    ELEMENTARY,
    NEARLY,
    TINY,
    UNIT,
    Approximate,
    Interval,
    gamma,
    norm,
    size_by_squares,
    square_norm,
    total,
    two_sum,
)

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class JointTerms:
    """All classes at once: ½ Σ_m ‖w_m‖² + ½ Σ_m (b_m/scale)² + Σ cost_i ℓ(f_i, y_i); one column of scores a class.

    ℓ is max_m (f_m + [m ≠ y]) − f_y ("crammer_singer") or ln Σ_m exp f_m − f_y ("multinomial").
    """

    loss: str
    position: NDArray[np.intp]
    cost: Vector
    scale: float = 0.0

    def primal(self, W: Vector, b: Vector, scores: list[Approximate], *, factor: float = 1.0) -> Interval:
        square = square_norm(W.ravel(), factor=factor)
        value = Interval(0.5 * square.low, 0.5 * square.high)
        if self.scale:
            of_bias = square_norm(b / self.scale, factor=2.0 * factor)
            value = value + Interval(0.5 * of_bias.low, 0.5 * of_bias.high)
        least, most = self._losses(b, scores, factor)
        low, high = total(self.cost * least, factor=factor).low, total(self.cost * most, factor=factor).high
        several = 4.0 * factor * UNIT
        return value + Interval(max(0.0, low * (1.0 - several)), high * (1.0 + several))

    def primal_above(
        self, computed: float, W: Vector, b: Vector, n_products: int, largest: float, *, factor: float
    ) -> float:
        """An upper bound of the objective, given what plain arithmetic in any order made of it."""
        size = max(norm(w) for w in W)
        reach = (size * largest + TINY * size) * NEARLY + float(np.abs(b).max(initial=0.0))  # of scores
        off = 2.0 * gamma(n_products + 8) * (reach + 1.0)
        if self.loss == "multinomial":
            off += (4.0 * ELEMENTARY + 8.0 + len(b)) * UNIT * (1.0 + 2.0 * reach)
        of_w = 0.5 * float((W * W).sum())
        of_bias = 0.5 * float(b @ b) / self.scale**2 if self.scale else 0.0
        loss = max(0.0, computed - of_w - of_bias) * (1.0 + gamma(len(self.cost) + 40) * factor)
        loss += 8.0 * factor * UNIT * abs(computed) + factor * off * float(self.cost.sum()) * NEARLY
        return loss + (of_w + of_bias) * (1.0 + factor * gamma(W.size + 16))

    def most_moved(self, size: int) -> float:
        """By how much, all together, multipliers may be moved on their way to feasible ones for a plain claim."""
        return 4.0 * UNIT * float(self.cost.max()) * size

    def dual_lost(self, dual: float, alpha: Vector, moved: float, induced: Vector, squares: Vector) -> float:
        """By how much plain arithmetic may be wrong about a dual objective near ``dual``, once alpha moved a little."""
        n, k = alpha.shape
        largest = math.sqrt(float(squares.max(initial=0.0)))
        lost: float = 0.0
        sizes: float = abs(dual)
        for column, line in zip(alpha.T, induced, strict=True):
            off, length = gamma(n + 3) * size_by_squares(column, squares) + moved * largest * NEARLY, norm(line)
            lost += off * (length + off)
            sizes += length**2 + (self.scale * float(np.abs(column).sum())) ** 2
        total_size = float(np.abs(alpha).sum())
        steep = STEEPEST if self.loss == "multinomial" else 1.0
        lost += gamma(n + k + 64) * (sizes + total_size) + 64.0 * (k + 4) * UNIT * total_size + steep * moved
        return float(lost)

    def _losses(self, b: Vector, scores: list[Approximate], factor: float) -> tuple[Vector, Vector]:
        """The least and the largest that a row's loss may be: it changes by at most twice the change of any score."""
        rows, n = np.arange(len(self.position)), len(self.position)
        f, wrong = np.empty((n, len(b))), np.zeros(n)
        # Only differences of scores matter: they are taken before anything is rounded.
        high, low = np.empty((n, len(b))), np.empty((n, len(b)))
        for m, score in enumerate(scores):
            high[:, m], low[:, m] = two_sum(score.value, b[m])
            if score.tail is not None:
                low[:, m] += score.tail
            wrong = np.maximum(wrong, score.off)
        base = high[rows, self.position], low[rows, self.position]
        for m in range(len(b)):
            f[:, m], lost = two_sum(high[:, m], -base[0])
            f[:, m] += lost + (low[:, m] - base[1])
        off = 2.0 * wrong + 4.0 * UNIT * np.abs(f).max(axis=1)
        off += 8.0 * UNIT * UNIT * np.abs(high).max(axis=1)  # of the low parts
        off = np.where(f.any(axis=1), off, 2.0 * wrong)
        if self.loss == "crammer_singer":
            raised = f + 1.0
            raised[rows, self.position] = -np.inf
            slack = raised.max(axis=1)
            off += np.where(off > 0.0, 2.0 * UNIT * np.abs(slack), 0.0)
            return np.maximum(slack - factor * off, 0.0), np.maximum(slack + factor * off, 0.0)
        top = f.max(axis=1)
        value = np.log1p(np.maximum(np.exp(f - top[:, None]).sum(axis=1) - 1.0, 0.0)) + top
        roundings = (4.0 * ELEMENTARY + 8.0 + len(b)) * UNIT
        off = factor * (off + roundings * (1.0 + np.abs(value) + np.abs(top)))
        return np.maximum(value - off, 0.0), value + off + VANISHING

    def dual(self, alpha: Vector, induced: list[Approximate], *, factor: float = 1.0) -> Interval:
        """Lower and upper bound of the dual objective of multipliers that are feasible, one column a class."""
        own = alpha[np.arange(len(alpha)), self.position]
        if self.loss == "crammer_singer":
            value = total(own, factor=factor)
        else:
            live = self.cost > 0.0
            cost = self.cost[live, None]
            away = np.maximum(-alpha[live], 0.0)
            away[np.arange(len(away)), self.position[live]] = self.cost[live] - own[live]
            terms = cost * x_log_x(away / cost)
            moving = np.where(own[live, None] > 0.0, away, 0.0)  # a row without multipliers has no rounding
            off = UNIT * float(((2.0 * ELEMENTARY + 8.0) * np.abs(terms) + 4.0 * moving).sum()) * (1.0 + 1e-9)
            value = total(-terms.ravel(), off, factor=factor)
        for part in induced:
            square = square_norm(part.value, float(part.off), factor=factor)
            value = value - Interval(0.5 * square.low, 0.5 * square.high)
        if self.scale:
            for column in alpha.T:
                balance = total(column, factor=factor)
                largest = self.scale * max(abs(balance.low), abs(balance.high))
                value = value - Interval(0.0, 0.5 * largest**2 * (1.0 + 6.0 * factor * UNIT))
        return value

"""Primal and dual objective of all classes of a joint machine, with everything that rounding may have changed.

The same as :mod:`~maxmargin.certificates.terms` for machines whose rows have one score per class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin.certificates.losses import x_log_x
from maxmargin.certificates.rounding import (
    ELEMENTARY,
    NEARLY,
    TINY,
    UNIT,
    Approximate,
    Interval,
    Total,
    gamma,
    lines_sum_to_zero,
    norm,
    square_norm,
    sums_to_zero,
    two_sum,
)
from maxmargin.certificates.terms import FARTHEST, STEEPEST, VANISHING, chunks

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class JointTerms:
    """All classes at once: ½ Σ_m ‖w_m‖² + ½ Σ_m (b_m/scale)² + Σ cost_i ℓ(f_i, y_i); one column of scores a class.

    ℓ is max_m (f_m + [m ≠ y]) − f_y ("crammer_singer") or ln Σ_m exp f_m − f_y ("multinomial").
    """

    loss: str
    position: NDArray[np.intp]
    cost: Vector
    n_classes: int
    scale: float = 0.0

    def primal(self, W: Vector, b: Vector, scores: list[Approximate], *, factor: float = 1.0) -> Interval:
        least, most = Total(factor), Total(factor)
        for part in chunks(len(self.cost)):
            low, high = self.loss_terms(b, [score.of(part) for score in scores], part, factor=factor)
            least.add(low)
            most.add(high)
        return self.penalties(W, b, factor=factor) + self.losses(least.value, most.value, factor=factor)

    def penalties(self, W: Vector, b: Vector, *, factor: float = 1.0) -> Interval:
        """½ Σ ‖w_m‖², and what the biases cost."""
        value = square_norm(W.ravel(), factor=factor).times(0.5)
        return value + square_norm(b / self.scale, factor=2.0 * factor).times(0.5) if self.scale else value

    def loss_terms(
        self, b: Vector, scores: list[Approximate], part: slice, *, factor: float = 1.0
    ) -> tuple[Vector, Vector]:
        """The least and the most that cost ℓ may be, for some rows."""
        least, most = self._losses(b, scores, part, factor)
        return self.cost[part] * least, self.cost[part] * most

    def losses(self, least: Interval, most: Interval, *, factor: float = 1.0) -> Interval:
        """Σ cost ℓ from the sums of its bounds."""
        several = 4.0 * factor * UNIT
        return Interval(max(0.0, least.low * (1.0 - several)), most.high * (1.0 + several))

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

    def dual_lost(
        self, dual: float, alpha: Vector, moved: float, induced: Vector, lengths: list[float], largest: float
    ) -> float:
        """By how much plain arithmetic may be wrong about a dual objective near ``dual``, once alpha moved a little.

        ``lengths`` bound Σ_i |alpha_im| ‖x_i‖ of every class, ``largest`` is the largest ‖x_i‖.
        """
        n, k = alpha.shape
        lost: float = 0.0
        sizes: float = abs(dual)
        for column, line, reach in zip(alpha.T, induced, lengths, strict=True):
            off, length = gamma(n + 3) * reach + moved * largest * NEARLY, norm(line)
            lost += off * (length + off)
            sizes += length**2 + (self.scale * float(np.abs(column).sum())) ** 2
        total_size = float(np.abs(alpha).sum())
        steep = STEEPEST if self.loss == "multinomial" else 1.0
        lost += gamma(n + k + 64) * (sizes + total_size) + 64.0 * (k + 4) * UNIT * total_size + steep * moved
        return float(lost)

    def _losses(self, b: Vector, scores: list[Approximate], part: slice, factor: float) -> tuple[Vector, Vector]:
        """The least and the largest that a row's loss may be: it changes by at most twice the change of any score."""
        position = self.position[part]
        rows, n = np.arange(len(position)), len(position)
        f, wrong = np.empty((n, len(b))), np.zeros(n)
        # Only differences of scores matter: they are taken before anything is rounded.
        high, low = np.empty((n, len(b))), np.empty((n, len(b)))
        for m, score in enumerate(scores):
            high[:, m], low[:, m] = two_sum(score.value, b[m])
            if score.tail is not None:
                low[:, m] += score.tail
            wrong = np.maximum(wrong, score.off)
        base = high[rows, position], low[rows, position]
        for m in range(len(b)):
            f[:, m], lost = two_sum(high[:, m], -base[0])
            f[:, m] += lost + (low[:, m] - base[1])
        off = 2.0 * wrong + 4.0 * UNIT * np.abs(f).max(axis=1)
        off += 8.0 * UNIT * UNIT * np.abs(high).max(axis=1)  # of the low parts
        off = np.where(f.any(axis=1), off, 2.0 * wrong)
        if self.loss == "crammer_singer":
            raised = f + 1.0
            raised[rows, position] = -np.inf
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
        gain, balance = Total(factor), [Total(factor) for _ in range(self.n_classes)]
        for part in chunks(len(alpha)):
            gain.add(*self.gain_terms(alpha[part], part))
            for m, sums in enumerate(balance):
                sums.add(self.balance_terms(alpha[part, m], part))
        return self.dual_of(gain.value, [sums.value for sums in balance], induced, factor=factor)

    def gain_terms(self, alpha: Vector, part: slice) -> tuple[Vector, float]:
        """−cost g(p) of some rows, and by how much they are wrong together."""
        position, own = self.position[part], alpha[np.arange(len(alpha)), self.position[part]]
        if self.loss == "crammer_singer":
            return own, 0.0
        live = self.cost[part] > 0.0
        cost = self.cost[part][live]
        away = np.maximum(-alpha[live], 0.0)
        away[np.arange(len(away)), position[live]] = cost - own[live]
        terms = cost[:, None] * x_log_x(away / cost[:, None])
        moving = np.where(own[live, None] > 0.0, away, 0.0)  # a row without multipliers has no rounding
        off = UNIT * float(((2.0 * ELEMENTARY + 8.0) * np.abs(terms) + 4.0 * moving).sum()) * (1.0 + 1e-9)
        return -terms.ravel(), off

    def balance_terms(self, alpha: Vector, part: slice) -> Vector:
        """alpha_im of some rows and one class, whose sum a penalised bias asks for."""
        return np.ascontiguousarray(alpha) if self.scale else np.empty(0)

    def dual_of(
        self, gain: Interval, balance: list[Interval], induced: list[Approximate], *, factor: float = 1.0
    ) -> Interval:
        """The dual objective from its sums over all rows."""
        value = gain
        for part in induced:
            value = value - square_norm(part.value, float(part.off), factor=factor).times(0.5)
        if self.scale:
            for sums in balance:
                largest = self.scale * max(abs(sums.low), abs(sums.high))
                value = value - Interval(0.0, 0.5 * largest**2 * (1.0 + 6.0 * factor * UNIT))
        return value

    # --- what a verification asks besides ----------------------------------------------------------------------

    def feasible(self, alpha: Vector, part: slice) -> bool:
        """Whether alpha_i = c_i (e_y − p_i) with p_i on the simplex, for some rows, exactly."""
        rows, position = np.arange(len(alpha)), self.position[part]
        own, others = alpha[rows, position], alpha.copy()
        others[rows, position] = 0.0
        return bool((others <= 0.0).all() and (own <= self.cost[part]).all()) and lines_sum_to_zero(alpha)

    def balanced(self, alpha: Vector) -> bool:
        """Whether the multipliers of every class sum to zero, exactly."""
        return all(sums_to_zero(column) for column in alpha.T)

    def coefficients(self, alpha: Vector, part: slice) -> Vector:
        """Of the rows in Σ_i alpha_im x_i."""
        return alpha

    def farthest(
        self, primal: float, dual: float, W: Vector, b: Vector, alpha: Vector, induced: Vector, n_products: int,
        lengths: list[float], largest: float,
    ) -> tuple[float, float]:  # fmt: skip
        """How far a claim from plain arithmetic may be from the exact objectives: little more than what solvers add."""
        above = self.primal_above(primal, W, b, n_products, largest, factor=FARTHEST)
        below = self.dual_lost(dual, alpha, self.most_moved(alpha.size), induced, lengths, largest)
        return above - primal, FARTHEST * below

    def at_most(self) -> float:
        """The objective at W = 0 without biases."""
        return self.null_primal(free=False)

    def null_primal(self, *, free: bool) -> float:
        """The objective at W = 0 without biases; the best ones would leave no less than a part of it."""
        return float(self.cost.sum()) * (1.0 if self.loss == "crammer_singer" else math.log(self.n_classes))

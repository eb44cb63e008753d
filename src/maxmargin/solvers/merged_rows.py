"""The rows of a sparse expansion's problem that differ, and both objectives of coefficients and multipliers there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg.lapack as lapack
from numpy.typing import NDArray

from maxmargin.certificates.rounding import UNIT
from maxmargin.certificates.sparse_expansion import TwoClasses
from maxmargin.errors import InputError
from maxmargin.losses import LOSSES
from maxmargin.problem import Problem
from maxmargin.runtime import Execution
from maxmargin.space import Rows

Vector = NDArray[np.float64]
Chosen = NDArray[np.intp]
Flags = NDArray[np.bool_]

MOST_UNKNOWNS = 6000  # of the equations of the solution
REFINEMENTS = 6
SHIFT = 1e-9  # makes these equations regular; refinements take it away
ON_MARGIN = 1e-7  # a row that misses the margin by less lies on it
ROUNDING = 1e-9  # a slack that may be rounding
LARGEST_COST = 1e150  # in units of the kernel's values


@dataclass(frozen=True, eq=False)
class Pair:
    """Coefficients with their best bias, and multipliers that are feasible: any two of them bound the optimum."""

    alpha: Vector
    b: float
    interval: tuple[float, float]
    primal: float
    beta: Vector
    dual: float
    gap: float


@dataclass(frozen=True, eq=False)
class Merged:
    """The problem in rows that differ, in units in which no value of the kernel and no weight is above 1.

    Equal rows of a class are one row of their weights together: so a weight of k is the same as k repetitions.
    """

    rows: Rows  # of features y_j k(x_i, x_j)
    y: Vector
    weight: Vector
    cost: Vector
    penalty: str
    how: Execution
    live: Chosen  # rows of the problem that cost something
    place: Chosen  # of each of those among the rows here
    first: Chosen  # the first of those that belong together
    largest: float  # value of the kernel: coefficients are multiplied by it
    unit: float  # multipliers and objectives are multiplied by it

    @classmethod
    def of(cls, problem: Problem, penalty: str, gram: Vector, group: Chosen, weight: Vector, how: Execution) -> Merged:
        live = np.flatnonzero(problem.cost > 0.0)
        kinds = 2 * group[live] + (problem.y[live] > 0.0)
        kinds, first, place = np.unique(kinds, return_index=True, return_inverse=True)
        weight, cost = _totals(place, weight[live]), _totals(place, problem.cost[live])
        K, y = gram[np.ix_(kinds // 2, kinds // 2)], np.where(kinds % 2 == 1, 1.0, -1.0)
        largest, heaviest = float(np.abs(K).max()) or 1.0, float(weight.max())
        unit = largest if penalty == "l1" else largest * largest * heaviest
        if not unit * float(cost.sum()) <= LARGEST_COST:
            raise InputError(
                f"the largest value of the kernel, {largest:.2g}, is too large for the total cost, {cost.sum():.2g}, "
                "in float64 arithmetic; scale the columns, for example with sklearn.preprocessing.StandardScaler"
            )
        rows = Rows.of(np.ascontiguousarray(K / largest * y))
        return cls(rows, y, weight / heaviest, cost * unit, penalty, how, live, place, live[first], largest, unit)

    @property
    def n(self) -> int:
        return self.rows.n

    @property
    def linear(self) -> float:
        """Slope of the penalty at 0."""
        return 1.0 if self.penalty == "l1" else 0.0

    @property
    def curvature(self) -> Vector:
        """Of the penalty."""
        return np.zeros(self.n) if self.penalty == "l1" else 1.0 / self.weight

    def slopes(self, beta: Vector) -> Vector:
        """(Qβ)_j."""
        return self.rows.combine(self.y * beta, self.how)

    def pair(self, alpha: Vector, beta: Vector) -> Pair:
        """Both halves made feasible, with their objectives.

        At high costs it is dear that rows on the margin miss it by rounding: the function may be made longer by that.
        """
        scores = self.rows.scores(alpha, self.how)
        interval = LOSSES["hinge"].best_bias(scores, self.y, self.cost)
        b = 0.5 * (interval[0] + interval[1])
        primal, slack = self.objective(alpha, b, scores)
        rounding = float(slack[slack < ROUNDING].max(initial=0.0))
        if rounding > 0.0:
            longer = (1.0 + 4.0 * UNIT) / (1.0 - rounding)
            of_longer, _ = self.objective(longer * alpha, longer * b, longer * scores)
            if of_longer < primal:
                primal, alpha, b = of_longer, longer * alpha, longer * b
                interval = longer * interval[0], longer * interval[1]
        beta = np.clip(beta, 0.0, self.cost)
        above, below = float(beta[self.y > 0.0].sum()), float(beta[self.y < 0.0].sum())
        beta = beta * np.where(self.y > 0.0, min(1.0, below / (above or 1.0)), min(1.0, above / (below or 1.0)))
        slope = self.slopes(beta)
        if self.penalty == "l1":
            beta = beta / max(1.0, float(slope.max()))
            dual = float(beta.sum())
        else:
            dual = float(beta.sum()) - 0.5 * float(self.weight @ np.maximum(slope, 0.0) ** 2)
        if not dual > 0.0:
            beta, dual = np.zeros(self.n), 0.0
        return Pair(alpha, b, interval, primal, beta, dual, self.gap(primal, dual))

    def objective(self, alpha: Vector, b: float, scores: Vector) -> tuple[float, Vector]:
        """Its value, and the slack of every row."""
        slack = np.maximum(0.0, 1.0 - self.y * (scores + b))
        of_alpha = self.linear * alpha + 0.5 * self.curvature * alpha * alpha
        return float(of_alpha.sum()) + float(self.cost @ slack), slack

    def gap(self, primal: float, dual: float) -> float:
        return TwoClasses(self.y, self.weight, self.cost, self.penalty).relative_gap(primal, dual)

    def joined(self, a: Pair, b: Pair) -> Pair:
        """The better half of each."""
        lower, higher = (b if b.primal <= a.primal else a), (b if b.dual >= a.dual else a)
        return replace(lower, beta=higher.beta, dual=higher.dual, gap=self.gap(lower.primal, higher.dual))

    def spread(self, best: Pair, cost: Vector, weight: Vector) -> tuple[Vector, Vector]:
        """Coefficients and multipliers of the problem's rows; with "l1" one of equal rows has all."""
        alpha, beta = np.zeros(len(cost)), np.zeros(len(cost))
        weight, cost, place = weight[self.live], cost[self.live], self.place
        beta[self.live] = np.minimum(cost, best.beta[place] / self.unit * (cost / _totals(place, cost)[place]))
        if self.penalty == "l1":
            alpha[self.first] = best.alpha / self.largest
        else:
            alpha[self.live] = best.alpha[place] / self.largest * (weight / _totals(place, weight)[place])
        return alpha, beta

    # --- the equations of the solution ------------------------------------------------------------------------

    def lowered(self, best: Pair, by: float) -> Vector:
        """Multipliers of "l1" whose slopes stay below 1 by a little, if the equations of the solution have any.

        They prove less by ``by`` Σ α; all multipliers made smaller would prove less by ``by`` Σ β, far more where costs
        are high.
        """
        slack = 1.0 - self.y * (self.rows.scores(best.alpha, self.how) + best.b)
        free, steep = np.abs(slack) <= ON_MARGIN, self.slopes(best.beta) > 1.0 - by
        beta = np.where(free, best.beta, np.where(slack > 0.0, self.cost, 0.0))
        found = self.polished(best.alpha, best.b, beta, (best.alpha > 0.0) | steep, free, lower=by)
        return best.beta if found is None else found.beta

    def polished(
        self, alpha: Vector, b: float, beta: Vector, positive: Flags, free: Flags, *, lower: float = 0.0
    ) -> Pair | None:
        """The pair that follows from which α are positive and which β are inside of their range.

        The slopes R'(α_j) − lower = (Qβ)_j of the former, the margins 1 of the latter and Σ β_i y_i = 0 are linear
        equations in α, b and β. None if there are too many, or they say nothing.
        """
        P, F = np.flatnonzero(positive), np.flatnonzero(free)
        if not len(F) or len(P) + len(F) >= MOST_UNKNOWNS:
            return None
        p, size = len(P), len(P) + 1 + len(F)
        alpha, beta = alpha.copy(), np.where(free, beta, np.where(beta > 0.5 * self.cost, self.cost, 0.0))
        M = np.zeros((size, size))
        M[p + 1 :, :p] = -self.y[F, None] * self.rows.X[np.ix_(F, P)]
        M[p + 1 :, p] = -self.y[F]
        M += M.T
        M.flat[:: size + 1] = np.concatenate([self.curvature[P] + SHIFT, [SHIFT], np.full(len(F), -SHIFT)])
        factor, pivots, info = lapack.dgetrf(M, overwrite_a=1)
        if info != 0:
            return None
        for _ in range(REFINEMENTS):
            stationary = self.linear - lower + self.curvature[P] * alpha[P] - self.slopes(beta)[P]
            margins = self.y[F] * (self.rows.scores(alpha, self.how)[F] + b)
            residual = np.concatenate([stationary, [-float(self.y @ beta)], 1.0 - margins])
            step, _ = lapack.dgetrs(factor, pivots, -residual)
            if not np.isfinite(step).all():
                return None
            alpha[P] += step[:p]
            b += float(step[p])
            beta[F] += step[p + 1 :]
        return self.pair(np.maximum(alpha, 0.0), beta)


def _totals(place: Chosen, values: Vector) -> Vector:
    """Sums of the values at every place."""
    return np.asarray(np.bincount(place, weights=values), dtype=np.float64)

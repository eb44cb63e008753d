"""What a solver claims about its last point: objectives with everything that rounding may have changed.

A solver steers by computed differences; what the user sees, and a certificate verifies, is stated here, once per fit.
The multipliers are first rounded so that they are feasible exactly: with a free bias Σ alpha sign = 0 to the last bit.
Then :class:`~maxmargin.certificates.terms.Terms` bounds both objectives from the products that the solver has;
where those lose too much, products of twice the working precision replace them.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.certificates.losses import arithmetic_of
from maxmargin.certificates.rounding import (
    NEARLY,
    TINY,
    UNIT,
    Approximate,
    exact_combination_off,
    exact_scores_off,
    gamma,
    norm,
)
from maxmargin.certificates.terms import CAREFUL, Terms, most_moved
from maxmargin.problem import Problem
from maxmargin.runtime import Execution

Vector = NDArray[np.float64]

AIM = 0.95  # of the tolerance is what solvers go for: the rest is for rounding and for other ways of adding up
SMALL = 20_000  # numbers in X up to which the best arithmetic costs next to nothing
MATTERS = 0.02  # of the gap: rounding below that is not worth better arithmetic
LENGTHENED = 6  # times at most, each by what is missing, until the margins of a hard margin are certain
MOST_RATIO = 2.0**20  # of the largest multiplier to the one that takes up what is missing from the balance
HALF = 26  # bits: whole numbers of units are added up in two halves
SMALLEST = 1e-280  # multipliers below vanish


@dataclass(frozen=True)
class Stated:
    """A feasible dual point and bounds of both objectives: primal from above, dual from below."""

    alpha: Vector
    primal: float
    dual: float
    gap: float


def terms_of(problem: Problem) -> Terms:
    """The problem as certificates know it."""
    loss = problem.loss
    name = "hinge" if problem.hard else loss.name
    h = arithmetic_of(name, float(getattr(loss, "power", np.nan)), float(getattr(loss, "epsilon", 0.0)))
    assert h is not None
    scale = problem.bias.value if problem.bias.penalised else 0.0
    return Terms(h, problem.sign, problem.target, problem.cost, problem.penalty, scale, problem.hard)


def claim(
    problem: Problem, alpha: Vector, w: Vector, b: float, tol: float, how: Execution, *,
    primal: float, dual: float, induced: Vector,
) -> Stated:  # fmt: skip
    """The strongest claim about multipliers and a hyperplane that their certificate will confirm.

    ``primal``, ``dual`` and ``induced``, Σ alpha sign x, are what the solver's plain arithmetic made of them: they are
    as good as what it loses is little beside the gap.
    """
    statement = _Statement(problem, alpha, w, b, how)
    if problem.nnz > SMALL and not problem.hard and statement.moved <= most_moved(alpha):
        found = statement.plain(primal, dual, induced)
        if statement.excess > 0.0:
            by = 1.0 / (1.0 + statement.excess)
            found = _Statement(problem, by * alpha, w, b, how).plain(primal, None, by * induced)
        rounding = (found.primal - primal) + (dual - found.dual)
        if found.gap <= tol or rounding <= MATTERS * min(found.primal - found.dual, sys.float_info.max):
            return found
    statement = _Statement(problem, alpha, w, b, how)
    found = statement.exact()
    return statement.shrunk().exact() if statement.excess > 0.0 else found


def hard_claim(problem: Problem, alpha: Vector, w: Vector, b: float, how: Execution) -> tuple[Stated, Vector, float]:
    """The claim of the hard margin, and the hyperplane lengthened until every margin is at least 1 for certain.

    The primal value stays infinite where a row is on the wrong side.
    """
    for _ in range(LENGTHENED):
        statement = _Statement(problem, alpha, w, b, how)
        found = statement.exact()
        if np.isfinite(found.primal) or not statement.shortfall < 1.0:
            break
        factor = (1.0 + 8.0 * UNIT) / (1.0 - statement.shortfall)
        w, b = w * factor, b * factor
    return found, w, b


class _Statement:
    """One hyperplane and one dual point, and what can be said of them."""

    def __init__(self, problem: Problem, alpha: Vector, w: Vector, b: float, how: Execution) -> None:
        self.problem, self.w, self.b, self.how = problem, w, b, how
        self.terms = terms_of(problem)
        self.given, self.alpha, self.moved = alpha, alpha, 0.0
        if problem.bias.free and alpha.any():
            self.alpha, self.moved = exactly_balanced(problem, alpha)
        self.excess = 0.0  # by how much a column's slope may exceed 1, with the penalty ‖w‖₁
        self.shortfall = 0.0  # by how much a margin may miss 1, in a hard margin

    def shrunk(self) -> _Statement:
        """The same with multipliers so much smaller that no column's slope exceeds 1."""
        factor = 1.0 - 1.01 * self.excess - 8.0 * UNIT
        return _Statement(self.problem, max(0.0, factor) * self.given, self.w, self.b, self.how)

    def plain(self, primal: float, dual: float | None, induced: Vector) -> Stated:
        """From what plain arithmetic made of both objectives, by few passes; ``dual`` may be unknown."""
        problem, terms, squares = self.problem, self.terms, self.problem.squared_norms
        largest, size = math.sqrt(float(squares.max())), np.abs(self.alpha) if terms.h.lowest < 0.0 else self.alpha
        total_size = float(size.sum()) + self.moved
        # Cauchy and Schwarz: Σ |alpha| ‖x‖ is at most the root of Σ |alpha| times Σ |alpha| ‖x‖².
        length = math.sqrt(total_size * (float(size @ squares) + self.moved * largest**2)) + TINY * total_size
        off = (gamma(problem.n_rows + 3) * length + self.moved * largest) * NEARLY
        high = terms.primal_above(primal, self.w, self.b, problem.space.facts.longest_row, largest, factor=CAREFUL)
        if problem.penalty == "l1":
            steepest = float(np.abs(induced).max(initial=0.0)) + CAREFUL * off
            if steepest > 1.0:
                # Shorter multipliers are rounded once more, and to a grid of their own.
                rounded = 4.0 * CAREFUL * UNIT * (total_size + problem.n_rows * float(size.max())) * largest
                self.excess = steepest * (1.0 + 1e-12) + rounded - 1.0
                return Stated(self.alpha, high, -math.inf, math.inf)
            induced, off = 0.0 * induced, 0.0  # no part of the objective
        if terms.h.boxed:
            low = terms.dual_below(self.alpha, induced, off, factor=CAREFUL)
        elif problem.loss.entropic and dual is not None:
            low = terms.entropy_below(dual, self.alpha, self.moved, induced, off, factor=CAREFUL)
        else:
            low = terms.dual(self.alpha, Approximate(induced, off), factor=CAREFUL).low
        return self._claim(high, low)

    def exact(self) -> Stated:
        """From products of twice the working precision."""
        problem, terms, space, norms = self.problem, self.terms, self.problem.space, np.sqrt(self.problem.squared_norms)
        high, low = space.exact_scores(self.w, self.how)
        induced = space.exact_combine(terms.sign * self.alpha, self.how)
        scores = Approximate(high, exact_scores_off(space.facts.longest_row, norm(self.w), norms), low)
        of_induced = exact_combination_off(self.alpha, induced, norms)
        if problem.penalty == "l1":
            self.excess = float(np.abs(induced).max(initial=0.0)) + CAREFUL * of_induced - 1.0
        if problem.hard:
            self.shortfall = terms.largest_residual(self.b, scores, factor=CAREFUL)
        primal = terms.primal(self.w, self.b, scores, factor=CAREFUL)
        dual = terms.dual(self.alpha, Approximate(induced, of_induced), factor=CAREFUL)
        return self._claim(primal.high, dual.low)

    def _claim(self, primal: float, dual: float) -> Stated:
        """Multipliers that prove nothing are replaced by none at all, whose dual value is 0."""
        alpha = self.alpha
        if not dual >= 0.0:
            alpha, dual = np.zeros_like(alpha), 0.0
        return Stated(alpha, primal, dual, self.problem.relative_gap(primal, dual))


def exactly_balanced(problem: Problem, alpha: Vector) -> tuple[Vector, float]:
    """The same multipliers up to rounding, with Σ alpha sign = 0 exactly; and Σ |change|.

    Examples
    --------
    >>> problem = Problem.from_arrays([[0.0], [1.0], [2.0]], [0, 1, 1], loss="hinge")
    >>> alpha, moved = exactly_balanced(problem, np.array([0.3, 0.1, 0.2]))
    >>> float(alpha[1]) + float(alpha[2]) == float(alpha[0]), moved < 1e-16
    (True, True)
    """
    cost = problem.cost
    upper = np.where(cost > 0.0, np.inf, 0.0) if problem.hard else problem.loss.domain(cost)[1]
    return balanced_exactly(alpha, problem.sign, upper, signed=problem.loss.regression)


def balanced_exactly(alpha: Vector, sign: Vector, upper: Vector, *, signed: bool) -> tuple[Vector, float]:
    """Multipliers between 0 (or −upper, if ``signed``) and ``upper`` with Σ alpha sign = 0 exactly; and Σ |change|.

    All are rounded towards zero to multiples of a unit so small that multipliers at a common bound stay there; one with
    room to both of its bounds takes up what is missing.
    """
    alpha = np.ascontiguousarray(alpha)
    chosen, room, largest, excess = _core.roomiest(alpha, sign, upper)
    if 2.0 * abs(excess) > room or abs(alpha[chosen]) * MOST_RATIO < abs(alpha[largest]):
        chosen = largest
    if abs(alpha[chosen]) < SMALLEST:
        return np.zeros_like(alpha), float(np.abs(alpha).sum())
    unit = float(np.spacing(abs(alpha[chosen]) + 2.0 * abs(excess)))
    coarsest = float(np.spacing(abs(alpha[largest])))
    while unit <= 4.0 * coarsest:
        out, moved = _balanced_on_grid(alpha, sign, upper, chosen, unit, signed=signed)
        if out is not None:
            return out, moved
        unit *= 2.0
    return np.zeros_like(alpha), float(np.abs(alpha).sum())


def _balanced_on_grid(
    alpha: Vector, sign: Vector, upper: Vector, chosen: int, unit: float, *, signed: bool
) -> tuple[Vector | None, float]:
    """Whole numbers of units that balance, and Σ |change|; None if a multiplier would need more than 53 bits."""
    out = np.empty_like(alpha)
    high, low, moved = _core.to_grid(alpha, sign, unit, out)
    missing = (high << HALF) + low  # in units
    if not missing:
        return out, moved * NEARLY
    taken = float(out[chosen] - sign[chosen] * missing * unit)
    if (-upper[chosen] if signed else 0.0) <= taken <= upper[chosen]:
        out[chosen] = taken
    else:
        _take_from_the_largest(out, sign, missing, unit)
    high, low, _ = _core.to_grid(out, sign, unit, np.empty_like(out))
    return (None if (high << HALF) + low else out), (moved + abs(missing) * unit) * NEARLY


def _take_from_the_largest(alpha: Vector, sign: Vector, missing: int, unit: float) -> None:
    """Take so many units from the heavier side, the largest multipliers first."""
    side = 1 if missing > 0 else -1
    for k in np.argsort(-np.abs(alpha)):
        if alpha[k] * sign[k] * side > 0.0:
            part = min(abs(missing), int(abs(alpha[k]) / unit))
            alpha[k] -= side * sign[k] * part * unit
            missing -= side * part
            if not missing:
                return

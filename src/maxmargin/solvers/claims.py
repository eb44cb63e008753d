"""What a solver claims about its last point: objectives with everything that rounding may have changed.

A solver steers by computed differences; what the user sees, and a certificate verifies, is stated here, once per fit.
The multipliers are first rounded so that they are feasible exactly: with a free bias Σ alpha sign = 0 to the last bit.
Then :class:`~maxmargin.certificates.arithmetic.Terms` bounds both objectives from the products that the solver has;
where those lose too much, products of twice the working precision replace them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.certificates.arithmetic import CAREFUL, Terms, arithmetic_of
from maxmargin.certificates.rounding import (
    UNIT,
    Approximate,
    combination_off,
    exact_combination_off,
    exact_scores_off,
    norm,
    scores_off,
    size_of_combination,
)
from maxmargin.problem import Problem
from maxmargin.solution import relative_gap

Vector = NDArray[np.float64]

AIM = 0.95  # of the tolerance is what solvers go for: the rest is for rounding and for other ways of adding up
SMALL = 20_000  # numbers in X up to which the best arithmetic costs next to nothing
MATTERS = 0.02  # of the gap: rounding below that is not worth better arithmetic
LENGTHENED = 6  # times, each by twice what is missing, until the margins of a hard margin are certain
MOST_RATIO = 2.0**20  # of the largest multiplier to the one that takes up what is missing from the balance
SMALLEST = 1e-280  # multipliers below vanish


@dataclass(frozen=True)
class Claim:
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
    problem: Problem, alpha: Vector, w: Vector, b: float, tol: float, n_threads: int, *,
    scores: Vector | None = None, induced: Vector | None = None,
) -> Claim:  # fmt: skip
    """The strongest claim about feasible multipliers and a hyperplane that its certificate will confirm.

    ``scores`` are ⟨w, x_i⟩ and ``induced`` is Σ alpha sign x, as the core's plain products say; they are computed where
    they are not given.
    """
    statement = _Statement(problem, alpha, w, b, n_threads)
    found = statement.quick(scores, induced)
    if statement.excess > 0.0:
        statement = statement.shrunk()
        found = statement.quick(scores, None)
    if problem.nnz <= SMALL or (found.gap > tol and not statement.rounding <= MATTERS * (found.primal - found.dual)):
        statement = _Statement(problem, alpha, w, b, n_threads)
        exact = statement.exact()
        exact = statement.shrunk().exact() if statement.excess > 0.0 else exact
        found = exact if exact.gap <= found.gap else found
    return found


def hard_claim(problem: Problem, alpha: Vector, w: Vector, b: float, n_threads: int) -> tuple[Claim, Vector, float]:
    """The claim of the hard margin, and the hyperplane lengthened until every margin is at least 1 for certain."""
    for _ in range(LENGTHENED):
        statement = _Statement(problem, alpha, w, b, n_threads)
        found = statement.exact()
        if np.isfinite(found.primal):
            break
        factor = 1.0 + 2.0 * statement.shortfall + 8.0 * UNIT
        w, b = w * factor, b * factor
    return found, w, b


class _Statement:
    """One hyperplane and one dual point, and what can be said of them."""

    def __init__(self, problem: Problem, alpha: Vector, w: Vector, b: float, n_threads: int) -> None:
        self.problem, self.w, self.b, self.n_threads = problem, w, b, n_threads
        self.terms, self.norms = terms_of(problem), problem.norms
        self.given = alpha
        self.alpha = exactly_balanced(problem, alpha) if problem.bias.free and alpha.any() else alpha
        self.rounding = 0.0  # of both objectives
        self.excess = 0.0  # by how much a column's slope may exceed 1, with the penalty ‖w‖₁
        self.shortfall = 0.0  # by how much a margin may miss 1, in a hard margin

    def shrunk(self) -> _Statement:
        """The same with multipliers so much smaller that no column's slope exceeds 1."""
        factor = 1.0 - 1.01 * self.excess - 8.0 * UNIT
        return _Statement(self.problem, max(0.0, factor) * self.given, self.w, self.b, self.n_threads)

    def quick(self, scores: Vector | None, induced: Vector | None) -> Claim:
        rows = self.problem.rows
        if scores is None:
            scores = np.empty(self.problem.n_rows)
            _core.scores(rows, self.w, 0.0, scores, self.n_threads)
        moved = 0.0
        if induced is None:
            induced = np.empty(self.problem.n_cols)
            _core.combine(rows, self.terms.sign * self.alpha, induced, self.n_threads)
        else:
            moved = size_of_combination(self.alpha - self.given, self.norms)
        off = combination_off(self.problem.n_rows, self.given, self.norms) + moved
        size = scores_off(self.problem.longest_row, norm(self.w), self.norms)
        return self._claim(Approximate(scores, size), Approximate(induced, off))

    def exact(self) -> Claim:
        """The same with products of twice the working precision."""
        problem, rows, norms = self.problem, self.problem.rows, self.norms
        high, low, induced = np.empty(problem.n_rows), np.empty(problem.n_rows), np.empty(problem.n_cols)
        _core.compensated_scores(rows, self.w, high, low, self.n_threads)
        _core.compensated_combine(rows, self.terms.sign * self.alpha, induced, self.n_threads)
        off = exact_scores_off(problem.longest_row, norm(self.w), norms)
        of_induced = exact_combination_off(self.alpha, induced, norms)
        return self._claim(Approximate(high, off, low), Approximate(induced, of_induced))

    def _claim(self, scores: Approximate, induced: Approximate) -> Claim:
        primal = self.terms.primal(self.w, self.b, scores, factor=CAREFUL)
        dual = self.terms.dual(self.alpha, induced, factor=CAREFUL)
        self.rounding = primal.width + dual.width
        if self.problem.penalty == "l1":
            self.excess = float(np.abs(induced.value).max(initial=0.0)) + CAREFUL * float(induced.off) - 1.0
        if self.problem.hard:
            self.shortfall = self.terms.largest_residual(self.b, scores, factor=CAREFUL)
        if not dual.low >= 0.0:  # nothing is a better dual point
            gap = relative_gap(primal.high, 0.0, self.problem.null_primal)
            return Claim(np.zeros_like(self.alpha), primal.high, 0.0, gap)
        gap = relative_gap(primal.high, dual.low, self.problem.null_primal)
        return Claim(self.alpha, primal.high, dual.low, gap)


def exactly_balanced(problem: Problem, alpha: Vector) -> Vector:
    """The same multipliers up to rounding, with Σ alpha sign = 0 exactly.

    All are rounded towards zero to multiples of a unit so small that multipliers at a common bound stay there; one with
    room to both of its bounds takes up what is missing.

    Examples
    --------
    >>> problem = Problem.from_arrays([[0.0], [1.0], [2.0]], [0, 1, 1], loss="hinge")
    >>> alpha = exactly_balanced(problem, np.array([0.3, 0.1, 0.2]))
    >>> float(alpha[1]) + float(alpha[2]) == float(alpha[0])
    True
    """
    sign, cost = problem.sign, problem.cost
    lower, upper = (0.0 * cost, np.where(cost > 0.0, np.inf, 0.0)) if problem.hard else problem.loss.domain(cost)
    size = np.abs(alpha)
    room = np.minimum(size, upper - size)
    chosen, excess = int(room.argmax()), abs(float(alpha @ sign))
    if 2.0 * excess > room[chosen] or size[chosen] * MOST_RATIO < size.max():
        chosen = int(size.argmax())
    if size[chosen] < SMALLEST:
        return np.zeros_like(alpha)
    unit = float(np.spacing(size[chosen] + 2.0 * excess))
    alpha = np.trunc(alpha / unit) * unit
    high, low = _core.grid_sum(alpha * sign, unit)
    missing = (high << 26) + low  # in units
    if not missing:
        return alpha
    taken = float(alpha[chosen] - sign[chosen] * missing * unit)
    if lower[chosen] <= taken <= upper[chosen]:
        alpha[chosen] = taken
        return alpha
    side = 1.0 if missing > 0 else -1.0
    for k in np.argsort(-np.abs(alpha)):
        if alpha[k] * sign[k] * side > 0.0:
            part = min(abs(missing), int(abs(alpha[k]) / unit))
            alpha[k] -= side * sign[k] * part * unit
            missing -= int(side) * part
            if not missing:
                break
    return alpha

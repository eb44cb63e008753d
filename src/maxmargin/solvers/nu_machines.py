"""Machines whose margin, tube or threshold is found by a share ν of the weight, as steps on pairs see them.

The objectives are those of :mod:`~maxmargin.certificates.nu`. In β = sign·alpha all of them are ½ βᵀKβ + linearᵀβ over
a box, with two sums that stay what they are: of each class, or of the multipliers on either side of a tube. At given
scores the best offsets are weighted order statistics.

References
----------
Schölkopf, Smola, Williamson, Bartlett: New support vector algorithms, 2000. Schölkopf, Platt, Shawe-Taylor, Smola,
Williamson: Estimating the support of a high-dimensional distribution, 2001. Tax, Duin: Support vector data
description, 2004. Chang, Lin: Training ν-support vector classifiers, 2001.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.certificates.kernel_rounding import value_off
from maxmargin.certificates.nu import NuTerms, nu_claim, nu_terms
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.runtime import Execution
from maxmargin.solution import Solution, relative_gap
from maxmargin.solvers.claims import balanced_exactly
from maxmargin.solvers.kernel_claims import StatedExpansion, additions_of, sizes_of
from maxmargin.solvers.kernel_point import KernelPoint

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class NuProblem:
    """Rows in a kernel's space, what is asked of them, and the share ν.

    Attributes
    ----------
    kind : "nu_hinge", "nu_tube", "one_class" or "ball".
    y : signs of classes, numbers to approximate, or ones.
    cost : upper bounds of the multipliers.
    """

    space: KernelRows
    kind: str
    y: Vector
    cost: Vector
    nu: float

    @property
    def n_rows(self) -> int:
        return self.space.n

    def part(self, chosen: NDArray[np.intp]) -> NuProblem:
        """Of some rows."""
        return replace(self, space=self.space.take(chosen), y=self.y[chosen], cost=self.cost[chosen])


@dataclass(frozen=True, repr=False)
class NuSolution(Solution):
    """A solution with the margin or threshold ``rho``, or the half-width ``epsilon`` of the tube, that was found."""

    rho: float = math.nan
    epsilon: float = math.nan


def weighted_split(values: Vector, weight: Vector, above: float) -> tuple[float, float]:
    """The interval of all r with Σ weight of values above r ≤ ``above`` ≤ Σ weight of values at r or above.

    Examples
    --------
    >>> weighted_split(np.array([3.0, 1.0, 2.0]), np.ones(3), 1.0)
    (2.0, 3.0)
    """
    order = np.argsort(-values)
    sums, sorted_values = np.cumsum(weight[order]), values[order]
    slack = 1e-12 * float(sums[-1])
    first = int(np.searchsorted(sums, above - slack))
    last = int(np.searchsorted(sums, above + slack, side="right"))
    size = len(values) - 1
    return float(sorted_values[min(last, size)]), float(sorted_values[min(first, size)])


class NuDual:
    """The quadratic of a machine with a share ν; rows of a classifier are sorted by class."""

    tube = 0.0
    ridge: Vector | None = None

    def __init__(self, problem: NuProblem) -> None:
        self.problem, self.space, self.kind = problem, problem.space, problem.kind
        cost, n = problem.cost, problem.n_rows
        self.total = problem.nu * math.fsum(cost.tolist())  # νT
        self.copies = 2 if self.kind == "nu_tube" else 1
        self.sign = problem.y if self.kind == "nu_hinge" else np.ones(n)
        self.linear = np.zeros(n)
        if self.kind == "nu_tube":
            self.linear = np.tile(-problem.y, 2)
            self.lower, self.upper = np.concatenate([np.zeros(n), -cost]), np.concatenate([cost, np.zeros(n)])
            self.group_end = np.array([n, 2 * n], dtype=np.int64)
            return
        self.lower, self.upper = np.where(self.sign > 0.0, 0.0, -cost), np.where(self.sign > 0.0, cost, 0.0)
        self.group_end = np.array([n], dtype=np.int64)
        if self.kind == "nu_hinge":
            self.group_end = np.array([np.count_nonzero(self.sign < 0.0), n], dtype=np.int64)
        if self.kind == "ball":
            self.linear = -0.5 * self.total * self.space.diagonal

    # --- where it begins --------------------------------------------------------------------------------------

    def start(self, alpha: Vector | None) -> Vector:
        """Multipliers that fill the box row by row, or given ones with their sums corrected."""
        if alpha is not None:
            given = np.concatenate([np.maximum(alpha, 0.0), np.maximum(-alpha, 0.0)]) if self.copies == 2 else alpha
        else:
            given = None
        size, out, begin = self.upper - self.lower, np.empty(len(self.lower)), 0
        wanted = self.total / len(self.group_end)
        for end in self.group_end:
            group = slice(begin, int(end))
            order = self._order(group) if given is None else np.argsort(-given[group], kind="stable")
            out[group] = _filled(size[group], order, wanted, None if given is None else given[group])
            begin = int(end)
        return np.where(self.upper > 0.0, out, -out)

    def _order(self, group: slice) -> NDArray[np.intp]:
        """Without anything known: rows far from the mean of all first where there are no labels."""
        if self.kind in ("one_class", "ball"):
            near = self.space.rough_scores(np.full(self.space.n, 1.0 / self.space.n), Execution(1))
            return np.argsort(near - 0.5 * self.space.diagonal if self.kind == "ball" else near, kind="stable")
        return np.arange(group.stop - group.start)

    def coefficients(self, beta: Vector) -> Vector:
        return beta if self.copies == 1 else beta[: self.space.n] + beta[self.space.n :]

    # --- objectives -------------------------------------------------------------------------------------------

    def point(self, beta: Vector, scores: Vector, sizes: Vector | None = None) -> KernelPoint:
        problem, c = self.problem, self.coefficients(beta)
        square, cost = float(c @ scores), problem.cost
        if self.kind == "nu_tube":
            b, interval, size, loss = self._tube(scores)
            dual = float(c @ problem.y) - 0.5 * square
        elif self.kind == "nu_hinge":
            b, interval, size, loss = self._margin(scores)
            dual = -0.5 * square
        else:
            lifted = scores + self.linear
            interval = weighted_split(-lifted, cost, self.total)
            size, b = -0.5 * (interval[0] + interval[1]), 0.0
            loss = float(cost @ np.maximum(0.0, size - lifted)) - self.total * size
            interval = (0.0, 0.0)
            dual = -float(self.linear @ c) - 0.5 * square
        primal = 0.5 * square + loss
        gap = relative_gap(primal, dual, 0.0)
        return KernelPoint(
            beta.copy(), scores, b, interval, primal, dual, gap, size, exact=sizes is not None, sizes=sizes
        )

    def _margin(self, scores: Vector) -> tuple[float, tuple[float, float], float, float]:
        """b, its interval, ρ, and Σ c max(0, ρ − y (f + b)) − νT ρ: each class has a threshold of its own."""
        cost, ends = self.problem.cost, []
        for sign in (1.0, -1.0):
            own = self.sign == sign
            low, high = weighted_split(-sign * scores[own], cost[own], 0.5 * self.total)
            ends.append((-high, -low))  # of ρ ∓ b
        plus, minus = (0.5 * (low + high) for low, high in ends)
        rho, b = 0.5 * (plus + minus), 0.5 * (minus - plus)
        if rho < 0.0:
            rho, b = 0.0, b
        interval = 0.5 * (ends[1][0] - ends[0][1]), 0.5 * (ends[1][1] - ends[0][0])
        loss = float(cost @ np.maximum(0.0, rho - self.sign * (scores + b))) - self.total * rho
        return b, interval, rho, loss

    def _tube(self, scores: Vector) -> tuple[float, tuple[float, float], float, float]:
        """b, its interval, ε, and Σ c max(0, |r − b| − ε) + νT ε."""
        r, cost = self.problem.y - scores, self.problem.cost
        top, bottom = weighted_split(r, cost, 0.5 * self.total), weighted_split(-r, cost, 0.5 * self.total)
        high, low = 0.5 * (top[0] + top[1]), -0.5 * (bottom[0] + bottom[1])
        b, size = 0.5 * (high + low), max(0.0, 0.5 * (high - low))
        interval = 0.5 * (top[0] - bottom[1]), 0.5 * (top[1] - bottom[0])
        loss = float(cost @ np.maximum(0.0, np.abs(r - b) - size)) + self.total * size
        return b, interval, size, loss

    # --- what is claimed --------------------------------------------------------------------------------------

    def stated(self, point: KernelPoint, tol: float, *, definite: bool) -> StatedExpansion:
        """The claim about a point with exact scores."""
        problem, space = self.problem, self.space
        assert point.sizes is not None
        alpha, moved = self.sign * self.coefficients(point.beta), 0.0
        if self.kind in ("nu_hinge", "nu_tube"):
            alpha, moved = balanced_exactly(alpha, self.sign, problem.cost, signed=self.kind == "nu_tube")
        terms: NuTerms = nu_terms(
            self.kind, problem.cost, problem.nu, point.offset, problem.y if self.kind.startswith("nu_") else None
        )
        own = own_off = None
        if self.kind == "ball":
            own, sizes = space.diagonal, sizes_of(space, alpha)
            own_off = value_off(space.kernel.structure(), replace(sizes, largest=sizes.squares, centred=0.0), own)
        primal, dual = nu_claim(
            terms, space.kernel.structure(), alpha, point.b, point.scores, point.sizes, sizes_of(space, alpha), own=own,
            own_off=own_off, definite=definite, moved=moved,
            additions=additions_of(space, int(np.count_nonzero(alpha))),
        )  # fmt: skip
        gap = relative_gap(primal, dual, 0.0) if definite else math.nan
        return StatedExpansion(alpha, primal, dual, gap, point.b)

    def solution(self, point: KernelPoint, **fields: Any) -> NuSolution:
        """What the solver answers."""
        tube = self.kind == "nu_tube"
        return NuSolution(**fields, rho=math.nan if tube else point.offset, epsilon=point.offset if tube else math.nan)


def _filled(size: Vector, order: NDArray[np.intp], wanted: float, given: Vector | None) -> Vector:
    """Numbers from 0 to ``size`` with the sum wanted: given ones scaled or filled up, or the first in order full."""
    out = np.zeros(len(size)) if given is None else np.clip(given, 0.0, size)
    total = float(out.sum())
    if total > wanted:
        return np.asarray(out * (wanted / total))
    room = (size - out)[order]
    before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
    out[order] += np.clip(wanted - total - before, 0.0, room)
    return out

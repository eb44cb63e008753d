"""The dual of a machine with a kernel as steps on pairs see it: a quadratic over a box whose groups keep their sums.

Solves
    minimise   ½ βᵀKβ + ½ Σ ridge_i β_i² + Σ linear_i β_i + tube Σ |β_i|
    subject to lower ≤ β ≤ upper,  Σ β = 0 (of every group: what it was at the start)

in β = sign·alpha, the coefficients of w = Σ β_i φ(x_i). A regression has one signed variable per row, never two.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem import Problem
from maxmargin.solution import Solution
from maxmargin.solvers.kernel_claims import StatedExpansion, expansion_stated
from maxmargin.solvers.kernel_point import KernelPoint
from maxmargin.solvers.nu_machines import NuDual, NuProblem
from maxmargin.solvers.points import make_feasible

Vector = NDArray[np.float64]


class PairProblem(Protocol):
    """Numbers of the quadratic; every array has one entry per variable."""

    problem: Any
    space: KernelRows
    sign: Vector  # of every row: beta = sign alpha
    copies: int  # variables of a row: variable v is about row v modulo the number of rows
    linear: Vector
    lower: Vector
    upper: Vector
    ridge: Vector | None
    tube: float
    group_end: NDArray[np.int64]

    def start(self, alpha: Vector | None) -> Vector:
        """A feasible beta, from multipliers if there are any."""
        ...

    def coefficients(self, beta: Vector) -> Vector:
        """Of the rows."""
        ...

    def point(self, beta: Vector, scores: Vector, sizes: Vector | None) -> KernelPoint:
        """Both objectives, at the best offsets."""
        ...

    def stated(self, point: KernelPoint, tol: float, *, definite: bool) -> StatedExpansion:
        """The claim about a point with exact scores."""
        ...

    def solution(self, point: KernelPoint, **fields: Any) -> Solution:
        """What the solver answers."""
        ...


class BoxDual:
    """Of a loss whose dual is a box: hinges and tubes, and their squares."""

    copies: int = 1
    problem: Problem
    space: KernelRows
    sign: Vector
    linear: Vector
    lower: Vector
    upper: Vector
    tube: float
    ridge: Vector | None

    def __init__(self, problem: Problem) -> None:
        box, sign, target = problem.box, problem.sign, problem.target
        assert isinstance(problem.space, KernelRows)
        self.problem, self.space, self.sign = problem, problem.space, sign
        self.linear = -sign * target
        self.lower = np.where(sign > 0.0, box.lower, -box.upper)
        self.upper = np.where(sign > 0.0, box.upper, -box.lower)
        self.ridge = np.ascontiguousarray(box.diagonal) if np.any(box.diagonal) else None
        self.tube = box.tube
        self.group_end = np.array([problem.n_rows], dtype=np.int64)

    def start(self, alpha: Vector | None) -> Vector:
        if alpha is None:
            return np.zeros(self.problem.n_rows)
        return np.ascontiguousarray(self.sign * make_feasible(self.problem, alpha))

    def coefficients(self, beta: Vector) -> Vector:
        return beta

    def point(self, beta: Vector, scores: Vector, sizes: Vector | None = None) -> KernelPoint:
        problem = self.problem
        square, alpha = float(beta @ scores), self.sign * beta
        interval = problem.loss.best_bias(scores, problem.y, problem.cost)
        b = 0.5 * (interval[0] + interval[1])
        primal = problem.objective(0.5 * square, scores + b, b)
        gain = float(alpha @ problem.target) - self.tube * float(np.abs(alpha).sum())
        of_ridge = 0.5 * float(self.ridge @ (beta * beta)) if self.ridge is not None else 0.0
        dual = gain - of_ridge - 0.5 * square
        gap = problem.relative_gap(primal, dual)
        return KernelPoint(beta.copy(), scores, b, interval, primal, dual, gap, exact=sizes is not None, sizes=sizes)

    def stated(self, point: KernelPoint, tol: float, *, definite: bool) -> StatedExpansion:
        assert point.sizes is not None
        alpha = self.sign * point.beta
        return expansion_stated(self.problem, alpha, point.b, point.scores, point.sizes, tol, definite=definite)

    def solution(self, point: KernelPoint, **fields: Any) -> Solution:
        return Solution(**fields)


def pair_problem(problem: Any) -> tuple[PairProblem, NDArray[np.intp] | None]:
    """The quadratic of the rows that have a cost, in an order that suits it, and which rows they are; None: all."""
    is_nu = isinstance(problem, NuProblem)
    live: NDArray[np.intp] | None = None
    if not float(problem.cost.min()) > 0.0:
        live = np.flatnonzero(problem.cost > 0.0)
    if is_nu and problem.kind == "nu_hinge" and (np.diff(problem.y) < 0.0).any():
        among = np.arange(problem.n_rows) if live is None else live
        live = among[np.argsort(problem.y[among], kind="stable")]
    if live is not None and is_nu:
        problem = problem.part(live)
    elif live is not None:
        problem = replace(problem, space=problem.space.take(live), y=problem.y[live], cost=problem.cost[live])
    return (NuDual(problem) if is_nu else BoxDual(problem)), live

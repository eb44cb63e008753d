"""The dual of a machine with a kernel as steps on pairs see it: a quadratic over a box whose groups keep their sums.

Solves
    minimise   ½ βᵀKβ + ½ Σ ridge_i β_i² + Σ linear_i β_i + tube Σ |β_i|
    subject to lower ≤ β ≤ upper,  Σ β = 0 (of every group: what it was at the start)

in β = sign·alpha, the coefficients of w = Σ β_i φ(x_i). A regression has one signed variable per row, never two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem import Problem
from maxmargin.solvers.points import make_feasible

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class KernelPoint:
    """Multipliers, their scores K c without the bias, and both objectives.

    ``exact`` scores are those of float64 values; ``sizes`` are then Σ_j |c_j k_ij|, which bound their rounding.
    """

    beta: Vector
    scores: Vector
    b: float
    bias_interval: tuple[float, float]
    primal: float
    dual: float
    gap: float
    offset: float = 0.0  # of a nu-machine: its margin, or the half-width of its tube
    exact: bool = False
    sizes: Vector | None = None


class PairProblem(Protocol):
    """Numbers of the quadratic; every array has one entry per variable."""

    problem: Any
    space: KernelRows
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


class BoxDual:
    """Of a loss whose dual is a box: hinges and tubes, and their squares."""

    copies = 1

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


def without_idle_rows(problem: Problem) -> tuple[Problem, NDArray[np.intp] | None]:
    """The problem of the rows that have a cost, and which they are; None: all."""
    if float(problem.cost.min()) > 0.0:
        return problem, None
    live = np.flatnonzero(problem.cost > 0.0)
    space = problem.space.take(live)
    return replace(problem, space=space, y=problem.y[live], cost=problem.cost[live]), live

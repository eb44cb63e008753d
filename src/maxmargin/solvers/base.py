"""What every solver shares: its contract, and turning any dual point into a certified hyperplane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.problem import Problem
from maxmargin.runtime import Watch
from maxmargin.solution import History, Solution, Status, relative_gap

Vector = NDArray[np.float64]


class Solver(Protocol):
    """Problem in, Solution out. ``start`` is a dual point to continue from."""

    name: str

    def solve(self, problem: Problem, *, start: Vector | None = None, watch: Watch | None = None) -> Solution: ...


@dataclass(frozen=True)
class Point:
    """A feasible dual point and the best hyperplane it induces: w = Σ alpha_i y_i x_i, b optimal for w."""

    alpha: Vector
    w: Vector
    b: float
    bias_interval: tuple[float, float]
    primal: float
    dual: float
    gap: float


def make_feasible(problem: Problem, alpha: Vector) -> Vector:
    """Clip to the box, then scale down the heavier class so that Σ alpha y = 0."""
    upper, _ = problem.loss.dual_box(problem.cost)
    alpha = np.clip(alpha, 0.0, upper)
    if problem.bias.free:
        plus = problem.y > 0
        heavy, light = float(alpha[plus].sum()), float(alpha[~plus].sum())
        if heavy > light:
            alpha[plus] *= light / heavy
        elif light > heavy:
            alpha[~plus] *= heavy / light
    return alpha


def recover(problem: Problem, alpha: Vector, n_threads: int) -> Point:
    """The hyperplane of a dual point, with both objective values; always certified, whatever ``alpha`` is."""
    alpha = make_feasible(problem, alpha)
    w = np.empty(problem.n_cols)
    coefficient = alpha * problem.y
    _core.combine(problem.rows, coefficient, w, n_threads)
    bias = problem.bias
    b = bias.value**2 * float(coefficient.sum()) if bias.penalised else 0.0
    interval = (b, b)
    scores = coefficient  # its memory is free now
    _core.scores(problem.rows, w, b, scores, n_threads)
    if bias.free:
        interval = problem.loss.best_bias(scores, problem.y, problem.cost)
        b = 0.5 * (interval[0] + interval[1])
        scores += b
    half_norm = 0.5 * float(w @ w)
    primal = problem.objective(half_norm, scores, b)
    penalty = 0.5 * (b / bias.value) ** 2 if bias.penalised else 0.0
    dual = -half_norm - penalty - dual_loss(problem, alpha)
    return Point(alpha, w, b, interval, primal, dual, relative_gap(primal, dual, problem.null_primal))


def dual_loss(problem: Problem, alpha: Vector) -> float:
    """Σ c_i ℓ*(alpha_i / c_i), rows of cost 0 left out."""
    cost = problem.cost
    share = np.divide(alpha, cost, out=np.zeros_like(alpha), where=cost > 0.0)
    return float(cost @ problem.loss.conjugate(share, problem.y))


def better(a: Point | None, b: Point) -> Point:
    """The point with the smaller gap."""
    return b if a is None or b.gap <= a.gap else a


def as_solution(
    point: Point, status: Status, history: History, n_iter: int, watch: Watch, solver: str, reason: str
) -> Solution:
    history.add(n_iter, watch.seconds, point.gap, "certified", certified=True)
    return Solution(
        w=point.w,
        b=point.b,
        alpha=point.alpha,
        primal=point.primal,
        dual=point.dual,
        gap=point.gap,
        status=status,
        history=history,
        n_iter=n_iter,
        seconds=watch.seconds,
        bias_interval=point.bias_interval,
        solver=solver,
        reason=reason,
    )

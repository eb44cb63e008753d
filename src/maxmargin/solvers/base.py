"""What every solver shares: its contract, and turning any dual point into a certified hyperplane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.problem import Problem
from maxmargin.runtime import Watch
from maxmargin.solution import History, Solution, Status, relative_gap

Vector = NDArray[np.float64]


class Solver(Protocol):
    """Problem in, Solution out. ``start`` is a dual point to continue from."""

    @property
    def name(self) -> str: ...

    def solve(self, problem: Problem, *, start: Vector | None = None, watch: Watch | None = None) -> Solution: ...


@dataclass(frozen=True)
class Point:
    """A feasible dual point and the best hyperplane it induces: w = Σ alpha_i y_i x_i, b optimal for w.

    ``gap`` has no floor: solvers aim at it even where the optimum is tiny beside the objective at w = 0.
    """

    alpha: Vector
    w: Vector
    b: float
    bias_interval: tuple[float, float]
    primal: float
    dual: float
    gap: float


def make_feasible(problem: Problem, alpha: Vector) -> Vector:
    """Clip to the box, then make Σ alpha y = 0: by one free multiplier if it can, else by scaling a class down."""
    upper, _ = problem.loss.dual_box(problem.cost)
    alpha = np.clip(alpha, 0.0, upper)
    if not problem.bias.free:
        return alpha
    excess = float(alpha @ problem.y)
    heavy = problem.y > 0 if excess > 0.0 else problem.y < 0
    room = np.where(heavy, np.minimum(alpha, upper - alpha), 0.0)
    roomiest = int(room.argmax())
    if abs(excess) <= 1e-3 * room[roomiest]:
        alpha[roomiest] -= abs(excess)  # multipliers at a bound stay exactly there
    elif excess != 0.0:
        total = float(alpha[heavy].sum())
        alpha[heavy] *= (total - abs(excess)) / total
    return alpha


def recover(problem: Problem, alpha: Vector, n_threads: int, w: Vector | None = None) -> Point:
    """The hyperplane of a dual point, with both objective values; always certified, whatever ``alpha`` is.

    ``w`` is the solver's own idea of Σ alpha y x. Where that sum cancels so much that rounding spoils it (columns
    of very large scale), ``w`` is used instead if it is better and differs by no more than rounding can explain.
    """
    alpha = make_feasible(problem, alpha)
    induced = np.empty(problem.n_cols)
    coefficient = alpha * problem.y
    _core.combine(problem.rows, coefficient, induced, n_threads)
    signed_sum = float(coefficient.sum())
    scale = problem.bias.value if problem.bias.penalised else 0.0
    dual = -0.5 * float(induced @ induced) - 0.5 * (scale * signed_sum) ** 2 - dual_loss(problem, alpha)
    b, interval, primal = hyperplane(problem, induced, scale**2 * signed_sum, n_threads)
    if w is not None and primal - dual > 1e-13 * abs(primal) and _spoilt_by_rounding(problem, alpha, induced, w):
        other = hyperplane(problem, w, scale**2 * signed_sum, n_threads)
        if other[2] < primal:
            induced, (b, interval, primal) = w.copy(), other
    return Point(alpha, induced, b, interval, primal, dual, relative_gap(primal, dual, 0.0))


def hyperplane(problem: Problem, w: Vector, b: float, n_threads: int) -> tuple[float, tuple[float, float], float]:
    """Best bias for w (``b`` itself unless the bias is free), the interval of best ones, and the primal value."""
    interval, scores = (b, b), np.empty(problem.n_rows)
    _core.scores(problem.rows, w, 0.0, scores, n_threads)
    if problem.bias.free:
        interval = problem.loss.best_bias(scores, problem.y, problem.cost)
        b = 0.5 * (interval[0] + interval[1])
    scores += b
    return b, interval, problem.objective(0.5 * float(w @ w), scores, b)


def _spoilt_by_rounding(problem: Problem, alpha: Vector, induced: Vector, w: Vector) -> bool:
    """Whether rounding of the sum matters beside w, and explains the whole difference from w."""
    rounding = 32.0 * float(np.finfo(np.float64).eps) * float(alpha @ np.sqrt(problem.squared_norms))
    size = float(np.linalg.norm(w))
    return 1e-11 * size <= rounding and float(np.linalg.norm(w - induced)) <= max(rounding, 1e-7 * size)


def dual_loss(problem: Problem, alpha: Vector) -> float:
    """Σ c_i ℓ*(alpha_i / c_i), rows of cost 0 left out."""
    cost = problem.cost
    share = np.divide(alpha, cost, out=np.zeros_like(alpha), where=cost > 0.0)
    return float(cost @ problem.loss.conjugate(share, problem.y))


def better(a: Point | None, b: Point) -> Point:
    """The point with the smaller gap."""
    return b if a is None or b.gap <= a.gap else a


def as_solution(
    problem: Problem, point: Point, status: Status, tol: float, history: History, n_iter: int, watch: Watch, name: str,
    reason: str,
) -> Solution:  # fmt: skip
    """The answer with its gap as everybody else sees it; CONVERGED if that is at most ``tol``."""
    if point.gap > 1.0:  # stopped so early that w = 0 is better
        point = better(point, recover(problem, np.zeros(problem.n_rows), 1))
    gap = relative_gap(point.primal, point.dual, problem.null_primal)
    if gap <= tol and status is not Status.INTERRUPTED:
        status = Status.CONVERGED
    elif gap > tol and status is Status.CONVERGED:
        status = Status.NUMERICAL_LIMIT
    history.add(n_iter, watch.seconds, gap, "certified", certified=True)
    return Solution(
        w=point.w,
        b=point.b,
        alpha=point.alpha,
        primal=point.primal,
        dual=point.dual,
        gap=gap,
        status=status,
        history=history,
        n_iter=n_iter,
        seconds=watch.seconds,
        bias_interval=point.bias_interval,
        solver=name,
        reason=reason,
    )

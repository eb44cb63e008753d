"""Turning any dual point into a feasible one with a hyperplane, and both objectives: the point that steers a solver."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from maxmargin.problem import Problem
from maxmargin.runtime import Execution
from maxmargin.solution import Solution
from maxmargin.solvers.claims import Stated, claim

Vector = NDArray[np.float64]
PLAIN = Execution()  # one thread, no interrupts

LOOSE = 1e-5  # who asks for less is in a hurry
USABLE = 1e6  # times the objective of w = 0: a hyperplane above that was thrown off its way by rounding
LITTLE = 1e-3  # of the room of a multiplier, which can take that up; of the gap, which is not worth a pass
ROUNDING = 1e-12  # a relative gap that no hyperplane makes smaller
ROUGH = 0.5  # a relative gap above which a point's two halves hardly belong together


@dataclass(frozen=True)
class Point:
    """A feasible dual point and a hyperplane, with the objective values of both.

    The gap bounds how far they disagree: ‖w − Σ alpha_i sign_i x_i‖² ≤ 2 (primal − dual).
    """

    alpha: Vector
    w: Vector
    b: float
    bias_interval: tuple[float, float]
    primal: float
    dual: float
    gap: float
    scores: Vector  # ⟨w, x_i⟩, without the bias
    induced: Vector | None = None  # Σ alpha_i sign_i x_i, unless nobody has computed it
    reached: Point | None = None  # the lowest hyperplane met so far that is not w = 0, where that is another one


def make_feasible(problem: Problem, alpha: Vector) -> Vector:
    """Clip to the domain, then make Σ alpha sign = 0: by one free multiplier if it can, else by scaling a side down."""
    lower, upper = problem.loss.domain(problem.cost)
    alpha = np.clip(alpha, lower, upper)
    if not problem.bias.free:
        return alpha
    signed = alpha * problem.sign
    excess = float(signed.sum())
    heavy = signed > 0.0 if excess > 0.0 else signed < 0.0
    size = np.abs(alpha)
    room = np.where(heavy, np.minimum(size, upper - size), 0.0)
    roomiest = int(room.argmax())
    if abs(excess) <= LITTLE * room[roomiest]:
        alpha[roomiest] -= math.copysign(excess, alpha[roomiest])  # multipliers at a bound stay exactly there
    elif excess != 0.0:
        total = float(size[heavy].sum())
        alpha[heavy] *= (total - abs(excess)) / total
    return alpha


def recover(
    problem: Problem,
    alpha: Vector,
    how: Execution = PLAIN,
    w: Vector | None = None,
    b: float | None = None,
    *,
    compete: bool = True,
) -> Point:
    """A certified point from any dual point and, if given, the solver's own hyperplane (w, b), or only its bias.

    The hyperplane Σ alpha sign x that the dual point induces competes with (w, b); the one with the lower objective
    wins. ``compete=False`` trusts (w, b): where it minimises a smooth primal, the other one is a gradient step away.
    """
    alpha = make_feasible(problem, alpha)
    coefficient = alpha * problem.sign
    induced = problem.space.combine(coefficient, how)
    signed_sum = float(coefficient.sum())
    scale = problem.bias.value if problem.bias.penalised else 0.0
    dual = -0.5 * float(induced @ induced) - 0.5 * (scale * signed_sum) ** 2 - dual_loss(problem, alpha)
    best, of_alpha = None, scale**2 * signed_sum
    if w is not None:
        best = _hyperplane(problem, w.copy(), of_alpha if b is None else b, how)
    if best is None or (compete and _apart(best, induced, of_alpha, best.primal - dual, scale)):
        guess = b if problem.bias.free and b is not None else of_alpha
        other = _hyperplane(problem, induced, guess, how)
        best = other if best is None or other.primal < best.primal else best
    gap = problem.relative_gap(best.primal, dual)
    return Point(alpha, best.w, best.b, best.interval, best.primal, dual, gap, best.scores, induced)


def _apart(best: _Hyperplane, induced: Vector, bias: float, gap: float, scale: float) -> bool:
    """Whether the induced hyperplane may be so much better that it is worth a pass; ``scale`` penalises b."""
    difference = best.w - induced
    square = float(difference @ difference) + (((best.b - bias) / scale) ** 2 if scale else 0.0)
    proves_nothing = gap >= best.primal  # a dual value of at most 0: then any hyperplane may be better
    return gap > ROUNDING * abs(best.primal) and (square > LITTLE * gap or proves_nothing)


@dataclass(frozen=True)
class _Hyperplane:
    w: Vector
    b: float
    interval: tuple[float, float]
    primal: float
    scores: Vector


def _hyperplane(problem: Problem, w: Vector, b: float, how: Execution) -> _Hyperplane:
    """(w, b) with the best bias (``b`` itself unless the bias is free, else a guess) and its objective."""
    interval, scores = (b, b), problem.space.scores(w, how)
    if problem.bias.free:
        interval = problem.loss.best_bias(scores, problem.y, problem.cost, b)
        b = 0.5 * (interval[0] + interval[1])
    return _Hyperplane(w, b, interval, problem.objective(0.5 * float(w @ w), scores + b, b), scores)


def bias_gain(curvature: Vector) -> float:
    """How strongly coordinate descent ties a free bias to Σ alpha sign, from the dual's curvature in each multiplier.

    As strong as a column of the rows' size, the bias would swing with every step, and each row would be judged at the
    bias that its neighbours left; this weak, it settles within a few epochs.
    """
    typical = float(np.median(curvature)) or float(curvature.mean())
    return max(typical, 1e-300) / math.sqrt(len(curvature))


def dual_loss(problem: Problem, alpha: Vector) -> float:
    """Σ c_i ℓ*(alpha_i / c_i), rows of cost 0 left out."""
    cost = problem.cost
    slope = np.divide(alpha, cost, out=np.zeros_like(alpha), where=cost > 0.0)
    return float(cost @ problem.loss.conjugate(slope, problem.y))


def recover_start(problem: Problem, start: NDArray[np.float64] | Solution, how: Execution) -> Point:
    """The certified point of a start."""
    if isinstance(start, Solution):
        return recover(problem, start.alpha, how, start.w, start.b)
    return recover(problem, start, how)


def uncertified(problem: Problem, start: Solution | None, how: Execution) -> Point:
    """A start, w = 0 if there is none, whose dual value nobody has computed: its gap counts as infinite.

    One pass instead of three. The multipliers of a smooth loss are those of the hyperplane at the present costs.
    """
    if isinstance(start, Solution):
        alpha, w, b = start.alpha, start.w, start.b
        scores = problem.space.scores(w, how)
    else:
        scores = np.zeros(problem.n_rows)
        alpha, w, b = scores, np.zeros(problem.n_cols), 0.0
        if problem.bias.free:
            b = sum(problem.loss.best_bias(scores, problem.y, problem.cost)) / 2.0
    if problem.loss.smooth:
        alpha = problem.cost * problem.loss.slope(problem.loss.residual(scores + b, problem.y))
    primal = problem.objective(0.5 * float(w @ w), scores + b, b)
    return Point(alpha, w, b, (b, b), primal, -math.inf, math.inf, scores)


def better(a: Point | None, b: Point) -> Point:
    """The point with the smaller gap; while it is rough, it remembers the lowest hyperplane that was met."""
    if a is None:
        return b
    first, second = (b, a) if b.gap <= a.gap else (a, b)
    if first.gap <= ROUGH or not math.isfinite(first.dual):
        return first
    met = [p for p in (first.reached, second.reached, second) if p is not None and p.w.any()]
    lowest = min(met, key=lambda p: p.primal, default=None)
    if lowest is None or (first.w.any() and lowest.primal >= first.primal):
        return first
    return replace(first, reached=replace(lowest, reached=None))


def with_hyperplane(problem: Problem, point: Point, other: Point) -> Point:
    """The dual point of one, the hyperplane of another."""
    return replace(
        point, w=other.w, b=other.b, bias_interval=other.bias_interval, primal=other.primal, scores=other.scores,
        gap=problem.relative_gap(other.primal, point.dual), reached=None,
    )  # fmt: skip


def constant_fit(problem: Problem) -> float:
    """The best bias of w = 0."""
    if not problem.bias.free:
        return 0.0
    return 0.5 * sum(problem.loss.best_bias(np.zeros(problem.n_rows), problem.y, problem.cost))


def claim_of_constant(problem: Problem) -> Stated:
    """What can be said of w = 0 without multipliers: the optimum where no target is outside of a common tube."""
    zero, b = np.zeros(problem.n_cols), constant_fit(problem)
    nothing = np.zeros(problem.n_rows)
    primal = problem.objective(0.0, nothing + b, b)
    return claim(problem, nothing, zero, b, 0.0, PLAIN, primal=primal, dual=0.0, induced=zero)

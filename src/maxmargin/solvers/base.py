"""What every solver shares: its contract, and turning any dual point into a certified hyperplane."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maxmargin.problem import Problem
from maxmargin.runtime import Execution, Watch
from maxmargin.solution import History, Solution, Status, relative_gap
from maxmargin.solvers.claims import Claim, claim

Vector = NDArray[np.float64]
Start = NDArray[np.float64] | Solution | None

LOOSE = 1e-5  # who asks for less is in a hurry
USABLE = 1e6  # times the objective of w = 0: a hyperplane above that was thrown off its way by rounding
ROUGH = 0.5  # a relative gap above which a point's two halves hardly belong together

# glibc hands freed memory back to the system above a threshold, and a fit of many short vectors then spends a third of
# its time on new pages. The threshold is twice the largest block of at most 32 MB that was freed: free one, untouched.
np.empty(31 << 17)


class Solver(Protocol):
    """Problem in, Solution out. ``start`` is a dual point, or a whole solution, to continue from."""

    @property
    def name(self) -> str: ...

    def solve(self, problem: Problem, *, start: Start = None, watch: Watch | None = None) -> Solution: ...


@dataclass(frozen=True)
class Point:
    """A feasible dual point and a hyperplane, with the objective values of both.

    The gap bounds how far they disagree: ‖w − Σ alpha_i sign_i x_i‖² ≤ 2 (primal − dual). ``gap`` has no floor: solvers
    aim at it even where the optimum is tiny beside the objective at w = 0.
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
    if abs(excess) <= 1e-3 * room[roomiest]:
        alpha[roomiest] -= math.copysign(excess, alpha[roomiest])  # multipliers at a bound stay exactly there
    elif excess != 0.0:
        total = float(size[heavy].sum())
        alpha[heavy] *= (total - abs(excess)) / total
    return alpha


def recover(
    problem: Problem,
    alpha: Vector,
    n_threads: int,
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
    induced = problem.space.combine(coefficient, Execution(n_threads))
    signed_sum = float(coefficient.sum())
    scale = problem.bias.value if problem.bias.penalised else 0.0
    dual = -0.5 * float(induced @ induced) - 0.5 * (scale * signed_sum) ** 2 - dual_loss(problem, alpha)
    best, of_alpha = None, scale**2 * signed_sum
    if w is not None:
        best = _hyperplane(problem, w.copy(), of_alpha if b is None else b, n_threads)
    if best is None or (compete and _apart(best, induced, of_alpha, best.primal - dual, scale)):
        guess = b if problem.bias.free and b is not None else of_alpha
        other = _hyperplane(problem, induced, guess, n_threads)
        best = other if best is None or other.primal < best.primal else best
    gap = relative_gap(best.primal, dual, 0.0)
    return Point(alpha, best.w, best.b, best.interval, best.primal, dual, gap, best.scores, induced)


def _apart(best: _Hyperplane, induced: Vector, bias: float, gap: float, scale: float) -> bool:
    """Whether the induced hyperplane differs by so much of the gap that it is worth a pass; ``scale`` penalises b."""
    difference = best.w - induced
    square = float(difference @ difference) + (((best.b - bias) / scale) ** 2 if scale else 0.0)
    return gap > 1e-12 * abs(best.primal) and square > 1e-3 * gap


@dataclass(frozen=True)
class _Hyperplane:
    w: Vector
    b: float
    interval: tuple[float, float]
    primal: float
    scores: Vector


def _hyperplane(problem: Problem, w: Vector, b: float, n_threads: int) -> _Hyperplane:
    """(w, b) with the best bias (``b`` itself unless the bias is free, else a guess) and its objective."""
    interval, scores = (b, b), problem.space.scores(w, Execution(n_threads))
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
    share = np.divide(alpha, cost, out=np.zeros_like(alpha), where=cost > 0.0)
    return float(cost @ problem.loss.conjugate(share, problem.y))


def starting_point(problem: Problem, start: Start, n_threads: int) -> Point | None:
    """The certified point to begin at, if there is one."""
    if start is None:
        return None
    if isinstance(start, Solution):
        return recover(problem, start.alpha, n_threads, start.w, start.b)
    return recover(problem, start, n_threads)


def uncertified(problem: Problem, start: Solution | None, n_threads: int) -> Point:
    """A start, w = 0 if there is none, whose dual value nobody has computed: its gap counts as infinite.

    One pass instead of three. The multipliers of a smooth loss are those of the hyperplane at the present costs.
    """
    if isinstance(start, Solution):
        alpha, w, b = start.alpha, start.w, start.b
        scores = problem.space.scores(w, Execution(n_threads))
    else:
        scores = np.zeros(problem.n_rows)
        alpha, w, b = scores, np.zeros(problem.n_cols), 0.0
        if problem.bias.free:
            b = sum(problem.loss.best_bias(scores, problem.y, problem.cost)) / 2.0
    if problem.loss.smooth:
        alpha = problem.cost * problem.loss.share(problem.loss.residual(scores + b, problem.y))
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


def _with_hyperplane(point: Point, other: Point) -> Point:
    """The dual point of one, the hyperplane of another."""
    return replace(
        point, w=other.w, b=other.b, bias_interval=other.bias_interval, primal=other.primal, scores=other.scores,
        gap=relative_gap(other.primal, point.dual, 0.0), reached=None,
    )  # fmt: skip


def as_solution(
    problem: Problem, point: Point, status: Status, tol: float, history: History, n_iter: int, watch: Watch, name: str,
    reason: str, *, n_threads: int = 1,
) -> Solution:  # fmt: skip
    """The answer with its gap as everybody else sees it; CONVERGED if that is at most ``tol``."""
    if problem.auxiliary:
        gap = relative_gap(point.primal, point.dual, problem.null_primal)
        computed = Claim(point.alpha, point.primal, point.dual, gap)
        return certified_solution(
            computed, point.w, point.b, point.bias_interval, settled(status, gap, tol), history, n_iter, watch, name,
            reason, problem.penalty,
        )  # fmt: skip
    met = point.reached
    if met is not None and point.gap > tol and met.primal <= USABLE * problem.null_primal:  # w = 0 classifies nothing
        point = _with_hyperplane(point, met)
    if point.induced is None:
        point = recover(problem, point.alpha, n_threads, point.w, point.b, compete=False)
    assert point.induced is not None
    w, b, interval = point.w, point.b, point.bias_interval
    found = claim(
        problem, point.alpha, w, b, tol, n_threads, primal=point.primal, dual=point.dual, induced=point.induced
    )
    if found.gap > tol and problem.loss.regression:
        constant = claim_of_constant(problem)
        if constant.gap <= tol:
            b = constant_fit(problem)
            w, interval, found = np.zeros(problem.n_cols), (b, b), constant
    return certified_solution(
        found, w, b, interval, settled(status, found.gap, tol), history, n_iter, watch, name, reason, problem.penalty
    )


def settled(status: Status, gap: float, tol: float) -> Status:
    """CONVERGED if the gap is reached and nobody interrupted; a solver that only thought so was stopped by rounding."""
    if gap <= tol * (1.0 - 1e-9) and status is not Status.INTERRUPTED:
        return Status.CONVERGED
    return Status.NUMERICAL_LIMIT if status is Status.CONVERGED else status


def certified_solution(
    found: Claim, w: Vector, b: float, interval: tuple[float, float], status: Status, history: History, n_iter: int,
    watch: Watch, name: str, reason: str, penalty: str,
) -> Solution:  # fmt: skip
    """A claim and its hyperplane as what a solver returns."""
    history.add(n_iter, watch.seconds, found.gap, "certified", certified=True)
    return Solution(
        w=w, b=b, alpha=found.alpha, primal=found.primal, dual=found.dual, gap=found.gap, status=status,
        history=history, n_iter=n_iter, seconds=watch.seconds, bias_interval=interval, solver=name, reason=reason,
        penalty=penalty,
    )  # fmt: skip


def constant_fit(problem: Problem) -> float:
    """The best bias of w = 0."""
    if not problem.bias.free:
        return 0.0
    return 0.5 * sum(problem.loss.best_bias(np.zeros(problem.n_rows), problem.y, problem.cost))


def claim_of_constant(problem: Problem) -> Claim:
    """What can be said of w = 0 without multipliers: the optimum where no target is outside of a common tube."""
    zero, b = np.zeros(problem.n_cols), constant_fit(problem)
    nothing = np.zeros(problem.n_rows)
    primal = problem.objective(0.0, nothing + b, b)
    return claim(problem, nothing, zero, b, 0.0, 1, primal=primal, dual=0.0, induced=zero)

"""Primal–dual interior point method, then an exact polish.

Solves
    minimise ½‖w‖² + Σ cost_i ξ_i^p  subject to  y_i (⟨w, x_i⟩ + b) ≥ 1 − ξ_i,  ξ ≥ 0,   p = 1 or 2

by Newton's method on the perturbed optimality conditions, all inequality constraints kept strictly satisfied.
Each iteration factors one matrix R + XᵀDX whose size is the number of columns (or of rows, if there are fewer).
The number of iterations hardly depends on C.

References
----------
Mehrotra: On the implementation of a primal–dual interior point method, 1992. Gondzio: Multiple centrality
corrections in a primal–dual method for linear programming, 1996. Ferris, Munson: Interior-point methods for
massive support vector machines, 2002. Woodsend, Gondzio: Exploiting separability in large-scale linear support
vector machine training, 2011.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.problem import Problem
from maxmargin.runtime import Execution, Watch
from maxmargin.solution import Solution, Status
from maxmargin.solvers.multipliers import MethodOfMultipliers
from maxmargin.solvers.points import Point, recover, recover_start
from maxmargin.solvers.run import Run, Settings, Start
from maxmargin.solvers.span import solve_where_small
from maxmargin.space import Rows, in_memory, prices
from maxmargin.space.systems import Breakdown, NormalSystem

Vector = NDArray[np.float64]

EARLY_POLISH = 1e-4  # from this gap on, the active set can usually be guessed
EARLY_STEPS, POLISH_STEPS = 40, 200  # of the polish on the way, and at the end where the gap is not reached
POLISHED = 1e-10  # a gap after which no iteration is needed
EXACT = 1e-12  # a gap that no polish improves
WARM = 0.5  # a gap of a start that is worth more than the middle of the box
SURELY = 0.5  # of the gap asked for: the estimate is a little optimistic
MOST_MISSES = 6  # times that the certified gap may be larger than the estimate promised
TINY_STEP, MOST_TINY_STEPS = 1e-3, 5  # in a row: the iterate sticks to the boundary
LONG_STEP = 0.95  # a direction that needs no correction
WORTHWHILE = 0.02  # of a step: a correction that lengthens it by less is the last
BEYOND, A_LITTLE = 1.3, 0.1  # a correction aims at a step so much longer (Gondzio)
INSIDE = 0.99  # of the way to the boundary


def centred_hinge(shortfall: Vector, cost: Vector, mu: float) -> tuple[Vector, Vector]:
    """alpha and t = cost − alpha with mu/t − mu/alpha = shortfall, both without cancellation."""
    half, size = 0.5 * cost, np.abs(shortfall)
    root = np.sqrt(mu * mu + (size * half) ** 2)
    small = half * (mu + mu * mu / (root + size * half)) / (mu + root)
    large = cost - small
    high = shortfall >= 0.0
    return np.where(high, large, small), np.where(high, small, large)


def centred_squared_hinge(shortfall: Vector, cost: Vector, mu: float) -> Vector:
    """alpha > 0 with alpha/(2 cost) − mu/alpha = shortfall."""
    root = np.sqrt(shortfall * shortfall + np.divide(2.0 * mu, cost, out=np.ones_like(cost), where=cost > 0.0))
    return np.where(shortfall >= 0.0, cost * (shortfall + root), 2.0 * mu / np.maximum(root - shortfall, 1e-300))


@dataclass(frozen=True)
class _Constraints:
    """sign·f ≥ target − ξ for every row; a tube has two sides, so a regression has every row twice."""

    rows: Rows
    sign: Vector
    target: Vector
    cost: Vector
    sides: int

    @classmethod
    def of(cls, problem: Problem) -> _Constraints:
        if not problem.loss.regression:
            return cls(in_memory(problem.space), problem.sign, problem.target, problem.cost, 1)
        epsilon, twice = problem.box.tube, np.tile(np.arange(problem.n_rows), 2)
        sign = np.repeat([1.0, -1.0], problem.n_rows)
        target = np.concatenate([problem.y - epsilon, -(problem.y + epsilon)])
        return cls(in_memory(problem.space).take(twice), sign, target, np.concatenate([problem.cost, problem.cost]), 2)

    def multipliers(self, alpha: Vector) -> Vector:
        """One signed multiplier for each row of the problem."""
        return alpha if self.sides == 1 else alpha[: len(alpha) // 2] - alpha[len(alpha) // 2 :]


class _Iterate:
    """The arrays of one run, and the passes over them."""

    def __init__(self, problem: Problem, constraints: _Constraints, sure: Execution) -> None:
        self.problem, self.constraints, self.sure, self.n_threads = problem, constraints, sure, sure.n_threads
        self.rows = rows = constraints.rows
        cost = constraints.cost
        self.boxed = not problem.loss.smooth
        self.live = cost > 0.0
        self.n_pairs = int(self.live.sum()) * (2 if self.boxed else 1)
        self.v = np.zeros(rows.d + (problem.bias.value != 0.0))
        interval = problem.loss.best_bias(np.zeros(problem.n_rows), problem.y, problem.cost)
        b = 0.5 * (interval[0] + interval[1]) if problem.bias.free else 0.0
        if problem.bias.free:
            self.v[-1] = b
        self.target = constraints.target
        self.margin = constraints.sign * b
        shortfall = self.target - self.margin
        self.s = np.maximum(-shortfall, 0.0) + 1.0
        if self.boxed:
            self.alpha, self.t = 0.5 * cost, 0.5 * cost
            self.xi = np.maximum(shortfall, 0.0) + 1.0
        else:
            self.alpha = np.where(self.live, 2.0 * cost * (np.maximum(shortfall, 0.0) + 1.0), 0.0)
            self.t, self.xi = np.empty(0), np.empty(0)
        self.barriers: list[_core.Barrier] = []
        self.make_scratch()

    def make_scratch(self) -> None:
        """Scaling, corrections and directions: nothing in them outlives an iteration."""
        if self.barriers:
            return
        n = len(self.constraints.sign)
        self.D, self.coefficient = np.zeros(n), np.zeros(n)
        self.corrections = [(np.zeros(n), np.zeros(n if self.boxed else 0)) for _ in range(2)]
        self.directions = [(np.zeros(n), np.zeros(n)) for _ in range(2)]
        self.barriers = [self._barrier(k) for k in range(2)]

    def drop_scratch(self) -> None:
        """Give their memory back while another method works."""
        self.D = self.coefficient = np.empty(0)
        self.corrections, self.directions, self.barriers = [], [], []

    def centre_at(self, point: Point, w: Vector) -> None:
        """Start from a hyperplane instead: the centred multipliers that belong to it at its own gap."""
        cost, mu = self.constraints.cost, (point.primal - point.dual) / self.n_pairs
        self.v[: len(w)] = w
        if self.problem.bias.value:
            self.v[-1] = point.b / self.problem.bias.value
        self.rows.scores(w, self.sure, bias=point.b, out=self.margin)
        self.margin *= self.constraints.sign
        shortfall = self.target - self.margin
        if self.boxed:
            self.alpha[:], self.t[:] = centred_hinge(shortfall, cost, mu)
            np.divide(mu, self.t, out=self.xi, where=self.live)
        else:
            self.alpha[:] = np.where(self.live, centred_squared_hinge(shortfall, cost, mu), 0.0)
        np.divide(mu, self.alpha, out=self.s, where=self.live)

    def _barrier(self, k: int) -> _core.Barrier:
        c = self.constraints
        return _core.Barrier(
            self.boxed, c.sign, c.cost, self.target, self.alpha, self.t, self.s, self.xi, self.margin, self.D,
            *self.corrections[k], *self.directions[k],
        )  # fmt: skip

    def rhs(self) -> Vector:
        """Xᵀ(y (D rho + alpha)) − R v."""
        bias, d = self.problem.bias, self.rows.d
        self.barriers[0].coefficient(self.coefficient, self.n_threads)
        g = np.empty_like(self.v)
        self.rows.combine(self.coefficient, self.sure, out=g[:d])
        g[:d] -= self.v[:d]
        if bias.value:
            g[d] = bias.value * float(self.coefficient.sum()) - (self.v[d] if bias.penalised else 0.0)
        return g

    def direction(self, system: NormalSystem, how: Execution) -> tuple[Vector, float]:
        d = self.rows.d
        dv = system.solve(self.rhs())
        if not np.all(np.isfinite(dv)):
            raise Breakdown("the Newton direction is not finite")
        db = self.problem.bias.value * float(dv[d]) if self.problem.bias.value else 0.0
        how.spend(prices.read(self.rows), reads=self.rows.nnz)
        dw = np.ascontiguousarray(dv[:d])
        step = self.barriers[0].direction(self.rows.core, dw, db, how.n_threads, how.watch)
        return dv, step

    def clear_corrections(self) -> None:
        for e in self.corrections[0]:
            e.fill(0.0)

    def duplicate_direction(self) -> None:
        """Put a copy of the present direction first, keeping the original second."""
        for pair in (self.corrections, self.directions):
            for kept, copy in zip(pair[0], pair[1], strict=True):
                np.copyto(copy, kept)
        self.swap()

    def swap(self) -> None:
        for pair in (self.corrections, self.directions, self.barriers):
            pair.reverse()

    def complementarity(self) -> float:
        self.make_scratch()
        self.clear_corrections()
        for change in self.directions[0]:
            change.fill(0.0)
        return self.barriers[0].complementarity(0.0, self.n_threads)

    def primal_estimate(self) -> float:
        d = self.rows.d
        bias = self.problem.bias
        w = self.v if bias.penalised else self.v[:d]
        slack = np.maximum(0.0, self.target - self.margin)
        power = slack if self.boxed else slack * slack
        return 0.5 * float(w @ w) + float(self.constraints.cost @ power)


@dataclass(frozen=True, kw_only=True)
class InteriorPoint(Settings):
    """Interior point method with Mehrotra's predictor–corrector and Gondzio's centrality corrections.

    Costs, in reads of X: four an iteration (two directions, each both ways), two more for each correction tried, and a
    matrix of all rows.

    Parameters
    ----------
    n_corrections : centrality corrections tried per factorisation.
    polish : finish with :class:`~maxmargin.solvers.multipliers.MethodOfMultipliers`, to rounding level.

    Guarantees
    ----------
    The returned dual point is feasible and the gap is computed from it; the bits do not depend on n_threads.

    Examples
    --------
    >>> from maxmargin import Problem
    >>> problem = Problem.from_arrays([[-1.0], [1.0]], [0, 1], loss="hinge")
    >>> InteriorPoint().solve(problem).w.round(9)
    array([1.])
    """

    max_iter: int = 200
    n_corrections: int = 2
    polish: bool = True
    name: str = field(default="interior_point", init=False)

    def solve(self, problem: Problem, *, start: Start = None, watch: Watch | None = None) -> Solution:
        watch = watch or Watch()

        def run(problem: Problem, start: Start) -> Solution:
            return _InteriorPoint(self, problem, watch).solve(start)

        return solve_where_small(self, run, problem, start, watch, most_rows=problem.n_rows, sparse=True)


class _InteriorPoint:
    """One call of solve."""

    def __init__(self, settings: InteriorPoint, problem: Problem, watch: Watch) -> None:
        self.settings, self.problem = settings, problem
        self.run = Run(settings, problem, watch)
        self.iterate: _Iterate | None = None

    def solve(self, start: Start) -> Solution:
        status = self.run.until_stopped(lambda: self._work(start))
        if self.iterate is not None and status is not Status.CONVERGED:
            self._certify(self.iterate)
        return self.run.solution(status)

    def _work(self, start: Start) -> Status:
        run, problem, status = self.run, self.problem, Status.CONVERGED
        if start is not None:
            run.keep(recover_start(problem, start, run.sure))
        if not run.reached:
            constraints = _Constraints.of(problem)
            self.iterate = _Iterate(problem, constraints, run.sure)
            warm = run.gap < WARM
            if warm:
                self.iterate.centre_at(run.best, run.best.w)
            status = self._loop(self.iterate)
            if warm and status is Status.NUMERICAL_LIMIT:  # too near the boundary to recover: start afresh
                self.iterate = _Iterate(problem, constraints, run.sure)
                status = self._loop(self.iterate)
        if status in (Status.CONVERGED, Status.NUMERICAL_LIMIT):
            self.iterate = None  # its memory is free now
            self._polish(POLISH_STEPS if not run.reached else 30 if self._overdetermined else 10)
            if not run.reached:
                return run.stopped_from_outside() or status
        return status

    @property
    def _overdetermined(self) -> bool:
        """More rows than columns: in the span of few rows an iteration costs less than a step of the polish."""
        return 9 * self.problem.n_rows >= 10 * self.problem.n_cols

    def _polish(self, max_steps: int) -> bool:
        """Whether the active set's solution could be reached from the best point, to some ten digits."""
        run = self.run
        if not self.settings.polish or run.best is None or run.gap <= EXACT:
            return False
        MethodOfMultipliers(run, max_steps=max_steps, enough=run.aim).run(run.best)
        return run.gap <= min(POLISHED, run.aim)

    def _certify(self, iterate: _Iterate) -> float:
        d, bias, run = self.problem.n_cols, self.problem.bias, self.run
        w = np.ascontiguousarray(iterate.v[:d])
        b = bias.value * float(iterate.v[-1]) if bias.value else None
        iterate.drop_scratch()
        found = run.keep(recover(self.problem, iterate.constraints.multipliers(iterate.alpha), run.sure, w, b))
        return float(found.gap)

    def _loop(self, iterate: _Iterate) -> Status:
        run, misses, tiny_steps = self.run, 0, 0
        early = self.settings.polish and self._overdetermined
        while True:
            products = iterate.complementarity()
            gap = products / max(iterate.primal_estimate(), 1e-300)
            run.note(gap, "interior point")
            stopped = run.report(gap)
            if early and gap <= EARLY_POLISH:
                early = False
                self._certify(iterate)
                if self._polish(EARLY_STEPS):
                    return Status.CONVERGED
            if gap <= SURELY * run.aim * 0.1**misses:
                if self._certify(iterate) <= run.aim:
                    return Status.CONVERGED
                misses += 1
                if misses > MOST_MISSES:
                    return Status.NUMERICAL_LIMIT
            if stopped is not None:
                return stopped
            try:
                step = self._advance(iterate, products / iterate.n_pairs)
            except Breakdown:
                self._certify(iterate)
                return Status.NUMERICAL_LIMIT
            tiny_steps = tiny_steps + 1 if step < TINY_STEP else 0
            if tiny_steps >= MOST_TINY_STEPS:
                self._certify(iterate)
                return Status.NUMERICAL_LIMIT
            run.step()

    def _advance(self, iterate: _Iterate, mu: float) -> float:
        """One predictor–corrector step; the step length taken."""
        how = self.run.how
        iterate.make_scratch()
        iterate.barriers[0].scale(how.n_threads)
        system = NormalSystem(iterate.rows, iterate.D, self.problem.bias, how, bias_ridge=1e-280)
        dv, step = iterate.direction(system, how)
        affine = iterate.barriers[0].complementarity(min(1.0, step), how.n_threads) / iterate.n_pairs
        aim = mu * min(1.0, max(affine, 0.0) / mu) ** 3
        iterate.barriers[0].second_order(aim, how.n_threads)
        dv, step = iterate.direction(system, how)
        for _ in range(self.settings.n_corrections):
            if step > LONG_STEP:
                break
            iterate.duplicate_direction()
            iterate.barriers[0].recentre(min(1.0, BEYOND * step + A_LITTLE), aim, how.n_threads)
            other, longer = iterate.direction(system, how)
            if longer < step + WORTHWHILE:
                iterate.swap()
                break
            dv, step = other, longer
        taken = min(1.0, INSIDE * step)
        iterate.barriers[0].move(taken, how.n_threads)
        iterate.v += taken * dv
        return taken

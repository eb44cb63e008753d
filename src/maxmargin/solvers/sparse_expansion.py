"""Sparse expansions f(x) = Σ α_j y_j k(x_j, x) + b with α ≥ 0, whose coefficients themselves are penalised.

Solves, with Q_ij = y_i y_j k(x_i, x_j) of any kernel and weights c_i,
    minimise over α ≥ 0, b   R(α) + Σ cost_i max(0, 1 − (Qα)_i − y_i b)
where R(α) = Σ α_j (penalty "l1") or ½ Σ α_j²/c_j ("l2"). On the features y_j k(x, x_j), one for each row, this is a
linear machine whose weights are not negative. Its dual is
    maximise over 0 ≤ β ≤ cost, Σ β_i y_i = 0   Σ β_i  subject to Qβ ≤ 1           ("l1"),
    maximise over the same β                    Σ β_i − ½ Σ c_j max(0, (Qβ)_j)²    ("l2").

The linear program is solved by HiGHS for those columns of Q that its solution needs: each round adds columns whose
slope (Qβ)_j exceeds 1. The quadratic program is solved by a primal–dual interior point method. Both end with the
linear equations that hold at the solution.

References
----------
Bradley, Mangasarian: Feature selection via concave minimization and support vector machines, 1998. Mangasarian:
Generalized support vector machines, 2000. Demiriz, Bennett, Shawe-Taylor: Linear programming boosting via column
generation, 2002. Mehrotra: On the implementation of a primal–dual interior point method, 1992.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

import maxmargin._core as _core
from maxmargin.certificates.kernel_structure import Structure
from maxmargin.certificates.rounding import UNIT, Approximate
from maxmargin.certificates.sparse_expansion import TwoClasses
from maxmargin.certificates.terms import CAREFUL
from maxmargin.problem import Problem
from maxmargin.process import blas_guard
from maxmargin.runtime import Watch
from maxmargin.solution import Solution, Status
from maxmargin.solvers.claims import exactly_balanced
from maxmargin.solvers.merged_rows import Merged, Pair
from maxmargin.solvers.run import Run, Settings, Start, settled
from maxmargin.space import prices
from maxmargin.space.systems import Breakdown, Cholesky

Vector = NDArray[np.float64]
Chosen = NDArray[np.intp]

FEWEST = 10  # columns added at a time
STEEP = 1e-9  # a slope that exceeds 1 by less does not
USELESS = 0.9  # a slope below that of a column without a coefficient
LOWER = 1e-9  # of the objective: progress
TOLERANCES = (1e-9, 1e-7)  # of HiGHS, for margins and slopes: the latter where it fails with the former
EARLY = 1e-3  # a relative gap from which on the equations of the solution are worth a trial
FIRST = 0.01  # coefficient of all rows, in units of one over the kernel's largest value
INSIDE = 0.99  # of the way to the boundary
TINY_STEP = 1e-14  # the iterate sticks to the boundary
MOST_IDLE = 12  # iterations without a smaller gap
MOST_ITERATIONS = 100
MATTERS = 0.02  # of the gap asked for: what is less is not worth another look at the kernel
LONGER = 1.5  # times what rounding explains: by so much a function may be made longer
BEYOND = 1e-3  # a row that misses the margin by more does not lie on it
NEGLIGIBLE = (1e-3, 1e-6, 1e-9, 1e-12)  # coefficients, in the larger of 1 and the largest one
CLAIMS = 4  # times at most that multipliers are shrunk until no slope exceeds 1 for certain


@dataclass(frozen=True, repr=False)
class ExpansionSolution(Solution):
    """A solution whose ``w`` are coefficients α_j ≥ 0, one for each row, and whose ``alpha`` are the multipliers β_i.

    ``heaviest`` is the largest weight c_j.
    """

    heaviest: float = 1.0

    @property
    def distance_bound(self) -> float:
        """‖α − α*‖ ≤ √(2·gap·max c), because ½ Σ α_j²/c_j is strongly convex; infinite for "l1"."""
        return math.sqrt(2.0 * self.absolute_gap * self.heaviest) if self.penalty == "l2" else math.inf


@dataclass(frozen=True, kw_only=True)
class SparseExpansion(Settings):
    """Column generation for "l1", an interior point method for "l2".

    Costs: a round, the linear program of some columns; an iteration, a matrix of all columns, formed and factored.

    Parameters
    ----------
    penalty : "l1" or "l2".
    gram : values of the kernel for all pairs of rows that differ.
    group, weight : of every row of the problem: which of those it is, and its weight.
    kernel, X, rows : the kernel's structure, all rows as they were given, and which of them the problem is about.
    max_seconds : limit for a linear program; everything else asks the watch.

    Guarantees
    ----------
    Ends after finitely many steps. Both objectives are claimed with all rounding: the certificate confirms them.
    """

    penalty: str
    gram: Vector = field(repr=False)
    group: Chosen = field(repr=False)
    weight: Vector = field(repr=False)
    kernel: Structure
    X: Any = field(repr=False)
    rows: Chosen = field(repr=False)
    max_seconds: float | None = None
    max_iter: int = 1000
    reason: str = "the one solver of this problem"
    name: str = field(default="sparse_expansion", init=False)

    def solve(self, problem: Problem, *, start: Start = None, watch: Watch | None = None) -> Solution:
        run: Run = Run(self, problem, watch or Watch(), better=lambda a, b: b if a is None else merged.joined(a, b))
        merged = Merged.of(problem, self.penalty, self.gram, self.group, self.weight, run.sure)
        run.keep(merged.pair(np.zeros(merged.n), merged.cost))
        linear = self.penalty == "l1"
        search = _ColumnGeneration(merged, run, self.max_seconds) if linear else _InteriorPoint(merged, run)
        with blas_guard:
            status = run.until_stopped(search.solve)
            run.best = _cleared(merged, run)
            return self._solution(problem, merged, run, status)

    def _solution(self, problem: Problem, merged: Merged, run: Run, status: Status) -> Solution:
        """The claim about the best pair."""
        best: Pair = run.best
        alpha, beta = merged.spread(best, problem.cost, self.weight)
        statement = _Statement(problem, self)
        longer, primal = statement.lowest(alpha, best.b)
        beta, dual, excess = statement.highest(beta)
        if excess > MATTERS * self.tol:
            lower = replace(best, beta=merged.lowered(best, 1.5 * excess))
            again = statement.highest(merged.spread(lower, problem.cost, self.weight)[1])
            beta, dual = again[:2] if again[1] > dual else (beta, dual)
        gap = statement.about.relative_gap(primal, dual)
        run.note(gap, "certified", certified=True)
        interval = longer * best.interval[0], longer * best.interval[1]
        return ExpansionSolution(
            w=longer * alpha, b=longer * best.b, alpha=beta, primal=primal, dual=dual, gap=gap,
            status=settled(status, gap, self.tol), history=run.history, n_iter=run.n_iter, seconds=run.watch.seconds,
            bias_interval=interval, solver=self.name, reason=self.reason, penalty=self.penalty,
            heaviest=float(self.weight.max()),
        )  # fmt: skip


def _cleared(merged: Merged, run: Run) -> Pair:
    """The best pair without the coefficients that it does not need: an interior point leaves none at zero."""
    best: Pair = run.best
    for least in NEGLIGIBLE:
        needed = best.alpha > least * max(1.0, float(best.alpha.max()))
        pair = merged.pair(np.where(needed, best.alpha, 0.0), best.beta)
        if pair.gap <= max(MATTERS * run.aim, best.gap):
            return pair
    return best


class _Statement:
    """What can be claimed of coefficients and of multipliers, with everything that rounding may have changed."""

    def __init__(self, problem: Problem, settings: SparseExpansion) -> None:
        self.problem, self.settings = problem, settings
        self.live = live = np.flatnonzero(problem.cost > 0.0)
        self.about = TwoClasses(problem.y[live], settings.weight[live], problem.cost[live], settings.penalty)
        self.near = False  # whether the kernel's values must be the sharpest ones
        self.little = MATTERS * settings.tol

    def _sums(self, coefficients: Vector) -> Approximate:
        s = self.settings
        return self.about.sums(s.kernel, s.X, s.rows[self.live], coefficients[self.live], near=self.near)

    def lowest(self, alpha: Vector, b: float) -> tuple[float, float]:
        """A factor for the function, 1 or so little more that rows on the margin reach it for certain; its objective.

        At high costs it is dear if they may miss it; the factor costs no more than its own part of the objective.
        """
        about, live = self.about, self.live
        primal = math.inf
        for near in (False, True):
            self.near = near
            sums = self._sums(alpha)
            found = about.primal(alpha[live], b, sums, CAREFUL)
            primal = min(primal, found.high)
            if found.high - found.low <= self.little * found.high:
                return 1.0, primal
        off = LONGER * CAREFUL * (np.asarray(sums.off) + 4.0 * UNIT * (1.0 + abs(b)))
        miss = 1.0 - about.y * (sums.value + b) + off
        factor = 1.0 / (1.0 - float(miss[miss < BEYOND].max(initial=0.0)))
        longer = about.primal(factor * alpha[live], factor * b, self._sums(factor * alpha), CAREFUL).high
        return (factor, longer) if longer < primal else (1.0, primal)

    def highest(self, beta: Vector) -> tuple[Vector, float, float]:
        """Multipliers that are feasible beyond doubt, the dual value that they prove, and by how much slopes were low.

        None at all if need be.
        """
        about, excess = self.about, 0.0
        for k in range(CLAIMS):
            beta, _ = exactly_balanced(self.problem, beta)
            sums = self._sums(beta)
            if not self.near and self._is_blurred(beta, sums):
                self.near = True
                sums = self._sums(beta)
            steepest = about.steepest(sums, CAREFUL)
            if about.penalty == "l2" or steepest <= 1.0:
                dual = about.dual(beta[self.live], sums, CAREFUL).low
                return (beta, dual, excess) if dual >= 0.0 else (np.zeros_like(beta), 0.0, excess)
            # The same sums are rounded in another way next time.
            less = steepest + 2.0**k * (0.1 * float(np.max(sums.off)) + 8.0 * UNIT)
            beta, excess = beta / less, max(excess, less - 1.0)
        return np.zeros_like(beta), 0.0, excess

    def _is_blurred(self, beta: Vector, sums: Approximate) -> bool:
        """Whether rounding of the sums costs a part of the gap that was asked for."""
        if self.about.penalty == "l1":
            return CAREFUL * float(np.max(sums.off)) > self.little
        dual = self.about.dual(beta[self.live], sums, CAREFUL)
        return dual.high - dual.low > self.little * abs(dual.high)


class _ColumnGeneration:
    """The linear program of "l1", some columns at a time."""

    def __init__(self, merged: Merged, run: Run, max_seconds: float | None) -> None:
        self.merged, self.run, self.max_seconds = merged, run, max_seconds
        # Multipliers are of the size of the costs, or of what a single row with the kernel's largest value needs.
        self.scale = min(float(merged.cost.max()), 1.0)

    def solve(self) -> Status:
        merged, run = self.merged, self.run
        working, lowest = np.zeros(merged.n, dtype=np.bool_), math.inf
        alpha, beta = np.zeros(merged.n), merged.cost * np.where(merged.y > 0.0, *self._shares())
        while not run.reached:
            slope = merged.slopes(beta)
            if run.best.primal < lowest * (1.0 - LOWER):  # so that no set of columns comes twice
                working &= (alpha > 0.0) | (slope > USELESS)
            lowest = min(lowest, run.best.primal)
            missing = np.flatnonzero((slope > 1.0 + STEEP) & ~working)
            if not len(missing):
                return Status.NUMERICAL_LIMIT
            steepest = missing[np.argsort(-slope[missing], kind="stable")]
            working[steepest[: max(FEWEST, int(working.sum()) // 2)]] = True
            try:
                alpha, beta = self._round(np.flatnonzero(working))
            except Breakdown:
                return _InteriorPoint(merged, run).solve()
            run.step()
            run.note(run.gap, "column generation", certified=True)
            stopped = run.report(run.gap)
            if stopped is not None and not run.reached:
                return stopped
        return Status.CONVERGED

    def _shares(self) -> tuple[float, float]:
        """Parts of the costs that balance."""
        above, below = (float(self.merged.cost[self.merged.y == side].sum()) for side in (1.0, -1.0))
        return min(1.0, below / above), min(1.0, above / below)

    def _round(self, columns: Chosen) -> tuple[Vector, Vector]:
        """Coefficients and multipliers of the program with these columns only; what they prove is kept."""
        merged, run = self.merged, self.run
        bound, alpha = merged.cost / self.scale, np.zeros(merged.n)
        for tolerance in TOLERANCES:
            answer = linprog(
                np.full(merged.n, -1.0),
                A_ub=(merged.y[:, None] * merged.rows.X[:, columns]).T,
                b_ub=np.full(len(columns), 1.0 / self.scale),
                A_eq=merged.y[None, :],
                b_eq=[0.0],
                bounds=np.stack([np.zeros(merged.n), bound], axis=1),
                method="highs-ds",
                options=self._options(tolerance),
            )
            if answer.status == 0:
                break
            if run.watch.past_deadline:
                raise _core.DeadlineReached
        else:
            raise Breakdown(answer.message)
        free = (answer.x > 0.0) & (answer.x < bound)
        alpha[columns] = np.maximum(-answer.ineqlin.marginals, 0.0)
        beta = self.scale * np.asarray(answer.x)
        found = run.keep(merged.pair(alpha, beta))
        polished = merged.polished(alpha, found.b, beta, alpha > 0.0, free) if run.gap <= EARLY else None
        if polished is not None:
            run.keep(polished)
        return alpha, beta

    def _options(self, tolerance: float) -> dict[str, float]:
        options = {"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance}
        if self.max_seconds is not None:
            options["time_limit"] = max(1e-3, self.max_seconds - self.run.watch.seconds)
        return options


class _InteriorPoint:
    """Mehrotra's predictor–corrector method. With multipliers z of α ≥ 0, t = cost − β, slack ξ and surplus s,

    R'(α) − Qβ − z = 0,  Σ β_i y_i = 0,  Qα + b y + ξ − s = 1,  and α z, β s, t ξ go to zero together.
    """

    def __init__(self, merged: Merged, run: Run) -> None:
        self.merged, self.run, n = merged, run, merged.n
        beta, ones = 0.5 * merged.cost, np.ones(n)
        steepest = max(1.0, float(np.abs(merged.slopes(beta)).max()))
        margin = merged.y * merged.rows.scores(FIRST * ones, run.sure)
        surplus, slack = np.maximum(margin - 1.0, 0.0) + 1.0, np.maximum(1.0 - margin, 0.0) + 1.0
        self.iterate = np.stack([FIRST * ones, steepest * ones, beta, surplus, beta, slack])  # α, z, β, s, t, ξ
        self.b = 0.0

    def solve(self) -> Status:
        merged, run, tiny_steps, idle, lowest = self.merged, self.run, 0, 0, math.inf
        while True:
            own = run.keep(merged.pair(self.iterate[0], self.iterate[2])).gap
            run.note(run.gap, "interior point", certified=True)
            stopped = run.report(run.gap)
            idle, lowest = (0, own) if own < 0.9 * lowest else (idle + (own < 1.0), lowest)
            if stopped is None and max(idle, tiny_steps, run.count // MOST_ITERATIONS * MOST_IDLE) >= MOST_IDLE:
                stopped = Status.NUMERICAL_LIMIT
            if stopped is not None:
                return Status.CONVERGED if run.reached else stopped
            try:
                with np.errstate(all="ignore"):
                    step = self._advance()
            except Breakdown:
                return Status.CONVERGED if run.reached else Status.NUMERICAL_LIMIT
            if run.reached:
                return Status.CONVERGED
            run.step()
            tiny_steps = tiny_steps + 1 if step < TINY_STEP else 0

    def _advance(self) -> float:
        """One step, unless the equations of the solution make it unnecessary; its length."""
        system, residuals = self._system(), self._residuals()
        products = self.iterate[::2] * self.iterate[1::2]
        mu = float(products.mean())
        affine, db = self._direction(system, residuals, -products)
        if self.run.gap <= EARLY:
            self._polish(affine)
            if self.run.reached:
                return 0.0
        ahead = self.iterate + min(1.0, _longest(self.iterate, affine)) * affine
        centre = mu * (float((ahead[::2] * ahead[1::2]).mean()) / mu) ** 3
        change, db = self._direction(system, residuals, centre - products - affine[::2] * affine[1::2])
        step = min(1.0, INSIDE * _longest(self.iterate, change))
        self.iterate, self.b = self.iterate + step * change, self.b + step * db
        return step

    def _system(self) -> Cholesky:
        alpha, z, beta, s, t, xi = self.iterate
        n, how = self.merged.n, self.run.how
        self.D = 1.0 / (xi / t + s / beta)
        H = self.merged.rows.normal_matrix(self.D, 1.0, how)
        H.reshape(-1)[: n * (n + 1) : n + 2] += self.merged.curvature + z / alpha
        how.spend(prices.factor(n + 1))
        return Cholesky(H)

    def _residuals(self) -> tuple[Vector, float, Vector]:
        merged, (alpha, z, beta, s, _, xi) = self.merged, self.iterate
        margin = merged.y * merged.rows.scores(alpha, self.run.how, bias=self.b)
        stationary = merged.linear + merged.curvature * alpha - merged.slopes(beta) - z
        return stationary, float(merged.y @ beta), margin + xi - s - 1.0

    def _direction(
        self, system: Cholesky, residuals: tuple[Vector, float, Vector], aim: Vector
    ) -> tuple[Vector, float]:
        """Newton's direction that changes the three products by ``aim``."""
        merged, (alpha, z, beta, s, t, xi) = self.merged, self.iterate
        rho = -residuals[2] - aim[2] / t + aim[1] / beta
        signed = merged.y * self.D * rho
        of_alpha = -residuals[0] + aim[0] / alpha + merged.rows.combine(signed, self.run.how)
        v = system.solve(np.append(of_alpha, residuals[1] + float(signed.sum())))
        if not np.isfinite(v).all():
            raise Breakdown("the Newton direction is not finite")
        da, db = np.ascontiguousarray(v[:-1]), float(v[-1])
        dbeta = self.D * (rho - merged.y * merged.rows.scores(da, self.run.how, bias=db))
        others = (aim[0] - z * da) / alpha, (aim[1] - s * dbeta) / beta, (aim[2] + xi * dbeta) / t
        return np.stack([da, others[0], dbeta, others[1], -dbeta, others[2]]), db

    def _polish(self, affine: Vector) -> None:
        """Where the affine direction takes less than half of a variable, it stays above zero (Tapia's indicators)."""
        alpha, _, beta, _, _, _ = self.iterate
        stays = affine > -0.5 * self.iterate
        found = self.merged.polished(np.where(stays[0], alpha, 0.0), self.b, beta, stays[0], stays[2] & stays[4])
        if found is not None:
            self.run.note(self.run.keep(found).gap, "equations", certified=True)
            self.run.best = found if found.gap <= self.run.aim else self.run.best  # its zeros are zeros


def _longest(values: Vector, change: Vector) -> float:
    """The longest step that leaves no value below zero, at most 2."""
    falling = change < 0.0
    return float((values[falling] / -change[falling]).min(initial=2.0))

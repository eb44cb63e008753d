"""Proximal Newton method with a working set of columns, for the ℓ1 penalty.

Solves
    minimise ‖w‖₁ + Σ cost_i ℓ(⟨w, x_i⟩ + b, y_i),   ℓ smooth (squared hinge or logistic)

Each step minimises the quadratic model of the loss plus ‖w‖₁ over the columns that may differ from zero, by coordinate
descent on their normal matrix and, at its end, by one linear solve. A dual point is the multipliers alpha scaled so
that no column pulls with more than 1: |Σ alpha_i y_i x_ij| ≤ 1.

References
----------
Yuan, Ho, Lin: An improved GLMNET for L1-regularized logistic regression, 2012. Massias, Gramfort, Salmon: Celer: a
fast solver for the lasso with dual extrapolation, 2018.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.positions import distinct
from maxmargin.problem import Problem
from maxmargin.runtime import Execution, Watch, blas_guard, effective_threads
from maxmargin.solution import History, Solution, Status, relative_gap
from maxmargin.solvers.base import Point, Start, as_solution, dual_loss, make_feasible
from maxmargin.solvers.claims import AIM
from maxmargin.solvers.newton import sample_rows, worth_sampling
from maxmargin.space import Rows
from maxmargin.space.systems import Breakdown, Cholesky

Vector = NDArray[np.float64]

FEW_COLUMNS = 400  # up to here all columns are in the working set
MOST_COLUMNS = 6000
PATH_STEP = 30.0  # factor between the costs of a path


@dataclass(frozen=True)
class ProximalNewton:
    """Proximal Newton method.

    Parameters
    ----------
    tol : relative duality gap to reach.
    max_iter : limit on Newton steps.
    n_threads : threads, None for all that the process may use.

    Examples
    --------
    >>> from maxmargin import Problem
    >>> problem = Problem.from_arrays([[-1.0, 0.1], [1.0, 0.1]], [0, 1], penalty="l1")
    >>> ProximalNewton().solve(problem).w.round(6)
    array([0.75, 0.  ])
    """

    tol: float = 1e-6
    max_iter: int = 1000
    n_threads: int | None = None
    reason: str = "asked for"
    name: str = field(default="proximal_newton", init=False)

    def solve(self, problem: Problem, *, start: Start = None, watch: Watch | None = None) -> Solution:
        watch = watch or Watch()
        with blas_guard:
            return _Run(self, problem, watch).solve(start if isinstance(start, Solution) else None)


@dataclass(frozen=True)
class _Point:
    """Hyperplane and feasible dual point; ``pull`` is Σ alpha sign x before scaling, ``induced`` after it."""

    w: Vector
    b: float
    interval: tuple[float, float]
    scores: Vector
    alpha: Vector
    pull: Vector
    induced: Vector
    primal: float
    dual: float
    gap: float


class _Run:
    def __init__(self, solver: ProximalNewton, problem: Problem, watch: Watch) -> None:
        self.solver, self.problem, self.watch = solver, problem, watch
        self.n_threads = effective_threads(solver.n_threads)
        self.how = Execution(self.n_threads, watch.core)
        self.history, self.n_iter = History(), 0
        self.w, self.b = np.zeros(problem.n_cols), 0.0
        self.scores = np.zeros(problem.n_rows)
        self.best: _Point | None = None
        self.damping = 1e-12
        self.expected = np.zeros(1)  # curvature that steps cut short have met
        self.homotopy = True

    def solve(self, start: Solution | None) -> Solution:
        status = Status.CONVERGED
        try:
            if start is not None and len(start.w) == len(self.w):
                self._move_to(start.w.copy(), start.b)
            elif worth_sampling(self.problem) and self.problem.n_cols <= FEW_COLUMNS:
                self._from_sample()
            elif self.homotopy:
                self._along_the_path()
            status = self._loop()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except _core.DeadlineReached:
            status = Status.TIME_LIMIT
        best = self.best if self.best is not None else self._certify()
        scores = self.problem.space.scores(best.w, Execution(self.n_threads))  # those of the steps have drifted
        primal = self.problem.objective(float(np.abs(best.w).sum()), scores + best.b, best.b)
        point = Point(best.alpha, best.w, best.b, best.interval, primal, best.dual, best.gap, best.scores, best.induced)
        return as_solution(
            self.problem, point, status, self.solver.tol, self.history, self.n_iter, self.watch, self.solver.name,
            self.solver.reason, n_threads=self.n_threads,
        )  # fmt: skip

    def _move_to(self, w: Vector, b: float) -> None:
        self.w, self.b = w, b
        self.problem.space.scores(w, Execution(self.n_threads), out=self.scores)

    def _from_sample(self) -> None:
        problem = self.problem
        chosen = sample_rows(problem)
        part = problem.part(chosen, problem.n_rows / len(chosen))
        if len(distinct(part.y[part.cost > 0.0])) < 2:
            return
        run = _Run(replace(self.solver, tol=max(self.solver.tol, 1e-4)), part, self.watch)
        answer = run.solve(None)
        self.n_iter += answer.n_iter
        self._move_to(answer.w.copy(), answer.b)
        if answer.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if answer.status is Status.TIME_LIMIT:
            raise _core.DeadlineReached

    def _along_the_path(self) -> None:
        """Start from problems of smaller cost, whose solutions use few columns; the first has no more than w = 0."""
        problem = self.problem
        strength = float(np.abs(self._certify().pull).max(initial=0.0))
        self.best = None
        share = PATH_STEP / max(strength, 1.0)
        while share < 1.0 / PATH_STEP:
            part = replace(problem.with_costs(share * problem.cost), auxiliary=True)
            run = _Run(replace(self.solver, tol=max(self.solver.tol, 1e-2)), part, self.watch)
            run.w, run.b, run.scores, run.homotopy = self.w, self.b, self.scores, False
            answer = run.solve(None)
            self.n_iter += answer.n_iter
            self.w, self.b, self.scores = run.w, run.b, run.scores
            self.history.add(self.n_iter, self.watch.seconds, answer.gap, f"costs times {share:.0e}")
            if answer.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            if answer.status is Status.TIME_LIMIT:
                raise _core.DeadlineReached
            share *= PATH_STEP

    def _certify(self) -> _Point:
        """The present hyperplane with its best bias, and the dual point that its multipliers give."""
        problem = self.problem
        interval = (self.b, self.b)
        if problem.bias.free:
            interval = problem.loss.best_bias(self.scores, problem.y, problem.cost, self.b)
            self.b = 0.5 * (interval[0] + interval[1])
        scores = self.scores + self.b
        alpha = make_feasible(problem, problem.cost * problem.loss.share(problem.loss.residual(scores, problem.y)))
        pull = problem.space.combine(alpha * problem.sign, Execution(self.n_threads))
        # A little less than the largest feasible point, so that rounding cannot make it infeasible.
        most = max(1.0, float(np.abs(pull).max(initial=0.0)) * (1.0 + 1e-3 * min(self.solver.tol, 1e-6)))
        scale = problem.bias.value if problem.bias.penalised else 0.0
        primal = problem.objective(float(np.abs(self.w).sum()), scores, self.b)
        feasible = alpha / most
        dual = -0.5 * (scale * float((feasible * problem.sign).sum())) ** 2 - dual_loss(problem, feasible)
        gap = relative_gap(primal, dual, 0.0)
        point = _Point(
            self.w.copy(), self.b, interval, self.scores.copy(), feasible, pull, pull / most, primal, dual, gap
        )
        if self.best is None or gap <= self.best.gap:
            self.best = point
        return point

    def _loop(self) -> Status:
        stalled, before, lowest = 0, np.inf, np.inf
        while True:
            point = self._certify()
            self.history.add(self.n_iter, self.watch.seconds, point.gap, "proximal newton", certified=True)
            self.watch.report(self.n_iter, point.gap)
            if point.gap <= (1e-3 if self.problem.nnz < 1_000_000 else AIM) * self.solver.tol or point.gap <= 1e-14:
                return Status.CONVERGED
            if self.n_iter >= self.solver.max_iter:
                return Status.ITERATION_LIMIT
            if self.watch.past_deadline:
                return Status.TIME_LIMIT
            if self.watch.stop_requested:
                return Status.INTERRUPTED
            # Until the columns in use are found the gap says little; the objective must fall meanwhile.
            idle = point.gap > 0.9 * before and point.primal > lowest - 1e-9 * abs(lowest)
            stalled = stalled + 1 if idle else 0
            if stalled >= 8:
                return Status.CONVERGED if point.gap <= AIM * self.solver.tol else Status.NUMERICAL_LIMIT
            before, lowest = min(before, point.gap), min(lowest, point.primal)
            self._improve(self._working_set(point), 0.1 * point.gap * point.primal)

    def _working_set(self, point: _Point) -> NDArray[np.intp] | slice:
        """Columns in use, and those that pull most."""
        d = self.problem.n_cols
        if d <= FEW_COLUMNS:
            return slice(None)
        used = self.w != 0.0
        n_used = int(used.sum())
        size = min(d, MOST_COLUMNS, max(2 * n_used, n_used + 100))
        strength = np.where(used, np.inf, np.abs(point.pull))
        if size >= d:
            return slice(None)
        return np.sort(np.argpartition(-strength, size - 1)[:size])

    def _columns(self, chosen: NDArray[np.intp] | slice) -> Rows:
        space = self.problem.space
        return space if isinstance(chosen, slice) else space.columns(chosen)

    def _improve(self, chosen: NDArray[np.intp] | slice, enough: float) -> None:
        """Proximal Newton steps on some columns until the model promises less than ``enough``."""
        problem, rows = self.problem, self._columns(chosen)
        for _ in range(8):
            w = np.ascontiguousarray(self.w[chosen])
            promised, dw, db = self._direction(rows, w, enough)
            if not np.isfinite(promised) or promised >= 0.0:
                return
            d_scores = rows.scores(dw, self.how)
            t = self._step_length(w, dw, db, d_scores, promised)
            # A step that had to be cut gave slack to rows it knew nothing of: the next one counts them, too.
            ahead = problem.loss.residual(self.scores + d_scores + self.b + db, problem.y)
            self.expected = np.maximum(self.expected, problem.loss.bend(ahead)) if t < 0.5 else np.zeros(1)
            self.n_iter += 1
            self.damping = max(1e-12, 0.1 * self.damping) if t == 1.0 else min(1e2, max(1e-6, 10.0 * self.damping))
            self.w[chosen] = w + t * dw if t < 1.0 else np.where(w + dw == 0.0, 0.0, w + dw)
            self.b += t * db
            self.scores += t * d_scores
            if -promised <= enough or t == 0.0:
                return

    def _direction(self, rows: Rows, w: Vector, enough: float) -> tuple[float, Vector, float]:
        """The model's minimiser to a fraction of ``enough``, and the decrease its slope promises."""
        problem, bias, m = self.problem, self.problem.bias, len(w)
        r = problem.loss.residual(self.scores + self.b, problem.y)
        share, bend = problem.loss.share_and_bend(r)
        pull, D = problem.sign * problem.cost * share, problem.cost * np.maximum(bend, self.expected)
        H = rows.normal_matrix(D, bias.value, self.how)
        size = len(H)
        g = np.empty(size)
        rows.combine(pull, self.how, out=g[:m])
        price, v = np.ones(size), np.zeros(size)
        v[:m] = w
        if bias.value:
            g[m], price[m], v[m] = bias.value * float(pull.sum()), 0.0, self.b / bias.value
        g = -g
        if bias.penalised:
            g[m] += v[m]
            H[m, m] += 1.0
        H += np.triu(H, 1).T
        # A little more than the curvature: the loss may be flat where no row has slack, and bend where one gets some.
        diagonal = np.diag(H).copy()
        H[np.arange(size), np.arange(size)] += np.maximum(self.damping * diagonal, 1e-200)
        step, product = np.zeros(size), np.zeros(size)
        for _ in range(400 if size <= 300 else 40):
            sweeps = _core.lasso_sweeps(H, g, price, v, step, product, 30, 1e-5 * enough / size, self.watch.core)
            jumped = _towards_the_exact_solution(H, g, price, v, step, product)
            if jumped is None:
                break
            there = H @ jumped[0]
            if _model(g, there, price, v, jumped[0]) > _model(g, product, price, v, step):  # by rounding
                break
            (step, whole), product = jumped, there
            if sweeps < 30 and whole:
                break
        promised = float(g @ step) + float(price @ (np.abs(v + step) - np.abs(v)))
        return promised, np.ascontiguousarray(step[:m]), bias.value * float(step[m]) if bias.value else 0.0

    def _step_length(self, w: Vector, dw: Vector, db: float, d_scores: Vector, promised: float) -> float:
        """The whole step where it keeps a tenth of its promise; else to the lowest point on its way."""
        problem, bias = self.problem, self.problem.bias
        moved = problem.sign * (d_scores + db)
        r = problem.loss.residual(self.scores + self.b, problem.y)

        def value(t: float) -> float:
            b = self.b + t * db
            return problem.objective(float(np.abs(w + t * dw).sum()), self.scores + t * d_scores + b, b)

        def slope(t: float) -> float:
            of_bias = (self.b + t * db) * db / bias.value**2 if bias.penalised else 0.0
            of_loss = float((problem.cost * problem.loss.share(r - t * moved)) @ moved)
            return float(np.sign(w + t * dw) @ dw) + of_bias - of_loss

        now = value(0.0)
        if value(1.0) <= now + 0.1 * promised + 1e-15 * abs(now):
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(40):
            t = 0.5 * (low + high)
            low, high = (low, t) if slope(t) > 0.0 else (t, high)
        return low if value(low) <= now else 0.0


def _model(g: Vector, product: Vector, price: Vector, v: Vector, step: Vector) -> float:
    """The quadratic model plus the penalty, beside their values at step 0."""
    return float((g + 0.5 * product) @ step) + float(price @ (np.abs(v + step) - np.abs(v)))


def _towards_the_exact_solution(
    H: Vector, g: Vector, price: Vector, v: Vector, step: Vector, product: Vector
) -> tuple[Vector, bool] | None:
    """From a step towards the exact solution on its support, to the model's lowest point on the way.

    Also says whether that is the solution itself, with no sign changed. None if it cannot be computed.
    """
    there = (v + step != 0.0) | (price == 0.0)
    if not there.any() or there.sum() > 3000:
        return None
    value = v + step
    sign = np.sign(value)[there]
    # On the support: g + H step + price sign = 0, with v + step = 0 outside.
    right = -(g + product + price * np.sign(value))[there]
    try:
        change = Cholesky(np.ascontiguousarray(H[np.ix_(there, there)])).solve(right)
    except Breakdown:
        return None
    if not np.all(np.isfinite(change)):
        return None
    out = step.copy()
    value, cost = value[there], price[there]
    crossing = (np.sign(value + change) != sign) & (cost > 0.0)
    if not crossing.any():
        out[there] = step[there] + change
        return out, True
    # Along the way the slope −(right·change)(1 − t) rises by 2 price |change| wherever a sign changes.
    times = np.where(crossing, -value / np.where(crossing, change, 1.0), np.inf)
    fall, jumps, t = float(right @ change), 0.0, 1.0
    for j in np.argsort(times)[: int(crossing.sum())]:
        if jumps >= fall * (1.0 - float(times[j])):  # the lowest point was before this crossing
            break
        jumps += 2.0 * float(cost[j] * abs(change[j]))
        if jumps >= fall * (1.0 - float(times[j])):  # it is the crossing itself
            t = float(times[j])
            break
    if t == 1.0 and jumps > 0.0:
        t = max(0.0, 1.0 - jumps / fall) if fall > 0.0 else 0.0
    moved = value + t * change
    moved[crossing & (np.abs(times - t) <= 1e-12 * t)] = 0.0
    out[there] = moved - v[there]
    return out, False

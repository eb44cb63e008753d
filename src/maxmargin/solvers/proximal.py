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
from maxmargin.process import blas_guard
from maxmargin.runtime import Watch
from maxmargin.solution import Solution, Status
from maxmargin.solvers.line_search import exact_step
from maxmargin.solvers.newton import SAMPLE_TOL, sample_rows, worth_sampling
from maxmargin.solvers.points import Point, dual_loss, make_feasible
from maxmargin.solvers.run import Run, Settings, Start, obey
from maxmargin.space import Space, prices
from maxmargin.space.systems import Breakdown, Cholesky

Vector = NDArray[np.float64]

FEW_COLUMNS = 400  # up to here all columns are in the working set
MOST_COLUMNS = 6000
PATH_STEP = 30.0  # factor between the costs of a path
PATH_TOL = 1e-2  # of a problem on the path: only its columns matter
MANY_NUMBERS = 1_000_000  # in X, up to which a thousandth of the gap is asked for: the last step squares it
STALLED = 8  # rounds in a row in which neither gap nor objective falls
STILL, FALLING = 0.9, 1e-9  # a gap, and an objective, that fall no more than that stand still
STEP_GOAL = 0.1  # of the gap: a working set whose model promises less is done
MODEL_TOL = 1e-5  # of that, for every column of a model
STEPS = 8  # of Newton's method on one working set
SWEEPS, MOST_SWEEPS = 30, (400, 40)  # of coordinate descent on a model at a time, and in all: small and large models
SMALL_MODEL = 300  # columns
SWEEP = 0.3  # the price of one number of the model's matrix in a sweep, in the units of prices; unmeasured
LEAST_DAMPING, FIRST_DAMPING, MOST_DAMPING = 1e-12, 1e-6, 1e2  # of a model's diagonal
LARGEST_FACTOR = 3000  # columns of a model whose equations are solved at once


@dataclass(frozen=True, kw_only=True)
class ProximalNewton(Settings):
    """Proximal Newton method; ``max_iter`` counts its steps.

    Costs, in reads of X: one for a certified point of all columns; two and the matrix of the working set's columns for
    a step.

    Examples
    --------
    >>> from maxmargin import Problem
    >>> problem = Problem.from_arrays([[-1.0, 0.1], [1.0, 0.1]], [0, 1], penalty="l1")
    >>> ProximalNewton().solve(problem).w.round(6)
    array([0.75, 0.  ])
    """

    max_iter: int = 1000
    name: str = field(default="proximal_newton", init=False)

    def solve(self, problem: Problem, *, start: Start = None, watch: Watch | None = None) -> Solution:
        watch = watch or Watch()
        with blas_guard:
            return _Proximal(self, problem, watch).solve(start if isinstance(start, Solution) else None)


class _Proximal:
    """One call of solve."""

    def __init__(self, settings: ProximalNewton, problem: Problem, watch: Watch) -> None:
        self.settings, self.problem = settings, problem
        self.run = Run(settings, problem, watch, better=_nearer)
        self.w, self.b = np.zeros(problem.n_cols), 0.0
        self.scores = np.zeros(problem.n_rows)
        self.damping = LEAST_DAMPING
        self.expected = np.zeros(1)  # curvature that steps cut short have met
        self.homotopy = True

    def solve(self, start: Solution | None) -> Solution:
        run, problem = self.run, self.problem
        status = run.until_stopped(lambda: self._work(start))
        best: Point = run.best if run.best is not None else self._certify()[0]
        scores = problem.space.scores(best.w, run.sure)  # those of the steps have drifted
        primal = problem.objective(float(np.abs(best.w).sum()), scores + best.b, best.b)
        run.best = replace(best, primal=primal)
        return run.solution(status)

    def _work(self, start: Solution | None) -> Status:
        if start is not None and len(start.w) == len(self.w):
            self._move_to(start.w.copy(), start.b)
        elif worth_sampling(self.problem) and self.problem.n_cols <= FEW_COLUMNS:
            self._from_sample()
        elif self.homotopy:
            self._along_the_path()
        return self._loop()

    def _move_to(self, w: Vector, b: float) -> None:
        self.w, self.b = w, b
        self.problem.space.scores(w, self.run.sure, out=self.scores)

    def _from_sample(self) -> None:
        problem = self.problem
        chosen = sample_rows(problem)
        part = problem.part(chosen, problem.n_rows / len(chosen))
        if len(distinct(part.y[part.cost > 0.0])) < 2:
            return
        rough = replace(self.settings, tol=max(self.settings.tol, SAMPLE_TOL))
        answer = self.run.part(_Proximal(rough, part, self.run.watch).solve(None), f"sample of {len(chosen)} rows")
        self._move_to(answer.w.copy(), answer.b)
        obey(answer.status)

    def _along_the_path(self) -> None:
        """Start from problems of smaller cost, whose solutions use few columns; the first has no more than w = 0."""
        problem = self.problem
        steepest = float(np.abs(self._certify()[1]).max(initial=0.0))
        self.run.best = None
        factor = PATH_STEP / max(steepest, 1.0)
        while factor < 1.0 / PATH_STEP:
            part = replace(problem.with_costs(factor * problem.cost), auxiliary=True)
            rough = replace(self.settings, tol=max(self.settings.tol, PATH_TOL))
            step = _Proximal(rough, part, self.run.watch)
            step.w, step.b, step.scores, step.homotopy = self.w, self.b, self.scores, False
            answer = self.run.part(step.solve(None), f"costs times {factor:.0e}")
            self.w, self.b, self.scores = step.w, step.b, step.scores
            obey(answer.status)
            factor *= PATH_STEP

    def _certify(self) -> tuple[Point, Vector]:
        """The present hyperplane with its best bias, the dual point of its multipliers, and every column's slope."""
        problem = self.problem
        interval = (self.b, self.b)
        if problem.bias.free:
            interval = problem.loss.best_bias(self.scores, problem.y, problem.cost, self.b)
            self.b = 0.5 * (interval[0] + interval[1])
        scores = self.scores + self.b
        alpha = make_feasible(problem, problem.cost * problem.loss.slope(problem.loss.residual(scores, problem.y)))
        slopes = problem.space.combine(alpha * problem.sign, self.run.sure)
        # A little less than the largest feasible point, so that rounding cannot make it infeasible.
        most = max(1.0, float(np.abs(slopes).max(initial=0.0)) * (1.0 + 1e-3 * min(self.settings.tol, 1e-6)))
        scale = problem.bias.value if problem.bias.penalised else 0.0
        primal = problem.objective(float(np.abs(self.w).sum()), scores, self.b)
        feasible = alpha / most
        dual = -0.5 * (scale * float((feasible * problem.sign).sum())) ** 2 - dual_loss(problem, feasible)
        gap = problem.relative_gap(primal, dual)
        point = Point(feasible, self.w.copy(), self.b, interval, primal, dual, gap, self.scores.copy(), slopes / most)
        self.run.keep(point)
        return point, slopes

    def _loop(self) -> Status:
        run, stalled, before, lowest = self.run, 0, np.inf, np.inf
        enough = max(1e-14, (1e-3 if self.problem.nnz < MANY_NUMBERS else 1.0) * run.aim)
        while True:
            point, slopes = self._certify()
            run.note(point.gap, "proximal newton", certified=True)
            stopped = run.report(point.gap)
            if point.gap <= enough:
                return Status.CONVERGED
            if stopped is not None:
                return Status.CONVERGED if run.reached else stopped
            # Until the columns in use are found the gap says little; the objective must fall meanwhile.
            idle = point.gap > STILL * before and point.primal > lowest - FALLING * abs(lowest)
            stalled = stalled + 1 if idle else 0
            if stalled >= STALLED:
                return Status.CONVERGED if point.gap <= run.aim else Status.NUMERICAL_LIMIT
            before, lowest = min(before, point.gap), min(lowest, point.primal)
            self._improve(self._working_set(slopes), STEP_GOAL * point.gap * point.primal)

    def _working_set(self, slopes: Vector) -> NDArray[np.intp] | slice:
        """Columns in use, and those of the steepest slope."""
        d = self.problem.n_cols
        if d <= FEW_COLUMNS:
            return slice(None)
        used = self.w != 0.0
        n_used = int(used.sum())
        size = min(d, MOST_COLUMNS, max(2 * n_used, n_used + 100))
        if size >= d:
            return slice(None)
        steepness = np.where(used, np.inf, np.abs(slopes))
        return np.sort(np.argpartition(-steepness, size - 1)[:size])

    def _columns(self, chosen: NDArray[np.intp] | slice) -> Space:
        space = self.problem.space
        return space if isinstance(chosen, slice) else space.columns(chosen)

    def _improve(self, chosen: NDArray[np.intp] | slice, enough: float) -> None:
        """Proximal Newton steps on some columns until the model promises less than ``enough``."""
        problem, rows = self.problem, self._columns(chosen)
        for _ in range(STEPS):
            w = np.ascontiguousarray(self.w[chosen])
            promised, dw, db = self._direction(rows, w, enough)
            if not np.isfinite(promised) or promised >= 0.0:
                return
            d_scores = rows.scores(dw, self.run.how)
            t = self._step_length(w, dw, db, d_scores, promised)
            # A step that had to be cut gave slack to rows it knew nothing of: the next one counts them, too.
            ahead = problem.loss.residual(self.scores + d_scores + self.b + db, problem.y)
            self.expected = np.maximum(self.expected, problem.loss.curvature(ahead)) if t < 0.5 else np.zeros(1)
            self.run.step()
            self._adapt_damping(t)
            self.w[chosen] = w + t * dw if t < 1.0 else np.where(w + dw == 0.0, 0.0, w + dw)
            self.b += t * db
            self.scores += t * d_scores
            if -promised <= enough or t == 0.0 or self.run.stop() is not None:
                return

    def _adapt_damping(self, t: float) -> None:
        """Less after a whole step, more after one that had to be cut."""
        shrunk, grown = 0.1 * self.damping, max(FIRST_DAMPING, 10.0 * self.damping)
        self.damping = max(LEAST_DAMPING, shrunk) if t == 1.0 else min(MOST_DAMPING, grown)

    def _direction(self, rows: Space, w: Vector, enough: float) -> tuple[float, Vector, float]:
        """The model's minimiser to a fraction of ``enough``, and the decrease its slope promises."""
        problem, bias, m = self.problem, self.problem.bias, len(w)
        r = problem.loss.residual(self.scores + self.b, problem.y)
        slope, curvature = problem.loss.slope_and_curvature(r)
        signed, D = problem.sign * problem.cost * slope, problem.cost * np.maximum(curvature, self.expected)
        H = rows.normal_matrix(D, bias.value, self.run.how)
        size = len(H)
        g = np.empty(size)
        rows.combine(signed, self.run.how, out=g[:m])
        price, v = np.ones(size), np.zeros(size)
        v[:m] = w
        if bias.value:
            g[m], price[m], v[m] = bias.value * float(signed.sum()), 0.0, self.b / bias.value
        g = -g
        if bias.penalised:
            g[m] += v[m]
            H[m, m] += 1.0
        H += np.triu(H, 1).T
        # A little more than the curvature: the loss may be flat where no row has slack, and curved where one gets some.
        diagonal = np.diag(H).copy()
        H[np.arange(size), np.arange(size)] += np.maximum(self.damping * diagonal, 1e-200)
        step, product = np.zeros(size), np.zeros(size)
        for _ in range(MOST_SWEEPS[size > SMALL_MODEL]):
            sweeps = _core.lasso_sweeps(
                H, g, price, v, step, product, SWEEPS, MODEL_TOL * enough / size, self.run.how.watch
            )
            self.run.how.spend(sweeps * size * size * SWEEP + prices.factor(min(size, LARGEST_FACTOR)))
            jumped = _towards_the_exact_solution(H, g, price, v, step, product)
            if jumped is None:
                break
            there = H @ jumped[0]
            if _model(g, there, price, v, jumped[0]) > _model(g, product, price, v, step):  # by rounding
                break
            (step, whole), product = jumped, there
            if sweeps < SWEEPS and whole:
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
            of_loss = float((problem.cost * problem.loss.slope(r - t * moved)) @ moved)
            return float(np.sign(w + t * dw) @ dw) + of_bias - of_loss

        now = value(0.0)
        if value(1.0) <= now + 0.1 * promised + 1e-15 * abs(now):
            return 1.0
        t = exact_step(slope, slope(0.0), whole=0.0)
        return t if value(t) <= now else 0.0


def _nearer(best: Point | None, point: Point) -> Point:
    """The later of two points that are equally good."""
    return point if best is None or point.gap <= best.gap else best


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
    if not there.any() or there.sum() > LARGEST_FACTOR:
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

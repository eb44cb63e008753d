"""Joint multi-class machines: one weight vector per class, all of them found together.

Solves
    minimise over w_m, b_m   ½ Σ_m ‖w_m‖² + Σ c_i ℓ(f_i, y_i),    f_im = ⟨w_m, x_i⟩ + b_m

with ℓ = max_m (f_m + [m ≠ y]) − f_y (Crammer and Singer's hinge) or ln Σ_m exp(f_m) − f_y (multinomial). The hinge is
solved by dual coordinate descent, all multipliers of a row at once, then by Newton's method; the multinomial loss by
Newton's method.

References
----------
Crammer, Singer: On the algorithmic implementation of multiclass kernel-based vector machines, 2001. Keerthi,
Sundararajan, Chang, Hsieh, Lin: A sequential dual method for large scale multi-class linear SVMs, 2008.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.inputs import LabelledRows, check_costs, check_sizes, positive_number
from maxmargin.runtime import Watch, blas_guard
from maxmargin.solution import History, Status
from maxmargin.solvers.base import LOOSE, bias_gain, settled
from maxmargin.solvers.claims import AIM
from maxmargin.solvers.joint_claims import joint_claim
from maxmargin.solvers.joint_newton import JointNewton
from maxmargin.solvers.joint_point import JointPoint, JointProblem, certified
from maxmargin.space import Bias

Vector = NDArray[np.float64]

CHEAP = 0.3  # seconds: Newton's method to rounding level is worth that

__all__ = ["JointMachine", "JointProblem", "JointSolution", "make_joint_solver"]


@dataclass(frozen=True)
class JointSolution:
    """All hyperplanes of a joint machine with their proof; alpha has one line per row and one column per class."""

    W: Vector
    b: Vector
    alpha: Vector
    primal: float
    dual: float
    gap: float
    status: Status
    history: History
    n_iter: int
    seconds: float
    solver: str
    reason: str

    @property
    def absolute_gap(self) -> float:
        return max(0.0, self.primal - self.dual)

    @property
    def distance_bound(self) -> float:
        """Largest possible distance of all weights together from the optimal ones."""
        return math.sqrt(2.0 * self.absolute_gap)

    def __repr__(self) -> str:
        return (
            f"JointSolution({self.status.name}: gap {self.gap:.1e}, primal {self.primal:.9g}, dual {self.dual:.9g}, "
            f"{self.n_iter} iterations, {self.seconds:.3f} s; {self.solver}: {self.reason})"
        )


def joint_problem(data: LabelledRows, *, C: float, loss: str, bias: Bias) -> JointProblem:
    """All classes of labelled rows, checked."""
    cost = positive_number("C", C) * data.weight
    check_costs(cost)
    check_sizes(data.space, cost)
    return JointProblem(data.space, data.position.astype(np.int32), cost, loss, bias, len(data.classes))


def make_joint_solver(solver: str, loss: str, **options: Any) -> JointMachine:
    """The solver of joint machines; it has no alternatives to choose from."""
    able = ("auto", "newton") if loss == "multinomial" else ("auto", "dual_cd", "newton")
    if solver not in able:
        raise ValueError(f"solver={solver!r} cannot solve multi_class={loss!r}; use one of {able}")
    return JointMachine(**options)


@dataclass(frozen=True)
class JointMachine:
    """Coordinate descent and Newton's method for joint machines.

    Parameters
    ----------
    tol : relative duality gap to reach.
    max_iter : limit on epochs and on Newton steps.
    seed : seed of the random order.
    n_threads : threads.
    """

    tol: float = 1e-6
    max_iter: int = 10000
    seed: int = 0
    n_threads: int = 1
    name: str = field(default="joint", init=False)

    def solve(self, problem: JointProblem, *, start: Any = None, watch: Watch | None = None) -> JointSolution:
        watch = watch or Watch()
        with blas_guard:
            scale = usual_scale(problem)
            if scale == 1.0:
                return _Run(self, problem, watch).solve(start)
            # The same problem in other units: X/s, costs times s², weights times s.
            space = problem.space.scaled(1.0 / scale)
            other = replace(problem, space=space, cost=problem.cost * scale**2, bias=scaled_bias(problem.bias, scale))
            answer = _Run(self, other, watch).solve(None)
            return _in_units_of(problem, answer, scale, self.tol, self.n_threads)


def usual_scale(problem: JointProblem) -> float:
    """A power of two that makes rows of very large or small norm usual ones; 1 for usual rows."""
    norm = math.sqrt(float(problem.squared_norms.mean()))
    exponent = round(math.log2(norm)) if norm > 0.0 else 0
    return 2.0**exponent if abs(exponent) > 8 and problem.space.X.dtype == np.float64 else 1.0


def scaled_bias(bias: Bias, scale: float) -> Bias:
    return Bias(bias.value / scale, True) if bias.penalised else bias


def _in_units_of(
    problem: JointProblem, answer: JointSolution, scale: float, tol: float, n_threads: int
) -> JointSolution:
    """The answer of the scaled problem as one of this problem, certified anew."""
    point = certified(problem, answer.alpha / scale**2, answer.W / scale, answer.b)
    found = joint_claim(problem, point, tol, n_threads)
    return replace(
        answer, W=point.W, b=point.b, alpha=found.alpha, primal=found.primal, dual=found.dual, gap=found.gap,
        status=settled(answer.status, found.gap, tol),
    )  # fmt: skip


class _Run:
    def __init__(self, solver: JointMachine, problem: JointProblem, watch: Watch) -> None:
        self.solver, self.problem, self.watch = solver, problem, watch
        self.history, self.n_iter, self.aim = History(), 0, AIM * solver.tol
        self.best: JointPoint | None = None

    def solve(self, start: JointSolution | None) -> JointSolution:
        status, problem = Status.CONVERGED, self.problem
        try:
            if start is not None:
                self._keep(certified(problem, start.alpha, start.W, start.b))
            if self.best_gap > self.aim:
                status = self._newton() if problem.loss == "multinomial" else self._descent()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except _core.DeadlineReached:
            status = Status.TIME_LIMIT
        best = self.best or certified(problem, np.zeros(problem.shape))
        found = joint_claim(problem, best, self.solver.tol, self.solver.n_threads)
        self.history.add(self.n_iter, self.watch.seconds, found.gap, "certified", certified=True)
        status = settled(status, found.gap, self.solver.tol)
        return JointSolution(
            best.W, best.b, found.alpha, found.primal, found.dual, found.gap, status, self.history, self.n_iter,
            self.watch.seconds, self.solver.name, f"all {problem.n_classes} classes at once",
        )  # fmt: skip

    def _keep(self, point: JointPoint) -> None:
        if self.best is None or point.gap <= self.best.gap:
            self.best = point

    def _report(self, gap: float, phase: str) -> Status | None:
        self.history.add(self.n_iter, self.watch.seconds, gap, phase, certified=True)
        self.watch.report(self.n_iter, gap)
        if self.watch.past_deadline:
            return Status.TIME_LIMIT
        return Status.INTERRUPTED if self.watch.stop_requested else None

    def _newton(self) -> Status:
        point = self.best or certified(self.problem, np.zeros(self.problem.shape))
        method = JointNewton(self.problem, self.watch, tol=self.aim, max_steps=self.solver.max_iter)
        try:
            method.run(point)
        finally:
            self._keep(method.best)
            self.n_iter += method.steps
        assert self.best is not None
        stop = self._report(self.best.gap, "newton")
        return stop or (Status.ITERATION_LIMIT if method.steps >= self.solver.max_iter else Status.CONVERGED)

    def _descent(self) -> Status:
        """Epochs until the gap is reached; Newton's method where it promises to be quicker, or epochs gain nothing."""
        problem = self.problem
        state = _DescentState(problem, self.solver.seed, self.best)
        looks: list[tuple[int, float]] = []
        next_look, epochs, tried = 10, 0, False
        while True:
            state.epoch(self.watch)
            epochs, self.n_iter = epochs + 1, self.n_iter + 1
            if epochs < next_look and epochs < self.solver.max_iter:
                continue
            point = certified(problem, state.alpha, state.weights, state.bias)
            self._keep(point)
            looks.append((epochs, point.gap))
            stop = self._report(point.gap, "coordinate descent")
            if stop is not None:
                return stop
            cheap = newton_seconds(problem) <= CHEAP and self.solver.tol <= LOOSE
            if point.gap <= self.aim and not cheap:
                return Status.CONVERGED
            if epochs >= self.solver.max_iter:
                return Status.ITERATION_LIMIT
            needed = epochs_needed(looks, self.aim)
            stuck = epochs >= 1000 and point.gap > 0.9 * looks[-2][1]
            if tried and point.gap <= self.aim:
                return Status.CONVERGED
            if tried and stuck:
                return Status.NUMERICAL_LIMIT  # neither method gains any more
            share = state.take_share()
            slow = epochs >= 150 and epoch_seconds(problem, share) * (needed - epochs) > newton_seconds(problem)
            if not tried and (stuck or slow or cheap):
                tried = True
                status = self._newton()
                if status in (Status.TIME_LIMIT, Status.INTERRUPTED) or self.best_gap <= self.aim:
                    return status
                state = _DescentState(problem, self.solver.seed, self.best)
            next_look = epochs + max(10, min(epochs // 2, math.ceil(1.1 * (needed - epochs))))

    @property
    def best_gap(self) -> float:
        return math.inf if self.best is None else self.best.gap


def epochs_needed(looks: list[tuple[int, float]], tol: float) -> float:
    """Epochs until the gap is ``tol`` if it goes on to fall with a power of their number, as in the last half."""
    epochs, gap = looks[-1]
    if len(looks) < 3:
        return 2.0 * epochs
    before, then = looks[-3]
    power = math.log(then / gap) / math.log(epochs / before) if 0.0 < gap < then < math.inf else 0.1
    return epochs * math.exp(min(math.log(gap / tol) / max(power, 0.1), 50.0))


def epoch_seconds(problem: JointProblem, share: float) -> float:
    """What an epoch over a share of the rows may cost: an estimate, so that no result depends on a machine's load."""
    return 1e-5 + share * 1e-9 * problem.nnz * problem.n_classes


def newton_seconds(problem: JointProblem) -> float:
    """What Newton's method may cost: steps with a matrix, or with many products where the matrix is too large."""
    n, k, d = problem.n_rows, problem.n_classes, problem.n_cols + 1
    matrix = 2e-10 * n * k * d**2 + 5e-11 * (k * d) ** 3
    return 400.0 * (3e-4 + 1e-7 * n * k + min(matrix, 1e-7 * problem.nnz * k))


class _DescentState:
    """Arrays of the coordinate descent; b_m moves as the multiplier of Σ_i alpha_im = 0."""

    def __init__(self, problem: JointProblem, seed: int, start: JointPoint | None) -> None:
        self.problem = problem
        n, k, bias = problem.n_rows, problem.n_classes, problem.bias
        self.alpha = np.zeros((n, k)) if start is None else start.alpha.copy()
        self.W = np.ascontiguousarray(problem.combine(self.alpha).T)
        self.sums, self.settled = self.alpha.sum(axis=0), 0.1
        self.visited: list[float] = []
        self.gain = bias.value**2 if bias.penalised else 0.0
        if bias.free:
            self.gain = bias_gain(problem.squared_norms)
        self.centre = np.zeros(k) if start is None or not bias.free else start.b.copy()
        self.joint = _core.Joint(
            problem.label, problem.cost, problem.squared_norms, self.alpha, self.W, self.sums, self.centre, self.gain,
            np.empty(3 * k), seed,
        )  # fmt: skip

    def epoch(self, watch: Watch) -> None:
        """One epoch; once the active rows agree, all rows are looked at again."""
        self.visited.append(self.joint.n_active / self.problem.n_rows)
        violation = self.joint.epoch(self.problem.space.core, watch.core)
        if self.problem.bias.free:
            self.centre += self.gain * self.sums
        if violation <= self.settled:
            if self.joint.n_active == self.problem.n_rows:
                self.settled *= 0.1
            self.joint.unshrink()

    def take_share(self) -> float:
        """The share of rows that an epoch visited, on average since the last call."""
        share = sum(self.visited) / max(1, len(self.visited))
        self.visited.clear()
        return share

    @property
    def weights(self) -> Vector:
        return np.ascontiguousarray(self.W.T)

    @property
    def bias(self) -> Vector:
        if self.problem.bias.value == 0.0:
            return np.zeros_like(self.centre)
        if self.problem.bias.penalised:
            return np.asarray(self.centre + self.gain * self.sums)
        return np.asarray(self.centre - self.centre.mean())

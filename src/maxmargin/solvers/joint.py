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
from maxmargin.errors import InputError
from maxmargin.inputs import LabelledRows
from maxmargin.problem import costs_of
from maxmargin.process import blas_guard
from maxmargin.runtime import Execution, Watch, effective_threads
from maxmargin.solution import History, Status
from maxmargin.solvers.joint_claims import joint_claim
from maxmargin.solvers.joint_point import JointPoint, JointProblem, certified
from maxmargin.solvers.joint_second_order import JointSecondOrder
from maxmargin.solvers.points import LOOSE, bias_gain
from maxmargin.solvers.run import STOPPED, Run, Settings, settled
from maxmargin.space import Bias, prices

Vector = NDArray[np.float64]

IN_OTHER_UNITS = 0.5  # of the gap asked for: on the way back to the units of X some of it is lost
CHEAP = 0.3 * prices.SECOND  # Newton's method to rounding level is worth that
FIRST_LOOK = 10  # epochs before the gap is computed for the first time
SLOW, STUCK = 150, 1000  # epochs after which others are thought of, and after which a gap that stands still is stuck
STILL = 0.9  # a gap that falls no more than that from look to look stands still
SETTLED = 0.1  # of the first violation: the active rows agree, and then each time a tenth of that
SLOWEST, FARTHEST = 0.1, 50.0  # power with which a gap falls at least, and ln of the epochs that are foreseen at most
NEWTON_STEPS = 400  # of the hinge's rounds; unmeasured beyond their power of ten
CG_STEPS = 60  # of conjugate gradients, both ways, for a Newton step; unmeasured
EPOCH, STEP, PER_SCORE = 1e4, 3e5, 100.0  # what an epoch and a Newton step cost besides, and one score of a step

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
    """All classes of labelled rows."""
    cost = costs_of(data.space, data.weight, C)
    return JointProblem(data.space, data.position.astype(np.int32), cost, loss, bias, len(data.classes))


def make_joint_solver(solver: str, loss: str, **options: Any) -> JointMachine:
    """The solver of joint machines; it has no alternatives to choose from."""
    able = ("auto", "newton") if loss == "multinomial" else ("auto", "dual_cd", "newton")
    if solver not in able:
        raise InputError(f"solver={solver!r} cannot solve multi_class={loss!r}; use one of {able}")
    return JointMachine(**options)


@dataclass(frozen=True, kw_only=True)
class JointMachine(Settings):
    """Coordinate descent and Newton's method for joint machines; ``max_iter`` limits epochs, and Newton steps.

    Costs, in reads of X, each for all k classes: one an epoch over all active rows, both ways in one visit; two a
    Newton step, and k (k + 1)/2 matrices, or two reads for each step of conjugate gradients.

    Parameters
    ----------
    seed : seed of the random order.
    """

    seed: int = 0
    name: str = field(default="joint", init=False)

    def solve(self, problem: JointProblem, *, start: Any = None, watch: Watch | None = None) -> JointSolution:
        watch = watch or Watch()
        with blas_guard:
            scale = usual_scale(problem)
            if scale == 1.0:
                return _Joint(self, problem, watch).solve(start)
            # The same problem in other units: X/s, costs times s², weights times s.
            space = problem.space.scaled(1.0 / scale)
            other = replace(problem, space=space, cost=problem.cost * scale**2, bias=scaled_bias(problem.bias, scale))
            answer = _Joint(replace(self, tol=IN_OTHER_UNITS * self.tol), other, watch).solve(None)
            return _in_units_of(problem, answer, scale, self.tol, Execution(effective_threads(self.n_threads)))


def usual_scale(problem: JointProblem) -> float:
    """A power of two that makes rows of very large or small norm usual ones; 1 for usual rows."""
    norm = math.sqrt(float(problem.squared_norms.mean()))
    exponent = round(math.log2(norm)) if norm > 0.0 else 0
    return 2.0**exponent if abs(exponent) > 8 and problem.space.X.dtype == np.float64 else 1.0


def scaled_bias(bias: Bias, scale: float) -> Bias:
    return Bias(bias.value / scale, True) if bias.penalised else bias


def _in_units_of(
    problem: JointProblem, answer: JointSolution, scale: float, tol: float, how: Execution
) -> JointSolution:
    """The answer of the scaled problem as one of this problem, certified anew."""
    point = certified(problem, answer.alpha / scale**2, answer.W / scale, answer.b, how=how)
    found = joint_claim(problem, point, tol, how)
    return replace(
        answer, W=point.W, b=point.b, alpha=found.alpha, primal=found.primal, dual=found.dual, gap=found.gap,
        status=settled(answer.status, found.gap, tol),
    )  # fmt: skip


class _Joint:
    """One call of solve."""

    def __init__(self, settings: JointMachine, problem: JointProblem, watch: Watch) -> None:
        self.settings, self.problem = settings, problem
        self.run = Run(settings, problem, watch, better=nearer)

    def solve(self, start: JointSolution | None) -> JointSolution:
        run, problem = self.run, self.problem
        status = run.until_stopped(lambda: self._work(start))
        best = run.best or certified(problem, np.zeros(problem.shape), how=run.sure)
        found = joint_claim(problem, best, run.tol, run.sure)
        run.note(found.gap, "certified", certified=True)
        return JointSolution(
            best.W, best.b, found.alpha, found.primal, found.dual, found.gap, settled(status, found.gap, run.tol),
            run.history, run.n_iter, run.watch.seconds, run.settings.name, f"all {problem.n_classes} classes at once",
        )  # fmt: skip

    def _work(self, start: JointSolution | None) -> Status:
        run, problem = self.run, self.problem
        if start is not None:
            run.keep(certified(problem, start.alpha, start.W, start.b, how=run.sure))
        if run.reached:
            return Status.CONVERGED
        return self._newton() if problem.loss == "multinomial" else self._descent()

    def _newton(self) -> Status:
        run, problem = self.run, self.problem
        if run.best is None:
            run.keep(certified(problem, np.zeros(problem.shape), how=run.sure))
        method = JointSecondOrder(run, max_steps=run.max_iter)
        method.run(run.best)
        run.note(run.gap, "newton", certified=True)
        stopped = run.report(run.gap)
        return stopped or (Status.ITERATION_LIMIT if method.steps >= run.max_iter else Status.CONVERGED)

    def _descent(self) -> Status:
        """Epochs until the gap is reached; Newton's method where it promises to be quicker, or epochs gain nothing."""
        problem, run = self.problem, self.run
        state = _DescentState(problem, self.settings.seed, run)
        looks: list[tuple[int, float]] = []
        next_look, epochs, tried = FIRST_LOOK, 0, False
        while True:
            state.epoch(run)
            epochs += 1
            run.step()
            if epochs < next_look and epochs < self.settings.max_iter:
                continue
            point = run.keep(certified(problem, state.alpha, state.weights, state.bias, how=run.sure))
            looks.append((epochs, point.gap))
            run.note(point.gap, "coordinate descent", certified=True)
            stopped = run.report(point.gap)
            if stopped in STOPPED:
                return stopped
            cheap = newton_cost(problem) <= CHEAP and run.tol <= LOOSE
            if point.gap <= run.aim and (not cheap or tried):
                return Status.CONVERGED
            if stopped is not None:
                return stopped
            needed = epochs_needed(looks, run.aim)
            stuck = epochs >= STUCK and point.gap > STILL * looks[-2][1]
            if tried and stuck:
                return Status.NUMERICAL_LIMIT  # neither method gains any more
            to_go = epoch_cost(problem, state.take_visited()) * (needed - epochs)
            slow = epochs >= SLOW and to_go > newton_cost(problem)
            if not tried and (stuck or slow or cheap):
                tried = True
                status = self._newton()
                if run.reached or run.stopped_from_outside() is not None:
                    return status
                state = _DescentState(problem, self.settings.seed, run)
            next_look = epochs + max(10, min(epochs // 2, math.ceil(1.1 * (needed - epochs))))


def nearer(best: JointPoint | None, point: JointPoint) -> JointPoint:
    """The later of two points that are equally good."""
    return point if best is None or point.gap <= best.gap else best


def epochs_needed(looks: list[tuple[int, float]], tol: float) -> float:
    """Epochs until the gap is ``tol`` if it goes on to fall with a power of their number, as in the last half."""
    epochs, gap = looks[-1]
    if len(looks) < 3:
        return 2.0 * epochs
    before, then = looks[-3]
    power = math.log(then / gap) / math.log(epochs / before) if 0.0 < gap < then < math.inf else SLOWEST
    return epochs * math.exp(min(math.log(gap / tol) / max(power, SLOWEST), FARTHEST))


def epoch_cost(problem: JointProblem, visited: float) -> float:
    """What an epoch over a part of the rows may cost."""
    return EPOCH + visited * prices.read(problem.space) * problem.n_classes


def newton_cost(problem: JointProblem) -> float:
    """What Newton's method may cost: steps with a matrix, or with many products where the matrix is too large."""
    n, k, size = problem.n_rows, problem.n_classes, problem.n_classes * (problem.n_cols + 1)
    matrix = 0.5 * k * (k + 1) * prices.form(problem.space, n) + prices.factor(size)
    products = 2 * CG_STEPS * k * prices.read(problem.space)
    return NEWTON_STEPS * (STEP + PER_SCORE * n * k + min(matrix, products))


class _DescentState:
    """Arrays of the coordinate descent; b_m moves as the multiplier of Σ_i alpha_im = 0."""

    def __init__(self, problem: JointProblem, seed: int, run: Run) -> None:
        self.problem, start = problem, run.best
        n, k, bias = problem.n_rows, problem.n_classes, problem.bias
        self.alpha = np.zeros((n, k)) if start is None else start.alpha.copy()
        self.W = np.ascontiguousarray(problem.space.combine_all(self.alpha, run.sure).T)
        self.sums, self.settled = self.alpha.sum(axis=0), SETTLED
        self.visited: list[float] = []
        self.gain = bias.value**2 if bias.penalised else 0.0
        if bias.free:
            self.gain = bias_gain(problem.squared_norms)
        self.centre = np.zeros(k) if start is None or not bias.free else start.b.copy()
        self.joint = _core.Joint(
            problem.label, problem.cost, problem.squared_norms, self.alpha, self.W, self.sums, self.centre, self.gain,
            np.empty(3 * k), seed,
        )  # fmt: skip

    def epoch(self, run: Run) -> None:
        """One epoch; once the active rows agree, all rows are looked at again."""
        problem, active = self.problem, self.joint.n_active / self.problem.n_rows
        self.visited.append(active)
        run.how.spend(active * problem.n_classes * prices.read(problem.space), reads=active * problem.nnz)
        violation = self.joint.epoch(problem.space.core, run.how.watch)
        if self.problem.bias.free:
            self.centre += self.gain * self.sums
        if violation <= self.settled:
            if self.joint.n_active == self.problem.n_rows:
                self.settled *= SETTLED
            self.joint.unshrink()

    def take_visited(self) -> float:
        """The part of the rows that an epoch visited, on average since the last call."""
        part = sum(self.visited) / max(1, len(self.visited))
        self.visited.clear()
        return part

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

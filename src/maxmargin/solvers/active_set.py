"""The active-set polish: a semismooth Newton method that ends at the exact solution.

Solves, from a nearly optimal dual point, the same problem as the solver that calls it. With multipliers
a_i and penalties sigma_i let  z_i = a_i + sigma_i (1 − y_i f_i)  and  pi_i = clip(z_i, 0, upper_i).  Then

    psi(w, b) = ½‖w‖² + Σ (z_i² − (z_i − pi_i)²) / (2 sigma_i)

is convex, once differentiable and piecewise quadratic; rows with 0 < z_i < upper_i are the active set F and
its Hessian is R + X_Fᵀ diag(sigma) X_F. For the squared hinge psi with a = 0, sigma = 2 cost *is* the primal.
For the hinge it is the augmented Lagrangian: minimise psi, put a = pi, enlarge sigma, repeat. Once F is right,
each round solves the equations y f = 1 on F more exactly, so the method ends at rounding level.

References
----------
Hestenes: Multiplier and gradient methods, 1969. Rockafellar: Augmented Lagrangians and applications of the
proximal point algorithm in convex programming, 1976. Qi, Sun: A nonsmooth version of Newton's method, 1993.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.problem import Problem
from maxmargin.runtime import Watch
from maxmargin.solvers.base import Point, better, recover
from maxmargin.solvers.newton_system import Breakdown, newton_system

Vector = NDArray[np.float64]

LARGEST_SYSTEM = 6000


@dataclass
class _State:
    """Hyperplane, its raw scores ⟨w, x_i⟩, and the bias as the last unknown (b = bias.value · beta)."""

    w: Vector
    b: float
    scores: Vector


class ActiveSetPolish:
    """Takes a certified point to the exact optimum, or returns the best point it met."""

    def __init__(self, problem: Problem, n_threads: int, watch: Watch, *, max_steps: int = 100) -> None:
        self.problem, self.n_threads, self.watch, self.max_steps = problem, n_threads, watch, max_steps
        self.steps = 0
        self.upper, _ = problem.loss.dual_box(problem.cost)
        self.boxed = problem.loss.name == "hinge"

    def run(self, point: Point, *, penalty: float = 1000.0, tol: float = 0.0) -> Point:
        """Polish ``point``. ``penalty`` is the first sigma in units of the problem's own scale.

        Stops at ``tol`` or, by default, when no more digits can be gained.
        """
        best = point
        state = self._enter(point)
        alpha = point.alpha.copy()
        sigma = self._first_penalty(point, penalty)
        stalled = 0
        while self.steps < self.max_steps and best.gap > max(tol, 1e-15):
            if self.watch.past_deadline or self.watch.stop_requested:
                break
            anchor = alpha if self.boxed else np.zeros_like(alpha)
            try:
                alpha, solved = self._minimise(state, anchor, sigma)
            except Breakdown:
                break
            found = recover(self.problem, alpha, self.n_threads)
            stalled = 0 if found.gap < 0.5 * best.gap else stalled + 1
            best = better(best, found)
            if stalled >= 2 or not (self.boxed and solved):
                break
            state = self._enter(found, state.b)
            sigma = sigma * 10.0
        return best

    def _enter(self, point: Point, b: float | None = None) -> _State:
        scores = np.empty(self.problem.n_rows)
        _core.scores(self.problem.rows, point.w, 0.0, scores, self.n_threads)
        return _State(point.w.copy(), point.b if b is None else b, scores)

    def _first_penalty(self, point: Point, penalty: float) -> Vector:
        cost = self.problem.cost
        if not self.boxed:
            return np.where(cost > 0.0, 2.0 * cost, 1.0)
        norms = np.empty(self.problem.n_rows)
        _core.squared_norms(self.problem.rows, norms, self.n_threads)
        support = point.alpha > 0.0
        size = float(norms[support].mean()) if support.any() else float(norms.mean())
        typical = float(cost[cost > 0.0].mean())
        return np.full_like(cost, penalty * min(typical, 1.0 / max(size, 1e-300)))

    def _minimise(self, state: _State, anchor: Vector, sigma: Vector) -> tuple[Vector, bool]:
        """Newton's method on psi; returns pi and whether its gradient is small enough."""
        problem, bias = self.problem, self.problem.bias
        y, d = problem.y, problem.n_cols
        # A proximal term keeps the bias determined while F is empty; the outer rounds of the hinge remove it again.
        ridge = 1e-6 * float(sigma.mean()) if bias.free and self.boxed else 0.0
        centre, d_scores = state.b, np.empty(problem.n_rows)
        gradient = np.empty(d + (bias.value != 0.0))
        before, step = np.zeros(0, dtype=bool), 0.0
        while True:
            z = anchor + sigma * (1.0 - y * (state.scores + state.b))
            pi = np.clip(z, 0.0, self.upper)
            pull = y * pi
            _core.combine(problem.rows, pull, gradient[:d], self.n_threads, self.watch.core)
            gradient[:d] -= state.w
            if bias.value:
                held = state.b / bias.value if bias.penalised else ridge * (state.b - centre)
                gradient[d] = bias.value * float(pull.sum()) - held
            if self._small(gradient, pi, anchor, sigma, state):
                return pi, True
            if self.steps >= self.max_steps:
                return pi, False
            active = (z > 0.0) & (z < self.upper)
            if step == 1.0 and np.array_equal(active, before):
                return pi, True  # a full step within one piece of a quadratic: only rounding is left
            before = active
            if min(int(active.sum()), d) > LARGEST_SYSTEM:
                return pi, False
            D = np.where(active, sigma, 0.0)
            v = newton_system(
                problem.rows, D, bias, self.n_threads, bias_ridge=ridge, watch=self.watch.core
            ).solve(gradient)
            if not np.all(np.isfinite(v)):
                raise Breakdown("the Newton step is not finite")
            dw = np.ascontiguousarray(v[:d])
            db = bias.value * float(v[d]) if bias.value else 0.0
            _core.scores(problem.rows, dw, 0.0, d_scores, self.n_threads, self.watch.core)
            step = self._line_search(state, z, sigma, dw, db, y * (d_scores + db), ridge, centre)
            self.steps += 1
            state.w += step * dw
            state.b += step * db
            state.scores += step * d_scores
            if step < 1e-10:
                return pi, False

    def _small(self, gradient: Vector, pi: Vector, anchor: Vector, sigma: Vector, state: _State) -> bool:
        # Rockafellar's criterion: the gradient need only be small beside the multipliers' own movement.
        movement = 0.0
        if self.boxed:
            movement = 0.1 * float(np.linalg.norm(pi - anchor)) / math.sqrt(float(sigma.mean()))
        d = len(state.w)
        floor_w = 1e-14 * (float(np.linalg.norm(state.w)) + 1e-300)
        small_w = float(np.linalg.norm(gradient[:d])) <= max(movement, floor_w)
        floor_b = 1e-15 * float(pi.sum())
        small_b = len(gradient) == d or abs(float(gradient[d])) <= max(movement, floor_b)
        return small_w and small_b

    def _line_search(
        self,
        state: _State,
        z: Vector,
        sigma: Vector,
        dw: Vector,
        db: float,
        dm: Vector,
        ridge: float,
        centre: float,
    ) -> float:
        """The exact minimiser along the direction: a root of the rising, piecewise linear derivative."""
        bias = self.problem.bias
        along, curve = float(state.w @ dw), float(dw @ dw)
        if bias.penalised:
            along += state.b * db / bias.value**2
            curve += (db / bias.value) ** 2
        elif bias.free:
            along += ridge * (state.b - centre) * db
            curve += ridge * db * db

        def slope(t: float) -> float:
            return along + t * curve - _core.clipped_slope(z, dm, self.upper, sigma, t)

        at_zero, at_one = slope(0.0), slope(1.0)
        if at_one <= 1e-10 * abs(at_zero):
            return 1.0
        low, high, f_low, f_high = 0.0, 1.0, at_zero, at_one
        for _ in range(40):  # Illinois: secant steps that keep the bracket
            t = low - f_low * (high - low) / (f_high - f_low) if f_high > f_low else 0.5 * (low + high)
            f = slope(t)
            if abs(f) <= 1e-3 * abs(at_zero) or high - low < 1e-12:
                return t
            if f > 0.0:
                high, f_high, f_low = t, f, 0.5 * f_low
            else:
                low, f_low, f_high = t, f, 0.5 * f_high
        return low if low > 0.0 else high

"""Newton's method along a path over C that keeps its curvature from point to point, for smooth losses.

With unit multipliers u_i = c_i h'(r_i) and costs C c_i, the multipliers at any C are C u: a hyperplane's objective,
its dual value and its gradient C Σ u sign x − w are known for every C at once, and the best bias does not depend on
C. So a new C needs no pass to begin with, and two passes per step; the matrix of second derivatives, I + C M, is
formed anew only where steps with the old M gain too little.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin.problem import Problem
from maxmargin.process import blas_guard
from maxmargin.runtime import Watch
from maxmargin.solution import Solution, Status
from maxmargin.solvers.claims import AIM, claim
from maxmargin.solvers.multipliers import SMALLEST
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.points import Point
from maxmargin.solvers.run import Run, settled
from maxmargin.space.systems import Breakdown, Cholesky

Vector = NDArray[np.float64]

MOST_COLUMNS = 1000
WEAK = 1e-12  # a ridge that keeps the bias determined, beside the costs
MOST_STEPS = 12  # to the next C: a path of more is better begun afresh
FRESH, HALVED = 0.1, 0.5  # the gap must fall by this in a step with the old matrix, and with a new one


class Chord:
    """A hyperplane that moves along the path; ``unit`` is the problem with C = 1."""

    def __init__(self, unit: Problem, n_threads: int, watch: Watch, reason: str) -> None:
        self.unit, self.settings = unit, Newton(n_threads=n_threads, reason=reason)
        self.run = Run(self.settings, unit, watch)
        self.M: Vector | None = None
        self.w: Vector | None = None

    @staticmethod
    def fits(unit: Problem) -> bool:
        """Smooth losses whose matrix of second derivatives is small beside the rows."""
        few = unit.n_cols <= min(MOST_COLUMNS, unit.n_rows // 4)
        return unit.loss.smooth and unit.penalty == "l2" and not unit.bias.penalised and few

    def begin(self, solution: Solution) -> None:
        """Stand at a solution of any C."""
        self.w, self.b = solution.w.copy(), solution.b
        self.scores = self.unit.space.scores(self.w, self.run.sure)
        self._look()

    def solve(self, problem: Problem, C: float, tol: float) -> Solution | None:
        """The solution for C, the unit problem times C, from where it stands; None if a few steps do not suffice."""
        assert self.w is not None
        steps, before, fresh = 0, np.inf, False
        with blas_guard:
            gap = problem.relative_gap(*self._values(C))
            while gap > AIM * tol:
                if steps >= MOST_STEPS or self.run.watch.past_deadline:
                    return None
                if self.M is None or (gap > FRESH * before and not fresh):
                    self._form_matrix()
                    fresh = True
                elif gap > HALVED * before:
                    return None
                else:
                    fresh = False
                if not self._step(C):
                    return None
                steps, before = steps + 1, gap
                gap = problem.relative_gap(*self._values(C))
            return self._solution(problem, C, tol, steps)

    def _look(self) -> None:
        """Best bias, unit multipliers and the sum they make, at the present scores."""
        unit = self.unit
        if unit.bias.free:
            interval = unit.loss.best_bias(self.scores, unit.y, unit.cost, self.b)
            self.interval, self.b = interval, 0.5 * (interval[0] + interval[1])
        else:
            self.interval = (0.0, 0.0)
        self.r = unit.loss.residual(self.scores + self.b, unit.y)
        slope = unit.loss.slope(self.r)
        self.u = unit.cost * slope
        self.induced = unit.space.combine(self.u * unit.sign, self.run.how)
        self.loss = float(unit.cost @ unit.loss.of_residual(self.r))
        self.conjugate = float(unit.cost @ unit.loss.conjugate(slope, unit.y))

    def _values(self, C: float) -> tuple[float, float]:
        assert self.w is not None
        primal = 0.5 * float(self.w @ self.w) + C * self.loss
        return primal, -0.5 * C * C * float(self.induced @ self.induced) - C * self.conjugate

    def _form_matrix(self) -> None:
        unit = self.unit
        self.M = unit.space.normal_matrix(unit.cost * unit.loss.curvature(self.r), unit.bias.value, self.run.how)

    def _step(self, C: float) -> bool:
        unit, d = self.unit, self.unit.n_cols
        assert self.w is not None
        assert self.M is not None
        H = C * self.M
        H[np.arange(d), np.arange(d)] += 1.0
        g = np.zeros(len(H))
        g[:d] = C * self.induced - self.w
        if unit.bias.value:
            H[d, d] += WEAK * C * float(unit.cost.sum()) + SMALLEST
        try:
            v = Cholesky(H).solve(g)
        except Breakdown:
            return False
        if not np.all(np.isfinite(v)):
            return False
        change = unit.space.scores(np.ascontiguousarray(v[:d]), self.run.how)
        self.w += v[:d]
        self.b += unit.bias.value * float(v[d]) if unit.bias.value else 0.0
        self.scores += change
        self._look()
        return True

    def _solution(self, problem: Problem, C: float, tol: float, steps: int) -> Solution | None:
        assert self.w is not None
        w = self.w.copy()
        # Scores that were moved step by step drift; what is claimed is computed from w itself.
        scores = self.unit.space.scores(w, self.run.how)
        primal, dual = problem.objective(0.5 * float(w @ w), scores + self.b, self.b), self._values(C)[1]
        found = claim(
            problem, C * self.u, w, self.b, tol, self.run.sure, primal=primal, dual=dual, induced=C * self.induced
        )  # fmt: skip
        if settled(Status.CONVERGED, found.gap, tol) is not Status.CONVERGED:
            return None
        run = Run(self.settings, problem, self.run.watch)
        run.n_iter = steps
        point = Point(
            found.alpha, w, self.b, self.interval, found.primal, found.dual, found.gap, scores
        )  # fmt: skip
        return run.answer(point, Status.CONVERGED)

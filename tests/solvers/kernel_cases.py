"""Machines with a kernel for tests of their solvers: problems, quadratics, and what Clarabel makes of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp

from maxmargin import Problem, _core
from maxmargin.certificates import ExpansionCertificate
from maxmargin.kernels import Gaussian
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.runtime import Execution
from maxmargin.solvers import pair_steps
from maxmargin.solvers.pair_problem import pair_problem
from maxmargin.solvers.pair_steps import PairSteps

ONE = Execution(1)
CLASSES = ["hinge", "squared_hinge"]
TUBES = ["epsilon_insensitive", "squared_epsilon_insensitive"]
LOSSES = CLASSES + TUBES


@dataclass
class Quadratic:
    """½ βᵀKβ + ½ Σ ridge β² + linearᵀβ + tube Σ|β| over a box whose groups keep their sums: what steps on pairs see."""

    K: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    begin: np.ndarray  # a feasible beta
    ridge: np.ndarray | None = None
    tube: float = 0.0
    group_end: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.group_end is None:
            self.group_end = np.array([len(self.linear)])

    @property
    def groups(self) -> list[slice]:
        assert self.group_end is not None
        ends = [0, *self.group_end.tolist()]
        return [slice(a, b) for a, b in pairwise(ends)]

    @property
    def with_ridge(self) -> np.ndarray:
        return self.K if self.ridge is None else self.K + np.diag(self.ridge)

    def value(self, beta: np.ndarray) -> float:
        return float(0.5 * beta @ self.with_ridge @ beta + self.linear @ beta + self.tube * np.abs(beta).sum())

    def slope(self, beta: np.ndarray) -> np.ndarray:
        return np.asarray(self.with_ridge @ beta + self.linear)

    def violation(self, beta: np.ndarray) -> float:
        """How much the slope of some variable that may fall is above that of one of its group that may rise."""
        slope = self.slope(beta)
        rise = np.where(beta < self.upper, slope + np.where(beta >= 0.0, self.tube, -self.tube), np.inf)
        fall = np.where(beta > self.lower, slope + np.where(beta > 0.0, self.tube, -self.tube), -np.inf)
        return max(0.0, *(float(fall[g].max(initial=-np.inf) - rise[g].min(initial=np.inf)) for g in self.groups))

    def steps(self, beta: np.ndarray, slope: np.ndarray) -> Any:
        """The core's steps, which change both vectors in place."""
        own = np.ascontiguousarray(self.with_ridge.diagonal())
        return _core.PairSteps(self.lower, self.upper, own, self.ridge, beta, slope, self.group_end, self.tube)

    def optimum(self) -> float:
        """The smallest value, by Clarabel."""
        n, two = len(self.linear), self.tube > 0.0
        # beta = p − m with p, m ≥ 0 where a tube prices both; else beta itself.
        P, q = self.with_ridge, self.linear
        sums = np.array([np.isin(np.arange(n), np.arange(n)[g]).astype(float) for g in self.groups])
        lower, upper, fixed = self.lower, self.upper, sums @ self.begin
        if two:
            P, q = np.block([[P, -P], [-P, P]]), np.concatenate([q + self.tube, -q + self.tube])
            sums = np.hstack([sums, -sums])
            lower, upper = np.zeros(2 * n), np.concatenate([np.maximum(upper, 0.0), np.maximum(-lower, 0.0)])
        high, low, eye = np.isfinite(upper), np.isfinite(lower), np.eye(len(q))
        A = np.vstack([sums, eye[high], -eye[low]])
        b = np.concatenate([fixed, upper[high], -lower[low]])
        cones = [clarabel.ZeroConeT(len(sums)), clarabel.NonnegativeConeT(int(high.sum() + low.sum()))]
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-11
        solver = clarabel.DefaultSolver(sp.csc_matrix(np.triu(P)), q, sp.csc_matrix(A), b, cones, settings)
        found = solver.solve()
        assert str(found.status) in ("Solved", "AlmostSolved")
        return float(found.obj_val)


def with_kernel(problem: Problem, kernel: Any = None, **options: Any) -> Problem:
    """The problem in a kernel's space."""
    return replace(problem, space=KernelRows.of(problem.space, kernel or Gaussian(0.5), **options))


def machine(
    loss: str = "hinge", n: int = 80, d: int = 3, *, C: float = 3.0, kernel: Any = None, seed: int = 0,
    weights: bool = False, epsilon: float = 0.2, layout: Any = np.asarray, **options: Any,
) -> Problem:  # fmt: skip
    """Two classes with noisy labels, or noisy numbers; with weights, a fifth of the rows counts for nothing."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    truth = np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(n)
    weight = rng.choice([0.0, 0.5, 1.0, 4.0, 1.0], n) if weights else None
    if loss in TUBES:
        plain = Problem.regression(layout(X), truth, C=C, loss=loss, epsilon=epsilon, sample_weight=weight)
    else:
        y = np.where(truth > 0.0, 1, -1)
        plain = Problem.from_arrays(layout(X), y, C=C, loss=loss, sample_weight=weight)
    return with_kernel(plain, kernel, **options)


def quadratic_of(problem: Any) -> Quadratic:
    """What steps on pairs solve, with the kernel's values by its own definition."""
    task, live = pair_problem(problem)
    rows = problem.space if live is None else problem.space.take(live)
    K = rows.kernel.gram(rows.X) if not rows.is_given else rows.square(ONE, np.float64)
    if task.copies == 2:
        K = np.tile(K, (2, 2))
    return Quadratic(
        K, task.linear, task.lower, task.upper, task.start(None), task.ridge, task.tube, task.group_end
    )  # fmt: skip


def optimum(problem: Any) -> float:
    """Of the primal, which is that of the dual."""
    return -quadratic_of(problem).optimum()


def certificate(problem: Problem, found: Any, tol: float = 1e-6) -> ExpansionCertificate:
    """What an estimator would make of a solution: the costs are those of C = 1 (or of a hard margin) and weights."""
    loss: Any = problem.loss
    return ExpansionCertificate(
        kernel=problem.space.kernel.structure(), alpha=found.alpha, intercept=found.b, stretch=found.stretch,
        primal=found.primal, dual=found.dual, gap=found.gap, C=np.inf if problem.hard else 1.0, tol=tol,
        loss=loss.name, power=getattr(loss, "power", np.nan), epsilon=getattr(loss, "epsilon", 0.0),
        classes=None if loss.regression else np.array([-1.0, 1.0]),
    )  # fmt: skip


def verdict(problem: Problem, found: Any, tol: float = 1e-6) -> Any:
    """The claim about a solution, checked from the data."""
    return certificate(problem, found, tol).verify(problem.space.X, problem.y, problem.cost)


def scores(problem: Any, found: Any) -> np.ndarray:
    """Σ_j w_j k(x_i, x_j) + b, by the kernel's own definition."""
    K = problem.space.kernel.gram(problem.space.X)
    return np.asarray(K @ found.w + found.b)


def solved(problem: Any, *, watch: Any = None, start: Any = None, **options: Any) -> Any:
    """By steps on pairs alone."""
    settings: dict[str, Any] = {"tol": 1e-7, "n_threads": 1} | options
    return PairSteps(**settings).solve(problem, start=start, watch=watch)


def by_lines(monkeypatch: Any) -> None:
    """Lines of the matrix when they are needed, however few rows there are."""
    monkeypatch.setattr(pair_steps, "SQUARE_ROWS", 0)


def assert_consistent(problem: Any, found: Any) -> None:
    """Multipliers are feasible, none of a row without cost, and w is what they make."""
    box, sign = problem.box, problem.sign
    assert np.all((found.alpha >= box.lower) & (found.alpha <= box.upper))
    assert np.all(found.alpha[problem.cost == 0.0] == 0.0)
    assert abs(math.fsum((sign * found.alpha).tolist())) <= 1e-12 * np.abs(found.alpha).sum()
    np.testing.assert_array_equal(found.w, found.stretch * sign * found.alpha)

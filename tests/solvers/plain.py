"""Losses, conjugates and objectives written out from their definitions; small problems of every loss; and the way in
to the parts of Newton's method that several files test."""

import numpy as np
import scipy.sparse as sp
from scipy.special import entr

from maxmargin import Problem
from maxmargin.runtime import Execution, Watch
from maxmargin.solvers import Newton, multipliers, points
from maxmargin.solvers.run import Run
from tests.conftest import tall
from tests.oracles import Form

ONE = Execution(1)
MARGIN = ["hinge", "squared_hinge", "logistic", 1.5, 3.0]
REGRESSION = ["epsilon_insensitive", "squared_epsilon_insensitive"]
LOSSES = MARGIN + REGRESSION
SMOOTH = ["squared_hinge", "logistic", 3.0, "squared_epsilon_insensitive"]
CORNERS = ["hinge", 1.5, "epsilon_insensitive"]
BIASES = {
    "free": {},
    "none": {"fit_intercept": False},
    "penalised": {"penalize_intercept": True, "intercept_scaling": 2.0},
}


def small(loss, n=60, d=4, seed=0, *, epsilon=0.3, bias="free", **options):
    """Overlapping classes, or noisy values of a linear function."""
    X, y = tall(n, d, seed)
    if loss not in REGRESSION:
        return Problem.from_arrays(X, y, loss=loss, **BIASES[bias], **options)
    target = X @ np.arange(1.0, d + 1.0) + 3.0 + np.random.default_rng(seed).standard_normal(n)
    return Problem.regression(X, target, loss=loss, epsilon=epsilon, **BIASES[bias], **options)


def form(problem):
    """The loss as the oracles know it."""
    loss = problem.loss
    if loss.name == "logistic":
        return Form("logistic")
    power = 2.0 if "squared" in loss.name else getattr(loss, "power", 1.0)
    return Form("error" if loss.regression else "slack", power=power, epsilon=getattr(loss, "epsilon", 0.0))


def dense(problem):
    return problem.space.X.toarray() if sp.issparse(problem.space.X) else np.asarray(problem.space.X, dtype=np.float64)


def signs(problem):
    return np.ones(len(problem.y)) if problem.loss.regression else problem.y


def targets(problem):
    """What sign·score is compared with."""
    return problem.y if problem.loss.regression else np.full(len(problem.y), float(problem.loss.name != "logistic"))


def residuals(problem, w, b):
    return targets(problem) - signs(problem) * (dense(problem) @ w + b)


def conjugate(problem, fraction):
    """h*(fraction) for shares of the cost within the domain."""
    name, size = problem.loss.name, np.abs(fraction)
    if name == "logistic":
        return -entr(fraction) - entr(1.0 - fraction)
    if name == "slack_power":
        p = problem.loss.power
        return (p - 1.0) * (fraction / p) ** (p / (p - 1.0))
    return getattr(problem.loss, "epsilon", 0.0) * size + (0.25 * fraction**2 if "squared" in name else 0.0)


def scale_of_bias(problem):
    return problem.bias.value if problem.bias.penalised else 0.0


def primal(problem, w, b):
    scale = scale_of_bias(problem)
    of_bias = 0.5 * (b / scale) ** 2 if scale else 0.0
    return of_bias + form(problem).objective(dense(problem), problem.y, problem.cost, w, np.array([b]))


def induced(problem, alpha):
    """Σ alpha sign x."""
    return dense(problem).T @ (alpha * signs(problem))


def dual(problem, alpha):
    live, w = problem.cost > 0.0, induced(problem, alpha)
    of_bias = scale_of_bias(problem) * float(alpha @ signs(problem))
    cost = problem.cost[live]
    of_loss = cost @ conjugate(problem, alpha[live] / cost) - alpha @ targets(problem)
    return -0.5 * float(w @ w) - 0.5 * of_bias**2 - float(of_loss)


def assert_feasible(problem, alpha):
    """Within the domain, nothing on rows without cost, and balanced where the bias is free."""
    name, cost = problem.loss.name, problem.cost
    assert np.all(alpha[cost == 0.0] == 0.0)
    if name in ("hinge", "logistic", "epsilon_insensitive"):
        assert np.all(np.abs(alpha) <= cost)
    if not problem.loss.regression:
        assert np.all(alpha >= 0.0)
    if problem.bias.free:
        assert abs(float(alpha @ signs(problem))) <= 1e-12 * max(float(np.abs(alpha).sum()), 1e-300)


def optimum(problem):
    """What Clarabel finds, a penalised bias as a column of its own."""
    scale = scale_of_bias(problem)
    X = np.column_stack([dense(problem), np.full(len(problem.y), scale)]) if scale else dense(problem)
    answer = form(problem).solve(X, problem.y, problem.cost, bias=problem.bias.free)
    assert answer.reliable(1e-12, 1e-6)
    return answer.value


def run_on(problem, watch=None, **settings):
    """The state of one call of solve."""
    return Run(Newton(n_threads=1, **settings), problem, watch or Watch())


def method_for(problem, best=None, watch=None, **options):
    """Newton's method that has met a point."""
    method = multipliers.MethodOfMultipliers(run_on(problem, watch), **options)
    if best is not None:
        method.best = best
    return method


def working_set(method, penalty=10.0, fraction=0.4):
    """The rows that it would work on from its best point."""
    return method._choose(method.best, penalty, fraction)


def minimise(method, work, anchor, most=200):
    """One round: whether it ended at a minimiser of the augmented Lagrangian with these anchors."""
    return method._minimise(work, anchor, most)


def absorb(method, work):
    """The point of a working set, kept if it is better."""
    return method._absorb(work)


def begun(problem, *, fraction=1.0, sigma=None, **options):
    """Newton's method at a rough point, and its working set: all rows, unless a fraction is given."""
    smooth, alpha = problem.loss.smooth, 0.01 * np.ones(len(problem.y))
    start = points.uncertified(problem, None, ONE) if smooth else points.recover(problem, alpha, ONE)
    method = method_for(problem, start, **options)
    work = working_set(method, fraction=fraction)
    if sigma is not None:
        work.sigma = np.full_like(work.sigma, sigma)
    return method, work

"""What a solver claims of an expansion: bounds that hold in exact arithmetic, and that a certificate confirms."""

import math
from dataclasses import replace

import numpy as np
import pytest

from maxmargin import Problem
from maxmargin.certificates.expansion import MOST_STRETCH
from maxmargin.kernels import Callable, Gaussian, Laplacian, Linear, Polynomial, Precomputed
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.solvers.kernel_claims import additions_of, expansion_stated, sizes_of
from maxmargin.solvers.points import make_feasible
from maxmargin.space import Rows
from tests.certificates.expansions import exact_objectives, exact_scores
from tests.exact.objectives import at_least, at_most
from tests.solvers.kernel_cases import ONE, certificate, machine, with_kernel

KERNELS = [
    Linear(),
    Gaussian(0.5),
    Laplacian(0.4),
    Polynomial(0.4, 1.0, 3),
    Gaussian(0.2) + 0.5 * Linear(),
    Gaussian(0.1) * Polynomial(0.5, 1.0, 2),
]


def stated(problem, alpha, b, tol=1e-6, *, definite=True):
    """The claim about multipliers, and what a solution would hold of it."""
    f, sums = problem.space.exact_scores(problem.sign * alpha, ONE)
    return expansion_stated(problem, alpha, b, f, sums, tol, definite=definite)


def any_multipliers(problem, seed):
    rng = np.random.default_rng(seed)
    alpha = np.minimum(problem.cost, 10.0) * np.clip(rng.uniform(-0.5, 1.5, problem.n_rows), 0.0, 1.0)
    if problem.loss.regression:
        alpha *= rng.choice([-1.0, 1.0], problem.n_rows)
    return make_feasible(problem, alpha), float(rng.standard_normal())


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "epsilon_insensitive"])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_claims_about_any_multipliers_are_true_and_confirmed(kernel, loss):
    for seed in range(4):
        problem = machine(loss, 11, seed=seed, kernel=kernel, C=5.0, weights=True)
        alpha, b = any_multipliers(problem, seed)
        found = stated(problem, alpha, b)
        assert np.abs(found.alpha - alpha).max() <= 1e-14 * max(1.0, np.abs(alpha).max()) or not found.alpha.any()
        assert math.fsum((problem.sign * found.alpha).tolist()) == 0.0
        assert found.stretch == 1.0
        proof = certificate(problem, found)
        verdict = proof.verify(problem.space.X, problem.y, problem.cost)
        assert verdict.outcome.name == "HONEST", str(verdict)
        if not isinstance(kernel, Laplacian):  # sums of many numbers, exactly
            f = exact_scores(proof.kernel, problem.space.X, problem.sign * found.alpha)
            primal, dual = exact_objectives(proof, f, problem.sign, problem.target, problem.cost)
            assert at_least(found.primal, primal)
            assert at_most(found.dual, dual)


@pytest.mark.parametrize("far", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplacian(0.5), Gaussian(0.2) + Laplacian(0.5)], ids=repr)
def test_claims_are_confirmed_wherever_rows_lie(kernel, far):
    plain = machine("hinge", 60, C=5.0)
    rows = Rows.of(plain.space.X + far)
    problem = with_kernel(replace(plain, space=rows), kernel)
    for seed in range(3):
        found = stated(problem, *any_multipliers(problem, seed))
        verdict = certificate(problem, found).verify(problem.space.X, problem.y, problem.cost)
        assert verdict.outcome.name == "HONEST", str(verdict)


def test_values_from_outside_are_confirmed():
    plain = machine("hinge", 50, C=5.0)
    K = plain.space.kernel.gram(plain.space.X)
    given = replace(plain, space=KernelRows.of(Rows.of(K), Precomputed()))
    called = with_kernel(replace(plain, space=plain.space.rows), Callable(lambda X, Z: (X @ Z.T + 1.0) ** 2))
    for problem in (given, called):
        found = stated(problem, *any_multipliers(problem, 0))
        verdict = certificate(problem, found).verify(problem.space.X, problem.y, problem.cost)
        assert verdict.outcome.name == "HONEST", str(verdict)
    part = given.space.take(np.arange(10, 40))
    assert sizes_of(part, np.ones(30)).given == np.abs(K).max()


def on_the_margin(C):
    """Two rows whose margins are 1 but for rounding, on which a large cost puts a price."""
    X = np.array([[0.0], [1.0]])
    problem = with_kernel(Problem.from_arrays(X, [-1, 1], C=C, loss="hinge"), Gaussian(1.0))
    return problem, np.full(2, 1.0 / (1.0 - math.exp(-1.0)))


@pytest.mark.parametrize("C", [10.0, 1e6, 1e9, 1e12])
def test_a_longer_hyperplane_takes_rows_on_the_margin_beyond_its_rounding(C):
    problem, alpha = on_the_margin(C)
    found = stated(problem, alpha, 0.0)
    assert (found.stretch > 1.0) == (C >= 1e9)
    assert found.stretch < 1.0 + 1e-12
    assert found.gap <= 1e-6
    assert found.dual == pytest.approx(alpha[0], rel=1e-12)
    assert certificate(problem, found).verify(problem.space.X, problem.y, problem.cost)


def test_multipliers_worse_than_none_are_not_claimed():
    """A dual value below 0 is worse than that of alpha = 0."""
    problem = machine("hinge", 40, C=100.0, kernel=Polynomial(1.0, 1.0, 3))
    alpha = make_feasible(problem, np.full(40, 90.0))
    found = stated(problem, alpha, 0.3)
    assert not found.alpha.any()
    assert found.dual == 0.0
    assert found.b == 0.3
    sign = problem.y * 0.3
    assert found.primal == pytest.approx(float(problem.cost @ np.maximum(0.0, 1.0 - sign)), rel=1e-12)
    assert certificate(problem, found).verify(problem.space.X, problem.y, problem.cost).outcome.name == "HONEST"


def test_an_indefinite_kernel_has_objectives_and_no_gap():
    problem = machine("hinge", 40, kernel=Polynomial(1.0, -1.0, 2))
    found = stated(problem, *any_multipliers(problem, 0), definite=False)
    assert math.isnan(found.gap)
    assert math.isfinite(found.primal)
    assert math.isfinite(found.dual)
    assert found.alpha.any()
    assert found.stretch == 1.0


def test_sums_by_tiles_have_few_additions():
    problem = machine("hinge", 30)
    assert additions_of(problem.space, 10) <= 12
    assert additions_of(problem.space, 10**6) < 10**4
    assert additions_of(with_kernel(replace(problem, space=problem.space.rows), KERNELS[4]).space, 1000) == 1001
    assert MOST_STRETCH > 1.0

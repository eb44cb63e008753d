"""Machines with a share ν: optima of the programs as they are written, the share's meaning, and order statistics."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Status
from maxmargin.certificates import NuCertificate
from maxmargin.kernels import Callable, Gaussian, Linear, Sigmoid
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.runtime import Watch
from maxmargin.solvers import free_newton, pair_steps
from maxmargin.solvers.nu_machines import NuDual, NuProblem, weighted_split
from maxmargin.solvers.pair_problem import pair_problem
from maxmargin.solvers.pair_steps import PairSteps
from maxmargin.space import Rows
from tests.oracles import Program
from tests.solvers.kernel_cases import optimum, quadratic_of

KINDS = ["nu_hinge", "nu_tube", "one_class", "ball"]
GAUSSIAN = Gaussian(0.5)


def drawn(kind, n=80, nu=0.3, *, kernel=GAUSSIAN, seed=0, weights=False, cache_bytes=10**8):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    score = np.sin(2.0 * X[:, 0]) + 0.4 * rng.standard_normal(n)
    y = {"nu_hinge": np.where(score > 0.0, 1.0, -1.0), "nu_tube": score}.get(kind, np.ones(n))
    cost = rng.choice([0.0, 0.5, 1.0, 3.0], n) if weights else np.ones(n)
    return NuProblem(KernelRows.of(Rows.of(X), kernel, cache_bytes), kind, y, cost, nu)


def solved(problem, *, start=None, watch=None, **options):
    return PairSteps(**({"tol": 1e-7, "max_iter": 10**7, "n_threads": 1} | options)).solve(
        problem, start=start, watch=watch
    )


def by_clarabel(problem):
    """The optimum of the program over w, b, ρ or ε, and slacks, in rows whose products are the kernel's values."""
    K, y, cost = problem.space.kernel.gram(problem.space.X), problem.y, problem.cost
    values, vectors = np.linalg.eigh(K)
    good = values > 1e-13 * values[-1]
    L, n, level = vectors[:, good] * np.sqrt(values[good]), len(y), problem.nu * cost.sum()
    program = Program(w=L.shape[1], b=1, size=1, slack=n)
    f, one = L @ program["w"].toarray(), np.ones((n, 1))
    size, slack, b = one @ program["size"].toarray(), program["slack"].toarray(), one @ program["b"].toarray()
    program.quadratic("w", 1.0)
    program.linear("slack", cost)
    program.linear("size", level if problem.kind == "nu_tube" else -level)
    program.require(sp.csr_array(slack))
    if problem.kind in ("nu_hinge", "nu_tube"):
        program.require(sp.csr_array(program["size"]))
    if problem.kind == "nu_tube":
        program.require(sp.csr_array(slack + size - f - b), y)
        program.require(sp.csr_array(slack + size + f + b), -y)
    elif problem.kind == "nu_hinge":
        program.require(sp.csr_array(y[:, None] * (f + b) - size + slack))
    else:
        lift = 0.5 * level * K.diagonal() if problem.kind == "ball" else np.zeros(n)
        program.require(sp.csr_array(f - size + slack), -lift)
    value = program.solve()[1]
    assert value is not None
    return value


def claim(problem, found, tol=1e-6):
    tube = problem.kind == "nu_tube"
    return NuCertificate(
        kind=problem.kind, kernel=problem.space.kernel.structure(), alpha=found.alpha, intercept=found.b,
        nu=problem.nu, rho=0.0 if tube else found.rho, epsilon=found.epsilon if tube else 0.0, primal=found.primal,
        dual=found.dual, gap=found.gap, tol=tol,
        classes=np.array([-1.0, 1.0]) if problem.kind == "nu_hinge" else None,
    )  # fmt: skip


def verdict(problem, found, tol=1e-6):
    return claim(problem, found, tol).verify(problem.space.X, problem.y, problem.cost)


def sides(problem, found):
    """The primal by its definition, and how far every row is on the wrong side."""
    K, level = problem.space.kernel.gram(problem.space.X), problem.nu * problem.cost.sum()
    sign = problem.y if problem.kind == "nu_hinge" else np.ones(problem.n_rows)
    f = K @ found.w + found.b
    if problem.kind == "nu_tube":
        beyond, price = np.abs(problem.y - f) - found.epsilon, level * found.epsilon
    else:
        lift = 0.5 * level * K.diagonal() if problem.kind == "ball" else 0.0
        beyond, price = found.rho + lift - sign * f, -level * found.rho
    return 0.5 * found.w @ K @ found.w + problem.cost @ np.maximum(0.0, beyond) + price, beyond


def assert_optimal(problem, found, best, tol=1e-7):
    assert found.status is Status.CONVERGED, repr(found)
    room = 1e-7 * abs(best) + 1e-9
    assert found.dual - room <= best <= found.primal + room
    assert found.primal - found.dual <= tol * max(abs(found.primal), abs(found.dual))
    checked = verdict(problem, found, tol)
    assert checked, str(checked)
    primal, _ = sides(problem, found)
    assert primal == pytest.approx(found.primal, rel=1e-8, abs=1e-9)


# --- the optimum ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_of_the_program_as_it_is_written(kind, weights):
    for nu in (0.05, 0.3, 0.6):
        problem = drawn(kind, 50, nu, weights=weights)
        found = solved(problem)
        best = by_clarabel(problem)
        assert_optimal(problem, found, best)
        assert optimum(problem) == pytest.approx(best, rel=1e-6, abs=1e-8)
        assert not found.alpha[problem.cost == 0.0].any()


@pytest.mark.parametrize(("weights", "cache"), [(False, 1), (True, 10**8)])
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_by_lines(kind, weights, cache, monkeypatch):
    monkeypatch.setattr(pair_steps, "SQUARE_ROWS", 0)
    problem = drawn(kind, 90, weights=weights, cache_bytes=cache)
    assert_optimal(problem, solved(problem), by_clarabel(problem))


@pytest.mark.parametrize("kind", KINDS)
def test_free_sets_that_are_too_large_to_be_factored(kind, monkeypatch):
    for name, value in (("SQUARE_ROWS", 0), ("MOST_FREE", 3), ("RANK", 15)):
        monkeypatch.setattr(pair_steps if name == "SQUARE_ROWS" else free_newton, name, value)
    problem = drawn(kind, 90)
    assert_optimal(problem, solved(problem), by_clarabel(problem))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "kernel", [Linear(), Gaussian(0.1) + Linear(), Callable(lambda X, Z: (1.0 + X @ Z.T) ** 2)], ids=repr
)
def test_other_kernels(kind, kernel):
    problem = drawn(kind, 60, 0.5, kernel=kernel)
    problem.space.X[:] += 1.0  # far enough from 0 for a threshold
    y = np.where(problem.space.X[:, 0] > 1.0, 1.0, -1.0) if kind == "nu_hinge" else problem.y
    problem = replace(problem, space=KernelRows.of(Rows.of(problem.space.X), kernel), y=y)
    assert_optimal(problem, solved(problem), by_clarabel(problem))


@pytest.mark.parametrize("kind", ["nu_hinge", "one_class"])
def test_where_the_best_function_is_zero_both_bounds_are_near_it(kind):
    """Classes that overlap more than ν allows; rows around 0 without a threshold."""
    problem = drawn(kind, 60, kernel=Linear())
    assert by_clarabel(problem) == pytest.approx(0.0, abs=1e-8)
    found = solved(problem)
    assert -1e-8 <= found.dual <= 0.0 <= found.primal <= 1e-8
    assert np.abs(sides(problem, found)[0]) <= 1e-8
    assert verdict(problem, found).outcome.name == "HONEST"


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_classifier_may_come_in_any_order(kind):
    """Steps see rows class by class; answers are in the order of the rows."""
    problem = drawn(kind, 60)
    order = np.random.default_rng(1).permutation(60)
    other = solved(problem.part(order))
    found = solved(problem)
    assert other.primal == pytest.approx(found.primal, rel=1e-6)
    np.testing.assert_allclose(sides(problem.part(order), other)[1], sides(problem, found)[1][order], atol=2e-2)
    assert verdict(problem.part(order), other)


# --- what ν means -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("nu", [0.1, 0.25, 0.5, 0.7])
@pytest.mark.parametrize("kind", KINDS)
def test_a_share_of_the_weight_is_beyond_and_more_has_multipliers(kind, nu, weights):
    problem = drawn(kind, 100, nu, weights=weights)
    found = solved(problem, tol=1e-9)
    _, beyond = sides(problem, found)
    level, size = nu * problem.cost.sum(), np.abs(beyond).max()
    assert problem.cost[beyond > 1e-4 * size].sum() <= level * (1.0 + 1e-9)
    support = np.abs(found.alpha) > 1e-6 * np.abs(found.alpha).max()
    assert problem.cost[support].sum() >= level * (1.0 - 1e-9)
    assert np.all(beyond[~support & (problem.cost > 0.0)] <= 1e-4 * size)
    total = np.abs(found.alpha).sum()
    assert total == pytest.approx(level, rel=1e-6) or (kind == "nu_tube" and total <= level)


def test_a_whole_class_beyond_the_margin_has_no_margin():
    """ν at its limit: all multipliers of the smaller class at their bound."""
    problem = drawn("nu_hinge", 61)
    smaller = min((problem.y > 0).sum(), (problem.y < 0).sum())
    limit = NuProblem(problem.space, "nu_hinge", problem.y, problem.cost, 2.0 * smaller / 61)
    found = solved(limit)
    assert found.status is Status.CONVERGED
    assert found.primal == pytest.approx(by_clarabel(limit), rel=1e-6)
    assert verdict(limit, found)


def test_all_multipliers_at_their_bound():
    for kind in ("one_class", "ball"):
        problem = drawn(kind, 30, 1.0)
        found = solved(problem)
        np.testing.assert_allclose(found.alpha, problem.cost, rtol=1e-9)
        assert verdict(problem, found)


# --- starts and ends --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_any_multipliers_are_a_start(kind, lines, monkeypatch):
    if lines:
        monkeypatch.setattr(pair_steps, "SQUARE_ROWS", 0)
    problem, rng = drawn(kind, 50, weights=True), np.random.default_rng(3)
    best, first = by_clarabel(problem), solved(problem)
    for start in (first, first.alpha, np.zeros(50), 1e3 * np.ones(50), rng.uniform(0.0, 1.0, 50)):
        assert_optimal(problem, solved(problem, start=start), best)
    assert solved(problem, start=first).n_iter <= first.n_iter


@pytest.mark.parametrize("kind", KINDS)
def test_a_beginning_is_feasible(kind):
    for weights in (False, True):
        problem = drawn(kind, 50, 0.37, weights=weights)
        task, live = pair_problem(problem)
        assert isinstance(task, NuDual)
        n = problem.n_rows if live is None else len(live)
        rng = np.random.default_rng(0)
        for alpha in (None, np.zeros(n), 9.0 * np.ones(n), rng.standard_normal(n), rng.uniform(0.0, 0.2, n)):
            beta = task.start(alpha)
            assert np.all((beta >= task.lower) & (beta <= task.upper))
            sums = [part.sum() for part in np.split(beta, task.group_end[:-1])]
            wanted = 0.37 * problem.cost.sum() / len(sums)
            np.testing.assert_allclose(np.abs(sums), wanted, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_that_ends_early_has_a_claim(kind, monkeypatch):
    monkeypatch.setattr(pair_steps, "SQUARE_ROWS", 0)
    problem = drawn(kind, 60)
    best = by_clarabel(problem)
    for options, status in (
        ({"max_iter": 3}, Status.ITERATION_LIMIT),
        ({"watch": Watch(max_seconds=0.0)}, Status.TIME_LIMIT),
        ({"watch": Watch(progress=lambda *_: True)}, Status.INTERRUPTED),
    ):
        found = solved(problem, **options)
        assert found.status is status
        assert found.dual <= best + 1e-7 * abs(best)
        assert found.primal >= best - 1e-7 * abs(best)
        assert verdict(problem, found, max(1.01 * found.gap, 1e-9))


@pytest.mark.parametrize("kind", KINDS)
def test_bits_do_not_depend_on_threads(kind):
    found = [solved(drawn(kind, 300), n_threads=n) for n in (1, 2, 8)]
    for one in found[1:]:
        np.testing.assert_array_equal(one.alpha, found[0].alpha)
        assert (one.b, one.primal, one.dual) == (found[0].b, found[0].primal, found[0].dual)


@pytest.mark.parametrize("kind", KINDS)
def test_an_indefinite_kernel_leaves_a_stationary_point_and_no_proof(kind):
    problem = drawn(kind, 60, 0.6, kernel=Sigmoid(0.5, -0.5))
    found = solved(problem, tol=1e-6)
    assert found.status is Status.STATIONARY
    assert math.isnan(found.gap)
    checked = verdict(problem, found)
    assert not checked
    assert checked.outcome.name == "HONEST"
    q, live = quadratic_of(problem), pair_problem(problem)[1]
    beta = found.w if live is None else found.w[live]
    if kind == "nu_tube":  # one variable on either side of the tube
        beta = np.concatenate([np.maximum(beta, 0.0), np.minimum(beta, 0.0)])
    assert q.violation(beta) <= 1e-4 * np.abs(q.slope(beta)).max()


# --- order statistics -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_a_split_by_weight_is_that_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    values, weight = rng.integers(-3, 4, n).astype(float), rng.choice([0.5, 1.0, 2.0], n)
    sums = np.unique([weight[values > v].sum() for v in values] + [weight.sum()])
    for above in (*sums, *(0.5 * (sums[:-1] + sums[1:])), 0.3 * weight.sum()):
        low, high = weighted_split(values, weight, float(above))

        def right(r, above=above):
            return weight[values > r].sum() <= above + 1e-12 and above <= weight[values >= r].sum() + 1e-12

        candidates = np.arange(-4.0, 4.01, 0.25)
        inside = candidates[[right(r) for r in candidates]]
        assert right(low)
        assert right(high)
        assert low <= high
        if inside.min() > -4.0:  # at the ends all numbers beyond are right, too
            assert low == inside.min()
        else:
            assert low == values.min()
        assert high == (inside.max() if inside.max() < 4.0 else values.max())

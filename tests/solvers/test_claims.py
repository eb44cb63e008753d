"""What is claimed about a last point is true in exact arithmetic, tight, and made no dearer than it must be."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin import Problem
from maxmargin.runtime import Execution
from maxmargin.solution import relative_gap
from maxmargin.solvers import InteriorPoint, claims, joint_claims
from maxmargin.solvers.joint_point import JointProblem
from maxmargin.solvers.points import recover
from tests.exact.objectives import of_joint, of_one
from tests.solvers.joint_cases import (
    BIASES,
    LOSSES,
    JointMachine,
    assert_feasible,
    certified,
    drawn,
    feasible,
    labels_of,
    rows_of,
    threads_of_exact_products,
)

claim, hard_claim = claims.claim, claims.hard_claim
joint_claim = joint_claims.joint_claim
MARGIN = ["hinge", "squared_hinge", "logistic", 1.5]
BOUNDS = {"hinge": "dual_below", "squared_hinge": "dual_below", "logistic": "entropy_below", 1.5: "dual"}
TUBES = ["epsilon_insensitive", "squared_epsilon_insensitive"]
BIAS_OPTIONS = {
    "free": {},
    "none": {"fit_intercept": False},
    "penalised": {"penalize_intercept": True, "intercept_scaling": 2.0},
}


@pytest.fixture
def exact_products(monkeypatch):
    """The numbers of threads of all products of twice the working precision from now on."""
    return threads_of_exact_products(monkeypatch)


@pytest.fixture
def large(monkeypatch):
    """Every problem counts as too large for the best arithmetic."""
    monkeypatch.setattr(claims, "SMALL", 0)
    monkeypatch.setattr(joint_claims, "SMALL", 0)


def problem_of(loss, *, n=60, d=4, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = X[:, 0] + 0.5 * rng.standard_normal(n)
    weight = rng.uniform(0.3, 2.0, n)
    weight[:2] = 0.0
    if loss in TUBES:
        return Problem.regression(X, score, loss=loss, epsilon=0.1, sample_weight=weight, **options)
    return Problem.from_arrays(X, score > 0.0, loss=loss, sample_weight=weight, **options)


def some_point(problem, seed=0, fraction=0.3):
    """Feasible multipliers that nobody optimised, with the hyperplane that they induce."""
    rng = np.random.default_rng(seed)
    size = fraction * problem.cost * rng.uniform(0.0, 1.0, problem.n_rows)
    if problem.penalty == "l1":
        size *= 0.5 / np.abs(rows_of(problem).T @ (problem.sign * size)).max()
    if problem.loss.regression:
        size *= np.sign(problem.y - np.median(problem.y))
    return point_of(problem, size)


def point_of(problem, alpha):
    point = recover(problem, alpha)
    if problem.penalty == "l1":  # ‖w‖₁ in one objective, nothing in the other
        primal = problem.objective(float(np.abs(point.w).sum()), point.scores + point.b, point.b)
        point = replace(point, primal=primal, dual=point.dual + 0.5 * float(point.induced @ point.induced))
    return point


def claimed(problem, point, tol=1e-6, n_threads=1):
    return claim(
        problem, point.alpha, point.w, point.b, tol, Execution(n_threads),
        primal=point.primal, dual=point.dual, induced=point.induced,
    )  # fmt: skip


def true_values(problem, found, W, b):
    """Primal and dual in rational arithmetic, as floats, of what is claimed; costs are those of the problem."""
    joint, bias = isinstance(problem, JointProblem), problem.bias
    stated = SimpleNamespace(
        coef=W, intercept=b, alpha=found.alpha, C=1.0, fit_intercept=bias.value != 0.0,
        penalty_scale=bias.value if bias.penalised else None,
    )  # fmt: skip
    if joint:
        stated.loss, stated.classes = problem.loss, np.arange(problem.n_classes)
        exact = of_joint(stated, rows_of(problem), labels_of(problem), problem.cost)
    else:
        loss, stated.loss, stated.penalty = problem.loss, problem.loss.name, problem.penalty
        stated.classes = None if loss.regression else np.array([-1.0, 1.0])
        stated.power, stated.epsilon = getattr(loss, "power", np.nan), getattr(loss, "epsilon", 0.0)
        exact = of_one(stated, rows_of(problem), problem.y, problem.cost)
    assert exact.dual is not None
    assert found.primal >= exact.primal
    assert found.dual <= exact.dual
    return float(exact.primal), float(exact.dual)


def bounds_called(monkeypatch):
    """Which bounds of a dual value are asked for from now on, in their order."""
    called = []
    for name in set(BOUNDS.values()):
        bound = getattr(claims.Terms, name)
        spied = lambda *given, bound=bound, name=name, **how: called.append(name) or bound(*given, **how)  # noqa: E731
        monkeypatch.setattr(claims.Terms, name, spied)
    return called


CASES = [(loss, bias, "l2") for loss in MARGIN + TUBES for bias in BIAS_OPTIONS]
CASES += [("squared_hinge", bias, "l1") for bias in BIAS_OPTIONS] + [("logistic", "free", "l1")]


@pytest.mark.parametrize(("loss", "bias", "penalty"), CASES)
def test_a_claim_is_true_and_next_to_the_exact_values(loss, bias, penalty, exact_products, monkeypatch):
    """From products of twice the working precision in small problems, from what the solver has in large ones."""
    options = {} if penalty == "l2" else {"penalty": "l1"}
    problem = problem_of(loss, **BIAS_OPTIONS[bias], **options)
    point = some_point(problem)
    found = claimed(problem, point, n_threads=3)
    assert exact_products == [3, 3]
    primal, dual = true_values(problem, found, point.w, point.b)
    assert found.primal - primal <= 1e-13 * primal
    assert dual - found.dual <= 1e-13 * max(primal, dual)
    assert found.gap == pytest.approx(relative_gap(primal, dual, 0.0), rel=1e-9)
    exact_products.clear()
    monkeypatch.setattr(claims, "SMALL", 0)
    plain = claimed(problem, point, tol=0.0)
    assert not exact_products
    true_values(problem, plain, point.w, point.b)
    assert 0.0 < plain.primal - primal <= 1e-10 * primal
    assert plain.dual == pytest.approx(dual, abs=1e-9 * primal)
    assert found.primal <= plain.primal
    assert np.array_equal(found.alpha, plain.alpha)


def test_plain_arithmetic_is_enough_where_the_gap_is_reached_or_its_rounding_is_little_beside_it(large, exact_products):
    problem = problem_of("hinge")
    point = some_point(problem)
    loose = claimed(problem, point, tol=0.0)  # a gap of this size hides all rounding
    assert loose.gap > 0.1
    assert not exact_products
    tight = recover(problem, InteriorPoint(tol=1e-12).solve(problem).alpha)
    reached = claimed(problem, tight, tol=1e-6)
    assert not exact_products
    assert reached.gap <= 1e-6
    better = claimed(problem, tight, tol=0.0)
    assert len(exact_products) == 2
    assert better.gap < reached.gap


@pytest.mark.parametrize("loss", BOUNDS)
def test_the_bound_of_a_dual_in_a_large_problem_takes_as_few_passes_as_its_loss_allows(loss, large, monkeypatch):
    called, problem = bounds_called(monkeypatch), problem_of(loss)
    claimed(problem, some_point(problem), tol=1.0)
    assert called == [BOUNDS[loss]]


def test_multipliers_that_must_move_far_to_be_feasible_are_stated_exactly(large, exact_products):
    problem = problem_of("squared_hinge")
    point = some_point(problem)
    alpha = point.alpha.copy()
    alpha[np.argmax(alpha)] *= 1.0 + 1e-3
    found = claim(
        problem, alpha, point.w, point.b, 1.0, Execution(1), primal=point.primal, dual=point.dual, induced=point.induced
    )
    assert len(exact_products) == 2
    true_values(problem, found, point.w, point.b)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("loss", MARGIN)
def test_multipliers_that_prove_nothing_are_replaced_by_none(loss, plain, monkeypatch):
    monkeypatch.setattr(claims, "SMALL", 0 if plain else 10**9)
    problem = problem_of(loss, C=1e4)
    point = some_point(problem, fraction=0.9)
    assert point.dual < 0.0
    found = claimed(problem, point, tol=1e9)
    assert found.dual == 0.0
    assert not found.alpha.any()
    assert found.gap == 1.0


# --- the penalty ‖w‖₁ --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("excess", [1e-12, 1e-4, 0.5])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_multipliers_under_which_a_column_is_too_steep_are_shortened_by_just_that(
    loss, excess, plain, monkeypatch, exact_products
):
    monkeypatch.setattr(claims, "SMALL", 0 if plain else 10**9)
    problem = problem_of(loss, penalty="l1")
    alpha = some_point(problem).alpha
    alpha *= (1.0 + excess) / np.abs(rows_of(problem).T @ (problem.sign * alpha)).max()
    point = point_of(problem, alpha)
    found = claimed(problem, point, tol=1.0)
    assert len(exact_products) == (0 if plain else 4)
    true_values(problem, found, point.w, point.b)
    steepest = max(abs(slope) for slope in exact_combination(problem, found.alpha))
    assert 1.0 - 0.02 * excess - 1.1 * excess**2 - 1e-11 <= steepest <= 1
    np.testing.assert_allclose(found.alpha, point.alpha * found.alpha.sum() / point.alpha.sum(), rtol=1e-12)
    assert found.dual > 0.0


def exact_combination(problem, alpha):
    """Σ alpha sign x of every column, without rounding."""
    signed = [Fraction(a) * int(s) for a, s in zip(alpha.tolist(), problem.sign, strict=True)]
    columns = rows_of(problem).T.tolist()
    return [sum((Fraction(x) * a for x, a in zip(c, signed, strict=True)), Fraction(0)) for c in columns]


# --- the hard margin ---------------------------------------------------------------------------------------------


def separated(seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(20) % 2, 1.0, -1.0)
    X = y[:, None] * [2.0, 1.0] + 0.3 * rng.standard_normal((20, 2))
    return Problem.from_arrays(X, y, C=np.inf)


def least_margin(problem, w, b):
    w, b = [Fraction(v) for v in w.tolist()], Fraction(b)
    scores = [sum((Fraction(v) * u for v, u in zip(x, w, strict=True)), b) for x in rows_of(problem).tolist()]
    return min(int(s) * score for s, score in zip(problem.y, scores, strict=True))


@pytest.mark.parametrize("shortfall", [0.0, 1e-14, 1e-6, 0.4, 0.999])
def test_a_hyperplane_is_lengthened_by_what_its_least_margin_lacks_and_no_more(shortfall, exact_products):
    problem = separated()
    w, b = np.array([2.0, 1.0]), 0.1
    scale = (1.0 - shortfall) * (1.0 + 1e-15) / float(least_margin(problem, w, b))
    w, b = scale * w, scale * b
    found, longer, c = hard_claim(problem, np.zeros(20), w, b, Execution(2))
    assert least_margin(problem, longer, c) >= 1
    assert least_margin(problem, longer, c) <= 1 + Fraction(1, 10**11)
    np.testing.assert_allclose(np.r_[longer, c], np.r_[w, b] / (1.0 - shortfall), rtol=1e-11)
    assert found.primal == pytest.approx(0.5 * float(longer @ longer), rel=1e-14)
    assert len(exact_products) <= 2 * claims.LENGTHENED
    assert set(exact_products) == {2}


@pytest.mark.parametrize(("w", "b"), [([-2.0, -1.0], 0.0), ([0.0, 0.0], 0.0), ([1.0, 0.5], 1e6)])
def test_a_hyperplane_with_a_row_on_the_wrong_side_stays_as_it_is_and_proves_nothing(w, b, exact_products):
    found, same, c = hard_claim(separated(), np.zeros(20), np.array(w), b, Execution(1))
    assert found.primal == np.inf
    assert found.gap == np.inf
    assert (same.tolist(), c) == (w, b)
    assert len(exact_products) == 2


# --- the gap -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", MARGIN + TUBES)
@pytest.mark.parametrize("size", [1.0, 1e-6, 3e-9, 1e-11, 0.0])
def test_the_gap_is_relative_to_the_objective_at_zero_where_that_counts_and_does_not_ask_for_it_elsewhere(loss, size):
    problem = problem_of(loss, C=5.0)
    null = problem_of(loss, C=5.0).null_primal
    found = problem.relative_gap(size * null, 0.25 * size * null)
    assert found == pytest.approx(relative_gap(size * null, 0.25 * size * null, null), rel=1e-12)
    asked = "null_primal" in problem.__dict__
    assert asked == (loss in TUBES or size < 1e-9)


def test_the_gap_of_a_hard_margin_has_no_floor():
    assert separated().relative_gap(1e-30, 0.0) == 1.0
    assert separated().relative_gap(0.0, 0.0) == 0.0


# --- all classes together ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", BIASES)
def test_a_joint_claim_is_true_and_next_to_the_exact_values(loss, bias, exact_products, monkeypatch):
    problem = drawn(loss, bias, C=0.02)
    point = certified(problem, 0.3 * feasible(problem))
    found = joint_claim(problem, point, 0.0, Execution(5))
    assert exact_products == [5] * 6
    primal, dual = true_values(problem, found, point.W, point.b)
    assert found.primal - primal <= 1e-13 * primal
    assert dual - found.dual <= 1e-13 * primal
    exact_products.clear()
    monkeypatch.setattr(joint_claims, "SMALL", 0)
    plain = joint_claim(problem, point, 0.0, Execution(1))
    assert not exact_products  # what rounding may have changed is little beside this gap
    true_values(problem, plain, point.W, point.b)
    assert 0.0 < plain.primal - found.primal <= 1e-10 * primal
    assert 0.0 < found.dual - plain.dual <= 1e-10 * primal
    assert_feasible(problem, plain.alpha)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_joint_claim_pays_for_exact_products_only_where_the_gap_asks_for_them(loss, large, exact_products):
    problem = drawn(loss, "none", C=0.2)
    solution = JointMachine(tol=1e-13).solve(problem)
    point = certified(problem, solution.alpha, solution.W, solution.b)
    exact_products.clear()
    reached = joint_claim(problem, point, 1e-6, Execution(1))
    assert not exact_products
    better = joint_claim(problem, point, 0.0, Execution(1))
    assert len(exact_products) == 6
    assert better.gap < reached.gap <= 1e-6


@pytest.mark.parametrize("loss", LOSSES)
def test_joint_multipliers_that_must_move_far_to_balance_are_stated_exactly(loss, large, exact_products):
    problem = drawn(loss, C=0.02)
    point = certified(problem, 0.3 * feasible(problem))
    alpha = point.alpha.copy()
    alpha[0] += 1e-6 * (np.eye(3)[labels_of(problem)[0]] - np.eye(3)[(labels_of(problem)[0] + 1) % 3])
    moved = replace(point, alpha=alpha)
    true_values(problem, joint_claim(problem, moved, 1.0, Execution(1)), moved.W, moved.b)
    assert len(exact_products) == 6


@pytest.mark.parametrize("loss", LOSSES)
def test_joint_multipliers_that_prove_nothing_are_replaced_by_none(loss):
    problem = drawn(loss, C=1e4)
    point = certified(problem, feasible(problem))
    assert point.dual < 0.0
    found = joint_claim(problem, point, 1e-6, Execution(1))
    assert (found.dual, found.gap) == (0.0, 1.0)
    assert not found.alpha.any()

"""Claims are theorems: compared with exact arithmetic on data where float64 loses everything else."""

import warnings
from dataclasses import replace
from fractions import Fraction

import flint
import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin.solvers.claims as claims
import maxmargin.solvers.joint_claims as joint_claims
from maxmargin import LinearSVC, LinearSVR, LogisticRegression, Problem, Status
from maxmargin.certificates import Outcome
from maxmargin.certificates.blocks import Block, ExactSum
from maxmargin.certificates.rounding import (
    ELEMENTARY,
    FEW,
    exact_combination_off,
    exact_scores_off,
    norm,
    sums_to_zero,
    total,
)
from maxmargin.solvers.hard_margin import HardMargin
from maxmargin.solvers.interior_point import InteriorPoint
from maxmargin.solvers.points import make_feasible
from tests.exact.objectives import Ball, false_bounds, rational
from tests.exact.sweep import sweep

BEGIN, COUNT = 1000, 120  # of the sweep: `make sweep` takes two thousand


def ones(y):
    return np.ones(len(y))


def test_a_part_of_the_sweep():
    ends, wrong = sweep(range(BEGIN, BEGIN + COUNT))
    assert not wrong
    assert ends["CONVERGED"] > COUNT // 2


def test_a_part_of_the_sweep_with_claims_from_plain_arithmetic(monkeypatch):
    """Small problems are stated with exact products; large ones from what solvers have computed anyhow."""
    monkeypatch.setattr(claims, "SMALL", 0)
    monkeypatch.setattr(joint_claims, "SMALL", 0)
    ends, wrong = sweep(range(BEGIN + COUNT, BEGIN + 2 * COUNT))
    assert not wrong
    assert ends["CONVERGED"] > COUNT // 2


def honest(machine, X, y):
    """The status, after everything about the claims was checked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine.fit(X, y)
    verdict = machine.certificate_.verify(X, y)
    assert false_bounds(machine.certificate_, np.asarray(X, dtype=float), y, ones(y)) == []
    assert verdict.outcome is not Outcome.REJECTED, str(verdict)
    assert bool(verdict) == (machine.solution_.status is Status.CONVERGED)
    return machine.solution_.status


def test_a_column_with_little_spread_beside_its_size():
    statuses = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z, x = rng.standard_normal((2, 200))
        y = np.sign(z + x + 0.7 * rng.standard_normal(200))
        statuses.append(honest(LinearSVC(loss="hinge", C=1e3), np.c_[1e4 * (1.0 + 1e-4 * z), x], y))
    assert set(statuses) == {Status.CONVERGED}


def test_milliseconds_since_1970():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        t = 1.7e12 + rng.uniform(0.0, 3e10, 100)
        x = rng.standard_normal((100, 2))
        y = (t - t.mean()) / 1e10 + x[:, 0] + 0.7 * rng.standard_normal(100) > 0.0
        honest(LinearSVC(), np.c_[t, x], y)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_column_of_size_1e16(loss):
    rng = np.random.default_rng(0)
    z, x = rng.standard_normal((2, 200))
    X, y = np.c_[1e16 * (1.0 + z), x], z + x > 0.0
    assert honest(LinearSVC(loss=loss), X, y) in (Status.CONVERGED, Status.NUMERICAL_LIMIT)


@pytest.mark.parametrize("solver", ["auto", "dual_cd", "newton", "interior_point"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_more_columns_than_rows_of_very_different_size(solver, loss):
    rng = np.random.default_rng(186)
    n, d = int(rng.integers(3, 120)), int(rng.integers(1, 60))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-4, 4, d)
    y = np.where(rng.random(n) > 0.3, 1, -1)
    honest(LinearSVC(C=10.0 ** rng.uniform(-4, 5), solver=solver, loss=loss), X, y)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", ["auto", "newton"])
def test_columns_that_made_the_working_set_grow_without_end(solver, loss):
    rng = np.random.default_rng(7)
    X, y = np.round(rng.standard_normal((11, 5)) * [100, 1e4, 1, 1e4, 10]), rng.integers(0, 2, 11)
    honest(LinearSVC(loss=loss, solver=solver), X, y)
    honest(LinearSVC(loss=loss, solver=solver), (X * 1e12).astype(np.int64).astype(np.uint64) % 2**60, y)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("target", [0.0, 1.0, 0.1, -3e8])
def test_a_constant_target_is_proven(epsilon, target):
    X, y = np.random.default_rng(0).standard_normal((40, 3)), np.full(40, target)
    for loss in ("epsilon_insensitive", "squared_epsilon_insensitive"):
        machine = LinearSVR(epsilon=epsilon, loss=loss)
        assert honest(machine, X, y) is Status.CONVERGED
        assert machine.solution_.primal <= 1e-12
        np.testing.assert_allclose(machine.predict(X), target, rtol=1e-12, atol=epsilon)


def test_targets_inside_one_tube_are_proven_without_weights():
    X, y = np.random.default_rng(0).standard_normal((40, 3)), np.linspace(1.0, 1.15, 40)
    machine = LinearSVR(epsilon=0.1)
    assert honest(machine, X, y) is Status.CONVERGED


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_distance_bound_contains_rounding(loss):
    """Two certified fits may differ by no more than both bounds, the second one from rows in another order."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 6)) * [1.0, 1e3, 1e-3, 1.0, 1e5, 1.0]
    y = np.where(X[:, 0] + rng.standard_normal(300) > 0.0, 1, 0)
    order = rng.permutation(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, two = LinearSVC(loss=loss, C=10.0).fit(X, y), LinearSVC(loss=loss, C=10.0).fit(X[order], y[order])
    apart = np.linalg.norm(one.coef_ - two.coef_)
    assert apart <= one.certificate_.distance_bound + two.certificate_.distance_bound
    assert one.certificate_.distance_bound > 0.0


def test_a_hard_margin_has_margins_of_at_least_one_exactly():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 3)) * 10.0 ** rng.uniform(-3, 5, 3)
        y = np.where(X @ (rng.standard_normal(3) / np.abs(X).max(axis=0)) > 0.05, 1, -1)
        if len(np.unique(y)) == 2:
            assert honest(LinearSVC(C=np.inf), X, y) in (Status.CONVERGED, Status.NUMERICAL_LIMIT)


def test_a_hard_margin_whose_length_is_rounded_is_lengthened():
    problem = Problem.from_arrays([[-3.0, 0.1], [-1.0, 0.3], [1.0, 0.7]], [0, 0, 1], C=np.inf)
    solution = HardMargin(tol=1e-9, make=lambda _: InteriorPoint(tol=1e-9)).solve(problem)
    w, b = [rational(v) for v in solution.w], rational(solution.b)
    for x, sign in zip(problem.space.X, problem.y, strict=True):
        score = sum((rational(v) * u for v, u in zip(x, w, strict=True)), b)
        assert flint.fmpq(int(sign)) * score >= 1


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "power", "tanh"])
def test_elementary_functions_are_as_good_as_assumed(name):
    """The one assumption that the bounds make: NumPy's functions are right to a few units in the last place."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-40.0, 0.0, 400), -(10.0 ** rng.uniform(-300, 2, 400))])
    if name != "exp":
        x = np.concatenate([10.0 ** rng.uniform(-300, 300, 400), rng.uniform(0.5, 2.0, 400)])
    if name == "log1p":
        x = np.concatenate([rng.uniform(0.0, 1.0, 400), -rng.uniform(0.0, 1.0, 400), 10.0 ** rng.uniform(-30, 0, 400)])
    if name == "tanh":
        x = np.concatenate(
            [rng.uniform(-25.0, 25.0, 400), 10.0 ** rng.uniform(-300, 2, 200), rng.uniform(-1.0, 1.0, 400)]
        )
    exponents = rng.uniform(0.05, 8.0, len(x))
    if name == "power":
        x = np.abs(x) ** 0.05
    values = np.power(x, exponents) if name == "power" else getattr(np, name)(x)
    for number, found, exponent in zip(x, values, exponents, strict=True):
        ball = Ball(rational(number))
        if name == "power":
            ball = ball ** Ball(rational(exponent))
        else:
            ball = {"exp": ball.exp, "log": ball.log, "log1p": ball.log1p, "tanh": ball.tanh}[name]()
        assert abs(Ball(rational(found)) - ball) <= Ball(ELEMENTARY * max(float(np.spacing(abs(found))), 5e-324))


def test_the_dual_that_was_stated_too_high_is_rejected():
    """Multipliers that cancel in a huge column: naive arithmetic gives 20.36, the truth is lower."""
    rng = np.random.default_rng(1)
    X = np.c_[1e16 * (1.0 + rng.standard_normal(50)), rng.standard_normal(50)]
    y = (X[:, 1] + 0.5 * rng.standard_normal(50) > 0.0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        claim = LinearSVC(loss="hinge").fit(X, y).certificate_
    alpha = np.where(y == 1, 0.5, 0.5 * (y == 1).sum() / (y == 0).sum())
    alpha, _ = claims.exactly_balanced(Problem.from_arrays(X, y, loss="hinge"), alpha)
    induced = X.T @ (np.where(y == 1, 1.0, -1.0) * alpha)
    dual = float(alpha.sum() - 0.5 * induced[1] ** 2)  # as if the first column had cancelled
    forged = replace(claim, alpha=alpha, dual=dual, gap=(claim.primal - dual) / max(claim.primal, dual))
    verdict = forged.verify(X, y)
    assert (verdict.outcome, verdict.worst) == (Outcome.REJECTED, "dual value")


def test_logistic_regression_of_several_classes_on_counts():
    rng = np.random.default_rng(2)
    X = np.floor(np.abs(rng.standard_normal((60, 4))) * [1.0, 1e2, 1e4, 1e6])
    y = rng.integers(0, 3, 60)
    for machine in (
        LogisticRegression(),
        LogisticRegression(multi_class="ovr"),
        LinearSVC(multi_class="crammer_singer"),
    ):
        honest(machine, X, y)


def proven(machine, X, y):
    """A fit of ordinary size says that it converged, and its certificate agrees."""
    verdict = machine.fit(X, y).certificate_.verify(X, y)
    assert machine.solution_.status is Status.CONVERGED
    assert verdict, str(verdict)


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e5, 1e7])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("machine", [LogisticRegression, LinearSVC])
def test_many_rows_of_unscaled_columns(machine, scale, bias):
    """Far more rows than are added exactly, and sums whose rounding is large beside tiny weights."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10_000, 3)) * scale
    proven(machine(fit_intercept=bias), X, X[:, 0] / scale + rng.standard_normal(10_000) > 0)


def test_few_multipliers_that_carry_the_weight():
    rng = np.random.default_rng(0)
    x = np.where(np.arange(30_000) % 2, 20.0, -20.0) * rng.uniform(1.0, 1.05, 30_000)
    y = x > 0.0
    x[0], y[0] = 0.1, not y[0]
    proven(LogisticRegression(), x[:, None], y)


def test_several_classes_that_two_bits_cannot_tell_apart():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (20_000, 2)).astype(float)
    proven(LogisticRegression(C=10.0), X, np.arange(20_000) % 3)


@pytest.mark.parametrize("size", [1e-12, 1e-20, 1e-26])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_small_targets(loss, size):
    rng = np.random.default_rng(0)
    honest(LinearSVR(loss=loss), rng.standard_normal((40, 3)), size * rng.standard_normal(40))


CROSSING = ("0x1.8147e1eb6bebbp-1", "0x1.b1ac73658cc4ap-1", "0x1.7c91e57b61dc6p-3", "0x1.fffffffffffffp-1",
            "0x1.a79fb7e440726p-2")  # fmt: skip


def test_multipliers_that_cross_a_power_of_two_balance():
    alpha = np.array([float.fromhex(v) for v in CROSSING])
    problem = Problem.from_arrays(np.arange(5.0)[:, None], [0, 0, 1, 1, 0])
    out, moved = claims.exactly_balanced(problem, alpha)
    assert sums_to_zero(out * problem.sign)
    assert np.abs(out - alpha).sum() <= moved


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_any_multipliers_balance_exactly(loss):
    rng = np.random.default_rng(0)
    for _ in range(500):
        n = int(rng.integers(2, 12))
        y = np.r_[0, 1, rng.integers(0, 2, n)]
        weight = 10.0 ** rng.uniform(-20, 20, n + 2) if rng.random() < 0.5 else np.ones(n + 2)
        problem = Problem.from_arrays(np.zeros((n + 2, 1)), y, sample_weight=weight, loss=loss)
        alpha = make_feasible(problem, problem.cost * rng.uniform(0.0, 1.0, n + 2) * rng.integers(0, 2, n + 2))
        out, moved = claims.exactly_balanced(problem, alpha)
        assert sums_to_zero(out * problem.sign)
        assert (out >= 0.0).all()
        assert loss != "hinge" or (out <= problem.cost).all()
        assert np.abs(out - alpha).sum() <= moved


def test_sums_of_many_terms():
    rng = np.random.default_rng(0)
    for n in (0, 1, FEW, FEW + 1, 3 * FEW + 77):
        terms = rng.standard_normal(n) * 10.0 ** rng.uniform(-8, 8, n)
        exact, found = sum(map(Fraction, terms.tolist()), Fraction(0)), total(terms)
        assert Fraction(found.low) <= exact <= Fraction(found.high)


@pytest.mark.parametrize("sparse", [False, True])
def test_products_of_twice_the_working_precision(sparse):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 7)) * 10.0 ** rng.uniform(-10, 16, 7) * (rng.random((50, 7)) < 0.7)
    w, c = rng.standard_normal(7) * 10.0 ** rng.uniform(-16, 10, 7), rng.standard_normal(50)
    block = Block(slice(0, 50), sp.csr_array(X) if sparse else X)
    norms, combination = block.norms(), ExactSum(7)
    combination.add(block.exact_combine(c))
    high, low = block.exact_scores(w)
    off = exact_scores_off(block.longest_row, norm(w), norms)
    of_sum = exact_combination_off(c, combination.value, norms)
    Q = [[Fraction(v) for v in row] for row in X.tolist()]
    for i, row in enumerate(Q):
        exact = sum((a * Fraction(b) for a, b in zip(row, w.tolist(), strict=True)), Fraction(0))
        assert abs(Fraction(high[i]) + Fraction(low[i]) - exact) <= Fraction(off[i])
    sums = [sum((row[j] * Fraction(v) for row, v in zip(Q, c.tolist(), strict=True)), Fraction(0)) for j in range(7)]
    square = sum(((Fraction(v) - s) ** 2 for v, s in zip(combination.value.tolist(), sums, strict=True)), Fraction(0))
    assert square <= Fraction(of_sum) ** 2


def test_a_hard_margin_without_time_says_nothing_false():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    status = honest(LinearSVC(C=np.inf, max_seconds=1e-9), X, (X[:, 0] > 0.0).astype(int))
    assert status in (Status.CONVERGED, Status.NUMERICAL_LIMIT, Status.TIME_LIMIT)

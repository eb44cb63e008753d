"""Claims are theorems: compared with exact arithmetic on data where float64 loses everything else."""

import warnings
from dataclasses import replace

import flint
import numpy as np
import pytest

import maxmargin.solvers.claims as claims
import maxmargin.solvers.joint_claims as joint_claims
from maxmargin import LinearSVC, LinearSVR, LogisticRegression, Problem, Status
from maxmargin.certificates import Outcome
from maxmargin.certificates.rounding import ELEMENTARY
from maxmargin.solvers.hard_margin import HardMargin
from maxmargin.solvers.interior_point import InteriorPoint
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
@pytest.mark.parametrize("target", [1.0, 0.1, -3e8])
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
    for x, sign in zip(problem.X, problem.y, strict=True):
        score = sum((rational(v) * u for v, u in zip(x, w, strict=True)), b)
        assert flint.fmpq(int(sign)) * score >= 1


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "power"])
def test_elementary_functions_are_as_good_as_assumed(name):
    """The one assumption that the bounds make: NumPy's functions are right to a few units in the last place."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-40.0, 0.0, 400), -(10.0 ** rng.uniform(-300, 2, 400))])
    if name != "exp":
        x = np.concatenate([10.0 ** rng.uniform(-300, 300, 400), rng.uniform(0.5, 2.0, 400)])
    if name == "log1p":
        x = np.concatenate([rng.uniform(0.0, 1.0, 400), -rng.uniform(0.0, 1.0, 400), 10.0 ** rng.uniform(-30, 0, 400)])
    exponents = rng.uniform(0.05, 8.0, len(x))
    if name == "power":
        x = np.abs(x) ** 0.05
    values = np.power(x, exponents) if name == "power" else getattr(np, name)(x)
    for number, found, exponent in zip(x, values, exponents, strict=True):
        ball = Ball(rational(number))
        if name == "power":
            ball = ball ** Ball(rational(exponent))
        else:
            ball = {"exp": ball.exp, "log": ball.log, "log1p": ball.log1p}[name]()
        assert abs(Ball(rational(found)) - ball) <= Ball(ELEMENTARY * max(float(np.spacing(abs(found))), 5e-324))


def test_the_dual_that_was_stated_too_high_is_rejected():
    """Multipliers that cancel in a huge column: naive arithmetic gives 20.36, the truth is lower."""
    rng = np.random.default_rng(1)
    X = np.c_[1e16 * (1.0 + rng.standard_normal(50)), rng.standard_normal(50)]
    y = (X[:, 1] + 0.5 * rng.standard_normal(50) > 0.0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        claim = LinearSVC(loss="hinge").fit(X, y).certificate_
    alpha = np.zeros(50)
    alpha[y == 1], alpha[y == 0] = 0.5, 0.5 * (y == 1).sum() / (y == 0).sum()
    induced = X.T @ (np.where(y == 1, 1.0, -1.0) * alpha)
    dual = float(alpha.sum() - 0.5 * induced[1] ** 2)  # as if the first column had cancelled
    forged = replace(claim, alpha=alpha, dual=dual, gap=(claim.primal - dual) / max(claim.primal, dual))
    assert forged.verify(X, y).outcome is Outcome.REJECTED


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

"""What holds at every optimum: multipliers follow from slacks, weights are repetitions, idle rows hold nothing."""

import math
import warnings

import numpy as np
import pytest

from maxmargin import LinearSVC, Status
from tests.contracts.promise import CLASSIFIERS, REGRESSIONS, SEVERAL_CLASSES
from tests.oracles import Form
from tests.problems import KINDS, make_case, make_classes, repeated

ALL = [*CLASSIFIERS, *REGRESSIONS, *SEVERAL_CLASSES]
ORDINARY = [seed for seed in range(2 * len(KINDS)) if not make_case(seed).scale_case]
TIGHT = 1e-10


def reach(machine):
    """How far the weights can be from the optimal ones, up to rounding."""
    solution = machine.solution_
    return math.sqrt(2.0 * (max(0.0, solution.primal - solution.dual) + 1e-13 * abs(solution.primal)))


def same(one, other, penalty):
    """Two fits of one problem: their bounds overlap, and so do the balls around their weights."""
    a, b = one.solution_, other.solution_
    size = max(abs(a.primal), abs(b.primal))
    assert a.status is b.status is Status.CONVERGED, (a, b)
    assert abs(a.primal - b.primal) <= 2e-6 * size, (a.primal, b.primal)
    assert a.dual <= b.primal + 1e-9 * size
    assert b.dual <= a.primal + 1e-9 * size
    if penalty == "l2":
        assert np.linalg.norm(one.coef_ - other.coef_) <= reach(one) + reach(other)


@pytest.mark.parametrize("machine", ALL, ids=str)
def test_a_weight_of_k_is_k_repetitions(machine):
    rng = np.random.default_rng(0)
    for seed in ORDINARY[::3]:
        case = machine.problems(seed)
        weighted, longer = repeated(case, rng)
        try:
            same(machine.fit(weighted), machine.fit(longer), machine.form.penalty)
        except AssertionError as error:
            raise AssertionError(str(case)) from error


def test_two_classes_of_crammer_and_singer_are_the_hinge_at_twice_the_price():
    compared = 0
    for seed in ORDINARY:
        case = make_case(seed)
        joint = LinearSVC(C=case.C, multi_class="crammer_singer").fit(case.X, case.y, case.sample_weight)
        plain = LinearSVC(C=2.0 * case.C, loss="hinge").fit(case.X, case.y, case.sample_weight)
        same(joint, plain, "l2")
        assert joint.certificate_.verify(case.X, case.y, case.sample_weight)
        # The joint objective of w₁ = −w₂ = w/2 is half of the plain one.
        form, position = Form("crammer_singer"), (case.y > 0).astype(int)
        W, b = np.vstack([-0.5 * joint.coef_, 0.5 * joint.coef_]), np.array([-0.5, 0.5]) * joint.intercept_
        value = form.objective(case.X, position, case.cost, W, b)
        assert 2.0 * value == pytest.approx(plain.solution_.primal, rel=2e-6)
        best = form.solve(case.X, position, case.cost)
        assert value <= best.value * (1.0 + 1e-6), str(case)
        if best.reliable(0.0):
            assert value == pytest.approx(best.value, rel=1e-6), str(case)
            compared += 1
    assert compared >= len(ORDINARY) // 2


@pytest.mark.parametrize("machine", [m for m in ALL if m.form.penalty == "l2"], ids=str)
def test_removing_a_row_that_is_no_support_vector(machine):
    for seed in ORDINARY[::4]:
        case = machine.problems(seed)
        fitted = machine.fit(case)
        spare = np.setdiff1d(np.arange(4, len(case.y) - 1), fitted.support_)[:2]  # the others may be their class's last
        for row in spare:
            rest = np.delete(np.arange(len(case.y)), row)
            weight = None if case.sample_weight is None else case.sample_weight[rest]
            smaller = type(case)(case.kind, case.seed, case.X[rest], case.y[rest], case.C, weight, case.epsilon)
            other = machine.fit(smaller)
            moved = float(np.linalg.norm(fitted.coef_ - other.coef_))
            assert moved <= reach(fitted) + reach(other), (str(case), row, moved)


def slopes(machine, case, fitted):
    """Costs, multipliers (with the slack's sign) and residuals r − ε of every row that counts."""
    live = case.cost > 0.0
    scores = np.asarray(case.X @ np.ravel(fitted.coef_)) + fitted.intercept_[0]
    if machine.form.loss == "error":
        r = case.y - scores
        return case.cost[live], (np.sign(r) * fitted.certificate_.alpha)[live], (np.abs(r) - fitted.epsilon)[live]
    return case.cost[live], fitted.certificate_.alpha[live], (1.0 - case.y * scores)[live]


def rounding(fitted, cost, scores):
    """What float64 leaves of a product of a multiplier and a score."""
    return 1e-12 * abs(fitted.solution_.primal) + 1e-14 * float((cost * (1.0 + np.abs(scores))).max())


POWERS = [m for m in [*CLASSIFIERS, *REGRESSIONS] if m.form.penalty == "l2" and m.form.power > 1.0]
CORNERS = [m for m in [*CLASSIFIERS, *REGRESSIONS] if m.form.loss != "logistic" and m.form.power == 1.0]


@pytest.mark.parametrize("machine", POWERS, ids=str)
def test_multipliers_are_slopes_of_the_power(machine):
    p = machine.form.power
    for seed in ORDINARY:
        case = machine.problems(seed)
        fitted = machine.fit(case, tol=TIGHT)
        assert fitted.solution_.status is Status.CONVERGED, str(case)
        cost, alpha, r = slopes(machine, case, fitted)
        slack = np.maximum(r, 0.0)
        if p >= 2.0:  # alpha = p c ξ^(p−1), compared where that is not steep
            expected = p * cost * slack ** (p - 1.0)
            off, size = np.abs(alpha - expected) / cost, float((expected / cost).max())
        else:
            off = np.abs((np.maximum(alpha, 0.0) / (p * cost)) ** (1.0 / (p - 1.0)) - slack)
            size = float(slack.max())
        assert off.max() <= 1e-4 * max(size, 1e-3), (str(case), off.max(), size)


@pytest.mark.parametrize("machine", CORNERS, ids=str)
def test_multipliers_at_their_bounds(machine):
    """0 where the loss is flat, the cost where it is steep, between them only at the corner."""
    n_inside = 0
    for seed in ORDINARY:
        case = machine.problems(seed)
        fitted = machine.fit(case, tol=TIGHT)
        # Rounding may hold a gap just above the tolerance, above all beside costs of 1e7; the solution says so.
        assert fitted.solution_.status is Status.CONVERGED or fitted.solution_.gap <= 100.0 * TIGHT, str(case)
        cost, alpha, r = slopes(machine, case, fitted)
        apart = fitted.solution_.absolute_gap + rounding(fitted, cost, r)
        # Terms of the gap, none of which can be negative.
        assert (-alpha * r)[r < 0.0].max(initial=0.0) <= apart, str(case)
        assert ((cost - alpha) * r)[r > 0.0].max(initial=0.0) <= apart, str(case)
        far = 1e-5 * max(1.0, float(np.abs(r).max()))
        assert np.abs(alpha / cost)[r < -far].max(initial=0.0) <= 1e-4, str(case)
        assert (1.0 - alpha / cost)[r > far].max(initial=0.0) <= 1e-4, str(case)
        inside = (alpha > 1e-3 * cost) & (alpha < (1.0 - 1e-3) * cost)
        assert np.abs(r[inside]).max(initial=0.0) <= far, str(case)
        n_inside += int(inside.sum())
    assert n_inside >= len(ORDINARY)


def test_multipliers_of_crammer_and_singer():
    """A row's multipliers sum to 0, its own is at most the cost, and only classes of the largest score have one."""
    for seed in ORDINARY:
        case = make_classes(seed)
        machine = LinearSVC(C=case.C, multi_class="crammer_singer", tol=TIGHT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = machine.fit(case.X, case.y, case.sample_weight)
        assert fitted.solution_.gap <= 10.0 * TIGHT, str(case)
        alpha, cost = fitted.certificate_.alpha, case.cost
        rows = np.arange(len(case.y))
        assert np.abs(alpha.sum(axis=1)).max() <= 1e-9 * cost.max(), str(case)
        own = alpha[rows, case.y]
        assert (own >= -1e-12 * cost).all(), str(case)
        assert (own <= cost * (1.0 + 1e-12)).all(), str(case)
        raised = np.asarray(case.X @ fitted.coef_.T) + fitted.intercept_ + 1.0
        raised[rows, case.y] -= 1.0
        behind = raised.max(axis=1)[:, None] - raised
        share = -alpha
        share[rows, case.y] += cost
        apart = fitted.solution_.absolute_gap + rounding(fitted, cost, raised.max(axis=1))
        assert (share * behind).max() <= apart, str(case)

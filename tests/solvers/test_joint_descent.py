"""Joint machines from start to end: units, epochs, and when Newton's method takes over."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Status
from maxmargin.solvers import joint as module
from maxmargin.space import Bias, prices
from tests.solvers.joint_cases import (
    BIASES,
    LOSSES,
    JointMachine,
    assert_feasible,
    blobs,
    combine,
    drawn,
    dual_of,
    joint,
    joint_run,
    labels_of,
    optimum,
    phases,
    rows_of,
)

CASES = [(loss, bias) for loss in LOSSES for bias in BIASES]
epochs_needed, usual_scale = module.epochs_needed, module.usual_scale
epoch_cost, newton_cost = module.epoch_cost, module.newton_cost


def descent(problem, start=None):
    """The arrays of a descent, and the run that it works in."""
    run = joint_run(problem)
    run.best = start
    return module._DescentState(problem, 0, run), run


def price(monkeypatch, *, newton=None, epoch=None):
    """What Newton's method and an epoch are said to cost, in seconds."""
    if newton is not None:
        monkeypatch.setattr(module, "newton_cost", lambda problem: newton * prices.SECOND)
    if epoch is not None:
        monkeypatch.setattr(module, "epoch_cost", lambda problem, visited: epoch * prices.SECOND)


def newton_gains_nothing(monkeypatch):
    """Newton's method is called, and does nothing; how often is counted."""
    calls = []
    monkeypatch.setattr(module._Joint, "_newton", lambda self: calls.append(self.run.n_iter) or Status.CONVERGED)
    return calls


@pytest.mark.parametrize(("loss", "bias"), CASES)
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_machine_ends_within_its_bound_of_the_optimum(loss, bias, tol, sparse):
    problem = drawn(loss, bias, seed=4)
    if sparse:
        problem = joint(sp.csr_array(rows_of(problem)), labels_of(problem), loss, bias, C=2.0)
    best, W, _ = optimum(problem)
    solution = JointMachine(tol=tol).solve(problem)
    assert solution.status is Status.CONVERGED
    assert solution.gap <= tol
    assert solution.dual <= best * (1.0 + 1e-8)
    assert best <= solution.primal * (1.0 + 1e-8) <= best * (1.0 + 2.0 * tol)
    assert_feasible(problem, solution.alpha)
    assert solution.absolute_gap == max(0.0, solution.primal - solution.dual)
    W = W if bias == "none" else W - W.mean(axis=0)
    found = solution.W if bias == "none" else solution.W - solution.W.mean(axis=0)
    assert np.linalg.norm(found - W) <= math.sqrt(2.0 * solution.absolute_gap) + 1e-3
    assert solution.distance_bound == math.sqrt(2.0 * solution.absolute_gap)
    assert repr(solution).startswith("JointSolution(CONVERGED: gap ")
    assert "all 3 classes at once" in repr(solution)


# --- units -------------------------------------------------------------------------------------------------------


def test_rows_are_measured_in_powers_of_two_where_their_norms_are_unusual():
    label = np.arange(6) % 3
    for norm, expected in ((1.0, 1.0), (2.0**8, 1.0), (2.0**-8, 1.0), (2.0**9, 512.0), (1.3 * 2.0**-30, 2.0**-30)):
        X = norm * np.ones((6, 4)) / 2.0
        assert usual_scale(joint(X, label)) == expected
    assert usual_scale(joint(np.zeros((6, 2)), label)) == 1.0
    assert usual_scale(joint(np.full((6, 4), 1e6, dtype=np.float32), label)) == 1.0  # float32 has no room for it


@pytest.mark.parametrize(("loss", "bias"), CASES)
@pytest.mark.parametrize("sparse", [False, True])
def test_other_units_change_nothing_but_units(loss, bias, sparse):
    """X s, costs / s² and a penalised bias of s times the value: the weights are divided by s, the biases stay."""
    s = 2.0**20
    (X, label), weight = blobs(50, 3, 3), np.linspace(0.5, 2.0, 50)
    make = (lambda rows: sp.csr_array(rows)) if sparse else (lambda rows: rows)
    usual = joint(make(X), label, loss, bias, weight=weight)
    other = joint(make(s * X), label, loss, bias, weight=weight / s**2)
    if bias == "penalised":
        other = replace(other, bias=Bias(s * BIASES[bias].value, True))
    one, two = (JointMachine(tol=1e-7).solve(p) for p in (usual, other))
    assert usual_scale(usual) == 1.0
    assert two.status is Status.CONVERGED
    np.testing.assert_allclose(two.W * s, one.W, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(two.b, one.b, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(two.alpha * s**2, one.alpha, rtol=1e-10, atol=1e-10)
    assert two.n_iter == one.n_iter
    assert (two.primal * s**2, two.dual * s**2) == pytest.approx((one.primal, one.dual), rel=1e-14)
    assert two.gap <= 1e-7


def test_a_gap_that_is_lost_on_the_way_back_is_not_called_converged(monkeypatch):
    claim = module.joint_claim
    monkeypatch.setattr(
        module, "joint_claim",
        lambda problem, *given: replace(claim(problem, *given), gap=1e-15 if usual_scale(problem) == 1.0 else 1.0),
    )  # fmt: skip
    X, label = blobs()
    assert JointMachine().solve(joint(X, label)).status is Status.CONVERGED
    assert JointMachine().solve(joint(2.0**20 * X, label, C=2.0**-40)).status is Status.NUMERICAL_LIMIT


# --- the state of the descent ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", BIASES)
def test_epochs_keep_weights_and_sums_those_of_the_multipliers_and_never_lower_the_dual(bias):
    problem = drawn(bias=bias, seed=6)
    (state, run), duals = descent(problem), []
    for _ in range(30):
        state.epoch(run)
        np.testing.assert_allclose(state.weights, combine(problem, state.alpha), atol=1e-12)
        np.testing.assert_allclose(state.sums, state.alpha.sum(axis=0), atol=1e-12)
        duals.append(dual_of(problem, state.alpha))
    assert state.weights.flags.c_contiguous
    best, _, b = optimum(problem)
    if bias != "free":
        assert (np.diff(duals) >= -1e-12).all()
        expected = BIASES[bias].value ** 2 * state.sums
        np.testing.assert_allclose(state.bias, expected, atol=1e-12)
        assert duals[-1] == pytest.approx(best, rel=0.05)
    else:
        for _ in range(2000):
            state.epoch(run)
        np.testing.assert_allclose(state.sums, 0.0, atol=1e-6)  # the biases are the multipliers of that
        np.testing.assert_allclose(state.bias, b - b.mean(), atol=1e-3)
        assert state.bias.sum() == pytest.approx(0.0, abs=1e-12)


def test_a_descent_goes_on_from_a_point_and_leaves_that_as_it_is():
    problem = drawn(seed=6)
    start = module.certified(problem, np.zeros(problem.shape), np.ones((3, 3)), np.array([2.0, 1.0, 0.0]))
    start = replace(start, alpha=module.certified(problem, JointMachine().solve(problem).alpha).alpha)
    before, (state, run) = start.alpha.copy(), descent(problem, start)
    np.testing.assert_allclose(state.weights, combine(problem, before), atol=1e-13)
    np.testing.assert_allclose(state.bias, [1.0, 0.0, -1.0], atol=1e-13)
    state.epoch(run)
    assert np.array_equal(start.alpha, before)
    assert start.b.tolist() == [2.0, 1.0, 0.0]
    assert not descent(drawn(bias="none"), start)[0].bias.any()


def test_epochs_leave_settled_rows_out_and_look_at_all_again():
    X, label = blobs(300, 3, 3, spread=2.0)
    state, run = descent(joint(X, label, bias="none", C=0.01))
    assert state.take_visited() == 0.0
    state.epoch(run)
    assert state.take_visited() == 1.0
    shares, problem = [], state.problem
    for _ in range(30):
        before = run.spent
        state.epoch(run)
        shares.append(state.take_visited())
        assert state.take_visited() == 0.0
        assert run.spent - before == pytest.approx(epoch_cost(problem, shares[-1]) - module.EPOCH)
    assert min(shares) < 0.5
    again = [k for k in range(1, 30) if shares[k - 1] < 0.5 and shares[k] == 1.0]
    assert len(again) >= 2
    state.epoch(run)
    state.epoch(run)
    mean = state.take_visited()
    assert 0.0 < mean <= 1.0
    assert state.settled <= 0.0101  # the more the rows agree, the more agreement is asked for


# --- when Newton's method takes over -----------------------------------------------------------------------------


def test_epochs_to_go_are_exact_for_a_gap_that_falls_with_a_power():
    for power, tol in ((0.5, 1e-3), (2.0, 1e-6)):
        looks = [(epochs, 7.0 * epochs**-power) for epochs in (20, 40, 55, 90)]
        assert 7.0 * epochs_needed(looks, tol) ** -power == pytest.approx(tol)
        assert epochs_needed([(1, 1e-9), *looks], tol) == epochs_needed(looks, tol)  # only the last three count
    assert epochs_needed([(10, 1.0)], 1e-3) == 20.0
    assert epochs_needed([(10, 1.0), (20, 1e-30)], 1e-3) == 40.0
    for flat in ([1.0, 1.0, 1.0], [1.0, 1.0, 2.0], [math.inf, 1.0, 0.5], [1.0, 1.0, 0.9999]):
        found = epochs_needed(list(zip((10, 20, 40), flat, strict=True)), 0.1)
        assert found == pytest.approx(40.0 * (flat[-1] / 0.1) ** 10.0)
    assert epochs_needed([(10, 1.0), (20, 1.0), (40, 1.0)], 1e-300) == pytest.approx(40.0 * math.exp(50.0))


def test_estimates_of_work_grow_with_the_problem_and_forget_the_matrix_where_it_is_too_large():
    small, more, wide = (drawn(n=n, d=d) for n, d in ((40, 3), (4000, 3), (40, 2000)))
    assert epoch_cost(small, 0.5) < epoch_cost(more, 0.5) < epoch_cost(more, 1.0)
    assert newton_cost(small) < newton_cost(more)
    assert newton_cost(small) <= module.CHEAP < newton_cost(wide)
    assert newton_cost(wide) < module.NEWTON_STEPS * prices.factor(3 * 2001)
    besides = module.STEP + module.PER_SCORE * 4000 * 3  # a matrix of 12 columns is next to nothing
    assert newton_cost(more) < 1.05 * module.NEWTON_STEPS * besides


@pytest.mark.parametrize("sparse", [False, True])
def test_work_is_counted_as_it_is_estimated(sparse):
    problem = drawn(seed=6)
    problem = joint(sp.csr_array(rows_of(problem)), labels_of(problem)) if sparse else problem
    state, run = descent(problem)
    before = run.spent
    state.epoch(run)
    read = 3 * problem.nnz * (prices.READ_SPARSE if sparse else prices.READ_DENSE)
    assert run.spent - before == pytest.approx(read) == epoch_cost(problem, 1.0) - module.EPOCH
    assert epoch_cost(problem, 0.25) - module.EPOCH == pytest.approx(0.25 * (epoch_cost(problem, 1.0) - module.EPOCH))


@pytest.mark.parametrize("tol", [1e-4, 1e-6])
def test_where_newton_is_cheap_it_begins_after_the_first_look_unless_somebody_is_in_a_hurry(tol):
    solution = JointMachine(tol=tol).solve(drawn(seed=6))
    expected = ["coordinate descent", "certified"] if tol > 1e-5 else ["coordinate descent", "newton", "certified"]
    assert phases(solution) == expected
    assert solution.history.records[0].iteration == 10
    assert solution.status is Status.CONVERGED
    if tol < 1e-5:
        assert solution.gap <= 1e-9  # to rounding level, also where epochs reach the tolerance


def test_cheap_newton_goes_to_rounding_level_from_a_gap_that_epochs_have_reached():
    solution = JointMachine(tol=1e-6).solve(drawn(bias="penalised", seed=6, C=1e-4))
    assert solution.history.gaps[0] < 0.95e-6
    assert phases(solution) == ["coordinate descent", "newton", "certified"]


def test_of_all_looks_the_best_one_is_the_answer(monkeypatch):
    """With free biases the gap may rise again."""
    price(monkeypatch, newton=1e9)
    solution = JointMachine(max_iter=45).solve(drawn(seed=0))
    *gaps, last, claimed = solution.history.gaps
    assert min(gaps) < 0.5 * last
    assert claimed == solution.gap == pytest.approx(min(gaps), rel=1e-9)


def test_a_gap_that_epochs_reach_needs_no_costly_newton(monkeypatch):
    price(monkeypatch, newton=1e9)
    solution = JointMachine(tol=1e-6).solve(drawn(bias="none", seed=6))
    assert phases(solution) == ["coordinate descent", "certified"]
    assert solution.status is Status.CONVERGED


def test_slow_epochs_make_way_for_newton_after_150(monkeypatch):
    price(monkeypatch, newton=1.0, epoch=1.0)
    solution = JointMachine(tol=1e-6).solve(drawn(seed=6, n=150, C=100.0))
    records = [record for record in solution.history.records if record.phase == "coordinate descent"]
    assert phases(solution) == ["coordinate descent", "newton", "certified"]
    assert records[-2].iteration < 150 <= records[-1].iteration
    assert solution.status is Status.CONVERGED


def test_looks_come_ever_more_seldom_but_not_later_than_the_end_that_is_expected(monkeypatch):
    price(monkeypatch, newton=1e9)
    solution = JointMachine(tol=1e-4).solve(drawn(seed=6))
    looks = [(r.iteration, r.gap) for r in solution.history.records if r.phase == "coordinate descent"]
    assert looks[0][0] == 10
    pauses = []
    for k, (epochs, _) in enumerate(looks[:-1], 1):
        expected = 1.1 * (epochs_needed(looks[:k], 0.95e-4) - epochs)
        pauses.append(looks[k][0] - epochs)
        assert pauses[-1] == max(10, min(epochs // 2, math.ceil(expected)))
    assert pauses != [max(10, epochs // 2) for epochs, _ in looks[:-1]]


def test_epochs_that_gain_nothing_make_way_for_newton_and_end_if_that_gains_nothing_either(monkeypatch):
    price(monkeypatch, newton=1e9, epoch=0.0)
    calls = newton_gains_nothing(monkeypatch)
    solution = JointMachine(tol=1e-18, max_iter=100_000).solve(drawn(bias="none", seed=6, n=12))
    assert len(calls) == 1
    assert calls[0] >= 1000
    assert solution.status is Status.NUMERICAL_LIMIT
    assert solution.n_iter > calls[0]


def test_epochs_go_on_from_what_newton_left_and_converge(monkeypatch):
    price(monkeypatch, newton=0.0)
    calls = newton_gains_nothing(monkeypatch)
    solution = JointMachine(tol=1e-6).solve(drawn(bias="none", seed=6))
    assert calls == [10]
    *before, last = (r.gap for r in solution.history.records if r.phase == "coordinate descent")
    assert last <= 0.95e-6 < min(before)
    assert solution.status is Status.CONVERGED


def test_epochs_begin_anew_at_what_newton_left(monkeypatch):
    problem = drawn(bias="none", seed=6)
    near = JointMachine(tol=1e-9).solve(problem)
    near = module.certified(problem, 0.9999 * near.alpha, near.W, near.b)

    def newton(call):
        call.run.keep(near)
        return Status.CONVERGED

    monkeypatch.setattr(module._Joint, "_newton", newton)
    gaps = JointMachine(tol=1e-8, max_iter=20).solve(problem).history.gaps
    assert 1e-8 < near.gap < 0.01 * gaps[0]
    assert gaps[1] < 0.1 * gaps[0]

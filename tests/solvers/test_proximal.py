"""The l1 penalty: the optimum of independent solvers and its KKT conditions, whatever way the method takes to it."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from maxmargin import Problem, Status
from maxmargin.runtime import Watch
from maxmargin.solvers import SOLVERS, proximal
from maxmargin.solvers.proximal import ProximalNewton
from tests.conftest import tall
from tests.oracles import Form
from tests.solvers.inside import (
    BIASES,
    DEADLINE,
    SMOOTH,
    Step,
    as_if_so_many_numbers,
    asks_to_stop,
    calls,
    cancelled,
    core_calls,
    dense,
    l1_setting,
    late,
    objective,
    slack,
    stops,
    with_l1,
)


def sample_pays(monkeypatch):
    """As if there were enough rows for a start from a sample."""
    l1_setting(monkeypatch, "worth_sampling", lambda problem: not problem.auxiliary)


def no_steps(monkeypatch, hyperplanes):
    """Instead of a step, the next of these hyperplanes is visited."""
    hyperplanes = iter(hyperplanes)
    monkeypatch.setattr(proximal._Proximal, "_improve", lambda run, *_: run._move_to(next(hyperplanes).copy(), 0.0))


def end_of_path(problem):
    run = proximal._Proximal(ProximalNewton(), problem, Watch())
    run._along_the_path()
    return run.w, run.b, run.scores


def looked_at(problem, w):
    """Primal value and gap of these weights."""
    point, _ = Step(problem, w).certify()
    return point.primal, point.gap


def weights(problem, w):
    """A solution to start from, with these weights."""
    return replace(ProximalNewton(max_iter=0).solve(problem), w=w)


def check_solution(problem, found, *, steep=1e-5):
    """Primal and dual values, dual feasibility and the KKT conditions, all by plain arithmetic."""
    X, y, cost = dense(problem), problem.y, problem.cost
    pull = X.T @ (slack(problem, found.w, found.b)[1] * y)
    assert (np.abs(pull) <= 1.0 + steep).all()
    used = found.w != 0.0
    np.testing.assert_allclose(pull[used], np.sign(found.w[used]), atol=steep)
    total = float(slack(problem, found.w, found.b)[1] @ y)
    if problem.bias.value:
        assert total == pytest.approx(found.b / problem.bias.value**2 if problem.bias.penalised else 0.0, abs=steep)
    assert found.primal == pytest.approx(objective(problem, found.w, found.b), rel=1e-10)
    check_dual(problem, found.alpha, found.dual)
    assert found.dual <= found.primal
    live = cost > 0.0
    assert (found.alpha[~live] == 0.0).all()


def check_dual(problem, alpha, dual):
    """A feasible dual point, and its value."""
    X, y, live = dense(problem), problem.y, problem.cost > 0.0
    assert (alpha >= 0.0).all()
    rounding = 1e-12 + 1e-15 * len(y) * (np.abs(X).T @ alpha).max(initial=0.0)  # of the sum here
    assert np.abs(X.T @ (alpha * y)).max(initial=0.0) <= 1.0 + rounding
    assert not problem.bias.free or abs(alpha @ y) <= 1e-12 * max(1.0, alpha.sum())
    a, c = alpha[live], problem.cost[live]
    if problem.loss.name == "squared_hinge":
        value = float((a - a * a / (4.0 * c)).sum())
    else:
        p = np.clip(a / c, 1e-300, 1.0 - 1e-16)
        value = float(-(c * (p * np.log(p) + (1.0 - p) * np.log1p(-p))).sum())
    value -= 0.5 * (problem.bias.value * float(alpha @ y)) ** 2 if problem.bias.penalised else 0.0
    assert dual == pytest.approx(value, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("C", [0.003, 0.1, 3.0])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_the_optimum_is_that_of_a_conic_solver_and_meets_the_kkt_conditions(loss, bias, C, layout):
    weight = np.random.default_rng(1).choice([0.0, 1.0, 2.5], 80)
    problem = with_l1(loss, C=C, layout=layout, sample_weight=weight, **BIASES[bias])
    found = ProximalNewton(tol=1e-9).solve(problem)
    assert (found.status, found.solver, found.penalty) == (Status.CONVERGED, "proximal_newton", "l1")
    assert found.gap <= 1e-9
    check_solution(problem, found)
    if bias != "penalised":
        oracle = Form("slack" if loss == "squared_hinge" else loss, power=2.0, penalty="l1")
        oracle = oracle if loss == "squared_hinge" else Form(loss, penalty="l1")
        answer = oracle.solve(dense(problem), problem.y, problem.cost, bias=bias == "free")
        assert found.primal == pytest.approx(answer.value, rel=1e-6)
        assert found.primal <= answer.value * (1.0 + 1e-9)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("bias", BIASES)
def test_the_optimum_is_the_best_over_all_signs_of_the_weights(loss, bias):
    problem = with_l1(loss, n=12, d=3, C=0.4, **BIASES[bias])
    X, y = dense(problem), problem.y

    def value_and_slope(signs, z):
        _, a, _ = slack(problem, z[:3], z[3])
        of_bias = z[3] / problem.bias.value**2 if problem.bias.penalised else 0.0
        return objective(problem, z[:3], z[3]), np.append(signs - X.T @ (a * y), of_bias - a @ y)

    best = np.inf
    for signs in itertools.product([-1.0, 0.0, 1.0], repeat=3):
        bounds = [{-1.0: (None, 0.0), 0.0: (0.0, 0.0), 1.0: (0.0, None)}[s] for s in signs]
        bounds.append((None, None) if problem.bias.value else (0.0, 0.0))
        answer = minimize(
            lambda z, signs=signs: value_and_slope(np.array(signs), z), np.zeros(4), jac=True, bounds=bounds,
            method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10},
        )  # fmt: skip
        best = min(best, answer.fun)
    found = ProximalNewton(tol=1e-9).solve(problem)
    assert found.primal == pytest.approx(best, rel=1e-8)
    check_solution(problem, found)


@pytest.mark.parametrize("loss", SMOOTH)
def test_small_costs_leave_the_weights_at_zero_and_the_best_constant(loss):
    problem = with_l1(loss, C=1e-4)
    found = ProximalNewton().solve(problem)
    assert not found.w.any()
    share = (problem.y > 0).mean()
    assert found.b == pytest.approx(2.0 * share - 1.0 if loss == "squared_hinge" else np.log(share / (1.0 - share)))
    check_solution(problem, found)


def test_the_loop_goes_on_to_rounding_where_passes_are_cheap_and_stops_at_tol_where_not(monkeypatch):
    problem, solver = with_l1("logistic", n=300, d=8), ProximalNewton(tol=1e-3)

    def gaps():
        return [record.gap for record in solver.solve(problem).history.records if record.phase == "proximal newton"]

    cheap = gaps()
    assert cheap[-1] <= 1e-6 < min(cheap[:-1])
    as_if_so_many_numbers(monkeypatch, problem, 1_000_000)
    costly = gaps()
    assert costly[-1] <= 0.95e-3 < min(costly[:-1])
    assert costly[-1] > 1e-6


def test_eight_idle_looks_are_the_end(monkeypatch):
    problem = with_l1()
    no_steps(monkeypatch, itertools.repeat(np.zeros(6)))
    found = ProximalNewton().solve(problem)
    assert (found.status, found.n_iter) == (Status.NUMERICAL_LIMIT, 0)
    assert len(found.history) == 9 + 1  # the first look, eight more, and the claim
    check_dual(problem, found.alpha, found.dual)


def test_while_the_objective_falls_no_look_is_idle(monkeypatch):
    # Far too long weights: the gap stays near 1 while the objective falls. Where it rises nothing is gained.
    problem, falling = with_l1(), 10.0 ** np.arange(6.0, 3.0, -0.1)
    lengths = [*falling, *falling[::-1][:6], *falling[-1:] * 0.5, *falling[:9]]
    no_steps(monkeypatch, (length * np.ones(6) for length in lengths))
    found = ProximalNewton().solve(problem, start=weights(problem, 2e6 * np.ones(6)))
    assert found.status is Status.NUMERICAL_LIMIT
    assert min(found.history.gaps[:-1]) > 0.9
    assert len(found.history) == 1 + len(lengths) - 1 + 1  # each was looked at but the last, when eight had been idle


def test_while_the_gap_falls_no_look_is_idle(monkeypatch):
    # Around the optimum there are hyperplanes that are no lower than the first, but have ever better multipliers.
    problem = with_l1()
    best = ProximalNewton(tol=1e-9).solve(problem).w
    rng = np.random.default_rng(0)
    around = [best + 0.1 * rng.random() * rng.standard_normal(6) for _ in range(3000)]
    seen = sorted(((*looked_at(problem, w), k) for k, w in enumerate(around)), key=lambda found: found[0])
    first = next(found for found in seen if found[1] > 0.3)
    chain = [first]
    for found in sorted(seen, key=lambda found: -found[1]):
        if found[0] > first[0] and found[1] < 0.88 * chain[-1][1]:
            chain.append(found)
    assert len(chain) > 10
    hyperplanes = [around[k] for *_, k in chain]
    no_steps(monkeypatch, iter([*hyperplanes[1:], *hyperplanes[-1:] * 8]))
    found = ProximalNewton().solve(problem, start=weights(problem, hyperplanes[0]))
    assert len(found.history) == len(chain) + 8 + 1


def test_a_limit_on_steps_and_a_watch_that_asks_to_stop_end_with_a_certified_point():
    problem = with_l1("logistic", C=3.0)
    for solver, watch, status in [
        (ProximalNewton(max_iter=1), None, Status.ITERATION_LIMIT),
        (ProximalNewton(), late(), Status.TIME_LIMIT),
        (ProximalNewton(), asks_to_stop(1), Status.INTERRUPTED),
        (ProximalNewton(), asks_to_stop(2), Status.INTERRUPTED),
        (ProximalNewton(), cancelled(), Status.INTERRUPTED),
    ]:
        found = solver.solve(problem, watch=watch)
        assert found.status is status
        assert 1e-6 < found.gap <= 1.0
        check_dual(problem, found.alpha, found.dual)
        assert found.primal == pytest.approx(objective(problem, found.w, found.b), rel=1e-10)
        assert found.history.records[-1].gap == found.gap


@pytest.mark.parametrize("where", ["lasso_sweeps", "normal_matrix", "combine"])
@pytest.mark.parametrize(
    ("error", "status"),
    [(KeyboardInterrupt(), Status.INTERRUPTED), (DEADLINE, Status.TIME_LIMIT)],
)
def test_a_stop_within_a_step_leaves_the_point_before_it(monkeypatch, where, error, status):
    problem = with_l1("logistic", C=3.0)
    with monkeypatch.context() as patch:
        stops(patch, error, where, after=1 if where == "combine" else 2)
        found = ProximalNewton().solve(problem)
    assert found.status is status
    assert found.n_iter == (0 if where == "combine" else 2)
    check_dual(problem, found.alpha, found.dual)
    assert found.primal == pytest.approx(objective(problem, found.w, found.b), rel=1e-10)


def test_a_start_nearby_takes_fewer_steps_and_one_that_does_not_fit_none_away():
    problem, near = with_l1("logistic", C=3.0), with_l1("logistic", C=3.1)
    alone = ProximalNewton(tol=1e-9).solve(problem)
    start = ProximalNewton(tol=1e-9).solve(near)
    warm = ProximalNewton(tol=1e-9).solve(problem, start=start)
    assert warm.n_iter < alone.n_iter
    assert warm.primal == pytest.approx(alone.primal, rel=1e-9)
    same = ProximalNewton(tol=1e-9).solve(problem, start=alone)
    assert (same.n_iter, same.status) == (0, Status.CONVERGED)
    for other in (alone.alpha, ProximalNewton().solve(with_l1("logistic", d=5))):
        found = ProximalNewton(tol=1e-9).solve(problem, start=other)
        np.testing.assert_array_equal(found.w, alone.w)
        assert found.n_iter == alone.n_iter


def test_a_start_replaces_the_path_and_the_sample(monkeypatch):
    sample_pays(monkeypatch)
    samples = calls(monkeypatch, proximal, "sample_rows")
    problem = with_l1(C=300.0, n=400)
    start = ProximalNewton().solve(problem)
    assert len(samples) == 1
    ProximalNewton().solve(problem, start=start)
    assert len(samples) == 1


def path_of(problem, found):
    """The shares of the costs that a path should have, and those that the history tells."""
    score = 2.0 * (problem.y > 0).mean() - 1.0  # the best constant of the squared hinge
    alpha = slack(problem, np.zeros(problem.n_cols), score)[1]
    strength = float(np.abs(dense(problem).T @ (alpha * problem.y)).max())
    shares, share = [], 30.0 / max(strength, 1.0)
    while share < 1.0 / 30.0:
        shares.append(share)
        share *= 30.0
    told = [record.phase for record in found.history.records if record.phase.startswith("costs times")]
    return [f"costs times {share:.0e}" for share in shares], told


@pytest.mark.parametrize(("C", "steps"), [(0.1, 0), (10.0, 0), (40.0, 1), (1000.0, 2), (1e5, 3)])
def test_large_costs_are_reached_by_a_path_of_smaller_ones(monkeypatch, C, steps):
    problem = with_l1(C=C, n=60, d=4)
    parts = calls(monkeypatch, Problem, "with_costs")
    found = ProximalNewton(tol=1e-8).solve(problem)
    wanted, told = path_of(problem, found)
    assert told == wanted
    assert len(told) == len(parts) == steps  # and no step has a path of its own
    assert found.status is Status.CONVERGED
    check_solution(problem, found, steep=1e-4)
    records = found.history.records
    assert [record.iteration for record in records] == sorted(record.iteration for record in records)
    assert all(record.gap <= 1e-2 for record in records[: len(told)])


@pytest.mark.parametrize("bias", BIASES)
def test_the_end_of_the_path_is_the_start(bias):
    problem = with_l1(C=1e4, n=60, d=4, **BIASES[bias])
    w, b, scores = end_of_path(problem)
    near = ProximalNewton().solve(problem)
    np.testing.assert_allclose(w, near.w, atol=0.2 * np.abs(near.w).max())
    assert b == pytest.approx(near.b, abs=0.05)
    assert (b != 0.0) == (bias != "none")
    np.testing.assert_allclose(scores, dense(problem) @ w, atol=1e-10)


@pytest.mark.parametrize("start", ["path", "sample"])
@pytest.mark.parametrize(("watch", "status"), [(asks_to_stop, Status.INTERRUPTED), (late, Status.TIME_LIMIT)])
def test_a_stop_on_the_way_to_a_start_ends_the_fit(monkeypatch, start, watch, status):
    if start == "sample":
        sample_pays(monkeypatch)
    problem = with_l1(C=1e4, n=400, d=4)
    found = ProximalNewton().solve(problem, watch=watch())
    assert found.status is status
    begun, last = (record.phase for record in found.history.records)  # no step on the problem itself
    assert begun.startswith("sample of 50 rows" if start == "sample" else "costs times")
    assert last == "certified"
    check_dual(problem, found.alpha, found.dual)


def test_a_sample_gives_the_start_where_rows_are_many(monkeypatch):
    problem = with_l1(C=0.1, n=2400, d=4)
    alone = ProximalNewton(tol=1e-9).solve(problem)
    sample_pays(monkeypatch)
    sizes = core_calls(monkeypatch, "normal_matrix", lambda out, rows, *_, **__: rows.shape[0])
    found = ProximalNewton(tol=1e-9).solve(problem)
    assert found.primal == pytest.approx(alone.primal, rel=1e-9)
    assert sizes[0] == 300
    assert sizes == sorted(sizes)
    assert sizes.count(2400) < alone.n_iter
    assert found.n_iter >= len(sizes)


def test_the_costs_of_a_sample_stand_for_all_rows(monkeypatch):
    sample_pays(monkeypatch)
    parts = calls(monkeypatch, Problem, "part")
    problem = with_l1(C=0.1, n=803, d=4)
    ProximalNewton().solve(problem)
    assert [part.n_rows for part in parts] == [100]
    np.testing.assert_allclose(parts[0].cost, 0.1 * 803 / 100)


@pytest.mark.parametrize("columns", [True, False])
def test_a_sample_of_one_class_or_of_many_columns_is_not_used(monkeypatch, columns):
    sample_pays(monkeypatch)
    if columns:
        l1_setting(monkeypatch, "FEW_COLUMNS", 3)
        problem = with_l1(n=400, d=4)
    else:
        X, y = tall(400, 4)
        weight = np.where(y > 0, 0.0, 1.0)
        weight[np.flatnonzero(y > 0)[0]] = 1.0
        problem = Problem.from_arrays(X, y, penalty="l1", loss="logistic", sample_weight=weight)
    sizes = core_calls(monkeypatch, "normal_matrix", lambda out, rows, *_, **__: rows.shape[0])
    found = ProximalNewton(tol=1e-9).solve(problem)
    assert set(sizes) == {400}
    check_solution(problem, found)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("most", [6000, 130])
def test_a_working_set_of_columns_gives_the_same_optimum(monkeypatch, layout, loss, most):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((100, 450)) < 0.3, rng.standard_normal((100, 450)), 0.0)
    y = np.where(X[:, :5].sum(axis=1) + 0.5 * rng.standard_normal(100) > 0, 1, -1)
    problem = Problem.from_arrays(layout(X), y, C=0.5, loss=loss, penalty="l1")
    l1_setting(monkeypatch, "MOST_COLUMNS", most)
    sizes = core_calls(monkeypatch, "normal_matrix", lambda out, rows, *_, **__: rows.shape[1])
    found = SOLVERS["proximal_newton"](tol=1e-8).solve(problem)
    assert found.status is Status.CONVERGED
    check_solution(problem, found, steep=1e-4)
    assert sizes[0] == 100
    assert max(sizes) < 450
    l1_setting(monkeypatch, "FEW_COLUMNS", 450)
    whole = ProximalNewton(tol=1e-8).solve(problem)
    assert sizes[-1] == 450
    assert found.primal == pytest.approx(whole.primal, rel=2e-8)

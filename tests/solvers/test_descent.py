"""Dual coordinate descent: the optimum, when it looks, and which rows it leaves out."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin import Problem, Status
from maxmargin.runtime import Watch
from maxmargin.solvers import DualCoordinateDescent, InteriorPoint, Newton, dual_cd
from maxmargin.solvers.points import recover
from tests.conftest import tall
from tests.oracles import Form
from tests.solvers.inside import (
    BIASES,
    DEADLINE,
    HOW,
    MARGIN,
    TUBE,
    Passing,
    as_if_so_many_numbers,
    asks_to_stop,
    calls,
    cancelled,
    dense,
    descents_of,
    epochs_of,
    gaps_of,
    late,
    orthogonal_rows,
    stops,
    with_corners,
)

LOSSES = [*MARGIN, *TUBE, "logistic"]


def one_run(problem, **options):
    return dual_cd._Descent(DualCoordinateDescent(n_threads=1, **options), problem, Watch(), None)


def epochs_to_go(run, epochs, gap):
    return run._epochs_to_go(epochs, gap)


def multipliers(run):
    return run._whole()


def alphas(run, epochs):
    """The multipliers after each epoch."""
    for _ in range(epochs):
        run.descent.epoch(run.rows.core, run.run.how.watch, 1)
        run.descent.unshrink()
        yield multipliers(run).copy()


def screen(monkeypatch, run, point, known):
    """Leave out rows as if these were proven."""
    monkeypatch.setattr(dual_cd, "proven", lambda *_: known)
    run.run.best = point
    run._screen()


def epoch_fails(monkeypatch, error, at):
    """The ``at``-th epoch ends with this error."""
    made, count = dual_cd._core.Descent, itertools.count(1)

    class Descent:
        def __init__(self, *given, **options):
            self.__dict__["of"] = made(*given, **options)

        def __getattr__(self, name):
            return getattr(self.of, name)

        def __setattr__(self, name, value):
            setattr(self.of, name, value)

        def epoch(self, *given):
            if next(count) == at:
                raise error
            return self.of.epoch(*given)

    monkeypatch.setattr(dual_cd._core, "Descent", Descent)


def entropy_box(problem):
    return dual_cd._entropy_box(problem)


def nothing_is_proven(monkeypatch):
    monkeypatch.setattr(dual_cd, "proven", lambda problem, point: np.zeros(problem.n_rows, dtype=bool))


def polishes(monkeypatch):
    """(gap at the start, options) of every polish, which works."""
    return calls(monkeypatch, dual_cd._Descent, "_polish", lambda out, run, point: point.gap)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("polish", [True, False])
def test_the_optimum_is_that_of_a_conic_solver(loss, bias, polish):
    for C in (0.02, 0.7):
        problem = with_corners(loss, n=50, C=C, bias=bias)
        found = DualCoordinateDescent(tol=1e-7, polish=polish).solve(problem)
        assert (found.status, found.solver) == (Status.CONVERGED, "dual_cd")
        wide = dense(problem)
        if bias == "penalised":
            wide = np.column_stack([wide, np.full(len(wide), 2.0)])
        name = loss if loss == "logistic" else "error" if loss in TUBE else "slack"
        form = Form(name, power=2.0 if "squared" in loss else 1.0, epsilon=0.3)
        answer = form.solve(wide, problem.y, problem.cost, bias=bias == "free")
        assert found.primal == pytest.approx(answer.value, rel=2e-6)
        assert found.dual <= answer.value * (1.0 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_no_epoch_lowers_the_dual_value_where_no_equality_binds_the_multipliers(loss, bias):
    problem = with_corners(loss, C=1.0, bias=bias)
    run = one_run(problem)
    duals = [recover(problem, alpha, HOW).dual for alpha in alphas(run, 8)]
    assert duals == sorted(duals)
    assert duals[-1] > duals[0] > 0.0


def test_the_order_of_the_rows_is_the_seeds_and_nothing_elses():
    problem = with_corners(n=200)
    options = {"polish": False, "max_iter": 3}
    first, same, other = (DualCoordinateDescent(seed=seed, **options).solve(problem).alpha for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


def test_an_epoch_is_counted_as_one_visit_to_all_rows():
    problem, reads = with_corners(n=100), []
    for max_iter in (1, 2, 3):
        watch = Watch()
        DualCoordinateDescent(polish=False, max_iter=max_iter).solve(problem, watch=watch)
        reads.append(watch.meter.reads)
    np.testing.assert_allclose(np.diff(reads), problem.nnz)


# ---------------------------------------------------------------- when it looks


@pytest.mark.parametrize(
    ("given", "start", "first"),
    [
        ({"C": 0.01}, None, 10),
        ({"C": 0.01}, 0.005, 2),  # it continues from somewhere
        ({"C": 100.0}, None, 2),  # coordinate steps get nowhere
        ({"C": 0.01, "loss": "squared_hinge"}, None, 2),
        ({"C": 0.01, "loss": "logistic"}, None, 2),
    ],
)
def test_the_first_look_is_early_where_epochs_alone_will_not_do(given, start, first):
    problem = with_corners(n=200, weight=False, **given)
    start = None if start is None else np.full(200, start)
    found = DualCoordinateDescent().solve(problem, start=start)
    assert epochs_of(found)[0] == first
    assert epochs_of(DualCoordinateDescent(max_iter=1).solve(problem, start=start))[0] == 1


@pytest.mark.parametrize(("loss", "C", "first"), [("hinge", 0.1, 10), ("logistic", 0.1, 5), ("logistic", 100.0, 2)])
def test_rows_that_hardly_touch_each_other_are_left_to_epochs(monkeypatch, loss, C, first):
    problem = orthogonal_rows(loss, C=C)
    assert epochs_of(DualCoordinateDescent().solve(problem))[0] == (10 if loss == "hinge" else 2)
    as_if_so_many_numbers(monkeypatch, problem, 50_001)
    polished = polishes(monkeypatch)
    found = DualCoordinateDescent(tol=1e-8).solve(problem)
    assert epochs_of(found)[0] == first
    assert (found.status, polished) == (Status.CONVERGED, [])
    assert found.primal == pytest.approx(Newton(tol=1e-9).solve(problem).primal, rel=1e-7)


def test_the_next_look_is_when_the_pace_promises_the_aim():
    smooth = one_run(with_corners("squared_hinge"), tol=1e-6)
    for epochs, gap, wanted in [
        (2, 0.5, 10),  # 0.5 after two epochs is 0.3466 per epoch: 45 more, but never more than 10 so early
        (12, 0.5, 10),  # no progress
        (22, 0.6, 11),  # worse: half of what has been done
        (40, 1e-5, math.ceil(1.1 * math.log(0.9 * 0.95e-6 / 1e-5) / (math.log(1e-5 / 0.6) / 18))),
        (80, 1e-7, 40),  # the aim is reached
        (100, 0.0, 50),
    ]:
        assert epochs_to_go(smooth, epochs, gap) == wanted, epochs
    for gap, wanted in ((0.5, 5), (1e-7, 5), (1.5, 5)):
        assert epochs_to_go(one_run(with_corners("hinge"), tol=1e-6), 10, gap) == wanted  # a first pace says nothing
    assert epochs_to_go(one_run(with_corners("squared_hinge"), tol=1e-6), 10, 1e-6 * 0.96) == 1


# ---------------------------------------------------------------- rows that are left out


@pytest.mark.parametrize("loss", ["hinge", *TUBE, "squared_hinge"])
@pytest.mark.parametrize("bias", BIASES)
def test_proven_rows_are_left_out_and_have_their_multiplier(monkeypatch, loss, bias):
    X, y = tall(400, 3)
    options = {"C": 0.05, "loss": loss, **BIASES[bias]}
    wide = 4.0 * X[:, 0] + np.where(np.arange(400) % 2, 0.5, -0.5) * (1.0 + X[:, 1])
    problem = Problem.regression(X, wide, epsilon=0.45, **options) if loss in TUBE else (
        Problem.from_arrays(X + 1.2 * y[:, None] * [1.0, 0.5, 0.0], y, **options)
    )  # fmt: skip
    sizes = descents_of(monkeypatch)
    found = DualCoordinateDescent(tol=1e-9, polish=False, max_iter=3000).solve(problem)
    assert found.status is Status.CONVERGED
    rows = [n for n, _ in sizes]
    assert rows[0] == 400
    if loss in ("hinge", TUBE[0]):  # most rows are at a bound, on which side is soon proven
        assert 0 < rows[1] <= 200
        assert rows == sorted(rows, reverse=True)
    exact = InteriorPoint(tol=1e-12).solve(problem)
    np.testing.assert_allclose(found.alpha, exact.alpha, atol=1e-4 * np.abs(exact.alpha).max())
    lower, upper = problem.box.lower, problem.box.upper
    if loss in ("hinge", TUBE[0]):
        at_bound = (found.alpha == lower) | (found.alpha == upper) | (found.alpha == 0.0)
        assert at_bound.sum() >= 400 - rows[-1]
    nothing_is_proven(monkeypatch)
    sizes.clear()
    whole = DualCoordinateDescent(tol=1e-9, polish=False, max_iter=3000).solve(problem)
    assert {n for n, _ in sizes} == {400}
    assert whole.primal == pytest.approx(found.primal, rel=2e-9)


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
@pytest.mark.parametrize(
    ("share", "gap", "screened"), [(0.5, 1e-3, 1), (0.49, 1e-3, 0), (1.0, 1e-3, 0), (0.9, 0.02, 0)]
)
def test_rows_are_left_out_once_they_are_many_and_some_stay(monkeypatch, loss, share, gap, screened):
    problem = with_corners(loss, n=200, weight=False)
    sizes = descents_of(monkeypatch)
    run, known = one_run(problem), np.arange(200) < share * 200
    best = recover(problem, Newton(tol=1e-9).solve(problem).alpha, HOW)
    screen(monkeypatch, run, SimpleNamespace(**{**best.__dict__, "gap": gap}), known)
    assert len(sizes) == 1 + screened
    assert sizes[-1][0] == (100 if screened else 200)
    if screened:  # each of them at the end of its range on its side of the margin, all others where they were
        f = dense(problem) @ best.w + best.b
        outside = np.where(np.abs(problem.y - f) > 0.3, np.sign(problem.y - f), 0.0) if loss != "hinge" else (
            problem.y * f < 1.0
        )  # fmt: skip
        np.testing.assert_array_equal(multipliers(run), np.where(known, outside * problem.cost, 0.0))
        assert set(np.sign(multipliers(run))) == ({0.0, 1.0} if loss == "hinge" else {-1.0, 0.0, 1.0})


def test_as_rows_agree_more_agreement_is_asked_for():
    run = one_run(with_corners(n=200, C=0.1), tol=1e-9, polish=False)
    assert run.solve().status is Status.CONVERGED
    assert run.settled < 1e-3


def test_a_loss_without_a_box_leaves_no_row_out(monkeypatch):
    sizes = descents_of(monkeypatch)
    found = DualCoordinateDescent(tol=1e-9, polish=False).solve(with_corners("logistic", C=0.1))
    assert (found.status, sizes) == (Status.CONVERGED, [(60, 1)])


def test_the_curvature_of_an_entropy_is_at_least_what_descent_assumes():
    problem = with_corners("logistic", C=2.0)
    box, p = entropy_box(problem), np.linspace(0.01, 0.99, 99)
    live = problem.cost > 0.0
    np.testing.assert_array_equal(box.lower, 0.0)
    np.testing.assert_array_equal(box.upper, problem.cost)
    for c, least in zip(problem.cost[live], box.diagonal[live], strict=True):
        a, h = c * p, 1e-4 * c

        def entropy(a, c=c):
            return a * np.log(a / c) + (c - a) * np.log(1.0 - a / c)

        bend = (entropy(a + h) - 2.0 * entropy(a) + entropy(a - h)) / h**2
        assert bend.min() == pytest.approx(least, rel=1e-4)


# ---------------------------------------------------------------- beginnings and ends


@pytest.mark.parametrize("loss", LOSSES)
def test_a_start_saves_epochs_and_its_multipliers_are_clipped(loss):
    problem, near = with_corners(loss, n=200, C=0.1), with_corners(loss, n=200, C=0.102)
    options = {"polish": False, "tol": 1e-6}
    cold = DualCoordinateDescent(**options).solve(problem)
    start = DualCoordinateDescent(**options, max_iter=5000).solve(near)
    warm = DualCoordinateDescent(**options).solve(problem, start=start)
    assert warm.n_iter < cold.n_iter
    assert gaps_of(warm)[0] < gaps_of(cold)[0]
    wild = DualCoordinateDescent(**options).solve(problem, start=1e9 * np.ones(200))
    for found in (warm, wild):
        assert found.status is Status.CONVERGED
        assert found.primal == pytest.approx(cold.primal, rel=3e-6)


def test_a_start_brings_its_bias_where_the_bias_is_free():
    centre = {}
    for bias in BIASES:
        problem = with_corners(n=100, bias=bias)
        start = Newton(tol=1e-9).solve(problem)
        run = dual_cd._Descent(DualCoordinateDescent(), problem, Watch(), start)
        centre[bias] = (run.descent.bias_center, start.b)
    assert centre["free"][0] == centre["free"][1] != 0.0
    assert centre["none"][0] == centre["penalised"][0] == 0.0


def test_few_rows_with_many_columns_are_seen_in_their_span(monkeypatch):
    shapes = calls(
        monkeypatch, dual_cd._Descent, "__init__", lambda out, run, solver, problem, *_: problem.space.X.shape
    )
    for n in (500, 501):
        X = np.random.default_rng(0).standard_normal((n, 520))
        found = DualCoordinateDescent(max_iter=2, polish=False).solve(
            Problem.from_arrays(X, np.arange(n) % 2, loss="hinge")
        )
        assert found.w.shape == (520,)
    assert shapes == [(500, 500), (501, 520)]


def test_limits_and_stops_end_with_a_certified_point(monkeypatch):
    problem = with_corners(n=300, C=100.0)
    optimum = Newton(tol=1e-9).solve(problem).primal
    for options, watch, status in [
        ({"max_iter": 3, "polish": False}, None, Status.ITERATION_LIMIT),
        ({}, late(), Status.TIME_LIMIT),
        ({}, asks_to_stop(1), Status.INTERRUPTED),
        ({"polish": False}, asks_to_stop(2), Status.INTERRUPTED),
        ({}, cancelled(), Status.INTERRUPTED),
    ]:
        found = DualCoordinateDescent(**options).solve(problem, watch=watch)
        assert found.status is status
        assert found.n_iter == 3 or status is not Status.ITERATION_LIMIT
        assert 1e-6 < found.gap <= 1.0
        assert found.dual <= optimum * (1.0 + 1e-9) <= found.primal * (1.0 + 2e-9)
    stops(monkeypatch, DEADLINE, "normal_matrix", 1)
    found = DualCoordinateDescent().solve(problem)
    assert found.status is Status.TIME_LIMIT
    assert found.n_iter > epochs_of(found)[-1]  # what the polish had done by then is kept and counted


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), "INTERRUPTED"), (DEADLINE, "TIME_LIMIT")])
def test_a_stop_between_two_looks_keeps_the_epochs_since_the_last_one(monkeypatch, error, status):
    problem = with_corners(n=300, C=0.01)
    epoch_fails(monkeypatch, error, 15)
    found = DualCoordinateDescent(tol=1e-12, polish=False).solve(problem)
    assert (found.status, found.n_iter, epochs_of(found)) == (Status[status], 14, [10])
    assert found.gap < 0.5 * gaps_of(found)[0]


def test_a_deadline_between_two_epochs_is_seen_at_the_next_look():
    watch = Passing(progress=lambda *_: setattr(watch, "passed", True))
    found = DualCoordinateDescent(tol=1e-12, polish=False).solve(with_corners(n=300, C=0.01), watch=watch)
    assert (found.status, found.n_iter) == (Status.TIME_LIMIT, 10)

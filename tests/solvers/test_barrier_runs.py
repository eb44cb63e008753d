"""The interior point method: every way to begin and to end."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Status
from maxmargin.runtime import Watch
from maxmargin.solvers import InteriorPoint, Newton, interior_point
from maxmargin.solvers.points import recover
from maxmargin.space.systems import Breakdown
from tests.solvers.inside import (
    DEADLINE,
    HOW,
    MARGIN,
    TUBE,
    asks_to_stop,
    calls,
    cancelled,
    late,
    stops,
    with_corners,
)


def advances(monkeypatch, steps=None):
    """Every step length; from a list instead of a real step if there is one."""
    if steps is None:
        return calls(monkeypatch, interior_point._InteriorPoint, "_advance")
    steps = iter(steps)
    return monkeypatch.setattr(interior_point._InteriorPoint, "_advance", lambda *_: next(steps))


def systems_break(monkeypatch, broken):
    """The k-th linear system breaks down where ``broken`` says so; a list that grows with every system."""
    made, seen = interior_point.NormalSystem, []

    def system(*given, **options):
        seen.append(1)
        if broken(len(seen)):
            raise Breakdown("as the test wants")
        return made(*given, **options)

    monkeypatch.setattr(interior_point, "NormalSystem", system)
    return seen


def polishes(monkeypatch):
    """Most steps of every polish."""
    return calls(monkeypatch, interior_point, "MethodOfMultipliers", lambda out, *_, max_steps, **__: max_steps)


def looks(monkeypatch):
    return calls(monkeypatch, interior_point._InteriorPoint, "_certify", lambda out, *_: "look")


def warm_starts(monkeypatch):
    return calls(monkeypatch, interior_point._Iterate, "centre_at", lambda *_: "warm")


def few_products(monkeypatch, gap):
    """As if the products promised this gap at every step."""
    monkeypatch.setattr(
        interior_point._Iterate, "complementarity", lambda it: it.make_scratch() or gap * it.primal_estimate()
    )


def shapes_seen(monkeypatch):
    """Of the rows of every run."""
    made = calls(monkeypatch, interior_point._InteriorPoint, "__init__", lambda out, run, given, problem, *_: problem)
    return lambda: [problem.space.shape for problem in made]


def beginning(monkeypatch, begin):
    monkeypatch.setattr(interior_point._Constraints, "of", begin)


def polishes_that_never_suffice(monkeypatch):
    """(whether it did, most steps) of every polish, however good it was."""
    monkeypatch.setattr(interior_point, "POLISHED", -1.0)
    return calls(monkeypatch, interior_point._InteriorPoint, "_polish", lambda out, run, most: (out, most))


def polish_is(monkeypatch, method):
    monkeypatch.setattr(interior_point, "MethodOfMultipliers", method)


def test_a_start_within_tol_needs_no_iteration_and_is_polished_a_little(monkeypatch):
    problem = with_corners(n=100)
    start = InteriorPoint(tol=1e-4, polish=False).solve(problem)
    steps = polishes(monkeypatch)
    found = InteriorPoint(tol=1e-3, polish=False).solve(problem, start=start)
    assert (found.n_iter, steps) == (0, [])
    assert found.gap == pytest.approx(start.gap)
    better = InteriorPoint(tol=1e-3).solve(problem, start=start)
    assert steps == [30]
    assert better.gap < 1e-9
    wide = with_corners(n=20, d=30)
    for start in (InteriorPoint(tol=1e-4, polish=False).solve(wide), None):
        steps.clear()
        InteriorPoint(tol=1e-3).solve(wide, start=start)
        assert steps == [10]  # steps in the size of few rows cost more than iterations, so they are not tried early


@pytest.mark.parametrize("loss", MARGIN + TUBE)
def test_a_start_nearby_saves_iterations(monkeypatch, loss):
    warm = warm_starts(monkeypatch)
    problem, near = with_corners(loss, n=300), with_corners(loss, n=300, C=1.05)
    start = InteriorPoint().solve(near)
    assert not warm
    cold = InteriorPoint(polish=False).solve(problem)
    found = InteriorPoint(polish=False).solve(problem, start=start)
    assert warm == ["warm"]
    assert found.n_iter < cold.n_iter
    assert found.primal == pytest.approx(cold.primal, rel=2e-6)
    InteriorPoint().solve(problem, start=np.zeros(300))  # a gap of 1: nothing is near
    assert warm == ["warm"]


def test_a_start_too_near_the_boundary_is_given_up(monkeypatch):
    problem = with_corners(n=100)
    start = InteriorPoint(tol=1e-2, polish=False).solve(problem)
    cold = InteriorPoint(polish=False).solve(problem)
    with monkeypatch.context() as patch:
        warm, systems = warm_starts(patch), systems_break(patch, lambda k: k == 1)
        found = InteriorPoint(polish=False).solve(problem, start=start)
    assert (found.status, warm) == (Status.CONVERGED, ["warm"])
    assert found.n_iter == cold.n_iter == len(systems) - 1
    systems_break(monkeypatch, lambda k: True)
    never = InteriorPoint(polish=False).solve(problem, start=start)
    assert never.status is Status.NUMERICAL_LIMIT
    assert never.gap <= start.gap * (1.0 + 1e-9)  # what was known stays


@pytest.mark.parametrize("polish", [True, False])
def test_limits_and_stops_end_with_a_certified_point(monkeypatch, polish):
    problem = with_corners(n=300, C=1.0)
    optimum = Newton(tol=1e-9).solve(problem).primal
    for options, watch, status, n_iter in [
        ({"max_iter": 4}, None, Status.ITERATION_LIMIT, 4),
        ({}, late(), Status.TIME_LIMIT, 0),
        ({}, asks_to_stop(5), Status.INTERRUPTED, 4),
        ({}, cancelled(), Status.INTERRUPTED, 0),
    ]:
        found = InteriorPoint(polish=polish, **options).solve(problem, watch=watch)
        assert (found.status, found.n_iter) == (status, n_iter)
        assert 1e-6 < found.gap < (0.9 if n_iter else 1.0 + 1e-9)
        assert found.dual <= optimum * (1.0 + 1e-9) <= found.primal * (1.0 + 2e-9)
        assert found.history.records[-1].certified


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), "INTERRUPTED"), (DEADLINE, "TIME_LIMIT")])
def test_a_stop_within_a_step_leaves_the_iterate_before_it(monkeypatch, error, status):
    problem = with_corners(n=300, C=1.0)
    before = InteriorPoint(max_iter=4).solve(problem)
    stops(monkeypatch, error, "normal_matrix", 4)
    found = InteriorPoint().solve(problem)
    assert (found.status, found.n_iter) == (Status[status], 4)
    np.testing.assert_array_equal(found.w, before.w)
    assert found.gap < 0.9


@pytest.mark.parametrize("polish", [True, False])
def test_an_interrupt_before_the_first_iterate_leaves_zero(monkeypatch, polish):
    def interrupted(*_):
        raise KeyboardInterrupt

    beginning(monkeypatch, interrupted)
    found = InteriorPoint(polish=polish).solve(with_corners())
    assert (found.status, found.n_iter, found.gap) == (Status.INTERRUPTED, 0, 1.0)
    assert not found.w.any()


def test_a_matrix_that_breaks_down_ends_the_iterations_and_a_polish_may_still_finish(monkeypatch):
    problem = with_corners(n=200)
    systems = systems_break(monkeypatch, lambda k: k >= 4)
    found = InteriorPoint(polish=False).solve(problem)
    assert (found.status, found.n_iter, len(systems)) == (Status.NUMERICAL_LIMIT, 3, 4)
    assert 1e-6 < found.gap < 1.0
    systems.clear()
    steps = polishes(monkeypatch)
    finished = InteriorPoint().solve(problem)
    assert (finished.status, steps) == (Status.CONVERGED, [200])
    assert finished.n_iter > 3


def test_five_tiny_steps_in_a_row_are_the_end(monkeypatch):
    problem, count = with_corners(n=100), looks(monkeypatch)
    advances(monkeypatch, [1e-4, 1e-4, 1e-4, 1e-4, 0.5, *[1e-4] * 5])
    found = InteriorPoint(polish=False).solve(problem)
    assert (found.status, found.n_iter, len(count)) == (Status.NUMERICAL_LIMIT, 9, 1)
    advances(monkeypatch, itertools.repeat(1.1e-3))
    assert InteriorPoint(polish=False, max_iter=12).solve(problem).status is Status.ITERATION_LIMIT


def test_products_that_promise_more_than_the_certificate_holds_are_believed_seven_times(monkeypatch):
    problem, count = with_corners(n=100, C=100.0), looks(monkeypatch)
    few_products(monkeypatch, 0.0)
    advances(monkeypatch, itertools.repeat(0.5))
    found = InteriorPoint(polish=False).solve(problem)
    assert (found.status, len(count), found.n_iter) == (Status.NUMERICAL_LIMIT, 7, 6)


def test_each_time_they_promised_too_much_ten_times_less_is_asked_for(monkeypatch):
    problem, count = with_corners(n=100, C=100.0), looks(monkeypatch)
    few_products(monkeypatch, 0.4e-6)
    advances(monkeypatch, itertools.repeat(0.5))
    found = InteriorPoint(polish=False, max_iter=9).solve(problem)
    assert (found.status, len(count)) == (Status.ITERATION_LIMIT, 2)  # the first, and the last one for the answer


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("loss", "sides"), [("hinge", 1), ("squared_hinge", 1), ("epsilon_insensitive", 2)])
def test_an_iteration_is_counted_as_two_directions_both_ways_and_a_matrix(layout, loss, sides):
    problem, reads = with_corners(loss, n=100, weight=False, layout=layout), []
    for max_iter in (2, 3, 4):
        watch = Watch()
        InteriorPoint(polish=False, n_corrections=0, max_iter=max_iter, tol=1e-14).solve(problem, watch=watch)
        reads.append(watch.meter.reads)
    np.testing.assert_allclose(np.diff(reads), sides * (2 * 2 + 1) * problem.nnz)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_few_rows_with_many_columns_are_seen_in_their_span(monkeypatch, layout):
    shapes = shapes_seen(monkeypatch)
    found = InteriorPoint().solve(with_corners(n=30, d=120, layout=layout))
    assert (shapes(), found.w.shape) == ([(30, 30)], (120,))


def test_without_polish_the_certificate_is_asked_when_the_products_are_small_enough(monkeypatch):
    problem, count = with_corners(n=300), looks(monkeypatch)
    for tol in (1e-2, 1e-5, 1e-8):
        count.clear()
        found = InteriorPoint(tol=tol, polish=False).solve(problem)
        told = [record.gap for record in found.history.records if record.phase == "interior point"]
        asked = sum(gap <= 0.5 * 0.95 * tol for gap in told)
        assert 1 <= len(count) <= asked
        assert found.gap <= tol
        assert min([1.0, *told[:-1]]) > 0.05 * 0.95 * tol


def test_a_polish_is_tried_as_soon_as_the_active_set_can_be_guessed(monkeypatch):
    problem, steps = with_corners(n=300), polishes(monkeypatch)
    found = InteriorPoint(tol=1e-9).solve(problem)
    told = [record.gap for record in found.history.records if record.phase == "interior point"]
    assert steps == [40]
    assert told[-1] <= 1e-4 < min(told[:-1])
    assert found.gap <= 1e-9
    assert found.n_iter > len(told) - 1  # steps of the polish count, too
    failing = polishes_that_never_suffice(monkeypatch)
    again = InteriorPoint(tol=1e-9).solve(problem)
    assert failing[0] == (False, 40)
    assert [most for _, most in failing] == [40, 30]  # once early; then at the end
    assert again.gap <= 1e-9


def test_a_polish_that_is_stopped_keeps_what_it_found(monkeypatch):
    problem = with_corners(n=300)

    class Stopped:
        def __init__(self, run, **_):
            self.work = run

        def run(self, point):
            self.work.keep(recover(problem, Newton(tol=1e-9).solve(problem).alpha, HOW))
            self.work.n_iter += 5
            raise KeyboardInterrupt

    polish_is(monkeypatch, Stopped)
    found = InteriorPoint(tol=1e-12).solve(problem)
    told = [record for record in found.history.records if record.phase == "interior point"]
    assert found.gap < 1e-7
    assert (found.status, found.n_iter) == (Status.INTERRUPTED, len(told) - 1 + 5)

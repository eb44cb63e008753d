"""The span of the rows: ways in and out where coordinates are singular, rough or interrupted, and what is polished."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem, Status
from maxmargin.runtime import Execution, Watch
from maxmargin.solvers import InteriorPoint, Newton, span
from maxmargin.solvers.points import recover
from maxmargin.solvers.span import Span, is_wide, solve_in_span, solve_where_small
from tests.oracles import clarabel_optimum
from tests.solvers.inside import DEADLINE, HOW, Passing


def wide(n=25, d=150, scale=1.0, **options):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) * scale
    y = np.where(X[:, 0] / np.abs(X[:, 0]).max() + 0.1 * rng.standard_normal(n) > 0, 1, -1)
    return Problem.from_arrays(X, y, **{"C": 0.02, "loss": "hinge", **options})


def zeros(n=6):
    return Problem.from_arrays(np.zeros((n, 150)), np.arange(n) % 2, loss="hinge")


def polishes(monkeypatch, worth=True):
    """Options of every polish on X itself; ``worth`` says whether it may work at all."""
    made, seen = span.MethodOfMultipliers, []

    def watched(run, **options):
        seen.append(options)
        return made(run, **(options if worth else {**options, "max_steps": 0}))

    monkeypatch.setattr(span, "MethodOfMultipliers", watched)
    return seen


def polish_is(monkeypatch, method):
    monkeypatch.setattr(span, "MethodOfMultipliers", method)


def rough(inside, start):
    answer = Newton(tol=1e-2, exact=False).solve(inside, start=start)
    return replace(answer, alpha=0.98 * answer.alpha, w=1.02 * answer.w)


@pytest.mark.parametrize(
    ("shape", "most", "sparse", "layout", "wanted"),
    [
        ((20, 101), 20, False, np.asarray, True),
        ((20, 100), 20, False, np.asarray, False),  # nothing is gained with so few columns
        ((20, 101), 19, False, np.asarray, False),  # too many rows for their Gram matrix
        ((120, 120), 500, False, np.asarray, False),
        ((120, 121), 500, False, np.asarray, True),
        ((20, 101), 20, False, sp.csr_array, False),  # cheap as they are
        ((20, 101), 20, True, sp.csr_array, True),
    ],
)
def test_few_rows_with_many_columns_are_wide(shape, most, sparse, layout, wanted):
    problem = Problem.from_arrays(layout(np.ones(shape)), np.arange(shape[0]) % 2)
    assert is_wide(problem, most, sparse) is wanted
    seen = []

    def run(problem, start):
        seen.append(problem.n_cols)
        return InteriorPoint().solve(problem)

    found = solve_where_small(InteriorPoint(), run, problem, None, Watch(), most_rows=most, sparse=sparse)
    assert found.w.shape == (shape[1],)
    assert (seen[0] < shape[1]) is wanted


def test_inside_the_problem_is_the_same_one():
    problem = wide(C=0.3, penalize_intercept=True, intercept_scaling=2.0)
    inside = Span(problem, HOW).inside
    assert inside.auxiliary
    assert inside.null_primal == problem.null_primal
    assert (inside.bias, inside.loss) == (problem.bias, problem.loss)
    alpha = np.random.default_rng(1).uniform(0.0, 0.3, 25)
    one, two = recover(problem, alpha, HOW), recover(inside, alpha, HOW)
    assert (one.primal, one.dual) == pytest.approx((two.primal, two.dual), rel=1e-12)


def test_only_a_solution_with_as_many_columns_brings_its_weights():
    problem = wide()
    inside, solved = Span(problem, HOW), Newton().solve(problem)
    assert inside.enter(None) is None
    assert inside.enter(solved.alpha) is solved.alpha
    assert inside.enter(replace(solved, w=np.ones(7))) is solved.alpha
    assert inside.enter(replace(solved, w=np.full(150, np.inf))) is solved.alpha
    entered = inside.enter(replace(solved, w=solved.w + orthogonal_to(problem)))
    np.testing.assert_allclose(inside.inside.space.X @ entered.w, problem.space.X @ solved.w, atol=1e-10)
    assert Span(zeros(), HOW).enter(Newton().solve(zeros())) is not None  # coordinates of nothing: no division


def orthogonal_to(problem):
    """What no row sees."""
    v = np.random.default_rng(2).standard_normal(problem.n_cols)
    return v - problem.space.X.T @ np.linalg.lstsq(problem.space.X.T, v)[0]


def test_rows_without_numbers_have_no_way_in_and_out_but_their_multipliers():
    problem = zeros()
    inside, solved = Span(problem, HOW), Newton().solve(problem)
    assert inside.inside.space.X.shape == (6, 1)
    assert inside.enter(solved) is solved.alpha
    left = inside.leave(replace(solved, w=np.ones(1), gap=-1.0))
    assert not left.w.any()
    assert (left.primal, left.dual) == (6.0, 6.0)


def test_an_answer_leaves_with_its_own_weights_where_its_multipliers_are_worse():
    problem = wide()
    inside = Span(problem, HOW)
    answer = Newton(tol=1e-10).solve(inside.inside)
    both = inside.leave(answer)
    assert both.gap <= 1e-9
    worse = replace(answer, alpha=0.5 * answer.alpha, gap=0.01)
    left = inside.leave(worse)
    assert left.primal == pytest.approx(answer.primal, rel=1e-9)
    np.testing.assert_allclose(problem.space.X @ left.w, inside.inside.space.X @ answer.w, atol=1e-9)
    np.testing.assert_allclose(left.w @ orthogonal_to(problem), 0.0, atol=1e-9)
    assert left.gap < recover(problem, worse.alpha, HOW).gap
    kept = inside.leave(replace(worse, gap=1.0))  # no more was claimed: the multipliers' own weights will do
    np.testing.assert_allclose(kept.w, recover(problem, worse.alpha, HOW).w)
    lost = inside.leave(replace(worse, w=np.full(25, np.nan)))
    np.testing.assert_allclose(lost.w, kept.w)


def test_no_deadline_and_no_listener_closes_the_way_out():
    problem, watch = wide(), Watch()
    inside = Span(problem, Execution(1, watch.core))
    answer = Newton(tol=1e-9).solve(inside.inside)
    solved = Newton(tol=1e-9).solve(problem)
    watch.cancel()
    try:
        assert inside.leave(answer).gap <= 1e-8
        assert inside.enter(solved).w.shape == (25,)
    except KeyboardInterrupt:
        pytest.fail("interrupted")


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), "INTERRUPTED"), (DEADLINE, "TIME_LIMIT")])
def test_a_stop_leaves_what_is_known_by_then(error, status):
    problem = wide()
    answer = Newton(tol=1e-9).solve(problem)

    def fails(*_):
        raise error

    nothing = solve_in_span(Newton(), fails, problem, None, Watch())
    assert (nothing.status, nothing.gap, nothing.w.any()) == (Status[status], 1.0, False)
    near = solve_in_span(Newton(), fails, problem, 0.999 * answer.alpha, Watch())
    assert near.status is Status[status]
    assert near.gap < 0.01
    # With weights of other columns only the multipliers count, and they are looked at inside.
    other = solve_in_span(Newton(), fails, problem, replace(answer, w=np.ones(3)), Watch())
    assert (other.status, other.gap) == (Status[status], 1.0)


@pytest.mark.parametrize("share", [0.97, 0.93])
def test_a_start_well_within_tol_is_the_answer(share):
    problem, runs = wide(), []
    answer = Newton(tol=1e-9).solve(problem)
    start = replace(answer, alpha=0.99 * answer.alpha)
    gap = recover(problem, start.alpha, HOW, start.w, start.b).gap

    def run(inside, start):
        runs.append(1)
        return InteriorPoint(tol=1e-9).solve(inside, start=start)

    found = solve_in_span(Newton(tol=gap / share), run, problem, start, Watch())
    assert found.status is Status.CONVERGED
    if share > 0.95:  # where it is close, rounding might decide whether a claim of it holds
        assert runs == [1]
        return
    assert (found.n_iter, runs) == (0, [])
    np.testing.assert_array_equal(found.w, answer.w)


@pytest.mark.parametrize(
    ("solver", "steps"),
    [
        (Newton(tol=1e-8), 200),
        (Newton(tol=1e-4, max_iter=30), 200),
        (Newton(tol=1e-5, max_iter=10**6), 200),
        (InteriorPoint(tol=1e-8, max_iter=1000), 200),
        (InteriorPoint(tol=1e-8, polish=False), 0),
    ],
)
def test_what_is_rough_inside_is_polished_outside(monkeypatch, solver, steps):
    problem, seen = wide(), polishes(monkeypatch)
    found = solve_in_span(solver, rough, problem, None, Watch())
    alone = rough(Span(problem, HOW).inside, None).n_iter
    if steps == 0:
        assert (found.status, found.n_iter, seen) == (Status.NUMERICAL_LIMIT, alone, [])
        return
    assert seen == [{"max_steps": steps, "enough": 0.95 * solver.tol, "exact": solver.tol <= 1e-5}]
    assert found.n_iter > alone
    assert found.gap < 0.1
    assert found.gap <= solver.tol
    assert found.primal == pytest.approx(clarabel_optimum(problem.space.X, problem.y, problem.cost, 1), rel=1.1e-4)


@pytest.mark.parametrize("status", [Status.NUMERICAL_LIMIT, Status.TIME_LIMIT, Status.INTERRUPTED])
def test_a_polish_that_does_not_reach_tol_says_why(monkeypatch, status):
    problem, seen, watch = wide(), polishes(monkeypatch, worth=False), Passing()

    def run(inside, start):
        answer = rough(inside, start)
        watch.passed, watch.stop_requested = status is Status.TIME_LIMIT, status is Status.INTERRUPTED
        return answer

    found = solve_in_span(Newton(tol=1e-9), run, problem, None, watch)
    assert (found.status, len(seen)) == (status, 1)


@pytest.mark.parametrize("status", [Status.TIME_LIMIT, Status.INTERRUPTED, Status.ITERATION_LIMIT])
def test_who_was_stopped_inside_is_not_polished(monkeypatch, status):
    problem, seen = wide(), polishes(monkeypatch)
    found = solve_in_span(
        Newton(tol=1e-9), lambda inside, start: replace(rough(inside, start), status=status), problem, None, Watch()
    )
    assert (found.status, seen) == (status, [])


def test_an_interrupted_polish_keeps_its_steps_and_its_best_point(monkeypatch):
    problem = wide()
    best = recover(problem, Newton(tol=1e-9).solve(problem).alpha, HOW)

    class Stopped:
        def __init__(self, run, **_):
            self.work = run

        def run(self, point):
            self.work.keep(best)
            self.work.n_iter += 4
            raise KeyboardInterrupt

    polish_is(monkeypatch, Stopped)
    found = solve_in_span(Newton(tol=1e-9), rough, problem, None, Watch())
    alone = rough(Span(problem, HOW).inside, None).n_iter
    assert (found.status, found.n_iter) == (Status.INTERRUPTED, alone + 4)
    assert found.gap < 1e-8

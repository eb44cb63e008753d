"""Every rule of the automatic choice, on both sides of its border, and what takes over where a solver fails."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem, Status
from maxmargin.runtime import Watch
from maxmargin.solvers import DualCoordinateDescent, InteriorPoint, Newton, choice
from maxmargin.solvers.choice import (
    Relay,
    automatic,
    choose,
    column_spread,
    has_interior_point,
    interior_point_cost,
    make_solver,
    supported,
)
from maxmargin.solvers.hard_margin import HardMargin
from maxmargin.solvers.proximal import ProximalNewton
from tests.conftest import tall


def border(monkeypatch, name, value):
    """Move a border between rules, so that a small problem lies beyond it."""
    monkeypatch.setattr(choice, name, value)


def problem(n=60, d=4, *, layout=np.asarray, scale=1.0, weight=None, **options):
    X, y = tall(n, d)
    return Problem.from_arrays(layout(scale * X), y, sample_weight=weight, **{"loss": "hinge", **options})


def regression(n=60, d=4, loss="epsilon_insensitive"):
    X, y = tall(n, d)
    return Problem.regression(X, y.astype(float), loss=loss, epsilon=0.1)


ALL = ["interior_point", "dual_cd", "newton"]


@pytest.mark.parametrize(
    ("options", "able"),
    [
        ({"loss": "hinge"}, ALL),
        ({"loss": "squared_hinge"}, ALL),
        ({"loss": "logistic"}, ["dual_cd", "newton"]),
        ({"loss": 1.5}, ["newton"]),
        ({"loss": "squared_hinge", "penalty": "l1"}, ["proximal_newton"]),
        ({"loss": "logistic", "penalty": "l1"}, ["proximal_newton"]),
    ],
)
def test_every_solver_that_is_named_solves_the_problem_and_no_other_is_accepted(options, able):
    given = problem(**options)
    assert supported(given) == able
    values = {name: make_solver(given, name, tol=1e-8, max_iter=500, n_threads=1).solve(given) for name in able}
    assert {found.status for found in values.values()} == {Status.CONVERGED}
    assert np.ptp([found.primal for found in values.values()]) <= 2e-8 * values[able[0]].primal
    for name in choice.SOLVERS.keys() - set(able):
        with pytest.raises(ValueError, match=f"solver='{name}' cannot solve loss .* use 'auto' or one of"):
            make_solver(given, name, tol=1e-8, max_iter=500, n_threads=1)
    assert supported(regression()) == supported(regression(loss="squared_epsilon_insensitive")) == ALL


def test_the_interior_point_method_needs_a_box_and_a_matrix_that_can_be_held(monkeypatch):
    assert has_interior_point(problem())
    assert not has_interior_point(problem(loss="logistic"))
    assert not has_interior_point(problem(loss="squared_hinge", penalty="l1"))
    for largest, tall_one, wide_one in ((5, True, False), (4, False, False), (7, True, True)):
        border(monkeypatch, "LARGEST_NORMAL_MATRIX", largest)
        assert has_interior_point(problem(60, 4)) is tall_one
        assert has_interior_point(problem(6, 90)) is wide_one
        assert np.isfinite(interior_point_cost(problem(60, 4))) == tall_one
    assert interior_point_cost(problem(loss=1.5)) == np.inf


def balanced(n, d, **options):
    """As many rows of each class, so that nothing is added for unequal ones."""
    y = np.arange(n) % 2
    return Problem.from_arrays(np.random.default_rng(0).standard_normal((n, d)), y, loss="hinge", **options)


@pytest.mark.parametrize(("n", "d"), [(400, 30), (30, 400), (5000, 3)])
def test_the_estimate_counts_a_matrix_a_factorisation_and_six_passes(n, d):
    size = min(n, d) + 1
    matrix = (n * n if d > n else n * size) * size / 3e10
    passes = 6.0 * min(n * d, n * size) * 0.7e-9 + n * 5e-8
    wanted = 20.0 * (matrix + size**3 / 6e10 + passes)
    assert interior_point_cost(balanced(n, d)) == pytest.approx(wanted, rel=1e-9)


def test_the_estimate_of_sparse_rows_counts_pairs_of_numbers_in_a_row():
    lengths = np.array([1, 2, 30, 4, 0, 9] * 20)
    X = sp.csr_array((np.ones(lengths.sum()), np.concatenate([np.arange(k) for k in lengths]),
                      np.append(0, np.cumsum(lengths))), (120, 40))  # fmt: skip
    given = Problem.from_arrays(X, np.arange(120) % 2, loss="hinge")
    passes = 6.0 * lengths.sum() * 0.7e-9 + 120 * 5e-8
    wanted = 20.0 * (float((lengths**2).sum()) * 0.6e-9 + 41**3 / 6e10 + passes)
    assert interior_point_cost(given) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(("times", "factor"), [(1.0, 1.0), (100.0, 4.0), (0.01, 4.0), (1e3, 5.5), (1e6, 5.5)])
def test_unequal_classes_cost_more_iterations(times, factor):
    weight = np.where(np.arange(200) % 2 == 0, times, 1.0)
    other = interior_point_cost(balanced(200, 5, sample_weight=weight))
    assert other == pytest.approx(factor * interior_point_cost(balanced(200, 5)), rel=1e-9)


def test_a_regression_has_no_classes_to_be_unequal():
    X = np.random.default_rng(0).standard_normal((200, 5))
    for sign in (1.0, np.append(-1.0, np.ones(199))):
        given = Problem.regression(X, sign * np.ones(200), epsilon=0.1)
        assert interior_point_cost(given) == pytest.approx(interior_point_cost(balanced(200, 5)), rel=1e-9)


def test_the_spread_is_that_of_the_columns_root_mean_squares():
    X = np.ones((6, 3)) * [3.0, 0.0, 0.02]
    X[::2, 0] = 0.0
    assert column_spread(X) == pytest.approx(3.0 / np.sqrt(2.0) / 0.02)
    assert column_spread(np.zeros((4, 2))) == 1.0
    assert column_spread(np.float32([[1e30, 1.0]])) == pytest.approx(1e30, rel=1e-6)  # squares beyond float32
    many = np.ones((4001, 2))
    many[1::2, 0] = 1e9  # every other row is looked at
    assert column_spread(many) == 1.0


SPARSE, WIDE = {"layout": sp.csr_array}, {"n": 20, "d": 40}
SCALES = {"scale": np.array([1.0, 1e-4, 1.0, 1.0])}
MANY = {"n": 8000, "d": 4}


@pytest.mark.parametrize(
    ("given", "borders", "name", "words"),
    [
        ({"loss": 1.5}, {}, "newton", "the solver for penalty 'l2' and loss"),
        ({"loss": "logistic", "penalty": "l1", **SCALES}, {}, "proximal_newton", "the solver for penalty 'l1'"),
        (SCALES, {}, "interior_point", "scales differ by a factor of 1e+04"),
        ({"loss": "squared_hinge", **SCALES}, {}, "interior_point", "scales differ"),
        ({"scale": np.array([1.0, 1e-2, 1.0, 1.0])}, {"LARGEST_SPREAD": 10.0}, "interior_point", "scales differ"),
        ({"loss": "squared_hinge", "scale": np.array([1.0, 1e-2, 1.0, 1.0])}, {}, "newton", "smooth"),
        ({"loss": "squared_hinge", **SCALES}, {"LARGEST_NORMAL_MATRIX": 4}, "newton", "smooth"),
        ({"loss": "squared_hinge", **SCALES, **SPARSE}, {}, "newton", "smooth"),
        ({"loss": "logistic", **SCALES}, {}, "newton", "smooth"),
        ({**WIDE, **SPARSE}, {}, "dual_cd", "nearly orthogonal"),
        ({**WIDE, **SPARSE, "loss": "logistic"}, {}, "dual_cd", "nearly orthogonal"),
        (SPARSE, {"HIGH_DIMENSION": 3}, "dual_cd", "nearly orthogonal"),
        (SPARSE, {"HIGH_DIMENSION": 4}, "interior_point", "so small"),
        ({**WIDE, "loss": "squared_hinge"}, {}, "newton", "smooth"),
        (WIDE, {}, "interior_point", "fewer rows than columns"),
        ({"n": 40, "d": 40}, {}, "interior_point", "so small"),
        (WIDE, {"LARGEST_NORMAL_MATRIX": 10}, "dual_cd", "interior_point would take inf"),
        (MANY, {"MANY_NUMBERS": 31_999}, "newton", "a sample of them"),
        (MANY, {"MANY_NUMBERS": 32_000}, "dual_cd", "then Newton's method"),
        ({**MANY, "n": 7999}, {"MANY_NUMBERS": 10}, "dual_cd", "then Newton's method"),
        ({"n": 2000}, {}, "interior_point", "so small that it takes about 0.00"),
    ],
)
def test_each_rule_chooses_and_says_why(monkeypatch, given, borders, name, words):
    for key, value in borders.items():
        border(monkeypatch, key, value)
    made = problem(**given)
    chosen, reason = choose(made)
    assert chosen == name
    assert words in reason
    assert reason.startswith(f"chosen for {made.n_rows} rows and {made.n_cols} columns")
    assert make_solver(made, "auto", tol=1e-6, max_iter=9, n_threads=1).name == name


@dataclass
class Says:
    """A solver that answers what it is told and remembers how it was asked."""

    name: str
    gap: float
    status: Status
    n_iter: int = 3

    def solve(self, problem, *, start=None, watch=None):
        self.asked = (problem, start, watch)
        answer = InteriorPoint(reason=f"{self.name} said so").solve(problem)
        answer.history.records[:] = [replace(answer.history.records[0], phase=self.name)]
        return replace(answer, gap=self.gap, status=self.status, n_iter=self.n_iter, solver=self.name)


LIMITS = [Status.NUMERICAL_LIMIT, Status.ITERATION_LIMIT]
STOPS = [Status.INTERRUPTED, Status.TIME_LIMIT]


@pytest.mark.parametrize("status", [Status.CONVERGED, Status.INFEASIBLE, *STOPS])
def test_nobody_takes_over_from_a_solver_that_has_finished_or_was_stopped(status):
    one, two = Says("one", 0.5, status), Says("two", 0.0, Status.CONVERGED)
    given, watch, start = problem(), Watch(), np.zeros(60)
    found = Relay(one, two).solve(given, start=start, watch=watch)
    assert (found.solver, found.gap, found.status, found.reason) == ("one", 0.5, status, "one said so")
    assert one.asked[0] is given
    assert one.asked[1] is start
    assert one.asked[2] is watch
    assert not hasattr(two, "asked")


@pytest.mark.parametrize("first", LIMITS)
@pytest.mark.parametrize(
    ("gap", "second", "best", "status"),
    [
        (1e-9, Status.CONVERGED, 1e-9, Status.CONVERGED),
        (0.2, Status.ITERATION_LIMIT, 0.2, Status.ITERATION_LIMIT),
        (0.5, Status.CONVERGED, 0.5, Status.CONVERGED),  # the second's where both are equal
        (0.2, Status.TIME_LIMIT, 0.2, Status.TIME_LIMIT),
        (0.9, Status.TIME_LIMIT, 0.5, Status.TIME_LIMIT),  # the first's point, but what stopped the fit
        (0.9, Status.INTERRUPTED, 0.5, Status.INTERRUPTED),
        (0.9, Status.NUMERICAL_LIMIT, 0.5, None),
    ],
)
def test_the_second_takes_over_from_one_that_met_a_limit_and_the_better_point_is_kept(first, gap, second, best, status):
    one, two, watch = Says("one", 0.5, first), Says("two", gap, second, 40), Watch()
    relay = Relay(one, two)
    found = relay.solve(problem(), start=np.zeros(60), watch=watch)
    assert (found.gap, found.status) == (best, status or first)
    assert two.asked[1] is None
    assert two.asked[2] is watch
    assert (found.solver, relay.name, found.n_iter) == ("one", "one", 43)
    assert found.reason == "one said so; after a gap of 5e-01 two took over"
    assert [record.phase for record in found.history.records] == ["one", "two"]
    assert found.seconds <= watch.seconds


@pytest.mark.parametrize("able", [True, False])
@pytest.mark.parametrize(
    ("given", "first", "second"),
    [
        ({"loss": "squared_hinge", "penalty": "l1"}, ProximalNewton, None),
        ({}, InteriorPoint, Newton),
        ({"loss": "squared_hinge"}, Newton, InteriorPoint),
        (WIDE | SPARSE, DualCoordinateDescent, InteriorPoint),
    ],
)
def test_the_automatic_choice_has_another_solver_behind_it_where_one_is_able(monkeypatch, given, first, second, able):
    if not able:
        border(monkeypatch, "LARGEST_NORMAL_MATRIX", 2)
        first, second = DualCoordinateDescent if first is InteriorPoint else first, None
    solver = automatic(problem(**given), tol=1e-5, max_iter=17, n_threads=2, seed=5)
    parts = [solver.first, solver.second] if isinstance(solver, Relay) else [solver]
    assert [type(part) for part in parts] == [first] if second is None else [first, second]
    assert {(part.tol, part.max_iter, part.n_threads) for part in parts} == {(1e-5, 17, 2)}
    assert parts[0].reason.startswith("chosen for")
    if first is DualCoordinateDescent:
        assert (
            (solver.first.seed, solver.first.patient) == (5, False)
            if able
            else (solver.seed, solver.patient) == (5, True)
        )


def test_a_solver_that_was_asked_for_has_its_options_and_a_hard_margin_wraps_it():
    options = {"tol": 1e-4, "max_iter": 7, "n_threads": 2}
    descent = make_solver(problem(), "dual_cd", seed=3, **options)
    assert descent == DualCoordinateDescent(seed=3, **options)
    assert make_solver(problem(**WIDE, **SPARSE), "auto", seed=3, **options).first.seed == 3
    assert make_solver(problem(), "newton", seed=3, **options) == Newton(**options)
    X, y = tall(50, 3)
    hard = Problem.from_arrays(X + 5.0 * y[:, None], y, C=np.inf, loss="hinge")
    outer = make_solver(hard, "dual_cd", seed=3, **options)
    assert (type(outer), outer.tol) == (HardMargin, 1e-4)
    assert outer.make(problem()) == DualCoordinateDescent(tol=1e-9, max_iter=7, n_threads=2, seed=3)
    assert make_solver(hard, "auto", **options).make(problem()).name == "interior_point"

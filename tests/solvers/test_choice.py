"""Every rule of the automatic choice, on both sides of its border, and the costs that it compares."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem, Status
from maxmargin.solvers import DualCoordinateDescent, Newton, choice
from maxmargin.solvers.choice import (
    RULES,
    choose,
    descent_cost,
    has_interior_point,
    interior_point_cost,
    make_solver,
    newton_cost,
    supported,
)
from maxmargin.solvers.hard_margin import HardMargin
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


def balanced(n, d, **options):
    """As many rows of each class, so that nothing is added for unequal ones."""
    y = np.arange(n) % 2
    return Problem.from_arrays(np.random.default_rng(0).standard_normal((n, d)), y, loss="hinge", **options)


@pytest.mark.parametrize(("n", "d"), [(400, 30), (30, 400), (5000, 3)])
def test_the_estimate_counts_a_matrix_a_factorisation_and_passes(n, d):
    size = min(n, d) + 1
    matrix = 0.035 * (n * n if d > n else n * size) * size
    passes = 4.2 * min(n * d, n * size) + 50.0 * n
    wanted = 20.0 * (matrix + 0.012 * size**3 + passes)
    assert interior_point_cost(balanced(n, d)) == pytest.approx(wanted, rel=1e-9)


def test_the_estimate_of_sparse_rows_counts_pairs_of_numbers_in_a_row():
    lengths = np.array([1, 2, 30, 4, 0, 9] * 20)
    X = sp.csr_array((np.ones(lengths.sum()), np.concatenate([np.arange(k) for k in lengths]),
                      np.append(0, np.cumsum(lengths))), (120, 40))  # fmt: skip
    given = Problem.from_arrays(X, np.arange(120) % 2, loss="hinge")
    passes = 4.2 * lengths.sum() + 120 * 50.0
    wanted = 20.0 * (0.6 * float((lengths**2).sum()) + 0.012 * 41**3 + passes)
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


def cost_of_a_system(n, d, sparse):
    """Of dense rows, or of sparse ones that are full: products of the smaller matrix and its factor."""
    if d > n:
        return n * n * d * (0.2 if sparse else 0.025) + 0.012 * n**3
    return n * d * d * (0.6 if sparse else 0.035) + 0.012 * d**3


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("n", "d"), [(400, 30), (30, 400)])
@pytest.mark.parametrize(("loss", "steps"), [("hinge", 60.0), ("squared_hinge", 10.0)])
def test_newtons_method_costs_its_steps_and_descent_its_epochs_and_a_polish(layout, n, d, loss, steps):
    given, sparse = problem(n, d, layout=layout, loss=loss), layout is sp.csr_array
    read, epoch = (0.8, 3.0) if sparse else (0.3, 0.6)
    wanted = steps * (cost_of_a_system(n, d, sparse) + 2.0 * read * n * d)
    assert newton_cost(given) == pytest.approx(wanted, rel=1e-9)
    wanted = 30.0 * epoch * n * d + 60.0 * cost_of_a_system(min(n, d + 1), d, sparse)
    assert descent_cost(given) == pytest.approx(wanted, rel=1e-9)


def test_small_is_what_costs_less_than_the_border(monkeypatch):
    cost = interior_point_cost(problem())
    for small, name in ((cost, "dual_cd"), (cost * (1.0 + 1e-12), "interior_point")):
        border(monkeypatch, "SMALL", small)
        assert choose(problem())[0] == name


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
        (WIDE, {"LARGEST_NORMAL_MATRIX": 10}, "dual_cd", "then Newton's method"),
        (MANY, {"MANY_NUMBERS": 31_999}, "newton", "a sample of them"),
        (MANY, {"MANY_NUMBERS": 32_000}, "dual_cd", "then Newton's method"),
        ({**MANY, "n": 7999}, {"MANY_NUMBERS": 10}, "dual_cd", "then Newton's method"),
        ({"n": 2000}, {}, "interior_point", "so small that every iteration costs next to nothing"),
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
    assert name in supported(made)


def test_every_problem_finds_a_rule_and_every_rule_a_line_of_the_table():
    assert {rule.solver for rule in RULES} == set(choice.SOLVERS)
    assert RULES[-1].holds(problem())
    assert all(RULES[-1].holds(given) for given in (problem(loss="logistic"), regression(), problem(**WIDE)))


def test_the_first_rule_that_holds_has_the_first_turn():
    # So small that the interior point method would be chosen, so wide, and smooth: the scales come first.
    given = problem(20, 40, loss="squared_hinge", scale=np.append(1e-5, np.ones(39)))
    holding = [rule for rule in RULES if rule.holds(given)]
    assert [rule.solver for rule in holding] == [
        "interior_point", "newton", "interior_point", "interior_point", "dual_cd",
    ]  # fmt: skip
    assert choose(given)[1].endswith(holding[0].why(given))


def test_a_solver_that_was_asked_for_has_its_options_and_a_hard_margin_wraps_it():
    options = {"tol": 1e-4, "max_iter": 7, "n_threads": 2}
    descent = make_solver(problem(), "dual_cd", seed=3, **options)
    assert descent == DualCoordinateDescent(seed=3, **options)
    assert make_solver(problem(**WIDE, **SPARSE), "auto", seed=3, **options).turns[0].seed == 3
    assert make_solver(problem(), "newton", seed=3, **options) == Newton(**options)
    X, y = tall(50, 3)
    hard = Problem.from_arrays(X + 5.0 * y[:, None], y, C=np.inf, loss="hinge")
    outer = make_solver(hard, "dual_cd", seed=3, **options)
    assert (type(outer), outer.tol) == (HardMargin, 1e-4)
    assert outer.make(problem()) == DualCoordinateDescent(tol=1e-9, max_iter=7, n_threads=2, seed=3)
    assert make_solver(hard, "auto", **options).make(problem()).name == "interior_point"

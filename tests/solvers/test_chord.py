"""A hyperplane that moves along C agrees with fits of its own for every C, or gives up."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem, Status, _core
from maxmargin.runtime import Watch
from maxmargin.solution import relative_gap
from maxmargin.solvers import Newton, chord
from tests.conftest import tall
from tests.solvers.plain import assert_feasible, dual, induced, primal, residuals

SMOOTH = ["squared_hinge", "logistic", 3.0, 2.5]
INTERCEPTS = [True, False]


def unit_problem(loss, n=80, d=4, *, X=None, **options):
    rows, y = tall(n, d, seed=3)
    return Problem.from_arrays(rows if X is None else X(rows), y, loss=loss, **options)


def at_cost(unit, C):
    return unit.with_costs(C * unit.cost)


def cold(unit, C, tol=1e-11):
    return Newton(tol=tol).solve(at_cost(unit, C))


def standing(unit, C, watch=None, tol=1e-9):
    """A chord that stands at the solution for C."""
    walk = chord.Chord(unit, 1, watch or Watch(), "next to it")
    walk.begin(cold(unit, C, tol))
    return walk


def move(walk, C, tol=1e-8):
    return walk.solve(at_cost(walk.unit, C), C, tol)


def watched(monkeypatch, name, instead=None):
    """How often a part of the chord is used; what it does may be replaced."""
    calls, original = [], getattr(chord.Chord, name)

    def called(self, *arguments):
        calls.append(arguments)
        return (instead or original)(self, *arguments)

    monkeypatch.setattr(chord.Chord, name, called)
    return calls


def gaps_are(monkeypatch, gaps):
    """Whoever asks for a gap is told the next of these, in the end that there is none."""
    told = iter(gaps)
    monkeypatch.setattr(Problem, "relative_gap", lambda *_: next(told, 0.0))
    return told


def careful_products_are_not_needed(monkeypatch):
    monkeypatch.setattr(_core, "compensated_scores", None)


def time_is_over(monkeypatch):
    monkeypatch.setattr(Watch, "past_deadline", True)


def form_matrix(walk):
    """The second derivatives where it stands."""
    walk._form_matrix()


def step(walk, C):
    """One Newton step with the matrix that it has; whether there was one."""
    return walk._step(C)


def values(walk, C):
    """Objective and dual value for a C, without a pass."""
    return walk._values(C)


@pytest.mark.parametrize("fit_intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", SMOOTH)
def test_every_point_of_a_path_is_the_fit_of_its_own(loss, fit_intercept):
    unit = unit_problem(loss, fit_intercept=fit_intercept, sample_weight=np.r_[np.zeros(5), np.full(75, 0.5)])
    walk, taken = standing(unit, 0.1), []
    for C in (0.1, 0.12, 0.15, 0.2, 0.17):
        found, problem = move(walk, C), at_cost(unit, C)
        alone = cold(unit, C)
        assert found.status is Status.CONVERGED
        assert found.gap <= 1e-8
        assert found.primal == pytest.approx(alone.primal, rel=1e-8)
        np.testing.assert_allclose(found.w, alone.w, atol=found.distance_bound + alone.distance_bound + 1e-12)
        assert found.primal >= primal(problem, found.w, found.b) * (1.0 - 1e-14)
        assert found.dual <= dual(problem, found.alpha) * (1.0 + 1e-14)
        assert_feasible(problem, found.alpha)
        low, high = found.bias_interval
        assert low <= found.b <= high
        assert (found.b == 0.0) is not fit_intercept
        assert (found.solver, found.reason, found.penalty) == ("newton", "next to it", "l2")
        assert found.history.gaps == [found.gap]
        taken.append(found.n_iter)
    assert taken[0] == 0  # it stood there
    assert all(1 <= steps <= 6 for steps in taken[1:])


@pytest.mark.parametrize("fit_intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", SMOOTH)
def test_objectives_are_known_for_every_cost_without_a_pass(loss, fit_intercept):
    unit = unit_problem(loss, fit_intercept=fit_intercept)
    walk = standing(unit, 1.0)
    for C in (0.3, 1.0, 5.0):
        problem = at_cost(unit, C)
        # Unit multipliers are c h'(r), balanced by the best bias.
        r, h = residuals(unit, walk.w, walk.b), 1e-6
        u = unit.cost * (unit.loss.of_residual(r + h) - unit.loss.of_residual(r - h)) / (2.0 * h)
        np.testing.assert_allclose(walk.u, u, atol=1e-5)
        np.testing.assert_allclose(walk.induced, induced(unit, walk.u), atol=1e-11)
        high, low = values(walk, C)
        assert high == pytest.approx(primal(problem, walk.w, walk.b), rel=1e-12)
        assert low == pytest.approx(dual(problem, C * walk.u), rel=1e-10)


@pytest.mark.parametrize("fit_intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("C", [0.5, 2.0])
def test_a_step_solves_newtons_equations(loss, fit_intercept, C):
    unit = unit_problem(loss, fit_intercept=fit_intercept)
    walk = standing(unit, 1.0)
    w, b = walk.w.copy(), walk.b
    form_matrix(walk)
    assert step(walk, C)
    X = np.column_stack([unit.space.X, np.ones(80)])[:, : 4 + fit_intercept]
    r, h = residuals(unit, w, b), 1e-5
    D = C * unit.cost * (unit.loss.slope(r + h) - unit.loss.slope(r - h)) / (2.0 * h)
    H = X.T @ (D[:, None] * X) + np.diag(np.r_[np.ones(4), 0.0][: X.shape[1]])
    gradient = C * X.T @ (unit.cost * unit.loss.slope(r) * unit.y) - np.r_[w, 0.0][: X.shape[1]]
    v = np.linalg.solve(H, gradient)
    np.testing.assert_allclose(walk.w - w, v[:4], rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(walk.scores, unit.space.X @ walk.w, atol=1e-12)
    if fit_intercept:  # the bias then moves on to the best one
        gain = np.array([primal(at_cost(unit, C), walk.w, walk.b + t) for t in (-1e-4, 0.0, 1e-4)])
        assert gain.argmin() == 1
    else:
        assert walk.b == 0.0


@pytest.mark.parametrize(
    ("loss", "options", "wanted"),
    [
        ("squared_hinge", {}, True),
        ("hinge", {}, False),
        (1.5, {}, False),
        ("squared_hinge", {"penalty": "l1"}, False),
        ("logistic", {"penalize_intercept": True}, False),
        ("logistic", {"n": 16, "d": 4}, True),
        ("logistic", {"n": 15, "d": 4}, False),
        ("logistic", {"n": 4004, "d": 1001, "X": sp.csr_array}, False),
        ("logistic", {"n": 4004, "d": 1000, "X": sp.csr_array}, True),
    ],
)
def test_it_fits_smooth_losses_with_few_columns(loss, options, wanted):
    options = dict(options)
    if "X" in options:
        d = options.pop("d")
        options |= {"d": 1, "X": lambda rows: sp.csr_array((rows[:, 0], (np.arange(4004), np.arange(4004) % d)))}
    assert chord.Chord.fits(unit_problem(loss, **options)) is wanted


def test_the_matrix_is_kept_until_steps_gain_too_little(monkeypatch):
    formed, walk = watched(monkeypatch, "_form_matrix"), standing(unit_problem("logistic", n=300), 0.01)
    counts = []
    for C in (0.01, 0.0101, 0.0102, 0.0103, 0.3):
        assert move(walk, C) is not None
        counts.append(len(formed))
    assert counts == [0, 1, 1, 1, 3]
    # It is a matrix for every C: without the factor C, so that it serves at others, too.
    form_matrix(walk)
    X, r, h = np.column_stack([walk.unit.space.X, np.ones(300)]), residuals(walk.unit, walk.w, walk.b), 1e-5
    D = (walk.unit.loss.slope(r + h) - walk.unit.loss.slope(r - h)) / (2.0 * h)
    np.testing.assert_allclose(np.triu(walk.M), np.triu(X.T @ (D[:, None] * X)), rtol=1e-6, atol=1e-6)


def test_a_gap_that_does_not_halve_with_a_fresh_matrix_ends_it(monkeypatch):
    formed, walk = watched(monkeypatch, "_form_matrix"), standing(unit_problem("squared_hinge"), 1.0)
    gaps = gaps_are(monkeypatch, [1.0, 0.6, 0.5])
    assert move(walk, 2.0) is None
    assert len(formed) == 1
    assert next(gaps) == 0.5  # 0.6 of the gap was left by the first step


def test_a_matrix_is_formed_afresh_at_most_every_other_step(monkeypatch):
    formed, walk = watched(monkeypatch, "_form_matrix"), standing(unit_problem("squared_hinge"), 1.0)
    gaps_are(monkeypatch, [1.0, 0.4, 0.15, 0.06, 0.0059, 0.0])
    order, original = [], chord.Chord._step
    monkeypatch.setattr(chord.Chord, "_step", lambda self, C: order.append(len(formed)) or original(self, C))
    move(walk, 1.5, tol=1e-3)
    # A first matrix; 0.4 is less than half: on with it; 0.15 of 0.4 is too much: a second one; then the same.
    assert order == [1, 1, 2, 2, 2]


def test_twelve_steps_are_the_most(monkeypatch):
    walk, steps = standing(unit_problem("logistic"), 1.0), watched(monkeypatch, "_step", lambda self, C: True)
    gaps_are(monkeypatch, 0.4 ** np.arange(40))
    assert move(walk, 2.0, tol=1e-9) is None
    assert len(steps) == 12


def test_it_gives_up_at_a_deadline(monkeypatch):
    watch = Watch()
    walk = standing(unit_problem("logistic"), 1.0, watch)
    time_is_over(monkeypatch)
    assert move(walk, 2.0) is None
    assert move(walk, 1.0) is not None  # where it stands nothing needs to be done


@pytest.mark.parametrize(("hurt", "value"), [("M", -1.0), ("M", np.nan), ("induced", np.nan), ("induced", np.inf)])
def test_it_gives_up_where_equations_break_down(hurt, value):
    unit = unit_problem("logistic")
    walk = standing(unit, 1.0)
    form_matrix(walk)
    w, b = walk.w.copy(), walk.b
    getattr(walk, hurt)[...] = value
    with np.errstate(invalid="ignore"):
        assert not step(walk, 2.0)
    np.testing.assert_array_equal(walk.w, w)
    assert walk.b == b
    np.testing.assert_allclose(walk.scores, unit.space.X @ w, atol=1e-12)


def test_it_gives_up_far_away():
    walk = standing(unit_problem("squared_hinge"), 1e-3)
    assert move(walk, 10.0) is None


def test_a_step_that_fails_ends_the_walk(monkeypatch):
    steps = watched(monkeypatch, "_step", lambda self, C: False)
    walk = standing(unit_problem("logistic"), 1.0)
    form_matrix(walk)
    assert move(walk, 2.0) is None
    assert len(steps) == 1


def test_without_any_slack_the_weights_fall_to_zero():
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    unit = Problem.from_arrays(np.linspace(1.0, 2.0, 40)[:, None] * y[:, None], y, loss="squared_hinge")
    walk = chord.Chord(unit, 1, Watch(), "next to it")
    walk.begin(replace(cold(unit, 1.0), w=np.array([9.0]), b=0.0))
    form_matrix(walk)
    assert not walk.M.any()
    assert step(walk, 1.0)
    assert abs(walk.w[0]) <= 1e-13


@pytest.mark.parametrize("loss", SMOOTH)
def test_many_rows_are_claimed_by_what_the_walk_knows(loss, monkeypatch):
    unit = unit_problem(loss, n=5100)
    walk, problem = standing(unit, 0.3), at_cost(unit, 0.4)
    walk.scores *= 1.0 + 1e-7  # had the steps drifted so far, it would not show
    careful_products_are_not_needed(monkeypatch)
    found = move(walk, 0.4, tol=1e-5)
    assert found.primal == pytest.approx(primal(problem, found.w, found.b), rel=1e-11)
    assert found.dual == pytest.approx(dual(problem, found.alpha), rel=1e-6)
    assert found.primal >= cold(unit, 0.4).dual
    assert found.dual <= found.primal


def test_what_cannot_be_claimed_is_not_handed_out():
    # The computed gap is 0 or about rounding, the claimed one has all rounding in it.
    unit = unit_problem("squared_hinge")
    walk = standing(unit, 1.0, tol=1e-13)
    high, low = values(walk, 1.0)
    computed = relative_gap(high, low, 0.0)
    tol = 2.0 * computed + 1e-17
    assert tol < 1e-15
    assert move(walk, 1.0, tol=tol) is None
    assert move(walk, 1.0, tol=1e-9) is not None


def test_answers_are_copies():
    walk = standing(unit_problem("logistic"), 1.0)
    first = move(walk, 1.1)
    kept = first.w.copy()
    move(walk, 1.3)
    np.testing.assert_array_equal(first.w, kept)
    assert not np.array_equal(walk.w, kept)


def test_a_start_is_left_as_it_is_and_scores_are_its_own():
    unit = unit_problem("logistic", X=sp.csr_array)
    start = cold(unit, 1.0)
    kept = start.w.copy()
    walk = chord.Chord(unit, 1, Watch(), "next to it")
    walk.begin(start)
    np.testing.assert_allclose(walk.scores, unit.space.X @ kept, atol=1e-12)
    move(walk, 1.5)
    np.testing.assert_array_equal(start.w, kept)


def test_a_walk_can_be_interrupted():
    watch = Watch()
    walk = standing(unit_problem("logistic"), 1.0, watch)
    watch.cancel()
    with pytest.raises((KeyboardInterrupt, _core.DeadlineReached)):
        move(walk, 2.0)

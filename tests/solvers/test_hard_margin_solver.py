"""The hard margin is the largest one, found by soft margins of growing C; every way to stop says what is known."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem, Status
from maxmargin.runtime import Watch
from maxmargin.solvers import InteriorPoint
from maxmargin.solvers.hard_margin import LARGEST, HardMargin, separating
from tests.oracles import Program
from tests.oracles import hard_margin as clarabel_with_bias
from tests.solvers.inside import BIASES, cancelled, late


def separable(seed=0, n=40, d=4, apart=3.0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 3 == 0, 1, -1)
    X = rng.standard_normal((n, d))
    X[:, 0] = apart * y + np.where(np.abs(X[:, 0]) < 2.0, X[:, 0], 0.0)
    return X, y


def clarabel_without_bias(X, y):
    program = Program(w=X.shape[1])
    program.require(sp.csr_array(sp.csr_array(y[:, None] * X) @ program["w"]), -np.ones(len(y)))
    program.quadratic("w", 1.0)
    return program.solve()[1]


def widened(X, bias):
    """A penalised bias is one more column."""
    return np.column_stack([X, np.full(len(X), 2.0)]) if bias == "penalised" else X


def optimum(X, y, bias):
    """½‖w‖² of the largest margin; rows in units in which Clarabel's tolerances mean something."""
    wide = widened(X, bias)
    size = np.abs(wide).max()
    return (
        clarabel_with_bias(wide / size, y)[1] if bias == "free" else clarabel_without_bias(wide / size, y)
    ) / size**2


class Scripted:
    """An accurate solver of soft margins whose k-th answer is changed by ``change(k, answer)``; it notes its calls."""

    def __init__(self, change=lambda k, answer: answer):
        self.change, self.calls, self.answers = change, [], []

    def __call__(self, problem):
        self.problem = problem
        return self

    def solve(self, problem, *, start=None, watch=None):
        assert problem is self.problem
        assert not problem.hard
        answer = self.change(len(self.calls), InteriorPoint(tol=1e-10).solve(problem, watch=watch))
        self.calls.append((problem, start))
        self.answers.append(answer)
        return answer


def accurate(problem):
    return InteriorPoint(tol=1e-9)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scale", [1.0, 1e4, 1e-4])
def test_it_is_the_largest_margin_with_the_multipliers_that_prove_it(bias, layout, scale):
    X, y = separable()
    X = scale * X + (0.0 if bias != "free" else scale)
    problem = Problem.from_arrays(layout(X), y, C=np.inf, loss="hinge", **BIASES[bias])
    found = HardMargin(tol=1e-8, make=accurate).solve(problem)
    assert (found.status, found.solver) == (Status.CONVERGED, "hard_margin")
    assert found.gap <= 1e-8
    wide = widened(X, bias)
    w = found.w if bias != "penalised" else np.append(found.w, found.b / 2.0)
    assert found.primal == pytest.approx(optimum(X, y, bias), rel=1e-6)
    assert found.primal == pytest.approx(0.5 * w @ w, rel=1e-12)
    assert (y * (X @ found.w + found.b)).min() == pytest.approx(1.0, abs=1e-9)
    # The multipliers: feasible, of length ‖w‖², 0 beyond the margin, and w is their sum.
    assert (found.alpha >= 0.0).all()
    assert found.alpha.sum() == pytest.approx(w @ w, rel=1e-6)
    np.testing.assert_allclose(wide.T @ (found.alpha * y), w, atol=1e-4 * np.linalg.norm(w))
    assert found.alpha @ (y * (X @ found.w + found.b) - 1.0) <= 1e-6 * found.primal
    square = float(np.sum((wide.T @ (found.alpha * y)) ** 2))
    assert found.dual == pytest.approx(found.alpha.sum() - 0.5 * square, rel=1e-9)
    assert bias != "free" or abs(found.alpha @ y) <= 1e-9 * found.alpha.sum()


def test_rows_without_weight_do_not_bound_the_margin():
    X, y = separable(1)
    X[5] = [-20.0 * y[5], 0.0, 0.0, 0.0]
    weight = np.ones(len(y))
    weight[5] = 0.0
    problem = Problem.from_arrays(X, y, C=np.inf, loss="hinge", sample_weight=weight)
    found = HardMargin(tol=1e-8, make=accurate).solve(problem)
    live = weight > 0.0
    assert found.status is Status.CONVERGED
    assert found.primal == pytest.approx(optimum(X[live], y[live], "free"), rel=1e-6)
    assert found.alpha[5] == 0.0


def test_C_grows_from_the_rows_own_scale_until_no_slack_is_left():
    X, y = separable(2, apart=2.2)
    problem = Problem.from_arrays(X, y, C=np.inf, sample_weight=np.where(np.arange(40) < 20, 1.0, 2.0))
    script, first = Scripted(), np.linspace(0.0, 1.0, 40)
    found = HardMargin(tol=1e-7, make=script).solve(problem, start=first)
    assert found.status is Status.CONVERGED
    C = 10.0 / np.square(X).sum(axis=1).mean()
    assert len(script.calls) > 1
    for k, (part, start) in enumerate(script.calls):
        np.testing.assert_allclose(part.cost, np.full(40, C * 100.0**k))  # weights do not matter to a hard margin
        assert (part.loss.name, part.auxiliary) == ("hinge", True)
        if k == 0:
            assert start is first
        else:  # rows at their bound are at the new one, all others where they were
            before = script.answers[k - 1]
            bound = before.alpha > 0.999 * C * 100.0 ** (k - 1)
            assert bound.any()
            np.testing.assert_allclose(start, np.where(bound, part.cost, before.alpha))
    assert found.n_iter == sum(answer.n_iter for answer in script.answers)
    records = found.history.records
    assert [record.phase for record in records] == [f"C = {C * 100.0**k:.1e}" for k in range(len(records))]
    assert records[-1].gap == found.gap
    assert records[-1].iteration == found.n_iter


@pytest.mark.parametrize("longest", [1.0, 100.0])
def test_where_nothing_separates_every_C_is_tried_and_the_last_soft_margin_returned(longest):
    X, y = separable(3)
    X[1] *= longest  # the longest row is the one whose rounding matters
    X, y = np.vstack([X, X[:1]]), np.append(y, -y[0])
    script = Scripted()
    found = HardMargin(tol=1e-8, make=script).solve(Problem.from_arrays(X, y, C=np.inf, loss="hinge"))
    assert found.status is Status.INFEASIBLE
    squares = np.square(X).sum(axis=1)
    tried = [part.cost[0] for part, _ in script.calls]
    assert 100.0 * tried[-1] >= LARGEST / squares.max() > tried[-1]
    np.testing.assert_array_equal(found.w, script.answers[-1].w)
    assert [(record.gap, record.certified) for record in found.history.records] == [(1.0, False)] * len(tried)


def test_the_best_hyperplane_survives_worse_ones_and_rounding_is_named_where_tol_is_out_of_reach():
    X, y = separable(4)
    rng = np.random.default_rng(0)

    def shaken(k, answer):
        return answer if k == 1 else replace(answer, w=answer.w * (1.0 + 0.01 * rng.standard_normal(4)))

    problem = Problem.from_arrays(X, y, C=np.inf, loss="hinge")
    found = HardMargin(tol=0.0, make=Scripted(shaken)).solve(problem)
    assert found.status is Status.NUMERICAL_LIMIT
    gaps = found.history.gaps
    assert len(gaps) > 2
    assert found.gap == gaps[1] == min(gaps) < min(gaps[2:])
    assert found.primal == pytest.approx(optimum(X, y, "free"), rel=1e-6)
    assert all(record.certified for record in found.history.records)


@pytest.mark.parametrize("status", [Status.INTERRUPTED, Status.TIME_LIMIT])
def test_a_stop_leaves_the_hyperplane_found_so_far(status):
    X, y = separable(5)

    def stopped(k, answer):
        return answer if k == 0 else replace(answer, w=0.0 * answer.w, status=status)

    script = Scripted(stopped)
    problem = Problem.from_arrays(X, y, C=np.inf, loss="hinge")
    found = HardMargin(tol=0.0, make=script).solve(problem)
    assert (found.status, len(script.calls)) == (status, 2)
    assert found.gap == found.history.gaps[0] < 1.0
    assert (y * (X @ found.w + found.b)).min() >= 1.0 - 1e-9


def test_a_stop_before_any_hyperplane_claims_nothing():
    X, y = separable(6)
    problem = Problem.from_arrays(X, y, C=np.inf, loss="hinge")
    with pytest.raises(KeyboardInterrupt):
        HardMargin(tol=1e-8, make=accurate).solve(problem, watch=cancelled())
    found = HardMargin(tol=1e-8, make=accurate).solve(problem, watch=late())
    assert found.status is Status.INFEASIBLE
    assert (len(found.history), found.history.records[0].certified) == (1, False)


def test_reached_before_the_deadline_counts():
    X, y = separable(7)

    def in_time(k, answer):
        return replace(answer, status=Status.TIME_LIMIT)

    script = Scripted(in_time)
    found = HardMargin(tol=1.0, make=script).solve(Problem.from_arrays(X, y, C=np.inf, loss="hinge"), watch=Watch())
    assert (found.status, len(script.calls)) == (Status.CONVERGED, 1)


def soft(problem, w, b, alpha):
    """A soft margin's answer with this hyperplane and these multipliers."""
    answer = InteriorPoint().solve(problem.with_costs(problem.cost))
    return replace(answer, w=np.array(w, dtype=float), b=b, alpha=np.array(alpha, dtype=float))


CORNER = np.array([[-3.0, 1.0], [-1.0, -2.0], [1.0, 0.5], [2.0, 0.0]])


@pytest.mark.parametrize("bias", BIASES)
def test_any_hyperplane_that_separates_is_scaled_to_margin_one_and_any_multipliers_to_their_best_length(bias):
    problem = Problem.from_arrays(CORNER, [0, 0, 1, 1], C=np.inf, loss="hinge", **BIASES[bias])
    y, alpha = problem.y, np.array([0.1, 0.4, 0.3, 0.2])
    found = separating(problem, soft(problem, [5.0, 0.2], 0.3 if bias == "penalised" else 0.0, alpha))
    scores = CORNER @ [5.0, 0.2]
    b = -0.5 * (scores[2:].min() + scores[:2].max()) if bias == "free" else 0.3 if bias == "penalised" else 0.0
    margin = (y * (scores + b)).min()
    np.testing.assert_allclose(np.append(found.w, found.b), np.array([5.0, 0.2, b]) / margin, rtol=1e-12)
    # ½ (Σ alpha)² / ‖Σ alpha y x‖² is the largest dual value on the ray of these multipliers.
    wide = widened(CORNER, bias)
    square = float(np.sum((wide.T @ (alpha * y)) ** 2))
    np.testing.assert_allclose(found.alpha, alpha * alpha.sum() / square, rtol=1e-9)
    assert found.dual == pytest.approx(0.5 * alpha.sum() ** 2 / square, rel=1e-9)
    assert found.dual <= optimum(CORNER, y, bias) * (1.0 + 1e-8) <= found.primal * (1.0 + 2e-8)
    low, high = found.bias_interval
    if bias == "free":  # both ends still have margin 1
        assert low - 1e-12 <= found.b <= high + 1e-12
        ends = [(y * (CORNER @ found.w + end)).min() for end in (low, high)]
        np.testing.assert_allclose(ends, 1.0, rtol=1e-9)
    else:
        assert low == high == found.b


@pytest.mark.parametrize(
    ("w", "alpha"),
    [
        ([-1.0, 0.0], [1.0, 1.0, 1.0, 1.0]),  # the wrong side
        ([0.0, 1.0], [1.0, 1.0, 1.0, 1.0]),  # does not separate
        ([0.0, 0.0], [1.0, 1.0, 1.0, 1.0]),
        ([np.nan, 1.0], [1.0, 1.0, 1.0, 1.0]),
        ([1.0, 0.0], [0.0, 0.0, 0.0, 0.0]),  # proves nothing
    ],
)
def test_what_does_not_separate_or_has_no_multipliers_is_no_hyperplane(w, alpha):
    problem = Problem.from_arrays(CORNER, [0, 0, 1, 1], C=np.inf, loss="hinge")
    assert separating(problem, soft(problem, w, 0.0, alpha)) is None


def test_a_hyperplane_too_large_for_its_margins_to_be_proven_is_none():
    problem = Problem.from_arrays([[0.0, -1.0], [0.0, 1.0]], [0, 1], C=np.inf, loss="hinge")
    assert separating(problem, soft(problem, [1.0, 1e-6], 0.0, [1.0, 1.0])) is not None
    assert separating(problem, soft(problem, [1.0, 1e-30], 0.0, [1.0, 1.0])) is None


def test_multipliers_that_add_up_to_nothing_have_no_best_length_and_prove_nothing():
    problem = Problem.from_arrays([[0.0], [1.0]], [0, 1], C=np.inf, loss="hinge")
    found = separating(problem, soft(problem, [3.0], 0.0, [1.0, 0.0]))
    np.testing.assert_allclose([found.w[0], found.b], [2.0, -1.0])
    assert (found.dual, found.primal) == (0.0, pytest.approx(2.0))


def test_a_margin_below_the_rounding_of_the_scores_is_seen():
    # Scores 1e16 + 1 and 1e16 − 1: the first is no float64, its second half is the margin.
    problem = Problem.from_arrays([[1e16, -1.0], [1e16, 1.0]], [0, 1], C=np.inf, loss="hinge")
    found = separating(problem, soft(problem, [1.0, 1.0], 0.0, [0.5, 0.5]))
    assert found is not None
    exact = [Fraction(x) for x in (*found.w, found.b)]
    for second, label in ((-1, -1), (1, 1)):
        assert label * (exact[0] * 10**16 + exact[1] * second + exact[2]) >= 1

"""Dual coordinate descent: when a polish pays, and when epochs run in two workers."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem, Status
from maxmargin.solvers import DualCoordinateDescent, Newton, dual_cd
from maxmargin.solvers.dual_cd import exchanges_of_workers, polish_cost
from maxmargin.solvers.points import recover
from tests.conftest import tall
from tests.solvers.inside import (
    HOW,
    as_if_so_many_numbers,
    calls,
    descents_of,
    epochs_of,
    gaps_of,
    orthogonal_rows,
    with_corners,
)


def polish_costs(monkeypatch, cost):
    monkeypatch.setattr(dual_cd, "polish_cost", lambda *_: cost)


def vain_polishes(monkeypatch):
    """(gap at the start, penalty, options) of every polish, which does nothing but count three steps."""
    seen = []

    class Vain:
        def __init__(self, run, **options):
            self.work, self.options = run, options

        def run(self, point, *, penalty):
            seen.append((point.gap, penalty, self.options))
            self.work.n_iter += 3

    monkeypatch.setattr(dual_cd, "MethodOfMultipliers", Vain)
    return seen


def epochs_made(monkeypatch):
    return calls(monkeypatch, dual_cd._Descent, "_epoch")


def workers(monkeypatch, exchanges=2):
    monkeypatch.setattr(dual_cd, "exchanges_of_workers", lambda rows: exchanges)


def polishes(monkeypatch):
    """(gap at the start, options) of every polish, which works."""
    return calls(monkeypatch, dual_cd._Descent, "_polish", lambda out, run, point: point.gap)


def test_a_cheap_polish_is_tried_at_the_first_look(monkeypatch):
    problem, polished = with_corners(n=200), polishes(monkeypatch)
    found = DualCoordinateDescent().solve(problem)
    assert polished == gaps_of(found) == [gaps_of(found)[0]]
    assert found.gap < 1e-9
    assert found.n_iter > epochs_of(found)[-1]  # steps of the polish count


def test_a_polish_is_asked_again_at_a_tenth_of_the_gap_and_epochs_go_on_from_the_best_point(monkeypatch):
    problem, seen = with_corners(n=200, C=0.1), vain_polishes(monkeypatch)
    found = DualCoordinateDescent(tol=1e-7).solve(problem)
    assert found.status is Status.CONVERGED
    at = [gap for gap, *_ in seen]
    assert len(at) > 2
    for before, gap, next_gap in zip([np.inf, *at], at, at[1:], strict=False):
        assert next_gap <= 0.1 * min(before, gap)
    passed = [gap for gap in gaps_of(found) if gap not in at]
    assert all(any(gap > 0.1 * low for low in at) for gap in passed)
    assert epochs_of(found)[-1] + 3 == found.n_iter
    for _, penalty, options in seen:
        assert (penalty, options) == (10.0, {"max_steps": 400, "enough": 0.95 * 1e-7, "exact": True})


def test_a_limit_on_epochs_does_not_count_the_steps_of_a_polish(monkeypatch):
    problem, seen, epochs = with_corners(n=200, C=0.1), vain_polishes(monkeypatch), epochs_made(monkeypatch)
    found = DualCoordinateDescent(tol=1e-12, max_iter=17).solve(problem)
    assert (found.status, len(epochs)) == (Status.ITERATION_LIMIT, 17)
    assert found.n_iter == 17 + 3 * len(seen) > 17


def test_who_is_not_patient_stops_after_a_polish_in_vain(monkeypatch):
    problem, seen = with_corners(n=200), vain_polishes(monkeypatch)
    found = DualCoordinateDescent(patient=False).solve(problem)
    assert (found.status, len(seen)) == (Status.NUMERICAL_LIMIT, 1)
    assert found.n_iter == epochs_of(found)[-1] + 3


@pytest.mark.parametrize(("tol", "exact"), [(1e-5, True), (1.1e-5, False)])
def test_a_loose_tol_asks_for_no_more_than_it_says(monkeypatch, tol, exact):
    problem, seen = with_corners(n=200), vain_polishes(monkeypatch)
    found = DualCoordinateDescent(tol=tol).solve(problem)
    assert found.gap <= tol
    assert {options["exact"] for *_, options in seen} == {exact}
    reached = [gap for gap, *_ in seen if gap <= 0.95 * tol]
    assert len(reached) == (1 if exact else 0)  # a cheap polish gives digits that nobody asked for


def test_a_costly_polish_waits_until_epochs_make_slow_progress(monkeypatch):
    polish_costs(monkeypatch, 1e18)
    easy, hard = with_corners(n=200, C=0.01), with_corners(n=200, C=300.0, seed=3)
    polished = polishes(monkeypatch)
    found = DualCoordinateDescent().solve(easy)
    assert (found.status, polished) == (Status.CONVERGED, [])
    assert gaps_of(found)[-1] <= 0.95e-6 < min([1.0, *gaps_of(found)[:-1]])
    found = DualCoordinateDescent().solve(hard)
    assert found.status is Status.CONVERGED
    assert polished == gaps_of(found)[-1:]
    slow = [now > 0.5 * before for before, now in zip(gaps_of(found), gaps_of(found)[1:], strict=False)]
    late_enough = [epochs >= 50 for epochs in epochs_of(found)[1:]]
    assert [a and b for a, b in zip(slow, late_enough, strict=True)] == [False] * (len(slow) - 1) + [True]
    polished.clear()
    unpolished = DualCoordinateDescent(polish=False, max_iter=300).solve(hard)
    assert (unpolished.status, polished) == (Status.ITERATION_LIMIT, [])


def test_orthogonal_rows_have_patience_for_three_hundred_epochs(monkeypatch):
    X, y = tall(80, 3)
    # Columns beyond the third are empty: sparse rows in many dimensions that do touch each other.
    X = sp.csr_array(sp.hstack([sp.csr_array(X), sp.csr_array((80, 200))]))
    problem = Problem.from_arrays(X, y, C=1000.0, loss="hinge")
    as_if_so_many_numbers(monkeypatch, problem, 50_001)
    polished = polishes(monkeypatch)
    found = DualCoordinateDescent().solve(problem)
    assert len(polished) >= 1
    assert epochs_of(found)[gaps_of(found).index(polished[0])] >= 300


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("share", "nnz", "tried"), [(None, 1, True), (0.99, 10**8, True), (1.01, 10**8, False), (1.01, 10**9, True)]
)
def test_what_a_polish_may_cost_grows_with_what_was_spent(monkeypatch, layout, share, nnz, tried):
    problem = with_corners(n=200, layout=layout)
    spent = 10 * (0.6 if layout is np.asarray else 3.0) * 10**8  # ten epochs
    polish_costs(monkeypatch, 1e8 if share is None else 0.5 * share * spent)  # never more than a tenth of a second
    as_if_so_many_numbers(monkeypatch, problem, nnz)
    polished = polishes(monkeypatch)
    found = DualCoordinateDescent(max_iter=10).solve(problem)
    assert bool(polished) == tried
    assert (found.status is Status.CONVERGED) == tried


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("loss", "shape"), [("hinge", (150, 4)), ("hinge", (150, 400)), ("squared_hinge", (150, 4)),
                                             ("squared_hinge", (150, 400))])  # fmt: skip
def test_the_price_of_a_polish_is_steps_times_matrix_factor_and_products(loss, shape, sparse):
    n, d = shape
    X = np.random.default_rng(0).standard_normal(shape)
    problem = Problem.from_arrays(sp.csr_array(X) if sparse else X, np.arange(n) % 2, loss=loss)
    alpha = np.where(np.arange(n) < 120, 0.5, 0.0)
    alpha[:3], alpha[3:5], alpha[5] = 1.0, 2e-3, 5e-4  # at a bound, inside, and as good as at a bound
    point = recover(problem, 0.0 * alpha, HOW)
    point.alpha[:] = alpha

    def wanted(steps, active):
        if d > active:
            matrix, size = active**2 * d * (0.2 if sparse else 0.025), active
        else:
            matrix, size = active * d**2 * (0.6 if sparse else 0.035), float(d)
        passes = 2.0 * n * d * (0.8 if sparse else 0.3)
        return pytest.approx(steps * (matrix + 0.012 * size**3 + passes), rel=1e-9)

    if loss == "squared_hinge":
        assert polish_cost(problem, point) == wanted(10.0, 120.0)
        return
    assert polish_cost(problem, point) == wanted(60.0, min(116.0, d + 1.0))  # no more than there are unknowns
    point.alpha[:] = 1.0
    assert polish_cost(problem, point) == wanted(60.0, min(100.0, d + 1.0))  # at least a hundred rows


# ---------------------------------------------------------------- workers


@pytest.mark.parametrize(
    ("sparse", "nnz", "n_cols", "exchanges"),
    [
        (True, 1_000_000, 1000, 32),
        (False, 1_000_000, 1000, 0),
        (True, 999_999, 1000, 0),
        (True, 1_000_000, 15_625, 4),
        (True, 1_000_000, 15_626, 0),
        (True, 3_200_000, 10_000, 20),
    ],
)
def test_two_lanes_meet_as_often_as_copies_of_the_weights_cost_little(sparse, nnz, n_cols, exchanges):
    rows = SimpleNamespace(sparse=sparse, nnz=nnz, d=n_cols)
    assert exchanges_of_workers(rows) == exchanges


def test_two_lanes_give_the_same_bits_on_any_number_of_threads(monkeypatch):
    problem = orthogonal_rows(n=200)
    alone = DualCoordinateDescent(polish=False, max_iter=20).solve(problem)
    workers(monkeypatch)
    seen = descents_of(monkeypatch)
    one, two = (DualCoordinateDescent(polish=False, max_iter=20, n_threads=k).solve(problem) for k in (1, 2))
    np.testing.assert_array_equal(one.alpha, two.alpha)
    assert seen[0] == (200, 2)
    assert (one.alpha != alone.alpha).any()
    assert DualCoordinateDescent(tol=1e-8, polish=False).solve(problem).primal == pytest.approx(
        Newton(tol=1e-9).solve(problem).primal, rel=1e-7
    )


def test_lanes_in_each_others_way_become_one(monkeypatch):
    y = np.where(np.arange(200) % 2, 1.0, -1.0)
    X = y[:, None] * (1.0 + 0.01 * np.random.default_rng(0).standard_normal((200, 5)))  # all ask for the same step
    problem = Problem.from_arrays(sp.csr_array(X), y, C=0.01, loss="hinge", fit_intercept=False)
    workers(monkeypatch, 1)
    seen = descents_of(monkeypatch)
    found = DualCoordinateDescent(tol=1e-6).solve(problem)
    assert [n for _, n in seen[:2]] == [2, 1]
    assert 2 not in [n for _, n in seen[1:]]
    assert found.status is Status.CONVERGED

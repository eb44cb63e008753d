"""The kernel race: the gap of an answer beside an independent solver's optimum, and what is said of fits."""

import math
import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.svm import SVC, SVR

from benchmarks import kernel, kernel_data, solvers
from benchmarks.child import DONE, TIME_LIMIT, Answer, failed
from benchmarks.kernel_data import CELLS, Cell
from benchmarks.kernel_objective import Kernel, best_bias, feasible, gap, parts, scale, worst
from benchmarks.kernel_peers import LADDER, OURS, PEERS
from benchmarks.kernel_race import Race, absent
from benchmarks.kernel_report import Table, doubts, ratio
from tests.oracles import Form

N = 40
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
LABEL = np.where(X[:, 0] + 0.7 * RNG.standard_normal(N) > 0.2, 1.0, -1.0)
NUMBER = np.sin(X[:, 0]) + 0.3 * RNG.standard_normal(N)
COST = 2.0 * RNG.choice([0.5, 1.0, 3.0], N)
GAUSSIAN = Kernel("rbf", 0.4)
EPSILON = 0.1
PROBLEMS = {"two classes": (LABEL, None), "regression": (NUMBER, EPSILON)}


def optimum(target, epsilon):
    """Clarabel's optimum of the linear machine on rows whose inner products are the kernel's values."""
    rows = np.linalg.cholesky(rbf_kernel(X, gamma=GAUSSIAN.gamma) + 1e-12 * np.eye(N))
    form = Form("slack") if epsilon is None else Form("error", epsilon=epsilon)
    return form.solve(rows, target, COST).reported


def solved(target, epsilon, tol=1e-12):
    """scikit-learn's multipliers; its values of the kernel are float32."""
    told = {"gamma": GAUSSIAN.gamma, "C": 2.0, "tol": tol}
    machine = SVC(**told) if epsilon is None else SVR(epsilon=epsilon, **told)
    machine.fit(X, target, sample_weight=COST / 2.0)
    (part,) = parts(machine.dual_coef_, machine.support_, (), target, 2 if epsilon is None else 0)
    return part.beta


def polished(target, epsilon):
    """The exact multipliers: free support vectors lie on the margin or on the edge of the tube."""
    beta = solved(target, epsilon)
    free = (np.abs(beta) > 1e-6) & (np.abs(beta) < COST * (1.0 - 1e-6))
    K = rbf_kernel(X, gamma=GAUSSIAN.gamma)
    edge = target - (0.0 if epsilon is None else epsilon) * np.sign(beta)
    ones = np.ones((free.sum(), 1))
    system = np.block([[K[np.ix_(free, free)], ones], [ones.T, np.zeros((1, 1))]])
    bound = np.where(free | (np.abs(beta) <= 1e-6), 0.0, COST * np.sign(beta))
    right = np.append(edge[free] - K[free] @ bound, -bound.sum())
    bound[free] = np.linalg.solve(system, right)[:-1]
    return bound


# --- the formula --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_tight_answer_has_no_gap_and_the_optimum_of_an_independent_solver(problem):
    target, epsilon = PROBLEMS[problem]
    found = gap(GAUSSIAN, X, target, polished(target, epsilon), COST, epsilon)
    assert abs(found.relative) < 1e-12
    assert found.primal == pytest.approx(optimum(target, epsilon), rel=1e-7)
    assert found.moved < 1e-12


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("noise", [1e-3, 0.1, 1.0, 10.0])
def test_the_optimum_lies_between_primal_and_dual_of_any_answer(problem, noise):
    target, epsilon = PROBLEMS[problem]
    beta = solved(target, epsilon) + noise * np.random.default_rng(1).standard_normal(N)
    found, best = gap(GAUSSIAN, X, target, beta, COST, epsilon), optimum(target, epsilon)
    assert found.dual <= best * (1.0 + 1e-7)
    assert found.primal >= best * (1.0 - 1e-7)
    assert found.relative > 1e-8
    assert found.moved > 0.0


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_looser_tolerance_has_a_larger_gap(problem):
    target, epsilon = PROBLEMS[problem]
    gaps = [
        gap(GAUSSIAN, X, target, solved(target, epsilon, tol), COST, epsilon).relative for tol in (1e-1, 1e-4, 1e-7)
    ]
    assert gaps[0] > gaps[1] > gaps[2] > 0.0


def test_no_multipliers_leave_the_objective_of_the_best_constant():
    found = gap(GAUSSIAN, X, LABEL, np.zeros(N), COST)
    assert found.dual == 0.0
    assert found.primal == pytest.approx(2.0 * min(COST[LABEL > 0.0].sum(), COST[LABEL < 0.0].sum()))
    assert found.relative == 1.0


def test_an_answer_that_is_not_finite_has_an_infinite_gap():
    assert gap(GAUSSIAN, X, LABEL, np.full(N, np.nan), COST).relative == math.inf


def test_feasible_multipliers_stay_and_others_are_clipped_and_balanced():
    low, high = np.array([0.0, 0.0, -3.0, -3.0]), np.array([2.0, 2.0, 0.0, 0.0])
    there = np.array([1.0, 0.5, -1.5, 0.0])
    np.testing.assert_array_equal(feasible(there, low, high), there)
    np.testing.assert_allclose(feasible(np.array([5.0, 1.0, -1.0, 7.0]), low, high), [2 / 3, 1 / 3, -1.0, 0.0])
    np.testing.assert_array_equal(feasible(np.array([1.0, 1.0, 0.0, 0.0]), low, high), np.zeros(4))


@pytest.mark.parametrize("seed", range(5))
def test_the_best_bias_is_the_best_of_all_kinks(seed):
    rng = np.random.default_rng(seed)
    kinks, steps = rng.standard_normal(30).round(1), rng.random(30)
    slope = -rng.random() * steps.sum()

    def value(b):
        return slope * b + float(steps @ np.maximum(0.0, b - kinks))

    assert value(best_bias(kinks, steps, slope)) == pytest.approx(min(map(value, kinks)))


# --- kernels ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_kernels_are_those_of_scikit_learn(form):
    left, right = form(X[:7]), form(X[5:])
    wanted = {
        Kernel("rbf", 0.3): rbf_kernel(X[:7], X[5:], gamma=0.3),
        Kernel("linear"): linear_kernel(X[:7], X[5:]),
        Kernel("poly", 0.3, 3, 1.0): polynomial_kernel(X[:7], X[5:], gamma=0.3, degree=3, coef0=1.0),
    }
    for one, values in wanted.items():
        np.testing.assert_allclose(one.values(left, right), values, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(one.times(left, right, np.arange(N - 5.0)), values @ np.arange(N - 5.0))
    assert scale(form(X)) == pytest.approx(SVC().fit(X, LABEL)._gamma)
    with pytest.raises(ValueError, match="kernel 'sigmoid'"):
        Kernel("sigmoid").values(left, right)


def test_many_sparse_columns_are_multiplied_as_they_are():
    wide = sp.random(20, 5000, density=0.01, random_state=0, format="csr")
    np.testing.assert_allclose(Kernel("rbf", 0.3).values(wide, wide), rbf_kernel(wide, gamma=0.3), atol=1e-12)


# --- several classes ----------------------------------------------------------------------------------------------


def test_every_pair_of_classes_is_a_problem_in_any_order_and_with_either_sign():
    data = kernel_data.load("blobs-200x4x4")
    machine = SVC(gamma=0.2, C=3.0, tol=1e-10).fit(data.X, data.y)
    answer = (machine.dual_coef_, machine.support_, machine.n_support_)
    found = list(parts(*answer, data.y, 4))
    names = [part.name for part in found]
    assert names == [f"{i} against {k}" for i, k in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))]
    gaps = [gap(Kernel("rbf", 0.2), data.X[p.rows], p.target, p.beta, 3.0).relative for p in found]
    assert max(gaps) < 1e-6
    of_worst, name = worst(Kernel("rbf", 0.2), data.X, iter(found), 3.0, None)
    assert of_worst.relative == max(gaps)
    assert name == found[int(np.argmax(gaps))].name
    for one, two in zip(found, parts(*reversed_classes(*answer), data.y, 4), strict=True):
        np.testing.assert_array_equal(one.beta, two.beta)


def reversed_classes(coef, support, n_support):
    """The answer of a machine that takes the classes in the opposite order, so that each pair has the other sign."""
    blocks = np.split(np.arange(len(support)), np.cumsum(n_support)[:-1])[::-1]
    return -coef[::-1][:, np.concatenate(blocks)], support[np.concatenate(blocks)], n_support[::-1]


def test_support_vectors_that_do_not_stand_class_by_class_are_refused():
    y = np.array([0.0, 1.0, 2.0, 0.0])
    with pytest.raises(ValueError, match="3 blocks of support vectors expected"):
        list(parts(np.ones((2, 4)), [0, 1, 2, 3], [2, 1, 1], y, 3))


# --- the race -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("data", "C"), [("blobs-90x3x3", 1.0), ("line-70x3", 1.0)])
def test_a_cell_from_end_to_end(data, C):
    with Race([OURS, "sklearn_svc"], "rbf", 60.0, 1) as race:
        row = race.run("default", Cell(data, C), None)
    ours, fit = row["fits"][OURS], row["fits"]["sklearn_svc"]
    assert ours["outcome"] == fit["outcome"] == "done"
    assert 1e-6 < fit["gap"] < 0.01
    assert ours["gap"] <= 1e-6
    assert doubts(ours) == ""
    assert "support" not in fit
    assert row["kernel"]["gamma"] == scale(kernel_data.load(data).X)


def in_this_process(race, who, how, limit):
    """The fit without its process: quicker."""
    data, solver = race._data, solvers.load(who)
    solver.fit(data.X, data.y, 1.0, race._form, how)
    start = time.perf_counter()
    coef = solver.fit(data.X, data.y, race._cell.C, race._form, how)
    seconds = time.perf_counter() - start
    return Answer(DONE, seconds, coef, solver.details(data.X, data.y)) if seconds <= limit else Answer(TIME_LIMIT)


def test_a_peer_is_swept_until_its_true_gap_meets_the_target(monkeypatch):
    monkeypatch.setattr(Race, "_fit", in_this_process)
    with Race(["sklearn_svc"], "rbf", 60.0, 2) as race:
        fit = race.run("equal", Cell("tall-80x3", 10.0), 1e-4)["fits"]["sklearn_svc"]
        never = race.run("equal", Cell("tall-80x3", 10.0), -1.0)["fits"]["sklearn_svc"]
    assert fit["gap"] <= 1e-4
    assert fit["rungs"][0]["gap"] > 1e-4
    assert fit["seconds"] <= min(
        rung["seconds"] for rung in fit["rungs"] if rung["gap"] is not None and rung["gap"] <= 1e-4
    )
    assert [rung["tol"] for rung in never["rungs"]] == list(LADDER)
    assert never["outcome"] == "never at any tol"
    assert never["seconds"] is None
    assert never["gap"] == min(rung["gap"] for rung in never["rungs"])


def test_small_problems_and_predictions_have_their_details(tmp_path, monkeypatch):
    monkeypatch.setattr(Race, "_fit", in_this_process)
    blobs = kernel_data.load("blobs-120x3x3")
    np.savez(tmp_path / "three.npz", X=blobs.X, y=blobs.y.astype(int))
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    kernel_data.datasets.folder.names.cache_clear()
    try:
        with Race(["sklearn_svc"], "rbf", 60.0, 1) as race:
            small = race.run("small", Cell("three+classes"), None)
            many = race.run("predict", Cell("three+classes+test"), None)
    finally:
        kernel_data.datasets.folder.names.cache_clear()
    assert small["fits"]["sklearn_svc"]["seconds_again"] > 0.0
    assert small["fits"]["sklearn_svc"]["one_row_seconds"] > 0.0
    assert many["dataset"]["n_rows"] == 84
    assert many["fits"]["sklearn_svc"]["prediction"]["n_rows"] == 36
    assert many["fits"]["sklearn_svc"]["prediction"]["right"] > 0.5
    for mode, row in (("small", small), ("predict", many)):
        assert "three" in Table(mode, ["sklearn_svc"], 60.0, None).line(row)


def test_a_fit_that_does_not_end_or_fails_is_said_so():
    with Race(["sklearn_svc"], "rbf", 0.0, 3) as race:
        row = race.run("default", Cell("tall-80x3"), None)
    assert row["fits"]["sklearn_svc"]["repeats"] == [None]
    ours = {"outcome": "done", "seconds": 2.0, "gap": 1e-7}
    fits = {OURS: ours, "sklearn_svc": {**row["fits"]["sklearn_svc"]}}
    table = Table("default", [OURS, "sklearn_svc"], 30.0, None)
    assert "| 2 s, 1e-07 | > 30 s (> 15×) |" in table.line({**row, "fits": fits})
    fits["sklearn_svc"] = {"outcome": "failed", "seconds": None, "gap": None, "error": "no such kernel"}
    assert "| failed no such kernel |" in table.line({**row, "fits": fits})
    fits["sklearn_svc"] = {"outcome": "never in time", "seconds": None, "gap": 0.02}
    assert "| never in time, best gap 2e-02 |" in table.line({**row, "fits": fits})


def test_a_sweep_whose_first_fit_fails_says_why(monkeypatch):
    monkeypatch.setattr(Race, "_fit", lambda *_: failed("no such kernel"))
    with Race(["sklearn_svc"], "rbf", 60.0, 1) as race:
        row = race.run("equal", Cell("tall-80x3"), 1e-4)
    assert row["fits"]["sklearn_svc"]["outcome"] == "failed"
    assert "| failed no such kernel |" in Table("equal", ["sklearn_svc"], 60.0, 1e-4).line(row)


def test_doubts_are_said():
    fine = {"gap": 1e-7, "status": "CONVERGED", "certified_gap": 2e-7}
    assert doubts(fine) == doubts({"gap": 1e-2}) == ""
    assert doubts({**fine, "status": "NUMERICAL_LIMIT"}) == "; NUMERICAL_LIMIT at 2e-07"
    assert doubts({**fine, "gap": 3e-7}) == "; ABOVE ITS CLAIM"
    assert doubts({"gap": 1e-2, "accelerated": False}) == "; not accelerated"


def test_ratios_are_a_peers_seconds_over_ours():
    def fit(seconds):
        return {"outcome": "done", "seconds": seconds, "gap": 1e-7}

    rows = [{"fits": {OURS: fit(a), "sklearn_svc": fit(b)}} for a, b in ((1.0, 4.0), (2.0, 2.0), (1.0, None))]
    ratios = [ratio(row["fits"], "sklearn_svc", "seconds") for row in rows]
    assert ratios == [4.0, 1.0, math.inf]
    assert ratio({OURS: fit(None), "sklearn_svc": fit(1.0)}, "sklearn_svc", "seconds") == 0.0
    assert math.isnan(ratio({OURS: fit(None), "sklearn_svc": fit(None)}, "sklearn_svc", "seconds"))
    told = Table("default", [OURS, "sklearn_svc"], 30.0, None).summary(rows)
    assert told == "sklearn_svc / ours: geometric mean 2 of 2 cells of 3"


def test_cells_are_chosen_by_their_name_or_a_part_of_it(capsys):
    assert [cell.C for cell in kernel.chosen("default", ["mixture-5000x20"])] == [1.0, 100.0, 1e4]
    assert [cell.C for cell in kernel.chosen("equal", ["mixture-5000x20 C=1"])] == [1.0]
    assert kernel.chosen("small", ["nothing"]) == []
    assert capsys.readouterr().out == ""
    assert {cell.data for cell in kernel.chosen("small", None)} >= {"blobs-150x4x3"}


def test_machines_of_the_race_stay_out_of_the_linear_ones():
    for who in (OURS, *PEERS):
        assert solvers.load(who).forms == ()
    assert "sklearn_svc" not in absent([OURS, *PEERS])


# --- data ---------------------------------------------------------------------------------------------------------


def test_data_made_for_the_race():
    data = kernel_data.load("mixture-600x5")
    np.testing.assert_array_equal(data.X, kernel_data.load("mixture-600x5").X)
    assert data.X.shape == (600, 5)
    assert set(data.y) == {-1.0, 1.0}
    pictures = kernel_data.load("images-100x64x3")
    assert pictures.X.shape == (100, 64)
    assert np.abs(pictures.X).max() <= 1.0
    assert set(pictures.y) == {0.0, 1.0, 2.0}
    neighbours = pictures.X.reshape(100, 8, 8)
    assert np.abs(np.diff(neighbours, axis=2)).mean() < 0.5 * np.abs(pictures.X).mean()
    with pytest.raises(ValueError, match="65 pixels are no square"):
        kernel_data.load("images-100x65x3")
    assert all(kernel_data.exists(cell.data) for cell in CELLS["large"])

"""Every solver reports, is stopped alike from outside or by its budget, and reads X as often as it says."""

import threading
import time

import numpy as np
import pytest

from maxmargin import Problem, Status
from maxmargin.inputs import LabelledRows
from maxmargin.runtime import Watch
from maxmargin.solvers import SOLVERS, DualCoordinateDescent, HardMargin, InteriorPoint, Newton, ProximalNewton
from maxmargin.solvers.joint import JointMachine, joint_problem
from maxmargin.space import Bias
from tests.oracles import Form, hard_margin
from tests.solvers.plain import REGRESSION, optimum, residuals, small

K, D, TIGHT = 3, 4, 1e-15  # no solver reaches such a gap, so that none ends before it is stopped


def classes(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    return X, (X @ rng.standard_normal((D, K)) + rng.standard_normal((n, K))).argmax(axis=1)


def joint(loss):
    X, y = classes()
    return joint_problem(LabelledRows.from_arrays(X, y, None, None, 1), C=1.0, loss=loss, bias=Bias(1.0, False))


def apart():
    """Two classes that one column separates."""
    X, _ = classes()
    X = X[np.abs(X[:, 0] + 0.3) > 0.3]
    return Problem.from_arrays(X, np.where(X[:, 0] > -0.3, 1, -1), C=np.inf)


def hard(**options):
    tol = options.get("tol", 1e-9)
    return HardMargin(make=lambda part: InteriorPoint(tol=max(tol, 1e-12)), **options)


def problem_of(name):
    if name in ("crammer_singer", "multinomial"):
        return joint(name)
    if name == "hard_margin":
        return apart()
    if name == "proximal_newton":
        return small("logistic", n=150, penalty="l1")
    return small({"newton on a smooth loss": "logistic"}.get(name, "hinge"), n=150)


MAKE = {
    "interior_point": InteriorPoint,
    "dual_cd": DualCoordinateDescent,
    "newton": Newton,
    "newton on a smooth loss": Newton,
    "proximal_newton": ProximalNewton,
    "crammer_singer": JointMachine,
    "multinomial": JointMachine,
    "hard_margin": hard,
}
STEPWISE = [name for name in MAKE if name != "newton on a smooth loss"]  # they report before the work is done
SOFT = [name for name in MAKE if name != "hard_margin"]


def stepping(name):
    """The solver, without a last part that has steps of its own."""
    return MAKE[name](tol=TIGHT, **({"polish": False} if name in ("dual_cd", "interior_point") else {}))


def optimum_of(name, problem):
    if name in ("crammer_singer", "multinomial"):
        X, y = classes()
        return Form(name).solve(X, y, np.ones(len(y))).value
    if name == "proximal_newton":
        return Form("logistic", penalty="l1").solve(problem.space.X, problem.y, problem.cost).value
    if name == "hard_margin":
        return hard_margin(problem.space.X, problem.y)[1]
    return optimum(problem)


def assert_encloses(name, problem, found):
    """Whatever ended it, what is claimed is true."""
    value = optimum_of(name, problem)
    assert found.dual <= value * (1.0 + 1e-6)
    assert found.primal >= value * (1.0 - 1e-6)
    assert np.isfinite([found.primal, found.dual]).all()


class Listener:
    """Keeps what it is told, and does something at its k-th report."""

    def __init__(self, k=0, act=lambda: True):
        self.told, self.k, self.act = [], k, act

    def __call__(self, iteration, gap, seconds):
        self.told.append((iteration, gap, seconds))
        return self.act() if len(self.told) == self.k else None


def press():
    raise KeyboardInterrupt


def test_every_solver_is_here():
    assert set(SOLVERS) <= set(MAKE)


@pytest.mark.parametrize("name", MAKE)
def test_every_solver_reports(name):
    problem, listener = problem_of(name), Listener()
    found = MAKE[name](tol=1e-9).solve(problem, watch=Watch(None, listener))
    assert found.status is Status.CONVERGED
    iterations, gaps, seconds = zip(*listener.told, strict=True)
    assert list(iterations) == sorted(iterations)
    assert iterations[-1] <= found.n_iter
    assert iterations[-1] > 0
    assert list(seconds) == sorted(seconds)
    assert all(gap >= 0.0 for gap in gaps)
    assert gaps[-1] <= 1e-3
    assert len(gaps) > 1 or name not in STEPWISE
    assert_encloses(name, problem, found)
    assert found.primal <= optimum_of(name, problem) * (1.0 + 1e-6)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", STEPWISE)
def test_a_listener_that_asks_to_stop_is_obeyed_soon(name, k):
    problem, listener = problem_of(name), Listener(k + (name == "hard_margin"))
    found = stepping(name).solve(problem, watch=Watch(None, listener))
    assert found.status is Status.INTERRUPTED
    assert_encloses(name, problem, found)
    # No step follows; what was met on the way may be reported once more.
    assert found.n_iter == listener.told[listener.k - 1][0]


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", STEPWISE)
def test_ctrl_c_leaves_what_there_is(name, k):
    problem, listener = problem_of(name), Listener(k + (name == "hard_margin"), press)
    found = stepping(name).solve(problem, watch=Watch(None, listener))
    assert (found.status, len(listener.told)) == (Status.INTERRUPTED, listener.k)
    assert_encloses(name, problem, found)


@pytest.mark.parametrize("name", SOFT)
def test_a_deadline_that_has_passed_ends_it(name):
    problem = problem_of(name)
    found = stepping(name).solve(problem, watch=Watch(1e-9))
    assert found.status is Status.TIME_LIMIT
    assert found.n_iter <= 10  # a first look at most
    assert_encloses(name, problem, found)


@pytest.mark.parametrize("name", STEPWISE)
def test_a_deadline_that_passes_on_the_way_ends_it(name, monkeypatch):
    problem = problem_of(name)
    listener = Listener(2, lambda: monkeypatch.setattr(Watch, "past_deadline", True))
    found = stepping(name).solve(problem, watch=Watch(None, listener))
    assert found.status is Status.TIME_LIMIT
    assert found.n_iter == listener.told[1][0]
    assert_encloses(name, problem, found)


@pytest.mark.parametrize("name", SOFT)
def test_a_cancelled_watch_ends_it(name):
    problem, watch = problem_of(name), Watch()
    watch.cancel()
    found = stepping(name).solve(problem, watch=watch)
    assert (found.status, found.n_iter) == (Status.INTERRUPTED, 0)
    assert_encloses(name, problem, found)


@pytest.mark.parametrize("name", STEPWISE)
def test_another_thread_may_cancel(name):
    problem = problem_of(name)

    def cancel():
        other = threading.Thread(target=watch.cancel)
        other.start()
        other.join()

    listener = Listener(2, cancel)
    watch = Watch(None, listener)
    found = stepping(name).solve(problem, watch=watch)
    assert found.status is Status.INTERRUPTED
    assert found.n_iter == listener.told[1][0]
    assert_encloses(name, problem, found)


def test_a_hard_margin_stopped_before_a_hyperplane_is_found_is_an_interrupt():
    problem, watch = apart(), Watch()
    watch.cancel()
    with pytest.raises(KeyboardInterrupt):
        hard(tol=1e-9).solve(problem, watch=watch)
    time.sleep(0.001)
    late = hard(tol=1e-9).solve(problem, watch=Watch(1e-9))
    assert (late.status, late.solver) == (Status.INFEASIBLE, "hard_margin")  # nobody says that there is none


# --- budgets ----------------------------------------------------------------------------------------------------


def with_budget(name, problem, budget, tol=TIGHT, **options):
    """The answer, and what it cost."""
    watch = Watch()
    found = MAKE[name](tol=tol, budget=budget, **options).solve(problem, watch=watch)
    return found, watch.meter.spent


@pytest.mark.parametrize("name", SOFT)
def test_a_solver_with_a_tiny_budget_returns_its_best_point(name):
    problem = problem_of(name)
    free, all_of_it = with_budget(name, problem, np.inf, tol=1e-6)
    found, spent = with_budget(name, problem, 1.0)
    assert free.status is Status.CONVERGED
    assert found.status is Status.BUDGET_SPENT
    assert 1.0 < spent < 0.5 * all_of_it
    assert found.n_iter <= 10  # a first look at most
    assert found.history.records[-1].certified
    assert found.history.records[-1].gap == found.gap
    assert_encloses(name, problem, found)


@pytest.mark.parametrize("name", SOFT)
def test_budgets_are_operations_so_the_same_ends_at_the_same_bits(name):
    problem = problem_of(name)
    _, all_of_it = with_budget(name, problem, np.inf, tol=1e-6)
    gaps, costs = [], []
    for share in (0.1, 0.4):
        one, spent = with_budget(name, problem, share * all_of_it)
        two, other = with_budget(name, problem, share * all_of_it, n_threads=2)
        assert one.status is two.status is Status.BUDGET_SPENT
        assert one.alpha.tobytes() == two.alpha.tobytes()
        assert one.n_iter == two.n_iter
        assert spent == other > share * all_of_it
        gaps.append(one.gap)
        costs.append(spent)
    assert gaps[1] <= gaps[0]
    assert costs[1] > costs[0]


@pytest.mark.parametrize("name", SOFT)
def test_a_gap_that_is_reached_within_a_budget_is_enough(name):
    problem, watch = problem_of(name), Watch()
    found = MAKE[name](tol=0.5).solve(problem, watch=watch)
    assert found.status is Status.CONVERGED
    again = MAKE[name](tol=0.5, budget=watch.meter.spent).solve(problem, watch=Watch())
    assert again.status is Status.CONVERGED
    np.testing.assert_array_equal(again.alpha, found.alpha)


# --- reads of X -------------------------------------------------------------------------------------------------


def reads(solver, problem):
    """The answer, and what it cost in reads of X."""
    watch = Watch()
    found = solver.solve(problem, watch=watch)
    return found, watch.meter.reads / problem.nnz


def more_reads(make, problem, first, second):
    """For each step between two limits of steps."""
    (a, few), (b, many) = (reads(make(max_iter=k), problem) for k in (first, second))
    assert (a.n_iter, b.n_iter) == (first, second)
    return (many - few) / (second - first)


@pytest.mark.parametrize("loss", ["logistic", 3.0])
def test_a_newton_step_costs_two_reads_and_a_matrix(loss):
    problem = small(loss, n=150)

    def make(max_iter):
        return Newton(tol=1e-13, max_iter=max_iter, sampling=False)

    cost = more_reads(make, problem, 1, 2)
    if loss == "logistic":  # all rows bend
        assert cost == pytest.approx(3.0)
        assert more_reads(make, problem, 1, 4) == pytest.approx(3.0)
    else:
        assert 2.0 < cost < 3.0


@pytest.mark.parametrize("loss", ["squared_hinge", "squared_epsilon_insensitive"])
def test_a_matrix_is_read_off_the_rows_that_change_sides(loss):
    problem = small(loss, n=150, epsilon=0.3, bias="none")

    def make(max_iter):
        return Newton(tol=1e-13, max_iter=max_iter, sampling=False)

    first, then = (residuals(problem, w, 0.0) for w in (np.zeros(D), make(1).solve(problem).w))
    bends = [np.abs(r) > 0.3 if loss in REGRESSION else r > 0.0 for r in (first, then)]
    changed = bends[0] != bends[1]
    assert 3 < changed.sum() < 60
    assert more_reads(make, problem, 1, 2) == pytest.approx(2.0 + changed.mean())


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_rounds_of_multipliers_cost_no_more_a_step(loss):
    found, cost = reads(Newton(tol=1e-9, sampling=False), small(loss, n=150, epsilon=1.0))
    assert found.n_iter >= 10
    assert cost < 3.0 * found.n_iter


def test_a_sample_costs_an_eighth():
    problem, listener = small("logistic", n=8800, d=3), Listener()
    watch = Watch(None, lambda *told: listener(*told, ) or costs.append(watch.meter.reads / problem.nnz))  # fmt: skip
    costs = []
    found = Newton(tol=1e-9, exact=False).solve(problem, watch=watch)
    done = next(k for k, (_, gap, *_) in enumerate(listener.told) if gap < 1.0)  # the sample is
    steps, cost = listener.told[done][0], costs[done]
    assert found.n_iter > steps >= 3
    assert 2.0 * steps < 8.0 * cost < 3.0 * steps + 8.0


@pytest.mark.parametrize("sides", [1, 2])
def test_an_interior_point_iteration_costs_two_directions_both_ways_and_a_matrix(sides):
    problem = small("hinge" if sides == 1 else "epsilon_insensitive", n=150)

    def make(max_iter, n_corrections=0):
        return InteriorPoint(tol=1e-9, polish=False, max_iter=max_iter, n_corrections=n_corrections)

    assert more_reads(make, problem, 2, 6) == pytest.approx(5.0 * sides)
    corrected = more_reads(lambda max_iter: make(max_iter, 1), problem, 0, 3)
    assert 5.0 * sides < corrected <= 7.0 * sides  # each correction that is tried is a direction more


def test_an_epoch_costs_a_read_of_active_rows_and_a_look_two():
    problem = small("hinge", n=150)

    def make(max_iter):
        return DualCoordinateDescent(tol=1e-12, polish=False, max_iter=max_iter)

    assert more_reads(make, problem, 1, 3) == pytest.approx(1.0)  # all rows are active at first
    assert 0.3 < more_reads(make, problem, 5, 10) < 1.0
    # There is a look after ten epochs, and another one where it ends.
    assert 2.0 < more_reads(make, problem, 10, 11) < 3.0


def test_a_proximal_step_costs_two_reads_a_matrix_and_a_look():
    problem, costs = small("logistic", n=150, penalty="l1"), []
    watch = Watch(None, lambda iteration, gap, seconds: costs.append((iteration, watch.meter.reads / problem.nnz)))
    ProximalNewton(tol=1e-9).solve(problem, watch=watch)
    steps, cost = np.diff(np.array(costs), axis=0).T
    assert len(steps) >= 3
    np.testing.assert_allclose(cost, 3.0 * steps + 1.0)


def test_a_second_call_on_the_same_watch_counts_on():
    problem, watch = small("logistic", n=150), Watch()
    Newton(sampling=False).solve(problem, watch=watch)
    once = watch.meter.reads
    Newton(sampling=False).solve(problem, watch=watch)
    assert watch.meter.reads == 2.0 * once

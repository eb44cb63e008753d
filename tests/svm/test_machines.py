"""Machines side by side: how labels are split, how threads are shared, and how all of them end together."""

import itertools
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Status, runtime
from maxmargin.inputs import LabelledRows
from maxmargin.losses import LOSSES
from maxmargin.runtime import Execution, Watch
from maxmargin.space import Bias
from maxmargin.svm import machines as module
from tests.svm.test_multiclass import blobs

Task, solve_all, split, was_interrupted = module.Task, module.solve_all, module.split, module.was_interrupted
BIAS = Bias(3.0, True)
LONG = 60.0  # seconds that nobody waits: a machine that is not stopped fails its test


def tasks_of(k, scheme="ovr", *, sparse=False, penalty="l2"):
    X, y = blobs(60, 4, k)
    weight = np.linspace(0.5, 2.0, 60)
    data = LabelledRows.from_arrays(sp.csr_array(X) if sparse else X, y, weight)
    return X, y, weight, split(data, scheme, C=3.0, loss=LOSSES["squared_hinge"], penalty=penalty, bias=BIAS)


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
@pytest.mark.parametrize("sparse", [False, True])
def test_labels_are_split_into_two_class_problems_of_the_same_rows_costs_and_terms(scheme, sparse):
    X, y, weight, tasks = tasks_of(4, scheme, sparse=sparse, penalty="l1")
    jobs = [(label,) for label in "abcd"] if scheme == "ovr" else list(itertools.combinations("abcd", 2))
    assert len(tasks) == len(jobs)
    for task, job in zip(tasks, jobs, strict=True):
        rows = np.arange(60) if scheme == "ovr" else np.flatnonzero(np.isin(y, job))
        problem = task.problem
        assert (task.chosen is None) if scheme == "ovr" else np.array_equal(task.chosen, rows)
        assert np.array_equal(problem.y, np.where(y[rows] == job[-1], 1.0, -1.0))
        assert np.array_equal(problem.cost, 3.0 * weight[rows])
        assert np.array_equal(problem.space.X.toarray() if sparse else problem.space.X, X[rows])
        assert (problem.loss.name, problem.penalty, problem.bias) == ("squared_hinge", "l1", BIAS)
        np.testing.assert_allclose(problem.squared_norms, (X[rows] ** 2).sum(axis=1), rtol=1e-14)
        values = np.arange(1.0, len(rows) + 1.0)
        spread = task.spread(values, 60)
        assert np.array_equal(spread[rows], values)
        assert spread.sum() == values.sum()


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_two_classes_make_one_problem_whatever_the_scheme(scheme):
    _, y, _, tasks = tasks_of(2, scheme)
    assert len(tasks) == 1
    assert np.array_equal(tasks[0].problem.y, np.where(y == "b", 1.0, -1.0))
    assert tasks[0].problem.classes.tolist() == ["a", "b"]


def test_machines_against_all_others_compute_once_what_depends_on_the_rows_alone():
    first, *others = (task.problem for task in tasks_of(4)[3])
    assert all(other.squared_norms is first.squared_norms for other in others)
    assert all(other.space is first.space for other in others)
    assert all(other.space.span(Execution()) is first.space.span(Execution()) for other in others)
    one, two, *_ = (task.problem for task in tasks_of(4, "ovo")[3])
    assert one.space is not two.space


# --- solved side by side -----------------------------------------------------------------------------------------


class Machine:
    """A solver that notes how it was called and does what a test wants."""

    def __init__(self, log, act, problem, n_threads):
        self.log, self.act, self.problem, self.n_threads = log, act, problem, n_threads

    def solve(self, problem, *, start=None, watch=None):
        assert problem is self.problem
        entry = SimpleNamespace(task=problem, n_threads=self.n_threads, start=start, watch=watch)
        self.log.append(entry)
        status = self.act(entry) or Status.CONVERGED
        return SimpleNamespace(task=problem, status=status, gap=1e-7 * (1 + problem))


def solve(n, act=lambda entry: None, *, n_threads=1, starts=None, max_seconds=None, progress=None):
    """``n`` tasks, whose problems are their numbers."""
    log, tasks = [], [Task(k) for k in range(n)]
    make = lambda problem, threads: Machine(log, act, problem, threads)  # noqa: E731
    try:
        solutions, watch = solve_all(
            tasks, make, starts or [None] * n, n_threads, max_seconds, progress or (lambda *_: None)
        )
    except BaseException as error:
        error.log = log
        raise
    return SimpleNamespace(solutions=solutions, watch=watch, log=log)


def stopped(entry):
    """Work until somebody cancels."""
    end = time.monotonic() + LONG
    while not entry.watch.stop_requested:
        assert time.monotonic() < end, "nobody cancelled"
        time.sleep(0.001)
    return Status.INTERRUPTED


def test_one_task_has_all_threads_the_listener_and_its_start():
    heard = []
    done = solve(
        1, lambda e: e.watch.report(5, 0.25), n_threads=7, starts=["start"], progress=lambda *given: heard.append(given)
    )
    assert done.log[0].n_threads == 7
    assert done.log[0].start == "start"
    assert done.log[0].watch is done.watch
    assert [given[:2] for given in heard] == [(5, 0.25)]


@pytest.mark.parametrize(("n", "n_threads", "inside"), [(3, 1, 1), (3, 2, 1), (3, 3, 1), (3, 8, 2), (2, 9, 4)])
def test_tasks_share_the_threads_and_answers_keep_their_order(n, n_threads, inside):
    running, most, lock = [], [], threading.Lock()

    def act(entry):
        with lock:
            running.append(entry.task)
            most.append(len(running))
        time.sleep(0.01 * (n - entry.task))  # the first one ends last
        with lock:
            running.remove(entry.task)

    done = solve(n, act, n_threads=n_threads, starts=list("xyz")[:n])
    assert [solution.task for solution in done.solutions] == list(range(n))
    assert {entry.n_threads for entry in done.log} == {inside}
    assert {entry.task: entry.start for entry in done.log} == dict(enumerate("xyz"[:n]))
    assert max(most) <= min(n, n_threads)
    assert len({id(entry.watch) for entry in done.log}) == n


def test_all_that_may_run_at_once_do():
    """Two machines that wait for each other, on two threads."""
    both = threading.Barrier(2, timeout=LONG)
    assert len(solve(2, lambda entry: both.wait() and None, n_threads=2).solutions) == 2


def test_the_listener_hears_how_many_are_done_and_the_worst_gap_of_the_new_ones():
    heard = []
    solve(3, progress=lambda *given: heard.append(given))
    counts, gaps, _ = zip(*heard, strict=True)
    assert counts[-1] == 3
    assert list(counts) == sorted(counts)
    assert max(gaps) == pytest.approx(3e-7)
    assert gaps[0] >= 1e-7


def test_a_listener_that_asks_to_stop_cancels_the_machines_that_still_run():
    done = solve(3, lambda e: stopped(e) if e.task else None, n_threads=3, progress=lambda *_: True)
    assert [solution.status for solution in done.solutions] == [Status.CONVERGED] + 2 * [Status.INTERRUPTED]
    assert not was_interrupted(done.solutions, done.watch)


@pytest.mark.parametrize("max_seconds", [None, 1e6])
def test_machines_that_begin_after_a_stop_are_cancelled_from_the_start(max_seconds):
    def act(entry):
        return stopped(entry) if entry.task else None

    done = solve(4, act, n_threads=1, max_seconds=max_seconds, progress=lambda *_: True)
    assert [solution.status for solution in done.solutions] == [Status.CONVERGED] + 3 * [Status.INTERRUPTED]


@pytest.mark.parametrize("max_seconds", [None, 1e6])
def test_ctrl_c_while_machines_work_cancels_them_and_is_remembered(max_seconds):
    def press(*_):
        raise KeyboardInterrupt

    done = solve(4, lambda e: stopped(e) if e.task else None, n_threads=2, max_seconds=max_seconds, progress=press)
    assert len(done.solutions) == 4
    assert done.watch.interrupted
    assert [solution.status for solution in done.solutions][1:] == 3 * [Status.INTERRUPTED]
    assert was_interrupted(done.solutions, done.watch)


@pytest.mark.parametrize("fails", ["machine", "listener"])
def test_the_first_error_is_raised_when_all_others_have_been_cancelled_and_have_ended(fails):
    ended = []

    def act(entry):
        if entry.task == 0:
            if fails == "machine":
                raise ZeroDivisionError("first")
            return None
        try:
            return stopped(entry)
        finally:
            ended.append(entry.task)

    def listen(*_):
        if fails == "listener":
            raise ZeroDivisionError("first")

    with pytest.raises(ZeroDivisionError, match="first") as caught:
        solve(3, act, n_threads=3, progress=listen)
    assert sorted(ended) == [1, 2]
    assert all(entry.watch.stop_requested for entry in caught.value.log if entry.task)


class Clock(Watch):
    """A watch whose seconds pass only when a test says so."""

    now = 0.0

    def __init__(self, max_seconds=None, progress=None):
        super().__init__(None, progress)
        self.given, self.begun = max_seconds, Clock.now

    @property
    def seconds(self):
        return Clock.now - self.begun


@pytest.mark.parametrize(("limit", "given"), [(10.0, [10.0, 7.0, 4.0, 1.0, 1e-9]), (None, [None] * 5)])
def test_a_machine_that_begins_late_has_the_time_that_earlier_ones_left(limit, given, monkeypatch):
    """And none is asked for a deadline in the past."""
    monkeypatch.setattr(Clock, "now", 0.0)
    monkeypatch.setattr(module, "Watch", Clock)

    def act(entry):
        Clock.now += 3.0

    done = solve(5, act, n_threads=1, max_seconds=limit)
    assert [entry.watch.given for entry in done.log] == given


def test_while_no_machine_has_ended_nobody_is_told_so(monkeypatch):
    monkeypatch.setattr(runtime, "LOOK_SECONDS", 1e-4)
    looks, heard = [], []
    looked = runtime.SideBySide._sleep
    monkeypatch.setattr(runtime.SideBySide, "_sleep", lambda self: looks.append(1) or looked(self))

    def act(entry):
        seen, end = len(looks), time.monotonic() + LONG
        while len(looks) < seen + 3 and time.monotonic() < end:
            time.sleep(1e-4)

    solve(2, act, progress=lambda *given: heard.append(given[0]))
    assert len(looks) >= 6
    assert heard[-1] == 2
    assert len(heard) <= 2


@pytest.mark.parametrize("interrupted", [False, True])
@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("status", [Status.CONVERGED, Status.TIME_LIMIT, Status.INTERRUPTED])
def test_ctrl_c_is_told_from_a_listener_that_stops_the_work(interrupted, asked, status):
    watch = Watch()
    watch.interrupted, watch.stop_requested = interrupted, asked
    solutions = [SimpleNamespace(status=Status.CONVERGED), SimpleNamespace(status=status)]
    expected = interrupted or (status is Status.INTERRUPTED and not asked)
    assert was_interrupted(solutions, watch) == expected

"""What else goes on in a process while a fit runs: its end, and forks."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from maxmargin import _core
from maxmargin.kept import Kept, kept_property
from maxmargin.process import blas_guard
from maxmargin.runtime import SideBySide
from maxmargin.space import Rows
from maxmargin.svm import LinearSVC
from tests.conftest import tall
from tests.core.children import fate, forked

ROOT = Path(__file__).parents[2]


def test_an_interpreter_ends_in_silence_while_daemon_threads_fit(tmp_path):
    command = [sys.executable, "-m", "tests.core.ending", "1", str(tmp_path / "rows.svm")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


# --- forks ------------------------------------------------------------------------------------------------


def test_children_forked_while_a_thread_fits_can_fit():
    X, y = tall(20000, 40)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            LinearSVC(loss="hinge", solver="dual_cd", max_iter=3, tol=0.5).fit(X, y)

    LinearSVC().fit(X[:100], y[:100])  # imports what it needs
    thread = threading.Thread(target=work)
    thread.start()
    try:
        fates = [fate(forked(lambda: LinearSVC().fit(X[:100], y[:100]))) for _ in range(30)]
    finally:
        stop.set()
        thread.join()
    assert fates == ["well"] * 30


class Pausing:
    """A function that waits in the middle, in a thread of its own, while the block runs."""

    def __init__(self, function):
        self.function, self.inside, self.leave = function, threading.Event(), threading.Event()
        self.parent = os.getpid()

    def __call__(self, *arguments):
        if os.getpid() == self.parent:
            self.inside.set()
            self.leave.wait(120)
        return self.function(*arguments)

    def __enter__(self):
        self.thread.start()
        assert self.inside.wait(60)

    def __exit__(self, *error):
        self.leave.set()
        self.thread.join()

    def by(self, work):
        self.thread = threading.Thread(target=work)
        return self


def test_a_child_forked_while_norms_are_computed_computes_its_own(monkeypatch):
    rows, other = (Rows.of(tall(n, 3)[0]) for n in (50, 60))
    slow = Pausing(_core.survey)
    monkeypatch.setattr(_core, "survey", slow)
    with slow.by(lambda: rows.facts):
        ends = [fate(forked(lambda one=one: one.facts)) for one in (other, rows)]
    assert ends == ["well", "well"]
    np.testing.assert_allclose(rows.facts.squared_norms, np.square(rows.X).sum(axis=1))


def test_a_child_forked_while_a_kept_value_is_computed_computes_its_own():
    kept, slow = Kept(), Pausing(lambda: [1.0])

    def ask_again():
        assert kept.get(lambda: [2.0]) == [2.0]

    with slow.by(lambda: kept.get(slow)):
        end = fate(forked(ask_again))
    assert end == "well"
    assert kept.get(lambda: [3.0]) == [1.0]


def test_no_child_is_forked_within_the_locks_of_blas(monkeypatch):
    slow, order = Pausing(blas_guard._set), []
    monkeypatch.setattr(blas_guard, "_set", slow)
    monkeypatch.setattr("maxmargin.process.FORK_SECONDS", 120.0)

    def enter_and_leave():
        with blas_guard:
            pass
        order.append("set")

    with slow.by(enter_and_leave):
        threading.Timer(0.1, slow.leave.set).start()
        child = forked(lambda: order.append("child"))
        held = slow.leave.is_set()
    assert fate(child) == "well"
    assert held  # else the fork did not wait
    assert not blas_guard._lock.locked()


def test_threads_that_ask_at_the_same_time_get_the_same_value():
    both = threading.Barrier(2)

    class Holder:
        @kept_property
        def value(self):
            both.wait(60)
            return object()

    holder = Holder()
    found = SideBySide([lambda: holder.value, lambda: holder.value], 2).results()
    assert found[0] is found[1] is holder.value
    assert isinstance(Holder.value, kept_property)


# --- jobs side by side ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_jobs_side_by_side_give_their_results_in_order(n_threads):
    work = SideBySide([lambda k=k: k for k in range(7)], n_threads)
    looks = list(work.looks())
    assert sorted(k for look in looks for k in look) == list(range(7))
    assert work.n_ended == 7
    assert work.results() == list(range(7))
    assert SideBySide([], n_threads).results() == []


def test_the_first_failure_of_a_job_is_raised_and_the_others_come_to_an_end():
    ended = []

    def good():
        ended.append(1)

    def bad():
        raise LookupError("no such thing")

    work = SideBySide([bad, good, good], 1)
    with pytest.raises(LookupError, match="no such thing"):
        list(work.looks())
    work.wait()
    assert ended == [1, 1]
    with pytest.raises(LookupError):
        work.results()


def test_where_no_thread_can_be_had_the_caller_works(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert SideBySide([lambda: threading.get_ident()] * 2, 2).results() == [threading.get_ident()] * 2

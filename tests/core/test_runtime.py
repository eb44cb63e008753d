"""The process around a fit: threads, the BLAS guard, the instruction set, deadlines and signals."""

import _thread
import contextlib
import multiprocessing
import operator
import os
import subprocess
import sys
import threading
import warnings
from functools import partial
from importlib.metadata import version

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from maxmargin import _core
from maxmargin.process import blas_guard, borrowed_blas
from maxmargin.runtime import Watch, core_info, effective_threads


def python(code, *arguments, **environment):
    """What a fresh interpreter prints."""
    command, env = [sys.executable, "-c", code, *arguments], os.environ | environment
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(None, 8), ("3", 3), ("3,2", 3), (" 4 ", 4), ("16", 8), ("0", 8), ("-2", 8), ("", 8), ("many", 8)],
)
def test_omp_num_threads_lowers_the_number_of_threads(monkeypatch, asked, expected):
    monkeypatch.setattr("maxmargin.runtime._available", lambda limit, tied: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if asked is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert effective_threads() == expected
    assert effective_threads(5) == 5


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no CPU affinity")
def test_a_process_honours_omp_num_threads_and_affinity():
    code = "from maxmargin.runtime import effective_threads as e; print(e(), e(2))"
    pinned = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); " + code
    assert python(code, OMP_NUM_THREADS="1") == "1 2"
    assert python(pinned, OMP_NUM_THREADS="") == "1 2"
    later = "from maxmargin.runtime import effective_threads as e; e(); " + pinned  # what was learned first is not kept
    assert python(later, OMP_NUM_THREADS="") == "1 2"


@pytest.mark.parametrize("wrong", [0, -1, 2.0, True, np.True_, "2", [2], float("nan"), float("inf")])
def test_effective_threads_refuses(wrong):
    with pytest.raises(ValueError):
        effective_threads(wrong)


@pytest.mark.parametrize("whole", [2, np.int64(2), np.uint8(2)])
def test_effective_threads_accepts_whole_numbers(whole):
    assert effective_threads(whole) == 2
    assert type(effective_threads(whole)) is int


# --- the BLAS guard --------------------------------------------------------------------------------------


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_blas_threads():
    borrowed_blas()  # loads SciPy's BLAS
    with threadpool_limits(2, user_api="blas"):
        assert blas_threads() == {2}
        yield


@contextlib.contextmanager
def guard_of_another_thread():
    """The guard is held by a thread of its own; leaving the block lets that thread leave the guard."""
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with blas_guard:
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(30)
    try:
        yield
    finally:
        leave.set()
        thread.join()


@pytest.mark.usefixtures("two_blas_threads")
def test_nested_guards_hold_one_thread_and_restore():
    for _ in range(2):
        with contextlib.suppress(ZeroDivisionError), blas_guard:
            with blas_guard:
                assert blas_threads() == {1}
            assert blas_threads() == {1}
            _ = 1 / 0
        assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize("first", ["here", "there"])
@pytest.mark.parametrize("last", ["here", "there"])
def test_overlapping_guards_of_two_threads_restore(first, last):
    guards = {"here": blas_guard, "there": guard_of_another_thread()}
    with contextlib.ExitStack() as left_last, contextlib.ExitStack() as left_first:
        for name in sorted(guards, key=lambda name: name != first):
            (left_last if name == last else left_first).enter_context(guards[name])
            assert blas_threads() == {1}
        left_first.close()
        assert blas_threads() == {1}
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize("held", ["here", "there"])
def test_the_guard_works_in_a_forked_child(held):
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def answer():
        if held == "here":
            blas_guard.__exit__(None, None, None)  # the child leaves the block in which it was born
        seen = [blas_threads()]
        with blas_guard:
            seen.append(blas_threads())
        sender.send([*seen, blas_threads()])

    child = context.Process(target=answer)
    with warnings.catch_warnings(), blas_guard if held == "here" else guard_of_another_thread():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of the other threads
        child.start()
        answered = receiver.poll(30)
    if not answered:
        child.kill()
    child.join()
    assert answered
    assert receiver.recv() == [{2}, {1}, {2}]
    assert blas_threads() == {2}


# --- what was compiled -----------------------------------------------------------------------------------


def test_the_environment_can_force_the_baseline():
    code = "from maxmargin.runtime import core_info; print(core_info()['instruction_set'])"
    assert python(code, MAXMARGIN_BASELINE="1") == "baseline"


def test_an_unknown_instruction_set_is_refused_and_changes_nothing():
    before = core_info()
    assert before["version"] == version("maxmargin")
    for name in ("avx9", "", "AVX2"):
        with pytest.raises(ValueError, match="not available"):
            _core.use_isa(name)
    assert core_info() == before


# --- deadlines and signals -------------------------------------------------------------------------------


def descent(X):
    n, d = X.shape
    one, alpha, w = np.ones(n), np.zeros(n), np.zeros(d)
    y, norms = np.where(X[:, 0] > 0, 1.0, -1.0), np.square(X).sum(axis=1)
    return _core.Descent(y, 0.0 * one, one, 0.0 * one, 0.0, one, norms, alpha, w, 0.0, 0.0, 0.0, 0), y, alpha, w


def joint(X):
    (n, d), one, norms = X.shape, np.ones(len(X)), np.square(X).sum(axis=1)
    alpha, W, label = np.zeros((n, 3)), np.zeros((d, 3)), np.arange(n, dtype=np.int32) % np.int32(3)
    sums, center, scratch = np.zeros(3), np.zeros(3), np.zeros(9)
    return _core.Joint(label, one, norms, alpha, W, sums, center, 1.0, scratch, 0), alpha, W, sums


CALLS = {
    "scores": lambda rows, watch: _core.scores(rows, np.ones(3), 0.0, np.ones(4), 1, watch),
    "combine": lambda rows, watch: _core.combine(rows, np.ones(4), np.ones(3), 1, watch),
    "gram": lambda rows, watch: _core.gram(rows, np.arange(4), np.ones((4, 4)), borrowed_blas(), 1, watch),
    "gram_block": lambda rows, watch: _core.gram_block(rows, np.arange(4), np.arange(2), np.ones((4, 2)), 1, watch),
    "normal_matrix": lambda rows, watch: _core.normal_matrix(
        rows, np.ones(4), 0.0, np.ones((3, 3)), borrowed_blas(), 1, watch
    ),
    "direction": lambda rows, watch: _core.Barrier(True, *np.ones((13, 4))).direction(rows, np.ones(3), 0.0, 1, watch),
    "epoch": lambda rows, watch: descent(np.ones((4, 3)))[0].epoch(rows, watch),
    "joint epoch": lambda rows, watch: joint(np.ones((4, 3)))[0].epoch(rows, watch),
    "lasso_sweeps": lambda rows, watch: _core.lasso_sweeps(np.eye(3), *np.ones((5, 3)), 10, 0.0, watch),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_watched_call_stops_at_the_deadline(name):
    rows = _core.Rows.dense(np.ones((4, 3)))
    CALLS[name](rows, None)
    CALLS[name](rows, _core.Watch(0.0, 60.0))
    watch = _core.Watch(0.0, 0.0)
    with pytest.raises(_core.DeadlineReached, match="deadline"):
        CALLS[name](rows, watch)
    assert watch.past_deadline
    assert issubclass(_core.DeadlineReached, TimeoutError)


@pytest.mark.parametrize("kind", ["descent", "joint"])
def test_a_deadline_ends_a_loop_of_epochs_with_the_invariant_intact(kind):
    X = np.random.default_rng(0).normal(size=(20000, 10))
    rows, watch = _core.Rows.dense(X), Watch(max_seconds=0.2)
    if kind == "joint":
        state, alpha, W, _ = joint(X)
        y = 1.0
    else:
        state, y, alpha, W = descent(X)

    def epochs():
        while True:
            state.unshrink()
            state.epoch(rows, watch.core)

    with pytest.raises(_core.DeadlineReached):
        epochs()
    assert watch.past_deadline
    assert watch.core.n_polls * 0.05 <= watch.seconds
    np.testing.assert_allclose(W, X.T @ (alpha * y), atol=1e-9)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_interrupts_a_long_call(n_threads):
    rows, G, watch, after = _core.Rows.dense(np.ones((300, 40))), np.empty((300, 300)), _core.Watch(0.0), []
    long_call = partial(_core.gram, rows, np.arange(300), G, borrowed_blas(), n_threads, watch)
    # One call after the other without Python's own look at signals between them.
    calls = [_thread.interrupt_main, long_call, partial(after.append, "too late")]
    with pytest.raises(KeyboardInterrupt):
        list(map(operator.call, calls))
    assert after == []
    assert watch.n_polls == 1

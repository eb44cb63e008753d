"""The process around a fit: threads, the BLAS guard, the instruction set, deadlines and signals."""

import multiprocessing
import os
import subprocess
import sys
import threading
import warnings
from importlib.metadata import version

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from maxmargin import _core
from maxmargin.runtime import blas_guard, borrowed_blas, core_info, effective_threads, show_versions


def python(code, **environment):
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- threads ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(None, 8), ("3", 3), ("3,2", 3), (" 4 ", 4), ("16", 8), ("0", 8), ("-2", 8), ("", 8), ("many", 8)],
)
def test_omp_num_threads_lowers_the_number_of_threads(monkeypatch, asked, expected):
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if asked is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert effective_threads() == expected
    assert effective_threads(5) == 5


def test_omp_num_threads_of_a_process():
    code = "from maxmargin.runtime import core_info; print(core_info()['n_threads'])"
    assert python(code, OMP_NUM_THREADS="1") == "1"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no CPU affinity")
def test_affinity_limits_the_number_of_threads():
    code = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from maxmargin.runtime import effective_threads
print(effective_threads(), effective_threads(2))
"""
    assert python(code, OMP_NUM_THREADS="") == "1 2"


@pytest.mark.parametrize(
    "wrong",
    [
        0,
        -1,
        1.5,
        True,
        "2",
        "two",
        float("nan"),
        pytest.param(float("inf"), marks=pytest.mark.xfail(strict=True, reason="int(inf) raises OverflowError")),
    ],
)
def test_effective_threads_refuses(wrong):
    with pytest.raises(ValueError):
        effective_threads(wrong)


@pytest.mark.parametrize("whole", [2, 2.0, np.int64(2)])
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


@pytest.mark.usefixtures("two_blas_threads")
def test_nested_guards_hold_one_thread_and_restore():
    for _ in range(2):
        with blas_guard:
            with blas_guard:
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_the_guard_restores_after_an_exception():
    with pytest.raises(ZeroDivisionError), blas_guard:
        _ = 1 / 0
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize("first_in_first_out", [True, False])
def test_overlapping_guards_of_two_threads_restore(first_in_first_out):
    def hold(entered, leave):
        with blas_guard:
            entered.set()
            leave.wait(30)

    events = [(threading.Event(), threading.Event()) for _ in range(2)]
    threads = [threading.Thread(target=hold, args=pair) for pair in events]
    seen = []
    for thread, (entered, _) in zip(threads, events, strict=True):
        thread.start()
        assert entered.wait(30)
        seen.append(blas_threads())
    for k in (0, 1) if first_in_first_out else (1, 0):
        events[k][1].set()
        threads[k].join()
        seen.append(blas_threads())
    assert seen == [{1}, {1}, {1}, {2}]


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize(
    "forked_by",
    [
        "another thread",
        pytest.param(
            "the guarded thread",
            marks=pytest.mark.xfail(strict=True, reason="leaving the inherited guard makes its depth −1"),
        ),
    ],
)
def test_the_guard_works_in_a_forked_child(forked_by):
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def answer():
        if forked_by == "the guarded thread":
            blas_guard.__exit__(None, None, None)  # the child leaves the block it was forked in
        seen = [blas_threads()]
        with blas_guard:
            seen.append(blas_threads())
        sender.send([*seen, blas_threads()])

    entered, leave = threading.Event(), threading.Event()

    def hold():
        with blas_guard:
            entered.set()
            leave.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert entered.wait(30)
    child = context.Process(target=answer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of the holder
        child.start()
    answered = receiver.poll(30)
    leave.set()
    holder.join()
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
    for name in ("avx9", "", "AVX2"):
        with pytest.raises(ValueError, match="not available"):
            _core.use_isa(name)
    assert core_info() == before


def test_versions_are_reported(capsys):
    show_versions()
    shown = capsys.readouterr().out
    assert core_info()["version"] == version("maxmargin")
    for name in ("numpy", "scipy", "scikit-learn"):
        assert version(name) in shown
    assert core_info()["instruction_set"] in shown


def test_only_a_dsyrk_is_borrowed():
    from scipy.linalg import cython_blas

    with pytest.raises(RuntimeError, match="signature"):
        _core.Blas.borrow(cython_blas.__pyx_capi__["ddot"])

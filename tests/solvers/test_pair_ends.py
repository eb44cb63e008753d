"""Ways in which steps on pairs end: limits, listeners, Ctrl-C, rounding, and kernels that are no inner products."""

import math
import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest

from maxmargin import Status, _core
from maxmargin.kernels import Polynomial, Precomputed, Sigmoid
from maxmargin.kernels.held_lines import HeldLines
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.runtime import Watch
from maxmargin.solvers import pair_steps
from maxmargin.solvers.free_set import FreeSet
from maxmargin.solvers.run import Settings
from maxmargin.space import Rows
from tests.solvers.kernel_cases import LOSSES, assert_consistent, by_lines, machine, optimum, solved, verdict

INDEFINITE = [Sigmoid(0.5, -1.0), Sigmoid(1.0, 0.5), Sigmoid(0.3, -6.0), Polynomial(1.0, -0.5, 2)]


def slowly(monkeypatch, lines):
    """So few steps at a time that there are many reports."""
    if lines:
        by_lines(monkeypatch)
    monkeypatch.setattr(pair_steps, "SMALL_STEPS", 0)
    monkeypatch.setattr(pair_steps, "FEWEST_STEPS", 3)
    monkeypatch.setattr(pair_steps, "MOST_STEPS", 0)


def rough(problem, found, status):
    """An answer before the end: bounds that hold, confirmed as what they are."""
    assert found.status is status
    best = optimum(problem)
    assert found.dual <= best * (1.0 + 1e-8)
    assert found.primal >= best * (1.0 - 1e-8)
    checked = verdict(problem, replace(found), max(found.gap * 1.01, 1e-12))
    assert checked, str(checked)
    assert_consistent(problem, found)


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_limit_on_iterations(loss, lines, monkeypatch):
    if lines:
        by_lines(monkeypatch)
    problem = machine(loss, 150, C=50.0)
    for max_iter in (1, 2, 40):
        found = solved(problem, max_iter=max_iter)
        rough(problem, found, Status.ITERATION_LIMIT)
        assert found.n_iter == max_iter


@pytest.mark.parametrize("lines", [False, True])
def test_a_limit_on_seconds(lines, monkeypatch):
    slowly(monkeypatch, lines)
    for loss in LOSSES:
        problem = machine(loss, 150, C=50.0)
        rough(problem, solved(problem, tol=1e-10, watch=Watch(max_seconds=0.0)), Status.TIME_LIMIT)


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("at", [1, 3])
@pytest.mark.parametrize("how", ["asks", "raises", "signal"])
def test_listeners_end_it(how, at, lines, monkeypatch):
    slowly(monkeypatch, lines)
    seen = []

    def listener(iteration, gap, seconds):
        seen.append(gap)
        if len(seen) < at:
            return False
        if how == "raises":
            raise KeyboardInterrupt
        if how == "signal":
            signal.raise_signal(signal.SIGINT)
        return how == "asks"

    problem = machine("hinge", 150, C=50.0)
    rough(problem, solved(problem, tol=1e-10, watch=Watch(progress=listener)), Status.INTERRUPTED)
    assert len(seen) == at


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("how", ["ctrl-c", "cancel"])
def test_another_thread_ends_it_while_the_core_steps(how, lines, monkeypatch):
    if lines:
        by_lines(monkeypatch)
    problem, watch, begun, inside = machine("hinge", 400, C=1e6), Watch(), threading.Event(), _core.PairSteps
    watch.core = _core.Watch(0.0, None)  # which looks at the world outside as often as it is asked

    def press():
        begun.wait(30)
        os.kill(os.getpid(), signal.SIGINT) if how == "ctrl-c" else watch.cancel()

    thread = threading.Thread(target=press)

    class Pressed:
        """The core's steps, told that somebody presses Ctrl-C."""

        def __init__(self, *given):
            self.steps = inside(*given)

        def __getattr__(self, name):
            if name in ("loop", "solve"):
                begun.set()
                thread.join()
            return getattr(self.steps, name)

    monkeypatch.setattr(_core, "PairSteps", Pressed)
    thread.start()
    found = solved(problem, tol=1e-13, watch=watch)
    assert not thread.is_alive()
    assert found.status is Status.INTERRUPTED
    assert verdict(problem, found, max(1.01 * found.gap, 1e-12))
    assert_consistent(problem, found)


@pytest.mark.parametrize(
    ("where", "at"), [("places", 1), ("square_of", 1), ("exact_scores", 0), ("rough_scores", 0), ("direction", 0)]
)
def test_ctrl_c_anywhere_leaves_a_point_that_can_be_claimed(where, at, monkeypatch):
    slowly(monkeypatch, lines=True)
    problem = machine("squared_hinge", 150, C=50.0, cache_bytes=1)
    owner = {"places": HeldLines, "direction": FreeSet}.get(where, KernelRows)
    original, count = getattr(owner, where), iter(range(10**6))

    def interrupted(*given, **options):
        if next(count) == at:
            raise KeyboardInterrupt
        return original(*given, **options)

    monkeypatch.setattr(owner, where, interrupted)
    rough(problem, solved(problem, tol=1e-10), Status.INTERRUPTED)
    assert next(count) > at


def test_who_goes_on_where_rounding_ends_it():
    problem, turns = machine("hinge", 100), []

    class Next(Settings):
        """Answers with what it was given."""

        def solve(self, problem, *, start=None, watch=None):
            turns.append(start)
            return replace(start, gap=0.5 * start.gap, solver="next", status=Status.NUMERICAL_LIMIT)

    found = solved(problem, tol=1e-16, follower=Next())
    assert found.solver == "next"
    assert "next took over" in found.reason
    assert found.gap == 0.5 * turns[0].gap
    assert turns[0].status is Status.NUMERICAL_LIMIT
    assert turns[0].gap < 1e-10
    assert verdict(problem, turns[0], 1e-9)
    solved(problem, follower=Next())
    assert len(turns) == 1


# --- bits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_epsilon_insensitive"])
def test_bits_do_not_depend_on_threads(loss, lines, monkeypatch):
    if lines:
        by_lines(monkeypatch)
    problem = machine(loss, 500, C=10.0, d=6)
    found = [solved(problem, n_threads=n) for n in (1, 2, 8)]
    assert len({(one.alpha.tobytes(), one.b, one.primal, one.dual, one.n_iter) for one in found}) == 1


# --- kernels that are no inner products -------------------------------------------------------------------------


def assert_stationary(problem, found, tol=1e-6):
    """Every multiplier is a slope of its row's loss: what each lacks of that (Fenchel), all together."""
    assert_consistent(problem, found)
    K = problem.space.kernel.gram(problem.space.X)
    f, a, epsilon = K @ (problem.sign * found.alpha) + found.b, found.alpha, getattr(problem.loss, "epsilon", 0.0)
    r = problem.target - problem.sign * f
    if problem.loss.regression:
        lost = problem.cost * np.maximum(0.0, np.abs(r) - epsilon) + epsilon * np.abs(a) - a * r
    else:
        lost = problem.cost * np.maximum(0.0, r) - a * r
    assert np.all(lost >= -1e-9 * abs(found.primal))
    assert lost.sum() <= tol * abs(found.primal)


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("kernel", INDEFINITE, ids=repr)
@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_an_indefinite_kernel_leaves_a_stationary_point(loss, kernel, lines, monkeypatch):
    if lines:
        by_lines(monkeypatch)
    for seed in range(3):
        problem = machine(loss, 80, kernel=kernel, seed=seed)
        found = solved(problem, tol=1e-6)
        assert found.status is Status.STATIONARY
        assert math.isnan(found.gap)
        assert math.isnan(found.dual)
        assert_stationary(problem, found)
        checked = verdict(problem, found)
        assert not checked
        assert checked.outcome.name == "HONEST"


def test_a_matrix_whose_pairs_betray_it_is_indefinite():
    rng = np.random.default_rng(0)
    K = rng.standard_normal((60, 60))
    K = K + K.T
    problem = machine("hinge", 60)
    given = replace(problem, space=KernelRows.of(Rows.of(K), Precomputed()))
    found = solved(given)
    assert found.status is Status.STATIONARY
    assert math.isnan(found.gap)
    assert_stationary(given, found)


def test_the_story_of_a_run():
    problem, seen = machine("hinge", 300, C=100.0), []
    found = solved(problem, watch=Watch(progress=lambda *report: seen.append(report) and None))
    assert found.solver == "pair_steps"
    assert len(found.history) >= 2
    assert found.history.records[-1].certified
    assert found.history.gaps[-1] == found.gap
    assert [gap for _, gap, _ in seen] == found.history.gaps[: len(seen)]
    assert found.n_iter == found.history.records[-1].iteration
    low, high = found.bias_interval
    assert low <= found.b <= high

"""What is said of times and answers: ratios, statuses, objectives, limits."""

import math
import os
import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from multiprocessing import Pipe

import numpy as np
import pytest

from benchmarks import cliffs, compare, datasets, defaults
from benchmarks.child import DONE, MEMORY_LIMIT, ROOT, TIME_LIMIT, Answer, _in_time
from benchmarks.datasets import drawn
from benchmarks.forms import FORMS, SEVERAL, TWO, Form
from benchmarks.joint import least_loss
from benchmarks.objective import Objective
from benchmarks.ratios import geometric_mean, said
from benchmarks.solvers import OURS, Setting
from benchmarks.solvers.maxmargin import machine
from benchmarks.workplace import Workplace


def test_geometric_mean():
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert geometric_mean([1.0, 8.0, math.inf, math.nan, 0.0]) == pytest.approx(math.sqrt(8.0))
    assert math.isnan(geometric_mean([math.inf]))
    assert [said(ratio) for ratio in (math.inf, 0.0, math.nan, 1.2345)] == ["never / best", "best / never", "—", "1.23"]


# --- objectives ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        Form("slack_power", power=1.5),
        Form("slack_power", power=3.0),
        Form("hinge", pairs=True),
        Form("logistic", pairs=True),
        Form("slack_power", power=1.5, pairs=True),
    ],
    ids=lambda form: form.name,
)
def test_an_optimum_has_the_objective_that_was_certified(form):
    data = datasets.load("blobs-300x4x4" if form.pairs else "tall-300x4")
    fitted = machine(2.0, form, {"tol": 1e-9}).fit(data.X, data.y)
    objective = Objective(data.X, data.y, 2.0, form, data.n_classes)
    assert objective.value(fitted.coef_) == pytest.approx(fitted.solution_.primal, rel=1e-8)
    assert objective.value(0.9 * fitted.coef_) > fitted.solution_.dual


@pytest.mark.parametrize("loss", ["multinomial", "crammer_singer"])
def test_best_biases_are_found_where_scores_are_large(loss):
    """At the best biases no probability is far from 0 or 1; a search at full sharpness stops at b = 0."""
    rng = np.random.default_rng(0)
    label = rng.integers(4, size=400)
    scores = 5.0 * rng.standard_normal((400, 4))
    scores[np.arange(400), label] += 40.0
    offset = np.array([0.0, 3000.0, -2000.0, 800.0])
    assert least_loss(scores + offset, label, loss) == pytest.approx(least_loss(scores, label, loss), abs=1e-6)


# --- defaults -----------------------------------------------------------------------------------------------------


def test_statuses_of_first_lines():
    w = np.zeros(2)
    assert defaults.status(Answer(DONE, 1.0, w, {"status": "CONVERGED"})) == "converged"
    assert defaults.status(Answer(DONE, 1.0, w, {"status": "TIME_LIMIT"})) == "warned: TIME_LIMIT"
    assert defaults.status(Answer(DONE, 1.0, w, {"warnings": ["ConvergenceWarning"]})) == "warned"
    assert defaults.status(Answer(DONE, 1.0, w, {})) == "converged"
    assert defaults.status(Answer(TIME_LIMIT)) == "time limit"


def test_ratios_with_fits_that_did_not_end():
    there, not_there = {"seconds": 2.0}, {"seconds": None}
    assert defaults.ratio(there, {"seconds": 4.0}) == 0.5
    assert defaults.ratio(not_there, there) == math.inf
    assert defaults.ratio(there, not_there) == 0.0
    assert math.isnan(defaults.ratio(not_there, not_there))
    used = [{"seconds": 2.0, "cpu_seconds": 6.0}, {"seconds": None, "cpu_seconds": 3.0}]
    assert defaults.ratio(*used, "cpu_seconds") == 0.0
    assert defaults.ratio(used[0], used[0], "cpu_seconds") == 1.0


def test_first_lines_on_a_file_of_the_folder(tmp_path, monkeypatch, capsys):
    data = datasets.load("blobs-120x3x3")
    np.savez(tmp_path / "three.npz", X=data.X.round(3), y=data.y.astype(int) + 7)
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    datasets.folder.names.cache_clear()
    try:
        loaded = datasets.load("three+classes+test")
        assert loaded.X.shape == (84, 3)
        assert loaded.test[0].shape == (36, 3)
        assert set(loaded.test[1]) <= {0.0, 1.0, 2.0}
        defaults.main(
            ["--datasets", "three", "--lines", "LinearSVC()", "--repeats", "1", "--output", str(tmp_path / "out.json")]
        )
    finally:
        datasets.folder.names.cache_clear()
    shown = capsys.readouterr().out
    assert "| three | 84 × 3, 3 cl. | `LinearSVC()` |" in shown
    assert "LinearSVC(): 1 sets; ours 1 converged" in shown
    assert (tmp_path / "out.json").exists()


def test_files_say_whether_they_hold_classes_or_numbers(tmp_path, monkeypatch):
    X = np.arange(12.0).reshape(6, 2)
    np.savez(tmp_path / "numbers.npz", X=X, y=np.array([0.5, 1.0, 2.0, 0.5, 1.0, 2.0]))
    np.savez(
        tmp_path / "classes.npz", X=X, y=np.array([1, 2, 3, 1, 2, 3]), X_test=X, y_test=np.array([1, 2, 3, 4, 0, 1])
    )
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    datasets.folder.names.cache_clear()
    try:
        assert datasets.load("numbers+classes").kind == "regression"
        classes = datasets.load("classes+classes+test")
    finally:
        datasets.folder.names.cache_clear()
    assert classes.kind == SEVERAL
    assert classes.test[1].tolist() == [0.0, 1.0, 2.0, -2.0, -2.0, 0.0]


# --- cliffs -------------------------------------------------------------------------------------------------------


def test_auto_is_compared_with_the_best_that_got_there():
    fits = {
        "auto": {"outcome": "converged", "seconds": 3.0},
        "newton": {"outcome": "converged", "seconds": 1.0},
        "dual_cd": {"outcome": "unfinished: ITERATION_LIMIT", "seconds": 0.1},
    }
    found = cliffs.compared(fits)
    assert found == {"best": "newton", "ratio": 3.0, "difference": 2.0}
    assert cliffs.is_slow(found)
    assert not cliffs.is_slow({"best": "newton", "ratio": 3.0, "difference": 0.001})
    fits["auto"]["outcome"] = "time limit"
    assert cliffs.compared(fits)["ratio"] == math.inf
    assert cliffs.is_slow(cliffs.compared(fits))
    assert cliffs.compared({"auto": fits["auto"]})["best"] is None
    assert not cliffs.is_slow(cliffs.compared({"auto": fits["auto"]}))


def test_only_a_verified_certificate_counts():
    w = np.zeros(2)
    assert cliffs.outcome(Answer(DONE, 1.0, w, {"status": "CONVERGED", "verified": True})) == "converged"
    assert cliffs.outcome(Answer(DONE, 1.0, w, {"status": "CONVERGED", "verified": False})) == "not verified"
    assert cliffs.outcome(Answer(DONE, 1.0, w, {"status": "TIME_LIMIT", "verified": True})) == "unfinished: TIME_LIMIT"
    assert cliffs.outcome(Answer(MEMORY_LIMIT)) == "memory limit"


def test_what_ended_at_a_limit_is_not_asked_for_more_in_no_more_time():
    late = {"outcome": TIME_LIMIT, "limit": 5.0}
    assert cliffs.is_hopeless(late, 5.0)
    assert not cliffs.is_hopeless(late, 6.0)
    assert cliffs.is_hopeless({"outcome": MEMORY_LIMIT, "limit": 5.0}, 6.0)
    assert not cliffs.is_hopeless({"outcome": "converged", "limit": 5.0}, 5.0)
    assert not cliffs.is_hopeless({}, 5.0)


def test_every_form_knows_its_solvers():
    by_form = {form.name: cliffs.able(replace(drawn.draw(0, 0), form=form)) for _, form in drawn.FORMS_IN_TURN}
    assert by_form["hinge"] == by_form["hinge-ovo"] == ["interior_point", "dual_cd", "newton"]
    assert by_form["logistic"] == ["dual_cd", "newton"]
    assert by_form["crammer_singer"] == by_form["squared_hinge-l1"] == []


def test_one_problem_from_end_to_end(tmp_path):
    options = Namespace(time_limit=60.0, patience=3.0, without_liblinear=True)
    problem = next(
        one
        for one in map(drawn.draw, [0] * 300, range(300))
        if one.form.name == "slack_power_1.5" and one.kind == TWO and one.n_rows * one.per_row < 20_000
    )
    with Workplace(memory=2_000_000_000) as work:
        found = cliffs.measure(work, problem, options)
    assert set(found["fits"]) == {"0.001", "1e-06"}
    assert found["fits"]["0.001"]["auto"]["outcome"] == "converged"
    assert "tolerance 0.001: 1 problems; auto 1 converged" in cliffs.summary([found], 5)


def test_a_fit_is_ended_at_its_limit_and_the_next_one_has_a_new_process():
    with Workplace() as work:
        work.load("tall-100x2")
        late = work.fit(OURS, FORMS["hinge"], 1.0, Setting("tol", {"tol": 1e-3}), 0.0)
        assert late.outcome == TIME_LIMIT
        assert late.w is None
        assert late.details["stopped_after"] == 0.0
        assert work.fit(OURS, FORMS["hinge"], 1.0, Setting("tol", {"tol": 1e-3}), 60.0).outcome == DONE


STARTS_A_CHILD = """
import subprocess, sys, time
loop = "import os, threading, time; from benchmarks.child import _end_with; "
loop += "threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start(); print('on', flush=True); "
subprocess.Popen([sys.executable, "-c", loop + "time.sleep(600)"])
time.sleep(600)
"""


def test_no_fit_outlives_the_process_that_asked_for_it():
    with subprocess.Popen([sys.executable, "-c", STARTS_A_CHILD], cwd=ROOT, stdout=subprocess.PIPE) as parent:
        assert parent.stdout.readline() == b"on\n"
        parent.kill()
        assert parent.stdout.read() == b""  # comes when the child, who holds the other end too, is gone


def test_on_a_busy_machine_cpu_time_is_measured_and_limited():
    with Workplace(busy=True) as work:
        work.load("tall-2000x10")
        found = work.fit(OURS, FORMS["hinge"], 1.0, Setting("tol", {"tol": 1e-3}), 60.0)
    assert found.seconds == pytest.approx(found.details["cpu_seconds"], abs=0.01)
    here, there = Pipe()
    assert not _in_time(here, os.getpid(), 0.1, -1e9)  # has used far more CPU time than that
    there.send("an answer")
    assert _in_time(here, os.getpid(), 0.1, 0.0)


def test_a_fit_that_wants_too_much_memory_is_told_from_one_that_fails():
    with Workplace(memory=20_000_000) as work:
        work.load("tall-100000x40")
        answer = work.fit(OURS, FORMS["hinge"], 1.0, Setting("tol", {"tol": 1e-3, "solver": "interior_point"}), 60.0)
        assert answer.outcome == MEMORY_LIMIT
        assert work.fit(OURS, FORMS["hinge"], 1.0, Setting("no", {"solver": "none"}), 60.0).outcome == "failed"


# --- two builds ---------------------------------------------------------------------------------------------------


def test_builds_take_turns():
    order = []

    def fit(build, seconds):
        order.append(build)
        return Answer(DONE, seconds, np.zeros(1), {"status": "CONVERGED"})

    times = iter([1.0, 2.0, 3.0])
    cell = compare.in_turn({"this": lambda: fit("this", next(times)), "other": lambda: fit("other", 4.0)}, 3, 3)
    assert order == ["this", "other"] * 3
    assert cell["this"]["median"] == 2.0
    assert (cell["ratio"], cell["difference"], cell["ratio_of_best"]) == (0.5, -2.0, 0.25)


def test_slow_cells_are_repeated_less_and_unfinished_ones_not_at_all():
    slow = Answer(DONE, 5.0, np.zeros(1), {"status": "CONVERGED"})
    late = Answer(TIME_LIMIT)
    assert len(compare.in_turn({"this": lambda: slow, "other": lambda: slow}, 9, 3)["this"]["seconds"]) == 3
    cell = compare.in_turn({"this": lambda: late, "other": lambda: slow}, 9, 3)
    assert cell["ratio"] == math.inf
    assert cell["other"]["seconds"] == [5.0]


def test_summary_of_a_comparison():
    def cell(name, this, other):
        ended = [{"outcome": "CONVERGED", "median": time, "seconds": [time]} for time in (this, other)]
        return {"cell": name, **compare.judged(dict(zip(("this", "other"), ended, strict=True)))}

    told = compare.summary([cell("a", 1.0, 2.0), cell("b", 4.0, 2.0)])
    assert "2 cells: geometric mean of this / other 1.000" in told
    assert "worst: b: 2 (+2 s)" in told
    assert compare.summary([]).startswith("no cell was measured")


def test_a_python_without_the_package_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="cannot start"):
        compare.place(str(tmp_path / "python"))
    assert compare.place(sys.executable).endswith("__init__.py")
    assert compare.executable("python3") == "python3"
    assert compare.executable("here/bin/python").startswith("/")

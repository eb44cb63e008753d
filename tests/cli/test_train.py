"""maxmargin train and demo: from a file to a saved, certified model."""

import json
import os
import pty
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import maxmargin
from maxmargin.cli.output import Output
from tests.cli.conftest import csv_text


def test_from_a_csv_to_a_report(cli, spam, tmp_path):
    result = cli("train", "spam.csv", "--report", "report.html", "--C", "0.1,1")
    for word in ("60 rows to learn from", "5-fold", "verified", "of 20 unseen rows", "separab"):
        assert word in result.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "spam.csv", "spam.safetensors"]
    cli("certify", "spam.safetensors", "spam.csv")


def test_all_rows_are_used_without_a_report(cli, spam):
    result = json.loads(cli("train", spam, "--C", "1", "--json").stdout)
    assert result["data"]["rows"] == 80
    assert result["data"]["test_rows"] == 0
    assert result["fit"]["status"] == "CONVERGED"
    assert result["certificate"]["outcome"] == "PROVEN"
    assert "test" not in result


def test_equals_the_python_class(cli, spam):
    cli("train", spam, "--C", "0.5", "--loss", "hinge", "--scale", "none")
    table = maxmargin.read_table(spam)
    X = maxmargin.data.Encoding.learn(table).apply(table)
    expected = maxmargin.LinearSVC(loss="hinge", C=0.5).fit(X, table.y)
    machine = maxmargin.load("spam.safetensors").machine
    np.testing.assert_array_equal(machine.coef_, expected.coef_)
    np.testing.assert_array_equal(machine.intercept_, expected.intercept_)


@pytest.mark.parametrize(
    "options",
    [
        ["--no-dual"],
        ["--balanced", "--loss", "hinge"],
        ["--scale", "none", "--C", "100"],
        ["--scale", "standard", "--solver", "dual_cd"],
        ["--holdout", "0.3", "--seed", "5"],
        ["--tol", "0.5", "--solver", "interior_point"],
    ],
)
@pytest.mark.parametrize("data", ["spam.csv", "rows.svm"])
def test_certify_accepts_what_train_wrote(cli, spam, svm, data, options):
    if "--C" not in options:
        options = [*options, "--C", "1"]
    cli("train", data, "--model", "m.safetensors", *options)
    assert "verified" in cli("certify", "m.safetensors", data).output
    rejected = cli("certify", "m.safetensors", "rows.svm" if data == "spam.csv" else "spam.csv", code=1)
    assert "not those" in rejected.output


def test_certify_notices_a_changed_file(cli, spam, tmp_path):
    cli("train", spam, "--C", "1")
    path = tmp_path / "spam.safetensors"
    blob = bytearray(path.read_bytes())
    blob[-3] ^= 1
    path.write_bytes(blob)
    result = cli("certify", path, spam, code=1)
    assert "REJECTED" in result.output
    assert "checksum" in result.output
    told = json.loads(cli("certify", path, spam, "--json", code=1).stdout)
    assert told["outcome"] == "REJECTED"


def test_certify_through_another_format(cli, spam):
    cli("train", spam, "--C", "1")
    for name in ("spam.parquet", "spam.arrow", "spam.npz"):
        cli("convert", spam, name)
        cli("certify", "spam.safetensors", name)


def test_test_file(cli, spam, tmp_path):
    (tmp_path / "new.csv").write_text(csv_text(50, seed=7))
    told = json.loads(cli("train", spam, "--test", "new.csv", "--C", "1", "--json").stdout)
    assert told["test"]["rows"] == 50
    assert sum(map(sum, told["test"]["confusion"])) == 50
    cli("train", spam, "--test", "new.csv", "--holdout", "0.5", code=2)


def test_text_and_missing_columns(cli, tmp_path):
    rows = ["age,town,class"] + [
        f"{20 + i if i % 7 else ''},{'Oslo' if i % 2 else 'Rome'},{'ab'[i % 2]}" for i in range(40)
    ]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    for options, words in (
        ([], ("'town'", "--text onehot", "--drop")),
        (["--text", "onehot"], ("'age'", "--missing mean", "--missing drop")),
    ):
        error = cli("train", "t.csv", *options, code=3)
        assert all(word in error.output for word in words), error.output
    for missing in ("mean", "drop"):
        cli("train", "t.csv", "--text", "onehot", "--missing", missing, "--C", "1")
        assert "verified" in cli("certify", "t.safetensors", "t.csv").output
    cli("train", "t.csv", "--drop", "town", "--drop", "age", code=3)


def test_more_than_two_classes(cli, tmp_path):
    (tmp_path / "t.csv").write_text("x,label\n" + "".join(f"{i},{'abc'[i % 3]}\n" for i in range(30)))
    error = cli("train", "t.csv", code=3)
    assert "--positive 'a'" in error.output
    cli("train", "t.csv", "--positive", "b", "--C", "1")
    assert maxmargin.load("t.safetensors").machine.classes_.tolist() == ["(not b)", "b"]
    cli("certify", "t.safetensors", "t.csv")
    cli("train", "t.csv", "--positive", "z", code=3)


@pytest.mark.parametrize("C", ["x", "-1", "0", "1,inf", ""])
def test_odd_values_of_C(cli, spam, C):
    assert "--C" in cli("train", spam, f"--C={C}", code=2).output


def test_time_limit_saves_and_says_so(cli, spam):
    result = cli("train", spam, "--C", "1", "--max-seconds", "1e-9", "--solver", "interior_point", code=4)
    assert "stopped early" in result.output
    assert "All weights are zero" in result.output
    assert "NOT PROVEN" in cli("certify", "spam.safetensors", spam, code=6).output
    assert "verified" in cli("certify", "spam.safetensors", spam, "--max-gap", "1").output


def test_ctrl_c_saves_the_partial_model(cli, spam, monkeypatch):
    """The key is pressed from inside the fit, so that the test does not depend on speed."""
    from contextlib import contextmanager

    @contextmanager
    def pressing(self, what, tol):
        yield lambda iteration, gap, seconds: signal.raise_signal(signal.SIGINT) if iteration >= 2 else None

    monkeypatch.setattr(Output, "closing_in", pressing)
    result = cli("train", spam, "--C", "10", "--solver", "interior_point", "--loss", "hinge", code=130)
    assert "interrupted" in result.output
    model = maxmargin.load("spam.safetensors")
    assert model.machine.solution_.status is maxmargin.Status.INTERRUPTED
    assert f"{model.machine.solution_.gap:.1e}" in result.output
    told = json.loads(cli("certify", "spam.safetensors", spam, "--json", code=6).output)
    assert (told["outcome"], told["worst"]) == ("HONEST", "gap")


def test_ctrl_c_before_the_fit_writes_nothing(cli, spam, tmp_path, monkeypatch):
    monkeypatch.setattr("maxmargin.cli.job.choose_C", lambda *a, **k: signal.raise_signal(signal.SIGINT))
    result = cli("train", spam, code=130)
    assert "nothing was written" in result.output
    assert [p.name for p in tmp_path.iterdir()] == ["spam.csv"]


def test_a_file_that_cannot_be_written(cli, spam):
    assert "no such folder" in cli("train", spam, "--C", "1", "--model", "nowhere/m.safetensors", code=5).output


def test_missing_file(cli):
    assert "nothing.csv" in cli("train", "nothing.csv", code=5).output
    told = json.loads(cli("train", "nothing.csv", "--json", code=5).stdout)
    assert "nothing.csv" in told["error"]["message"]


def test_demo(cli, tmp_path):
    told = json.loads(cli("demo", "--output", "out", "--json").stdout)
    assert told["certificate"]["outcome"] == "PROVEN"
    assert told["test"]["error"] < 0.1
    assert told["separable"] is True
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["breast_cancer.safetensors", "report.html"]


SLOW_FIT = """
import numpy as np, sys
X = np.random.default_rng(0).normal(size=(4000, 40))
np.savez("rows.npz", X=X, y=X[:, 0] + np.random.default_rng(1).normal(size=4000) > 0)
"""


def test_a_terminal_sees_a_bar_with_the_gap(tmp_path):
    subprocess.run([sys.executable, "-c", SLOW_FIT], cwd=tmp_path, check=True, timeout=60)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "maxmargin.cli", "train", "rows.npz", "--C", "0.1,1", "--loss", "hinge"]
    child = subprocess.Popen(command, cwd=tmp_path, stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    seen = b""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    assert child.wait(timeout=60) == 0
    text = seen.decode()
    assert "cross-validation" in text
    assert "gap " in text

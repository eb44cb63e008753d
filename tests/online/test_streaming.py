"""Rows that come in parts, from files, and across a killed process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import maxmargin as mm
from maxmargin import DataError
from tests.online.oracles import mixed

SETTINGS = {"shuffle": False}
ONCE = [
    mm.Perceptron(max_iter=1, tol=None, **SETTINGS),
    mm.Perceptron(max_iter=1, tol=None, average=True, margin=0.3, rho=0.01, eta0=0.5, **SETTINGS),
    mm.Perceptron(max_iter=1, tol=None, bias="radius", radius=5.0, schedule="inverse", **SETTINGS),
    mm.Perceptron(max_iter=1, tol=None, schedule="performance", **SETTINGS),
    mm.MulticlassPerceptron(max_iter=1, tol=None, average=True, **SETTINGS),
    mm.VotedPerceptron(max_iter=1, **SETTINGS),
    mm.PocketPerceptron(rule="run", max_iter=1, **SETTINGS),
    mm.Relaxation(max_iter=1, tol=None, **SETTINGS),
    mm.BalancedWinnow(base=1.1, max_iter=1, tol=None, **SETTINGS),
    mm.Winnow(base=1.1, threshold=2.0, max_iter=1, tol=None, **SETTINGS),
    mm.OnlineSVC(max_iter=1, average=True, **SETTINGS),
    mm.OnlineSVC(max_iter=1, loss="logistic", rho=0.4, schedule="constant", eta0=0.7, **SETTINGS),
    mm.OnlineSVR(max_iter=1, **SETTINGS),
    mm.OnlineSVR(max_iter=1, penalty="l1", loss="squared_tube", eta0=0.01, **SETTINGS),
    mm.Adaline(eta0=0.01, max_iter=1, **SETTINGS),
    mm.AdalineRegressor(eta0=0.01, max_iter=1, **SETTINGS),
    mm.OjaRule(eta0=0.01, center=False, max_iter=1, **SETTINGS),
    mm.HebbRule(eta0=0.001, center=False, max_iter=1, **SETTINGS),
]


def weights(machine):
    name = "components_" if hasattr(machine, "components_") else "coef_"
    return getattr(machine, name), getattr(machine, "intercept_", 0.0)


def part(machine, X, y, first):
    if hasattr(machine, "decision_function") and first:
        return machine.partial_fit(X, y, classes=np.unique([0, 1, 2]) if y.max() > 1 else [0, 1])
    return machine.partial_fit(X, y)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("machine", ONCE, ids=lambda m: str(m)[:50])
def test_any_split_into_chunks_gives_the_same_bits(machine, layout):
    from sklearn.base import clone

    if isinstance(machine, mm.OjaRule | mm.HebbRule) and layout is sp.csr_array:
        pytest.skip("these rules centre, and take no sparse rows")
    rng = np.random.default_rng(0)
    X, y = mixed(rng, 500, 6)
    X, y = layout(np.abs(X) / np.abs(X).max() * (rng.random((500, 6)) < 0.6)), (y > 0).astype(int)
    whole = clone(machine).fit(X, y)
    for sizes in ([500], [1] * 20 + [480], [123, 77, 300], [250, 250]):
        chunked, begin = clone(machine), 0
        for size in sizes:
            chunked = part(chunked, X[begin : begin + size], y[begin : begin + size], begin == 0)
            begin += size
        assert np.array_equal(weights(chunked)[0], weights(whole)[0])
        assert np.array_equal(weights(chunked)[1], weights(whole)[1])
        assert chunked.n_updates_ == whole.n_updates_
        assert chunked.t_ == 500


def test_partial_fit_has_scikit_learns_semantics_of_classes():
    machine = mm.Perceptron()
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        machine.partial_fit([[1.0]], [0])
    machine.partial_fit([[1.0], [2.0]], ["a", "a"], classes=["c", "a", "b"])  # one class is enough for a part
    assert machine.classes_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="is not the same as on last call"):
        machine.partial_fit([[1.0]], ["a"], classes=["a", "b"])
    with pytest.raises(ValueError, match="which is none of the classes"):
        machine.partial_fit([[1.0]], ["d"])
    with pytest.raises(ValueError, match="at least two labels"):
        mm.Perceptron().partial_fit([[1.0]], [0], classes=[0])
    with pytest.raises(ValueError, match="radius"):
        mm.Perceptron(bias="radius").partial_fit([[1.0]], [0], classes=[0, 1])
    assert not hasattr(mm.Perceptron(batch_size="all"), "partial_fit")


def write(folder, kind, X, y):
    path = folder / f"rows.{kind}"
    if kind == "svm":
        dump_svmlight_file(X, y, str(path), zero_based=False)
    else:
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet

        table = pa.table({**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "target": y})
        if kind == "csv":
            pyarrow.csv.write_csv(table, path)
        else:
            pyarrow.parquet.write_table(table, path, row_group_size=500)
    return path


@pytest.mark.parametrize("kind", ["svm", "csv", "parquet"])
def test_a_file_is_as_good_as_arrays(tmp_path, kind):
    X, y = mixed(np.random.default_rng(1), 3000, 5)
    X = np.round(X, 6)
    path = write(tmp_path, kind, X, y)
    options = {} if kind == "svm" else {"target": "target"}
    machine = mm.Perceptron(shuffle=False, average=True, bias="radius")
    machine.fit_stream(path, n_passes=3, batch_bytes=20_000, **options)
    whole = mm.Perceptron(shuffle=False, average=True, bias="radius", tol=None, max_iter=3).fit(X, y)
    np.testing.assert_allclose(machine.coef_, whole.coef_, rtol=1e-12)
    assert machine.mistakes_per_pass_.tolist() == whole.mistakes_per_pass_.tolist()
    assert machine.classes_.tolist() == [-1, 1]
    assert machine.n_iter_ == 3
    regression = mm.OnlineSVR(shuffle=False).fit_stream(path, **options)
    np.testing.assert_allclose(regression.coef_, mm.OnlineSVR(shuffle=False, max_iter=1).fit(X, y).coef_)


def test_iterators_lists_and_functions_of_batches():
    X, y = mixed(np.random.default_rng(2), 300, 3)
    batches = [(X[i : i + 50], y[i : i + 50]) for i in range(0, 300, 50)]
    whole = mm.OnlineSVC(max_iter=2, shuffle=False).fit(X, y)
    one = mm.OnlineSVC(shuffle=False).fit_stream(batches, classes=[-1, 1], n_passes=2)
    two = mm.OnlineSVC(shuffle=False).fit_stream(lambda: iter(batches), classes=[-1, 1], n_passes=2)
    assert np.array_equal(one.coef_, whole.coef_)
    assert np.array_equal(two.coef_, whole.coef_)
    with pytest.raises(ValueError, match="can be read once only"):
        mm.OnlineSVC().fit_stream(iter(batches), classes=[-1, 1], n_passes=2)
    with pytest.raises(mm.InputError, match="must be a pair"):
        mm.OnlineSVC().fit_stream([X], classes=[-1, 1])
    with pytest.raises(ValueError, match="classes must be passed"):
        mm.OnlineSVC().fit_stream(batches)
    with pytest.raises(ValueError, match="no rows"):
        mm.OnlineSVC().fit_stream([], classes=[-1, 1])
    with pytest.raises(mm.InputError, match="file name"):
        mm.OnlineSVC().fit_stream(7)


def test_a_stream_ends_after_a_pass_without_corrections():
    X = np.array([[-1.0], [1.0], [-2.0], [2.0]])
    machine = mm.Perceptron(shuffle=False).fit_stream([(X, [0, 1, 0, 1])], classes=[0, 1], n_passes=50)
    assert machine.n_iter_ < 5
    assert machine.mistakes_per_pass_[-1] == 0


@pytest.mark.parametrize(
    "machine",
    [
        mm.Perceptron(average=True, rho=0.01, bias="radius"),
        mm.OnlineSVC(loss="logistic"),
        mm.BalancedWinnow(),
        mm.VotedPerceptron(),
        mm.Adaline(),
        mm.OnlineSVR(penalty="l1"),
    ],
    ids=lambda m: type(m).__name__,
)
def test_a_stream_that_stops_anywhere_goes_on_as_if_it_had_not(tmp_path, machine, monkeypatch):
    from sklearn.base import clone

    X, y = mixed(np.random.default_rng(3), 1000, 4)
    X = X / np.abs(X).max()
    path = write(tmp_path, "svm", X, y)
    options = {"n_passes": 2, "batch_bytes": 4000, "checkpoint_seconds": 0.0}
    straight = clone(machine).fit_stream(path, **options)
    for stop in (1, 5, 13, 20):
        saved = tmp_path / f"{stop}.checkpoint"
        broken = clone(machine)
        calls, learn = [0], type(machine)._take

        def die(self, *arguments, calls=calls, learn=learn, stop=stop):
            calls[0] += 1
            if calls[0] == stop:
                raise SystemError("killed")
            return learn(self, *arguments)

        monkeypatch.setattr(type(machine), "_take", die)
        with pytest.raises(SystemError):
            broken.fit_stream(path, checkpoint=saved, **options)
        monkeypatch.undo()
        resumed = clone(machine).fit_stream(path, checkpoint=saved, **options)
        assert np.array_equal(resumed.coef_, straight.coef_)
        assert np.array_equal(resumed.intercept_, straight.intercept_)
        assert np.array_equal(resumed.mistakes_per_pass_, straight.mistakes_per_pass_)
        assert resumed.t_ == straight.t_ == 2000
        with pytest.warns(UserWarning, match="that of a complete fit"):
            again = clone(machine).fit_stream(path, checkpoint=saved, **options)
        assert np.array_equal(again.coef_, straight.coef_)


def test_a_killed_process_loses_at_most_the_work_since_its_checkpoint(tmp_path):
    X, y = mixed(np.random.default_rng(4), 20000, 20)
    path, saved = write(tmp_path, "svm", X, y), tmp_path / "state.checkpoint"
    code = (
        "import maxmargin as mm; mm.OnlineSVC(random_state=1)"
        f".fit_stream({str(path)!r}, n_passes=500, batch_bytes=200000, checkpoint={str(saved)!r}, checkpoint_seconds=0)"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    while not saved.exists() and process.poll() is None:
        time.sleep(0.01)
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert process.returncode == -signal.SIGKILL
    from maxmargin.online.checkpoint import Checkpoint

    machine = mm.OnlineSVC(random_state=1)
    source = {"name": path.name, "options": {"batch_bytes": "200000"}}
    done = Checkpoint(saved, machine, source).load()["pass"]
    assert machine.t_ > 0
    options = {"batch_bytes": 200000, "n_passes": done + 1}
    resumed = mm.OnlineSVC(random_state=1).fit_stream(path, checkpoint=saved, **options)
    straight = mm.OnlineSVC(random_state=1).fit_stream(path, **options)
    assert np.array_equal(resumed.coef_, straight.coef_)
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


def test_checkpoints_of_others_are_refused(tmp_path):
    batches = [(np.array([[-1.0], [1.0]]), [0, 1])]
    saved = tmp_path / "a.checkpoint"
    mm.OnlineSVC().fit_stream(batches, classes=[0, 1], checkpoint=saved)
    with pytest.raises(ValueError, match="is of another machine"):
        mm.Perceptron().fit_stream(batches, classes=[0, 1], checkpoint=saved)
    with pytest.raises(ValueError, match="is of other parameters"):
        mm.OnlineSVC(rho=0.5).fit_stream(batches, classes=[0, 1], checkpoint=saved)
    Path(saved).write_bytes(b"not a checkpoint")
    with pytest.raises(DataError, match="is not a checkpoint"):
        mm.OnlineSVC().fit_stream(batches, classes=[0, 1], checkpoint=saved)


def test_progress_goes_to_standard_error(tmp_path, capsys):
    X, y = mixed(np.random.default_rng(5), 200, 3)
    path = write(tmp_path, "svm", X, y)
    mm.Perceptron().fit_stream(path, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "rows.svm" in captured.err


def test_a_time_limit_ends_a_stream_which_then_goes_on(tmp_path):
    X, y = mixed(np.random.default_rng(6), 400, 3)
    y = (y > 0).astype(int)
    batches = [(X[i : i + 50], y[i : i + 50]) for i in range(0, 400, 50)]
    saved = tmp_path / "a.checkpoint"
    options = {"classes": [0, 1], "n_passes": 3, "checkpoint": saved}

    def machine(limit=None):
        return mm.OnlineSVC(random_state=1, max_seconds=limit)

    with pytest.warns(mm.ConvergenceWarning, match="was reached in pass 1, after 50 rows; call it again"):
        cut = machine(1e-9).fit_stream(batches, **options)
    assert (cut.t_, cut.n_iter_) == (50, 1)
    resumed = machine().fit_stream(batches, **options)
    straight = machine().fit_stream(batches, classes=[0, 1], n_passes=3)
    assert np.array_equal(resumed.coef_, straight.coef_)
    assert np.array_equal(resumed.mistakes_per_pass_, straight.mistakes_per_pass_)


def test_parts_add_to_the_path():
    X, y = mixed(np.random.default_rng(7), 60, 2)
    whole = mm.Perceptron(shuffle=False, max_iter=1, tol=None, trace=True).fit(X, y)
    parts = mm.Perceptron(shuffle=False, trace=True)
    for rows in np.array_split(np.arange(60), 4):
        parts.partial_fit(X[rows], y[rows], classes=np.unique(y))
    assert len(parts.trace_) == parts.n_updates_
    assert np.array_equal(parts.trace_.coef, whole.trace_.coef)
    assert set(parts.trace_.passes) <= {0, 1, 2, 3}

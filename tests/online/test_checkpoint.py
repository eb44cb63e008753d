"""Checkpoints: damage is noticed, nothing foreign gets into a machine, and what was read must still be there."""

import gzip
import io
import json
import os

import numpy as np
import pytest

import maxmargin as mm
from maxmargin import DataError
from maxmargin.data import tensors
from maxmargin.online.checkpoint import FORMAT, FORMAT_VERSION
from tests.online.oracles import mixed

X, Y = mixed(np.random.default_rng(0), 600, 4)
X, Y = np.round(X / np.abs(X).max(), 4), (Y > 0).astype(int)
BATCHES = [(X[i : i + 100], Y[i : i + 100]) for i in range(0, 600, 100)]
MACHINES = [
    mm.Perceptron(average=True, rho=0.01),
    mm.OnlineSVC(loss="logistic"),
    mm.BalancedWinnow(),
    mm.Winnow(),
    mm.VotedPerceptron(),
    mm.PocketPerceptron(rule="run"),
    mm.MulticlassPerceptron(average=True),
    mm.Adaline(),
    mm.OnlineSVR(penalty="l1"),
    mm.OjaRule(center=False),
]


def fitted(machine, source, saved, **options):
    """A machine that has learned and saved a checkpoint after every batch."""
    from sklearn.base import clone

    if hasattr(type(machine), "decision_function") and not isinstance(source, str | os.PathLike):
        options["classes"] = [0, 1]
    return clone(machine).fit_stream(source, checkpoint=saved, checkpoint_seconds=0.0, **options)


def rows_for(machine):
    return [(np.abs(X), y) for X, y in BATCHES] if isinstance(machine, mm.Winnow) else BATCHES


def changed(saved, change):
    """A checkpoint with other content and a checksum that fits."""
    blob = saved.read_bytes()
    opened = tensors.open_tensors(io.BytesIO(blob), FORMAT, FORMAT_VERSION, "checkpoint")
    document, arrays = opened.header.document, opened.arrays()
    change(document, arrays)
    saved.write_bytes(tensors.to_bytes(json.dumps(document), arrays, FORMAT, FORMAT_VERSION))


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: type(m).__name__)
def test_every_machine_goes_on_from_its_checkpoint(machine, tmp_path):
    batches, saved = rows_for(machine), tmp_path / "c"
    straight = fitted(machine, batches, tmp_path / "other", n_passes=2)
    fitted(machine, batches, saved)
    went_on = fitted(machine, batches, saved, n_passes=2)
    name = "components_" if hasattr(straight, "components_") else "coef_"
    assert np.array_equal(getattr(went_on, name), getattr(straight, name))


@pytest.mark.parametrize("machine", [MACHINES[0], MACHINES[4]], ids=lambda m: type(m).__name__)
def test_every_flipped_bit_is_noticed(machine, tmp_path):
    saved = tmp_path / "c"
    fitted(machine, BATCHES, saved)
    blob = saved.read_bytes()
    header = 8 + int.from_bytes(blob[:8], "little")
    rng = np.random.default_rng(0)
    places = [*rng.choice(header, 150, replace=False), *rng.choice(np.arange(header, len(blob)), 150)]
    for place in places:
        damaged = bytearray(blob)
        damaged[place] ^= 1 << rng.integers(8)
        saved.write_bytes(damaged)
        try:
            fitted(machine, BATCHES, saved, n_passes=2)
        except DataError:
            continue
        assert blob[place : place + 1] == b" "  # the padding of the header carries no meaning
    saved.write_bytes(blob)
    fitted(machine, BATCHES, saved, n_passes=2)


@pytest.mark.parametrize("size", [0, 7, 100, -1])
def test_a_cut_checkpoint_is_refused(size, tmp_path):
    saved = tmp_path / "c"
    fitted(MACHINES[0], BATCHES, saved)
    saved.write_bytes(saved.read_bytes()[:size])
    with pytest.raises(DataError, match=r"not a checkpoint of this version, or it is damaged.*delete it"):
        fitted(MACHINES[0], BATCHES, saved)


FORGERIES = {
    "method": lambda d, a: d["attributes"].update(partial_fit=1.0),
    "parameter": lambda d, a: d["attributes"].update(max_iter=3),
    "another machine's": lambda d, a: d["attributes"].update(_log_base_now=1.0),
    "text": lambda d, a: d["attributes"].update(_gain_now="x"),
    "truth value": lambda d, a: d["attributes"].update(_n_calls=True),
    "fraction": lambda d, a: d["attributes"].update(_n_calls=1.5),
    "columns": lambda d, a: d["attributes"].update(n_features_in_=5),
    "no columns": lambda d, a: d["attributes"].pop("n_features_in_"),
    "number": lambda d, a: d["numbers"][0].update(run=1.0),
    "number as text": lambda d, a: d["numbers"][0].update(b="1"),
    "machines": lambda d, a: d["numbers"].append({}),
    "array": lambda d, a: a.update({"0.other": np.zeros(4)}),
    "array of nobody": lambda d, a: a.update({"7.v": np.zeros(4)}),
    "array without place": lambda d, a: a.update({"v": np.zeros(4)}),
    "no array": lambda d, a: a.pop("0.sum"),
    "shape": lambda d, a: a.update({"0.v": np.zeros(3)}),
    "type": lambda d, a: a.update({"0.v": np.zeros(4, dtype=np.int64)}),
    "classes": lambda d, a: d.update(classes=[0]),
    "no classes": lambda d, a: d.update(classes=None),
    "classes of objects": lambda d, a: d.update(class_type="O"),
    "no type": lambda d, a: d.update(class_type="<q9"),
    "names": lambda d, a: d.update(names=["a"]),
    "place": lambda d, a: d["place"].pop("pass"),
    "pass": lambda d, a: d["place"].update({"pass": "x"}),
    "totals": lambda d, a: d["place"].update(totals=[[[1]]]),
    "seal": lambda d, a: d["place"].update(seal={"bytes": -1, "sha256": ""}),
    "missing": lambda d, a: d.pop("names"),
    "list": lambda d, a: d.update(numbers=[1]),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_nothing_foreign_gets_into_a_machine(name, tmp_path):
    saved = tmp_path / "c"
    fitted(MACHINES[0], BATCHES, saved)
    changed(saved, FORGERIES[name])
    machine = mm.Perceptron(average=True, rho=0.01)
    with pytest.raises(ValueError, match="delete it"):
        machine.fit_stream(BATCHES, classes=[0, 1], checkpoint=saved, n_passes=2)
    assert not hasattr(machine, "_memories")
    assert machine.get_params() == mm.Perceptron(average=True, rho=0.01).get_params()
    assert not [name for name in vars(machine) if name.endswith("_") or name in machine._kept]


def test_a_machine_that_diverged_is_saved_and_loaded(tmp_path):
    saved = tmp_path / "c"
    fitted(MACHINES[0], BATCHES, saved)
    changed(saved, lambda document, arrays: document["numbers"][0].update(b="inf"))
    machine = mm.Perceptron(average=True, rho=0.01)
    with pytest.warns(UserWarning, match="complete fit"):
        machine.fit_stream(BATCHES, classes=[0, 1], checkpoint=saved)
    assert machine._memories[0].numbers["b"] == np.inf


# --- what was read --------------------------------------------------------------------------------------------------


def text_of(kind, rows, labels):
    if kind.startswith("svm"):
        lines = [
            " ".join([str(y), *(f"{j + 1}:{v}" for j, v in enumerate(x))]) for x, y in zip(rows, labels, strict=True)
        ]
    else:
        lines = [",".join(map(str, [*x, y])) for x, y in zip(rows, labels, strict=True)]
    return ("\n".join(lines) + "\n").encode()


def write(path, kind, rows, labels):
    if kind in ("parquet", "arrow", "stream", "npz"):
        import pyarrow as pa
        import pyarrow.parquet

        table = pa.table({**{f"x{j}": rows[:, j] for j in range(4)}, "label": labels})
        if kind == "parquet":
            pyarrow.parquet.write_table(table, path, row_group_size=50)
        elif kind == "npz":
            np.savez(path, X=rows, y=labels)
        else:
            new = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
            with new(str(path), table.schema) as writer:
                writer.write_table(table, max_chunksize=50)
        return
    header = b"a,b,c,d,label\n" if kind.startswith("csv") else b""
    content = header + text_of(kind, rows, labels)
    path.write_bytes(gzip.compress(content, mtime=0) if kind.endswith("gz") else content)


KINDS = {"svm": ".svm", "csv": ".csv", "svm gz": ".svm.gz", "parquet": ".parquet", "arrow": ".arrow",
         "stream": ".arrow", "npz": ".npz"}  # fmt: skip


def stopped(machine, path, saved, monkeypatch, stop=3, **options):
    """The machine as a process that was killed left it: the checkpoint is of some batches in the first pass."""
    calls, learn = [0], mm.Perceptron._take

    def die(self, *arguments):
        calls[0] += 1
        if calls[0] == stop:
            raise SystemError("killed")
        return learn(self, *arguments)

    monkeypatch.setattr(mm.Perceptron, "_take", die)
    with pytest.raises(SystemError):
        fitted(machine, path, saved, batch_rows=100, **options)
    monkeypatch.undo()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("when", ["in the first pass", "in the second pass", "between passes", "complete"])
def test_a_source_whose_rows_changed_is_refused(kind, when, tmp_path, monkeypatch):
    path, saved = tmp_path / f"rows{KINDS[kind]}", tmp_path / "c"
    write(path, kind, X, Y)
    machine, n_passes = mm.Perceptron(shuffle=False, tol=None), 2
    if when == "complete":
        n_passes = 1
        fitted(machine, path, saved, batch_rows=100)
    else:
        stop = {"in the first pass": 4, "in the second pass": 9, "between passes": 7}[when]
        stopped(machine, path, saved, monkeypatch, stop, n_passes=2)
    before, other = path.stat().st_size, X.copy()
    other[0, 0], other[1, 0] = X[1, 0], X[0, 0]  # the same size, if digits are not packed
    write(path, kind, other, Y)
    assert kind in ("svm gz", "parquet") or path.stat().st_size == before
    with pytest.raises(DataError, match=r"not those that were read before|it was cut") as caught:
        fitted(machine, path, saved, batch_rows=100, n_passes=n_passes)
    assert "delete the checkpoint" in str(caught.value)
    write(path, kind, X, Y)
    fitted(machine, path, saved, batch_rows=100, n_passes=2)


@pytest.mark.parametrize("kind", ["svm", "csv", "svm gz"])
@pytest.mark.parametrize("stop", [3, 6, 9])
def test_a_file_may_grow(kind, stop, tmp_path, monkeypatch):
    path, saved = tmp_path / f"rows{KINDS[kind]}", tmp_path / "c"
    write(path, kind, X[:500], Y[:500])
    machine = mm.Perceptron(shuffle=False, tol=None, average=True)
    stopped(machine, path, saved, monkeypatch, stop, n_passes=2)
    more = text_of(kind, X[500:], Y[500:])
    with path.open("ab") as file:
        file.write(gzip.compress(more) if kind.endswith("gz") else more)
    went_on = fitted(machine, path, saved, batch_rows=100, n_passes=2)
    first = np.arange(600) if stop < 6 else np.arange(500)
    expected = mm.Perceptron(shuffle=False, tol=None, average=True)
    for rows in (first, np.arange(600)):
        expected.partial_fit(X[rows], Y[rows], classes=[0, 1])
    assert np.array_equal(went_on.coef_, expected.coef_)
    assert went_on.t_ == len(first) + 600


def killed_at_the_end_of_a_pass(machine, source, saved, monkeypatch, **options):
    """As a process that was killed behind the last batch, before the pass was counted."""
    from maxmargin.online.stream import _Run

    def die(self):
        raise SystemError("killed")

    monkeypatch.setattr(_Run, "_count", die)
    with pytest.raises(SystemError):
        fitted(machine, source, saved, **options)
    monkeypatch.undo()


def test_a_last_line_that_goes_on_is_refused(tmp_path, monkeypatch):
    path, saved = tmp_path / "rows.svm", tmp_path / "c"
    path.write_bytes(text_of("svm", X, Y)[:-1])
    machine = mm.Perceptron(shuffle=False, tol=None)
    killed_at_the_end_of_a_pass(machine, path, saved, monkeypatch, batch_rows=100)
    with path.open("ab") as file:
        file.write(b"5\n")
    with pytest.raises(DataError, match="line 600: the last line had no line end when it was read"):
        fitted(machine, path, saved, batch_rows=100)


@pytest.mark.parametrize("kind", [*KINDS, "batches"])
def test_a_pass_that_only_had_to_be_counted(kind, tmp_path, monkeypatch):
    path, saved = tmp_path / f"rows{KINDS.get(kind, '')}", tmp_path / "c"
    machine, options = mm.Perceptron(shuffle=False, tol=None), {}
    if kind != "batches":
        write(path, kind, X, Y)
        options = {"batch_rows": 100}
    source = BATCHES if kind == "batches" else path
    killed_at_the_end_of_a_pass(machine, source, saved, monkeypatch, **options)
    assert fitted(machine, source, saved, **options).t_ == 600
    assert fitted(machine, source, saved, n_passes=2, **options).t_ == 1200


def test_a_file_that_was_cut_is_refused(tmp_path, monkeypatch):
    path, saved = tmp_path / "rows.svm", tmp_path / "c"
    write(path, "svm", X, Y)
    machine = mm.Perceptron(shuffle=False, tol=None)
    stopped(machine, path, saved, monkeypatch, 4)
    os.truncate(path, len(text_of("svm", X[:200], Y[:200])))
    with pytest.raises(DataError, match=r"but .* of it were read before: it was cut"):
        fitted(machine, path, saved, batch_rows=100)


@pytest.mark.parametrize("source", [list, lambda batches: lambda: iter(batches), iter])
def test_batches_that_changed_are_refused(source, tmp_path, monkeypatch):
    saved, machine = tmp_path / "c", mm.Perceptron(shuffle=False, tol=None)
    calls, learn = [0], mm.Perceptron._take

    def die(self, *arguments):
        calls[0] += 1
        if calls[0] == 4:
            raise SystemError("killed")
        return learn(self, *arguments)

    monkeypatch.setattr(mm.Perceptron, "_take", die)
    with pytest.raises(SystemError):
        fitted(machine, source(BATCHES), saved)
    monkeypatch.undo()
    rows, labels = BATCHES[1]
    for other in ((-rows, labels), (rows, 1 - labels), (rows[:-1], labels[:-1])):
        batches = [BATCHES[0], other, *BATCHES[2:]]
        with pytest.raises(DataError, match=r"first 3 batches are not those of before.*delete it"):
            fitted(machine, source(batches), saved)
    with pytest.raises(DataError, match="only 2 batches"):
        fitted(machine, source(BATCHES[:2]), saved)
    went_on = fitted(machine, source([*BATCHES[:3], *reversed(BATCHES[3:])]), saved)  # the rest was never seen
    assert went_on.t_ == 600


def test_what_was_read_is_hashed_once(tmp_path, monkeypatch):
    from maxmargin.data import seal

    path = tmp_path / "rows.svm"
    write(path, "svm", X, Y)
    n_bytes, plain = [0], seal.hashlib.sha256

    class Counting:
        def __init__(self):
            self.state = plain()

        def update(self, block):
            n_bytes[0] += len(block)
            self.state.update(block)

        def hexdigest(self):
            return self.state.hexdigest()

    monkeypatch.setattr(seal.hashlib, "sha256", Counting)
    from maxmargin.online.stream import _File

    stream = _File(path, {"batch_rows": 20})
    for _ in range(3):
        for _, _, position in stream.read(None, True):
            stream.seal(position)
    assert n_bytes[0] == path.stat().st_size

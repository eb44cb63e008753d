"""Model files: everything comes back, and nothing odd gets in."""

import io
import json
import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import maxmargin
from maxmargin import InputError, LinearSVC, ModelFileError, load, save
from maxmargin.data.tensors import checksum
from maxmargin.models import from_bytes, to_bytes
from tests.conftest import tall
from tests.models.conftest import plain_model, table_model


def unpacked(blob):
    size = int.from_bytes(blob[:8], "little")
    return json.loads(blob[8 : 8 + size]), blob[8 + size :]


def packed(header, body):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def with_document(blob, change):
    """The file with a changed document and a checksum that fits, as a skilled forger would write it."""
    header, body = unpacked(blob)
    document = json.loads(header["__metadata__"]["document"])
    change(document)
    text = json.dumps(document)
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            dtype = "<i8" if entry["dtype"] == "I64" else "<f8"
            tensors[name] = np.frombuffer(body[begin:end], dtype).reshape(entry["shape"])
    header["__metadata__"] |= {"document": text, "sha256": checksum(text, tensors)}
    return packed(header, body)


def test_everything_comes_back(model):
    back = from_bytes(to_bytes(model))
    old, new = model.machine, back.machine
    assert new.get_params() == old.get_params()
    for name in ("coef_", "intercept_", "classes_", "support_", "dual_coef_"):
        np.testing.assert_array_equal(getattr(new, name), getattr(old, name))
    assert (new.n_iter_, new.n_features_in_) == (old.n_iter_, old.n_features_in_)
    for name in ("primal", "dual", "gap", "status", "solver", "reason", "seconds", "bias_interval"):
        assert getattr(new.solution_, name) == getattr(old.solution_, name)
    assert new.solution_.history == old.solution_.history
    assert back.encoding == model.encoding
    assert back.names == model.names
    for name in ("n_rows", "digest", "source", "target", "positive"):
        assert getattr(back.training, name) == getattr(model.training, name)
    assert to_bytes(back) == to_bytes(model)


def test_answers_are_the_same_bits(model):
    X = np.random.default_rng(0).normal(size=(50, model.n_features))
    back = from_bytes(to_bytes(model))
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))


def test_without_dual_point():
    model = plain_model()
    small = from_bytes(to_bytes(model, dual=False))
    assert not small.has_dual
    assert not hasattr(small.machine, "support_")
    assert len(to_bytes(model, dual=False)) < len(to_bytes(model))
    X, _ = tall(40, 3)
    np.testing.assert_array_equal(small.predict(X), model.predict(X))
    assert to_bytes(small) == to_bytes(model, dual=False)


def test_save_and_load_a_machine_with_names(tmp_path):
    X, y = tall(40, 3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    machine = LinearSVC().fit(frame, y)
    save(machine, tmp_path / "m.safetensors", data=(X, y))
    back = load(tmp_path / "m.safetensors")
    assert back.feature_names == ("a", "b", "c")
    np.testing.assert_array_equal(back.machine.predict(frame), machine.predict(frame))
    assert back.training.digest == maxmargin.data.digest(X, y)


def test_sparsified_and_warm_started_machines_can_be_saved(tmp_path):
    X, y = tall(60, 4)
    machine = LinearSVC(warm_start=True, C=2.0).fit(sp.csr_array(X), y).sparsify()
    save(machine, tmp_path / "m.safetensors")
    back = load(tmp_path / "m.safetensors").machine
    np.testing.assert_array_equal(back.coef_, machine.densify().coef_)
    back.fit(X, y)  # continues from the loaded dual point
    np.testing.assert_allclose(back.coef_, machine.coef_, rtol=1e-6)


def test_what_cannot_be_saved_says_so(tmp_path):
    X, y = tall(20, 2)
    with pytest.raises(InputError, match="not fitted"):
        save(LinearSVC(), tmp_path / "m")
    with pytest.raises(InputError, match="random_state"):
        save(LinearSVC(random_state=np.random.RandomState(0)).fit(X, y), tmp_path / "m")
    with pytest.raises(InputError, match="training rows"):
        save(LinearSVC().fit(X, y), tmp_path / "m", data=(X[:5], y[:5]))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cut", [0, 4, 8, 50, -1, -100])
def test_truncated_files(cut):
    with pytest.raises(ModelFileError):
        from_bytes(to_bytes(plain_model())[:cut], "cut")


def test_every_changed_byte_is_noticed():
    blob = to_bytes(plain_model())
    generator = np.random.default_rng(0)
    for place in generator.choice(len(blob), 600, replace=False):
        changed = bytearray(blob)
        changed[place] ^= 1 << generator.integers(8)
        try:
            back = from_bytes(bytes(changed), "changed")
        except ModelFileError:
            continue
        # Only what carries no meaning may change: the padding of the header, and its spaces.
        assert to_bytes(back) == blob


DOCUMENT_FORGERIES = {
    "machine": (lambda d: d.update(machine="SVC"), "machine"),
    "missing": (lambda d: d.pop("classes"), "classes"),
    "left over": (lambda d: d.update(more=1), "more"),
    "params": (lambda d: d["params"].update(C=-1.0), "params"),
    "params type": (lambda d: d["params"].update(tol="x"), "params"),
    "flag": (lambda d: d["params"].update(fit_intercept=3), "fit_intercept"),
    "unknown param": (lambda d: d["params"].update(D=1), "D"),
    "loss": (lambda d: d["params"].update(loss="l1"), "loss"),
    "classes": (lambda d: d["classes"].update(values=["yes", "no"]), "classes"),
    "class kinds": (lambda d: d["classes"].update(values=["no", 1]), "classes"),
    "one class": (lambda d: d["classes"].update(values=["no"]), "classes"),
    "status": (lambda d: d["solution"].update(status="FINE"), "status"),
    "huge": (lambda d: d["solution"].update(primal=10**400), "primal"),
    "history": (lambda d: d["solution"].update(history=[[1]]), "history"),
    "interval": (lambda d: d["solution"].update(bias_interval=[0]), "bias_interval"),
    "rows": (lambda d: d["training"].update(n_rows=41), "dual"),
    "names": (lambda d: d.update(feature_names=["a"]), "feature_names"),
    "negative": (lambda d: d["training"].update(n_rows=-1), "n_rows"),
    "truth for number": (lambda d: d["solution"].update(primal=True), "primal"),
}


@pytest.mark.parametrize("name", DOCUMENT_FORGERIES)
def test_forged_documents(name):
    change, place = DOCUMENT_FORGERIES[name]
    with pytest.raises(ModelFileError, match=place):
        from_bytes(with_document(to_bytes(plain_model()), change))


def forged_tensor(name, dtype=None, shape=None):
    def change(header, body):
        entry = header[name]
        entry["dtype"] = dtype or entry["dtype"]
        entry["shape"] = shape or entry["shape"]
        return body

    return change


def not_a_number(header, body):
    begin, _ = header["coef"]["data_offsets"]
    return body[:begin] + np.float64(np.nan).tobytes() + body[begin + 8 :]


def exchanged(header, body):
    """Two arrays of the same shape in each other's place."""
    body = bytearray(body)
    for name in ("coef", "dual"):
        begin, end = header[name]["data_offsets"]
        body[begin:end] = np.frombuffer(body[begin:end], "<f8")[::-1].tobytes()
    return bytes(body)


def hole(header, body):
    for entry in header.values():
        if "data_offsets" in entry:
            entry["data_offsets"] = [place + 8 for place in entry["data_offsets"]]
    return bytes(8) + body


HEADER_FORGERIES = {
    "dtype": (forged_tensor("coef", dtype="F32"), "coef"),
    "odd dtype": (forged_tensor("coef", dtype="F8_E4M3"), "coef"),
    "integers": (forged_tensor("coef", dtype="I64"), "coef"),
    "shape": (forged_tensor("dual", shape=[2, 20]), "dual"),
    "size": (forged_tensor("dual", shape=[41]), "header"),
    "huge shape": (forged_tensor("dual", shape=[2**62, 2**62]), "header"),
    "nan": (not_a_number, "checksum"),
    "exchanged": (exchanged, "checksum"),
    "hole": (hole, "position of the tensor"),
    "format": (lambda h, b: h["__metadata__"].update(format="other") or b, "not written by maxmargin"),
    "version": (lambda h, b: h["__metadata__"].update(format_version="2") or b, "format '2'"),
    "no metadata": (lambda h, b: h.pop("__metadata__") and b, "metadata"),
    "text": (lambda h, b: h["__metadata__"].update(document="[") or b, "document.*JSON"),
    "other text": (
        lambda h, b: h["__metadata__"].update(document=h["__metadata__"]["document"] + " ") or b,
        "checksum",
    ),
}


@pytest.mark.parametrize("name", HEADER_FORGERIES)
def test_forged_headers(name):
    change, place = HEADER_FORGERIES[name]
    header, body = unpacked(to_bytes(plain_model()))
    body = change(header, body)
    with pytest.raises(ModelFileError, match=place):
        from_bytes(packed(header, body))


def test_numbers_that_are_none_are_refused_even_if_the_checksum_fits():
    header, body = unpacked(to_bytes(plain_model()))
    body = not_a_number(header, body)
    with pytest.raises(ModelFileError, match=r"coef.*finite"):
        from_bytes(with_document(packed(header, body), lambda document: None))


class Counted(io.FileIO):
    """A file that counts what is read of it."""

    n_read = 0

    def readinto(self, buffer):
        n_bytes = super().readinto(buffer)
        Counted.n_read += n_bytes
        return n_bytes

    def read(self, size=-1):
        content = super().read(size)
        Counted.n_read += len(content)
        return content

    def readall(self):
        content = super().readall()
        Counted.n_read += len(content)
        return content


@pytest.fixture
def counted(monkeypatch):
    """Opens files for reading so that the bytes read of them are counted, however they are opened."""
    plain = io.open

    def opened(path, mode="r", *rest, **options):
        return io.BufferedReader(Counted(path), 4096) if mode == "rb" else plain(path, mode, *rest, **options)

    for module in ("builtins", "io"):
        monkeypatch.setattr(f"{module}.open", opened)
    return Counted


HUGE = 20 << 30  # as the file's size says; on disk it takes next to nothing


def with_huge_arrays(header):
    """Arrays of many gigabytes, at places that fit the file."""
    n = (HUGE - header["intercept"]["data_offsets"][1]) // 16
    header["coef"] |= {"shape": [1, n], "data_offsets": [0, 8 * n]}
    header["dual"] |= {"shape": [n], "data_offsets": [8 * n, 16 * n]}
    header["intercept"]["data_offsets"] = [16 * n, 16 * n + 8]
    return 16 * n + 8


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("zeros", "no model file"),
        ("long header", "expected a JSON object"),
        ("foreign", "not written by maxmargin as a model file"),
        ("version", "format '2'"),
        ("tail", "sizes of the tensors are wrong"),
        ("sizes", "expected shape"),
    ],
)
def test_a_file_of_many_gigabytes_is_refused_by_its_header(kind, problem, tmp_path, counted):
    header, _ = unpacked(to_bytes(plain_model()))
    n_bytes = HUGE
    if kind == "foreign":
        header["__metadata__"] = {"format": "pt"}
    if kind == "version":
        header["__metadata__"]["format_version"] = "2"
    if kind == "sizes":
        n_bytes = with_huge_arrays(header)
    text = json.dumps(header).encode()
    head = len(text).to_bytes(8, "little") + text
    if kind == "zeros":
        head = b""
    if kind == "long header":
        head = (90_000_000).to_bytes(8, "little")
    path = tmp_path / "m.safetensors"
    path.write_bytes(head)
    os.truncate(path, n_bytes if kind != "sizes" else len(head) + n_bytes)
    counted.n_read = 0
    with pytest.raises(ModelFileError, match=problem):
        load(path)
    assert counted.n_read <= len(head) + 3 * 4096


def test_the_library_of_the_format_reads_our_files(tmp_path):
    from safetensors import safe_open
    from safetensors.numpy import load as unpack

    model = plain_model()
    blob = to_bytes(model)
    tensors = unpack(blob)
    assert sorted(tensors) == ["coef", "dual", "intercept"]
    np.testing.assert_array_equal(tensors["coef"], model.machine.coef_)
    (tmp_path / "m.safetensors").write_bytes(blob)
    with safe_open(tmp_path / "m.safetensors", framework="numpy") as file:
        assert file.metadata()["format"] == "maxmargin"


def test_a_good_file_is_read_once(tmp_path, counted):
    model = plain_model()
    path = tmp_path / "m.safetensors"
    path.write_bytes(to_bytes(model))
    counted.n_read = 0
    assert to_bytes(load(path)) == to_bytes(model)
    assert counted.n_read <= 2 * path.stat().st_size


def test_a_file_that_shrinks_while_it_is_read(tmp_path, monkeypatch):
    from maxmargin.data import tensors

    path = tmp_path / "m.safetensors"
    path.write_bytes(to_bytes(plain_model()))
    arrays = tensors.TensorFile.arrays

    def cut(self):
        os.truncate(path, 100)
        return arrays(self)

    monkeypatch.setattr(tensors.TensorFile, "arrays", cut)
    with pytest.raises(ModelFileError, match=r"m\.safetensors"):
        load(path)


def test_duplicate_keys_are_refused():
    blob = to_bytes(plain_model())
    size = int.from_bytes(blob[:8], "little")
    text = blob[8 : 8 + size].decode().replace('"coef":', '"coef":{},"coef":', 1).encode()
    with pytest.raises(ModelFileError, match="twice"):
        from_bytes(len(text).to_bytes(8, "little") + text + blob[8 + size :])


def test_deeply_nested_json_is_an_error_not_a_crash():
    text = b"[" * 200000
    with pytest.raises(ModelFileError, match="JSON"):
        from_bytes(len(text).to_bytes(8, "little") + text)


def test_table_models_find_columns_by_name():
    from maxmargin.data.csv import parse_csv

    model = table_model()
    rows = parse_csv(b"weight,note,town,age\n5,x,Oslo,30\n7,y,Paris,41\n", "new.csv")
    X = model.encoded(rows)
    np.testing.assert_array_equal(X, [[30, 0, 1, 0, 5], [41, 0, 0, 0, 7]])
    with pytest.raises(InputError, match="'town'"):
        model.encoded(parse_csv(b"weight,age\n5,30\n", "new.csv"))


def test_sparse_rows_of_another_width():
    model = plain_model()
    from maxmargin.data import Table

    wide = Table("t.svm", sp.csr_array(np.eye(5)))
    narrow = Table("t.svm", sp.csr_array(np.eye(2)))
    np.testing.assert_allclose(
        model.decision_function(wide)[:3], model.machine.coef_[0] + model.machine.intercept_, rtol=1e-12
    )
    assert len(model.predict(narrow)) == 2
    with pytest.raises(InputError, match="3 columns"):
        model.predict(Table("t.npz", np.eye(5)))


# --- pickle ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["pickle", "joblib"])
def test_pickles_work_and_refuse_other_major_versions(tool, tmp_path):
    X, y = tall(40, 3)
    machine = LinearSVC().fit(X, y)
    if tool == "pickle":
        back = pickle.loads(pickle.dumps(machine))
    else:
        joblib.dump(machine, tmp_path / "m.joblib")
        back = joblib.load(tmp_path / "m.joblib")
    np.testing.assert_array_equal(back.decision_function(X), machine.decision_function(X))
    assert vars(back).keys() == vars(machine).keys()
    state = machine.__getstate__()
    state["_maxmargin_version"] = "7.1.0"
    with pytest.raises(ValueError, match=r"pickled by maxmargin 7\.1\.0.*maxmargin\.save"):
        LinearSVC().__setstate__(state)
    del state["_maxmargin_version"]
    with pytest.raises(ValueError, match="unknown"):
        LinearSVC().__setstate__(state)


# --- whole or not at all --------------------------------------------------------------------------------------------

KEEPS_SAVING = """
import sys
import numpy as np
from maxmargin import LinearSVC, save
X = np.random.default_rng(0).normal(size=(2000, 300))
machine = LinearSVC(C=0.01).fit(X, X[:, 0] > 0)
print("ready", flush=True)
while True:
    save(machine, sys.argv[1])
"""


def test_kill_leaves_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "model.safetensors"
    save(plain_model(), path)
    for delay in (0.02, 0.005, 0.05):
        child = subprocess.Popen([sys.executable, "-c", KEEPS_SAVING, str(path)], stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"ready\n"
        try:
            child.wait(delay)
        except subprocess.TimeoutExpired:
            child.kill()
        child.wait()
        child.stdout.close()
        load(path)
        assert [p.name for p in tmp_path.iterdir() if not p.name.endswith(".part")] == ["model.safetensors"]


FULL_DISK = """
import resource, signal, sys
from maxmargin import LinearSVC, save
import numpy as np
X = np.random.default_rng(0).normal(size=(2000, 300))
machine = LinearSVC(C=0.01).fit(X, X[:, 0] > 0)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    save(machine, sys.argv[1])
except OSError as error:
    print("refused", error.errno)
"""


@pytest.mark.parametrize("old", [True, False])
def test_full_disk_leaves_the_old_file_or_none(tmp_path, old):
    path = tmp_path / "model.safetensors"
    if old:
        save(plain_model(), path)
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith("refused")
    assert [p.name for p in tmp_path.iterdir()] == (["model.safetensors"] if old else [])
    if old:
        load(path)

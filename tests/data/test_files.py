"""Files appear whole or not at all: after errors, a full disk, kill -9, and among threads."""

import bz2
import errno
import gzip
import json
import lzma
import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from maxmargin.data import DataError, read_table, table_from_arrays, write_table
from maxmargin.data.files import atomic_write, open_bytes, suffix_of

HAS_NAMELESS = hasattr(os, "O_TMPFILE")


@pytest.fixture(params=["nameless", "hidden name"])
def way(request, monkeypatch):
    """Both ways of writing: with a file that has no name yet, and where there is no such thing."""
    if request.param == "hidden name":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    elif not HAS_NAMELESS:
        pytest.skip("no O_TMPFILE here")
    return request.param


def write(path, content):
    with atomic_write(path) as file:
        file.write(content)


def names(folder):
    return sorted(os.listdir(folder))


def test_new_and_replaced(way, tmp_path):
    path = tmp_path / "a.txt"
    write(path, b"old")
    assert path.read_bytes() == b"old"
    write(str(path), b"new content")
    assert path.read_bytes() == b"new content"
    write(path, b"")
    assert path.read_bytes() == b""
    assert names(tmp_path) == ["a.txt"]


def test_nothing_is_seen_before_the_end(way, tmp_path):
    path = tmp_path / "a.txt"
    for old in (None, b"old"):
        with atomic_write(path) as file:
            file.write(b"x" * 100_000)
            file.flush()
            assert (path.read_bytes() if old else path.exists()) == (old or False)
            if way == "nameless":
                assert names(tmp_path) == (["a.txt"] if old else [])
        path.write_bytes(b"old")


@pytest.mark.parametrize("old", [None, b"old"])
def test_content_is_on_disk_before_it_gets_its_name(way, old, tmp_path, monkeypatch):
    path, events = tmp_path / "a.txt", []
    if old is not None:
        path.write_bytes(old)

    def noting(name, function):
        def noted(*arguments, **options):
            events.append(name)
            return function(*arguments, **options)

        return noted

    for name in ("fsync", "link", "replace"):
        monkeypatch.setattr(os, name, noting(name, getattr(os, name)))
    write(path, b"new")
    assert events[0] == events[-1] == "fsync"  # the content, and at the end the folder
    assert set(events[1:-1]) <= {"link", "replace"}
    assert events[1:-1]


@pytest.mark.parametrize("old", [None, b"old"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_an_error_in_the_body(way, old, error, tmp_path):
    path = tmp_path / "a.txt"
    if old is not None:
        path.write_bytes(old)

    def body(file):
        file.write(b"half")
        raise error("in the middle")

    with pytest.raises(error, match="in the middle"), atomic_write(path) as file:
        body(file)
    assert names(tmp_path) == ([] if old is None else ["a.txt"])
    assert old is None or path.read_bytes() == old


FULL = """
import json, os, resource, signal, sys
from maxmargin.data.files import atomic_write
path, way, limit, size, flush = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
if way == "hidden name" and hasattr(os, "O_TMPFILE"):
    del os.O_TMPFILE
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    with atomic_write(path) as file:
        for _ in range(size // 50):
            file.write(b"x" * 50)
        if flush:
            file.flush()
except OSError as error:
    print(json.dumps(error.errno))
else:
    print(json.dumps("written"))
"""


@pytest.mark.parametrize(("limit", "size", "flush"), [(100, 1000, 0), (100, 1000, 1), (20_000, 1_000_000, 0)])
def test_a_full_disk_leaves_the_old_file(way, limit, size, flush, tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    arguments = [str(path), way, str(limit), str(size), str(flush)]
    done = subprocess.run([sys.executable, "-c", FULL, *arguments], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == errno.EFBIG
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.txt"]


def test_a_device_that_is_full():
    table = table_from_arrays(np.ones((2, 2)), [1, 2])
    for kind in ("csv", "svmlight", "npz"):
        with pytest.raises(OSError, match="No space left"):
            write_table(table, "/dev/full", format=kind)


# A parent that kills its children while they write, and tells what they left. Whole content is a byte repeated;
# its length follows from the byte.
KILL = """
import json, os, random, signal, sys, time
from maxmargin.data.files import atomic_write
folder, way, fresh, n_kills = sys.argv[1], sys.argv[2], sys.argv[3] == "fresh", int(sys.argv[4])
if way == "hidden name" and hasattr(os, "O_TMPFILE"):
    del os.O_TMPFILE
def content(k):
    return bytes([k % 251]) * (20_000 + 100 * (k % 251))
def child(turn, pipe):
    for k in range(1_000_000):
        name = f"{turn}-{k}" if fresh else "target"
        with atomic_write(os.path.join(folder, name)) as file:
            for begin in range(0, len(content(k)), 4096):
                file.write(content(k)[begin:begin + 4096])
        os.write(pipe, b".")
rng = random.Random(0)
broken, strange, n_files = [], [], 0
for turn in range(n_kills):
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            child(turn, writing)
        finally:
            os._exit(1)
    os.close(writing)
    os.read(reading, 1)
    time.sleep(rng.uniform(0.0, 0.02))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(reading)
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            found = file.read()
        n_files += 1
        if not found or found != content(found[0]):
            broken.append(name)
        if name.endswith(".part"):
            strange.append(name)
        if fresh or name.endswith(".part"):
            os.unlink(os.path.join(folder, name))
print(json.dumps({"broken": broken, "strange": strange, "files": n_files}))
"""


def killed(tmp_path, way, names):
    arguments = [str(tmp_path), way, names, "40"]
    done = subprocess.run([sys.executable, "-c", KILL, *arguments], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["files"] >= 40
    return told


@pytest.mark.skipif(not HAS_NAMELESS, reason="no O_TMPFILE here")
def test_kill_9_leaves_whole_new_files_and_nothing_else(tmp_path):
    told = killed(tmp_path, "nameless", "fresh")
    assert told["broken"] == []
    assert told["strange"] == []


@pytest.mark.skipif(not HAS_NAMELESS, reason="no O_TMPFILE here")
def test_kill_9_leaves_the_old_or_the_new_file(tmp_path):
    # A name cannot be replaced without a second one: for an instant the new content, complete, has a hidden name.
    assert killed(tmp_path, "nameless", "replace")["broken"] == []


def test_kill_9_without_nameless_files(tmp_path):
    told = killed(tmp_path, "hidden name", "replace")
    assert [name for name in told["broken"] if not name.endswith(".part")] == []


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077, 0o000])
def test_a_new_file_has_the_mode_of_the_umask(way, mask, tmp_path):
    before = os.umask(mask)
    try:
        write(tmp_path / "a.txt", b"x")
        assert os.umask(mask) == mask  # not changed on the way
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o755, 0o444])
def test_a_replaced_file_keeps_its_mode(way, mode, tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    path.chmod(mode)
    with atomic_write(path) as file:
        file.write(b"new")
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600  # nobody else reads it before
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == b"new"


def test_a_link_stays_a_link(way, tmp_path):
    (tmp_path / "folder").mkdir()
    target, link, chain = tmp_path / "folder" / "a.txt", tmp_path / "link", tmp_path / "chain"
    link.symlink_to("folder/a.txt")
    chain.symlink_to("link")
    for content in (b"new", b"newer"):  # first the link leads nowhere
        write(chain, content)
        assert target.read_bytes() == content
        assert link.is_symlink()
        assert chain.is_symlink()
    assert names(tmp_path) == ["chain", "folder", "link"]
    assert names(tmp_path / "folder") == ["a.txt"]


@pytest.mark.parametrize("name", ["a" * 255, "é" * 127, "漢" * 85, " .hidden", "a\nb"])
def test_names_of_any_length(way, name, tmp_path):
    for content in (b"old", b"new"):
        write(tmp_path / name, content)
        assert (tmp_path / name).read_bytes() == content
    assert names(tmp_path) == [name]


def test_threads_that_write_the_same_file(way, tmp_path):
    path = tmp_path / "a.txt"
    errors = []

    def work(k):
        try:
            for _ in range(40):
                write(path, bytes([k]) * 30_000)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert errors == []
    content = path.read_bytes()
    assert content == content[:1] * 30_000
    assert names(tmp_path) == ["a.txt"]


def test_a_leftover_is_not_in_the_way(way, tmp_path):
    (tmp_path / f".a.txt.{os.getpid()}.part").write_bytes(b"from a killed process")
    write(tmp_path / "a.txt", b"new")
    assert (tmp_path / "a.txt").read_bytes() == b"new"


def test_errors_name_the_file_that_was_asked_for(way, tmp_path):
    for path in (tmp_path / "none" / "a.txt", tmp_path / ("x" * 256)):
        with pytest.raises(OSError) as caught, atomic_write(path):
            pass
        assert caught.value.filename == str(path)
    with pytest.raises(IsADirectoryError), atomic_write(tmp_path):
        pass
    with pytest.raises(NotADirectoryError), atomic_write("/dev/null/a.txt"):
        pass


def test_pipes_and_devices_are_written_to(tmp_path):
    write("/dev/null", b"gone")
    assert not os.path.isfile("/dev/null")
    code = "from maxmargin.data.files import atomic_write\nwith atomic_write('/dev/stdout') as f: f.write(b'through')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=100)
    assert done.stdout == b"through", done.stderr
    path, found = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    write(path, b"through")
    reader.join(30)
    assert found == [b"through"]
    assert stat.S_ISFIFO(path.stat().st_mode)


PACKERS = {".gz": gzip, ".bz2": bz2, ".xz": lzma}


@pytest.mark.parametrize("suffix", PACKERS)
def test_reading_what_is_packed(suffix, tmp_path):
    content = os.urandom(100_000) + b"a" * 100_000
    path = tmp_path / f"a.bin{suffix}"
    path.write_bytes(PACKERS[suffix].compress(content))
    with open_bytes(path) as file:
        assert file.read(10) == content[:10]
        assert file.read() == content[10:]
    for damaged in (path.read_bytes()[:-20], b"", content):
        path.write_bytes(damaged)
        if damaged:
            with pytest.raises(DataError, match="damaged"), open_bytes(path) as file:
                file.read()
    with pytest.raises(KeyError, match="of the caller"), open_bytes(path):
        raise KeyError("of the caller")


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("kind", ["csv", "svm"])
def test_a_packed_name_packs_what_is_written(suffix, kind, tmp_path):
    table = table_from_arrays(np.array([[1.5, 2.0], [0.0, 3.0]]), [1, 2])
    path = tmp_path / f"a.{kind}{suffix}"
    write_table(table, path)
    first = path.read_bytes()
    plain = PACKERS[suffix].decompress(first)
    write_table(table, tmp_path / f"b.{kind}")
    assert plain == (tmp_path / f"b.{kind}").read_bytes()
    assert read_table(path).y.tolist() == [1, 2]
    write_table(table, path)
    assert path.read_bytes() == first
    assert suffix != ".gz" or first[4:8] == bytes(4)  # no time stamp


def test_formats_that_are_packed_inside(tmp_path):
    table = table_from_arrays(np.ones((2, 2)), [1, 2])
    for kind in ("npz", "parquet", "arrow"):
        with pytest.raises(DataError, match=rf"{kind} files are packed inside and not once more.*leave the .gz off"):
            write_table(table, tmp_path / f"a.{kind}.gz")
        (tmp_path / f"b.{kind}.gz").write_bytes(gzip.compress(b"x"))
        with pytest.raises(DataError, match="unpack it"):
            read_table(tmp_path / f"b.{kind}.gz")
    assert [name for name in names(tmp_path) if name.startswith("a")] == []


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("a.csv", ".csv"),
        ("a.CSV.GZ", ".csv"),
        ("a.b.svm.xz", ".svm"),
        ("a", ""),
        ("a.gz", ""),
        (".csv", ""),
        ("a.t", ".t"),
    ],
)
def test_suffixes(name, suffix):
    assert suffix_of(name) == suffix

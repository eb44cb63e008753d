"""Files that somebody writes to, or cuts, while they are read: an error that says so, and never a dead process."""

import gzip
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from maxmargin.data import DataError, read_table
from maxmargin.data import files as opened_files
from maxmargin.data.check import check_file

N = 30_000
TEXT = {"csv": b"a,b,label\n" + b"1.5,2,yes\n2.5,4,no\n" * N, "svm": b"1 1:0.5 3:2\n-1 2:1\n" * N}

# A reader whose file is cut behind its back, at the moment that the parsing begins: what was mapped is gone then.
CUT_WHILE_PARSING = """
import os, sys
from maxmargin.data import DataError, csv, read_table
parse = csv.parse_csv
def cut_and_parse(raw, *arguments, **options):
    os.truncate(sys.argv[1], 5000)
    return parse(raw, *arguments, **options)
csv.parse_csv = cut_and_parse
print(read_table(sys.argv[1]).n_rows)
"""


def test_a_file_that_is_cut_while_it_is_parsed_does_not_end_the_process(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(TEXT["csv"])
    command = [sys.executable, "-c", CUT_WHILE_PARSING, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (0, f"{2 * N}\n"), done.stderr  # all of it was in memory already


class Interfering:
    """A file to which something happens after the first block was read of it."""

    def __init__(self, file, deed):
        self.file, self.deed = file, deed

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def _done(self, result):
        deed, self.deed = self.deed, None
        if deed is not None:
            deed()
        return result

    def read(self, size=-1):
        return self._done(self.file.read(size))

    def readinto(self, buffer):
        return self._done(self.file.readinto(memoryview(buffer)[:4096]))


def written(folder, kind):
    path = folder / f"t.{kind}"
    table = pa.table({"a": np.arange(float(N)), "label": np.arange(N) % 2})
    if kind == "npz":
        np.savez(path, X=np.zeros((N, 2)))
    elif kind == "parquet":
        pyarrow.parquet.write_table(table, path)
    elif kind == "arrow":
        pyarrow.feather.write_feather(table, str(path), compression="uncompressed")
    elif kind.endswith("gz"):
        path.write_bytes(gzip.compress(TEXT[kind[:3]], mtime=0))
    else:
        path.write_bytes(TEXT[kind])
    return path


def cut(path):
    os.truncate(path, 4000)  # inside of a line


def cut_at_a_line_end(path):
    os.truncate(path, 40)


def grow(path):
    with path.open("ab") as file:
        file.write(b"1 1:2\n")


def rewrite(path):
    content = path.read_bytes()
    path.write_bytes(content)
    os.utime(path, (1, 1))


@pytest.mark.parametrize("kind", ["csv", "svm", "csv.gz", "svm.gz", "npz", "parquet", "arrow"])
@pytest.mark.parametrize("deed", [cut, cut_at_a_line_end, grow, rewrite])
def test_a_file_that_changes_while_it_is_read(kind, deed, tmp_path, monkeypatch):
    path = written(tmp_path, kind)
    plain = open

    def interfering(name, mode):
        return Interfering(plain(name, mode), lambda: deed(path))

    monkeypatch.setattr(opened_files, "open", interfering, raising=False)
    if kind == "arrow":  # read by PyArrow's own file
        from maxmargin.data import arrow

        ipc = arrow.open_ipc
        monkeypatch.setattr(arrow, "open_ipc", lambda file: (deed(path), ipc(file))[1])
    with pytest.raises(DataError, match="the file changed while it was being read"):
        read_table(path)
    path = written(tmp_path, kind)
    assert "the file changed" in check_file(path).problems[0].what if kind != "arrow" else True


def test_a_file_that_is_replaced_is_read_to_its_end(tmp_path, monkeypatch):
    path = written(tmp_path, "svm")
    plain = open

    def replace():
        (tmp_path / "new").write_bytes(b"1 1:1\n")
        os.replace(tmp_path / "new", path)

    monkeypatch.setattr(opened_files, "open", lambda name, mode: Interfering(plain(name, mode), replace), raising=False)
    assert read_table(path).n_rows == 2 * N  # the old content is whole, and so is the new one
    assert read_table(path).n_rows == 1


def test_no_reader_maps_files(tmp_path):
    """Nothing of a file that is being read is in the memory map of the process."""
    path = written(tmp_path, "csv")
    code = (
        "import os, sys\n"
        "from maxmargin.data import csv, read_table\n"
        "parse = csv.parse_csv\n"
        "def look(*arguments, **options):\n"
        "    print(sys.argv[1] in open('/proc/self/maps').read())\n"
        "    return parse(*arguments, **options)\n"
        "csv.parse_csv = look\n"
        "read_table(sys.argv[1])\n"
    )
    if not os.path.exists("/proc/self/maps"):
        pytest.skip("the memory map is read from /proc")
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=100)
    assert done.stdout == "False\n", done.stderr

"""Files larger than a batch are read in little memory."""

import subprocess
import sys

import numpy as np
import pytest

SIZE = 120 << 20
MOST = 250  # MB beyond what the imports take: about 200 for any size of file, most of it kept by allocators
READ = """
import sys, resource
from maxmargin.data import open_batches, survey
import numpy, pyarrow.csv, pyarrow.parquet, joblib

def peak():
    # Of this process alone: ru_maxrss begins with what the parent had.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

before = peak()
n_rows = sum(len(batch.y) for batch in open_batches(sys.argv[1], **eval(sys.argv[2])))
print(n_rows, peak() - before)
"""


def repeated(path, header, rows):
    block = "".join(rows).encode()
    times = SIZE // len(block)
    with path.open("wb") as file:
        file.write(header)
        for _ in range(times):
            file.write(block)
    return times * len(rows)


def written(kind, path):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((2000, 20)).round(4)
    if kind == "csv":
        header = ",".join([*(f"c{j}" for j in range(20)), "label"]).encode() + b"\n"
        return repeated(path, header, [",".join(map(str, row)) + f",{i % 2}\n" for i, row in enumerate(values)])
    rows = [
        f"{i % 2} " + " ".join(f"{j * 7 + 1}:{v}" for j, v in enumerate(row)) + "\n" for i, row in enumerate(values)
    ]
    return repeated(path, b"", rows)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
@pytest.mark.parametrize(
    ("kind", "options"),
    [("svmlight", {"n_features": 200, "zero_based": False}), ("csv", {}), ("csv", {"batch_rows": 1000})],
)
def test_peak_of_memory(kind, options, tmp_path):
    path = tmp_path / f"t.{kind}"
    n_rows = written(kind, path)
    command = [sys.executable, "-c", READ, str(path), repr(options)]
    found, grown = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert int(found) == n_rows
    assert float(grown) < MOST

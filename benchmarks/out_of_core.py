"""Memory and time of learning from a file larger than memory should be: ``python -m benchmarks.out_of_core``.

Writes a file of the given size (a block of random rows, repeated), then trains in a child process whose peak of
resident memory is read from /proc, imports included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

CHILD = """
import json, sys, time
import maxmargin as mm
start = time.perf_counter()
machine = mm.OnlineSVC(average=True).fit_stream(sys.argv[1], **json.loads(sys.argv[2]))
seconds = time.perf_counter() - start
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
print(json.dumps({"rows": machine.t_, "seconds": seconds, "peak": peak}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.out_of_core", description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument(
        "--format", nargs="+", choices=("svmlight", "csv", "parquet"), default=["svmlight", "csv", "parquet"]
    )
    options = parser.parse_args()
    print("| file | rows | seconds | MB/s | peak of resident memory |\n|---|---|---|---|---|")
    for kind in options.format:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"rows.{kind}"
            write(path, kind, int(options.gigabytes * 1e9))
            size = path.stat().st_size
            wanted = {"classes": [0, 1]} | ({"n_features": 200, "zero_based": False} if kind == "svmlight" else {})
            command = [sys.executable, "-c", CHILD, str(path), json.dumps(wanted)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(
                f"| {size / 1e9:.1f} GB {kind} | {found['rows']} | {found['seconds']:.1f} "
                f"| {size / 1e6 / found['seconds']:.0f} | {found['peak']:.0f} MB |",
                flush=True,
            )


def write(path: Path, kind: str, size: int) -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    values = rng.standard_normal((5000, 20)).round(4)
    labels = (values[:, 0] + rng.standard_normal(5000) > 0).astype(int)
    if kind == "parquet":
        write_parquet(path, values, labels, size)
        return
    if kind == "csv":
        head = ",".join([*(f"c{j}" for j in range(20)), "label"]) + "\n"
        rows = (",".join(map(str, row)) + f",{label}\n" for row, label in zip(values, labels, strict=True))
    else:
        head = ""
        rows = (
            f"{label} " + " ".join(f"{10 * j + 1}:{v}" for j, v in enumerate(row)) + "\n"
            for row, label in zip(values, labels, strict=True)
        )
    block = "".join(rows).encode()
    with path.open("wb") as file:
        file.write(head.encode())
        for _ in range(size // len(block)):
            file.write(block)


def write_parquet(path: Path, values: object, labels: object, size: int) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    many, marks = np.tile(np.asarray(values), (20, 1)), np.tile(np.asarray(labels), 20)
    table = pa.table({f"c{j}": many[:, j] for j in range(many.shape[1])} | {"label": marks})
    with pq.ParquetWriter(path, table.schema, use_dictionary=False, compression="none") as writer:
        for _ in range(max(1, size // table.nbytes)):
            writer.write_table(table)


if __name__ == "__main__":
    main()

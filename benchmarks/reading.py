"""Time and peak memory of reading files, beside the peers: ``python -m benchmarks.reading``.

A svmlight and a CSV file of at least the given size are made in a temporary folder. Every reader runs in a process of
its own, best of some repeats; memory is the peak beyond what was resident before, as a multiple of the matrix read.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

READERS = {
    "svmlight": ("maxmargin", "scikit-learn"),
    "csv": ("maxmargin", "PyArrow, table only", "PyArrow, to a matrix", "pandas, to a matrix"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description="Reading files.")
    parser.add_argument("--megabytes", type=int, default=210)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print("| file | reader | seconds | MB/s | ratio to maxmargin | peak memory / matrix |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for kind, readers in READERS.items():
            path = Path(folder) / f"rows.{'svm' if kind == 'svmlight' else kind}"
            run("--make", str(path), str(options.megabytes))
            results = {reader: best(reader, path, options.repeats) for reader in readers}
            ours = results["maxmargin"]["seconds"]
            for reader, found in results.items():
                seconds, size = found["seconds"], path.stat().st_size / 1e6
                cells = (
                    f"{kind}, {size:.0f} MB",
                    reader,
                    f"{seconds:.2f}",
                    f"{size / seconds:.0f}",
                    f"{seconds / ours:.1f}",
                    f"{found['memory']:.2f}",
                )
                print("| " + " | ".join(cells) + " |", flush=True)
            path.unlink()


def run(*arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks.reading_child", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def best(reader: str, path: Path, repeats: int) -> dict[str, Any]:
    found = [json.loads(run("--read", reader, str(path))) for _ in range(repeats)]
    return min(found, key=lambda one: one["seconds"])


if __name__ == "__main__":
    main()

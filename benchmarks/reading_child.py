"""One reading, or the making of one file, in a process of its own (see ``benchmarks.reading``)."""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def make(path: Path, megabytes: int) -> None:
    """Rows until the file has its size: about 75 of 50 000 columns, or 60 dense columns with a text label."""
    import numpy as np

    rng = np.random.default_rng(0)
    with path.open("w") as file:
        if path.suffix == ".csv":
            file.write(",".join([f"f{j}" for j in range(60)] + ["label"]) + "\n")
        while file.tell() < megabytes * 1_000_000:
            file.write(dense_rows(rng) if path.suffix == ".csv" else sparse_rows(rng))


def sparse_rows(rng: Any) -> str:
    import numpy as np

    lines = []
    for _ in range(1000):
        columns = np.unique(rng.integers(1, 50_001, rng.integers(40, 111))).tolist()
        values = rng.random(len(columns)).tolist()
        cells = [f"{j}:{v:.6g}" for j, v in zip(columns, values, strict=True)]
        lines.append(" ".join([rng.choice(["+1", "-1"]), *cells]))
    return "\n".join(lines) + "\n"


def dense_rows(rng: Any) -> str:
    rows = rng.standard_normal((1000, 60)).round(6).tolist()
    return "".join(",".join([*map(repr, row), rng.choice(["ham", "spam"])]) + "\n" for row in rows)


def reader(name: str, path: Path) -> Callable[[], Any]:
    """A call that reads the file to a matrix; everything it needs is imported before."""
    if name == "maxmargin":
        import maxmargin.data as data

        def ours() -> Any:
            table = data.read_table(path)
            return table.columns if table.is_matrix else data.Encoding.learn(table).apply(table)

        if path.suffix == ".csv":
            import pyarrow.csv
        return ours
    if name == "scikit-learn":
        from sklearn.datasets import load_svmlight_file

        return lambda: load_svmlight_file(str(path))[0]
    if name.startswith("pandas"):
        import numpy as np
        import pandas as pd

        return lambda: np.ascontiguousarray(pd.read_csv(path).drop(columns="label").to_numpy())
    import numpy as np
    import pyarrow.csv

    if name.endswith("table only"):
        return lambda: pyarrow.csv.read_csv(path)
    return lambda: np.ascontiguousarray(pyarrow.csv.read_csv(path).drop(["label"]).to_pandas().to_numpy())


def measure(name: str, path: Path) -> dict[str, float]:
    read = reader(name, path)
    before = resident()
    with contextlib.suppress(OSError):  # forget the peak of the imports
        Path("/proc/self/clear_refs").write_text("5")
    start = time.perf_counter()
    result = read()
    seconds = time.perf_counter() - start
    beyond = max(0.0, peak() - before)
    if hasattr(result, "indptr"):
        size = result.data.nbytes + result.indices.nbytes + result.indptr.nbytes
    else:
        size = result.nbytes
    return {"seconds": seconds, "memory": beyond / size}


def resident() -> float:
    return float(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def peak() -> float:
    """Largest resident size of this process since its peak was last forgotten."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024.0 * float(line.split()[1])
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    if sys.argv[1] == "--make":
        make(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        print(json.dumps(measure(sys.argv[2], Path(sys.argv[3]))))

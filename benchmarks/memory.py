"""Peak memory of LinearSVC.fit beyond the caller's X: ``python -m benchmarks.memory``.

Every case runs in a child process. What is resident after a warm-up fit on tiny data, with X and y made, is
the base; the peak after the fit (``ru_maxrss``) less this base is what the fit needs beyond X and y. A child
inherits its parent's peak, so the parent imports nothing heavy.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
from typing import Any

CASES = ("dense float64", "dense float32", "CSR")
CSR_ROW = 20  # nonzeros per row


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description="Peak memory of a fit.")
    add = parser.add_argument
    add("--rows", type=int, default=200_000)
    add("--cols", type=int, default=50)
    add("--csr-cols", type=int, default=1000, help=f"CSR rows hold {CSR_ROW} nonzeros each")
    add("--loss", choices=("hinge", "squared_hinge"), default="hinge")
    add("--C", type=float, default=1.0)
    add("--solver", default="auto")
    add("--case", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(options)))
        return
    print(f"{options.loss}, C={options.C:g}, solver={options.solver}")
    print("| X | rows × columns | bytes per row of X | bytes per row beyond X | MB beyond X | solver, gap |")
    print("|---|---|---|---|---|---|")
    for case in CASES:
        command = [sys.executable, "-m", "benchmarks.memory", *sys.argv[1:], "--case", case]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        shown = (
            case,
            f"{found['rows']} × {found['cols']}",
            f"{found['X'] / found['rows']:.0f}",
            f"{'at most ' * found['bound']}{found['beyond'] / found['rows']:.0f}",
            f"{found['beyond'] / 1e6:.1f}",
            f"{found['solver']}, {found['gap']:.0e}",
        )
        print("| " + " | ".join(shown) + " |", flush=True)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """One case, in this process: bytes of X and beyond it; ``bound`` if an earlier peak was higher."""
    import numpy as np

    from maxmargin import LinearSVC

    machine = LinearSVC(loss=options.loss, C=options.C, solver=options.solver)
    for rows in (200, options.rows):
        X = make(options.case, rows, options.csr_cols if options.case == "CSR" else options.cols)
        scores = np.asarray(X @ np.random.default_rng(1).standard_normal(X.shape[1]).astype(X.dtype)).ravel()
        y = np.where(scores + np.random.default_rng(2).standard_normal(rows) > 0.0, 1.0, -1.0)
        del scores
        before, base = peak(), resident()
        machine.fit(X, y)
        after = peak()
    return {
        "rows": X.shape[0],
        "cols": X.shape[1],
        "X": X.nbytes if options.case != "CSR" else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes,
        "beyond": after - (before if base is None else base),
        "bound": after <= before,
        "solver": machine.solution_.solver,
        "gap": machine.solution_.gap,
    }


def make(case: str, rows: int, cols: int) -> Any:
    """X without temporary arrays of its size, so that its making leaves no higher peak."""
    import numpy as np
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    if case != "CSR":
        X = np.empty((rows, cols), dtype=case.split()[1])
        for row in X:
            row[:] = rng.standard_normal(cols)
        return X
    held = min(CSR_ROW, cols)
    data, indices = np.empty(rows * held), np.empty(rows * held, dtype=np.int32)
    for i in range(rows):
        place = slice(i * held, (i + 1) * held)
        data[place] = rng.standard_normal(held)
        indices[place] = np.sort(rng.choice(cols, held, replace=False))
    starts = np.arange(0, rows * held + 1, held, dtype=np.int32)
    return sp.csr_matrix((data, indices, starts), shape=(rows, cols))


def peak() -> int:
    """Highest resident memory so far, in bytes."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def resident() -> int | None:
    """Resident memory now, in bytes, free memory given back; None where the system does not say."""
    import ctypes
    import resource

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        with open("/proc/self/statm") as pages:
            return int(pages.read().split()[1]) * resource.getpagesize()
    except OSError:
        return None


if __name__ == "__main__":
    main()

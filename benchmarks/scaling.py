"""How our time grows with the data: ``python -m benchmarks.scaling``.

Dense rows of a fixed number of columns from ten thousand to a million, and sparse text from a thousand to a hundred
thousand rows. The exponent is the slope of a straight line through the logarithms of size (rows, or stored entries) and
time, by least squares: 1 means that twice the data take twice the time.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.child import Answer
    from benchmarks.workplace import Workplace

DENSE_ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
SPARSE_ROWS = (1_000, 3_000, 10_000, 30_000, 100_000)
LOSSES = ("hinge", "squared_hinge", "logistic")


def main(argv: Sequence[str] | None = None) -> None:
    from benchmarks.forms import FORMS
    from benchmarks.workplace import Workplace

    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description="Our time against size.")
    add = parser.add_argument
    add("--loss", nargs="+", choices=FORMS, default=LOSSES)
    add("--rows", nargs="*", type=int, default=DENSE_ROWS, help="of dense data; none leaves them out")
    add("--cols", type=int, default=20)
    add("--sparse-rows", nargs="*", type=int, default=SPARSE_ROWS, help="of sparse data; none leaves them out")
    add("--sparse-cols", type=int, default=50_000)
    add("--C", type=float, default=1.0)
    add("--tol", type=float, default=1e-6)
    add("--solver", default="auto")
    add("--repeats", type=int, default=3, help="the best one counts")
    add("--time-limit", type=float, default=120.0, help="seconds for one fit")
    options = parser.parse_args(argv)
    with Workplace() as work:
        for against, names in _plan(options).items():
            if names:
                _measure(work, names, against, options)


def _plan(options: argparse.Namespace) -> dict[str, list[str]]:
    return {
        "rows": [f"tall-{n}x{options.cols}" for n in options.rows],
        "nonzeros": [f"text-{n}x{options.sparse_cols}" for n in options.sparse_rows],
    }


def _measure(work: Workplace, names: list[str], against: str, options: argparse.Namespace) -> None:
    """Prints a line per data set with the seconds of every loss, and the exponents at the end."""
    from benchmarks.forms import FORMS
    from benchmarks.solvers import OURS, Setting

    setting = Setting("scaling", {"tol": options.tol, "solver": options.solver})
    sizes: dict[str, list[float]] = {loss: [] for loss in options.loss}
    times: dict[str, list[float]] = {loss: [] for loss in options.loss}
    print(f"\nSeconds, C={options.C:g}, tol={options.tol:g}, solver={options.solver}, best of {options.repeats}\n")
    print(f"| data set | {against} | " + " | ".join(options.loss) + " |\n" + "|---" * (2 + len(options.loss)) + "|")
    for name in names:
        data = work.load(name)
        size = data.X.nnz if data.sparse else data.X.shape[0]
        shown = []
        for loss in options.loss:
            fits = [work.fit(OURS, FORMS[loss], options.C, setting, options.time_limit) for _ in range(options.repeats)]
            done = [answer.seconds for answer in fits if answer.seconds is not None]
            if done:
                sizes[loss].append(float(size))
                times[loss].append(min(done))
            shown.append(f"{min(done):.4g}{_doubt(fits)}" if done else fits[-1].outcome)
        print(f"| {name} | {size} | " + " | ".join(shown) + " |", flush=True)
    slopes = (f"{exponent(sizes[loss], times[loss]):.2f}" for loss in options.loss)
    print("| exponent | | " + " | ".join(slopes) + " |", flush=True)


def _doubt(fits: Sequence[Answer]) -> str:
    """What to say of fits that ended before their tolerance."""
    statuses = {answer.details.get("status", answer.outcome) for answer in fits} - {"CONVERGED"}
    return f" ({', '.join(sorted(statuses))})" if statuses else ""


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Slope of the least-squares line through (ln size, ln time); not a number for fewer than two points."""
    import numpy as np

    if len(sizes) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


if __name__ == "__main__":
    main()

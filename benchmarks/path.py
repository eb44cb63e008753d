"""What a whole path of solutions costs beside single fits: ``python -m benchmarks.path``.

``svm_path`` with 20 values of C over five decades, and every one of these C fitted by itself from nothing. Both in this
process, in turns, best of some repeats.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LOSSES = ("hinge", "squared_hinge", "logistic")
DATASETS = ("tall-200000x50", "text-100000x50000", "onehot-67557x42", "a9a", "w8a", "news20+tfidf", "rcv1_1k")


@dataclass(frozen=True)
class Cost:
    """Seconds of the whole path and of each single fit."""

    path: float
    gap: float
    single: dict[float, float]

    def line(self) -> str:
        dearest = max(self.single, key=lambda C: self.single[C])
        most, total = self.single[dearest], sum(self.single.values())
        return (
            f"{self.path:.4g} s | {self.gap:.0e} | {most:.4g} s (C={dearest:.3g}) | {self.path / most:.2f} | "
            f"{total:.4g} s | {total / self.path:.2f}"
        )


def main(argv: Sequence[str] | None = None) -> None:
    import numpy as np

    from benchmarks import datasets

    parser = argparse.ArgumentParser(prog="python -m benchmarks.path", description="A path beside single fits.")
    add = parser.add_argument
    add("--datasets", nargs="+", help="of two classes; default: " + " ".join(DATASETS))
    add("--loss", nargs="+", choices=LOSSES, default=LOSSES)
    add("--points", type=int, default=20)
    add("--from", dest="low", type=float, default=1e-3)
    add("--to", dest="high", type=float, default=1e2)
    add("--tol", type=float, default=1e-6)
    add("--repeats", type=int, default=2, help="the best one counts")
    add("--time-limit", type=float, default=120.0, help="seconds for one fit, and for each point of the path")
    options = parser.parse_args(argv)
    Cs = np.geomspace(options.low, options.high, options.points)
    print(f"{options.points} values of C from {options.low:g} to {options.high:g}, tol={options.tol:g}\n")
    print("| data set | loss | path | worst gap | dearest fit | path / dearest | all fits | all fits / path |")
    print("|---" * 8 + "|")
    for name in options.datasets or [name for name in DATASETS if datasets.exists(name)]:
        data = datasets.load(name)
        for loss in options.loss:
            cost = measure(data.X, data.y, Cs, loss, options)
            print(f"| {name} | {loss} | {cost.line()} |", flush=True)


def measure(X: Any, y: Any, Cs: Any, loss: str, options: argparse.Namespace) -> Cost:
    """Path and single fits in turns, so that a busy machine troubles both alike."""
    from benchmarks.forms import FORMS
    from benchmarks.solvers.maxmargin import machine
    from maxmargin.selection.path import svm_path

    paths: list[float] = []
    gaps: list[float] = []
    single: dict[float, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(options.repeats):
            limit = options.time_limit * len(Cs)
            start = time.perf_counter()
            found = svm_path(X, y, Cs, loss=loss, tol=options.tol, max_seconds=limit)
            paths.append(time.perf_counter() - start)
            gaps.append(max(solution.gap for solution in found.solutions))
            for C in map(float, Cs):
                one = machine(C, FORMS[loss], {"tol": options.tol, "max_seconds": options.time_limit})
                start = time.perf_counter()
                one.fit(X, y)
                single[C] = min(single.get(C, float("inf")), time.perf_counter() - start)
    return Cost(min(paths), max(gaps), single)


if __name__ == "__main__":
    main()

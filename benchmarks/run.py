"""Run the benchmark: ``python -m benchmarks.run --help``.

Every child process imports this module again, so it imports nothing heavy at the top.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> None:
    from benchmarks.cells import Benchmark
    from benchmarks.forms import FORMS
    from benchmarks.solvers import OURS, names
    from benchmarks.suites import SUITES

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description="Time to a given suboptimality, maxmargin and its peers."
    )
    add = parser.add_argument
    add("--suite", nargs="+", choices=SUITES, help="default: all; --loss and --C then choose from them")
    add("--datasets", nargs="+", help="instead of suites: tall-200000x50, a9a, news20+tfidf+classes, folder, …")
    add("--C", nargs="+", type=float, help="default: 0.01 1 100 1e4 for tall-…, else 0.1 1 10 100")
    add("--loss", nargs="+", choices=FORMS, help="with --datasets the default is hinge")
    add("--targets", nargs="+", type=float, default=[1e-3, 1e-4], help="relative suboptimality")
    add("--peers", nargs="*", choices=names(), default=[name for name in names() if name not in (OURS, "sgd_tuned")])
    add("--repeats", type=int, default=3, help="of every fit whose time counts; the best one does")
    add("--time-limit", type=float, default=120.0, help="seconds for one fit")
    add("--reference-limit", type=float, default=600.0, help="seconds for the certified optimum")
    add("--output", type=Path, default=Path(__file__).parent / "results" / "latest.json")
    add("--resume", action="store_true", help="keep what --output already holds; plan and machine must agree")
    add("--quiet", action="store_true", help="no line for every single fit")
    Benchmark(parser.parse_args(argv)).run()


if __name__ == "__main__":
    main()

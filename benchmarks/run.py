"""Run the benchmark: ``python -m benchmarks.run --help``.

Every child process imports this module again, so it imports nothing heavy at the top.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> None:
    from benchmarks.cells import LOSSES, Benchmark
    from benchmarks.solvers import OURS, names

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description="Time to a given suboptimality, maxmargin and its peers."
    )
    add = parser.add_argument
    add("--datasets", nargs="+", help="tall-<rows>x<columns>, files of MAXMARGIN_DATA, or 'folder' for all")
    add("--C", nargs="+", type=float, help="default: 0.01 1 100 1e4 for generated data, else 0.1 1 10 100")
    add("--loss", nargs="+", choices=LOSSES, default=["hinge"])
    add("--targets", nargs="+", type=float, default=[1e-3, 1e-4], help="relative suboptimality")
    add("--peers", nargs="+", choices=names(), default=[name for name in names() if name not in (OURS, "sgd_tuned")])
    add("--repeats", type=int, default=3, help="of every fit whose time counts; the best one does")
    add("--time-limit", type=float, default=120.0, help="seconds for one fit")
    add("--output", type=Path, default=Path(__file__).parent / "results" / "latest.json")
    add("--resume", action="store_true", help="keep what --output already holds; plan and machine must agree")
    add("--quiet", action="store_true", help="no line for every single fit")
    Benchmark(parser.parse_args(argv)).run()


if __name__ == "__main__":
    main()

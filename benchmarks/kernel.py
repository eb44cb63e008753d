"""Kernel machines beside each other: ``python -m benchmarks.kernel``.

maxmargin's SVC and SVR, scikit-learn's, scikit-learn-intelex's, LIBSVM's and thundersvm's: same kernel, same C, same
cache. Every fit has a process of its own, which first fits forty rows; the clock runs from arrays to model. The true
gap of every answer is that of ``benchmarks.kernel_objective``: one formula for everybody. Ratios are a peer's seconds
over ours.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.kernel_data import CELLS, Cell, exists
from benchmarks.kernel_peers import OURS, PEERS


def main(argv: Sequence[str] | None = None) -> None:
    from benchmarks import ceilings, kernel_report, machine, report
    from benchmarks.kernel_race import Race, absent

    options = _options(argv)
    machines = [OURS, *options.peers]
    missing = absent(machines)
    for who, why in missing.items():
        print(f"left out: {who}, {why}")
    results: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "ceilings": {"before": ceilings.measure()},
        "plan": {
            "limit": options.limit,
            "repeats": options.repeats,
            "kernel": options.kernel,
            "busy": options.busy,
            "left_out": missing,
        },
    }
    print(ceilings.said(results["ceilings"]["before"]))
    here = [who for who in machines if who not in missing]
    with Race(here, options.kernel, options.limit, options.repeats, busy=options.busy) as race:
        for mode, target in _modes(options):
            rows = results[mode] = []
            table = kernel_report.Table(mode, here, options.limit, target)
            print("\n" + table.head(), flush=True)
            for cell in chosen(mode, options.cells):
                rows.append(race.run(mode, cell, target))
                print(table.line(rows[-1]), flush=True)
                report.write(results, options.output)
            print("\n" + table.summary(rows))
    results["ceilings"]["after"] = ceilings.measure()  # another machine by then, where other people use it
    print("\n" + ceilings.said(results["ceilings"]["after"]))
    report.write(results, options.output)


def chosen(mode: str, wanted: Sequence[str] | None) -> list[Cell]:
    """The cells of a mode whose data there are, those with a wanted text in their name; the rest is named."""
    cells = [cell for cell in CELLS["default" if mode == "equal" else mode] if _is_wanted(cell, wanted)]
    gone = sorted({cell.data for cell in cells if not exists(cell.data)})
    if gone:
        print(f"left out, not in the folder named by MAXMARGIN_DATA: {', '.join(gone)}")
    return [cell for cell in cells if cell.data not in gone]


def _is_wanted(cell: Cell, wanted: Sequence[str] | None) -> bool:
    names = {one.name for cells in CELLS.values() for one in cells}
    return not wanted or any(text == cell.name if text in names else text in cell.name for text in wanted)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kernel", description="Kernel machines beside each other."
    )
    add = parser.add_argument
    add("--default", action="store_true", help="everybody at its own default tolerance; this alone if nothing is said")
    add("--equal", type=float, metavar="GAP", help="least time to a true gap; peers at the best tol of 1e-1 … 1e-8")
    add("--predict", action="store_true", help="scores and predictions of many rows")
    add("--small", action="store_true", help="fits of fewer than a thousand rows, and the score of one row")
    add("--large", action="store_true", help="a Gram matrix that fits nowhere")
    add("--cells", nargs="+", metavar="TEXT", help="only these cells, or those with such a text in their name")
    add("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    add("--kernel", choices=("rbf", "linear", "poly"), default="rbf")
    add("--limit", type=float, default=120.0, help="seconds for one fit")
    add("--repeats", type=int, default=3, help="of every fit, everybody in turn; the fastest counts")
    add("--busy", action="store_true", help="CPU time on one thread: where other people use the machine")
    add("--output", type=Path, default=Path(__file__).parent / "results" / "kernel.json")
    return parser.parse_args(argv)


def _modes(options: argparse.Namespace) -> list[tuple[str, float | None]]:
    """What is asked for, with the gap that is aimed at."""
    modes: list[tuple[str, float | None]] = [
        (mode, None) for mode in ("default", "predict", "small", "large") if getattr(options, mode)
    ]
    if options.equal is not None:
        modes.append(("equal", options.equal))
    return modes or [("default", None)]


if __name__ == "__main__":
    main()

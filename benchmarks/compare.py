"""Two builds of maxmargin, fit by fit in turn: ``python -m benchmarks.compare --other ../before/.venv/bin/python``.

The cells are those of ``benchmarks.run --suite table``, once per target: this build, the other, this, the other, … with
``tol`` equal to the target. Each build has a process of its own, which holds the data for all of its fits, so that
what else happens on the machine meets both alike. Both run this tree's benchmark code; the other Python only needs
maxmargin.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.child import ROOT, Answer
from benchmarks.ratios import geometric_mean, said
from benchmarks.workplace import Workplace

SLOW = 1.0  # seconds; cells whose first fits take longer may be repeated less often
CONVERGED = "CONVERGED"
WHERE = "import maxmargin; print(maxmargin.__file__)"

Cell = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> None:
    from benchmarks import machine, report, suites
    from benchmarks.solvers import OURS
    from benchmarks.solvers.maxmargin import at

    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description="This build and another in turn.")
    add = parser.add_argument
    add("--other", required=True, help="the Python in whose environment the other build is installed")
    add("--suite", nargs="+", choices=suites.SUITES, default=["table"])
    add("--cells", nargs="+", metavar="TEXT", help="only cells with one of these in their name, as printed")
    add("--targets", nargs="+", type=float, default=[1e-3, 1e-4], help="tol of every fit")
    add("--repeats", type=int, default=9, help="fits of each build in a cell; the median counts")
    add("--slow-repeats", type=int, default=9, help=f"the same for cells with more than {SLOW:g} s a fit")
    add("--time-limit", type=float, default=120.0, help="seconds for one fit")
    add("--busy", action="store_true", help="CPU time on one thread: where other people use the machine")
    add("--output", type=Path, default=Path(__file__).parent / "results" / "compare.json")
    options = parser.parse_args(argv)
    builds = {"this": sys.executable, "other": executable(options.other)}
    places = {name: place(python) for name, python in builds.items()}
    cells: list[Cell] = []
    results = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "builds": places,
        "plan": {"repeats": options.repeats, "slow_repeats": options.slow_repeats, "busy": options.busy},
        "cells": cells,
    }
    print("\n".join(f"{name}: {where}" for name, where in places.items()))
    if places["this"] == places["other"]:
        print("both are the same build: what differs is noise")
    heads = ("cell", "this, s", "other, s", "this / other", "difference, s", "best / best", "fits")
    print("\n| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    with Workplace(busy=options.busy) as work:
        for data, form, C in suites.of_suites(options.suite):
            for target in options.targets:
                name = f"{data} {form.name} C={C:g} tol={target:g}"
                if options.cells and not any(text in name for text in options.cells):
                    continue
                work.load(data)
                fits = {
                    build: partial(work.fit, OURS, form, C, at(target), options.time_limit, python)
                    for build, python in builds.items()
                }
                cells.append({"cell": name, **in_turn(fits, options.repeats, options.slow_repeats)})
                print(_line(cells[-1]), flush=True)
                report.write(results, options.output)
    print("\n" + summary(cells))


def executable(python: str) -> str:
    """A path seen from here, though processes start at the top of the tree; links stay, they say which environment."""
    return str(Path(python).absolute()) if Path(python).name != python else python


def place(python: str) -> str:
    """Where this Python finds maxmargin."""
    try:
        found = subprocess.run([python, "-c", WHERE], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError as error:
        raise SystemExit(f"--other: cannot start {python!r}: {error.strerror}; name a Python executable") from error
    if found.returncode != 0:
        why = (found.stderr.strip().splitlines() or ["no message"])[-1]
        raise SystemExit(f"{python!r} cannot import maxmargin ({why}); install the build to compare there")
    return found.stdout.strip()


def in_turn(fits: dict[str, Callable[[], Answer]], repeats: int, slow_repeats: int) -> Cell:
    """All fits of one cell, the builds in turn; it ends with the first round in which one of them has no answer."""
    answers: dict[str, list[Answer]] = {build: [] for build in fits}
    rounds = repeats
    done = 0
    while done < rounds:
        for build, fit in fits.items():
            answers[build].append(fit())
        done += 1
        seconds = [own[-1].seconds for own in answers.values()]
        if any(one is None for one in seconds):
            break
        if done == 1 and max(one for one in seconds if one is not None) > SLOW:
            rounds = min(repeats, slow_repeats)
    return judged({build: _summed_up(own) for build, own in answers.items()})


def _summed_up(answers: Sequence[Answer]) -> Cell:
    """The median, and how the fits ended: an answer without proof of convergence is named."""
    last = answers[-1]
    if last.seconds is None:
        return {"outcome": last.outcome, "median": None, **last.details}
    ended = {str(answer.details.get("status")) for answer in answers}
    times = [answer.seconds for answer in answers if answer.seconds is not None]
    kept = {name: last.details.get(name) for name in ("gap", "solver", "iterations", "verified")}
    outcome = CONVERGED if ended == {CONVERGED} else ", ".join(sorted(ended))
    return {"outcome": outcome, "median": median(times), "seconds": times, **kept}


def judged(cell: Cell) -> Cell:
    """With ratio and difference of the medians; a build that did not converge has taken infinitely long.

    The ratio of the fastest fits stands beside them: where it differs much, something else was running.
    """
    this, other = (_time(cell[build]) for build in ("this", "other"))
    if math.isinf(this) or math.isinf(other):
        ratio = math.nan if this == other else (math.inf if math.isinf(this) else 0.0)
        return {**cell, "ratio": ratio, "difference": None, "ratio_of_best": ratio}
    best = min(cell["this"]["seconds"]) / min(cell["other"]["seconds"])
    return {**cell, "ratio": this / other, "difference": this - other, "ratio_of_best": best}


def _time(build: Cell) -> float:
    return float(build["median"]) if build["outcome"] == CONVERGED else math.inf


def summary(cells: Sequence[Cell]) -> str:
    """The geometric mean of the ratios, and the cell in which this build does worst."""
    known = [cell for cell in cells if not math.isnan(cell["ratio"])]
    if not known:
        return "no cell was measured: check --cells and MAXMARGIN_DATA" if not cells else "no build converged anywhere"
    worst = max(known, key=lambda cell: cell["ratio"])
    by = "" if worst["difference"] is None else f" ({worst['difference']:+.4g} s)"
    unfinished = {build: sum(cell[build]["outcome"] != CONVERGED for cell in cells) for build in ("this", "other")}
    return (
        f"{len(cells)} cells: geometric mean of this / other {geometric_mean(cell['ratio'] for cell in cells):.3f}, "
        f"of the fastest fits {geometric_mean(cell['ratio_of_best'] for cell in cells):.3f}\n"
        f"worst: {worst['cell']}: {said(worst['ratio'])}{by}\n"
        f"without a converged answer: this {unfinished['this']}, other {unfinished['other']}"
    )


def _line(cell: Cell) -> str:
    difference = "—" if cell["difference"] is None else f"{cell['difference']:+.4g}"
    fits = str(len(cell["this"].get("seconds", [])))
    shown = [cell["cell"], _shown(cell["this"]), _shown(cell["other"]), said(cell["ratio"]), difference]
    shown += [said(cell["ratio_of_best"]), fits]
    return "| " + " | ".join(shown) + " |"


def _shown(build: Cell) -> str:
    if build["median"] is None:
        return f"{build['outcome']} {build.get('error', '')[:60]}".rstrip()
    return f"{build['median']:.4g}" + ("" if build["outcome"] == CONVERGED else f" ({build['outcome']})")


if __name__ == "__main__":
    main()

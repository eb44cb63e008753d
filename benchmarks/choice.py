"""Does ``solver="auto"`` choose well? ``python -m benchmarks.choice``.

Every solver that can solve the problem is timed beside "auto", to the same tolerance. A ratio auto/best above 1.5 is
flagged. A solver that ended without reaching the tolerance does not count as best.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.child import Answer
    from benchmarks.forms import Form
    from benchmarks.workplace import Workplace

SOLVERS = ("dual_cd", "newton", "interior_point")
FORMS_WITH_CHOICE = ("hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive")
SUITES_WITH_CHOICE = ("dense", "sparse", "regression")
FLAG = 1.5


def main(argv: Sequence[str] | None = None) -> None:
    from benchmarks.cells import problems
    from benchmarks.ratios import geometric_mean
    from benchmarks.suites import SUITES
    from benchmarks.workplace import Workplace

    parser = argparse.ArgumentParser(prog="python -m benchmarks.choice", description="auto beside every solver.")
    add = parser.add_argument
    add("--suite", nargs="+", choices=SUITES, default=list(SUITES_WITH_CHOICE))
    add("--datasets", nargs="+", help="by name instead of by suite")
    add("--loss", nargs="+", choices=FORMS_WITH_CHOICE, default=list(FORMS_WITH_CHOICE))
    add("--C", nargs="+", type=float)
    add("--solvers", nargs="+", choices=SOLVERS, default=list(SOLVERS))
    add("--tol", type=float, default=1e-6)
    add("--repeats", type=int, default=2, help="of auto and of what is faster than it; the best one counts")
    add("--time-limit", type=float, default=60.0, help="seconds for one fit")
    add("--patience", type=float, default=5.0, help="a solver is stopped after so many times auto's time, plus 1 s")
    options = parser.parse_args(argv)
    heads = ("data set", "loss", "C", "auto", "chosen", *options.solvers, "auto / best", "")
    print(f"Seconds to a relative gap of {options.tol:g}\n")
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    ratios: list[float] = []
    with Workplace() as work:
        for name, form, C in problems(options):
            if form.fits(work.load(name).kind):
                ratios.append(_row(work, name, form, C, options))
    known = [ratio for ratio in ratios if math.isfinite(ratio)]
    if known:
        above = sum(ratio > FLAG for ratio in ratios)
        mean = geometric_mean(known)
        print(f"\n{len(ratios)} problems: mean ratio {mean:.2f}, worst {max(ratios):.2f}, {above} above {FLAG}")


def _row(work: Workplace, name: str, form: Form, C: float, options: argparse.Namespace) -> float:
    """Prints one line; the ratio of auto to the best."""
    from benchmarks.solvers import OURS, Setting

    def fit(solver: str, limit: float) -> Answer:
        return work.fit(OURS, form, C, Setting("choice", {"tol": options.tol, "solver": solver}), limit)

    auto = [fit("auto", options.time_limit) for _ in range(options.repeats)]
    own = _best(auto)
    limit = min(options.time_limit, options.patience * own + 1.0)
    found: dict[str, list[Answer]] = {}
    for solver in options.solvers:
        found[solver] = [fit(solver, limit)]
        while _best(found[solver]) < own and len(found[solver]) < options.repeats:
            found[solver].append(fit(solver, limit))
    best = min(own, *(_best(answers) for answers in found.values()))
    ratio = own / best if math.isfinite(own) else (math.inf if math.isfinite(best) else math.nan)
    chosen = next((str(one.details["solver"]) for one in auto if "solver" in one.details), "")
    cells = [name, form.name, f"{C:g}", _shown(auto), chosen, *(_shown(answers) for answers in found.values())]
    print("| " + " | ".join([*cells, f"{ratio:.2f}", "SLOW" if ratio > FLAG else ""]) + " |", flush=True)
    return ratio


def _best(answers: Sequence[Answer]) -> float:
    """The fastest fit that reached the tolerance; infinite if none did."""
    done = [a.seconds for a in answers if a.seconds is not None and a.details.get("status") == "CONVERGED"]
    return min(done, default=math.inf)


def _shown(answers: Sequence[Answer]) -> str:
    if math.isfinite(_best(answers)):
        return f"{_best(answers):.4g}"
    last = answers[-1]
    if last.seconds is None:
        stopped = last.details.get("stopped_after")
        return f"> {stopped:.3g}" if stopped else "failed: " + str(last.details.get("error", last.outcome))[:60]
    return f"{last.seconds:.4g}, gap {last.details.get('gap', math.nan):.0e}"


if __name__ == "__main__":
    main()

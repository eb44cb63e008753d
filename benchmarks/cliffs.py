"""Where does a fit fall off a cliff? ``python -m benchmarks.cliffs``.

Problems drawn at random (``datasets/drawn.py``): every loss, penalty and way to treat several classes, all shapes,
orders, scales and kinds of labels. On each, ``solver="auto"`` beside every solver that can solve it and LIBLINEAR, at
two tolerances, each with a limit on time and memory. What counts is the ratio of auto to the best that got there: a fit
of ours that ended by itself with the asked gap and was verified, or LIBLINEAR's fastest setting whose objective is that
near to the best certified lower bound (or, where none of ours ended, to the lowest objective of its tightest settings).
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import solvers
from benchmarks.child import DONE, MEMORY_LIMIT, TIME_LIMIT, Answer
from benchmarks.datasets.drawn import Draw, draw
from benchmarks.objective import Objective
from benchmarks.ratios import geometric_mean, said
from benchmarks.solvers import OURS, Setting
from benchmarks.sweep import Sweep
from benchmarks.workplace import Workplace

TOLERANCES = (1e-3, 1e-6)
AUTO, PEER = "auto", "liblinear"
CONVERGED = "converged"
QUICK = 1.0  # seconds; fits below are repeated
REPEATS = 3
NOTICEABLE = 0.01  # seconds between auto and the best; below, a ratio says nothing about a solver
FLAG = 1.5

Found = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> None:
    from benchmarks import machine, report

    parser = argparse.ArgumentParser(prog="python -m benchmarks.cliffs", description="auto on problems drawn.")
    add = parser.add_argument
    add("--count", type=int, default=300, help="problems; the k-th is the same whatever the count is")
    add("--seed", type=int, default=0)
    add("--problems", nargs="+", type=int, metavar="K", help="only these of the seed, instead of the first ones")
    add("--time-limit", type=float, default=20.0, help="seconds for one fit")
    add("--memory-limit", type=float, default=1000.0, help="MB a fit may take beyond the data")
    add("--patience", type=float, default=3.0, help="others are ended after so many times auto's time, plus 1 s")
    add("--worst", type=int, default=20, help="how many of the worst to list")
    add("--without-liblinear", action="store_true")
    add("--busy", action="store_true", help="CPU time on one thread: where other people use the machine")
    add("--output", type=Path, default=Path(__file__).parent / "results" / "cliffs.json")
    options = parser.parse_args(argv)
    measured: list[Found] = []
    results = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "plan": {name: value for name, value in vars(options).items() if name != "output"},
        "problems": measured,
    }
    print("\n".join(_heads()))
    with Workplace(memory=int(options.memory_limit * 1e6), busy=options.busy) as work:
        for k in options.problems or range(options.count):
            measured.append(measure(work, draw(options.seed, k), options))
            print("\n".join(_lines(measured[-1])), flush=True)
            report.write(results, options.output)
    print("\n" + summary(measured, options.worst))


def measure(work: Workplace, problem: Draw, options: argparse.Namespace) -> Found:
    """All fits of one problem: per tolerance auto, our other solvers, LIBLINEAR, and the ratio of auto to the best."""
    data = work.load(problem.name)
    ours: dict[str, dict[str, Found]] = {f"{tol:g}": {} for tol in TOLERANCES}
    for solver in (AUTO, *able(problem)):
        looser: Found = {}
        for tol in TOLERANCES:
            limit = _limit(ours[f"{tol:g}"].get(AUTO), options)
            if is_hopeless(looser, limit):
                looser = {**looser, "inferred": True}
            else:
                setting = Setting(solver, {"solver": solver, "tol": tol})
                looser = _fit(partial(work.fit, OURS, problem.form, problem.C, setting), limit)
            ours[f"{tol:g}"][solver] = looser
    found: Found = {"problem": problem.describe(), "text": str(problem), "fits": ours}
    peer = {} if options.without_liblinear else _peer(work, problem, data, ours, options)
    for tol, fits in ours.items():
        if tol in peer:
            fits[PEER] = peer[tol]
    found["compared"] = {tol: compared(fits) for tol, fits in ours.items()}
    return found


def able(problem: Draw) -> list[str]:
    """Our solvers that can solve it; none where auto is the only one."""
    from maxmargin.problem import Problem
    from maxmargin.solvers.choice import supported

    form = problem.form
    if form.joint:
        return []
    X, y = [[0.0], [1.0]], [-1.0, 1.0]
    if form.regression:
        names = supported(Problem.regression(X, y, loss=form.loss))
    else:
        names = supported(Problem.from_arrays(X, y, loss=form.power or form.loss, penalty=form.penalty))
    return names if len(names) > 1 else []


def _fit(fit: Any, limit: float) -> Found:
    """The best of some repeats if it is quick."""
    answers: list[Answer] = [fit(limit)]
    while len(answers) < REPEATS and answers[-1].seconds is not None and answers[-1].seconds < QUICK:
        answers.append(fit(limit))
    best = min(answers, key=lambda answer: math.inf if answer.seconds is None else answer.seconds)
    return {**best.details, "outcome": outcome(best), "seconds": best.seconds, "limit": limit}


def outcome(answer: Answer) -> str:
    """How a fit of ours ended: converged with a verified certificate, unfinished with a status, or at a limit."""
    if answer.outcome != DONE:
        return answer.outcome
    if not answer.details.get("verified"):
        return "not verified"
    ended = answer.details["status"]
    return CONVERGED if ended == "CONVERGED" else f"unfinished: {ended}"


def _limit(auto: Found | None, options: argparse.Namespace) -> float:
    """Seconds for a fit; auto's time is what another solver has to beat."""
    if auto is None or auto["outcome"] != CONVERGED:
        return float(options.time_limit)
    return float(min(options.time_limit, options.patience * auto["seconds"] + 1.0))


def is_hopeless(looser: Found, limit: float) -> bool:
    """Whether a fit would end at its limit, because one with a looser tolerance did."""
    if looser.get("outcome") == MEMORY_LIMIT:
        return True
    return looser.get("outcome") == TIME_LIMIT and bool(limit <= looser["limit"])


def _peer(work: Workplace, problem: Draw, data: Any, ours: dict[str, dict[str, Found]], options: Any) -> Found:
    """LIBLINEAR's fastest setting per tolerance; empty if it has no such form or has no answer either."""
    solver = solvers.load(PEER)
    if not solver.supports(problem.form, data.kind, data.sparse) or not solver.available()[0]:
        return {}
    objective = Objective(data.X, data.y, problem.C, problem.form, data.n_classes)
    fit = partial(work.fit, PEER, problem.form, problem.C)
    known = [fit["dual"] for fits in ours.values() for fit in fits.values() if fit.get("dual") is not None]
    bound = max(known) if known else _lowest(fit, solver.settings(problem.form), objective, options.time_limit)

    def judge(answer: Answer) -> float:
        if answer.w is None:
            return math.inf
        value = objective.value(answer.w)
        if math.isinf(bound):
            return math.inf
        return max(0.0, value - bound) / value if value > 0.0 else 0.0

    slowest = max((fits[AUTO]["seconds"] or math.inf) for fits in ours.values())
    sweep = Sweep(
        fit=fit,
        judge=judge,
        targets=TOLERANCES,
        limit=min(options.time_limit, FLAG * slowest + 0.1),
        repeats=1,
        say=lambda line: None,
    )
    best = sweep.measure(solver, problem.form)["targets"]
    return {
        tol: {"outcome": "not reached", "seconds": None} if one is None else {**one, "outcome": CONVERGED}
        for tol, one in best.items()
    }


def _lowest(fit: Any, settings: Sequence[Setting], objective: Objective, limit: float) -> float:
    """Where no bound is certified: the lowest objective of the tightest settings; infinite if none of them ends."""
    tightest = {setting.group: setting for setting in settings}
    answers = [fit(setting, limit) for setting in tightest.values()]
    return min((objective.value(answer.w) for answer in answers if answer.w is not None), default=math.inf)


def compared(fits: dict[str, Found]) -> Found:
    """Auto beside the best that got there."""
    there = {name: fit["seconds"] for name, fit in fits.items() if fit["outcome"] == CONVERGED}
    best = min(there, key=lambda name: there[name], default=None)
    auto = there.get(AUTO)
    if best is None:
        return {"best": None, "ratio": math.nan, "difference": None}
    if auto is None:
        return {"best": best, "ratio": math.inf, "difference": None}
    return {"best": best, "ratio": auto / there[best], "difference": auto - there[best]}


def summary(measured: Sequence[Found], n_worst: int) -> str:
    """How auto ended, the mean ratio, and the worst problems, per tolerance."""
    told: list[str] = []
    for tol in (f"{tol:g}" for tol in TOLERANCES):
        ended = Counter(found["fits"][tol][AUTO]["outcome"] for found in measured)
        ratios = [_ratio(found, tol) for found in measured]
        above = sum(is_slow(found["compared"][tol]) for found in measured)
        told += [
            f"tolerance {tol}: {len(measured)} problems; auto {_counted(ended)}",
            f"geometric mean of auto / best {geometric_mean(ratios):.3g}; {above} above {FLAG:g} by {NOTICEABLE:g} s "
            f"or more, of which {sum(ratio == math.inf for ratio in ratios)} where another got there and auto did not",
            "",
        ]
        worst = sorted((one for one in measured if is_slow(one["compared"][tol])), key=lambda one: -_ratio(one, tol))
        if worst:
            told += [*_heads(), *(_line(found, tol) for found in worst[:n_worst]), ""]
    return "\n".join(told)


def is_slow(compared: Found) -> bool:
    """Whether the ratio is beyond the flag, by a time that can be noticed; infinite ratios are."""
    if compared["ratio"] == math.inf:
        return True
    return bool(compared["ratio"] > FLAG and compared["difference"] >= NOTICEABLE)


def _ratio(found: Found, tol: str) -> float:
    return float(found["compared"][tol]["ratio"])


def _counted(ended: Counter[str]) -> str:
    return ", ".join(f"{count} {how}" for how, count in ended.most_common())


def _heads() -> tuple[str, str]:
    heads = ("k", "form", "C", "problem", "tol", "auto, s", "chosen", "others, s", "auto / best")
    return "| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"


def _lines(found: Found) -> Iterable[str]:
    return (_line(found, tol) for tol in found["fits"])


def _line(found: Found, tol: str) -> str:
    problem, fits, result = found["problem"], found["fits"][tol], found["compared"][tol]
    others = (f"{name} {_shown(fit)}" for name, fit in fits.items() if name != AUTO)
    cells = [str(problem["k"]), problem["form"], f"{problem['C']:g}", found["text"], tol, _shown(fits[AUTO])]
    cells += [str(fits[AUTO].get("solver", "")), ", ".join(others), said(result["ratio"])]
    return "| " + " | ".join(cells) + " |"


def _shown(fit: Found) -> str:
    if fit["outcome"] == CONVERGED:
        return f"{fit['seconds']:.3g}"
    if fit["outcome"] == TIME_LIMIT:
        return f"> {fit['limit']:.3g}"
    if fit["seconds"] is None:
        return f"{fit['outcome']} {fit.get('error', '')[:60]}".rstrip()
    return f"{fit['seconds']:.3g} ({fit['outcome']}, gap {fit.get('gap', math.nan):.0e})"


if __name__ == "__main__":
    main()

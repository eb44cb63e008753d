"""The first line a newcomer types, ours beside scikit-learn's: ``python -m benchmarks.defaults``.

Every file of the folder named by MAXMARGIN_DATA as it is: no scaling, raw counts, raw pixels, all classes. Each line is
fitted with default settings on the training part, in a process of its own that is ended at the limit, and scored on the
part that is held out. Both objectives are those of ``benchmarks.objective``: one formula, at the best bias for each.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.child import DONE, TIME_LIMIT, Answer
from benchmarks.forms import REGRESSION, SEVERAL, TWO, Form
from benchmarks.objective import Objective
from benchmarks.ratios import geometric_mean, said
from benchmarks.solvers import OURS
from benchmarks.solvers.maxmargin import DEFAULT
from benchmarks.workplace import Workplace

C = 1.0  # the default of every class here, ours and scikit-learn's
QUICK = 1.0  # seconds; fits below are repeated
SLOW = 1.5  # times the peer's seconds, from which a fit counts as slower
CONVERGED, WARNED = "converged", "warned"


@dataclass(frozen=True)
class FirstLine:
    """A line of code, the peer that has the same line, and what it minimises on each kind of data."""

    code: str
    peer: str
    forms: Mapping[str, Form]


FIRST_LINES = (
    FirstLine("LinearSVC()", "sklearn_linearsvc", dict.fromkeys((TWO, SEVERAL), Form("squared_hinge"))),
    FirstLine('LinearSVC(loss="hinge")', "sklearn_linearsvc", dict.fromkeys((TWO, SEVERAL), Form("hinge"))),
    FirstLine("LogisticRegression()", "sklearn_logistic", {TWO: Form("logistic"), SEVERAL: Form("multinomial")}),
    FirstLine("LinearSVR()", "sklearn_linearsvr", {REGRESSION: Form("epsilon_insensitive", epsilon=0.0)}),
)


def main(argv: Sequence[str] | None = None) -> None:
    from benchmarks import datasets, machine, report

    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults", description="Defaults beside scikit-learn.")
    add = parser.add_argument
    add("--datasets", nargs="+", default=[datasets.FOLDER], help="files of the folder; default: all of them")
    add("--lines", nargs="+", choices=[line.code for line in FIRST_LINES], help="default: all of them")
    add("--time-limit", type=float, default=20.0, help="seconds for one fit")
    add("--repeats", type=int, default=3, help=f"of a fit that takes less than {QUICK:g} s; the median counts")
    add("--busy", action="store_true", help="CPU time on one thread: where other people use the machine")
    add("--output", type=Path, default=Path(__file__).parent / "results" / "defaults.json")
    options = parser.parse_args(argv)
    names = datasets.expand(options.datasets)
    if not names:
        raise SystemExit(f"no data sets: set {datasets.folder.VARIABLE} to a folder of .npz files")
    rows: list[dict[str, Any]] = []
    results = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "plan": {"time_limit": options.time_limit, "repeats": options.repeats, "busy": options.busy},
        "rows": rows,
    }
    lines = [line for line in FIRST_LINES if not options.lines or line.code in options.lines]
    print("\n".join(_heads()))
    with Workplace(busy=options.busy) as work:
        for name in names:
            kind = work.load(f"{name}+classes+test").kind
            for line in lines:
                if kind in line.forms:
                    rows.append(measure(work, name, line, options))
                    print(_line(rows[-1]), flush=True)
                    report.write(results, options.output)
    print("\n" + summary(rows))


def measure(work: Workplace, name: str, line: FirstLine, options: argparse.Namespace) -> dict[str, Any]:
    """One line on one data set: ours, the peer's, and the ratio of their seconds."""
    data = work.load(f"{name}+classes+test")
    form = line.forms[data.kind]
    objective = Objective(data.X, data.y, C, form, data.n_classes)
    found = {who: _fit(work, who, form, objective, options) for who in (OURS, line.peer)}
    return {
        "dataset": data.describe(),
        "data": name,
        "line": line.code,
        "ours": found[OURS],
        "peer": found[line.peer],
        "ratio": ratio(found[OURS], found[line.peer]),
        "cpu_ratio": ratio(found[OURS], found[line.peer], "cpu_seconds"),
    }


def _fit(work: Workplace, who: str, form: Form, objective: Objective, options: argparse.Namespace) -> dict[str, Any]:
    answers = [work.fit(who, form, C, DEFAULT, options.time_limit)]
    while len(answers) < options.repeats and answers[-1].seconds is not None and answers[-1].seconds < QUICK:
        answers.append(work.fit(who, form, C, DEFAULT, options.time_limit))
    one = answers[0]
    times = [answer.seconds for answer in answers if answer.seconds is not None]
    return {
        **one.details,
        "outcome": one.outcome,
        "status": status(one),
        "seconds": median(times) if times else None,
        "repeats": times,
        "objective": None if one.w is None else objective.value(one.w),
    }


def status(answer: Answer) -> str:
    """How a fit ended: converged, warned, or why there is no answer."""
    if answer.outcome != DONE:
        return answer.outcome
    ours = answer.details.get("status", "CONVERGED")
    if ours == "CONVERGED" and "ConvergenceWarning" not in answer.details.get("warnings", []):
        return CONVERGED
    return WARNED if ours == "CONVERGED" else f"{WARNED}: {ours}"


def ratio(ours: Mapping[str, Any], peer: Mapping[str, Any], what: str = "seconds") -> float:
    """Our seconds over the peer's; infinite or 0 if only one of them ended, and not a number if none did."""
    own, its = (None if fit["seconds"] is None else fit[what] for fit in (ours, peer))
    if own is None or its is None:
        return math.nan if own == its else (math.inf if own is None else 0.0)
    return float(own / its)


def excess(row: Mapping[str, Any]) -> float:
    """How far the peer's objective lies above ours, relative to ours; negative if it is below."""
    ours, peer = row["ours"]["objective"], row["peer"]["objective"]
    if ours is None or peer is None or not ours > 0.0:
        return math.nan
    return float((peer - ours) / ours)


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """How often each of the two ended how, and the ratios per line."""
    told = []
    for code in dict.fromkeys(row["line"] for row in rows):
        own = [row for row in rows if row["line"] == code]
        ended = {
            who: f"{_count(own, who, CONVERGED)} converged, {_count(own, who, WARNED)} warned, "
            f"{_count(own, who, TIME_LIMIT)} at the time limit"
            for who in ("ours", "peer")
        }
        slower = sum(row["ratio"] > SLOW for row in own)
        told.append(
            f"{code}: {len(own)} sets; ours {ended['ours']}; scikit-learn {ended['peer']}; "
            f"geometric mean of ratios {geometric_mean(row['ratio'] for row in own):.3g}, {slower} above {SLOW:g}"
        )
    return "\n".join(told)


def _count(rows: Sequence[Mapping[str, Any]], who: str, how: str) -> int:
    return sum(row[who]["status"].startswith(how) for row in rows)


def _heads() -> tuple[str, str]:
    heads = ("data set", "rows × columns", "line", "ours, s", "certified gap")
    heads += (
        "scikit-learn, s",
        "ours / its",
        "of CPU time",
        "its objective above ours",
        "our test score",
        "its test score",
    )
    return "| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"


def _line(row: Mapping[str, Any]) -> str:
    data, ours, peer = row["dataset"], row["ours"], row["peer"]
    shape = f"{data['n_rows']} × {data['n_cols']}" + (f", {data['n_classes']} cl." if data["n_classes"] > 2 else "")
    gap, above = ours.get("gap"), excess(row)
    cells = [row["data"], shape, f"`{row['line']}`", _ended(ours), "—" if gap is None else f"{max(0.0, gap):.0e}"]
    cells += [
        _ended(peer),
        said(row["ratio"]),
        said(row["cpu_ratio"]),
        "—" if math.isnan(above) else f"{above:.1e}",
        _score(ours),
        _score(peer),
    ]
    return "| " + " | ".join(cells) + " |"


def _ended(fit: Mapping[str, Any]) -> str:
    if fit["seconds"] is None:
        used = "" if fit.get("cpu_seconds") is None else f"({fit['cpu_seconds']:.3g} s of CPU time)"
        return f"{fit['status']} {fit.get('error', '')[:60]}{used}".rstrip()
    return f"{fit['seconds']:.3g}" + ("" if fit["status"] == CONVERGED else f" ({fit['status']})")


def _score(fit: Mapping[str, Any]) -> str:
    return f"{fit['test_score']:.4g}" if fit.get("test_score") is not None else "—"


if __name__ == "__main__":
    main()

"""The kernel race's tables: a line per cell, a column per machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.child import TIME_LIMIT
from benchmarks.kernel_peers import OURS
from benchmarks.kernel_race import NEVER
from benchmarks.ratios import geometric_mean

Row = Mapping[str, Any]
CONVERGED = "CONVERGED"
ROUNDING = 1e-11  # of a relative gap, by our formula


class Table:
    """Of one mode; in brackets a peer's ratio to ours."""

    def __init__(self, mode: str, machines: Sequence[str], limit: float, target: float | None) -> None:
        self.mode, self.machines, self.limit, self.target = mode, machines, limit, target

    def head(self) -> str:
        titles = {
            "default": "Default tolerances: seconds, true gap (ratio to ours)",
            "large": "Default tolerances, Gram matrix too large: seconds, true gap (ratio to ours)",
            "equal": f"Least seconds to a true gap of {self.target or 0.0:g} (ratio to ours); tol",
            "predict": "Seconds of scores, of predictions (ratios to ours); support vectors, right answers",
            "small": "ms of a fresh process's fit, of a further one (ratio to ours); µs of one row's score; true gap",
        }
        heads = ["cell", "rows × columns", *self.machines]
        return f"{titles[self.mode]}\n\n| {' | '.join(heads)} |\n{'|---' * len(heads)}|"

    def line(self, row: Row) -> str:
        data = row["dataset"]
        shape = f"{data['n_rows']} × {data['n_cols']}" + (f", {data['n_classes']} cl." if data["n_classes"] > 2 else "")
        cells = [row["cell"], shape, *(self._said(row["fits"], who) for who in self.machines)]
        return f"| {' | '.join(cells)} |"

    def summary(self, rows: Sequence[Row]) -> str:
        """Geometric means of the ratios, over the cells that both finished."""
        told = []
        for who in self.machines:
            if who != OURS:
                ratios = [ratio(row["fits"], who, self.measures[0]) for row in rows]
                both = sum(0.0 < one < math.inf for one in ratios)
                told.append(f"{who} / ours: geometric mean {geometric_mean(ratios):.3g} of {both} cells of {len(rows)}")
        return "\n".join(told)

    @property
    def measures(self) -> tuple[str, ...]:
        """What is compared in this mode, the more important first."""
        return {"predict": ("decision", "predict"), "small": ("seconds_again", "seconds", "one_row_seconds")}.get(
            self.mode, ("seconds",)
        )

    def _said(self, fits: Mapping[str, Any], who: str) -> str:
        fit = fits[who]
        if fit["seconds"] is None:
            return self._unfinished(fits, fit)
        times = {name: ratio(fits, who, name) for name in self.measures}
        beside = {name: "" if who == OURS or not one > 0.0 else f" ({one:.3g}×)" for name, one in times.items()}
        if self.mode == "predict":
            of = fit["prediction"]
            shown = (f"{of[f'{name}_seconds']:.3g} s{beside[name]}" for name in self.measures)
            return f"{', '.join(shown)}; {fit['n_support_vectors']}, {of['right']:.4f}"
        if self.mode == "small":
            fits_ms = f"{1e3 * fit['seconds']:.3g}, {1e3 * fit['seconds_again']:.3g} ms{beside['seconds_again']}"
            return f"{fits_ms}; {1e6 * fit['one_row_seconds']:.3g} µs{beside['one_row_seconds']}; {fit['gap']:.0e}"
        tol = f"; tol={fit['tol']:g}" if self.mode == "equal" else ""
        return f"{fit['seconds']:.3g} s, {fit['gap']:.0e}{beside['seconds']}{tol}{doubts(fit)}"

    def _unfinished(self, fits: Mapping[str, Any], fit: Mapping[str, Any]) -> str:
        if fit["outcome"] in NEVER.values():
            return fit["outcome"] + ("" if fit["gap"] is None else f", best gap {fit['gap']:.0e}")
        if fit["outcome"] != TIME_LIMIT:
            return f"{fit['outcome']} {str(fit.get('error', ''))[:60]}".rstrip()
        ours = fits[OURS]["seconds"] if OURS in fits else None
        return f"> {self.limit:g} s" + ("" if not ours else f" (> {self.limit / ours:.3g}×)")


def doubts(fit: Mapping[str, Any]) -> str:
    """What else must be said of a fit: it ended early, its true gap is above what it claims, it is not what it says."""
    notes = [] if fit.get("status", CONVERGED) == CONVERGED else [f"{fit['status']} at {fit['certified_gap']:.0e}"]
    notes += ["ABOVE ITS CLAIM"] if fit["gap"] > fit.get("certified_gap", math.inf) + ROUNDING else []
    notes += [] if fit.get("accelerated", True) else ["not accelerated"]
    return "".join(f"; {note}" for note in notes)


def ratio(fits: Mapping[str, Any], who: str, measure: str) -> float:
    """A peer's seconds over ours; infinite or 0 if only one of them ended, not a number if none did."""
    its, ours = (_time(fits.get(one), measure) for one in (who, OURS))
    if its is None or ours is None:
        return math.nan if its == ours else (math.inf if its is None else 0.0)
    return its / ours


def _time(fit: Mapping[str, Any] | None, measure: str) -> float | None:
    if fit is None or fit["seconds"] is None:
        return None
    if measure in ("decision", "predict"):
        return float(fit["prediction"][f"{measure}_seconds"])
    return float(fit[measure])

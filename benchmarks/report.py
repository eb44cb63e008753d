"""Results as JSON on disk and as a Markdown table."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from benchmarks.solvers import OURS

Results = dict[str, Any]


def write(results: Results, path: Path) -> None:
    """Write so that an interruption leaves either the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(_plain(results), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    os.replace(beside, path)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def table(results: Results) -> str:
    """One Markdown table for each target; only peers that were measured somewhere have a column."""
    plan, cells = results["plan"], results["cells"]
    peers = [peer for peer in plan["peers"] if any(_has_to_say(cell["peers"].get(peer)) for cell in cells)]
    return "\n\n".join(_one_table(cells, peers, target, plan["time_limit"]) for target in plan["targets"])


def _has_to_say(peer: Results | None) -> bool:
    return peer is not None and peer["outcome"] != "unsupported"


def _one_table(cells: list[Results], peers: list[str], target: float, limit: float) -> str:
    ours = (f"maxmargin, tol={target:g}", "maxmargin, default (certified gap)")
    heads = ["data set", "loss", "C", *ours, *(_head(peer) for peer in peers)]
    lines = [
        f"Time to a relative suboptimality of {target:g}; in brackets the ratio to maxmargin with tol={target:g}.",
        "",
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
    ]
    for cell in cells:
        at = cell.get("at_target", {}).get(f"{target:g}", {"outcome": "not run"})
        shown = [_name(cell), cell["loss"], f"{cell['C']:g}", _ours(at, False), _ours(cell[OURS], True)]
        shown += [_peer(cell["peers"].get(peer), target, limit, at.get("seconds")) for peer in peers]
        lines.append("| " + " | ".join(shown) + " |")
    return "\n".join(lines)


def _name(cell: Results) -> str:
    reference = cell.get("reference", {})
    doubt = f" (optimum known to {reference.get('gap', math.nan):.0e} only)" if reference.get("doubt") else ""
    return f"{cell['dataset']['name']}{doubt}"


def _head(peer: str) -> str:
    return f"{peer}, best setting" if peer == OURS else peer


def _ours(ours: Results, with_gap: bool) -> str:
    if ours.get("seconds") is None:
        return str(ours["outcome"])
    doubts = [] if ours.get("verified") else ["NOT VERIFIED"]
    doubts += ["MISSED"] if ours.get("missed") else []
    doubts += [] if ours.get("status", "CONVERGED") == "CONVERGED" else [ours["status"]]
    notes = [f"{ours.get('gap', math.nan):.0e}", *doubts] if with_gap else doubts
    return _time(ours["seconds"]) + (f" ({', '.join(notes)})" if notes else "")


def _peer(peer: Results | None, target: float, limit: float, ours: float | None) -> str:
    if peer is None:
        return "not run"
    if peer["outcome"] != "measured":
        return "—" if peer["outcome"] == "unsupported" else peer["outcome"]
    best = peer["targets"].get(f"{target:g}")
    if best is not None:
        alone = best.get("train_seconds")
        train = "" if alone is None else f"; train alone {_time(alone)}{_ratio(alone, ours)}"
        return f"{_time(best['seconds'])}{_ratio(best['seconds'], ours)}{train}"
    closest = peer["closest"]
    if closest is None:
        return f"never within {limit:g} s (no answer)"
    reached = closest["suboptimality"]
    how_close = "not finite" if reached is None or not math.isfinite(reached) else f"{reached:.1e}"
    stopped = any(run["outcome"] == "time limit" for run in peer["runs"])
    why = "" if stopped else "; every setting ended by itself"
    return f"never within {limit:g} s (best {how_close} at {_time(closest['seconds'])}{why})"


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 1000.0 else f"{seconds:.0f} s"


def _ratio(seconds: float, ours: float | None) -> str:
    if not ours:
        return ""
    ratio = seconds / ours
    return f" ({ratio:.0f}×)" if ratio >= 100.0 else f" ({ratio:.2g}×)"

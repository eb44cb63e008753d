"""The figures of the page, each with a text that says what it shows."""

from __future__ import annotations

import base64
import io
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.data.errors import need
from maxmargin.report.outcome import Outcome
from maxmargin.selection import Search

BLUE, ORANGE, GREY, INK = "#2563eb", "#c2410c", "#9ca3af", "#1f2937"
SIZE = (3.9, 2.8)  # inches: text stays readable on a phone
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.grid": True,
    "grid.color": "#e5e7eb",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": True,
    "legend.framealpha": 0.9,
    "legend.edgecolor": "none",
    "svg.hashsalt": "maxmargin",
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Figure:
    """An SVG picture; ``alt`` says in words what can be seen, ``caption`` how to read it."""

    svg: bytes
    alt: str
    caption: str

    @property
    def data_uri(self) -> str:
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg).decode()


def import_matplotlib() -> Any:
    """Matplotlib's Figure class and rc_context; no window system and no global state is touched."""
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError:
        raise need("Matplotlib", "the report", "report") from None
    return matplotlib


def draw(paint: Any, alt: str, caption: str, height: float = SIZE[1]) -> Figure:
    matplotlib = import_matplotlib()
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        figure = matplotlib.figure.Figure(figsize=(SIZE[0], height))
        paint(figure.add_subplot())
        out = io.BytesIO()
        warnings.simplefilter("ignore", UserWarning)  # letters the font lacks are drawn as boxes
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return Figure(out.getvalue(), alt, caption)


def search_figure(search: Search) -> Figure:
    """Cross-validation error against C."""
    mean, error = 100 * search.mean, 100 * search.standard_error
    left = search.best < 0.5 * len(search.Cs)

    def paint(ax: Any) -> None:
        ax.errorbar(search.Cs, mean, yerr=error, color=BLUE, marker="o", ms=4, capsize=3, lw=1.4)
        ax.plot([search.best_C], [mean[search.best]], "o", ms=10, mfc="none", mec=ORANGE, mew=1.8)
        ax.annotate(
            f"C = {search.best_C:g}",
            (search.best_C, mean[search.best]),
            textcoords="offset points",
            xytext=(9, 12) if left else (-9, 12),
            ha="left" if left else "right",
            color=ORANGE,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1},
        )
        ax.set_xscale("log")
        ax.set_ylim(bottom=0)
        ax.set_xlabel("C (price of slack)")
        ax.set_ylabel("validation error, %")

    values = ", ".join(f"{C:g}: {m:.1f} %" for C, m in zip(search.Cs, mean, strict=True))
    return draw(
        paint,
        f"Line chart of the validation error against C. {values}. Smallest at C = {search.best_C:g}.",
        f"Mean error over {search.errors.shape[1]} folds, bars of one standard error. Of equals the smallest is taken.",
    )


def margin_figure(outcome: Outcome) -> Figure:
    """How far on its own side each row lies."""
    learned = outcome.margins
    seen = [learned]
    if outcome.test is not None:
        sign = np.where(outcome.test.y == outcome.test.classes[1], 1.0, -1.0)
        seen.append(sign * outcome.test.scores)
    everything = np.concatenate(seen)
    # A few far rows must not squeeze the picture: they are counted in the outermost bars.
    low, high = np.quantile(everything, [0.005, 0.995])
    low, high = min(float(low), -0.5), max(float(high), 1.5)
    bins = np.linspace(low, high, 41)
    wrong, inside = int(np.sum(learned <= 0)), int(np.sum((learned > 0) & (learned < 1)))

    def paint(ax: Any) -> None:
        for margins, colour, label in zip(seen, (BLUE, ORANGE), ("learned from", "unseen"), strict=False):
            share = np.full(len(margins), 100.0 / len(margins))
            style = {"histtype": "stepfilled", "alpha": 0.35} if colour == BLUE else {"histtype": "step", "lw": 1.6}
            ax.hist(np.clip(margins, low, high), bins=bins, weights=share, color=colour, label=label, **style)
        ax.axvline(0, color=INK, lw=1.2)
        ax.axvline(1, color=INK, lw=1.2, ls="--")
        ax.set_xlabel("margin y·score (wrong side < 0, margin at 1)")
        ax.set_ylabel("rows, %")
        ax.legend()

    return draw(
        paint,
        f"Histogram of the margins. Of {len(learned)} rows learned from, {wrong} lie on the wrong side, {inside} "
        f"inside the margin and {len(learned) - wrong - inside} beyond it.",
        "Left of the solid line: wrong side. Between the lines: right, but inside the margin.",
    )


def gap_figure(outcome: Outcome) -> Figure:
    """The gap against time, on logarithmic scale."""
    solution = outcome.model.machine.solution_
    tol = float(outcome.model.machine.tol)
    points = [(1e3 * r.seconds, r.gap) for r in solution.history.records if 0.0 < r.gap < math.inf]
    end = (1e3 * max(solution.seconds, points[-1][0] / 1e3 if points else 0.0), max(solution.gap, 1e-17))
    points.append(end)
    times, gaps = zip(*points, strict=True)
    unit, factor = ("ms", 1.0) if times[-1] < 2000 else ("s", 1e-3)

    def paint(ax: Any) -> None:
        ax.plot([factor * t for t in times], gaps, color=BLUE, marker=".", lw=1.2)
        ax.plot([factor * times[-1]], [gaps[-1]], "o", color=ORANGE, ms=6)
        ax.axhline(tol, color=INK, ls="--", lw=1)
        ax.annotate("asked", (1, tol), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8)
        ax.set_yscale("log")
        ax.set_xlim(left=0)
        ax.set_xlabel(f"time, {unit}")
        ax.set_ylabel("relative duality gap")

    return draw(
        paint,
        f"Line chart of the relative duality gap against time: from {gaps[0]:.1e} to {gaps[-1]:.1e} after "
        f"{factor * times[-1]:.3g} {unit}; {tol:.0e} was asked for.",
        "How far, at most, the hyperplane was from the best one while the solver worked; the last point is certified.",
    )


def _drawable(name: str) -> str:
    """A name that fits beside a bar: short, printable, and without signs that Matplotlib takes for formulas."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    return (shown if len(shown) <= 24 else shown[:23] + "…").replace("$", r"\$")


def weights_figure(outcome: Outcome, most: int = 12) -> Figure:
    """The largest weights by name."""
    coef = outcome.model.machine.coef_[0]
    names = outcome.model.feature_names
    order = np.argsort(-np.abs(coef), kind="stable")[: min(most, len(coef))]
    order = order[coef[order] != 0.0] if np.any(coef) else order[:1]
    labels = [_drawable(names[j]) for j in order]
    classes = [str(c) for c in outcome.model.machine.classes_.tolist()]

    def paint(ax: Any) -> None:
        y = np.arange(len(order))[::-1]
        ax.barh(y, coef[order], color=[BLUE if c > 0 else ORANGE for c in coef[order]], height=0.7)
        ax.set_yticks(y, labels)
        ax.axvline(0, color=INK, lw=0.8)
        ax.grid(axis="y", visible=False)
        ax.set_xlabel("weight" + (" (of the scaled column)" if outcome.model.scaling is not None else ""))

    listed = ", ".join(f"{names[j]} {coef[j]:+.3g}" for j in order)
    return draw(
        paint,
        f"Bar chart of the {len(order)} largest of {len(coef)} weights: {listed}.",
        f"Blue speaks for “{classes[1]}”, orange for “{classes[0]}”.",
        height=max(1.6, 0.55 + 0.21 * len(order)),
    )

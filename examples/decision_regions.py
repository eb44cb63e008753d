"""Decision regions, margins and support vectors in the plane: three kernels, two values of C, one picture."""

import argparse
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.datasets import make_moons
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC
from maxmargin.kernels import Gaussian, Linear, Polynomial

KERNELS = {
    "Linear kernel: a straight line": Linear(),
    "Polynomial kernel, degree 3: a curve": Polynomial(gamma=1.0, coef0=1.0, degree=3),
    "Gaussian kernel: any shape": Gaussian(gamma=1.0),
}
COSTS = {
    0.1: "C = 0.1: slack is cheap,\nthe margin is wide",
    30.0: "C = 30: slack is dear,\nthe margin is narrow",
}
TITLE = "The marked points alone decide where the line runs"
LINES = (
    "Solid line: where the decision changes.  Dashed lines: the margin, y f(x) = 1.\n"
    "Small points are no support vectors: if they were not there, the picture would be the same."
)

INK, GREY = "#1f2937", "#6b7280"
CLASSES = ("#d55e00", "#0072b2")  # vermilion and blue, which colour-blind readers tell apart
TINTS = ("#f6c9ab", "#fcebe0", "#e1eef7", "#abd0e8")  # beyond the margin, inside it; inside it, beyond
MARKS = {  # of support vectors: the marker, its size, and what it means
    "free": ("o", 58, "on the margin: free_"),
    "inside": ("s", 34, "inside the margin: bounded_"),
    "wrong": ("X", 64, "on the wrong side: bounded_"),
}
STYLE = {"font.size": 10, "text.color": INK, "axes.edgecolor": "#9ca3af", "axes.titlesize": 11.5}


def kinds(machine, X, y):
    """The rows as a reader of the picture tells them apart; those beyond the margin are ``violating_``."""
    wrong = y * machine.decision_function(X) < 0.0
    at_bound = np.isin(np.arange(len(y)), machine.bounded_)
    return {
        "free": machine.free_,
        "inside": np.flatnonzero(at_bound & ~wrong),
        "wrong": np.flatnonzero(at_bound & wrong),
    }


def paint(ax, machine, X, y):
    """Regions, margins and marked points of one machine."""
    low, high = X.min(axis=0) - 0.35, X.max(axis=0) + 0.35
    across, up = np.meshgrid(np.linspace(low[0], high[0], 320), np.linspace(low[1], high[1], 260))
    f = machine.decision_function(np.column_stack([across.ravel(), up.ravel()])).reshape(across.shape)
    edge = 1.0 + np.abs(f).max()
    ax.contourf(across, up, f, levels=[-edge, -1.0, 0.0, 1.0, edge], colors=TINTS)
    ax.contour(across, up, f, levels=[-1.0, 1.0], colors=GREY, linestyles="dashed", linewidths=1.0)
    ax.contour(across, up, f, levels=[0.0], colors=INK, linewidths=1.8)
    marked = kinds(machine, X, y)
    for label, colour in zip((-1, 1), CLASSES, strict=True):
        plain = np.setdiff1d(np.flatnonzero(y == label), machine.support_)
        ax.scatter(*X[plain].T, s=11, color=colour, linewidths=0)
        for kind, rows in marked.items():
            shown = rows[y[rows] == label]
            marker, size, _ = MARKS[kind]
            edges = {"edgecolors": INK, "linewidths": 1.5} if kind == "free" else {"edgecolors": "white"}
            ax.scatter(*X[shown].T, s=size, color=colour, marker=marker, zorder=4 if kind == "free" else 3, **edges)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])
    counts = f"{len(machine.support_)} of {len(y)} points are support vectors, {len(machine.free_)} free"
    ax.set_xlabel(f"{counts}\n{100.0 * np.mean(machine.predict(X) != y):.0f} % on the wrong side", color=INK)


def explained():
    """The marks in grey: colour says the class."""
    points = [
        Line2D(
            [], [], marker="o", markersize=8, color=colour, linestyle="none", markeredgewidth=0, label=f"class {name}"
        )
        for name, colour in zip(("−1", "+1"), CLASSES, strict=True)
    ]
    for kind, (marker, _, meaning) in MARKS.items():
        edge = INK if kind == "free" else "white"
        points.append(
            Line2D(
                [], [], marker=marker, markersize=8, color=GREY, linestyle="none", markeredgecolor=edge,
                label=meaning,
            )
        )  # fmt: skip
    return points


def picture(machines, X, y):
    """One panel per kernel and C."""
    with rc_context(STYLE):
        figure = Figure(figsize=(12.0, 8.8), layout="constrained")
        top, middle, bottom = figure.subfigures(3, 1, height_ratios=[0.12, 0.82, 0.06])
        top.text(0.5, 0.66, TITLE, ha="center", fontsize=18, weight="bold")
        top.text(0.5, 0.06, LINES, ha="center", fontsize=11.5, color=GREY, linespacing=1.4)
        panels = middle.subplots(len(COSTS), len(KERNELS))
        for line, (C, meaning) in zip(panels, COSTS.items(), strict=True):
            line[0].set_ylabel(meaning, fontsize=11.5, color=INK, labelpad=10)
            for ax, name in zip(line, KERNELS, strict=True):
                paint(ax, machines[name, C], X, y)
        for ax, name in zip(panels[0], KERNELS, strict=True):
            ax.set_title(name, pad=8, weight="bold")
        bottom.legend(handles=explained(), loc="center", ncols=5, frameon=False, fontsize=11, columnspacing=2.4)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(), help="folder for decision_regions.png (default: here)")
    folder = parser.parse_args().output
    X, target = make_moons(140, noise=0.24, random_state=3)
    X, y = StandardScaler().fit_transform(X), 2 * target - 1

    machines = {(name, C): SVC(kernel=kernel, C=C).fit(X, y) for name, kernel in KERNELS.items() for C in COSTS}
    for (_, C), machine in machines.items():
        counts = {kind: len(rows) for kind, rows in kinds(machine, X, y).items()}
        print(
            f"{machine.kernel_!r}, C = {C:g}: {len(machine.support_)} support vectors, {counts['free']} on the margin, "
            f"{counts['inside']} inside, {counts['wrong']} on the wrong side"
        )
        distance = np.abs(y * machine.decision_function(X) - 1.0)[machine.free_].max()
        assert distance < 1e-3, distance
        assert machine.certificate_.verify(X, y)
    print(f"  verified: all {len(machines)} machines are the best of their kind, and free points lie on the margin")

    folder.mkdir(parents=True, exist_ok=True)
    picture(machines, X, y).savefig(folder / "decision_regions.png", dpi=100)
    print(f"picture: {folder / 'decision_regions.png'}")


if __name__ == "__main__":
    main()

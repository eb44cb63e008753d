"""The path of an online machine as pictures: an animation in the plane, and mistakes against passes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.data.errors import need
from maxmargin.data.files import atomic_write
from maxmargin.online import Trace
from maxmargin.report.figures import BLUE, GREY, INK, ORANGE, SIZE, STYLE, Figure, draw, import_matplotlib

MOST_FRAMES = 200


def mistakes_figure(machine: Any) -> Figure:
    """Mistakes and corrections against passes.

    Examples
    --------
    >>> from maxmargin import Perceptron
    >>> mistakes_figure(Perceptron().fit([[-1.0], [1.0]], [0, 1])).alt[:24]
    'Line chart of mistakes a'
    """
    mistakes, updates = (np.atleast_2d(getattr(machine, name)).sum(axis=0) for name in COUNTS)
    passes = np.arange(1, len(mistakes) + 1)

    def paint(ax: Any) -> None:
        if not np.array_equal(mistakes, updates):
            ax.plot(passes, updates, color=GREY, marker=".", lw=1.2, label="corrections")
        ax.plot(passes, mistakes, color=BLUE, marker="o", ms=3.5, lw=1.4, label="mistakes")
        ax.set_ylim(bottom=0)
        ax.set_xlim(0.5, len(passes) + 0.5)
        ax.set_xlabel("pass over the rows")
        ax.set_ylabel("rows")
        ax.xaxis.get_major_locator().set_params(integer=True)
        if len(ax.lines) > 1:
            ax.legend()

    values = ", ".join(str(int(m)) for m in mistakes[:30]) + (" …" if len(mistakes) > 30 else "")
    name = type(machine).__name__
    return draw(
        paint,
        f"Line chart of mistakes against passes: {values}.",
        f"{name}: {int(mistakes.sum())} mistakes in {len(passes)} passes, {int(mistakes[-1])} in the last one.",
    )


COUNTS = ("mistakes_per_pass_", "updates_per_pass_")


def animate(
    machine: Any, X: Any, y: Any, path: str | os.PathLike[str], *, frames: int = 60, frames_per_second: int = 6
) -> Path:
    """Write the path of a machine fitted with ``trace=True`` on two columns as a moving picture.

    Parameters
    ----------
    machine : fitted on X of two columns with two classes.
    X, y : the rows to show.
    path : a name that ends in .gif or .html (a page that needs no network).
    frames : most pictures; of a longer path every k-th correction is shown.
    """
    target = Path(path)
    if target.suffix not in (".gif", ".html"):
        raise ValueError(f"path must end in .gif or .html, got {target.name!r}")
    if not 1 <= frames <= MOST_FRAMES:
        raise ValueError(f"frames must be from 1 to {MOST_FRAMES}, got {frames!r}")
    trace = _plane(machine)
    points, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"X must have two columns to be drawn, got shape {points.shape}")
    shown = np.unique(np.linspace(0, len(trace) - 1, min(frames, len(trace))).round().astype(int))
    pictures = _Pictures(machine, trace, points, labels)
    with atomic_write(target) as file:
        file.write(pictures.write(shown, frames_per_second, target.suffix))
    return target


def _plane(machine: Any) -> Trace:
    trace: Trace | list[Trace] | None = getattr(machine, "trace_", None)
    if trace is None:
        raise ValueError("there is no path to show: fit the machine with trace=True")
    if isinstance(trace, list) or trace.coef.shape[1] != 2:
        raise ValueError("only machines for two classes and two columns can be drawn in the plane")
    if not len(trace):
        raise ValueError("the path is empty: no row was ever corrected")
    return trace


class _Pictures:
    """One picture per chosen step: rows, line, and the counts so far."""

    def __init__(self, machine: Any, trace: Trace, X: NDArray[Any], y: NDArray[Any]) -> None:
        self.machine, self.trace, self.X, self.y = machine, trace, X, y
        low, high = X.min(axis=0), X.max(axis=0)
        pad = 0.08 * np.maximum(high - low, 1e-9)
        self.low, self.high = low - pad, high + pad

    def write(self, shown: NDArray[Any], fps: int, kind: str) -> bytes:
        matplotlib = import_matplotlib()
        try:
            from matplotlib.animation import FuncAnimation, HTMLWriter, PillowWriter
            from matplotlib.backends.backend_agg import FigureCanvasAgg
        except ImportError:  # pragma: no cover - Pillow comes with Matplotlib
            raise need("Pillow", "moving pictures", "report") from None
        import tempfile

        with (
            matplotlib.rc_context(STYLE | {"figure.constrained_layout.use": False}),
            tempfile.TemporaryDirectory() as folder,
        ):
            figure = matplotlib.figure.Figure(figsize=(SIZE[0], SIZE[0]), dpi=110)
            FigureCanvasAgg(figure)
            ax = figure.add_axes((0.12, 0.12, 0.84, 0.78))
            moving = FuncAnimation(figure, lambda k: self.paint(ax, int(k)), frames=shown, repeat=False)
            name = os.path.join(folder, "path" + kind)
            writer = PillowWriter(fps=fps) if kind == ".gif" else HTMLWriter(fps=fps, embed_frames=True)
            moving.save(name, writer=writer)
            return Path(name).read_bytes()

    def paint(self, ax: Any, k: int) -> None:
        ax.clear()
        w, b = self.trace.coef[k], float(self.trace.intercept[k])
        for label, colour, marker in zip(self.machine.classes_, (BLUE, ORANGE), ("o", "^"), strict=True):
            chosen = self.y == label
            ax.scatter(*self.X[chosen].T, s=16, c=colour, marker=marker, alpha=0.75, lw=0, label=str(label))
        across, up = np.meshgrid(*(np.linspace(self.low[j], self.high[j], 60) for j in range(2)))
        score = w[0] * across + w[1] * up + b
        if score.min() < 0.0 < score.max():
            ax.contourf(across, up, score, levels=[-np.inf, 0.0, np.inf], colors=[BLUE, ORANGE], alpha=0.08)
            ax.contour(across, up, score, levels=[0.0], colors=[INK], linewidths=1.6)
        ax.set_xlim(self.low[0], self.high[0])
        ax.set_ylim(self.low[1], self.high[1])
        wrong = int((np.where(self.y == self.machine.classes_[1], 1, -1) * (self.X @ w + b) <= 0).sum())
        ax.set_title(
            f"pass {self.trace.passes[k] + 1}, correction {k + 1} of {len(self.trace)}: {wrong} rows wrong", fontsize=9
        )
        ax.legend(loc="lower right", fontsize=8)

"""The path of an online machine as pictures: an animation in the plane, and mistakes against passes."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

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
    check_is_fitted(machine, COUNTS)
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

    The line moves with every correction; dashed is where the machine's own hyperplane ended, which is the pocket's or
    the average where there is one.

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
    for name, value, most in (("frames", frames, MOST_FRAMES), ("frames_per_second", frames_per_second, 60)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= most:
            raise ValueError(f"{name} must be a whole number from 1 to {most}, got {value!r}")
    trace = _plane(machine)
    points = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    labels = np.asarray(y)
    if points.ndim != 2 or points.shape[1] != 2 or not len(points) or not np.isfinite(points).all():
        raise ValueError(f"X must have two columns of finite numbers to be drawn, got shape {points.shape}")
    if labels.shape != (len(points),):
        raise ValueError(f"y must hold one label for each of the {len(points)} rows, got shape {labels.shape}")
    shown = np.unique(np.linspace(0, len(trace) - 1, min(frames, len(trace))).round().astype(int))
    pictures = _Pictures(machine, trace, points, labels)
    with atomic_write(target) as file:
        file.write(pictures.write(shown, frames_per_second, target.suffix))
    return target


def _plane(machine: Any) -> Trace:
    trace: Trace | list[Trace] | None = getattr(machine, "trace_", None)
    if trace is None:
        raise ValueError("there is no path to show: fit the machine with trace=True")
    if isinstance(trace, list) or trace.coef.shape[1] != 2 or np.shape(getattr(machine, "coef_", ())) != (1, 2):
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
        frames = list(self._frames(shown))
        return _as_gif(frames, fps) if kind == ".gif" else _as_page(frames, fps, type(self.machine).__name__)

    def _frames(self, shown: NDArray[Any]) -> Iterator[bytes]:
        """PNG pictures."""
        matplotlib = import_matplotlib()
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        with matplotlib.rc_context(STYLE | {"figure.constrained_layout.use": False}):
            figure = matplotlib.figure.Figure(figsize=(SIZE[0], SIZE[0]), dpi=110)
            canvas = FigureCanvasAgg(figure)
            ax = figure.add_axes((0.12, 0.12, 0.84, 0.78))
            for k in shown:
                self.paint(ax, int(k))
                picture = io.BytesIO()
                canvas.print_png(picture)
                yield picture.getvalue()

    def paint(self, ax: Any, k: int) -> None:
        ax.clear()
        w, b = self.trace.coef[k], float(self.trace.intercept[k])
        for label, colour, marker in zip(self.machine.classes_, (BLUE, ORANGE), ("o", "^"), strict=True):
            chosen = self.y == label
            ax.scatter(
                *self.X[chosen].T, s=16, c=colour, marker=marker, alpha=0.75, lw=0, label=str(label).replace("$", r"\$")
            )
        across, up = np.meshgrid(*(np.linspace(self.low[j], self.high[j], 60) for j in range(2)))
        score = w[0] * across + w[1] * up + b
        ax.contourf(across, up, score, levels=[-np.inf, 0.0, np.inf], colors=[BLUE, ORANGE], alpha=0.08)
        final = self.machine.coef_[0, 0] * across + self.machine.coef_[0, 1] * up + self.machine.intercept_[0]
        for values, colour, style in ((final, GREY, "dashed"), (score, INK, "solid")):
            if values.min() < 0.0 < values.max():
                ax.contour(across, up, values, levels=[0.0], colors=[colour], linewidths=1.5, linestyles=style)
        ax.set_xlim(self.low[0], self.high[0])
        ax.set_ylim(self.low[1], self.high[1])
        wrong = int((np.where(self.y == self.machine.classes_[1], 1, -1) * (self.X @ w + b) <= 0).sum())
        ax.set_title(
            f"pass {self.trace.passes[k] + 1}, correction {k + 1} of {len(self.trace)}: {wrong} rows wrong", fontsize=9
        )
        ax.legend(loc="lower right", fontsize=8)


def _as_gif(frames: list[bytes], fps: int) -> bytes:
    try:
        from PIL import Image
    except ImportError:  # pragma: no cover - Pillow comes with Matplotlib
        raise need("Pillow", "moving pictures", "report") from None
    first, *others = (Image.open(io.BytesIO(frame)).convert("RGB") for frame in frames)
    whole = io.BytesIO()
    first.save(whole, "GIF", save_all=True, append_images=others, duration=round(1000 / fps), loop=0)
    return whole.getvalue()


def _as_page(frames: list[bytes], fps: int, name: str) -> bytes:
    pictures = ",".join(f'"{base64.b64encode(frame).decode()}"' for frame in frames)
    page = PAGE.replace("@name", name).replace("@last", str(len(frames) - 1)).replace("@wait", str(round(1000 / fps)))
    return page.replace("@pictures", pictures).encode()


PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The path of @name</title>
<style>
  body { font: 15px/1.5 system-ui, sans-serif; color: #1f2328; max-width: 30rem; margin: 1.5rem auto; padding: 0 1rem }
  img { width: 100%; display: block }
  div { display: flex; gap: .75rem; align-items: center }
  input { flex: 1 }
  button { font: inherit; padding: .2rem .9rem }
</style>
<h1 style="font-size: 1.1rem">The path of @name</h1>
<img id="picture" alt="Rows of two classes in the plane, and the line that separates them at this step.">
<div>
  <button id="play" type="button">Play</button>
  <input id="step" type="range" min="0" max="@last" value="0" aria-label="step">
</div>
<script>
  const pictures = [@pictures];
  const [picture, play, step] = ["picture", "play", "step"].map(id => document.getElementById(id));
  let timer = null;
  const show = () => { picture.src = "data:image/png;base64," + pictures[step.value]; };
  const stop = () => { clearInterval(timer); timer = null; play.textContent = "Play"; };
  const next = () => { if (+step.value === @last) return stop(); step.value = +step.value + 1; show(); };
  const start = () => {
    if (+step.value === @last) step.value = 0;
    play.textContent = "Pause";
    timer = setInterval(next, @wait);
    show();
  };
  play.onclick = () => timer === null ? start() : stop();
  step.oninput = () => { stop(); show(); };
  show();
  if (!matchMedia("(prefers-reduced-motion: reduce)").matches) start();
</script>
</html>
"""

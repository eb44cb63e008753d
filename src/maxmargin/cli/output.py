"""Sentences to people, JSON to machines, and a progress bar where there is a terminal."""

from __future__ import annotations

import errno
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LINE_EVERY = 2.0  # seconds between plain progress lines


class Output:
    """Where a command speaks. With ``as_json`` stdout holds one JSON object and nothing else."""

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json

    def say(self, text: str = "") -> None:
        if not self.as_json:
            print(text, flush=True)

    def fact(self, name: str, text: Any) -> None:
        """A line of a list of facts."""
        self.say(f"{name:<17}{text}")

    def warn(self, text: str) -> None:
        print(f"maxmargin: {text}", file=sys.stderr, flush=True)

    def result(self, value: dict[str, Any]) -> None:
        if self.as_json:
            print(json.dumps(_finite(value), ensure_ascii=False, indent=2), flush=True)

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """Progress of a known number of steps."""
        with _progress(what) as show:
            yield lambda done, total: show(done / total, f"{done} of {total}")

    @contextmanager
    def closing_in(self, what: str, tol: float) -> Iterator[Callable[[int, float, float], None]]:
        """Progress of a fit: as far as the logarithm of its gap is from 1 to ``tol``."""
        with _progress(what) as show:

            def listen(iteration: int, gap: float, seconds: float) -> None:
                share = math.log(min(max(gap, tol), 1.0)) / math.log(min(tol, 0.5))
                show(share, f"gap {gap:.1e}, iteration {iteration}")

            yield listen


@contextmanager
def _progress(what: str) -> Iterator[Callable[[float, str], None]]:
    if not sys.stderr.isatty():
        yield _plain_lines(what)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=1.0, note="")
        yield lambda share, note: bar.update(task, completed=share, note=note)


def _plain_lines(what: str) -> Callable[[float, str], None]:
    last = time.monotonic()

    def show(share: float, note: str) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_EVERY:
            last = time.monotonic()
            print(f"{what}: {note}", file=sys.stderr, flush=True)

    return show


def check_target(path: Path, *sources: Path) -> None:
    """Refuse at once what could only be refused after all the work: a folder that is not there, or a source itself."""
    import typer

    if path.exists() and any(source.exists() and path.samefile(source) for source in sources):
        raise typer.BadParameter(f"{path} is read by this command; it would be overwritten")
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; name a file in it")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(folder))
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def _finite(value: Any) -> Any:
    """JSON has no infinities: null instead."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

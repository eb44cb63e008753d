"""Learning from batches that come one after the other: iterators, and files larger than memory."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.data import Batches, DataError, open_batches, survey
from maxmargin.data.seal import Seal
from maxmargin.errors import InputError
from maxmargin.estimators import ConvergenceWarning, warn
from maxmargin.inputs import number_in
from maxmargin.online.base import whole_number
from maxmargin.online.checkpoint import Checkpoint
from maxmargin.runtime import Watch
from maxmargin.space.rows import arrays_of

Source = str | os.PathLike[str] | Iterable[tuple[Any, Any]] | Callable[[], Iterable[tuple[Any, Any]]]


def fit_stream(
    machine: Any,
    source: Source,
    *,
    classes: ArrayLike | None = None,
    n_passes: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
    progress: bool = False,
    **options: Any,
) -> Any:
    """See ``fit_stream`` of the machines."""
    whole_number("n_passes", n_passes, 1)
    number_in("checkpoint_seconds", checkpoint_seconds, 0.0, math.inf)
    if checkpoint is not None and not isinstance(machine.random_state, int | np.integer | None):
        raise InputError(
            "a checkpoint needs random_state to be a whole number or None: what is left of a generator is not saved"
        )
    if classes is not None and not hasattr(type(machine), "decision_function"):
        raise InputError(f"{type(machine).__name__} learns numbers; classes has no meaning for it")
    stream = _File(source, options) if isinstance(source, str | os.PathLike) else _Given(source, options)
    if n_passes > 1 and not stream.again:
        raise InputError(
            "an iterator can be read once only: give n_passes=1, a list of batches, a function that returns a new "
            "iterator, or a file"
        )
    run = _Run(machine, stream, classes, n_passes, checkpoint, checkpoint_seconds, _Report(progress, stream))
    return run.go()


class _Given:
    """Batches (X, y) from an iterable, or from a function that makes a new iterator for every pass."""

    def __init__(self, source: Any, options: dict[str, Any]) -> None:
        if options:
            raise InputError(f"{sorted(options)} are options of files; this source hands over its batches itself")
        self.source = source
        self.again = callable(source) or not isinstance(source, Iterator)
        self.name = "batches"
        self.identity: dict[str, Any] = {"name": self.name}
        self._state, self._n_bytes = hashlib.sha256(), 0  # of the batches of this pass
        self._expected: Seal | None = None
        if not callable(source) and not isinstance(source, Iterable):
            raise InputError(f"source must be a file name, an iterable of (X, y) or a function, got {source!r}")

    def classes(self) -> None:
        return None

    def radius(self) -> None:
        return None

    def read(self, start: Any, sealed: bool) -> Iterator[tuple[Any, Any, Any]]:
        """The batches behind the first ``start``, each with how many there were then."""
        self._state, self._n_bytes, first, n = hashlib.sha256(), 0, start or 0, 0
        for batch in self.source() if callable(self.source) else self.source:
            if not (isinstance(batch, tuple | list) and len(batch) == 2):
                raise InputError(f"batch {n} must be a pair (X, y), got {type(batch).__name__}")
            if n == first:
                self._compare(n, first)
            if sealed:
                for part in batch:
                    self._add(part)
            n += 1
            if n > first:
                yield batch[0], batch[1], n
        if n <= first:
            self._compare(n, first)

    def _add(self, part: Any) -> None:
        """Rows or labels of a batch, into the digest."""
        self._state.update(f"{np.shape(part)}".encode())
        for array in arrays_of(part):
            content = (
                repr(array.tolist()).encode() if array.dtype.kind == "O" else np.ascontiguousarray(array).tobytes()
            )
            self._state.update(array.dtype.str.encode())
            self._state.update(content)
            self._n_bytes += len(content)

    def seal(self, position: Any) -> Seal | None:
        """A digest of the batches of this pass; each pass may have others, so there is none at its end."""
        return None if position is None else {"bytes": self._n_bytes, "sha256": self._state.hexdigest()}

    def resume(self, seal: Seal | None, position: Any) -> None:
        """The batches that were learned from must come again; they are compared before the next is learned from."""
        if position is not None and (type(position) is not int or position < 0):
            raise DataError(self.name, "position", f"expected a number of batches, got {position!r}")
        self._expected = seal

    def _compare(self, n: int, first: int) -> None:
        expected, self._expected = self._expected, None
        if n < first or (expected is not None and expected != self.seal(n)):
            what = f"there are only {n} batches" if n < first else f"the first {n} batches are not those of before"
            problem = f"{what}, but the machine of the checkpoint has learned from {first}; delete it to start afresh"
            raise DataError(self.name, f"batch {n}", problem)

    def slope(self, position: Any) -> float | None:
        return None


class _File:
    """Batches of a file; what must be known before the first row is found by a pass over it."""

    again = True

    def __init__(self, source: Any, options: dict[str, Any]) -> None:
        self.batches: Batches = open_batches(source, **options)
        self.name = Path(source).name
        chosen = {name: repr(value) for name, value in sorted(options.items()) if name != "max_bytes"}
        self.identity: dict[str, Any] = {"name": self.name, "options": chosen}
        self._survey: Any = None
        self._last: Any = None  # the position behind the last batch

    def _surveyed(self) -> Any:
        if self._survey is None:
            self._survey = survey(self.batches)
        return self._survey

    def classes(self) -> Any:
        found = self._surveyed().classes
        if found is None:
            raise InputError(
                f"{self.name} has no labels, or more than 1000 different ones: a classifier needs a column of labels "
                "(target=...), and classes=... where there are that many"
            )
        return found

    def radius(self) -> float:
        return float(np.sqrt(self._surveyed().largest_squared_norm))

    def read(self, start: Any, sealed: bool) -> Iterator[tuple[Any, Any, Any]]:
        for batch in self.batches.read(start):
            self._last = batch.position
            yield batch.X, batch.y, batch.position

    def seal(self, position: Any) -> Seal:
        """A digest of all that was read of the file so far, in earlier passes, too."""
        return self.batches.seal(self._last)

    def resume(self, seal: Seal | None, position: Any) -> None:
        """What was read must still be there; there may be more behind it."""
        if seal is not None:
            self.batches.verify(seal)

    def slope(self, position: Any) -> float | None:
        return self.batches.slope(position)


class _Report:
    """Progress on standard error: a bar where Rich is there, else a line every few seconds."""

    def __init__(self, wanted: bool, stream: Any) -> None:
        self.wanted, self.stream, self.last = wanted, stream, time.perf_counter()
        self.bar: Any = None

    def begin(self) -> None:
        if not self.wanted:
            return
        try:
            from rich.console import Console
            from rich.progress import Progress
        except ImportError:
            return
        self.bar = Progress(console=Console(stderr=True))
        self.bar.start()
        self.task = self.bar.add_task(self.stream.name, total=1.0)

    def say(self, n_pass: int, position: Any, machine: Any) -> None:
        if not self.wanted:
            return
        share = self.stream.slope(position)
        text = f"{self.stream.name}, pass {n_pass + 1}: {machine.t_} rows, {np.sum(machine.n_mistakes_)} mistakes"
        if self.bar is not None:
            self.bar.update(self.task, completed=share or 0.0, description=text)
        elif time.perf_counter() - self.last > 5.0:
            self.last = time.perf_counter()
            import sys

            print(text + (f", {share:.0%}" if share is not None else ""), file=sys.stderr)

    def end(self) -> None:
        if self.bar is not None:
            self.bar.stop()


class _Run:
    def __init__(
        self, machine: Any, stream: Any, classes: Any, n_passes: int, checkpoint: Any, every: float, report: _Report
    ) -> None:
        self.machine, self.stream, self.n_passes, self.every, self.report = machine, stream, n_passes, every, report
        self.given = classes
        self.file = None if checkpoint is None else Checkpoint(checkpoint, machine, stream.identity, classes)
        self.first_pass, self.position = 0, None
        self.totals: list[list[list[int]]] = []  # mistakes and corrections of every machine at the end of each pass
        self.watch = Watch(machine.max_seconds)

    def go(self) -> Any:
        state = self.file.load() if self.file is not None else None
        if state is None:
            self.machine._forget()
            self._learn_what_is_needed()
        else:
            self.first_pass, self.position, self.totals = state["pass"], state["position"], state["totals"]
            self._refuse_other_rows(state["seal"])
        self.report.begin()
        try:
            if self.totals and self.position is None and (self.first_pass >= self.n_passes or self._content()):
                warn(
                    f"the checkpoint {self.file.path if self.file else ''} is that of a complete fit: nothing was "
                    "read. Delete it to start afresh, or ask for more passes"
                )
                self.n_passes = self.first_pass
            for n_pass in range(self.first_pass, self.n_passes):
                ended = self._one_pass(n_pass)
                if not ended or self._content():
                    break
        finally:
            self.report.end()
        self._finish()
        return self.machine

    def _refuse_other_rows(self, seal: Any) -> None:
        assert self.file is not None
        try:
            self.stream.resume(seal, self.position)
        except DataError as error:
            cure = f"delete the checkpoint {self.file.path} to do so, or give back the file it belongs to"
            raise DataError(error.source, error.place, f"{error.problem} ({cure})") from None

    def _learn_what_is_needed(self) -> None:
        machine = self.machine
        if getattr(machine, "bias", None) == "radius" and machine.fit_intercept and machine.radius is None:
            radius = self.stream.radius()
            if radius is not None:
                machine._radius_known = radius or 1.0

    def _one_pass(self, n_pass: int) -> bool:
        """Whether the pass came to its end."""
        machine, saved, resumed = self.machine, time.perf_counter(), self.position is not None
        needs_classes, n_read = hasattr(type(machine), "decision_function"), 0
        for X, y, position in self.stream.read(self.position, self.file is not None):
            if needs_classes and not hasattr(machine, "classes_"):
                machine.partial_fit(X, y, classes=self.given if self.given is not None else self.stream.classes())
            else:
                machine.partial_fit(X, y)
            n_read += 1
            self.position = position
            self.report.say(n_pass, position, machine)
            if self.file is not None and time.perf_counter() - saved >= self.every:
                self._save(n_pass)
                saved = time.perf_counter()
            if self.watch.past_deadline:
                self._cut_short(n_pass)
                return False
        if not hasattr(machine, "_memories"):
            raise InputError(f"{self.stream.name}: there are no rows to learn from")
        if n_read == 0 and not resumed:
            raise InputError(
                f"{self.stream.name}: there were no rows in pass {n_pass + 1}; a function must return a new iterator"
            )
        self._count()
        self.position = None
        if self.file is not None:
            self._save(n_pass + 1)
        return True

    def _count(self) -> None:
        """The counts of a pass, at its end."""
        names = ("n_mistakes", "n_corrections")
        self.totals.append([[memory.count(name) for memory in self.machine._memories] for name in names])

    def _cut_short(self, n_pass: int) -> None:
        """Time is up in the middle of a pass: what was learned stays, and a checkpoint says where to go on."""
        more = ""
        if self.file is not None:
            self._save(n_pass)
            more = f"; call it again with checkpoint={str(self.file.path)!r} to go on from there"
        self._count()
        limit, seen = self.machine.max_seconds, self.machine.t_
        warn(f"max_seconds={limit} was reached in pass {n_pass + 1}, after {seen} rows{more}", ConvergenceWarning)

    def _save(self, n_pass: int) -> None:
        assert self.file is not None
        seal = self.stream.seal(self.position)
        self.file.save({"pass": n_pass, "position": self.position, "totals": self.totals, "seal": seal})

    def _content(self) -> bool:
        if not (self.machine._stops and getattr(self.machine, "tol", None) is not None):
            return False
        per_pass = zip(self._per_pass(0).tolist(), self._per_pass(1).tolist(), strict=True)
        counts = [self.machine._counted_in_stream(mistakes, corrections)[-1] for mistakes, corrections in per_pass]
        return bool(max(counts) <= self.machine.tol)

    def _per_pass(self, what: int) -> Any:
        totals = np.array([np.asarray(entry[what]) for entry in self.totals]).T
        return np.diff(totals, axis=1, prepend=0)

    def _finish(self) -> None:
        machine = self.machine
        single = len(machine._memories) == 1
        for name, what in (("mistakes_per_pass_", 0), ("updates_per_pass_", 1)):
            counts = self._per_pass(what)
            setattr(machine, name, counts[0] if single else counts)
        machine.n_iter_ = len(self.totals)

"""Several problems solved side by side: one machine per class, or per pair of classes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.inputs import LabelledRows
from maxmargin.losses import Loss
from maxmargin.problem import Problem, costs_of
from maxmargin.process import KeptMemory
from maxmargin.runtime import Progress, SideBySide, Watch
from maxmargin.solution import Solution, Status
from maxmargin.solvers import Solver
from maxmargin.solvers.nu_machines import NuProblem
from maxmargin.space import Bias

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """One two-class problem and the rows it is about (None: all)."""

    problem: Problem
    chosen: NDArray[np.intp] | None = None

    def spread(self, values: Vector, n_rows: int) -> Vector:
        """Values of this task's rows as values of all rows, 0 elsewhere."""
        if self.chosen is None:
            return values
        full = np.zeros(n_rows)
        full[self.chosen] = values
        return full


def split(data: LabelledRows, multi_class: str, *, C: float, loss: Loss, penalty: str, bias: Bias) -> list[Task]:
    """Two classes make one problem; more make one per class ("ovr") or one per pair ("ovo"), at the same costs."""
    options: dict[str, Any] = {"loss": loss, "penalty": penalty, "bias": bias, "hard": np.inf == C}
    n_classes, cost = len(data.classes), costs_of(data.space, data.weight, C)
    if n_classes == 2:
        return [Task(Problem.of_labels(data, 1, cost, **options))]
    if multi_class == "ovr":
        return [Task(Problem.of_labels(data, positive, cost, **options)) for positive in range(n_classes)]
    tasks = []
    for first_class, second_class in itertools.combinations(range(n_classes), 2):
        part, chosen = data.pair(first_class, second_class)
        tasks.append(Task(Problem.of_labels(part, 1, cost[chosen], **options), chosen))
    return tasks


def solve_all(
    tasks: list[Task],
    make: Callable[[Problem, int], Solver],
    starts: list[Solution | None],
    n_threads: int,
    max_seconds: float | None,
    progress: Progress,
) -> tuple[list[Solution], Watch]:
    """Solve every task; several tasks share the threads. An interrupt yields what there is, marked INTERRUPTED."""
    watch = Watch(max_seconds, progress)
    if len(tasks) == 1:
        return [make(tasks[0].problem, n_threads).solve(tasks[0].problem, start=starts[0], watch=watch)], watch
    workers = min(n_threads, len(tasks))
    inside = max(1, n_threads // workers)
    watches = [Watch(_left(max_seconds, watch)) for _ in tasks]

    def work(k: int) -> Solution:
        if max_seconds is not None:
            watches[k] = Watch(_left(max_seconds, watch))
            if watch.stop_requested or watch.interrupted:
                watches[k].cancel()
        with KeptMemory():
            return make(tasks[k].problem, inside).solve(tasks[k].problem, start=starts[k], watch=watches[k])

    if all(_is_small(task.problem) for task in tasks):
        return _one_by_one(work, watches, watch), watch
    machines = SideBySide([partial(work, k) for k in range(len(tasks))], workers)
    try:
        for fresh in machines.looks():
            if fresh:
                watch.report(machines.n_ended, max(solution.gap for solution in fresh))
            if watch.stop_requested:
                _cancel(watches)
    except KeyboardInterrupt:
        watch.interrupted = True
        _cancel(watches)
    except BaseException:  # of a machine or a listener: nobody waits for the others any more
        watch.stop_requested = True
        _cancel(watches)
        machines.wait()
        raise
    return machines.results(), watch


FEW_ROWS = 300  # a problem that is solved before a thread has begun


def _is_small(problem: Any) -> bool:
    return isinstance(problem, Problem | NuProblem) and problem.n_rows <= FEW_ROWS


def _one_by_one(work: Callable[[int], Solution], watches: list[Watch], watch: Watch) -> list[Solution]:
    """All tasks in this thread; after Ctrl-C or a listener's wish, each returns what it has at once."""
    solutions: list[Solution] = []
    for k in range(len(watches)):
        solutions.append(work(k))
        watch.interrupted |= solutions[-1].status is Status.INTERRUPTED and not watch.stop_requested
        try:
            watch.report(k + 1, solutions[-1].gap)
        except KeyboardInterrupt:  # of a listener
            watch.interrupted = True
        if watch.interrupted or watch.stop_requested:
            _cancel(watches)
    return solutions


def _left(max_seconds: float | None, watch: Watch) -> float | None:
    return None if max_seconds is None else max(1e-9, max_seconds - watch.seconds)


def _cancel(watches: list[Watch]) -> None:
    for watch in watches:
        watch.cancel()


def was_interrupted(solutions: list[Solution], watch: Watch) -> bool:
    """Whether Ctrl-C, not a listener, ended the work."""
    return watch.interrupted or (any(s.status is Status.INTERRUPTED for s in solutions) and not watch.stop_requested)

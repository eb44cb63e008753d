"""The rule by which a peer's time counts.

Every group of settings is walked from loose to tight until the tightest target is met. A peer's time to a
target is the fastest of all fits that meet it, repeated; a repeat must meet the target too to count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.child import Answer
from benchmarks.forms import Form
from benchmarks.solvers import BaseSolver, Setting

Fit = Callable[[Setting, float], Answer]
Judge = Callable[[Answer], float]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Run:
    """One fit: ``suboptimality`` is infinite if there is no answer."""

    setting: Setting
    answer: Answer
    suboptimality: float

    @property
    def seconds(self) -> float:
        return float("inf") if self.answer.seconds is None else self.answer.seconds

    def as_json(self) -> dict[str, Any]:
        return {
            "group": self.setting.group,
            "options": dict(self.setting.options),
            "outcome": self.answer.outcome,
            "seconds": self.answer.seconds,
            "suboptimality": self.suboptimality,
            **{k: v for k, v in self.answer.details.items() if v is not None},
        }


@dataclass(frozen=True)
class Sweep:
    """Fits one solver at many settings, judged by suboptimality."""

    fit: Fit
    judge: Judge
    targets: Sequence[float]
    limit: float
    repeats: int
    say: Say

    def measure(self, solver: BaseSolver, form: Form) -> dict[str, Any]:
        """Everything there is to record of a peer on one problem."""
        runs = self._walk(solver.settings(form))
        sweep_seconds = sum(run.answer.seconds or run.answer.details.get("stopped_after", 0.0) for run in runs)
        targets = {f"{target:g}": self._best(runs, target) for target in self.targets}
        answered = [run for run in runs if run.answer.seconds is not None]
        closest = min(answered, key=lambda run: run.suboptimality, default=None)
        return {
            "outcome": "measured",
            "targets": targets,
            "closest": closest.as_json() if closest else None,
            "sweep_seconds": sweep_seconds,
            "runs": [run.as_json() for run in runs],
        }

    def _walk(self, settings: Sequence[Setting]) -> list[Run]:
        runs: list[Run] = []
        finished: set[str] = set()
        exhausted: set[tuple[str, Any]] = set()
        for setting in settings:
            rung = (setting.group, setting.options.get("max_iter"))
            if setting.group in finished or rung in exhausted:
                continue
            run = self._run(setting, self._worthwhile(runs))
            runs.append(run)
            if run.answer.outcome != "done" or run.suboptimality <= min(self.targets):
                finished.add(setting.group)  # met, or tighter settings only take longer
            if run.answer.details.get("iterations_exhausted"):
                exhausted.add(rung)
        return runs

    def _worthwhile(self, runs: Sequence[Run]) -> float:
        """The time after which a fit can no longer win any target, with room for noise."""
        times = ([run.seconds for run in runs if run.suboptimality <= target] for target in self.targets)
        slowest_best = max(min(seconds, default=self.limit) for seconds in times)
        return min(self.limit, 1.5 * slowest_best + 0.1)

    def _run(self, setting: Setting, limit: float) -> Run:
        answer = self.fit(setting, limit)
        if answer.outcome == "time limit" and limit < self.limit:
            answer = Answer("too slow to win", details=answer.details)
        run = Run(setting, answer, self.judge(answer))
        if answer.seconds is None:
            self.say(f"{setting}: {answer.outcome} {answer.details}")
        else:
            self.say(f"{setting}: {answer.seconds:.4g} s, suboptimality {run.suboptimality:.1e}")
        return run

    def _best(self, runs: list[Run], target: float) -> dict[str, Any] | None:
        """The fastest fit that meets the target with its repeats, or None. Repeats join ``runs``."""
        met = [run for run in runs if run.suboptimality <= target]
        if not met:
            return None
        setting = min(met, key=lambda run: run.seconds).setting
        done = [run for run in runs if run.setting == setting]
        while len(done) < self.repeats:
            again = self._run(setting, self.limit)
            done.append(again)
            runs.append(again)
        good = [run for run in done if run.suboptimality <= target]
        fastest = min(good, key=lambda run: run.seconds)
        return {**fastest.as_json(), "repeats": [run.answer.seconds for run in good], "of_repeats": len(done)}

"""Machines with one hyperplane per class that move by w += η·correction·x."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

import maxmargin._core as _core
from maxmargin.errors import InputError
from maxmargin.estimators import check_names, checked_for_scores, one_column, require_targets
from maxmargin.foreign import LinearClassifierMixin
from maxmargin.inputs import LabelledRows, check_rows, check_targets, number_in
from maxmargin.online.base import Course, OnlineMachine, Vector, expect_sense, whole_number
from maxmargin.online.labels import declared_classes, known_labels, signed_labels
from maxmargin.online.memory import Memory, refuse_two_starts, same_kind, set_start
from maxmargin.online.steps import Steps
from maxmargin.online.trace import Recorder
from maxmargin.runtime import Watch
from maxmargin.space import Rows


class LinearRule(OnlineMachine):
    """Sets up the core's rule from the common parameters."""

    _numbers: Sequence[str] = ("scale", "b", "k", "recent", "l1_total", "sum_scale", "sum_b")
    _rule: str
    _counts_corrections = True  # k of η(k) counts corrections; else it counts steps

    def _fresh(self, n_cols: int) -> Memory:
        arrays = {"v": np.zeros(n_cols)}
        if getattr(self, "average", False):
            arrays["sum"] = np.zeros(n_cols)
        if self._l1() > 0.0:
            arrays["done"] = np.zeros(n_cols)
        return Memory(arrays)

    def _steps(self) -> Steps:
        """The schedule, checked."""
        return Steps.of(self.schedule, eta0=self.eta0, t0=self.t0, power_t=self.power_t, rho=self._rho())

    def _rho(self) -> float:
        return number_in("rho", getattr(self, "rho", 0.0), 0.0, 1e100)

    def _l1(self) -> float:
        return 0.0

    def _margin(self) -> float:
        return 0.0

    def _batch(self) -> int:
        if isinstance(self.batch_size, str) and self.batch_size == "all":
            return self._n_rows_now
        return min(whole_number("batch_size", self.batch_size, 1), max(1, self._n_rows_now))

    def _open(self, memory: Memory) -> Any:
        core = _core.Online(self._rule, memory.arrays["v"], self._batch())
        self._steps_now.set_on(core)
        core.bias_gain, core.margin = self._gain_now, self._margin()
        core.mean = getattr(self, "reduction", "sum") == "mean"
        core.rho = 0.0 if self._l1() > 0.0 else self._rho()
        core.count_corrections = self._counts_corrections
        if "sum" in memory.arrays:
            core.average(memory.arrays["sum"])
        if "done" in memory.arrays:
            core.thin(self._l1(), memory.arrays["done"])
        memory.set_on(core)
        return core

    def _take(self, memory: Memory, *rest: Any) -> None:
        super()._take(memory, *rest)
        if "done" in memory.arrays:  # every weight catches up before anybody looks
            core = self._open(memory)
            core.settle()

    def _record(self, memory: Memory, core: Any, recorder: Recorder, n_pass: int) -> None:
        if "done" in memory.arrays:
            core.settle()
        super()._record(memory, core, recorder, n_pass)

    def _step_now(self, core: Any) -> float:
        size = self._steps_now.size(max(0, core.k - 1))
        return size * max(core.recent, 1e-3) if core.by_performance else size

    def _weights(self, memory: Memory) -> tuple[Vector, float]:
        number, v = memory.numbers, memory.arrays["v"]
        if "sum" in memory.arrays and number.get("n_steps", 0) > 0:
            n = number["n_steps"]
            return (number["sum_scale"] * v - memory.arrays["sum"]) / n, number["sum_b"] / n
        return number.get("scale", 1.0) * v, number.get("b", 0.0)

    def _prepare(self, rows: Rows, *, whole: bool) -> None:
        """Parameters that need a look at the rows; ``whole``: these are all rows."""
        self._n_rows_now = rows.n
        self._steps_now = self._steps()
        shrink = 2.0 * self._rho() * self._steps_now.size(0)
        if self._l1() == 0.0 and shrink > 1.0 + 1e-12:
            raise InputError(
                f"rho={self.rho:g} is too large for a first step of {self._steps_now.size(0):.3g}: weights would be "
                f"multiplied by 1 − 2ηρ = {1.0 - shrink:.3g}. Use eta0 of at most {0.5 / self._rho():.3g}, or a "
                "smaller rho"
            )
        self._gain_now = self._bias_gain(rows if whole else None)
        if getattr(self, "reduction", "sum") not in ("sum", "mean"):
            raise InputError(f"reduction must be 'sum' or 'mean', got {self.reduction!r}")
        if not whole and self.batch_size == "all":
            raise InputError("batch_size='all' needs all rows at once: use fit, or give batch_size a number")

    def _resume(self, memories: list[Memory], rows: Rows, targets: list[Any]) -> None:
        """Going on from an earlier fit, perhaps on other rows."""
        if not self.fit_intercept and any(memory.numbers.get("b", 0.0) for memory in memories):
            raise InputError("fit_intercept was turned off, but the machine has learned a bias; use a new machine")

    def _settle(self, memories: list[Memory], rows: Rows, targets: list[Any]) -> None:
        """What remains to be done after the last pass of a fit."""

    def _after_part(self, courses: list[Course]) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        if any(course.diverged for course in courses):
            self._warn_if_unfinished(courses)

    def _one_pass(self, memories: list[Memory], rows: Rows, targets: list[Any], call: int) -> list[Course]:
        """Rows once each; ``max_seconds`` is for fits: a part that was begun is learned to its end."""
        watch, order, self._interrupted = Watch(None), self._order(rows.n, (0, call)), False
        courses = [Course(recorder=Recorder() if self.trace else None) for _ in memories]
        try:
            for memory, y, course in zip(memories, targets, courses, strict=True):
                self._take(memory, rows, y, order, watch, course, call)
                expect_sense(memory, rows)
        except KeyboardInterrupt:
            self._interrupted = True
        return courses


class OnlineClassifier(LinearClassifierMixin, LinearRule):
    """Labels in, hyperplanes out: one for two classes, else one per class against the rest."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            float32 and float64 rows in C order are used as they are, without a copy.
        y : array-like of shape (n_samples,)
            Labels of two or more classes.
        """
        return self._learn(X, y)

    def _learn(self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None) -> Any:
        require_targets(self, y)
        self._check_passes()
        y = one_column(y)
        data = LabelledRows.from_arrays(X, y)
        self._prepare(data.space, whole=True)
        n_cols = data.space.d
        memories = self._continued(data.classes, n_cols)
        given = coef_init is not None or intercept_init is not None
        self._from_zero = memories is None and not given
        targets = self._targets(data.position, len(data.classes))
        if memories is None:
            memories = self._machines(len(data.classes), n_cols)
            set_start(memories, coef_init, intercept_init, self.fit_intercept)
            check_names(self, X)
        else:
            refuse_two_starts(given)
            check_names(self, X, first=False)
            self._resume(memories, data.space, targets)
        courses = self._passes(memories, data.space, targets)
        self._settle(memories, data.space, targets)
        self._fit_params = self.get_params(deep=False)
        self._rows_seen = (data.space.X, np.asarray(data.classes[data.position]))
        self._store(data.classes, memories, courses)
        if self._interrupted:
            raise KeyboardInterrupt
        self._warn_if_unfinished(courses)
        return self

    def _partial_fit(self, X: Any, y: Any, classes: ArrayLike | None) -> Any:
        """Rows once each, from where the last call ended. Machines that can, offer it as ``partial_fit``."""
        self._check_passes()
        first = not hasattr(self, "classes_")
        require_targets(self, y)
        known = declared_classes(self, classes)
        rows = check_rows(X)
        check_names(self, X, first=first)
        position = known_labels(one_column(y), rows.n, known)
        self._prepare(rows, whole=False)
        memories = self._machines(len(known), rows.d)
        if not first:
            memories = same_kind(self._memories, memories)
            LinearRule._resume(self, memories, rows, [])
        calls = 0 if first else getattr(self, "_n_calls", 0)
        courses = self._one_pass(memories, rows, self._targets(position, len(known)), calls)
        self._n_calls = calls + 1
        self.__dict__.pop("_rows_seen", None)
        self._store(known, memories, courses, added=not first)
        self._after_part(courses)
        return self

    def _machines(self, n_classes: int, n_cols: int) -> list[Memory]:
        return [self._fresh(n_cols) for _ in range(1 if n_classes == 2 else n_classes)]

    def _targets(self, position: NDArray[np.intp], n_classes: int) -> list[Any]:
        return signed_labels(position, n_classes)

    def _continued(self, classes: NDArray[Any], n_cols: int) -> list[Memory] | None:
        """The memories to go on from, with warm_start."""
        if not (getattr(self, "warm_start", False) and hasattr(self, "_memories")):
            return None
        same = np.array_equal(self.classes_, classes) and self.n_features_in_ == n_cols
        if not same:
            raise InputError(
                f"warm_start: the machine knows {len(self.classes_)} classes and {self.n_features_in_} columns, these "
                f"rows have {len(classes)} and {n_cols}; use a new machine"
            )
        return same_kind(self._memories, self._machines(len(classes), n_cols))

    def _restore(self) -> None:
        self._store(self.classes_, self._memories, [Course() for _ in self._memories])

    def _store(
        self, classes: NDArray[Any], memories: list[Memory], courses: list[Course], *, added: bool = False
    ) -> None:
        weights = [self._weights(memory) for memory in memories]
        self.classes_, self._memories = classes, memories
        self.coef_ = np.stack([w for w, _ in weights])
        self.intercept_ = np.array([b for _, b in weights])
        store_course(self, memories, courses, added=added)

    def decision_function(self, X: Any) -> Any:
        """Scores ⟨w, x⟩ + b: one per row for two classes (positive means ``classes_[1]``), one per class for more."""
        X = checked_for_scores(self, X)
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores


class StartedClassifier(OnlineClassifier):
    """A classifier whose weights may start anywhere."""

    def fit(self, X: Any, y: Any, coef_init: ArrayLike | None = None, intercept_init: ArrayLike | None = None) -> Any:
        """Learn from all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            float32 and float64 rows in C order are used as they are, without a copy.
        y : array-like of shape (n_samples,)
            Labels of two or more classes.
        coef_init, intercept_init : arrays, optional
            Weights to start from instead of 0.
        """
        return self._learn(X, y, coef_init, intercept_init)


class OnlineRegressor(RegressorMixin, LinearRule):
    """Numbers in, one hyperplane out."""

    _stops = False
    _counts_corrections = False

    def fit(self, X: Any, y: Any, coef_init: ArrayLike | None = None, intercept_init: ArrayLike | None = None) -> Any:
        """Learn from all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Numbers.
        coef_init, intercept_init : arrays, optional
            Weights to start from instead of 0.
        """
        require_targets(self, y)
        self._check_passes()
        y = one_column(y)
        rows = check_rows(X)
        target = check_targets(y, rows.n)
        self._prepare(rows, whole=True)
        memories = [self._fresh(rows.d)]
        if getattr(self, "warm_start", False) and hasattr(self, "_memories"):
            memories = same_kind(self._memories, memories)
            refuse_two_starts(coef_init is not None or intercept_init is not None)
            self._resume(memories, rows, [target])
            check_names(self, X, first=False)
        else:
            set_start(memories, coef_init, intercept_init, self.fit_intercept)
            check_names(self, X)
        courses = self._passes(memories, rows, [target])
        self._store(memories, courses)
        if self._interrupted:
            raise KeyboardInterrupt
        self._warn_if_unfinished(courses)
        return self

    def _partial_fit(self, X: Any, y: Any) -> Any:
        """Rows once each, from where the last call ended. Machines that can, offer it as ``partial_fit``."""
        self._check_passes()
        first = not hasattr(self, "_memories")
        require_targets(self, y)
        rows = check_rows(X)
        check_names(self, X, first=first)
        target = check_targets(one_column(y), rows.n)
        self._prepare(rows, whole=False)
        memories = [self._fresh(rows.d)]
        if not first:
            memories = same_kind(self._memories, memories)
            self._resume(memories, rows, [target])
        calls = 0 if first else getattr(self, "_n_calls", 0)
        courses = self._one_pass(memories, rows, [target], calls)
        self._n_calls = calls + 1
        self._store(memories, courses, added=not first)
        self._after_part(courses)
        return self

    def _restore(self) -> None:
        self._store(self._memories, [Course()])

    def _store(self, memories: list[Memory], courses: list[Course], *, added: bool = False) -> None:
        w, b = self._weights(memories[0])
        self._memories, self.coef_, self.intercept_ = memories, w, np.array([b])
        store_course(self, memories, courses, added=added)

    def predict(self, X: Any) -> Any:
        """⟨w, x⟩ + b of every row."""
        X = checked_for_scores(self, X)
        return np.asarray(X @ self.coef_).ravel() + self.intercept_[0]


def store_course(machine: Any, memories: list[Memory], courses: list[Course], *, added: bool = False) -> None:
    """The counts of a fit: one number for one hyperplane, an array for several."""
    single = len(memories) == 1
    passes = max(len(course.mistakes) for course in courses)
    mistakes, updates = (
        np.array([list(counts) + [0] * (passes - len(counts)) for counts in kind], dtype=np.int64)
        for kind in ([c.mistakes for c in courses], [c.corrections for c in courses])
    )
    mistakes, updates = (mistakes[0], updates[0]) if single else (mistakes, updates)
    if added:
        mistakes = np.concatenate([machine.mistakes_per_pass_, mistakes], axis=-1)
        updates = np.concatenate([machine.updates_per_pass_, updates], axis=-1)
    machine.mistakes_per_pass_, machine.updates_per_pass_ = mistakes, updates
    machine.n_iter_ = passes
    totals = {
        "n_mistakes_": [memory.count("n_mistakes") for memory in memories],
        "n_updates_": [memory.count("n_corrections") for memory in memories],
    }
    for name, values in totals.items():
        setattr(machine, name, values[0] if single else np.array(values))
    machine.t_ = memories[0].count("n_seen")
    n_weights = len(machine.coef_.ravel()) // len(memories)
    traces = [course.recorder.trace(n_weights) for course in courses if course.recorder]
    if traces and added and hasattr(machine, "trace_"):
        before = [machine.trace_] if single else machine.trace_
        traces = [old.followed_by(new) for old, new in zip(before, traces, strict=True)]
    if traces:
        machine.trace_ = traces[0] if single else traces
    elif not added:
        machine.__dict__.pop("trace_", None)  # of an earlier fit

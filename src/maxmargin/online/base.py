"""Passes over rows, and what every machine that learns row by row shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

import maxmargin._core as _core
from maxmargin.errors import InputError
from maxmargin.estimators import ConvergenceWarning, VersionedState, warn
from maxmargin.inputs import positive_number, truth_value
from maxmargin.online.memory import Memory
from maxmargin.online.trace import Recorder
from maxmargin.positions import shown
from maxmargin.runtime import Watch
from maxmargin.space import Rows
from maxmargin.undisturbed import refuse_changes

TRUTH_VALUES = ("fit_intercept", "average", "warm_start", "trace", "center", "stop_when_separated")
Vector = NDArray[np.float64]
Order = NDArray[np.int64] | None


def whole_number(name: str, value: Any, least: int) -> int:
    """``value`` as an int if it is a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


@dataclass
class Course:
    """How one machine's passes went."""

    mistakes: list[int] = field(default_factory=list)
    corrections: list[int] = field(default_factory=list)
    recorder: Recorder | None = None
    finished: bool = False  # a pass without (more than tol) corrections
    stalled: bool = False  # mistakes have not fallen for n_iter_no_change passes
    diverged: bool = False


class OnlineMachine(VersionedState, BaseEstimator):
    """A machine whose whole state is one :class:`Memory` per hyperplane.

    A subclass says how a fresh memory looks, how the core is set up from it, and what its weights are.
    """

    _numbers: Sequence[str] = ()  # the core's numbers that must survive from pass to pass
    _stops = True  # a pass without corrections ends the fit
    # Attributes beside the memories that the next part of the rows needs, with their types: what a checkpoint may hold.
    _kept: ClassVar[dict[str, type]] = {
        "_n_calls": int, "n_features_in_": int, "_gain_now": float, "_radius_known": float,
    }  # fmt: skip

    def _fresh(self, n_cols: int) -> Memory:
        raise NotImplementedError

    def _open(self, memory: Memory) -> Any:
        """The core's machine on this memory, set up by the parameters."""
        raise NotImplementedError

    def _set_up(self, core: Any, rows: Rows, y: Any) -> None:
        """What a core needs to know of the rows before a pass over them."""

    def _weights(self, memory: Memory) -> tuple[Vector, float]:
        raise NotImplementedError

    def _step_now(self, core: Any) -> float:
        """Size of the step just taken."""
        return float(core.rate)

    # --- one pass -----------------------------------------------------------------------------------------------

    def _order(self, n_rows: int, turn: tuple[int, ...]) -> Order:
        """The order of the rows in one pass; ``turn`` (pass, batch) and the seed decide it."""
        if not isinstance(self.shuffle, str) and not self.shuffle:
            return None
        rng = np.random.default_rng([self._seed_now, *turn])
        if self.shuffle == "replacement":
            return rng.integers(0, n_rows, n_rows)
        return rng.permutation(n_rows)

    def _take(
        self, memory: Memory, rows: Rows, y: Any, order: Order, watch: Watch, course: Course, n_pass: int
    ) -> None:
        """One pass of one machine; whatever ends it, the memory is whole."""
        core = self._open(memory)
        self._set_up(core, rows, y)
        before = core.n_mistakes, core.n_corrections
        core.pause = course.recorder is not None
        begin, end = 0, rows.n
        try:
            while begin < end:
                moved = core.n_corrections
                reached = core.run(rows.core, y, order, begin, end, watch.core)
                if course.recorder is not None and core.n_corrections > moved:
                    self._record(memory, core, course.recorder, n_pass)
                if getattr(core, "diverged", False):
                    course.diverged = True
                    break
                if reached == begin:  # the machine is content
                    course.finished = True
                    break
                begin = reached
        finally:
            memory.read_from(core, self._numbers)
            course.mistakes.append(core.n_mistakes - before[0])
            course.corrections.append(core.n_corrections - before[1])

    def _record(self, memory: Memory, core: Any, recorder: Recorder, n_pass: int) -> None:
        memory.read_from(core, self._numbers)
        w, b = self._weights(memory)
        recorder.add(w.copy(), b, core.n_seen, n_pass, core.n_mistakes, self._step_now(core))

    def _passes(self, memories: list[Memory], rows: Rows, targets: list[Any]) -> list[Course]:
        """Passes until every machine is content, or one of the limits is reached. Ctrl-C keeps what was learned."""
        watch = Watch(self.max_seconds)
        courses = [Course(recorder=Recorder() if self.trace else None) for _ in memories]
        self._interrupted = False
        try:
            for n_pass in range(self.max_iter):
                order = self._order(rows.n, (n_pass,))
                for memory, y, course in zip(memories, targets, courses, strict=True):
                    if not (course.finished or course.stalled or course.diverged):
                        self._take(memory, rows, y, order, watch, course, n_pass)
                        self._judge(course)
                if self.verbose:
                    made = sum(course.mistakes[-1] for course in courses)
                    print(f"pass {n_pass + 1}: {made} mistakes, {watch.seconds:.2f} s")
                if all(course.finished or course.stalled or course.diverged for course in courses):
                    break
        except _core.DeadlineReached:
            self._past_deadline = True
        except KeyboardInterrupt:
            self._interrupted = True
        refuse_changes(rows)  # no certificate would show it: a row of NaN is neither right nor wrong
        return courses

    def _judge(self, course: Course) -> None:
        """Whether a machine needs no more passes, or gets nowhere."""
        if not self._stops or self.tol is None:
            return
        if self._counted(course)[-1] <= self.tol:
            course.finished = True
        patience = self.n_iter_no_change
        if patience is not None and len(course.mistakes) > patience:
            course.stalled = min(course.mistakes[-patience:]) >= min(course.mistakes[:-patience])

    def _counted(self, course: Course) -> list[int]:
        """What ``tol`` is compared with, pass by pass."""
        return course.corrections

    def _counted_in_stream(self, mistakes: list[int], corrections: list[int]) -> list[int]:
        """The same for rows that come in parts and are not looked at again."""
        return self._counted(Course(mistakes=mistakes, corrections=corrections))

    # --- checks ---------------------------------------------------------------------------------------------------

    def _check_passes(self) -> None:
        whole_number("max_iter", self.max_iter, 1)
        if self.max_seconds is not None:
            positive_number("max_seconds", self.max_seconds)
        replacement = isinstance(self.shuffle, str) and self.shuffle == "replacement"
        if not (isinstance(self.shuffle, bool | np.bool_) or replacement):
            raise InputError(f"shuffle must be True, False or 'replacement', got {shown(self.shuffle)}")
        for name in TRUTH_VALUES:
            if hasattr(self, name):
                truth_value(name, getattr(self, name))
        tol, patience = getattr(self, "tol", None), getattr(self, "n_iter_no_change", None)
        if tol is not None and (isinstance(tol, bool) or not isinstance(tol, Real) or not float(tol) >= 0.0):
            raise InputError(f"tol must be a number of mistakes in a pass of at least 0, or None, got {shown(tol)}")
        if patience is not None:
            whole_number("n_iter_no_change", patience, 1)
        self._seed_now = 0 if self.random_state is None else int(self._generator().randint(2**31 - 1))
        self._past_deadline = False

    def _generator(self) -> np.random.RandomState:
        try:
            generator: np.random.RandomState = check_random_state(self.random_state)
        except ValueError as error:
            raise InputError(f"random_state: {error}") from None
        return generator

    def _bias_gain(self, rows: Rows | None) -> float:
        """How far the bias moves per unit of correction: 0, 1, or R²."""
        if not self.fit_intercept:
            return 0.0
        kind, radius = getattr(self, "bias", "augmented"), getattr(self, "radius", None)
        if kind not in ("augmented", "radius"):
            raise InputError(f"bias must be 'augmented' or 'radius', got {kind!r}")
        if kind == "augmented":
            return 1.0
        radius = self.__dict__.get("_radius_known") if radius is None and rows is None else radius
        if radius is not None:
            return checked_radius(radius) ** 2
        if rows is None:
            raise InputError("bias='radius' needs radius=max ‖x‖ when the rows come in parts: give radius, or use fit")
        return largest_squared_norm(rows) or 1.0

    # --- streams ---------------------------------------------------------------------------------------------------

    @available_if(lambda machine: hasattr(machine, "partial_fit"))
    def fit_stream(
        self,
        source: Any,
        *,
        classes: Any = None,
        n_passes: int = 1,
        checkpoint: Any = None,
        checkpoint_seconds: float = 60.0,
        progress: bool = False,
        **options: Any,
    ) -> Any:
        """Learn from batches that come one after the other, or from a file larger than memory.

        Parameters
        ----------
        source : file name, iterable of (X, y), or function that returns such an iterable
            svmlight, CSV, Parquet and Arrow files are read in parts.
        classes : array-like, optional
            All labels that may come; a file is searched for them otherwise, which takes one more pass.
        n_passes : int, default=1
            Most passes; one without corrections (``tol``) ends the fit.
        checkpoint : file name, optional
            Where the state is saved now and then. If the file is there already, the fit goes on from it: a process that
            was killed loses what it learned since, and the result is the same as if it had not been.
        checkpoint_seconds : float, default=60.0
            How often; 0 saves after every batch.
        progress : bool, default=False
            Show how far it is.
        **options
            For files: ``target``, ``n_features``, ``batch_bytes``, … (see ``maxmargin.data.open_batches``).
        """
        from maxmargin.online.stream import fit_stream

        self._check_passes()
        return fit_stream(
            self, source, classes=classes, n_passes=n_passes, checkpoint=checkpoint,
            checkpoint_seconds=checkpoint_seconds, progress=progress, **options,
        )  # fmt: skip

    def _forget(self) -> None:
        """As if it had never been fitted."""
        kept = ("_skl", "_metadata")  # scikit-learn's own: output format, callbacks, routing
        for name in [name for name in vars(self) if name.endswith("_") or name.startswith("_")]:
            if not name.startswith(kept):
                delattr(self, name)

    def _restore(self) -> None:
        """Fitted attributes from the memories of a checkpoint."""

    # --- using it ---------------------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_rows_seen", None)  # the training rows: only the bound needs them
        return state

    def _seen_rows(self) -> tuple[Any, Any]:
        check_is_fitted(self)
        if "_rows_seen" not in self.__dict__:
            raise AttributeError(
                "the bound is computed from the rows of fit, which a machine keeps only in the process that fitted it, "
                "and not after partial_fit; call maxmargin.theory's functions with the rows instead"
            )
        rows: tuple[Any, Any] = self._rows_seen
        return rows

    def _warn_if_unfinished(self, courses: list[Course]) -> None:
        name = type(self).__name__
        if any(course.diverged for course in courses):
            warn(f"{name} diverged and stopped there: {self._advice_on_divergence()}", ConvergenceWarning)
        elif self._interrupted:
            return
        elif self._past_deadline:
            done = max((len(course.mistakes) for course in courses), default=0)
            warn(
                f"{name}: max_seconds={self.max_seconds} was reached in pass {done} of {self.max_iter}; what was "
                "learned until then is kept. Raise max_seconds, or go on with warm_start where there is one.",
                ConvergenceWarning,
            )
        elif not all(course.finished for course in courses):
            self._warn_of_mistakes(courses)

    def _warn_of_mistakes(self, courses: list[Course]) -> None:
        """A pass without corrections was hoped for, and did not come."""
        if not self._stops or self.tol is None:
            return
        left = max(course.mistakes[-1] for course in courses if course.mistakes)
        why = f"max_iter={self.max_iter} was reached"
        if any(course.stalled for course in courses):
            why = f"mistakes have not fallen for n_iter_no_change={self.n_iter_no_change} passes"
        more = "max_iter, n_iter_no_change=None" if "n_iter_no_change" in self.get_params() else "max_iter"
        instead = "average=True, PocketPerceptron" if "average" in self.get_params() else "PocketPerceptron"
        warn(
            f"{type(self).__name__} stopped with {left} mistakes in its last pass: {why}. If the classes can be "
            f"separated, more passes ({more}) will end without mistakes; if not, use {instead} or LinearSVC.",
            ConvergenceWarning,
        )

    def _advice_on_divergence(self) -> str:
        step = "use a smaller eta0, or " if "eta0" in self.get_params() else ""
        return f"{step}scale the columns, for example with sklearn.preprocessing.StandardScaler"


def expect_sense(memory: Memory, rows: Rows) -> None:
    """Numbers that are not finite come from steps that grow, or from rows that somebody has overwritten."""
    if not memory.is_finite:
        refuse_changes(rows)


def checked_radius(radius: Any) -> float:
    """R of a bias step: its square must be representable."""
    if not positive_number("radius", radius) <= 1e100:
        raise InputError(f"radius must be at most 1e100, got {radius!r}")
    return float(radius)


def largest_squared_norm(rows: Rows) -> float:
    """max ‖x‖², which must be far from overflow."""
    largest = float(rows.facts.squared_norms.max())
    if not largest < 1e280:
        raise InputError(
            "values in X are too large for float64 arithmetic; scale the columns, for example with "
            "sklearn.preprocessing.StandardScaler"
        )
    return largest

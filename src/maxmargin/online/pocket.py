"""Gallant's pocket algorithm: the perceptron that keeps the best weights it has met."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

import maxmargin._core as _core
from maxmargin.errors import InputError
from maxmargin.online.base import Course, Vector, largest_squared_norm, whole_number
from maxmargin.online.bounded import NovikoffBound
from maxmargin.online.linear import OnlineClassifier
from maxmargin.online.memory import Memory
from maxmargin.online.steps import Steps
from maxmargin.space import Rows

MOST_PACKED = 256  # columns: longer rows are read fast enough as they are
RULES = ("error", "ratchet", "run")


class PocketPerceptron(NovikoffBound, OnlineClassifier):
    """Pocket perceptron: a perceptron runs, the best of its hyperplanes stays in the pocket.

    Rule
        perceptron steps; after each, the new weights replace the pocket's if they are better.

    Parameters
    ----------
    rule : {"error", "ratchet", "run"}, default="error"
        What is better. "error": fewer errors on all rows, counted after every correction. "ratchet": the same, but
        counted only once the present weights have answered more rows in a row correctly than the pocket's had
        (Gallant's ratchet; far fewer counts). "run": more rows in a row, no counting at all.
    patience : int or None, default=None
        ``fit`` stops after so many corrections without a better hyperplane; None runs all passes.
    fit_intercept : bool, default=True
    bias : {"augmented", "radius"}, default="augmented"
    radius : float or None, default=None
        As in :class:`Perceptron`.
    shuffle : bool or "replacement", default=True
    max_iter : int, default=50
        Most passes; a pass without mistakes ends the fit.
    random_state : int, RandomState or None, default=None
    warm_start : bool, default=False
    max_seconds : float or None, default=None
    trace : bool, default=False
        Records the perceptron's path, not the pocket's.
    verbose : int, default=0

    Attributes
    ----------
    coef_, intercept_, classes_, n_mistakes_, n_updates_, mistakes_per_pass_, updates_per_pass_, n_iter_, t_
        As in :class:`Perceptron`; the weights are the pocket's.
    n_errors_ : int, or array with one entry per class
        Errors (y f ≤ 0) of the pocket on the training rows; not for ``rule="run"``.
    n_evaluations_ : int or array
        How often errors on all rows were counted.
    longest_run_ : int or array
        Rows in a row that the pocket's weights answered correctly.
    mistake_bound_ : Bound or None
        What Novikoff's theorem allows the perceptron that runs.

    Notes
    -----
    *Guarantees.* With "error" and "ratchet" the training error never rises from pass to pass; with "error" it is at
    most that of the plain perceptron after the same rows in the same order. With draws at random it tends to the
    smallest possible error, without a bound on the time (Gallant; Muselli).

    References
    ----------
    Gallant: Perceptron-based learning algorithms, 1990. Muselli: On convergence properties of pocket algorithm, 1997.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]
    >>> machine = PocketPerceptron().fit(X, y)
    >>> machine.n_errors_ == int((machine.predict(X) != y).sum()) < 5
    True
    """

    _numbers = (
        "b", "best_b", "best_errors", "best_run", "run_length", "judged", "since_change", "n_evaluations",
    )  # fmt: skip
    eta0, batch_size, tol, n_iter_no_change = 1.0, 1, 0, None

    def __init__(
        self,
        *,
        rule: str = "error",
        patience: int | None = None,
        fit_intercept: bool = True,
        bias: str = "augmented",
        radius: float | None = None,
        shuffle: bool | str = True,
        max_iter: int = 50,
        random_state: Any = None,
        warm_start: bool = False,
        max_seconds: float | None = None,
        trace: bool = False,
        verbose: int = 0,
    ) -> None:
        self.rule = rule
        self.patience = patience
        self.fit_intercept = fit_intercept
        self.bias = bias
        self.radius = radius
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.random_state = random_state
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.trace = trace
        self.verbose = verbose

    def _steps(self) -> Steps:
        return Steps(1.0)

    def _fresh(self, n_cols: int) -> Memory:
        return Memory({"v": np.zeros(n_cols), "best": np.zeros(n_cols)}, {"best_errors": -1})

    def _open(self, memory: Memory) -> Any:
        core = _core.Pocket(self.rule, memory.arrays["v"], memory.arrays["best"])
        core.bias_gain, core.patience = self._gain_now, self._patience_now
        memory.set_on(core)
        return core

    def _set_up(self, core: Any, rows: Rows, y: Any) -> None:
        if self.rule != "run" and not rows.sparse and rows.d <= MOST_PACKED:
            core.pack(rows.core, y, self._reach_now)

    def _prepare(self, rows: Rows, *, whole: bool) -> None:
        super()._prepare(rows, whole=whole)
        if not isinstance(self.rule, str) or self.rule not in RULES:
            raise InputError(f"rule must be one of {RULES}, got {self.rule!r}")
        if self.patience is not None:
            whole_number("patience", self.patience, 1)
        self._reach_now = float(np.sqrt(largest_squared_norm(rows) + 1.0))
        # Rows that come in parts are all learned from.
        self._patience_now = int(self.patience) if whole and self.patience is not None else 0

    def _weights(self, memory: Memory) -> tuple[Vector, float]:
        return memory.arrays["best"], float(memory.numbers.get("best_b", 0.0))

    def _record(self, memory: Memory, core: Any, recorder: Any, n_pass: int) -> None:
        recorder.add(memory.arrays["v"].copy(), core.b, core.n_seen, n_pass, core.n_mistakes, 1.0)

    def _warn_of_mistakes(self, courses: list[Course]) -> None:
        """Mistakes at the end are what the pocket is for."""

    def _resume(self, memories: list[Memory], rows: Rows, targets: list[Any]) -> None:
        """What the pocket was worth on other rows says nothing of these."""
        super()._resume(memories, rows, targets)
        for memory, y in zip(memories, targets, strict=True):
            memory.numbers |= {"best_run": 0, "run_length": 0, "judged": False, "since_change": 0}
            if self.rule != "run":
                memory.numbers["best_errors"] = _core.count_errors(rows.core, y, *self._weights(memory))

    def _settle(self, memories: list[Memory], rows: Rows, targets: list[Any]) -> None:
        """Count once if no hyperplane ever earned a count."""
        for memory, y in zip(memories, targets, strict=True):
            if self.rule == "run" or memory.numbers.get("best_errors", -1) >= 0:
                continue
            now = memory.arrays["v"], float(memory.numbers.get("b", 0.0))
            errors, pocket = (_core.count_errors(rows.core, y, *pair) for pair in (now, self._weights(memory)))
            memory.numbers["best_errors"] = min(errors, pocket)
            if errors < pocket:
                memory.arrays["best"][:], memory.numbers["best_b"] = now

    def _store(self, *arguments: Any, **options: Any) -> None:
        super()._store(*arguments, **options)
        self.__dict__.pop("n_errors_", None)
        numbers = {"n_evaluations_": "n_evaluations", "longest_run_": "best_run"}
        if self.rule != "run":
            numbers["n_errors_"] = "best_errors"
        for name, key in numbers.items():
            values = np.array([memory.count(key) for memory in self._memories])
            setattr(self, name, int(values[0]) if len(values) == 1 else values)

    @available_if(lambda machine: machine.rule == "run")
    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> Any:
        """Learn from some rows, once each (``rule="run"`` only: the other rules need all rows).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, needed at the first call
        """
        return self._partial_fit(X, y, classes)

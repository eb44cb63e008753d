"""Rosenblatt's perceptron and its variants: margin, batches, averaging, schedules, and the extended space."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from maxmargin.errors import InputError
from maxmargin.inputs import number_in, positive_number
from maxmargin.online.base import largest_squared_norm
from maxmargin.online.bounded import NovikoffBound
from maxmargin.online.linear import OnlineClassifier, StartedClassifier
from maxmargin.online.memory import Memory
from maxmargin.space import Rows
from maxmargin.theory.mistake_bounds import Bound, extended_space, freund_schapire

MARGIN_LIMIT = 1e100


class Perceptron(NovikoffBound, StartedClassifier):
    """Rosenblatt's perceptron: correct every mistake, until there is none.

    Rule
        if y (⟨w, x⟩ + b) ≤ margin:   w += η y x,   b += η y (or η y R²)

    Parameters
    ----------
    eta0 : float, default=1.0
        Step size η; from w = 0 a constant one only rescales the weights.
    schedule : {"constant", "inverse", "performance"}, default="constant"
        η(k) = eta0, eta0/(k + t0)^power_t in the k-th correction, or eta0 times the recent share of mistakes.
    t0, power_t : float, default=1.0
        Of the inverse schedule.
    margin : float, default=0.0
        Rows with a margin of at most this are corrected, too.
    rho : float, default=0.0
        Every step shrinks w (not b) by 1 − 2ηρ. The risk's minimum is then w = 0: no promise to stop.
    fit_intercept : bool, default=True
        Whether there is a bias.
    bias : {"augmented", "radius"}, default="augmented"
        The bias moves by η y as the weight of a constant column, or by η y R² with R = max ‖x‖.
    radius : float or None, default=None
        R; None takes it from the rows (``fit`` only).
    batch_size : int or "all", default=1
        Corrections of so many rows are collected before the weights move.
    reduction : {"sum", "mean"}, default="sum"
        Whether a batch's corrections are added or averaged over its rows.
    average : bool, default=False
        Use the mean of the weights after every row instead of the last ones.
    shuffle : bool or "replacement", default=True
        A new order of the rows in every pass, their own order, or draws with replacement.
    max_iter : int, default=1000
        Most passes of ``fit``.
    tol : int or None, default=0
        Stop after a pass with at most so many corrections; None never stops early.
    n_iter_no_change : int or None, default=20
        Stop when mistakes have not fallen for so many passes; None trusts that the classes can be separated.
    random_state : int, RandomState or None, default=None
        Seed of the order; None always gives the same one.
    warm_start : bool, default=False
        Go on from the previous fit.
    max_seconds : float or None, default=None
        Time limit of ``fit`` and ``fit_stream``.
    trace : bool, default=False
        Keep the weights after every correction in ``trace_``.
    verbose : int, default=0
        1 prints a line per pass.

    Attributes
    ----------
    coef_ : array of shape (1 or n_classes, n_features)
    intercept_ : array
    classes_ : array
    n_mistakes_ : int, or array with one entry per class
        Mistakes over all passes (y f ≤ 0 when a row came by).
    n_updates_ : int or array
        Rows that changed the weights.
    mistakes_per_pass_, updates_per_pass_ : arrays
    n_iter_ : int
        Passes.
    t_ : int
        Rows seen.
    mistake_bound_ : Bound or None
        What Novikoff's theorem allows; computed when asked for, None where its hypotheses fail.
    first_pass_bound_ : Bound or None
        What Freund and Schapire's theorem allows in the first pass, separable or not (``bias="radius"``).
    trace_ : Trace

    Notes
    -----
    *Guarantees.* For separable rows, w = 0 at the start, constant η and ρ = 0: at most (R̂/γ̂)² mistakes with R̂² =
    max ‖x‖² + 1 and γ̂ the margin of the augmented rows; (2R/γ)² with ``bias="radius"``; (R/γ)² without a bias
    (Novikoff). At most (R² + 2·margin/η)/γ² corrections with a margin; B times as many mistakes with batches of B rows.
    Rows that come in parts give the same bits as rows that come at once (``shuffle=False``, one row per step).

    References
    ----------
    Rosenblatt: The perceptron, 1958. Novikoff: On convergence proofs on perceptrons, 1962. Freund, Schapire: Large
    margin classification using the perceptron algorithm, 1999.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = Perceptron().fit(X, y == 0)
    >>> int(machine.mistakes_per_pass_[-1]), machine.n_mistakes_ <= machine.mistake_bound_.value
    (0, True)
    """

    _rule = "perceptron"

    def __init__(
        self,
        *,
        eta0: float = 1.0,
        schedule: str = "constant",
        t0: float = 1.0,
        power_t: float = 1.0,
        margin: float = 0.0,
        rho: float = 0.0,
        fit_intercept: bool = True,
        bias: str = "augmented",
        radius: float | None = None,
        batch_size: int | str = 1,
        reduction: str = "sum",
        average: bool = False,
        shuffle: bool | str = True,
        max_iter: int = 1000,
        tol: int | None = 0,
        n_iter_no_change: int | None = 20,
        random_state: Any = None,
        warm_start: bool = False,
        max_seconds: float | None = None,
        trace: bool = False,
        verbose: int = 0,
    ) -> None:
        self.eta0 = eta0
        self.schedule = schedule
        self.t0 = t0
        self.power_t = power_t
        self.margin = margin
        self.rho = rho
        self.fit_intercept = fit_intercept
        self.bias = bias
        self.radius = radius
        self.batch_size = batch_size
        self.reduction = reduction
        self.average = average
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.trace = trace
        self.verbose = verbose

    def _margin(self) -> float:
        return number_in("margin", self.margin, 0.0, MARGIN_LIMIT)

    @available_if(lambda machine: machine.batch_size != "all")
    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> Any:
        """Learn from some rows, once each, and go on from there at the next call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, needed at the first call
            All labels that may ever come.
        """
        return self._partial_fit(X, y, classes)

    @property
    def first_pass_bound_(self) -> Bound | None:
        """What Freund and Schapire's theorem allows in the first pass; None where its hypotheses fail."""
        X, y = self._seen_rows()
        expected = {"margin": 0.0, "rho": 0.0, "batch_size": 1, "schedule": "constant", "radius": None}
        plain = all(self._was(name, value) == value for name, value in expected.items()) and self._from_zero
        if len(self.classes_) != 2 or not plain or self._was("shuffle", True) == "replacement":
            return None
        if self._convention() != "radius":
            return None
        return freund_schapire(X, y)


class ExtendedPerceptron(OnlineClassifier):
    """Perceptron with one more coordinate per training row: it stops on any data.

    Rule
        f(x_i) = ⟨w, x_i⟩ + b + Δ u_i;   if y f ≤ 0:   w += y x_i,   u_i += y Δ,   b += y (R² + Δ²)

    The coordinates u belong to the training rows only; predictions use w and b. Because they do, there is no
    ``partial_fit``: all rows are needed.

    Parameters
    ----------
    delta : float or None, default=None
        Δ, the size of a row's own coordinate; None takes R = max ‖x‖. Small values trust the classes to be separable.
    fit_intercept : bool, default=True
    shuffle : bool or "replacement", default=True
    max_iter : int, default=10000
        Most passes.
    random_state : int, RandomState or None, default=None
    max_seconds : float or None, default=None
    trace : bool, default=False
    verbose : int, default=0

    Attributes
    ----------
    coef_, intercept_, classes_, n_mistakes_, n_updates_, mistakes_per_pass_, updates_per_pass_, n_iter_, t_
        As in :class:`Perceptron`.
    slack_ : array of shape (n_samples,)
        Δ u_i: how much each row was helped (two classes).
    mistake_bound_ : Bound or None

    Notes
    -----
    *Guarantee.* At most 4 (R² + Δ²)(1 + D²/Δ²)/γ² mistakes in all, for every hyperplane of unit normal, γ > 0 and the
    norm D of its margin slacks; the smallest of them is ``mistake_bound_``.

    References
    ----------
    Freund, Schapire: Large margin classification using the perceptron algorithm, 1999. Cristianini, Shawe-Taylor: An
    introduction to support vector machines, 2000.

    Examples
    --------
    >>> X, y = [[0.0], [0.0], [1.0]], [0, 1, 1]          # the same row with both labels
    >>> machine = ExtendedPerceptron().fit(X, y)
    >>> int(machine.mistakes_per_pass_[-1]), machine.n_mistakes_ <= machine.mistake_bound_.value
    (0, True)
    """

    _rule = "perceptron"
    schedule, eta0, t0, power_t, rho, batch_size, tol, n_iter_no_change = "constant", 1.0, 1.0, 1.0, 0.0, 1, 0, None

    def __init__(
        self,
        *,
        delta: float | None = None,
        fit_intercept: bool = True,
        shuffle: bool | str = True,
        max_iter: int = 10000,
        random_state: Any = None,
        max_seconds: float | None = None,
        trace: bool = False,
        verbose: int = 0,
    ) -> None:
        self.delta = delta
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.random_state = random_state
        self.max_seconds = max_seconds
        self.trace = trace
        self.verbose = verbose

    def _bias_gain(self, rows: Rows | None) -> float:
        assert rows is not None
        largest = largest_squared_norm(rows)
        R = float(np.sqrt(largest)) or 1.0
        self._delta_now = R if self.delta is None else positive_number("delta", self.delta)
        if not 1e-6 <= self._delta_now / R <= 1e6:
            raise InputError(f"delta must be between 1e-6 and 1e6 times R = max ‖x‖ = {R:.3g}, got {self.delta!r}")
        return largest + self._delta_now**2 if self.fit_intercept else 0.0

    def _fresh(self, n_cols: int) -> Memory:
        return Memory({"v": np.zeros(n_cols), "own": np.zeros(self._n_rows_now)})

    def _open(self, memory: Memory) -> Any:
        core = super()._open(memory)
        core.extend(memory.arrays["own"], self._delta_now)
        return core

    def _store(self, *arguments: Any, **options: Any) -> None:
        super()._store(*arguments, **options)
        self.delta_ = self._delta_now
        self.__dict__.pop("slack_", None)
        if len(self.classes_) == 2:
            self.slack_ = self._memories[0].arrays["own"]

    @property
    def mistake_bound_(self) -> Bound | None:
        """The smallest bound over all hyperplanes; None for more than two classes."""
        X, y = self._seen_rows()
        if len(self.classes_) != 2:
            return None
        return extended_space(X, y, self.delta_, fit_intercept=bool(self._fit_params["fit_intercept"]))

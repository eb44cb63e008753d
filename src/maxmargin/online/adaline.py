"""Adaline: the rule of Widrow and Hoff (LMS), in primal and dual form."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

import maxmargin._core as _core
from maxmargin.errors import InputError
from maxmargin.kernels import GramRows, make_kernel
from maxmargin.online.base import Course, Order, Vector, largest_squared_norm
from maxmargin.online.dual import dual_pass
from maxmargin.online.linear import LinearRule, OnlineRegressor, StartedClassifier
from maxmargin.online.memory import Memory
from maxmargin.online.steps import Steps
from maxmargin.runtime import Execution
from maxmargin.space import Rows


class _WidrowHoff:
    """What classifier and regressor share."""

    _rule = "squares"
    _counts_corrections = False
    _stops = False
    tol = n_iter_no_change = None
    _kept: ClassVar[dict[str, type]] = LinearRule._kept | {"_eta_now": float}

    def __init__(
        self: Any,
        *,
        eta0: float | None = None,
        schedule: str = "constant",
        t0: float = 1000.0,
        power_t: float = 1.0,
        rho: float = 0.0,
        fit_intercept: bool = True,
        batch_size: int | str = 1,
        reduction: str = "mean",
        average: bool = False,
        shuffle: bool | str = True,
        max_iter: int = 20,
        form: str = "primal",
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
        self.rho = rho
        self.fit_intercept = fit_intercept
        self.batch_size = batch_size
        self.reduction = reduction
        self.average = average
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.form = form
        self.random_state = random_state
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.trace = trace
        self.verbose = verbose

    def fit(
        self: Any, X: Any, y: Any, coef_init: ArrayLike | None = None, intercept_init: ArrayLike | None = None
    ) -> Any:
        """Learn from all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        coef_init, intercept_init : arrays, optional
            Weights to start from instead of 0 (``form="primal"``).
        """
        _refuse_start(self, coef_init, intercept_init)
        return super().fit(X, y, coef_init, intercept_init)  # type: ignore[misc]

    def _store(self: Any, *arguments: Any, **options: Any) -> None:
        super()._store(*arguments, **options)  # type: ignore[misc]
        _store_dual(self)

    def _steps(self: Any) -> Steps:
        if self.schedule not in ("constant", "inverse"):
            raise InputError(f"schedule must be 'constant' or 'inverse', got {self.schedule!r}")
        rate = self._eta_now if self.eta0 is None else self.eta0
        steps = Steps.of(self.schedule, eta0=rate, t0=self.t0, power_t=self.power_t)
        return Steps(rate * steps.offset**steps.power, steps.offset, steps.power)

    def _prepare(self: Any, rows: Rows, *, whole: bool) -> None:
        if not isinstance(self.form, str) or self.form not in ("primal", "dual"):
            raise InputError(f"form must be 'primal' or 'dual', got {self.form!r}")
        if self.form == "dual" and not whole:
            raise InputError("form='dual' keeps one coefficient per row and needs all rows: use fit, or form='primal'")
        if self.form == "dual" and (self.average or self._rho() > 0.0 or self.batch_size != 1):
            raise InputError("form='dual' has no average, rho or batches; use form='primal'")
        going_on = self.warm_start and hasattr(self, "_memories")
        if self.form == "dual" and going_on:
            raise InputError("form='dual' has no warm_start: its coefficients belong to the rows of one fit")
        self._n_rows_now = rows.n
        together = self._batch() if self.reduction == "sum" else 1  # rows whose corrections are added
        # Below this no step overshoots twice its error.
        self._safe_now = 2.0 / ((largest_squared_norm(rows) + float(bool(self.fit_intercept))) * together
                                + 2.0 * self._rho() or 1.0)  # fmt: skip
        if self.eta0 is None and not ((not whole or going_on) and hasattr(self, "_eta_now")):
            self._eta_now = 0.5 * self._safe_now
        elif self.eta0 is not None:
            self.__dict__.pop("_eta_now", None)
        super()._prepare(rows, whole=whole)  # type: ignore[misc]
        if self.form == "dual":
            self._gram_now = GramRows(make_kernel("linear"), rows)

    def _fresh(self: Any, n_cols: int) -> Memory:
        memory: Memory = super()._fresh(n_cols)  # type: ignore[misc]
        if self.form == "dual":
            memory.arrays["coefficient"] = np.zeros(self._n_rows_now)
            memory.arrays["score"] = np.zeros(self._n_rows_now)
        return memory

    def _take(
        self: Any, memory: Memory, rows: Rows, y: Any, order: Order, watch: Any, course: Course, n_pass: int
    ) -> None:
        if self.form == "primal":
            super()._take(memory, rows, y, order, watch, course, n_pass)  # type: ignore[misc]
            return
        core = _core.Dual(True, memory.arrays["coefficient"], memory.arrays["score"])
        core.bias_gain, core.b = self._gain_now, memory.numbers.get("b", 0.0)
        memory.set_counts_on(core)
        k = memory.count("n_steps")

        def size(t: int) -> float:
            return float(self._steps_now.size(k + t))

        def primal() -> Vector:
            return rows.combine(memory.arrays["coefficient"], Execution())

        def look() -> None:
            assert course.recorder is not None
            course.recorder.add(primal(), core.b, core.n_seen, n_pass, core.n_mistakes, core.rate)

        try:
            dual_pass(core, self._gram_now, y, order, watch, course, size, look if course.recorder else None)
        finally:
            memory.read_from(core, ("b",))
            memory.arrays["v"][:] = primal()

    def _advice_on_divergence(self: Any) -> str:
        return (
            f"steps of {self._steps_now.size(0):.3g} are too large for these rows; below {self._safe_now:.3g}, which "
            "is 2/(max ‖(x, 1)‖² times the rows that are added up, plus 2ρ), every step is safe. Use eta0=None in fit, "
            "or scale the columns"
        )


class Adaline(_WidrowHoff, StartedClassifier):
    """Adaline: the rule of Widrow and Hoff with targets −1 and +1.

    Rule
        w ← w − η (f(x) − y) x,   b ← b − η (f(x) − y)

    Parameters
    ----------
    eta0 : float or None, default=None
        Step size; None takes 1/max ‖(x, 1)‖², half of what is admissible (of the first rows, with ``partial_fit``;
        divided by the rows of a batch whose corrections are added).
    schedule : {"constant", "inverse"}, default="constant"
        η(k) = eta0, or eta0/(1 + k/t0)^power_t: steps that fall as Robbins and Monro ask lead to the least-squares
        solution itself, constant ones to a neighbourhood of it.
    t0 : float, default=1000.0
    power_t : float, default=1.0
    rho : float, default=0.0
        Every step shrinks w by 1 − 2ηρ (weight decay).
    fit_intercept : bool, default=True
    batch_size : int or "all", default=1
    reduction : {"sum", "mean"}, default="mean"
    average : bool, default=False
        Use the mean of the weights after every step.
    shuffle : bool or "replacement", default=True
    max_iter : int, default=20
        Passes of ``fit``.
    form : {"primal", "dual"}, default="primal"
        Whether weights or one coefficient per row (``dual_coef_``) are learned; the function is the same.
    random_state : int, RandomState or None, default=None
    warm_start : bool, default=False
    max_seconds : float or None, default=None
    trace : bool, default=False
    verbose : int, default=0

    Attributes
    ----------
    coef_, intercept_, classes_, n_mistakes_, n_updates_, mistakes_per_pass_, updates_per_pass_, n_iter_, t_
        As in :class:`Perceptron`.
    dual_coef_ : array of shape (n_machines, n_samples)
        With ``form="dual"``: w = Σ dual_coef_i x_i.

    Notes
    -----
    *Guarantees.* Rows drawn at random and η < 2/max ‖(x, 1)‖²: the weights tend in the mean to the least-squares
    solution, with a spread that shrinks with η (η below 2/trace of the rows' second moments controls the mean only). A
    step that is too large is reported with the admissible one.

    References
    ----------
    Widrow, Hoff: Adaptive switching circuits, 1960. Robbins, Monro: A stochastic approximation method, 1951.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> Adaline().fit(X, y == 0).score(X, y == 0)
    1.0
    """

    @available_if(lambda machine: machine.form == "primal" and machine.batch_size != "all")
    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> Any:
        """Learn from some rows, once each, and go on from there at the next call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, needed at the first call
        """
        return self._partial_fit(X, y, classes)


class AdalineRegressor(_WidrowHoff, OnlineRegressor):
    """The rule of Widrow and Hoff (least mean squares, LMS) for numbers.

    Rule
        w ← w − η (f(x) − y) x,   b ← b − η (f(x) − y)

    Parameters, guarantees and references are those of :class:`Adaline`.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : array of shape (1,)
    n_updates_, updates_per_pass_, n_iter_, t_
        As in :class:`Perceptron`.
    dual_coef_ : array of shape (1, n_samples)
        With ``form="dual"``: w = Σ dual_coef_i x_i.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 101)[:, None]
    >>> AdalineRegressor().fit(X, 2.0 * X.ravel() + 1.0).predict([[0.5]]).round(6)
    array([2.])
    """

    @available_if(lambda machine: machine.form == "primal" and machine.batch_size != "all")
    def partial_fit(self, X: Any, y: Any) -> Any:
        """Learn from some rows, once each, and go on from there at the next call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        """
        return self._partial_fit(X, y)


def _refuse_start(machine: Any, coef: Any, intercept: Any) -> None:
    if machine.form == "dual" and (coef is not None or intercept is not None):
        raise InputError("form='dual' starts from 0: its weights are combinations of the rows")


def _store_dual(machine: Any) -> None:
    machine.__dict__.pop("dual_coef_", None)
    machine.__dict__.pop("_gram_now", None)
    if machine.form == "dual":
        machine.dual_coef_ = np.stack([memory.arrays["coefficient"] for memory in machine._memories])

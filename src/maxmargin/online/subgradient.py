"""Stochastic subgradient descent: OnlineSVC (hinge, logistic, exponential) and OnlineSVR (tubes)."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from maxmargin.errors import InputError
from maxmargin.inputs import number_in
from maxmargin.online.base import Course
from maxmargin.online.linear import OnlineRegressor, StartedClassifier
from maxmargin.online.steps import Steps

LOSSES = ("hinge", "logistic", "exponential")
TUBES = {"epsilon_insensitive": "tube", "squared_tube": "squared_tube"}


class OnlineSVC(StartedClassifier):
    """Soft-margin classifier, learned row by row.

    Solves (in the limit of decreasing steps)
        minimise over w, b   ρ‖w‖² + 1/n Σ ℓ(y_i (⟨w, x_i⟩ + b))

    with ℓ(m) = max(0, 1 − m), ln(1 + e^−m) or e^−m: the problem of ``LinearSVC`` with ρ = 1/(2nC).

    Rule
        w ← (1 − 2ηρ) w − η ℓ'(y f) y x,   b ← b − η ℓ'(y f) y;   the hinge moves while y f ≤ 1

    Parameters
    ----------
    loss : {"hinge", "logistic", "exponential"}, default="hinge"
    rho : float, default=1e-4
        Price of ‖w‖²; 0 for none.
    eta0 : float, default=0.1
        Step size of the schedules other than "optimal".
    schedule : {"optimal", "inverse", "constant", "performance"}, default="optimal"
        η(k) in the k-th step: 1/(2ρ(k + t₀)), eta0/(k + t0)^power_t, eta0, or eta0 times the recent share of mistakes.
    t0, power_t : float, default=1.0
        Of the inverse schedule.
    fit_intercept : bool, default=True
    batch_size : int or "all", default=1
    reduction : {"sum", "mean"}, default="mean"
        Of a batch's corrections; with "sum" the steps of a batch of B rows minimise with ρ/B.
    average : bool, default=False
        Use the mean of the weights after every step.
    shuffle : bool or "replacement", default=True
    max_iter : int, default=20
        Passes of ``fit``.
    tol : int or None, default=None
        Stop after a pass with at most so many mistakes (y f ≤ 0); None makes all passes.
    n_iter_no_change : int or None, default=None
        Stop when mistakes have not fallen for so many passes (with ``tol``).
    random_state : int, RandomState or None, default=None
    warm_start : bool, default=False
    max_seconds : float or None, default=None
    trace : bool, default=False
    verbose : int, default=0

    Attributes
    ----------
    coef_, intercept_, classes_, n_mistakes_, n_updates_, mistakes_per_pass_, updates_per_pass_, n_iter_, t_
        As in :class:`Perceptron`.

    Notes
    -----
    *Guarantees.* Decreasing steps with averaging reach the exact optimum; constant ones a neighbourhood that shrinks
    with η. There is no dual point, so no gap: ``LinearSVC`` proves what this machine approaches. Logistic and
    exponential loss without ρ and bias, on separable rows with small steps, turn towards the direction of largest
    margin.

    References
    ----------
    Robbins, Monro: A stochastic approximation method, 1951. Shalev-Shwartz, Singer, Srebro: Pegasos, 2007. Bottou:
    Stochastic gradient descent tricks, 2012. Soudry, Hoffer, Nacson, Gunasekar, Srebro: The implicit bias of gradient
    descent on separable data, 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> OnlineSVC(rho=1e-3, average=True).fit(X, y == 0).score(X, y == 0)
    1.0
    """

    def __init__(
        self,
        *,
        loss: str = "hinge",
        rho: float = 1e-4,
        eta0: float = 0.1,
        schedule: str = "optimal",
        t0: float = 1.0,
        power_t: float = 1.0,
        fit_intercept: bool = True,
        batch_size: int | str = 1,
        reduction: str = "mean",
        average: bool = False,
        shuffle: bool | str = True,
        max_iter: int = 20,
        tol: int | None = None,
        n_iter_no_change: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        max_seconds: float | None = None,
        trace: bool = False,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.rho = rho
        self.eta0 = eta0
        self.schedule = schedule
        self.t0 = t0
        self.power_t = power_t
        self.fit_intercept = fit_intercept
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

    _counts_corrections = False

    @property
    def _rule(self) -> str:  # type: ignore[override]
        if not isinstance(self.loss, str) or self.loss not in LOSSES:
            raise InputError(f"loss must be one of {LOSSES}, got {self.loss!r}")
        return self.loss

    def _steps(self) -> Steps:
        steps = super()._steps()
        if self.schedule == "optimal" and self.loss == "exponential":
            # The loss is steep where a typical weight is wrong: the first step must be so much smaller.
            typical = (2.0 * self.rho) ** -0.25
            return Steps(steps.rate, steps.offset * math.exp(min(typical, 10.0)), steps.power)
        return steps

    def _margin(self) -> float:
        return 1.0

    def _counted(self, course: Course) -> list[int]:
        return course.mistakes

    @available_if(lambda machine: machine.batch_size != "all")
    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> Any:
        """Learn from some rows, once each, and go on from there at the next call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, needed at the first call
        """
        return self._partial_fit(X, y, classes)


class OnlineSVR(OnlineRegressor):
    """Support vector regression, learned row by row.

    Solves (in the limit of decreasing steps)
        minimise over w, b   ρ‖w‖² (or ρ‖w‖₁) + 1/n Σ ℓ(y_i − ⟨w, x_i⟩ − b)

    with ℓ(r) = max(0, |r| − ε) or max(0, r² − ε).

    Rule
        w ← (1 − 2ηρ) w + η ℓ'(r) x,   b ← b + η ℓ'(r);   with ‖w‖₁ every weight moves by ηρ towards 0 instead

    Parameters
    ----------
    loss : {"epsilon_insensitive", "squared_tube"}, default="epsilon_insensitive"
    epsilon : float, default=0.0
        Half-width of the tube; for "squared_tube" the squared error that costs nothing.
    penalty : {"l2", "l1"}, default="l2"
    rho : float, default=1e-4
        Price of the penalty; 0 for none.
    eta0 : float, default=0.1
    schedule : {"inverse", "optimal", "constant"}, default="inverse"
        As in :class:`OnlineSVC`.
    t0 : float, default=1.0
    power_t : float, default=0.5
    fit_intercept : bool, default=True
    batch_size : int or "all", default=1
    reduction : {"sum", "mean"}, default="mean"
    average : bool, default=True
        Use the mean of the weights after every step (with ``penalty="l1"`` that costs a pass over all weights a step).
    shuffle : bool or "replacement", default=True
    max_iter : int, default=20
        Passes of ``fit``.
    random_state : int, RandomState or None, default=None
    warm_start : bool, default=False
    max_seconds : float or None, default=None
    trace : bool, default=False
    verbose : int, default=0

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : array of shape (1,)
    n_mistakes_ : int
        Rows that were outside the tube when they came by.
    n_updates_, mistakes_per_pass_, updates_per_pass_, n_iter_, t_
        As in :class:`Perceptron`.

    Notes
    -----
    *Guarantees.* Decreasing steps with averaging reach the exact optimum (for "epsilon_insensitive" that of
    ``LinearSVR`` with ρ = 1/(2nC)); constant ones a neighbourhood that shrinks with η.

    References
    ----------
    Vapnik: The nature of statistical learning theory, 1995. Robbins, Monro: A stochastic approximation method, 1951.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 201)[:, None]
    >>> OnlineSVR(max_iter=50).fit(X, 2.0 * X.ravel() + 1.0).predict([[0.5]]).round(1)
    array([2.])
    """

    def __init__(
        self,
        *,
        loss: str = "epsilon_insensitive",
        epsilon: float = 0.0,
        penalty: str = "l2",
        rho: float = 1e-4,
        eta0: float = 0.1,
        schedule: str = "inverse",
        t0: float = 1.0,
        power_t: float = 0.5,
        fit_intercept: bool = True,
        batch_size: int | str = 1,
        reduction: str = "mean",
        average: bool = True,
        shuffle: bool | str = True,
        max_iter: int = 20,
        random_state: Any = None,
        warm_start: bool = False,
        max_seconds: float | None = None,
        trace: bool = False,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.epsilon = epsilon
        self.penalty = penalty
        self.rho = rho
        self.eta0 = eta0
        self.schedule = schedule
        self.t0 = t0
        self.power_t = power_t
        self.fit_intercept = fit_intercept
        self.batch_size = batch_size
        self.reduction = reduction
        self.average = average
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.random_state = random_state
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.trace = trace
        self.verbose = verbose

    @property
    def _rule(self) -> str:  # type: ignore[override]
        if not isinstance(self.loss, str) or self.loss not in TUBES:
            raise InputError(f"loss must be one of {tuple(TUBES)}, got {self.loss!r}")
        return TUBES[self.loss]

    def _margin(self) -> float:
        return number_in("epsilon", self.epsilon, 0.0, 1e100)

    def _l1(self) -> float:
        if self.penalty not in ("l2", "l1"):
            raise InputError(f"penalty must be 'l2' or 'l1', got {self.penalty!r}")
        return self._rho() if self.penalty == "l1" else 0.0

    @available_if(lambda machine: machine.batch_size != "all")
    def partial_fit(self, X: Any, y: Any) -> Any:
        """Learn from some rows, once each, and go on from there at the next call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        """
        return self._partial_fit(X, y)

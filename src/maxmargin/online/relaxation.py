"""Relaxation procedures: move a share of the way to the hyperplane ⟨w, z⟩ = margin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

import maxmargin._core as _core
from maxmargin.errors import InputError
from maxmargin.inputs import check_rows, number_in
from maxmargin.online.base import Course, Vector
from maxmargin.online.labels import known_labels, machines_of
from maxmargin.online.linear import StartedClassifier
from maxmargin.online.memory import Memory
from maxmargin.online.steps import Steps
from maxmargin.space import Rows

NEEDS_START = "margin=0 needs weights to start from (coef_init of fit, not all 0): w = 0 has every ⟨w, z⟩ = 0 already"


class Relaxation(StartedClassifier):
    """Relaxation with margin: each correction moves w a share of the way to where the row is satisfied.

    Rule
        with z = y (x, 1):   if ⟨w, z⟩ ≤ margin:   w += η (margin − ⟨w, z⟩)/‖z‖² · z

    Parameters
    ----------
    margin : float, default=1.0
        What every row shall reach. With 0 weights to start from are needed (``coef_init`` of ``fit``).
    eta : float, default=1.0
        0 < η < 1 underrelaxation, 1 projection, 1 < η < 2 overrelaxation.
    batch_size : int or "all", default=1
        Corrections of so many rows are collected; their mean over the corrected rows is taken, so that the promise
        below holds for every batch.
    fit_intercept : bool, default=True
        Whether z has the constant column.
    shuffle : bool or "replacement", default=True
    max_iter : int, default=1000
        Most passes.
    tol : int or None, default=0
        Stop after a pass with at most so many corrections.
    stop_when_separated : bool, default=True
        Stop after a pass without mistakes (y f ≤ 0), even if some rows have not reached the margin: without it a fit
        may come ever closer to its limit and never end.
    n_iter_no_change : int or None, default=20
        Stop when mistakes have not fallen for so many passes.
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
    *Guarantees.* One row at a time: the distance to every ŵ with all ⟨ŵ, z⟩ ≥ margin never grows, and the corrected
    row's residual becomes 1 − η times the old one. Separable rows: either finitely many corrections or convergence to
    the boundary of the solutions; with margin > 0 all rows are on their side after finitely many. η = 1 with margin 0
    or 1 are the alternating projections of Agmon and of Motzkin and Schoenberg (:func:`alternating_projections`).

    References
    ----------
    Agmon: The relaxation method for linear inequalities, 1954. Motzkin, Schoenberg: The relaxation method for linear
    inequalities, 1954. Duda, Hart: Pattern classification and scene analysis, 1973.

    Examples
    --------
    >>> machine = Relaxation(shuffle=False).fit([[-1.0], [3.0]], [0, 1])
    >>> machine.criteria([[-1.0], [3.0]], [0, 1])["J_p"]
    0.0
    """

    _rule = "relaxation"
    reduction, rho = "mean", 0.0

    def __init__(
        self,
        *,
        margin: float = 1.0,
        eta: float = 1.0,
        batch_size: int | str = 1,
        fit_intercept: bool = True,
        shuffle: bool | str = True,
        max_iter: int = 1000,
        tol: int | None = 0,
        stop_when_separated: bool = True,
        n_iter_no_change: int | None = 20,
        random_state: Any = None,
        warm_start: bool = False,
        max_seconds: float | None = None,
        trace: bool = False,
        verbose: int = 0,
    ) -> None:
        self.margin = margin
        self.eta = eta
        self.batch_size = batch_size
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.tol = tol
        self.stop_when_separated = stop_when_separated
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.trace = trace
        self.verbose = verbose

    def _steps(self) -> Steps:
        eta = number_in("eta", self.eta, 0.0, 2.0)
        if eta in (0.0, 2.0):
            raise InputError(f"eta must lie strictly between 0 and 2, got {self.eta!r}")
        return Steps(eta)

    def _margin(self) -> float:
        return number_in("margin", self.margin, 0.0, 1e100)

    def fit(self, X: Any, y: Any, coef_init: ArrayLike | None = None, intercept_init: ArrayLike | None = None) -> Any:
        """Learn from all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        coef_init, intercept_init : arrays, optional
            Weights to start from; needed for ``margin=0``, where w = 0 is never corrected.
        """
        start = coef_init is not None and np.any(np.asarray(coef_init) != 0)
        if self.margin == 0.0 and not start and not (self.warm_start and hasattr(self, "_memories")):
            raise InputError(NEEDS_START)
        return super().fit(X, y, coef_init, intercept_init)

    @available_if(lambda machine: machine.batch_size != "all")
    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> Any:
        """Learn from some rows, once each, and go on from there at the next call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, needed at the first call
        """
        if self.margin == 0.0 and not hasattr(self, "_memories"):
            raise InputError(NEEDS_START)
        return self._partial_fit(X, y, classes)

    def _counted_in_stream(self, mistakes: list[int], corrections: list[int]) -> list[int]:
        return mistakes if self.stop_when_separated else corrections

    def _take(self, memory: Memory, rows: Rows, y: Any, order: Any, watch: Any, course: Course, n_pass: int) -> None:
        super()._take(memory, rows, y, order, watch, course, n_pass)
        if self.stop_when_separated and self.tol is not None and course.mistakes[-1] <= self.tol:
            # Weights moved during the pass: only those at its end count.
            course.finished = _core.count_errors(rows.core, y, *self._weights(memory)) <= self.tol

    def criteria(self, X: Any, y: Any) -> dict[str, float]:
        """The criteria that such procedures descend, of the present weights on these rows (two classes).

        J_p = Σ −⟨w, z⟩ and J_q = Σ ⟨w, z⟩² over the rows with ⟨w, z⟩ ≤ 0, J_r = ½ Σ (⟨w, z⟩ − margin)²/‖z‖² over those
        with ⟨w, z⟩ ≤ margin.
        """
        check_is_fitted(self)
        if machines_of(self.classes_) != 1:
            raise InputError("criteria are defined for two classes")
        rows = check_rows(X)
        known_labels(np.asarray(y), rows.n, self.classes_)
        sign = np.where(np.asarray(y) == self.classes_[1], 1.0, -1.0)
        score: Vector = sign * np.asarray(self.decision_function(X))
        size = rows.facts.squared_norms + float(bool(self.fit_intercept))
        wrong, short = score <= 0.0, score <= self.margin
        return {
            "J_p": float(-score[wrong].sum()) + 0.0,
            "J_q": float(np.square(score[wrong]).sum()),
            "J_r": 0.5 * float((np.square(score[short] - self.margin) / size[short]).sum()),
        }


def alternating_projections(*, margin: float = 0.0, **options: Any) -> Relaxation:
    """Projections onto one half-space after the other (Agmon; Motzkin and Schoenberg): relaxation with η = 1.

    Examples
    --------
    >>> alternating_projections(shuffle=False).eta
    1.0
    """
    return Relaxation(margin=margin, eta=1.0, **options)

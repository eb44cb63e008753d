"""The perceptron for all classes at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import maxmargin._core as _core
from maxmargin.inputs import number_in
from maxmargin.online.base import Vector, largest_squared_norm
from maxmargin.online.linear import OnlineClassifier, store_course
from maxmargin.online.memory import Memory
from maxmargin.online.steps import Steps
from maxmargin.space import Rows
from maxmargin.theory.mistake_bounds import Bound, kesler


class MulticlassPerceptron(OnlineClassifier):
    """Perceptron for all classes jointly: the row's own class comes nearer, the best other one moves away.

    Rule
        if ⟨w_y, x⟩ + b_y ≤ max_{m ≠ y} ⟨w_m, x⟩ + b_m + margin:   w_y += η x,   w_m −= η x,   and so the biases

    Parameters
    ----------
    eta0 : float, default=1.0
    margin : float, default=0.0
    fit_intercept : bool, default=True
    bias : {"augmented", "radius"}, default="augmented"
    radius : float or None, default=None
    average : bool, default=False
    shuffle : bool or "replacement", default=True
    max_iter : int, default=1000
    tol : int or None, default=0
    n_iter_no_change : int or None, default=20
    random_state : int, RandomState or None, default=None
    warm_start : bool, default=False
    max_seconds : float or None, default=None
    trace : bool, default=False
        The path of all weights, one class after the other.
    verbose : int, default=0
        All as in :class:`Perceptron`.

    Attributes
    ----------
    coef_ : array of shape (n_classes, n_features), or (1, n_features) for two classes
        For two classes w = w₁ − w₀.
    intercept_, classes_, n_mistakes_, n_updates_, mistakes_per_pass_, updates_per_pass_, n_iter_, t_
        As in :class:`Perceptron`, with one count for all classes.
    mistake_bound_ : Bound or None
        What Kesler's construction and Novikoff's theorem allow; computed when asked for.

    Notes
    -----
    *Guarantee.* If weights of norm 1 in all put every row's own class ahead of all others by γ, there are at most
    2(R/γ)² mistakes (Kesler's construction), R² = max ‖(x, 1)‖². Two classes: w₁ − w₀ is the perceptron with step 2η.

    References
    ----------
    Duda, Hart: Pattern classification and scene analysis, 1973. Crammer, Singer: Ultraconservative online algorithms
    for multiclass problems, 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> machine = MulticlassPerceptron(max_iter=100).fit(X, y)
    >>> machine.score(X, y), int(machine.mistakes_per_pass_[-1])
    (1.0, 0)
    """

    _numbers = ()
    batch_size = 1

    def __init__(
        self,
        *,
        eta0: float = 1.0,
        margin: float = 0.0,
        fit_intercept: bool = True,
        bias: str = "augmented",
        radius: float | None = None,
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
        self.margin = margin
        self.fit_intercept = fit_intercept
        self.bias = bias
        self.radius = radius
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

    def _steps(self) -> Steps:
        return Steps.of("constant", eta0=self.eta0)

    def _margin(self) -> float:
        return number_in("margin", self.margin, 0.0, 1e100)

    def _prepare(self, rows: Rows, *, whole: bool) -> None:
        super()._prepare(rows, whole=whole)
        largest_squared_norm(rows)

    def _machines(self, n_classes: int, n_cols: int) -> list[Memory]:
        shape = (n_cols, n_classes)
        arrays = {"v": np.zeros(shape), "b": np.zeros(n_classes)}
        if self.average:
            arrays |= {"sum": np.zeros(shape), "sum_b": np.zeros(n_classes)}
        return [Memory(arrays)]

    def _targets(self, position: Any, n_classes: int) -> list[Any]:
        return [position.astype(np.int32)]

    def _open(self, memory: Memory) -> Any:
        core = _core.Multiclass(memory.arrays["v"], memory.arrays["b"])
        core.rate, core.bias_gain, core.margin = self._steps_now.rate, self._gain_now, self._margin()
        if "sum" in memory.arrays:
            core.average(memory.arrays["sum"], memory.arrays["sum_b"])
        memory.set_on(core)
        return core

    def _step_now(self, core: Any) -> float:
        return float(core.rate)

    def _all_weights(self, memory: Memory) -> tuple[Vector, Vector]:
        W, b = memory.arrays["v"], memory.arrays["b"]
        if "sum" in memory.arrays and memory.count("n_seen"):
            n = memory.count("n_seen")
            W, b = W - memory.arrays["sum"] / n, b - memory.arrays["sum_b"] / n
        return W.T, b

    def _weights(self, memory: Memory) -> tuple[Vector, float]:
        return self._all_weights(memory)[0].ravel(), 0.0

    def _store(self, classes: Any, memories: list[Memory], courses: Any, *, added: bool = False) -> None:
        W, b = self._all_weights(memories[0])
        self.classes_, self._memories = classes, memories
        self.coef_, self.intercept_ = np.ascontiguousarray(W), b.copy()
        store_course(self, memories, courses, added=added)
        if len(classes) == 2:
            self.coef_, self.intercept_ = W[1:] - W[:1], b[1:] - b[:1]

    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> Any:
        """Learn from some rows, once each, and go on from there at the next call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, needed at the first call
        """
        return self._partial_fit(X, y, classes)

    @property
    def mistake_bound_(self) -> Bound | None:
        """2 (R/γ)² by Kesler's construction; None if the rows cannot be separated or the weights did not start at 0."""
        X, y = self._seen_rows()
        if not self._from_zero:
            return None
        margin, eta = (float(self._fit_params[name]) for name in ("margin", "eta0"))
        return kesler(X, y, constant=self._gain_now**0.5, margin=margin, eta=eta)

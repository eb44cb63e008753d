"""Winnow: weights that are multiplied, not added to; few relevant columns among many are found quickly."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

import maxmargin._core as _core
from maxmargin.errors import InputError
from maxmargin.estimators import ConvergenceWarning, warn
from maxmargin.inputs import positive_number
from maxmargin.online.base import Course, Vector
from maxmargin.online.linear import OnlineClassifier
from maxmargin.online.memory import Memory
from maxmargin.online.steps import Steps
from maxmargin.space import Rows
from maxmargin.theory.mistake_bounds import Bound, winnow


class _Multiplicative(OnlineClassifier):
    """What both forms share."""

    _numbers = ("s_bias", "w_bias", "shift", "log_base")
    _kept: ClassVar[dict[str, type]] = OnlineClassifier._kept | {"_log_base_now": float}
    _balanced: bool
    batch_size, bias, radius = 1, "augmented", None

    def _steps(self) -> Steps:
        return Steps(1.0)

    def _prepare(self, rows: Rows, *, whole: bool) -> None:
        super()._prepare(rows, whole=whole)
        self._largest_now = rows.facts.largest
        if not self._largest_now <= 1e100:
            raise InputError(
                f"the largest entry of X is {self._largest_now:.3g}; {type(self).__name__} multiplies weights by "
                "powers of entries. Scale the columns, for example with sklearn.preprocessing.MaxAbsScaler"
            )
        if self.base is not None:
            if not positive_number("base", self.base) > 1.0:
                raise InputError(f"base must be greater than 1, got {self.base!r}")
            self._log_base_now = math.log(float(self.base))
        elif whole or not hasattr(self, "_log_base_now"):
            self._log_base_now = self._default_log_base(rows)

    def _default_log_base(self, rows: Rows) -> float:
        raise NotImplementedError

    def _threshold(self) -> float:
        return 0.0

    def _open(self, memory: Memory) -> Any:
        known = memory.numbers.get("log_base", self._log_base_now)
        if self.base is not None and known != self._log_base_now:
            raise InputError(
                f"base was {math.exp(known):.6g} and is {self.base!r} now, but all weights are powers of it; use a new "
                "machine"
            )
        self._log_base_now = known  # a base that was taken from rows stays that of the first rows
        core = _core.Winnower(self._balanced, memory.arrays["s"], memory.arrays["v"])
        core.log_base, core.bias_input = self._log_base_now, self._gain_now if self._balanced else 0.0
        core.threshold = self._threshold()
        memory.set_on(core)
        return core

    def _step_now(self, core: Any) -> float:
        return self._log_base_now

    def _store(self, *arguments: Any, **options: Any) -> None:
        super()._store(*arguments, **options)
        self.base_ = math.exp(min(self._log_base_now, 700.0))
        self.exponent_ = np.stack([memory.arrays["s"] for memory in self._memories])

    def _warn_of_mistakes(self, courses: list[Course]) -> None:
        if self.tol is None:
            return
        left = max(course.mistakes[-1] for course in courses if course.mistakes)
        passes = max(len(course.mistakes) for course in courses)
        warn(
            f"{type(self).__name__} stopped with {left} mistakes in its last pass, after {passes} passes. A "
            f"smaller base than {math.exp(min(self._log_base_now, 700.0)):.4g}, or more passes (max_iter, "
            "n_iter_no_change=None), will do if the classes can be separated; too large a base may never stop.",
            ConvergenceWarning,
        )

    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> Any:
        """Learn from some rows, once each, and go on from there at the next call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, needed at the first call
        """
        return self._partial_fit(X, y, classes)


class BalancedWinnow(_Multiplicative):
    """Balanced Winnow: two positive weights per column, whose difference decides.

    Rule
        a⁺_j = a⁻_j = 1 at the start;   if y f ≤ 0:   a⁺_j ×= base^(y x_j),   a⁻_j ×= base^(−y x_j);   w = a⁺ − a⁻

    Parameters
    ----------
    base : float or None, default=None
        Greater than 1; None takes ln base = 1/(4 X²) with X = max |x_ij| (of the first rows, with ``partial_fit``).
        The best one is ln base = γ/X²; from 2γ/X² on the machine may never stop.
    fit_intercept : bool, default=True
        Adds a constant column, which is treated like any other.
    shuffle : bool or "replacement", default=True
    max_iter : int, default=1000
        Most passes.
    tol : int or None, default=0
        Stop after a pass with at most so many mistakes.
    n_iter_no_change : int or None, default=20
    random_state : int, RandomState or None, default=None
    warm_start : bool, default=False
    max_seconds : float or None, default=None
    trace : bool, default=False
    verbose : int, default=0

    Attributes
    ----------
    coef_, intercept_, classes_, n_mistakes_, n_updates_, mistakes_per_pass_, updates_per_pass_, n_iter_, t_
        As in :class:`Perceptron`; where weights would overflow, all are divided by the same number.
    exponent_ : array of shape (n_machines, n_features)
        s = Σ y x over the mistakes; w_j = 2 sinh(s_j ln base).
    base_ : float
    mistake_bound_ : Bound or None

    Notes
    -----
    *Guarantee.* If y⟨u, x⟩ ≥ γ for some ‖u‖₁ = 1 (the constant column included): at most
    ln(2d)/(γ ln base − ½ X² ln² base) mistakes where that is positive; with ln base = γ/X² that is 2 (X/γ)² ln(2d). The
    number of columns enters by its logarithm only.

    References
    ----------
    Littlestone: Learning quickly when irrelevant attributes abound, 1988. Grove, Littlestone, Schuurmans: General
    convergence results for linear discriminant updates, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).choice([-1.0, 1.0], (200, 500))
    >>> machine = BalancedWinnow().fit(X, X[:, 3] > 0)      # one relevant column among 500
    >>> int(np.abs(machine.coef_).argmax()), machine.n_mistakes_ <= machine.mistake_bound_.value
    (3, True)
    """

    _balanced = True

    def __init__(
        self,
        *,
        base: float | None = None,
        fit_intercept: bool = True,
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
        self.base = base
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.trace = trace
        self.verbose = verbose

    def _default_log_base(self, rows: Rows) -> float:
        largest = self._largest_now
        return 0.25 / max(largest, 1.0 if self.fit_intercept else 1e-100) ** 2

    def _fresh(self, n_cols: int) -> Memory:
        return Memory({"v": np.zeros(n_cols), "s": np.zeros(n_cols)})

    def _weights(self, memory: Memory) -> tuple[Vector, float]:
        return memory.arrays["v"], float(memory.numbers.get("w_bias", 0.0)) * self._gain_now

    @property
    def mistake_bound_(self) -> Bound | None:
        """What the theorem allows; None for more than two classes or if no γ makes it finite."""
        X, y = self._seen_rows()
        if len(self.classes_) != 2 or not self._from_zero:
            return None
        return winnow(X, y, log_base=self._log_base_now, fit_intercept=bool(self._fit_params["fit_intercept"]))


class Winnow(_Multiplicative):
    """Winnow with positive weights and a fixed threshold, for rows of non-negative numbers.

    Rule
        a_j = 1 at the start, f(x) = ⟨a, x⟩ − θ;   if y f ≤ 0:   a_j ×= base^(y x_j)

    Parameters
    ----------
    base : float or None, default=None
        Greater than 1; None takes 2^(1/X) with X = max x_ij: an entry of the largest size doubles or halves its weight.
    threshold : float or None, default=None
        θ; None takes the number of columns times half of the largest entry.
    shuffle, max_iter, tol, n_iter_no_change, random_state, warm_start, max_seconds, trace, verbose
        As in :class:`BalancedWinnow`.

    Attributes
    ----------
    coef_, intercept_, classes_, n_mistakes_, n_updates_, mistakes_per_pass_, updates_per_pass_, n_iter_, t_
        As in :class:`Perceptron`.
    exponent_ : array of shape (n_machines, n_features)
        s = Σ y x over the mistakes; a_j = base^s_j.
    base_ : float

    Notes
    -----
    Only functions with positive weights can be learned: disjunctions, counts, monotone features. Use
    :class:`BalancedWinnow` for the others.

    References
    ----------
    Littlestone: Learning quickly when irrelevant attributes abound, 1988.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).integers(0, 2, (300, 200)).astype(float)
    >>> y = (X[:, 2] + X[:, 7]) > 0                        # a disjunction of two columns
    >>> machine = Winnow().fit(X, y)
    >>> sorted(np.argsort(machine.coef_[0])[-2:].tolist())
    [2, 7]
    """

    _kept: ClassVar[dict[str, type]] = _Multiplicative._kept | {"_threshold_now": float}
    _balanced = False
    fit_intercept = False

    def __init__(
        self,
        *,
        base: float | None = None,
        threshold: float | None = None,
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
        self.base = base
        self.threshold = threshold
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.trace = trace
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # not every separable set has positive weights
        return tags

    def _default_log_base(self, rows: Rows) -> float:
        return math.log(2.0) / (self._largest_now or 1.0)

    def _threshold(self) -> float:
        if self.threshold is not None:
            return positive_number("threshold", self.threshold)
        return self._threshold_now

    def _prepare(self, rows: Rows, *, whole: bool) -> None:
        smallest = rows.smallest
        if smallest < 0.0:
            raise InputError(
                f"Negative values in data passed to {type(self).__name__}: the smallest entry of X is "
                f"{smallest:g}. Winnow needs entries of at least 0; BalancedWinnow takes any numbers."
            )
        super()._prepare(rows, whole=whole)
        if whole or not hasattr(self, "_threshold_now"):
            self._threshold_now = 0.5 * rows.d * (self._largest_now or 1.0)

    def _fresh(self, n_cols: int) -> Memory:
        return Memory({"v": np.ones(n_cols), "s": np.zeros(n_cols)})

    def _weights(self, memory: Memory) -> tuple[Vector, float]:
        return memory.arrays["v"], -self._threshold() * math.exp(-float(memory.numbers.get("shift", 0.0)))

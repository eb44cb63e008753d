"""Unsupervised rules: Hebb's, which diverges, and Oja's, which finds the leading principal direction."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if

from maxmargin.errors import InputError
from maxmargin.estimators import ConvergenceWarning, check_names, checked_for_scores, warn
from maxmargin.inputs import check_rows, refuse_sparse
from maxmargin.online.base import Course, largest_squared_norm
from maxmargin.online.linear import LinearRule, store_course
from maxmargin.online.memory import Memory
from maxmargin.online.steps import Steps
from maxmargin.space import Rows


class _Correlating(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LinearRule):
    """w += η f x and its relatives: what both rules share."""

    _stops = False
    _counts_corrections = False
    batch_size, reduction, fit_intercept, rho, average = 1, "sum", False, 0.0, False
    tol = n_iter_no_change = None
    _kept: ClassVar[dict[str, type]] = LinearRule._kept | {"_eta_now": float, "_start_norm": float}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False  # centring would fill the zeros
        return tags

    def _steps(self) -> Steps:
        if self.schedule not in ("constant", "inverse"):
            raise InputError(f"schedule must be 'constant' or 'inverse', got {self.schedule!r}")
        rate = self._eta_now if self.eta0 is None else self.eta0
        steps = Steps.of(self.schedule, eta0=rate, t0=self.t0, power_t=self.power_t)
        return Steps(rate * steps.offset**steps.power, steps.offset, steps.power)

    def _ready(self, X: Any, *, first: bool, whole: bool) -> Rows:
        """Checked and, if asked, centred rows; the step size if it is to be taken from them."""
        refuse_sparse(X, f"{type(self).__name__} takes dense rows only: centring would fill the zeros")
        rows = check_rows(X)
        check_names(self, X, first=first)
        self._mean_now = None
        if whole and self.center:
            self._mean_now = np.asarray(rows.X.mean(axis=0, dtype=np.float64))
            rows = check_rows(rows.X - self._mean_now)
        self._largest_now = largest_squared_norm(rows)
        if self.eta0 is None and first:
            self._eta_now = 0.1 / (float(rows.facts.squared_norms.mean()) or 1.0)
        self._prepare(rows, whole=whole)
        return rows

    def _begin(self, n_cols: int, coef_init: ArrayLike | None) -> list[Memory]:
        memory = self._fresh(n_cols)
        start = np.random.default_rng(self._seed_now).standard_normal(n_cols)
        if coef_init is not None:
            try:
                start = np.array(coef_init, dtype=np.float64).ravel()
            except (TypeError, ValueError):
                start = np.zeros(0)
            if len(start) != n_cols or not np.all(np.isfinite(start)) or not start.any():
                raise InputError(f"coef_init must hold {n_cols} finite numbers, not all 0, got {np.shape(coef_init)}")
        else:
            start /= np.linalg.norm(start)
        self._start_norm = float(np.linalg.norm(start))
        memory.arrays["v"][:] = start
        return [memory]

    def fit(self, X: Any, y: Any = None, coef_init: ArrayLike | None = None) -> Any:
        """Learn from all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        coef_init : array of shape (n_features,), optional
            Weights to start from; by default a random direction. They must not be 0: from there nothing moves.
        """
        self._check_passes()
        rows = self._ready(X, first=True, whole=True)
        memories = self._begin(rows.d, coef_init)
        courses = self._passes(memories, rows, [np.zeros(rows.n)])
        self._finish(memories, courses)
        return self

    def _part(self, X: Any) -> Any:
        self._check_passes()
        first = not hasattr(self, "_memories")
        rows = self._ready(X, first=first, whole=False)
        memories = self._begin(rows.d, None) if first else self._memories
        calls = 0 if first else getattr(self, "_n_calls", 0)
        courses = self._one_pass(memories, rows, [np.zeros(rows.n)], calls)
        self._n_calls = calls + 1
        self._finish(memories, courses, added=not first)
        return self

    def _restore(self) -> None:
        self._interrupted = False
        self._finish(self._memories, [Course()])

    def _finish(self, memories: list[Memory], courses: Any, *, added: bool = False) -> None:
        w, _ = self._weights(memories[0])
        if not added:
            self.__dict__.pop("mean_", None)
            if getattr(self, "_mean_now", None) is not None:
                self.mean_ = self._mean_now
        self._memories, self.components_, self._n_features_out = memories, w[None, :].copy(), 1
        self.coef_ = w
        store_course(self, memories, courses, added=added)
        del self.coef_
        largest = float(np.abs(w).max()) or 1.0  # a diverging norm must not overflow
        self.norm_ = largest * float(np.linalg.norm(w / largest))
        if self._interrupted:
            raise KeyboardInterrupt
        self._judge_growth(courses)

    def _judge_growth(self, courses: Any) -> None:
        if courses[0].diverged:
            warn(
                f"{type(self).__name__} diverged and stopped there: {self._advice_on_divergence()}", ConvergenceWarning
            )

    def transform(self, X: Any) -> Any:
        """⟨w, x⟩ of every (centred) row, shape (n_samples, 1)."""
        X = checked_for_scores(self, X)
        if self.center and hasattr(self, "mean_"):
            X = X - self.mean_
        return X @ self.components_.T


class HebbRule(_Correlating):
    """Hebb's rule: what fires together is strengthened, without limit.

    Rule
        f = ⟨w, x⟩,   w += η f x

    Parameters
    ----------
    eta0 : float or None, default=None
        Step size; None takes 0.1 divided by the mean of ‖x‖².
    schedule : {"constant", "inverse"}, default="constant"
    t0 : float, default=100.0
    power_t : float, default=1.0
        η(k) = eta0, or eta0/(1 + k/t0)^power_t.
    center : bool, default=True
        Subtract the mean of all rows first; ``partial_fit`` exists only without.
    shuffle : bool or "replacement", default=True
    max_iter : int, default=1
        Passes.
    random_state : int, RandomState or None, default=None
        Seed of the order and of the direction to start from.
    max_seconds : float or None, default=None
    trace : bool, default=False
        Keep the weights after every step in ``trace_``.
    verbose : int, default=0

    Attributes
    ----------
    components_ : array of shape (1, n_features)
    norm_ : float
        ‖w‖; with constant steps it grows like (1 + ηλ₁)^k, and the fit says so.
    mean_ : array of shape (n_features,)
    n_updates_, updates_per_pass_, n_iter_, t_
        As in :class:`Perceptron`.

    Notes
    -----
    *Guarantee.* None: the mean of w follows (I + ηR) w, R the rows' second moments, and so grows without limit along
    the leading direction. A fit whose weights grew a thousandfold warns and gives :class:`OjaRule` as the cure.

    References
    ----------
    Hebb: The organization of behavior, 1949. Oja: A simplified neuron model as a principal component analyzer, 1982.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((50, 2)) * [3.0, 1.0]
    >>> w = HebbRule().fit(X).components_[0]
    >>> bool(abs(w[0]) > abs(w[1]))
    True
    """

    _rule = "hebb"

    def __init__(
        self,
        *,
        eta0: float | None = None,
        schedule: str = "constant",
        t0: float = 100.0,
        power_t: float = 1.0,
        center: bool = True,
        shuffle: bool | str = True,
        max_iter: int = 1,
        random_state: Any = None,
        max_seconds: float | None = None,
        trace: bool = False,
        verbose: int = 0,
    ) -> None:
        self.eta0 = eta0
        self.schedule = schedule
        self.t0 = t0
        self.power_t = power_t
        self.center = center
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.random_state = random_state
        self.max_seconds = max_seconds
        self.trace = trace
        self.verbose = verbose

    def _judge_growth(self, courses: Any) -> None:
        if courses[0].diverged or self.norm_ > 1e3 * self._start_norm:
            warn(
                f"HebbRule: the weights have grown to a norm of {self.norm_:.3g} and would go on growing without "
                "limit; no step size prevents that. Use OjaRule, or fewer rows",
                ConvergenceWarning,
            )

    @available_if(lambda machine: not machine.center)
    def partial_fit(self, X: Any, y: Any = None) -> Any:
        """Learn from some rows, once each (``center=False`` only)."""
        return self._part(X)


class OjaRule(_Correlating):
    """Oja's rule: Hebb's rule with forgetting, which tends to the leading principal direction.

    Rule
        f = ⟨w, x⟩,   w += η f (x − f w)

    Parameters
    ----------
    eta0 : float or None, default=None
        First step size; None takes 0.1 divided by the mean of ‖x‖². Steps well below 2/max ‖x‖² are safe.
    schedule : {"inverse", "constant"}, default="inverse"
    t0 : float, default=100.0
    power_t : float, default=0.75
        η(k) = eta0/(1 + k/t0)^power_t, or eta0.
    center, shuffle, random_state, max_seconds, trace, verbose
        As in :class:`HebbRule`.
    max_iter : int, default=20
        Passes.

    Attributes
    ----------
    components_ : array of shape (1, n_features)
        ± the leading principal direction, of norm nearly 1.
    norm_ : float
    mean_ : array of shape (n_features,)
    n_updates_, updates_per_pass_, n_iter_, t_
        As in :class:`Perceptron`.

    Notes
    -----
    *Guarantee.* Centred rows, λ₁ > λ₂, a start that is not orthogonal to the leading direction, and steps with Ση = ∞
    and Ση² < ∞: w tends to ± the leading principal direction and ‖w‖ to 1; with constant small steps to a
    neighbourhood.

    References
    ----------
    Oja: A simplified neuron model as a principal component analyzer, 1982.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((500, 2)) * [3.0, 1.0]
    >>> machine = OjaRule().fit(X)
    >>> bool(abs(machine.components_[0, 0]) > 0.99), round(machine.norm_, 1)
    (True, 1.0)
    """

    _rule = "oja"

    def __init__(
        self,
        *,
        eta0: float | None = None,
        schedule: str = "inverse",
        t0: float = 100.0,
        power_t: float = 0.75,
        center: bool = True,
        shuffle: bool | str = True,
        max_iter: int = 20,
        random_state: Any = None,
        max_seconds: float | None = None,
        trace: bool = False,
        verbose: int = 0,
    ) -> None:
        self.eta0 = eta0
        self.schedule = schedule
        self.t0 = t0
        self.power_t = power_t
        self.center = center
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.random_state = random_state
        self.max_seconds = max_seconds
        self.trace = trace
        self.verbose = verbose

    def _advice_on_divergence(self) -> str:
        return (
            f"eta0={self._steps_now.size(0):.3g} is too large a step for these rows; steps well below 2/max ‖x‖² = "
            f"{2.0 / (self._largest_now or 1.0):.3g} are safe. Use eta0=None, or scale the columns"
        )

    @available_if(lambda machine: not machine.center)
    def partial_fit(self, X: Any, y: Any = None) -> Any:
        """Learn from some rows, once each (``center=False`` only)."""
        return self._part(X)

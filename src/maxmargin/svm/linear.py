"""LinearSVC: the linear support vector classifier."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning as _SklearnConvergenceWarning
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import validate_data

from maxmargin.certificates import OptimalityCertificate
from maxmargin.positions import check_positions
from maxmargin.inputs import check_weights, positive_number
from maxmargin.problem import Problem
from maxmargin.runtime import Watch, effective_threads
from maxmargin.solution import Solution, Status, Vector
from maxmargin.solvers import SOLVERS, Solver, automatic
from maxmargin.svm.progress import FitProgress
from maxmargin.svm.versioned import VersionedState


class ConvergenceWarning(_SklearnConvergenceWarning):
    """A fit stopped before the requested gap; the message says how far off it can be and what to change."""


ADVICE = {
    Status.ITERATION_LIMIT: "Raise max_iter, raise tol, or continue from here with warm_start=True.",
    Status.TIME_LIMIT: "Raise max_seconds, raise tol, or continue from here with warm_start=True.",
    Status.INTERRUPTED: "Continue from here with warm_start=True.",
    Status.NUMERICAL_LIMIT: "Scale the columns (for example with sklearn.preprocessing.StandardScaler), "
    "lower C, or raise tol.",
    Status.INFEASIBLE: "Lower C.",
}


class LinearSVC(VersionedState, CallbackSupportMixin, LinearClassifierMixin, SparseCoefMixin, BaseEstimator):
    """Linear support vector classifier for two classes, solved exactly and certified.

    Solves
        minimise over w, b   ½‖w‖² + C Σ c_i max(0, 1 − y_i (⟨w, x_i⟩ + b))^p

    with p = 1 (``loss="hinge"``) or p = 2 (``loss="squared_hinge"``) and weights c_i. The bias is not
    penalised unless asked.

    Parameters
    ----------
    penalty : {"l2"}, default="l2"
        Only ½‖w‖².
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        The slack's power.
    dual : "auto" or bool, default="auto"
        For compatibility; every solver here is primal and dual. Any other value warns.
    tol : float, default=1e-6
        Relative duality gap at which the fit counts as converged. Usually far exceeded: where it is cheap, the last
        step solves the optimality conditions to rounding level.
    C : float, default=1.0
        Price of slack.
    multi_class : {"ovr"}, default="ovr"
        For compatibility; two classes only.
    fit_intercept : bool, default=True
        Whether there is a bias b.
    intercept_scaling : float, default=1.0
        Only with ``penalize_intercept=True``: the constant column whose weight is penalised.
    class_weight : dict, "balanced" or None, default=None
        Factors on C for each class.
    verbose : int, default=0
        1 prints a line per iteration.
    random_state : int, RandomState or None, default=None
        Order of the coordinates in ``solver="dual_cd"``; None means always the same order.
    max_iter : int, default=10000
        Limit on iterations (interior point) or epochs (coordinate descent); the polish has its own.
    solver : {"auto", "interior_point", "dual_cd"}, default="auto"
        "auto" compares estimated costs; ``solution_.reason`` says how it decided.
    warm_start : bool, default=False
        Continue from the dual point of the previous fit.
    max_seconds : float or None, default=None
        Time limit.
    n_threads : int or None, default=None
        None uses what CPU affinity, cgroup and OMP_NUM_THREADS allow. The result does not depend on it.
    penalize_intercept : bool, default=False
        Penalise the bias as LIBLINEAR does: adds ½(b/intercept_scaling)².

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
    classes_ : array of shape (2,)
    dual_coef_ : array of shape (1, n_support)
        y_i alpha_i of the support vectors.
    support_ : array of shape (n_support,)
        Indices of rows with alpha_i > 0.
    n_iter_ : int
        Iterations or epochs, and the Newton steps of the polish.
    solution_ : Solution
        Objective values, gap, status, history, solver and the reason for its choice.
    certificate_ : OptimalityCertificate
        ``certificate_.verify(X, y)`` checks the claim from the data alone.

    Guarantees
    ----------
    No hyperplane has an objective below ``certificate_.dual``; ‖w − w*‖ ≤ ``certificate_.distance_bound``
    (weak duality). A weight of k equals k repetitions of a row.

    References
    ----------
    Boser, Guyon, Vapnik: A training algorithm for optimal margin classifiers, 1992. Cortes, Vapnik:
    Support-vector networks, 1995.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> machine = LinearSVC(loss="hinge", C=0.1).fit(X / X.max(axis=0), y)
    >>> machine.solution_.status.name, machine.solution_.gap < 1e-9
    ('CONVERGED', True)
    >>> print(machine.certificate_.verify(X / X.max(axis=0), y))
    verified: no hyperplane has an objective below ...
    """

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: bool | str = "auto",
        tol: float = 1e-6,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: dict[Any, float] | str | None = None,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 10000,
        solver: str = "auto",
        warm_start: bool = False,
        max_seconds: float | None = None,
        n_threads: int | None = None,
        penalize_intercept: bool = False,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.n_threads = n_threads
        self.penalize_intercept = penalize_intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> LinearSVC:
        """Find the hyperplane.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            float32 and float64 rows in C order are used as they are, without a copy.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights c_i ≥ 0; 0 leaves a row out.
        """
        self._check_parameters()
        if y is None:
            raise ValueError("LinearSVC requires y to be passed, but the target y is None")
        progress = FitProgress(self, self.verbose, self.tol)
        start = self._previous_dual_point()
        problem = Problem.from_arrays(
            X,
            column_or_1d(y, warn=True),
            sample_weight=sample_weight,
            class_weight=self.class_weight,
            C=self.C,
            loss=self.loss,
            fit_intercept=self.fit_intercept,
            penalize_intercept=self.penalize_intercept,
            intercept_scaling=self.intercept_scaling,
        )
        if start is not None and len(start) != problem.n_rows:
            warnings.warn(
                f"warm_start: the previous fit had {len(start)} rows, this one has {problem.n_rows}; starting afresh",
                UserWarning,
                stacklevel=2,
            )
            start = None
        progress.begin(X, y)
        watch = Watch(self.max_seconds, progress)
        solution = self._make_solver(problem).solve(problem, start=start, watch=watch)
        validate_data(self, X, skip_check_array=True)  # feature names and count, for predict
        self._store(problem.classes, solution, problem.y * solution.alpha)
        # For whoever certifies the saved model.
        self._sample_weight = None if sample_weight is None else check_weights(sample_weight, problem.n_rows)
        interrupted = solution.status is Status.INTERRUPTED and not watch.stop_requested
        if interrupted:
            raise KeyboardInterrupt
        progress.end()
        self._warn_if_unfinished(solution)
        return self

    def _check_parameters(self) -> None:
        positive_number("tol", self.tol)
        if self.max_seconds is not None:
            positive_number("max_seconds", self.max_seconds)
        if isinstance(self.max_iter, bool) or not isinstance(self.max_iter, Integral) or int(self.max_iter) < 1:
            raise ValueError(f"max_iter must be a whole number of at least 1, got {self.max_iter!r}")
        if not isinstance(self.verbose, Real) or self.verbose < 0:
            raise ValueError(f"verbose must be a number of at least 0, got {self.verbose!r}")
        effective_threads(self.n_threads)
        if not isinstance(self.solver, str) or (self.solver != "auto" and self.solver not in SOLVERS):
            raise ValueError(f"solver must be 'auto' or one of {sorted(SOLVERS)}, got {self.solver!r}")
        if self.penalty != "l2":
            raise ValueError(f"penalty={self.penalty!r} is not supported; LinearSVC has penalty='l2' only")
        if self.multi_class != "ovr":
            raise ValueError(f"multi_class={self.multi_class!r} is not supported; two classes need only 'ovr'")
        if self.dual not in ("auto", True, False):
            raise ValueError(f"dual must be 'auto', True or False, got {self.dual!r}")
        if self.dual != "auto":
            self._no_effect("dual", "every solver here works on the primal and the dual at once")
        if self.penalize_intercept and not self.fit_intercept:
            self._no_effect("penalize_intercept", "there is no bias with fit_intercept=False")
        elif self.intercept_scaling != 1 and not self.penalize_intercept:
            self._no_effect("intercept_scaling", "the bias is not penalised; set penalize_intercept=True to use it")

    def _no_effect(self, name: str, why: str) -> None:
        warnings.warn(f"{name}={getattr(self, name)!r} has no effect: {why}", UserWarning, stacklevel=5)

    def _previous_dual_point(self) -> Any:
        if not self.warm_start or not hasattr(self, "solution_"):
            return None
        return self.solution_.alpha

    def _make_solver(self, problem: Problem) -> Solver:
        seed = 0
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        options: dict[str, Any] = {"tol": float(self.tol), "max_iter": int(self.max_iter), "n_threads": self.n_threads}
        if self.solver == "auto":
            return automatic(problem, seed=seed, **options)
        if self.solver == "dual_cd":
            options["seed"] = seed
        return SOLVERS[self.solver](**options)

    def _store(self, classes: NDArray[Any], solution: Solution, signed_alpha: Vector) -> None:
        """Set the fitted attributes; ``signed_alpha`` is y_i alpha_i of every row."""
        self.classes_ = classes
        self.coef_ = solution.w.reshape(1, -1).copy()  # the certificate keeps its own
        self.intercept_ = np.array([solution.b])
        self.support_ = np.flatnonzero(signed_alpha)
        self.dual_coef_ = signed_alpha[self.support_].reshape(1, -1)
        self.n_iter_ = solution.n_iter
        self.solution_ = solution
        self.certificate_ = OptimalityCertificate(
            coef=solution.w,
            intercept=solution.b,
            alpha=solution.alpha,
            primal=solution.primal,
            dual=solution.dual,
            gap=solution.gap,
            loss=self.loss,
            C=float(self.C),
            classes=classes,
            class_weight=dict(self.class_weight) if isinstance(self.class_weight, dict) else self.class_weight,
            fit_intercept=bool(self.fit_intercept),
            penalty_scale=float(self.intercept_scaling) if self.penalize_intercept and self.fit_intercept else None,
        )

    def _warn_if_unfinished(self, solution: Solution) -> None:
        if solution.status is Status.CONVERGED:
            return
        warnings.warn(
            f"LinearSVC stopped at a relative gap of {solution.gap:.2e} (asked: {self.tol:.0e}): "
            f"{solution.status.sentence}. The model is usable: its objective is {solution.primal:.6g}, and no "
            f"hyperplane's is below {solution.dual:.6g}. "
            f"{ADVICE[solution.status]}",
            ConvergenceWarning,
            stacklevel=4,
        )

    def decision_function(self, X: Any) -> Any:
        """Signed scores ⟨w, x⟩ + b; positive means ``classes_[1]``."""
        if sp.issparse(X):
            check_positions(X)
        return super().decision_function(X)

    def predict(self, X: Any) -> Any:
        """The class of each row; a score of exactly 0 goes to ``classes_[0]``."""
        return super().predict(X)

    def sparsify(self) -> LinearSVC:
        """Store ``coef_`` as a sparse matrix (smaller when most weights are zero)."""
        super().sparsify()
        return self

    def densify(self) -> LinearSVC:
        """Store ``coef_`` as a dense array, the default."""
        if sp.issparse(getattr(self, "coef_", None)):
            super().densify()
        return self

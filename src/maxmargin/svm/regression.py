"""LinearSVR: linear support vector regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin.certificates import OptimalityCertificate
from maxmargin.errors import InputError
from maxmargin.estimators import one_column
from maxmargin.foreign import with_callbacks
from maxmargin.positions import check_positions
from maxmargin.problem import Problem
from maxmargin.process import KeptMemory
from maxmargin.runtime import Watch, effective_threads
from maxmargin.solution import Solution, Status
from maxmargin.space import in_memory
from maxmargin.svm.base import CertifiedMachine, Vector
from maxmargin.svm.progress import FitProgress
from maxmargin.svm.readings import free_and_bounded, multiplier_range
from maxmargin.undisturbed import undisturbed


class LinearSVR(RegressorMixin, CertifiedMachine):
    """Linear support vector regression, solved exactly and certified.

    Solves
        minimise over w, b   ½‖w‖² + C Σ c_i max(0, |y_i − ⟨w, x_i⟩ − b| − ε)^p

    with p = 1 (``loss="epsilon_insensitive"``) or p = 2 (``loss="squared_epsilon_insensitive"``) and weights c_i.
    Errors inside a tube of half-width ε cost nothing. The bias is not penalised unless asked.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half-width of the tube.
    tol : float, default=1e-6
        Relative duality gap at which the fit counts as converged.
    C : float, default=1.0
        Price of errors outside the tube.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The error's power.
    fit_intercept : bool, default=True
        Whether there is a bias b.
    intercept_scaling : float, default=1.0
        Only with ``penalize_intercept=True``: the constant column whose weight is penalised.
    dual : "auto" or bool, default="auto"
        For compatibility; every solver here is primal and dual. Any other value warns.
    verbose : int, default=0
        1 prints a line per iteration.
    random_state : int, RandomState or None, default=None
        Order of the coordinates in ``solver="dual_cd"``; None means always the same order.
    max_iter : int, default=10000
        Limit on iterations, epochs or steps.
    solver : {"auto", "interior_point", "dual_cd", "newton"}, default="auto"
        "auto" chooses by shape and loss; ``solution_.reason`` says how it decided.
    warm_start : bool, default=False
        Continue from the previous fit.
    max_seconds : float or None, default=None
        Time limit.
    n_threads : int or None, default=None
        None uses what CPU affinity, cgroup and OMP_NUM_THREADS allow. The result does not depend on it.
    penalize_intercept : bool, default=False
        Penalise the bias as LIBLINEAR does: adds ½(b/intercept_scaling)².

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : array of shape (1,)
    dual_coef_ : array of shape (1, n_support)
        Multipliers of the support vectors: positive above the tube, negative below.
    support_ : array of shape (n_support,)
        Indices of rows on the tube's border or outside.
    n_iter_ : int
    solution_ : Solution
    certificate_ : OptimalityCertificate
        ``certificate_.verify(X, y)`` checks the claim from the data alone.

    Notes
    -----
    *Guarantees.* No hyperplane has an objective below ``certificate_.dual``; ‖w − w*‖ ≤ ``certificate_.distance_bound``
    (weak duality).

    References
    ----------
    Vapnik: The nature of statistical learning theory, 1995. Smola, Schölkopf: A tutorial on support vector
    regression, 2004. Ho, Lin: Large-scale linear support vector regression, 2012.

    Examples
    --------
    >>> machine = LinearSVR(C=100.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> machine.predict([[3.0]]).round(6)
    array([7.])
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-6,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: bool | str = "auto",
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 10000,
        solver: str = "auto",
        warm_start: bool = False,
        max_seconds: float | None = None,
        n_threads: int | None = None,
        penalize_intercept: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
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
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> LinearSVR:
        """Find the hyperplane.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            float32 and float64 rows in C order are used as they are, without a copy.
        y : array-like of shape (n_samples,)
            Numbers to approximate.
        sample_weight : array-like of shape (n_samples,), optional
            Weights c_i ≥ 0; 0 leaves a row out.
        """
        self._check_common()
        self._check_dual()
        if y is None:
            raise InputError("LinearSVR requires y to be passed, but the target y is None")
        with KeptMemory():
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> LinearSVR:
        progress = FitProgress(self, self.verbose, self.tol)
        n_threads = effective_threads(self.n_threads)
        validate_data(self, X, skip_check_array=True)  # names and number of columns, for predict
        problem = Problem.regression(
            X,
            one_column(y),
            sample_weight=sample_weight,
            C=self.C,
            loss=self.loss,
            epsilon=self.epsilon,
            fit_intercept=self.fit_intercept,
            penalize_intercept=self.penalize_intercept,
            intercept_scaling=self.intercept_scaling,
            n_threads=n_threads,
        )
        start = self._previous(1, problem.n_rows)[0]
        progress.begin(X, y)
        watch = Watch(self.max_seconds, progress)
        solver = self._make_solver(problem, n_threads, self._seed())
        with undisturbed(in_memory(problem.space)):
            solution = solver.solve(problem, start=start, watch=watch)
        self._store(problem, solution)
        if solution.status is Status.INTERRUPTED and not watch.stop_requested:
            raise KeyboardInterrupt
        progress.end()
        self._warn_if_unfinished(solution)
        return self

    def _store(self, problem: Problem, solution: Solution) -> None:
        self.coef_ = solution.w.copy()  # the certificate keeps its own
        self.intercept_ = np.array([solution.b])
        self.support_ = np.flatnonzero(solution.alpha)
        self.dual_coef_ = solution.alpha[self.support_].reshape(1, -1)
        self.n_iter_ = solution.n_iter
        self.solution_ = solution
        self._readings = free_and_bounded(solution.alpha, *multiplier_range(problem))
        self._n_rows_seen = problem.n_rows
        self.certificate_ = OptimalityCertificate(
            coef=solution.w,
            intercept=solution.b,
            alpha=solution.alpha,
            primal=solution.primal,
            dual=solution.dual,
            gap=solution.gap,
            loss=problem.loss.name,
            C=float(self.C),
            classes=None,
            tol=float(self.tol),
            fit_intercept=bool(self.fit_intercept),
            penalty_scale=self._penalty_scale,
            epsilon=float(self.epsilon),
        )

    @property
    def free_(self) -> Any:
        """Rows with 0 < |alpha_i| < C c_i: of the plain error, on the tube's border."""
        check_is_fitted(self)
        return self._readings[0]

    @property
    def bounded_(self) -> Any:
        """Rows with |alpha_i| = C c_i: of the plain error, those that lie outside the tube."""
        check_is_fitted(self)
        return self._readings[1]

    @property
    def objective_(self) -> float:
        """The value of the problem above at what was found."""
        check_is_fitted(self)
        return float(self.solution_.primal)

    def predict(self, X: Any) -> Vector:
        """⟨w, x⟩ + b of every row."""
        check_is_fitted(self)
        check_positions(X)
        X = validate_data(self, X, accept_sparse=["csr", "csc", "coo"], reset=False)
        return np.asarray(np.asarray(X @ self._dense_coef.ravel()).ravel() + self.intercept_[0])

    def slacks(self, X: Any, y: Any) -> Vector:
        """max(0, |y − f(x)| − ε) of each row: how far it lies outside the tube."""
        return np.maximum(0.0, np.abs(np.asarray(y, dtype=np.float64).ravel() - self.predict(X)) - float(self.epsilon))

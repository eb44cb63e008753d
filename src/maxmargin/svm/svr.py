"""SVR: support vector regression with a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from maxmargin.certificates import ExpansionCertificate
from maxmargin.errors import InputError
from maxmargin.estimators import check_names, one_column, require_targets
from maxmargin.foreign import with_callbacks
from maxmargin.inputs import check_rows, check_targets, check_weights, number_in, positive_number
from maxmargin.kernels import Kernel
from maxmargin.problem import REGRESSION_LOSSES, Problem, costs_of, make_bias
from maxmargin.process import KeptMemory
from maxmargin.runtime import effective_threads
from maxmargin.svm.kernel_base import KernelMachine, KernelProgress, Machine, Vector
from maxmargin.svm.machines import Task, was_interrupted


class KernelRegressor(RegressorMixin, KernelMachine):
    """Fit, store and predict; a subclass says which problem the targets make and what is claimed of it."""

    def _task(self, rows: Any, target: Vector, cost: Vector) -> Task:
        raise NotImplementedError

    def _claim(self, part: Any, kernel: Kernel) -> Any:
        raise NotImplementedError

    def _tube(self, solution: Any) -> float:
        """Half-width of the tube."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        self._check_common()
        positive_number("C", self.C)

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Find the function.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, or the kernel's values for all pairs of rows if ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Numbers to approximate.
        sample_weight : array-like of shape (n_samples,), optional
            Weights c_i ≥ 0; 0 leaves a row out.
        """
        self._check_parameters()
        require_targets(self, y)
        with KeptMemory():
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Any:
        progress = KernelProgress(self, self.verbose, self.tol)
        n_threads = effective_threads(self.n_threads)
        space = check_rows(X, n_threads)
        target, weight = check_targets(one_column(y), space.n), check_weights(sample_weight, space.n)
        kernel = self._make_kernel(space, weight)
        rows = self._kernel_rows(space, kernel, n_threads)
        cost = costs_of(rows, weight, float(self.C))
        if float(np.abs(target).max()) * max(1.0, float(cost.sum())) > 1e140:
            raise InputError("the largest |y| times the total cost is too large for float64 arithmetic; scale y")
        task = self._task(rows, target, cost)
        check_names(self, X)
        progress.begin(X, y)
        (machine,), watch = self._solve(space, [task], np.arange(space.n), n_threads, progress)
        support = np.flatnonzero(machine.solution.w)
        self._store_regression(target, machine, support)
        self._store_machines(space, kernel, support, machine.solution.w[support][None], [machine], watch)
        self.certificate_ = self._claim(machine.solution, kernel)
        if was_interrupted([machine.solution], watch):
            raise KeyboardInterrupt
        progress.end()
        self._warn_if_unfinished()
        return self

    def _store_regression(self, target: Vector, machine: Machine, support: Any) -> None:
        self.intercept_ = np.array([machine.solution.b])
        self.n_support_ = np.array([len(support)], dtype=np.int32)
        self.n_iter_ = max(1, int(machine.solution.n_iter))
        self._support_targets, self._half_width = target[support], self._tube(machine.solution)

    def _beyond(self, scores: Vector) -> Vector:
        return np.asarray(np.abs(self._support_targets[:, None] - scores) - self._half_width)

    def predict(self, X: Any) -> Vector:
        """f(x) of every row."""
        return self._scores_of(X).ravel()


class SVR(KernelRegressor):
    """Support vector regression with a kernel, solved exactly and certified.

    Solves
        minimise over w, b   ½‖w‖² + C Σ c_i max(0, |y_i − ⟨w, φ(x_i)⟩ − b| − ε)^p

    in the space of the kernel, ⟨φ(x), φ(z)⟩ = k(x, z), with weights c_i and p = 1 or 2. Errors inside a tube of
    half-width ε cost nothing, and the bias is not penalised. The solution is f(x) = Σ alpha_i k(x_i, x) + b.
    Parameters, attributes and signs are those of scikit-learn's SVR, but for ``tol``.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, callable or Kernel, default="rbf"
        A callable gets two arrays of rows and returns the matrix of values. "precomputed" means that X holds values of
        the kernel: one row per sample and one column per sample learned from.
    degree : float, default=3
        Of "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Of "poly", "rbf" and "sigmoid". "scale" is 1 / (columns × variance of X, weighted), "auto" is 1 / columns.
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    tol : float, default=1e-6
        Relative duality gap at which the fit counts as converged.
    C : float, default=1.0
        Price of errors outside the tube.
    epsilon : float, default=0.1
        Half-width of the tube.
    shrinking : bool, default=True
        For compatibility. It has no effect on the answer: the solver decides itself which rows it sets aside.
    cache_size : float, default=2000
        Megabytes for values of the kernel.
    verbose : int, default=False
        1 prints a line per report of the solver.
    max_iter : int, default=-1
        Limit on iterations; −1 means none.
    solver : {"auto", "pair_steps", "interior_point", "nystrom", "adatron", "smo_textbook"}, default="auto"
        "auto" chooses by the problem; ``solution_.reason`` says how it decided.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The error's power p.
    kernel_params : mapping, optional
        Keywords for a callable kernel.
    max_seconds : float or None, default=None
        Time limit.
    n_threads : int or None, default=None
        None uses what CPU affinity, cgroup and OMP_NUM_THREADS allow. The result does not depend on it.
    warm_start : bool, default=False
        Continue from the previous fit.

    Attributes
    ----------
    support_ : array of shape (n_support,)
        Indices of rows with alpha_i ≠ 0: on the tube's border or outside.
    support_vectors_ : array or sparse matrix of shape (n_support, n_features)
        Empty if the kernel is precomputed.
    n_support_ : array of shape (1,)
    dual_coef_ : array or sparse matrix of shape (1, n_support)
        alpha_i: positive above the tube, negative below.
    intercept_ : array of shape (1,)
    coef_ : array or sparse matrix of shape (1, n_features)
        The weights, with the linear kernel only.
    n_iter_ : int
    fit_status_ : int
        0 if the fit converged, 1 otherwise.
    shape_fit_ : tuple of int
    kernel_ : Kernel
        The kernel with its parameters as numbers.
    free_, bounded_, violating_ : arrays of indices
        Rows with 0 < |alpha_i| < C c_i, on the tube's border; with |alpha_i| = C c_i; and outside of the tube.
    objective_ : float
        The value of the problem above.
    solution_ : Solution
        Objective values, gap, status, history, solver and the reason for its choice.
    certificate_ : ExpansionCertificate
        ``certificate_.verify(X, y)`` checks the claim from the data alone. It holds multipliers and no rows.

    Notes
    -----
    *Guarantees.* No function of the kernel's space has an objective below ``certificate_.dual`` (weak duality). A
    weight of k equals k repetitions of a row. A kernel that is no inner product leaves a stationary point, and its gap
    is not a number.

    References
    ----------
    Vapnik: The nature of statistical learning theory, 1995. Smola, Schölkopf: A tutorial on support vector
    regression, 2004.

    Examples
    --------
    >>> machine = SVR(C=100.0, epsilon=0.01, gamma=1.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> machine.predict([[0.0], [1.0], [2.0]]).round(2) + 0.0
    array([0.01, 0.99, 0.01])
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: float = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-6,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 2000,
        verbose: int = False,
        max_iter: int = -1,
        solver: str = "auto",
        loss: str = "epsilon_insensitive",
        kernel_params: Mapping[str, Any] | None = None,
        max_seconds: float | None = None,
        n_threads: int | None = None,
        warm_start: bool = False,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.loss = loss
        self.kernel_params = kernel_params
        self.max_seconds = max_seconds
        self.n_threads = n_threads
        self.warm_start = warm_start

    def _check_parameters(self) -> None:
        super()._check_parameters()
        number_in("epsilon", self.epsilon, 0.0, 1e100)
        if not isinstance(self.loss, str) or self.loss not in REGRESSION_LOSSES:
            raise InputError(f"loss must be one of {sorted(REGRESSION_LOSSES)}, got {self.loss!r}")

    def _task(self, rows: Any, target: Vector, cost: Vector) -> Task:
        loss = REGRESSION_LOSSES[self.loss](float(self.epsilon))
        return Task(Problem(rows, target, cost, loss, make_bias(True, False, 1.0), np.empty(0)))

    def _tube(self, solution: Any) -> float:
        return float(self.epsilon)

    def _claim(self, part: Any, kernel: Kernel) -> ExpansionCertificate:
        return ExpansionCertificate(
            kernel=kernel.structure(),
            alpha=part.alpha,
            intercept=part.b,
            stretch=part.stretch,
            primal=part.primal,
            dual=part.dual,
            gap=part.gap,
            loss=self.loss,
            C=float(self.C),
            classes=None,
            tol=float(self.tol),
            epsilon=float(self.epsilon),
        )

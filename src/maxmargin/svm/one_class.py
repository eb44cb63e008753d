"""OneClassSVM and SVDD: where the rows of one kind are, as a half-space or a ball in the kernel's space."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin

from maxmargin.certificates import NuCertificate
from maxmargin.errors import InputError
from maxmargin.estimators import check_names
from maxmargin.foreign import with_callbacks
from maxmargin.inputs import check_costs, check_rows, check_sizes, check_weights
from maxmargin.kernels import Kernel, Precomputed
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.process import KeptMemory
from maxmargin.runtime import effective_threads
from maxmargin.solvers.nu_machines import NuProblem
from maxmargin.svm.kernel_base import KernelMachine, KernelProgress, Machine, Vector
from maxmargin.svm.machines import Task, was_interrupted
from maxmargin.svm.nu import check_nu, zero_to_cost

UNEQUAL = 1e-12  # relative: values k(x, x) that differ by more are not the same
BLURRED = 1e-3  # of a threshold: so far apart a converged fit may leave rows that lie on the border
ON_THE_BORDER = 1e-12  # of a threshold: what rounding of scores may do


class KernelNovelty(OutlierMixin, KernelMachine):
    """Fit, store and predict for rows of one kind; a subclass says which set is looked for."""

    _kind: str

    def _check_rows(self, rows: KernelRows, kernel: Kernel) -> None:
        """Whether this machine can learn from these rows."""

    def _store_shape(self, machine: Machine, rows: KernelRows, border: Vector) -> None:
        """Set what is this machine's own; ``border`` are the sums Σ_j alpha_j k(x_j, x) of the rows on the border."""
        raise NotImplementedError

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Any:
        """Find the set.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, or the kernel's values for all pairs of rows if ``kernel="precomputed"``.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Weights c_i ≥ 0; 0 leaves a row out.
        """
        self._check_common()
        check_nu(self.nu)
        with KeptMemory():
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Any:
        progress = KernelProgress(self, self.verbose, self.tol)
        n_threads = effective_threads(self.n_threads)
        space = check_rows(X, n_threads)
        weight = check_weights(sample_weight, space.n)
        check_costs(weight)
        kernel = self._make_kernel(space, weight)
        rows = self._kernel_rows(space, kernel, n_threads)
        check_sizes(rows, weight)
        self._check_rows(rows, kernel)
        problem: Any = NuProblem(rows, self._kind, np.ones(space.n), weight, float(self.nu))
        check_names(self, X)
        progress.begin(X, y)
        (machine,), watch = self._solve(space, [Task(problem)], np.arange(space.n), n_threads, progress)
        self._keep(space, kernel, machine, rows, watch)
        if was_interrupted([machine.solution], watch):
            raise KeyboardInterrupt
        progress.end()
        self._warn_if_unfinished()
        return self

    def _keep(self, space: Any, kernel: Kernel, machine: Machine, rows: KernelRows, watch: Any) -> None:
        support = np.flatnonzero(machine.solution.w)
        self.n_support_ = np.array([len(support)], dtype=np.int32)
        self.n_iter_ = max(1, int(machine.solution.n_iter))
        self._store_machines(space, kernel, support, machine.coefficients[support][None], [machine], watch)
        border = self._sums_of(space.X[self.free_])[:, 0] if len(self.free_) else np.empty(0)
        self._store_shape(machine, rows, border)
        self.certificate_ = self._claim(machine.solution, kernel)

    def _range(self, problem: Any) -> tuple[Vector, Vector]:
        return zero_to_cost(problem)

    def _claim(self, part: Any, kernel: Kernel) -> NuCertificate:
        return NuCertificate(
            kernel=kernel.structure(),
            kind=self._kind,
            alpha=part.alpha,
            intercept=0.0,
            stretch=part.stretch,
            rho=part.rho,
            nu=float(self.nu),
            primal=part.primal,
            dual=part.dual,
            gap=part.gap,
            tol=float(self.tol),
        )

    def _beyond(self, scores: Vector) -> Vector:
        return -scores

    def decision_function(self, X: Any) -> Vector:
        """How far inside each row is: negative for an outlier."""
        return self._scores_of(X).ravel()

    def score_samples(self, X: Any) -> Vector:
        """``decision_function(X) + offset_``: the score without its threshold."""
        return np.asarray(self.decision_function(X) + self.offset_)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """1 for rows inside, their border included, and −1 for outliers."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1).astype(np.intp)


def border_inside(threshold: float, values: Vector) -> float:
    """The threshold, so little lower that it leaves no value of a row on the border below it.

    Such rows are inside, whatever rounding says; so the outliers are those that ν allows. Values that are farther away
    are not of a fit that converged, and stay where they are.

    Examples
    --------
    >>> border_inside(1.0, np.array([1.0 + 1e-9, 1.0 - 1e-9])) < 1.0 - 1e-9
    True
    >>> border_inside(1.0, np.array([0.5]))
    1.0
    """
    near = values[np.abs(values - threshold) <= BLURRED * abs(threshold)]
    lowest = min(threshold, float(near.min(initial=threshold)))
    return lowest - ON_THE_BORDER * abs(threshold) if len(near) else threshold


class OneClassSVM(KernelNovelty):
    """One-class support vector machine: a half-space, in the kernel's space, that holds most rows.

    Solves
        minimise over w, ρ   ½‖w‖² − ν T ρ + Σ c_i max(0, ρ − ⟨w, φ(x_i)⟩),   T = Σ c_i

    where ⟨φ(x), φ(z)⟩ = k(x, z), with weights c_i. The solution is f(x) = Σ alpha_i k(x_i, x) − ρ, negative for
    outliers. Parameters, attributes and signs are those of scikit-learn's OneClassSVM, but for ``tol``.

    Parameters
    ----------
    kernel, degree, gamma, coef0
        As in :class:`SVC`.
    tol : float, default=1e-6
        Relative duality gap at which the fit counts as converged.
    nu : float, default=0.5
        0 < ν ≤ 1: at most a share ν of the weight are outliers, and at least that share has support vectors.
    shrinking, cache_size, verbose, max_iter
        As in :class:`SVC`.
    solver : {"auto", "pair_steps"}, default="auto"
    kernel_params, max_seconds, n_threads, warm_start
        As in :class:`SVC`.

    Attributes
    ----------
    offset_ : array of shape (1,)
        ρ; ``decision_function`` is ``score_samples`` less this.
    support_, support_vectors_, dual_coef_, coef_, n_iter_, fit_status_, shape_fit_, kernel_
        As in :class:`SVR`; ``dual_coef_`` is alpha_i.
    intercept_ : array of shape (1,)
        −ρ.
    n_support_ : array of shape (1,)
    free_, bounded_, violating_ : arrays of indices
        Rows with 0 < alpha_i < c_i, on the border; with alpha_i = c_i; and the outliers among the rows.
    margin_ : array of shape (1,)
        ρ/‖w‖, the distance of the half-space from the origin.
    objective_ : float
        The value of the problem above.
    solution_ : NuSolution
        Objective values, gap, status, history, solver and the reason for its choice.
    certificate_ : NuCertificate
        ``certificate_.verify(X)`` checks the claim from the data alone. It holds multipliers and no rows.

    Notes
    -----
    *Guarantees.* No (w, ρ) has an objective below ``certificate_.dual`` (weak duality). A weight of k equals k
    repetitions of a row. Rows on the border are inside; ``offset_`` differs from ``solution_.rho`` by what that takes.

    References
    ----------
    Schölkopf, Platt, Shawe-Taylor, Smola, Williamson: Estimating the support of a high-dimensional distribution, 2001.

    Examples
    --------
    >>> machine = OneClassSVM(nu=0.4, gamma=1.0).fit([[0.0], [0.44], [0.45], [0.46], [1.0]])
    >>> machine.predict([[0.45], [5.0]])
    array([ 1, -1])
    """

    _kind = "one_class"

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: float = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-6,
        nu: float = 0.5,
        shrinking: bool = True,
        cache_size: float = 2000,
        verbose: int = False,
        max_iter: int = -1,
        solver: str = "auto",
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
        self.nu = nu
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.kernel_params = kernel_params
        self.max_seconds = max_seconds
        self.n_threads = n_threads
        self.warm_start = warm_start

    def _store_shape(self, machine: Machine, rows: KernelRows, border: Vector) -> None:
        self.offset_ = np.array([border_inside(float(machine.solution.rho), border)])
        self.intercept_ = -self.offset_

    @property
    def margin_(self) -> Vector:
        """ρ/‖w‖, the distance of the half-space from the origin."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.offset_ / self._norms)


class SVDD(KernelNovelty):
    """Support vector data description: the smallest ball, in the kernel's space, that holds most rows.

    Solves
        minimise over c, R   R² + (1/(ν T)) Σ c_i max(0, ‖φ(x_i) − c‖² − R²),   T = Σ c_i

    where ⟨φ(x), φ(z)⟩ = k(x, z), with weights c_i. The centre is c = Σ beta_i φ(x_i) with Σ beta_i = 1, and
    f(x) = R² − ‖φ(x) − c‖² is negative for outliers. If k(x, x) is the same for all x, as for the Gaussian kernel,
    the rows inside are those of :class:`OneClassSVM`.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, callable or Kernel, default="rbf"
        As in :class:`SVC`. "precomputed" needs one value on the whole diagonal, which new rows are taken to share.
    degree, gamma, coef0
        As in :class:`SVC`.
    tol : float, default=1e-6
        Relative duality gap at which the fit counts as converged.
    nu : float, default=0.5
        0 < ν ≤ 1: at most a share ν of the weight are outliers, and at least that share has support vectors.
    cache_size, verbose, max_iter, kernel_params, max_seconds, n_threads, warm_start
        As in :class:`SVC`.
    solver : {"auto", "pair_steps"}, default="auto"

    Attributes
    ----------
    radius_ : float
        R.
    dual_coef_ : array or sparse matrix of shape (1, n_support)
        beta_i, the centre as a mixture of the support vectors.
    offset_ : array of shape (1,)
        −R²; ``score_samples`` is −‖φ(x) − c‖².
    support_, support_vectors_, n_support_, coef_, n_iter_, fit_status_, shape_fit_, kernel_
        As in :class:`OneClassSVM`; ``coef_`` is the centre.
    free_, bounded_, violating_ : arrays of indices
        Rows on the sphere, with 0 < beta_i < c_i/(ν T); with beta_i at that bound; and the outliers among the rows.
    objective_ : float
        As the solver states the problem.
    solution_ : NuSolution
        Objective values, gap, status, history, solver and the reason for its choice.
    certificate_ : NuCertificate
        ``certificate_.verify(X)`` checks the claim from the data alone. It holds multipliers and no rows.

    Notes
    -----
    *Guarantees.* No ball has an objective below ``certificate_.dual`` (weak duality). A weight of k equals k
    repetitions of a row. Rows on the sphere are inside.

    References
    ----------
    Tax, Duin: Support vector data description, 2004.

    Examples
    --------
    >>> machine = SVDD(nu=0.01, kernel="linear").fit([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> machine.coef_.round(6), round(machine.radius_**2, 6)
    (array([[1., 1.]]), 2.0)
    >>> machine.predict([[1.0, 2.0], [3.0, 3.0]])
    array([ 1, -1])
    """

    _kind = "ball"

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: float = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-6,
        nu: float = 0.5,
        cache_size: float = 2000,
        verbose: int = False,
        max_iter: int = -1,
        solver: str = "auto",
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
        self.nu = nu
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.kernel_params = kernel_params
        self.max_seconds = max_seconds
        self.n_threads = n_threads
        self.warm_start = warm_start

    def _check_rows(self, rows: KernelRows, kernel: Kernel) -> None:
        own = rows.diagonal
        low, high = float(own.min()), float(own.max())
        if isinstance(kernel, Precomputed) and high - low > UNEQUAL * max(abs(low), abs(high)):
            raise InputError(
                f"SVDD with a precomputed kernel needs the same value on the whole diagonal, since nobody could tell "
                f"k(x, x) of new rows; it lies between {low:g} and {high:g}. Divide k(x, z) by √(k(x, x) k(z, z)), or "
                "pass the kernel as a function."
            )

    def _scale(self, problem: Any, solution: Any) -> float:
        return 1.0 / float(solution.w.sum())

    def _store_shape(self, machine: Machine, rows: KernelRows, border: Vector) -> None:
        own = rows.diagonal
        self._own_value = float(own[self.support_[0]])  # of every row, where the kernel is precomputed
        self._centre_square = float(self._dense_dual[0] @ self._support_products()[:, 0])
        radius_square = self._centre_square - 2.0 * machine.scale * float(machine.solution.rho)
        distances = own[self.free_] - 2.0 * border + self._centre_square
        self.radius_ = math.sqrt(max(0.0, -border_inside(-radius_square, -distances)))
        self.offset_ = np.array([-(self.radius_**2)])

    def _own(self, X: Any) -> Any:
        """k(x, x) of checked rows."""
        return self._own_value if isinstance(self.kernel_, Precomputed) else self.kernel_.diagonal(X)

    def _support_scores(self) -> Vector:
        inside = self._inside(self._own(self.support_vectors_), self._support_products()[:, 0])
        return inside[:, None]

    def _inside(self, own: Any, sums: Vector) -> Vector:
        """R² less the squared distance from the centre."""
        return np.asarray(self.radius_**2 - (own - 2.0 * sums + self._centre_square))

    def decision_function(self, X: Any) -> Vector:
        """R² − ‖φ(x) − c‖² of each row: negative for an outlier."""
        X = self._checked(X)
        return self._inside(self._own(X), self._sums_of(X)[:, 0])

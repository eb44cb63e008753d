"""Kernel ridge regression with an unpenalised bias."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin

from maxmargin.estimators import VersionedState, check_names, checked_for_scores, require_targets, warn
from maxmargin.inputs import check_rows, check_weights, truth_value
from maxmargin.kernels import Kernel, Precomputed, make_kernel
from maxmargin.kernels.points import mirror
from maxmargin.space import Rows
from maxmargin.squares.base import check_alpha, check_outputs, check_solution
from maxmargin.squares.centred import Matrix, Vector, centred, kept_rows
from maxmargin.squares.systems import EPS, solve_positive

NEGATIVE = 1e-8  # an eigenvalue this far below zero, relative to the largest, is no rounding error


class KernelRidge(MultiOutputMixin, RegressorMixin, VersionedState, BaseEstimator):
    """Ridge regression in the space of a kernel.

    Solves
        minimise over w, b   Σ c_i (y_i − f(x_i))² + α‖w‖²,   f(x) = ⟨w, φ(x)⟩ + b

    with weights c_i, where ⟨φ(x), φ(z)⟩ = k(x, z). The solution is f(x) = Σ a_i k(x_i, x) + b with

        [ K + α diag(1/c)   1 ] [a]   [y]
        [       1ᵀ          0 ] [b] = [0],        K_ij = k(x_i, x_j).

    The bias is not penalised; ``fit_intercept=False`` leaves it out, as scikit-learn's KernelRidge always does.

    Parameters
    ----------
    alpha : float, default=1.0
        α ≥ 0. 0 is least squares with the smallest ‖w‖.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, callable or Kernel, default="linear"
        A callable gets two arrays of rows and returns the matrix of values. "precomputed" means that X holds values of
        the kernel: one row per sample and one column per sample learned from.
    gamma : {"scale", "auto"}, float or None, default=None
        Of "poly", "rbf" and "sigmoid". "scale" is 1 / (columns × variance of X), "auto" and None are 1 / columns.
    degree : float, default=3
        Of "poly".
    coef0 : float, default=1.0
        Of "poly" and "sigmoid".
    kernel_params : mapping, optional
        Keywords for a callable kernel.
    fit_intercept : bool, default=True
        Whether there is a bias b.

    Attributes
    ----------
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_outputs)
        a; 0 for rows of weight 0.
    intercept_ : float or array of shape (n_outputs,)
    X_fit_ : array or CSR matrix of shape (n_samples, n_features)
        The rows learned from.
    kernel_ : Kernel
        The kernel with its parameters as numbers.

    Notes
    -----
    *Guarantees.* The equations above hold to rounding. Where the matrix is singular to working precision, a has no
    part in directions that change no prediction. The matrix of all pairs of rows is held in memory, 8 n² bytes, twice.
    With a kernel that is not positive semidefinite the equations still have a solution, but the objective may have no
    minimum; a warning says so where it is noticed.

    References
    ----------
    Saunders, Gammerman, Vovk: Ridge regression learning algorithm in dual variables, 1998. Suykens, Vandewalle: Least
    squares support vector machine classifiers, 1999.

    Examples
    --------
    >>> machine = KernelRidge(alpha=0.01, kernel="rbf", gamma=0.5).fit([[0.0], [1.0], [2.0]], [1.0, 0.0, 1.0])
    >>> machine.predict([[0.0], [1.0]]).round(2)
    array([0.99, 0.03])
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        kernel: Any = "linear",
        gamma: float | str | None = None,
        degree: float = 3,
        coef0: float = 1.0,
        kernel_params: Mapping[str, Any] | None = None,
        fit_intercept: bool = True,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        return tags

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (isinstance(self.kernel, str) and self.kernel == "precomputed")

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> KernelRidge:
        """Find the function.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Numbers to approximate.
        sample_weight : array-like of shape (n_samples,), optional
            Weights c_i ≥ 0; a weight of k counts as k repetitions, 0 leaves a row out.
        """
        alpha = check_alpha(self.alpha)
        truth_value("fit_intercept", self.fit_intercept)
        require_targets(self, y)
        space = check_rows(X)
        n = space.n
        Y, weight = check_outputs(y, n), check_weights(sample_weight, n)
        kept_space, kept = kept_rows(space, weight)
        kernel = self._make_kernel(space, weight)
        check_names(self, X)
        K = kernel.gram(space)[kept][:, kept] if self._is_precomputed else kernel.gram(kept_space)
        with np.errstate(over="ignore", invalid="ignore"):
            a, b = bordered_solution(K, Y.reshape(n, -1)[kept], weight[kept], alpha, self.fit_intercept)
        check_solution(a, b)
        dual = np.zeros((n, a.shape[1]))
        dual[kept] = a
        self.dual_coef_ = dual[:, 0] if Y.ndim == 1 else dual
        self.intercept_: Any = float(b[0]) if Y.ndim == 1 else b
        self.X_fit_ = space.X.copy()  # what happens to X later must not change predictions
        self.kernel_ = kernel
        return self

    def _make_kernel(self, space: Rows, weight: Vector) -> Kernel:
        return make_kernel(
            self.kernel,
            gamma=self.gamma,
            coef0=self.coef0,
            degree=self.degree,
            kernel_params=self.kernel_params,
            X=space,
            sample_weight=weight,
        )

    def predict(self, X: Any) -> Any:
        """f(x) of every row."""
        X = checked_for_scores(self, X)
        return self.kernel_.times(X, self.X_fit_, self.dual_coef_) + self.intercept_


def bordered_solution(K: Matrix, Y: Matrix, weight: Vector, alpha: float, fit_intercept: bool) -> tuple[Matrix, Vector]:
    """a and b of the equations above for weights above zero; K is overwritten.

    With a = √c u they read (√c K √c + αI) u + √c b = √c y, √cᵀu = 0. So the matrix may be replaced by its projection
    orthogonal to √c, and y by what is left of it without its weighted mean: b is gone. The projection is singular along
    √c, where u has no part; a multiple of √c√cᵀ fills that in.
    """
    root = np.sqrt(weight)
    B, y_mean = centred(np.array(Y), weight, fit_intercept)
    mean = np.zeros(len(K))  # of the rows of K
    if fit_intercept:
        mean = K @ weight / weight.sum()
        K -= mean
        K -= mean[:, None] - mean @ weight / weight.sum()
        mirror(K)  # exactly symmetric again
    K *= root
    K *= root[:, None]
    u = positive_solution(K, B, alpha, root if fit_intercept else None)
    a = root[:, None] * u
    return a, y_mean - mean @ a


def positive_solution(M: Matrix, B: Matrix, alpha: float, root: Vector | None) -> Matrix:
    """u of (M + αI) u = B, where M is singular along ``root``; M is overwritten."""
    size = float(M.trace()) / len(M)
    along = np.zeros(len(M)) if root is None else root * np.sqrt((size if size > 0.0 else 1.0) / (root @ root))
    M.flat[:: len(M) + 1] += alpha
    M += np.outer(along, along)
    u = solve_positive(M, B, lambda u: B - M @ u)
    if u is not None:
        return u
    M -= np.outer(along, along)
    M.flat[:: len(M) + 1] -= alpha
    values, vectors = scipy.linalg.eigh(M, overwrite_a=True, check_finite=False)
    largest = float(np.abs(values).max())
    if values[0] < -NEGATIVE * largest:
        warn(
            f"the kernel is not positive semidefinite on these rows: its matrix has an eigenvalue of {values[0]:.2g}, "
            f"the largest is {values[-1]:.2g}. The equations are solved, but the objective may have no minimum; use "
            "another kernel or a larger alpha"
        )
    cut = EPS * len(M) * largest
    used = ((values > cut) | (values < -NEGATIVE * largest)) & (np.abs(values + alpha) > cut)
    basis = vectors[:, used]
    return np.asarray(basis @ ((basis.T @ B) / (values[used] + alpha)[:, None]))

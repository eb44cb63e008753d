"""Least squares: the hyperplane of the smallest squared errors, for rows of any rank."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from maxmargin.space import Rows
from maxmargin.squares.base import Found, LinearClassifier, LinearMachine, LinearRegressor
from maxmargin.squares.centred import DenseRows, Matrix, Vector, centred, centred_rows, kept_rows
from maxmargin.squares.systems import EPS, MinimalSolution

MOST_DENSE = 5 * 10**7  # numbers, 400 MB: up to here sparse rows become dense, and small singular values are seen


class LeastSquares(LinearMachine):
    """Finds the weights of smallest norm among those of smallest error."""

    def _find(self, space: Rows, Y: Matrix, weight: Vector, single: bool) -> Found:
        space, kept = kept_rows(space, weight)
        weight = weight[kept]
        rows = centred_rows(space, weight, self.fit_intercept, MOST_DENSE)
        B, y_mean = centred(np.array(Y[kept]), weight, self.fit_intercept)
        if isinstance(rows, DenseRows):
            cut = EPS * max(rows.shape)
            W, _, rank, singular = scipy.linalg.lstsq(rows.A, B, cond=cut, check_finite=False, lapack_driver="gelsd")
        else:
            found = MinimalSolution.of(rows, B, 0.0, by_columns=rows.shape[1] <= rows.shape[0])
            W, rank, singular = found.W, found.rank, found.singular
        errors = np.square(B - rows.times(W)).sum(axis=0)
        about = {"rank_": int(rank), "singular_": singular, "residual_": float(errors[0]) if single else errors}
        return Found(W, y_mean - rows.mean @ W, about)


class LeastSquaresRegressor(LinearRegressor, LeastSquares):
    """Linear regression by least squares, for rows of any rank.

    Solves
        minimise over w, b   Σ c_i (y_i − ⟨w, x_i⟩ − b)²

    with weights c_i. Where many w do equally well, the one of smallest ‖w‖ is taken: the limit of ridge regression
    with an unpenalised bias as its price goes to 0.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether there is a bias b.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_outputs, n_features)
    intercept_ : float or array of shape (n_outputs,)
    rank_ : int
        Rank of the rows after their mean is taken off.
    singular_ : array of shape (min(n_samples, n_features),)
        Singular values of the rows, each times √c_i, after their mean is taken off.
    residual_ : float or array of shape (n_outputs,)
        The sum of squares at the solution.

    Notes
    -----
    *Guarantees.* The normal equations hold to rounding: errors are orthogonal to every column and sum to zero under the
    weights. Singular values below 2.2e-16 · max(n, d) of the largest count as zero. Sparse rows with more than 5·10⁷
    entries, zeros included, are not made dense; of them only the smaller product with themselves is formed, which sees
    singular values down to about 1e-8 of the largest.

    References
    ----------
    Gauss: Theoria motus corporum coelestium, 1809. Golub, Kahan: Calculating the singular values and pseudo-inverse of
    a matrix, 1965.

    Examples
    --------
    >>> machine = LeastSquaresRegressor().fit([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], [1.0, 3.0, 5.0])
    >>> machine.coef_.round(6), round(machine.intercept_, 6), machine.rank_
    (array([1., 1.]), 1.0, 1)
    """

    def __init__(self, *, fit_intercept: bool = True) -> None:
        self.fit_intercept = fit_intercept


class LeastSquaresClassifier(LinearClassifier, LeastSquares):
    """Linear classification by least squares on targets −1 and +1.

    Solves
        minimise over w, b   Σ c_i (y_i − ⟨w, x_i⟩ − b)²,   y_i = +1 for ``classes_[1]``, −1 for ``classes_[0]``

    with weights c_i. More than two classes: one such machine for each, +1 for its class and −1 for all others. Where
    many w do equally well, the one of smallest ‖w‖ is taken.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether there is a bias b.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    rank_ : int
        Rank of the rows after their mean is taken off.
    singular_ : array of shape (min(n_samples, n_features),)
        Singular values of the rows, each times √c_i, after their mean is taken off.
    residual_ : float or array of shape (n_classes,)
        The sum of squares at the solution.

    Notes
    -----
    *Guarantees.* As for :class:`LeastSquaresRegressor`. With two classes and full rank, w has the direction of the
    linear discriminant whose scatter is pooled over all rows.

    References
    ----------
    Widrow, Hoff: Adaptive switching circuits, 1960. Duda, Hart: Pattern classification and scene analysis, 1973.

    Examples
    --------
    >>> machine = LeastSquaresClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    >>> machine.predict([[1.4], [1.6]]).tolist()
    ['no', 'yes']
    """

    def __init__(self, *, fit_intercept: bool = True) -> None:
        self.fit_intercept = fit_intercept

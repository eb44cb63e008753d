"""Proof that two classes can, or cannot, be separated by a hyperplane.

They can: a hyperplane with every row on its side. They cannot: convex weights under which the means of both classes
coincide, for a hyperplane would have to put that common point on both of its sides. Either is checked by arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Vector = NDArray[np.float64]
MOST_NUMBERS = 4_000_000  # non-zeros that the linear program is tried on
MOST_MISMATCH = 1e-12  # of the columns' ranges: what rounding leaves


@dataclass(frozen=True, eq=False)
class Separability:
    """A verdict with its proof.

    Attributes
    ----------
    separable : True, False, or None if neither could be proven.
    coef, intercept : a separating hyperplane, if there is one.
    weights : per row, summing to 1 in each class, under which the classes' means coincide, if there is none.
    positive : the class on the hyperplane's positive side.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array(["a", "b", "a"])
    >>> verdict = judge_separability(X, y)
    >>> print(verdict)
    not linearly separable: under convex weights on 3 rows the means of both classes coincide
    >>> verdict.verify(X, y) < 1e-9
    True
    >>> print(judge_separability(X[:2], y[:2]))
    linearly separable: a hyperplane has every row on its side
    """

    separable: bool | None
    positive: Any
    coef: Vector | None = None
    intercept: float = 0.0
    weights: Vector | None = None

    def verify(self, X: Any, y: NDArray[Any]) -> float:
        """The worst violation found: 0 for rows all on their side, or how far the weighted means are apart."""
        sign = np.where(np.asarray(y) == self.positive, 1.0, -1.0)
        if self.coef is not None:
            margin = sign * (np.asarray(X @ self.coef).ravel() + self.intercept)
            return float(max(0.0, -margin.min())) if margin.min() != 0.0 else np.inf
        if self.weights is not None:
            return _mismatch(X, sign, self.weights)
        return float(np.inf)

    def __str__(self) -> str:
        if self.separable:
            return "linearly separable: a hyperplane has every row on its side"
        if self.separable is None:
            return "not judged: the problem is too large for the linear program, or too close to call"
        assert self.weights is not None
        n = int(np.count_nonzero(self.weights))
        return f"not linearly separable: under convex weights on {n} rows the means of both classes coincide"


class NotSeparableError(ValueError):
    """No hyperplane separates the classes; ``proof`` shows it.

    Attributes
    ----------
    proof : Separability
        Convex weights under which the means of both classes coincide; ``proof.verify(X, y)`` checks them.

    Examples
    --------
    >>> from maxmargin import LinearSVC
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array(["a", "b", "a"])
    >>> try:
    ...     LinearSVC(C=np.inf).fit(X, y)
    ... except NotSeparableError as error:
    ...     print(error.proof.weights, error.proof.verify(X, y) < 1e-12)
    [0.5 1.  0.5] True
    """

    def __init__(self, message: str, proof: Separability) -> None:
        super().__init__(message)
        self.proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.proof)


def judge_separability(
    X: Any, y: NDArray[Any], *, hyperplane: tuple[Vector, float] | None = None, max_seconds: float = 5.0
) -> Separability:
    """Decide by one linear program, min ‖Σ λ_i x_i − Σ μ_j x_j‖₁ over convex weights of the two classes.

    Parameters
    ----------
    X, y : rows and labels of two classes.
    hyperplane : (w, b) to try first; if it separates, nothing needs to be solved.
    max_seconds : time limit of the linear program.
    """
    positive = np.unique(y)[1]
    sign = np.where(np.asarray(y) == positive, 1.0, -1.0)
    if hyperplane is not None:
        w, b = hyperplane
        if (sign * (np.asarray(X @ w).ravel() + b)).min() > 0.0:
            return Separability(True, positive, w, b)
    n_numbers = X.nnz if sp.issparse(X) else X.size
    if n_numbers > MOST_NUMBERS:
        return Separability(None, positive)
    return _solve(X, sign, positive, max_seconds)


def _solve(X: Any, sign: Vector, positive: Any, max_seconds: float) -> Separability:
    from scipy.optimize import linprog

    n, d = X.shape
    low, width = _ranges(X)
    # Convex weights do not notice a shift: columns are moved to begin at 0 (if they are dense) and to have range 1.
    shift = np.zeros(d) if sp.issparse(X) else low
    Z = sp.csc_array(X / width) if sp.issparse(X) else (X - shift) / width
    A = _equations(Z, sign)
    cost = np.concatenate([np.zeros(n), np.ones(2 * d)])
    right = np.concatenate([np.zeros(d), [1.0, 1.0]])
    options = {"time_limit": max_seconds}
    result = linprog(cost, A_eq=A, b_eq=right, bounds=(0.0, None), method="highs", options=options)
    if result.x is None or result.status != 0:
        return Separability(None, positive)
    # The multipliers of the means are a direction along which the classes lie apart, if they do.
    w = np.asarray(result.eqlin.marginals[:d]) / width
    for direction in (w, -w):
        scores = np.asarray(X @ direction).ravel()
        lowest, highest = scores[sign > 0].min(), scores[sign < 0].max()
        b = float(-0.5 * (lowest + highest))
        if lowest > highest and (sign * (scores + b)).min() > 0.0:
            return Separability(True, positive, direction, b)
    weights = _refined(A[:, :n], right, np.maximum(result.x[:n], 0.0), sign)
    if weights is not None and _mismatch(X, sign, weights) <= MOST_MISMATCH:
        return Separability(False, positive, weights=weights)
    return Separability(None, positive)


def _ranges(X: Any) -> tuple[Vector, Vector]:
    """Smallest value and range of every column; a constant column has range 1."""
    low, high = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray(), high.toarray()
    low, high = np.asarray(low, dtype=np.float64).ravel(), np.asarray(high, dtype=np.float64).ravel()
    return low, np.where(high > low, high - low, 1.0)


def _equations(Z: Any, sign: Vector) -> Any:
    """Both means are equal up to slacks, and the weights of each class sum to 1."""
    d = Z.shape[1]
    rows = sp.csc_array(Z.T.multiply(sign)) if sp.issparse(Z) else sp.csc_array(Z.T * sign)
    plus = sp.csc_array((sign > 0).astype(np.float64).reshape(1, -1))
    minus = sp.csc_array((sign < 0).astype(np.float64).reshape(1, -1))
    slack = sp.eye_array(d)
    return sp.block_array([[rows, -slack, slack], [plus, None, None], [minus, None, None]], format="csc")


def _refined(A: Any, right: Vector, weights: Vector, sign: Vector) -> Vector | None:
    """The weights that solve the equations to rounding, on the rows that the linear program chose."""
    chosen = np.flatnonzero(weights)
    part = A[:, chosen].toarray()
    for _ in range(2):
        step = np.linalg.lstsq(part, right - part @ weights[chosen], rcond=None)[0]
        if (weights[chosen] + step).min(initial=0.0) < 0.0:
            break
        weights[chosen] += step
    out = weights.copy()
    for s in (-1.0, 1.0):
        total = float(out[sign == s].sum())
        if total <= 0.0:
            return None
        out[sign == s] /= total
    return out


def _mismatch(X: Any, sign: Vector, weights: Vector) -> float:
    """Largest difference of the weighted means, beside the range of its column."""
    if weights.min() < 0.0 or any(abs(weights[sign == s].sum() - 1.0) > 1e-9 for s in (-1.0, 1.0)):
        return float(np.inf)
    low, width = _ranges(X)
    moved = X if sp.issparse(X) else X - low
    apart = np.abs(np.asarray(moved.T @ (sign * weights)).ravel())
    return float(np.max(apart / width, initial=0.0))

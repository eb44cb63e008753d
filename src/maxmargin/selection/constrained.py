"""The constrained form of a soft margin: least loss among hyperplanes of bounded norm.

Solves
    minimise over w, b   Σ c_i ℓ(⟨w, x_i⟩ + b, y_i)   subject to  ‖w‖² ≤ tau

Its solution is that of ½‖w‖² + C Σ c_i ℓ for the C at which ‖w(C)‖² = tau: ‖w(C)‖ never falls as C grows. Where the
loss is at its least for a smaller norm already, the constraint does not bind and any larger C will do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from maxmargin.inputs import positive_number
from maxmargin.selection.path import PathWalk
from maxmargin.solution import Solution

LARGEST_C = 1e12


@dataclass(frozen=True, eq=False)
class Constrained:
    """The C that belongs to a bound on ‖w‖², and its solution.

    Attributes
    ----------
    tau : the bound.
    C : the price of slack whose solution has ‖w‖² = tau, or is as near to it as was asked.
    solution : the hyperplane, certified for that C.
    binding : whether the bound matters: without it the norm would be larger.
    """

    tau: float
    C: float
    solution: Solution
    binding: bool

    @property
    def loss(self) -> float:
        """Σ c_i ℓ of the hyperplane, without C."""
        return (self.solution.primal - 0.5 * float(self.solution.w @ self.solution.w)) / self.C


def within_norm(
    X: Any,
    y: Any,
    tau: float,
    *,
    loss: str | float = "hinge",
    sample_weight: ArrayLike | None = None,
    class_weight: dict[Any, float] | str | None = None,
    fit_intercept: bool = True,
    accuracy: float = 1e-6,
    n_threads: int | None = None,
) -> Constrained:
    """The hyperplane of least loss with ‖w‖² ≤ tau, by bisection on C, each fit started at the one before.

    Parameters
    ----------
    X, y : rows and labels of two classes.
    tau : bound on ‖w‖².
    loss, sample_weight, class_weight, fit_intercept, n_threads : as in :class:`~maxmargin.LinearSVC`.
    accuracy : largest relative difference of ‖w‖² from tau.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = within_norm(X / X.max(axis=0), y, 4.0)
    >>> abs(float(found.solution.w @ found.solution.w) - 4.0) < 1e-5, found.binding
    (True, True)
    """
    tau = positive_number("tau", tau)
    accuracy = positive_number("accuracy", accuracy)
    walk = PathWalk(
        X, y, loss=loss, penalty="l2", sample_weight=sample_weight, class_weight=class_weight,
        fit_intercept=fit_intercept, tol=1e-12, max_seconds=None, n_threads=n_threads,
    )  # fmt: skip
    C, solution = 1.0, walk.solve(1.0, None)
    low, high = (C, math.inf) if _norm(solution) < tau else (0.0, C)
    while not abs(_norm(solution) - tau) <= accuracy * tau:
        other = 8.0 * low if high == math.inf else high / 8.0 if low == 0.0 else math.sqrt(low * high)
        if other > LARGEST_C or (low > 0.0 and high / low < 1.0 + 1e-14):
            return Constrained(tau, C, solution, binding=other <= LARGEST_C)
        C, solution = other, walk.solve(other, (C, solution))
        low, high = (C, high) if _norm(solution) < tau else (low, C)
    return Constrained(tau, C, solution, binding=True)


def _norm(solution: Solution) -> float:
    return float(solution.w @ solution.w)

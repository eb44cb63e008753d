"""Kernels of the inner product: linear, polynomial, sigmoid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.errors import InputError
from maxmargin.inputs import number_in, positive_number
from maxmargin.kernels.base import Kernel, Structure
from maxmargin.kernels.points import Matrix, Points, Vector, inner_products


class InnerProductKernel(Kernel):
    """k(x, z) = g(⟨x, z⟩); a subclass says what g is."""

    def _of_products(self, products: Matrix) -> Matrix:
        """g of every entry; may overwrite them."""
        raise NotImplementedError

    def _values(self, left: Points, right: Points) -> Matrix:
        return self._of_products(inner_products(left, right))

    def _own(self, points: Points) -> Vector:
        return self._of_products(points.squares.copy())


@dataclass(frozen=True)
class Linear(InnerProductKernel):
    """k(x, z) = ⟨x, z⟩.

    Examples
    --------
    >>> Linear().gram([[1.0, 2.0], [3.0, 0.0]])
    array([[5., 3.],
           [3., 9.]])
    """

    @property
    def is_positive(self) -> bool:
        return True

    def structure(self) -> Structure:
        return ("linear",)

    def _of_products(self, products: Matrix) -> Matrix:
        return products


@dataclass(frozen=True)
class Polynomial(InnerProductKernel):
    """k(x, z) = (γ⟨x, z⟩ + c)^degree.

    Positive semidefinite for c ≥ 0 and a whole degree: sums and products of positive semidefinite kernels are so.

    Parameters
    ----------
    gamma : float, default=1.0
        γ > 0.
    coef0 : float, default=0.0
        c.
    degree : float, default=3
        At least 0. One that is not whole needs γ⟨x, z⟩ + c ≥ 0 for all pairs of rows.

    References
    ----------
    Poggio: On optimal nonlinear associative recall, 1975. Boser, Guyon, Vapnik: A training algorithm for optimal
    margin classifiers, 1992. Schoenberg: Positive definite functions on spheres, 1942.

    Examples
    --------
    >>> kernel = Polynomial(gamma=1.0, coef0=1.0, degree=2)
    >>> kernel.block([[1.0], [2.0]], [[3.0]])
    array([[16.],
           [49.]])
    >>> kernel.is_positive
    True
    """

    gamma: float = 1.0
    coef0: float = 0.0
    degree: float = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", positive_number("gamma", self.gamma))
        object.__setattr__(self, "coef0", checked_coef0(self.coef0))
        degree = number_in("degree", self.degree, 0.0, np.inf)
        if not np.isfinite(degree):
            raise InputError("degree must be a finite number, got infinity")
        object.__setattr__(self, "degree", int(degree) if degree.is_integer() else degree)

    @property
    def is_positive(self) -> bool:
        return self.coef0 >= 0.0 and isinstance(self.degree, int)

    def structure(self) -> Structure:
        return "poly", self.gamma, self.coef0, self.degree

    def _of_products(self, products: Matrix) -> Matrix:
        products *= self.gamma
        products += self.coef0
        degree = self.degree
        return whole_power(products, degree) if isinstance(degree, int) else np.asarray(products**degree)

    def _advice(self) -> str:
        if not isinstance(self.degree, int):
            return "A power that is not whole needs γ⟨x, z⟩ + c ≥ 0 everywhere: use a whole degree."
        return f"{super()._advice()} A smaller gamma or degree also helps."


@dataclass(frozen=True)
class Sigmoid(InnerProductKernel):
    """k(x, z) = tanh(γ⟨x, z⟩ + c).

    Not positive semidefinite in general, so no inner product in any space: what is built on it may have no optimum.

    Parameters
    ----------
    gamma : float, default=1.0
        γ > 0.
    coef0 : float, default=0.0
        c.

    References
    ----------
    Lin, Lin: A study on sigmoid kernels for SVM and the training of non-PSD kernels by SMO-type methods, 2003.

    Examples
    --------
    >>> Sigmoid(gamma=0.5).block([[2.0]], [[1.0], [0.0]]).round(6)
    array([[0.761594, 0.      ]])
    """

    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", positive_number("gamma", self.gamma))
        object.__setattr__(self, "coef0", checked_coef0(self.coef0))

    @property
    def is_positive(self) -> bool:
        return False

    def structure(self) -> Structure:
        return "sigmoid", self.gamma, self.coef0

    def _of_products(self, products: Matrix) -> Matrix:
        products *= self.gamma
        products += self.coef0
        return np.asarray(np.tanh(products, out=products))


def whole_power(base: Matrix, exponent: int) -> Matrix:
    """Every entry to a whole power, by squaring: many times as fast as the power function."""
    power = np.ones_like(base)
    while exponent:
        if exponent & 1:
            power *= base
        exponent >>= 1
        if exponent:
            base = base * base
    return power


def checked_coef0(coef0: float) -> float:
    """The constant, which must be a finite number."""
    number = number_in("coef0", coef0, -np.inf, np.inf)
    if not np.isfinite(number):
        raise InputError(f"coef0 must be a finite number, got {coef0}")
    return number

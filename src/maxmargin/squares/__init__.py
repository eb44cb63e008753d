"""Machines of squared errors: least squares, ridge regression, kernel ridge regression, Fisher's discriminant."""

from maxmargin.squares.fisher import FisherDiscriminant
from maxmargin.squares.kernel_ridge import KernelRidge
from maxmargin.squares.least_squares import LeastSquaresClassifier, LeastSquaresRegressor
from maxmargin.squares.ridge import Ridge, RidgeClassifier

__all__ = [
    "FisherDiscriminant",
    "KernelRidge",
    "LeastSquaresClassifier",
    "LeastSquaresRegressor",
    "Ridge",
    "RidgeClassifier",
]

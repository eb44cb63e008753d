"""Kernels: inner products of rows after a map into some space, computed without the map."""

from maxmargin.kernels.base import Kernel
from maxmargin.kernels.choice import make_kernel
from maxmargin.kernels.gaussian import Gaussian
from maxmargin.kernels.given import Callable, Precomputed
from maxmargin.kernels.gram_rows import GramRows
from maxmargin.kernels.inner import Linear, Polynomial, Sigmoid

__all__ = [
    "Callable",
    "Gaussian",
    "GramRows",
    "Kernel",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "make_kernel",
]

"""Kernels: inner products of rows after a map into some space, computed without the map."""

from maxmargin.kernels.algebra import Product, Scaled, Sum
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.choice import kernel_of, make_kernel
from maxmargin.kernels.gaussian import Gaussian
from maxmargin.kernels.given import Callable, Precomputed
from maxmargin.kernels.gram_rows import GramRows
from maxmargin.kernels.inner import Linear, Polynomial, Sigmoid
from maxmargin.kernels.laplacian import Laplacian

__all__ = [
    "Callable",
    "Gaussian",
    "GramRows",
    "Kernel",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Product",
    "Scaled",
    "Sigmoid",
    "Sum",
    "kernel_of",
    "make_kernel",
]

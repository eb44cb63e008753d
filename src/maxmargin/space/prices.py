"""What operations on rows cost: the one place where they are priced.

Decisions must not depend on a machine's load, so nobody reads a clock: costs are counted operations times prices in
nanoseconds, as measured on one thread of an AMD EPYC (``docs/notes/solvers.md``). Only ratios matter; other machines
change all prices together.
"""

from __future__ import annotations

from typing import Protocol

READ_DENSE = 0.3  # a number of dense X in one pass, scores or combination
READ_SPARSE = 0.8  # a stored number of CSR: its index is read, too, and w is reached at random
FORM_DENSE = 0.035  # a product in XᵀDX by BLAS
FORM_SPARSE = 0.6  # 0.3 while the matrix is in the second cache, 2.4 far beyond
GRAM_DENSE = 0.025  # a product in XXᵀ by BLAS
GRAM_SPARSE = 0.2
KERNEL_VALUE = 1.0  # of a kernel in float32, beside the product: its function, and where it is written
FACTOR = 0.012  # a Cholesky factorisation, times the cube of the size
EPOCH_SPARSE = 3.0  # a stored number in an epoch of coordinate descent, both ways and one row after the other
EPOCH_DENSE = 0.6
SECOND = 1e9  # nanoseconds


class Sized(Protocol):
    """Rows, as far as their cost goes."""

    n: int
    d: int
    nnz: int
    sparse: bool

    @property
    def per_row(self) -> float: ...


def read(rows: Sized) -> float:
    """One pass over X.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.space import Rows
    >>> read(Rows.of(np.ones((10, 5))))
    15.0
    """
    return (READ_SPARSE if rows.sparse else READ_DENSE) * rows.nnz


def epoch(rows: Sized) -> float:
    """Coordinate steps on all rows."""
    return (EPOCH_SPARSE if rows.sparse else EPOCH_DENSE) * rows.nnz


def form(rows: Sized, active: float) -> float:
    """XᵀDX of so many rows."""
    return active * rows.per_row**2 * (FORM_SPARSE if rows.sparse else FORM_DENSE)


def gram(rows: Sized, active: float) -> float:
    """XXᵀ of so many rows."""
    return active * active * rows.per_row * (GRAM_SPARSE if rows.sparse else GRAM_DENSE)


def factor(size: float) -> float:
    """A Cholesky factor."""
    return FACTOR * size**3


def system(rows: Sized, active: float) -> float:
    """A Newton system in the smaller of its two sizes, formed and factored."""
    if rows.d > active:
        return gram(rows, active) + factor(active)
    return form(rows, active) + factor(rows.d)

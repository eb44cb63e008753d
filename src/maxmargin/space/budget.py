"""How much memory copies and matrices beside X may take: the one place that says so."""

from __future__ import annotations

import math

NUMBER = 8  # bytes
COPIED_ROWS = 0.6  # of X: a copy of more rows is not worth its memory, nor the time to make it
KNOWN_PRODUCTS = 128 * 10**6  # bytes of a Gram matrix that is kept from step to step
SECOND_MATRIX = 8 * 10**6  # bytes of a matrix XᵀDX that is kept beside the one in use: it should stay in the cache
HELD = 200 * 10**6  # bytes of a Gram or normal matrix that a solver forms again and again
COUPLED = 18 * 10**6  # bytes of the matrix of all classes of a joint machine: it is formed block by block
FACTORED = 288 * 10**6  # bytes of a matrix that may be factored at all


def largest_square(n_bytes: int) -> int:
    """The size of the largest square matrix of float64 that fits.

    Examples
    --------
    >>> [largest_square(size) for size in (KNOWN_PRODUCTS, SECOND_MATRIX, HELD, COUPLED, FACTORED)]
    [4000, 1000, 5000, 1500, 6000]
    """
    return math.isqrt(n_bytes // NUMBER)

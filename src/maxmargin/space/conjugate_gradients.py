"""Conjugate gradients for a symmetric positive definite system that is only known by its products.

References
----------
Hestenes, Stiefel: Methods of conjugate gradients for solving linear systems, 1952.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def conjugate_gradients(
    times: Callable[[Vector], Vector],
    g: Vector,
    diagonal: Vector,
    *,
    forcing: float,
    most_steps: int,
    stop: Callable[[], bool] = lambda: False,
) -> Vector:
    """Until the residual is ``forcing`` times g, both measured with 1/diagonal; g may have any shape.

    Examples
    --------
    >>> H = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> g = np.array([3.0, 4.0])
    >>> conjugate_gradients(lambda v: H @ v, g, np.diag(H), forcing=1e-12, most_steps=10).round(9)
    array([1., 1.])
    """
    x, r = np.zeros_like(g), g.copy()
    z = r / diagonal
    p, rho = z.copy(), _inner(r, z)
    start = rho
    for _ in range(most_steps):
        if rho <= forcing**2 * start or stop():
            break
        product = times(p)
        step = rho / _inner(p, product)
        x += step * p
        r -= step * product
        z = r / diagonal
        before, rho = rho, _inner(r, z)
        p = z + (rho / before) * p
    return x


def _inner(u: Vector, v: Vector) -> float:
    return float(u.ravel() @ v.ravel())

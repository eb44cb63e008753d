"""Sums Σ c_j φ(z_j) over fewer vectors, with a bound on what that changes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg as linalg
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

DEPENDENT = 1e-10  # of a diagonal entry: a vector of which no more is left lies in the span of those chosen before


@dataclass(frozen=True)
class Compressed:
    """Which vectors are kept, their coefficients (one line for each machine), and ‖w − w'‖ of every machine."""

    kept: NDArray[np.intp]
    coefficients: Matrix
    distance: Vector


def compress(K: Matrix, coefficients: Matrix, most: float) -> Compressed:
    """Few of the vectors, the same for all machines, whose best sums are within ``most`` of w in the kernel's norm.

    Vectors come one by one, each the one that takes most away from all differences together (orthogonal matching
    pursuit). By Cauchy and Schwarz no score changes by more than ‖w − w'‖ √k(x, x).

    Parameters
    ----------
    K : array of shape (n, n)
        The kernel's values for all pairs of vectors.
    coefficients : array of shape (machines, n)
    most : float

    References
    ----------
    Burges: Simplified support vector decision rules, 1996. Pati, Rezaiifar, Krishnaprasad: Orthogonal matching pursuit,
    1993.

    Examples
    --------
    >>> K = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    >>> found = compress(K, np.array([[1.0, 0.5, 2.0]]), 0.1)
    >>> found.kept, found.coefficients, found.distance.round(9)
    (array([0, 1]), array([[3. , 0.5]]), array([0.]))
    """
    n = len(K)
    inner = coefficients @ K  # ⟨w_m, φ(z_j)⟩
    square = np.einsum("mj,mj->m", inner, coefficients)
    kept: list[int] = []
    lines = np.zeros((min(n, 64), n))  # of the Cholesky factor, whose columns are all vectors
    left, residual = K.diagonal().copy(), inner.copy()
    alive = left > 0.0
    while alive.any():
        if len(kept) and float(np.max(square)) <= most * most:
            found = _projected(K, coefficients, inner, kept)
            if float(found.distance.max(initial=0.0)) <= most:
                return found
        gain = np.where(alive, (residual * residual).sum(axis=0) / np.where(alive, left, 1.0), -1.0)
        j = int(gain.argmax())
        if len(kept) == len(lines):
            lines = np.concatenate([lines, np.zeros_like(lines)])
        before = lines[: len(kept)]
        line = (K[j] - before[:, j] @ before) / math.sqrt(float(left[j]))
        step = residual[:, j] / math.sqrt(float(left[j]))
        lines[len(kept)] = line
        kept.append(j)
        residual -= step[:, None] * line
        square = square - step * step
        left = left - line * line
        alive &= left > DEPENDENT * K.diagonal()
        alive[j] = False
    return _projected(K, coefficients, inner, kept)


def _projected(K: Matrix, coefficients: Matrix, inner: Matrix, kept: list[int]) -> Compressed:
    """The best coefficients of the vectors kept, and how far that is from w, from the differences themselves."""
    chosen = np.sort(np.array(kept, dtype=np.intp))
    corner = K[np.ix_(chosen, chosen)].copy()
    corner.reshape(-1)[:: len(corner) + 1] *= 1.0 + 1e-14 * len(corner)
    best = linalg.solve(corner, inner[:, chosen].T, assume_a="pos").T
    apart = coefficients.copy()
    apart[:, chosen] -= best
    square = np.einsum("mj,mj->m", apart @ K, apart)
    return Compressed(chosen, best, np.sqrt(np.maximum(square, 0.0)))

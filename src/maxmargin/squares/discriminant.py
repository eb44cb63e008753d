"""The arithmetic of Fisher's discriminant: scatter of two classes, best direction, and where to cut."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray

from maxmargin.inputs import LabelledRows
from maxmargin.squares.centred import CentredRows, DenseRows, Matrix, Vector, centred_rows
from maxmargin.squares.systems import EPS

MOST_DENSE = 5 * 10**7  # numbers: up to here sparse rows become dense, which keeps more digits
SEEN = math.sqrt(EPS)  # relative size of a part of the mean difference that is more than rounding


@dataclass(frozen=True, eq=False)
class ClassScatter:
    """The rows of one class around their mean: S = AᵀA / total."""

    rows: CentredRows
    total: float

    @classmethod
    def of(cls, data: LabelledRows, k: int) -> ClassScatter:
        """The rows of class k that have a weight."""
        chosen = np.flatnonzero((data.position == k) & (data.weight > 0.0))
        weight = data.weight[chosen]
        return cls(centred_rows(data.space.take(chosen), weight, True, MOST_DENSE), float(weight.sum()))

    @property
    def mean(self) -> Vector:
        return self.rows.mean

    def covariance(self) -> Matrix:
        return self.rows.column_products() / self.total

    def spread(self, w: Vector) -> float:
        """Variance of ⟨w, x⟩."""
        projected = self.rows.times(w[:, None])
        return float(np.vdot(projected, projected)) / self.total

    def variances(self) -> Vector:
        """Of every column, and exactly 0 where they are below what rounding leaves of a constant."""
        if isinstance(self.rows, DenseRows):
            variance = np.einsum("ij,ij->j", self.rows.A, self.rows.A) / self.total
            floor = np.square(8.0 * EPS * self.mean)
        else:
            variance = self.covariance().diagonal()
            floor = 64.0 * EPS * np.square(self.mean)
        return np.where(variance > floor, variance, 0.0)


def best_direction(first: ClassScatter, second: ClassScatter) -> tuple[Vector, bool]:
    """w of length 1 with the largest F, and whether that is infinite; 0 if the means are equal.

    With columns scaled by D the scatter is S = D S' D, where S' has a unit diagonal and the rank of S. The columns that
    vary in no class have scatter 0, and a mean difference of 1 if they have any.
    """
    difference = second.mean - first.mean
    difference[np.abs(difference) <= 8.0 * EPS * np.maximum(np.abs(first.mean), np.abs(second.mean))] = 0.0
    if not difference.any():
        return difference, False
    variance = first.variances() + second.variances()
    flat = variance == 0.0
    scale = np.sqrt(np.where(flat, np.square(difference), variance))
    scale[scale == 0.0] = 1.0
    values, basis = scaled_spectrum(first, second, scale, flat)
    scaled = difference / scale
    inside = basis.T @ scaled
    outside = without(scaled, basis)
    infinite = bool(difference[flat].any() or np.linalg.norm(outside) > SEEN * np.linalg.norm(scaled))
    w = basis @ (inside / values) / scale
    if infinite or len(values) < len(scale):
        # An orthonormal basis of the range of S in the columns' own units.
        span = scipy.linalg.qr(scale[:, None] * basis, mode="economic")[0] if len(values) else basis
        w = without(difference, span) if infinite else span @ (span.T @ w)
    return w / np.linalg.norm(w), infinite


def without(vector: Vector, basis: Matrix) -> Vector:
    """The part orthogonal to the columns of an orthonormal basis; taken off twice, so that it is so to rounding."""
    for _ in range(2):
        vector = vector - basis @ (basis.T @ vector)
    return vector


def scaled_spectrum(
    first: ClassScatter, second: ClassScatter, scale: Vector, flat: NDArray[np.bool_]
) -> tuple[Vector, Matrix]:
    """Eigenvalues of S' above rounding, and their vectors as columns."""
    n, d = first.rows.shape[0] + second.rows.shape[0], len(scale)
    factor = np.where(flat, 0.0, 1.0 / scale)
    dense = [side.rows for side in (first, second) if isinstance(side.rows, DenseRows)]
    if len(dense) == 2 and n < d:
        totals = (first.total, second.total)
        parts = [rows.A * factor / math.sqrt(total) for rows, total in zip(dense, totals, strict=True)]
        _, singular, right = scipy.linalg.svd(np.concatenate(parts), full_matrices=False, check_finite=False)
        used = singular > EPS * d * singular[0]
        return np.square(singular[used]), right[used].T
    scatter = (first.covariance() + second.covariance()) * factor * factor[:, None]
    values, vectors = scipy.linalg.eigh(scatter, overwrite_a=True, check_finite=False)
    used = values > EPS * max(n, d) * values[-1]
    return values[used], vectors[:, used]


def equal_density(
    means: tuple[float, float], variances: tuple[float, float], shares: tuple[float, float]
) -> float | None:
    """The point between two means where two normal densities, times their shares, are equal; None if there is none.

    Examples
    --------
    >>> equal_density((0.0, 2.0), (1.0, 1.0), (0.5, 0.5))
    1.0
    """
    low, high = means
    if not (low < high and min(variances) > 0.0 and max(variances) / min(variances) < 1e16):
        return None
    constant = math.log(shares[1] / shares[0]) - 0.5 * math.log(variances[1] / variances[0])

    def lead_of_second(t: float) -> float:
        return constant + 0.5 * ((t - low) ** 2 / variances[0] - (t - high) ** 2 / variances[1])

    if not -math.inf < lead_of_second(low) < 0.0 < lead_of_second(high) < math.inf:
        return None  # one density is the larger at both means
    return float(scipy.optimize.brentq(lead_of_second, low, high, xtol=1e-15 * (high - low), rtol=4.0 * EPS))

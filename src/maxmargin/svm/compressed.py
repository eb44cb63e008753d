"""Machines with fewer support vectors, and a bound on what that changes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin.errors import InputError
from maxmargin.inputs import positive_number
from maxmargin.kernels import Precomputed
from maxmargin.kernels.compression import compress
from maxmargin.svm.kernel_prediction import classes_in, pairs

Vector = NDArray[np.float64]

# What speaks of the machine that was solved for, and not of the one with fewer vectors.
OF_THE_FIT = ("certificate_", "solution_", "free_", "bounded_", "_support_sums", "_support_rows", "steepness_")


def compressed(machine: Any, tol: float) -> Any:
    """See :meth:`~maxmargin.svm.kernel_base.KernelMachine.compress`."""
    check_is_fitted(machine)
    tol = positive_number("tol", tol)
    if isinstance(machine.kernel_, Precomputed):
        raise InputError(
            "compress needs the values of the kernel between support vectors; of a precomputed kernel only those with "
            "rows to predict are at hand. Fit with the kernel itself."
        )
    if machine.kernel_.is_positive is False:
        raise InputError(f"compress needs a kernel that is an inner product, which {machine.kernel_!r} is not")
    by_pairs = getattr(machine, "_fitted_scheme", "") == "ovo"
    n_support, dual = machine.n_support_, machine._dense_dual
    parts = list(classes_in(n_support)) if by_pairs else [slice(None)]
    most = 0.5 * tol if by_pairs else tol  # a machine of a pair is a sum over two classes
    kept, coefficients, distances = [], [], []
    for part in parts:
        found = compress(machine.kernel_.gram(machine.support_vectors_[part]), dual[:, part], most)
        kept.append(found.kept + (part.start or 0))
        coefficients.append(found.coefficients)
        distances.append(found.distance)
    return _with(machine, np.concatenate(kept), np.concatenate(coefficients, axis=1), _bounds(distances, by_pairs))


def _bounds(distances: list[Vector], by_pairs: bool) -> Vector:
    """‖w − w'‖ of every machine, at most."""
    if not by_pairs:
        return distances[0]
    return np.array([distances[i][j - 1] + distances[j][i] for i, j in pairs(len(distances))])


def _with(machine: Any, kept: NDArray[np.intp], dual: Vector, bounds: Vector) -> Any:
    other = copy.copy(machine)
    for name in OF_THE_FIT:
        other.__dict__.pop(name, None)
    owner = np.repeat(np.arange(len(machine.n_support_)), machine.n_support_)
    other.support_, other.support_vectors_ = machine.support_[kept], machine.support_vectors_[kept]
    other.n_support_ = np.bincount(owner[kept], minlength=len(machine.n_support_)).astype(np.int32)
    sparse = hasattr(machine.dual_coef_, "toarray")
    other.dual_coef_ = type(machine.dual_coef_)(dual) if sparse else dual
    other.compression_bound_ = bounds
    return other

"""make_kernel: from names, functions and parameters to a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.errors import InputError
from maxmargin.inputs import check_rows, check_weights, positive_number
from maxmargin.kernels.algebra import Product, Scaled, Sum
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.gaussian import Gaussian
from maxmargin.kernels.given import Callable, Precomputed
from maxmargin.kernels.inner import Linear, Polynomial, Sigmoid
from maxmargin.kernels.laplacian import Laplacian
from maxmargin.positions import shown
from maxmargin.space import Rows

NAMES = ("linear", "poly", "rbf", "laplacian", "sigmoid", "precomputed")
KINDS: dict[str, type[Kernel]] = {
    "linear": Linear,
    "poly": Polynomial,
    "rbf": Gaussian,
    "laplacian": Laplacian,
    "sigmoid": Sigmoid,
    "precomputed": Precomputed,
    "callable": Callable,
}


def make_kernel(
    kernel: Any,
    *,
    gamma: float | str | None = "scale",
    coef0: float = 0.0,
    degree: float = 3,
    kernel_params: Mapping[str, Any] | None = None,
    X: Any = None,
    sample_weight: ArrayLike | None = None,
) -> Kernel:
    """The kernel that scikit-learn's parameters describe.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "laplacian", "sigmoid", "precomputed"}, callable or Kernel
        A callable gets two arrays of rows, ``k(X, Z)``, and returns the matrix of values. A Kernel is returned as it
        is, whatever the other parameters say.
    gamma : {"scale", "auto"}, float or None, default="scale"
        Of "poly", "rbf", "laplacian" and "sigmoid". "scale" is 1 / (columns × variance of all entries of X), "auto"
        and None are 1 / columns. If no entry of X differs from the others, "scale" is 1.
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    degree : float, default=3
        Of "poly".
    kernel_params : mapping, optional
        Keywords for a callable.
    X : array-like or sparse matrix, optional
        The rows learned from; only a gamma given by name needs them.
    sample_weight : array-like, optional
        Weights of the rows in the variance; k repetitions of a row and a weight of k give the same gamma.

    Examples
    --------
    >>> make_kernel("rbf", X=[[0.0, 2.0], [2.0, 0.0]])
    Gaussian(gamma=0.5)
    >>> make_kernel("poly", gamma=1, degree=2)
    Polynomial(gamma=1.0, coef0=0.0, degree=2)
    """
    if kernel_params is not None and not isinstance(kernel_params, Mapping):
        raise InputError(f"kernel_params must be a mapping of names to values, got {shown(kernel_params)}")
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in NAMES:
        if kernel_params:
            raise InputError(f"kernel_params are keywords for a callable kernel; kernel={kernel!r} has none")
        if kernel == "linear":
            return Linear()
        if kernel == "precomputed":
            return Precomputed()
        scale = resolve_gamma(gamma, X, sample_weight)
        if kernel in ("rbf", "laplacian"):
            return Gaussian(scale) if kernel == "rbf" else Laplacian(scale)
        return Sigmoid(scale, coef0) if kernel == "sigmoid" else Polynomial(scale, coef0, degree)
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise InputError(f"kernel must be a kernel with its parameters, as in {kernel.__name__}(...), got the class")
    if callable(kernel):
        return Callable(kernel, dict(kernel_params or {}))
    raise InputError(f"kernel must be one of {', '.join(NAMES)}, a callable or a Kernel, got {shown(kernel)}")


def kernel_of(structure: Any) -> Kernel:
    """The kernel whose :meth:`Kernel.structure` this is; lists serve as well as tuples, for files have only those.

    Examples
    --------
    >>> kernel_of(["sum", ["rbf", 0.5], ["linear"]])
    Sum(parts=(Gaussian(gamma=0.5), Linear()))
    >>> kernel_of(Polynomial(1.0, 0.0, 2).structure())
    Polynomial(gamma=1.0, coef0=0.0, degree=2)
    """
    try:
        return _rebuilt(structure)
    except RecursionError:
        raise InputError("the structure of a kernel has too many sums and products inside each other") from None


def _rebuilt(structure: Any) -> Kernel:
    name, *values = structure if isinstance(structure, tuple | list) and structure else ("",)
    name = name if isinstance(name, str) else ""
    if name in ("sum", "product"):
        parts = tuple(_rebuilt(value) for value in values)
        return Sum(parts) if name == "sum" else Product(parts)
    if name == "scaled" and len(values) == 2:
        return Scaled(values[0], _rebuilt(values[1]))
    kind: Any = KINDS.get(name)
    if kind is None or len(values) != len(fields(kind)):
        raise InputError(
            f"the structure of a kernel is its name ({', '.join(KINDS)}, sum, product or scaled) and its parameters, "
            f"as Kernel.structure() returns them, got {shown(structure)}"
        )
    made: Kernel = kind(*values)
    return made


def resolve_gamma(gamma: float | str | None, X: Any, sample_weight: ArrayLike | None = None) -> float:
    """gamma as a number; X is needed where it is given by name.

    Examples
    --------
    >>> resolve_gamma("auto", [[1.0, 2.0, 3.0, 4.0]]), resolve_gamma(3, None)
    (0.25, 3.0)
    """
    if gamma is not None and not isinstance(gamma, str):
        return positive_number("gamma", gamma)
    if gamma not in ("scale", "auto", None):
        raise InputError(f"gamma must be 'scale', 'auto' or a number greater than 0, got {gamma!r}")
    if X is None:
        raise InputError(f"gamma={gamma!r} depends on the rows learned from: pass X, or give gamma as a number")
    rows = check_rows(X)
    if gamma != "scale":
        return 1.0 / rows.d
    variance = _variance(rows, check_weights(sample_weight, rows.n))
    if not np.isfinite(variance):
        raise InputError(
            "gamma='scale': the variance of X overflows; scale the columns, for example with "
            "sklearn.preprocessing.StandardScaler, or give gamma as a number"
        )
    scale = rows.d * variance
    return 1.0 / scale if np.isfinite(scale) and scale > 0.0 and np.isfinite(1.0 / scale) else 1.0


def _variance(rows: Rows, weight: Any) -> float:
    """Of all entries of all rows together, each row as often as its weight says."""
    total = float(weight.sum()) * rows.d
    if total <= 0.0:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.float64(np.sum(weight @ rows.X)) / total
        away = rows.X.astype(np.float64)
        if rows.sparse:
            away.data = (away.data - mean) ** 2 - mean**2  # an entry that is not stored is away by the mean itself
            variance = float(np.sum(weight @ away) / total + mean**2)
        else:
            away -= mean
            variance = float(weight @ np.einsum("ij,ij->i", away, away)) / total
        same = variance <= float(1e-30 * mean**2) < np.inf  # all entries are the same, but for rounding
        return 0.0 if same else variance

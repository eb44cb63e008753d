"""Kernels as the core evaluates them: tile by tile, in float32 or float64, by all threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.kept import kept_property
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.gaussian import Gaussian
from maxmargin.kernels.inner import Linear, Polynomial, Sigmoid
from maxmargin.kernels.laplacian import Laplacian
from maxmargin.process import borrowed_blas
from maxmargin.runtime import Execution
from maxmargin.space import Rows

Vector = NDArray[np.float64]
OFF_CENTRE = 1.0  # times the mean ‖x − mean‖² that ‖mean‖² may be: rows are then used where they are
LINEAR, POLYNOMIAL, GAUSSIAN, LAPLACIAN, SIGMOID = range(5)  # the core's numbers


def function_of(kernel: Kernel) -> _core.KernelFunction | None:
    """The kernel as the core knows it; None for those that only Python can evaluate.

    Examples
    --------
    >>> from maxmargin.kernels import Callable, Gaussian
    >>> function_of(Gaussian(1.0)) is None, function_of(Callable(lambda X, Z: X @ Z.T)) is None
    (False, True)
    """
    if isinstance(kernel, Gaussian):
        return _core.KernelFunction(GAUSSIAN, kernel.gamma, 0.0, 0.0)
    if isinstance(kernel, Laplacian):
        return _core.KernelFunction(LAPLACIAN, kernel.gamma, 0.0, 0.0)
    if isinstance(kernel, Linear):
        return _core.KernelFunction(LINEAR, 1.0, 0.0, 1.0)
    if isinstance(kernel, Polynomial) and float(kernel.degree).is_integer():  # other powers may have no value
        return _core.KernelFunction(POLYNOMIAL, kernel.gamma, kernel.coef0, kernel.degree)
    if isinstance(kernel, Sigmoid):
        return _core.KernelFunction(SIGMOID, kernel.gamma, kernel.coef0, 0.0)
    return None


class PackedRows:
    """Rows in the type of the wanted values; dense rows of a Gaussian are seen from an origin, which keeps digits."""

    def __init__(self, X: Any, given: Rows, tiles: _core.Tiles, squares: Vector) -> None:
        self.X, self.given, self.tiles, self.squares = X, given, tiles, squares

    @classmethod
    def of(cls, rows: Rows, dtype: Any, origin: Vector | None) -> PackedRows:
        if origin is None:
            X = rows.X if rows.X.dtype == dtype else rows.X.astype(dtype)
        else:
            X = np.ascontiguousarray(rows.X - origin, dtype=dtype)
        return cls._packed(X, rows)

    @classmethod
    def _packed(cls, X: Any, rows: Rows, squares: Vector | None = None) -> PackedRows:
        packed = Rows.of(X)
        if squares is None:
            squares = np.empty(rows.n)
            _core.squared_norms(packed.core, squares, 1)
        return cls(X, rows, _core.Tiles(packed.core, rows.core, squares), squares)

    def take(self, chosen: NDArray[Any], *, rough: bool = False) -> PackedRows:
        """Some of the rows, seen from the same origin; ``rough`` ones are taken for what was given."""
        X, squares = self.X[chosen], np.ascontiguousarray(self.squares[chosen])
        return self._packed(X, Rows.of(X) if rough else self.given.take(chosen), squares)

    @kept_property
    def rough(self) -> PackedRows:
        """The same rows, taken for what was given."""
        return self._packed(self.X, Rows.of(self.X), self.squares)

    def beside(self, other: PackedRows) -> PackedRows:
        """The same rows, rough where the others are: differences are of rows that are seen from one origin."""
        return self.rough if other.given.X is other.X else self

    def run(self, begin: int, end: int) -> PackedRows:
        """Neighbouring rows, which are not copied; they are taken for what was given."""
        X = self.X[begin:end]
        return self._packed(X, Rows.of(X), np.ascontiguousarray(self.squares[begin:end]))


def origin_of(kernel: Kernel, rows: Rows) -> Vector | None:
    """Where rows are seen from: the mean of dense ones, if the kernel depends on differences alone and that helps."""
    if not isinstance(kernel, Gaussian) or rows.sparse:
        return None
    mean = np.asarray(rows.X.mean(axis=0, dtype=np.float64))
    about_mean = float(rows.facts.squared_norms.mean()) - float(mean @ mean)
    return mean if float(mean @ mean) > OFF_CENTRE * about_mean else None


def tile_scores(
    function: _core.KernelFunction, left: PackedRows, right: PackedRows, coefficients: Vector, how: Execution,
    sizes: Vector | None = None, lines: NDArray[np.int64] | None = None,
) -> Vector:  # fmt: skip
    """Σ_j coefficients_mj k(x_i, z_j), one column for each line of coefficients; ``sizes`` gets Σ_j |…| of line 0.

    ``lines`` are the rows on the left that are asked for; None: all.
    """
    out = np.zeros((left.given.n if lines is None else len(lines), len(coefficients)))
    _core.kernel_scores(
        function, left.tiles, lines, right.tiles, coefficients, out, sizes, borrowed_blas(), how.n_threads, how.watch
    )
    return out

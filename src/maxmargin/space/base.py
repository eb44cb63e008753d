"""What solvers ask of rows, whatever they are: the seam between a solver and its data."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maxmargin.runtime import Execution
from maxmargin.space.facts import Facts

Vector = NDArray[np.float64]


class Space(Protocol):
    """What w is, and how n rows of d columns act on it. ``Rows`` is the kind that lies in this memory.

    Every pass takes an :class:`~maxmargin.runtime.Execution`: how many threads, what may interrupt it, who counts it.
    Solvers whose iteration is arithmetic per row (interior point, coordinate descent) need ``Rows.core`` besides, and
    say so in the table of solvers.
    """

    n: int
    d: int
    nnz: int
    sparse: bool

    @property
    def per_row(self) -> float:
        """Stored numbers of a row, on average."""
        ...

    @property
    def facts(self) -> Facts:
        """What is known of all values, computed once."""
        ...

    @property
    def diagonal(self) -> Vector:
        """⟨x_i, x_i⟩."""
        ...

    def scores(self, w: Vector, how: Execution, *, bias: float = 0.0, out: Vector | None = None) -> Vector:
        """⟨w, x_i⟩ + bias of every row."""
        ...

    def combine(self, c: Vector, how: Execution, *, out: Vector | None = None) -> Vector:
        """Σ c_i x_i."""
        ...

    def exact_scores(self, w: Vector, how: Execution) -> tuple[Vector, Vector]:
        """⟨w, x_i⟩ in twice the working precision: the sum of two numbers."""
        ...

    def exact_combine(self, c: Vector, how: Execution) -> Vector:
        """Σ c_i x_i in twice the working precision, rounded once."""
        ...

    def normal_matrix(
        self, D: Vector, bias: float, how: Execution, *, add_to: Vector | None = None, active: int | None = None
    ) -> Vector:
        """XᵀDX with a constant last column where ``bias`` is not 0; the upper triangle, added to a matrix if given.

        ``active`` is the number of D that are not zero, for whoever knows it.
        """
        ...

    def gram(self, chosen: NDArray[np.int64], how: Execution) -> Vector:
        """⟨x_j, x_k⟩ of the chosen rows; the upper triangle, zeros below."""
        ...

    def block(self, rows: NDArray[np.int64], others: NDArray[np.int64], how: Execution) -> Vector:
        """⟨x_j, x_k⟩ of some rows with others."""
        ...

    def row(self, i: int) -> Vector:
        """x_i as a dense vector."""
        ...

    def take(self, chosen: NDArray[np.intp]) -> Space:
        """A copy of some rows; how many are worth one says :mod:`maxmargin.space.budget`."""
        ...

    def columns(self, chosen: NDArray[np.intp]) -> Space:
        """A copy of some columns."""
        ...

    @property
    def squared(self) -> Space:
        """The rows with every number squared."""
        ...

"""The rows of X in this memory: the one owner of X and of the core's view of it.

Whoever learns from rows asks here: scores ⟨w, x_i⟩, sums Σ c_i x_i, matrices XᵀDX and XXᵀ, some of the rows or columns.
Facts about all values are computed once, in the visit that also finds whether they are finite.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.errors import InputError
from maxmargin.kept import Kept, kept_property
from maxmargin.process import borrowed_blas
from maxmargin.runtime import Execution
from maxmargin.space import prices
from maxmargin.space.base import Space
from maxmargin.space.facts import Facts
from maxmargin.space.span import SpanOfRows

Vector = NDArray[np.float64]
Chosen = NDArray[np.intp]


class Rows:
    """Rows of a matrix: a C-ordered array or CSR with rising columns, float32 or float64, as ``inputs`` made them.

    Every pass takes an :class:`~maxmargin.runtime.Execution`: how many threads, and who may interrupt it.

    Examples
    --------
    >>> rows = Rows.of(np.array([[3.0, 4.0], [0.0, 1.0]]))
    >>> how = Execution(1)
    >>> rows.scores(np.array([1.0, 1.0]), how), rows.combine(np.array([1.0, -1.0]), how)
    (array([7., 1.]), array([3., 3.]))
    >>> rows.facts.squared_norms, rows.take(np.array([1])).facts.squared_norms
    (array([25.,  1.]), array([1.]))
    """

    def __init__(self, X: Any, core: _core.Rows, facts: Facts | None = None, n_threads: int = 1) -> None:
        self._X, self.core = X, core
        self.shape: tuple[int, int] = core.shape
        self.n, self.d = self.shape
        self.nnz, self.sparse = core.nnz, core.is_sparse
        self._n_threads = n_threads  # of the visit that computes facts, where nobody has yet
        self._span: Kept[SpanOfRows] = Kept()
        self._squared: Kept[Rows] = Kept()
        self._by_column: Kept[Any] = Kept()
        if facts is not None:
            self.facts = facts

    @classmethod
    def of(cls, X: Any, n_threads: int = 1) -> Rows:
        """Rows of an array or CSR matrix that is in order; ValueError if the columns of a CSR row do not rise."""
        core = _core.Rows.csr(X.data, X.indices, X.indptr, X.shape[1]) if sp.issparse(X) else _core.Rows.dense(X)
        return cls(X, core, n_threads=n_threads)

    @property
    def X(self) -> Any:
        """The matrix itself, for whoever hands it to other libraries."""
        if isinstance(self._X, tuple):
            self._X = sp.csr_array(self._X, shape=self.shape)
        return self._X

    @kept_property
    def facts(self) -> Facts:
        """Computed when the rows are checked, or where they were made on the way when first asked for."""
        norms, columns = np.empty(self.n), np.empty(0 if self.sparse else self.d)
        finite, largest, longest = _core.survey(self.core, norms, columns, self._n_threads)
        return Facts(finite, largest, longest, norms, None if self.sparse else columns)

    @property
    def per_row(self) -> float:
        """Stored numbers of a row, on average."""
        return self.nnz / max(1, self.n)

    @property
    def lengths(self) -> NDArray[Any]:
        """Stored numbers of every row."""
        return np.diff(self.X.indptr) if self.sparse else np.full(self.n, self.d)

    # --- passes -----------------------------------------------------------------------------------------------

    def scores(self, w: Vector, how: Execution, *, bias: float = 0.0, out: Vector | None = None) -> Vector:
        """⟨w, x_i⟩ + bias of every row."""
        out = np.empty(self.n) if out is None else out
        how.spend(prices.read(self), reads=self.nnz)
        _core.scores(self.core, w, bias, out, how.n_threads, how.watch)
        return out

    def combine(self, c: Vector, how: Execution, *, out: Vector | None = None) -> Vector:
        """Σ c_i x_i."""
        out = np.empty(self.d) if out is None else out
        how.spend(prices.read(self), reads=self.nnz)
        _core.combine(self.core, c, out, how.n_threads, how.watch)
        return out

    def exact_scores(self, w: Vector, how: Execution) -> tuple[Vector, Vector]:
        """⟨w, x_i⟩ in twice the working precision: the sum of two numbers."""
        high, low = np.empty(self.n), np.empty(self.n)
        how.spend(prices.read(self), reads=self.nnz)
        _core.compensated_scores(self.core, w, high, low, how.n_threads)
        return high, low

    def exact_combine(self, c: Vector, how: Execution) -> Vector:
        """Σ c_i x_i in twice the working precision, rounded once."""
        out = np.empty(self.d)
        how.spend(prices.read(self), reads=self.nnz)
        _core.compensated_combine(self.core, c, out, how.n_threads)
        return out

    def scores_of_all(self, W: Vector, how: Execution) -> Vector:
        """⟨w_m, x_i⟩, one column for each line of W."""
        how.spend(prices.read(self) * len(W), reads=self.nnz)
        return np.asarray(self.X @ W.T, dtype=np.float64)

    def combine_all(self, C: Vector, how: Execution) -> Vector:
        """Σ_i c_im x_i, one line for each column of C."""
        how.spend(prices.read(self) * C.shape[1], reads=self.nnz)
        return np.ascontiguousarray(np.asarray(self.X.T @ C, dtype=np.float64).T)

    # --- matrices ---------------------------------------------------------------------------------------------

    def normal_matrix(
        self, D: Vector, bias: float, how: Execution, *, add_to: Vector | None = None, active: int | None = None
    ) -> Vector:
        """XᵀDX with a constant last column where ``bias`` is not 0; the upper triangle, added to a matrix if given.

        ``active`` is the number of D that are not zero, for whoever knows it.
        """
        size = self.d + (bias != 0.0)
        # The core fills one triangle; garbage in the other would warn when it is scaled.
        H = np.zeros((size, size)) if add_to is None else add_to
        add = add_to is not None
        active = int(np.count_nonzero(D)) if active is None else active
        how.spend(prices.form(self, active), reads=active * self.per_row)
        _core.normal_matrix(self.core, D, bias, H, borrowed_blas(), how.n_threads, how.watch, add=add)
        return H

    def gram(self, chosen: NDArray[np.int64], how: Execution) -> Vector:
        """⟨x_j, x_k⟩ of the chosen rows; the upper triangle, zeros below."""
        G = np.zeros((len(chosen), len(chosen)))
        how.spend(prices.gram(self, len(chosen)), reads=len(chosen) * self.per_row)
        _core.gram(self.core, chosen, G, borrowed_blas(), how.n_threads, how.watch)
        return G

    def block(self, rows: NDArray[np.int64], others: NDArray[np.int64], how: Execution) -> Vector:
        """⟨x_j, x_k⟩ of some rows with others."""
        G = np.empty((len(rows), len(others)))
        how.spend(prices.gram(self, math.sqrt(len(rows) * len(others))), reads=len(others) * self.per_row)
        _core.gram_block(self.core, rows, others, G, how.n_threads, how.watch)
        return G

    @property
    def smallest(self) -> float:
        """The smallest stored number; 0 if there is none."""
        stored = self.X.data if self.sparse else self.X
        return float(stored.min()) if stored.size else 0.0

    @property
    def diagonal(self) -> Vector:
        """⟨x_i, x_i⟩."""
        return self.facts.squared_norms

    def dense(self) -> Vector:
        """All numbers, zeros included, as a new float64 array."""
        X = self.X.toarray() if self.sparse else self.X
        return np.asarray(X.astype(np.float64, copy=not self.sparse))

    def row(self, i: int) -> Vector:
        """x_i as a dense vector."""
        line = self.X[[i]]
        return np.asarray(line.toarray() if self.sparse else line, dtype=np.float64).ravel()

    # --- other rows -------------------------------------------------------------------------------------------

    def take(self, chosen: Chosen) -> Rows:
        """A copy of some rows."""
        known = self.__dict__.get("facts")
        if not self.sparse:
            part = self.X[chosen]
            facts = known and Facts(known.finite, known.largest, self.d, known.squared_norms[chosen])
            return Rows(part, _core.Rows.dense(part), facts, self._n_threads)
        some = self.X[chosen]
        arrays = some.data, some.indices, some.indptr
        longest = int(np.diff(some.indptr).max(initial=0))
        facts = known and Facts(known.finite, known.largest, longest, known.squared_norms[chosen])
        return Rows(arrays, _core.Rows.csr(*arrays, self.d), facts, self._n_threads)

    def columns(self, chosen: Chosen) -> Rows:
        """A copy of some columns."""
        if not self.sparse:
            return Rows.of(np.ascontiguousarray(self.X[:, chosen]), self._n_threads)
        return Rows.of(self._by_column.get(lambda: sp.csc_array(self.X))[:, chosen].tocsr(), self._n_threads)

    def scaled(self, factor: float) -> Rows:
        """A copy in other units."""
        return Rows.of(self.X * factor, self._n_threads)

    @property
    def squared(self) -> Rows:
        """The rows with every number squared, in float64."""
        return self._squared.get(self._square)

    def _square(self) -> Rows:
        if not self.sparse:
            return Rows.of(np.square(self.X, dtype=np.float64), self._n_threads)
        X = self.X
        data = X.data.astype(np.float64)
        arrays = data * data, X.indices, X.indptr
        return Rows(arrays, _core.Rows.csr(*arrays, self.d), None, self._n_threads)

    def span(self, how: Execution) -> SpanOfRows:
        """The rows in coordinates of their span, computed once."""
        return self._span.get(lambda: SpanOfRows(self, how))

    def unchanged(self, n_threads: int) -> bool:
        """Whether all values are those that the facts are about."""
        return self.core.unchanged(n_threads)


def in_memory(space: Space) -> Rows:
    """The rows themselves, for whoever needs the core's view of them; an error for rows of another kind."""
    if not isinstance(space, Rows):
        raise InputError(f"rows in this memory are needed, not {type(space).__name__}")
    return space


def arrays_of(X: Any) -> tuple[NDArray[Any], ...]:
    """The arrays that hold X as it was given: three of a sparse matrix, as CSR, one of anything else.

    Examples
    --------
    >>> arrays_of([[1.0, 0.0]]), len(arrays_of(sp.coo_array([[1.0, 0.0]])))
    ((array([[1., 0.]]),), 3)
    """
    if not sp.issparse(X):
        return (np.asarray(X),)
    X = sp.csr_array(X)
    return X.indptr, X.indices, X.data

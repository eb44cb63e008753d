"""KernelRows: rows as a kernel sees them. What w is: a sum Σ c_i φ(x_i), held as its coefficients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.kept import Kept, kept_property
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.core_tiles import PackedRows, function_of, origin_of, tile_scores
from maxmargin.kernels.given import Precomputed
from maxmargin.process import borrowed_blas
from maxmargin.runtime import Execution
from maxmargin.space import Facts, Rows, prices

Vector = NDArray[np.float64]
Chosen = NDArray[np.intp]
CACHE_BYTES = 2000 * 2**20
BLOCK_BYTES = 64 * 2**20  # of values that Python evaluates at a time
DOUBLE_ERROR = 5e-14  # of a value in float64, at most: the core's `value_error`
MOST_RUNS = 8  # of neighbouring rows: more of them are packed once more
TOGETHER = 256  # rows of a matrix that are compared with its columns


class KernelRows:
    """A :class:`~maxmargin.space.base.Space` whose points are sums Σ c_i φ(x_i) over its own rows.

    Values of a kernel are float32 where they only steer (``lines``, ``square`` with ``single``), float64 where they
    decide (``exact_scores``). Kernels that the core does not know are evaluated by Python, block by block.

    Parameters
    ----------
    rows : Rows
        Of a precomputed kernel, the square matrix of its values.
    kernel : Kernel
    cache_bytes : int
        Memory for values of the kernel that are kept during a fit.

    Examples
    --------
    >>> from maxmargin.kernels import Gaussian
    >>> rows = KernelRows.of(Rows.of(np.array([[0.0], [1.0]])), Gaussian(1.0))
    >>> scores, sizes = rows.exact_scores(np.array([1.0, -1.0]), Execution(1))
    >>> scores.round(6), sizes.round(6)
    (array([ 0.632121, -0.632121]), array([1.367879, 1.367879]))
    """

    n: int
    d: int
    sparse: bool
    per_row: float

    def __init__(
        self, rows: Rows | None, kernel: Kernel, cache_bytes: int = CACHE_BYTES, n_threads: int = 1, *,
        parent: KernelRows | None = None, chosen: Chosen | None = None,
    ) -> None:  # fmt: skip
        self.kernel, self.cache_bytes, self._n_threads = kernel, cache_bytes, n_threads
        self._rows, self._parent, self._chosen = rows, parent, chosen
        about = rows if parent is None else parent
        assert about is not None
        self.n = about.n if chosen is None else len(chosen)
        self.d, self.sparse, self.per_row = about.d, about.sparse, about.per_row
        self.shape = self.n, self.d
        self.function = function_of(kernel)
        self.precise = False  # values that steer are float64, too
        self._packed: dict[Any, Kept[PackedRows]] = {np.float32: Kept(), np.float64: Kept()}

    @classmethod
    def of(cls, rows: Rows, kernel: Kernel, cache_bytes: int = CACHE_BYTES, n_threads: int = 1) -> KernelRows:
        """Checks what a kernel asks of rows, and that its values on the diagonal are finite."""
        if isinstance(kernel, Precomputed):
            rows = symmetric_rows(rows, kernel)
        found = cls(rows, kernel, cache_bytes, n_threads)
        found.__dict__["diagonal"] = kernel.diagonal(rows)
        return found

    def take(self, chosen: Chosen) -> KernelRows:
        """Some of the rows; they are not copied before they are needed."""
        part = KernelRows(None, self.kernel, self.cache_bytes, self._n_threads, parent=self, chosen=chosen)
        if "diagonal" in self.__dict__:
            part.__dict__["diagonal"] = self.diagonal[chosen]
        return part

    def release(self) -> None:
        """Forget copies that can be made again."""
        if self._parent is not None:
            self._rows = None
            self._packed = {np.float32: Kept(), np.float64: Kept()}

    # --- what it is -------------------------------------------------------------------------------------------

    @property
    def rows(self) -> Rows:
        """The rows themselves; of a precomputed kernel, the whole matrix."""
        if self._rows is None:
            assert self._parent is not None
            assert self._chosen is not None
            self._rows = self._parent.rows if self.is_given else self._parent.rows.take(self._chosen)
        return self._rows

    @property
    def chosen(self) -> Chosen | None:
        """Of a precomputed kernel: which rows and columns of the matrix; None: all, or another kernel."""
        if self._parent is None or self._chosen is None or not self.is_given:
            return None
        before = self._parent.chosen
        return self._chosen if before is None else before[self._chosen]

    @kept_property
    def facts(self) -> Facts:
        """Of the rows themselves; of a precomputed kernel, of the whole matrix."""
        if self._parent is None or self.is_given:
            return self.rows.facts
        known = self._root.facts
        return Facts(
            known.finite, known.largest, known.longest_row, known.squared_norms[self._among(np.arange(self.n))]
        )

    @property
    def nnz(self) -> int:
        return int(self.n * self.per_row)

    @property
    def X(self) -> Any:
        """The rows as a matrix."""
        return self.rows.X if self.chosen is None else self.rows.X[self.chosen]

    @kept_property
    def diagonal(self) -> Vector:
        """k(x_i, x_i)."""
        if self.chosen is not None:
            return np.ascontiguousarray(self.rows.X[self.chosen, self.chosen], dtype=np.float64)
        return self.kernel.diagonal(self.rows)

    @property
    def is_given(self) -> bool:
        """Whether the values are a matrix that somebody computed before."""
        return isinstance(self.kernel, Precomputed)

    @property
    def value_type(self) -> Any:
        """Of values that steer: float32 where the core computes them, unless they turned out to be too rough."""
        return np.float32 if self.function is not None and not self.precise else np.float64

    @property
    def value_price(self) -> float:
        """Of one value of the kernel that steers, in the units of :mod:`maxmargin.space.prices`."""
        if self.is_given:
            return 1.0
        return prices.KERNEL_VALUE + 0.5 * self.per_row * (prices.GRAM_SPARSE if self.sparse else prices.GRAM_DENSE)

    @property
    def corrected(self) -> float:
        """Values of a Gaussian for which k γ (‖x‖² + ‖z‖²) is more than that times UNIT come from differences."""
        return DOUBLE_ERROR / (3.0 + math.sqrt(self.d) / 16.0) * (1.0 + 1e-6)

    def unchanged(self, n_threads: int) -> bool:
        """Whether all values of X are those that were checked."""
        return self.rows.unchanged(n_threads)

    # --- values -----------------------------------------------------------------------------------------------

    def packed(self, dtype: Any) -> PackedRows:
        """The rows as tiles want them, computed once."""
        return self._packed[dtype].get(lambda: self._pack(dtype))

    @property
    def packed_squares(self) -> Vector:
        """‖x‖² of the rows as values in float64 see them."""
        return self._root.packed(np.float64).squares[self._among(np.arange(self.n))]

    @property
    def _root(self) -> KernelRows:
        """The rows that all of these were taken from: only they are packed."""
        return self if self._parent is None else self._parent._root

    @kept_property
    def _places(self) -> NDArray[np.int64] | None:
        """Where these rows are among those of the root; None: they are the root."""
        if self._parent is None or self._chosen is None:
            return None
        above = self._parent._places
        return np.ascontiguousarray(self._chosen if above is None else above[self._chosen], dtype=np.int64)

    def _among(self, chosen: NDArray[Any]) -> NDArray[np.int64]:
        places = self._places
        return np.ascontiguousarray(chosen if places is None else places[chosen], dtype=np.int64)

    @kept_property
    def _runs(self) -> list[tuple[int, int]]:
        """Runs of neighbours among the rows of the root; none where they are too many."""
        places = self._places
        if places is None:
            return [(0, self.n)]
        ends = np.flatnonzero(np.diff(places) != 1)
        if len(ends) >= MOST_RUNS:
            return []
        first, last = np.append(0, ends + 1), np.append(ends, len(places) - 1)
        return [(int(places[a]), int(places[b]) + 1) for a, b in zip(first, last, strict=True)]

    def _pack(self, dtype: Any) -> PackedRows:
        if self._parent is not None and self._chosen is not None:
            return self._parent.packed(dtype).take(self._chosen, rough=dtype == np.float32)
        return PackedRows.of(self.rows, dtype, origin_of(self.kernel, self.rows))

    def lines(self, chosen: NDArray[np.int64], how: Execution, out: NDArray[Any]) -> None:
        """k of some rows with all, into ``out``, of type ``value_type``; diagonal entries are those of ``diagonal``."""
        if self.function is not None:
            self._lines_of_core(chosen, how, out)
        elif self.is_given:
            columns = slice(None) if self.chosen is None else self.chosen
            rows = chosen if self.chosen is None else self.chosen[chosen]
            for k, row in enumerate(rows):
                out[k] = self.rows.X[row, columns]
        else:
            step = max(1, BLOCK_BYTES // (8 * self.n))
            for k in range(0, len(chosen), step):
                out[k : k + step] = self.kernel.block(self.rows.take(chosen[k : k + step]), self.rows)
        out[np.arange(len(chosen)), chosen] = self.diagonal[chosen]

    def _lines_of_core(self, chosen: NDArray[np.int64], how: Execution, out: NDArray[Any]) -> None:
        assert self.function is not None
        left, lines, column = self._root.packed(self.value_type), self._among(chosen), 0
        in_runs = self._runs and self._places is not None
        right = [left.run(*run) for run in self._runs] if in_runs else [self.packed(self.value_type)]
        for part in right:
            own = left.beside(part).tiles
            _core.kernel_block(
                self.function, own, lines, part.tiles, out, column, borrowed_blas(), how.n_threads, how.watch
            )
            column += part.given.n

    def square(self, how: Execution, dtype: Any) -> NDArray[Any]:
        """All values of the rows with one another: symmetric, of the type asked for."""
        if self.function is not None:
            out = np.empty((self.n, self.n), dtype=dtype)
            _core.kernel_gram(
                self.function, self.packed(dtype).tiles, self.diagonal, out, borrowed_blas(), how.n_threads, how.watch
            )
            return out
        if self.is_given:
            X = self.rows.X
            return np.ascontiguousarray(X if self.chosen is None else X[np.ix_(self.chosen, self.chosen)], dtype=dtype)
        return np.asarray(self.kernel.gram(self.rows), dtype=dtype)

    def square_of(self, chosen: NDArray[Any], how: Execution) -> NDArray[Any]:
        """Values of some rows with one another, of type ``value_type``: they only steer."""
        if self.function is None:
            return self.take(chosen).square(how, self.value_type)
        out = np.empty((len(chosen), len(chosen)), dtype=self.value_type)
        some = self._root.packed(self.value_type).take(self._among(chosen), rough=True)
        own = np.ascontiguousarray(self.diagonal[chosen])
        _core.kernel_gram(self.function, some.tiles, own, out, borrowed_blas(), how.n_threads, how.watch)
        return out

    def cross(self, chosen: NDArray[Any], others: NDArray[Any], how: Execution) -> NDArray[Any]:
        """Values of some rows with others, of type ``value_type``: they only steer."""
        if self.function is None:
            out = np.empty((len(chosen), self.n), dtype=self.value_type)
            self.lines(chosen.astype(np.int64), how, out)
            return np.ascontiguousarray(out[:, others])
        packed, lines = self._root.packed(self.value_type), self._among(chosen)
        right = packed.take(self._among(others), rough=True)
        values = np.empty((len(chosen), len(others)), dtype=self.value_type)
        _core.kernel_block(
            self.function, packed.rough.tiles, lines, right.tiles, values, 0, borrowed_blas(), how.n_threads, how.watch
        )
        return values

    def exact_scores(self, c: Vector, how: Execution) -> tuple[Vector, Vector]:
        """Σ_j c_j k(x_i, x_j) of every row in float64, and Σ_j |c_j k(x_i, x_j)|, which bounds what rounding did."""
        live = np.flatnonzero(c)
        scores, sizes = np.zeros(self.n), np.zeros(self.n)
        if not len(live):
            return scores, sizes
        if self.function is not None:
            packed = self._root.packed(np.float64)
            right = packed.take(self._among(live))
            scores = tile_scores(self.function, packed, right, c[None, live], how, sizes, self._places)[:, 0]
            return scores, sizes
        if self.is_given:
            step = max(1, BLOCK_BYTES // (8 * self.n))
            for begin in range(0, len(live), step):
                some = live[begin : begin + step]
                block = np.empty((len(some), self.n))
                self.lines(some.astype(np.int64), how, block)
                scores += c[some] @ block
                sizes += np.abs(c[some]) @ np.abs(block)
            return scores, sizes
        for part, block in self.kernel.blocks(self.rows, self.rows.take(live)):
            scores[part] = block @ c[live]
            sizes[part] = np.abs(block) @ np.abs(c[live])
        return scores, sizes

    def rough_scores(self, c: Vector, how: Execution, among: NDArray[Any] | None = None) -> Vector:
        """Σ_j c_j k(x_i, x_j) from values of ``value_type``, of some rows x_i; None: of all."""
        live = np.flatnonzero(c)
        if self.function is None or not len(live):
            f = self.exact_scores(c, how)[0]
            return f if among is None else f[among]
        packed = self._root.packed(self.value_type).rough
        right = packed.take(self._among(live), rough=True)
        lines = self._places if among is None else self._among(among)
        return tile_scores(self.function, packed, right, c[None, live], how, lines=lines)[:, 0]


def symmetric_rows(rows: Rows, kernel: Kernel) -> Rows:
    """A precomputed matrix: as it is if it is exactly symmetric, else with one triangle mirrored, if it nearly is."""
    if rows.n != rows.d or rows.sparse:
        return Rows.of(kernel.gram(rows))  # which says what is wrong with the shape
    X = rows.X
    parts = (slice(begin, begin + TOGETHER) for begin in range(0, rows.n, TOGETHER))
    if all(np.array_equal(X[part], X[:, part].T) for part in parts):
        return rows
    return Rows.of(kernel.gram(rows))

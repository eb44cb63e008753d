"""Scores of kernel machines as sums over support vectors, and the layout in which machines of pairs share them.

Of k classes with one machine for every pair i < j, a support vector of class i takes part in k − 1 machines. LIBSVM
and scikit-learn keep its k − 1 coefficients in one column: line j − 1 for the machine with class j > i, line j for the
machine with class j < i. Columns are grouped by class, and a score above zero means the first class of the pair.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.kernels import Kernel
from maxmargin.kernels.support_rows import SupportRows
from maxmargin.process import blas_guard

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Parts = Sequence[tuple[slice, Matrix]]  # of support vectors, each with the coefficients of some machines


class PackedSupport:
    """Packs the support vectors of a machine at its first prediction, and again only if it is given others.

    A pickle or a deep copy holds nothing: it can be made again.
    """

    def __init__(self) -> None:
        self._packed: tuple[Any, SupportRows] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedSupport, ()

    def rows(self, kernel: Kernel, support_vectors: Any) -> SupportRows:
        """Threads that come at the same time pack them each; all get the same numbers."""
        packed = self._packed
        if packed is None or packed[0] is not support_vectors or packed[1].kernel is not kernel:
            self._packed = packed = support_vectors, SupportRows(kernel, support_vectors)
        return packed[1]


def expansion_sums(support: SupportRows, X: Any, parts: Parts, n_threads: int | None = None) -> list[Matrix]:
    """Σ_j coefficients_jm k(x, z_j) of every row x of X and every machine m, over each part of the support vectors.

    Values that are not finite are an error, which says of which row.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> support = SupportRows(Linear(), np.array([[1.0], [10.0]]))
    >>> expansion_sums(support, np.array([[2.0], [3.0]]), [(slice(0, 1), np.array([[5.0]]))])
    [array([[10.],
           [15.]])]
    """
    some = [(part, coefficients) for part, coefficients in parts if len(coefficients)]
    found = iter(support.sums_of_parts(X, some, n_threads))
    sums = [next(found) if len(of_part) else np.zeros((X.shape[0], of_part.shape[1])) for _, of_part in parts]
    if not np.isfinite(np.concatenate(sums, axis=1)).all():
        for part, coefficients in some:
            support.kernel.times(X, support.rows.X[part], coefficients)
    return sums


def given_sums(values: Any, coefficients: Matrix) -> Matrix:
    """Σ_j coefficients_jm values_ij of a precomputed kernel; a row has the same bits whatever is beside it.

    Examples
    --------
    >>> given_sums(np.array([[1.0, 2.0]]), np.array([[1.0, 0.0], [10.0, 1.0]]))
    array([[21.,  2.]])
    """
    if hasattr(values, "toarray"):
        return np.asarray(values @ coefficients, dtype=np.float64)
    rows, lines = (np.ascontiguousarray(part, dtype=np.float64) for part in (values, coefficients.T))
    with blas_guard:
        return np.asarray(np.vecdot(rows[:, None, :], lines))


def pairs(n_classes: int) -> list[tuple[int, int]]:
    """The pairs of classes in the order of their machines.

    Examples
    --------
    >>> pairs(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return list(itertools.combinations(range(n_classes), 2))


def classes_in(n_support: NDArray[Any]) -> Iterator[slice]:
    """Where the support vectors of every class are, grouped by class."""
    ends = np.cumsum(n_support)
    for size, end in zip(n_support.tolist(), ends.tolist(), strict=True):
        yield slice(end - size, end)


def pair_layout(
    machines: list[tuple[NDArray[np.intp], Vector]], position: NDArray[np.intp], support: NDArray[np.intp], k: int
) -> Matrix:
    """LIBSVM's layout of the rows and coefficients of every pair's machine; ``position`` is the class of a row.

    Examples
    --------
    >>> position, support = np.array([0, 1, 2]), np.array([0, 1, 2])
    >>> machines = [(np.array([0, 1]), np.array([1.0, -1.0])), (np.array([0, 2]), np.array([2.0, -2.0]))]
    >>> pair_layout([*machines, (np.array([1, 2]), np.zeros(2))], position, support, 3)
    array([[ 1., -1., -2.],
           [ 2.,  0.,  0.]])
    """
    layout = np.zeros((k - 1, len(support)))
    place = np.empty(len(position), dtype=np.intp)
    place[support] = np.arange(len(support))
    for (i, j), (rows, coefficients) in zip(pairs(k), machines, strict=True):
        live = np.flatnonzero(coefficients)
        line = np.where(position[rows[live]] == i, j - 1, i)
        layout[line, place[rows[live]]] = coefficients[live]
    return layout


def pair_coefficients(layout: Matrix, n_support: NDArray[Any]) -> sp.csr_array:
    """One line of coefficients for every pair of classes, from LIBSVM's layout.

    Examples
    --------
    >>> layout = np.array([[1.0, -1.0, -2.0], [2.0, 0.0, 0.0]])
    >>> pair_coefficients(layout, np.array([1, 1, 1])).toarray()
    array([[ 1., -1.,  0.],
           [ 2.,  0., -2.],
           [ 0.,  0.,  0.]])
    """
    own = list(classes_in(n_support))
    values, columns, ends = [], [], [0]
    for i, j in pairs(len(n_support)):
        values += [layout[j - 1, own[i]], layout[i, own[j]]]
        columns += [np.arange(own[i].start, own[i].stop), np.arange(own[j].start, own[j].stop)]
        ends.append(ends[-1] + len(columns[-1]) + len(columns[-2]))
    shape = len(ends) - 1, layout.shape[1]
    return sp.csr_array((np.concatenate(values), np.concatenate(columns), ends), shape=shape)


def scores_of_pairs(by_class: list[Matrix]) -> Matrix:
    """Scores of all machines of pairs, from every class's k − 1 sums over its own support vectors."""
    duels, sums = duels_of(len(by_class)), np.stack(by_class)
    scores = sums[duels.first, :, duels.second - 1] + sums[duels.second, :, duels.first]
    return np.ascontiguousarray(scores.T)


def most_votes(for_second: NDArray[np.bool_], n_classes: int) -> NDArray[np.intp]:
    """The class that most pairs decide for, the first of several.

    Examples
    --------
    >>> most_votes(np.array([[True, True, False], [False, True, False]]), 3)
    array([1, 0])
    """
    duels, votes = duels_of(n_classes), np.zeros((len(for_second), n_classes), dtype=np.intp)
    votes[:, :-1] = np.add.reduceat(~for_second, duels.begins, axis=1, dtype=np.intp)
    votes[:, 1:] += np.add.reduceat(for_second[:, duels.by_second], duels.by_second_begins, axis=1, dtype=np.intp)
    return np.asarray(votes.argmax(axis=1))


class Duels(NamedTuple):
    """Every pair's classes, and where a class's pairs begin: those in which it is first, in the order of the pairs;
    those in which it is second, in the order ``by_second``."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    begins: NDArray[np.intp]
    by_second: NDArray[np.intp]
    by_second_begins: NDArray[np.intp]


@cache
def duels_of(n_classes: int) -> Duels:
    """The pairs of so many classes.

    Examples
    --------
    >>> duels_of(3)._asdict()
    {'first': array([0, 0, 1]), 'second': array([1, 2, 2]), 'begins': array([0, 2]), ...}
    """
    first, second = np.array(pairs(n_classes), dtype=np.intp).reshape(-1, 2).T.copy()
    by_second = np.argsort(second, kind="stable")
    begins = np.searchsorted(first, np.arange(n_classes - 1))
    duels = Duels(first, second, begins, by_second, np.searchsorted(second[by_second], np.arange(1, n_classes)))
    for shared in duels:
        shared.setflags(write=False)
    return duels

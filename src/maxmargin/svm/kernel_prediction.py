"""Scores of kernel machines as sums over support vectors, and the layout in which machines of pairs share them.

Of k classes with one machine for every pair i < j, a support vector of class i takes part in k − 1 machines. LIBSVM
and scikit-learn keep its k − 1 coefficients in one column: line j − 1 for the machine with class j > i, line j for the
machine with class j < i. Columns are grouped by class, and a score above zero means the first class of the pair.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.kernels import Kernel, Precomputed

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def expansion_scores(kernel: Kernel, X: Any, support_vectors: Any, coefficients: Matrix) -> Matrix:
    """Σ_j coefficients_jm k(x, z_j) of every row x of X and every machine m.

    Of a precomputed kernel, X holds the values at the support vectors, and nothing else is looked at.

    Examples
    --------
    >>> from maxmargin.kernels import Linear
    >>> expansion_scores(Linear(), np.array([[2.0], [3.0]]), np.array([[1.0], [10.0]]), np.array([[1.0], [0.5]]))
    array([[12.],
           [18.]])
    """
    if len(coefficients) == 0:
        return np.zeros((X.shape[0], coefficients.shape[1]))
    if isinstance(kernel, Precomputed):
        return np.asarray(X @ coefficients, dtype=np.float64)
    return kernel.times(X, support_vectors, coefficients)


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
    return np.stack([by_class[i][:, j - 1] + by_class[j][:, i] for i, j in pairs(len(by_class))], axis=1)


def most_votes(for_second: NDArray[np.bool_], n_classes: int) -> NDArray[np.intp]:
    """The class that most pairs decide for, the first of several.

    Examples
    --------
    >>> most_votes(np.array([[True, True, False], [False, True, False]]), 3)
    array([1, 0])
    """
    votes = np.zeros((len(for_second), n_classes), dtype=np.intp)
    for second, (i, j) in zip(for_second.T, pairs(n_classes), strict=True):
        votes[:, i] += ~second
        votes[:, j] += second
    return np.asarray(votes.argmax(axis=1))

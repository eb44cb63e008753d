"""Parts of the rows to hold out, for probabilities that are learned from scores of rows a machine has not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin.inputs import LabelledRows
from maxmargin.runtime import Execution

N_FOLDS = 5


def folds(data: LabelledRows, seed: int = 0) -> tuple[NDArray[np.intp], int]:
    """The fold of every row (−1: weight zero), and how many there are; equal rows of a class share one.

    So a weight of k is the same as k repetitions here, too. Another seed makes other folds.

    Examples
    --------
    >>> data = LabelledRows.from_arrays([[0.0], [1.0], [1.0], [2.0], [3.0]], [0, 0, 0, 1, 1])
    >>> fold, n_folds = folds(data)
    >>> n_folds, bool(fold[1] == fold[2])
    (2, True)
    """
    key = data.space.scores(np.random.default_rng(seed).standard_normal(data.space.d), Execution(1))
    fold = np.full(len(key), -1, dtype=np.intp)
    members = [np.flatnonzero((data.position == k) & (data.weight > 0.0)) for k in range(len(data.classes))]
    ranks = [np.unique(key[rows], return_inverse=True)[1] for rows in members]
    counts = [int(rank.max()) + 1 for rank in ranks]
    n_folds = min([N_FOLDS, *(count for count in counts if count > 1)]) if max(counts) > 1 else 0
    for rows, rank, count in zip(members, ranks, counts, strict=True):
        # A class of one distinct row is always learned from, never tested on.
        fold[rows] = rank % n_folds if count > 1 else n_folds
    return fold, n_folds

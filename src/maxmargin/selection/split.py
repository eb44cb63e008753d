"""Parts of the rows, each with the classes in equal shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import InputError

Rows = NDArray[np.int64]


def holdout(y: NDArray[Any], share: float, seed: int = 0) -> tuple[Rows, Rows]:
    """Rows to learn from and rows held out; both parts get every class in the same shares.

    Examples
    --------
    >>> train, test = holdout(np.array(list("aaaabbbb")), 0.25)
    >>> len(train), len(test), sorted(np.array(list("aaaabbbb"))[test].tolist())
    (6, 2, ['a', 'b'])
    """
    if not 0.0 < share < 1.0:
        raise InputError(f"the held-out share must lie between 0 and 1, got {share!r}")
    dealt = _dealt(y, seed)
    chosen = np.zeros(len(y), dtype=bool)
    for rows in dealt:
        n_out = min(len(rows) - 1, max(1, round(share * len(rows))))
        if n_out < 1:
            label = y[rows[0]].item()
            raise InputError(f"class {label!r} has one row only, which cannot be in both parts; use --holdout 0")
        chosen[rows[:n_out]] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def folds(y: NDArray[Any], n_folds: int, seed: int = 0) -> list[tuple[Rows, Rows]]:
    """(learn, validate) for each fold; every row validates once, every class is spread evenly.

    Examples
    --------
    >>> [len(validate) for _, validate in folds(np.array(list("aaabbb")), 3)]
    [2, 2, 2]
    """
    dealt = _dealt(y, seed)
    smallest = min(dealt, key=len)
    if n_folds < 2:
        raise InputError(f"cross-validation needs at least 2 folds, got {n_folds}")
    if len(smallest) < n_folds:
        raise InputError(
            f"class {y[smallest[0]].item()!r} has {len(smallest)} rows, too few for {n_folds} folds; use fewer folds "
            "(--folds), or give C (--C 1)"
        )
    fold = np.empty(len(y), dtype=np.int64)
    begin = 0
    for rows in dealt:  # one class goes on where the last one ended, so that the folds differ by one row at most
        fold[rows] = (begin + np.arange(len(rows))) % n_folds
        begin += len(rows)
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


def _dealt(y: NDArray[Any], seed: int) -> list[Rows]:
    """Each class's rows in random order."""
    generator = np.random.default_rng(seed)
    classes, position = np.unique(y, return_inverse=True)
    return [generator.permutation(np.flatnonzero(position == k)) for k in range(len(classes))]

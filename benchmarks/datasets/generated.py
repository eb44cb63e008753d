"""Tall dense data: many rows, few columns, noisy labels, so that the optimum is far from separable.

X and w are standard normal and y = sign(Xw + 1 + 2·noise). Names: ``tall-200000x50``.
"""

from __future__ import annotations

import re

import numpy as np

from benchmarks.datasets.base import Dataset

NAME = re.compile(r"tall-(\d+)x(\d+)")
SEED = 0


def matches(name: str) -> bool:
    return NAME.fullmatch(name) is not None


def load(name: str) -> Dataset:
    found = NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"not a generated data set: {name!r}")
    n_rows, n_cols = int(found[1]), int(found[2])
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((n_rows, n_cols))
    w = rng.standard_normal(n_cols)
    y = np.where(X @ w + 1.0 + 2.0 * rng.standard_normal(n_rows) > 0.0, 1.0, -1.0)
    return Dataset(name, X, y)

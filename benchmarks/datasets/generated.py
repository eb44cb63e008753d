"""Data sets made here, the same on every machine. The name says kind and size:

tall-<rows>x<columns>            dense, noisy labels, so that the optimum is far from separable
text-<rows>x<columns>            sparse like RCV1: Zipf's law, tf-idf, 0.15 % of the entries
onehot-<rows>x<attributes>       sparse like connect-4: attributes of three values each
line-<rows>x<columns>            dense regression with a few large errors
blobs-<rows>x<columns>x<classes> dense, several classes that overlap
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets.base import Dataset, csr
from benchmarks.datasets.changes import unit_rows
from benchmarks.forms import REGRESSION, SEVERAL

NAME = re.compile(r"(tall|text|onehot|line)-(\d+)x(\d+)|(blobs)-(\d+)x(\d+)x(\d+)")
SEED = 0
DENSITY = 0.0015
VALUES = 3  # of an attribute

Vector = NDArray[np.float64]


def matches(name: str) -> bool:
    return NAME.fullmatch(name) is not None


def load(name: str) -> Dataset:
    found = NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"not a generated data set: {name!r}")
    kind, *sizes = (part for part in found.groups() if part is not None)
    return MAKERS[kind](name, *(int(size) for size in sizes))


def tall(name: str, n_rows: int, n_cols: int) -> Dataset:
    """X and w are standard normal and y = sign(Xw + 1 + 2·noise)."""
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((n_rows, n_cols))
    w = rng.standard_normal(n_cols)
    y = np.where(X @ w + 1.0 + 2.0 * rng.standard_normal(n_rows) > 0.0, 1.0, -1.0)
    return Dataset(name, X, y)


def line(name: str, n_rows: int, n_cols: int) -> Dataset:
    """y = ⟨w, x⟩ + 1 + 0.3·noise with ‖w‖ about 1; the noise has Student's distribution with 3 degrees of freedom."""
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((n_rows, n_cols))
    w = rng.standard_normal(n_cols) / np.sqrt(n_cols)
    return Dataset(name, X, X @ w + 1.0 + 0.3 * rng.standard_t(3, n_rows), REGRESSION)


def text(name: str, n_rows: int, n_cols: int) -> Dataset:
    """Words by Zipf's law, (1 + ln count) times rarity, rows of length 1; labels by a sparse w and noise."""
    rng = np.random.default_rng(SEED)
    share: Vector = 1.0 / (np.arange(n_cols, dtype=np.float64) + 10.0)
    share /= share.sum()
    lengths = np.maximum(1, _words(share) * rng.lognormal(-0.125, 0.5, n_rows)).astype(np.int64)
    words = np.searchsorted(np.cumsum(share)[:-1], rng.random(int(lengths.sum()))).astype(np.int32)
    order = rng.permutation(n_cols).astype(np.int32)  # frequent words may have any number
    starts = np.concatenate([[0], np.cumsum(lengths)])
    X = csr(np.ones(len(words)), order[words], starts, (n_rows, n_cols))
    rarity = np.log(n_rows / np.maximum(1, np.bincount(X.indices, minlength=n_cols)))
    X.data = (1.0 + np.log(X.data)) * rarity[X.indices]
    X = unit_rows(X)
    w = rng.standard_normal(n_cols) * (rng.random(n_cols) < 0.05)
    return Dataset(name, X, _noisy_signs(X @ w, 0.5, rng))


def _words(share: Vector) -> float:
    """How many words make a row of the wanted number of different ones."""
    wanted, low, high = DENSITY * len(share), 1.0, 1e9
    while high / low > 1.001:
        middle = float(np.sqrt(low * high))
        different = -np.expm1(middle * np.log1p(-share)).sum()
        low, high = (middle, high) if different < wanted else (low, middle)
    return high


def onehot(name: str, n_rows: int, n_attributes: int) -> Dataset:
    """Rows are copies of 64 boards with every attribute drawn anew with chance ½, by its own frequencies."""
    rng = np.random.default_rng(SEED)
    frequency = np.cumsum(rng.dirichlet(np.ones(VALUES), n_attributes), axis=1)

    def draw(n: int) -> NDArray[np.int32]:
        above = (rng.random((n, n_attributes, 1)) > frequency).sum(axis=2)
        return np.asarray(np.minimum(above, VALUES - 1), dtype=np.int32)

    boards = draw(64)[rng.integers(64, size=n_rows)]
    value = np.where(rng.random((n_rows, n_attributes)) < 0.5, boards, draw(n_rows))
    columns = value + VALUES * np.arange(n_attributes, dtype=np.int32)
    starts = np.arange(0, n_rows * n_attributes + 1, n_attributes)
    X = csr(np.ones(columns.size), columns.ravel(), starts, (n_rows, VALUES * n_attributes))
    w = rng.standard_normal(VALUES * n_attributes)
    pairs = rng.standard_normal(n_attributes) * (value == np.roll(value, 1, axis=1))
    return Dataset(name, X, _noisy_signs(X @ w + pairs.sum(axis=1), 0.3, rng))


def blobs(name: str, n_rows: int, n_cols: int, n_classes: int) -> Dataset:
    """Normal clouds around normal centres, so near to each other that they overlap."""
    rng = np.random.default_rng(SEED)
    y = rng.integers(n_classes, size=n_rows)
    centres = rng.standard_normal((n_classes, n_cols)) * (3.0 / np.sqrt(n_cols))
    return Dataset(name, centres[y] + rng.standard_normal((n_rows, n_cols)), y.astype(np.float64), SEVERAL)


def _noisy_signs(scores: Vector, noise: float, rng: np.random.Generator) -> Vector:
    """Signs of the scores, moved and scaled to mean 0 and spread 1, under noise."""
    scores = (scores - scores.mean()) / scores.std()
    return np.where(scores + noise * rng.standard_normal(len(scores)) > 0.3, 1.0, -1.0)


MAKERS: dict[str, Callable[..., Dataset]] = {"tall": tall, "text": text, "onehot": onehot, "line": line, "blobs": blobs}

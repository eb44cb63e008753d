"""Random problems, well-posed and degenerate, for the contracts: two classes, several classes, or numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Case:
    kind: str
    seed: int
    X: Any
    y: np.ndarray
    C: float
    sample_weight: np.ndarray | None = None
    epsilon: float = 0.0

    @property
    def scale_case(self) -> bool:
        return self.kind in ("column scales", "one scale")

    @property
    def cost(self) -> np.ndarray:
        return self.C * (np.ones(len(self.y)) if self.sample_weight is None else self.sample_weight)

    def __str__(self) -> str:
        return f"{self.kind.replace(' ', '-')}-{self.seed}"


KINDS = (
    "plain",
    "duplicate rows",
    "constant columns",
    "one sample per class",
    "collinear",
    "more columns than rows",
    "column scales",
    "one scale",
    "weights",
    "sparse with empty rows",
    "contradictory labels",
    "separable",
)


def _labels(rng: np.random.Generator, scores: np.ndarray) -> np.ndarray:
    y = np.where(scores + rng.standard_normal(len(scores)) * scores.std() > np.median(scores), 1, -1)
    y[0], y[-1] = 1, -1
    return y


def make_case(seed: int) -> Case:
    """Case number ``seed``; kinds take turns."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n, d = int(rng.integers(4, 120)), int(rng.integers(1, 20))
    C = float(10.0 ** rng.uniform(-3, 3))
    X: Any = rng.standard_normal((n, d))
    weight = None
    y = _labels(rng, X @ rng.standard_normal(d))
    if kind == "duplicate rows":
        take = rng.integers(0, max(2, n // 3), n)
        X, y = X[take], y[take]
        y[0], y[-1] = 1, -1
    elif kind == "one sample per class":
        X, y = X[:2], np.array([1, -1])
    elif kind == "contradictory labels":
        X, y = np.vstack([X, X]), np.concatenate([y, -y])
    elif kind == "separable":
        X = X + 4.0 * y[:, None]
    else:
        X, weight = _reshape(kind, rng, X, [0, -1])
    return Case(kind, seed, X, y, C, weight)


def _reshape(kind: str, rng: np.random.Generator, X: Any, needed: Any) -> tuple[Any, np.ndarray | None]:
    """The kinds that do not look at y; rows ``needed`` keep a weight."""
    n, d = X.shape
    if kind == "constant columns":
        X[:, 0] = 3.0
        X = np.hstack([X, np.zeros((n, 1)), np.full((n, 1), -1.0)])
    elif kind == "collinear":
        X = np.hstack([X, X @ rng.standard_normal((d, 3)), X[:, :1]])
    elif kind == "more columns than rows":
        X = rng.standard_normal((n, 3 * n))
    elif kind == "column scales":
        X = X * 10.0 ** rng.uniform(-8, 8, d)
    elif kind == "one scale":
        X = X * 10.0 ** rng.uniform(-8, 8)
    elif kind == "weights":
        weight = rng.choice([0.0, 1.0, 2.5, 1e6], n, p=[0.3, 0.4, 0.25, 0.05])
        weight[needed] = 1.0
        return X, weight
    elif kind == "sparse with empty rows":
        X = sp.random_array((n, 5 * d), density=0.1, rng=rng, format="csr")
    return X, None


def make_classes(seed: int) -> Case:
    """The same kinds with three or four classes, labels 0, 1, …; smaller, since every fit is several."""
    rng = np.random.default_rng(10_000 + seed)
    kind, k = KINDS[seed % len(KINDS)], 3 + seed // len(KINDS) % 2
    n, d = int(rng.integers(k + 2, 70)), int(rng.integers(1, 10))
    C = float(10.0 ** rng.uniform(-3, 3))
    X: Any = rng.standard_normal((n, d))
    weight = None
    y = (X @ rng.standard_normal((d, k)) + rng.standard_normal((n, k))).argmax(axis=1)
    y[:k] = np.arange(k)
    if kind == "duplicate rows":
        take = rng.integers(0, max(2, n // 3), n)
        X, y = X[take], y[take]
        y[:k] = np.arange(k)
    elif kind == "one sample per class":
        X, y = X[:k], np.arange(k)
    elif kind == "contradictory labels":
        X, y = np.vstack([X, X]), np.concatenate([y, (y + 1) % k])
    elif kind == "separable":
        X = X + 8.0 * rng.standard_normal((k, d))[y]
    else:
        X, weight = _reshape(kind, rng, X, slice(0, k))
    return Case(kind, seed, X, y, C, weight)


def make_regression(seed: int) -> Case:
    """The same kinds with numbers to approximate; "separable" lies on a hyperplane, "contradictory" has y and −y.

    ``epsilon`` may be small, as wide as the noise, or wide enough to hold everything.
    """
    rng = np.random.default_rng(20_000 + seed)
    kind = KINDS[seed % len(KINDS)]
    n, d = int(rng.integers(2, 100)), int(rng.integers(1, 20))
    C = float(10.0 ** rng.uniform(-3, 3))
    X: Any = rng.standard_normal((n, d))
    weight = None
    exact = X @ rng.standard_normal(d) + rng.standard_normal()
    y = exact + rng.standard_normal(n)
    if kind == "duplicate rows":
        take = rng.integers(0, max(2, n // 3), n)
        X, y = X[take], np.round(y)
    elif kind == "one sample per class":
        rows = 1 + seed // len(KINDS) % 2
        X, y = X[:rows], y[:rows]
    elif kind == "contradictory labels":
        X, y = np.vstack([X, X]), np.concatenate([y, -y])
    elif kind == "separable":
        y = exact
    else:
        X, weight = _reshape(kind, rng, X, [0])
    if kind == "one scale":
        y = y * 10.0 ** rng.uniform(-6, 6)
    epsilon = float(rng.choice([0.03, 0.3, 1.0, 100.0], p=[0.3, 0.3, 0.3, 0.1]) * np.abs(y).mean())
    return Case(kind, seed, X, y, C, weight, epsilon)


def repeated(case: Case, rng: np.random.Generator) -> tuple[Case, Case]:
    """The same problem with weights 0, 1, 2, 3, and with rows repeated so many times."""
    times = rng.integers(0, 4, len(case.y))
    first = np.unique(case.y, return_index=True)[1] if case.y.dtype.kind == "i" else [0]
    times[first] = np.maximum(times[first], 1)  # every class stays
    rows = np.repeat(np.arange(len(case.y)), times)
    weighted = replace(case, sample_weight=times.astype(float))
    return weighted, replace(case, X=case.X[rows], y=case.y[rows], sample_weight=None)

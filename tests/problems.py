"""Random problems, well-posed and degenerate, for the contracts."""

from __future__ import annotations

from dataclasses import dataclass
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

    @property
    def scale_case(self) -> bool:
        return self.kind in ("column scales", "one scale")

    def __str__(self) -> str:
        return f"{self.kind.replace(' ', '-')}-{self.seed}"


def _labels(rng: np.random.Generator, scores: np.ndarray) -> np.ndarray:
    y = np.where(scores + rng.standard_normal(len(scores)) * scores.std() > np.median(scores), 1, -1)
    y[0], y[-1] = 1, -1
    return y


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
    elif kind == "constant columns":
        X[:, 0] = 3.0
        X = np.hstack([X, np.zeros((n, 1)), np.full((n, 1), -1.0)])
    elif kind == "one sample per class":
        X, y = X[:2], np.array([1, -1])
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
        weight[[0, -1]] = 1.0
    elif kind == "sparse with empty rows":
        X = sp.random_array((n, 5 * d), density=0.1, rng=rng, format="csr")
    elif kind == "contradictory labels":
        X, y = np.vstack([X, X]), np.concatenate([y, -y])
    elif kind == "separable":
        X = X + 4.0 * y[:, None]
    return Case(kind, seed, X, y, C, weight)

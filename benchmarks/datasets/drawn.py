"""Problems drawn at random: ``drawn-<seed>-<k>`` is the k-th of a seed, whatever else is drawn.

Shape, structure, labels and C are drawn independently of each other; forms follow in turn, so that any run of
``len(FORMS_IN_TURN)`` problems has every loss, penalty and way to treat several classes.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.datasets.base import Dataset, csr
from benchmarks.forms import REGRESSION, SEVERAL, TUBE, TWO, Form

Vector = NDArray[np.float64]

KIND = "drawn"
NAME = re.compile(r"drawn-(\d+)-(\d+)")

MOST_NUMBERS = 10_000_000  # in X: 80 MB dense, 120 MB sparse; with what is made on the way about 200 MB
ROWS, COLS, DENSITY, C_RANGE, CLASSES = (50, 300_000), (2, 3000), (0.003, 0.3), (1e-4, 1e4), (3, 20)
STRUCTURES = ("normal", "correlated", "onehot", "scales")
IMBALANCES = (1.0, 1.0, 10.0, 1000.0)  # largest class to smallest
NOISES = (0.0, 0.05, 0.2, 0.5)  # at 0.5 labels say nothing
LEAST_ROWS = 2  # of a class
LEAST_PER_ROW = 3  # stored numbers of a sparse row
VALUES = 5  # of a one-hot attribute
LARGE = 1e6  # size of the large columns beside those of size 1
COPIES = 20  # of each row on average, where rows are repeated
ALIKE = 0.1  # what correlated columns have of their own

FORMS_IN_TURN: tuple[tuple[str, Form], ...] = (
    (TWO, Form("hinge")),
    (SEVERAL, Form("crammer_singer")),
    (REGRESSION, Form("epsilon_insensitive", epsilon=TUBE)),
    (TWO, Form("squared_hinge", "l1")),
    (SEVERAL, Form("hinge", pairs=True)),
    (TWO, Form("slack_power", power=1.5)),
    (SEVERAL, Form("multinomial")),
    (TWO, Form("logistic")),
    (SEVERAL, Form("squared_hinge")),
    (REGRESSION, Form("squared_epsilon_insensitive", epsilon=TUBE)),
    (TWO, Form("squared_hinge")),
    (SEVERAL, Form("logistic", pairs=True)),
    (TWO, Form("logistic", "l1")),
    (SEVERAL, Form("hinge")),
    (TWO, Form("slack_power", power=3.0)),
    (SEVERAL, Form("squared_hinge", "l1")),
    (SEVERAL, Form("logistic")),
    (SEVERAL, Form("squared_hinge", pairs=True)),
    (SEVERAL, Form("slack_power", power=1.5)),
    (SEVERAL, Form("logistic", "l1")),
)


@dataclass(frozen=True)
class Draw:
    """One problem before its numbers are made; ``per_row`` is the stored numbers of a row."""

    seed: int
    k: int
    kind: str
    form: Form
    C: float
    n_rows: int
    n_cols: int
    sparse: bool
    per_row: int
    structure: str
    ordered: bool
    repeated: bool
    imbalance: float
    noise: float
    n_classes: int

    @property
    def name(self) -> str:
        return f"{KIND}-{self.seed}-{self.k}"

    def describe(self) -> dict[str, Any]:
        return {**asdict(self), "form": self.form.name, "name": self.name}

    def __str__(self) -> str:
        words = [
            f"{self.n_rows}×{self.n_cols}",
            f"sparse ({self.per_row} a row)" if self.sparse else "dense",
            self.structure,
            *(["sorted"] if self.ordered else []),
            *(["repeated rows"] if self.repeated else []),
            *([f"1:{self.imbalance:g}"] if self.imbalance > 1.0 else []),
            *([f"{self.n_classes} classes"] if self.n_classes > 2 else []),
            f"noise {self.noise:g}",
        ]
        return ", ".join(words)


def draw(seed: int, k: int) -> Draw:
    """The k-th problem of the seed."""
    rng = np.random.default_rng([seed, k])
    kind, form = FORMS_IN_TURN[k % len(FORMS_IN_TURN)]
    n_rows, n_cols = round(_between(rng, *ROWS)), round(_between(rng, *COLS))
    sparse, density = bool(rng.random() < 0.5), _between(rng, *DENSITY)
    structure = STRUCTURES[rng.integers(len(STRUCTURES))]
    per_row = min(n_cols, max(LEAST_PER_ROW, round(density * n_cols))) if sparse else n_cols
    if sparse and structure == "onehot":
        per_row = _attributes(n_cols)
    n_rows = min(n_rows, MOST_NUMBERS // per_row)
    imbalance = IMBALANCES[rng.integers(len(IMBALANCES))]
    n_classes = min(round(_between(rng, *CLASSES)), n_rows // (4 * LEAST_ROWS))
    return Draw(
        seed=seed,
        k=k,
        kind=kind,
        form=form,
        C=float(f"{_between(rng, *C_RANGE):.3g}"),
        n_rows=n_rows,
        n_cols=n_cols,
        sparse=sparse,
        per_row=per_row,
        structure=structure,
        ordered=bool(rng.random() < 0.5),
        repeated=bool(rng.random() < 0.25),
        imbalance=1.0 if kind == REGRESSION else imbalance,
        noise=NOISES[rng.integers(len(NOISES))],
        n_classes={TWO: 2, SEVERAL: n_classes, REGRESSION: 0}[kind],
    )


def matches(name: str) -> bool:
    return NAME.fullmatch(name) is not None


def load(name: str) -> Dataset:
    found = NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"not a drawn problem: {name!r}")
    return make(draw(*(int(part) for part in found.groups())))


def make(problem: Draw) -> Dataset:
    """Its numbers: rows, then labels or targets from a random hyperplane (one per class) and noise."""
    rng = np.random.default_rng([problem.seed, problem.k, 1])
    n_different = max(2, problem.n_rows // COPIES) if problem.repeated else problem.n_rows
    X = (_sparse if problem.sparse else _dense)(problem, n_different, rng)
    n_scores = max(1, problem.n_classes if problem.kind == SEVERAL else 1)
    scores = np.asarray(X @ rng.standard_normal((problem.n_cols, n_scores)))
    if problem.structure == "scales":
        X = _scaled(X, np.where(np.arange(problem.n_cols) % 2 == 1, LARGE, 1.0))
    if problem.repeated:
        chosen = rng.integers(n_different, size=problem.n_rows)
        X, scores = X[chosen], scores[chosen]
    scores = (scores - scores.mean(axis=0)) / np.maximum(scores.std(axis=0), 1e-12)
    y = _targets(problem, scores, rng)
    if problem.ordered:
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    return Dataset(problem.name, X, y, problem.kind)


def _dense(problem: Draw, n_rows: int, rng: np.random.Generator) -> Vector:
    n_cols = problem.n_cols
    if problem.structure == "onehot":
        return np.ascontiguousarray(_onehot(n_rows, n_cols, rng).toarray())
    X = rng.standard_normal((n_rows, n_cols))
    if problem.structure == "correlated":
        n_factors = max(1, n_cols // 10)
        X *= ALIKE
        X += rng.standard_normal((n_rows, n_factors)) @ rng.standard_normal((n_factors, n_cols)) / np.sqrt(n_factors)
    return X


def _sparse(problem: Draw, n_rows: int, rng: np.random.Generator) -> sp.csr_matrix:
    n_cols, per_row = problem.n_cols, problem.per_row
    if problem.structure == "onehot":
        return _onehot(n_rows, n_cols, rng)
    pairs = problem.structure == "correlated" and per_row >= 2 and n_cols >= 2
    width, count = (n_cols // 2, per_row // 2) if pairs else (n_cols, per_row)
    positions = rng.integers(width, size=(n_rows, count))
    values = rng.standard_normal((n_rows, count))
    if pairs:  # a column of the second half is nearly a copy of one of the first
        positions = np.concatenate([positions, positions + width], axis=1)
        values = np.concatenate([values, values + ALIKE * rng.standard_normal(values.shape)], axis=1)
    starts = np.arange(n_rows + 1) * positions.shape[1]
    return csr(values.ravel(), positions.ravel(), starts, (n_rows, n_cols))


def _attributes(n_cols: int) -> int:
    return max(1, n_cols // VALUES)


def _onehot(n_rows: int, n_cols: int, rng: np.random.Generator) -> sp.csr_matrix:
    """Attributes of a few values each, the first ones more frequent; columns that are left over stay empty."""
    n_attributes, values = _attributes(n_cols), min(VALUES, n_cols)
    value = np.minimum(rng.geometric(0.4, size=(n_rows, n_attributes)) - 1, values - 1)
    positions = value + values * np.arange(n_attributes)
    starts = np.arange(n_rows + 1) * n_attributes
    return csr(np.ones(positions.size), positions.ravel(), starts, (n_rows, n_cols))


def _scaled(X: Any, factor: Vector) -> Any:
    """The columns times their factors, in place."""
    if sp.issparse(X):
        X.data *= factor[X.indices]
    else:
        X *= factor
    return X


def _targets(problem: Draw, scores: Vector, rng: np.random.Generator) -> Vector:
    """Targets with heavy-tailed noise; or classes of the wanted sizes, some of whose labels changed places."""
    n = problem.n_rows
    if problem.kind == REGRESSION:
        return scores[:, 0] + 2.0 * problem.noise * rng.standard_t(3, n)
    scores += 1e-9 * rng.standard_normal(scores.shape)  # equal rows: any order
    sizes = class_sizes(n, problem.n_classes, problem.imbalance)
    label = np.zeros(n)
    left = np.arange(n)
    for k in range(1, problem.n_classes):
        order = np.argsort(-scores[left, k if problem.kind == SEVERAL else 0], kind="stable")
        label[left[order[: sizes[k]]]] = k
        left = left[order[sizes[k] :]]
    moved = np.flatnonzero(rng.random(n) < 2.0 * problem.noise)
    label[moved] = label[rng.permutation(moved)]
    return label if problem.kind == SEVERAL else 2.0 * label - 1.0


def class_sizes(n_rows: int, n_classes: int, imbalance: float) -> NDArray[np.intp]:
    """Sizes in geometric progression, the first ``imbalance`` times the last, as far as the rows allow."""
    share = np.geomspace(imbalance, 1.0, n_classes)
    sizes = np.maximum(LEAST_ROWS, np.floor(n_rows * share / share.sum())).astype(np.intp)
    sizes[0] += n_rows - sizes.sum()
    return sizes


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    """Uniform on a logarithmic scale."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))

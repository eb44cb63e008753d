"""How good the answer of a kernel machine is: its duality gap, by one formula for everybody.

An answer is one signed multiplier β_i per row, f = Σ β_i k(x_i, ·) + b. With K the Gram matrix, prices c_i and targets
t_i (for two classes the labels ±1, and ε = 0):

    primal   ½ βᵀKβ + Σ c_i ℓ(f(x_i), t_i)    ℓ = max(0, 1 − t f), or max(0, |t − f| − ε) in a regression
    dual     tᵀβ − ε‖β‖₁ − ½ βᵀKβ             0 ≤ t_i β_i ≤ c_i, or |β_i| ≤ c_i in a regression; Σ β_i = 0

The multipliers are first made feasible: clipped to their box, then the heavier sign scaled down until they add up to 0.
b is chosen anew, as the exact minimiser of the primal, so that nobody loses by a badly placed bias. Everything is
float64, whatever the machine computed in; the code here is its own and shares nothing with the machines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

BLOCK_BYTES = 2**27  # of kernel values held at a time
MOST_DENSE_COLUMNS = 4096  # up to which sparse rows are made dense, some at a time: BLAS is faster

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Kernel:
    """One of the kernels that every machine here has, with its numbers: γ is never left to a machine's own rule."""

    name: str  # rbf, linear or poly
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    def values(self, left: Any, right: Any) -> Vector:
        """k of every row on the left with every row on the right."""
        inner = _products(left, right)
        if self.name == "linear":
            return inner
        if self.name == "poly":
            return (self.gamma * inner + self.coef0) ** self.degree
        if self.name != "rbf":
            raise ValueError(f"kernel {self.name!r}: there are rbf, linear and poly")
        inner *= 2.0
        inner -= _squares(left)[:, None]
        inner -= _squares(right)
        np.minimum(inner, 0.0, out=inner)
        inner *= self.gamma
        return np.exp(inner, out=inner)

    def times(self, X: Any, support: Any, beta: Vector) -> Vector:
        """Σ_j k(x_i, z_j) β_j for every row x_i of X and the rows z_j of ``support``, block by block."""
        n = X.shape[0]
        height = max(1, BLOCK_BYTES // (8 * max(1, len(beta))))
        parts = [self.values(X[i : i + height], support) @ beta for i in range(0, n, height)]
        return np.concatenate(parts)


def scale(X: Any) -> float:
    """scikit-learn's ``gamma="scale"`` as a number: 1 / (columns · variance of all entries)."""
    squares = X.multiply(X).mean() if sp.issparse(X) else np.mean(np.square(X, dtype=np.float64))
    variance = float(squares - X.mean(dtype=np.float64) ** 2)
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


@dataclass(frozen=True)
class Gap:
    """Primal and dual of an answer made feasible; ``moved`` is the share of ‖β‖₁ that this took."""

    primal: float
    dual: float
    moved: float

    @property
    def relative(self) -> float:
        """(P − D) / max(|P|, |D|); infinite if the answer is not finite."""
        size = max(abs(self.primal), abs(self.dual))
        if not np.isfinite(size):
            return float("inf")
        return (self.primal - self.dual) / size if size > 0.0 else 0.0


def gap(
    kernel: Kernel, X: Any, target: ArrayLike, beta: ArrayLike, cost: ArrayLike, epsilon: float | None = None
) -> Gap:
    """The gap of one answer.

    Parameters
    ----------
    kernel : Kernel
    X : array or CSR matrix of shape (n, d)
    target : array of shape (n,)
        Labels -1 and +1, or the targets of a regression.
    beta : array of shape (n,)
        The signed multipliers; mostly 0.
    cost : float or array of shape (n,)
        C times the weight of each row.
    epsilon : float, optional
        Half the width of the tube of a regression; None: two classes.
    """
    t, given = np.asarray(target, dtype=np.float64), np.asarray(beta, dtype=np.float64)
    c = np.broadcast_to(np.asarray(cost, dtype=np.float64), t.shape)
    if not np.isfinite(given).all():
        return Gap(float("inf"), float("-inf"), 1.0)
    low, high = (-c, c) if epsilon is not None else (np.where(t > 0.0, 0.0, -c), np.where(t > 0.0, c, 0.0))
    b = feasible(given, low, high)
    size = float(np.abs(given).sum())
    moved = float(np.abs(b - given).sum()) / size if size > 0.0 else 0.0
    support = np.flatnonzero(b)
    f = kernel.times(X, X[support], b[support])
    half = 0.5 * float(b @ f)
    dual = float(t @ b - (epsilon or 0.0) * np.abs(b).sum()) - half
    return Gap(half + _least_loss(f, t, c, epsilon), dual, moved)


def feasible(beta: Vector, low: Vector, high: Vector) -> Vector:
    """The multipliers clipped to their box, and those of the heavier sign scaled down until the sum is 0."""
    b = np.clip(beta, low, high)
    up, down = float(b[b > 0.0].sum()), float(-b[b < 0.0].sum())
    lighter = min(up, down)
    for side, total in ((b > 0.0, up), (b < 0.0, down)):
        if total > lighter:
            b[side] *= lighter / total
    return b


def best_bias(kinks: Vector, steps: Vector, slope: float) -> float:
    """A minimiser of a convex, piecewise linear function of b: far left it has ``slope``; each kink adds its step."""
    order = np.argsort(kinks)
    rising = slope + np.cumsum(steps[order])
    return float(kinks[order[min(np.searchsorted(rising, 0.0), len(order) - 1)]])


def _least_loss(f: Vector, t: Vector, c: Vector, epsilon: float | None) -> float:
    """Σ c_i ℓ(f_i + b, t_i) at the best b."""
    if epsilon is None:
        b = best_bias(t - f, c, -float(c[t > 0.0].sum()))
        return float(c @ np.maximum(0.0, 1.0 - t * (f + b)))
    kinks = np.concatenate([t - f - epsilon, t - f + epsilon])
    b = best_bias(kinks, np.concatenate([c, c]), -float(c.sum()))
    return float(c @ np.maximum(0.0, np.abs(t - f - b) - epsilon))


@dataclass(frozen=True)
class Part:
    """One binary problem or regression of an answer: its rows (None: all), targets and multipliers."""

    name: str
    rows: NDArray[np.intp] | None
    target: Vector
    beta: Vector


def parts(
    dual_coef: ArrayLike, support: ArrayLike, n_support: ArrayLike, y: ArrayLike, n_classes: int
) -> Iterator[Part]:
    """The problems that an answer in scikit-learn's shape consists of: one, or one per pair of classes.

    Several classes: support vectors stand class by class, ``n_support`` of each, in any order of the classes; the row
    of ``dual_coef`` for another class is its place among the others. Which class of a pair is +1 is read off:
    t_i β_i is never negative.
    """
    coef, support_ = np.atleast_2d(np.asarray(dual_coef, dtype=np.float64)), np.asarray(support, dtype=np.intp)
    labels = np.asarray(y, dtype=np.float64)
    if n_classes <= 2:
        beta = np.zeros(len(labels))
        beta[support_] = coef[0]
        yield Part("", None, labels, beta if n_classes == 0 else _oriented(beta, labels))
        return
    blocks = np.split(np.arange(len(support_)), np.cumsum(np.asarray(n_support, dtype=np.intp))[:-1])
    place = _classes_of(labels[support_], blocks, n_classes)
    for first, second in combinations(range(n_classes), 2):
        beta = np.zeros(len(labels))
        for one, other in ((first, second), (second, first)):
            block, line = blocks[place[one]], place[other] - (place[other] > place[one])
            beta[support_[block]] = coef[line, block]
        rows = np.flatnonzero((labels == first) | (labels == second))
        target = np.where(labels[rows] == second, 1.0, -1.0)
        yield Part(f"{first} against {second}", rows, target, _oriented(beta[rows], target))


def worst(kernel: Kernel, X: Any, found: Iterator[Part], cost: float, epsilon: float | None) -> tuple[Gap, str]:
    """The part with the largest relative gap, and its name."""
    gaps = []
    for part in found:
        rows = X if part.rows is None else X[part.rows]
        gaps.append((gap(kernel, rows, part.target, part.beta, cost, epsilon), part.name))
    return max(gaps, key=lambda pair: pair[0].relative)


def _classes_of(labels: Vector, blocks: list[NDArray[np.intp]], n_classes: int) -> dict[int, int]:
    """The block of every class."""
    place = {int(labels[block[0]]): k for k, block in enumerate(blocks) if len(block)}
    mixed = any(len(block) and np.ptp(labels[block]) > 0.0 for block in blocks)
    if mixed or len(place) != n_classes:
        raise ValueError(f"{n_classes} blocks of support vectors expected, of one class each; got {sorted(place)}")
    return place


def _oriented(beta: Vector, target: Vector) -> Vector:
    """β or −β: that which has t_i β_i ≥ 0 on the whole."""
    return beta if float(target @ beta) >= 0.0 else -beta


def _products(left: Any, right: Any) -> Vector:
    """Inner products of all pairs of rows."""
    if sp.issparse(left) and left.shape[1] > MOST_DENSE_COLUMNS:
        return np.asarray((left.astype(np.float64) @ right.astype(np.float64).T).toarray())
    return np.asarray(_dense(left) @ _dense(right).T)


def _squares(X: Any) -> Vector:
    if sp.issparse(X):
        return np.asarray(X.astype(np.float64).multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", _dense(X), _dense(X))


def _dense(X: Any) -> Vector:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)

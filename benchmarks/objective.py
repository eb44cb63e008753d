"""What is compared: the primal value at the best bias, and how far it lies above the certified optimum."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from benchmarks.forms import Form
from benchmarks.joint import least_loss
from maxmargin.losses import LOSSES, EpsilonInsensitive, Loss, SquaredEpsilonInsensitive, slack_power

BLOCK = 65536


@dataclass(frozen=True)
class Objective:
    """R(w) + C Σ ℓ(⟨w, x_i⟩ + b, y_i), with b the exact minimiser for the given w; summed over all machines.

    The bias is not penalised. Peers that penalise it are judged by their weights alone, with the bias chosen
    anew, so that none loses by a badly placed bias. Several classes have one line of weights per class, or per pair of
    classes in the order (0, 1), (0, 2), …, whose second class is the positive one.
    """

    X: Any
    y: NDArray[np.float64]
    C: float
    form: Form
    n_classes: int = 2  # 0 for a regression

    @property
    def n_machines(self) -> int:
        if self.n_classes <= 2:
            return 1
        return self.n_classes * (self.n_classes - 1) // 2 if self.form.pairs else self.n_classes

    def value(self, w: ArrayLike) -> float:
        """The objective at w; infinite if w is not finite."""
        W = np.atleast_2d(np.asarray(w, dtype=np.float64))
        if W.shape != (self.n_machines, self.X.shape[1]):
            raise ValueError(f"weights of shape {(self.n_machines, self.X.shape[1])} expected, got {W.shape}")
        if not np.isfinite(W).all():
            return float("inf")
        penalty = 0.5 * float((W * W).sum()) if self.form.penalty == "l2" else float(np.abs(W).sum())
        scores = self._scores(W)
        if self.form.joint:
            return penalty + self.C * least_loss(scores, self.y.astype(np.intp), self.form.loss)
        if self.n_machines == 1:
            return penalty + self._loss_of(scores[:, 0], self.y)
        if self.form.pairs:
            return penalty + sum(self._loss_of_pair(scores[:, m], *pair) for m, pair in enumerate(self._pairs()))
        each = (self._loss_of(scores[:, k], np.where(self.y == k, 1.0, -1.0)) for k in range(self.n_machines))
        return penalty + sum(each)

    def suboptimality(self, w: ArrayLike, optimum: float) -> float:
        """(P(w) − P*) / P*; may be slightly negative when the certified P* is itself a rounding above."""
        return (self.value(w) - optimum) / optimum

    def _pairs(self) -> Iterable[tuple[int, int]]:
        return itertools.combinations(range(self.n_classes), 2)

    def _loss_of_pair(self, scores: NDArray[np.float64], first: int, second: int) -> float:
        rows = np.flatnonzero((self.y == first) | (self.y == second))
        return self._loss_of(scores[rows], np.where(self.y[rows] == second, 1.0, -1.0))

    def _loss_of(self, scores: NDArray[np.float64], y: NDArray[np.float64]) -> float:
        loss = _loss(self.form)
        low, high = loss.best_bias(scores, y, np.full(len(y), self.C))
        return self.C * float(loss.value(scores + 0.5 * (low + high), y).sum())

    def _scores(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        if sp.issparse(self.X) or self.X.dtype == np.float64:
            return np.ascontiguousarray(self.X @ W.T, dtype=np.float64)
        blocks = [self.X[i : i + BLOCK].astype(np.float64) @ W.T for i in range(0, len(self.y), BLOCK)]
        return np.concatenate(blocks)


def _loss(form: Form) -> Loss:
    if form.regression:
        tube = EpsilonInsensitive if form.loss == "epsilon_insensitive" else SquaredEpsilonInsensitive
        return tube(form.epsilon)
    return slack_power(form.power) if form.power else LOSSES[form.loss]

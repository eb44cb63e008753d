"""What is compared: the primal value at the best bias, and how far it lies above the certified optimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from maxmargin.losses import LOSSES

BLOCK = 65536


@dataclass(frozen=True)
class Objective:
    """½‖w‖² + C Σ ℓ(⟨w, x_i⟩ + b, y_i), with b the exact minimiser for the given w.

    The bias is not penalised. Peers that penalise it are judged by their weights alone, with the bias chosen
    anew, so that none loses by a badly placed bias.
    """

    X: Any
    y: NDArray[np.float64]
    C: float
    loss: str

    def value(self, w: ArrayLike) -> float:
        """The objective at w; infinite if w is not finite."""
        w = np.asarray(w, dtype=np.float64).ravel()
        if w.shape != (self.X.shape[1],):
            raise ValueError(f"{self.X.shape[1]} weights expected, got {w.shape}")
        if not np.isfinite(w).all():
            return float("inf")
        loss, scores = LOSSES[self.loss], self._scores(w)
        low, high = loss.best_bias(scores, self.y, np.full(len(self.y), self.C))
        losses = loss.value(scores + 0.5 * (low + high), self.y)
        return float(0.5 * (w @ w) + self.C * losses.sum())

    def suboptimality(self, w: ArrayLike, optimum: float) -> float:
        """(P(w) − P*) / P*; may be slightly negative when the certified P* is itself a rounding above."""
        return (self.value(w) - optimum) / optimum

    def _scores(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        if sp.issparse(self.X) or self.X.dtype == np.float64:
            return np.asarray(self.X @ w, dtype=np.float64).ravel()
        blocks = [self.X[i : i + BLOCK].astype(np.float64) @ w for i in range(0, len(self.y), BLOCK)]
        return np.concatenate(blocks)

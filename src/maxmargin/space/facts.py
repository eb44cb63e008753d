"""What one visit to all values of X says: the one home of every fact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Facts:
    """What one visit to all values says.

    ================ ============================================ ===================
    fact             what it is                                   of some rows (take)
    ================ ============================================ ===================
    finite           whether all values are                       kept
    largest          the largest |x_ij|                           kept: a bound
    longest_row      the most products in a row's score           computed anew
    squared_norms    ‖x_i‖² of every row                          sliced
    column_squares   Σ_i x_ij² of every column, of dense rows     dropped
    ================ ============================================ ===================

    ``Rows`` keeps three more that are asked for now and then: ``squared`` (X∘X), ``by_column`` and ``span``; all are
    dropped when rows are taken.
    """

    finite: bool
    largest: float
    longest_row: int
    squared_norms: Vector
    column_squares: Vector | None = None

    @property
    def column_spread(self) -> float:
        """Largest over smallest root mean square of the columns that are not zero, of dense rows; 1 of sparse ones."""
        used = np.empty(0) if self.column_squares is None else self.column_squares[self.column_squares > 0.0]
        return float(np.sqrt(used.max() / used.min())) if len(used) else 1.0

"""The rows in doubt: those whose multiplier may still move, what all others contribute, and the present hyperplane.

Rows far from the margin keep their multiplier, at a bound, while the others are solved. The working set is chosen anew
after each round from a certified point, so that a step costs little more than the rows that are in doubt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin.problem import Problem
from maxmargin.runtime import Execution
from maxmargin.solvers.points import Point
from maxmargin.space import Space
from maxmargin.space.budget import COPIED_ROWS
from maxmargin.space.systems import GramCache, NormalCache

Vector = NDArray[np.float64]

FEWEST = 2000  # rows: a smaller set makes no step cheaper
UNDECIDED = 1e-3  # of a multiplier's range: nearer to its bound a row far from the margin counts as settled


@dataclass
class WorkingSet:
    """Rows, their multipliers and penalties, and where Newton's method stands.

    Attributes
    ----------
    chosen : which rows of the problem these are.
    settled : multipliers of all rows; those of the chosen ones are in ``alpha``.
    fixed_w, fixed_sum : Σ alpha sign x and Σ alpha sign of the other rows.
    certified : the point of the present multipliers, if it is known.
    """

    chosen: NDArray[np.intp] | slice
    settled: Vector
    rows: Space
    alpha: Vector
    sigma: Vector
    fixed_w: Vector
    fixed_sum: float
    w: Vector
    b: float
    scores: Vector
    cache: GramCache
    normal: NormalCache
    certified: Point | None = None

    @property
    def largest_sigma(self) -> float:
        return float(self.sigma.max()) if len(self.sigma) else 1.0

    def whole(self) -> Vector:
        """The multipliers of all rows."""
        alpha = self.settled.copy()
        alpha[self.chosen] = self.alpha
        return alpha


def nearest_rows(problem: Problem, point: Point, sigma: Vector, fraction: float, how: Execution) -> WorkingSet:
    """The rows nearest to the margin, and all whose multipliers are not at a bound far from it.

    So many that copying them would not pay are all rows. Only for losses whose multipliers have a box.
    """
    n, box = problem.n_rows, problem.box
    count = max(int(min(fraction, 1.0) * n), FEWEST)
    if count >= COPIED_ROWS * n:
        return all_rows(problem, point, sigma)
    r = problem.target - problem.sign * (point.scores + point.b)
    distance = np.abs(np.abs(r) - box.tube) if box.tube > 0.0 else np.abs(r)
    # Far from the margin a multiplier is at the bound of its side; one that is not there still has to decide.
    settled = np.where(r > box.tube, box.upper, np.where(r < -box.tube, box.lower, 0.0))
    undecided = np.abs(settled - point.alpha) > UNDECIDED * (box.upper - box.lower)
    count = max(count, int(undecided.sum()))
    if count >= COPIED_ROWS * n:
        return all_rows(problem, point, sigma)
    chosen = np.sort(np.argpartition(np.where(undecided, -1.0, distance), count - 1)[:count])
    fixed = settled * problem.sign
    fixed[chosen] = 0.0
    fixed_w = problem.space.combine(fixed, how)
    rows = problem.space.take(chosen)
    return WorkingSet(
        chosen, settled, rows, point.alpha[chosen], sigma[chosen], fixed_w, float(fixed.sum()), point.w.copy(),
        point.b, point.scores[chosen], GramCache(rows), NormalCache(rows, problem.bias),
    )  # fmt: skip


def all_rows(problem: Problem, point: Point, sigma: Vector) -> WorkingSet:
    """Every row is in doubt."""
    rows = problem.space
    return WorkingSet(
        slice(None), point.alpha, rows, point.alpha.copy(), sigma, np.zeros(problem.n_cols), 0.0, point.w.copy(),
        point.b, point.scores.copy(), GramCache(rows), NormalCache(rows, problem.bias),
    )  # fmt: skip

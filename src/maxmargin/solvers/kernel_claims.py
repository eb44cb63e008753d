"""What is claimed of an expansion Σ c_i φ(x_i): feasible multipliers, and both objectives with all rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin.certificates.expansion import MOST_STRETCH
from maxmargin.certificates.expansion_terms import expansion_claim
from maxmargin.certificates.kernel_rounding import RowSizes, score_off, strips
from maxmargin.certificates.terms import CAREFUL
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem import Problem
from maxmargin.solvers.claims import Stated, exactly_balanced, terms_of

Vector = NDArray[np.float64]

ON_MARGIN = 1e-3  # difference of a margin from 1, of rows that rounding could put a price on


def sizes_of(space: KernelRows, alpha: Vector) -> RowSizes:
    """What the rounding of values depends on, for the way in which they were computed."""
    facts, live = space.facts, np.flatnonzero(alpha)
    if space.is_given:
        return RowSizes(facts.longest_row, given=facts.largest)
    squares = facts.squared_norms
    largest = float(squares[live].max(initial=0.0))
    if space.function is not None:
        return RowSizes(facts.longest_row, squares, largest, space.packed_squares, corrected=space.corrected)
    # Python's own values: dense rows of a Gaussian are seen from the mean of the support rows.
    centred = squares
    if not space.sparse and len(live):
        moved = space.X - space.X[live].mean(axis=0, dtype=np.float64)
        centred = np.einsum("ij,ij->i", moved, moved)
    given = float(np.abs(space.diagonal).max(initial=0.0))  # of a positive semidefinite kernel no value is larger
    return RowSizes(facts.longest_row, squares, largest, centred, given=given)


def additions_of(space: KernelRows, n_support: int) -> int:
    """The most additions that a term of the scores takes part in."""
    return strips(n_support) if space.function is not None else n_support + 1


@dataclass(frozen=True)
class StatedExpansion(Stated):
    """``b`` and ``stretch`` say which function is claimed."""

    b: float = 0.0
    stretch: float = 1.0


def expansion_stated(
    problem: Problem, alpha: Vector, b: float, f: Vector, sums: Vector, tol: float, *, definite: bool = True
) -> StatedExpansion:
    """The claim about multipliers whose scores ``f`` were computed in float64, with Σ_j |a_j k_ij| in ``sums``."""
    space = problem.space
    assert isinstance(space, KernelRows)
    moved = 0.0
    if problem.bias.free and alpha.any():
        alpha, moved = exactly_balanced(problem, alpha)
    found = _claimed(problem, space, alpha, b, f, sums, moved, 1.0, definite=definite)
    margins = not problem.loss.regression and not problem.hard and not problem.loss.entropic
    if definite and margins and found.gap > tol and alpha.any():
        off = scores_off(problem, alpha, sums, moved)
        on_margin = np.abs(1.0 - problem.sign * (f + b)) <= ON_MARGIN
        stretch = 1.0 + 2.0 * CAREFUL * float(off[on_margin].max(initial=0.0))
        if stretch <= MOST_STRETCH:
            longer = _claimed(problem, space, alpha, stretch * b, f, sums, moved, stretch, definite=True)
            found = longer if longer.gap < found.gap else found
    if definite and not found.dual >= 0.0:
        zero = np.zeros(len(alpha))
        found = _claimed(problem, space, zero, b, zero, zero, 0.0, 1.0, definite=True)
    return found


def scores_off(problem: Problem, alpha: Vector, sums: Vector, moved: float = 0.0) -> Vector:
    """By how much the scores of every row may be off."""
    space = problem.space
    assert isinstance(space, KernelRows)
    n_support, total = int(np.count_nonzero(alpha)), float(np.abs(alpha).sum())
    sizes, additions = sizes_of(space, alpha), additions_of(space, n_support)
    return score_off(space.kernel.structure(), sizes, sums, total, additions, moved=moved)


def _claimed(
    problem: Problem, space: KernelRows, alpha: Vector, b: float, f: Vector, sums: Vector, moved: float,
    stretch: float, *, definite: bool,
) -> StatedExpansion:  # fmt: skip
    primal, dual = expansion_claim(
        terms_of(problem), space.kernel.structure(), alpha, b, f, sums, sizes_of(space, alpha), definite=definite,
        additions=additions_of(space, int(np.count_nonzero(alpha))), moved=moved, stretch=stretch,
    )  # fmt: skip
    gap = problem.relative_gap(primal, dual) if definite else math.nan
    return StatedExpansion(alpha, primal, dual, gap, b, stretch)

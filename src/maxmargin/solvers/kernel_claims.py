"""What is claimed of an expansion Σ c_i φ(x_i): feasible multipliers, and both objectives with all rounding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.certificates.expansion_terms import expansion_claim
from maxmargin.certificates.kernel_rounding import RowSizes, strips
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.problem import Problem
from maxmargin.solvers.claims import Stated, exactly_balanced, terms_of

Vector = NDArray[np.float64]


def sizes_of(space: KernelRows, alpha: Vector) -> RowSizes:
    """What the rounding of values depends on, for the way in which the core computes them."""
    facts, live = space.facts, np.flatnonzero(alpha)
    if space.function is None:
        given = float(np.abs(space.diagonal).max(initial=0.0)) if not space.is_given else facts.largest
        squares = facts.squared_norms if space.chosen is None else facts.squared_norms[space.chosen]
        return RowSizes(facts.longest_row, squares, float(squares[live].max(initial=0.0)), squares, given=given)
    packed = space.packed(np.float64)
    return RowSizes(
        facts.longest_row, facts.squared_norms, float(facts.squared_norms[live].max(initial=0.0)), packed.squares,
        corrected=space.corrected,
    )  # fmt: skip


def expansion_stated(
    problem: Problem, alpha: Vector, b: float, f: Vector, sums: Vector, *, definite: bool = True
) -> Stated:
    """The claim about multipliers whose scores ``f`` were computed in float64, with Σ_j |a_j k_ij| in ``sums``."""
    space = problem.space
    assert isinstance(space, KernelRows)
    moved = 0.0
    if problem.bias.free and alpha.any():
        alpha, moved = exactly_balanced(problem, alpha)
    additions = strips(int(np.count_nonzero(alpha)))
    primal, dual = expansion_claim(
        terms_of(problem), space.kernel.structure(), alpha, b, f, sums, sizes_of(space, alpha), definite=definite,
        additions=additions, moved=moved,
    )  # fmt: skip
    if not definite:
        return Stated(alpha, primal, dual, math.nan)
    if not dual >= 0.0:
        alpha, dual = np.zeros_like(alpha), 0.0
        sizes: Any = sizes_of(space, alpha)
        zero = np.zeros(len(alpha))
        primal, dual = expansion_claim(terms_of(problem), space.kernel.structure(), alpha, b, zero, zero, sizes)
    return Stated(alpha, primal, dual, problem.relative_gap(primal, dual))

"""What a joint machine claims about its last point: the same as :mod:`~maxmargin.solvers.claims`, for k scores a row.

The multipliers of a row, alpha_im = −c_i p_im and alpha_iy = c_i (1 − p_iy), sum to zero by themselves. With free
biases those of a class do, too: what rows of class y give to others, Σ c_i p_im, is a circulation among the classes.
"""

from __future__ import annotations

import itertools
import math
from collections import deque

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.certificates.joint_terms import JointTerms
from maxmargin.certificates.rounding import Approximate, exact_combination_off, exact_scores_off, norm, size_by_squares
from maxmargin.certificates.terms import CAREFUL
from maxmargin.runtime import Execution
from maxmargin.solution import relative_gap
from maxmargin.solvers.claims import HALF, MATTERS, SMALL, Stated
from maxmargin.solvers.joint_point import JointPoint, JointProblem

Vector = NDArray[np.float64]
Whole = NDArray[np.int64]


def joint_claim(problem: JointProblem, point: JointPoint, tol: float, how: Execution) -> Stated:
    """The strongest claim about a point that its certificate will confirm."""
    scale = problem.bias.value if problem.bias.penalised else 0.0
    terms = JointTerms(problem.loss, problem.own[1], problem.cost, problem.n_classes, scale)
    alpha, moved = exactly_circulating(problem, point.alpha)
    if problem.nnz > SMALL and moved <= terms.most_moved(alpha.size):
        largest = math.sqrt(float(problem.squared_norms.max()))
        high = terms.primal_above(
            point.primal, point.W, point.b, problem.space.facts.longest_row, largest, factor=CAREFUL
        )
        lengths = [size_by_squares(column, problem.squared_norms) for column in point.alpha.T]
        lost = CAREFUL * terms.dual_lost(point.dual, point.alpha, moved, point.induced, lengths, largest)
        found = _claim(problem, alpha, high, point.dual - lost)
        if found.gap <= tol or (high - point.primal) + lost <= MATTERS * (found.primal - found.dual):
            return found
    scores, induced = _exact_products(problem, alpha, point.W, how)
    primal = terms.primal(point.W, point.b, scores, factor=CAREFUL)
    return _claim(problem, alpha, primal.high, terms.dual(alpha, induced, factor=CAREFUL).low)


def _claim(problem: JointProblem, alpha: Vector, primal: float, dual: float) -> Stated:
    """Multipliers that prove nothing are replaced by none at all, whose dual value is 0."""
    if not dual >= 0.0:
        alpha, dual = np.zeros_like(alpha), 0.0
    return Stated(alpha, primal, dual, relative_gap(primal, dual, problem.null_primal))


def _exact_products(
    problem: JointProblem, alpha: Vector, W: Vector, how: Execution
) -> tuple[list[Approximate], list[Approximate]]:
    """Scores and Σ_i alpha_im x_i of every class in twice the working precision."""
    norms, scores, induced = np.sqrt(problem.squared_norms), [], []
    for w, column in zip(W, alpha.T, strict=True):
        coefficient = np.ascontiguousarray(column)
        high, low = problem.space.exact_scores(np.ascontiguousarray(w), how)
        line = problem.space.exact_combine(coefficient, how)
        scores.append(Approximate(high, exact_scores_off(problem.space.facts.longest_row, norm(w), norms), low))
        induced.append(Approximate(line, exact_combination_off(coefficient, line, norms)))
    return scores, induced


def exactly_circulating(problem: JointProblem, alpha: Vector) -> tuple[Vector, float]:
    """The same multipliers up to rounding, whose sums over every row, and every class if it must be, are exactly zero.

    Second: Σ |change|.

    Examples
    --------
    >>> from maxmargin.space import Bias, Rows
    >>> rows, label = Rows.of(np.eye(3)), np.arange(3, dtype=np.int32)
    >>> problem = JointProblem(rows, label, np.ones(3), "crammer_singer", Bias(1.0, False), 3)
    >>> alpha, moved = exactly_circulating(problem, 0.1 * (3.0 * np.eye(3) - 1.0))
    >>> bool((alpha.sum(axis=0) == 0.0).all() and (alpha.sum(axis=1) == 0.0).all())
    True
    """
    cost = problem.cost
    unit = float(np.spacing(cost.max()))
    given = np.trunc(np.maximum(-alpha, 0.0) / unit).astype(np.int64)
    given[problem.own] = 0
    excess = given.sum(axis=1) - np.floor(cost / unit).astype(np.int64)
    over = np.flatnonzero(excess > 0)  # by rounding: the largest of the row can spare it
    given[over, given[over].argmax(axis=1)] -= excess[over]
    if problem.bias.free and not _balance(given, problem.own[1]):
        given[:] = 0
    out: Vector = -unit * given.astype(np.float64)
    out[problem.own] = unit * given.sum(axis=1)
    return out, float(np.abs(out - alpha).sum())


def _balance(given: Whole, label: NDArray[np.intp]) -> bool:
    """Take a little along paths from classes that give too much to classes that get too much."""
    k = given.shape[1]
    surplus = _surplus(given, label)
    members = sp.csr_array((np.ones(len(label)), (label, np.arange(len(label)))), shape=(k, len(label)))
    flows = members @ given.astype(np.float64) > 0.0
    for _ in range(20 * k * k):
        source = next((m for m in range(k) if surplus[m] > 0), None)
        if source is None:
            return True
        path = _path(flows, source, surplus)
        if not path:
            return False
        edges = [(a, b, _largest(given, label, a, b)) for a, b in itertools.pairwise(path)]
        part = min(surplus[source], -surplus[path[-1]], *(int(given[row, b]) for _, b, row in edges))
        for a, b, row in edges:
            given[row, b] -= part
            if part == 0 or not given[label == a, b].any():
                flows[a, b] = False
        surplus[source] -= part
        surplus[path[-1]] += part
    return False


def _surplus(given: Whole, label: NDArray[np.intp]) -> list[int]:
    """What every class gives, less what it gets; the sums may have more than 63 bits."""
    k, total = given.shape[1], given.sum(axis=1)
    out = []
    for m in range(k):
        own = label == m
        pairs = [(total[own], 1), (given[:, m], -1)]
        out.append(sum(s * ((int((v >> HALF).sum()) << HALF) + int((v & ((1 << HALF) - 1)).sum())) for v, s in pairs))
    return out


def _path(flows: NDArray[np.bool_], source: int, surplus: list[int]) -> list[int]:
    """The shortest way along flows to a class that gets too much; empty if there is none."""
    before: dict[int, int] = {source: -1}
    waiting = deque([source])
    while waiting:
        here = waiting.popleft()
        if surplus[here] < 0:
            way = [here]
            while before[way[-1]] >= 0:
                way.append(before[way[-1]])
            return way[::-1]
        for there in np.flatnonzero(flows[here]).tolist():
            if there not in before:
                before[there] = here
                waiting.append(there)
    return []


def _largest(given: Whole, label: NDArray[np.intp], a: int, b: int) -> int:
    """The row of class a that gives most to class b."""
    rows = np.flatnonzero(label == a)
    return int(rows[given[rows, b].argmax()])

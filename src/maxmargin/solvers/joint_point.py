"""A joint multi-class problem, and turning any of its dual points into a certified one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from maxmargin.kept import kept_property
from maxmargin.runtime import Execution
from maxmargin.solution import relative_gap
from maxmargin.solvers.points import PLAIN
from maxmargin.space import Bias, Rows

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class JointProblem:
    """Rows, the class of each, costs, a joint loss ("crammer_singer" or "multinomial") and a bias per class."""

    space: Rows
    label: NDArray[np.int32]
    cost: Vector
    loss: str
    bias: Bias
    n_classes: int

    @property
    def n_rows(self) -> int:
        return self.space.n

    @property
    def n_cols(self) -> int:
        return self.space.d

    @property
    def nnz(self) -> int:
        return self.space.nnz

    @property
    def shape(self) -> tuple[int, int]:
        """Of the multipliers."""
        return self.n_rows, self.n_classes

    @property
    def squared_norms(self) -> Vector:
        return self.space.facts.squared_norms

    @kept_property
    def own(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions of every row's own class in an array of one line per row."""
        return np.arange(self.n_rows), self.label.astype(np.intp)

    @kept_property
    def null_primal(self) -> float:
        """The objective at W = 0 without bias."""
        return float(self.cost @ self.losses(np.zeros(self.shape)))

    def losses(self, scores: Vector) -> Vector:
        own = scores[self.own]
        if self.loss == "multinomial":
            top = scores.max(axis=1)
            return np.asarray(np.log(np.exp(scores - top[:, None]).sum(axis=1)) + (top - own))
        raised = scores + 1.0
        raised[self.own] -= 1.0
        return np.asarray(raised.max(axis=1) - own)

    def conjugates(self, p: Vector) -> Vector:
        """g(p_i) of points of the simplex."""
        if self.loss == "multinomial":
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.asarray(np.where(p > 0.0, p * np.log(p), 0.0).sum(axis=1))
        return p[self.own] - 1.0

    def primal(self, W: Vector, b: Vector, scores: Vector) -> float:
        of_bias = 0.5 * float(b @ b) / self.bias.value**2 if self.bias.penalised else 0.0
        return 0.5 * float((W * W).sum()) + of_bias + float(self.cost @ self.losses(scores))


@dataclass(frozen=True)
class JointPoint:
    """A feasible dual point and hyperplanes with both objective values.

    ``products`` are ⟨w_m, x_i⟩ without the biases, ``induced`` is Σ_i alpha_im x_i, one line per class.
    """

    alpha: Vector
    W: Vector
    b: Vector
    primal: float
    dual: float
    gap: float
    products: Vector
    induced: Vector


def certified(
    problem: JointProblem, alpha: Vector, W: Vector | None = None, b: Vector | None = None, *, how: Execution = PLAIN
) -> JointPoint:
    """A feasible dual point near ``alpha``, with the better of (W, b) and the hyperplanes it induces."""
    p = feasible_simplex(problem, alpha)
    alpha = -problem.cost[:, None] * p
    alpha[problem.own] += problem.cost
    induced, sums = problem.space.combine_all(alpha, how), alpha.sum(axis=0)
    dual = -0.5 * float((induced * induced).sum()) - float(problem.cost @ problem.conjugates(p))
    bias = problem.bias
    if bias.penalised:
        dual -= 0.5 * bias.value**2 * float(sums @ sums)
    own_b = bias.value**2 * sums if bias.penalised else np.zeros(problem.n_classes)
    if b is None:
        b = own_b
    candidates = [(induced, b)] if W is None else [(W, b), (induced, own_b if bias.penalised else b)]
    best: JointPoint | None = None
    for V, c in candidates:
        products = problem.space.scores_of_all(V, how)
        value = problem.primal(V, c, products + c)
        if best is None or value < best.primal:
            gap = relative_gap(value, dual, problem.null_primal)
            best = JointPoint(alpha, V.copy(), c.copy(), value, dual, gap, products, induced)
    assert best is not None
    return best


def feasible_simplex(problem: JointProblem, alpha: Vector) -> Vector:
    """p_i on the simplex with alpha_i = c_i (e_y − p_i); without a penalty on the biases Σ_i alpha_im = 0."""
    cost = problem.cost
    p = np.divide(-alpha, cost[:, None], out=np.zeros_like(alpha), where=cost[:, None] > 0.0)
    np.maximum(p, 0.0, out=p)
    p[problem.own] = 0.0
    p /= np.maximum(1.0, p.sum(axis=1))[:, None]
    if problem.bias.free:
        p *= balancing_factors(_flows(problem, p))[problem.label]
    p[problem.own] = np.maximum(0.0, 1.0 - p.sum(axis=1))
    return p


def _flows(problem: JointProblem, p: Vector) -> Vector:
    """F[y, m] = Σ c_i p_im over rows of class y."""
    rows, label = problem.own
    members = sp.csr_array((problem.cost, (label, rows)), shape=(problem.n_classes, problem.n_rows))
    return np.asarray(members @ p)


def balancing_factors(F: Vector) -> Vector:
    """Factors between 0 and 1 under which every class gives as much as it gets: line sums equal column sums.

    Osborne's iteration on the strongly connected classes; flows between others cannot be balanced. Where it is slow,
    the largest balanced flow below F is found by a linear program first.

    Examples
    --------
    >>> balancing_factors(np.array([[0.0, 2.0], [1.0, 0.0]])).round(12)[0, 1]
    np.float64(0.5)
    """
    G, exact = _osborne(F)
    if not exact:
        G, _ = _osborne(_largest_circulation(F))
    return np.divide(G, F, out=np.zeros_like(F), where=F > 0.0)


def _osborne(F: Vector) -> tuple[Vector, bool]:
    """A balanced G ≤ F of the form F_jm d_j/d_m, one factor for each component; and whether it balances to rounding."""
    _, component = connected_components(sp.csr_array(F > 0.0), directed=True, connection="strong")
    G = np.where(component[:, None] == component[None, :], F, 0.0)
    for _ in range(100):
        give, get = G.sum(axis=1), G.sum(axis=0)
        if np.all(np.abs(give - get) <= 1e-15 * (give + get)):
            break
        for m in np.flatnonzero((give > 0.0) & (get > 0.0)):
            ratio = math.sqrt(float(G[:, m].sum()) / float(G[m].sum()))
            G[m] *= ratio
            G[:, m] /= ratio
    growth = np.divide(G, F, out=np.zeros_like(F), where=F > 0.0)
    for c in range(int(component.max()) + 1):
        block = np.ix_(component == c, component == c)
        G[block] /= max(float(growth[block].max(initial=0.0)), 1e-300)
    give, get = G.sum(axis=1), G.sum(axis=0)
    return np.minimum(G, F), bool(np.all(np.abs(give - get) <= 1e-14 * (give + get)))


def _largest_circulation(F: Vector) -> Vector:
    """The balanced flow below F with the largest sum."""
    from scipy.optimize import linprog

    lines, columns = np.nonzero(F)
    size = float(F.max(initial=0.0))
    if not len(lines):
        return F
    edges = np.arange(len(lines))
    balance = sp.csr_array((np.ones(len(edges)), (lines, edges)), shape=(len(F), len(edges)))
    balance = balance - sp.csr_array((np.ones(len(edges)), (columns, edges)), shape=(len(F), len(edges)))
    bounds = np.column_stack([np.zeros(len(edges)), F[lines, columns] / size])
    answer = linprog(-np.ones(len(edges)), A_eq=balance, b_eq=np.zeros(len(F)), bounds=bounds, method="highs")
    out = np.zeros_like(F)
    if answer.x is not None:
        out[lines, columns] = np.clip(answer.x, 0.0, bounds[:, 1]) * size
    return np.minimum(out, F)

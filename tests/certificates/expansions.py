"""Kernel machines for tests of their proofs: values by another arithmetic, exact ones, and slow solutions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import clarabel
import flint
import numpy as np
import scipy.sparse as sp

from maxmargin import Problem
from maxmargin.certificates import ExpansionCertificate
from maxmargin.certificates.expansion_terms import expansion_claim
from maxmargin.certificates.kernel_rounding import RowSizes
from maxmargin.certificates.kernel_structure import definite
from maxmargin.certificates.terms import CAREFUL
from maxmargin.problem import REGRESSION_LOSSES
from maxmargin.solvers.claims import exactly_balanced, terms_of
from maxmargin.solvers.points import make_feasible
from tests.exact.objectives import Ball, loss_of, price_of, rational, vector

STRUCTURES: list[Any] = [
    ("linear",), ("poly", 0.3, 1.0, 3), ("poly", 1.0, 0.0, 2), ("rbf", 0.5), ("rbf", 30.0), ("laplacian", 0.4),
    ("sum", ("rbf", 0.2), ("linear",)), ("product", ("rbf", 0.1), ("poly", 0.5, 1.0, 2)),
    ("scaled", 2.5, ("sum", ("laplacian", 1.0), ("product", ("linear",), ("rbf", 1.0)))),
    ("sigmoid", 0.2, -0.3), ("poly", 0.5, -1.0, 3),
]  # fmt: skip


def scaled_to(structure: Any, spread: float) -> Any:
    """The same kernel for rows whose squared distances are so many times larger."""
    match structure:
        case ("rbf" | "poly" | "sigmoid", factor, *more):
            return (structure[0], factor / spread, *more)
        case ("laplacian", factor):
            return ("laplacian", factor / math.sqrt(spread))
        case (name, *parts):
            return (name, *(scaled_to(part, spread) if isinstance(part, tuple) else part for part in parts))
    return structure


def hostile(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Rows as people have them, and worse."""
    X = rng.standard_normal((n, d))
    match int(rng.integers(7)):
        case 0:
            X *= 10.0 ** rng.uniform(-3, 3, d)  # columns 1e6 apart
        case 1:
            X += 1e6 * rng.choice([-1.0, 0.0, 1.0], d)
        case 2:
            X = X[rng.integers(0, max(1, n // 3), n)]  # rows that occur again
        case 3:
            X[rng.integers(0, n)] *= 1e8  # an outlier
        case 4:
            X += 1e4 * (rng.random(n) < 0.5)[:, None]  # two clusters
        case 5:
            X = np.round(X) * (rng.random((n, d)) < 0.4)
    return X


def spread_of(X: np.ndarray) -> float:
    """A typical squared distance, as a fit would take it."""
    return float(X.shape[1] * (np.median(X.var(axis=0)) or 1.0))


def other_values(structure: Any, X: np.ndarray, rows: np.ndarray, rng: np.random.Generator, origin: Any) -> np.ndarray:
    """k of all rows with some, as a solver may compute them: about an origin, its products in another order."""
    order = rng.permutation(X.shape[1])
    Z = X[rows]
    match structure:
        case ("linear",):
            return np.einsum("ij,kj->ik", X[:, order], Z[:, order])
        case ("poly", factor, coef0, degree):
            return (factor * (X[:, order] @ Z[:, order].T) + coef0) ** degree
        case ("sigmoid", factor, coef0):
            return np.tanh(factor * (X[:, order] @ Z[:, order].T) + coef0)
        case ("rbf", factor):
            A, B = ((M - origin)[:, order] * math.sqrt(factor) for M in (X, Z))
            t = (A * A).sum(axis=1)[:, None] - 2.0 * (A @ B.T) + (B * B).sum(axis=1)
            return np.exp(-np.maximum(t, 0.0))
        case ("laplacian", factor):
            return np.exp(-factor * sum(np.abs(X[:, k, None] - Z[None, :, k]) for k in order))
        case ("scaled", factor, part):
            return factor * other_values(part, X, rows, rng, origin)
    parts = [other_values(part, X, rows, rng, origin) for part in structure[1:]]
    return np.sum(parts, axis=0) if structure[0] == "sum" else np.prod(parts, axis=0)


def exact_value(structure: Any, x: list[flint.fmpq], z: list[flint.fmpq]) -> Ball:
    """k(x, z) without rounding."""
    match structure:
        case ("linear",):
            return Ball(sum((a * b for a, b in zip(x, z, strict=True)), flint.fmpq(0)))
        case ("poly", factor, coef0, degree):
            base = Ball(rational(factor)) * exact_value(("linear",), x, z) + Ball(rational(coef0))
            return base ** int(degree) if float(degree).is_integer() else base ** Ball(rational(degree))
        case ("sigmoid", factor, coef0):
            return (Ball(rational(factor)) * exact_value(("linear",), x, z) + Ball(rational(coef0))).tanh()
        case ("rbf", factor):
            apart = sum(((a - b) ** 2 for a, b in zip(x, z, strict=True)), flint.fmpq(0))
            return (-Ball(rational(factor) * apart)).exp()
        case ("laplacian", factor):
            apart = sum((abs(a - b) for a, b in zip(x, z, strict=True)), flint.fmpq(0))
            return (-Ball(rational(factor) * apart)).exp()
        case ("scaled", factor, part):
            return Ball(rational(factor)) * exact_value(part, x, z)
    parts = [exact_value(part, x, z) for part in structure[1:]]
    value = parts[0]
    for part in parts[1:]:
        value = value + part if structure[0] == "sum" else value * part
    return value


def exact_scores(structure: Any, X: np.ndarray, a: np.ndarray) -> list[Ball]:
    """Σ a_j k(x_i, x_j) of every row, without rounding."""
    lines, own = [vector(x) for x in X], np.flatnonzero(a)
    found = []
    for x in lines:
        total = Ball(0)
        for j in own:
            total += Ball(rational(a[j])) * exact_value(structure, x, lines[j])
        found.append(total)
    return found


def exact_objectives(certificate: Any, f: list[Ball], sign: Any, target: Any, cost: Any) -> tuple[Ball, Ball]:
    """P and D of a certificate, given exact scores; of a loss whose h takes rational numbers or balls."""
    alpha, b = vector(certificate.alpha), rational(certificate.intercept)
    square, primal, dual = Ball(0), Ball(0), Ball(0)
    for i, value in enumerate(f):
        s, t, c = rational(sign[i]), rational(target[i]), rational(cost[i])
        square += Ball(alpha[i] * s) * value
        if c > 0:
            primal += Ball(c) * loss_of(certificate, Ball(t) - Ball(s) * (value + Ball(b)))
            dual += Ball(alpha[i] * t) - price_of(certificate, alpha[i], c)
    return primal + square / 2, dual - square / 2


@dataclass
class Machine:
    """A problem and a kernel with multipliers that some solver found, by arithmetic about an origin of its own."""

    X: np.ndarray
    y: np.ndarray
    structure: Any
    loss: str
    C: float = 1.0
    weight: Any = None
    epsilon: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        n = len(self.y)
        column, rng = np.arange(float(n))[:, None], np.random.default_rng(self.seed)
        self.regression = self.loss in REGRESSION_LOSSES
        given = {"sample_weight": self.weight, "C": self.C, "loss": self.loss}
        if self.regression:
            self.problem = Problem.regression(column, self.y, epsilon=self.epsilon, **given)
        else:
            self.problem = Problem.from_arrays(column, self.y, **given)
        self.alpha, self.b = np.zeros(n), 0.0
        self.origin = self.X[rng.integers(0, n, max(1, n // 2))].mean(axis=0)

    @property
    def cost(self) -> np.ndarray:
        return self.problem.cost

    def take(self, alpha: np.ndarray, b: float) -> Machine:
        """These multipliers, up to rounding: balanced exactly."""
        self.alpha, _ = exactly_balanced(self.problem, make_feasible(self.problem, alpha))
        self.b = float(b)
        return self

    def random(self) -> Machine:
        """Multipliers of any kind, some of them at their bounds."""
        rng, n = np.random.default_rng(self.seed + 1), len(self.y)
        most = np.minimum(self.cost, 1e6)
        alpha = most * np.clip(rng.uniform(-0.5, 1.5, n), 0.0, 1.0)
        if self.regression:
            alpha *= rng.choice([-1.0, 1.0], n)
        return self.take(alpha, rng.standard_normal())

    def solve(self) -> Machine:
        """The best multipliers as Clarabel finds them."""
        K = other_values(self.structure, self.X, np.arange(len(self.y)), np.random.default_rng(0), self.origin)
        return self.take(*clarabel_dual(K, self.problem.sign, self.problem.target, self.cost, self._price))

    @property
    def _price(self) -> float:
        return self.epsilon if self.regression else 0.0

    def values(self) -> tuple[np.ndarray, np.ndarray, RowSizes]:
        """f, Σ |a k| and sizes, by another arithmetic than that of certificates."""
        X, rng, a = self.X, np.random.default_rng(self.seed), self.problem.sign * self.alpha
        rows = rng.permutation(np.flatnonzero(a))
        K = other_values(self.structure, X, rows, rng, self.origin)
        squares, centred = (X * X).sum(axis=1), ((X - self.origin) ** 2).sum(axis=1)
        sizes = RowSizes(X.shape[1], squares, float(squares[rows].max(initial=0.0)), centred)
        return K @ a[rows], np.abs(K) @ np.abs(a[rows]), sizes

    def certificate(self, tol: float = 1e-6, factor: float = CAREFUL) -> ExpansionCertificate:
        """Of what a solver would claim."""
        f, sums, sizes = self.values()
        proves = definite(self.structure) is not False
        primal, dual = expansion_claim(
            terms_of(self.problem), self.structure, self.alpha, self.b, f, sums, sizes, definite=proves, factor=factor
        )
        return ExpansionCertificate(
            kernel=self.structure, alpha=self.alpha, intercept=self.b, primal=primal, dual=dual,
            gap=self.problem.relative_gap(primal, dual) if proves else math.nan, loss=self.loss, C=self.C,
            classes=None if self.regression else np.unique(self.y), tol=tol,
            epsilon=self.epsilon if self.regression else 0.0,
        )  # fmt: skip


def clarabel_dual(K: np.ndarray, sign: Any, target: Any, cost: Any, price: float) -> tuple[np.ndarray, float]:
    """Multipliers with −cost or 0 ≤ alpha ≤ cost that maximise alpha·target − price |alpha| − ½ aᵀKa, and the bias."""
    n, two = len(cost), bool(price)
    # alpha = p − m with p, m ≥ 0; a classifier has no m.
    signs = np.concatenate([sign, -sign]) if two else np.asarray(sign)
    whole = np.tile(K, (2, 2)) if two else K
    P = sp.csc_matrix(np.triu(whole * np.outer(signs, signs)))
    q = np.concatenate([price - target, price + target]) if two else -np.asarray(target)
    m = len(signs)
    A = sp.csc_matrix(np.vstack([signs, np.eye(m), -np.eye(m)]))
    b = np.concatenate([[0.0], np.tile(cost, m // n), np.zeros(m)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-11
    solution = clarabel.DefaultSolver(P, q, A, b, [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * m)], settings)
    found = solution.solve()
    x = np.clip(found.x, 0.0, np.tile(cost, m // n))
    return (x[:n] - x[n:] if two else x), float(found.z[0])

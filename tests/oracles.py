"""Independent answers: conic programs for Clarabel, linear programs for HiGHS, and plain arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

Vector = np.ndarray


def objective(X: Any, y: Vector, cost: Vector, w: Vector, b: float, power: int) -> float:
    """½‖w‖² + Σ cost ξ^power, written out."""
    total = 0.5 * float(np.dot(w, w))
    dense = X.toarray() if sp.issparse(X) else np.asarray(X)
    for x, label, c in zip(dense, y, cost, strict=True):
        total += c * max(0.0, 1.0 - label * (float(np.dot(x, w)) + b)) ** power
    return total


def clarabel_optimum(X: Any, y: Vector, cost: Vector, power: float, bias: bool = True) -> float | None:
    """Optimal value of the primal over (w, b, ξ), or None where Clarabel does not converge."""
    return Form("slack", power=power).solve(X, y, cost, bias=bias).reported


@dataclass(frozen=True)
class Answer:
    """What Clarabel found.

    ``value`` is the objective of its weights and biases, by plain arithmetic: it bounds the optimum from above whatever
    Clarabel says. ``reported`` is Clarabel's own value, None unless it converged.
    """

    value: float
    reported: float | None
    W: Vector
    b: Vector

    def reliable(self, smallest: float, tolerance: float = 1e-7) -> bool:
        """Whether both values agree, so that rounding and infeasibility inside Clarabel do not matter."""
        if self.reported is None:
            return False
        return abs(self.value - self.reported) <= tolerance * max(abs(self.value), smallest)


@dataclass(frozen=True)
class Form:
    """R(W) + Σ cost_i ℓ_i. Labels y are −1/+1 (slack, logistic), numbers (error) or 0 … k−1 (joint losses).

    =============== ==================================================
    slack           max(0, 1 − y f)^power
    error           max(0, |y − f| − epsilon)^power
    logistic        ln(1 + exp(−y f))
    crammer_singer  max_m (f_m + [m ≠ y]) − f_y
    multinomial     ln Σ_m exp f_m − f_y
    =============== ==================================================
    """

    loss: str
    power: float = 1.0
    epsilon: float = 0.0
    penalty: str = "l2"

    @property
    def joint(self) -> bool:
        return self.loss in ("crammer_singer", "multinomial")

    def objective(self, X: Any, y: Vector, cost: Vector, W: Vector, b: Vector) -> float:
        """The primal, without any solver; W has one line and b one entry per class, or just one."""
        scores = np.asarray(X @ np.atleast_2d(W).T) + np.ravel(b)
        live = cost > 0.0
        penalty = 0.5 * float((W**2).sum()) if self.penalty == "l2" else float(np.abs(W).sum())
        return penalty + math.fsum(cost[live] * self._losses(scores[live], y[live]))

    def _losses(self, scores: Vector, y: Vector) -> Vector:
        f = scores[:, 0]
        if self.loss == "slack":
            return np.maximum(0.0, 1.0 - y * f) ** self.power
        if self.loss == "error":
            return np.maximum(0.0, np.abs(y - f) - self.epsilon) ** self.power
        if self.loss == "logistic":
            return np.logaddexp(0.0, -y * f)
        own = scores[np.arange(len(y)), y]
        if self.loss == "multinomial":
            return np.logaddexp.reduce(scores, axis=1) - own
        return (scores + (np.arange(scores.shape[1]) != y[:, None])).max(axis=1) - own

    def at_zero(self, X: Any, y: Vector, cost: Vector) -> float:
        """The objective of zero weights and biases: the problem's size."""
        k = int(y.max()) + 1 if self.joint else 1
        return self.objective(X, y, cost, np.zeros((k, X.shape[1])), np.zeros(k))

    def solve(self, X: Any, y: Vector, cost: Vector, *, bias: bool = True) -> Answer:
        """The conic program over weights, biases and one slack per row; rows without cost are left out."""
        live = cost > 0.0
        program, scores = self._program(sp.csr_array(X)[live], y[live], int(y.max()) + 1 if self.joint else 1, bias)
        self._constrain(program, scores, y[live])
        if self.penalty == "l1":
            program.linear("plus", 1.0)
            program.linear("minus", 1.0)
        else:
            program.quadratic("plus", 1.0)
        if self.power == 2.0:
            program.quadratic("slack", 2.0 * cost[live])
        else:
            program.linear("slack" if self.power == 1.0 else "height", cost[live])
        z, reported = program.solve()
        W = (program["plus"] @ z - (program["minus"] @ z if self.penalty == "l1" else 0.0)).reshape(-1, X.shape[1])
        b = program["bias"] @ z
        return Answer(self.objective(X, y, cost, W, b), reported, W, b)

    def _program(self, X: Any, y: Vector, k: int, bias: bool) -> tuple[Program, list[Any]]:
        """Variables, and the scores of every class as functions of them."""
        n, d = X.shape
        program = Program(plus=k * d, minus=k * d, bias=k, slack=n, height=n, shares=n * max(2, k))
        weights = program["plus"] - program["minus"] if self.penalty == "l1" else program["plus"]
        if self.penalty == "l1":
            program.require(program["plus"])
            program.require(program["minus"])
        ones = sp.csr_array(np.full((n, 1), 1.0 if bias else 0.0))
        scores = [X @ weights[m * d : (m + 1) * d] + ones @ program["bias"][m : m + 1] for m in range(k)]
        return program, scores

    def _constrain(self, program: Program, scores: list[Any], y: Vector) -> None:
        slack, one = program["slack"], np.ones(len(y))
        if self.loss == "error":
            program.require(slack)
            program.require(slack + scores[0], self.epsilon * one - y)
            program.require(slack - scores[0], self.epsilon * one + y)
        elif self.loss == "slack":
            program.require(slack)
            program.require(sp.diags_array(y.astype(float)) @ scores[0] + slack, -one)
        elif self.loss == "logistic":
            self._sum_of_exponentials(program, [0.0 * scores[0], sp.diags_array(-y.astype(float)) @ scores[0]])
        else:
            own = sum(sp.diags_array((y == m).astype(float)) @ f for m, f in enumerate(scores))
            if self.loss == "multinomial":
                self._sum_of_exponentials(program, [f - own for f in scores])
            else:
                for m, f in enumerate(scores):
                    program.require(own - f + slack, -(y != m).astype(float))
        if self.power not in (1.0, 2.0):  # height^(1/p) · 1^(1 − 1/p) ≥ |slack|
            program.require_cones("power", program["height"], slack, 1.0 / self.power)

    @staticmethod
    def _sum_of_exponentials(program: Program, exponents: list[Any]) -> None:
        """ln Σ_m exp(e_m) ≤ slack: shares p_m ≥ exp(e_m − slack) that sum to 1 at most."""
        n = exponents[0].shape[0]
        shares = [program["shares"][m * n : (m + 1) * n] for m in range(len(exponents))]
        for exponent, share in zip(exponents, shares, strict=True):
            program.require_cones("exponential", exponent - program["slack"], share)
        program.require(-sum(shares[1:], shares[0]), np.ones(n))


class Program:
    """min ½ z'Pz + q'z over named blocks of z, with affine functions of z in cones; unused entries of z stay 0."""

    def __init__(self, **sizes: int) -> None:
        self.n = sum(sizes.values())
        self.eye, self.blocks, begin = sp.eye_array(self.n, format="csr"), {}, 0
        for name, size in sizes.items():
            self.blocks[name] = slice(begin, begin + size)
            begin += size
        self.P, self.q = np.zeros(self.n), np.zeros(self.n)
        self.matrices: list[Any] = []
        self.constants: list[Vector] = []
        self.cones: list[tuple[Any, ...]] = []

    def __getitem__(self, name: str) -> Any:
        """The matrix that picks a block out of z."""
        return self.eye[self.blocks[name]]

    def quadratic(self, name: str, weight: Any) -> None:
        """Add ½ Σ weight z²."""
        self.P[self.blocks[name]] = weight

    def linear(self, name: str, weight: Any) -> None:
        """Add Σ weight z."""
        self.q[self.blocks[name]] = weight

    def require(self, matrix: Any, constant: Vector | None = None) -> None:
        """matrix z + constant ≥ 0."""
        self.matrices.append(matrix)
        self.constants.append(np.zeros(matrix.shape[0]) if constant is None else constant)
        self.cones.append(("nonnegative", matrix.shape[0]))

    def require_cones(self, kind: str, first: Any, third: Any, exponent: float = 0.0) -> None:
        """(first_i, 1, third_i) in a cone for each i.

        "power": first^exponent ≥ |third|; "exponential": exp(first) ≤ third.
        """
        n = first.shape[0]
        order = np.arange(3 * n).reshape(3, n).T.ravel()
        self.matrices.append(sp.vstack([first, sp.csr_array((n, self.n)), third], format="csr")[order])
        self.constants.append(np.tile([0.0, 1.0, 0.0], n))
        self.cones += [(kind, exponent)] * n

    def solve(self) -> tuple[Vector, float | None]:
        """z, and the objective if Clarabel converged."""
        import clarabel

        matrix = sp.vstack(self.matrices, format="csc")
        used = np.flatnonzero(np.diff(matrix.indptr) + (self.P != 0.0) + (self.q != 0.0))
        make = {
            "nonnegative": clarabel.NonnegativeConeT,
            "power": clarabel.PowerConeT,
            "exponential": lambda _: clarabel.ExponentialConeT(),
        }
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        # The cones of powers and exponentials seldom allow more.
        tolerance = 1e-10 if all(kind == "nonnegative" for kind, _ in self.cones) else 1e-9
        settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = tolerance
        solver = clarabel.DefaultSolver(
            sp.csc_matrix(sp.diags_array(self.P[used])), self.q[used], sp.csc_matrix(-matrix[:, used]),
            np.concatenate(self.constants), [make[kind](size) for kind, size in self.cones], settings,
        )  # fmt: skip
        answer = solver.solve()
        z = np.zeros(self.n)
        z[used] = answer.x
        return z, float(answer.obj_val) if str(answer.status) == "Solved" else None


def hard_margin(X: Any, y: Vector) -> tuple[bool | None, float | None]:
    """Whether a hyperplane separates labels −1/+1 (None: HiGHS cannot tell), and the least ½‖w‖² at margin 1."""
    from scipy.optimize import linprog

    n, d = X.shape
    dense = X.toarray() if sp.issparse(X) else np.asarray(X)
    size = np.abs(dense).max(axis=0, initial=0.0)
    scaled = dense / np.where(size > 0.0, size, 1.0)
    signed = y[:, None] * np.hstack([scaled, np.ones((n, 1))])
    # The largest t with y (Xw + b) ≥ t and |w|, |b| ≤ 1: 0 if nothing separates.
    result = linprog(
        np.append(np.zeros(d + 1), -1.0), A_ub=np.hstack([-signed, np.ones((n, 1))]), b_ub=np.zeros(n),
        bounds=[(-1.0, 1.0)] * (d + 1) + [(0.0, None)], method="highs",
    )  # fmt: skip
    if result.status != 0:
        return None, None
    if -result.fun <= 1e-9:
        return False, None
    if -result.fun < 1e-5 or (signed @ result.x[:-1]).min() <= 0.0:
        return None, None
    program = Program(w=d, b=1)
    matrix = sp.diags_array(y.astype(float)) @ (sp.csr_array(dense) @ program["w"] + np.ones((n, 1)) * program["b"])
    program.require(sp.csr_array(matrix), -np.ones(n))
    program.quadratic("w", 1.0)
    return True, program.solve()[1]

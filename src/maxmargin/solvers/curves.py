"""What a loss looks like to Newton's method: multipliers pi and curvatures D as functions of the scores.

Each curve describes a convex, once differentiable psi(w, b) = ½‖w‖² + Σ phi_i(f_i) with −phi_i'(f_i) = sign_i pi_i and
phi_i'' = D_i. For smooth losses psi is the primal itself. For the others it is the augmented Lagrangian with anchors
a_i and penalties sigma_i, whose multipliers solve

    maximise over u   u r − c h*(u/c) − (u − a)²/(2 sigma),    r = target − sign·f.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.losses import DualBox, Loss, SlackPower

Vector = NDArray[np.float64]


class At(NamedTuple):
    """What a curve says at some scores."""

    pi: Vector
    D: Vector
    signed: Vector  # sign·pi
    balance: float  # Σ signed
    moved: float  # Σ (pi − anchor)²; 0 for smooth losses, which have no anchor
    size: float  # Σ |pi|
    curvature: float  # Σ D


class Curve(Protocol):
    """Multipliers and curvatures at scores; then the derivative along a direction."""

    exact: bool  # psi is quadratic between finitely many pieces, so that a full step within one is exact

    def at(self, scores: Vector, b: float) -> At:
        """pi, D and their sums at these scores, to which b is added; signed is overwritten by the next call."""
        ...

    def along(self, d_scores: Vector, db: float) -> None:
        """Look from the last scores into this direction."""
        ...

    def slope(self, t: float) -> float:
        """Σ pi_i(scores + t d_scores) sign_i d_scores_i."""
        ...


def _looked(sign: Vector, pi: Vector, D: Vector, moved: float) -> At:
    signed = sign * pi
    return At(pi, D, signed, float(signed.sum()), moved, float(np.abs(pi).sum()), float(D.sum()))


class Piecewise:
    """Losses whose dual is a box: hinge and ε-insensitive with penalties, their squares without."""

    exact = True

    def __init__(
        self, sign: Vector, target: Vector, box: DualBox, sigma: Vector, anchor: Vector, n_threads: int = 1
    ) -> None:
        self.sign, self.target, self.box, self.sigma, self.anchor = sign, target, box, sigma, anchor
        self.n_threads = n_threads
        self.z, self._signed = np.empty_like(sign), np.empty_like(sign)

    def at(self, scores: Vector, b: float) -> At:
        box, pi, D = self.box, np.empty_like(self.z), np.empty_like(self.z)
        sums = _core.clipped_point(
            scores, b, self.sign, self.target, self.anchor, box.lower, box.upper, self.sigma, box.tube, self.z, pi,
            self._signed, D, self.n_threads,
        )  # fmt: skip
        return At(pi, D, self._signed, *sums)

    def along(self, d_scores: Vector, db: float) -> None:
        self.dm = self.sign * (d_scores + db)

    def slope(self, t: float) -> float:
        box = self.box
        return _core.clipped_slope(self.z, self.dm, box.lower, box.upper, self.sigma, box.tube, t, self.n_threads)


class Smooth:
    """Losses with a second derivative everywhere: logistic, slack to a power of 2 or more."""

    exact = False

    def __init__(self, sign: Vector, target: Vector, cost: Vector, loss: Loss) -> None:
        self.sign, self.target, self.cost, self.loss = sign, target, cost, loss

    def at(self, scores: Vector, b: float) -> At:
        self.r = self.target - self.sign * (scores + b)
        slope, curvature = self.loss.slope_and_curvature(self.r)
        return _looked(self.sign, self.cost * slope, self.cost * curvature, 0.0)

    def along(self, d_scores: Vector, db: float) -> None:
        self.dm = self.sign * (d_scores + db)

    def slope(self, t: float) -> float:
        return float((self.cost * self.loss.slope(self.r - t * self.dm)) @ self.dm)


class LowPower:
    """Slack to a power between 1 and 2, whose curvature is infinite where the slack begins; penalties bound it."""

    exact = False

    def __init__(
        self, sign: Vector, target: Vector, cost: Vector, loss: SlackPower, sigma: Vector, anchor: Vector
    ) -> None:
        self.sign, self.target, self.cost, self.power = sign, target, cost, loss.power
        self.sigma, self.anchor = sigma, anchor

    def at(self, scores: Vector, b: float) -> At:
        self.z = self.anchor + self.sigma * (self.target - self.sign * (scores + b))
        pi, slack = self._solve(self.z)
        p1 = self.power - 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            curvature = np.where(pi > 0.0, slack / (p1 * pi), 0.0)  # d slack / d pi
        inside = (self.z > 0.0) & (self.cost > 0.0)
        moved = pi - self.anchor
        D = np.where(inside, self.sigma / (1.0 + self.sigma * curvature), 0.0)
        return _looked(self.sign, pi, D, float(moved @ moved))

    def along(self, d_scores: Vector, db: float) -> None:
        self.dm = self.sign * (d_scores + db)

    def slope(self, t: float) -> float:
        return float(self._solve(self.z - t * self.sigma * self.dm)[0] @ self.dm)

    def _solve(self, z: Vector) -> tuple[Vector, Vector]:
        """pi = p c v and slack = v^m, m = 1/(p − 1), with sigma v^m + p c v = z: Newton from the right of the root."""
        m = 1.0 / (self.power - 1.0)
        price = self.power * self.cost
        z = np.where(self.cost > 0.0, np.maximum(z, 0.0), 0.0)
        with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
            v = np.minimum(np.where(price > 0.0, z / price, 0.0), (z / self.sigma) ** (1.0 / m))
            for _ in range(60):
                bent = self.sigma * v ** (m - 1.0)
                step = np.where(v > 0.0, (bent * v + price * v - z) / (m * bent + price), 0.0)
                v = np.maximum(v - step, 0.0)
                if np.all(np.abs(step) <= 1e-15 * v):
                    break
            return price * v, v**m

"""Proof for machines whose margin, tube or threshold is found by a share ν of the weight, with any kernel.

With costs c_i, T = Σ c_i, a_i = sign_i alpha_i, f = K a and q = aᵀK a; a minimum has no objective below D:

    "nu_hinge"   P = q/2 + Σ c_i max(0, ρ − y_i (f_i + b)) − νT ρ     D = −q/2,  0 ≤ alpha ≤ c, Σ alpha ≥ νT
                 over ρ ≥ 0                                            and Σ y_i alpha_i = 0
    "nu_tube"    P = q/2 + Σ c_i max(0, |y_i − f_i − b| − ε) + νT ε   D = Σ y_i alpha_i − q/2,  |alpha| ≤ c,
                 over ε ≥ 0                                            Σ |alpha| ≤ νT and Σ alpha_i = 0
    "one_class"  P = q/2 + Σ c_i max(0, ρ − f_i) − νT ρ               D = −q/2,  0 ≤ alpha ≤ c, Σ alpha ≥ νT
    "ball"       P = q/2 + Σ c_i max(0, ρ + νT k(x_i, x_i)/2 − f_i) − νT ρ
                 D = Σ alpha_i νT k(x_i, x_i)/2 · νT/Σ alpha − q/2,  as above

For the last two ρ is free, which asks for Σ alpha = νT; multipliers that sum up to more are divided by what is too
much, after which q is no larger. The ball has the centre w/νT and the squared radius q/(νT)² − 2ρ/νT.

References
----------
Schölkopf, Smola, Williamson, Bartlett: New support vector algorithms, 2000. Schölkopf, Platt, Shawe-Taylor, Smola,
Williamson: Estimating the support of a high-dimensional distribution, 2001. Tax, Duin: Support vector data
description, 2004.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.certificates.blocks import blocks, readable
from maxmargin.certificates.claim import INFINITE
from maxmargin.certificates.expansion import ExpansionCertificate, Recomputed
from maxmargin.certificates.expansion_terms import expansion_claim
from maxmargin.certificates.joint_terms import JointTerms
from maxmargin.certificates.kernel_rounding import RowSizes
from maxmargin.certificates.kernel_structure import Structure, known
from maxmargin.certificates.kernel_values import Support
from maxmargin.certificates.losses import arithmetic_of
from maxmargin.certificates.rounding import NEARLY, UNIT, Approximate, Interval
from maxmargin.certificates.terms import CAREFUL, Terms
from maxmargin.certificates.verdict import Checks, Verdict, all_finite, known_class_weight

Vector = NDArray[np.float64]
Chosen = NDArray[np.intp]

ROOM = 2.0**-40  # relative: so much easier is νT to reach, whatever is rounded


@dataclass(frozen=True)
class Kind:
    """``labels``: of two classes, numbers, or none; ``bias``: whether there is one; ``free``: ρ may be negative."""

    labels: str
    bias: bool = False
    free: bool = False


KINDS = {
    "nu_hinge": Kind("classes", bias=True),
    "nu_tube": Kind("numbers", bias=True),
    "one_class": Kind("none", free=True),
    "ball": Kind("none", free=True),
}


def nu_level(kind: str, cost: Vector, nu: float) -> float:
    """νT as the problem has it: so little below (of a tube: above) that multipliers can reach it in float64.

    Examples
    --------
    >>> nu_level("one_class", np.ones(10), 0.2) < 2.0 < nu_level("nu_tube", np.ones(10), 0.2) < 2.0 + 1e-11
    True
    """
    return nu * math.fsum(cost.tolist()) * (1.0 + ROOM if kind == "nu_tube" else 1.0 - ROOM)


@dataclass(frozen=True)
class NuTerms(Terms):
    """The problem with a share ν: ``size`` is ρ, or ε of a tube, ``level`` is νT.

    Of a ball, ``lift`` is νT k(x_i, x_i)/2 with errors of at most ``lift_off``, and ``shrink`` at most νT/Σ alpha.
    """

    kind: str = "nu_hinge"
    level: float = 0.0
    size: float = 0.0
    lift: Vector | None = None
    lift_off: Any = 0.0
    shrink: float = 1.0

    def penalties(self, w: Vector, b: float, *, factor: float = 1.0) -> Interval:
        price = self.level * (self.size if self.kind == "nu_tube" else -self.size)
        off = 2.0 * factor * UNIT * abs(price)
        return super().penalties(w, b, factor=factor) + Interval(price - off, price + off)

    def loss_terms(self, b: float, scores: Approximate, part: slice, *, factor: float = 1.0) -> tuple[Vector, Vector]:
        if self.lift is not None:
            scores = Approximate(scores.value, scores.off + self.lift_off[part], -self.lift[part])
        return super().loss_terms(b, scores, part, factor=factor)

    def gain_terms(self, alpha: Vector, part: slice) -> tuple[Vector, float]:
        if self.lift is not None:
            gain = self.shrink * alpha * self.lift[part]
            return gain, float(np.abs(alpha) @ self.lift_off[part] + 3.0 * UNIT * np.abs(gain).sum()) * NEARLY
        gain = alpha * self.target[part] if self.kind == "nu_tube" else 0.0 * alpha
        return gain, 2.0 * UNIT * float(np.abs(gain).sum()) * NEARLY

    def reached(self, alpha: Vector) -> bool:
        """Whether Σ |alpha| is at least νT, of a tube at most, exactly."""
        try:
            missing = math.fsum(chain([self.level], (-np.abs(alpha)).tolist()))
        except (OverflowError, ValueError):
            return False
        return missing >= 0.0 if self.kind == "nu_tube" else missing <= 0.0

    def lifted(self, own: Vector, own_off: Vector, alpha: Vector) -> NuTerms:
        """With k(x_i, x_i) of every row, for a ball."""
        most = float(alpha.sum()) * NEARLY
        shrink = self.level / math.fsum(alpha.tolist()) * (1.0 - 4.0 * UNIT) if most > 0.0 else 1.0
        lift = 0.5 * self.level * own
        off = 0.5 * self.level * own_off + UNIT * np.abs(lift)
        return replace(self, lift=lift, lift_off=off * NEARLY, shrink=min(1.0, shrink))

    def at_most(self) -> float:
        return 0.0

    def null_primal(self, *, free: bool) -> float:
        return 0.0


def nu_terms(kind: str, cost: Vector, nu: float, size: float, y: Vector | None = None) -> NuTerms:
    """The problem of one kind; ``y`` are signs of classes or targets of a tube, and ``size`` is ρ or ε."""
    tube, ones = kind == "nu_tube", np.ones(len(cost))
    h = arithmetic_of("epsilon_insensitive" if tube else "hinge", math.nan, size)
    assert h is not None
    given = ones if y is None else y
    sign, target = (ones, given) if tube else (given, size * ones)
    return NuTerms(h, sign, target, cost, kind=kind, level=nu_level(kind, cost, nu), size=size)


def nu_claim(
    terms: NuTerms, structure: Structure, alpha: Vector, b: float, f: Vector, sums: Vector, sizes: RowSizes, *,
    own: Vector | None = None, own_off: Vector | None = None, definite: bool = True, additions: int | None = None,
    moved: float = 0.0, factor: float = CAREFUL,
) -> tuple[float, float]:  # fmt: skip
    """The strongest claim (primal, dual) that a certificate confirms; see
    :func:`~maxmargin.certificates.expansion_terms.expansion_claim`.

    Of a ball, ``own`` is k(x_i, x_i) of every row with errors of at most ``own_off``.
    """
    if own is not None and own_off is not None:
        terms = terms.lifted(own, own_off, alpha)
    return expansion_claim(
        terms, structure, alpha, b, f, sums, sizes, definite=definite, additions=additions, moved=moved, factor=factor
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NuCertificate(ExpansionCertificate):
    """A claim about a machine with a share ν, with its proof: multipliers that are both the function and a dual point.

    ``kind`` names the problem, see :mod:`~maxmargin.certificates.nu`; ``rho`` is ρ, ``epsilon`` the half-width of a
    tube. Hypotheses are those of :class:`~maxmargin.certificates.expansion.ExpansionCertificate`.

    Examples
    --------
    >>> alpha = np.array([0.5, 0.5])
    >>> terms, half = nu_terms("one_class", np.ones(2), 0.5, 0.5), 0.5 * np.ones(2)
    >>> primal, dual = nu_claim(terms, ("linear",), alpha, 0.0, half, half, RowSizes(2, 1.0, 1.0))
    >>> certificate = NuCertificate(
    ...     kind="one_class", kernel=("linear",), alpha=alpha, intercept=0.0, rho=0.5, nu=0.5, primal=primal,
    ...     dual=dual, gap=(primal - dual) / abs(dual), tol=1e-6,
    ... )
    >>> bool(certificate.verify([[1.0, 0.0], [0.0, 1.0]])), bool(certificate.verify([[1.0, 0.0], [0.0, 1.1]]))
    (True, False)
    """

    kind: str
    nu: float
    rho: float = 0.0
    C: float = 1.0
    classes: NDArray[Any] | None = None
    loss: str = field(init=False, default="nu")

    def __repr__(self) -> str:
        return super().__repr__().replace("nu,", f"{self.kind}, nu={self.nu:g},", 1)

    @property
    def size(self) -> float:
        """ρ, or ε of a tube."""
        return self.epsilon if self.kind == "nu_tube" else self.rho

    @property
    def regression(self) -> bool:
        return self.kind == "nu_tube"

    def verify(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, *, max_gap: float | None = None
    ) -> Verdict:
        """Recompute everything from the data; y is not looked at where a machine has no labels."""
        if self.kind in KINDS and KINDS[self.kind].labels == "none":
            X = readable(X)
            y = np.zeros(X.shape[0])
        return super().verify(X, y, sample_weight, max_gap=max_gap)

    def _numbers(self) -> tuple[Any, ...]:
        return *super()._numbers(), self.nu, self.rho, self.epsilon

    def _problem(self, labels: NDArray[Any], weight: Vector, checks: Checks) -> Any:
        if not checks.note("kernel", known(self.kernel), f"there is no kernel {self.kernel!r:.80}"):
            return None
        kind = KINDS.get(self.kind) if isinstance(self.kind, str) else None
        right = kind is not None and 0.0 < self.nu <= 1.0 and (kind.free or self.size >= 0.0) and 0.0 < self.C < np.inf
        right = right and (self.classes is not None) == (kind is not None and kind.labels == "classes")
        plain = self.penalty == "l2" and not self.penalty_scale and self.fit_intercept is True
        right = right and plain and known_class_weight(self.class_weight)
        what = f"there is no problem {self.kind!r:.40} with nu={self.nu!r}, size {self.size!r} and C={self.C!r}"
        if not checks.note("loss", right, what):
            return None
        found = self._labelled(labels, weight, checks)
        if found is None:
            return None
        position, target, weight = found
        finite = all_finite(weight, target, self.tol, *self._values(), *self._numbers())
        if not checks.note("finite", finite, INFINITE):
            return None
        cost = self.C * weight
        usable = self._usable(cost, weight, position)
        if not checks.note("weights", usable, "C or a weight is negative, or a class has none"):
            return None
        y = {"classes": np.where(position == 1, 1.0, -1.0), "numbers": target}.get(KINDS[self.kind].labels)
        return nu_terms(self.kind, cost, self.nu, self.size, y)

    def _check_dual_point(self, terms: Terms | JointTerms, checks: Checks) -> None:
        assert isinstance(terms, NuTerms)
        super()._check_dual_point(terms, checks)
        than = "more" if self.kind == "nu_tube" else "less"
        checks.note("level", terms.reached(self.alpha), f"the multipliers sum up to {than} than nu times the weight")

    @property
    def _biased(self) -> bool:
        return KINDS[self.kind].bias

    def sums(self, terms: Terms | JointTerms, X: Any, chosen: Chosen | None, *, exact: bool) -> Recomputed:
        assert isinstance(terms, NuTerms)
        found = super().sums(terms, X, chosen, exact=exact)
        if self.kind != "ball":
            return found
        own = [_own(found.support, block, chosen) for block in blocks(X, chosen)]
        values, off = (np.concatenate(parts) for parts in zip(*own, strict=True))
        return Recomputed(self, terms.lifted(values, off, self.alpha), found.support, chosen)


def _own(support: Support, block: Any, chosen: Chosen | None) -> tuple[Vector, Vector]:
    at = np.arange(block.part.start, block.part.stop) if chosen is None else chosen[block.part]
    return support.own(block, at)

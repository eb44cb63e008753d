"""Proof that an expansion Σ a_i k(x, x_i) + b is within a stated gap of the best function in the kernel's space.

See :mod:`~maxmargin.certificates.expansion_terms` for the objectives and
:mod:`~maxmargin.certificates.kernel_rounding` for what rounding may do to them. Verification compares a block of rows
with a strip of support rows at a time: it holds copies of the support rows, and never an n by n matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin.certificates.blocks import Block
from maxmargin.certificates.claim import Claim
from maxmargin.certificates.expansion_terms import ExpansionSums
from maxmargin.certificates.joint_terms import JointTerms
from maxmargin.certificates.kernel_rounding import RowSizes, score_off
from maxmargin.certificates.kernel_structure import Structure, definite, known, names_in
from maxmargin.certificates.kernel_values import Scores, Support
from maxmargin.certificates.rounding import NEARLY, UNIT, Approximate
from maxmargin.certificates.terms import FARTHEST, Terms, most_moved
from maxmargin.certificates.verdict import Checks, Proven, Verdict

Vector = NDArray[np.float64]
Chosen = NDArray[np.intp]

TESTED = 1000  # support rows whose Gram matrix is tested, where nobody knows that it is positive semidefinite
MOST_STRETCH = 1.5  # more explains no rounding
NO_GAP = "the kernel is not positive semidefinite: this is a stationary point at best, and no gap is known"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ExpansionCertificate(Claim):
    """A claim about a kernel machine, with its proof: multipliers that are both the function and a dual point.

    ``kernel`` is a structure of :mod:`~maxmargin.certificates.kernel_structure`; of a precomputed one, X is the matrix
    of all values. The function is stretch Σ a_i k(x, x_i) + intercept, where a_i is alpha_i times the row's sign.

    Notes
    -----
    Hypotheses: the values of a precomputed kernel are exact, those of a callable nearly so, and both are positive
    semidefinite. The last one is tested on the support rows, if they are at most
    :data:`~maxmargin.certificates.expansion.TESTED`. A kernel that is known to be indefinite proves no gap: the gap
    claimed is NaN, the dual value may be, and a verification says at best that the values are honest.

    Examples
    --------
    >>> from maxmargin.certificates.expansion_terms import expansion_claim
    >>> from maxmargin.certificates.losses import arithmetic_of
    >>> sign, one, k = np.array([-1.0, 1.0]), np.ones(2), np.exp(-1.0)
    >>> terms, alpha = Terms(arithmetic_of("hinge", np.nan, 0.0), sign, one, 10.0 * one), one / (1.0 - k)
    >>> primal, dual = expansion_claim(
    ...     terms, ("rbf", 1.0), alpha, 0.0, alpha * (1.0 - k) * sign, alpha * (1.0 + k), RowSizes(1)
    ... )
    >>> certificate = ExpansionCertificate(
    ...     kernel=("rbf", 1.0), alpha=alpha, intercept=0.0, primal=primal, dual=dual, gap=(primal - dual) / primal,
    ...     loss="hinge", C=10.0, classes=np.array([0, 1]), tol=1e-6,
    ... )
    >>> bool(certificate.verify([[0.0], [1.0]], [0, 1])), bool(certificate.verify([[0.0], [1.1]], [0, 1]))
    (True, False)
    """

    kernel: Structure
    stretch: float = 1.0

    compares_rows: ClassVar[bool] = True

    def __repr__(self) -> str:
        about = f"{self.loss}, {self.kernel[0]} kernel, C={self.C:g}, {len(self.alpha)} rows"
        return (
            f"{type(self).__name__}({about}: objective {self.primal:.6g}, none below {self.dual:.6g}, "
            f"gap {self.gap:.1e} of {self.tol:.0e} asked)"
        )

    @property
    def distance_bound(self) -> float:
        """Largest possible distance of w from the best one, in the kernel's space."""
        return math.inf if self._indefinite else super().distance_bound

    @property
    def _indefinite(self) -> bool:
        if not known(self.kernel) or definite(self.kernel):
            return False
        return definite(self.kernel) is False or math.isnan(self.gap)  # nobody claims a gap

    def _fits(self, shape: tuple[int, int]) -> bool:
        square = not known(self.kernel) or "precomputed" not in names_in(self.kernel) or shape[0] == shape[1]
        return (np.shape(self.alpha), np.shape(self.intercept)) == (shape[:1], ()) and square

    def _shapes(self, X: Any, labels: NDArray[Any]) -> str:
        return (
            f"the claim is about multipliers of shape {np.shape(self.alpha)} and one intercept; X has shape {X.shape}, "
            f"y has {len(labels)} entries, weights must be one or as many, and a precomputed kernel needs a square X"
        )

    def _numbers(self) -> tuple[Any, ...]:
        return self.intercept, self.alpha, self.stretch

    def _values(self) -> tuple[float, ...]:
        if not self._indefinite:
            return super()._values()
        return (self.primal,) if math.isnan(self.dual) else (self.primal, self.dual)

    def _problem(self, labels: NDArray[Any], weight: Vector, checks: Checks) -> Any:
        if not checks.note("kernel", known(self.kernel), f"there is no kernel {self.kernel!r:.80}"):
            return None
        plain = self.penalty == "l2" and not self.joint and 1.0 <= self.stretch <= MOST_STRETCH
        if not checks.note("loss", plain, f"no expansion has loss {self.loss!r} with penalty {self.penalty!r}"):
            return None
        return super()._problem(labels, weight, checks)

    def _asks_again(self, found: Proven) -> bool:
        return "rbf" in names_in(self.kernel) and not found.decide(self._claimed)

    def _judge(
        self, found: Proven, checks: Checks, measure: Callable[[float, float], float], max_gap: float
    ) -> Verdict:
        if self._indefinite:
            return checks.without_gap(self._claimed, found, NO_GAP, max_gap)
        return super()._judge(found, checks, measure, max_gap)

    def sums(self, terms: Terms | JointTerms, X: Any, chosen: Chosen | None, *, exact: bool) -> Recomputed:
        assert isinstance(terms, Terms)
        a = terms.coefficients(self.alpha, slice(None))
        own = np.flatnonzero(a)
        support = Support(self.kernel, X, own if chosen is None else chosen[own], a[own], near=exact)
        return Recomputed(self, terms, support, chosen)


class Recomputed:
    """Both objectives of an expansion from values of the kernel, block by block."""

    def __init__(self, claim: ExpansionCertificate, terms: Terms, support: Support, chosen: Chosen | None) -> None:
        self.claim, self.terms, self.support, self.chosen = claim, terms, support, chosen
        self.b = float(claim.intercept)
        self.sums = ExpansionSums(terms, self.b, definite=not claim._indefinite, stretch=claim.stretch)
        self.most_sums, self.most_f, self.most_square, self.farthest_row, self.columns = 0.0, 0.0, 0.0, 0.0, 0

    def add(self, block: Block) -> None:
        part = block.part
        at = np.arange(part.start, part.stop) if self.chosen is None else self.chosen[part]
        found = self.support.scores(block, at)
        self.sums.add(self.claim.alpha[part], Approximate(found.f, found.off), part)
        self._remember(found, block)

    def _remember(self, found: Scores, block: Block) -> None:
        self.most_sums = max(self.most_sums, float(found.sums.max()))
        self.most_f = max(self.most_f, float(np.abs(found.f).max()))
        self.most_square = max(self.most_square, float(found.sizes.squares.max()))
        self.columns = max(self.columns, found.sizes.columns)
        self.farthest_row = max(self.farthest_row, self.support.farthest(block.X))

    def proven(self) -> Proven:
        sums = self.sums
        provided, refuted = self._hypothesis()
        if sums.definite and not sums.square.high >= 0.0:
            refuted = refuted or "not positive semidefinite: the square of w is negative"
        return Proven(sums.primal, sums.dual, self._farthest(), provided, refuted)

    def _hypothesis(self) -> tuple[str, str]:
        """What the proof takes for granted about the kernel, and what speaks against that."""
        if definite(self.claim.kernel) is not None:
            return "", ""
        n = len(self.support.a)
        if n > TESTED:
            return f"provided that the kernel is positive semidefinite, which was not tested on {n} support rows", ""
        said = f"provided that the kernel is positive semidefinite, as it is on the {n} support rows"
        return said, self.support.not_semidefinite()

    def _farthest(self) -> tuple[float, float]:
        """How far claims may be from what was recomputed: little more than what solvers add.

        A solver may have seen Gaussian rows from any point among them, or from 0.
        """
        claim, terms, support, sums = self.claim, self.terms, self.support, self.sums
        seen = max(self.most_square, 4.0 * self.farthest_row**2)
        sizes = RowSizes(self.columns, self.most_square, support.largest, seen, given=support.given)
        most, n = np.array([self.most_sums]), len(support.a)
        off = float(score_off(claim.kernel, sizes, most, support.total, n + 2, moved=most_moved(claim.alpha))[0])
        of_residual = off + 8.0 * UNIT * (self.most_f + abs(self.b) + float(np.abs(terms.target).max(initial=0.0)))
        of_square = (off * support.total + 64.0 * UNIT * abs(sums.square.high)) * NEARLY
        losses = sums.losses.high
        of_residual *= claim.stretch
        above = 0.0 if terms.hard else terms.loss_above(losses, FARTHEST * of_residual) - losses
        above += FARTHEST * (0.5 * of_square + 16.0 * UNIT * (abs(claim.primal) + losses))
        below = 0.5 * of_square + terms.gain_lost(claim.dual, claim.alpha, abs(sums.square.high))
        return above, FARTHEST * below

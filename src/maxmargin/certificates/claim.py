"""What a fit claims, and the one way in which every claim is verified.

A claim states a problem, in numbers and words, and two bounds: no solution has an objective below ``dual``, and the
one that was found has at most ``primal``. What proves the bounds is a proof's own matter: a subclass brings the
solution and a dual point, and adds up both objectives block by block. :func:`recompute` shows the blocks of X to all
proofs at once, first with plain products, and once more with products of twice the working precision to those that
plain ones could not confirm: X is read at most twice. A proof that compares rows with each other reads its own rows by
itself.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.certificates.blocks import Block, blocks, readable
from maxmargin.certificates.joint_terms import JointTerms
from maxmargin.certificates.losses import arithmetic_of, class_costs
from maxmargin.certificates.terms import Terms
from maxmargin.certificates.verdict import (
    Checks,
    Claimed,
    Proven,
    Verdict,
    all_finite,
    known_class_weight,
    known_labels,
    plain_weights,
    usable_scale,
    verdict_of,
)
from maxmargin.solution import MATTERS, relative_gap

Vector = NDArray[np.float64]
JOINT = ("crammer_singer", "multinomial")  # losses whose scores, one a class, are coupled
NO_HARD_MARGIN = ("logistic", "epsilon_insensitive", "squared_epsilon_insensitive", *JOINT)
INFINITE = "NaN or infinity among the data or the claims"
FEW_ROWS = 1 << 16  # whose multipliers are checked together


class Sums(Protocol):
    """Both objectives of one proof, added up block by block."""

    def add(self, block: Block) -> None: ...

    def proven(self) -> Proven: ...


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Stated:
    """A problem in words and numbers, and the relative gap that the fit was asked for."""

    loss: str
    C: float
    classes: NDArray[Any] | None
    tol: float
    class_weight: dict[Any, float] | str | None = None
    fit_intercept: bool = True
    penalty_scale: float | None = None
    penalty: str = "l2"
    power: float = math.nan
    epsilon: float = 0.0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Claim(Stated, ABC):
    """A problem and two bounds. Solves nothing; :meth:`verify` recomputes everything from the data.

    Guarantees
    ----------
    If ``verify`` does not reject, no objective is below ``dual`` (weak duality; no hypothesis on the data), that of the
    solution is at most ``primal``, and, for the penalty ½‖w‖², the solution is within √(2 (primal − dual)) of the best
    one. Both values contain what rounding may have changed. The data are the floating-point numbers handed over, and
    costs are C times weights as float64 computes them.
    """

    primal: float
    dual: float
    gap: float
    intercept: Any
    alpha: Vector

    compares_rows: ClassVar[bool] = False  # with each other, of which it looks at its own only

    @property
    def distance_bound(self) -> float:
        """Largest possible distance of the weights from the best ones; infinite for the ℓ1 penalty."""
        return math.sqrt(2.0 * max(0.0, self.primal - self.dual)) if self.penalty == "l2" else math.inf

    @property
    def regression(self) -> bool:
        return isinstance(self.loss, str) and self.loss.endswith("epsilon_insensitive")

    @property
    def joint(self) -> bool:
        """Whether the problem has one score a class."""
        return isinstance(self.loss, str) and self.loss in JOINT

    @verdict_of
    def verify(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, max_gap: float | None = None
    ) -> Verdict:
        """Recompute everything from data, solution and dual point.

        Parameters
        ----------
        X, y, sample_weight : what the machine was fitted to.
        max_gap : largest relative gap that counts as near-optimal; by default the ``tol`` that the fit was asked for.
        """
        checks, X, labels = Checks(), readable(X), np.asarray(y).ravel()
        weight = plain_weights(sample_weight, len(labels))
        fits = X.ndim == 2 and X.shape[:1] == labels.shape and weight is not None and self._fits(X.shape)
        if not checks.note("numbers", self._is_float64(), "a claim is made of float64 numbers"):
            return checks.rejected()
        max_gap = self.tol if max_gap is None else max_gap
        if not checks.note("shape", fits, self._shapes(X, labels)) or weight is None:
            return checks.rejected(max_gap)
        job = self.job(labels, weight, checks)
        recompute([job], X)
        return job.verdict(max_gap)

    def job(self, labels: NDArray[Any], weight: Vector, checks: Checks, chosen: NDArray[np.intp] | None = None) -> Job:
        """The work of one verification; ``labels`` and ``weight`` are of the ``chosen`` rows only, None: of all."""
        terms = None if checks.failed else self._problem(labels, weight, checks)
        if terms is not None:
            self._check_dual_point(terms, checks)
        return Job(self, None if checks.failed else terms, checks, chosen)

    def _is_float64(self) -> bool:
        """Whether all numbers are what the bounds are about: those of another type are computed with in that type."""
        arrays = all(isinstance(part, float) or getattr(part, "dtype", None) == np.float64 for part in self._numbers())
        return arrays and all(isinstance(x, float) for x in (self.primal, self.dual, self.gap, self.C, self.tol))

    # --- the problem ------------------------------------------------------------------------------------------

    def _problem(self, labels: NDArray[Any], weight: Vector, checks: Checks) -> Terms | JointTerms | None:
        """The problem that the claim is about; None, with a note, if there is no such problem."""
        h = arithmetic_of("hinge" if self.joint else self.loss, self.power, self.epsilon)
        known = h is not None and self.penalty in ("l1", "l2") and (self.classes is None) == self.regression
        known = known and (np.inf > self.C or self.loss not in NO_HARD_MARGIN) and usable_scale(self.penalty_scale)
        known = known and known_class_weight(self.class_weight) and not (self.joint and self.penalty != "l2")
        what = f"nobody knows loss {self.loss!r} with penalty {self.penalty!r}, C={self.C!r} and these class weights"
        if not checks.note("loss", known, what) or h is None:
            return None
        found = self._labelled(labels, weight, checks)
        if found is None:
            return None
        position, target, weight = found
        finite = all_finite(weight, target, self.tol, *self._values(), *self._numbers())
        if not checks.note("finite", finite, INFINITE):
            return None
        hard = np.inf == self.C
        cost = np.where(weight > 0.0, 1.0, 0.0) if hard else self.C * weight
        if not checks.note(
            "weights", self._usable(cost, weight, position), "C or a weight is negative, or a class has none"
        ):
            return None
        scale = float(self.penalty_scale or 0.0) if self.fit_intercept else 0.0
        if self.joint:
            assert self.classes is not None
            return JointTerms(self.loss, position, cost, len(self.classes), scale)
        if self.classes is None:
            return Terms(h, np.ones(len(target)), target, cost, self.penalty, scale, hard)
        sign = np.where(position == 1, 1.0, -1.0)
        return Terms(h, sign, np.full(len(position), h.margin), cost, self.penalty, scale, hard)

    def _labelled(
        self, labels: NDArray[Any], weight: Vector, checks: Checks
    ) -> tuple[NDArray[np.intp], Vector, Vector] | None:
        """The position of every row's class, its target, and its weight with its class's factor."""
        if self.classes is None:
            try:
                return np.zeros(0, dtype=np.intp), np.asarray(labels, dtype=np.float64), weight
            except (TypeError, ValueError):
                checks.note("labels", False, "y holds something that is no number")
                return None
        count = np.size(self.classes)
        right = (count == 2 or (self.joint and count > 1)) and known_labels(labels, self.classes)
        if not checks.note("labels", right, f"y, or the list of classes, is another one than {self.classes!r:.60}"):
            return None
        position = np.searchsorted(self.classes, labels)
        return position, np.empty(0), class_costs(weight, position, self.classes.tolist(), self.class_weight)

    def _usable(self, cost: Vector, weight: Vector, position: NDArray[np.intp]) -> bool:
        if not self.C > 0.0 or weight.min(initial=0.0) < 0.0 or not np.isfinite(cost).all() or not cost.any():
            return False
        if self.classes is None or self.joint:
            return True
        return bool(cost[position == 1].any() and cost[position == 0].any())

    def _values(self) -> tuple[float, ...]:
        """Everything that is claimed."""
        return self.primal, self.dual, self.gap

    def _check_dual_point(self, terms: Terms | JointTerms, checks: Checks) -> None:
        """Whether the dual point is feasible, exactly."""
        n = len(self.alpha)
        parts = (slice(begin, min(n, begin + FEW_ROWS)) for begin in range(0, n, FEW_ROWS))
        feasible = all(terms.feasible(self.alpha[part], part) for part in parts)
        checks.note(
            "feasibility", feasible, "a multiplier is outside of its range, or those of a row do not sum to zero"
        )
        balanced = not self._biased or bool(terms.scale) or terms.balanced(self.alpha)
        checks.note("balance", balanced, "with a free bias the multipliers of every class must have the same sum")
        without = self._biased or not np.any(self.intercept)
        checks.note("intercept", without, "a machine without a bias cannot have one")

    @property
    def _biased(self) -> bool:
        """Whether there is a bias."""
        return self.fit_intercept

    def _judge(
        self, found: Proven, checks: Checks, measure: Callable[[float, float], float], max_gap: float
    ) -> Verdict:
        """The verdict, once everything was recomputed."""
        return checks.verdict(self._claimed, found, measure, max_gap)

    @property
    def _claimed(self) -> Claimed:
        return Claimed(self.primal, self.dual, self.gap)

    # --- what a proof brings ----------------------------------------------------------------------------------

    def _asks_again(self, found: Proven) -> bool:
        """Whether X is worth a second look, which loses less to rounding."""
        return not found.confirm(self._claimed)

    @abstractmethod
    def _fits(self, shape: tuple[int, int]) -> bool:
        """Whether solution and dual point belong to rows of this shape."""

    @abstractmethod
    def _shapes(self, X: Any, labels: NDArray[Any]) -> str:
        """In words, what they belong to."""

    @abstractmethod
    def _numbers(self) -> tuple[Any, ...]:
        """Everything that must be finite."""

    @abstractmethod
    def sums(self, terms: Terms | JointTerms, X: Any, chosen: NDArray[np.intp] | None, *, exact: bool) -> Sums:
        """Where both objectives are added up; X and its ``chosen`` rows are for those that look at other rows, too."""


class Job:
    """One verification on its way."""

    def __init__(
        self, claim: Claim, terms: Terms | JointTerms | None, checks: Checks, chosen: NDArray[np.intp] | None
    ) -> None:
        self.claim, self.terms, self.checks, self.chosen = claim, terms, checks, chosen
        self.found: Proven | None = None
        self.finite = True
        self._sums: Sums | None = None

    @property
    def waits(self) -> bool:
        """Whether X has to be looked at, again."""
        if self.terms is None or not self.finite:
            return False
        return self.found is None or self.claim._asks_again(self.found)

    @property
    def own_rows(self) -> NDArray[np.intp] | None:
        """Those that are read for this claim alone, if they are; None: all."""
        return self.chosen if self.claim.compares_rows else None

    def begin(self, X: Any, *, exact: bool) -> None:
        assert self.terms is not None
        self._sums = self.claim.sums(self.terms, X, self.chosen, exact=exact)

    def add(self, block: Block) -> None:
        assert self._sums is not None
        own = block if self.chosen is None or self.claim.compares_rows else block.of(self.chosen)
        if len(own):
            self._sums.add(own)

    def end(self) -> None:
        assert self._sums is not None
        self.found, self._sums = self._sums.proven(), None

    def verdict(self, max_gap: float) -> Verdict:
        claim, terms, checks = self.claim, self.terms, self.checks
        if not self.finite:
            checks.note("finite", False, INFINITE)
        if self.found is not None and self.found.refuted:
            checks.note("kernel", False, self.found.refuted)
        if checks.failed or terms is None or self.found is None:
            return checks.rejected(max_gap)
        return claim._judge(self.found, checks, self._relative_gap, max_gap)

    def _relative_gap(self, primal: float, dual: float) -> float:
        """As solvers measure it; the objective at w = 0 is only computed where it may count."""
        assert self.terms is not None
        if max(abs(primal), abs(dual)) > MATTERS * self.terms.at_most():
            return relative_gap(primal, dual, 0.0)
        free = self.claim.fit_intercept and not self.terms.scale
        return relative_gap(primal, dual, self.terms.null_primal(free=free))


def recompute(jobs: list[Job], X: Any) -> None:
    """Show X to all jobs: once with plain products, once more to those that these could not confirm."""
    together = [job for job in jobs if not job.claim.compares_rows]
    for group in (together, *([job] for job in jobs if job.claim.compares_rows)):
        for exact in (False, True):
            _show(group, X, exact=exact)


def _show(jobs: list[Job], X: Any, *, exact: bool) -> None:
    """All rows, or the one job's own, a block at a time, to those that wait."""
    waiting = [job for job in jobs if job.waits]
    for job in waiting:
        job.begin(X, exact=exact)
    for block in blocks(X, jobs[0].own_rows) if waiting else ():
        if not exact and not block.finite:
            for job in jobs:
                job.finite = False
            return
        for job in waiting:
            job.add(block)
    for job in waiting:
        job.end()

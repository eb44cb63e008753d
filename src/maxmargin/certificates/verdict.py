"""What a verification says: proven, honest but not near-optimal, or rejected."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import wraps
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.certificates.rounding import Interval
from maxmargin.positions import distinct

Vector = NDArray[np.float64]


class Outcome(Enum):
    """The three things a verification can find. The value is the word shown to people."""

    PROVEN = "verified"
    HONEST = "NOT PROVEN"
    REJECTED = "REJECTED"


@dataclass(frozen=True)
class Verdict:
    """Result of a verification, of whatever claim; true if and only if what it claims is proven.

    Attributes
    ----------
    outcome : PROVEN (every claim holds and the gap, if there is one, is at most ``max_gap``), HONEST (every claim
        holds, but the gap is larger, or nothing was claimed) or REJECTED (a claim is false, or cannot be confirmed).
    worst : the first check that failed, "gap" for an honest claim whose gap is too large, "" if all is well.
    checks : what was wrong with each check, in words; "" where nothing was.
    statement : what was proven, in words, or under which hypothesis; of an honest claim, what is missing.
    primal, dual : no hyperplane's objective is below ``dual``, and this one's is at most ``primal``: proven, in
        floating point too. Not a number where the claim is about something else, or could not be computed.
    gap : their difference, relative as in :func:`~maxmargin.solution.relative_gap`.
    max_gap : the largest gap that counts as near-optimal.
    """

    outcome: Outcome
    worst: str
    checks: dict[str, str]
    statement: str = ""
    primal: float = math.nan
    dual: float = math.nan
    gap: float = math.nan
    max_gap: float = math.nan

    @property
    def accepted(self) -> bool:
        """Whether the claim is proven."""
        return self.outcome is Outcome.PROVEN

    def __bool__(self) -> bool:
        return self.accepted

    def __str__(self) -> str:
        said = f"{self.worst}: {self.checks[self.worst]}" if self.outcome is Outcome.REJECTED else self.words
        return f"{self.outcome.value}: {said}"

    @property
    def words(self) -> str:
        """The statement, with the numbers of a gap."""
        if math.isnan(self.gap):
            return self.statement
        bounds = f"no hyperplane has an objective below {self.dual:.10g}; this one has {self.primal:.10g}"
        if self.outcome is Outcome.PROVEN:
            return f"{bounds} (relative gap {self.gap:.1e})" + (f", {self.statement}" if self.statement else "")
        asked = f"the relative gap is {self.gap:.1e} where {self.max_gap:.0e} was asked for"
        return f"the claims are honest, but {asked}: {bounds}"


@dataclass
class Checks:
    """What was checked so far, in the order of the checks; the first that failed decides."""

    found: dict[str, str] = field(default_factory=dict)

    def note(self, name: str, holds: bool, wrong: str) -> bool:
        """Record a check; ``wrong`` says what is the matter where it does not hold."""
        self.found[name] = "" if holds else wrong
        return holds

    @property
    def failed(self) -> str:
        return next((name for name, wrong in self.found.items() if wrong), "")

    def rejected(self, max_gap: float = math.nan) -> Verdict:
        """The verdict where there is nothing to compute."""
        return Verdict(Outcome.REJECTED, self.failed, self.found, max_gap=max_gap)

    def proven(self, statement: str) -> Verdict:
        """The verdict on a claim without numbers: that it is true, unless a check failed."""
        return self.rejected() if self.failed else Verdict(Outcome.PROVEN, "", self.found, statement)

    def verdict(
        self, claim: Claimed, proven: Proven, relative_gap: Callable[[float, float], float], max_gap: float
    ) -> Verdict:
        """Compare what was claimed with what was recomputed."""
        self._compare("primal value", claim.primal, proven.primal, "above", proven.farthest[0])
        self._compare_dual(claim, proven)
        primal, dual = min(claim.primal, proven.primal.high), max(claim.dual, proven.dual.low)
        gap, claimed = relative_gap(primal, dual), relative_gap(claim.primal, claim.dual)
        same = math.isfinite(claim.gap) and abs(claim.gap - claimed) <= 1e-9 * claimed
        self.note("gap", same or claim.gap == claimed, f"{claim.gap:.3e} is claimed, the values say {claimed:.3e}")
        if self.failed:
            return Verdict(Outcome.REJECTED, self.failed, self.found, "", primal, dual, gap, max_gap)
        outcome, worst = (Outcome.PROVEN, "") if claimed <= max_gap else (Outcome.HONEST, "gap")
        return Verdict(outcome, worst, self.found, proven.provided, primal, dual, claimed, max_gap)

    def without_gap(self, claim: Claimed, proven: Proven, statement: str, max_gap: float) -> Verdict:
        """The verdict on values that bound nothing: honest at best. NaN instead of a dual value claims none."""
        self._compare("primal value", claim.primal, proven.primal, "above", proven.farthest[0])
        if not math.isnan(claim.dual):
            self._compare_dual(claim, proven)
        self.note("gap", math.isnan(claim.gap), f"{claim.gap:.3e} is claimed, but {statement}")
        if self.failed:
            return Verdict(Outcome.REJECTED, self.failed, self.found, max_gap=max_gap)
        return Verdict(Outcome.HONEST, "gap", self.found, statement, claim.primal, claim.dual, max_gap=max_gap)

    def _compare_dual(self, claim: Claimed, proven: Proven) -> None:
        upside_down = Interval(-proven.dual.high, -proven.dual.low)
        self._compare("dual value", -claim.dual, upside_down, "below", proven.farthest[1])

    def _compare(self, name: str, value: float, found: Interval, wrong: str, farthest: float) -> None:
        """A bound from above with what was recomputed."""
        shown = f"{abs(value):.17g} is claimed"
        if value < found.high:
            self.note(name, False, f"{shown}, but the objective is {wrong} that, or nothing less can be proven")
        else:
            apart = value - found.high
            self.note(name, apart <= farthest, f"{shown}, {apart:.1e} from the value recomputed")


@dataclass(frozen=True)
class Claimed:
    """The three numbers of a certificate."""

    primal: float
    dual: float
    gap: float


@dataclass(frozen=True)
class Proven:
    """Both objectives, recomputed, and how far from each a claim may be.

    ``provided`` says under which hypothesis on the kernel, ``refuted`` what speaks against it.
    """

    primal: Interval
    dual: Interval
    farthest: tuple[float, float]
    provided: str = ""
    refuted: str = ""

    def confirm(self, claim: Claimed) -> bool:
        """Whether both claims are theorems."""
        return claim.primal >= self.primal.high and claim.dual <= self.dual.low

    def decide(self, claim: Claimed) -> bool:
        """Whether each claim is a theorem or certainly false."""
        above = claim.primal >= self.primal.high or claim.primal < self.primal.low
        return above and (claim.dual <= self.dual.low or claim.dual > self.dual.high)


def plain_weights(sample_weight: ArrayLike | None, n_rows: int) -> Vector | None:
    """One weight per row; None for anything else."""
    try:
        weight = np.asarray(1.0 if sample_weight is None else sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return np.broadcast_to(weight, (n_rows,)) if weight.shape in ((), (n_rows,)) else None


def known_class_weight(class_weight: Any) -> bool:
    """Whether it is something that a fit takes."""
    if isinstance(class_weight, dict):
        return all(isinstance(value, Real) and 0.0 <= float(value) < math.inf for value in class_weight.values())
    return class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced")


def usable_scale(scale: float | None) -> bool:
    """Whether a penalty on the bias, if there is one, has a scale that a fit takes."""
    return scale is None or (isinstance(scale, Real) and 1e-50 < float(scale) < 1e50)


def verdict_of(verify: Callable[..., Verdict]) -> Callable[..., Verdict]:
    """A verification whose arithmetic breaks down, on numbers that no fit claims, is a rejection, not an error."""

    @wraps(verify)
    def guarded(*args: Any, **options: Any) -> Verdict:
        try:
            with np.errstate(all="ignore"):
                return verify(*args, **options)
        except ArithmeticError as error:
            checks = Checks()
            checks.note("arithmetic", False, f"the numbers are too large, or too small, to compute with ({error})")
            return checks.rejected()

    return guarded


def all_finite(*parts: Any) -> bool:
    """Whether every number is finite."""
    return all(bool(np.isfinite(part).all()) for part in parts)


def known_labels(labels: NDArray[Any], classes: NDArray[Any]) -> bool:
    """Whether the classes are sorted, each once, and every label is one of them."""
    try:
        return bool(np.array_equal(distinct(classes), classes)) and bool(np.isin(labels, classes).all())
    except TypeError:  # labels that cannot be compared
        return False

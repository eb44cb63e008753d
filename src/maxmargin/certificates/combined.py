"""Proofs for several machines that were found apart, linear or with a kernel: one per class, or per pair of classes."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.certificates.blocks import readable
from maxmargin.certificates.claim import Claim, Job, Stated, recompute
from maxmargin.certificates.losses import class_costs
from maxmargin.certificates.verdict import (
    Checks,
    Outcome,
    Verdict,
    known_class_weight,
    known_labels,
    plain_weights,
    verdict_of,
)

Vector = NDArray[np.float64]
SAME = {field.name for field in fields(Stated)} - {"classes", "class_weight"}  # of all parts
ALIKE = ("kernel", "kind", "nu")  # of all parts that have it


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CombinedCertificate(Stated):
    """The certificates of one machine per class (``scheme="ovr"``) or per pair of classes (``"ovo"``).

    Each part is about labels False and True: is it this class, or is it the second one of the pair?

    Examples
    --------
    >>> from maxmargin import LinearSVC
    >>> X, y = [[0.0], [1.0], [2.0]], ["a", "b", "c"]
    >>> certificate = LinearSVC().fit(X, y).certificate_
    >>> len(certificate.parts), bool(certificate.verify(X, y))
    (3, True)
    """

    parts: tuple[Claim, ...]
    scheme: str
    classes: NDArray[Any]

    def __repr__(self) -> str:
        return (
            f"CombinedCertificate({self.scheme}, {self.loss}, C={self.C:g}, {len(self.classes)} classes, "
            f"{len(self.parts)} machines: worst gap {self.gap:.1e} of {self.tol:.0e} asked)"
        )

    @property
    def gap(self) -> float:
        """The worst part's."""
        return max(part.gap for part in self.parts)

    @property
    def primal(self) -> float:
        return sum(part.primal for part in self.parts)

    @property
    def dual(self) -> float:
        return sum(part.dual for part in self.parts)

    @property
    def distance_bound(self) -> float:
        """Largest possible ‖w − w*‖ of any part."""
        return max(part.distance_bound for part in self.parts)

    @verdict_of
    def verify(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, max_gap: float | None = None
    ) -> Verdict:
        """Verify every part; the verdict is that of the worst one, with sums of the objective values."""
        checks, X, labels = Checks(), readable(X), np.asarray(y).ravel()
        weight = plain_weights(sample_weight, len(labels))
        max_gap = self.tol if max_gap is None else max_gap
        if not checks.note("labels", known_labels(labels, self.classes), "y, or the list of classes, is another one"):
            return checks.rejected(max_gap)
        shaped = X.ndim == 2 and X.shape[0] == len(labels) and weight is not None
        whole = len(self.parts) == len(self._jobs()) > 0 and self.scheme in ("ovr", "ovo")
        whole = whole and shaped and all(_fits(part, X) for part in self.parts)
        found = f"{len(self.parts)} machines, X of shape {X.shape}, {len(labels)} labels"
        checks.note("shape", shaped and whole, found)
        alike = all(_same(getattr(part, name), getattr(self, name)) for part in self.parts for name in SAME)
        alike = alike and known_class_weight(self.class_weight) and _of_one_kind(self.parts)
        checks.note("parts", alike, "the machines do not share loss, C, penalty, kernel, bias and tolerance")
        asked = [np.array_equal(part.classes, np.array([False, True])) for part in self.parts]  # type: ignore[arg-type]
        plain = all(asked) and all(part.class_weight is None for part in self.parts)
        checks.note("labels of parts", plain, "a machine answers another question than: is it this class?")
        if checks.failed or weight is None:
            return checks.rejected(max_gap)
        position = np.searchsorted(self.classes, labels)
        weight = class_costs(weight, position, self.classes.tolist(), self.class_weight)
        jobs = [_job(part, about, position, weight) for part, about in zip(self.parts, self._jobs(), strict=True)]
        recompute(jobs, X)
        verdicts = [job.verdict(max_gap) for job in jobs]
        rank = [Outcome.PROVEN, Outcome.HONEST, Outcome.REJECTED]
        worst = max(verdicts, key=lambda v: (rank.index(v.outcome), v.gap if math.isfinite(v.gap) else math.inf))
        return replace(
            worst,
            primal=sum(v.primal for v in verdicts),
            dual=sum(v.dual for v in verdicts),
            gap=max(v.gap for v in verdicts),
        )

    def _jobs(self) -> list[tuple[int, ...]]:
        n = len(self.classes)
        return [(k,) for k in range(n)] if self.scheme == "ovr" else list(itertools.combinations(range(n), 2))


def _fits(part: Claim, X: Any) -> bool:
    return not part.joint and part._fits(X.shape) and part._is_float64()


def _of_one_kind(parts: tuple[Claim, ...]) -> bool:
    """Whether all are proofs of one type, about one kernel."""
    kinds = [(type(part), *(getattr(part, name, None) for name in ALIKE)) for part in parts]
    try:
        return all(kind == kinds[0] for kind in kinds)
    except ValueError:  # arrays among the parameters of a callable, which are not the same objects
        return False


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


def _job(part: Claim, about: tuple[int, ...], position: NDArray[np.intp], weight: Vector) -> Job:
    """The verification of one machine: is it this class, or is it the second one of the pair?"""
    checks = Checks()
    if len(about) == 1:
        return part.job(position == about[0], weight, checks)
    chosen = np.flatnonzero((position == about[0]) | (position == about[1]))
    inside = not np.delete(part.alpha, chosen).any()
    checks.note("feasibility", inside, "a row of a class outside of the pair has a multiplier")
    own = replace(part, alpha=part.alpha[chosen])
    return own.job(position[chosen] == about[1], weight[chosen], checks, chosen)

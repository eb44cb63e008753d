"""Proofs that trust no solver: verify() recomputes everything from the data by plain arithmetic."""

from maxmargin.certificates.claim import Claim
from maxmargin.certificates.combined import CombinedCertificate
from maxmargin.certificates.expansion import ExpansionCertificate
from maxmargin.certificates.nu import NuCertificate
from maxmargin.certificates.optimality import OptimalityCertificate
from maxmargin.certificates.separability import (
    NotSeparableError,
    Separability,
    judge_separability,
    through_origin,
)
from maxmargin.certificates.verdict import Outcome, Verdict

__all__ = [
    "Claim",
    "CombinedCertificate",
    "ExpansionCertificate",
    "NotSeparableError",
    "NuCertificate",
    "OptimalityCertificate",
    "Outcome",
    "Separability",
    "Verdict",
    "judge_separability",
    "through_origin",
]

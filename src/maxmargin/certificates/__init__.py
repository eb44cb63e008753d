"""Proofs that trust no solver: verify() recomputes everything from the data by plain arithmetic."""

from maxmargin.certificates.multiclass import CombinedCertificate, JointCertificate
from maxmargin.certificates.optimality import OptimalityCertificate
from maxmargin.certificates.separability import (
    NotSeparableError,
    Separability,
    SeparabilityVerdict,
    judge_separability,
)
from maxmargin.certificates.verdict import Outcome, Verdict

__all__ = [
    "CombinedCertificate",
    "JointCertificate",
    "NotSeparableError",
    "OptimalityCertificate",
    "Outcome",
    "Separability",
    "SeparabilityVerdict",
    "Verdict",
    "judge_separability",
]

"""Proofs that trust no solver: verify() recomputes everything from the data by plain arithmetic."""

from maxmargin.certificates.multiclass import CombinedCertificate, JointCertificate
from maxmargin.certificates.optimality import OptimalityCertificate, Verdict
from maxmargin.certificates.separability import (
    NotSeparableError,
    Separability,
    SeparabilityVerdict,
    judge_separability,
)

__all__ = [
    "CombinedCertificate",
    "JointCertificate",
    "NotSeparableError",
    "OptimalityCertificate",
    "Separability",
    "SeparabilityVerdict",
    "Verdict",
    "judge_separability",
]

"""Proofs that trust no solver: verify() recomputes everything from the data by plain arithmetic."""

from maxmargin.certificates.optimality import OptimalityCertificate, Verdict
from maxmargin.certificates.separability import Separability, judge_separability

__all__ = ["OptimalityCertificate", "Separability", "Verdict", "judge_separability"]

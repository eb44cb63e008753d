"""Certificates: what was claimed, and arithmetic that trusts no solver."""

from maxmargin.certificates.optimality import OptimalityCertificate, Verdict

__all__ = ["OptimalityCertificate", "Verdict"]

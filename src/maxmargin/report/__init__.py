"""What a run found, as a page and as sentences."""

from maxmargin.report.outcome import DataSummary, Outcome, TestPart, clopper_pearson
from maxmargin.report.page import render, write_report

__all__ = ["DataSummary", "Outcome", "TestPart", "clopper_pearson", "render", "write_report"]

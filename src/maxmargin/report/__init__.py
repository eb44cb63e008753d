"""What a run found, as a page and as sentences."""

from maxmargin.report.outcome import DataSummary, Outcome, TestPart, clopper_pearson
from maxmargin.report.page import render, write_report
from maxmargin.report.traces import animate, mistakes_figure

__all__ = [
    "DataSummary",
    "Outcome",
    "TestPart",
    "animate",
    "clopper_pearson",
    "mistakes_figure",
    "render",
    "write_report",
]

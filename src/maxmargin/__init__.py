"""Linear learning machines whose every fit comes with a proof."""

import maxmargin._core as _core
from maxmargin.certificates import OptimalityCertificate, Verdict
from maxmargin.positions import InputError
from maxmargin.problem import Problem
from maxmargin.runtime import core_info, show_versions
from maxmargin.solution import History, Solution, Status
from maxmargin.svm import ConvergenceWarning, LinearSVC

__version__: str = _core.info()["version"]

__all__ = [
    "ConvergenceWarning",
    "History",
    "InputError",
    "LinearSVC",
    "OptimalityCertificate",
    "Problem",
    "Solution",
    "Status",
    "Verdict",
    "__version__",
    "core_info",
    "show_versions",
]

"""Linear learning machines whose every fit comes with a proof."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxmargin.certificates import (
        CombinedCertificate,
        JointCertificate,
        NotSeparableError,
        OptimalityCertificate,
        Separability,
        Verdict,
        judge_separability,
    )
    from maxmargin.data import DataError, read_table, write_table
    from maxmargin.models import Model, ModelFileError, certify, load, save
    from maxmargin.positions import InputError
    from maxmargin.problem import Problem
    from maxmargin.runtime import core_info, show_versions
    from maxmargin.selection import Path, cover_C, svm_path, within_norm
    from maxmargin.solution import History, Solution, Solutions, Status
    from maxmargin.svm import ConvergenceWarning, LinearSVC, LinearSVR, LogisticRegression

    __version__: str

# Where each public name lives. A room is opened when one of its names is first used, so that `import maxmargin` and
# `maxmargin --help` are quick.
_ROOMS = {
    "maxmargin.certificates": (
        "CombinedCertificate",
        "JointCertificate",
        "NotSeparableError",
        "OptimalityCertificate",
        "Separability",
        "Verdict",
        "judge_separability",
    ),
    "maxmargin.data": ("DataError", "read_table", "write_table"),
    "maxmargin.models": ("Model", "ModelFileError", "certify", "load", "save"),
    "maxmargin.positions": ("InputError",),
    "maxmargin.problem": ("Problem",),
    "maxmargin.runtime": ("core_info", "show_versions"),
    "maxmargin.selection": ("Path", "cover_C", "svm_path", "within_norm"),
    "maxmargin.solution": ("History", "Solution", "Solutions", "Status"),
    "maxmargin.svm": ("ConvergenceWarning", "LinearSVC", "LinearSVR", "LogisticRegression"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "CombinedCertificate",
    "ConvergenceWarning",
    "DataError",
    "History",
    "InputError",
    "JointCertificate",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "Model",
    "ModelFileError",
    "NotSeparableError",
    "OptimalityCertificate",
    "Path",
    "Problem",
    "Separability",
    "Solution",
    "Solutions",
    "Status",
    "Verdict",
    "__version__",
    "certify",
    "core_info",
    "cover_C",
    "judge_separability",
    "load",
    "read_table",
    "save",
    "show_versions",
    "svm_path",
    "within_norm",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if f"maxmargin.{name}" in _ROOMS:
        return import_module(f"maxmargin.{name}")
    if name in _ROOM_OF:
        value = getattr(import_module(_ROOM_OF[name]), name)
    elif name == "__version__":
        value = import_module("maxmargin._core").info()["version"]
    else:
        raise AttributeError(f"module 'maxmargin' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(__all__) | set(globals()))

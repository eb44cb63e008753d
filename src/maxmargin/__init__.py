"""Linear and kernel learning machines whose every fit comes with a proof."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxmargin.certificates import (
        CombinedCertificate,
        NotSeparableError,
        OptimalityCertificate,
        Separability,
        Verdict,
        judge_separability,
    )
    from maxmargin.data import DataError, read_table, write_table
    from maxmargin.errors import InputError
    from maxmargin.estimators import ConvergenceWarning
    from maxmargin.models import (
        Model,
        ModelFileError,
        certify,
        load,
        read_liblinear_model,
        read_libsvm_model,
        save,
        write_liblinear_model,
        write_libsvm_model,
    )
    from maxmargin.online import (
        Adaline,
        AdalineRegressor,
        BalancedWinnow,
        ExtendedPerceptron,
        HebbRule,
        KernelPerceptron,
        MulticlassPerceptron,
        OjaRule,
        OnlineSVC,
        OnlineSVR,
        Perceptron,
        PocketPerceptron,
        Relaxation,
        ThresholdUnit,
        Trace,
        VotedPerceptron,
        Winnow,
        alternating_projections,
        gate,
        truth_table,
    )
    from maxmargin.problem import Problem
    from maxmargin.runtime import core_info, show_versions
    from maxmargin.selection import Path, cover_C, svm_path, within_norm
    from maxmargin.solution import History, Solution, Solutions, Status
    from maxmargin.squares import (
        FisherDiscriminant,
        KernelRidge,
        LeastSquaresClassifier,
        LeastSquaresRegressor,
        Ridge,
        RidgeClassifier,
    )
    from maxmargin.svm import (
        SVC,
        SVDD,
        SVR,
        LinearSVC,
        LinearSVR,
        LogisticRegression,
        NuSVC,
        NuSVR,
        OneClassSVM,
        SparseSVC,
    )
    from maxmargin.theory import Bound

    __version__: str

# Where each public name lives. A room is opened when one of its names is first used, so that `import maxmargin` and
# `maxmargin --help` are quick.
_ROOMS = {
    "maxmargin.certificates": (
        "CombinedCertificate",
        "NotSeparableError",
        "OptimalityCertificate",
        "Separability",
        "Verdict",
        "judge_separability",
    ),
    "maxmargin.data": ("DataError", "read_table", "write_table"),
    "maxmargin.estimators": ("ConvergenceWarning",),
    "maxmargin.models": (
        "Model",
        "ModelFileError",
        "certify",
        "load",
        "read_liblinear_model",
        "read_libsvm_model",
        "save",
        "write_liblinear_model",
        "write_libsvm_model",
    ),
    "maxmargin.online": (
        "Adaline",
        "AdalineRegressor",
        "BalancedWinnow",
        "ExtendedPerceptron",
        "HebbRule",
        "KernelPerceptron",
        "MulticlassPerceptron",
        "OjaRule",
        "OnlineSVC",
        "OnlineSVR",
        "Perceptron",
        "PocketPerceptron",
        "Relaxation",
        "ThresholdUnit",
        "Trace",
        "VotedPerceptron",
        "Winnow",
        "alternating_projections",
        "gate",
        "truth_table",
    ),
    "maxmargin.errors": ("InputError",),
    "maxmargin.problem": ("Problem",),
    "maxmargin.runtime": ("core_info", "show_versions"),
    "maxmargin.selection": ("Path", "cover_C", "svm_path", "within_norm"),
    "maxmargin.solution": ("History", "Solution", "Solutions", "Status"),
    "maxmargin.squares": (
        "FisherDiscriminant",
        "KernelRidge",
        "LeastSquaresClassifier",
        "LeastSquaresRegressor",
        "Ridge",
        "RidgeClassifier",
    ),
    "maxmargin.svm": (
        "LinearSVC",
        "LinearSVR",
        "LogisticRegression",
        "NuSVC",
        "NuSVR",
        "OneClassSVM",
        "SVC",
        "SVDD",
        "SVR",
        "SparseSVC",
    ),
    "maxmargin.theory": ("Bound",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "SVC",
    "SVDD",
    "SVR",
    "Adaline",
    "AdalineRegressor",
    "BalancedWinnow",
    "Bound",
    "CombinedCertificate",
    "ConvergenceWarning",
    "DataError",
    "ExtendedPerceptron",
    "FisherDiscriminant",
    "HebbRule",
    "History",
    "InputError",
    "KernelPerceptron",
    "KernelRidge",
    "LeastSquaresClassifier",
    "LeastSquaresRegressor",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "Model",
    "ModelFileError",
    "MulticlassPerceptron",
    "NotSeparableError",
    "NuSVC",
    "NuSVR",
    "OjaRule",
    "OneClassSVM",
    "OnlineSVC",
    "OnlineSVR",
    "OptimalityCertificate",
    "Path",
    "Perceptron",
    "PocketPerceptron",
    "Problem",
    "Relaxation",
    "Ridge",
    "RidgeClassifier",
    "Separability",
    "Solution",
    "Solutions",
    "SparseSVC",
    "Status",
    "ThresholdUnit",
    "Trace",
    "Verdict",
    "VotedPerceptron",
    "Winnow",
    "__version__",
    "alternating_projections",
    "certify",
    "core_info",
    "cover_C",
    "gate",
    "judge_separability",
    "load",
    "read_liblinear_model",
    "read_libsvm_model",
    "read_table",
    "save",
    "show_versions",
    "svm_path",
    "truth_table",
    "within_norm",
    "write_liblinear_model",
    "write_libsvm_model",
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

"""Support vector machines in scikit-learn's shape."""

from maxmargin.estimators import ConvergenceWarning
from maxmargin.svm.linear import LinearSVC
from maxmargin.svm.logistic import LogisticRegression
from maxmargin.svm.nu import NuSVC, NuSVR
from maxmargin.svm.one_class import SVDD, OneClassSVM
from maxmargin.svm.regression import LinearSVR
from maxmargin.svm.sparse import SparseSVC
from maxmargin.svm.svc import SVC
from maxmargin.svm.svr import SVR

__all__ = [
    "SVC",
    "SVDD",
    "SVR",
    "ConvergenceWarning",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "SparseSVC",
]

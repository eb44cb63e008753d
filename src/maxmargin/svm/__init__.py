"""Support vector machines in scikit-learn's shape."""

from maxmargin.estimators import ConvergenceWarning
from maxmargin.svm.linear import LinearSVC
from maxmargin.svm.logistic import LogisticRegression
from maxmargin.svm.regression import LinearSVR

__all__ = ["ConvergenceWarning", "LinearSVC", "LinearSVR", "LogisticRegression"]

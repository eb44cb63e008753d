"""Support vector machines in scikit-learn's shape."""

from maxmargin.svm.linear import ConvergenceWarning, LinearSVC

__all__ = ["ConvergenceWarning", "LinearSVC"]

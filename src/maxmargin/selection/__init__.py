"""Choosing a model: parts of the rows, and C by cross-validation."""

from maxmargin.selection.constrained import Constrained, within_norm
from maxmargin.selection.path import Path, cover_C, svm_path
from maxmargin.selection.search import DEFAULT_CS, Search, choose_C
from maxmargin.selection.split import folds, holdout

__all__ = [
    "DEFAULT_CS",
    "Constrained",
    "Path",
    "Search",
    "choose_C",
    "cover_C",
    "folds",
    "holdout",
    "svm_path",
    "within_norm",
]

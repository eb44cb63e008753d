"""Choosing a model: parts of the rows, and C by cross-validation."""

from maxmargin.selection.search import DEFAULT_CS, Search, choose_C
from maxmargin.selection.split import folds, holdout

__all__ = ["DEFAULT_CS", "Search", "choose_C", "folds", "holdout"]

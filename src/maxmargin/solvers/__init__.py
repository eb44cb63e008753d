"""Solvers: Problem in, Solution out."""

from maxmargin.solvers.base import Solver
from maxmargin.solvers.choice import SOLVERS, automatic, choose
from maxmargin.solvers.dual_cd import DualCoordinateDescent
from maxmargin.solvers.interior_point import InteriorPoint

__all__ = ["SOLVERS", "DualCoordinateDescent", "InteriorPoint", "Solver", "automatic", "choose"]

"""Solvers: Problem in, Solution out."""

from maxmargin.solvers.choice import SOLVERS, automatic, choose, make_solver
from maxmargin.solvers.dual_cd import DualCoordinateDescent
from maxmargin.solvers.hard_margin import HardMargin
from maxmargin.solvers.interior_point import InteriorPoint
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.proximal import ProximalNewton
from maxmargin.solvers.run import Solver

__all__ = [
    "SOLVERS",
    "DualCoordinateDescent",
    "HardMargin",
    "InteriorPoint",
    "Newton",
    "ProximalNewton",
    "Solver",
    "automatic",
    "choose",
    "make_solver",
]

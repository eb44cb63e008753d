"""Losses: value, slope, conjugate and best bias of each."""

from maxmargin.losses.base import Loss
from maxmargin.losses.hinge import Hinge
from maxmargin.losses.squared_hinge import SquaredHinge

LOSSES: dict[str, Loss] = {"hinge": Hinge(), "squared_hinge": SquaredHinge()}

__all__ = ["LOSSES", "Hinge", "Loss", "SquaredHinge"]

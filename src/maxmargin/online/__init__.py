"""Machines that learn row by row."""

from maxmargin.online.adaline import Adaline, AdalineRegressor
from maxmargin.online.hebb import HebbRule, OjaRule
from maxmargin.online.kernel_perceptron import KernelPerceptron
from maxmargin.online.multiclass import MulticlassPerceptron
from maxmargin.online.perceptron import ExtendedPerceptron, Perceptron
from maxmargin.online.pocket import PocketPerceptron
from maxmargin.online.relaxation import Relaxation, alternating_projections
from maxmargin.online.subgradient import OnlineSVC, OnlineSVR
from maxmargin.online.threshold import ThresholdUnit, gate, truth_table
from maxmargin.online.trace import Trace
from maxmargin.online.voted import VotedPerceptron
from maxmargin.online.winnow import BalancedWinnow, Winnow

__all__ = [
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
]

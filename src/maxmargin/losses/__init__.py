"""Losses: value, slope, curvature, conjugate and best bias of each."""

from maxmargin.losses.base import DualBox, Loss
from maxmargin.losses.epsilon_insensitive import EpsilonInsensitive, SquaredEpsilonInsensitive
from maxmargin.losses.hinge import Hinge
from maxmargin.losses.logistic import Logistic
from maxmargin.losses.slack_power import SlackPower
from maxmargin.losses.squared_hinge import SquaredHinge

LOSSES: dict[str, Loss] = {"hinge": Hinge(), "squared_hinge": SquaredHinge(), "logistic": Logistic()}


def slack_power(power: float) -> Loss:
    """ξ^power as a loss, 1 ≤ power ≤ 4.

    Examples
    --------
    >>> slack_power(1).name, slack_power(2).name, slack_power(1.5).name
    ('hinge', 'squared_hinge', 'slack_power')
    """
    if power == 1.0:
        return LOSSES["hinge"]
    return LOSSES["squared_hinge"] if power == 2.0 else SlackPower(float(power))


__all__ = [
    "LOSSES",
    "DualBox",
    "EpsilonInsensitive",
    "Hinge",
    "Logistic",
    "Loss",
    "SlackPower",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "slack_power",
]

"""Every loss by a readable name."""

from maxmargin.losses import (
    EpsilonInsensitive,
    Hinge,
    Logistic,
    SlackPower,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)

POWERS = (1.2, 1.5, 3.0, 4.0)
EPSILONS = (0.0, 0.7)
EVERY = {"hinge": Hinge(), "squared hinge": SquaredHinge(), "logistic": Logistic()}
EVERY |= {f"slack power {p}": SlackPower(p) for p in POWERS}
EVERY |= {f"epsilon {e}": EpsilonInsensitive(e) for e in EPSILONS}
EVERY |= {f"squared epsilon {e}": SquaredEpsilonInsensitive(e) for e in EPSILONS}


def slope_in_score(loss, score, y):
    """A subgradient of the loss in the score."""
    return -loss.sign(y) * loss.slope(loss.residual(score, y))


def curvature_in_score(loss, score, y):
    """The second derivative of the loss in the score."""
    return loss.curvature(loss.residual(score, y))

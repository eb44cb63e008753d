"""The line search of the method of multipliers, of joint machines and of the l1 penalty: to the minimum on the way.

Interior points and coordinate steps have step lengths of their own, and a chord takes whole steps.
"""

from __future__ import annotations

from collections.abc import Callable

FLAT = 1e-3  # of the first slope: a step that leaves no more is exact enough
MOST = 40  # secant steps; smooth slopes need a few
NARROW = 1e-12  # width of a bracket, beside the whole step, that rounding fills


def exact_step(slope: Callable[[float], float], at_zero: float, *, whole: float = 0.1) -> float:
    """A root of the rising derivative ``slope``, which is ``at_zero`` < 0 at 0; at most 1.

    The whole step is taken where the slope there is no more than ``whole`` times the first one, upwards. Otherwise
    secant steps that keep a bracket (the Illinois rule) find the root, until the slope is a thousandth of the first
    one or the bracket is as narrow as rounding. A slope that jumps over zero may use up all of them; the step is then
    the lower end of the bracket.

    Examples
    --------
    >>> exact_step(lambda t: 4.0 * t - 1.0, -1.0)
    0.25
    >>> exact_step(lambda t: t - 2.0, -2.0)
    1.0

    References
    ----------
    Dowell, Jarratt: A modified regula falsi method for computing the root of an equation, 1971.
    """
    at_one = slope(1.0)
    if at_one <= whole * abs(at_zero):
        return 1.0
    low, high, f_low, f_high = 0.0, 1.0, at_zero, at_one
    for _ in range(MOST):
        t = low - f_low * (high - low) / (f_high - f_low) if f_high > f_low else 0.5 * (low + high)
        f = slope(t)
        if abs(f) <= FLAT * abs(at_zero) or high - low < NARROW:
            return t
        if f > 0.0:
            high, f_high, f_low = t, f, 0.5 * f_low
        else:
            low, f_low, f_high = t, f, 0.5 * f_high
    return low if low > 0.0 else high

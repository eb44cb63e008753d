"""Rows whose multiplier is proven, by the gap alone, before the optimum is known.

½‖w‖² is strongly convex, so the optimal w* lies within rho = √(2 (P − D)) of w, and a row's score within rho ‖x‖ of its
present one. The best bias follows the scores: if none moves by more than rho R, R = max ‖x‖, neither does an end of
the interval of best biases. A row that stays on its side of the margin for all of these has its optimal multiplier
already: 0 outside, its bound inside. Such rows need not be looked at again.

References
----------
Ghaoui, Viallon, Rabbani: Safe feature elimination in sparse supervised learning, 2012. Fercoq, Gramfort, Salmon: Mind
the duality gap: safer rules for the lasso, 2015. Ogawa, Suzuki, Takeuchi: Safe screening of non-support vectors in
pathwise SVM computation, 2013.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from maxmargin.problem import Problem
from maxmargin.solvers.points import Point


def proven(problem: Problem, point: Point) -> NDArray[np.bool_]:
    """Which rows of the hinge, squared hinge or ε-insensitive losses have their optimal multiplier for certain.

    Examples
    --------
    >>> from maxmargin.solvers.points import recover
    >>> problem = Problem.from_arrays([[-9.0], [-1.0], [1.0]], [0, 0, 1], loss="hinge")
    >>> proven(problem, recover(problem, np.array([0.0, 0.49, 0.49])))
    array([ True, False, False])
    """
    apart = point.primal - point.dual
    if not problem.loss.has_box or not math.isfinite(apart):
        return np.zeros(problem.n_rows, dtype=bool)
    radius = math.sqrt(2.0 * max(0.0, apart))
    reach = radius * np.sqrt(problem.squared_norms + (problem.bias.value**2 if problem.bias.penalised else 0.0))
    low = high = reach
    if problem.bias.free:
        largest = radius * math.sqrt(float(problem.squared_norms[problem.cost > 0.0].max()))
        low = reach + largest + (point.b - point.bias_interval[0])
        high = reach + largest + (point.bias_interval[1] - point.b)
    scores, tube = point.scores + point.b, problem.box.tube
    rounding = 1e-9 * (1.0 + np.abs(scores))
    # Residual r = target − sign·score over all scores that the optimum may have.
    down, up = np.where(problem.sign > 0.0, high, low), np.where(problem.sign > 0.0, low, high)
    r = problem.target - problem.sign * scores
    least, most = r - down - rounding, r + up + rounding
    if problem.loss.regression:
        inside = (most < tube) & (least > -tube)
        outside = (least > tube) | (most < -tube)
    else:
        inside, outside = most < 0.0, least > 0.0
    # Squared slack has a multiplier that still moves with the slack.
    return inside | outside if not problem.loss.smooth else inside

"""The exact line search ends where the slope is nearly zero, from smooth, bent and broken slopes."""

import numpy as np
import pytest

from maxmargin.solvers.line_search import exact_step


class Slope:
    """A rising slope that counts how often it is asked."""

    def __init__(self, of):
        self.of, self.at = of, []

    def __call__(self, t):
        self.at.append(t)
        return self.of(t)


def bent(seed):
    """A piecewise linear slope with a steeper part at every bend, −1 at zero."""
    rng = np.random.default_rng(seed)
    bends, gains = rng.uniform(0.0, 1.0, 6), 10.0 ** rng.uniform(-2, 3, 6)
    return lambda t: -1.0 + 0.1 * t + float(gains @ np.maximum(0.0, t - bends))


SMOOTH = {
    "line": lambda t: 4.0 * t - 1.0,
    "steep": lambda t: 1e8 * t - 1.0,
    "cube": lambda t: 50.0 * t**3 - 1.0,
    "exponential": lambda t: np.expm1(30.0 * (t - 0.9)),
    "flat, then steep": lambda t: -1.0 if t < 0.99 else 1e4 * (t - 0.99) - 1.0,
    "root": lambda t: 3.0 * np.sqrt(t) - 1.0,
}


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("of", [*SMOOTH.values(), *map(bent, range(8))])
def test_a_thousandth_of_the_first_slope_is_left_at_most(of, size):
    slope = Slope(lambda t: size * of(t))
    at_zero = slope(0.0)
    t = exact_step(slope, at_zero)
    assert 0.0 < t <= 1.0
    if t == 1.0:
        assert slope(1.0) <= 0.1 * abs(at_zero)
    else:
        assert abs(slope(t)) <= 1e-3 * abs(at_zero)
    assert len(slope.at) <= 40
    assert all(0.0 <= asked <= 1.0 for asked in slope.at)


def test_a_line_needs_one_secant():
    slope = Slope(lambda t: 4.0 * t - 1.0)
    assert exact_step(slope, -1.0) == 0.25
    assert slope.at == [1.0, 0.25]


@pytest.mark.parametrize(
    ("whole", "end", "taken"),
    [(0.0, -0.7, True), (0.0, 0.0, True), (0.0, 1e-9, False), (0.1, 0.099, True), (0.1, 0.101, False),
     (0.5, 0.5, True), (0.5, 0.501, False)],
)  # fmt: skip
def test_the_whole_step_is_taken_where_the_slope_there_is_small_enough(whole, end, taken):
    slope = Slope(lambda t: 3.0 * (-1.0 + (1.0 + end) * t))
    t = exact_step(slope, -3.0, whole=whole)
    assert (t == 1.0) == taken
    assert taken == (len(slope.at) == 1)


@pytest.mark.parametrize("root", [1e-6, 0.011, 0.3, 0.7, 0.999])
@pytest.mark.parametrize(("jump", "apart"), [(0.01, 0.03), (0.5, 1e-7), (1.0, 1e-7), (3.0, 1e-7), (10.0, 1e-7)])
def test_at_a_jump_the_slope_changes_its_sign(root, jump, apart):
    slope = Slope(lambda t: jump if t > root else -1.0)
    t = exact_step(slope, -1.0, whole=0.0)
    assert t == pytest.approx(root, abs=apart)
    assert len(slope.at) <= 41


@pytest.mark.parametrize("seed", range(20))
def test_among_many_jumps_the_function_falls(seed):
    rng = np.random.default_rng(seed)
    places, jumps = rng.uniform(0.0, 1.0, 5), 10.0 ** rng.uniform(-1, 3, 5)
    slope = Slope(lambda t: -1.0 + 0.3 * t + float(jumps @ (t > places)))
    t = exact_step(slope, -1.0, whole=0.0)
    value = -t + 0.15 * t * t + float(jumps @ np.maximum(0.0, t - places))
    lowest = min(-p + 0.15 * p * p + float(jumps @ np.maximum(0.0, p - places)) for p in [*places, 1.0])
    assert lowest * (1.0 + 1e-9) <= value < 0.9 * lowest
    assert len(slope.at) <= 41

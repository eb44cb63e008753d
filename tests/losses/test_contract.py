"""Every loss keeps the promises that the certificates rest on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.losses import LOSSES

numbers = st.floats(-50.0, 50.0)


@pytest.mark.parametrize("name", sorted(LOSSES))
@given(score=numbers, alpha=st.floats(0.0, 20.0), sign=st.sampled_from([-1.0, 1.0]))
@settings(max_examples=60, deadline=None)
def test_fenchel_young(name, score, alpha, sign):
    loss = LOSSES[name]
    f, a, y = np.array([score]), np.array([alpha]), np.array([sign])
    assert loss.value(f, y)[0] + loss.conjugate(a, y)[0] >= -a[0] * y[0] * f[0] - 1e-9


@pytest.mark.parametrize("name", sorted(LOSSES))
@given(score=numbers, sign=st.sampled_from([-1.0, 1.0]))
@settings(max_examples=60, deadline=None)
def test_slope_attains_the_conjugate(name, score, sign):
    loss = LOSSES[name]
    f, y = np.array([score]), np.array([sign])
    alpha = -loss.slope(f, y) * y
    assert loss.value(f, y)[0] + loss.conjugate(alpha, y)[0] == pytest.approx(-alpha[0] * y[0] * f[0], abs=1e-9)


@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.parametrize("seed", range(25))
def test_best_bias_beats_a_fine_grid(name, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    score, y = rng.normal(size=n) * 10.0 ** rng.uniform(-2, 2), rng.choice([-1.0, 1.0], n)
    y[:2] = 1.0, -1.0
    cost = rng.choice([0.0, 0.5, 1.0, 3.0], n)
    cost[:2] = 1.0
    loss = LOSSES[name]
    total = lambda b: float(cost @ loss.value(score + b, y))  # noqa: E731
    low, high = loss.best_bias(score, y, cost)
    best = min(total(b) for b in np.linspace((y - score).min() - 1, (y - score).max() + 1, 4001))
    for b in (low, 0.5 * (low + high), high):
        assert total(b) <= best + 1e-9 * (1.0 + best)
    width = 1e-3 * (1.0 + abs(low))
    assert total(low - width) > total(low) - 1e-12
    assert total(high + width) > total(high) - 1e-12


def test_hinge_bias_interval_is_reported_whole():
    # Two separated points: every bias in [-1, 1] leaves no slack.
    score, y, cost = np.array([-2.0, 2.0]), np.array([-1.0, 1.0]), np.ones(2)
    assert LOSSES["hinge"].best_bias(score, y, cost) == (-1.0, 1.0)
    assert LOSSES["squared_hinge"].best_bias(score, y, cost) == pytest.approx((-1.0, 1.0))


def test_dual_boxes():
    cost = np.array([0.0, 2.0])
    upper, diagonal = LOSSES["hinge"].dual_box(cost)
    assert upper.tolist() == [0.0, 2.0]
    assert diagonal.tolist() == [0.0, 0.0]
    upper, diagonal = LOSSES["squared_hinge"].dual_box(cost)
    assert upper.tolist() == [0.0, np.inf]
    assert diagonal.tolist() == [0.0, 0.25]

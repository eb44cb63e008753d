"""Every loss keeps the promises that the certificates rest on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.losses import LOSSES, SlackPower, slack_power
from tests.losses.every import EVERY, curvature_in_score, slope_in_score

numbers = st.floats(-50.0, 50.0)
every = pytest.mark.parametrize("name", EVERY)
BOXED = [name for name in EVERY if name.startswith(("hinge", "squared", "epsilon"))]
BENT = [name for name in EVERY if not name.startswith(("hinge", "epsilon"))]


def point(name, score, y):
    """The loss, and a score and a label as arrays; the label of a classifier is a sign."""
    loss = EVERY[name]
    return loss, np.array([score]), np.array([y if loss.regression else 1.0 if y >= 0.0 else -1.0])


def corners(loss):
    """Residuals at which the slope jumps or is not smooth."""
    if loss.name == "logistic":
        return []
    return [-loss.epsilon, loss.epsilon] if loss.regression else [0.0]


def smooth_residuals(loss):
    r = np.linspace(-5.0, 5.0, 401) + 0.0123
    return r[np.all([np.abs(r - corner) > 0.05 for corner in corners(loss)], axis=0)] if corners(loss) else r


@every
@given(score=numbers, alpha=st.floats(-20.0, 20.0), y=numbers)
@settings(max_examples=60, deadline=None)
def test_fenchel_young(name, score, alpha, y):
    loss, f, y = point(name, score, y)
    a = np.array([alpha])
    value, conjugate, product = loss.value(f, y)[0], loss.conjugate(a, y)[0], -(a * loss.sign(y) * f)[0]
    assert value >= 0.0
    assert value + conjugate >= product - 1e-12 * (1.0 + value + abs(product) + np.abs(alpha * loss.target(y)[0]))


@every
@given(score=numbers, y=numbers)
@settings(max_examples=60, deadline=None)
def test_slope_attains_the_conjugate(name, score, y):
    loss, f, y = point(name, score, y)
    alpha = -slope_in_score(loss, f, y) * loss.sign(y)
    value, conjugate = loss.value(f, y)[0], loss.conjugate(alpha, y)[0]
    size = 1.0 + value + abs(conjugate)
    assert value + conjugate == pytest.approx(-(alpha * loss.sign(y) * f)[0], abs=1e-12 * size)


@every
def test_the_residual_says_all(name):
    loss, rng = EVERY[name], np.random.default_rng(0)
    score = rng.normal(size=50)
    y = rng.normal(size=50) if loss.regression else rng.choice([-1.0, 1.0], 50)
    r = loss.residual(score, y)
    np.testing.assert_allclose(r, loss.target(y) - loss.sign(y) * score, atol=1e-15)
    np.testing.assert_array_equal(loss.value(score, y), loss.of_residual(r))
    np.testing.assert_array_equal(slope_in_score(loss, score, y), -loss.sign(y) * loss.slope(r))
    np.testing.assert_allclose(loss.conjugate(r, y), loss.conjugate_of_slope(r) - r * loss.target(y), atol=1e-14)


def test_some_values_by_hand():
    r = np.array([-2.0, 0.0, 0.5, 2.0])
    expected = {
        "hinge": [0.0, 0.0, 0.5, 2.0],
        "squared hinge": [0.0, 0.0, 0.25, 4.0],
        "slack power 1.5": [0.0, 0.0, 0.5**1.5, 2.0**1.5],
        "slack power 4.0": [0.0, 0.0, 0.0625, 16.0],
        "logistic": np.log1p(np.exp(r)),
        "epsilon 0.0": [2.0, 0.0, 0.5, 2.0],
        "epsilon 0.7": [1.3, 0.0, 0.0, 1.3],
        "squared epsilon 0.7": [1.69, 0.0, 0.0, 1.69],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(EVERY[name].of_residual(r), values, rtol=1e-13, err_msg=name)


@every
def test_slope_agrees_with_differences(name):
    loss, h = EVERY[name], 1e-5
    for y in (-1.0, 1.0):
        r = smooth_residuals(loss)
        labels = np.full(len(r), y)
        score = loss.sign(labels) * (loss.target(labels) - r)
        difference = (loss.value(score + h, labels) - loss.value(score - h, labels)) / (2.0 * h)
        np.testing.assert_allclose(slope_in_score(loss, score, labels), difference, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", BENT)
def test_curvature_agrees_with_differences(name):
    loss, h = EVERY[name], 1e-5
    for y in (-1.0, 1.0):
        r = smooth_residuals(loss)
        labels = np.full(len(r), y)
        score = loss.sign(labels) * (loss.target(labels) - r)
        difference = (slope_in_score(loss, score + h, labels) - slope_in_score(loss, score - h, labels)) / (2.0 * h)
        np.testing.assert_allclose(curvature_in_score(loss, score, labels), difference, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", BENT)
def test_slope_and_curvature_come_together(name):
    loss, r = EVERY[name], np.linspace(-4.0, 4.0, 81)
    share, bend = loss.slope_and_curvature(r)
    np.testing.assert_array_equal(share, loss.slope(r))
    np.testing.assert_array_equal(bend, loss.curvature(r))
    assert np.all(bend >= 0.0)
    assert np.all(np.isfinite(bend))


@every
def test_share_rises_within_the_domain(name):
    loss, r = EVERY[name], np.linspace(-30.0, 30.0, 6001)
    share, one = loss.slope(r), np.ones(len(r))
    low, high = loss.domain(one)
    assert np.all(np.diff(share) >= 0.0)
    assert np.all((low <= share) & (share <= high))


@every
def test_the_conjugate_is_finite_in_the_domain_alone(name):
    loss = EVERY[name]
    low, high = (float(end[0]) for end in loss.domain(np.ones(1)))
    for inside in (max(low, -900.0), 0.0, 0.5, min(high, 900.0)):
        for y in (-1.0, 1.0):
            assert np.isfinite(loss.conjugate(np.array([inside]), np.array([y]))).all()
    outside = [end for end in (low - 1e-9, high + 1e-9) if np.isfinite(end)]
    assert loss.conjugate(np.array(outside), np.ones(len(outside))).tolist() == [np.inf] * len(outside)


@every
def test_domains_grow_with_the_cost(name):
    loss, cost = EVERY[name], np.array([0.0, 0.5, 2.0])
    low, high = loss.domain(cost)
    bounded = loss.name in ("hinge", "logistic", "epsilon_insensitive")
    np.testing.assert_array_equal(high, cost if bounded else [0.0, np.inf, np.inf])
    np.testing.assert_array_equal(low, -high if loss.regression else np.zeros(3))


@pytest.mark.parametrize("name", BOXED)
def test_dual_boxes_hold_the_conjugate(name):
    loss, cost = EVERY[name], np.array([0.5, 1.0, 2.0])
    box = loss.dual_box(cost)
    assert loss.has_box
    for share in np.linspace(-1.0 if loss.regression else 0.0, 1.0, 9):
        alpha = share * cost
        assert np.all((box.lower <= alpha) & (alpha <= box.upper))
        inside = 0.5 * box.diagonal * alpha**2 + box.tube * np.abs(alpha)
        np.testing.assert_allclose(inside, cost * loss.conjugate_of_slope(alpha / cost), atol=1e-14)


@pytest.mark.parametrize("name", BOXED)
def test_dual_boxes_by_hand(name):
    loss, cost = EVERY[name], np.array([0.0, 2.0])
    box, squared = loss.dual_box(cost), "squared" in name
    assert box.upper.tolist() == [0.0, np.inf if squared else 2.0]
    assert box.lower.tolist() == ([0.0, -box.upper[1]] if loss.regression else [0.0, 0.0])
    assert box.diagonal.tolist() == [0.0, 0.25 if squared else 0.0]
    assert box.tube == getattr(loss, "epsilon", 0.0)
    part = box.part(np.array([1]))
    assert (part.lower, part.upper, part.diagonal) == (box.lower[1:], box.upper[1:], box.diagonal[1:])
    assert part.tube == box.tube
    assert box.part(slice(0, 1)).upper.tolist() == [0.0]


@pytest.mark.parametrize("name", sorted(set(EVERY) - set(BOXED)))
def test_a_loss_without_box_says_so(name):
    assert not EVERY[name].has_box
    with pytest.raises(NotImplementedError, match=EVERY[name].name):
        EVERY[name].dual_box(np.ones(2))


@pytest.mark.parametrize("name", sorted(set(EVERY) - set(BENT)))
def test_a_loss_without_curvature_says_so(name):
    loss, one = EVERY[name], np.ones(2)
    assert not loss.smooth
    for call in (
        lambda: loss.curvature(one),
        lambda: curvature_in_score(loss, one, one),
        lambda: loss.slope_and_curvature(one),
    ):
        with pytest.raises(NotImplementedError, match=loss.name):
            call()


def test_smooth_losses_have_a_finite_curvature_everywhere():
    smooth = {name for name, loss in EVERY.items() if loss.smooth}
    assert smooth == set(BENT) - {"slack power 1.2", "slack power 1.5"}


def test_losses_have_their_names():
    assert all(loss.name == name and not loss.regression for name, loss in LOSSES.items())
    assert set(LOSSES) == {"hinge", "squared_hinge", "logistic"}
    assert slack_power(1) is LOSSES["hinge"]
    assert slack_power(2.0) is LOSSES["squared_hinge"]
    assert slack_power(3) == SlackPower(3.0)


@every
@pytest.mark.parametrize("far", [1e3, 1e30])
def test_far_scores_stay_finite(name, far):
    loss = EVERY[name]
    score, y = np.array([-far, far]), np.array([1.0, 1.0])
    value, slope = loss.value(score, y), slope_in_score(loss, score, y)
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    assert slope[0] < 0.0 <= value[1]

"""Conjugate gradients end where they are told, and not a step later."""

import numpy as np
import pytest

from maxmargin.space.conjugate_gradients import conjugate_gradients


class Products:
    """A matrix that counts its products."""

    def __init__(self, H):
        self.H, self.count = H, 0

    def __call__(self, v):
        self.count += 1
        return (self.H @ v.ravel()).reshape(v.shape)


def positive_definite(n=30, spread=100.0, seed=0):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    scale = np.geomspace(1.0, 1e3, n)  # columns of different size: without the diagonal this is hopeless
    H = scale[:, None] * (Q @ np.diag(np.geomspace(1.0, spread, n)) @ Q.T) * scale
    return H, rng.standard_normal(n) * scale


def remaining(H, g, x):
    """The residual beside g, both measured with 1/diagonal."""
    diagonal, r = np.diag(H), g - H @ x
    return np.sqrt((r @ (r / diagonal)) / (g @ (g / diagonal)))


def solve(H, g, forcing=1e-10, most_steps=200, **options):
    times = Products(H)
    return conjugate_gradients(times, g, np.diag(H), forcing=forcing, most_steps=most_steps, **options), times.count


@pytest.mark.parametrize("forcing", [0.3, 0.1, 1e-2, 1e-6])
def test_the_residual_is_as_small_as_asked_and_was_not_before(forcing):
    H, g = positive_definite()
    x, steps = solve(H, g, forcing)
    assert remaining(H, g, x) <= forcing * (1.0 + 1e-6)
    before, _ = solve(H, g, 0.0, steps - 1)
    assert remaining(H, g, before) > forcing


def test_the_end_is_the_solution():
    H, g = positive_definite()
    x, steps = solve(H, g)
    np.testing.assert_allclose(x, np.linalg.solve(H, g), rtol=1e-5, atol=1e-9)
    assert steps <= 60


@pytest.mark.parametrize("kinds", [1, 2, 4])
def test_there_are_as_many_steps_as_kinds_of_curvature(kinds):
    rng, n = np.random.default_rng(0), 32
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    H = Q @ np.diag(np.arange(n) % kinds + 1.0) @ Q.T
    g = rng.standard_normal(n)
    times = Products(H)
    x = conjugate_gradients(times, g, np.ones(n), forcing=1e-9, most_steps=100)
    assert times.count == kinds
    np.testing.assert_allclose(H @ x, g, atol=1e-8)


def test_the_first_step_minimises_along_the_scaled_gradient():
    H, g = positive_definite()
    x, _ = solve(H, g, 0.0, 1)
    z = g / np.diag(H)
    np.testing.assert_allclose(x, (g @ z) / (z @ H @ z) * z, rtol=1e-12)


def test_errors_fall_in_the_norm_of_the_matrix():
    H, g = positive_definite()
    wanted, errors = np.linalg.solve(H, g), []
    for steps in range(8):
        e = solve(H, g, 0.0, steps)[0] - wanted
        errors.append(e @ H @ e)
    assert np.all(np.diff(errors) < 0.0)


@pytest.mark.parametrize(("most_steps", "left", "count"), [(5, 100, 5), (100, 5, 5), (0, 100, 0), (100, 0, 0)])
def test_it_ends_after_so_many_steps_or_when_it_is_told(most_steps, left, count):
    H, g = positive_definite()
    answers = iter([False] * left + [True] * 100)
    x, steps = solve(H, g, 1e-12, most_steps, stop=lambda: next(answers))
    assert steps == count
    assert x.any() == (count > 0)


def test_unknowns_may_have_any_shape_and_are_not_changed():
    H, g = positive_definite(n=12)
    flat, _ = solve(H, g)
    given = g.reshape(3, 4).copy()
    folded = conjugate_gradients(Products(H), given, np.diag(H).reshape(3, 4), forcing=1e-10, most_steps=200)
    np.testing.assert_allclose(folded.ravel(), flat, rtol=1e-12)
    np.testing.assert_array_equal(given.ravel(), g)

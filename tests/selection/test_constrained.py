"""Least loss under a bound on the norm, and the C that belongs to it."""

import numpy as np
import pytest

from maxmargin import LinearSVC, within_norm
from tests.conftest import tall
from tests.oracles import objective


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", 1.5])
@pytest.mark.parametrize("tau", [0.05, 0.25])
def test_the_bound_is_met_and_its_C_gives_the_same_machine(loss, tau):
    X, y = tall(200, 4, seed=2)
    found = within_norm(X, y, tau, loss=loss)
    assert found.binding
    assert float(found.solution.w @ found.solution.w) == pytest.approx(tau, rel=1e-5)
    machine = LinearSVC(C=found.C, loss=loss, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(machine.coef_[0], found.solution.w, rtol=1e-4, atol=1e-6)


def test_no_hyperplane_of_that_norm_has_less_loss():
    X, y = tall(150, 3, seed=4)
    found = within_norm(X, y, 0.3)
    rng = np.random.default_rng(0)
    for _ in range(300):
        w = found.solution.w + 0.05 * rng.standard_normal(3)
        w *= min(1.0, np.sqrt(0.3) / np.linalg.norm(w))
        b = found.solution.b + 0.05 * rng.standard_normal()
        other = objective(X, y, np.ones(150), w, b, 1) - 0.5 * float(w @ w)
        assert other >= found.loss - 1e-5 * found.loss


def test_a_bound_that_does_not_bind():
    X, y = np.array([[-1.0], [1.0]]), np.array([0, 1])  # the hard margin has norm 1
    found = within_norm(X, y, 100.0)
    assert not found.binding
    assert found.solution.w == pytest.approx([1.0])


def test_bad_bounds_raise():
    with pytest.raises(ValueError, match="tau must be"):
        within_norm([[0.0], [1.0]], [0, 1], -1.0)

"""Separable or not: each verdict is checked by its own proof, and against perfect knowledge."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.certificates import judge_separability


def cloud(seed, n, d, gap):
    """Rows on both sides of a random hyperplane, ``gap`` away from it, or across it if negative."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(d)
    w /= np.linalg.norm(w)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    y[:2] = 1, -1
    X = rng.standard_normal((n, d))
    X += np.outer(y * gap - (X @ w) + y * np.abs(rng.standard_normal(n)) * (gap > 0), w)
    return X, y


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("seed", range(10))
def test_separable_clouds(seed, kind):
    X, y = cloud(seed, 60, 4, 0.05)
    verdict = judge_separability(kind(X), y)
    assert verdict.separable is True
    assert verdict.verify(kind(X), y) == 0.0
    assert np.all(y * (X @ verdict.coef + verdict.intercept) > 0)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("seed", range(10))
def test_mixed_clouds(seed, kind):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((80, 3)), np.where(rng.random(80) < 0.5, "no", "yes")
    verdict = judge_separability(kind(X), y)
    assert verdict.separable is False
    assert verdict.verify(kind(X), y) < 1e-9
    for label in ("no", "yes"):
        assert verdict.weights[y == label].sum() == pytest.approx(1.0)
    mean = [verdict.weights[y == label] @ X[y == label] for label in ("no", "yes")]
    np.testing.assert_allclose(*mean, atol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1.7e9, 1e10, -1e12])
def test_an_offset_hides_nothing(offset):
    X, y = offset + np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([0, 0, 1, 1])
    assert judge_separability(X, y).separable is True
    verdict = judge_separability(X, np.array([0, 1, 0, 1]))
    assert verdict.separable is False
    assert verdict.verify(X, y) > 0.1


def test_touching_classes_are_not_separable():
    X, y = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [2.0, 2.0]]), np.array([0, 0, 1, 1])
    assert judge_separability(X, y).separable is False


def test_a_given_hyperplane_is_enough():
    X, y = cloud(0, 60, 4, 0.05)
    found = judge_separability(X, y)
    again = judge_separability(X, y, hyperplane=(found.coef, found.intercept), max_seconds=0.0)
    assert again.separable is True


def test_forged_proofs_are_noticed():
    X, y = cloud(0, 60, 4, 0.05)
    verdict = judge_separability(X, y)
    assert verdict.verify(X, -y) > 0.0
    rng = np.random.default_rng(0)
    mixed, labels = rng.standard_normal((40, 2)), np.repeat([0, 1], 20)
    proof = judge_separability(mixed, labels)
    moved = mixed.copy()
    moved[np.argmax(proof.weights)] += 0.1
    assert proof.verify(moved, labels) > 1e-4
    assert proof.verify(mixed, np.roll(labels, 10)) > 1e-4


def test_time_limit_is_honest():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((4000, 60)), np.repeat([0, 1], 2000)
    verdict = judge_separability(X, y, max_seconds=1e-6)
    assert verdict.separable is None
    assert "not judged" in str(verdict)
    assert verdict.verify(X, y) == np.inf

"""The bounds themselves: valid for the hyperplane they found, and no random one gives a smaller value."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from maxmargin.theory import Bound, extended_space, freund_schapire, novikoff, winnow
from tests.online.oracles import mixed, separable


@pytest.mark.parametrize("bias", ["augmented", "radius", "none"])
def test_novikoff_uses_the_largest_margin(bias):
    rng = np.random.default_rng(0)
    for _ in range(20):
        X, y = separable(rng, centre=0.0 if bias == "none" else 1.0)
        bound = novikoff(X, y, bias=bias)
        if bound is None:
            assert bias == "none"
            continue
        assert bound.value == novikoff(sp.csr_array(X), y, bias=bias).value or math.isclose(
            bound.value, novikoff(sp.csr_array(X), y, bias=bias).value, rel_tol=1e-6
        )
        for _ in range(200):
            w, b = rng.standard_normal(X.shape[1]), rng.standard_normal() * (bias != "none")
            size = math.sqrt(w @ w + (b * b if bias == "augmented" else 0.0))
            assert (y * (X @ w + b)).min() / size <= bound.constants["gamma"] * (1 + 1e-6)


def test_novikoff_is_none_where_nothing_separates():
    X, y = mixed(np.random.default_rng(1), 60, 2)
    assert all(novikoff(X, y, bias=bias) is None for bias in ("augmented", "radius", "none"))
    with pytest.raises(ValueError, match="bias must be"):
        novikoff(X, y, bias="free")


@pytest.mark.parametrize("form", ["proved", "printed"])
def test_freund_and_schapire_is_minimised_over_the_hyperplane(form):
    rng = np.random.default_rng(2)
    for _ in range(10):
        X, y = mixed(rng, 40, 3)
        R = math.sqrt(np.square(X).sum(axis=1).max())

        def root(v, X=X, y=y, R=R):
            slack = np.maximum(0, 1 - y * (X @ v[:-1] + v[-1]))
            u = R * np.linalg.norm(v[:-1])
            if form == "printed":
                return 2 * (u + np.linalg.norm(slack))
            return math.sqrt(2) * math.hypot(u, v[-1]) + np.linalg.norm(slack)

        bound = freund_schapire(X, y, form=form)
        starts = [np.zeros(4), *rng.standard_normal((4, 4)) / R]
        best = min(minimize(root, v, method="Nelder-Mead", options={"maxiter": 4000}).fun for v in starts) ** 2
        assert best * (1 - 0.002) <= bound.value * (1 + 1e-9)
        assert bound.value <= best * 1.002
        gamma, b, D = (bound.constants[name] for name in ("gamma", "b", "D"))
        if math.isfinite(gamma) and form == "proved":
            assert bound.value == pytest.approx(((math.sqrt(2 * (R * R + b * b)) + D) / gamma) ** 2, rel=1e-6)
    with pytest.raises(ValueError, match="form must be"):
        freund_schapire(X, y, form="quoted")


def test_extended_space_is_minimised_over_the_hyperplane():
    rng = np.random.default_rng(3)
    for bias in (True, False):
        X, y = mixed(rng, 40, 3)
        delta, R2 = 0.7, np.square(X).sum(axis=1).max()
        bound = extended_space(X, y, delta, fit_intercept=bias)
        for _ in range(300):
            u, c = rng.standard_normal(3), rng.standard_normal() * bias
            slack = np.maximum(0, 1 - y * (X @ u + c))
            assert bound.value <= (4 if bias else 1) * (R2 + delta**2) * (u @ u + slack @ slack / delta**2) * (1 + 1e-7)
    with pytest.raises(ValueError, match="delta must be"):
        extended_space(X, y, 0.0)


def test_winnow_takes_the_best_direction_of_norm_one():
    rng = np.random.default_rng(4)
    for _ in range(10):
        X, y = separable(rng, gap=0.1)
        bound = winnow(X, y)
        Z = np.hstack([X, np.ones((len(X), 1))])
        assert bound.constants["d"] == Z.shape[1]
        assert bound.value == pytest.approx(
            2 * (np.abs(Z).max() / bound.constants["gamma"]) ** 2 * math.log(2 * Z.shape[1])
        )
        for _ in range(200):
            u = rng.standard_normal(Z.shape[1])
            assert (y * (Z @ u)).min() / np.abs(u).sum() <= bound.constants["gamma"] * (1 + 1e-7)
        assert winnow(sp.csr_array(X), y).value == pytest.approx(bound.value)
    assert winnow(*mixed(rng, 60, 2)) is None


def test_a_bound_reads_as_a_sentence():
    bound = Bound(4.0, "Novikoff", "η is constant", {"R": 2.0, "gamma": 1.0})
    assert str(bound) == "at most 4 (Novikoff; R = 2, gamma = 1). Holds if η is constant."

"""A certificate accepts what was fitted and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import LinearSVC, OptimalityCertificate
from maxmargin.certificates import Outcome
from tests.conftest import tall

MACHINES = [
    {"loss": "hinge"},
    {"loss": "squared_hinge"},
    {"loss": "hinge", "penalize_intercept": True},
    {"loss": "squared_hinge", "fit_intercept": False},
    {"loss": "hinge", "class_weight": "balanced"},
    {"loss": "squared_hinge", "class_weight": {-1: 0.3}},
]


@pytest.fixture(params=range(len(MACHINES)), ids=lambda k: " ".join(map(str, MACHINES[k].values())))
def fitted(request):
    X, y = tall(150, 4, seed=20 + request.param)
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    machine = LinearSVC(**MACHINES[request.param]).fit(X, y, weight)
    assert np.linalg.norm(machine.coef_) > 0.1
    return X, y, weight, machine


def test_accepts_the_fit(fitted):
    X, y, weight, machine = fitted
    verdict = machine.certificate_.verify(X, y, weight)
    assert verdict
    assert verdict.primal == pytest.approx(machine.solution_.primal, rel=1e-12)
    assert verdict.outcome is Outcome.PROVEN
    assert not any(verdict.checks.values())
    assert str(verdict).startswith("verified")
    assert machine.certificate_.verify(sp.csr_array(X), y, weight)


@pytest.mark.parametrize("factor", [1.0 + 1e-3, 1.0 - 1e-3])
@pytest.mark.parametrize("part", ["coef", "intercept", "alpha", "primal", "dual"])
def test_rejects_every_altered_number(fitted, part, factor):
    X, y, weight, machine = fitted
    certificate = machine.certificate_
    if part == "intercept" and not certificate.fit_intercept:
        altered = replace(certificate, intercept=1e-3)
    else:
        altered = replace(certificate, **{part: getattr(certificate, part) * factor})
    verdict = altered.verify(X, y, weight)
    assert not verdict
    assert verdict.outcome is Outcome.REJECTED
    assert str(verdict).startswith("REJECTED")


def test_rejects_a_single_altered_weight_or_multiplier(fitted):
    X, y, weight, machine = fitted
    certificate = machine.certificate_
    coef = certificate.coef.copy()
    coef[np.argmax(np.abs(coef))] *= 1.001
    assert not replace(certificate, coef=coef).verify(X, y, weight)
    alpha = certificate.alpha.copy()
    alpha[np.argmax(alpha)] *= 1.001
    assert not replace(certificate, alpha=alpha).verify(X, y, weight)


def test_rejects_other_data(fitted):
    X, y, weight, machine = fitted
    certificate = machine.certificate_
    assert not certificate.verify(X * 1.001, y, weight)
    assert not certificate.verify(X, y, weight * 1.001)
    assert not certificate.verify(X, -y, weight)
    flipped = y.copy()
    flipped[machine.support_[0]] *= -1
    assert not certificate.verify(X, flipped, weight)
    assert certificate.verify(X[:-1], y[:-1], weight[:-1]).worst == "shape"
    assert certificate.verify(X, np.where(y > 0, 7, -1), weight).worst == "labels"
    assert not certificate.verify(X[:, :-1], y, weight)


def test_rejects_numbers_that_are_not_finite(fitted):
    X, y, weight, machine = fitted
    assert replace(machine.certificate_, primal=np.nan).verify(X, y, weight).worst == "finite"


def test_an_early_stop_is_certified_as_what_it_is():
    X, y = tall(400, 8, seed=1)
    with pytest.warns(UserWarning, match="relative gap of"):
        machine = LinearSVC(loss="hinge", C=10.0, max_iter=3, solver="interior_point").fit(X, y)
    assert machine.solution_.gap > 1e-6
    verdict = machine.certificate_.verify(X, y)
    assert not verdict
    assert verdict.outcome is Outcome.HONEST
    assert verdict.gap == pytest.approx(machine.solution_.gap, rel=1e-6)
    assert str(verdict).startswith("NOT PROVEN")
    assert machine.certificate_.verify(X, y, max_gap=1.0)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_distance_bound_holds(loss):
    X, y = tall(300, 5, seed=2)
    exact = LinearSVC(loss=loss).fit(X, y)
    with pytest.warns(UserWarning, match="relative gap of"):
        rough = LinearSVC(loss=loss, max_iter=4, solver="interior_point").fit(X, y)
    distance = np.linalg.norm(rough.coef_ - exact.coef_)
    assert distance <= rough.certificate_.distance_bound + exact.certificate_.distance_bound


def test_rejects_what_is_no_problem_at_all(fitted):
    X, y, weight, machine = fitted
    certificate = machine.certificate_
    assert certificate.verify(X, y, weight[:-1]).worst == "shape"
    assert certificate.verify(X[0], y, weight).worst == "shape"
    assert certificate.verify(X, y, -weight).worst == "weights"
    assert certificate.verify(X, y, np.where(y > 0, weight, 0.0)).worst == "weights"
    assert replace(certificate, loss="absolute").verify(X, y, weight).worst == "loss"
    broken = X.copy()
    broken[3, 1] = np.nan
    assert certificate.verify(broken, y, weight).worst == "finite"
    assert certificate.verify(X, y, np.full(len(y), np.inf)).worst == "finite"


def test_a_bound_above_the_optimum_is_never_accepted():
    # One multiplier exceeds its small box although it is small beside the largest cost.
    claim = OptimalityCertificate(
        coef=np.array([0.1, 1.0]), intercept=0.0, alpha=np.array([0.01, 1.0]), primal=0.505, dual=0.505, gap=0.0,
        loss="hinge", C=1.0, classes=np.array([0, 1]), tol=1e-6, fit_intercept=False,
    )  # fmt: skip
    X = [[10.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    assert not claim.verify(X[:2], [1, 1], [1e6, 0.1])
    longer = replace(claim, alpha=np.array([0.01, 1.0, 0.0]))
    assert not longer.verify(X, [1, 1, 0], [1e6, 0.1, 1e-9])
    # A tiny imbalance times a huge bias.
    p = (1.0 - (1.0 - 4.0 * 0.5) / (1e7 + 2.0)) / 2.0
    offset = replace(
        claim, coef=np.array([1.0]), intercept=-(1e7 + 2.0), alpha=np.array([p, 1.0 - p]), primal=0.5, dual=0.5,
        C=10.0, fit_intercept=True,
    )  # fmt: skip
    assert not offset.verify([[1e7], [1e7 + 4.0]], [0, 1])


def test_the_certificate_keeps_its_own_copies():
    X, y = tall(60, 3, seed=3)
    factors = {1: 2.0}
    machine = LinearSVC(class_weight=factors).fit(X, y)
    factors[1] = 3.0
    machine.coef_ *= 2.0
    assert machine.certificate_.verify(X, y)

"""Proofs for several classes: they hold, they are tight, and they reject what was changed."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import CombinedCertificate, LinearSVC, LogisticRegression, OptimalityCertificate
from tests.oracles import Form
from tests.svm.test_multiclass import blobs

MACHINES = {
    "ovr": LinearSVC(loss="hinge"),
    "ovo": LinearSVC(loss="hinge", multi_class="ovo"),
    "squared": LinearSVC(),
    "power": LinearSVC(loss=1.5),
    "l1": LinearSVC(penalty="l1"),
    "logistic-ovr": LogisticRegression(multi_class="ovr"),
    "logistic-l1": LogisticRegression(penalty="l1", multi_class="ovo"),
    "crammer_singer": LinearSVC(multi_class="crammer_singer"),
    "multinomial": LogisticRegression(),
}
JOINT = ["crammer_singer", "multinomial"]
COMBINED = [name for name in MACHINES if name not in JOINT]


def fitted(name, **options):
    from sklearn.base import clone

    X, y = blobs(120, 3, 3)
    return X, y, clone(MACHINES[name]).set_params(**options).fit(X, y)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("bias", [{}, {"fit_intercept": False}, {"penalize_intercept": True, "intercept_scaling": 3.0}])
def test_accepts_what_was_fitted(name, bias):
    X, y, machine = fitted(name, **bias)
    claim = machine.certificate_
    assert isinstance(claim, OptimalityCertificate if name in JOINT else CombinedCertificate)
    verdict = claim.verify(X, y)
    assert verdict, str(verdict)
    assert verdict.gap <= 1e-6
    assert verdict.primal == pytest.approx(machine.solution_.primal, rel=1e-9)
    assert verdict.dual == pytest.approx(machine.solution_.dual, rel=1e-6)
    assert claim.verify(sp.csr_array(X), y.tolist())
    assert not claim.verify(X.astype(np.float32).astype(np.float64), y), "other rows, by a little"


@pytest.mark.parametrize("name", MACHINES)
def test_rejects_other_data(name):
    X, y, machine = fitted(name)
    claim = machine.certificate_
    flipped = y.copy()
    flipped[0] = "a" if y[0] != "a" else "b"
    moved = X.copy()
    moved[machine.support_[np.abs(machine.dual_coef_).sum(axis=0).argmax()]] += 0.1
    assert not claim.verify(X, flipped)
    assert not claim.verify(moved, y)
    assert not claim.verify(X, np.where(y == "a", "b", np.where(y == "b", "a", y)))
    assert not claim.verify(X, np.where(y == "a", "z", y))
    assert not claim.verify(X[:, :-1], y)
    assert not claim.verify(X, y, np.full(len(y), 1.01))
    assert not claim.verify(X, y, np.ones(3))
    assert not claim.verify(X, y, -np.ones(len(y)))
    broken = X.copy()
    broken[0, 0] = np.nan
    assert not claim.verify(broken, y)


@pytest.mark.parametrize("name", MACHINES)
def test_rejects_other_numbers_of_rows(name):
    X, y, machine = fitted(name)
    assert not machine.certificate_.verify(np.vstack([X, X[:1]]), np.append(y, y[0]))
    assert not machine.certificate_.verify(X[:-1], y[:-1])


@pytest.mark.parametrize("name", COMBINED)
@pytest.mark.parametrize("part", [0, 2])
def test_rejects_a_changed_part(name, part):
    X, y, machine = fitted(name)
    claim = machine.certificate_
    own = claim.parts[part]
    changes = {
        "coef": 1.01 * own.coef,
        "intercept": own.intercept + 0.01,
        "alpha": 0.99 * own.alpha,
        "C": 1.01 * own.C,
        "primal": 0.999 * own.primal,
        "dual": 1.001 * own.dual,
        "gap": own.gap + 0.01,
    }
    for field, value in changes.items():
        parts = [replace(p, **{field: value}) if k == part else p for k, p in enumerate(claim.parts)]
        assert not replace(claim, parts=tuple(parts)).verify(X, y), field
    assert not replace(claim, parts=claim.parts[::-1]).verify(X, y)
    assert not replace(claim, parts=claim.parts[:2]).verify(X, y)
    assert not replace(claim, class_weight={"a": 2.0}).verify(X, y)
    other = "ovo" if claim.scheme == "ovr" else "ovr"
    assert not replace(claim, scheme=other).verify(X, y)


@pytest.mark.parametrize("name", JOINT)
@pytest.mark.parametrize("bias", [{}, {"fit_intercept": False}, {"penalize_intercept": True}])
def test_rejects_a_changed_joint_machine(name, bias):
    X, y, machine = fitted(name, **bias)
    claim = machine.certificate_
    alpha = claim.alpha.copy()
    alpha[machine.support_[0]] = np.roll(alpha[machine.support_[0]], 1)
    changes = {
        "coef": 1.01 * claim.coef,
        "intercept": claim.intercept + 0.01 * np.arange(3),
        "alpha": alpha,
        "C": 1.01,
        "primal": 0.999 * claim.primal,
        "dual": 1.001 * claim.dual,
        "gap": claim.gap + 0.01,
        "loss": "crammer_singer" if name == "multinomial" else "multinomial",
        "class_weight": {"a": 2.0},
    }
    for field, value in changes.items():
        assert not replace(claim, **{field: value}).verify(X, y), field
    assert not replace(claim, alpha=0.99 * claim.alpha).verify(X, y)
    assert not replace(claim, coef=claim.coef[::-1], alpha=claim.alpha).verify(X, y)
    assert not replace(claim, alpha=claim.alpha[:, :2]).verify(X, y)
    assert not replace(claim, coef=np.full_like(claim.coef, np.nan)).verify(X, y)
    assert not replace(claim, loss="hinge").verify(X, y)


@pytest.mark.parametrize("name", JOINT)
def test_the_bound_holds_for_any_weights(name):
    """Weak duality with hyperplanes that nobody fitted, and with multipliers that nobody optimised."""
    rng = np.random.default_rng(0)
    X, y, machine = fitted(name)
    position = np.searchsorted(machine.classes_, y)
    form, cost = Form(name), np.ones(len(y))
    best = form.solve(X, position, cost)
    assert machine.certificate_.dual <= best.value * (1 + 1e-9)
    assert machine.certificate_.primal == pytest.approx(best.value, rel=1e-6)
    for _ in range(50):
        W, b = rng.standard_normal((3, 3)), rng.standard_normal(3)
        assert form.objective(X, position, cost, W, b) >= machine.certificate_.dual
        distance = np.linalg.norm(best.W - machine.coef_)
    assert distance <= machine.certificate_.distance_bound + 1e-3


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("class_weight", ["balanced", {"a": 2.0, "c": 0.5}])
def test_weights_are_part_of_the_claim(name, class_weight):
    from sklearn.base import clone

    X, y = blobs(120, 3, 3)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    machine = clone(MACHINES[name]).set_params(class_weight=class_weight).fit(X, y, weight)
    assert machine.certificate_.verify(X, y, weight)
    assert not machine.certificate_.verify(X, y)
    assert not replace(machine.certificate_, class_weight=None).verify(X, y, weight)


def test_rough_machines_have_honest_gaps():
    X, y = blobs(150, 4, 3)
    for options in ({"tol": 0.3}, {"tol": 0.3, "multi_class": "crammer_singer"}):
        machine = LinearSVC(loss="hinge", solver="dual_cd", **options).fit(X, y)
        tight = LinearSVC(loss="hinge", multi_class=options.get("multi_class", "ovr")).fit(X, y)
        assert machine.certificate_.verify(X, y)
        assert machine.certificate_.dual <= tight.solution_.primal <= machine.certificate_.primal * (1 + 1e-6)
        assert np.linalg.norm(machine.coef_ - tight.coef_, axis=1).max() <= machine.certificate_.distance_bound + 1e-3

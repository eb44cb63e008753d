"""A certificate of a sparse expansion accepts what was fitted and nothing else."""

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from maxmargin import ConvergenceWarning
from maxmargin.certificates import Outcome
from maxmargin.kernels import Gaussian, Linear
from maxmargin.svm.sparse import SparseSVC
from tests.conftest import tall

MACHINES = [
    {"kernel": "rbf"},
    {"kernel": "sigmoid", "gamma": 0.3, "coef0": 0.1},
    {"kernel": "poly", "class_weight": "balanced"},
    {"kernel": "linear", "class_weight": {-1: 1.7}},
    {"kernel": 2.0 * Gaussian(0.3) + Linear() * Gaussian(0.1)},
]
CASES = [(penalty, k) for penalty in ("l1", "l2") for k in range(len(MACHINES))]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{MACHINES[case[1]]['kernel']!s:.8}")
def fitted(request):
    penalty, k = request.param
    rng = np.random.default_rng(20 + k)
    X = rng.standard_normal((90, 3))
    y = np.where(X @ [1.0, -1.0, 0.5] + 0.3 + 0.4 * rng.standard_normal(90) > 0.0, 1, -1)
    weight = rng.uniform(0.0, 2.0, 90)
    weight[5:10] = 0.0
    machine = SparseSVC(penalty=penalty, C=2.0, **MACHINES[k]).fit(X, y, weight)
    assert len(machine.support_) > 1
    return X, y, weight, machine


def altered(certificate, **changes):
    """The same certificate with other numbers of its only machine."""
    return replace(certificate, parts=(replace(certificate.parts[0], **changes),))


def test_accepts_the_fit(fitted):
    X, y, weight, machine = fitted
    verdict = machine.certificate_.verify(X, y, weight)
    assert verdict, str(verdict)
    assert verdict.outcome is Outcome.PROVEN
    assert not any(verdict.checks.values())
    assert verdict.primal == pytest.approx(machine.solution_.primal, rel=1e-9)
    assert verdict.dual == pytest.approx(machine.solution_.dual, rel=1e-9)
    assert verdict.gap == machine.solution_.gap <= 1e-6
    assert machine.certificate_.verify(sp.csr_array(X), y, weight)
    assert machine.certificate_.verify(X.tolist(), y.tolist(), weight.tolist())


@pytest.mark.parametrize("factor", [1.0 + 1e-4, 1.0 - 1e-4])
@pytest.mark.parametrize("part", ["alpha", "intercept", "beta", "primal", "dual", "gap"])
def test_rejects_every_altered_number(fitted, part, factor):
    X, y, weight, machine = fitted
    certificate = machine.certificate_
    verdict = altered(certificate, **{part: getattr(certificate.parts[0], part) * factor}).verify(X, y, weight)
    assert verdict.outcome is Outcome.REJECTED
    assert str(verdict).startswith("REJECTED")


def test_rejects_a_single_altered_coefficient_or_multiplier(fitted):
    X, y, weight, machine = fitted
    part = machine.certificate_.parts[0]
    for name in ("alpha", "beta"):
        for factor in (1.001, 0.999):
            values = getattr(part, name).copy()
            values[np.argmax(values)] *= factor
            assert altered(machine.certificate_, **{name: values}).verify(X, y, weight).outcome is Outcome.REJECTED


def test_rejects_other_data(fitted):
    X, y, weight, machine = fitted
    certificate = machine.certificate_
    assert not certificate.verify(X * 1.001, y, weight)
    assert not certificate.verify(X, y, weight * 1.001)
    assert not certificate.verify(X, -y, weight)
    flipped = y.copy()
    flipped[machine.support_[0]] *= -1
    assert not certificate.verify(X, flipped, weight)
    assert not certificate.verify(X, y)
    assert certificate.verify(X[:-1], y[:-1], weight[:-1]).worst == "shape"
    assert certificate.verify(X, y, weight[:-1]).worst == "shape"
    assert certificate.verify(X[0], y, weight).worst == "shape"
    assert certificate.verify(X, np.where(y > 0, 7, -1), weight).worst == "labels"


def test_rejects_another_problem(fitted):
    X, y, weight, machine = fitted
    certificate = machine.certificate_
    other = "l2" if certificate.penalty == "l1" else "l1"
    for changes in ({"C": 2.001}, {"penalty": other}, {"class_weight": {-1: 2.0}}, {"kernel": ("rbf", 7.0)}):
        assert replace(certificate, **changes).verify(X, y, weight).outcome is Outcome.REJECTED
    assert replace(certificate, penalty="l3").verify(X, y, weight).worst == "problem"
    assert replace(certificate, class_weight="even").verify(X, y, weight).worst == "problem"
    assert replace(certificate, kernel=("cosine", 1.0)).verify(X, y, weight).worst == "kernel"
    assert replace(certificate, kernel="rbf").verify(X, y, weight).worst == "kernel"
    assert replace(certificate, parts=()).verify(X, y, weight).worst == "shape"
    assert replace(certificate, C=-1.0).verify(X, y, weight).worst == "weights"
    assert certificate.verify(X, y, -weight).worst == "weights"
    assert certificate.verify(X, y, np.where(y > 0, weight, 0.0)).worst == "weights"


def test_rejects_numbers_that_are_not_finite_or_of_another_type(fitted):
    X, y, weight, machine = fitted
    certificate = machine.certificate_
    part = certificate.parts[0]
    assert altered(certificate, primal=np.nan).verify(X, y, weight).worst == "finite"
    assert altered(certificate, alpha=part.alpha + np.inf).verify(X, y, weight).worst == "finite"
    assert altered(certificate, beta=part.beta.astype(np.float32)).verify(X, y, weight).worst == "numbers"
    assert altered(certificate, intercept=np.float32(part.intercept)).verify(X, y, weight).worst == "numbers"
    broken = X.copy()
    broken[3, 1] = np.nan
    assert certificate.verify(broken, y, weight).worst == "finite"
    assert certificate.verify(X, y, weight + np.inf).outcome is Outcome.REJECTED


def test_rows_that_are_left_out_have_neither_coefficient_nor_multiplier(fitted):
    X, y, weight, machine = fitted
    certificate = machine.certificate_
    for name in ("alpha", "beta"):
        values = getattr(certificate.parts[0], name).copy()
        values[5] = 1e-30
        assert altered(certificate, **{name: values}).verify(X, y, weight).worst == "feasibility"


def test_a_negative_coefficient_is_rejected(fitted):
    X, y, weight, machine = fitted
    alpha = machine.certificate_.parts[0].alpha.copy()
    alpha[np.flatnonzero((alpha == 0.0) & (weight > 0.0))[0]] = -1e-30
    assert altered(machine.certificate_, alpha=alpha).verify(X, y, weight).worst == "feasibility"


def test_a_bound_above_the_optimum_is_never_accepted():
    X, y = np.array([[-1.0], [1.0]]), np.array([0, 1])
    machine = SparseSVC(kernel="linear", C=10.0).fit(X, y)
    certificate = machine.certificate_
    part = certificate.parts[0]
    assert part.primal == pytest.approx(1.0)  # f(x) = x; the slope of β = (½, ½) is 1
    above = {"beta": np.array([0.6, 0.6]), "dual": 1.2, "gap": 0.0}
    assert altered(certificate, **above).verify(X, y).worst == "dual value"
    lopsided = part.beta.copy()
    lopsided[0] = np.nextafter(lopsided[0], 0.0)
    assert altered(certificate, beta=lopsided).verify(X, y).worst == "balance"
    # Slopes of exactly 1 cannot be told from slopes above 1 in rounded arithmetic.
    edge = {"beta": np.array([0.5, 0.5]), "dual": 1.0, "gap": (part.primal - 1.0) / part.primal}
    assert altered(certificate, **edge).verify(X, y).worst == "dual value"
    assert replace(certificate, C=0.4).verify(X, y).worst == "feasibility"  # multipliers above their costs
    # A function that misses both margins.
    short = {"alpha": 0.5 * part.alpha, "primal": 0.5, "dual": 0.5, "beta": 0.5 * part.beta, "gap": 0.0}
    assert altered(certificate, **short).verify(X, y).worst == "primal value"


@pytest.mark.parametrize("kernel", ["linear", "poly", "precomputed"])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_claims_hold_without_any_rounding(penalty, kernel):
    for seed in range(4):
        X, y = tall(25, 2, seed=seed)
        C = 10.0 ** (2 * seed - 1)
        given = X @ X.T if kernel == "precomputed" else X
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine = SparseSVC(penalty=penalty, kernel=kernel, C=C, gamma=0.5, coef0=1.0, degree=2).fit(given, y)
        part = machine.certificate_.parts[0]
        exact = [[Fraction(value) for value in row] for row in given.tolist()]
        K = exact
        if kernel != "precomputed":
            K = [[sum(a * b for a, b in zip(u, v, strict=True)) for v in exact] for u in exact]
        if kernel == "poly":
            K = [[(value / 2 + 1) ** 2 for value in row] for row in K]
        signs, cost = y.tolist(), Fraction(C)
        alpha, beta = ([Fraction(value) for value in values.tolist()] for values in (part.alpha, part.beta))

        def sums(values, K=K, signs=signs):
            return [
                s * sum(a * t * k for a, t, k in zip(values, signs, row, strict=True))
                for s, row in zip(signs, K, strict=True)
            ]

        margins = [m + s * Fraction(part.intercept) for m, s in zip(sums(alpha), signs, strict=True)]
        slack = cost * sum(max(Fraction(0), 1 - margin) for margin in margins)
        of_alpha = sum(alpha) if penalty == "l1" else sum(a * a for a in alpha) / 2
        slopes = sums(beta)
        assert of_alpha + slack <= part.primal <= float(of_alpha + slack) * (1.0 + 1e-6)
        assert sum(b * s for b, s in zip(beta, signs, strict=True)) == 0
        assert all(0 <= b <= cost for b in beta)
        lost = sum(max(Fraction(0), slope) ** 2 for slope in slopes) / 2 if penalty == "l2" else 0
        assert penalty == "l2" or max(slopes) <= 1
        assert float(sum(beta) - lost) * (1.0 - 1e-6) <= part.dual <= sum(beta) - lost


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_an_early_stop_is_certified_as_what_it_is(penalty):
    X, y = tall(200, 3, seed=1)
    machine = SparseSVC(penalty=penalty, C=5.0, tol=0.1).fit(X, y)
    certificate = machine.certificate_
    assert certificate.verify(X, y)
    if machine.solution_.gap > 1e-9:
        verdict = certificate.verify(X, y, max_gap=1e-9)
        assert verdict.outcome is Outcome.HONEST
        assert str(verdict).startswith("NOT PROVEN")
    with pytest.warns(UserWarning, match="the time limit was reached first"):
        stopped = SparseSVC(penalty=penalty, C=5.0, max_seconds=1e-9).fit(X, y)
    verdict = stopped.certificate_.verify(X, y)
    assert verdict.outcome is Outcome.HONEST
    assert verdict.gap == pytest.approx(stopped.solution_.gap, rel=1e-6)
    assert stopped.certificate_.verify(X, y, max_gap=1.0)


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_several_machines(penalty, scheme):
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    machine = SparseSVC(penalty=penalty, multi_class=scheme, class_weight="balanced").fit(X, y, weight)
    certificate = machine.certificate_
    verdict = certificate.verify(X, y, weight)
    assert verdict
    assert verdict.primal == pytest.approx(machine.solution_.primal)
    assert verdict.gap == certificate.gap == max(part.gap for part in certificate.parts)
    assert "3 machines" in repr(certificate)
    for k in range(3):
        parts = list(certificate.parts)
        parts[k] = replace(parts[k], alpha=parts[k].alpha * 1.001)
        assert replace(certificate, parts=tuple(parts)).verify(X, y, weight).outcome is Outcome.REJECTED
    turned = replace(certificate, parts=certificate.parts[::-1])
    assert turned.verify(X, y, weight).outcome is Outcome.REJECTED
    other = replace(certificate, scheme="ovo" if scheme == "ovr" else "ovr")
    assert other.verify(X, y, weight).outcome is Outcome.REJECTED
    assert replace(certificate, parts=certificate.parts[:2]).verify(X, y, weight).worst == "shape"


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_values_that_are_given(penalty):
    X, y = tall(60, 3, seed=2)
    K = Gaussian(0.4).gram(X)
    machine = SparseSVC(penalty=penalty, kernel="precomputed").fit(K, y)
    assert machine.certificate_.verify(K, y)
    assert machine.certificate_.verify(K[:, :-1], y).worst == "shape"
    wrong = K.copy()
    i = machine.support_[0]
    wrong[i] += 0.01
    wrong[:, i] = wrong[i]
    assert not machine.certificate_.verify(wrong, y)

    def called(X, Z):
        return np.tanh(0.3 * X @ Z.T - 0.2)

    machine = SparseSVC(penalty=penalty, kernel=called).fit(X, y)
    assert machine.certificate_.verify(X, y)
    assert not replace(machine.certificate_, kernel=("callable", lambda X, Z: 1.01 * called(X, Z), {})).verify(X, y)
    of_wrong_shape = replace(machine.certificate_, kernel=("callable", lambda X, Z: np.ones(2), {}))
    assert of_wrong_shape.verify(X, y).worst == "kernel"
    not_finite = replace(machine.certificate_, kernel=("callable", lambda X, Z: called(X, Z) * np.nan, {}))
    assert not_finite.verify(X, y).outcome is Outcome.REJECTED


def test_the_certificate_keeps_its_own_copies():
    X, y = tall(60, 3, seed=3)
    factors = {1: 2.0}
    machine = SparseSVC(class_weight=factors).fit(X, y)
    factors[1] = 3.0
    machine.dual_coef_ *= 2.0
    machine.solution_.w.fill(0.0)
    machine.solution_.alpha.fill(0.0)
    assert machine.certificate_.verify(X, y)

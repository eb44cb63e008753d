"""What the certificates of several classes, and of one, must not let pass."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from maxmargin import LinearSVC, LogisticRegression, OptimalityCertificate
from maxmargin.certificates import Outcome
from tests.svm.test_multiclass import blobs


@pytest.fixture(scope="module")
def ovr():
    X, y = blobs(120, 3, 3)
    return X, y, LinearSVC(loss="hinge").fit(X, y).certificate_


@pytest.fixture(scope="module")
def multinomial():
    X, y = blobs(120, 3, 3)
    return X, y, LogisticRegression().fit(X, y).certificate_


def refused(claim, X, y, worst=None):
    verdict = claim.verify(X, y)
    assert verdict.outcome is Outcome.REJECTED
    assert not verdict
    assert worst is None or verdict.worst == worst, str(verdict)
    assert str(verdict).startswith(f"REJECTED: {verdict.worst}: ")
    return verdict


@pytest.mark.parametrize(
    ("name", "value"),
    [("C", 2.0), ("loss", "squared_hinge"), ("tol", 1e-3), ("fit_intercept", False), ("penalty_scale", 1.0)],
)
def test_parts_must_be_alike(ovr, name, value):
    X, y, claim = ovr
    for k in range(3):
        parts = [replace(part, **{name: value}) if j == k else part for j, part in enumerate(claim.parts)]
        refused(replace(claim, parts=tuple(parts)), X, y, "parts")
    whole = tuple(replace(part, **{name: value}) for part in claim.parts)
    refused(replace(claim, parts=whole), X, y, "parts")


def test_a_combined_claim_says_what_its_parts_are(ovr):
    """Parts of another C agree among themselves, and each is proven, but it is not what was claimed."""
    X, y, claim = ovr
    other = LinearSVC(loss="hinge", C=3.0).fit(X, y).certificate_
    assert other.verify(X, y)
    refused(replace(claim, parts=other.parts), X, y, "parts")


@pytest.mark.parametrize("classes", [np.array([True, False]), np.array(["a", "b"]), np.array([0, 1, 2]), None])
def test_labels_inside_parts_count(ovr, classes):
    X, y, claim = ovr
    parts = (replace(claim.parts[0], classes=classes), *claim.parts[1:])
    refused(replace(claim, parts=parts), X, y, "labels of parts")
    weighted = (replace(claim.parts[0], class_weight={True: 2.0}), *claim.parts[1:])
    refused(replace(claim, parts=weighted), X, y, "labels of parts")


@pytest.mark.parametrize("kind", ["ovr", "multinomial"])
def test_swapped_classes_are_a_verdict(kind, request):
    X, y, claim = request.getfixturevalue(kind)
    for order in ([1, 0, 2], [2, 1, 0]):
        refused(replace(claim, classes=claim.classes[order]), X, y, "labels")
    refused(replace(claim, classes=claim.classes[:2]), X, y)
    refused(replace(claim, classes=np.array(["a", "a", "b"])), X, y, "labels")
    mixed = np.array(["a", 1, None], dtype=object)
    refused(replace(claim, classes=mixed), X, y, "labels")


def test_a_pair_leaves_others_out():
    X, y = blobs(120, 3, 3)
    claim = LinearSVC(loss="hinge", multi_class="ovo").fit(X, y).certificate_
    outside = np.flatnonzero(y == claim.classes[2])[0]
    alpha = claim.parts[0].alpha.copy()
    alpha[outside] = 0.5
    refused(replace(claim, parts=(replace(claim.parts[0], alpha=alpha), *claim.parts[1:])), X, y, "feasibility")


@pytest.mark.parametrize("by", [3e-3, 1e-4, 1e-5])
def test_an_intercept_that_is_off_is_noticed(multinomial, by):
    """The objective hardly changes, but it does: by more than rounding explains."""
    X, y, claim = multinomial
    refused(replace(claim, intercept=claim.intercept + by * np.array([1.0, 0.0, -1.0])), X, y, "primal value")


@pytest.mark.parametrize("machine", [LinearSVC(multi_class="crammer_singer"), LogisticRegression()])
def test_joint_multipliers_balance_to_the_last_bit(machine):
    X, y = blobs(120, 3, 3)
    claim = machine.fit(X, y).certificate_
    assert all(sum(map(float, column)) == 0.0 for column in claim.alpha.T)
    i = int(np.argmax(np.abs(claim.alpha).sum(axis=1)))
    alpha = claim.alpha.copy()
    alpha[i] += np.spacing(np.abs(alpha[i]).max()) * np.array([1.0, -1.0, 0.0])
    assert refused(replace(claim, alpha=alpha), X, y).worst in ("balance", "feasibility")


def test_two_classes_balance_to_the_last_bit():
    X, y = blobs(120, 3, 2)
    claim = LinearSVC(loss="hinge").fit(X, y).certificate_
    alpha = claim.alpha.copy()
    inside = int(np.argmax(np.minimum(alpha, 1.0 - alpha)))
    alpha[inside] = np.nextafter(alpha[inside], 0.0)
    refused(replace(claim, alpha=alpha), X, y, "balance")


def test_a_gap_of_zero_is_not_claimed_where_it_is_1e_7():
    """A claim must agree with what is recomputed within rounding, not within a tolerance."""
    X, y = blobs(200, 4, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        claim = LinearSVC(loss="hinge", tol=1e-3, solver="dual_cd").fit(X, y).certificate_
    assert claim.verify(X, y)
    refused(replace(claim, dual=claim.primal, gap=0.0), X, y, "dual value")
    lower = claim.primal * (1.0 - 1e-9)
    refused(replace(claim, primal=lower, gap=(lower - claim.dual) / lower), X, y, "primal value")
    refused(replace(claim, gap=0.5 * claim.gap), X, y, "gap")


def test_a_claim_in_one_line():
    X, y = blobs(120, 3, 3)
    for machine in (LinearSVC(), LogisticRegression(), LinearSVC(multi_class="ovo")):
        text = repr(machine.fit(X, y).certificate_)
        assert len(text) < 200
        assert "\n" not in text
        assert "gap" in text


def test_the_demand_can_be_set():
    X, y = blobs(120, 3, 3)
    for machine in (LinearSVC(), LogisticRegression(), LinearSVC(multi_class="crammer_singer")):
        claim = machine.set_params(tol=1e-3).fit(X, y).certificate_
        assert claim.tol == 1e-3
        assert claim.verify(X, y).outcome is Outcome.PROVEN
        assert claim.verify(X, y, max_gap=0.0).outcome is Outcome.HONEST


def test_what_no_fit_claims_is_a_verdict_not_an_error():
    X, y = blobs(60, 3, 2)
    y = (y == y[0]).astype(int)
    claim = LinearSVC().fit(X, y).certificate_
    scaled = LinearSVC(penalize_intercept=True).fit(X, y).certificate_
    refused(replace(claim, intercept=1e168), X, y)
    refused(replace(claim, alpha=claim.alpha[:, None]), X, y, "shape")
    refused(replace(claim, coef=claim.coef[:, None]), X, y, "shape")
    refused(replace(claim, coef=np.empty(0)), X[:, :0], y)
    refused(replace(claim, class_weight="nonsense"), X, y, "loss")
    refused(replace(claim, class_weight={0: "heavy"}), X, y, "loss")
    refused(replace(claim, loss="logistic", C=np.inf), X, y, "loss")
    refused(replace(claim, loss="epsilon_insensitive", classes=None), X, np.array(["a", "b"])[y], "labels")
    scales = {"penalty_scale": 1e200}, {"penalty_scale": 1e-200}
    for altered in ({"intercept": 1e200}, {"alpha": 1e200 * scaled.alpha}, *scales):
        refused(replace(scaled, **altered), X, y)


def test_what_no_fit_of_many_classes_claims_is_a_verdict_not_an_error():
    X, y = blobs(60, 3, 3)
    joint, combined = LogisticRegression().fit(X, y).certificate_, LinearSVC().fit(X, y).certificate_
    refused(replace(joint, penalty_scale=1e200), X, y)
    refused(replace(joint, classes=None), X, y)
    refused(replace(combined, parts=(), scheme="ovo", classes=combined.classes[:1]), X, y)
    refused(replace(combined, scheme="all"), X, y)


def test_a_hard_margin_for_a_tube_or_beyond_all_numbers_is_never_proven():
    zero = OptimalityCertificate(
        coef=np.zeros(1), intercept=5.0, alpha=np.zeros(2), primal=0.0, dual=0.0, gap=0.0, loss="epsilon_insensitive",
        C=np.inf, classes=None, tol=1e-6, epsilon=0.1,
    )  # fmt: skip
    refused(zero, np.zeros((2, 1)), np.array([1.0, 2.0]), "loss")
    huge = replace(
        zero, coef=np.array([1e143]), intercept=float(np.finfo(float).max), alpha=np.zeros(3), loss="hinge", gap=1.0,
        primal=0.5e286 * 1.0000001, classes=np.array([0, 1]), epsilon=0.0,
    )  # fmt: skip
    assert huge.verify([[1e150], [2e150], [3e150]], [0, 0, 1], max_gap=1.0).outcome is Outcome.REJECTED


@pytest.mark.parametrize(("size", "C"), [(1e-163, 1.0), (1e-150, 1e100)])
def test_what_is_too_small_for_a_float_still_counts(size, C):
    claim = OptimalityCertificate(
        coef=np.zeros(1), intercept=0.0, alpha=np.zeros(3), primal=0.0, dual=0.0, gap=0.0,
        loss="squared_epsilon_insensitive", C=C, classes=None, tol=1e-6,
    )  # fmt: skip
    refused(claim, np.ones((3, 1)), size * np.array([1.0, 2.0, -1.0]), "primal value")


@pytest.mark.parametrize("solver", ["interior_point", "dual_cd", "newton"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_fit_that_is_stopped_is_a_classifier_and_never_proven(solver, loss):
    """The lowest hyperplane that was met, not w = 0; nobody may take it for the best one."""
    X, y = blobs(4000, 5, 2)
    X = X * [1.0, 30.0, 0.1, 1.0, 5.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = LinearSVC(loss=loss, solver=solver, max_iter=1, tol=1e-12, C=100.0).fit(X, y)
    verdict = machine.certificate_.verify(X, y)
    assert verdict.outcome is not Outcome.REJECTED
    assert machine.coef_.any()
    if not verdict:
        assert verdict.outcome is Outcome.HONEST

"""LinearSVC(C=inf): the largest margin, or the proof that there is none."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import ConvergenceWarning, LinearSVC, NotSeparableError, Status, judge_separability
from tests.oracles import Program
from tests.problems import make_classes


def separable(n=60, d=3, seed=0, gap=0.5):
    """Classes with nothing between two parallel planes."""
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((4 * n, d)), rng.standard_normal(d)
    w /= np.linalg.norm(w)
    X = X[np.abs(X @ w - 0.3) > gap / 2][:n]
    return X, np.where(X @ w > 0.3, "up", "down")


def hull_distance(A, B):
    """The distance of two convex hulls, by Clarabel: min ‖Σ λ a − Σ μ b‖."""
    d = A.shape[1]
    program = Program(weights=len(A) + len(B), difference=d)
    weights, difference = program["weights"], program["difference"]
    program.require(weights)
    apart = sp.csr_array(np.hstack([A.T, -B.T])) @ weights - difference
    sums = sp.csr_array(np.vstack([np.r_[np.ones(len(A)), np.zeros(len(B))], np.r_[np.zeros(len(A)), np.ones(len(B))]]))
    for matrix, value in ((apart, np.zeros(d)), (sums @ weights, np.ones(2))):  # equality is two inequalities
        program.require(matrix, -value)
        program.require(-matrix, value)
    program.quadratic("difference", 1.0)
    z, _ = program.solve()
    return float(np.linalg.norm(difference @ z))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sparse", [False, True])
def test_the_facts_of_a_hard_margin(seed, sparse):
    X, y = separable(seed=seed, d=2 + seed)
    machine = LinearSVC(C=np.inf).fit(sp.csr_array(X) if sparse else X, y)
    w = machine.coef_[0]
    assert machine.solution_.status is Status.CONVERGED
    assert w @ w == pytest.approx(np.abs(machine.dual_coef_).sum(), rel=1e-6)
    margins = machine.margins(X, y)
    assert margins.min() == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(margins[machine.support_], 1.0, atol=1e-4)
    np.testing.assert_allclose(machine.dual_coef_[0] @ X[machine.support_], w, rtol=1e-4, atol=1e-5)
    assert machine.dual_coef_.sum() == pytest.approx(0.0, abs=1e-9)
    assert (machine.predict(X) == y).all()
    distance = hull_distance(X[y == "up"], X[y == "down"])
    assert 2.0 / np.linalg.norm(w) == pytest.approx(distance, rel=1e-6)
    assert machine.certificate_.verify(X, y)


def test_two_points():
    machine = LinearSVC(C=np.inf).fit([[0.0, 0.0], [3.0, 4.0]], [0, 1])
    assert 2.0 / np.linalg.norm(machine.coef_) == pytest.approx(5.0)
    assert machine.decision_function([[1.5, 2.0]]) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", 1.5])
def test_without_slack_the_loss_does_not_matter(loss):
    X, y = separable()
    np.testing.assert_allclose(
        LinearSVC(C=np.inf, loss=loss).fit(X, y).coef_, LinearSVC(C=1e6, loss="hinge").fit(X, y).coef_, rtol=1e-4
    )


@pytest.mark.parametrize("solver", ["interior_point", "dual_cd", "newton"])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_every_solver_and_scale(solver, scale):
    X, y = separable(seed=1)
    machine = LinearSVC(C=np.inf, solver=solver).fit(scale * X, y)
    expected = LinearSVC(C=np.inf).fit(X, y)
    np.testing.assert_allclose(scale * machine.coef_, expected.coef_, rtol=1e-2)
    assert scale**2 * machine.solution_.primal == pytest.approx(expected.solution_.primal, rel=2e-6)


@pytest.mark.parametrize("bias", [{"fit_intercept": False}, {"penalize_intercept": True, "intercept_scaling": 2.0}])
def test_other_biases(bias):
    X, y = separable()
    X = X + 0.5 * np.where(y == "up", 1.0, -1.0)[:, None]
    if "fit_intercept" in bias:
        X[y == "up"], X[y == "down"] = np.abs(X[y == "up"]) + 0.1, -np.abs(X[y == "down"]) - 0.1
    machine = LinearSVC(C=np.inf, **bias).fit(X, y)
    assert machine.margins(X, y).min() >= 1.0 - 1e-9
    assert machine.certificate_.verify(X, y)
    assert machine.solution_.gap <= 1e-6


def test_the_constant_column_is_the_penalised_bias():
    X, y = separable()
    machine = LinearSVC(C=np.inf, penalize_intercept=True, intercept_scaling=2.0).fit(X, y)
    wide = LinearSVC(C=np.inf, fit_intercept=False).fit(np.hstack([X, np.full((len(y), 1), 2.0)]), y)
    np.testing.assert_allclose(machine.coef_, wide.coef_[:, :-1], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(machine.intercept_, 2.0 * wide.coef_[:, -1], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_several_classes(scheme):
    centres = 6.0 * np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])
    position = np.repeat(np.arange(3), 20)
    X = centres[position] + np.random.default_rng(0).uniform(-1, 1, (60, 2))
    machine = LinearSVC(C=np.inf, multi_class=scheme).fit(X, position)
    assert (machine.predict(X) == position).all()
    assert machine.certificate_.verify(X, position)
    pairs = list(itertools.combinations(range(3), 2)) if scheme == "ovo" else [(k,) for k in range(3)]
    for w, pair in zip(machine.coef_, pairs, strict=True):
        others = position == pair[1] if len(pair) == 2 else position != pair[0]
        assert 2.0 / np.linalg.norm(w) == pytest.approx(hull_distance(X[position == pair[0]], X[others]), rel=1e-6)


def test_the_certificate_rejects_what_does_not_separate():
    X, y = separable()
    claim = LinearSVC(C=np.inf).fit(X, y).certificate_
    assert claim.verify(X, y)
    assert not claim.verify(0.99 * X, y)
    assert not replace(claim, coef=1.01 * claim.coef).verify(X, y)
    assert not replace(claim, coef=0.99 * claim.coef).verify(X, y)
    assert not replace(claim, alpha=1.01 * claim.alpha).verify(X, y)
    assert not replace(claim, intercept=claim.intercept + 0.01).verify(X, y)
    flipped = y.copy()
    flipped[0] = "up" if y[0] == "down" else "down"
    assert not claim.verify(X, flipped)


def not_separable():
    rng = np.random.default_rng(0)
    return rng.standard_normal((40, 2)), np.array(["a", "b"])[np.arange(40) % 2]


@pytest.mark.parametrize("sparse", [False, True])
def test_not_separable_comes_with_a_proof(sparse):
    X, y = not_separable()
    with pytest.raises(NotSeparableError, match="Use a finite C") as caught:
        LinearSVC(C=np.inf).fit(sp.csr_array(X) if sparse else X, y)
    proof = caught.value.proof
    assert proof.separable is False
    assert proof.verify(X, y)
    weights = proof.weights
    assert weights.min() >= 0.0
    for label in "ab":
        assert weights[y == label].sum() == pytest.approx(1.0)
    np.testing.assert_allclose(weights[y == "a"] @ X[y == "a"], weights[y == "b"] @ X[y == "b"], atol=1e-12)
    assert proof.verify(X + np.where(y == "a", 3.0, 0.0)[:, None], y).worst == "means"
    assert proof.verify(X, np.roll(y, 1))  # every label is the other one: the means coincide all the same
    assert proof.verify(X, np.where(np.arange(40) < 20, y, "a")).worst == "weights"


def test_the_error_can_be_pickled():
    X, y = not_separable()
    with pytest.raises(NotSeparableError) as caught:
        LinearSVC(C=np.inf).fit(X, y)
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, NotSeparableError)
    assert isinstance(again, ValueError)
    assert str(again) == str(caught.value)
    assert again.proof.verify(X, y)


def test_contradictory_duplicates():
    X, y = separable()
    X, y = np.vstack([X, X[:1]]), np.append(y, "down" if y[0] == "up" else "up")
    with pytest.raises(NotSeparableError) as caught:
        LinearSVC(C=np.inf).fit(X, y)
    weights = caught.value.proof.weights
    assert np.flatnonzero(weights).tolist() == [0, len(y) - 1]
    assert caught.value.proof.verify(X, y)


def test_rows_of_weight_zero_are_left_out():
    X, y = separable()
    X, y = np.vstack([X[:1], X]), np.append("down" if y[0] == "up" else "up", y)
    weight = np.ones(len(y))
    weight[0] = 0.0
    machine = LinearSVC(C=np.inf).fit(X, y, weight)
    np.testing.assert_allclose(machine.coef_, LinearSVC(C=np.inf).fit(X[1:], y[1:]).coef_, rtol=1e-6)
    assert 0 not in machine.support_
    assert machine.certificate_.verify(X, y, weight)
    assert not machine.certificate_.verify(X, y)


def test_other_weights_change_nothing():
    X, y = separable()
    weight = np.random.default_rng(0).uniform(0.1, 5.0, len(y))
    a, b = LinearSVC(C=np.inf).fit(X, y, weight), LinearSVC(C=np.inf, class_weight={"up": 9.0}).fit(X, y)
    np.testing.assert_array_equal(a.coef_, b.coef_)


def test_a_proof_leaves_out_rows_of_weight_zero():
    X, y = not_separable()
    weight = np.ones(len(y))
    weight[:10] = 0.0
    with pytest.raises(NotSeparableError) as caught:
        LinearSVC(C=np.inf).fit(X, y, weight)
    assert not caught.value.proof.weights[:10].any()
    assert caught.value.proof.verify(X, y)


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_several_classes_name_the_machine_that_cannot(scheme):
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
    y = np.array(["a", "b", "c", "c", "c"])  # b lies between a and c: one against the rest cannot
    if scheme == "ovo":
        assert (LinearSVC(C=np.inf, multi_class="ovo").fit(X, y).predict(X) == y).all()
        return
    with pytest.raises(NotSeparableError) as caught:
        LinearSVC(C=np.inf).fit(X, y)
    assert caught.value.proof.positive == "b"
    assert caught.value.proof.verify(X, y)


def test_the_proof_of_a_pair_leaves_out_the_other_classes():
    X, y = np.array([[0.0], [1.0], [2.0], [7.0]]), np.array(["a", "b", "a", "c"])
    with pytest.raises(NotSeparableError) as caught:
        LinearSVC(C=np.inf, multi_class="ovo").fit(X, y)
    proof = caught.value.proof
    assert (proof.positive, proof.negative, proof.left_out) == ("b", ("a",), ("c",))
    assert proof.rows == (0, 1, 2)
    assert proof.verify(X, y)
    assert proof.verify(X, np.array(["a", "b", "c", "c"])).worst == "weights"
    assert proof.verify(X, np.array(["a", "b", "a", "d"])).worst == "labels"


def test_what_separates_far_from_the_origin_is_never_said_not_to():
    X, y = np.array([[0.0, 0.0], [1e12, 1e12], [0.0, 1.0], [1e12, 1e12 + 1.0]]), np.array([0, 0, 1, 1])
    with pytest.warns(ConvergenceWarning, match="rounding"):
        machine = LinearSVC(C=np.inf).fit(X, y)
    assert machine.predict(X).tolist() == [0, 0, 1, 1]
    assert machine.solution_.status is Status.NUMERICAL_LIMIT
    assert machine.solution_.dual <= 4.0 <= machine.solution_.primal * (1.0 + 1e-9)


def test_a_margin_that_rounding_hides_is_said_to_be_hidden():
    case = make_classes(208)  # columns that depend on others: what separates is how they were rounded
    pair = np.flatnonzero((case.y == 1) | (case.y == 2))
    X, y = case.X[pair], case.y[pair]
    assert judge_separability(X, y).verify(X, y)
    with pytest.raises(ValueError, match="separates the classes, proven in exact arithmetic") as caught:
        LinearSVC(C=np.inf).fit(X, y)
    assert not isinstance(caught.value, NotSeparableError)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_without_intercept_the_hyperplane_passes_through_the_origin(kind):
    with pytest.raises(ValueError, match="through the origin without any slack, but there is none, proven"):
        LinearSVC(C=np.inf, fit_intercept=False).fit(kind([[1.0], [2.0]]), [0, 1])


ERRORS = [
    ({"penalty": "l1"}, "hard margin"),
    ({"multi_class": "crammer_singer"}, "needs a finite C"),
]


@pytest.mark.parametrize(("options", "message"), ERRORS)
def test_what_has_no_hard_margin(options, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC(C=np.inf, **options).fit(*separable())

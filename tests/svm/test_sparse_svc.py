"""SparseSVC against independent solvers, the theory, and as people use it."""

import pickle
import warnings

import clarabel
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification, make_moons
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import ConvergenceWarning, InputError, LinearSVC, Status
from maxmargin.certificates import Outcome
from maxmargin.kernels import Gaussian, Linear, Sigmoid
from maxmargin.solvers import sparse_expansion
from maxmargin.svm.progress import reporting_to
from maxmargin.svm.sparse import SparseSVC
from tests.conftest import tall

PENALTIES = ["l1", "l2"]
KERNELS = ["linear", "rbf", "poly", "sigmoid", "laplacian"]


@parametrize_with_checks(
    [
        SparseSVC(),
        SparseSVC(penalty="l2"),
        SparseSVC(kernel="precomputed"),
        SparseSVC(penalty="l2", kernel="sigmoid", multi_class="ovo"),
        SparseSVC(kernel="linear", multi_class="ovo"),
    ]
)
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


# --- the optimum ------------------------------------------------------------------------------------------------------


def features_of(machine, X, y):
    """y_j k(x_i, x_j): on these the machine is linear."""
    return machine.kernel_.gram(X) * y


def by_linprog(features, y, cost):
    """The linear program over α, b⁺, b⁻, ξ ≥ 0, as it is written down."""
    n = len(y)
    prices = np.concatenate([np.ones(n), [0.0, 0.0], cost])
    margins = np.hstack([y[:, None] * features, y[:, None], -y[:, None], np.eye(n)])
    return scipy.optimize.linprog(prices, A_ub=-margins, b_ub=-np.ones(n), method="highs").fun


def by_clarabel(features, y, cost, weight):
    """The quadratic program over α, b, ξ."""
    n = len(y)
    P = sp.diags_array(np.concatenate([1.0 / weight, np.zeros(n + 1)])).tocsc()
    q = np.concatenate([np.zeros(n + 1), cost])
    margins = sp.csr_array(np.hstack([y[:, None] * features, y[:, None], np.eye(n)]))
    signs = sp.eye_array(2 * n + 1, format="csr")[np.r_[0:n, n + 1 : 2 * n + 1]]
    A = sp.csc_array(-sp.vstack([margins, signs]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-10
    cones = [clarabel.NonnegativeConeT(3 * n)]
    right = np.concatenate([-np.ones(n), np.zeros(2 * n)])
    answer = clarabel.DefaultSolver(P, q, A, right, cones, settings).solve()
    return answer.obj_val


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_optimum_is_that_of_other_solvers(penalty, kernel):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = tall(int(rng.integers(10, 60)), 3, seed=seed)
        weight, C = rng.uniform(0.2, 3.0, len(y)), 10.0 ** rng.uniform(-2, 2)
        machine = SparseSVC(penalty=penalty, C=C, kernel=kernel).fit(X, y, weight)
        assert machine.solution_.status is Status.CONVERGED
        features = features_of(machine, X, y)
        cost = C * weight
        expected = by_linprog(features, y, cost) if penalty == "l1" else by_clarabel(features, y, cost, weight)
        assert machine.solution_.primal == pytest.approx(expected, rel=3e-6)
        alpha = np.zeros(len(y))
        alpha[machine.support_] = machine.dual_coef_[0] * y[machine.support_]
        of_alpha = alpha.sum() if penalty == "l1" else 0.5 * np.sum(alpha**2 / weight)
        written_out = of_alpha + cost @ np.maximum(0.0, 1.0 - y * machine.decision_function(X))
        assert machine.solution_.primal == pytest.approx(written_out, rel=1e-8)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_tight_tolerance_is_reached(penalty):
    X, y = tall(150, 3, seed=3)
    machine = SparseSVC(penalty=penalty, C=5.0, tol=1e-9).fit(X, y)
    assert machine.solution_.status is Status.CONVERGED
    assert machine.solution_.gap <= 1e-9


def test_without_the_condition_on_the_sign_it_is_the_usual_machine_on_other_features():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(-2.0, 1.0, (30, 2)), rng.normal(2.0, 1.0, (30, 2))])
    y = np.repeat([-1, 1], 30)
    machine = SparseSVC(penalty="l2", C=0.01, gamma=0.02, tol=1e-9).fit(X, y)
    usual = LinearSVC(loss="hinge", C=0.01, tol=1e-9).fit(features_of(machine, X, y), y)
    assert (usual.coef_ > 0.0).all()  # so the condition does not bind
    np.testing.assert_allclose(np.abs(machine.dual_coef_), usual.coef_, atol=1e-6)
    assert machine.solution_.primal == pytest.approx(usual.solution_.primal, rel=1e-8)


def test_with_the_condition_no_weight_is_negative_where_the_usual_one_would_be():
    X, y = tall(60, 2, seed=1)
    machine = SparseSVC(penalty="l2", kernel="linear").fit(X, y)
    usual = LinearSVC(loss="hinge").fit(features_of(machine, X, y), y)
    assert (usual.coef_ < -1e-3).any()
    assert (machine.solution_.w >= 0.0).all()
    assert machine.solution_.primal > usual.solution_.primal * (1.0 + 1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "sigmoid"])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_duals(penalty, kernel):
    for seed in range(5):
        X, y = tall(50, 3, seed=seed)
        rng = np.random.default_rng(seed)
        weight = rng.uniform(0.5, 2.0, len(y))
        machine = SparseSVC(penalty=penalty, kernel=kernel, C=2.0, gamma=0.7, coef0=-0.5).fit(X, y, weight)
        Q = y[:, None] * features_of(machine, X, y)
        if kernel == "sigmoid":
            values = np.linalg.eigvalsh(Q)
            assert values[0] < -1e-3 * values[-1]
        alpha, beta = machine.solution_.w, machine.solution_.alpha
        assert ((beta >= 0.0) & (beta <= 2.0 * weight)).all()
        assert beta[y > 0].sum() == pytest.approx(beta[y < 0].sum(), rel=1e-12)
        slope = Q @ beta
        margin = y * machine.decision_function(X)
        if penalty == "l1":
            assert slope.max() <= 1.0
            dual = beta.sum()
            np.testing.assert_allclose(slope[alpha > 0.0], 1.0, atol=1e-6)
        else:
            dual = beta.sum() - 0.5 * weight @ np.maximum(slope, 0.0) ** 2
            np.testing.assert_allclose(alpha, weight * np.maximum(slope, 0.0), atol=1e-5)
        assert dual == pytest.approx(machine.solution_.primal, rel=1e-6)
        np.testing.assert_allclose(margin[(beta > 1e-6) & (beta < 2.0 * weight - 1e-6)], 1.0, atol=1e-5)
        assert (margin[beta == 0.0] >= 1.0 - 1e-5).all()


# --- sparsity ---------------------------------------------------------------------------------------------------------


def test_fewer_support_vectors_at_a_comparable_error():
    ours, theirs, errors = [], [], []
    for seed in range(4):
        for X, y in (
            load_breast_cancer(return_X_y=True),
            make_moons(300, noise=0.3, random_state=seed),
            make_classification(300, 10, n_informative=5, flip_y=0.05, random_state=seed),
        ):
            X, X_test, y, y_test = train_test_split(X, y, train_size=200, random_state=seed)
            scaler = StandardScaler().fit(X)
            X, X_test = scaler.transform(X), scaler.transform(X_test)
            sparse, usual = SparseSVC().fit(X, y), SVC().fit(X, y)
            ours.append(sparse.n_support_.sum())
            theirs.append(usual.n_support_.sum())
            errors.append(usual.score(X_test, y_test) - sparse.score(X_test, y_test))
    assert np.median(ours) < 0.4 * np.median(theirs)
    assert np.median(errors) < 0.02


def test_attributes_belong_together():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    machine = SparseSVC().fit(X, y)
    assert machine.dual_coef_.shape == (3, len(machine.support_))
    assert machine.n_support_.sum() == len(machine.support_)
    np.testing.assert_array_equal(machine.support_vectors_, X[machine.support_])
    np.testing.assert_array_equal(machine.n_support_, np.bincount(y[machine.support_], minlength=3))
    assert machine.dual_coef_.any(axis=0).all()
    side = np.where(y[machine.support_] == np.arange(3)[:, None], 1.0, -1.0)
    assert (side * machine.dual_coef_ >= 0.0).all()
    scores = Gaussian(machine.kernel_.gamma).block(X, X[machine.support_]) @ machine.dual_coef_.T + machine.intercept_
    np.testing.assert_allclose(machine.decision_function(X), scores, rtol=1e-12)
    np.testing.assert_array_equal(machine.predict(X), scores.argmax(axis=1))
    assert machine.n_iter_ == max(part.n_iter for part in machine.solution_)


# --- weights, classes, kernels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_weight_equals_repetition(penalty, kernel):
    for seed in range(5):
        X, y = tall(40, 3, seed=seed)
        times = np.random.default_rng(seed).integers(0, 4, len(y))
        times[[int(np.argmax(y)), int(np.argmin(y))]] = 2
        repeated = np.repeat(np.arange(len(y)), times)
        given = {"gamma": 0.5, "penalty": penalty, "tol": 1e-9}
        if kernel == "rbf":
            weighted = SparseSVC(**given).fit(X, y, times)
            longer = SparseSVC(**given).fit(X[repeated], y[repeated])
            scores = weighted.decision_function(X), longer.decision_function(X)
        else:
            K = Gaussian(0.5).gram(X)
            weighted = SparseSVC(kernel=kernel, **given).fit(K, y, times)
            longer = SparseSVC(kernel=kernel, **given).fit(K[np.ix_(repeated, repeated)], y[repeated])
            scores = weighted.decision_function(K), longer.decision_function(K[:, repeated])
        np.testing.assert_allclose(*scores, atol=1e-6)
        assert weighted.solution_.primal == pytest.approx(longer.solution_.primal, rel=1e-8)
        assert not weighted.solution_.w[times == 0].any()


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_order_of_rows_does_not_matter(penalty):
    X, y = tall(60, 3, seed=2)
    turn = np.random.default_rng(0).permutation(len(y))
    one, other = (
        SparseSVC(penalty=penalty, gamma=0.4).fit(X, y),
        SparseSVC(penalty=penalty, gamma=0.4).fit(X[turn], y[turn]),
    )
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-7)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_class_weights_are_weights(penalty):
    X, y = tall(60, 3, seed=4)
    factor = np.where(y == 1, 3.0, 0.5)
    by_class = SparseSVC(penalty=penalty, class_weight={1: 3.0, -1: 0.5}).fit(X, y)
    by_row = SparseSVC(penalty=penalty, gamma=by_class.kernel_.gamma).fit(X, y, factor)
    np.testing.assert_allclose(by_class.decision_function(X), by_row.decision_function(X), atol=1e-9)
    total = np.bincount((y == 1).astype(int))
    balanced = SparseSVC(penalty=penalty, class_weight="balanced").fit(X, y)
    by_hand = SparseSVC(penalty=penalty, class_weight=dict(zip([-1, 1], len(y) / 2 / total, strict=True))).fit(X, y)
    np.testing.assert_allclose(balanced.decision_function(X), by_hand.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_several_classes_are_several_machines(penalty):
    X, y = load_iris(return_X_y=True)
    options = {"penalty": penalty, "gamma": 0.5}
    machine = SparseSVC(**options).fit(X, y)
    for k, scores in enumerate(machine.decision_function(X).T):
        alone = SparseSVC(**options).fit(X, y == k)
        np.testing.assert_allclose(scores, alone.decision_function(X), atol=1e-7)
    pairs = SparseSVC(multi_class="ovo", **options).fit(X, y)
    for k, (first, second) in enumerate([(0, 1), (0, 2), (1, 2)]):
        among = np.flatnonzero((y == first) | (y == second))
        alone = SparseSVC(**options).fit(X[among], y[among])
        line = np.zeros(len(y))
        line[pairs.support_] = pairs.dual_coef_[k]
        of_pair = Gaussian(0.5).block(X, X) @ line + pairs.intercept_[k]
        np.testing.assert_allclose(of_pair, alone.decision_function(X), atol=1e-7)
    assert pairs.decision_function(X).shape == (150, 3)
    for either in (machine, pairs):
        assert either.score(X, y) > 0.93
        assert either.certificate_.verify(X, y)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_ways_to_name_a_kernel(penalty):
    X, y = tall(50, 3, seed=5)
    expected = SparseSVC(penalty=penalty, gamma=0.3).fit(X, y)
    scores = expected.decision_function(X[:7])

    def function(X, Z, width):
        return Gaussian(width).block(X, Z)

    for kernel, params in ((Gaussian(0.3), None), (function, {"width": 0.3})):
        machine = clone(SparseSVC(penalty=penalty, kernel=kernel, kernel_params=params)).fit(X, y)
        np.testing.assert_allclose(machine.decision_function(X[:7]), scores, atol=1e-7)
        assert machine.certificate_.verify(X, y)
    given = SparseSVC(penalty=penalty, kernel="precomputed").fit(Gaussian(0.3).gram(X), y)
    np.testing.assert_allclose(given.decision_function(Gaussian(0.3).block(X[:7], X)), scores, atol=1e-7)
    assert given.support_vectors_.shape == (0, 0)
    sparse = SparseSVC(penalty=penalty, gamma=0.3).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X[:7])), scores, atol=1e-7)
    assert sp.issparse(sparse.support_vectors_)
    assert sparse.certificate_.verify(X, y)
    sums = SparseSVC(penalty=penalty, kernel=Gaussian(0.3) + 0.5 * Linear()).fit(X, y)
    assert sums.certificate_.verify(X, y)


def test_precomputed_values_in_cross_validation():
    X, y = tall(80, 3, seed=6)
    K = Sigmoid(0.2).gram(X)
    np.testing.assert_array_equal(
        cross_val_score(SparseSVC(kernel="precomputed"), K, y, cv=4),
        cross_val_score(SparseSVC(kernel=Sigmoid(0.2)), X, y, cv=4),
    )


def test_as_people_use_it():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), SparseSVC())
    search = GridSearchCV(pipeline, {"sparsesvc__C": [0.1, 1.0], "sparsesvc__penalty": PENALTIES}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    machine = SparseSVC().fit(X, np.array(["a", "b", "c"])[y])
    again = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))
    assert again.certificate_.verify(X, np.array(["a", "b", "c"])[y])
    before = machine.decision_function(X[:3])
    X_later = X[:3].copy()
    X *= 2.0
    np.testing.assert_array_equal(machine.decision_function(X_later), before)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_bits_do_not_depend_on_threads(penalty):
    X, y = load_iris(return_X_y=True)
    one, two = (
        SparseSVC(penalty=penalty, n_threads=n).fit(np.vstack([X] * 3) + np.arange(450)[:, None] * 1e-3, np.tile(y, 3))
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)


# --- what is hostile --------------------------------------------------------------------------------------------------


def honest(machine, X, y, weight=None):
    """Whatever became of the fit, its claims are true."""
    verdict = machine.certificate_.verify(X, y, weight)
    assert verdict.outcome is not Outcome.REJECTED, str(verdict)
    assert bool(verdict) == (machine.solution_.gap <= machine.tol)
    assert np.isfinite(machine.decision_function(X)).all()
    return machine.solution_.status


@pytest.mark.parametrize("penalty", PENALTIES)
def test_equal_rows_of_both_classes(penalty):
    X, y = tall(30, 2, seed=7)
    X, y = np.vstack([X, X]), np.concatenate([y, -y])
    for kernel in KERNELS:
        machine = SparseSVC(penalty=penalty, kernel=kernel).fit(X, y)
        assert honest(machine, X, y) is Status.CONVERGED
        assert machine.solution_.primal == pytest.approx(60.0, rel=1e-9)  # nothing can be learned
        assert len(machine.support_) == 0


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "sigmoid"])
def test_a_huge_cost(penalty, kernel):
    X, y = tall(40, 3, seed=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = SparseSVC(penalty=penalty, C=1e10, kernel=kernel).fit(X, y)
    status = honest(machine, X, y)
    assert machine.solution_.gap < 1e-2
    if kernel == "rbf":  # which separates the rows
        assert status is Status.CONVERGED
        assert (y * machine.decision_function(X)).min() > 1.0 - 1e-6


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_tiny_cost_teaches_nothing(penalty):
    X, y = tall(40, 3, seed=8)
    machine = SparseSVC(penalty="l1", C=1e-6).fit(X, y)
    assert honest(machine, X, y) is Status.CONVERGED
    assert len(machine.support_) == 0
    assert len(set(machine.predict(X))) == 1
    assert honest(SparseSVC(penalty=penalty, C=1e-9).fit(X, y), X, y) is Status.CONVERGED


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("value", [0.0, 1.0, -3.0, 1e8])
def test_a_constant_kernel(penalty, value):
    X, y = tall(21, 3, seed=9)
    machine = SparseSVC(penalty=penalty, kernel=lambda X, Z: np.full((X.shape[0], Z.shape[0]), value)).fit(X, y)
    assert honest(machine, X, y) is Status.CONVERGED
    assert machine.solution_.primal == pytest.approx(2.0 * min((y > 0).sum(), (y < 0).sum()), rel=1e-6)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_two_samples(penalty):
    machine = SparseSVC(penalty=penalty, kernel="linear", C=100.0).fit([[-1.0], [1.0]], ["no", "yes"])
    np.testing.assert_allclose(machine.decision_function([[-1.0], [0.0], [1.0]]), [-1.0, 0.0, 1.0], atol=1e-6)
    assert honest(machine, np.array([[-1.0], [1.0]]), ["no", "yes"]) is Status.CONVERGED


def test_random_problems_of_every_kind_are_honest():
    finished = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = tall(int(rng.integers(4, 60)), int(rng.integers(1, 5)), seed=seed)
        y[:2] = -1, 1
        X *= 10.0 ** rng.uniform(-6, 6)
        weight = rng.choice([0.0, 1.0, 2.5, 1e4], len(y), p=[0.2, 0.5, 0.25, 0.05])
        weight[:2] = 1.0
        if seed % 3 == 0:
            X = X[rng.integers(0, len(y), len(y))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine = SparseSVC(
                penalty=PENALTIES[seed % 2], kernel=KERNELS[seed % 5], C=10.0 ** rng.uniform(-4, 6)
            ).fit(X, y, weight)
        finished.append(honest(machine, X, y, weight) is Status.CONVERGED)
    assert np.mean(finished) > 0.9


def test_errors():
    X, y = tall(10, 3)

    def broken(X, Z):
        K = X @ Z.T
        K[-1, -1] = np.nan
        return K

    with pytest.raises(InputError, match="is nan for row 9 of X and row 9 of Z"):
        SparseSVC(kernel=broken).fit(X, y)
    for options, match in (
        ({"penalty": "elastic"}, "penalty must be 'l1' or 'l2'"),
        ({"multi_class": "crammer_singer"}, "multi_class must be 'ovr' or 'ovo'"),
        ({"C": np.inf}, "C must be a finite number"),
        ({"tol": 0.0}, "tol must be"),
        ({"max_seconds": -1.0}, "max_seconds must be"),
        ({"verbose": -1}, "verbose must be"),
        ({"kernel": "cosine"}, "kernel must be one of"),
        ({"kernel": "precomputed"}, "square matrix"),
        ({"kernel": lambda X, Z: np.ones(3)}, "returned an array of shape"),
        ({"kernel": lambda X, Z: X @ np.diag([1.0, 2.0, 3.0])[:, [1, 2, 0]] @ Z.T}, "not symmetric"),
        ({"n_threads": 0}, "n_threads must be"),
    ):
        with pytest.raises(InputError, match=match):
            SparseSVC(**options).fit(X, y)
    with pytest.raises(InputError, match="too large for the total cost"):
        SparseSVC(penalty="l2", kernel="poly", gamma=1.0, degree=9).fit(X * 1e12, y)
    with pytest.raises(ValueError, match="4 features"):
        SparseSVC().fit(X, y).predict(np.ones((2, 4)))


# --- stops ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_deadline_leaves_an_honest_claim(penalty):
    X, y = tall(200, 5, seed=10)
    with pytest.warns(ConvergenceWarning, match=r"the time limit was reached first.*Raise max_seconds"):
        machine = SparseSVC(penalty=penalty, C=10.0, max_seconds=1e-9).fit(X, y)
    assert honest(machine, X, y) is Status.TIME_LIMIT


def test_a_linear_program_past_the_deadline(monkeypatch):
    def late(*args, **options):
        assert 0.0 < options["options"]["time_limit"] <= 0.2
        while not watched[0].past_deadline:
            pass
        return scipy.optimize.OptimizeResult(x=None, status=1, message="time limit")

    watched = []
    before = sparse_expansion.SparseExpansion.solve

    def solve(self, problem, *, start=None, watch=None):
        watched.append(watch)
        return before(self, problem, start=start, watch=watch)

    monkeypatch.setattr(sparse_expansion, "linprog", late)
    monkeypatch.setattr(sparse_expansion.SparseExpansion, "solve", solve)
    X, y = tall(50, 5, seed=10)
    with pytest.warns(ConvergenceWarning, match="the time limit was reached first"):
        machine = SparseSVC(max_seconds=0.2).fit(X, y)
    assert honest(machine, X, y) is Status.TIME_LIMIT


def test_another_solver_where_the_linear_program_fails(monkeypatch):
    X, y = tall(80, 3, seed=11)
    expected = SparseSVC().fit(X, y)
    monkeypatch.setattr(
        sparse_expansion, "linprog", lambda *a, **k: scipy.optimize.OptimizeResult(x=None, status=4, message="no")
    )
    machine = SparseSVC().fit(X, y)
    assert honest(machine, X, y) is Status.CONVERGED
    assert machine.solution_.primal == pytest.approx(expected.solution_.primal, rel=1e-6)
    np.testing.assert_allclose(machine.decision_function(X), expected.decision_function(X), atol=1e-3)


def test_an_interrupt_leaves_an_honest_claim(monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    X, y = tall(50, 5, seed=12)
    monkeypatch.setattr(sparse_expansion, "linprog", interrupted)
    machine = SparseSVC()
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, y)
    assert honest(machine, X, y) is Status.INTERRUPTED


@pytest.mark.parametrize("penalty", PENALTIES)
def test_listeners_hear_how_far_it_is(penalty, capsys):
    X, y = tall(60, 3, seed=13)
    gaps = []
    with reporting_to(lambda iteration, gap, seconds: gaps.append(gap)):
        machine = SparseSVC(penalty=penalty, verbose=1).fit(X, y)
    assert len(gaps) > 2
    assert gaps == sorted(gaps, reverse=True)
    assert capsys.readouterr().out.count("[SparseSVC] iteration") == len(gaps)
    assert machine.solution_.history.records[-1].phase == "certified"
    assert machine.solution_.history.gaps[-1] == machine.solution_.gap


def test_distance_bound():
    X, y = tall(80, 3, seed=14)
    weight = np.random.default_rng(0).uniform(0.5, 4.0, len(y))
    exact = SparseSVC(penalty="l2", tol=1e-10).fit(X, y, weight)
    rough = SparseSVC(penalty="l2", tol=0.2).fit(X, y, weight)
    distance = np.linalg.norm(exact.solution_.w - rough.solution_.w)
    assert 1e-6 < distance <= rough.solution_.distance_bound + exact.solution_.distance_bound
    assert SparseSVC().fit(X, y).solution_.distance_bound == np.inf

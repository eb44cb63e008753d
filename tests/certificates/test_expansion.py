"""Proofs of kernel machines: what another arithmetic claims is confirmed, what is true is proven, and nothing else."""

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.certificates import CombinedCertificate, ExpansionCertificate, Outcome, expansion
from maxmargin.certificates import claim as claim_module
from maxmargin.certificates import kernel_values as values_module
from maxmargin.certificates.expansion_terms import expansion_claim
from maxmargin.certificates.kernel_rounding import RowSizes
from maxmargin.certificates.kernel_structure import definite
from maxmargin.solvers.claims import terms_of
from tests.certificates.expansions import (
    STRUCTURES,
    Machine,
    clarabel_dual,
    exact_objectives,
    exact_scores,
    hostile,
    scaled_to,
    spread_of,
)
from tests.exact.objectives import at_least, at_most

DEFINITE = [structure for structure in STRUCTURES if definite(structure)]
MARGINS, TUBES = ["hinge", "squared_hinge", "logistic"], ["epsilon_insensitive", "squared_epsilon_insensitive"]
RBF = ("rbf", 0.05)


def problem(seed, *, most=60, loss=None, structures=STRUCTURES):
    """Any machine at all, on hostile rows."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, most)), int(rng.integers(1, 20))
    X, loss = hostile(rng, n, d), loss or str(rng.choice(MARGINS + TUBES))
    structure = structures[rng.integers(len(structures))]
    structure = scaled_to(structure, spread_of(X)) if rng.random() < 0.8 else structure
    y = np.r_[0, 1, rng.integers(0, 2, n - 2)] if loss in MARGINS else rng.standard_normal(n) * 10 ** rng.uniform(-3, 3)
    weight = np.r_[1.0, 1.0, rng.choice([0.0, 1.0, 2.0], n - 2)] if rng.random() < 0.3 else None
    X = X.astype(np.float32).astype(np.float64) if rng.random() < 0.3 else X
    return Machine(X, y, structure, loss, float(10.0 ** rng.uniform(-3, 6)), weight, seed=seed)


def ordinary(structure=RBF, loss="hinge", seed=0, n=50, C=3.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 12))
    score = X[:, 0] + X[:, 1] ** 2 - 1.0 + 2.0 * rng.standard_normal(n)
    return Machine(X, (score > 0.0).astype(int) if loss in MARGINS else score, structure, loss, C, seed=seed)


def refused(claim, X, y, worst=None, weight=None):
    verdict = claim.verify(X, y, weight)
    assert verdict.outcome is Outcome.REJECTED, str(verdict)
    assert not verdict
    assert worst is None or verdict.worst == worst, str(verdict)
    return verdict


def watched_reads(monkeypatch):
    """How many rows each look at X is about."""
    looks, original = [], claim_module.blocks

    def watched(X, chosen=None):
        looks.append(X.shape[0] if chosen is None else len(chosen))
        return original(X, chosen)

    monkeypatch.setattr(claim_module, "blocks", watched)
    return looks


# --- what is true ---------------------------------------------------------------------------------------------------


def test_claims_from_another_arithmetic_are_confirmed():
    """About another origin, in another order: with three times the bounds they are theorems for certificates, too."""
    for seed in range(400):
        machine = problem(seed).random()
        claim = machine.certificate()
        form = (np.asarray, sp.csr_array, sp.coo_array, np.ndarray.tolist)[seed % 4]
        verdict = claim.verify(form(machine.X), machine.y, machine.weight)
        assert verdict.outcome is Outcome.HONEST, f"{seed}: {verdict}"
        assert not any(verdict.checks.values())


@pytest.mark.parametrize("few", [0, 30])
def test_claims_are_theorems(few, monkeypatch):
    """Also if all values are computed by products, or all from differences."""
    monkeypatch.setattr(values_module, "FEW_COLUMNS", few)
    for seed in range(150):
        machine = problem(1000 + seed, most=12).random()
        claim, of = machine.certificate(), machine.problem
        f = exact_scores(machine.structure, machine.X, of.sign * machine.alpha)
        primal, dual = exact_objectives(claim, f, of.sign, of.target, of.cost)
        assert at_least(claim.primal, primal)
        assert at_most(claim.dual, dual)
        # The tightest claims that are confirmed, and by a little more: those are theorems as well.
        for part, exact, check in (("primal", primal, at_least), ("dual", dual, at_most)):
            truth = float(exact.mid())
            for away in (0.0, 1e-15, 1e-13, 1e-11):
                value = truth - away * abs(truth) if part == "primal" else truth + away * abs(truth)
                found = replace(claim, **{part: value}).verify(machine.X, machine.y, machine.weight)
                assert found.checks[f"{part} value"] or check(value, exact)


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
@pytest.mark.parametrize("structure", DEFINITE, ids=str)
def test_the_best_multipliers_are_proven(structure, loss):
    for seed in range(3):
        machine = ordinary(structure, loss, seed).solve()
        assert np.count_nonzero(machine.alpha) > 0
        verdict = machine.certificate().verify(machine.X, machine.y)
        assert verdict, str(verdict)
        assert str(verdict).startswith("verified")
        assert verdict.gap < 1e-7


def test_of_which_form_the_rows_are_does_not_matter():
    machine = ordinary()
    machine.X = np.float32(machine.X * (np.abs(machine.X) > 0.3)).astype(np.float64)
    claim = machine.solve().certificate()
    shuffled = sp.csr_array(machine.X)
    shuffled.indices, shuffled.data = shuffled.indices.copy(), shuffled.data.copy()
    begin, end = shuffled.indptr[0], shuffled.indptr[1]
    shuffled.indices[begin:end], shuffled.data[begin:end] = (
        part[begin:end][::-1].copy() for part in (shuffled.indices, shuffled.data)
    )
    forms = [
        machine.X,
        np.float32(machine.X),
        machine.X.tolist(),
        np.asfortranarray(machine.X),
        sp.csr_array(machine.X),
    ]
    forms += [sp.csr_matrix(np.float32(machine.X)), sp.csc_array(machine.X), shuffled]
    for X in forms:
        assert claim.verify(X, machine.y)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("spread", "away", "looks"), [(1e-3, 1e6, 1), (0.3, 30.0, 2)])
def test_a_claim_from_differences_is_confirmed_by_differences(spread, away, looks, sparse, monkeypatch):
    """Products lose digits of rows that lie close together far from the origin: such rows are compared at once by
    differences where they lose many, at a second look where they lose some."""
    seen = watched_reads(monkeypatch)
    rng, machine = np.random.default_rng(0), ordinary()
    machine.X = machine.X * spread + away * np.where(rng.random((len(machine.y), 1)) < 0.5, 1.0, -1.0)
    machine.structure = ("rbf", 0.1 / spread**2)
    machine.random()
    rows = np.flatnonzero(machine.alpha)
    a = (machine.problem.sign * machine.alpha)[rows]
    K = np.exp(-machine.structure[1] * ((machine.X[:, None] - machine.X[rows]) ** 2).sum(axis=2))
    terms, sizes = terms_of(machine.problem), RowSizes(12)
    primal, dual = expansion_claim(terms, machine.structure, machine.alpha, machine.b, K @ a, K @ np.abs(a), sizes)
    claim = replace(machine.certificate(), primal=primal, dual=dual, gap=machine.problem.relative_gap(primal, dual))
    X = sp.csr_array(machine.X) if sparse else machine.X
    assert claim.verify(X, machine.y).outcome is Outcome.HONEST
    assert len(seen) == looks


def test_a_machine_without_a_bias_and_one_whose_bias_is_penalised():
    machine = ordinary()
    machine.alpha = machine.cost * np.random.default_rng(0).uniform(0.0, 1.0, 50)
    machine.b = 0.0
    free = replace(machine.certificate(), fit_intercept=False)
    assert free.verify(machine.X, machine.y).outcome is Outcome.HONEST
    refused(replace(free, fit_intercept=True), machine.X, machine.y, "balance")
    refused(replace(free, intercept=0.5), machine.X, machine.y, "intercept")
    # A penalised bias is one more column, of ones.
    wide = np.c_[machine.X, np.full(50, 2.0)]
    terms = replace(terms_of(machine.problem), scale=2.0)
    linear = replace(machine, X=wide, structure=("linear",))
    linear.alpha = machine.alpha
    a = machine.problem.sign * machine.alpha
    w = a @ machine.X
    slack = np.maximum(0.0, 1.0 - machine.problem.sign * (machine.X @ w + 0.25))
    primal = 0.5 * w @ w + 0.5 * (0.25 / 2.0) ** 2 + 3.0 * slack.sum()
    dual = machine.alpha.sum() - 0.5 * w @ w - 0.5 * (2.0 * a.sum()) ** 2
    f, sums = machine.X @ w, np.abs(machine.X @ machine.X.T) @ np.abs(a)
    squares = (machine.X**2).sum(axis=1)
    sizes = RowSizes(12, squares, float(squares.max()))
    claimed = expansion_claim(terms, ("linear",), machine.alpha, 0.25, f, sums, sizes)
    np.testing.assert_allclose(claimed, (primal, dual), rtol=1e-10)
    claim = replace(
        free, kernel=("linear",), intercept=0.25, fit_intercept=True, penalty_scale=2.0, primal=claimed[0],
        dual=claimed[1], gap=machine.problem.relative_gap(*claimed),
    )  # fmt: skip
    assert claim.verify(machine.X, machine.y).outcome is Outcome.HONEST
    refused(replace(claim, penalty_scale=1.0), machine.X, machine.y)


def test_the_hard_margin():
    rng = np.random.default_rng(0)
    X = np.r_[rng.standard_normal((15, 2)) - 4.0, rng.standard_normal((15, 2)) + 4.0]
    y = np.repeat([0, 1], 15)
    soft = Machine(X, y, ("rbf", 0.05), "hinge", 10.0).solve()
    assert soft.alpha.max() < 1.0
    K = np.exp(-0.05 * ((X[:, None] - X) ** 2).sum(axis=2))
    longer = 1.0 + 1e-9
    machine = Machine(X, y, ("rbf", 0.05), "hinge", math.inf)
    sign = machine.problem.sign
    low, high = K @ (sign * soft.alpha), soft.alpha * longer
    machine.take(high, longer * 0.5 * -(low[sign > 0].min() + low[sign < 0].max()))
    claim = machine.certificate()
    assert math.inf == claim.C
    assert claim.verify(X, y), str(claim.verify(X, y))
    refused(replace(claim, intercept=claim.intercept + 1e-3), X, y, "primal value")
    refused(claim, np.r_[X[:-1], X[:1]], y)
    shorter = machine.take(soft.alpha * (1.0 - 1e-6), machine.b)
    assert shorter.certificate().primal == math.inf


# --- what is not ----------------------------------------------------------------------------------------------------


@pytest.fixture(params=["hinge", "squared_hinge", "epsilon_insensitive"])
def fitted(request):
    machine = ordinary(loss=request.param)
    machine.weight = np.random.default_rng(0).choice([1.0, 2.0, 0.5], len(machine.y))
    machine.__post_init__()
    machine = machine.random() if request.param == "squared_hinge" else machine.solve()
    claim = machine.certificate()
    assert claim.verify(machine.X, machine.y, machine.weight).outcome is not Outcome.REJECTED
    return machine, claim


@pytest.mark.parametrize("by", [1.0 + 1e-3, 1.0 - 1e-3])
@pytest.mark.parametrize("part", ["primal", "dual", "intercept", "alpha", "C", "gap"])
def test_every_altered_number_is_refused(fitted, part, by):
    machine, claim = fitted
    refused(replace(claim, **{part: getattr(claim, part) * by}), machine.X, machine.y, weight=machine.weight)


@pytest.mark.parametrize("part", ["primal", "dual"])
def test_a_claim_that_says_a_little_too_much_is_refused(fitted, part):
    machine, claim = fitted
    value = getattr(claim, part)
    better = value - 1e-10 * abs(value) if part == "primal" else value + 1e-10 * abs(value)
    primal, dual = (better, claim.dual) if part == "primal" else (claim.primal, better)
    forged = replace(claim, **{part: better}, gap=machine.problem.relative_gap(primal, dual))
    refused(forged, machine.X, machine.y, f"{part} value", machine.weight)


def test_multipliers_outside_of_their_box_or_unbalanced(fitted):
    machine, claim = fitted
    X, y, weight = machine.X, machine.y, machine.weight
    alpha = claim.alpha.copy()
    inside = int(np.argmin(np.abs(np.abs(alpha) - 0.3 * machine.cost)))
    alpha[inside] = np.nextafter(alpha[inside], 0.0)
    refused(replace(claim, alpha=alpha), X, y, "balance", weight)
    first, second = np.flatnonzero(machine.problem.sign == machine.problem.sign[0])[:2]
    alpha = claim.alpha.copy()
    alpha[[first, second]] = [-5.0, 5.0] if claim.loss == "squared_hinge" else [1e3, -1e3]
    refused(replace(claim, alpha=alpha), X, y, "feasibility", weight)


def test_other_data_are_refused(fitted):
    machine, claim = fitted
    X, y, weight = machine.X, machine.y, machine.weight
    refused(claim, X * 1.001, y, weight=weight)
    moved = X.copy()
    moved[np.argmax(np.abs(claim.alpha)), 3] += 1e-4
    refused(claim, moved, y, weight=weight)
    refused(claim, X, y[::-1], weight=weight)
    refused(claim, X, y, weight=weight[::-1])
    refused(claim, X[:-1], y[:-1], "shape", weight[:-1])
    refused(claim, X, y, "shape", weight[:-1])
    refused(claim, X[:, :-1], y, weight=weight)
    refused(claim, X[0], y, "shape", weight)
    for broken in (np.nan, np.inf):
        moved[7, 2] = broken
        refused(claim, moved, y, "finite", weight)
        refused(claim, sp.csr_array(moved), y, "finite", weight)
    refused(claim, X, y, "weights", -weight)


def test_other_kernels_are_refused(fitted):
    machine, claim = fitted
    for kernel in (
        ("rbf", 0.5 * (1.0 + 1e-6)),
        ("laplacian", 0.5),
        ("linear",),
        ("scaled", 1.001, RBF),
        ("sum", RBF, RBF),
    ):
        refused(replace(claim, kernel=kernel), machine.X, machine.y, weight=machine.weight)
    for kernel in (("rbf", -0.05), ("rbf",), "rbf", (), ("rbf", "scale"), None, ("cosine", 1.0)):
        refused(replace(claim, kernel=kernel), machine.X, machine.y, "kernel", machine.weight)
    refused(replace(claim, kernel=("precomputed",)), machine.X, machine.y, "shape", machine.weight)


@pytest.mark.parametrize("part", ["primal", "dual", "gap", "intercept", "alpha"])
def test_nan_is_refused(fitted, part):
    machine, claim = fitted
    value = np.full_like(claim.alpha, np.nan) if part == "alpha" else np.nan
    verdict = refused(replace(claim, **{part: value}), machine.X, machine.y, weight=machine.weight)
    assert verdict.worst in ("finite", "feasibility")


def test_what_no_fit_claims_is_a_verdict_not_an_error(fitted):
    machine, claim = fitted
    X, y, weight = machine.X, machine.y, machine.weight
    for altered in (
        {"penalty": "l1"}, {"loss": "crammer_singer"}, {"loss": "absolute"}, {"C": 0.0}, {"intercept": 1e200},
        {"penalty_scale": 1e200}, {"class_weight": "nonsense"}, {"alpha": np.float32(claim.alpha)},
        {"alpha": claim.alpha[:, None]}, {"kernel": ("poly", 1e300, 0.0, 3)}, {"kernel": ("rbf", 1e308)},
        {"alpha": np.zeros_like(claim.alpha)},
    ):  # fmt: skip
        refused(replace(claim, **altered), X, y, weight=weight)
    for kernel in (RBF, ("laplacian", 1.0), ("poly", 1.0, 0.0, 3)):
        other = replace(claim, kernel=kernel)
        for rows in (X[:, :0], 0.0 * X, np.full_like(X, 1e200), np.full_like(X, 1e-200)):
            refused(other, rows, y, weight=weight)
            refused(other, sp.csr_array(rows), y, weight=weight)


def test_an_empty_expansion():
    machine = ordinary(C=2.0).take(np.zeros(50), 0.0)
    claim = machine.certificate()
    assert (claim.primal, claim.dual) == (pytest.approx(100.0), 0.0)
    assert claim.verify(machine.X, machine.y).outcome is Outcome.HONEST
    refused(replace(claim, dual=1e-9), machine.X, machine.y)


# --- hypotheses -------------------------------------------------------------------------------------------------------


def gram(X, gamma=0.05):
    K = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
    return 0.5 * (K + K.T)


def given(K, y, kernel=("precomputed",), *, best=True, C=3.0):
    """A machine whose values come from outside, as a solver claims it."""
    machine = Machine(np.eye(len(y)), y, ("product", ("linear",), ("linear",)), "hinge", C)
    machine.structure = RBF  # whose values nobody asks for
    if best:
        machine.take(*clarabel_dual(K, machine.problem.sign, machine.problem.target, machine.cost, 0.0))
    else:
        machine.random()
    a = machine.problem.sign * machine.alpha
    sizes = RowSizes(len(y), given=float(np.abs(K).max()))
    primal, dual = expansion_claim(
        terms_of(machine.problem), kernel, machine.alpha, machine.b, K @ a, np.abs(K) @ np.abs(a), sizes
    )
    return ExpansionCertificate(
        kernel=kernel, alpha=machine.alpha, intercept=machine.b, primal=primal, dual=dual,
        gap=machine.problem.relative_gap(primal, dual), loss="hinge", C=C, classes=np.unique(y), tol=1e-6,
    )  # fmt: skip


def test_a_precomputed_kernel_is_proven_under_a_hypothesis_that_is_said():
    machine = ordinary()
    K = gram(machine.X)
    claim = given(K, machine.y)
    for form in (np.asarray, sp.csr_array, np.ndarray.tolist):
        verdict = claim.verify(form(K), machine.y)
        assert verdict, str(verdict)
        assert "provided that the kernel is positive semidefinite, as it is on the" in str(verdict)
    skew = np.triu(np.random.default_rng(0).standard_normal((50, 50)), 1) * 1e-17
    assert claim.verify(K + skew - skew.T, machine.y)  # (K + Kᵀ)/2 is what counts
    refused(claim, K * (1.0 + 1e-9), machine.y)
    refused(claim, K[:, :-1], machine.y, "shape")
    half = K.copy()
    one, other = np.argsort(-np.abs(claim.alpha))[:2]
    half[one, other] += 1e-6
    refused(claim, half, machine.y)


def test_a_precomputed_kernel_of_single_precision():
    machine = ordinary()
    K = np.float32(gram(machine.X))
    assert given(K.astype(np.float64), machine.y).verify(K, machine.y)


def test_a_matrix_with_a_negative_eigenvalue_is_refused():
    machine = ordinary()
    K = gram(machine.X)
    lowest = np.linalg.eigvalsh(K)[0]
    shifted = K - (lowest + 0.1) * np.eye(50)
    claim = given(shifted, machine.y, best=False)
    assert np.count_nonzero(claim.alpha) > 40
    verdict = refused(claim, shifted, machine.y, "kernel")
    assert "not positive semidefinite" in str(verdict)
    whole = K - lowest * np.eye(50)  # singular, up to rounding
    assert given(whole, machine.y, best=False).verify(whole, machine.y).outcome is Outcome.HONEST


def test_what_is_too_large_to_be_tested_is_said(monkeypatch):
    machine = ordinary()
    K = gram(machine.X)
    claim = given(K, machine.y)
    monkeypatch.setattr(expansion, "TESTED", 3)
    verdict = claim.verify(K, machine.y)
    assert verdict
    assert "which was not tested" in str(verdict)
    # A negative square is seen without a test.
    negative = given(-K, machine.y, best=False)
    assert "negative" in str(refused(negative, -K, machine.y, "kernel"))


def test_a_callable():
    machine = ordinary()

    def f(X, Z, gamma):
        X, Z = (M.toarray() if sp.issparse(M) else M for M in (X, Z))
        assert X.dtype == Z.dtype == np.float64
        return np.exp(-gamma * ((X[:, None] - Z) ** 2).sum(axis=2))

    K = gram(machine.X)
    for kernel in (("callable", f, {"gamma": 0.05}), ("scaled", 1.0, ("callable", f, {"gamma": 0.05}))):
        claim = given(K, machine.y, kernel)
        for form in (np.asarray, np.float32, sp.csr_array):
            verdict = claim.verify(form(np.float32(machine.X).astype(np.float64)), machine.y)
            assert verdict.outcome is Outcome.REJECTED  # K is of other rows
            assert form is np.float32 or claim.verify(form(machine.X), machine.y)
        refused(replace(claim, kernel=("callable", f, {"gamma": 0.06})), machine.X, machine.y)
    shape = replace(claim, kernel=("callable", lambda X, Z: np.ones(3), {}))
    with pytest.raises(ValueError, match="returned an array of shape"):
        shape.verify(machine.X, machine.y)
    lopsided = replace(claim, kernel=("callable", lambda X, Z: X @ np.triu(np.ones((12, 12))) @ Z.T, {}))
    assert refused(lopsided, machine.X, machine.y).worst == "kernel"


@pytest.mark.parametrize("structure", STRUCTURES[-2:], ids=str)
def test_an_indefinite_kernel_proves_nothing(structure):
    machine = ordinary(structure).random()
    claim = machine.certificate()
    assert math.isnan(claim.gap)
    assert claim.distance_bound == math.inf
    verdict = claim.verify(machine.X, machine.y, max_gap=math.inf)
    assert verdict.outcome is Outcome.HONEST
    assert "no gap is known" in str(verdict)
    assert (verdict.primal, verdict.dual) == (claim.primal, claim.dual)
    assert refused(replace(claim, gap=1e-9), machine.X, machine.y).worst == "gap"
    silent = replace(claim, dual=math.nan)
    assert silent.verify(machine.X, machine.y).outcome is Outcome.HONEST
    refused(replace(silent, primal=claim.primal * (1.0 - 1e-6)), machine.X, machine.y, "primal value")
    refused(replace(silent, primal=math.nan), machine.X, machine.y, "finite")
    refused(replace(claim, primal=claim.primal * (1.0 - 1e-6)), machine.X, machine.y, "primal value")
    refused(replace(claim, dual=claim.dual + 1e-6 * abs(claim.dual)), machine.X, machine.y, "dual value")
    refused(replace(claim, primal=claim.primal * 1.1), machine.X, machine.y, "primal value")


# --- several machines -----------------------------------------------------------------------------------------------


def combined(scheme, structure=RBF, k=4, loss="hinge"):
    """Machines for pairs of classes, or for one class each."""
    rng = np.random.default_rng(0)
    X, position = rng.standard_normal((80, 9)), rng.permutation(np.arange(80) % k)
    X[np.arange(80), position] += 2.0
    parts = []
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)] if scheme == "ovo" else [(i,) for i in range(k)]
    for pair in pairs:
        chosen = np.flatnonzero(np.isin(position, pair)) if scheme == "ovo" else np.arange(80)
        y = position[chosen] == pair[-1]
        machine = Machine(X[chosen], y, structure, loss, 2.0, seed=len(parts)).solve()
        alpha = np.zeros(80)
        alpha[chosen] = machine.alpha
        parts.append(replace(machine.certificate(), alpha=alpha))
    y = np.array(list("abcd"))[position]
    shared = {"loss": loss, "C": 2.0, "tol": 1e-6}
    return X, y, CombinedCertificate(parts=tuple(parts), scheme=scheme, classes=np.unique(y), **shared)


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_machines_of_several_classes(scheme):
    X, y, claim = combined(scheme)
    assert len(claim.parts) == {"ovr": 4, "ovo": 6}[scheme]
    for form in (np.asarray, sp.csr_array, np.ndarray.tolist):
        verdict = claim.verify(form(X), y)
        assert verdict, str(verdict)
    assert verdict.primal == pytest.approx(claim.primal)
    assert "nan" not in repr(claim)
    changed = X.copy()
    changed[5] += 0.01
    refused(claim, changed, y)
    refused(claim, X, np.roll(y, 1))
    changed[5, 3] = np.nan
    refused(claim, changed, y, "finite")
    for k in (0, len(claim.parts) - 1):
        for altered in ({"kernel": ("rbf", 0.06)}, {"tol": 1e-3}, {"C": 1.0}):
            parts = [replace(part, **altered) if j == k else part for j, part in enumerate(claim.parts)]
            refused(replace(claim, parts=tuple(parts)), X, y, "parts")
        lower = replace(claim.parts[k], primal=claim.parts[k].primal * (1.0 - 1e-9))
        refused(replace(claim, parts=(*claim.parts[:k], lower, *claim.parts[k + 1 :])), X, y)
    refused(replace(claim, parts=tuple(replace(part, kernel=("rbf", 0.06)) for part in claim.parts)), X, y)
    refused(replace(claim, parts=claim.parts[::-1]), X, y)


def test_a_pair_of_a_precomputed_kernel_knows_its_rows():
    X, y, claim = combined("ovo")
    K = gram(X)
    jobs = zip(claim.parts, claim._jobs(), strict=True)
    parts = tuple(_restated(part, K, y, claim.classes, pair) for part, pair in jobs)
    for form in (np.asarray, sp.csr_array):
        assert replace(claim, parts=parts).verify(form(K), y)
    refused(replace(claim, parts=parts), np.roll(K, 1, axis=0), y)


def _restated(part, K, y, classes, pair):
    """The claim of a pair from values that are exact."""
    chosen = np.flatnonzero(np.isin(y, classes[list(pair)]))
    machine = Machine(X=np.zeros((len(chosen), 1)), y=y[chosen] == classes[pair[1]], structure=RBF, loss="hinge", C=2.0)
    a, block = machine.problem.sign * part.alpha[chosen], K[np.ix_(chosen, chosen)]
    sizes = RowSizes(len(K), given=1.0)
    primal, dual = expansion_claim(
        terms_of(machine.problem), ("precomputed",), part.alpha[chosen], part.intercept, block @ a,
        np.abs(block) @ np.abs(a), sizes,
    )  # fmt: skip
    kernel = ("precomputed",)
    return replace(part, kernel=kernel, primal=primal, dual=dual, gap=machine.problem.relative_gap(primal, dual))


def test_indefinite_machines_of_several_classes_are_honest():
    X, y, claim = combined("ovo", structure=STRUCTURES[-1])
    assert math.isnan(claim.gap)
    verdict = claim.verify(X, y, max_gap=1.0)
    assert verdict.outcome is Outcome.HONEST
    assert "no gap is known" in str(verdict)


# --- what it costs ----------------------------------------------------------------------------------------------------


def test_no_square_matrix_is_ever_held():
    rng = np.random.default_rng(0)
    n = 6000
    machine = Machine(rng.standard_normal((n, 10)), rng.integers(0, 2, n), RBF, "hinge", 1.0).random()
    claim = ExpansionCertificate(
        kernel=RBF, alpha=machine.alpha, intercept=0.0, primal=1e9, dual=-1e9, gap=2.0, loss="hinge", C=1.0,
        classes=np.array([0, 1]), tol=1e-6,
    )  # fmt: skip
    tracemalloc.start()
    verdict = claim.verify(machine.X, machine.y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert verdict.worst == "primal value"
    assert peak < 8 * n * np.count_nonzero(machine.alpha) / 10


def test_rows_are_read_once_where_products_settle_it(monkeypatch):
    looks = watched_reads(monkeypatch)
    machine = ordinary().solve()
    claim = machine.certificate()
    assert claim.verify(machine.X, machine.y)
    refused(replace(claim, primal=0.5 * claim.primal), machine.X, machine.y)
    assert looks == [50, 50]  # a claim that is certainly false is not looked at again
    X, y, claim = combined("ovo")
    looks.clear()
    assert claim.verify(X, y)
    assert looks == [40] * 6  # a pair reads its own rows

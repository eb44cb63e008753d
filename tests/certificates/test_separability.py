"""Separable or not: every proof is checked in rationals here once more, and against an oracle in rationals."""

import pickle
import warnings
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import InputError, LinearSVC, NotSeparableError
from maxmargin.certificates import exact_simplex, judge_separability, separability
from maxmargin.certificates.exact import Weights, intercept_between, misplaced
from maxmargin.certificates.exact_simplex import closest
from maxmargin.certificates.lifting import solved
from tests.problems import KINDS, make_case

FAR = np.array([[0.0, 0.0], [1e12, 1e12], [0.0, 1.0], [1e12, 1e12 + 1.0]]), np.array([0, 0, 1, 1])


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


def mixed(seed=0, n=40, d=2):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), np.repeat([0, 1], n // 2)


def fourier_motzkin(X, y):
    """Whether sign·(⟨w, x⟩ + b) > 0 has a solution: unknowns are eliminated one by one, in fractions.

    Rows with a positive and a negative coefficient of the unknown are added so that it vanishes. If a sum of the
    inequalities says 0 > 0, there is no solution.
    """
    signs = np.where(y == y.max(), 1, -1).tolist()
    rows = {tuple(s * Fraction(v) for v in (*x, 1.0)) for x, s in zip(X.tolist(), signs, strict=True)}
    for _ in range(X.shape[1] + 1):
        above, below = [r for r in rows if r[0] > 0], [r for r in rows if r[0] < 0]
        left = [r[1:] for r in rows if r[0] == 0]
        for p in above:
            for q in below:
                left += [tuple(a / p[0] - b / q[0] for a, b in zip(p[1:], q[1:], strict=True))]
        if any(not any(r) for r in left):
            return False
        rows = {tuple(a / max(map(abs, r)) for a in r) for r in left}
    return True


def holds(verdict, X, y):
    """The proof in fractions, by the definition."""
    X = X.toarray() if sp.issparse(X) else X
    rows = [[Fraction(v) for v in x] for x in X.astype(float).tolist()]
    if verdict.separable:
        w, b = [Fraction(v) for v in verdict.coef.tolist()], Fraction(verdict.intercept)
        scores = [sum((a * c for a, c in zip(row, w, strict=True)), b) for row in rows]
        return all((s > 0) == (label == verdict.positive) and s != 0 for s, label in zip(scores, y, strict=True))
    mean = {}
    for label in (verdict.positive, *verdict.negative):
        weights = zip(verdict.rows, verdict.numerators, strict=True)
        parts = [(Fraction(a, verdict.denominator), rows[i]) for i, a in weights if y[i] == label]
        if sum(a for a, _ in parts) != 1 or min(a for a, _ in parts) < 0:
            return False
        mean[label] = [sum(a * row[j] for a, row in parts) for j in range(X.shape[1])]
    return mean[verdict.positive] == mean[verdict.negative[0]]


def small_problem(seed):
    """Few rows and columns; offsets, scales, repeated rows, dependent columns, hulls that touch: six kinds in turns."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    n = int(rng.integers(2, 9 if d == 3 else 12))
    whole = seed % 6 < 3
    X = rng.integers(-3, 4, (n, d)).astype(float) if whole else rng.standard_normal((n, d))
    if seed % 6 in (1, 4):
        X = X * 10.0 ** rng.uniform(-10, 16, d)
    if seed % 6 in (2, 5):
        X = X + 10.0 ** rng.uniform(0, 12) * rng.choice([0, 1, -1], d)
    if seed % 5 == 0:
        X = X[rng.integers(0, n, n)]
    if seed % 7 == 0:
        X = np.hstack([X, X @ rng.standard_normal((d, 1))])[:, -3:]
    if seed % 13 == 0:
        X = 1e12 * (np.arange(n) % 2)[:, None] * np.ones((1, X.shape[1])) + X
    scores = X @ rng.standard_normal(X.shape[1])
    y = (scores > np.median(scores)).astype(int) if seed % 3 else (rng.random(n) < 0.5).astype(int)
    y[0], y[-1] = 0, 1
    return X, y


FORMS = [np.asarray, sp.csr_array, lambda X: X.astype(np.float32), lambda X: sp.csr_array(X.astype(np.float32))]


@pytest.mark.parametrize("form", range(4))
def test_no_proof_is_ever_false(form):
    seen, wrong = Counter(), []
    for seed in range(form, 1200, 4):
        X, y = small_problem(seed)
        X = FORMS[form](X)
        plain = X.toarray() if sp.issparse(X) else X
        truth, verdict = fourier_motzkin(plain.astype(float), y), judge_separability(X, y)
        seen[verdict.separable] += 1
        if verdict.separable is not None and not (
            verdict.separable == truth and verdict.verify(X, y) and holds(verdict, X, y)
        ):
            wrong.append(seed)
    assert not wrong
    assert min(seen[True], seen[False]) >= 80
    assert seen[None] <= 3


def test_every_small_problem_of_the_contracts_is_decided():
    for seed in range(8 * len(KINDS)):
        case = make_case(seed)
        verdict = judge_separability(case.X, case.y)
        assert verdict.separable is not None, str(case)
        assert verdict.verify(case.X, case.y), str(case)


def test_classes_that_rounded_means_would_join():
    X, y = FAR
    verdict = judge_separability(X, y)
    assert verdict.separable is True
    assert verdict.verify(X, y)
    assert holds(verdict, X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert LinearSVC(C=np.inf).fit(X, y).predict(X).tolist() == y.tolist()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("seed", range(10))
def test_separable_clouds(seed, kind):
    X, y = cloud(seed, 60, 4, 0.05)
    verdict = judge_separability(kind(X), y)
    assert verdict.separable is True
    assert verdict.verify(kind(X), y)
    assert verdict.weights is None
    assert np.all(y * (X @ verdict.coef + verdict.intercept) > 0)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("seed", range(10))
def test_mixed_clouds(seed, kind):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((80, 3)), np.where(rng.random(80) < 0.5, "no", "yes")
    verdict = judge_separability(kind(X), y)
    assert verdict.separable is False
    assert verdict.verify(kind(X), y)
    for label in ("no", "yes"):
        assert verdict.weights[y == label].sum() == pytest.approx(1.0)
    mean = [verdict.weights[y == label] @ X[y == label] for label in ("no", "yes")]
    np.testing.assert_allclose(*mean, atol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1.7e9, 1e10, -1e12])
def test_an_offset_hides_nothing(offset):
    X, y = offset + np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([0, 0, 1, 1])
    found = judge_separability(X, y)
    assert found.separable is True
    assert found.verify(X, np.array([0, 1, 0, 1])).worst == "sides"
    verdict = judge_separability(X, np.array([0, 1, 0, 1]))
    assert verdict.separable is False
    assert verdict.verify(X, y).worst in ("weights", "means")


@pytest.mark.parametrize("columns", [0, 1, 3])
def test_touching_classes_and_equal_rows_are_not_separable(columns):
    X, y = np.array([[0.0], [1.0], [1.0], [2.0]]) * np.ones(columns), np.array([0, 0, 1, 1])
    verdict = judge_separability(X, y)
    assert verdict.separable is False
    assert verdict.verify(X, y)


def test_neighbouring_numbers_are_apart():
    for x in (1.0, 0.1, 1e300, 5e-324, -3.7e-310):
        X = np.array([[x], [np.nextafter(x, np.inf)]])
        verdict = judge_separability(X, [0, 1])
        assert verdict.separable is True, x
        assert verdict.verify(X, [0, 1])


def test_numbers_of_extreme_size():
    X, y = np.array([[1e308, 1e-308], [-1e308, 3e-308], [1e308, 2e-308], [-1e308, 4e-308]]), np.array([0, 0, 1, 1])
    assert judge_separability(X, y).verify(X, y)
    assert judge_separability(X, np.array([0, 1, 1, 0])).verify(X, np.array([0, 1, 1, 0]))


# --- the parts ---------------------------------------------------------------------------------------------------


def test_a_row_on_the_hyperplane_is_misplaced_though_rounding_moves_it():
    w, sign = np.array([1.0, 1.0, -1.0]), np.ones(1)
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b = rng.standard_normal(2)
        X = np.array([[a, b, a + b]])
        exact = Fraction(a) + Fraction(b) - Fraction(a + b)
        for form in (X, sp.csr_array(X)):
            assert (misplaced(form, sign, w, 0.0) is None) == (exact > 0)
            assert (misplaced(form, -sign, w, 0.0) is None) == (exact < 0)


def test_products_that_underflow_or_overflow_keep_their_sign():
    sign = np.array([1.0, -1.0])
    tiny, huge = np.array([[1e-200], [-1e-200]]), np.array([[1e200], [-1e200]])
    assert misplaced(tiny, sign, np.array([1e-200]), 0.0) is None
    assert misplaced(tiny, -sign, np.array([1e-200]), 0.0) == 0
    assert misplaced(huge, sign, np.array([1e200]), 1e308) is None
    assert misplaced(np.hstack([huge, huge]), sign, np.array([1e200, -1e200]), 0.0) == 0
    unordered = sp.csr_array((np.array([3.0, 2.0]), np.array([1, 0]), np.array([0, 2])), shape=(1, 2))
    assert misplaced(unordered, np.ones(1), np.array([3.0, -2.0]), -1e-17) == 0


def test_an_intercept_is_found_between_scores_that_rounding_joins():
    X, sign = np.array([[1e15, 1.0], [1e15, 2.0]]), np.array([-1.0, 1.0])
    X[:, 0] += 2.0 * np.arange(2)
    b = intercept_between(X, sign, np.array([1.0, -1.5]))
    assert b is not None
    assert misplaced(X, sign, np.array([1.0, -1.5]), b) is None
    assert intercept_between(X, sign, np.array([0.0, 0.0])) is None
    assert intercept_between(X, -sign, np.array([0.0, 1.0])) is None


@pytest.mark.parametrize("d", [1, 5, 30])
def test_lifting_and_integer_pivoting_agree(d):
    rng = np.random.default_rng(d)
    X, sign = rng.standard_normal((8 * d + 4, d)), np.where(np.arange(8 * d + 4) % 2 == 0, 1.0, -1.0)
    answer = closest(X, sign, np.arange(len(X)))
    assert answer.weights is not None
    rows = np.array(sorted(answer.weights.rows))
    again = solved(X, sign, rows)
    fractions = [
        {i: Fraction(a, found.denominator) for i, a in zip(found.rows, found.numerators, strict=True)}
        for found in (answer.weights, again)
    ]
    assert fractions[0] == fractions[1]


def test_lifting_refuses_what_has_no_unique_or_no_solution():
    X, sign = np.array([[0.0], [2.0], [1.0], [1.0], [5.0]]), np.array([1.0, 1.0, -1.0, -1.0, -1.0])
    assert solved(X, sign, np.array([0, 1, 2])) == Weights((0, 1, 2), (1, 1, 2), 2)
    assert solved(X, sign, np.array([0, 1, 2, 3])) is None  # rows 2 and 3 are equal
    assert solved(X, sign, np.array([0, 1, 4])) is None  # row 4 is outside


def test_without_the_linear_program_integers_decide(monkeypatch):
    monkeypatch.setattr(
        separability, "_in_floating_point", lambda X, sign, _: (np.zeros(X.shape[1]), np.zeros(len(sign)), False)
    )
    for seed in range(300):
        X, y = small_problem(seed)
        verdict = judge_separability(X, y)
        assert verdict.separable in (fourier_motzkin(X, y), None)
        assert verdict.separable is None or verdict.verify(X, y)
    # A part of the rows at a time: rows across the answer come in.
    monkeypatch.setattr(separability, "MOST_EXACT_NUMBERS", 60)
    for X, y in (cloud(0, 400, 3, 0.5), mixed(0, 400, 3)):
        assert judge_separability(X, y).verify(X, y)


def test_too_much_work_is_left_undecided(monkeypatch):
    monkeypatch.setattr(separability, "solved", lambda *_: None)
    monkeypatch.setattr(exact_simplex, "MOST_WORK", 1e3)
    X, y = mixed(0, 200, 10)
    verdict = judge_separability(X, y)
    assert verdict.separable is None
    assert "not judged" in str(verdict)


def test_time_limit_is_honest():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((4000, 60)), np.repeat([0, 1], 2000)
    verdict = judge_separability(X, y, max_seconds=1e-6)
    assert verdict.separable is None
    assert "not judged" in str(verdict)
    assert verdict.verify(X, y).worst == "kind"


def test_a_given_hyperplane_is_enough():
    X, y = cloud(0, 60, 4, 0.05)
    found = judge_separability(X, y)
    again = judge_separability(X, y, hyperplane=(found.coef, found.intercept), max_seconds=0.0)
    assert again.separable is True
    assert again.coef is found.coef
    assert judge_separability(X, y, hyperplane=(-found.coef, np.nan)).verify(X, y)


def test_large_proofs_can_be_shown_and_pickled():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((700, 120)), np.repeat([0, 1], 350)
    verdict = judge_separability(X, y, max_seconds=60.0)
    assert verdict.separable is False
    assert max(verdict.numerators).bit_length() > 4000
    assert "numerators" not in repr(verdict)
    assert pickle.loads(pickle.dumps(verdict)).verify(X, y)


# --- what is not proven ------------------------------------------------------------------------------------------


def changed(X, i, j, value):
    X = X.copy()
    X[i, j] = value
    return X


def test_forged_hyperplanes_are_rejected():
    X, y = cloud(0, 60, 4, 0.05)
    proof = judge_separability(X, y)
    assert proof.verify(X, y)
    w, b = proof.coef, proof.intercept
    on_it = np.vstack([X, X[:1]])
    on_it[-1] = 0.0
    touching = replace(proof, intercept=0.0, n_rows=61)
    cases = {
        "sides": [
            (replace(proof, coef=-w, intercept=-b), X, y), (replace(proof, positive=-1, negative=(1,)), X, y),
            (proof, X, -y), (touching, on_it, np.append(y, 1)), (replace(proof, coef=0.0 * w, intercept=1.0), X, y),
        ],
        "finite": [
            (replace(proof, coef=np.array([np.nan, *w[1:]])), X, y),
            (replace(proof, coef=np.full(4, np.nan)), X, y), (replace(proof, coef=np.array([np.inf, *w[1:]])), X, y),
            (replace(proof, intercept=np.nan), X, y), (replace(proof, intercept=-np.inf), X, y),
            (proof, changed(X, 3, 1, np.nan), y), (proof, changed(X, 3, 1, np.inf), y),
            (proof, sp.csr_array(changed(X, 3, 1, np.nan)), y),
        ],
        "shape": [
            (replace(proof, coef=w[:3]), X, y), (replace(proof, coef=w[None]), X, y), (proof, X[:, :3], y),
            (proof, X[:-1], y[:-1]), (proof, X, y[:-1]), (proof, X[0], y), (replace(proof, n_rows=61), X, y),
            (replace(proof, coef=np.arange(4)), X, y), (replace(proof, intercept=1), X, y), (proof, X.astype(str), y),
            (proof, X + 0j, y),
        ],
        "labels": [
            (proof, X, np.where(np.arange(60) == 5, 7, y)), (proof, X, np.where(y > 0, "1", "-1")),
            (proof, X, np.ones(60)), (proof, X, -np.ones(60)), (proof, X, np.where(np.arange(60) == 5, np.nan, y)),
            (replace(proof, positive=3), X, y), (replace(proof, negative=()), X, y),
            (replace(proof, negative=(-1, 1)), X, y), (replace(proof, left_out=(1,)), X, y),
            (replace(proof, positive=[1]), X, y),
        ],
        "kind": [
            (replace(proof, separable=False), X, y), (replace(proof, separable=None), X, y),
            (replace(proof, coef=None), X, y), (replace(proof, rows=(0,), numerators=(1,)), X, y),
            (replace(proof, separable=np.nan), X, y), (replace(proof, separable="yes"), X, y),
        ],
    }  # fmt: skip
    for check, forged in cases.items():
        for k, (claim, data, labels) in enumerate(forged):
            verdict = claim.verify(data, labels)
            assert (verdict.accepted, verdict.worst) == (False, check), (check, k, str(verdict))
            assert not verdict
            assert str(verdict).startswith(f"REJECTED: {check}: ")


def test_forged_weights_are_rejected():
    X, y = mixed()
    proof = judge_separability(X, y)
    assert proof.verify(X, y)
    assert str(proof.verify(X, y)).startswith("verified: in exact arithmetic, the weighted means")
    rows, a, total = proof.rows, proof.numerators, proof.denominator
    used = rows[0]
    cases = {
        "kind": [replace(proof, separable=True), replace(proof, separable=None), replace(proof, rows=(), numerators=()),
                 replace(proof, coef=np.ones(2)), replace(proof, separable=True, coef=np.ones(2))],
        "weights": [
            replace(proof, denominator=total + 1), replace(proof, denominator=0),
            replace(proof, numerators=tuple(-k for k in a), denominator=-total),
            replace(proof, numerators=(a[0] + 1, *a[1:])), replace(proof, numerators=a[:-1]),
            replace(proof, rows=(*rows, 0, 1), numerators=(*a, 5, -5)), replace(proof, rows=(rows[0] - 40, *rows[1:])),
            replace(proof, rows=(40, *rows[1:])), replace(proof, numerators=(float(a[0]), *a[1:])),
            replace(proof, numerators=(np.nan, *a[1:])), replace(proof, denominator=np.inf),
            replace(proof, rows=(float(used), *rows[1:])),
        ],
        "means": [replace(proof, rows=((used + 1) % 20 if used < 20 else 20 + (used + 1) % 20, *rows[1:]))],
    }  # fmt: skip
    for check, forged in cases.items():
        for k, claim in enumerate(forged):
            verdict = claim.verify(X, y)
            assert (verdict.accepted, verdict.worst) == (False, check), (check, k, str(verdict))
    assert proof.verify(changed(X, used, 0, np.nextafter(X[used, 0], np.inf)), y).worst == "means"
    assert proof.verify(X, np.roll(y, 10)).worst in ("weights", "means")
    assert proof.verify(np.vstack([X, X]), np.tile(y, 2)).worst == "shape"
    assert proof.verify(changed(X, used, 0, np.nan), y).worst == "finite"
    assert proof.verify(X, np.where(np.arange(40) == 7, 2, y)).worst == "labels"


def test_input_that_cannot_be_judged():
    X, y = mixed()
    with pytest.raises(InputError, match="two classes, y has 3"):
        judge_separability(X, np.arange(40) % 3)
    with pytest.raises(InputError, match="two classes, y has 1"):
        judge_separability(X, np.zeros(40))
    with pytest.raises(InputError, match="40 rows, 39 labels"):
        judge_separability(X, y[1:])
    with pytest.raises(InputError, match="NaN or infinity"):
        judge_separability(changed(X, 0, 0, np.nan), y)
    with pytest.raises(InputError, match="3 coefficients, X has 2 columns"):
        judge_separability(X, y, hyperplane=(np.ones(3), 0.0))
    with pytest.raises(NotSeparableError) as caught:
        LinearSVC(C=np.inf).fit(X, y)
    assert caught.value.proof.verify(X, y)

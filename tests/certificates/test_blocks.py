"""A proof sees X block by block: the same verdicts however it is cut, few reads, and no copy of the whole."""

import tracemalloc
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import LinearSVC, LinearSVR, LogisticRegression
from maxmargin.certificates import Outcome, blocks, claim
from maxmargin.certificates.blocks import Block, readable
from tests.conftest import tall

KINDS = {
    "float64": np.asarray, "float32": np.float32, "fortran": np.asfortranarray, "list": np.ndarray.tolist,
    "csr": sp.csr_array, "csr32": lambda X: sp.csr_array(X.astype(np.float32)), "csr_matrix": sp.csr_matrix,
    "csc": sp.csc_array, "coo": sp.coo_array,
}  # fmt: skip


def sparse_rows(n=60, d=7):
    rng = np.random.default_rng(0)
    X = np.float32(rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)).astype(np.float64)
    X[[0, 5, n - 1]] = 0.0  # rows without numbers
    return X


def cut(monkeypatch, numbers):
    """Blocks of so many numbers of X."""
    monkeypatch.setattr(blocks, "NUMBERS", numbers)


def counted(monkeypatch):
    """How many rows each look at X showed."""
    looks = []
    original = claim.blocks

    def watched(X, chosen=None):
        looks.append(0)
        for block in original(X, chosen):
            looks[-1] += len(block)
            yield block

    monkeypatch.setattr(claim, "blocks", watched)
    return looks


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("numbers", [1, 40, 10**6])
def test_blocks_hold_all_rows_once(kind, numbers, monkeypatch):
    cut(monkeypatch, numbers)
    X = sparse_rows()
    w, c = np.arange(1.0, 8.0), np.linspace(-1.0, 1.0, 60)
    found = list(blocks.blocks(readable(KINDS[kind](X))))
    assert [block.part.start for block in found] == [0, *(block.part.stop for block in found[:-1])]
    assert sum(len(block) for block in found) == 60
    np.testing.assert_allclose(np.concatenate([block.scores(w) for block in found]), X @ w, atol=1e-12)
    np.testing.assert_allclose(sum(block.combine(c[block.part]) for block in found), X.T @ c, atol=1e-12)
    np.testing.assert_allclose(np.concatenate([block.norms() for block in found]), np.linalg.norm(X, axis=1))
    stored = 7 if kind in ("float64", "float32", "fortran", "list") else int((X != 0.0).sum(axis=1).max())
    assert max(block.longest_row for block in found) == stored
    exact = [block.exact_scores(w) for block in found]
    for i, row in enumerate(X.tolist()):
        high, low = (np.concatenate([pair[k] for pair in exact])[i] for k in (0, 1))
        truth = sum((Fraction(a) * Fraction(b) for a, b in zip(row, w.tolist(), strict=True)), Fraction(0))
        assert abs(Fraction(high) + Fraction(low) - truth) <= Fraction(1, 2**90)


def test_rows_of_a_list_are_found_in_their_blocks(monkeypatch):
    cut(monkeypatch, 20)
    X, chosen = sparse_rows(), np.array([0, 1, 2, 17, 40, 58, 59])
    for given in (X, sp.csr_array(X)):
        parts = [block.of(chosen) for block in blocks.blocks(readable(given))]
        found = np.concatenate([part.scores(np.eye(7)[3]) for part in parts if len(part)])
        np.testing.assert_array_equal(found, X[chosen, 3])
        places = [part.part for part in parts if len(part)]
        assert [place.start for place in places] == [0, *(place.stop for place in places[:-1])]


def test_repeated_and_unsorted_entries_count_as_their_sums():
    data, indices, indptr = np.array([3.0, 4.0, -1.0, 2.0]), np.array([1, 1, 0, 0]), np.array([0, 2, 4])
    X = sp.csr_array((data, indices, indptr), shape=(2, 2))
    block = next(blocks.blocks(readable(X)))
    np.testing.assert_array_equal(block.norms(), [7.0, 1.0])
    np.testing.assert_array_equal(X.data, data)  # and X is left as it was
    assert X.indices.tolist() == [1, 1, 0, 0]


def test_csr_blocks_share_the_numbers_of_x(monkeypatch):
    cut(monkeypatch, 20)
    X = sp.csr_array(sparse_rows())
    assert readable(X) is X
    parts = [block.X for block in blocks.blocks(X) if block.X.nnz]
    assert len(parts) > 5
    assert all(np.shares_memory(part.data, X.data) for part in parts)


def machines():
    X, y = tall(300, 4)
    many = np.digitize(X[:, 0], [-0.7, 0.0, 0.7])
    yield "two", LinearSVC(loss="hinge"), X, y
    yield "hard", LinearSVC(C=np.inf), X + 3.0 * y[:, None], y
    yield "l1", LinearSVC(penalty="l1"), X, y
    yield "logistic", LogisticRegression(), X, y
    yield "numbers", LinearSVR(epsilon=0.1), X, X @ np.arange(4.0) + 0.1 * np.sin(np.arange(300.0))
    yield "ovr", LinearSVC(), X, many
    yield "ovo", LinearSVC(multi_class="ovo"), X, many
    yield "joint hinge", LinearSVC(multi_class="crammer_singer"), X, many
    yield "joint logistic", LogisticRegression(), X, many


@pytest.mark.parametrize(("machine", "X", "y"), [case[1:] for case in machines()], ids=[case[0] for case in machines()])
def test_the_cut_changes_no_verdict_and_x_is_read_at_most_twice(machine, X, y, monkeypatch):
    certificate = machine.fit(X, y).certificate_
    bounds = []
    for numbers in (10**6, 7, 100):
        cut(monkeypatch, numbers)
        for given in (X, sp.csr_array(X), X.tolist()):
            looks = counted(monkeypatch)
            verdict = certificate.verify(given, y)
            assert verdict.outcome is Outcome.PROVEN, str(verdict)
            assert 1 <= len(looks) <= 2
            assert set(looks) == {300}
            bounds.append((verdict.primal, verdict.dual))
    np.testing.assert_allclose(bounds, [bounds[0]] * len(bounds), rtol=1e-12)


def test_a_false_claim_is_looked_at_twice_and_rejected_wherever_it_is_false(monkeypatch):
    X, y = tall(300, 4)
    certificate = LinearSVC(loss="hinge").fit(X, y).certificate_
    cut(monkeypatch, 60)
    for row in (0, 150, 299):
        changed = X.copy()
        changed[row] += 10.0
        looks = counted(monkeypatch)
        assert certificate.verify(changed, y).outcome is Outcome.REJECTED
        assert looks == [300, 300]
        changed[row] = np.nan
        assert certificate.verify(changed, y).worst == "finite"


def test_nothing_but_blocks_and_vectors_is_held():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 60))
    y = X[:, 0] + rng.standard_normal(200_000) > 0.0
    certificate = LinearSVC(tol=1e-3).fit(X, y).certificate_
    vector, block = 8 * len(y), 8 * blocks.NUMBERS
    for given in (X, np.float32(X), sp.csr_array(X)):
        tracemalloc.start()
        certificate.verify(given, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= 6 * vector + 8 * block < 0.5 * X.nbytes


def test_parts_that_are_wrong_are_found_among_right_ones():
    X, _ = tall(300, 4)
    many = np.digitize(X[:, 0], [-0.7, 0.0, 0.7])
    certificate = LinearSVC(multi_class="ovo").fit(X, many).certificate_
    for k in range(len(certificate.parts)):
        lower = replace(certificate.parts[k], primal=0.9 * certificate.parts[k].primal)
        parts = (*certificate.parts[:k], lower, *certificate.parts[k + 1 :])
        assert replace(certificate, parts=parts).verify(X, many).worst == "primal value"


def test_a_block_knows_whether_it_is_finite():
    X = np.ones((3, 2))
    for value in (np.nan, np.inf, -np.inf):
        X[1, 1] = value
        assert not Block(slice(0, 3), X).finite
        assert not Block(slice(0, 3), sp.csr_array(X)).finite
    assert Block(slice(0, 1), X[:1]).finite


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.float32, np.float16, object])
def test_numbers_of_another_type_are_no_proof(dtype):
    X, y = tall(60, 3)
    certificate = LinearSVC(loss="hinge").fit(X, y).certificate_
    many = LogisticRegression().fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    for name in ("coef", "alpha"):
        changed = replace(certificate, **{name: getattr(certificate, name).astype(dtype)})
        assert changed.verify(X, y).worst == "numbers"
        changed = replace(many.certificate_, **{name: getattr(many.certificate_, name).astype(dtype)})
        assert changed.verify(X, np.digitize(X[:, 0], [-0.5, 0.5])).worst == "numbers"
    for name in ("primal", "dual", "C", "tol"):
        for value in (np.float32(getattr(certificate, name)), None, "1"):
            assert replace(certificate, **{name: value}).verify(X, y).worst == "numbers"

"""Pocket and voted perceptron."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Perceptron, PocketPerceptron, VotedPerceptron
from tests.online.oracles import mixed, pocket


def errors(machine, X, y):
    return int((y * machine.decision_function(X) <= 0).sum())


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("seed", range(10))
def test_the_pocket_is_the_textbooks(seed, layout, instruction_set):
    X, y = mixed(np.random.default_rng(seed), 50, 3)
    X = np.round(4 * X) / 4
    (w, b), least = pocket(X, y, 5)
    machine = PocketPerceptron(shuffle=False, max_iter=5).fit(layout(X), y)
    assert np.array_equal(machine.coef_[0], w)
    assert machine.intercept_[0] == b
    assert machine.n_errors_ == least == errors(machine, X, y)
    assert machine.n_evaluations_ == machine.n_updates_


@pytest.mark.parametrize("rule", ["error", "ratchet"])
def test_training_error_never_rises_with_passes(rule):
    rng = np.random.default_rng(0)
    for case in range(15):
        X, y = mixed(rng, 60, 3)
        found = [
            PocketPerceptron(rule=rule, max_iter=passes, random_state=case).fit(X, y).n_errors_
            for passes in range(1, 8)
        ]
        assert (np.diff(found) <= 0).all()


def test_never_worse_than_the_plain_perceptron():
    rng = np.random.default_rng(1)
    for case in range(30):
        X, y = mixed(rng, 60, 3)
        kept = PocketPerceptron(max_iter=4, random_state=case).fit(X, y)
        plain = Perceptron(max_iter=4, tol=None, random_state=case).fit(X, y)
        if plain.n_updates_:
            assert errors(kept, X, y) <= errors(plain, X, y)


def test_gallants_ratchet_counts_a_tenth_and_is_as_good():
    # The same rows and orders for 100 seeds.
    rng = np.random.default_rng(2)
    X = rng.standard_normal((500, 20))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.standard_normal(500) > 0, 1, -1)
    final = {"error": [], "ratchet": []}
    counts = {"error": 0, "ratchet": 0}
    for seed in range(100):
        for rule in final:
            machine = PocketPerceptron(rule=rule, max_iter=40, random_state=seed).fit(X, y)
            final[rule].append(machine.n_errors_ / 5)
            counts[rule] += machine.n_evaluations_
    assert counts["ratchet"] <= 0.1 * counts["error"]
    assert np.mean(final["ratchet"]) <= np.mean(final["error"]) + 1.0


def test_longest_run_needs_no_counting_and_can_stream():
    X, y = mixed(np.random.default_rng(3), 300, 3)
    machine = PocketPerceptron(rule="run", shuffle=False, max_iter=1).fit(X, y)
    assert machine.n_evaluations_ == 0
    assert machine.longest_run_ >= 1
    assert not hasattr(machine, "n_errors_")
    parts = PocketPerceptron(rule="run", shuffle=False)
    for begin in range(0, 300, 77):
        parts.partial_fit(X[begin : begin + 77], y[begin : begin + 77], classes=[-1, 1])
    assert np.array_equal(parts.coef_, machine.coef_)
    assert parts.longest_run_ == machine.longest_run_
    assert not hasattr(PocketPerceptron(), "partial_fit")
    assert not hasattr(PocketPerceptron(rule="ratchet"), "fit_stream")


def test_patience_ends_the_search():
    X, y = mixed(np.random.default_rng(4), 80, 3)
    machine = PocketPerceptron(patience=30, max_iter=10**6).fit(X, y)
    assert machine.n_iter_ < 10**4
    with pytest.raises(ValueError, match="patience must be"):
        PocketPerceptron(patience=0).fit(X, y)
    with pytest.raises(ValueError, match="rule must be"):
        PocketPerceptron(rule="best").fit(X, y)


def test_votes_are_survivals():
    X, y = mixed(np.random.default_rng(5), 60, 3)
    machine = VotedPerceptron(shuffle=False, max_iter=2).fit(X, y)
    w, b = np.zeros(3), 0.0
    voters, votes = [(w, b)], [0]
    for _ in range(2):
        for x, label in zip(X, y, strict=True):
            votes[-1] += 1
            if label * (x @ w + b) <= 0:
                w, b = w + label * x, b + label
                voters.append((w, b))
                votes.append(0)
    assert machine.votes_[0].tolist() == votes
    score = sum(c * np.where(X @ w + b > 0, 1, -1) for c, (w, b) in zip(votes, voters, strict=True)) / sum(votes)
    np.testing.assert_allclose(machine.decision_function(X), score)
    mean = sum(c * w for c, (w, _) in zip(votes, voters, strict=True)) / sum(votes)
    np.testing.assert_allclose(machine.coef_[0], mean)


def test_averaging_and_voting_beat_the_last_weights_on_unseen_rows():
    rng = np.random.default_rng(6)
    found = {"last": [], "average": [], "voted": []}
    for seed in range(40):
        X = rng.standard_normal((600, 10))
        y = np.where(X @ rng.standard_normal(10) + 2 * rng.standard_normal(600) > 0, 1, -1)
        settings = {"max_iter": 5, "random_state": seed}
        for name, machine in [
            ("last", Perceptron(tol=None, **settings)),
            ("average", Perceptron(tol=None, average=True, **settings)),
            ("voted", VotedPerceptron(**settings)),
        ]:
            found[name].append(1 - machine.fit(X[:300], y[:300]).score(X[300:], y[300:]))
    means = {name: np.mean(values) for name, values in found.items()}
    assert means["average"] < means["last"]
    assert means["voted"] < means["last"]


@pytest.mark.parametrize("scale", [1.0, 2.0**-110, 2.0**80])  # exact, but out of float32's reach
@pytest.mark.parametrize("rule", ["error", "ratchet"])
def test_packed_rows_count_as_the_rows_themselves(rule, scale, instruction_set):
    # Whole numbers: many scores are exactly 0, where only the rows themselves can decide. Sparse rows are not packed.
    for seed in range(15):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(60, 200)), int(rng.integers(1, 7))
        X = rng.integers(-2, 3, (n, d)) * scale
        y = np.where(X[:, 0] + scale * rng.integers(-2, 3, n) > 0, 1, -1)
        y[:2] = [-1, 1]
        options = {"rule": rule, "max_iter": 4, "random_state": seed, "fit_intercept": seed % 3 > 0}
        packed = PocketPerceptron(**options).fit(X, y)
        plain = PocketPerceptron(**options).fit(sp.csr_array(X), y)
        assert packed.n_errors_ == plain.n_errors_
        assert packed.n_evaluations_ == plain.n_evaluations_
        np.testing.assert_array_equal(packed.coef_, plain.coef_)
        assert packed.n_errors_ == np.sum(y * packed.decision_function(X) <= 0)

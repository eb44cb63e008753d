"""Problems drawn at random: the same for the same number, and of every kind."""

import numpy as np
import pytest

from benchmarks import datasets
from benchmarks.datasets import drawn
from benchmarks.forms import REGRESSION, SEVERAL, TWO

SMALL = 200_000  # stored numbers; only these are made here


def stored(problem):
    return problem.n_rows * problem.per_row


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


DRAWS = [drawn.draw(0, k) for k in range(300)]
SMALL_DRAWS = [problem for problem in DRAWS[:80] if stored(problem) <= SMALL]


def test_problem_k_is_the_same_whatever_else_is_drawn():
    assert drawn.draw(0, 17) == DRAWS[17]
    assert drawn.draw(1, 17) != DRAWS[17]
    for problem in SMALL_DRAWS[:8]:
        one, two = drawn.make(problem), datasets.load(problem.name)
        np.testing.assert_array_equal(dense(one.X), dense(two.X))
        np.testing.assert_array_equal(one.y, two.y)


def test_every_category_is_drawn():
    forms = {problem.form for problem in DRAWS[: len(drawn.FORMS_IN_TURN)]}
    assert forms == {form for _, form in drawn.FORMS_IN_TURN}
    names = {form.name for form in forms}
    assert {"hinge", "squared_hinge", "slack_power_1.5", "logistic", "squared_hinge-l1", "logistic-l1"} <= names
    assert {"epsilon_insensitive", "squared_epsilon_insensitive"} <= names
    assert {"crammer_singer", "multinomial", "hinge-ovo", "logistic-ovo"} <= names
    assert {problem.structure for problem in DRAWS} == set(drawn.STRUCTURES)
    assert {problem.noise for problem in DRAWS} == set(drawn.NOISES)
    assert {problem.imbalance for problem in DRAWS} == set(drawn.IMBALANCES)
    assert {(problem.sparse, problem.ordered, problem.repeated) for problem in DRAWS} == {
        (a, b, c) for a in (False, True) for b in (False, True) for c in (False, True)
    }


def test_sizes_stay_within_their_bounds():
    for problem in DRAWS:
        assert stored(problem) <= drawn.MOST_NUMBERS
        assert 50 <= problem.n_rows <= 300_000
        assert 2 <= problem.n_cols <= 3000
        assert 1e-4 <= problem.C <= 1e4
    assert max(problem.n_rows for problem in DRAWS) > 100_000
    assert max(stored(problem) for problem in DRAWS) > drawn.MOST_NUMBERS // 2


@pytest.mark.parametrize("problem", SMALL_DRAWS, ids=lambda problem: problem.name)
def test_numbers_are_what_was_drawn(problem):
    data = drawn.make(problem)
    X = dense(data.X)
    assert data.sparse == problem.sparse
    assert X.shape == (problem.n_rows, problem.n_cols)
    assert np.isfinite(X).all()
    assert data.kind == problem.kind
    assert problem.form.fits(data.kind)
    if problem.structure == "scales":
        assert np.abs(X[:, ::2]).max() < 1e2
        assert np.abs(X[:, 1::2]).max() > 1e4
    if problem.repeated:
        assert len(np.unique(X, axis=0)) <= max(2, problem.n_rows // drawn.COPIES)
    if problem.ordered:
        assert (np.diff(data.y) >= 0.0).all()
    if problem.kind == REGRESSION:
        return
    expected = drawn.class_sizes(problem.n_rows, problem.n_classes, problem.imbalance)
    labels, counts = np.unique(data.y, return_counts=True)
    assert labels.tolist() == ([-1.0, 1.0] if problem.kind == TWO else list(range(problem.n_classes)))
    assert counts.tolist() == expected.tolist()


def test_classes_differ_in_size_as_wanted():
    assert drawn.class_sizes(10_010, 2, 1000.0).tolist() == [10_000, 10]
    assert drawn.class_sizes(50, 2, 1000.0).tolist() == [48, 2]
    assert drawn.class_sizes(90, 3, 1.0).tolist() == [30, 30, 30]


def test_labels_without_noise_can_be_learned_and_noise_cannot():
    from maxmargin import LinearSVC

    def accuracy(noise):
        problem = next(
            one
            for one in (drawn.draw(3, k) for k in range(2000))
            if one.kind == TWO and one.noise == noise and one.imbalance == 1.0 and one.structure == "normal"
            and not one.repeated and 2000 <= one.n_rows <= 20_000 and 5 <= one.n_cols <= 30
        )  # fmt: skip
        data = drawn.make(problem)
        return LinearSVC(tol=1e-3).fit(data.X, data.y).score(data.X, data.y)

    assert accuracy(0.0) > 0.95
    assert accuracy(0.5) < 0.6


def test_names_say_what_is_asked():
    assert drawn.matches("drawn-0-17")
    assert not drawn.matches("drawn-0")
    with pytest.raises(ValueError, match=r"\+test goes with files only"):
        datasets.load("drawn-0-17+test")
    assert {problem.kind for problem in DRAWS} == {TWO, SEVERAL, REGRESSION}

"""Parts of the rows, and C by cross-validation."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import cross_val_score

from maxmargin import InputError, LinearSVC
from maxmargin.selection import choose_C, folds, holdout
from tests.conftest import tall


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("counts", [(2, 2), (7, 40), (333, 100)])
def test_holdout_keeps_the_shares_of_the_classes(share, counts):
    y = np.repeat(["a", "b"], counts)
    learn, test = holdout(y, share, seed=3)
    np.testing.assert_array_equal(np.sort(np.concatenate([learn, test])), np.arange(len(y)))
    for label, n in zip("ab", counts, strict=True):
        assert abs(np.sum(y[test] == label) - share * n) <= 1
        assert np.sum(y[test] == label) >= 1
        assert np.sum(y[learn] == label) >= 1
    again = holdout(y, share, seed=3)
    np.testing.assert_array_equal(again[1], test)


def test_holdout_depends_on_the_seed_and_refuses_what_it_cannot_do():
    y = np.repeat([0, 1], 50)
    assert not np.array_equal(holdout(y, 0.3, 0)[1], holdout(y, 0.3, 1)[1])
    with pytest.raises(InputError, match="one row only"):
        holdout(np.array([0, 0, 1]), 0.5)
    with pytest.raises(InputError, match="between 0 and 1"):
        holdout(y, 1.0)


@pytest.mark.parametrize("n_folds", [2, 5])
def test_folds_are_even_and_every_row_validates_once(n_folds):
    y = np.repeat([0, 1], [33, 12])
    parts = folds(y, n_folds)
    np.testing.assert_array_equal(np.sort(np.concatenate([v for _, v in parts])), np.arange(45))
    sizes = [len(v) for _, v in parts]
    assert max(sizes) - min(sizes) <= 1
    for learn, validate in parts:
        assert not set(learn) & set(validate)
        for label, n in ((0, 33), (1, 12)):
            assert abs(np.sum(y[validate] == label) - n / n_folds) < 1


def test_too_few_rows_for_the_folds():
    with pytest.raises(InputError, match="3 rows, too few for 5 folds"):
        folds(np.repeat([0, 1], [3, 30]), 5)
    with pytest.raises(InputError, match="at least 2"):
        folds(np.repeat([0, 1], 5), 1)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_errors_equal_those_of_scikit_learn(kind):
    X, y = tall(200, 4)
    X = kind(X)
    Cs = (0.01, 1.0)
    search = choose_C(X, y, LinearSVC(loss="hinge"), Cs=Cs, n_folds=4, scale=False)
    for C, errors in zip(Cs, search.errors, strict=True):
        expected = 1.0 - cross_val_score(LinearSVC(loss="hinge", C=C), X, y, cv=folds(y, 4))
        np.testing.assert_allclose(errors, expected, atol=1e-12)
    assert search.best_C == Cs[int(np.argmin(search.mean))]


def test_of_equals_the_smallest_C_and_progress_is_told():
    X = np.array([[-2.0], [-1.9], [-2.1], [2.0], [1.9], [2.1]])
    y = np.repeat([0, 1], 3)
    told = []
    search = choose_C(X, y, LinearSVC(), Cs=[10.0, 0.1, 1.0], n_folds=3, progress=lambda *p: told.append(p))
    assert search.Cs == (0.1, 1.0, 10.0)
    assert search.best_C == 0.1
    assert told == [(k, 9) for k in range(1, 10)]


def test_unfinished_fits_are_counted():
    X, y = tall(300, 5)
    machine = LinearSVC(loss="hinge", max_iter=1, solver="interior_point", tol=1e-9)
    assert choose_C(X, y, machine, Cs=[1.0, 100.0], n_folds=2).n_unfinished == 4

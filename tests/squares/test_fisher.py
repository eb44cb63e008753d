"""Fisher's discriminant: no direction does better; singular scatter; where to cut."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import InputError
from maxmargin.squares import FisherDiscriminant, LeastSquaresClassifier, discriminant


@parametrize_with_checks(
    [FisherDiscriminant(), FisherDiscriminant(threshold="gaussian"), FisherDiscriminant(threshold=0.5)]
)
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def two_classes(n0=40, n1=15, d=4, seed=0):
    """Two clouds of different shape, far from zero."""
    rng = np.random.default_rng(seed)
    shapes = rng.standard_normal((2, d, d))
    X = np.vstack([rng.standard_normal((n0, d)) @ shapes[0], rng.standard_normal((n1, d)) @ shapes[1] + 0.5])
    return X + rng.uniform(-5, 5, d), np.repeat([0, 1], [n0, n1])


def criterion(w, X, y, weight=None):
    """F by its definition."""
    weight = np.ones(len(y)) if weight is None else weight
    means, variances = [], []
    for k in (0, 1):
        z, c = X[y == k] @ w, weight[y == k]
        means.append(np.average(z, weights=c))
        variances.append(np.average((z - means[-1]) ** 2, weights=c))
    return (means[1] - means[0]) ** 2 / sum(variances)


@pytest.fixture(params=["dense", "sparse", "large_sparse"])
def layout(request, monkeypatch):
    """Rows as an array, as a sparse matrix, and as one too large to be made dense."""
    if request.param == "large_sparse":
        monkeypatch.setattr(discriminant, "MOST_DENSE", 0)
    return np.asarray if request.param == "dense" else sp.csr_array


def test_no_direction_does_better(layout):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X, y = two_classes(int(rng.integers(8, 60)), int(rng.integers(8, 60)), int(rng.integers(1, 7)), seed)
        weight = rng.uniform(0.1, 3.0, len(y)) if seed % 2 else np.ones(len(y))
        machine = FisherDiscriminant().fit(layout(X), y, weight)
        w = machine.coef_[0]
        assert np.linalg.norm(w) == pytest.approx(1.0)
        assert machine.criterion_ == pytest.approx(criterion(w, X, y, weight), rel=1e-9)
        probes = rng.standard_normal((500, len(w)))
        nearby = w + 10.0 ** rng.uniform(-6, -1, (100, 1)) * rng.standard_normal((100, len(w)))
        best = max(criterion(v, X, y, weight) for v in np.vstack([probes, nearby]))
        assert best <= machine.criterion_ * (1.0 + 1e-9)


def test_closed_form():
    for seed in range(50):
        X, y = two_classes(seed=seed)
        S = sum(np.cov(X[y == k].T, bias=True) for k in (0, 1))
        w = np.linalg.solve(S, X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
        np.testing.assert_allclose(FisherDiscriminant().fit(X, y).coef_[0], w / np.linalg.norm(w), rtol=1e-8)


def test_classes_count_the_same_however_many_rows_they_have():
    X, y = two_classes(1000, 20)
    w = FisherDiscriminant().fit(X, y).coef_[0]
    again = np.concatenate([np.flatnonzero(y == 0), np.tile(np.flatnonzero(y == 1), 50)])
    np.testing.assert_allclose(FisherDiscriminant().fit(X[again], y[again]).coef_[0], w, rtol=1e-9)
    # Scatter pooled over all rows, as least squares has it, is dominated by the larger class.
    pooled = LeastSquaresClassifier().fit(X, y).coef_[0]
    assert abs(pooled @ w) / np.linalg.norm(pooled) < 0.999
    assert criterion(pooled, X, y) < criterion(w, X, y)


def test_sign_and_projection(layout):
    X, y = two_classes()
    for labels in (y, 1 - y, np.where(y == 1, "a", "b")):
        machine = FisherDiscriminant().fit(layout(X), labels)
        z = machine.transform(layout(X))
        assert z.shape == (len(y), 1)
        np.testing.assert_allclose(z[:, 0], X @ machine.coef_[0], rtol=1e-9)
        positive = labels == machine.classes_[1]
        assert z[positive].mean() > z[~positive].mean()
        np.testing.assert_allclose(machine.means_[1], X[positive].mean(axis=0), rtol=1e-9)
    assert machine.get_feature_names_out().tolist() == ["fisherdiscriminant0"]
    np.testing.assert_allclose(FisherDiscriminant().fit_transform(X, y), FisherDiscriminant().fit(X, y).transform(X))
    assert make_pipeline(FisherDiscriminant(), LeastSquaresClassifier()).fit(X, y).score(X, y) > 0.5


def test_units_of_the_columns_do_not_matter():
    for seed in range(20):
        X, y = two_classes(seed=seed)
        units = 10.0 ** np.random.default_rng(seed).uniform(-7, 7, X.shape[1])
        one, other = FisherDiscriminant().fit(X, y), FisherDiscriminant().fit(X * units, y)
        assert other.criterion_ == pytest.approx(one.criterion_, rel=1e-7)
        w = other.coef_[0] * units
        np.testing.assert_allclose(w / np.linalg.norm(w), one.coef_[0], rtol=1e-6, atol=1e-8)


def test_infinite_criterion_where_scatter_vanishes():
    """A column that tells the classes apart and varies in neither."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X, y = two_classes(seed=seed)
        apart = 10.0 ** rng.integers(-6, 6)
        X = np.column_stack([X, apart * y + 10.0 ** rng.integers(-3, 4) / 3.0])
        machine = FisherDiscriminant().fit(X, y)
        assert machine.criterion_ == np.inf
        np.testing.assert_allclose(machine.coef_[0], [0.0] * 4 + [1.0], atol=1e-9)
        assert machine.score(X, y) == 1.0


def test_infinite_criterion_of_a_hidden_direction(layout):
    """The scatter misses a direction that is along no column: w is the mean difference projected onto it."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        d, rank = 6, 4
        basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
        y = np.repeat([0, 1], [30, 20])
        X = rng.standard_normal((50, rank)) @ basis[:, :rank].T + np.outer(y, rng.standard_normal(d))
        machine = FisherDiscriminant().fit(layout(X), y)
        assert machine.criterion_ == np.inf
        shift = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
        part = basis[:, rank:] @ (basis[:, rank:].T @ shift)
        np.testing.assert_allclose(machine.coef_[0], part / np.linalg.norm(part), atol=1e-7)
        assert np.array_equal(machine.predict(X), y)


def test_more_columns_than_rows():
    for seed in range(20):
        X, y = two_classes(8, 6, 40, seed)
        machine = FisherDiscriminant().fit(X, y)
        assert machine.criterion_ == np.inf
        z = machine.transform(X)[:, 0]
        for k in (0, 1):
            assert np.ptp(z[y == k]) <= 1e-9 * np.ptp(z)
        assert np.array_equal(machine.predict(X), y)


def test_duplicated_columns_are_harmless(layout):
    for seed in range(50):
        X, y = two_classes(seed=seed)
        twice = np.hstack([X, X])
        one, two = FisherDiscriminant().fit(X, y), FisherDiscriminant().fit(layout(twice), y)
        assert two.criterion_ == pytest.approx(one.criterion_, rel=1e-8)
        # The smallest of all solutions shares the weight equally.
        np.testing.assert_allclose(two.coef_[0] * np.sqrt(2.0), np.tile(one.coef_[0], 2), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(two.decision_function(twice) * np.sqrt(0.5), one.decision_function(X), atol=1e-5)


def test_dependent_and_constant_columns_are_harmless():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X, y = two_classes(seed=seed)
        more = np.column_stack([X @ rng.standard_normal((4, 3)), np.full(len(y), 10.0 ** rng.integers(0, 12) / 3.0)])
        one, other = FisherDiscriminant().fit(X, y), FisherDiscriminant().fit(np.hstack([X, more]), y)
        assert other.criterion_ == pytest.approx(one.criterion_, rel=1e-6)
        assert np.linalg.norm(other.coef_[0, -1]) <= 1e-9


def test_weight_equals_repetition(layout):
    for threshold in ("midpoint", "gaussian"):
        for seed in range(10):
            X, y = two_classes(seed=seed)
            weight = np.random.default_rng(seed).integers(0, 4, len(y))
            weighted = FisherDiscriminant(threshold=threshold).fit(layout(X), y, weight)
            repeated = FisherDiscriminant(threshold=threshold).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
            np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-8, atol=1e-10)
            assert weighted.criterion_ == pytest.approx(repeated.criterion_)


def test_midpoint_and_number():
    X, y = two_classes()
    machine = FisherDiscriminant().fit(X, y)
    z = machine.transform(X)[:, 0]
    assert -machine.intercept_[0] == pytest.approx(0.5 * (z[y == 0].mean() + z[y == 1].mean()))
    np.testing.assert_allclose(machine.decision_function(X), z + machine.intercept_[0])
    own = FisherDiscriminant(threshold=1.25).fit(X, y)
    assert np.array_equal(own.predict(X), (z > 1.25).astype(int))


def test_gaussian_threshold_is_where_the_densities_meet():
    met = 0
    for seed in range(50):
        X, y = two_classes(seed=seed)
        machine = FisherDiscriminant(threshold="gaussian").fit(X, y)
        z, cut = machine.transform(X)[:, 0], -machine.intercept_[0]
        logs = []
        for k in (0, 1):
            m, v = z[y == k].mean(), z[y == k].var()
            logs.append(np.log((y == k).mean()) - 0.5 * np.log(v) - (cut - m) ** 2 / (2.0 * v))
        means = z[y == 0].mean(), z[y == 1].mean()
        assert means[0] < cut < means[1]
        if abs(logs[0] - logs[1]) < 1e-8:
            met += 1
        else:  # one density is the larger at both means
            assert cut == pytest.approx(sum(means) / 2.0)
    assert met > 10


def test_gaussian_threshold_leans_towards_the_rarer_class():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal(900), rng.standard_normal(100) + 3.0])[:, None]
    y = np.repeat([0, 1], [900, 100])
    assert FisherDiscriminant(threshold="gaussian").fit(X, y).intercept_ < FisherDiscriminant().fit(X, y).intercept_


def test_a_score_of_zero_goes_to_the_first_class():
    machine = FisherDiscriminant().fit([[-1.0], [1.0]], ["a", "b"])
    assert machine.predict([[0.0]]).tolist() == ["a"]
    assert machine.criterion_ == np.inf


def test_equal_means():
    X, y = [[-1.0], [1.0], [-2.0], [2.0]], [0, 0, 1, 1]
    with pytest.warns(UserWarning, match="class means are equal"):
        machine = FisherDiscriminant().fit(X, y)
    assert machine.criterion_ == 0.0
    assert machine.coef_ == 0.0
    assert machine.predict(X).tolist() == [0, 0, 0, 0]


def test_errors():
    X, y = two_classes()
    with pytest.raises(InputError, match=r"Only binary classification.*3 classes.*OneVsRestClassifier"):
        FisherDiscriminant().fit(X, np.arange(len(y)) % 3)
    for threshold in ("middle", np.nan, np.inf, None, True):
        with pytest.raises(InputError, match="threshold must be"):
            FisherDiscriminant(threshold=threshold).fit(X, y)
    with pytest.raises(InputError, match=r"5001 columns.*RidgeClassifier"):
        FisherDiscriminant().fit(sp.csr_array((4, 5001)), [0, 1, 0, 1])
    with pytest.raises(InputError, match="every sample of class 1 has weight zero"):
        FisherDiscriminant().fit(X, y, 1 - y)
    with pytest.raises(InputError, match="too large for float64"):
        FisherDiscriminant().fit(X * 1e200, y)
    with pytest.raises(ValueError, match="requires y"):
        FisherDiscriminant().fit(X, None)

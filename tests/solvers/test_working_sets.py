"""Newton's method works on the rows in doubt: which they are, what the others contribute, and what comes back."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem
from maxmargin.solvers import Newton, multipliers, points
from tests.solvers.plain import (
    CORNERS,
    LOSSES,
    ONE,
    SMOOTH,
    absorb,
    assert_feasible,
    dense,
    induced,
    method_for,
    primal,
    residuals,
    signs,
    small,
    working_set,
)

N = 6000
TUBE = "epsilon_insensitive"
BOXED = ["hinge", TUBE]


def choose(problem, point, penalty=10.0, fraction=0.4):
    return working_set(method_for(problem, point), penalty, fraction)


def thinned(D, n_cols):
    return multipliers._thinned(D, n_cols)


def rows_of(work):
    """The working set's own rows, one by one."""
    return np.column_stack([work.rows.scores(axis, ONE) for axis in np.eye(work.rows.d)])


def is_all_rows(work):
    return isinstance(work.chosen, slice)


def big(loss="hinge", n=N, d=3, epsilon=2.5, **options):
    return small(loss, n=n, d=d, seed=5, epsilon=epsilon, C=0.7, **options)


def point_of(problem, n_doubtful, seed=0):
    """A hyperplane and multipliers at the bounds of their sides; of some rows, near or far, they are not."""
    rng, d = np.random.default_rng(seed), problem.n_cols
    w, b = rng.standard_normal(d), 0.3
    r = residuals(problem, w, b)
    alpha = settled_of(problem, r)
    doubtful = rng.choice(len(r), n_doubtful, replace=False)
    alpha[doubtful] = 0.4 * problem.cost[doubtful]
    point = points.Point(alpha, w, b, (b, b), 1.0, 0.5, 0.5, dense(problem) @ w)
    return point, r, doubtful


def settled_of(problem, r):
    """The multiplier of a row far from the margin."""
    if problem.loss.regression:
        return np.sign(r) * (np.abs(r) > problem.loss.epsilon) * problem.cost
    return (r > 0.0) * problem.cost


def distance_to_margin(problem, r):
    return np.abs(np.abs(r) - getattr(problem.loss, "epsilon", 0.0))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("loss", "epsilon"), [("hinge", 0.0), (TUBE, 2.5), (TUBE, 0.0)])
@pytest.mark.parametrize(("fraction", "n_doubtful", "count"), [(0.4, 300, 2400), (0.01, 300, 2000), (0.4, 3000, 3000)])
def test_rows_in_doubt_and_next_to_the_margin_are_chosen(loss, epsilon, layout, fraction, n_doubtful, count):
    problem = big(loss, epsilon=epsilon)
    if layout is not np.asarray:
        problem = with_rows(problem, layout(problem.space.X))
    point, r, doubtful = point_of(problem, n_doubtful)
    work = choose(problem, point, fraction=fraction)
    chosen = work.chosen
    assert len(chosen) == count
    assert np.all(np.diff(chosen) > 0)
    assert np.isin(doubtful, chosen).all()
    # Of the others, none outside is nearer than one inside.
    distance, inside = distance_to_margin(problem, r), np.isin(np.arange(N), chosen)
    distance[doubtful] = np.nan
    if count > n_doubtful:
        assert np.nanmax(distance[inside]) <= np.nanmin(distance[~inside])
    outside = np.where(inside, 0.0, settled_of(problem, r))
    np.testing.assert_array_equal(np.where(inside, 0.0, work.settled), outside)
    np.testing.assert_allclose(work.fixed_w, induced(problem, outside), rtol=1e-12, atol=1e-10)
    assert work.fixed_sum == pytest.approx(float(outside @ signs(problem)), abs=1e-9)
    np.testing.assert_array_equal(rows_of(work), dense(problem)[chosen])
    np.testing.assert_array_equal(work.alpha, point.alpha[chosen])
    np.testing.assert_array_equal(work.scores, point.scores[chosen])
    assert len(work.sigma) == count
    np.testing.assert_array_equal(work.w, point.w)
    assert work.w is not point.w
    assert work.b == point.b


def with_rows(problem, X):
    if problem.loss.regression:
        return Problem.regression(X, problem.y, C=0.7, loss=problem.loss.name, epsilon=problem.loss.epsilon)
    return Problem.from_arrays(X, problem.y, C=0.7, loss=problem.loss.name)


@pytest.mark.parametrize("off", [0.9e-3, 1.1e-3])
@pytest.mark.parametrize("loss", BOXED)
def test_a_multiplier_off_its_bound_is_in_doubt(loss, off):
    problem = big(loss)
    point, r, _ = point_of(problem, 0)
    far = np.argsort(-distance_to_margin(problem, r))[:40]
    width = 2.0 if problem.loss.regression else 1.0
    point.alpha[far] -= np.where(point.alpha[far] > 0.0, off, -off) * width * problem.cost[far]
    work = choose(problem, point)
    assert np.isin(far, work.chosen).all() == (off > 1e-3)
    assert np.isin(far, work.chosen).any() == (off > 1e-3)


@pytest.mark.parametrize(
    ("loss", "n", "fraction", "n_doubtful", "wanted"),
    [
        ("hinge", N, 0.59, 0, False),
        ("hinge", N, 0.61, 0, True),
        ("hinge", N, 7.0, 0, True),
        ("hinge", N, 0.1, 3500, False),
        ("hinge", N, 0.1, 3700, True),
        ("hinge", 3400, 0.1, 0, False),
        ("hinge", 3300, 0.1, 0, True),
        ("epsilon_insensitive", N, 0.1, 0, False),
        ("squared_hinge", N, 0.1, 0, True),
        ("squared_epsilon_insensitive", N, 0.1, 0, True),
        ("logistic", N, 0.1, 0, True),
        (1.5, N, 0.1, 0, True),
    ],
)
def test_all_rows_are_taken_where_few_would_be_left_out(loss, n, fraction, n_doubtful, wanted):
    problem = big(loss, n=n)
    point, _, _ = point_of(problem, n_doubtful)
    work = choose(problem, point, fraction=fraction)
    assert is_all_rows(work) is wanted
    if wanted:
        assert work.rows.shape == (n, 3)
        assert not work.fixed_w.any()
        assert work.fixed_sum == 0.0
        for mine, others in ((work.alpha, point.alpha), (work.w, point.w), (work.scores, point.scores)):
            np.testing.assert_array_equal(mine, others)
            assert mine is not others
        assert len(work.sigma) == n


@pytest.mark.parametrize("fraction", [0.4, 1.0])
def test_kept_products_are_those_of_the_chosen_rows(fraction):
    problem = big("hinge")
    point, _, _ = point_of(problem, 100)
    work = choose(problem, point, fraction=fraction)
    X, D = dense(problem)[work.chosen], np.linspace(0.0, 1.0, len(work.alpha))
    wide = np.column_stack([X, np.ones(len(X))])
    found = np.triu(work.normal.matrix(D, ONE))
    np.testing.assert_allclose(found, np.triu(wide.T @ (D[:, None] * wide)), rtol=1e-9, atol=1e-9)
    some = np.array([0, 5, len(X) - 1])
    np.testing.assert_allclose(work.cache.gram(some, ONE), X[some] @ X[some].T, rtol=1e-12, atol=1e-12)
    # How far rows move in and out is measured by their lengths.
    np.testing.assert_allclose(work.normal.squares, (wide**2).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_penalties_fit_costs_and_lengths_of_rows(loss):
    weight = np.r_[np.zeros(10), np.full(25, 1.0), np.full(25, 3.0)]
    problem = small(loss, sample_weight=weight, C=0.01, bias="none")
    lengths = (dense(problem) ** 2).sum(axis=1)
    alpha = np.where(np.arange(60) >= 40, 0.01, 0.0)
    some, nothing = (points.recover(problem, a, ONE, compete=False) for a in (alpha, 0.0 * alpha))
    if loss in SMOOTH:  # psi is the primal: for a square the penalty is its curvature
        sigma = choose(problem, some).sigma
        np.testing.assert_allclose(sigma, np.where(weight > 0.0, 0.02 * weight, 1.0))
        return
    size = lengths[some.alpha != 0.0].mean()
    cheap = 0.01 * 2.0  # the mean of costs above zero
    assert cheap < 1.0 / size
    np.testing.assert_allclose(choose(problem, some, penalty=30.0).sigma, np.full(60, 30.0 * cheap))
    dear = small(loss, sample_weight=weight, C=100.0, bias="none")
    np.testing.assert_allclose(choose(dear, some, penalty=30.0).sigma, np.full(60, 30.0 / size))
    np.testing.assert_allclose(choose(dear, nothing, penalty=30.0).sigma, np.full(60, 30.0 / lengths.mean()))


def test_rows_without_length_leave_penalties_finite():
    problem = Problem.from_arrays(np.zeros((4, 2)), [0, 1, 0, 1], loss="hinge")
    point = points.recover(problem, np.zeros(4), ONE)
    np.testing.assert_array_equal(choose(problem, point).sigma, 10.0)


@pytest.mark.parametrize("loss", BOXED)
def test_what_sums_cannot_resolve_is_known(loss):
    problem = big(loss)
    point, _, _ = point_of(problem, 50)
    method = method_for(problem, point)
    working_set(method)
    length = np.linalg.norm(dense(problem), axis=1)
    assert 2.0**52 * method.rounding == pytest.approx(float(np.abs(point.alpha) @ length), rel=1e-12)


@pytest.mark.parametrize("loss", BOXED)
def test_multipliers_come_back_to_their_places(loss):
    problem = big(loss)
    point, _, _ = point_of(problem, 200)
    method = method_for(problem, point)
    work = working_set(method)
    work.alpha = 0.3 * problem.cost[work.chosen] * np.linspace(0.0, 1.0, len(work.chosen))
    together = work.settled.copy()
    together[work.chosen], before = work.alpha, work.settled.copy()
    found = absorb(method, work)
    np.testing.assert_array_equal(work.settled, before)
    np.testing.assert_array_equal(found.alpha, points.make_feasible(problem, together))
    assert_feasible(problem, found.alpha)
    assert found.primal == pytest.approx(primal(problem, found.w, found.b), rel=1e-12)
    assert method.best is (found if found.gap <= point.gap else point)


def test_a_worse_point_is_returned_but_not_kept():
    problem = small("hinge")
    found = Newton().solve(problem)
    good = points.recover(problem, found.alpha, ONE, found.w, found.b)
    method = method_for(problem, good)
    work = working_set(method)
    work.alpha, work.w = np.zeros(60), 100.0 * np.ones(4)
    found = absorb(method, work)
    assert found.gap > good.gap
    assert not found.alpha.any()
    assert method.best is good


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_smooth_losses_have_the_multipliers_of_the_best_bias(loss, bias):
    problem = small(loss, bias=bias, C=1e-3)
    point = points.uncertified(problem, None, ONE)
    method = method_for(problem, point)
    work = working_set(method)
    work.w = 1e-3 * np.array([0.5, -1.0, 0.2, 0.1])
    work.scores, work.b, work.alpha = dense(problem) @ work.w, 2.0, np.full(60, 5e-4)
    found = absorb(method, work)
    np.testing.assert_array_equal(found.w, work.w)
    if bias != "free":
        assert found.b == 2.0
        np.testing.assert_array_equal(found.alpha, 5e-4)
        return
    assert points.recover(problem, found.alpha, ONE).primal < found.primal  # lower, but it does not compete
    nearby = [primal(problem, work.w, found.b + t) for t in (-1e-3, 0.0, 1e-3)]
    assert np.argmin(nearby) == 1
    r, h = residuals(problem, work.w, found.b), 1e-6
    slope = 1e-3 * (problem.loss.of_residual(r + h) - problem.loss.of_residual(r - h)) / (2.0 * h)
    np.testing.assert_allclose(found.alpha, slope, rtol=1e-4)
    assert_feasible(problem, found.alpha)


@pytest.mark.parametrize("loss", CORNERS)
def test_with_corners_the_hyperplane_of_the_multipliers_competes(loss):
    problem = small(loss)
    point = points.recover(problem, np.full(60, 0.01), ONE)
    method = method_for(problem, point)
    work = working_set(method)
    work.w = np.full(4, 50.0)
    found = absorb(method, work)
    np.testing.assert_allclose(found.w, induced(problem, found.alpha), atol=1e-12)


@pytest.mark.parametrize(
    ("n", "active", "stride"),
    [(119, 119, 1), (120, 119, 1), (120, 120, 2), (1000, 179, 2), (1000, 180, 3), (1000, 480, 8), (2000, 1999, 8)],
)
def test_thinned_curvatures_stand_for_their_neighbours(n, active, stride):
    D = np.zeros(n)
    places = np.sort(np.random.default_rng(0).choice(n, active, replace=False))
    D[places] = np.random.default_rng(1).uniform(1.0, 2.0, active)
    thin = thinned(D, 2)  # sixty rows for three unknowns
    if stride == 1:
        assert thin is D
        return
    kept = np.flatnonzero(thin)
    np.testing.assert_array_equal(kept, places[::stride])
    np.testing.assert_allclose(thin[kept], stride * D[kept])
    assert np.count_nonzero(D) == active

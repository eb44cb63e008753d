"""The interior point method: each step solves Newton's equations of the central path."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Status
from maxmargin.runtime import Watch
from maxmargin.solvers import InteriorPoint, interior_point
from maxmargin.solvers.interior_point import centred_hinge, centred_squared_hinge
from maxmargin.solvers.points import recover
from maxmargin.space.systems import Breakdown
from tests.oracles import Form
from tests.solvers.inside import BIASES, HOW, MARGIN, TUBE, calls, dense, with_corners


class Path:
    """The iterate of one run, and its inner steps by one name each."""

    def __init__(self, problem, **options):
        solver = InteriorPoint(n_threads=1, **options)
        self.run = interior_point._InteriorPoint(solver, problem, Watch())
        self.it = interior_point._Iterate(problem, interior_point._Constraints.of(problem), HOW)
        self.problem, self.constraints, self.barrier = problem, self.it.constraints, self.it.barriers[0]

    def copy(self, other):
        """The iterate of another run."""
        for name in ("v", "alpha", "t", "s", "xi", "margin"):
            getattr(self.it, name)[:] = getattr(other.it, name)

    def products(self):
        return self.it.complementarity()

    def direction(self):
        """The affine direction and its longest step."""
        self.it.complementarity()
        self.it.barriers[0].scale(1)
        system = interior_point.NormalSystem(self.it.rows, self.it.D, self.problem.bias, HOW, bias_ridge=1e-280)
        return self.it.direction(system, HOW)

    def changes(self):
        """Changes of the multipliers and margins along the present direction."""
        return self.it.directions[0]

    def advance(self):
        return self.run._advance(self.it, self.products() / self.it.n_pairs)


@pytest.mark.parametrize("mu", [1e-14, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize("shortfall", [-1e8, -1.0, -1e-12, 0.0, 1e-3, 1.0, 1e8])
def test_centred_multipliers_have_all_their_digits(mu, shortfall):
    r, cost = np.array([shortfall]), np.array([3.0])
    alpha, t = centred_hinge(r, cost, mu)
    squared = centred_squared_hinge(r, cost, mu)
    with localcontext() as context:
        context.prec = 80
        R, C, M = Decimal(shortfall), Decimal(3), Decimal(mu)
        # mu/t − mu/alpha = r with t = C − alpha: r alpha² + (2 mu − r C) alpha − mu C = 0.
        half = 2 * M - R * C
        exact = C / 2 if R == 0 else (-half + (half * half + 4 * R * M * C).sqrt()) / (2 * R)
        other = C * R + C * (R * R + 2 * M / C).sqrt()  # alpha/(2C) − mu/alpha = r
        rest = C - exact
    np.testing.assert_allclose(alpha, float(exact), rtol=1e-14)
    np.testing.assert_allclose(t, float(rest), rtol=1e-14)
    np.testing.assert_allclose(squared, float(other), rtol=1e-14)


def test_rows_without_cost_have_no_centred_multiplier_and_no_warning():
    shortfall, cost = np.array([1.0, -1.0, 2.0]), np.array([0.0, 0.0, 1.0])
    alpha, t = centred_hinge(shortfall, cost, 0.1)
    assert (alpha[:2] == 0.0).all()
    assert (t[:2] == 0.0).all()
    assert np.isfinite(centred_squared_hinge(shortfall, cost, 0.1)).all()


def answers_are(monkeypatch, value):
    """Every linear system has this answer."""
    monkeypatch.setattr(interior_point.NormalSystem, "solve", lambda system, g: np.full_like(g, value))


def duplicates(monkeypatch):
    """One entry per correction that was tried."""
    return calls(monkeypatch, interior_point._Iterate, "duplicate_direction")


def fixed_direction(monkeypatch, step):
    monkeypatch.setattr(interior_point._Iterate, "direction", lambda it, *_: (0.0 * it.v, step))


def written_out(path):
    """Signs, targets and costs of all constraints, and their rows."""
    problem = path.problem
    X, y, cost = dense(problem), problem.y, problem.cost
    if not problem.loss.regression:
        return X, y, np.ones(len(y)), cost
    return (
        np.vstack([X, X]), np.repeat([1.0, -1.0], len(y)), np.concatenate([y - 0.3, -y - 0.3]), np.tile(cost, 2)
    )  # fmt: skip


@pytest.mark.parametrize("loss", MARGIN + TUBE)
@pytest.mark.parametrize("bias", BIASES)
def test_it_begins_strictly_inside(loss, bias):
    path = Path(with_corners(loss, bias=bias))
    _, sign, target, cost = written_out(path)
    it, live = path.it, cost > 0.0
    for given, wanted in ((path.constraints.sign, sign), (it.target, target), (path.constraints.cost, cost)):
        np.testing.assert_array_equal(given, wanted)
    b = it.v[-1] * path.problem.bias.value if bias != "none" else 0.0
    np.testing.assert_allclose(it.margin, sign * b)
    assert (it.alpha[live] > 0.0).all()
    assert (it.alpha[~live] == 0.0).all()
    assert (it.s > 0.0).all()
    boxed = "squared" not in loss
    if boxed:
        np.testing.assert_array_equal(it.alpha + it.t, cost)
        np.testing.assert_allclose(it.margin - target + it.xi - it.s, 0.0, atol=1e-12)
    products = it.alpha @ it.s + (it.t @ it.xi if boxed else 0.0)
    assert path.products() == pytest.approx(products, rel=1e-12)
    assert it.n_pairs == live.sum() * (2 if boxed else 1)
    slack = np.maximum(0.0, target - it.margin)
    of_bias = 0.5 * it.v[-1] ** 2 if bias == "penalised" else 0.0
    assert it.primal_estimate() == pytest.approx(of_bias + cost @ (slack if boxed else slack**2), rel=1e-12)
    it.v[0] = 3.0
    if bias == "penalised":
        it.v[-1], of_bias = 2.0, 2.0
    assert it.primal_estimate() == pytest.approx(4.5 + of_bias + cost @ (slack if boxed else slack**2), rel=1e-12)
    if bias == "free":  # at the best constant
        assert b == pytest.approx(recover(path.problem, np.zeros(60), HOW).b)


@pytest.mark.parametrize("loss", MARGIN + TUBE)
@pytest.mark.parametrize("bias", BIASES)
def test_a_point_gives_the_centred_multipliers_of_its_hyperplane_at_its_gap(loss, bias):
    path = Path(with_corners(loss, bias=bias))
    problem, it = path.problem, path.it
    w = np.array([1.0, -0.5, 0.2, 0.0])
    point = recover(problem, 0.1 * problem.cost, HOW, w, 0.0 if bias == "none" else 0.3)
    it.centre_at(point, point.w)
    X, sign, target, cost = written_out(path)
    live, mu = cost > 0.0, (point.primal - point.dual) / it.n_pairs
    np.testing.assert_allclose(it.margin, sign * (X @ point.w + point.b), atol=1e-12)
    np.testing.assert_allclose((it.alpha * it.s)[live], mu, rtol=1e-12)
    np.testing.assert_allclose(it.v[: len(w)], point.w)
    assert bias == "none" or it.v[-1] * problem.bias.value == pytest.approx(point.b)
    if "squared" in loss:
        ends = it.margin - target + it.alpha / (2.0 * np.maximum(cost, 1e-300)) - it.s
    else:
        np.testing.assert_allclose((it.t * it.xi)[live], mu, rtol=1e-12)
        np.testing.assert_allclose((it.alpha + it.t)[live], cost[live], rtol=1e-12)
        ends = it.margin - target + it.xi - it.s
    np.testing.assert_allclose(ends[live], 0.0, atol=1e-9)
    assert (it.alpha[~live] == 0.0).all()


def residuals(path):
    """What Newton's method makes zero: the slope in (w, b), and the constraints, of rows that count."""
    it, problem = path.it, path.problem
    X, sign, target, cost = written_out(path)
    value = problem.bias.value
    wide = np.column_stack([X, np.full(len(X), value)]) if value else X
    held = it.v.copy()
    if problem.bias.free:
        held[-1] = 0.0
    slope = held - wide.T @ (it.alpha * sign)
    if it.boxed:
        ends = it.margin - target + it.xi - it.s
    else:
        ends = it.margin - target + it.alpha / (2.0 * np.maximum(cost, 1e-300)) - it.s
    return wide, sign, cost > 0.0, slope, ends


def pairs_of(path):
    """Multipliers and distances whose products the method drives to zero, of rows that count."""
    it, live = path.it, path.constraints.cost > 0.0
    pairs = [(it.alpha[live], it.s[live])]
    return [*pairs, (it.t[live], it.xi[live])] if it.boxed else pairs


def newton_direction(path, *wanted):
    """Newton's equations as one dense system: changes of v, alpha, s (t and xi) that make products as wanted."""
    wide, sign, live, slope, ends = residuals(path)
    A, cost = (sign[:, None] * wide)[live], path.constraints.cost[live]
    m, k = A.shape
    alpha, s = pairs_of(path)[0]
    one, none = np.eye(m), np.zeros((m, m))
    R = np.eye(k)
    R[-1, -1] = 0.0 if path.problem.bias.free else 1.0
    if path.it.boxed:  # unknowns: v, alpha, s, xi
        t, xi = pairs_of(path)[1]
        matrix = np.block([
            [R, -A.T, np.zeros((k, m)), np.zeros((k, m))], [A, none, -one, one],
            [np.zeros((m, k)), np.diag(s), np.diag(alpha), none], [np.zeros((m, k)), -np.diag(xi), none, np.diag(t)],
        ])  # fmt: skip
        exact = np.linalg.solve(matrix, np.concatenate([-slope, -ends[live], *wanted]))
        dv, d_alpha, ds, dxi = np.split(exact, [k, k + m, k + 2 * m])
        return A, dv, [(d_alpha, ds), (-d_alpha, dxi)]
    matrix = np.block([
        [R, -A.T, np.zeros((k, m))], [A, np.diag(0.5 / cost), -one], [np.zeros((m, k)), np.diag(s), np.diag(alpha)],
    ])  # fmt: skip
    exact = np.linalg.solve(matrix, np.concatenate([-slope, -ends[live], *wanted]))
    dv, d_alpha, ds = np.split(exact, [k, k + m])
    return A, dv, [(d_alpha, ds)]


def longest_step(pairs, changes):
    flat = [part for pair in zip(pairs, changes, strict=True) for part in zip(*pair, strict=True)]
    return min([2.0, *(float((-x / dx)[dx < 0.0].min()) for x, dx in flat if (dx < 0.0).any())])


def products_after(pairs, changes, step):
    return [(a + step * da) * (s + step * ds) for (a, s), (da, ds) in zip(pairs, changes, strict=True)]


def begun(loss, bias, layout=np.asarray, **options):
    path = Path(with_corners(loss, n=15, bias=bias, layout=layout), **options)
    for _ in range(3):
        path.advance()
    return path


@pytest.mark.parametrize("loss", MARGIN + TUBE)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_the_affine_direction_solves_newtons_equations(loss, bias, layout):
    path = begun(loss, bias, layout)
    pairs, live = pairs_of(path), path.constraints.cost > 0.0
    A, exact, changes = newton_direction(path, *(-a * s for a, s in pairs))
    dv, step = path.direction()
    d_alpha, d_margin = (change[live] for change in path.changes())
    size = max(np.abs(exact).max(), np.abs(changes).max())
    np.testing.assert_allclose(dv, exact, atol=1e-8 * size)
    np.testing.assert_allclose(d_alpha, changes[0][0], atol=1e-8 * size)
    np.testing.assert_allclose(d_margin, A @ dv, atol=1e-8 * size)
    assert step == pytest.approx(longest_step(pairs, changes), rel=1e-6)
    after = sum(part.sum() for part in products_after(pairs, changes, 0.3))
    assert path.it.barriers[0].complementarity(0.3, 1) == pytest.approx(after, rel=1e-6)


@pytest.mark.parametrize("loss", MARGIN + TUBE)
@pytest.mark.parametrize("bias", BIASES)
def test_a_step_aims_at_the_products_that_mehrotra_predicts(loss, bias):
    path = begun(loss, bias, n_corrections=0)
    pairs, count = pairs_of(path), path.it.n_pairs
    mu = sum((a * s).sum() for a, s in pairs) / count
    _, _, affine = newton_direction(path, *(-a * s for a, s in pairs))
    left = products_after(pairs, affine, min(1.0, longest_step(pairs, affine)))
    aim = mu * min(1.0, sum(part.sum() for part in left) / count / mu) ** 3
    wanted = [aim - a * s - da * ds for (a, s), (da, ds) in zip(pairs, affine, strict=True)]
    _, exact, changes = newton_direction(path, *wanted)
    step = min(1.0, 0.99 * longest_step(pairs, changes))
    before = path.it.v.copy()
    assert path.advance() == pytest.approx(step, rel=1e-6)
    np.testing.assert_allclose(path.it.v, before + step * exact, atol=1e-7 * np.abs(exact).max())
    for (a, s), (b, t), (da, ds) in zip(pairs, pairs_of(path), changes, strict=True):
        size = max(np.abs(da).max(), np.abs(ds).max())
        np.testing.assert_allclose(b, a + step * da, atol=1e-7 * size)
        np.testing.assert_allclose(t, s + step * ds, atol=1e-7 * size)


@pytest.mark.parametrize(("step", "tried"), [(0.96, 0), (0.95, 1), (0.1, 1)])
def test_a_long_step_is_not_corrected(monkeypatch, step, tried):
    path, corrections = Path(with_corners()), duplicates(monkeypatch)
    fixed_direction(monkeypatch, step)
    assert path.advance() == pytest.approx(0.99 * step)
    assert len(corrections) == tried


@pytest.mark.parametrize("loss", MARGIN + TUBE)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("n_corrections", [0, 2])
def test_a_step_shrinks_all_linear_residuals_by_its_length_and_keeps_everything_positive(loss, bias, n_corrections):
    path = Path(with_corners(loss, bias=bias), n_corrections=n_corrections)
    before = path.products()
    for _ in range(7):
        *_, slope, ends = residuals(path)
        start = np.linalg.norm(slope), np.abs(ends).max()
        taken = path.advance()
        wide, sign, live, after, left = residuals(path)
        assert 0.0 < taken <= 1.0
        np.testing.assert_allclose(after, (1.0 - taken) * slope, atol=1e-8 * (1.0 + start[0]))
        np.testing.assert_allclose(left[live], (1.0 - taken) * ends[live], atol=1e-8 * (1.0 + start[1]))
        it = path.it
        np.testing.assert_allclose(it.margin[live], (sign * (wide @ it.v))[live], atol=1e-8)
        for kept in [it.alpha, it.s, *([it.t, it.xi] if it.boxed else [])]:
            assert (kept[live] > 0.0).all()
    assert path.products() < 0.05 * before


def test_corrections_are_kept_only_where_they_allow_a_longer_step():
    gained, lost = 0, 0
    for seed in range(6):
        plain, corrected = (Path(with_corners(seed=seed, C=10.0), n_corrections=k) for k in (0, 2))
        for _ in range(6):
            plain.copy(corrected)
            short, long = plain.advance(), corrected.advance()
            assert long == short or long >= min(0.99, short + 0.0195)
            gained, lost = gained + (long > short), lost + (long == short < 0.94)
    assert gained > 5
    assert lost > 0


@pytest.mark.parametrize("loss", MARGIN + TUBE)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("polish", [False, True])
def test_the_optimum_is_that_of_a_conic_solver(loss, bias, polish):
    for C in (0.01, 1.0, 100.0):
        problem = with_corners(loss, C=C, bias=bias)
        found = InteriorPoint(tol=1e-8, polish=polish).solve(problem)
        assert found.status is Status.CONVERGED
        wide = dense(problem)
        if bias == "penalised":
            wide = np.column_stack([wide, np.full(len(wide), 2.0)])
        form = Form("error" if loss in TUBE else "slack", power=2.0 if "squared" in loss else 1.0, epsilon=0.3)
        answer = form.solve(wide, problem.y, problem.cost, bias=bias == "free")
        assert found.primal == pytest.approx(answer.value, rel=1e-6)
        assert found.primal <= answer.value * (1.0 + 2e-8)


def test_a_direction_that_is_not_finite_is_a_breakdown(monkeypatch):
    path = Path(with_corners())
    answers_are(monkeypatch, np.nan)
    with pytest.raises(Breakdown, match="finite"):
        path.direction()

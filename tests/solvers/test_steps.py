"""Newton steps end at the minimiser of what they minimise, and say so only there."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from maxmargin import Problem
from maxmargin.solvers import Newton, multipliers, points
from maxmargin.space import systems
from tests.conftest import tall
from tests.solvers.plain import (
    BIASES,
    CORNERS,
    LOSSES,
    ONE,
    SMOOTH,
    absorb,
    begun,
    conjugate,
    dense,
    method_for,
    minimise,
    optimum,
    primal,
    residuals,
    scale_of_bias,
    small,
    working_set,
)

Breakdown = systems.Breakdown


class Psi:
    """The augmented Lagrangian of a working set, its multipliers by bisection; the primal itself for smooth losses."""

    def __init__(self, problem, work, anchor):
        self.problem, self.work, self.anchor = problem, work, anchor
        corners = not problem.loss.smooth
        self.ridge = 1e-10 * work.sigma.max() if problem.bias.free and corners else 0.0
        self.centre = work.b

    def multipliers(self, w, b):
        """The maximisers of u r − c h*(u/c) − (u − a)²/(2 sigma), where the slope in u changes its sign."""
        problem, work, a = self.problem, self.work, self.anchor
        r, cost = residuals(problem, w, b)[work.chosen], problem.cost[work.chosen]
        low = -cost if problem.loss.regression else np.zeros_like(cost)
        high = np.maximum(a + work.sigma * r, 0.0) if problem.loss.name == "slack_power" else cost
        for _ in range(80):
            u = 0.5 * (low + high)
            share = np.abs(u) / cost
            if problem.loss.name == "slack_power":
                slope = (share / problem.loss.power) ** (1.0 / (problem.loss.power - 1.0))
            else:
                slope = getattr(problem.loss, "epsilon", 0.0) * np.sign(u)
            rising = r - slope - (u - a) / work.sigma > 0.0
            low, high = np.where(rising, u, low), np.where(rising, high, u)
        return u, r

    def __call__(self, w, b):
        problem, work = self.problem, self.work
        if problem.loss.smooth:
            return primal(problem, w, b)
        u, r = self.multipliers(w, b)
        cost, scale = problem.cost[work.chosen], scale_of_bias(problem)
        rows = u * r - cost * conjugate(problem, u / cost) - (u - self.anchor) ** 2 / (2.0 * work.sigma)
        of_bias = 0.5 * (b / scale) ** 2 if scale else 0.5 * self.ridge * (b - self.centre) ** 2
        fixed = float(work.fixed_w @ w) + work.fixed_sum * b
        return 0.5 * float(w @ w) - fixed + of_bias + float(rows.sum())

    def gradient(self, w, b, h=1e-5):
        """By differences; the last entry is of the bias, 0 if there is none."""
        steps = np.eye(len(w) + 1) * h
        slopes = [(self(w + s[:-1], b + s[-1]) - self(w - s[:-1], b - s[-1])) / (2.0 * h) for s in steps]
        return np.array(slopes) * np.append(np.ones(len(w)), self.problem.bias.value)


def anchor_of(problem, chosen=slice(None), seed=0):
    rng = np.random.default_rng(seed)
    n = len(problem.cost[chosen])
    side = rng.choice([-1.0, 1.0], n) if problem.loss.regression else 1.0
    return side * rng.choice([0.0, 0.3, 1.0], n) * problem.cost[chosen]


def begun_blind(problem, **options):
    """The same without any gradient that counts as small."""
    method, work = begun(problem, **options)
    method.best, method.rounding = replace(method.best, primal=0.0), 0.0
    return method, work


def watch_systems(monkeypatch, change=lambda system: system):
    """The curvatures of every linear system that is made; the system itself may be changed."""
    made, original = [], multipliers.newton_system

    def make(rows, D, *rest, **options):
        made.append(D.copy())
        return change(original(rows, D, *rest, **options))

    monkeypatch.setattr(multipliers, "newton_system", make)
    return made


def kept_products(work):
    """Whether the matrix of the last step is kept for the next one."""
    return work.normal.known is not None


def no_gradient_is_small(monkeypatch):
    monkeypatch.setattr(multipliers.MethodOfMultipliers, "_small", lambda *_: False)


def fixed_steps(monkeypatch, length):
    monkeypatch.setattr(multipliers.MethodOfMultipliers, "_line_search", lambda self, *_: length)


def searched(method, work, psi, dw, db, at_zero):
    curve = method._curve(work, psi.anchor)
    curve.at(work.scores, work.b)
    curve.along(dense(psi.problem) @ dw, db)
    return method._line_search(work, curve, dw, db, psi.ridge, psi.centre, at_zero), curve


class Changed:
    """A linear system with another solution than its own."""

    def __init__(self, system, factor, iterative=True):
        self.system, self.factor, self.iterative = system, factor, iterative

    def solve(self, g):
        return self.factor * self.system.solve(g)


@pytest.mark.parametrize("sigma", [0.1, 10.0])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", CORNERS)
def test_a_round_ends_at_the_minimum_of_the_augmented_lagrangian(loss, bias, sigma):
    problem = small(loss, bias=bias)
    method, work = begun(problem, sigma=sigma)
    anchor = anchor_of(problem)
    psi = Psi(problem, work, anchor)
    assert minimise(method, work, anchor)
    assert 1 <= method.steps <= 30
    assert_minimum(psi, work, method)
    assert kept_products(work) is (loss != 1.5)  # curvatures of two values only change a little


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_a_full_step_within_one_piece_leaves_only_rounding(loss, bias, monkeypatch):
    problem = small(loss, bias=bias)
    no_gradient_is_small(monkeypatch)
    method, work = begun(problem, sigma=10.0)
    anchor = anchor_of(problem)
    psi = Psi(problem, work, anchor)
    assert minimise(method, work, anchor)
    assert np.abs(psi.gradient(work.w, work.b)).max() <= 1e-6
    assert kept_products(work)


def test_a_bias_that_nothing_determines_stays_where_it_is():
    # All multipliers are at their cost, and balanced: a system without any curvature.
    X, y = np.array([[-9.0], [-8.0], [8.0], [9.0]]), [0, 0, 1, 1]
    method, work = begun(Problem.from_arrays(X, y, loss="hinge", C=1e-4), sigma=1e-3)
    work.b = 0.25
    assert minimise(method, work, np.full(4, 1e-4))
    assert work.w == pytest.approx([34e-4])
    assert work.b == 0.25


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_a_round_of_some_rows_counts_what_the_others_contribute(loss):
    problem = small(loss, n=4000, d=3, epsilon=1.0)
    near = Newton(tol=1e-2, exact=False, sampling=False).solve(problem)
    method = method_for(problem, points.recover(problem, near.alpha, ONE, near.w, near.b))
    work = working_set(method, fraction=0.5)
    anchor = anchor_of(problem, work.chosen)
    psi = Psi(problem, work, anchor)
    assert len(work.alpha) == 2000
    assert abs(work.fixed_sum) > 1.0
    assert minimise(method, work, anchor)
    assert_minimum(psi, work, method, rounding=1e-4)


def assert_minimum(psi, work, method, rounding=1e-6):
    """The gradient is small beside the multipliers' own movement, and all that is left behind belongs together."""
    gradient = psi.gradient(work.w, work.b)
    u, _ = psi.multipliers(work.w, work.b)
    moved = float(((u - psi.anchor) ** 2).sum())
    enough = 0.1 * math.sqrt(moved / work.sigma.max()) + rounding
    assert np.linalg.norm(gradient[:-1]) <= enough
    assert abs(gradient[-1]) <= enough
    np.testing.assert_allclose(work.alpha, u, atol=1e-9 * work.sigma.max())
    np.testing.assert_allclose(work.scores, dense(psi.problem)[work.chosen] @ work.w, atol=1e-9)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", SMOOTH)
def test_smooth_losses_end_at_the_minimum_of_the_primal(loss, bias):
    problem = small(loss, bias=bias, C=0.5)
    method, work = begun(problem)
    assert minimise(method, work, np.zeros(60))
    point = absorb(method, work)
    assert point.gap <= 1e-13
    assert point.primal == pytest.approx(optimum(problem), rel=1e-6)
    assert np.abs(Psi(problem, work, None).gradient(work.w, point.b)).max() <= 1e-6
    assert method.steps <= 20


def quadratic(n=60, d=4, longer=1.0):
    """All slacks are positive wherever steps lead: the squared hinge is one quadratic."""
    X, y = tall(n, d)
    return Problem.from_arrays((longer * X.T).T, y, loss="squared_hinge", C=1e-5)


def minimiser_of_quadratic(problem):
    X, y = np.column_stack([problem.space.X, np.ones(len(problem.y))]), problem.y
    H = 2e-5 * X.T @ X + np.diag(np.r_[np.ones(problem.n_cols), 0.0])
    return np.linalg.solve(H, 2e-5 * X.T @ y)


def test_within_one_quadratic_piece_a_single_step_is_enough():
    problem = quadratic()
    method, work = begun_blind(problem)
    assert minimise(method, work, np.zeros(60))
    assert method.steps == 1
    np.testing.assert_allclose(np.r_[work.w, work.b], minimiser_of_quadratic(problem), rtol=1e-9)


@pytest.mark.parametrize("factor", [0.5, 0.9])
def test_a_rough_step_within_one_piece_is_not_the_last(monkeypatch, factor):
    problem = quadratic()
    watch_systems(monkeypatch, lambda system: Changed(system, factor))
    method, work = begun(problem)
    assert minimise(method, work, np.zeros(60))
    assert method.steps > 3
    assert method.iterative
    np.testing.assert_allclose(np.r_[work.w, work.b], minimiser_of_quadratic(problem), rtol=1e-4)


def test_a_short_step_within_one_piece_is_not_the_last(monkeypatch):
    problem = quadratic()
    fixed_steps(monkeypatch, 0.75)
    method, work = begun(problem)
    assert minimise(method, work, np.zeros(60))
    np.testing.assert_allclose(np.r_[work.w, work.b], minimiser_of_quadratic(problem), rtol=1e-4)


def test_a_thinned_step_within_one_piece_is_not_the_last(monkeypatch):
    # The rows that stay are long: their curvature is too much for a full step to be too long.
    problem = quadratic(n=3000, d=2, longer=np.where(np.arange(3000) % 8, 1.0, 3.0))
    made = watch_systems(monkeypatch)
    method, work = begun(problem)
    assert minimise(method, work, np.zeros(3000))
    assert np.count_nonzero(made[0]) == 375
    np.testing.assert_allclose(np.r_[work.w, work.b], minimiser_of_quadratic(problem), rtol=1e-9)


def gradient_of_logistic(problem, w, b):
    X, y = np.column_stack([problem.space.X, np.ones(len(problem.y))]), problem.y
    return np.r_[w, 0.0] - X.T @ (y * problem.cost * expit(-y * (X @ np.r_[w, b])))


def test_steps_end_where_rounding_keeps_the_gradient_from_falling():
    problem = small("logistic")
    method, work = begun_blind(problem)
    assert minimise(method, work, np.zeros(60))
    assert 3 < method.steps < 30
    assert np.linalg.norm(gradient_of_logistic(problem, work.w, work.b)) <= 1e-12


def test_steps_that_gain_little_far_from_the_minimum_are_not_the_last(monkeypatch):
    problem, factors = small("logistic"), iter([0.05, 0.05, 0.05, *[1.0] * 100])
    watch_systems(monkeypatch, lambda system: Changed(system, next(factors), iterative=False))
    method, work = begun(problem)
    assert minimise(method, work, np.zeros(60))
    assert np.linalg.norm(gradient_of_logistic(problem, work.w, work.b)) <= 1e-6


def test_rough_steps_that_gain_little_are_not_the_last(monkeypatch):
    problem = small("logistic")
    watch_systems(monkeypatch, lambda system: Changed(system, 0.08))
    method, work = begun_blind(problem, max_steps=1000)
    method.best = replace(method.best, primal=1.0)
    method.iterative = False
    assert minimise(method, work, np.zeros(60), 1000)
    # A gap of a tenth of rounding: an iterative step is dear.
    assert np.linalg.norm(gradient_of_logistic(problem, work.w, work.b)[:-1]) <= 1.5e-7


@pytest.mark.parametrize(("most", "max_steps", "steps"), [(1, 200, 1), (3, 200, 3), (200, 2, 2), (200, 0, 0)])
def test_a_round_that_runs_out_of_steps_says_so(most, max_steps, steps):
    problem = small("hinge")
    method, work = begun(problem, sigma=10.0, max_steps=max_steps)
    assert not minimise(method, work, anchor_of(problem), most)
    assert method.steps == steps


def test_steps_of_earlier_rounds_count_for_all_but_not_for_this_one():
    problem = small("hinge")
    method, work = begun(problem, sigma=10.0, max_steps=7)
    method.steps = 5
    assert not minimise(method, work, anchor_of(problem), 1)
    assert method.steps == 6
    assert not minimise(method, work, anchor_of(problem), 100)
    assert method.steps == 7


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_no_system_means_no_minimum(loss, monkeypatch):
    problem = small(loss)
    method, work = begun(problem, sigma=10.0)
    watch_systems(monkeypatch, lambda system: None)
    before = work.w.copy()
    assert not minimise(method, work, anchor_of(problem))
    np.testing.assert_array_equal(work.w, before)
    assert (method.steps, method.iterative) == (0, False)


@pytest.mark.parametrize(("length", "ended"), [(0.0, True), (0.9e-10, True), (1.1e-10, False)])
def test_a_step_of_no_length_means_no_minimum(length, ended, monkeypatch):
    problem = small("hinge")
    fixed_steps(monkeypatch, length)
    method, work = begun(problem, sigma=10.0)
    assert not minimise(method, work, anchor_of(problem), 5)
    assert method.steps == (1 if ended else 5)


@pytest.mark.parametrize("factor", [np.nan, np.inf])
def test_a_step_that_is_not_finite_breaks_down(factor, monkeypatch):
    problem = small("hinge")
    watch_systems(monkeypatch, lambda system: Changed(system, factor))
    method, work = begun(problem, sigma=10.0)
    before = work.w.copy()
    with pytest.raises(Breakdown):
        minimise(method, work, anchor_of(problem))
    np.testing.assert_array_equal(work.w, before)
    start = method.best
    assert method.run(start) is start  # what was known before stands


def test_curvature_is_thinned_far_from_the_minimum_only(monkeypatch):
    problem, made = small("logistic", n=3000, d=2, C=0.01), watch_systems(monkeypatch)
    method, work = begun(problem)
    assert minimise(method, work, np.zeros(3000))
    active = [np.count_nonzero(D) for D in made]
    assert active[0] == 375
    assert active[-1] == 3000
    assert active == sorted(active)  # once all rows count, they count to the end


def test_curvature_is_whole_after_a_short_step(monkeypatch):
    problem, made = small("logistic", n=3000, d=2), watch_systems(monkeypatch)
    for length, second in ((0.51, 375), (0.49, 3000)):
        fixed_steps(monkeypatch, length)
        method, work = begun(problem)
        made.clear()
        minimise(method, work, np.zeros(3000), 2)
        assert [np.count_nonzero(D) for D in made] == [375, second]


def test_rounds_never_thin(monkeypatch):
    problem, made = small("hinge", n=3000, d=2), watch_systems(monkeypatch)
    method, work = begun(problem, sigma=1.0)
    anchor = anchor_of(problem)
    minimise(method, work, anchor, 1)
    u, _ = Psi(problem, work, anchor).multipliers(method.best.w, method.best.b)
    assert np.count_nonzero(made[0]) == np.count_nonzero((u > 1e-9) & (u < 1.0 - 1e-9)) > 120


@pytest.mark.parametrize("length", [0.01, 30.0])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_line_search_ends_at_the_minimum_along_the_line(loss, bias, length):
    problem = small(loss, bias=bias)
    method, work = begun(problem, sigma=None if loss in SMOOTH else 5.0)
    work.w, work.b = np.array([1.0, -2.0, 0.5, 0.3]), 0.0 if bias == "none" else 0.4
    work.scores = dense(problem) @ work.w
    anchor = np.zeros(60) if loss in SMOOTH else anchor_of(problem)
    psi = Psi(problem, work, anchor)
    direction = -length * psi.gradient(work.w, work.b) / np.linalg.norm(psi.gradient(work.w, work.b))
    direction[-1] /= max(scale_of_bias(problem), 1.0)  # a derivative by the bias column's weight
    dw, db = direction[:-1], direction[-1]

    def slope(t, h=1e-6):
        high, low = (psi(work.w + s * dw, work.b + s * db) for s in (t + h, t - h))
        return (high - low) / (2.0 * h)

    at_zero = slope(0.0)
    t, curve = searched(method, work, psi, dw, db, at_zero)
    assert at_zero < 0.0
    if t == 1.0:
        assert slope(1.0) <= (1e-6 if curve.exact else 0.101) * abs(at_zero)
    else:
        assert 0.0 < t < 1.0
        assert abs(slope(t)) <= 1.1e-3 * abs(at_zero) + 1e-6
    assert (t == 1.0) == (length == 0.01)

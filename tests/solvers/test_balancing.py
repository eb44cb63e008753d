"""Classes that give as much as they get: by factors, by a linear program, and then to the last bit."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize

from maxmargin import Problem
from maxmargin.solvers import claims, joint_claims, joint_point
from maxmargin.solvers.points import make_feasible
from tests.solvers.joint_cases import blobs, certified, drawn, feasible, joint, labels_of

factors = joint_point.balancing_factors
by_scaling, by_program = joint_point._osborne, joint_point._largest_circulation
exactly_circulating, balance_in_place = joint_claims.exactly_circulating, joint_claims._balance
path_to_a_deficit = joint_claims._path
exactly_balanced, take_from_the_largest = claims.exactly_balanced, claims._take_from_the_largest


def flows(k=5, seed=0, share=1.0, decades=0.5):
    """Positive flows between some pairs of k classes, none from a class to itself."""
    rng = np.random.default_rng(seed)
    F = 10.0 ** (decades * rng.standard_normal((k, k))) * (rng.random((k, k)) < share)
    np.fill_diagonal(F, 0.0)
    return F


def ring(*sizes):
    """Flows round in a circle."""
    k = len(sizes)
    F = np.zeros((k, k))
    F[np.arange(k), (np.arange(k) + 1) % k] = sizes
    return F


def assert_balanced(G, rtol=1e-13):
    np.testing.assert_allclose(G.sum(axis=0), G.sum(axis=1), rtol=rtol, atol=rtol * max(G.max(), 1e-300))


def scaled_by_convexity(F):
    """Σ F_jm exp(u_j − u_m) at its minimum is balanced: there the slope in every u is what a class gives too much."""

    def objective(u):
        G = F * np.exp(u[:, None] - u)
        return G.sum(), G.sum(axis=1) - G.sum(axis=0)

    u = scipy.optimize.minimize(objective, np.zeros(len(F)), jac=True, method="BFGS", options={"gtol": 1e-11}).x
    growth = np.exp(u[:, None] - u)
    return F * growth / growth[F > 0.0].max()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(6))
def test_scaling_is_the_minimum_of_a_convex_function_with_the_largest_factor_one(seed):
    F = flows(seed=seed)
    G, exact = by_scaling(F)
    assert exact
    np.testing.assert_allclose(G, scaled_by_convexity(F), rtol=1e-6)
    assert (G[F > 0.0] / F[F > 0.0]).max() == 1.0
    assert (G <= F).all()


def test_flows_balance_under_factors_up_to_one():
    for seed in range(100):
        F = flows(6, seed, share=0.5, decades=1.0)
        factor = factors(F)
        assert factor.min() >= 0.0
        assert factor.max() <= 1.0 + 1e-15
        assert (by_scaling(F)[0] <= F).all()
        assert (factor[F == 0.0] == 0.0).all()
        assert_balanced(factor * F)


def test_components_balance_each_for_itself_and_flows_between_them_vanish():
    F = np.zeros((7, 7))
    F[:3, :3], F[3:6, 3:6] = ring(1.0, 2.0, 4.0), 1e-6 * ring(5.0, 3.0, 3.0)
    F[0, 4], F[5, 6] = 10.0, 1.0  # one way only
    G = factors(F) * F
    expected = np.zeros((7, 7))
    expected[:3, :3], expected[3:6, 3:6] = ring(1.0, 1.0, 1.0), 1e-6 * ring(3.0, 3.0, 3.0)
    np.testing.assert_allclose(G, expected, rtol=1e-13)


def largest_by_cycles(F):
    """The largest circulation is a sum of cycles: one variable for each of them, one bound for each flow."""
    k, edges = len(F), list(zip(*np.nonzero(F), strict=True))
    cycles = []
    for length in range(2, k + 1):
        for way in itertools.permutations(range(k), length):
            steps = list(zip(way, (*way[1:], way[0]), strict=True))
            if way[0] == min(way) and all(F[step] > 0.0 for step in steps):
                cycles.append(steps)
    uses = np.array([[edge in steps for steps in cycles] for edge in edges], dtype=float)
    answer = scipy.optimize.linprog(-uses.sum(axis=0), A_ub=uses, b_ub=[F[edge] for edge in edges], method="highs")
    return -answer.fun


@pytest.mark.parametrize("size", [1.0, 1e-30, 1e30])
@pytest.mark.parametrize("seed", range(4))
def test_the_largest_circulation_is_the_largest_sum_of_cycles(seed, size):
    F = flows(4, seed, share=0.8)
    G = by_program(size * F)
    assert (G >= 0.0).all()
    assert (size * F * (1.0 + 1e-15) >= G).all()
    assert_balanced(G, 1e-12)
    assert G.sum() == pytest.approx(size * largest_by_cycles(F), rel=1e-9)


def nearly_cut(k=8):
    """Two rings of flows of size one, joined by flows so small that sweeps of scaling hardly balance them."""
    F = np.zeros((2 * k, 2 * k))
    F[:k, :k], F[k:, k:] = ring(*np.linspace(1.0, 2.0, k)), ring(*np.linspace(3.0, 1.0, k))
    F[k - 1, k], F[2 * k - 1, 0] = 1e-9, 3e-12
    return F


def test_where_scaling_is_slow_the_linear_program_finds_what_scaling_then_keeps():
    F = nearly_cut()
    assert not by_scaling(F)[1]
    G = factors(F) * F
    assert (G <= F).all()
    assert_balanced(G, 1e-14)
    assert G.sum() == pytest.approx(by_program(F).sum(), rel=1e-9)
    assert G.sum() > 0.99 * (8.0 * 1.0 + 8.0 * 1.0)


def test_without_any_flow_nothing_is_scaled(monkeypatch):
    zero = np.zeros((3, 3))
    assert np.array_equal(factors(zero), zero)
    assert np.array_equal(by_program(zero), zero)
    one_way = np.triu(np.ones((3, 3)), 1)
    assert np.array_equal(factors(one_way), zero)
    monkeypatch.setattr(scipy.optimize, "linprog", lambda *_, **__: scipy.optimize.OptimizeResult(x=None))
    assert np.array_equal(factors(nearly_cut()), np.zeros((16, 16)))  # no answer: no multipliers, which is feasible


# --- to the last bit ---------------------------------------------------------------------------------------------


def exact_sums(alpha, axis):
    lines = alpha if axis == 1 else alpha.T
    return [sum(map(Fraction, line.tolist()), Fraction(0)) for line in lines]


def assert_exactly_feasible(problem, alpha):
    assert not any(exact_sums(alpha, 1))
    assert not problem.bias.free or not any(exact_sums(alpha, 0))
    others = np.arange(alpha.shape[1]) != labels_of(problem)[:, None]
    assert (alpha[others] <= 0.0).all()
    assert (alpha[~others] <= problem.cost).all()
    assert (alpha[~others] >= 0.0).all()


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
@pytest.mark.parametrize("k", [3, 5])
def test_certified_multipliers_become_exactly_feasible_and_move_by_rounding_only(bias, k):
    for seed in range(10):
        problem = drawn(bias=bias, k=k, seed=seed, C=10.0 ** (seed - 5))
        point = certified(problem, feasible(problem, seed))
        alpha, moved = exactly_circulating(problem, point.alpha)
        assert_exactly_feasible(problem, alpha)
        changes = [Fraction(a) - Fraction(b) for a, b in zip(alpha.flat, point.alpha.flat, strict=True)]
        assert float(sum(map(abs, changes))) == pytest.approx(moved, rel=1e-12)
        assert 0.0 < moved <= 3.0 * np.spacing(problem.cost.max()) * alpha.size
        assert alpha.any()


def test_what_a_row_gives_too_much_by_rounding_its_largest_multiplier_spares():
    problem = joint(*blobs(6, 2, 3), bias="none", C=0.7)
    label = labels_of(problem)
    alpha = np.zeros((6, 3))
    for i, y in enumerate(label):
        first, second = (m for m in range(3) if m != y)
        alpha[i, [first, second, y]] = -0.6, -0.1 - 3e-16, 0.7
    assert (-alpha[np.arange(3) != label[:, None]].reshape(6, 2)).sum(axis=1).max() > 0.7
    out, _ = exactly_circulating(problem, alpha)
    assert_exactly_feasible(problem, out)
    smaller = np.where(alpha == -0.1 - 3e-16, out, 0.0)
    np.testing.assert_allclose(smaller.sum(axis=1), -0.1, rtol=1e-15 * 10)
    assert (out.min(axis=1) > -0.6).all()
    np.testing.assert_allclose(out, alpha, atol=4e-16)


@pytest.mark.parametrize("n_rows", [21, 3 * 2048])
def test_sums_of_more_than_63_bits_balance_exactly(n_rows):
    """2048 multipliers of 2⁵² units are just too many in one class, and just not in another."""
    label = np.arange(n_rows) % 3
    problem = joint(np.ones((n_rows, 1)), label)
    alpha = np.zeros((n_rows, 3))
    share = 1.0 - 1e-15 * (label == 1)
    alpha[np.arange(n_rows), label], alpha[np.arange(n_rows), (label + 1) % 3] = share, -share
    out, moved = exactly_circulating(problem, alpha)
    assert_exactly_feasible(problem, out)
    assert moved <= 1e-14 * n_rows
    assert out[0, 0] > 0.99


def test_classes_that_nobody_gives_back_to_lose_their_multipliers_and_the_others_keep_theirs():
    label = np.array([0, 1, 2, 3, 3])
    problem = joint(np.eye(5), label)
    alpha = np.zeros((5, 4))
    for i, m in enumerate([1, 2, 0, 0, 1]):  # round 0 → 1 → 2 → 0, and out of 3 one way
        alpha[i, label[i]], alpha[i, m] = 0.5, -0.5
    out, moved = exactly_circulating(problem, alpha)
    assert_exactly_feasible(problem, out)
    assert moved == 2.0
    assert np.array_equal(out[:3], alpha[:3])
    assert not out[3:].any()


def test_what_is_far_from_balanced_is_given_up_altogether():
    """Hundreds of rows that each give a little one way: no rounding, and not worth a path for each."""
    n = 900
    label = np.r_[0, 1, 2, np.zeros(n, dtype=int)]
    problem = joint(np.ones((n + 3, 1)), label)
    alpha = np.zeros((n + 3, 3))
    alpha[3:, 0], alpha[3:, 1] = 0.25, -0.25
    alpha[0] = 0.5, 0.0, -0.5
    alpha[2] = -0.5, 0.0, 0.5
    out, moved = exactly_circulating(problem, alpha)
    assert not out.any()
    assert moved == pytest.approx(np.abs(alpha).sum())


TAKEN = {
    "from the row that has most": ([0, 0, 1, 2], [[0, 5, 0], [0, 8, 0], [0, 0, 12], [9, 0, 0]],
                                   [[0, 5, 0], [0, 4, 0], [0, 0, 9], [9, 0, 0]]),
    "round about once the short way is empty": ([0, 0, 2, 1], [[0, 2, 0], [0, 0, 10], [0, 10, 0], [5, 0, 0]],
                                                [[0, 0, 0], [0, 0, 5], [0, 5, 0], [5, 0, 0]]),
    "no more than a class gets too much": ([0, 0, 1, 2], [[0, 10, 0], [0, 0, 10], [8, 0, 0], [8, 0, 0]],
                                           [[0, 8, 0], [0, 0, 8], [8, 0, 0], [8, 0, 0]]),
}  # fmt: skip


@pytest.mark.parametrize("way", TAKEN)
def test_units_are_taken(way):
    label, given, expected = map(np.array, TAKEN[way])
    assert balance_in_place(given, label)
    assert np.array_equal(given, expected)


def shortest_way(flows, source, targets):
    """The fewest steps to any target, by powers of the matrix of flows."""
    reach, steps = np.eye(len(flows), dtype=int)[source], 0
    while not any(reach[t] for t in targets):
        reach, steps = (reach @ flows > 0).astype(int), steps + 1
        if steps > len(flows):
            return None
    return steps


def test_paths_are_the_shortest_ones_to_a_class_that_gets_too_much():
    rng = np.random.default_rng(0)
    lengths = []
    for _ in range(200):
        edges = rng.random((7, 7)) < 0.2
        surplus = rng.choice([0, 0, 0, 1, -1], 7).tolist()
        surplus[0] = 1
        path = path_to_a_deficit(edges, 0, surplus)
        expected = shortest_way(edges.astype(int), 0, [m for m in range(7) if surplus[m] < 0])
        assert (not path) == (expected is None)
        if path:
            assert len(path) == expected + 1
            assert path[0] == 0
            assert surplus[path[-1]] < 0
            assert all(edges[a, b] for a, b in itertools.pairwise(path))
        lengths.append(len(path))
    assert {0, 2, 3, 4} <= set(lengths)


# --- two classes, or numbers -------------------------------------------------------------------------------------


def two_sided(loss, y, cost=1.0, **options):
    """A problem about nothing but multipliers: signs are those of y, or all 1 in a regression."""
    X, weight = np.zeros((len(y), 1)), np.broadcast_to(cost, len(y))
    if "insensitive" in loss:
        return Problem.regression(X, y, loss=loss, sample_weight=weight)
    return Problem.from_arrays(X, y, loss=loss, sample_weight=weight, **options)


def assert_balanced_exactly(problem, given, out, moved):
    assert sum((Fraction(a) * int(s) for a, s in zip(out.tolist(), problem.sign, strict=True)), Fraction(0)) == 0
    changed = sum(abs(Fraction(a) - Fraction(b)) for a, b in zip(out.tolist(), given.tolist(), strict=True))
    assert changed <= Fraction(moved)
    lower, upper = problem.loss.domain(problem.cost)
    assert ((lower <= out) & (out <= (np.inf if problem.hard else upper))).all()


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "hinge", "hard"])
def test_multipliers_balance_exactly_one_takes_up_the_rest_and_bounds_stay_bounds(loss):
    rng = np.random.default_rng(0)
    for _ in range(100):
        n = int(rng.integers(4, 30))
        y = np.r_[1.0, -1.0, np.sign(rng.standard_normal(n - 2))]
        problem = two_sided("hinge" if loss == "hard" else loss, y, **({"C": np.inf} if loss == "hard" else {}))
        alpha = rng.choice([0.0, 0.3, 0.7, 1.0], n) * rng.choice([1.0, rng.uniform(0.5, 1.0)], n)
        if "insensitive" in loss:
            alpha *= np.sign(rng.standard_normal(n))
        given = make_feasible(problem, alpha)
        out, moved = exactly_balanced(problem, given)
        assert_balanced_exactly(problem, given, out, moved)
        assert moved <= 1e-15 * n
        assert np.array_equal(out[given == 0.0], given[given == 0.0])
        apart = np.abs(out - given)
        assert (np.sort(apart)[:-1] <= 2.3e-16).all()
        at_bound = (np.abs(given) == 1.0) & (loss in ("hinge", "epsilon_insensitive"))
        if (~at_bound & (given != 0.0)).any():
            assert np.array_equal(out[at_bound], given[at_bound])


TAKERS = {  # multipliers, signs, costs, who takes up what is missing
    "the one with most room": ([0.9, 0.5, 0.4 - 1e-9], [1, -1, -1], 1.0, 1),
    "the largest where there is too little room": ([0.9997, 0.999, 1e-6], [1, -1, 1], 1.0, 0),
    "the largest where the roomiest is next to nothing": (
        [1.0, 1.0 - 1.01e-7, 1e-7], [1, -1, -1], [1.0, 1.0 - 1.01e-7, 1.0], 0,
    ),
    "the largest in a hard margin": ([5.0, 2.0, 3.0 + 1e-9], [1, -1, -1], np.inf, 0),
    "a multiplier of the heavier side where no other can": ([1.0, 0.9, 0.4], [1, -1, -1], [1.0, 0.9, 0.4], 1),
}  # fmt: skip


@pytest.mark.parametrize("who", TAKERS)
def test_what_is_missing_is_taken_by(who):
    alpha, y, cost, taker = TAKERS[who]
    hard = {"C": np.inf} if np.max(cost) == np.inf else {}
    alpha, problem = np.array(alpha), two_sided("hinge", np.array(y), 1.0 if hard else np.array(cost), **hard)
    out, moved = exactly_balanced(problem, alpha)
    assert_balanced_exactly(problem, alpha, out, moved)
    others = np.arange(3) != taker
    np.testing.assert_allclose(out[others], alpha[others], atol=1e-15)
    assert abs(out[taker] - alpha[taker]) > 1e-10


@pytest.mark.parametrize("size", [1e-281, 5e-300])
def test_multipliers_below_all_sizes_vanish(size):
    alpha = np.array([size, 0.5 * size])
    out, moved = exactly_balanced(two_sided("squared_hinge", np.array([1, -1])), alpha)
    assert not out.any()
    assert moved == alpha.sum()


def test_units_are_taken_from_the_heavier_side_the_largest_first():
    sign = np.array([1.0, 1.0, -1.0, 1.0])
    for missing, expected in ((6, [1.0, 1.0, 9.0, 4.0]), (9, [0.0, 1.0, 9.0, 2.0]), (-4, [7.0, 1.0, 5.0, 4.0])):
        alpha = np.array([7.0, 1.0, 9.0, 4.0])
        take_from_the_largest(alpha, sign, missing, 1.0)
        assert alpha.tolist() == expected

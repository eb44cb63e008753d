"""Steps on pairs by the core: each is the best of its kind and lowers the quadratic, and they end at its minimum."""

import _thread
import operator
from functools import partial

import numpy as np
import pytest

from maxmargin import _core
from tests.solvers.kernel_cases import Quadratic

SHAPES = ["classes", "tube", "ridge", "ridge and tube", "two groups", "three groups"]


def drawn(shape, n=45, seed=0, smooth=1.0):
    """A quadratic of a kind that machines with a kernel have."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    K = np.exp(-smooth * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    sign, cost = rng.choice([-1.0, 1.0], n), rng.choice([0.5, 2.0, 8.0], n)
    lower, upper = np.where(sign > 0.0, 0.0, -cost), np.where(sign > 0.0, cost, 0.0)
    linear, begin = -sign, np.zeros(n)
    if shape == "classes":
        return Quadratic(K, linear, lower, upper, begin)
    if "tube" in shape:
        target = np.sin(3.0 * X[:, 0]) + 0.3 * rng.standard_normal(n)
        bound = np.full(n, np.inf) if "ridge" in shape else cost
        return Quadratic(K, -target, -bound, bound, begin, 0.5 / cost if "ridge" in shape else None, 0.2)
    if shape == "ridge":
        wide = np.where(sign > 0.0, 0.0, -np.inf), np.where(sign > 0.0, np.inf, 0.0)
        return Quadratic(K, linear, *wide, begin, 0.5 / cost)
    ends = [n // 3, n] if shape == "two groups" else [n // 4, n // 2, n]
    begin = np.concatenate([0.3 * cost[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)])
    return Quadratic(K, rng.standard_normal(n), np.zeros(n), cost, begin, group_end=np.array(ends))


def begun(q, dtype=np.float64):
    """Steps at the start, and what they change: (steps, K, beta, slope)."""
    beta = q.begin.copy()
    slope = q.slope(beta)
    return q.steps(beta, slope), q.K.astype(dtype), beta, slope


def assert_consistent(q, beta, slope, off=1e-11):
    """Within the box, with the sums of the start, and with the slopes that belong to them."""
    assert np.all((beta >= q.lower) & (beta <= q.upper))
    for group in q.groups:
        size = np.abs(beta[group]).sum() + np.abs(q.begin[group]).sum() + 1.0
        assert abs(beta[group].sum() - q.begin[group].sum()) <= 1e-13 * size
    np.testing.assert_allclose(slope, q.slope(beta), rtol=0.0, atol=off * (1.0 + np.abs(beta).sum()))


def ends(q, beta):
    """Slopes upwards and downwards; infinite where a variable cannot move on."""
    slope = q.slope(beta)
    rise = np.where(beta < q.upper, slope + np.where(beta >= 0.0, q.tube, -q.tube), np.inf)
    return rise, np.where(beta > q.lower, slope + np.where(beta > 0.0, q.tube, -q.tube), -np.inf)


def assert_best_step(q, before, after):
    """The steepest rise of the worst group, its best partner to second order, and the best length; ties as they are."""
    (i,), (j,) = np.flatnonzero(after > before), np.flatnonzero(after < before)
    rise, fall = ends(q, before)
    worst = max(fall[g].max() - rise[g].min() for g in q.groups)
    (group,) = [g for g in q.groups if g.start <= i < g.stop]
    assert group.start <= j < group.stop
    assert fall[group].max() - rise[i] == pytest.approx(worst, rel=1e-9, abs=1e-11)
    own = q.with_ridge.diagonal()
    apart = np.maximum(fall[group] - rise[i], 0.0)
    curvature = np.maximum(own[i] + own[group] - 2.0 * q.K[i, group], 1e-12 * (own[i] + own[group]))
    gain, here = apart**2 / curvature, j - group.start
    assert gain[here] >= gain.max() * (1.0 - 1e-9)
    room = [q.upper[i] - before[i], before[j] - q.lower[j]]
    room += [-before[i]] if q.tube and before[i] < 0.0 else []
    room += [before[j]] if q.tube and before[j] > 0.0 else []
    length = min(*room, apart[here] / curvature[here])
    assert after[i] - before[i] == pytest.approx(length, rel=1e-9, abs=1e-11)
    assert before[j] - after[j] == pytest.approx(length, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("shape", SHAPES)
def test_steps_are_those_of_the_definition(instruction_set, shape):
    for n in (12, 45):
        q = drawn(shape, n)
        steps, K, beta, slope = begun(q)
        for _ in range(100):
            before = beta.copy()
            report = steps.loop(K, 1, 1e-6, None)
            if report.n_steps == 0:
                break
            assert (report.n_steps, report.n_negative) == (1, 0)
            assert report.violation == pytest.approx(q.violation(beta), rel=1e-9, abs=1e-11)
            assert_best_step(q, before, beta)
            assert_consistent(q, beta, slope)
        assert np.abs(beta - q.begin).max() > 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_step_lowers_the_quadratic_down_to_its_minimum(instruction_set, shape, dtype):
    q = drawn(shape)
    q.K = q.K.astype(np.float32).astype(np.float64)  # the same values in both types
    steps, K, beta, slope = begun(q, dtype)
    value, few = q.value(beta), 0
    while steps.loop(K, 7, 1e-9, None).n_steps == 7:
        lower = q.value(beta)
        assert lower <= value + 1e-12 * (1.0 + abs(value))
        value, few = lower, few + 1
        assert few < 10_000
    assert_consistent(q, beta, slope)
    assert steps.violation() == pytest.approx(q.violation(beta), abs=1e-10)
    assert steps.violation() <= 1e-9
    best = q.optimum()
    assert abs(q.value(beta) - best) <= 1e-7 * (1.0 + abs(best))


@pytest.mark.parametrize("n", [2, 3, 5, 8, 17])
def test_few_variables_of_any_number(instruction_set, n):
    """Loops over vectors have a rest of every length."""
    for shape in SHAPES[:4]:
        q = drawn(shape, n, seed=n)
        steps, K, beta, slope = begun(q)
        steps.loop(K, 10_000, 1e-10, None)
        assert_consistent(q, beta, slope)
        assert q.value(beta) == pytest.approx(q.optimum(), abs=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [8, 16, 32])
@pytest.mark.parametrize("shape", SHAPES)
def test_working_sets_reach_the_minimum_of_all_variables(instruction_set, shape, size, dtype):
    if len(drawn(shape).groups) * 8 > size:  # half of a set stays, and of every group some must come
        size *= 3
    q = drawn(shape)
    q.K = q.K.astype(np.float32).astype(np.float64)
    n, value = len(q.begin), np.inf
    steps, K, beta, slope = begun(q, dtype)
    segments = np.array([[0, n // 2], [n // 2, n - n // 2]])
    for _ in range(20_000):
        violation, members = steps.choose(size)
        assert violation == pytest.approx(q.violation(beta), rel=1e-6, abs=1e-9)
        if violation <= 1e-8:
            break
        assert np.all(np.diff(members) > 0)
        assert len(members) <= size
        before = beta.copy()
        report, changed, change = steps.solve(np.ascontiguousarray(K[np.ix_(members, members)]), 100, 1e-9, None)
        assert report.n_steps > 0
        assert set(changed) <= set(members)
        np.testing.assert_array_equal(np.flatnonzero(beta - before), changed)
        np.testing.assert_allclose((beta - before)[changed], change, rtol=0.0, atol=1e-15)
        half = len(changed) // 2  # in two parts, lines at any places
        for part in (slice(0, half), slice(half, None)):
            lines, place = K[changed[part]][::-1].copy(), np.arange(len(changed[part]))[::-1].astype(np.int64)
            steps.add(lines, place, change[part].copy(), segments, 2)
        assert_consistent(q, beta, slope, 1e-10)
        assert q.value(beta) <= value + 1e-12 * (1.0 + abs(q.value(beta)))
        value = q.value(beta)
    assert abs(value - q.optimum()) <= 1e-6 * (1.0 + abs(value))


def test_a_working_set_has_the_worst_variables_and_keeps_half_of_the_last():
    q = drawn("classes", 80)
    steps, K, beta, slope = begun(q)
    steps.loop(K, 15, 0.0, None)
    rise, fall = np.where(beta < q.upper, slope, np.inf), np.where(beta > q.lower, slope, -np.inf)
    _, first = steps.choose(20)
    up, down = np.argsort(rise)[:10], np.argsort(-fall)[:10]
    assert set(up) <= set(first)
    assert set(first) - set(up) <= set(np.argsort(-fall)[:20])
    assert len(set(down) & set(first)) >= 10 - len(set(up) & set(down))
    _, second = steps.choose(20)
    assert len(set(first) & set(second)) >= 10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lines_are_added_to_the_columns_that_segments_name(instruction_set, dtype):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((6, 3000)).astype(dtype)
    segments = np.array([[100, 1500], [2900, 0], [2000, 700], [100, 1500]])
    n = int(segments[:, 1].sum())
    columns = np.concatenate([np.arange(begin, begin + length) for begin, length in segments])
    found = []
    for n_threads in (1, 2, 8):
        beta, slope = np.zeros(n), np.arange(n) / 7.0
        steps = _core.PairSteps(beta - 1.0, beta + 1.0, beta + 1.0, None, beta, slope, np.array([n]), 0.0)
        for places in ([4], [0, 1, 2], [5, 3, 1, 0, 2], []):
            change = 1.0 + np.arange(float(len(places)))
            steps.add(values, np.array(places, np.int64), change, segments, n_threads)
        found.append(slope)
    weights = np.array([1.0 + 4.0, 2.0 + 3.0, 3.0 + 5.0, 2.0, 1.0, 1.0])
    np.testing.assert_allclose(found[0], np.arange(n) / 7.0 + weights @ values[:, columns].astype(float), rtol=1e-12)
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


# --- kernels that are no inner products -------------------------------------------------------------------------


@pytest.mark.parametrize("diagonal", [1.0, 0.0, -0.3])
def test_an_indefinite_matrix_ends_where_no_pair_helps(instruction_set, diagonal):
    for n in (12, 30, 60):
        rng = np.random.default_rng(n)
        A = rng.uniform(-3.0, 3.0, (n, n))
        q = drawn("classes", n)
        q.K = np.ascontiguousarray(0.5 * (A + A.T))
        np.fill_diagonal(q.K, diagonal)
        steps, K, beta, slope = begun(q)
        value, n_negative = q.value(beta), 0
        for _ in range(10_000):
            report = steps.loop(K, 1, 1e-8, None)
            assert q.value(beta) <= value + 1e-10 * (1.0 + abs(value))
            value, n_negative = q.value(beta), n_negative + report.n_negative
            if report.n_steps == 0:
                break
        assert_consistent(q, beta, slope)
        assert q.violation(beta) <= 1e-7
        assert n_negative > 0


def test_a_matrix_of_zeros_moves_variables_to_their_bounds(instruction_set):
    q = drawn("classes", 20)
    q.K = np.zeros((20, 20))
    steps, K, beta, slope = begun(q)
    steps.loop(K, 1000, 0.0, None)
    assert_consistent(q, beta, slope)
    assert q.violation(beta) <= 1e-12
    assert q.value(beta) == pytest.approx(q.optimum(), rel=1e-8)


# --- ends -------------------------------------------------------------------------------------------------------


def test_steps_end_at_the_limit_and_at_the_violation_that_is_enough():
    q = drawn("classes", 60)
    steps, K, beta, slope = begun(q)
    assert steps.loop(K, 0, 0.0, None).n_steps == 0
    assert not beta.any()
    report = steps.loop(K, 13, 0.0, None)
    assert (report.n_steps, report.stopped) == (13, False)
    report = steps.loop(K, 1 << 60, 0.1, None)
    assert report.violation <= 0.1
    assert q.violation(beta) <= 0.1 + 1e-9
    assert_consistent(q, beta, slope)
    assert steps.loop(K, 100, 0.1, None).n_steps == 0


def long_steps():
    """So many variables that the watch is asked before the end."""
    q = drawn("classes", 400, smooth=0.1)
    q.upper, q.lower = 1e3 * q.upper, 1e3 * q.lower
    return q, *begun(q)


@pytest.mark.parametrize("by", ["deadline", "cancel"])
def test_a_watch_ends_steps_with_slopes_that_belong_to_them(by):
    q, steps, K, beta, slope = long_steps()
    watch = _core.Watch(0.0, 0.0 if by == "deadline" else None)
    if by == "cancel":
        watch.cancel()
    with pytest.raises(_core.DeadlineReached if by == "deadline" else KeyboardInterrupt):
        steps.loop(K, 1 << 60, 1e-12, watch)
    assert beta.any()
    assert_consistent(q, beta, slope, 1e-9)
    assert q.violation(beta) > 1e-9


def test_a_watch_ends_steps_in_a_working_set():
    q, steps, K, beta, _ = long_steps()
    _, members = steps.choose(400)
    block = np.ascontiguousarray(K[np.ix_(members, members)])
    with pytest.raises(_core.DeadlineReached):
        steps.solve(block, 1 << 60, 1e-12, _core.Watch(0.0, 0.0))
    assert np.all((beta >= q.lower) & (beta <= q.upper))
    assert beta.any()


def test_ctrl_c_ends_steps():
    q, steps, K, beta, slope = long_steps()
    calls = [_thread.interrupt_main, partial(steps.loop, K, 1 << 60, 1e-12, _core.Watch(0.0))]
    with pytest.raises(KeyboardInterrupt):
        list(map(operator.call, calls))
    assert_consistent(q, beta, slope, 1e-9)


@pytest.mark.parametrize(
    "changed",
    [
        {"lower": np.zeros(3)},
        {"upper": np.zeros(5)},
        {"own": np.ones(4, np.float32)},
        {"ridge": np.zeros(3)},
        {"slope": np.zeros(3)},
        {"group_end": np.array([3])},
        {"group_end": np.array([5])},
        {"group_end": np.array([2, 1, 4])},
        {"group_end": np.array([-1, 4])},
        {"group_end": np.array([], dtype=np.int64)},
    ],
    ids=str,
)
def test_arrays_that_do_not_fit_are_refused(changed):
    good = {name: np.ones(4) for name in ("lower", "upper", "own", "ridge", "beta", "slope")}
    good |= {"group_end": np.array([2, 4]), "tube": 0.0}
    _core.PairSteps(**good)
    with pytest.raises((TypeError, ValueError)):
        _core.PairSteps(**good | changed)


def test_matrices_and_lines_that_do_not_fit_are_refused():
    q = drawn("classes", 12)
    steps, K, beta, slope = begun(q)
    for wrong in (K[:11, :11], K[:, :11]):
        with pytest.raises(ValueError, match="wrong shape"):
            steps.loop(np.ascontiguousarray(wrong), 1, 0.0, None)
    with pytest.raises(ValueError, match="four variables"):
        steps.choose(3)
    _, members = steps.choose(6)
    with pytest.raises(ValueError, match="wrong shape"):
        steps.solve(np.ones((len(members) - 1, len(members) - 1)), 1, 0.0, None)
    good = {"values": K, "places": np.array([1]), "change": np.ones(1), "segments": np.array([[0, 12]]), "n_threads": 1}
    for changed, message in [
        ({"places": np.array([12])}, "does not exist"),
        ({"places": np.array([-1])}, "does not exist"),
        ({"change": np.ones(2)}, "change"),
        ({"segments": np.array([[0, 11]])}, "every variable"),
        ({"segments": np.array([[1, 12]])}, "leaves the matrix"),
        ({"segments": np.array([[0, 13], [0, -1]])}, "leaves the matrix"),
        ({"segments": np.array([[0, 6, 0], [6, 6, 0]])}, "wrong shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            steps.add(**good | changed)
    assert not beta.any()
    np.testing.assert_array_equal(slope, q.linear)

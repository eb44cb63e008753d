"""The method of multipliers: how rounds follow each other, when they end, and that they end at the optimum."""

import numpy as np
import pytest

from maxmargin import _core
from maxmargin.runtime import Watch
from maxmargin.solvers import multipliers, newton, points
from maxmargin.space import systems
from tests.solvers.plain import (
    BIASES,
    CORNERS,
    LOSSES,
    ONE,
    assert_feasible,
    begun,
    method_for,
    optimum,
    residuals,
    run_on,
    small,
)

ALL = multipliers.MANY_STEPS  # no limit but that of the whole


class Scripted(multipliers.MethodOfMultipliers):
    """Rounds that end as they are told: (largest residual of an active row, steps, whether at a minimiser)."""

    def __init__(self, problem, script, **options):
        super().__init__(run_on(problem), **options)
        self.script, self.most, self.sigmas, self.anchors = iter(script), [], [], []

    def _minimise(self, work, anchor, most):
        residual, steps, ended = next(self.script)
        self.most.append(most)
        self.sigmas.append(work.largest_sigma)
        self.anchors.append(anchor.copy())
        work.alpha = anchor.copy()
        work.alpha[3] += residual * work.largest_sigma
        work.w, work.b, work.scores = work.w + 1.0, work.b + 1.0, work.scores + 1.0
        self.steps += steps
        return ended


def rounds_of(script, *, loss="hinge", sigma=1.0, ask=1e-9, gaps=(), max_steps=500, **options):
    """A scripted method, its working set and what its rounds say at the end; ``gaps`` are those of their points."""
    problem = small(loss, bias="none")
    method = Scripted(problem, script, max_steps=max_steps, **options)
    method.best = points.recover(problem, np.full(60, 0.2), ONE)
    found = iter([point(problem, gap) for gap in gaps])
    method._absorb = lambda work: next(found)
    work = method._choose(method.best, 10.0, 1.0)
    work.sigma = np.full_like(work.sigma, sigma)
    return method, work, method._solve(work, ask)


def point(problem, gap, height=100.0):
    n, d = len(problem.y), problem.n_cols
    return points.Point(np.zeros(n), np.ones(d), 0.0, (0.0, 0.0), height, (1.0 - gap) * height, gap, np.zeros(n))


def test_penalties_grow_until_active_rows_are_where_they_belong():
    method, work, ended = rounds_of([(0.1, 3, True), (0.01, 3, True), (1e-3, 3, True)], ask=2e-3)
    assert ended
    np.testing.assert_allclose(method.sigmas, [1.0, 10.0, 100.0])
    assert work.alpha[3] == pytest.approx(0.2 + 0.1 + 0.1 + 0.1)
    np.testing.assert_allclose([a[3] for a in method.anchors], [0.2, 0.3, 0.4])
    assert len(method.most) == 3


@pytest.mark.parametrize(("residual", "steps", "factor"), [(2e-4, 11, 2.0), (2e-4, 10, 10.0), (0.5e-4, 11, 10.0)])
def test_penalties_grow_slowly_where_rounds_are_hard(residual, steps, factor):
    method, _, _ = rounds_of([(residual, steps, True), (1e-10, 1, True)])
    np.testing.assert_allclose(method.sigmas, [1.0, factor])


@pytest.mark.parametrize(
    ("loss", "residuals", "most"),
    [
        ("hinge", [1e-2, 2e-3, 0.9e-3, 1e-7, 0.9e-8], [ALL, ALL, ALL, 200, 200, 20]),
        (1.5, [1e-2, 0.9e-3, 1e-7, 0.9e-8], [ALL, ALL, 20, 20, 20]),
    ],
)
def test_later_rounds_get_fewer_steps(loss, residuals, most):
    method, _, _ = rounds_of([(r, 1, True) for r in [*residuals, 1e-10]], loss=loss)
    assert method.most == most


def test_a_first_round_without_a_minimum_says_so():
    method, work, ended = rounds_of([(0.5, 7, False)])
    assert not ended
    assert (method.steps, work.alpha[3]) == (7, 0.7)


def test_a_later_round_without_a_minimum_is_forgotten():
    method, work, ended = rounds_of([(0.5, 2, True), (0.25, 2, False)])
    assert ended
    assert work.alpha[3] == pytest.approx(0.7)
    start = method.best
    np.testing.assert_allclose(work.w, start.w + 1.0)
    np.testing.assert_allclose(work.scores, start.scores + 1.0)
    assert work.b == pytest.approx(start.b + 1.0)


@pytest.mark.parametrize(
    ("sigma", "first", "second", "ends"),
    [
        (1.0, 0.9e-7, 0.46e-7, True),
        (1.0, 0.9e-7, 0.44e-7, False),  # it still halves
        (1.0, 3e-6, 2e-6, False),  # not small
        (0.05, 0.9e-7, 0.5e-7, False),  # a penalty below the costs can still grow
    ],
)
def test_rounds_that_hardly_move_are_the_last(sigma, first, second, ends):
    method, _, ended = rounds_of([(first, 1, True), (second, 1, True), (1e-12, 1, True)], sigma=sigma)
    assert ended
    assert len(method.most) == (2 if ends else 3)


def test_penalties_do_not_grow_beyond_all_costs():
    script = [(0.4**k, 1, True) for k in range(30)]
    method, work, ended = rounds_of(script, ask=0.0)
    assert ended
    assert len(method.most) == 13
    assert method.sigmas[-1] == pytest.approx(1e12)
    assert work.largest_sigma == pytest.approx(1e13)


def test_who_is_in_a_hurry_looks_at_the_gap_after_every_round():
    script = [(0.5, 1, True), (0.25, 1, True), (0.125, 1, True)]
    method, work, ended = rounds_of(script, gaps=[0.1, 0.009], exact=False, enough=0.01)
    assert ended
    assert len(method.most) == 2
    assert work.certified.gap == 0.009
    # Where it goes on, what was certified no longer belongs to the multipliers.
    method, work, _ = rounds_of(script, gaps=[0.1, 0.1], exact=False, enough=0.01, ask=0.2)
    assert (len(method.most), work.certified) == (3, None)
    method, work, _ = rounds_of(script, enough=0.01, ask=0.2)
    assert (len(method.most), work.certified) == (3, None)


@pytest.mark.parametrize("ended", [True, False])
def test_smooth_losses_have_one_round(ended):
    method, _, found = rounds_of([(0.5, 1, ended)], loss="logistic")
    assert found is ended
    assert method.most == [ALL]
    assert not method.anchors[0].any()


@pytest.mark.parametrize("ask", [1e-2, 1e-6, 1e-10])
@pytest.mark.parametrize("loss", CORNERS)
def test_at_the_end_active_rows_are_as_near_as_asked(loss, ask):
    problem = small(loss)
    method, work = begun(problem)
    assert method._solve(work, ask)
    r, alpha = residuals(problem, work.w, work.b), work.alpha
    if loss == 1.5:  # u = p c slack^(p − 1)
        r, inside = r - np.sign(alpha) * (np.abs(alpha) / 1.5) ** 2.0, alpha > 0.0
    else:
        size = np.abs(alpha)
        r, inside = r - problem.loss.epsilon * np.sign(alpha) if problem.loss.regression else r, (size > 0) & (size < 1)
    assert inside.sum() >= 4
    assert np.abs(r[inside]).max() <= 2.0 * ask + 1e-13


class Told(multipliers.MethodOfMultipliers):
    """Solves nothing: the points that come back are given, as (gap, height, finished)."""

    def __init__(self, problem, script, watch=None, **options):
        super().__init__(run_on(problem, watch), **options)
        self.script, self.asked, self.chosen, self.sigmas, self.absorbed = iter(script), [], [], [], 0

    def _choose(self, point, penalty, share):
        self.chosen.append((penalty, share))
        return super()._choose(point, penalty, share)

    def _solve(self, work, ask):
        self.asked.append(ask)
        self.sigmas.append(work.largest_sigma)
        self.steps, self.work.n_iter = self.steps + 1, self.work.n_iter + 1
        self.told = next(self.script)
        if isinstance(self.told, BaseException):
            raise self.told
        return self.told[2]

    def _absorb(self, work):
        self.absorbed += 1
        if isinstance(self.told, BaseException):
            return self.best
        found = point(self.problem, self.told[0], self.told[1])
        self.best = points.better(self.best, found)
        return found


def told(script, *, loss="hinge", gap=0.8, run=None, **options):
    problem = small(loss)
    method = Told(problem, script, **options)
    end = method.run(point(problem, gap), **(run or {}))
    assert end is method.best
    return method


def falling(*gaps):
    """Points of these gaps, each at the end of its round."""
    return [(gap, 100.0, True) for gap in gaps]


def test_rounds_end_at_rounding_level():
    assert told(falling(0.1, 1e-3, 1e-14)).steps == 3
    assert told([], gap=1e-13).steps == 0
    assert told(falling(1e-14), gap=1.1e-13).steps == 1


@pytest.mark.parametrize(("loss", "exact", "steps"), [("hinge", True, 3), ("hinge", False, 2), ("logistic", True, 2)])
def test_what_is_enough_ends_work_where_more_would_cost_much(loss, exact, steps):
    method = told(falling(0.1, 1e-4, 1e-14), loss=loss, exact=exact, enough=1e-3)
    assert method.steps == steps


@pytest.mark.parametrize(("max_steps", "steps"), [(0, 0), (2, 2)])
def test_no_more_steps_than_allowed(max_steps, steps):
    assert told(falling(0.1, 1e-3, 1e-14), max_steps=max_steps).steps == steps


def test_nothing_begins_after_a_deadline_or_a_request_to_stop():
    assert told([], watch=Watch(1e-9)).steps == 0
    stopped = Watch(None, lambda iteration, gap, seconds: iteration == 2)
    assert told(falling(0.1, 1e-3, 1e-14), watch=stopped).steps == 2


def test_every_round_is_reported():
    seen = []
    watch = Watch(None, lambda iteration, gap, seconds: seen.append((iteration, gap)))
    told(falling(0.1, 0.3, 1e-14), watch=watch)
    assert seen == [(1, 0.1), (2, 0.1), (3, 1e-14)]


def test_a_round_that_did_not_finish_is_the_last():
    method = told([(0.1, 100.0, True), (0.01, 100.0, False)])
    assert (method.steps, method.best.gap) == (2, 0.01)


def test_equations_that_break_down_leave_what_was_known():
    method = told([*falling(0.1), systems.Breakdown("no factor")])
    assert (method.steps, method.best.gap, method.absorbed) == (2, 0.1, 1)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), _core.DeadlineReached()])
def test_an_interrupted_round_is_absorbed(error):
    method = Told(small("hinge"), [*falling(0.1), error])
    with pytest.raises(type(error)):
        method.run(point(method.problem, 0.8))
    assert (method.absorbed, method.best.gap) == (2, 0.1)


def test_a_certified_round_is_not_absorbed_again():
    method = Told(small("hinge"), falling(1e-14))
    solve = method._solve

    def certify(work, ask):
        work.certified = method.best = point(method.problem, 1e-14)
        return solve(work, ask)

    method._solve = certify
    assert method.run(point(method.problem, 0.8)).gap == 1e-14
    assert method.absorbed == 0


def test_rounds_without_progress_are_counted():
    # Six in a row; any that halves the least difference so far begins anew, be it kept or not.
    assert told(falling(*[0.7] * 20)).steps == 6
    assert told(falling(0.7, 0.7, 0.7, 0.3, *[0.2] * 20)).steps == 10
    assert told([(np.nan, 100.0, True)] * 20).steps == 6
    # A point of a larger relative gap may be nearer in value: that is progress, but once only.
    assert told([(0.9, 10.0, True)] * 20).steps == 7


def test_what_is_asked_of_a_round_follows_the_gap():
    method = told(falling(0.5, 0.9, 0.2, 0.9e-4, 0.9e-5, 1e-14))
    np.testing.assert_allclose(method.asked, [0.08, 0.008, 8e-4, 8e-5, 8e-6, 1e-12])
    assert told(falling(1e-14), gap=3.0).asked == [0.1]
    method = told(falling(1e-3, 0.9e-5, 1e-14), exact=False, enough=0.0, gap=0.5)
    np.testing.assert_allclose(method.asked, [0.05, 1e-4, 0.9e-6])


def test_shares_of_the_rows_follow_the_gap():
    method = told(falling(0.3, 0.05, 1e-3, 0.9e-4, 1e-6, 0.9e-6, 1e-14))
    # All rows while it is rough; then three times as many, or what the gap says once it is small.
    shares = [share for _, share in method.chosen]
    np.testing.assert_allclose(shares, [1.0, 1.0, 1.0, 1.0, 5.0 * 0.9e-4**0.5, 0.02, 0.06])
    method = told(falling(1e-3, 0.9e-3, 0.8e-3, 1e-14), run={"fraction": 0.1}, gap=0.05)
    np.testing.assert_allclose([share for _, share in method.chosen], [0.1, 0.3, 0.9, 1.0])
    for gap, share in ((0.1, 1.0), (0.02, 5.0 * 0.02**0.5), (0.0016, 0.2), (1e-5, 0.02)):
        assert told(falling(1e-14), gap=gap).chosen[0][1] == pytest.approx(share)


def test_penalties_of_the_first_round_are_given():
    script = falling(0.1, 1e-2, 1e-14)
    assert [penalty for penalty, _ in told(script).chosen] == [100.0, 1000.0, 1000.0]
    assert [penalty for penalty, _ in told(script, run={"penalty": 7.0}).chosen] == [7.0, 1000.0, 1000.0]
    own, given = told(script), told(script, run={"sigma": 0.125})
    assert given.sigmas == [0.125, *own.sigmas[1:]]


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_end_is_the_optimum(loss, bias):
    problem = small(loss, bias=bias, C=0.5)
    method = method_for(problem)
    end = method.run(newton.from_nothing(problem, ONE))
    assert end.gap <= 1e-12
    assert_feasible(problem, end.alpha)
    assert end.primal == pytest.approx(optimum(problem), rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_working_sets_lead_to_the_optimum_of_all_rows(loss):
    problem = small(loss, n=5000, d=3, epsilon=1.0)
    method = method_for(problem)
    rough = method.run(newton.from_nothing(problem, ONE), fraction=0.41)
    assert rough.gap <= 1e-12
    assert rough.primal == pytest.approx(optimum(problem), rel=1e-7)

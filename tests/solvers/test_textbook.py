"""The textbooks' solvers: the optimum, by steps that never lose anything."""

import numpy as np
import pytest

from maxmargin import InputError, Status
from maxmargin.kernels import Gaussian, Linear, Polynomial
from maxmargin.runtime import Watch
from maxmargin.solvers import textbook
from maxmargin.solvers.textbook import Adatron, AdatronSweeps, PlattSweeps, TextbookSMO
from tests.solvers.inside import cancelled
from tests.solvers.kernel_cases import CLASSES, machine, optimum, quadratic_of, verdict

SOLVERS = [Adatron, TextbookSMO]


def solved(kind, problem, *, start=None, watch=None, **options):
    return kind(**({"tol": 1e-6, "max_iter": 10**5, "n_threads": 1} | options)).solve(problem, start=start, watch=watch)


def assert_optimal(problem, found, tol=1e-6):
    best = optimum(problem)
    assert found.status is Status.CONVERGED
    assert found.gap <= tol
    assert found.dual <= best * (1.0 + 1e-8)
    assert best * (1.0 - 1e-8) <= found.primal <= best * (1.0 + tol + 1e-8)
    assert verdict(problem, found, tol)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("loss", CLASSES)
@pytest.mark.parametrize("kind", SOLVERS)
def test_the_optimum(kind, loss, weights):
    for kernel in (Gaussian(0.5), Polynomial(0.3, 1.0, 2), Linear()):
        problem = machine(loss, 40, weights=weights, C=0.5, kernel=kernel)
        found = solved(kind, problem)
        assert_optimal(problem, found)
        assert found.solver == kind().name
        assert not found.alpha[problem.cost == 0.0].any()


@pytest.mark.parametrize("kind", SOLVERS)
def test_one_class_much_larger_and_rows_that_are_the_same(kind):
    problem = machine("hinge", 40, C=2.0)
    problem.y[:] = -1.0
    problem.y[:2] = 1.0
    assert_optimal(problem, solved(kind, problem))
    problem.space.X[:] = problem.space.X[0]
    fresh = machine("hinge", 40, C=2.0)
    np.copyto(fresh.space.X, fresh.space.X[:1])
    assert solved(kind, fresh).primal == pytest.approx(optimum(fresh), rel=1e-6)


@pytest.mark.parametrize("loss", CLASSES)
def test_no_step_of_two_multipliers_raises_the_quadratic(loss, monkeypatch):
    problem = machine(loss, 50, C=5.0, weights=True)
    q, values, taken = quadratic_of(problem), [], PlattSweeps.take_step

    def step(self, i, j):
        moved = taken(self, i, j)
        if moved:
            values.append(q.value(self.beta))
            assert i != j
            assert np.all((self.beta >= q.lower) & (self.beta <= q.upper))
            assert abs(self.beta.sum()) <= 1e-12 * (1.0 + np.abs(self.beta).sum())
            np.testing.assert_allclose(self.slope, q.slope(self.beta), atol=1e-9)
        return moved

    monkeypatch.setattr(PlattSweeps, "take_step", step)
    assert solved(TextbookSMO, problem).status is Status.CONVERGED
    assert len(values) > 50
    assert np.all(np.diff(values) <= 1e-11 * np.abs(values[1:]))
    assert values[-1] < values[0] < 0.0


@pytest.mark.parametrize("loss", CLASSES)
def test_no_step_of_one_multiplier_raises_what_a_sweep_minimises(loss, monkeypatch):
    """The quadratic with a price on the sum of the multipliers, which stands for the bias."""
    problem, seen = machine(loss, 50, C=5.0), []
    q, sweep, change = quadratic_of(problem), AdatronSweeps.sweep, AdatronSweeps.change

    def value(self):
        total = float(self.beta.sum())
        return q.value(self.beta) + self.centre * total + 0.5 * self.gain * total**2

    def changed(self, i, to):
        before = value(self)
        moved = change(self, i, to)
        assert value(self) <= before + 1e-10 * (1.0 + abs(before))
        assert q.lower[i] <= self.beta[i] <= q.upper[i]
        return moved

    def swept(self):
        moved = sweep(self)
        seen.append(abs(float(self.beta.sum())))
        return moved

    monkeypatch.setattr(AdatronSweeps, "change", changed)
    monkeypatch.setattr(AdatronSweeps, "sweep", swept)
    assert solved(Adatron, problem).status is Status.CONVERGED
    assert seen[-1] < 1e-3 * max(seen)  # the sum is drawn to zero


@pytest.mark.parametrize("kind", SOLVERS)
def test_a_start_is_where_it_begins(kind):
    problem = machine("hinge", 60, weights=True)
    first = solved(kind, problem)
    for start in (first, first.alpha):
        again = solved(kind, problem, start=start)
        assert again.n_iter <= max(2, first.n_iter // 2)
        assert_optimal(problem, again)
    assert_optimal(problem, solved(kind, problem, start=np.full(60, 1e3)))


@pytest.mark.parametrize("kind", SOLVERS)
def test_a_fit_that_ends_early_has_a_claim(kind):
    problem = machine("hinge", 60, C=10.0)
    best = optimum(problem)
    for options, status in (
        ({"max_iter": 1}, Status.ITERATION_LIMIT),
        ({"watch": Watch(max_seconds=0.0)}, Status.TIME_LIMIT),
        ({"watch": cancelled()}, Status.INTERRUPTED),
        ({"watch": Watch(progress=lambda *_: True)}, Status.INTERRUPTED),
    ):
        found = solved(kind, problem, **options)
        assert found.status is status
        assert found.n_iter <= 1
        assert found.dual <= best * (1.0 + 1e-9)
        assert found.primal >= best * (1.0 - 1e-9)
        assert verdict(problem, found, 1.01 * found.gap)


def test_the_same_seed_and_the_same_bits():
    problem = machine("hinge", 60)
    for kind in SOLVERS:
        one, two = solved(kind, problem), solved(kind, problem, n_threads=2)
        np.testing.assert_array_equal(one.alpha, two.alpha)
        assert (one.b, one.primal, one.n_iter) == (two.b, two.primal, two.n_iter)


@pytest.mark.parametrize("kind", SOLVERS)
def test_what_lectures_do_not_treat_is_refused(kind, monkeypatch):
    with pytest.raises(InputError, match="is for classifiers"):
        solved(kind, machine("epsilon_insensitive", 20))
    monkeypatch.setattr(textbook, "MOST_ROWS", 19)
    with pytest.raises(InputError, match="at most 19 rows; X has 20"):
        solved(kind, machine("hinge", 20))

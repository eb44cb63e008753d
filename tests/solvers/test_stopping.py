"""When a gradient is small enough to stop, how exact a step must be, and how long it may be."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem
from maxmargin.solvers import curves
from maxmargin.space import systems
from tests.solvers.plain import absorb, begun, minimise, small


def is_small(method, work, gradient, *, moved=0.0, size=1.0, bend=1.0):
    """Whether a gradient, its last entry that of the bias, may end a round."""
    gradient = np.array(gradient)
    nothing = np.zeros(1)
    at = curves.At(nothing, nothing, nothing, 0.0, moved, size, bend)
    length = float(np.linalg.norm(gradient[: len(work.w)]))
    return method._small(gradient, length, at, work)


def line_search(method, work, curve, at_zero, dw=None, db=0.0):
    dw = np.zeros(len(work.w)) if dw is None else dw
    return method._line_search(work, curve, dw, db, 0.0, 0.0, at_zero)


def squared_rows(method):
    return method.problem.space.squared


def nothing_is_factored(monkeypatch):
    monkeypatch.setattr(systems, "LARGEST_SYSTEM", 0)


class Line:
    """A curve whose derivative along the line is given: without weights it is all that counts."""

    def __init__(self, derivative, exact=False):
        self.derivative, self.exact, self.seen = derivative, exact, []

    def slope(self, t):
        self.seen.append(t)
        return -self.derivative(t)


def bowl(root, power=1.0):
    """A rising derivative with one root, −1 at 0."""
    return lambda t: -(1.0 - (t / root) ** power)


@pytest.mark.parametrize("power", [0.1, 0.3, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("root", [0.999, 0.5, 0.1])
def test_a_line_search_finds_the_root(root, power):
    method, work = begun(small("hinge", bias="none"))
    line = Line(bowl(root, power), exact=True)
    t = line_search(method, work, line, -1.0)
    assert abs(line.derivative(t)) <= 1e-3
    assert len(line.seen) <= (15 if power < 5.0 else 30)


@pytest.mark.parametrize(("exact", "allowed"), [(True, 1e-10), (False, 0.1)])
def test_a_full_step_is_taken_where_little_is_left(exact, allowed):
    method, work = begun(small("hinge", bias="none"))
    for left, full in ((0.9 * allowed, True), (1.1 * allowed, False)):
        line = Line(lambda t, left=left: -2.0 + (2.0 + 2.0 * left) * t**9, exact)
        assert (line_search(method, work, line, -2.0) == 1.0) is full
    # A derivative that is still falling wants no less than a full step.
    assert line_search(method, work, Line(lambda t: -2.0 + t, exact), -2.0) == 1.0


@pytest.mark.parametrize(("corner", "height", "looks"), [(0.3, 5.0, 41), (1e-3, 1.0, 40), (1e-6, 5.0, 40)])
def test_a_derivative_that_jumps_is_bracketed(corner, height, looks):
    method, work = begun(small("hinge", bias="none"))
    line = Line(lambda t: -1.0 if t < corner else height)
    assert line_search(method, work, line, -1.0) == pytest.approx(corner, rel=1e-6)
    assert len(line.seen) <= looks  # a bracket of no length is not halved any more


def test_a_search_that_takes_too_long_ends_short_of_the_root():
    method, work = begun(small("hinge", bias="none"))
    line = Line(bowl(1e-3, 9.0))  # 1e27 at the far end
    assert 0.0 < line_search(method, work, line, -1.0) < 1e-3
    assert len(line.seen) == 41


def test_a_derivative_that_nobody_knows_ends_in_a_step_of_no_length():
    method, work = begun(small("hinge", bias="none"))
    line = Line(lambda t: 1.0)
    assert 0.0 < line_search(method, work, line, math.nan) <= 1e-10
    assert len(line.seen) == 41


def test_rounds_end_at_gradients_small_beside_the_movement():
    # Rockafellar: at most a tenth of the root of Σ (pi − a)²/sigma; or what sums cannot resolve.
    method, work = begun(small("hinge"), sigma=4.0)
    method.rounding = 0.0
    for last in (False, True):
        for size, enough in ((0.149, True), (0.151, False)):
            gradient = np.zeros(5)
            gradient[-1 if last else 1] = -size
            assert is_small(method, work, gradient, moved=9.0) is enough
            assert not is_small(method, work, gradient, moved=1.0)
    method.rounding = 0.2
    assert is_small(method, work, [0.0, 0.0, 0.199, 0.0, 0.199], moved=9.0)
    assert not is_small(method, work, [0.0, 0.0, 0.201, 0.0, 0.0], moved=9.0)
    method, work = begun(small("hinge", bias="none"), sigma=4.0)
    assert is_small(method, work, [0.0, 0.0, 0.1, 0.0], moved=9.0)


@pytest.mark.parametrize(
    ("options", "iterative", "gap"),
    [
        ({"enough": 1e-4}, False, 1e-15),  # a step costs little: go on to rounding
        ({"enough": 1e-4, "exact": False}, False, 1e-5),
        ({"enough": 1e-4}, True, 1e-5),
    ],
)
def test_smooth_losses_end_where_the_gap_is_below_what_is_asked(options, iterative, gap):
    # The gap of psi = primal is ½ ‖gradient‖² at most.
    method, work = begun(small("logistic"), **options)
    method.best, method.iterative, method.rounding = replace(method.best, primal=-50.0), iterative, 0.0
    length = math.sqrt(2.0 * gap * 50.0)
    assert is_small(method, work, [0.0, 0.99 * length, 0.0, 0.0, 0.0])
    assert not is_small(method, work, [0.0, 1.01 * length, 0.0, 0.0, 0.0])
    method.rounding = length
    assert is_small(method, work, [0.0, 3.99 * length, 0.0, 0.0, 0.0])
    assert not is_small(method, work, [0.0, 4.01 * length, 0.0, 0.0, 0.0])
    # The bias must be balanced beside all multipliers, or cost little where steps are dear.
    assert is_small(method, work, [0.0, 0.0, 0.0, 0.0, 0.99e-6 * 3.0], size=3.0, bend=1e-9)
    assert not is_small(method, work, [0.0, 0.0, 0.0, 0.0, 1.01e-6 * 3.0], size=3.0, bend=1e-9)
    dear = gap > 1e-9
    assert is_small(method, work, [0.0, 0.0, 0.0, 0.0, 0.99 * length], size=1e-9, bend=1.0) is dear
    assert not is_small(method, work, [0.0, 0.0, 0.0, 0.0, 1.01 * length], size=1e-9, bend=1.0)


def test_many_numbers_make_a_step_dear():
    problem = Problem.from_arrays(sp.csr_array(np.ones((2, 2))), [0, 1], loss="logistic")
    for numbers, dear in ((1_000_000, False), (1_000_001, True)):
        method, work = begun(with_numbers(problem, numbers), enough=1e-4)
        method.best, method.rounding = replace(method.best, primal=50.0), 0.0
        length = math.sqrt(2.0 * 1e-7 * 50.0)  # a thousandth of what is asked for
        assert is_small(method, work, [0.99 * length, 0.0, 0.0]) is dear
        assert not is_small(method, work, [1.01 * length, 0.0, 0.0])


def with_numbers(problem, n):
    """The problem, as if it had so many numbers."""

    class Many(type(problem)):
        nnz = n

    return Many(**{name: getattr(problem, name) for name in problem.__dataclass_fields__})


class TestConjugateGradients:
    """Sparse smooth problems whose systems are too large to be factored."""

    @pytest.fixture
    def solved(self, monkeypatch):
        """(right-hand side, forcing, diagonal, wanted diagonal) of every system."""
        nothing_is_factored(monkeypatch)
        seen, original = [], systems.ConjugateGradients.solve

        def solve(system, g):
            squares = (self.X**2).T @ system.D + 1.0
            seen.append((g.copy(), system.forcing, system.diagonal[:-1], squares))
            return original(system, g)

        monkeypatch.setattr(systems.ConjugateGradients, "solve", solve)
        return seen

    def problem(self, loss="logistic", sparse=True):
        rng = np.random.default_rng(0)
        X = sp.random_array((500, 320), density=0.05, rng=rng, format="csr", dtype=np.float32)
        y = np.where(X @ rng.standard_normal(320) > 0.0, 1, -1)
        self.X = X.toarray().astype(np.float64)
        return Problem.from_arrays(X if sparse else self.X, y, loss=loss)

    def test_they_are_the_more_exact_the_nearer_the_minimum(self, solved):
        problem = self.problem()
        method, work = begun(problem, enough=1e-9)
        assert minimise(method, work, np.zeros(500))
        assert method.iterative
        assert absorb(method, work).gap <= 1e-9
        sizes = [np.linalg.norm(g[:-1]) for g, *_ in solved]
        assert [forcing for _, forcing, *_ in solved] == [min(0.1, size / sizes[0]) for size in sizes]
        assert len(sizes) > 3
        for _, _, diagonal, squares in solved:
            np.testing.assert_allclose(diagonal, squares, rtol=1e-6)
        assert squared_rows(method) is squared_rows(method)

    def test_a_gap_is_enough_that_was_asked_for(self, solved):
        steps = []
        for enough in (1e-3, 1e-10):
            method, work = begun(self.problem(), enough=enough)
            assert minimise(method, work, np.zeros(500))
            assert absorb(method, work).gap <= enough
            steps.append(method.steps)
        assert steps[0] < steps[1]

    @pytest.mark.parametrize(("loss", "sparse"), [("logistic", False), ("hinge", True), (1.5, True)])
    def test_dense_rows_and_corners_are_never_solved_by_them(self, solved, loss, sparse):
        method, work = begun(self.problem(loss, sparse), sigma=0.01)
        assert not minimise(method, work, np.full(500, 0.5))
        assert not solved

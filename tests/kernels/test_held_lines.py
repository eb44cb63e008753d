"""Lines that are computed when first asked for: always the right values, and those used last are kept longest."""

import numpy as np
import pytest

from maxmargin import InputError
from maxmargin.kernels import Callable, Gaussian, Linear, Precomputed, held_lines
from maxmargin.kernels.held_lines import FEWEST, HeldLines
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.process import blas_guard
from maxmargin.runtime import Execution
from maxmargin.space import Rows

ONE = Execution(1)


class Recorded:
    """k(x, z) = x z of rows 1, 2, 3, … that remembers which lines it computed, and fails when told so."""

    def __init__(self, n):
        self.n, self.lines, self.fails = n, [], False

    def __call__(self, X, Z):
        if len(Z) == self.n:
            self.lines += [int(x) - 1 for x in X[:, 0]]
            if self.fails and len(X) > 1:
                raise KeyboardInterrupt
        return X @ Z.T

    def space(self, capacity):
        space = KernelRows.of(Rows.of(np.arange(1.0, self.n + 1.0)[:, None]), Callable(self))
        space.cache_bytes = 8 * self.n * capacity
        self.lines.clear()
        return space


def values(lines, rows):
    rows = np.asarray(rows)
    with blas_guard:
        return lines.values[lines.places(rows, ONE)]


def assert_right(lines, f, rows):
    assert np.array_equal(values(lines, rows), np.outer(np.asarray(rows) + 1.0, np.arange(1.0, f.n + 1.0)))


def test_lines_are_computed_once_and_kept_while_there_is_room():
    f = Recorded(200)
    lines = HeldLines(f.space(80))
    assert lines.capacity == 80
    for rows in (range(40), range(20, 80), range(80)):
        assert_right(lines, f, list(rows))
    assert f.lines == list(range(80))
    np.testing.assert_array_equal(lines.segments, [[0, 200]])


def test_the_lines_used_longest_ago_go_first():
    f = Recorded(200)
    lines = HeldLines(f.space(80))
    for begin in range(0, 80, 20):
        assert_right(lines, f, range(begin, begin + 20))
    assert_right(lines, f, range(20))  # used again: 20 to 39 are the oldest now
    f.lines.clear()
    assert_right(lines, f, range(100, 130))  # instead of 20 to 49
    assert_right(lines, f, [*range(20), *range(50, 80), *range(100, 130)])
    assert f.lines == list(range(100, 130))
    assert_right(lines, f, range(20, 30))
    assert f.lines == [*range(100, 130), *range(20, 30)]


def test_lines_that_are_asked_for_do_not_push_each_other_out():
    f, rng = Recorded(300), np.random.default_rng(0)
    lines = HeldLines(f.space(70))
    held = []  # from the one used longest ago to the last, in requests
    for turn in range(200):
        rows = np.sort(rng.permutation(300)[: rng.integers(1, 71)])
        f.lines.clear()
        assert_right(lines, f, rows)
        assert f.lines == [row for row in rows if row not in {row for row, _ in held}]
        held = [(row, when) for row, when in held if row not in set(rows)]
        kept = max(0, 70 - len(rows))
        dropped = len(held) - kept
        if 0 < dropped < len(held):  # ties within a request may go either way
            assert held[dropped - 1][1] <= held[dropped][1]
        place = lines._place
        alive = [(row, when) for row, when in held if place[row] >= 0]
        assert len(alive) == min(len(held), kept)
        assert max([when for row, when in held if place[row] < 0], default=-1) <= min(
            [when for _, when in alive], default=turn
        )
        held = alive + [(int(row), turn) for row in rows]


@pytest.mark.parametrize("before", [0, 60, 80])
def test_a_fill_that_is_interrupted_leaves_nothing_wrong(before):
    f = Recorded(200)
    lines = HeldLines(f.space(80))
    if before:
        assert_right(lines, f, range(before))
    f.fails = True
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            lines.places(np.arange(100, 140), ONE)
    f.fails = False
    for rows in (range(100, 140), range(80), range(90, 170)):
        assert_right(lines, f, rows)


def test_an_interrupted_fill_that_wrote_some_values_is_not_believed(monkeypatch):
    f = Recorded(200)
    space = f.space(64)
    lines = HeldLines(space)
    assert_right(lines, f, range(64))
    original = KernelRows.lines

    def half(self, chosen, how, out):
        original(self, chosen[:3], how, out[:3])
        raise KeyboardInterrupt

    monkeypatch.setattr(KernelRows, "lines", half)
    for rows in (np.arange(70, 80), np.arange(64, 128)):
        with pytest.raises(KeyboardInterrupt):
            lines.places(rows, ONE)
    monkeypatch.setattr(KernelRows, "lines", original)
    for row in (0, 9, 10, 63, 70, 71, 79, 64, 127):
        assert_right(lines, f, [row])
    assert_right(lines, f, range(64))


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Linear()])
def test_lines_of_the_core_stay_right_after_evictions(kernel):
    X = np.random.default_rng(0).standard_normal((150, 3))
    lines, K = HeldLines(KernelRows.of(Rows.of(X), kernel, 1)), kernel.gram(X)
    assert lines.capacity == FEWEST
    assert lines.values.dtype == np.float32
    rng = np.random.default_rng(1)
    for _ in range(50):
        rows = np.sort(rng.permutation(150)[: rng.integers(1, FEWEST + 1)])
        found = values(lines, rows)
        np.testing.assert_allclose(found, K[rows], rtol=0.0, atol=2e-6 * np.abs(K).max())
        np.testing.assert_array_equal(found[np.arange(len(rows)), rows], lines.space.diagonal[rows].astype(np.float32))


def test_two_copies_of_every_variable_share_a_line():
    f = Recorded(100)
    lines = HeldLines(f.space(100), copies=2)
    np.testing.assert_array_equal(lines.segments, [[0, 100], [0, 100]])
    assert_right(lines, f, [3, 5])
    part = KernelRows.of(Rows.of(Linear().gram(np.arange(8.0)[:, None])), Precomputed()).take(np.array([2, 3, 6, 7]))
    np.testing.assert_array_equal(HeldLines(part, copies=2).segments, [[2, 2], [6, 2], [2, 2], [6, 2]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("chosen", "runs"),
    [(None, 1), (list(range(30, 60)), 1), ([3, 4, 5, 60, 61, 10], 3), (list(range(0, 16, 2)), 8)],
)
def test_lines_of_a_matrix_that_is_there_are_not_copied(chosen, runs, dtype):
    K = np.random.default_rng(0).standard_normal((90, 90)).astype(dtype)
    K += K.T
    space = KernelRows.of(Rows.of(K), Precomputed())
    rows = np.arange(90) if chosen is None else np.array(chosen)
    lines = HeldLines(space if chosen is None else space.take(rows))
    assert np.shares_memory(lines.values, K)
    assert lines.capacity == len(rows)
    assert len(lines.segments) == runs
    columns = np.concatenate([np.arange(begin, begin + length) for begin, length in lines.segments])
    np.testing.assert_array_equal(columns, rows)
    asked = np.array([0, len(rows) - 1, 2])
    np.testing.assert_array_equal(values(lines, asked)[:, columns], K[np.ix_(rows[asked], rows)])


def test_chosen_rows_in_many_runs_are_copied():
    K = Linear().gram(np.random.default_rng(0).standard_normal((90, 4)))
    rows = np.arange(1, 90, 2)
    lines = HeldLines(KernelRows.of(Rows.of(K), Precomputed()).take(rows), copies=2)
    assert lines.values.shape == (45, 45)
    np.testing.assert_array_equal(lines.segments, [[0, 45], [0, 45]])
    np.testing.assert_array_equal(values(lines, [3, 1]), K[np.ix_(rows[[3, 1]], rows)])


# --- memory -----------------------------------------------------------------------------------------------------


def refusing(monkeypatch, most):
    """As if the system had room for so many values only."""
    empty = np.empty

    def limited(shape, *given, **options):
        if isinstance(shape, tuple) and len(shape) == 2 and shape[0] * shape[1] > most:
            raise MemoryError
        return empty(shape, *given, **options)

    monkeypatch.setattr(held_lines.np, "empty", limited)


def test_fewer_lines_are_held_where_the_system_has_no_room(monkeypatch):
    space = Recorded(400).space(400)
    refusing(monkeypatch, 110 * 400)
    lines = HeldLines(space)
    assert lines.capacity == 100
    f = space.kernel.f
    f.lines.clear()
    assert_right(lines, f, range(100))
    assert_right(lines, f, range(200, 300))


def test_an_error_says_that_there_is_no_memory(monkeypatch):
    space = Recorded(400).space(400)
    refusing(monkeypatch, (FEWEST - 1) * 400)
    with pytest.raises(InputError, match="no memory for 64 lines of 400 values"):
        HeldLines(space)


def test_lines_of_few_columns_do_not_touch_more_memory_than_they_save(monkeypatch):
    monkeypatch.setattr(held_lines, "KEPT_BYTES", 4 * 200 * 80)
    X = np.random.default_rng(0).standard_normal((200, 150))
    few, many = (KernelRows.of(Rows.of(np.ascontiguousarray(X[:, :d])), Gaussian(1.0)) for d in (5, 75))
    assert HeldLines(few).capacity == 80
    assert HeldLines(many).capacity == 120  # dearer values: 75 columns are 1.5 times as dear as writing them
    f = Recorded(200)
    assert HeldLines(f.space(200)).capacity == 200  # values of a function are dear always

"""Arrays of a fit keep their memory for the next one; nobody else's allocator is touched."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from maxmargin import LinearSVC, _core
from maxmargin.process import KeptMemory, release_memory
from tests.conftest import tall

LARGE = 100_000  # numbers: 0.8 MB


def giver(array=None):
    """Who gives the memory of an array, or of those made now."""
    from numpy._core.multiarray import get_handler_name

    return get_handler_name(np.empty(LARGE) if array is None else array)


@pytest.fixture(autouse=True)
def nothing_kept():
    release_memory()
    yield
    release_memory()


def test_only_arrays_made_inside_take_their_memory_there():
    before = np.empty(LARGE)
    with KeptMemory():
        inside = np.empty(LARGE)
        with KeptMemory():
            assert giver() == "maxmargin"
        assert giver() == "maxmargin"
        others = []
        thread = threading.Thread(target=lambda: others.append(giver()))
        thread.start()
        thread.join()
    assert others == ["default_allocator"]
    assert (giver(before), giver(inside), giver()) == ("default_allocator", "maxmargin", "default_allocator")


def test_an_error_inside_ends_it():
    with pytest.raises(ZeroDivisionError), KeptMemory():
        _ = 1 / 0
    assert giver() == "default_allocator"


def test_what_is_freed_is_used_again_and_zeros_are_zero():
    with KeptMemory():
        one = np.full(LARGE, 7.0)
        place = one.ctypes.data
        del one
        assert _core.pool_kept() >= 8 * LARGE
        two = np.zeros(LARGE)
        assert two.ctypes.data == place
        assert not two.any()
        assert _core.pool_kept() == 0
    assert release_memory() == 0


@pytest.mark.parametrize(
    "n_bytes", [1, 8, 65_535, 65_536, 65_537, 73_728, 73_729, 131_071, 131_072, 10**6, 2**26, 2**26 + 1]
)
def test_blocks_of_every_size_hold_what_is_written(n_bytes):
    with KeptMemory():
        for value in (1, 2):
            arrays = [np.full(n_bytes + k, value + k, dtype=np.uint8) for k in (0, 1)]
            for k, array in enumerate(arrays):
                assert array[0] == array[-1] == value + k
            del arrays, array


def test_arrays_grow_shrink_and_outlive_the_fit():
    with KeptMemory():
        array = np.arange(float(LARGE))
        array.resize(3 * LARGE, refcheck=False)
        assert array[LARGE - 1] == LARGE - 1
        assert not array[LARGE:].any()
        array.resize(10, refcheck=False)
        other = np.arange(float(LARGE))
        empty = np.empty((0, 5))
    release_memory()
    array.resize(LARGE, refcheck=False)
    np.testing.assert_array_equal(array[:10], np.arange(10.0))
    np.testing.assert_array_equal(other, np.arange(float(LARGE)))
    assert empty.size == 0


def test_arrays_may_be_freed_by_another_thread():
    with KeptMemory():
        arrays = [np.full(LARGE, float(k)) for k in range(20)]
    kept = []

    def free():
        while arrays:
            array = arrays.pop()
            assert array[0] == array[-1] == len(arrays)
        del array
        kept.append(_core.pool_kept())

    thread = threading.Thread(target=free)
    thread.start()
    thread.join()
    assert kept[0] > 0  # by the thread that freed them, until it ends
    assert _core.pool_kept() == 0


def test_no_thread_keeps_more_than_its_limit():
    with KeptMemory():
        arrays = [np.zeros(2**20) for _ in range(20)]
        del arrays
        assert 0 < _core.pool_kept() <= 2**26
    assert release_memory() > 0
    assert _core.pool_kept() == 0


def test_a_second_fit_needs_no_new_memory():
    X, y = tall(30_000, 5)
    machine = LinearSVC(loss="hinge", n_threads=1).fit(X, y)
    kept = _core.pool_kept()
    coef = machine.fit(X, y).coef_.copy()
    assert kept > 10**6
    assert _core.pool_kept() <= 1.2 * kept
    release_memory()
    np.testing.assert_array_equal(machine.fit(X, y).coef_, coef)


def test_several_threads_fit_at_once():
    X, y = tall(20_000, 5)
    expected, found = LinearSVC(n_threads=1).fit(X, y).coef_, []
    threads = [threading.Thread(target=lambda: found.append(LinearSVC(n_threads=1).fit(X, y).coef_)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for coef in found:
        np.testing.assert_array_equal(coef, expected)


SWITCHED_OFF = """
import numpy as np
from numpy._core.multiarray import get_handler_name
from maxmargin import LinearSVC
from maxmargin.process import KeptMemory, release_memory
with KeptMemory():
    print(get_handler_name(np.empty(100000)), release_memory() > 0)
"""


@pytest.mark.parametrize(("switch", "said"), [("0", "default_allocator False"), ("1", "maxmargin True")])
def test_it_can_be_switched_off(switch, said):
    environment = {**os.environ, "MAXMARGIN_KEEP_MEMORY": switch}
    done = subprocess.run(
        [sys.executable, "-c", SWITCHED_OFF], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == said

"""What multipliers say about rows, on linear machines and on those with a kernel alike."""

import numpy as np
import pytest

from maxmargin import SVC, SVR, LinearSVC, LinearSVR
from maxmargin.svm.readings import free_and_bounded
from tests.svm.kernel_data import rows_and_labels, rows_and_numbers


def test_multipliers_at_an_end_of_their_range_up_to_rounding():
    alpha = np.array([0.0, 1e-9, 1.0 - 1e-15, 1.0, 0.5, -1.0, -0.5, 3.0])
    lower, upper = np.full(8, -1.0), np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, np.inf])
    free, bounded = free_and_bounded(alpha, lower, upper)
    assert free.tolist() == [1, 4, 6, 7]
    assert bounded.tolist() == [2, 3, 5]


@pytest.mark.parametrize("name", ["breast", "iris"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_linear_machine_and_the_linear_kernel_say_the_same(name, weighted):
    X, y = rows_and_labels(name)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    linear = LinearSVC(loss="hinge", multi_class="ovo", tol=1e-10).fit(X, y, weight)
    kernel = SVC(kernel="linear", tol=1e-10).fit(X, y, weight)
    several = isinstance(linear.free_, list)
    for attribute in ("free_", "bounded_"):
        found, expected = getattr(linear, attribute), getattr(kernel, attribute)
        for ours, theirs in zip(found if several else [found], expected if several else [expected], strict=True):
            np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_allclose(linear.margin_, kernel.margin_, rtol=1e-4)
    np.testing.assert_allclose(linear.objective_, kernel.objective_, rtol=1e-8)


def test_the_hard_margin_has_no_bound():
    X, y = rows_and_labels("iris")
    two = y != "a"
    separable = X[two] + 2.0 * (y[two] == "b")[:, None]
    machine = LinearSVC(loss="hinge", C=np.inf).fit(separable, y[two])
    assert len(machine.bounded_) == 0
    np.testing.assert_array_equal(machine.free_, machine.support_)
    np.testing.assert_allclose(machine.margin_, 1.0 / np.linalg.norm(machine.coef_, axis=1))


def test_machines_that_were_found_together_have_no_rows_of_their_own():
    X, y = rows_and_labels("iris")
    machine = LinearSVC(loss="hinge").fit(X, y)
    assert len(machine.free_) == 3
    machine.set_params(multi_class="crammer_singer").fit(X, y)
    assert not hasattr(machine, "free_")
    assert machine.objective_ == machine.solution_.primal
    assert machine.margin_.shape == (3,)


def test_the_tube_of_a_linear_regression():
    X, y = rows_and_numbers()
    linear = LinearSVR(epsilon=0.2, tol=1e-10).fit(X, y)
    kernel = SVR(kernel="linear", epsilon=0.2, tol=1e-10).fit(X, y)
    np.testing.assert_array_equal(linear.free_, kernel.free_)
    np.testing.assert_array_equal(linear.bounded_, kernel.bounded_)
    assert linear.objective_ == pytest.approx(kernel.objective_, rel=1e-8)

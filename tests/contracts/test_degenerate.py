"""Two hundred random problems per loss, degenerate ones included: a proven optimum or an honest status."""

import warnings

import numpy as np
import pytest

from maxmargin import ConvergenceWarning, LinearSVC, Problem, Status
from tests.oracles import clarabel_optimum
from tests.problems import KINDS, make_case

N_CASES = 204
assert N_CASES % len(KINDS) == 0


def fit(case, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LinearSVC(C=case.C, **options).fit(case.X, case.y, case.sample_weight)


def check(case, machine, power):
    """Verified gap and agreement with Clarabel, or NUMERICAL_LIMIT (returns False)."""
    verdict = machine.certificate_.verify(case.X, case.y, case.sample_weight)
    assert verdict, (str(case), str(verdict))
    if machine.solution_.status is Status.NUMERICAL_LIMIT:
        assert case.scale_case, str(case)
        return False
    assert machine.solution_.status is Status.CONVERGED, str(case)
    assert verdict.gap <= 1e-6, str(case)
    cost = case.C * (np.ones(len(case.y)) if case.sample_weight is None else case.sample_weight)
    optimum = clarabel_optimum(case.X, case.y, cost, power)
    if optimum is not None:
        size = max(abs(optimum), 1e-10 * Problem.from_arrays(case.X, case.y, C=case.C, loss=machine.loss).null_primal)
        assert abs(machine.solution_.primal - optimum) <= 1e-6 * size, str(case)
    return True


@pytest.mark.parametrize(("loss", "power"), [("hinge", 1), ("squared_hinge", 2)])
def test_default_solver(loss, power, instruction_set):
    cases = [make_case(seed) for seed in range(N_CASES)]
    limited = [str(c) for c in cases if not check(c, fit(c, loss=loss), power)]
    assert len(limited) <= 0.02 * N_CASES, limited


@pytest.mark.parametrize(("loss", "power"), [("hinge", 1), ("squared_hinge", 2)])
def test_dual_coordinate_descent(loss, power):
    # Coordinate steps cannot work across sixteen orders of magnitude; every other kind they must solve.
    for seed in range(0, N_CASES, 2):
        case = make_case(seed)
        if not case.scale_case:
            assert check(case, fit(case, loss=loss, solver="dual_cd"), power)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("options", [{"fit_intercept": False}, {"penalize_intercept": True, "intercept_scaling": 3.0}])
def test_other_biases(loss, options):
    for seed in range(0, N_CASES, 3):
        case = make_case(seed)
        machine = fit(case, loss=loss, **options)
        assert machine.certificate_.verify(case.X, case.y, case.sample_weight)
        assert machine.solution_.gap <= 1e-6 or case.scale_case

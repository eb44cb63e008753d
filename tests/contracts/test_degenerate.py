"""Random problems for every machine, degenerate ones included: a proven optimum or an honest status."""

import pytest

from tests.contracts.promise import CLASSIFIERS, REGRESSIONS, SEVERAL_CLASSES, examine, keep
from tests.problems import KINDS

ROUND = len(KINDS)  # cases that have every kind once
BY_NAME = {machine.name: machine for machine in [*CLASSIFIERS, *REGRESSIONS, *SEVERAL_CLASSES]}
BOXES = ["svc-hinge", "svc-squared_hinge"]


def outcomes(machine, seeds, **options):
    return [examine(machine, machine.problems(seed), **options) for seed in seeds]


def enough_compared(found):
    """Whether the oracle converged often enough to mean something."""
    finished = [outcome for outcome in found if not outcome.limited]
    return sum(outcome.compared for outcome in finished) >= 0.7 * len(finished)


@pytest.mark.parametrize("name", BOXES)
def test_default_solver(name, instruction_set):
    found = outcomes(BY_NAME[name], range(17 * ROUND))
    keep(found)
    assert enough_compared(found)


@pytest.mark.parametrize("machine", [m for m in CLASSIFIERS if m.name not in BOXES], ids=str)
def test_two_classes(machine):
    found = outcomes(machine, range(7 * ROUND))
    keep(found)
    assert enough_compared(found)


@pytest.mark.parametrize("machine", REGRESSIONS, ids=str)
def test_regression(machine):
    found = outcomes(machine, range(6 * ROUND))
    # Residuals on the border of a tube are rounded: columns of very different scale may be the limit.
    keep(found, 0.05)
    assert enough_compared(found)


@pytest.mark.parametrize("machine", SEVERAL_CLASSES, ids=str)
def test_several_classes(machine):
    rounds = 5 if machine.form.joint else 2  # an even number of rounds has three and four classes of every kind
    found = outcomes(machine, range(rounds * ROUND))
    # The joint hinge and the l1 penalty have no interior point method behind them: columns of very different scale may
    # be their limit, on some processors more than on others.
    alone = machine.name == "crammer_singer" or "l1" in machine.name
    keep(found, 0.12 if alone else 0.02)
    assert enough_compared(found)


@pytest.mark.parametrize("name", [*BOXES, "logistic-l2", "svr-1-tube", "svr-2-tube"])
def test_dual_coordinate_descent(name):
    # Coordinate steps cannot work across sixteen orders of magnitude; every other kind they must solve.
    machine = BY_NAME[name]
    seeds = [seed for seed in range(0, 17 * ROUND, 2) if not machine.problems(seed).scale_case]
    found = outcomes(machine, seeds, solver="dual_cd")
    keep(found)
    assert not any(outcome.limited for outcome in found)


@pytest.mark.parametrize("machine", list(BY_NAME.values()), ids=str)
def test_no_bias(machine):
    keep(outcomes(machine, range(1, 4 * ROUND, 5), fit_intercept=False))


@pytest.mark.parametrize("machine", list(BY_NAME.values()), ids=str)
def test_penalised_bias(machine):
    keep(outcomes(machine, range(0, 4 * ROUND, 5), penalize_intercept=True, intercept_scaling=3.0))

"""Few rows of many columns: what a fit claims from sums over columns is confirmed by sums in another order."""

import numpy as np
import pytest

from maxmargin import LinearSVC, LinearSVR, LogisticRegression, Status

MACHINES = {
    "squared hinge": LinearSVC(),
    "hinge": LinearSVC(loss="hinge", C=1e-3),
    "penalised": LinearSVC(penalize_intercept=True),
    "logistic": LogisticRegression(),
    "tube": LinearSVR(epsilon=0.1),
    "l1": LinearSVC(penalty="l1"),
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("shape", [(20, 20_000), (64, 8_000)])
def test_what_converged_is_proven(name, shape):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal(shape), np.arange(shape[0]) % 2
    machine = MACHINES[name].fit(X, y)
    assert machine.solution_.status is Status.CONVERGED
    assert machine.certificate_.verify(X, y)

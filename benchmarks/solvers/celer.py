"""celer.LogisticRegression: ‖w‖₁ + C Σ ℓ, the same objective without a bias.

The bias is a constant column put in front of the others, so it is penalised; putting it there is timed. So is the
conversion to float64: its compiled code mixes up the precisions of X and y otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.forms import Form
from benchmarks.solvers.base import INTERCEPT_SCALINGS, BaseSolver, Setting, Vector

ALGORITHMS = ("celer-pn", "celer")
# (tol, max_iter): the default is (1e-4, 50). The tolerance is a duality gap relative to the loss at w = 0.
LADDER = ((1e-2, 100), (1e-3, 100), (1e-4, 100), (1e-6, 1000), (1e-8, 1000))


class Solver(BaseSolver):
    name = "celer"
    distribution = "celer"
    module = "celer"
    forms = ("logistic-l1",)

    def settings(self, form: Form) -> list[Setting]:
        return [
            Setting(
                f"{algorithm}, scaling {scaling:g}",
                {"solver": algorithm, "scaling": scaling, "tol": tol, "max_iter": max_iter},
            )
            for algorithm in ALGORITHMS
            for scaling in INTERCEPT_SCALINGS
            for tol, max_iter in LADDER
        ]

    def fit(self, X: Any, y: Vector, C: float, form: Form, setting: Setting) -> Vector:
        from celer import LogisticRegression

        options = dict(setting.options)
        constant = np.full((X.shape[0], 1), options.pop("scaling"), dtype=np.float64)
        wider = sp.hstack([sp.csr_matrix(constant), X], format="csr") if sp.issparse(X) else np.hstack([constant, X])
        machine = LogisticRegression(C=C, penalty="l1", fit_intercept=False, **options).fit(wider, y)
        return np.asarray(machine.coef_, dtype=np.float64).ravel()[1:]

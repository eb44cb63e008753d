"""What every machine here shares: checks of common parameters, warnings, seeds, and stored solutions."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from maxmargin.errors import InputError
from maxmargin.estimators import ConvergenceWarning, VersionedState, warn
from maxmargin.foreign import CallbackSupportMixin, SparseCoefMixin
from maxmargin.inputs import positive_number
from maxmargin.problem import Problem
from maxmargin.solution import Solution, Solutions, Status
from maxmargin.solvers import SOLVERS, Solver, make_solver

Vector = NDArray[np.float64]


ADVICE = {
    Status.ITERATION_LIMIT: "Raise max_iter, raise tol, or continue from here with warm_start=True.",
    Status.TIME_LIMIT: "Raise max_seconds, raise tol, or continue from here with warm_start=True.",
    Status.INTERRUPTED: "Continue from here with warm_start=True.",
    Status.NUMERICAL_LIMIT: "Scale the columns (for example with sklearn.preprocessing.StandardScaler), "
    "lower C, or raise tol.",
    Status.INFEASIBLE: "Lower C.",
}


def _use_of(solution: Any) -> str:
    """What an unfinished solution is good for."""
    if not (solution.w if isinstance(solution, Solution) else solution.W).any():
        return "All weights are zero: do not use the model, it answers always the same. "
    return f"Its objective is {solution.primal:.6g}, and no hyperplane's is below {solution.dual:.6g}. "


class CertifiedMachine(VersionedState, CallbackSupportMixin, SparseCoefMixin, BaseEstimator):
    """Base of the scikit-learn classes; knows their common parameters."""

    def _check_common(self) -> None:
        positive_number("tol", self.tol)
        if self.max_seconds is not None:
            positive_number("max_seconds", self.max_seconds)
        if isinstance(self.max_iter, bool) or not isinstance(self.max_iter, Integral) or int(self.max_iter) < 1:
            raise InputError(f"max_iter must be a whole number of at least 1, got {self.max_iter!r}")
        if not isinstance(self.verbose, Real) or self.verbose < 0:
            raise InputError(f"verbose must be a number of at least 0, got {self.verbose!r}")
        if not isinstance(self.solver, str) or (self.solver != "auto" and self.solver not in SOLVERS):
            raise InputError(f"solver must be 'auto' or one of {sorted(SOLVERS)}, got {self.solver!r}")
        if self.penalize_intercept and not self.fit_intercept:
            self._no_effect("penalize_intercept", "there is no bias with fit_intercept=False")
        elif self.intercept_scaling != 1 and not self.penalize_intercept:
            self._no_effect("intercept_scaling", "the bias is not penalised; set penalize_intercept=True to use it")

    def _check_dual(self) -> None:
        if self.dual not in ("auto", True, False):
            raise InputError(f"dual must be 'auto', True or False, got {self.dual!r}")
        if self.dual != "auto":
            self._no_effect("dual", "every solver here works on the primal and the dual at once")

    def _no_effect(self, name: str, why: str) -> None:
        warn(f"{name}={getattr(self, name)!r} has no effect: {why}")

    def _seed(self) -> int:
        if self.random_state is None:
            return 0
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _make_solver(self, problem: Problem, n_threads: int, seed: int) -> Solver:
        return make_solver(
            problem, self.solver, tol=float(self.tol), max_iter=int(self.max_iter), n_threads=n_threads, seed=seed
        )

    @property
    def _penalty_scale(self) -> float | None:
        return float(self.intercept_scaling) if self.penalize_intercept and self.fit_intercept else None

    def _previous(self, n_machines: int, n_rows: int) -> list[Solution | None]:
        """The solutions to continue from, one per machine."""
        if not self.warm_start or not hasattr(self, "solution_"):
            return [None] * n_machines
        old = self.solution_
        parts = list(old) if isinstance(old, Solutions) else [old]
        known = getattr(self, "_n_rows_seen", len(old.alpha) if isinstance(old, Solution) else -1)
        if len(parts) != n_machines or known != n_rows or not isinstance(parts[0], Solution):
            now = f"this one has {n_rows}" if len(parts) == n_machines else "this one has other classes"
            warn(f"warm_start: the previous fit had {known} rows, {now}; starting afresh")
            return [None] * n_machines
        return parts

    def _warn_if_unfinished(self, solution: Any) -> None:
        if solution.status is Status.CONVERGED:
            return
        worst = solution.worst if isinstance(solution, Solutions) else solution
        machines = f"a machine (of {len(solution)})" if isinstance(solution, Solutions) else type(self).__name__
        warn(
            f"{machines} stopped at a relative gap of {worst.gap:.2e} (asked: {self.tol:.0e}): "
            f"{worst.status.sentence}. {_use_of(worst)}"
            f"{ADVICE[worst.status]}",
            ConvergenceWarning,
        )

    def sparsify(self) -> Any:
        """Store ``coef_`` as a sparse matrix (smaller when most weights are zero)."""
        super().sparsify()
        return self

    def densify(self) -> Any:
        """Store ``coef_`` as a dense array, the default."""
        if hasattr(getattr(self, "coef_", None), "toarray"):
            super().densify()
        return self

    @property
    def _dense_coef(self) -> Vector:
        """``coef_`` as an array, whatever ``sparsify`` made of it."""
        coef: Any = self.coef_
        return np.asarray(coef.toarray() if hasattr(coef, "toarray") else coef)

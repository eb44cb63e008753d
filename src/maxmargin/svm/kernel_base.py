"""What every machine with a kernel shares: parameters, the kernel's rows, problems solved, and what is kept of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from maxmargin.errors import InputError
from maxmargin.estimators import ConvergenceWarning, VersionedState, checked_for_scores, warn
from maxmargin.foreign import CallbackSupportMixin
from maxmargin.inputs import positive_number, truth_value
from maxmargin.kernels import Kernel, Linear, Precomputed, make_kernel
from maxmargin.kernels.kernel_rows import KernelRows
from maxmargin.runtime import Watch
from maxmargin.solution import Solution, Solutions
from maxmargin.solvers import Solver
from maxmargin.solvers.kernel_choice import make_kernel_solver
from maxmargin.space import Rows
from maxmargin.svm.base import ADVICE
from maxmargin.svm.compressed import compressed
from maxmargin.svm.kernel_prediction import PackedSupport, Parts, expansion_sums, given_sums
from maxmargin.svm.machines import Task, solve_all
from maxmargin.svm.progress import FitProgress
from maxmargin.svm.readings import BEYOND, Chosen, free_and_bounded, multiplier_range, one_or_all
from maxmargin.undisturbed import undisturbed

Vector = NDArray[np.float64]
MEGABYTE = 2**20
NO_LIMIT = 2**62  # iterations: as good as none


@dataclass(frozen=True)
class Machine:
    """One machine that was solved for: its rows in the caller's numbering, and the range of their multipliers."""

    rows: Chosen
    solution: Any
    lower: Vector
    upper: Vector
    scale: float = 1.0  # of what is kept: the machine's function is this times the solution's

    @property
    def coefficients(self) -> Vector:
        return np.asarray(self.scale * self.solution.w)

    def spread(self, n_rows: int) -> Vector:
        """The multipliers of all rows, 0 for those that this machine is not about."""
        full = np.zeros(n_rows)
        full[self.rows] = self.solution.alpha
        return full


class KernelProgress(FitProgress):
    """Progress of a fit whose gap is not a number where the kernel is no inner product: it is as far as ever."""

    def __call__(self, iteration: int, gap: float, seconds: float) -> bool:
        return super().__call__(iteration, math.inf if math.isnan(gap) else gap, seconds)


class KernelMachine(VersionedState, CallbackSupportMixin, BaseEstimator):
    """Base of the scikit-learn classes with a kernel; knows their common parameters."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, Precomputed) or (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )
        return tags

    # --- parameters -------------------------------------------------------------------------------------------

    def _check_common(self) -> None:
        positive_number("tol", self.tol)
        positive_number("cache_size", self.cache_size)
        truth_value("shrinking", getattr(self, "shrinking", True))
        if self.max_seconds is not None:
            positive_number("max_seconds", self.max_seconds)
        limit = self.max_iter
        if isinstance(limit, bool) or not isinstance(limit, Integral) or not (int(limit) == -1 or int(limit) >= 1):
            raise InputError(f"max_iter must be a whole number of at least 1, or -1 for no limit, got {limit!r}")
        if not isinstance(self.verbose, Real) or self.verbose < 0:
            raise InputError(f"verbose must be a number of at least 0, got {self.verbose!r}")
        truth_value("warm_start", self.warm_start)

    def _make_kernel(self, space: Rows, weight: Vector) -> Kernel:
        return make_kernel(
            self.kernel,
            gamma=self.gamma,
            coef0=self.coef0,
            degree=self.degree,
            kernel_params=self.kernel_params,
            X=space,
            sample_weight=weight if np.ptp(weight) > 0.0 else None,  # the same for all rows: it is no weight
        )

    def _kernel_rows(self, space: Rows, kernel: Kernel, n_threads: int) -> Any:
        """The rows as the kernel sees them: a space to solvers that know kernels."""
        return KernelRows.of(space, kernel, max(1, int(float(self.cache_size) * MEGABYTE)), n_threads)

    def _make_solver(self, problem: Any, n_threads: int) -> Solver:
        limit = NO_LIMIT if int(self.max_iter) == -1 else int(self.max_iter)
        return make_kernel_solver(
            problem, self.solver, tol=float(self.tol), max_iter=limit, n_threads=n_threads, seed=0
        )

    # --- solving ----------------------------------------------------------------------------------------------

    def _solve(
        self, space: Rows, tasks: list[Task], order: Chosen, n_threads: int, progress: FitProgress
    ) -> tuple[list[Machine], Watch]:
        """Solve all tasks; ``order`` says which of the caller's rows each row of the problems is."""
        asked = [order if task.chosen is None else order[task.chosen] for task in tasks]
        starts = self._previous(asked)
        if len(tasks) > 1:
            self._make_solver(tasks[0].problem, 1)  # raises before any thread starts if the solver does not fit
        with undisturbed(space):
            solutions, watch = solve_all(tasks, self._make_solver, starts, n_threads, self.max_seconds, progress)
        machines = []
        for task, rows, solution in zip(tasks, asked, solutions, strict=True):
            turn = np.argsort(rows)
            found = replace(solution, w=solution.w[turn], alpha=solution.alpha[turn])
            lower, upper = self._range(task.problem)
            machines.append(Machine(rows[turn], found, lower[turn], upper[turn], self._scale(task.problem, found)))
        return machines, watch

    def _range(self, problem: Any) -> tuple[Vector, Vector]:
        """Smallest and largest multiplier of every row."""
        return multiplier_range(problem)

    def _scale(self, problem: Any, solution: Any) -> float:
        """What the solution's function is multiplied by before it is kept."""
        return 1.0

    def _previous(self, asked: list[Chosen]) -> list[Solution | None]:
        """The solutions to continue from, one per machine, their rows in the problem's order."""
        afresh: list[Solution | None] = [None] * len(asked)
        if not self.warm_start or not hasattr(self, "solution_"):
            return afresh
        old = list(self.solution_) if isinstance(self.solution_, Solutions) else [self.solution_]
        now, before = [len(rows) for rows in asked], [len(part.alpha) for part in old]
        if now != before:
            warn(
                f"warm_start: the previous fit had {len(before)} machines of {_sizes(before)} rows, this one has "
                f"{len(now)} of {_sizes(now)}; starting afresh"
            )
            return afresh
        starts: list[Solution | None] = []
        for rows, part in zip(asked, old, strict=True):
            place = np.argsort(np.argsort(rows))
            starts.append(replace(part, w=part.w[place], alpha=part.alpha[place]))
        return starts

    # --- what is kept -----------------------------------------------------------------------------------------

    def _store_machines(
        self, space: Rows, kernel: Kernel, support: Chosen, dual: Vector, machines: list[Machine], watch: Watch
    ) -> None:
        """Set the fitted attributes that do not depend on the kind of machine."""
        solutions = [machine.solution for machine in machines]
        self.kernel_ = kernel
        self.shape_fit_ = space.shape
        self.support_ = support
        precomputed = isinstance(kernel, Precomputed)
        self.support_vectors_: Any = np.empty((0, 0)) if precomputed else space.X[support]
        self.dual_coef_: Any = type(space.X)(dual) if space.sparse else dual
        self.solution_: Any = solutions[0] if len(solutions) == 1 else Solutions(tuple(solutions), watch.seconds)
        self.fit_status_ = int(not self.solution_.status.ended_well)
        readings = [free_and_bounded(m.solution.alpha, m.lower, m.upper) for m in machines]
        self.free_ = one_or_all([m.rows[free] for m, (free, _) in zip(machines, readings, strict=True)])
        self.bounded_ = one_or_all([m.rows[bounded] for m, (_, bounded) in zip(machines, readings, strict=True)])
        self._has_bounds = any(np.isfinite(m.upper).any() for m in machines)
        self._support_rows = PackedSupport()
        # Values of a precomputed kernel are the caller's: what they say of the support vectors must be asked now.
        self.__dict__.pop("_support_sums", None)
        if precomputed:
            self._support_sums = self._sums_of(space.X[support])

    @property
    def objective_(self) -> Any:
        """The value of the problem above at what was found; of several machines, one each."""
        check_is_fitted(self)
        if isinstance(self.solution_, Solutions):
            return np.array([part.primal for part in self.solution_])
        return float(self.solution_.primal)

    @property
    def violating_(self) -> Any:
        """Rows at their bound that lie beyond the margin, or outside of the tube; of several machines, one list each.

        Without bounds (a slack to a power above 1), every row with a multiplier is beyond.
        """
        check_is_fitted(self)
        suspects = self.bounded_ if self._has_bounds else self.free_
        beyond = self._beyond(self._support_scores())
        by_row = np.argsort(self.support_)
        found = []
        for rows, how_far in zip(suspects if isinstance(suspects, list) else [suspects], beyond.T, strict=True):
            place = by_row[np.searchsorted(self.support_, rows, sorter=by_row)]
            found.append(rows[how_far[place] > BEYOND])
        return one_or_all(found)

    def _beyond(self, scores: Vector) -> Vector:
        """How far every support vector is beyond the margin of every machine, from the machines' scores."""
        raise NotImplementedError

    def _support_scores(self) -> Vector:
        """The scores of the support vectors, one column per machine."""
        return np.asarray(self._support_products() + self.intercept_)

    def _support_products(self) -> Vector:
        """The same without the biases."""
        return self._support_sums if "_support_sums" in self.__dict__ else self._sums_of(self.support_vectors_)

    @property
    def _norms(self) -> Vector:
        """‖w‖ of every machine; not a number where the kernel is no inner product and leaves none."""
        squares = np.asarray(sp.csr_array(self._lines()).multiply(self._support_products().T).sum(axis=1)).ravel()
        with np.errstate(invalid="ignore"):
            return np.asarray(np.sqrt(squares))

    # --- scores -----------------------------------------------------------------------------------------------

    @property
    def _dense_dual(self) -> Vector:
        dual: Any = self.dual_coef_
        return np.asarray(dual.toarray() if hasattr(dual, "toarray") else dual)

    def _lines(self) -> Any:
        """The coefficients of every machine at the support vectors, one line each."""
        return self.dual_coef_

    def _sums_over(self, X: Any, parts: Parts) -> list[Vector]:
        """Σ_j coefficients_jm k(x_j, x) over each part of the support vectors, one column per machine."""
        if isinstance(self.kernel_, Precomputed):
            return [given_sums(X[:, self.support_[part]], coefficients) for part, coefficients in parts]
        if not self.support_vectors_.shape[0]:
            return [np.zeros((X.shape[0], coefficients.shape[1])) for _, coefficients in parts]
        packed = self.__dict__.setdefault("_support_rows", PackedSupport())
        return expansion_sums(packed.rows(self.kernel_, self.support_vectors_), X, parts, self.n_threads)

    def _sums_of(self, X: Any) -> Vector:
        """Σ_j coefficients_jm k(x_j, x) of every machine m, without its bias."""
        return self._sums_over(X, [(slice(None), self._dense_dual.T)])[0]

    def _checked(self, X: Any) -> Any:
        """X of a prediction; rows that are plainly in order need none of scikit-learn's checks, which take longer."""
        own = self.__dict__
        if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.flags.aligned:
            as_fitted = X.shape[0] > 0 and X.shape[1] == own.get("n_features_in_") and "feature_names_in_" not in own
            if as_fitted and np.isfinite(X).all():
                return X
        return checked_for_scores(self, X)

    def _scores_of(self, X: Any) -> Vector:
        """The scores of checked rows, one column per machine."""
        return np.asarray(self._sums_of(self._checked(X)) + self.intercept_)

    @property
    def coef_(self) -> Any:
        """The weights of a machine with the linear kernel, one line per machine; cannot be written to."""
        if not isinstance(getattr(self, "kernel_", None), Linear):
            raise AttributeError("coef_ is only available when using a linear kernel, after fit")
        coef: Any = self._lines() @ self.support_vectors_
        numbers: Vector = coef.data if hasattr(coef, "toarray") else coef
        numbers.setflags(write=False)
        return coef

    def compress(self, tol: float = 1e-3) -> Any:
        """The machine with fewer support vectors, whose scores are almost the same.

        A machine of its own is returned: without certificate and solution, which speak of the one that was fitted, and
        without probabilities.

        Parameters
        ----------
        tol : float, default=1e-3
            How much the score of a row x may change, per √k(x, x); that is 1 for a Gaussian or Laplacian kernel. The
            bound reached stands in ``compression_bound_``, one for each machine.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from maxmargin import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> machine = SVC().fit(X, y > 0)
        >>> small = machine.compress(0.01)
        >>> len(small.support_) < len(machine.support_)
        True
        >>> changed = abs(small.decision_function(X) - machine.decision_function(X)).max()
        >>> bool(changed <= small.compression_bound_[0] <= 0.01)
        True
        """
        return compressed(self, tol)

    @property
    def _gamma(self) -> float:
        """The kernel's gamma as a number, under the name that it has in scikit-learn; 0 where it has none."""
        return float(getattr(self.kernel_, "gamma", 0.0))

    def _warn_if_unfinished(self) -> None:
        solution = self.solution_
        if solution.status.ended_well:
            return
        worst = solution.worst if isinstance(solution, Solutions) else solution
        machines = f"a machine (of {len(solution)})" if isinstance(solution, Solutions) else type(self).__name__
        if math.isnan(worst.gap):
            how_far, known = "before it was stationary", "The kernel is no inner product, so no bound is known. "
        else:
            how_far = f"at a relative gap of {worst.gap:.2e} (asked: {self.tol:.0e})"
            known = f"Its objective is {worst.primal:.6g}, and no function's is below {worst.dual:.6g}. "
        warn(
            f"{machines} stopped {how_far}: {worst.status.sentence}. {known}{ADVICE[worst.status]}", ConvergenceWarning
        )


def _sizes(sizes: list[int]) -> str:
    """How many rows the machines have."""
    return str(sizes[0]) if len(set(sizes)) == 1 else f"{min(sizes)} to {max(sizes)}"

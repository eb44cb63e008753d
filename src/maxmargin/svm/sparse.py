"""SparseSVC: a kernel classifier that pays for its coefficients, so that few rows have one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from maxmargin.certificates.sparse_expansion import Expansion, SparseExpansionCertificate
from maxmargin.errors import InputError
from maxmargin.estimators import (
    ConvergenceWarning,
    VersionedState,
    check_names,
    checked_for_scores,
    one_column,
    require_targets,
    warn,
)
from maxmargin.foreign import CallbackSupportMixin, ovr_decision_function, with_callbacks
from maxmargin.inputs import LabelledRows, check_weights, positive_number
from maxmargin.kernels import Kernel, Precomputed, make_kernel
from maxmargin.losses import LOSSES
from maxmargin.problem import Problem, make_bias
from maxmargin.process import KeptMemory
from maxmargin.runtime import Watch, effective_threads
from maxmargin.solution import Solution, Solutions, Status
from maxmargin.solvers.sparse_expansion import SparseExpansion
from maxmargin.svm.machines import Task, solve_all, split, was_interrupted
from maxmargin.svm.progress import FitProgress
from maxmargin.undisturbed import undisturbed

Vector = NDArray[np.float64]
Chosen = NDArray[np.intp]

ADVICE = {
    Status.ITERATION_LIMIT: "Raise tol.",
    Status.TIME_LIMIT: "Raise max_seconds, or raise tol.",
    Status.INTERRUPTED: "Fit again.",
    Status.NUMERICAL_LIMIT: "Lower C, scale the columns, or raise tol.",
}


class SparseSVC(ClassifierMixin, VersionedState, CallbackSupportMixin, BaseEstimator):
    """Sparse support vector machine: the coefficients themselves are made small, not the norm of a weight vector.

    Solves
        minimise over α ≥ 0, b   R(α) + C Σ c_i max(0, 1 − y_i f(x_i)),   f(x) = Σ_j α_j y_j k(x_j, x) + b

    with R(α) = Σ α_j (a linear program, most of whose α_j are zero) or ½ Σ α_j²/c_j (a quadratic program) and weights
    c_i. Any symmetric k will do; it need not be an inner product. More than two classes are split into two-class
    problems.

    Parameters
    ----------
    penalty : {"l1", "l2"}, default="l1"
        Σ α_j, or ½ Σ α_j²/c_j.
    C : float, default=1.0
        Price of slack.
    kernel : {"linear", "poly", "rbf", "laplacian", "sigmoid", "precomputed"}, callable or Kernel, default="rbf"
        A callable gets two arrays of rows and returns the matrix of values. "precomputed" means that X holds values of
        the kernel: one row per sample and one column per sample learned from.
    degree : float, default=3
        Of "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Of all named kernels but "linear". "scale" is 1 / (columns × variance of X, weighted), "auto" is 1 / columns.
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    kernel_params : mapping, optional
        Keywords for a callable kernel.
    tol : float, default=1e-6
        Relative duality gap at which the fit counts as converged. Usually far exceeded: the last step solves the
        equations of the solution.
    multi_class : {"ovr", "ovo"}, default="ovr"
        More than two classes: one machine per class against the rest, or one per pair of classes (they vote).
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of all rows of a class.
    max_seconds : float or None, default=None
        Time limit.
    n_threads : int or None, default=None
        None uses what CPU affinity, cgroup and OMP_NUM_THREADS allow. The result does not depend on it.
    verbose : int, default=0
        1 prints a line per round or iteration.

    Attributes
    ----------
    support_ : array of shape (n_support,)
        Indices of rows with α_j > 0 in any machine.
    support_vectors_ : array or sparse matrix of shape (n_support, n_features)
        Empty if the kernel is precomputed.
    n_support_ : array of shape (n_classes,)
    dual_coef_ : array of shape (n_machines, n_support)
        y_j α_j. One machine for two classes; else one per class, or one per pair, whose second class is positive.
    intercept_ : array of shape (n_machines,)
    classes_ : array of shape (n_classes,)
    kernel_ : Kernel
        The kernel with its parameters as numbers.
    n_iter_ : int
        Rounds or iterations (of the machine that took most).
    solution_ : ExpansionSolution or Solutions
        Objective values, gap, status and history; ``w`` holds the α_j, ``alpha`` the multipliers of the margins.
    certificate_ : SparseExpansionCertificate
        ``certificate_.verify(X, y)`` checks the claim from the data alone.

    Notes
    -----
    *Guarantees.* No function of the form above has an objective below ``certificate_.dual`` (weak duality; indefinite
    kernels included). A weight of k equals k repetitions of a row, which is why α_j² is divided by c_j. On the features
    y_j k(x, x_j) this is a linear machine with weights that are not negative; with "l2" and without that condition it
    would be the usual support vector machine. The matrix of all pairs of rows is held in memory, 8 n² bytes, a few
    times.

    References
    ----------
    Bennett: Combining support vector and mathematical programming methods for classification, 1999. Mangasarian:
    Generalized support vector machines, 2000. Zhu, Rosset, Hastie, Tibshirani: 1-norm support vector machines, 2003.
    Mohri, Rostamizadeh, Talwalkar: Foundations of machine learning, 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> machine = SparseSVC().fit(X / X.max(axis=0), y)
    >>> len(machine.support_) < 12, machine.solution_.status.name, round(machine.score(X / X.max(axis=0), y), 2)
    (True, 'CONVERGED', 0.98)
    >>> print(machine.certificate_.verify(X / X.max(axis=0), y))
    verified: no hyperplane has an objective below ...
    """

    def __init__(
        self,
        *,
        penalty: str = "l1",
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: float = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        kernel_params: Mapping[str, Any] | None = None,
        tol: float = 1e-6,
        multi_class: str = "ovr",
        class_weight: dict[Any, float] | str | None = None,
        max_seconds: float | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.tol = tol
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.max_seconds = max_seconds
        self.n_threads = n_threads
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        return tags

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (isinstance(self.kernel, str) and self.kernel == "precomputed")

    def _check_parameters(self) -> None:
        for name, known in (("penalty", ("l1", "l2")), ("multi_class", ("ovr", "ovo"))):
            if getattr(self, name) not in known:
                raise InputError(f"{name} must be {known[0]!r} or {known[1]!r}, got {getattr(self, name)!r}")
        positive_number("C", self.C)
        positive_number("tol", self.tol)
        if self.max_seconds is not None:
            positive_number("max_seconds", self.max_seconds)
        if not isinstance(self.verbose, Real) or self.verbose < 0:
            raise InputError(f"verbose must be a number of at least 0, got {self.verbose!r}")

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> SparseSVC:
        """Find the coefficients.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, or the kernel's values for all pairs of rows if ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of two or more classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights c_i ≥ 0; 0 leaves a row out.
        """
        self._check_parameters()
        require_targets(self, y)
        with KeptMemory():
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> SparseSVC:
        begun, progress = Watch(), FitProgress(self, self.verbose, self.tol)
        n_threads = effective_threads(self.n_threads)
        data = LabelledRows.from_arrays(X, one_column(y), sample_weight, self.class_weight, n_threads)
        kernel = self._make_kernel(data, check_weights(sample_weight, data.space.n))
        tasks = split(
            data, self.multi_class, C=float(self.C), loss=LOSSES["hinge"], penalty=self.penalty,
            bias=make_bias(True, False, 1.0),
        )  # fmt: skip
        check_names(self, X)
        progress.begin(X, y)
        with undisturbed(data.space):
            group, gram = _different_rows(kernel, data)
            rows_of = {id(task.problem): task.chosen for task in tasks}

            def make(problem: Problem, threads: int) -> SparseExpansion:
                rows = rows_of[id(problem)]
                rows = np.arange(data.space.n) if rows is None else rows
                left = None if self.max_seconds is None else max(1e-9, float(self.max_seconds) - begun.seconds)
                return SparseExpansion(
                    tol=float(self.tol), n_threads=threads, penalty=self.penalty, gram=gram, group=group[rows],
                    weight=data.weight[rows], kernel=kernel.structure(), X=data.space.X, rows=rows, max_seconds=left,
                )  # fmt: skip

            solutions, watch = solve_all(tasks, make, [None] * len(tasks), n_threads, self.max_seconds, progress)
        self._store(data, kernel, tasks, solutions, watch)
        if was_interrupted(solutions, watch):
            raise KeyboardInterrupt
        progress.end()
        self._warn_if_unfinished()
        return self

    def _make_kernel(self, data: LabelledRows, weight: Vector) -> Kernel:
        return make_kernel(
            self.kernel,
            gamma=self.gamma,
            coef0=self.coef0,
            degree=self.degree,
            kernel_params=self.kernel_params,
            X=data.space,
            sample_weight=weight,
        )

    def _store(
        self, data: LabelledRows, kernel: Kernel, tasks: list[Task], solutions: list[Solution], watch: Watch
    ) -> None:
        n, classes = data.space.n, data.classes
        # The certificate keeps its own copies.
        alphas = [task.spread(s.w.copy(), n) for task, s in zip(tasks, solutions, strict=True)]
        betas = [task.spread(s.alpha.copy(), n) for task, s in zip(tasks, solutions, strict=True)]
        signed = np.stack([task.spread(task.problem.y * s.w, n) for task, s in zip(tasks, solutions, strict=True)])
        self.classes_, self.kernel_ = classes, kernel
        self.support_ = np.flatnonzero(signed.any(axis=0))
        self.support_vectors_ = np.empty((0, 0)) if self._is_precomputed else data.space.X[self.support_]
        self.n_support_ = np.bincount(data.position[self.support_], minlength=len(classes))
        self.dual_coef_ = signed[:, self.support_]
        self.intercept_ = np.array([s.b for s in solutions])
        self.solution_: Any = solutions[0] if len(solutions) == 1 else Solutions(tuple(solutions), watch.seconds)
        self.n_iter_ = self.solution_.n_iter
        self._fitted_scheme = self.multi_class
        self.certificate_ = SparseExpansionCertificate(
            parts=tuple(
                Expansion(alpha, s.b, beta, s.primal, s.dual, s.gap)
                for alpha, beta, s in zip(alphas, betas, solutions, strict=True)
            ),
            kernel=kernel.structure(),
            penalty=self.penalty,
            C=float(self.C),
            classes=classes,
            scheme=self.multi_class,
            tol=float(self.tol),
            class_weight=dict(self.class_weight) if isinstance(self.class_weight, dict) else self.class_weight,
        )

    def _warn_if_unfinished(self) -> None:
        solution = self.solution_
        if solution.status is Status.CONVERGED:
            return
        worst = solution.worst if isinstance(solution, Solutions) else solution
        machines = f"a machine (of {len(solution)})" if isinstance(solution, Solutions) else type(self).__name__
        warn(
            f"{machines} stopped at a relative gap of {worst.gap:.2e} (asked: {self.tol:.0e}): "
            f"{worst.status.sentence}. Its objective is {worst.primal:.6g}, and no function's is below "
            f"{worst.dual:.6g}. {ADVICE[worst.status]}",
            ConvergenceWarning,
        )

    def decision_function(self, X: Any) -> Any:
        """Scores Σ α_j y_j k(x_j, x) + b: one per row for two classes (positive means ``classes_[1]``), else per class.

        Pairs of classes give every class its votes, with a confidence that breaks ties.
        """
        X = checked_for_scores(self, X)
        if len(self.support_) == 0:
            scores = np.zeros((X.shape[0], len(self.intercept_)))
        elif isinstance(self.kernel_, Precomputed):
            values = self.kernel_.block(X[:, self.support_], np.zeros((len(self.support_), 1)))
            scores = np.einsum("ij,mj->im", values, self.dual_coef_)  # no matter how many rows come along
        else:
            scores = self.kernel_.times(X, self.support_vectors_, self.dual_coef_.T)
        scores = scores + self.intercept_
        if len(self.classes_) == 2:
            return scores.ravel()
        # The second class of a pair is the positive one.
        return (
            ovr_decision_function(scores > 0.0, scores, len(self.classes_)) if self._fitted_scheme == "ovo" else scores
        )

    def predict(self, X: Any) -> Any:
        """The class of each row; a score of exactly 0 goes to ``classes_[0]``."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0.0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]


def _different_rows(kernel: Kernel, data: LabelledRows) -> tuple[Chosen, Vector]:
    """For every row, which of the rows that differ it is (−1: weight 0), and the kernel's values for all those.

    Their order is a matter of their values alone: it does not depend on the order of the rows or on repetitions.
    """
    live = np.flatnonzero(data.weight > 0.0)
    given = isinstance(kernel, Precomputed)
    if given:
        kernel.gram(data.space)  # checks it
        K = kernel.block(data.space, data.space)
        K = 0.5 * (K + K.T)
        keys = _keys(K[np.ix_(live, live)], sparse=False)
    else:
        keys = _keys(data.space.X[live], sparse=data.space.sparse)
    seen: dict[bytes, list[int]] = {}
    for k, key in zip(live.tolist(), keys, strict=True):
        seen.setdefault(key, []).append(k)
    group = np.full(data.space.n, -1, dtype=np.intp)
    for number, key in enumerate(sorted(seen)):
        group[seen[key]] = number
    chosen = np.array([seen[key][0] for key in sorted(seen)], dtype=np.intp)
    if given:
        return group, K[np.ix_(chosen, chosen)]
    turn = np.argsort(chosen)
    try:
        gram = kernel.gram(data.space.take(chosen[turn]))
    except InputError:
        kernel.gram(data.space)  # so that the error names rows as the caller counts them
        raise
    place = np.argsort(turn)
    return group, gram[np.ix_(place, place)]


def _keys(X: Any, *, sparse: bool) -> Iterator[bytes]:
    """The numbers of every row as bytes; 0 and −0 are the same."""
    if not sparse:
        return (row.tobytes() for row in X + 0.0)
    ends = itertools.pairwise(X.indptr.tolist())
    return (X.indices[i:j].tobytes() + (X.data[i:j] + 0.0).tobytes() for i, j in ends)

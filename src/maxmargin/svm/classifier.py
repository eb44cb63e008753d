"""Linear classifiers: any number of classes, by one machine per class, per pair, or one for all together."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin.certificates import (
    CombinedCertificate,
    NotSeparableError,
    OptimalityCertificate,
    judge_separability,
    through_origin,
)
from maxmargin.errors import InputError
from maxmargin.estimators import one_column
from maxmargin.foreign import LinearClassifierMixin, forget_listeners, ovr_decision_function
from maxmargin.inputs import LabelledRows, check_weights, positive_number
from maxmargin.losses import Loss
from maxmargin.positions import check_positions
from maxmargin.problem import check_penalty, make_bias
from maxmargin.runtime import Watch, effective_threads
from maxmargin.solution import Solution, Solutions, Status
from maxmargin.solvers.hard_margin import separating
from maxmargin.solvers.joint import JointSolution, joint_problem, make_joint_solver
from maxmargin.space import Bias, in_memory
from maxmargin.svm.base import CertifiedMachine, Vector
from maxmargin.svm.calibration import fit_steepness
from maxmargin.svm.held_out import folds
from maxmargin.svm.machines import Task, solve_all, split, was_interrupted
from maxmargin.svm.progress import FitProgress
from maxmargin.svm.readings import free_and_bounded, multiplier_range, one_or_all
from maxmargin.undisturbed import undisturbed

SHARED = ("loss", "C", "tol", "fit_intercept", "penalty_scale", "penalty", "power")  # by all machines of a fit


class LinearClassifier(LinearClassifierMixin, CertifiedMachine):
    """Fit, store and predict; a subclass says which loss, and which names the schemes have."""

    _joint: str  # value of multi_class that asks for one machine for all classes

    def _loss(self) -> Loss:
        raise NotImplementedError

    def _scheme(self, n_classes: int) -> str:
        """ "ovr", "ovo" or the joint scheme."""
        return str(self.multi_class)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Any:
        if y is None:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        progress = FitProgress(self, self.verbose, self.tol)
        y = one_column(y)
        loss = self._loss()
        bias = make_bias(self.fit_intercept, self.penalize_intercept, self.intercept_scaling)
        C = positive_number("C", self.C, infinite=True)
        check_penalty(self.penalty, loss, hard=math.isinf(C))
        n_threads = effective_threads(self.n_threads)
        validate_data(self, X, skip_check_array=True)  # names and number of columns, for predict
        data = LabelledRows.from_arrays(X, y, sample_weight, self.class_weight, n_threads)
        self._fitted_scheme = scheme = self._scheme(len(data.classes))
        progress.begin(X, y)
        if scheme == self._joint and len(data.classes) > 2:
            interrupted = self._fit_joint(data, C, bias, n_threads, progress)
        else:
            interrupted = self._fit_machines(data, scheme, C, loss, bias, n_threads, progress)
        self._n_rows_seen = len(data.position)
        # For whoever certifies the saved model.
        self._sample_weight = None if sample_weight is None else check_weights(sample_weight, len(data.position))
        if interrupted:
            raise KeyboardInterrupt
        self._calibrate(X, y, data, scheme)
        progress.end()
        self._warn_if_unfinished(self.solution_)
        return self

    # --- one or several two-class machines --------------------------------------------------------------------

    def _fit_machines(
        self, data: LabelledRows, scheme: str, C: float, loss: Loss, bias: Bias, n_threads: int, progress: FitProgress
    ) -> bool:
        if scheme == self._joint:  # two classes: w = w₁ − w₂ makes it the two-class machine of twice the C
            C = self._joint_factor * C
        tasks = split(data, scheme, C=C, loss=loss, penalty=self.penalty, bias=bias)
        starts = self._previous(len(tasks), len(data.position))
        seed = self._seed()
        if len(tasks) > 1:
            self._make_solver(tasks[0].problem, 1, seed)  # raises before any thread starts if the solver does not fit
        with undisturbed(data.space):
            solutions, watch = solve_all(
                tasks, lambda problem, threads: self._make_solver(problem, threads, seed), starts, n_threads,
                self.max_seconds, progress,
            )  # fmt: skip
        n = len(data.position)
        for k, (task, solution) in enumerate(zip(tasks, solutions, strict=True)):
            if solution.status is Status.INFEASIBLE:
                solutions[k] = separated_anyway(task, solution, side_labels(data.classes, scheme, k), n)
        signed = np.stack([task.spread(task.problem.y * s.alpha, n) for task, s in zip(tasks, solutions, strict=True)])
        self._store(
            data.classes, solutions[0] if len(solutions) == 1 else Solutions(tuple(solutions), watch.seconds), signed
        )
        self._store_readings(tasks, solutions)
        return was_interrupted(solutions, watch)

    _joint_factor = 2.0

    def _store(self, classes: NDArray[Any], solution: Solution | Solutions, signed_alpha: Vector) -> None:
        """Set the fitted attributes; ``signed_alpha`` is y_i alpha_i of every machine and row."""
        signed_alpha = np.atleast_2d(signed_alpha)
        parts = list(solution) if isinstance(solution, Solutions) else [solution]
        self.classes_ = classes
        self.coef_ = np.stack([part.w for part in parts])  # the certificate keeps its own
        self.intercept_ = np.array([part.b for part in parts])
        self.support_ = np.flatnonzero(signed_alpha.any(axis=0))
        self.dual_coef_ = signed_alpha[:, self.support_]
        self.n_iter_ = solution.n_iter
        self.solution_: Any = solution
        if len(parts) == 1:
            self.certificate_: Any = self._claim(parts[0], classes, self._class_weight_claimed(), parts[0].alpha)
            return
        scheme = self._fitted_scheme
        claims = tuple(
            self._claim(part, np.array([False, True]), None, np.abs(row))
            for part, row in zip(parts, signed_alpha, strict=True)
        )
        first = claims[0]
        shared = {name: getattr(first, name) for name in SHARED}
        self.certificate_ = CombinedCertificate(
            parts=claims, scheme=scheme, classes=classes, class_weight=self._class_weight_claimed(), **shared
        )

    def _store_readings(self, tasks: list[Task], solutions: list[Solution]) -> None:
        free, bounded = [], []
        for task, solution in zip(tasks, solutions, strict=True):
            where = free_and_bounded(solution.alpha, *multiplier_range(task.problem))
            own = where if task.chosen is None else tuple(task.chosen[rows] for rows in where)
            free.append(own[0])
            bounded.append(own[1])
        self._readings = one_or_all(free), one_or_all(bounded)

    @property
    def free_(self) -> Any:
        """Rows with 0 < alpha_i < C c_i: of the hinge loss, on the margin. Of several machines, a list of one each."""
        return self._reading(0)

    @property
    def bounded_(self) -> Any:
        """Rows with alpha_i = C c_i: of the hinge loss, those that lie beyond the margin, ``slacks(X, y) > 0``."""
        return self._reading(1)

    def _reading(self, which: int) -> Any:
        check_is_fitted(self)
        if "_readings" not in self.__dict__:
            raise AttributeError("rows are told apart by fits of two classes or of several machines")
        return self._readings[which]

    @property
    def margin_(self) -> Vector:
        """1/‖w‖ of every hyperplane: how far from it the margin begins."""
        check_is_fitted(self)
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / np.linalg.norm(self._dense_coef, axis=1))

    @property
    def objective_(self) -> Any:
        """The value of the problem above at what was found; of several machines, one each."""
        check_is_fitted(self)
        parts = self.solution_
        return np.array([part.primal for part in parts]) if isinstance(parts, Solutions) else float(parts.primal)

    def _class_weight_claimed(self) -> Any:
        return dict(self.class_weight) if isinstance(self.class_weight, dict) else self.class_weight

    def _claim(self, part: Solution, classes: NDArray[Any], class_weight: Any, alpha: Vector) -> OptimalityCertificate:
        loss, C = self._loss(), float(self.C)
        if (
            len(self.classes_) == 2 and self.multi_class == self._joint
        ):  # called by fit only: the parameters are its own
            C *= self._joint_factor
        return OptimalityCertificate(
            coef=part.w,
            intercept=part.b,
            alpha=alpha,
            primal=part.primal,
            dual=part.dual,
            gap=part.gap,
            loss="hinge" if np.inf == C else loss.name,
            C=C,
            classes=classes,
            tol=float(self.tol),
            class_weight=class_weight,
            fit_intercept=bool(self.fit_intercept),
            penalty_scale=self._penalty_scale,
            penalty=self.penalty,
            power=float(getattr(loss, "power", np.nan)),
        )

    # --- one machine for all classes --------------------------------------------------------------------------

    def _fit_joint(self, data: LabelledRows, C: float, bias: Bias, n_threads: int, progress: FitProgress) -> bool:
        problem = joint_problem(data, C=C, loss=self._joint, bias=bias)
        old = getattr(self, "solution_", None) if self.warm_start else None
        start = old if isinstance(old, JointSolution) and old.alpha.shape == problem.shape else None
        watch = Watch(self.max_seconds, progress)
        solver = make_joint_solver(
            self.solver,
            self._joint,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            n_threads=n_threads,
            seed=self._seed(),
        )
        with undisturbed(problem.space):
            solution = solver.solve(problem, start=start, watch=watch)
        self._store_joint(data.classes, solution)
        return solution.status is Status.INTERRUPTED and not watch.stop_requested

    def _store_joint(self, classes: NDArray[Any], solution: JointSolution) -> None:
        self.classes_ = classes
        self.__dict__.pop("_readings", None)
        self.coef_, self.intercept_ = solution.W.copy(), solution.b.copy()
        self.support_ = np.flatnonzero(solution.alpha.any(axis=1))
        self.dual_coef_ = solution.alpha[self.support_].T
        self.n_iter_ = solution.n_iter
        self.solution_ = solution
        self.certificate_ = OptimalityCertificate(
            coef=solution.W,
            intercept=solution.b,
            alpha=solution.alpha,
            primal=solution.primal,
            dual=solution.dual,
            gap=solution.gap,
            loss=self._joint,
            C=float(self.C),
            classes=classes,
            tol=float(self.tol),
            class_weight=self._class_weight_claimed(),
            fit_intercept=bool(self.fit_intercept),
            penalty_scale=self._penalty_scale,
        )

    # --- using it ---------------------------------------------------------------------------------------------

    def _calibrate(self, X: Any, y: Any, data: LabelledRows, scheme: str) -> None:
        """Learn the steepness of the probabilities from scores of held-out rows, where the machine asks for it."""
        self.__dict__.pop("steepness_", None)
        if not getattr(self, "probability", False):
            return
        fold, n_folds = folds(data)
        weight = check_weights(self._sample_weight, len(data.position))
        scores: list[Vector] = []
        rows: list[NDArray[np.intp]] = []
        for part in range(n_folds):
            learn, test = np.flatnonzero((fold >= 0) & (fold != part)), np.flatnonzero(fold == part)
            other = clone(self).set_params(probability=False, verbose=0, warm_start=False)
            forget_listeners(other)  # they hear of one fit, not of six
            other._fit(data.space.X[learn], np.asarray(y)[learn], weight[learn])
            scores.append(np.asarray(other.decision_function(data.space.X[test])))
            rows.append(test)
        if not rows:  # nothing can be held out
            scores, rows = [np.asarray(self.decision_function(data.space.X))], [np.arange(len(fold))]
        order = np.concatenate(rows)
        self.steepness_ = fit_steepness(np.concatenate(scores), data.position[order], data.weight[order])

    def decision_function(self, X: Any) -> Any:
        """Scores ⟨w, x⟩ + b: one per row for two classes (positive means ``classes_[1]``), one per class for more."""
        check_positions(X)
        if getattr(self, "_fitted_scheme", "ovr") != "ovo" or len(self.classes_) <= 2:
            return super().decision_function(X)
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        scores = np.asarray(X @ self._dense_coef.T) + self.intercept_
        # The second class of a pair is the positive one.
        return ovr_decision_function(scores > 0.0, scores, len(self.classes_))

    def predict(self, X: Any) -> Any:
        """The class of each row; a score of exactly 0 goes to ``classes_[0]``."""
        return super().predict(X)

    def _decided(self, scores: Vector) -> NDArray[np.intp]:
        return (scores > 0.0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)

    def margins(self, X: Any, y: Any) -> Vector:
        """How far each row is on the side of its own class.

        Two classes: y f(x), with y = −1 or +1. More: the score of the row's class less the best other score.
        """
        scores = np.asarray(self.decision_function(X))
        labels = np.asarray(y).ravel()
        if labels.shape != scores.shape[:1]:
            raise InputError(f"y must have one label per row of X: {scores.shape[0]} rows, {labels.size} labels")
        unknown = ~np.isin(labels, self.classes_)
        if unknown.any():
            i = int(np.flatnonzero(unknown)[0])
            raise InputError(f"y[{i}] is {labels[i]!r}, which is none of the classes {self.classes_.tolist()}")
        position = np.searchsorted(self.classes_, labels)
        if scores.ndim == 1:
            return np.asarray((2.0 * position - 1.0) * scores)
        rows = np.arange(len(labels))
        own = scores[rows, position]
        others = scores.copy()
        others[rows, position] = -np.inf
        return np.asarray(own - others.max(axis=1))

    def slacks(self, X: Any, y: Any) -> Vector:
        """max(0, 1 − margin) of each row: 0 outside the margin, above 1 for a mistake."""
        return np.maximum(0.0, 1.0 - self.margins(X, y))


def side_labels(classes: NDArray[Any], scheme: str, machine: int) -> dict[str, Any]:
    """The labels on either side of a machine's hyperplane, and those that it is not about."""
    if scheme == "ovr" and len(classes) > 2:
        positive, negative = machine, [k for k in range(len(classes)) if k != machine]
    else:
        first, positive = list(itertools.combinations(range(len(classes)), 2))[machine]
        negative = [first]
    left_out = [k for k in range(len(classes)) if k != positive and k not in negative]
    return {
        "positive": classes[positive],
        "negative": tuple(classes[negative]),
        "left_out": tuple(classes[left_out]),
    }


def separated_anyway(task: Task, solution: Solution, labels: dict[str, Any], n_rows: int) -> Solution:
    """What to do where no hard margin was found: an error with its proof, or the hyperplane of a linear program.

    ``labels`` are the caller's, from :func:`side_labels`, so that the proof speaks of the caller's rows.
    """
    problem = task.problem
    live = np.flatnonzero(problem.cost > 0.0)
    X, y = in_memory(problem.space).X[live], problem.y[live]
    verdict = judge_separability(X, y, max_seconds=60.0)
    if verdict.separable is False:
        among = live if task.chosen is None else task.chosen[live]
        rows = tuple(among[list(verdict.rows)].tolist())
        raise NotSeparableError(
            "C=inf asks for a hyperplane without any slack, but the classes cannot be separated: under convex weights "
            f"on {len(rows)} rows their means coincide (error.proof has them). Use a finite C.",
            replace(verdict, rows=rows, n_rows=n_rows, **labels),
        )
    where, w, b = "", verdict.coef, verdict.intercept
    if not problem.bias.value:
        where, (w, b) = " through the origin", through_origin(X, y, max_seconds=60.0)
    if w is None:
        raise InputError(
            f"C=inf asks for a hyperplane{where} without any slack. None was found, and the proof that there is none "
            "could not be computed: the classes nearly touch, or there are too many rows. Scale the columns, or use a "
            "finite C."
        )
    found = separating(problem, replace(solution, w=w, b=b))
    if found is None:
        raise InputError(
            f"C=inf asks for a hyperplane without any slack. One{where} separates the classes, proven in exact "
            "arithmetic, but they lie so close for the size of the numbers that rounding hides the largest margin. "
            "Subtract a constant from columns with an offset, scale the columns, or use a finite C."
        )
    return replace(found, status=Status.NUMERICAL_LIMIT, solver=solution.solver, reason=solution.reason)

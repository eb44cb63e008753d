"""Kernel classifiers for any number of classes: machines of pairs that vote, or one machine per class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin.certificates import CombinedCertificate
from maxmargin.errors import InputError
from maxmargin.estimators import check_names, one_column, require_targets, warn
from maxmargin.foreign import forget_listeners, ovr_decision_function, with_callbacks
from maxmargin.inputs import LabelledRows, check_weights, class_factors, truth_value
from maxmargin.kernels import Kernel, Precomputed
from maxmargin.process import KeptMemory
from maxmargin.runtime import Watch, effective_threads
from maxmargin.svm.calibration import fit_steepness, probabilities
from maxmargin.svm.held_out import folds
from maxmargin.svm.kernel_base import KernelMachine, KernelProgress, Machine, Vector
from maxmargin.svm.kernel_prediction import (
    classes_in,
    most_votes,
    pair_coefficients,
    pair_layout,
    pairs,
    scores_of_pairs,
)
from maxmargin.svm.machines import Task, was_interrupted
from maxmargin.svm.readings import Chosen

SCHEMES = ("ovo", "ovr")
SHAPES = ("ovr", "ovo")
SHARED = ("loss", "C", "tol", "fit_intercept", "penalty_scale", "penalty", "power")  # by all machines of a fit


def _has_probabilities(machine: Any) -> bool:
    if machine.probability == "deprecated" or not machine.probability:
        raise AttributeError(f"predict_proba needs {type(machine).__name__}(probability=True), set before fit")
    return True


class KernelClassifier(ClassifierMixin, KernelMachine):
    """Fit, store and predict; a subclass says which problems the labels make and what is claimed of them."""

    def _tasks(self, data: LabelledRows) -> list[Task]:
        """The two-class problems; their rows are those of ``data.space``."""
        raise NotImplementedError

    def _claim(self, part: Any, kernel: Kernel, classes: NDArray[Any], class_weight: Any, alpha: Vector) -> Any:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        self._check_common()
        if self.multi_class not in SCHEMES:
            raise InputError(f"multi_class must be one of {SCHEMES}, got {self.multi_class!r}")
        if self.decision_function_shape not in SHAPES:
            raise InputError(f"decision_function_shape must be one of {SHAPES}, got {self.decision_function_shape!r}")
        truth_value("break_ties", self.break_ties)
        if self.probability != "deprecated":
            truth_value("probability", self.probability)
            name = type(self).__name__
            warn(
                "the probability parameter is deprecated, as in scikit-learn 1.9, and will go when it goes there. Use "
                f"CalibratedClassifierCV({name}(), ensemble=False) instead of {name}(probability=True)",
                FutureWarning,
            )

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Find the machines.

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

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Any:
        progress = KernelProgress(self, self.verbose, self.tol)
        n_threads = effective_threads(self.n_threads)
        y = one_column(y)
        data = LabelledRows.from_arrays(X, y, sample_weight, self.class_weight, n_threads)
        weight = check_weights(sample_weight, data.space.n)
        kernel = self._make_kernel(data.space, weight)
        rows, order = self._kernel_rows(data.space, kernel, n_threads), np.arange(data.space.n)
        if len(data.classes) > 2 and self.multi_class == "ovo":  # so that the rows of a pair are two runs of rows
            order = np.argsort(data.position, kind="stable")
            rows = rows.take(order)
        tasks = self._tasks(LabelledRows(rows, data.position[order], data.classes, data.weight[order]))
        check_names(self, X)
        progress.begin(X, y)
        machines, watch = self._solve(data.space, tasks, order, n_threads, progress)
        self._store(data, kernel, machines, watch)
        self._store_class_weight(data, weight)
        if was_interrupted([machine.solution for machine in machines], watch):
            raise KeyboardInterrupt
        self._calibrate(data, y, weight)
        progress.end()
        self._warn_if_unfinished()
        return self

    # --- what is kept -----------------------------------------------------------------------------------------

    def _store(self, data: LabelledRows, kernel: Kernel, machines: list[Machine], watch: Watch) -> None:
        k, n = len(data.classes), data.space.n
        involved = np.zeros(n, dtype=np.bool_)
        for machine in machines:
            involved[machine.rows[machine.solution.w != 0.0]] = True
        support = np.flatnonzero(involved)
        support = support[np.argsort(data.position[support], kind="stable")]  # grouped by class
        self.classes_ = data.classes
        self.n_support_ = np.bincount(data.position[support], minlength=k).astype(np.int32)
        self._fitted_scheme = self.multi_class if k > 2 else "two classes"
        self.intercept_ = np.array([machine.scale * machine.solution.b for machine in machines])
        if self._fitted_scheme == "ovo":  # a score above zero means the first class of the pair
            self.intercept_ = -self.intercept_
            lines = [(machine.rows, -machine.coefficients) for machine in machines]
            dual = pair_layout(lines, data.position, support, k)
        else:
            dual = np.stack([machine.coefficients[support] for machine in machines])
        self.n_iter_ = np.array([max(1, machine.solution.n_iter) for machine in machines])
        self._store_machines(data.space, kernel, support, dual, machines, watch)
        self.certificate_ = self._certificate(machines, n)

    def _store_class_weight(self, data: LabelledRows, weight: Vector) -> None:
        factors = class_factors(self.class_weight, data.classes, data.position, weight)
        first = np.unique(data.position, return_index=True)[1]
        self.class_weight_ = np.ones(len(data.classes)) * (factors if isinstance(factors, float) else factors[first])

    def _certificate(self, machines: list[Machine], n_rows: int) -> Any:
        class_weight = dict(self.class_weight) if isinstance(self.class_weight, dict) else self.class_weight
        if len(machines) == 1:
            part = machines[0]
            return self._claim(part.solution, self.kernel_, self.classes_, class_weight, part.solution.alpha)
        sides = np.array([False, True])
        claims = tuple(self._claim(m.solution, self.kernel_, sides, None, m.spread(n_rows)) for m in machines)
        shared = {name: getattr(claims[0], name) for name in SHARED}
        return CombinedCertificate(
            parts=claims, scheme=self.multi_class, classes=self.classes_, class_weight=class_weight, **shared
        )

    def _lines(self) -> Any:
        if self._fitted_scheme != "ovo":
            return self.dual_coef_
        return pair_coefficients(self._dense_dual, self.n_support_)

    def _sums_of(self, X: Any) -> Vector:
        if self._fitted_scheme != "ovo":
            return super()._sums_of(X)
        dual = self._dense_dual
        # A class's support vectors take part in k − 1 of the k (k − 1)/2 machines: the others are not looked at.
        parts = [(own, dual[:, own].T) for own in classes_in(self.n_support_)]
        return scores_of_pairs(self._sums_over(X, parts))

    # --- readings ---------------------------------------------------------------------------------------------

    def _beyond(self, scores: Vector) -> Vector:
        owner = np.repeat(np.arange(len(self.classes_)), self.n_support_)
        if self._fitted_scheme == "ovo":
            signs = np.stack([(owner == i) * 1.0 - (owner == j) for i, j in pairs(len(self.classes_))], axis=1)
        elif self._fitted_scheme == "ovr":
            signs = np.where(owner[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        else:
            signs = np.where(owner == 1, 1.0, -1.0)[:, None]
        return 1.0 - signs * scores

    @property
    def margin_(self) -> Vector:
        """1/‖w‖ of every machine: how far from its surface, in the kernel's space, the margin begins."""
        check_is_fitted(self)
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / self._norms)

    # --- probabilities ----------------------------------------------------------------------------------------

    def _calibrate(self, data: LabelledRows, y: Any, weight: Vector) -> None:
        """Learn the steepness of the probabilities from scores of held-out rows, where the machine asks for it."""
        self.__dict__.pop("steepness_", None)
        if self.probability == "deprecated" or not self.probability:
            return
        seed = 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))
        fold, n_folds = folds(data, seed)
        scores: list[Vector] = []
        rows: list[Chosen] = []
        X, labels = data.space.X, np.asarray(y)
        for part in range(n_folds):
            learn, test = np.flatnonzero((fold >= 0) & (fold != part)), np.flatnonzero(fold == part)
            columns = learn if isinstance(self.kernel_, Precomputed) else slice(None)
            other = self._for_a_fold()
            other._fit(X[learn][:, columns], labels[learn], weight[learn])
            scores.append(other._class_scores(X[test][:, columns]))
            rows.append(test)
        if not rows:  # nothing can be held out
            scores, rows = [self._class_scores(X)], [np.arange(len(fold))]
        order = np.concatenate(rows)
        self.steepness_ = fit_steepness(np.concatenate(scores), data.position[order], data.weight[order])

    def _for_a_fold(self) -> Any:
        """The same machine without probabilities, to be fitted to some of the rows."""
        other = clone(self).set_params(probability="deprecated", kernel=self.kernel_, verbose=0, warm_start=False)
        forget_listeners(other)  # they hear of one fit, not of six
        return other

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Vector:
        """Probability of every class, shape (n_samples, n_classes); its arg max is :meth:`predict`."""
        scores = self._machine_scores(X)
        if not hasattr(self, "steepness_"):
            raise NotFittedError("predict_proba is not available when fitted with probability=False: fit again")
        return probabilities(self._per_class(scores), self.steepness_, self._decided(scores))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Vector:
        """Logarithm of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    # --- decisions --------------------------------------------------------------------------------------------

    def _machine_scores(self, X: Any) -> Vector:
        """One score per row of two classes, else one per machine."""
        scores = self._scores_of(X)
        return scores.ravel() if len(self.classes_) == 2 else scores

    def _per_class(self, scores: Vector) -> Vector:
        """Scores of classes: of pairs, votes and a confidence that breaks ties."""
        if self._fitted_scheme != "ovo":
            return scores
        return np.asarray(ovr_decision_function(scores < 0.0, -scores, len(self.classes_)))

    def _class_scores(self, X: Any) -> Vector:
        return self._per_class(self._machine_scores(X))

    def _decided(self, scores: Vector) -> NDArray[np.intp]:
        if scores.ndim == 1:
            return (scores > 0.0).astype(np.intp)
        if self._fitted_scheme == "ovo" and not self.break_ties:
            return most_votes(scores < 0.0, len(self.classes_))
        return np.asarray(self._per_class(scores).argmax(axis=1))

    def decision_function(self, X: Any) -> Vector:
        """Scores of the rows of X.

        Two classes: one per row, positive means ``classes_[1]``. More: one per class, the votes of pairs with a
        confidence that breaks ties; with ``decision_function_shape="ovo"`` one per pair, positive means its first
        class. With ``multi_class="ovr"`` the score of every class's own machine.
        """
        if self.decision_function_shape == "ovo":
            scores = self._machine_scores(X)
            if self._fitted_scheme == "ovr":
                raise InputError("decision_function_shape='ovo' are scores of pairs, which multi_class='ovr' has not")
            return scores
        return self._class_scores(X)

    def predict(self, X: Any) -> Any:
        """The class of each row; a score of exactly 0 goes to the first class of two."""
        if self.break_ties and self.decision_function_shape == "ovo":
            raise InputError("break_ties must be False when decision_function_shape is 'ovo'")
        decided = self._decided(self._machine_scores(X))
        return self.classes_[decided]

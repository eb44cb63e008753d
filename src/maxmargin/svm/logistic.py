"""LogisticRegression: probabilities by the logistic loss, solved exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.errors import InputError
from maxmargin.foreign import with_callbacks
from maxmargin.losses import LOSSES, Loss
from maxmargin.process import KeptMemory
from maxmargin.svm.base import Vector
from maxmargin.svm.calibration import ahead, probabilities
from maxmargin.svm.classifier import LinearClassifier

SCHEMES = ("auto", "multinomial", "ovr", "ovo")


class LogisticRegression(LinearClassifier):
    """Logistic regression, solved exactly by Newton's method and certified.

    Solves
        minimise over w, b   R(w) + C Σ c_i ln(1 + exp(−y_i (⟨w, x_i⟩ + b)))

    with R(w) = ½‖w‖² or ‖w‖₁ and weights c_i; for more than two classes with the multinomial loss of all classes
    together, or split into two-class problems. The bias is not penalised unless asked.

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
        ½‖w‖² or ‖w‖₁: many weights become exactly zero.
    C : float, default=1.0
        Price of the loss.
    tol : float, default=1e-6
        Relative duality gap at which the fit counts as converged.
    fit_intercept : bool, default=True
        Whether there is a bias b.
    intercept_scaling : float, default=1.0
        Only with ``penalize_intercept=True``: the constant column whose weight is penalised.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of all rows of a class.
    random_state : int, RandomState or None, default=None
        Seed of the order in which ``dual_cd`` visits the rows; nothing else is random.
    solver : {"auto", "dual_cd", "newton", "proximal_newton"}, default="auto"
        Newton's method or dual coordinate descent (two classes, ovr, ovo) for ½‖w‖², proximal Newton for ‖w‖₁.
    max_iter : int, default=10000
        Limit on Newton steps, or epochs of coordinate descent.
    multi_class : {"auto", "multinomial", "ovr", "ovo"}, default="auto"
        More than two classes: together (penalty "l2" only), one against the rest, or one per pair. "auto" is
        "multinomial" for "l2" and "ovr" for "l1".
    verbose : int, default=0
        1 prints a line per iteration.
    warm_start : bool, default=False
        Continue from the previous fit.
    max_seconds : float or None, default=None
        Time limit.
    n_threads : int or None, default=None
        None uses what CPU affinity, cgroup and OMP_NUM_THREADS allow. The result does not depend on it.
    penalize_intercept : bool, default=False
        Penalise the bias: adds ½(b/intercept_scaling)².

    Attributes
    ----------
    coef_, intercept_, classes_, n_iter_, solution_, certificate_
        As in :class:`LinearSVC`.

    Notes
    -----
    *Guarantees.* No hyperplane has an objective below ``certificate_.dual`` (weak duality). The class of largest
    probability is the predicted one.

    References
    ----------
    Cox: The regression analysis of binary sequences, 1958. Lin, Weng, Keerthi: Trust region Newton method for
    large-scale logistic regression, 2008.

    Examples
    --------
    >>> machine = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> machine.predict_proba([[1.5]]).round(6)
    array([[0.5, 0.5]])
    """

    _joint = "multinomial"
    _joint_factor = 1.0

    def __init__(
        self,
        penalty: str = "l2",
        *,
        C: float = 1.0,
        tol: float = 1e-6,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: dict[Any, float] | str | None = None,
        random_state: Any = None,
        solver: str = "auto",
        max_iter: int = 10000,
        multi_class: str = "auto",
        verbose: int = 0,
        warm_start: bool = False,
        max_seconds: float | None = None,
        n_threads: int | None = None,
        penalize_intercept: bool = False,
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.multi_class = multi_class
        self.verbose = verbose
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.n_threads = n_threads
        self.penalize_intercept = penalize_intercept

    def _loss(self) -> Loss:
        return LOSSES["logistic"]

    def _scheme(self, n_classes: int) -> str:
        # Two classes are one machine with one hyperplane, as everywhere else.
        if self.multi_class == "auto" or n_classes == 2:
            return "ovr" if self.penalty == "l1" or n_classes == 2 else "multinomial"
        return str(self.multi_class)

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> LogisticRegression:
        """Find the hyperplane.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            float32 and float64 rows in C order are used as they are, without a copy.
        y : array-like of shape (n_samples,)
            Labels of two or more classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights c_i ≥ 0; 0 leaves a row out.
        """
        self._check_common()
        if self.multi_class not in SCHEMES:
            raise InputError(f"multi_class must be one of {SCHEMES}, got {self.multi_class!r}")
        if self.multi_class == "multinomial" and self.penalty != "l2":
            raise InputError("multi_class='multinomial' has penalty='l2' only; use 'ovr' or 'ovo'")
        with KeptMemory():
            machine: LogisticRegression = self._fit(X, y, sample_weight)
        return machine

    def predict_proba(self, X: Any) -> Vector:
        """Probability of every class, shape (n_samples, n_classes); its arg max is :meth:`predict`."""
        scores = np.asarray(self.decision_function(X))
        decided = self._decided(scores)
        if scores.ndim == 2 and self._fitted_scheme == "ovr":
            p = np.exp(-np.logaddexp(0.0, -scores))
            total = p.sum(axis=1, keepdims=True)
            return ahead(np.where(total > 0.0, p / np.where(total > 0.0, total, 1.0), 1.0 / p.shape[1]), decided)
        return probabilities(scores, 1.0, decided)

    def predict_log_proba(self, X: Any) -> Vector:
        """Logarithm of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

"""LinearSVC: the linear support vector classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from maxmargin.errors import InputError
from maxmargin.foreign import with_callbacks
from maxmargin.losses import Loss
from maxmargin.problem import margin_loss
from maxmargin.process import KeptMemory
from maxmargin.svm.base import Vector
from maxmargin.svm.calibration import probabilities
from maxmargin.svm.classifier import LinearClassifier

SCHEMES = ("ovr", "ovo", "crammer_singer")


def _has_probabilities(machine: Any) -> bool:
    if not machine.probability:
        raise AttributeError("predict_proba needs LinearSVC(probability=True), set before fit")
    return True


class LinearSVC(LinearClassifier):
    """Linear support vector classifier, solved exactly and certified.

    Solves
        minimise over w, b   R(w) + C Σ c_i max(0, 1 − y_i (⟨w, x_i⟩ + b))^p

    with R(w) = ½‖w‖² or ‖w‖₁, any power 1 ≤ p ≤ 4 and weights c_i; ``C=inf`` allows no slack at all (hard margin).
    The bias is not penalised unless asked. More than two classes are split into two-class problems or solved jointly.

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
        ½‖w‖², or ‖w‖₁ (only with ``loss="squared_hinge"``): many weights become exactly zero.
    loss : {"squared_hinge", "hinge"} or float, default="squared_hinge"
        The slack's power: 2, 1, or any number from 1 to 4.
    dual : "auto" or bool, default="auto"
        For compatibility; every solver here is primal and dual. Any other value warns.
    tol : float, default=1e-6
        Relative duality gap at which the fit counts as converged. Usually far exceeded: where it is cheap, the last
        step solves the optimality conditions to rounding level.
    C : float, default=1.0
        Price of slack; ``numpy.inf`` for the hard margin.
    multi_class : {"ovr", "ovo", "crammer_singer"}, default="ovr"
        More than two classes: one machine per class against the rest, one per pair of classes (they vote), or one for
        all classes together (Crammer and Singer; hinge loss only).
    fit_intercept : bool, default=True
        Whether there is a bias b.
    intercept_scaling : float, default=1.0
        Only with ``penalize_intercept=True``: the constant column whose weight is penalised.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of all rows of a class.
    verbose : int, default=0
        1 prints a line per iteration.
    random_state : int, RandomState or None, default=None
        Order of the coordinates in ``solver="dual_cd"``; None means always the same order.
    max_iter : int, default=10000
        Limit on iterations (interior point), epochs (coordinate descent) or steps (Newton).
    solver : {"auto", "interior_point", "dual_cd", "newton", "proximal_newton"}, default="auto"
        "auto" chooses by shape and loss; ``solution_.reason`` says how it decided.
    warm_start : bool, default=False
        Continue from the previous fit.
    max_seconds : float or None, default=None
        Time limit.
    n_threads : int or None, default=None
        None uses what CPU affinity, cgroup and OMP_NUM_THREADS allow. The result does not depend on it.
    penalize_intercept : bool, default=False
        Penalise the bias as LIBLINEAR does: adds ½(b/intercept_scaling)².
    probability : bool, default=False
        Learn probabilities from five-fold cross-validated scores; adds five fits.

    Attributes
    ----------
    coef_ : array of shape (n_machines, n_features)
        One machine for two classes; else one per class, or one per pair.
    intercept_ : array of shape (n_machines,)
    classes_ : array of shape (n_classes,)
    dual_coef_ : array of shape (n_machines, n_support)
        y_i alpha_i of the support vectors.
    support_ : array of shape (n_support,)
        Indices of rows with alpha_i ≠ 0 in any machine.
    n_iter_ : int
        Iterations, epochs and Newton steps (of the machine that took most).
    solution_ : Solution, Solutions or JointSolution
        Objective values, gap, status, history, solver and the reason for its choice.
    certificate_ : OptimalityCertificate or CombinedCertificate
        ``certificate_.verify(X, y)`` checks the claim from the data alone.
    steepness_ : float
        With ``probability=True``: p = 1/(1 + exp(−steepness_ · score)).

    Notes
    -----
    *Guarantees.* No hyperplane has an objective below ``certificate_.dual``; with ½‖w‖², ‖w − w*‖ ≤
    ``certificate_.distance_bound`` (weak duality). A weight of k equals k repetitions of a row. The class of largest
    probability is the predicted one.

    References
    ----------
    Boser, Guyon, Vapnik: A training algorithm for optimal margin classifiers, 1992. Cortes, Vapnik:
    Support-vector networks, 1995. Crammer, Singer: On the algorithmic implementation of multiclass kernel-based vector
    machines, 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> machine = LinearSVC(loss="hinge", C=0.1).fit(X / X.max(axis=0), y)
    >>> machine.solution_.status.name, machine.solution_.gap < 1e-9
    ('CONVERGED', True)
    >>> print(machine.certificate_.verify(X / X.max(axis=0), y))
    verified: no hyperplane has an objective below ...
    """

    _joint = "crammer_singer"

    def __init__(
        self,
        penalty: str = "l2",
        loss: str | float = "squared_hinge",
        *,
        dual: bool | str = "auto",
        tol: float = 1e-6,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: dict[Any, float] | str | None = None,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 10000,
        solver: str = "auto",
        warm_start: bool = False,
        max_seconds: float | None = None,
        n_threads: int | None = None,
        penalize_intercept: bool = False,
        probability: bool = False,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.n_threads = n_threads
        self.penalize_intercept = penalize_intercept
        self.probability = probability

    def _loss(self) -> Loss:
        return margin_loss("hinge" if self.multi_class == "crammer_singer" else self.loss)

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> LinearSVC:
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
        self._check_parameters()
        with KeptMemory():
            machine: LinearSVC = self._fit(X, y, sample_weight)
        return machine

    def _check_parameters(self) -> None:
        self._check_common()
        self._check_dual()
        if self.multi_class not in SCHEMES:
            raise InputError(f"multi_class must be one of {SCHEMES}, got {self.multi_class!r}")
        if margin_loss(self.loss).name == "logistic":
            raise InputError("loss='logistic' belongs to maxmargin.LogisticRegression")
        if self.multi_class == "crammer_singer":
            self._check_joint()

    def _check_joint(self) -> None:
        if self.penalty != "l2":
            raise InputError("multi_class='crammer_singer' has penalty='l2' only")
        if np.inf == self.C:
            raise InputError("multi_class='crammer_singer' needs a finite C; use 'ovr' for the hard margin")
        if self.loss not in ("hinge", "squared_hinge", 1, 1.0):
            raise InputError(f"multi_class='crammer_singer' has the hinge loss only, got loss={self.loss!r}")

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Vector:
        """Probability of every class, shape (n_samples, n_classes); its arg max is :meth:`predict`."""
        scores = np.asarray(self.decision_function(X))
        return probabilities(scores, self.steepness_, self._decided(scores))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Vector:
        """Logarithm of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

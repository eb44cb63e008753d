"""SVC: the support vector classifier with a kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.certificates import ExpansionCertificate
from maxmargin.inputs import LabelledRows, positive_number
from maxmargin.kernels import Kernel
from maxmargin.problem import check_penalty, make_bias, margin_loss
from maxmargin.svm.kernel_base import Vector
from maxmargin.svm.kernel_classifier import KernelClassifier
from maxmargin.svm.machines import Task, split


class SVC(KernelClassifier):
    """Support vector classifier with a kernel, solved exactly and certified.

    Solves
        minimise over w, b   ½‖w‖² + C Σ c_i max(0, 1 − y_i (⟨w, φ(x_i)⟩ + b))^p

    in the space of the kernel, ⟨φ(x), φ(z)⟩ = k(x, z), with weights c_i. The bias is not penalised. The solution is
    f(x) = Σ y_i alpha_i k(x_i, x) + b. More than two classes are split into two-class problems. Parameters, attributes
    and signs are those of scikit-learn's SVC, but for ``tol``.

    Parameters
    ----------
    C : float, default=1.0
        Price of slack.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, callable or Kernel, default="rbf"
        A callable gets two arrays of rows and returns the matrix of values. "precomputed" means that X holds values of
        the kernel: one row per sample and one column per sample learned from.
    degree : float, default=3
        Of "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Of "poly", "rbf" and "sigmoid". "scale" is 1 / (columns × variance of X, weighted), "auto" is 1 / columns.
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    shrinking : bool, default=True
        For compatibility. It has no effect on the answer: the solver decides itself which rows it sets aside.
    probability : bool, default="deprecated"
        Learn probabilities from five-fold cross-validated scores; adds five fits. Deprecated, as in scikit-learn 1.9.
    tol : float, default=1e-6
        Relative duality gap at which the fit counts as converged.
    cache_size : float, default=2000
        Megabytes for values of the kernel.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of all rows of a class.
    verbose : int, default=False
        1 prints a line per report of the solver.
    max_iter : int, default=-1
        Limit on iterations; −1 means none.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        More than two classes: one score per class, votes with a confidence, or the scores of all pairs.
    break_ties : bool, default=False
        Of votes: the class with the most confidence wins, not the first.
    random_state : int, RandomState or None, default=None
        Which rows are held out for probabilities; None means always the same.
    solver : {"auto", "pair_steps", "interior_point", "nystrom", "adatron", "smo_textbook"}, default="auto"
        "auto" chooses by the problem; ``solution_.reason`` says how it decided.
    multi_class : {"ovo", "ovr"}, default="ovo"
        More than two classes: one machine per pair of classes (they vote), or one per class against the rest.
    loss : {"hinge", "squared_hinge", "logistic"} or float, default="hinge"
        The slack's power p: 1, 2, or any number from 1 to 4; or ln(1 + exp(−y f)) in its place.
    kernel_params : mapping, optional
        Keywords for a callable kernel.
    max_seconds : float or None, default=None
        Time limit.
    n_threads : int or None, default=None
        None uses what CPU affinity, cgroup and OMP_NUM_THREADS allow. The result does not depend on it.
    warm_start : bool, default=False
        Continue from the previous fit.

    Attributes
    ----------
    support_ : array of shape (n_support,)
        Indices of rows with alpha_i > 0 in any machine, grouped by class.
    support_vectors_ : array or sparse matrix of shape (n_support, n_features)
        Empty if the kernel is precomputed.
    n_support_ : array of shape (n_classes,)
    dual_coef_ : array or sparse matrix of shape (n_classes - 1, n_support)
        y_i alpha_i; of more than two classes in LIBSVM's layout, which
        :mod:`maxmargin.svm.kernel_prediction` explains. With ``multi_class="ovr"`` one line per class.
    intercept_ : array of shape (n_machines,)
    coef_ : array or sparse matrix of shape (n_machines, n_features)
        The weights, with the linear kernel only.
    classes_, class_weight_ : arrays of shape (n_classes,)
    n_iter_ : array of shape (n_machines,)
    fit_status_ : int
        0 if every machine converged, 1 otherwise.
    shape_fit_ : tuple of int
    kernel_ : Kernel
        The kernel with its parameters as numbers.
    free_, bounded_ : arrays of indices, or a list of one per machine
        Rows with 0 < alpha_i < C c_i, which lie on the margin, y f(x) = 1; and rows with alpha_i = C c_i.
    violating_ : array of indices, or a list of one per machine
        Rows beyond the margin, y f(x) < 1.
    margin_ : array of shape (n_machines,)
        1/‖w‖.
    objective_ : float, or array of shape (n_machines,)
        The value of the problem above.
    solution_ : Solution or Solutions
        Objective values, gap, status, history, solver and the reason for its choice.
    certificate_ : ExpansionCertificate or CombinedCertificate
        ``certificate_.verify(X, y)`` checks the claim from the data alone. It holds multipliers and no rows.
    steepness_ : float
        With ``probability=True``: p = 1/(1 + exp(−steepness_ · score)).

    Notes
    -----
    *Guarantees.* No function of the kernel's space has an objective below ``certificate_.dual`` (weak duality). A
    weight of k equals k repetitions of a row. The class of largest probability is the predicted one. A kernel that is
    no inner product leaves a stationary point, and its gap is not a number.

    *Support vectors* are the rows with alpha_i > 0. Some texts take all rows with y f(x) ≤ 1 instead: these are the
    same and, possibly, rows that happen to lie on the margin with alpha_i = 0.

    References
    ----------
    Boser, Guyon, Vapnik: A training algorithm for optimal margin classifiers, 1992. Cortes, Vapnik: Support-vector
    networks, 1995. Chang, Lin: LIBSVM, a library for support vector machines, 2011.

    Examples
    --------
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0]
    >>> machine = SVC(C=10.0, gamma=1.0).fit(X, y)
    >>> machine.predict(X), machine.support_
    (array([0, 1, 1, 0]), array([0, 3, 1, 2]))
    >>> print(machine.certificate_.verify(X, y))
    verified: ...
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: float = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool | str = "deprecated",
        tol: float = 1e-6,
        cache_size: float = 2000,
        class_weight: dict[Any, float] | str | None = None,
        verbose: int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        solver: str = "auto",
        multi_class: str = "ovo",
        loss: str | float = "hinge",
        kernel_params: Mapping[str, Any] | None = None,
        max_seconds: float | None = None,
        n_threads: int | None = None,
        warm_start: bool = False,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.solver = solver
        self.multi_class = multi_class
        self.loss = loss
        self.kernel_params = kernel_params
        self.max_seconds = max_seconds
        self.n_threads = n_threads
        self.warm_start = warm_start

    def _check_parameters(self) -> None:
        super()._check_parameters()
        C = positive_number("C", self.C, infinite=True)
        check_penalty("l2", margin_loss(self.loss), hard=math.isinf(C))

    def _tasks(self, data: LabelledRows) -> list[Task]:
        loss, bias = margin_loss(self.loss), make_bias(True, False, 1.0)
        return split(data, self.multi_class, C=float(self.C), loss=loss, penalty="l2", bias=bias)

    def _claim(
        self, part: Any, kernel: Kernel, classes: NDArray[Any], class_weight: Any, alpha: Vector
    ) -> ExpansionCertificate:
        loss = margin_loss(self.loss)
        return ExpansionCertificate(
            kernel=kernel.structure(),
            alpha=alpha,
            intercept=part.b,
            stretch=part.stretch,
            primal=part.primal,
            dual=part.dual,
            gap=part.gap,
            loss=loss.name,
            C=float(self.C),
            classes=classes,
            tol=float(self.tol),
            class_weight=class_weight,
            power=float(getattr(loss, "power", np.nan)),
        )

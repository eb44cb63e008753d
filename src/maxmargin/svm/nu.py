"""NuSVC and NuSVR: the number ν bounds the share of rows that are beyond the margin, or outside of the tube."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.certificates import NuCertificate
from maxmargin.errors import InputError
from maxmargin.estimators import warn
from maxmargin.inputs import LabelledRows, positive_number
from maxmargin.kernels import Kernel
from maxmargin.solution import Status
from maxmargin.solvers.nu_machines import NuProblem
from maxmargin.solvers.run import STOPPED
from maxmargin.svm.kernel_base import Vector
from maxmargin.svm.kernel_classifier import KernelClassifier
from maxmargin.svm.kernel_prediction import pairs
from maxmargin.svm.machines import Task
from maxmargin.svm.svr import KernelRegressor

NO_MARGIN = 1e-12  # of the largest possible score: a margin this small is none
ALMOST = 1.0 - 1e-12  # of the largest ν that is feasible, for a part of the rows that has less of a class


def check_nu(nu: Any) -> float:
    """ν as a number above 0 and at most 1.

    Examples
    --------
    >>> check_nu(1)
    1.0
    """
    try:
        number = positive_number("nu", nu)
    except InputError:
        number = 2.0
    if number > 1.0:
        raise InputError(f"nu must be a number above 0 and at most 1, got {nu!r}")
    return number


def zero_to_cost(problem: Any) -> tuple[Vector, Vector]:
    """The range of the multipliers of a machine that has no loss but ν."""
    return np.zeros(problem.n_rows), problem.cost


class NuSVC(KernelClassifier):
    """ν-support vector classifier with a kernel, solved exactly and certified.

    Solves
        minimise over w, b, ρ ≥ 0   ½‖w‖² − ν T ρ + Σ c_i max(0, ρ − y_i (⟨w, φ(x_i)⟩ + b)),   T = Σ c_i

    in the space of the kernel, ⟨φ(x), φ(z)⟩ = k(x, z), with weights c_i. What is kept is divided by ρ, as in
    scikit-learn: it is the :class:`SVC` of C = 1/ρ. More than two classes are split into two-class problems.
    Parameters, attributes and signs are those of scikit-learn's NuSVC, but for ``tol``, and for class weights, which
    multiply c_i here.

    Parameters
    ----------
    nu : float, default=0.5
        0 < ν ≤ 1: at most a share ν of the weight is beyond the margin, and at least that share has support vectors.
        No more than twice the share of the smaller class is feasible.
    kernel, degree, gamma, coef0, shrinking, probability
        As in :class:`SVC`.
    tol : float, default=1e-6
        Relative duality gap at which the fit counts as converged.
    cache_size, class_weight, verbose, max_iter, decision_function_shape, break_ties, random_state
        As in :class:`SVC`.
    solver : {"auto", "pair_steps"}, default="auto"
    multi_class, kernel_params, max_seconds, n_threads, warm_start
        As in :class:`SVC`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, classes_, class_weight_, n_iter_
        As in :class:`SVC`; ``dual_coef_`` is y_i alpha_i / ρ.
    fit_status_, shape_fit_, kernel_, steepness_
        As in :class:`SVC`.
    free_, bounded_, violating_ : arrays of indices, or a list of one per machine
        Rows with 0 < alpha_i < c_i, on the margin; with alpha_i = c_i; and beyond the margin.
    margin_ : array of shape (n_machines,)
        ρ/‖w‖.
    objective_ : float, or array of shape (n_machines,)
        The value of the problem above.
    solution_ : NuSolution or Solutions
        As solved for, before the division: ``solution_.rho`` is ρ.
    certificate_ : NuCertificate or CombinedCertificate
        ``certificate_.verify(X, y)`` checks the claim from the data alone. It holds multipliers and no rows.

    Notes
    -----
    *Guarantees.* No (w, b, ρ) has an objective below ``certificate_.dual`` (weak duality). A weight of k equals k
    repetitions of a row. The class of largest probability is the predicted one.

    References
    ----------
    Schölkopf, Smola, Williamson, Bartlett: New support vector algorithms, 2000. Chang, Lin: Training ν-support vector
    classifiers: theory and algorithms, 2001.

    Examples
    --------
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], ["no", "no", "yes", "yes"]
    >>> machine = NuSVC(nu=0.5, kernel="linear").fit(X, y)
    >>> machine.predict([[-3.0], [0.5]])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
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
        kernel_params: Mapping[str, Any] | None = None,
        max_seconds: float | None = None,
        n_threads: int | None = None,
        warm_start: bool = False,
    ) -> None:
        self.nu = nu
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
        self.kernel_params = kernel_params
        self.max_seconds = max_seconds
        self.n_threads = n_threads
        self.warm_start = warm_start

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_nu(self.nu)

    def _tasks(self, data: LabelledRows) -> list[Task]:
        k = len(data.classes)
        if k > 2 and self.multi_class == "ovr":
            sides = [(f"all classes but {label!r} together", f"class {label!r}") for label in data.classes.tolist()]
            return [Task(self._problem(data, data.position == m, sides[m])) for m in range(k)]
        if k == 2:
            return [Task(self._problem(data, data.position == 1, _named(data.classes)))]
        tasks = []
        for i, j in pairs(k):
            part, chosen = data.pair(i, j)
            tasks.append(Task(self._problem(part, part.position == 1, _named(part.classes)), chosen))
        return tasks

    def _problem(self, data: LabelledRows, second: NDArray[np.bool_], sides: tuple[str, str]) -> Any:
        """One machine's problem, if it is feasible; ``sides`` are its classes in words."""
        shares = np.array([data.weight[~second].sum(), data.weight[second].sum()])
        smaller, total = int(shares.argmin()), float(shares.sum())
        nu, most = check_nu(self.nu), 2.0 * float(shares.min()) / total
        if self.__dict__.get("_may_lower_nu", False):
            nu = min(nu, ALMOST * most)
        if nu > most / ALMOST:
            raise InputError(
                f"specified nu is infeasible: nu={nu:g} needs half of that share of the weight, {nu / 2.0 * total:g} "
                f"of {total:g}, on either side, but {sides[smaller]} has only {shares[smaller]:g}. Lower nu to "
                f"{most:g} at most, or raise the weights there."
            )
        rows: Any = data.space
        return NuProblem(rows, "nu_hinge", np.where(second, 1.0, -1.0), data.weight, nu)

    def _range(self, problem: Any) -> tuple[Vector, Vector]:
        return zero_to_cost(problem)

    def _scale(self, problem: Any, solution: Any) -> float:
        largest = float(np.abs(solution.alpha).sum() * np.abs(problem.space.diagonal).max())
        if solution.rho > NO_MARGIN * largest:
            return 1.0 / float(solution.rho)
        if solution.status not in (*STOPPED, Status.ITERATION_LIMIT):
            warn(
                f"nu={self.nu!r} is too small: at most that share of the weight may be beyond the margin, but the "
                "classes overlap more than that, so the best function is w = 0, which has no margin. Do not use the "
                "model; raise nu."
            )
        return 1.0

    def _for_a_fold(self) -> Any:
        other = super()._for_a_fold()
        other._may_lower_nu = True  # a fold may have less of a class
        return other

    def _claim(
        self, part: Any, kernel: Kernel, classes: NDArray[Any], class_weight: Any, alpha: Vector
    ) -> NuCertificate:
        return NuCertificate(
            kernel=kernel.structure(),
            kind="nu_hinge",
            alpha=alpha,
            intercept=part.b,
            stretch=part.stretch,
            rho=part.rho,
            nu=float(self.nu),
            primal=part.primal,
            dual=part.dual,
            gap=part.gap,
            tol=float(self.tol),
            classes=classes,
            class_weight=class_weight,
        )


def _named(classes: NDArray[Any]) -> tuple[str, str]:
    """Two classes as a message calls them."""
    first, second = (f"class {label!r}" for label in classes.tolist())
    return first, second


class NuSVR(KernelRegressor):
    """ν-support vector regression with a kernel, solved exactly and certified.

    Solves
        minimise over w, b, ε ≥ 0   ½‖w‖² + C (ν T ε + Σ c_i max(0, |y_i − ⟨w, φ(x_i)⟩ − b| − ε)),   T = Σ c_i

    in the space of the kernel, ⟨φ(x), φ(z)⟩ = k(x, z), with weights c_i: :class:`SVR` with a tube whose width is found.
    Parameters, attributes and signs are those of scikit-learn's NuSVR, but for ``tol``.

    Parameters
    ----------
    nu : float, default=0.5
        0 < ν ≤ 1: at most a share ν of the weight is outside of the tube, and at least that share has support vectors.
    C : float, default=1.0
        Price of errors outside the tube, and of its width.
    kernel, degree, gamma, coef0, shrinking
        As in :class:`SVR`.
    tol : float, default=1e-6
        Relative duality gap at which the fit counts as converged.
    cache_size, verbose, max_iter, kernel_params, max_seconds, n_threads, warm_start
        As in :class:`SVR`.
    solver : {"auto", "pair_steps"}, default="auto"

    Attributes
    ----------
    epsilon_ : float
        The half-width ε of the tube.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, n_iter_, fit_status_, shape_fit_, kernel_
        As in :class:`SVR`.
    free_, bounded_, violating_, objective_
        As in :class:`SVR`.
    solution_ : NuSolution
        Objective values, gap, status, history, solver and the reason for its choice.
    certificate_ : NuCertificate
        ``certificate_.verify(X, y)`` checks the claim from the data alone. It holds multipliers and no rows.

    Notes
    -----
    *Guarantees.* No (w, b, ε) has an objective below ``certificate_.dual`` (weak duality). A weight of k equals k
    repetitions of a row.

    References
    ----------
    Schölkopf, Smola, Williamson, Bartlett: New support vector algorithms, 2000.

    Examples
    --------
    >>> machine = NuSVR(nu=0.5, C=100.0, kernel="linear").fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0])
    >>> machine.predict([[4.0]]).round(4)
    array([4.])
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: float = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-6,
        cache_size: float = 2000,
        verbose: int = False,
        max_iter: int = -1,
        solver: str = "auto",
        kernel_params: Mapping[str, Any] | None = None,
        max_seconds: float | None = None,
        n_threads: int | None = None,
        warm_start: bool = False,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.kernel_params = kernel_params
        self.max_seconds = max_seconds
        self.n_threads = n_threads
        self.warm_start = warm_start

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_nu(self.nu)

    def _task(self, rows: Any, target: Vector, cost: Vector) -> Task:
        problem: Any = NuProblem(rows, "nu_tube", target, cost, float(self.nu))
        return Task(problem)

    def _range(self, problem: Any) -> tuple[Vector, Vector]:
        return -problem.cost, problem.cost

    def _tube(self, solution: Any) -> float:
        return float(solution.epsilon)

    @property
    def epsilon_(self) -> float:
        """The half-width ε of the tube."""
        return self._half_width

    def _claim(self, part: Any, kernel: Kernel) -> NuCertificate:
        return NuCertificate(
            kernel=kernel.structure(),
            kind="nu_tube",
            alpha=part.alpha,
            intercept=part.b,
            stretch=part.stretch,
            epsilon=part.epsilon,
            nu=float(self.nu),
            C=float(self.C),
            primal=part.primal,
            dual=part.dual,
            gap=part.gap,
            tol=float(self.tol),
        )

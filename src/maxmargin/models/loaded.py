"""Machines that were read from the model files of other programs.

Such a file holds a function and nothing else: no rows but support vectors, no multipliers of all rows, no proof. What
is read from one predicts as its program does, ties included; asking for what no file holds is an error that says so.
When it is fitted, it becomes an ordinary machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import InputError
from maxmargin.kernels import Precomputed
from maxmargin.svm import SVC, SVR, LinearSVC, LinearSVR, LogisticRegression, NuSVC, NuSVR, OneClassSVM
from maxmargin.svm.kernel_prediction import classes_in, most_votes, pairs

Vector = NDArray[np.float64]
Order = NDArray[np.intp]

# What only a fit knows: attributes of machines that no file of another program holds.
OF_FITS = (
    *("certificate_", "solution_", "objective_", "free_", "bounded_", "violating_", "support_", "dual_coef_"),
    *("n_iter_", "fit_status_", "shape_fit_", "class_weight_", "epsilon_", "margin_"),
)


class NotInFileError(InputError, AttributeError):
    """A machine that was read from another program's file was asked for what no such file holds."""


class Loaded:
    """A machine with the function of another program's model file, until it is fitted."""

    _program: str
    _ordinary: type[Any]  # what it is once it is fitted
    _label_order: Order  # of the file's labels: where they are among the sorted classes

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Forget the file, and fit; the parameters are those that the file tells."""
        loaded: Any = type(self)
        machine: Any = self
        machine.__class__ = self._ordinary
        try:
            return machine.fit(X, y, sample_weight=sample_weight)
        finally:
            if "solution_" not in machine.__dict__:  # refused: nothing has changed
                machine.__class__ = loaded

    def __getattr__(self, name: str) -> Any:
        if name in OF_FITS and "intercept_" in self.__dict__:
            raise self._unknown(name)
        return object.__getattribute__(self, name)  # fails as it has before, with the same message

    def _unknown(self, name: str) -> NotInFileError:
        return NotInFileError(
            f"{name} is unknown: this {type(self).__name__} was read from a {self._program} model file, which holds a "
            "function and no proof, nor anything else of a fit. Fit a machine to the rows to have it."
        )


# --- LIBSVM -----------------------------------------------------------------------------------------------------


class LoadedKernelMachine(Loaded):
    """A machine with the function of a LIBSVM file."""

    _program = "LIBSVM"

    def _support_products(self) -> Any:
        if isinstance(self.kernel_, Precomputed):  # its values are the caller's
            raise self._unknown("what the kernel is between support vectors")
        return super()._support_products()  # type: ignore[misc]


class LoadedKernelClassifier(LoadedKernelMachine):
    """Decides ties as LIBSVM: a score of exactly 0 is the pair's second class, equal votes the file's first one."""

    def _decided(self, scores: Vector) -> Order:
        if scores.ndim == 2 and self.break_ties:
            return np.asarray(super()._decided(scores))  # type: ignore[misc]
        order = self._label_order
        if scores.ndim == 1:
            return decided_for_one(scores, order)
        where, sign = pairs_in(order)
        return order[most_votes(~(sign * scores[:, where] > 0.0), len(order))]


class LoadedSVC(LoadedKernelClassifier, SVC):
    """An :class:`~maxmargin.svm.svc.SVC` that was read from a LIBSVM file."""

    _ordinary = SVC


class LoadedNuSVC(LoadedKernelClassifier, NuSVC):
    """A :class:`~maxmargin.svm.nu.NuSVC` that was read from a LIBSVM file."""

    _ordinary = NuSVC


class LoadedSVR(LoadedKernelMachine, SVR):
    """An :class:`~maxmargin.svm.svr.SVR` that was read from a LIBSVM file."""

    _ordinary = SVR


class LoadedNuSVR(LoadedKernelMachine, NuSVR):
    """A :class:`~maxmargin.svm.nu.NuSVR` that was read from a LIBSVM file."""

    _ordinary = NuSVR


class LoadedOneClassSVM(LoadedKernelMachine, OneClassSVM):
    """A :class:`~maxmargin.svm.one_class.OneClassSVM` that was read from a LIBSVM file."""

    _ordinary = OneClassSVM

    def predict(self, X: Any) -> NDArray[np.intp]:
        """1 for rows inside, and −1 for outliers; LIBSVM counts the border among those."""
        return np.where(self.decision_function(X) > 0.0, 1, -1).astype(np.intp)


# --- LIBLINEAR --------------------------------------------------------------------------------------------------


class LoadedLinearClassifier(Loaded):
    """Decides ties as LIBLINEAR: a score of exactly 0 is the second class of two, of equal scores the file's first."""

    _program = "LIBLINEAR"

    def _decided(self, scores: Vector) -> Order:
        order = self._label_order
        return decided_for_one(scores, order) if scores.ndim == 1 else order[scores[:, order].argmax(axis=1)]

    def predict(self, X: Any) -> Any:
        """The class of each row."""
        return self.classes_[self._decided(self.decision_function(X))]


class LoadedLinearSVC(LoadedLinearClassifier, LinearSVC):
    """A :class:`~maxmargin.svm.linear.LinearSVC` that was read from a LIBLINEAR file."""

    _ordinary = LinearSVC


class LoadedLogisticRegression(LoadedLinearClassifier, LogisticRegression):
    """A :class:`~maxmargin.svm.logistic.LogisticRegression` that was read from a LIBLINEAR file."""

    _ordinary = LogisticRegression


class LoadedLinearSVR(Loaded, LinearSVR):
    """A :class:`~maxmargin.svm.regression.LinearSVR` that was read from a LIBLINEAR file."""

    _program, _ordinary = "LIBLINEAR", LinearSVR

    def slacks(self, X: Any, y: Any) -> Vector:
        """Unknown: they depend on the width of the tube, which the file does not hold."""
        raise self._unknown("epsilon")


# --- the order of the classes -----------------------------------------------------------------------------------


def label_order(machine: Any) -> Order:
    """Which of the sorted classes each label in a file is; a machine that was read keeps the order it had there.

    Of two classes the second comes first: a score above 0 means the second class here, and the first label there.
    """
    if isinstance(machine, Loaded):
        return machine._label_order
    k = len(machine.classes_)
    return np.array([1, 0]) if k == 2 else np.arange(k)


def decided_for_one(scores: Vector, order: Order) -> Order:
    """Which of two classes: the other programs give a score of exactly 0 to the file's second label.

    Examples
    --------
    >>> scores = np.array([-1.0, 0.0, 1.0])
    >>> decided_for_one(scores, np.array([1, 0])), decided_for_one(scores, np.array([0, 1]))
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    return (scores > 0.0 if order[0] == 1 else scores >= 0.0).astype(np.intp)


def pairs_in(order: Order) -> tuple[Order, Vector]:
    """Where the pairs of classes in another order are among those in the present one, and their signs.

    Examples
    --------
    >>> pairs_in(np.array([2, 0, 1]))
    (array([1, 2, 0]), array([-1., -1.,  1.]))
    """
    where = {pair: m for m, pair in enumerate(pairs(len(order)))}
    turned = [(int(order[a]), int(order[b])) for a, b in pairs(len(order))]
    places = [where[min(pair), max(pair)] for pair in turned]
    return np.array(places, dtype=np.intp), np.array([1.0 if i < j else -1.0 for i, j in turned])


def in_order(layout: Vector, sizes: NDArray[Any], order: Order) -> tuple[Vector, Order]:
    """Coefficients of pairs with the classes in another order, and which support vector each column is then.

    Examples
    --------
    >>> in_order(np.array([[1.0, 2.0, -3.0]]), np.array([2, 1]), np.array([1, 0]))
    (array([[ 3., -1., -2.]]), array([2, 0, 1]))
    """
    own, rank = list(classes_in(sizes)), np.argsort(order)
    blocks = []
    for a, i in enumerate(order.tolist()):
        others = np.delete(order, a)  # line by line, the classes that a class has its machines with
        sign = np.where((rank[others] > a) == (others > i), 1.0, -1.0)
        blocks.append(sign[:, None] * layout[others - (others > i), own[i]])
    columns = [np.arange(own[i].start, own[i].stop) for i in order.tolist()]
    return np.concatenate(blocks, axis=1), np.concatenate(columns)

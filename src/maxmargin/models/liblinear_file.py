"""LIBLINEAR's model files, as its program train writes and predict reads them.

Layout
    solver_type, nr_class; label, the classes in the order in which train met them, not of a regression; nr_feature
    bias     value of a constant column that comes after all others; below 0: there is none
    w        then one line per column: its weights in one machine of two classes or a regression, where a score above 0
             means the first class, or else in the machines of all classes
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from maxmargin.data.files import atomic_write
from maxmargin.errors import InputError
from maxmargin.estimators import warn
from maxmargin.models.loaded import LoadedLinearSVC, LoadedLinearSVR, LoadedLogisticRegression, label_order
from maxmargin.models.text_model import (
    LARGEST,
    TextModel,
    Vector,
    check_fitted,
    counted,
    dense,
    label_numbers,
    number_text,
    read_text,
    width_of,
)
from maxmargin.svm import LinearSVC, LinearSVR, LogisticRegression

LiblinearMachine = LinearSVC | LinearSVR | LogisticRegression
PROGRAM = "LIBLINEAR"
JOINT = "MCSVM_CS"  # the only one that has a machine of every class where there are two

# Which machine, loss and penalty a solver stands for; the first of several is the one that is written.
SOLVERS: dict[str, tuple[type[Any], str, str]] = {
    "L2R_L2LOSS_SVC": (LoadedLinearSVC, "squared_hinge", "l2"),
    "L2R_L2LOSS_SVC_DUAL": (LoadedLinearSVC, "squared_hinge", "l2"),
    "L2R_L1LOSS_SVC_DUAL": (LoadedLinearSVC, "hinge", "l2"),
    "L1R_L2LOSS_SVC": (LoadedLinearSVC, "squared_hinge", "l1"),
    JOINT: (LoadedLinearSVC, "crammer_singer", "l2"),
    "L2R_LR": (LoadedLogisticRegression, "logistic", "l2"),
    "L2R_LR_DUAL": (LoadedLogisticRegression, "logistic", "l2"),
    "L1R_LR": (LoadedLogisticRegression, "logistic", "l1"),
    "L2R_L2LOSS_SVR": (LoadedLinearSVR, "squared_epsilon_insensitive", "l2"),
    "L2R_L2LOSS_SVR_DUAL": (LoadedLinearSVR, "squared_epsilon_insensitive", "l2"),
    "L2R_L1LOSS_SVR_DUAL": (LoadedLinearSVR, "epsilon_insensitive", "l2"),
}
KEYWORDS = ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho", "w")
WRITTEN_TOGETHER = 4096  # columns


# --- writing ----------------------------------------------------------------------------------------------------


def write_liblinear_model(machine: LiblinearMachine, path: str | os.PathLike[str]) -> None:
    """Write a fitted linear machine as a model file of LIBLINEAR; the file appears whole or not at all.

    LIBLINEAR's programs compute the same scores from it. It holds the machine's function and nothing else: no
    certificate and no names of columns. Numbers keep every bit; the bias is the weight of a constant column of 1.

    Parameters
    ----------
    machine : fitted LinearSVC, LinearSVR or LogisticRegression
        With a loss and penalty that LIBLINEAR has a solver for. Classes are whole numbers; more than two of them have
        one machine per class, or one for all together (``multi_class="crammer_singer"``).
    path : file name.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> machine = LinearSVR(C=100.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> machine.coef_, machine.intercept_ = machine.coef_.round(6), machine.intercept_.round(6)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_liblinear_model(machine, f"{folder}/line.model")
    ...     print(pathlib.Path(folder, "line.model").read_text())
    solver_type L2R_L1LOSS_SVR_DUAL
    nr_class 2
    nr_feature 1
    bias 1
    w
    2
    1
    <BLANKLINE>
    """
    check_fitted(machine, [LinearSVC, LinearSVR, LogisticRegression], PROGRAM)
    solver = _solver_of(machine)
    W, b, n_classes, label = np.atleast_2d(dense(machine.coef_)), np.asarray(machine.intercept_), 2, []
    if not isinstance(machine, LinearSVR):
        labels, order = label_numbers(machine.classes_, PROGRAM), label_order(machine)
        label, n_classes = [f"label {' '.join(str(labels[i]) for i in order)}"], len(labels)
        if n_classes > 2:
            W, b = W[order], b[order]
        elif order[0] == 0:  # here a score above 0 means the second class
            W, b = -W, -b
    n_features, has_bias = W.shape[1], bool(machine.fit_intercept) or bool(b.any())
    header = [f"solver_type {solver}", f"nr_class {n_classes}", *label, f"nr_feature {n_features}"]
    header += [f"bias {1 if has_bias else -1}", "w"]
    columns = np.vstack([W.T, b]) if has_bias else W.T
    with atomic_write(path) as file:
        file.write(("\n".join(header) + "\n").encode())
        for begin in range(0, len(columns), WRITTEN_TOGETHER):
            lines = [f"{number_text(line)} \n" for line in columns[begin : begin + WRITTEN_TOGETHER]]
            file.write("".join(lines).encode())


def _solver_of(machine: Any) -> str:
    """The solver for what the machine was fitted with, even if a parameter was changed since."""
    if not hasattr(machine, "certificate_"):  # it was read
        return str(machine._solver)
    if not isinstance(machine, LinearSVR) and len(machine.classes_) > 2 and machine._fitted_scheme == "ovo":
        raise InputError("LIBLINEAR files hold one machine per class; fit with multi_class='ovr'")
    loss, penalty = machine.certificate_.loss, machine.certificate_.penalty
    solver = next((name for name, (_, *problem) in SOLVERS.items() if problem == [loss, penalty]), None)
    if solver is None:
        known = ", ".join(dict.fromkeys(known for _, known, _ in SOLVERS.values()))
        raise InputError(
            f"the loss {loss!r} with penalty {penalty!r} cannot be written: LIBLINEAR has solvers for {known}. "
            "More than two classes of a LogisticRegression need multi_class='ovr'."
        )
    if hasattr(machine, "steepness_"):
        warn("probabilities are not written: a LIBLINEAR file has none but those of logistic regression")
    return solver


# --- reading ----------------------------------------------------------------------------------------------------


def read_liblinear_model(path: str | os.PathLike[str], *, n_features: int | None = None) -> LiblinearMachine:
    """Read a model file of LIBLINEAR, compressed or not, as a fitted machine that predicts as LIBLINEAR does.

    The machine has ``coef_``, ``intercept_`` and ``classes_``, and of its parameters those that the solver's name and
    the bias tell; all others have their default values. There is no proof in the file, hence no ``certificate_``, nor
    anything else that only a fit knows: asking for it raises an error. One-class machines are not read.

    Parameters
    ----------
    path : file name.
    n_features : number of columns; None takes the file's. Columns beyond those have weight 0, as in LIBLINEAR.

    Examples
    --------
    >>> import tempfile
    >>> machine = LinearSVC().fit([[0.0, 1.0], [2.0, 1.0]], [-1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_liblinear_model(machine, f"{folder}/two.model")
    ...     again = read_liblinear_model(f"{folder}/two.model")
    >>> bool((again.coef_ == machine.coef_).all()), again.predict([[3.0, 1.0]])
    (True, array([1]))
    """
    model = read_text(path, PROGRAM, KEYWORDS, "w")
    solver = model.word("solver_type", SOLVERS)
    kind, loss, penalty = SOLVERS[solver]
    is_classifier = kind is not LoadedLinearSVR
    k = model.whole("nr_class", 1 if is_classifier else 2, LARGEST if is_classifier else 2)
    classes, order = model.labels(k) if is_classifier else (None, None)
    d, bias = model.whole("nr_feature", 1, LARGEST), float(model.numbers("bias", 1)[0])
    model.done(f"a machine by the solver {solver}")
    W, b = _read_weights(model, d, bias, 1 if k == 2 and solver != JOINT else k)
    machine = kind(**_parameters(kind, loss, penalty, bias))
    machine.n_features_in_, machine._solver = width_of(n_features, d, model.source), solver
    W = np.pad(W, [(0, 0), (0, machine.n_features_in_ - d)])
    if classes is None or order is None:
        machine.coef_, machine.intercept_ = W[0], b
        return machine  # type: ignore[no-any-return]
    if k == 2:
        if solver == JOINT:  # it decides by the first class's machine; the other one is its negative
            W, b, machine._solver = 2.0 * W[:1], 2.0 * b[:1], "L2R_L1LOSS_SVC_DUAL"
        if order[0] == 0:  # here a score above 0 means the second class
            W, b = -W, -b
    else:
        W, b = W[np.argsort(order)], b[np.argsort(order)]
    machine.classes_, machine.coef_, machine.intercept_, machine._label_order = classes, W, b, order
    machine._fitted_scheme = "crammer_singer" if solver == JOINT else "ovr"
    return machine  # type: ignore[no-any-return]


def _parameters(kind: type[Any], loss: str, penalty: str, bias: float) -> dict[str, Any]:
    """The parameters that the file tells; LIBLINEAR penalises the weight of the constant column like all others."""
    known: dict[str, Any] = {"fit_intercept": bias > 0.0}
    if bias > 0.0:
        known |= {"penalize_intercept": True, "intercept_scaling": bias}
    if kind is LoadedLinearSVR:
        return known | {"loss": loss}
    if loss == "logistic":
        return known | {"penalty": penalty, "multi_class": "ovr"}
    if loss == "crammer_singer":
        return known | {"loss": "hinge", "multi_class": loss}
    return known | {"loss": loss, "penalty": penalty}


def _read_weights(model: TextModel, d: int, bias: float, n_machines: int) -> tuple[Vector, Vector]:
    """Weights and biases of all machines; the file has one column of the matrix per line."""
    has_bias = bias >= 0.0
    model.check_length(d + has_bias, "weights")
    found = []
    for line, text in enumerate(model.body, model.first):
        values = text.split()
        if len(values) != n_machines:
            model.fail(f"expected {counted(n_machines, 'weight')}, found {len(values)}", line)
        found.append(model.finite(values, line))
    W = np.stack(found, axis=1)
    with np.errstate(over="ignore"):
        b = bias * W[:, d] if has_bias else np.zeros(n_machines)
    if not np.isfinite(b).all():
        model.fail(f"expected a weight whose product with the bias, {bias:g}, is finite", model.first + d)
    return np.ascontiguousarray(W[:, :d]), b

"""LIBSVM's model files, as svm-train writes and svm-predict reads them.

Layout
    svm_type, kernel_type; degree, gamma, coef0 where the kernel has them; nr_class, total_sv
    rho      of every pair of classes: a score is Σ coefficient · k(x, support vector) − rho
    label    the classes in the order in which svm-train met them, and nr_sv, the support vectors of each; not of a
             regression or of one class. A score above 0 means the first class of a pair.
    SV       then one line per support vector, grouped by class: its coefficients in nr_class − 1 machines, as
             :mod:`maxmargin.svm.kernel_prediction` explains, and column:value for all that is not 0; of a precomputed
             kernel 0:number, which of the rows learned from it is
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.data.files import atomic_write
from maxmargin.errors import InputError
from maxmargin.estimators import warn
from maxmargin.inputs import truth_value
from maxmargin.kernels import Kernel, Precomputed, make_kernel
from maxmargin.models.document import ModelFileError
from maxmargin.models.loaded import (
    LoadedNuSVC,
    LoadedNuSVR,
    LoadedOneClassSVM,
    LoadedSVC,
    LoadedSVR,
    in_order,
    label_order,
    pairs_in,
)
from maxmargin.models.text_model import (
    LARGEST,
    Order,
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
from maxmargin.runtime import effective_threads
from maxmargin.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.svm.kernel_classifier import KernelClassifier

LibsvmMachine = SVC | NuSVC | SVR | NuSVR | OneClassSVM
PROGRAM = "LIBSVM"

MACHINES: dict[str, tuple[type[Any], type[Any]]] = {  # what is written, and what is read
    "c_svc": (SVC, LoadedSVC),
    "nu_svc": (NuSVC, LoadedNuSVC),
    "one_class": (OneClassSVM, LoadedOneClassSVM),
    "epsilon_svr": (SVR, LoadedSVR),
    "nu_svr": (NuSVR, LoadedNuSVR),
}
CLASSIFIERS = ("c_svc", "nu_svc")
KERNELS: dict[str, tuple[str, tuple[str, ...]]] = {  # our name, and the parameters in the order of their lines
    "linear": ("linear", ()),
    "polynomial": ("poly", ("degree", "gamma", "coef0")),
    "rbf": ("rbf", ("gamma",)),
    "sigmoid": ("sigmoid", ("gamma", "coef0")),
    "precomputed": ("precomputed", ()),
}
PROBABILITIES = ("probA", "probB", "prob_density_marks")
NUMBERED = ("degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label", *PROBABILITIES, "nr_sv")
KEYWORDS = ("svm_type", "kernel_type", *NUMBERED, "SV")
N_MARKS = 10  # numbers that a one-class machine with probabilities has
WRITTEN_TOGETHER = 4096  # support vectors
FULL = 0.5  # share of values that are not 0 from which on support vectors are an array


# --- writing ----------------------------------------------------------------------------------------------------


def write_libsvm_model(machine: LibsvmMachine, path: str | os.PathLike[str]) -> None:
    """Write a fitted machine with a kernel as a model file of LIBSVM; the file appears whole or not at all.

    LIBSVM's programs compute the same scores from it. It holds the machine's function and nothing else: no certificate,
    no rows but the support vectors, no probabilities, no names of columns. Numbers keep every bit.

    Parameters
    ----------
    machine : fitted SVC, NuSVC, SVR, NuSVR or OneClassSVM
        With the kernel "linear", "poly" of a whole degree, "rbf", "sigmoid" or "precomputed". Classes are whole
        numbers; more than two of them have one machine per pair.
    path : file name.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> machine = SVC(kernel="linear").fit([[0.0, 1.0], [2.0, 1.0]], [-1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_libsvm_model(machine, f"{folder}/two.model")
    ...     print(pathlib.Path(folder, "two.model").read_text())
    svm_type c_svc
    kernel_type linear
    nr_class 2
    total_sv 2
    rho 1
    label 1 -1
    nr_sv 1 1
    SV
    0.5 1:2 2:1
    -0.5 2:1
    <BLANKLINE>
    """
    check_fitted(machine, [ours for ours, _ in MACHINES.values()], PROGRAM)
    kind = next(kind for kind, (ours, _) in MACHINES.items() if isinstance(machine, ours))
    coefficients, rho = dense(machine.dual_coef_), -np.asarray(machine.intercept_)
    chosen, n_classes, after = np.arange(coefficients.shape[1]), 2, []
    header = [f"svm_type {kind}", *_kernel_lines(machine.kernel_)]
    if isinstance(machine, KernelClassifier):
        _check_classifier(machine)
        order, labels = label_order(machine), label_numbers(machine.classes_, PROGRAM)
        coefficients, rho, chosen = turned(coefficients, rho, machine.n_support_, order)
        n_classes, sizes = len(labels), machine.n_support_[order].tolist()
        after = [f"label {_listed([labels[i] for i in order])}", f"nr_sv {_listed(sizes)}"]
    header += [f"nr_class {n_classes}", f"total_sv {len(chosen)}", f"rho {number_text(rho)}", *after, "SV"]
    cells = _cells(machine, chosen)
    with atomic_write(path) as file:
        file.write(("\n".join(header) + "\n").encode())
        for begin in range(0, len(chosen), WRITTEN_TOGETHER):
            some = coefficients[:, begin : begin + WRITTEN_TOGETHER].T
            file.write("".join([f"{number_text(line)} {next(cells)}\n" for line in some]).encode())


def turned(coefficients: Vector, rho: Vector, sizes: NDArray[Any], order: Order) -> tuple[Vector, Vector, Order]:
    """From our classes and signs to those of a file, or back; and which support vector each column is then.

    Examples
    --------
    >>> turned(np.array([[-1.0, 0.5, 0.5]]), np.array([3.0]), np.array([1, 2]), np.array([1, 0]))
    (array([[ 0.5,  0.5, -1. ]]), array([3.]), array([1, 2, 0]))
    """
    coefficients, columns = in_order(coefficients, sizes, order)
    where, sign = pairs_in(order)
    if len(order) == 2:  # a score above 0 means the second class here, as soon as there are no more than two
        coefficients, sign = -coefficients, -sign
    return coefficients, sign * rho[where], columns


def _check_classifier(machine: Any) -> None:
    if machine._fitted_scheme == "ovr":
        raise InputError("LIBSVM files hold one machine per pair of classes; fit with multi_class='ovo'")
    if hasattr(machine, "steepness_"):
        warn("probabilities are not written: LIBSVM's are others, with two numbers for every pair of classes")


def _kernel_lines(kernel: Kernel) -> list[str]:
    ours = kernel.structure()[0]
    theirs = next((name for name, (own, _) in KERNELS.items() if own == ours), None)
    if theirs is None:
        raise InputError(
            f"the kernel {kernel!r:.80} cannot be written: LIBSVM knows linear, poly, rbf, sigmoid and precomputed. "
            "Compute its values yourself and fit with kernel='precomputed'."
        )
    values = {name: getattr(kernel, name) for name in KERNELS[theirs][1]}
    degree = values.get("degree", 0)
    if not isinstance(degree, int) or degree > LARGEST:
        raise InputError(f"the degree {degree} cannot be written: LIBSVM knows whole ones of at most {LARGEST}")
    return [f"kernel_type {theirs}", *(f"{name} {number_text([value])}" for name, value in values.items())]


def _listed(numbers: list[int]) -> str:
    return " ".join(map(str, numbers))


def _cells(machine: Any, chosen: Order) -> Iterator[str]:
    """What follows the coefficients in the line of every support vector."""
    if isinstance(machine.kernel_, Precomputed):
        yield from (f"0:{row + 1} " for row in machine.support_[chosen].tolist())
        return
    X = sp.csr_array(machine.support_vectors_[chosen], dtype=np.float64)
    X.sum_duplicates()  # columns must increase
    X.eliminate_zeros()
    last = X.shape[1]
    is_told = bool((X.indices == last - 1).any())
    for begin, end in itertools.pairwise(X.indptr.tolist()):
        cells = [
            f"{column + 1}:{value:.17g} "
            for column, value in zip(X.indices[begin:end].tolist(), X.data[begin:end].tolist(), strict=True)
        ]
        if not is_told:  # a zero in the last column tells readers how many columns there are
            cells.append(f"{last}:0 ")
            is_told = True
        yield "".join(cells)


# --- reading ----------------------------------------------------------------------------------------------------


def read_libsvm_model(
    path: str | os.PathLike[str], *, n_features: int | None = None, zero_based: bool | None = None
) -> LibsvmMachine:
    """Read a model file of LIBSVM, compressed or not, as a fitted machine that predicts as LIBSVM does.

    The machine has what makes up its function: ``support_vectors_``, ``dual_coef_``, ``n_support_``, ``intercept_``,
    ``classes_``, ``kernel_``, ``offset_``. Of its parameters the file knows the kernel's; all others have their default
    values. There is no proof in the file, hence no ``certificate_``, nor anything else that only a fit knows: asking
    for it raises an error. Probabilities are left out with a warning, because those of LIBSVM are others.

    Parameters
    ----------
    path : file name.
    n_features : number of columns; None takes the largest of the file, which knows those of its support vectors only.
        Of a precomputed kernel: the number of rows that were learned from.
    zero_based : whether column indices count from 0; None: they do if an index 0 occurs.

    Examples
    --------
    >>> import tempfile
    >>> machine = SVC(kernel="linear").fit([[0.0, 1.0], [2.0, 1.0]], [-1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_libsvm_model(machine, f"{folder}/two.model")
    ...     again = read_libsvm_model(f"{folder}/two.model")
    >>> again.decision_function([[3.0, 1.0]]), again.coef_
    (array([2.]), array([[1., 0.]]))
    """
    if zero_based is not None:
        truth_value("zero_based", zero_based)
    model = read_text(path, PROGRAM, KEYWORDS, "SV")
    kind = model.word("svm_type", MACHINES)
    kernel = _read_kernel(model)
    is_classifier = kind in CLASSIFIERS
    k = model.whole("nr_class", 1 if is_classifier else 2, LARGEST if is_classifier else 2)
    classes, order = model.labels(k) if is_classifier else (None, np.zeros(0, dtype=np.intp))
    rho = model.numbers("rho", k * (k - 1) // 2)
    total = model.whole("total_sv", 0, LARGEST)
    sizes = _read_sizes(model, k, total) if is_classifier else np.array([total])
    _leave_out_probabilities(model, kind, k)
    model.done(f"a machine of type {kind} with a {type(kernel).__name__} kernel")
    coefficients, vectors, width = _read_support_vectors(model, k - 1, total, kernel, zero_based)
    machine = MACHINES[kind][1](**_kernel_parameters(kernel))
    machine.n_features_in_ = _checked_width(model, n_features, width)
    if classes is not None:
        back = np.argsort(order)
        coefficients, rho, columns = turned(coefficients, rho, sizes, back)
        vectors, sizes = vectors[columns], sizes[back]
        machine.classes_, machine._label_order = classes, order
        machine._fitted_scheme = "two classes" if k == 2 else "ovo"
    machine.kernel_, machine.n_support_, machine.intercept_ = kernel, sizes.astype(np.int32), -rho
    if kind == "one_class":
        machine.offset_ = rho
    _store(machine, coefficients, vectors)
    return machine  # type: ignore[no-any-return]


def _read_kernel(model: TextModel) -> Kernel:
    name, parameters = KERNELS[model.word("kernel_type", KERNELS)]
    values: dict[str, Any] = {"gamma": 1.0}
    for parameter in parameters:
        values[parameter] = float(model.numbers(parameter, 1)[0])
        try:
            make_kernel(name, **values)
        except InputError as error:
            model.fail(str(error))
    return make_kernel(name, **values)


def _kernel_parameters(kernel: Kernel) -> dict[str, Any]:
    """The parameters of a machine with this kernel."""
    ours = kernel.structure()[0]
    names = next(names for name, names in KERNELS.values() if name == ours)
    return {"kernel": ours} | {name: getattr(kernel, name) for name in names}


def _read_sizes(model: TextModel, k: int, total: int) -> NDArray[np.int64]:
    sizes = model.wholes("nr_sv", k, 0, LARGEST)
    if sum(sizes) != total:
        model.fail(f"expected as many support vectors as total_sv says, {total}; those of the classes are {sum(sizes)}")
    return np.array(sizes)


def _leave_out_probabilities(model: TextModel, kind: str, k: int) -> None:
    n_pairs = k * (k - 1) // 2
    counts = {"probA": n_pairs, "probB": n_pairs} if kind in CLASSIFIERS else {"probA": 1}
    counts = {"prob_density_marks": N_MARKS} if kind == "one_class" else counts
    found = [name for name in counts if model.has(name)]
    for name in found:
        model.numbers(name, counts[name])
    if found:
        warn(
            f"{model.source}: the probabilities of this model ({', '.join(found)}) are left out, because they are "
            "computed in another way here; scores and decisions are LIBSVM's"
        )


def _read_support_vectors(
    model: TextModel, n_coefficients: int, total: int, kernel: Kernel, zero_based: bool | None
) -> tuple[Vector, Any, int]:
    """Coefficients, one column per line; support vectors, or their numbers; how many columns there must be at least."""
    model.check_length(total, "support vectors")
    found, cells = [], []
    for line, text in enumerate(model.body, model.first):
        parts = text.split(None, n_coefficients)
        if len(parts) < n_coefficients:
            model.fail(f"expected {counted(n_coefficients, 'coefficient')}, found {len(parts)}", line)
        if b"#" in text:
            model.fail("expected column:value, found '#'; such files have no comments", line)
        found.append(model.finite(parts[:n_coefficients], line))
        cells.append(b"0 " + b"".join(parts[n_coefficients:]))
    values, columns, row_ends = _parsed(model, cells)
    coefficients = np.stack(found, axis=1) if found else np.zeros((n_coefficients, 0))
    if isinstance(kernel, Precomputed):
        numbers = _numbers_of_rows(model, values, columns, row_ends)
        return coefficients, numbers, int(numbers.max(initial=0))
    smallest, largest = int(columns.min(initial=LARGEST)), int(columns.max(initial=-1))
    if zero_based is False and smallest == 0:
        raise ModelFileError(model.source, "file", "column 0 occurs, but zero_based=False says they count from 1")
    first = 0 if (zero_based if zero_based is not None else smallest == 0) else 1
    width = largest + 1 - first if len(columns) else 0
    indptr = np.concatenate([[0], row_ends])
    return coefficients, sp.csr_array((values, columns - first, indptr), shape=(total, max(width, 1))), width


def _parsed(model: TextModel, cells: list[bytes]) -> tuple[Vector, NDArray[np.int32], NDArray[np.int64]]:
    """Values, columns and ends of rows of the lines, which are svmlight's with a label of 0."""
    parser = _core.SvmlightParser()
    if cells:
        parser.feed(np.frombuffer(b"\n".join(cells), dtype=np.uint8), True, effective_threads(None))
    if parser.error is not None:
        line, _, problem = parser.error
        model.fail(problem, model.first + line - 1)
    values, columns, row_ends, _, _ = parser.take()
    return values, columns, row_ends


def _numbers_of_rows(model: TextModel, values: Vector, columns: Any, row_ends: NDArray[np.int64]) -> NDArray[np.intp]:
    """Which row learned from each support vector is, counted from 1: the one value of every line, in column 0."""
    for i, (begin, end) in enumerate(itertools.pairwise([0, *row_ends.tolist()])):
        is_one = end == begin + 1 and columns[begin] == 0
        if not is_one or not (values[begin].is_integer() and 1 <= values[begin] <= LARGEST):
            model.fail(f"expected 0:number, with a whole number from 1 to {LARGEST}", model.first + i)
    return values.astype(np.intp)


def _checked_width(model: TextModel, n_features: int | None, width: int) -> int:
    width = width_of(n_features, width, model.source)
    if width < 1:
        raise ModelFileError(model.source, "file", "no support vector says how many columns there are; pass n_features")
    return width


def _store(machine: Any, coefficients: Vector, vectors: Any) -> None:
    machine.dual_coef_ = coefficients
    if isinstance(machine.kernel_, Precomputed):
        machine.support_, machine.support_vectors_ = vectors - 1, np.empty((0, 0))
        return
    vectors.resize((vectors.shape[0], machine.n_features_in_))
    is_full = vectors.nnz >= FULL * vectors.shape[0] * vectors.shape[1]
    if is_full:
        machine.support_vectors_ = vectors.toarray()
        return
    vectors.eliminate_zeros()
    machine.support_vectors_, machine.dual_coef_ = vectors, sp.csr_array(coefficients)

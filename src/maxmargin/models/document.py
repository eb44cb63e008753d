"""The JSON document of a model file: what is in it, and the checks before anything in it is believed."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.data import Encoding
from maxmargin.data.encoding import Column
from maxmargin.errors import InputError
from maxmargin.inputs import positive_number
from maxmargin.models.model import Model, Training
from maxmargin.models.scaling import Scaling
from maxmargin.problem import check_penalty
from maxmargin.solution import History, Solution, Status
from maxmargin.svm import LinearSVC


class ModelFileError(InputError):
    """A model file that cannot be used: what is wrong and where.

    Attributes
    ----------
    source : the file's name.
    place : where in it, for example ``"tensor 'coef'"``.
    problem : the sentence without source and place.
    """

    def __init__(self, source: str, place: str, problem: str) -> None:
        self.source, self.place, self.problem = source, place, problem
        super().__init__(source, place, problem)

    def __str__(self) -> str:
        return f"{self.source}, {self.place}: {self.problem}"


HARD = "inf"  # C of the hard margin; JSON has no infinity
KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "text"}
DTYPE_OF_KIND = {"bool": np.bool_, "int": np.int64, "float": np.float64, "text": np.str_}
TYPES_OF_KIND: dict[str, tuple[type, ...]] = {"bool": (bool,), "int": (int,), "float": (float, int), "text": (str,)}


# --- writing ----------------------------------------------------------------------------------------------------


def document_of(model: Model) -> dict[str, Any]:
    """Everything about a model that is not an array."""
    machine, training = model.machine, model.training
    solution = machine.solution_
    return {
        "machine": type(machine).__name__,
        "maxmargin": _core.info()["version"],
        "params": _plain_params(machine),
        "classes": _plain_classes(machine.classes_),
        "steepness": float(machine.steepness_) if hasattr(machine, "steepness_") else None,
        "feature_names": None if model.names is None else list(model.names),
        "named_input": hasattr(machine, "feature_names_in_"),
        "solution": {
            "primal": solution.primal,
            "dual": solution.dual,
            "gap": _finite_or_none(solution.gap),
            "status": solution.status.name,
            "n_iter": int(solution.n_iter),
            "seconds": float(solution.seconds),
            "bias_interval": [_finite_or_none(end) for end in solution.bias_interval],
            "solver": solution.solver,
            "reason": solution.reason,
            "history": [
                [r.iteration, float(r.seconds), _finite_or_none(r.gap), r.phase, bool(r.certified)]
                for r in solution.history.records
            ],
        },
        "training": {
            "n_rows": training.n_rows,
            "digest": training.digest,
            "source": training.source,
            "target": training.target,
            "positive": training.positive,
            "zero_based": training.zero_based,
            "layout": training.layout,
        },
        "encoding": None
        if model.encoding is None
        else [
            {"name": c.name, "levels": None if c.levels is None else list(c.levels), "fill": c.fill}
            for c in model.encoding.columns
        ],
    }


def _finite_or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _plain_params(machine: LinearSVC) -> dict[str, Any]:
    # What the fit used, even if a parameter was changed since.
    fitted = machine.certificate_
    params: dict[str, Any] = machine.get_params(deep=False)
    params |= {name: getattr(fitted, name) for name in ("C", "penalty", "class_weight", "fit_intercept", "tol")}
    params["loss"] = fitted.power if fitted.loss == "slack_power" else fitted.loss
    if params["multi_class"] == "crammer_singer":  # its two-class form is the machine of twice the C
        params["C"] *= 0.5
    if params["C"] == math.inf:
        params["C"] = HARD
    for name, value in params.items():
        if isinstance(value, np.generic):
            params[name] = value = value.item()
        if name == "class_weight" and isinstance(value, dict):
            params[name] = [[_plain(label), float(weight)] for label, weight in value.items()]
        elif not isinstance(value, str | int | float | bool | None):
            raise InputError(f"{name}={value!r:.60} cannot be saved; use a number, text, True, False or None")
    return params


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _plain_classes(classes: NDArray[Any]) -> dict[str, Any]:
    if classes.dtype.kind == "O" and all(isinstance(label, str) for label in classes.tolist()):
        classes = classes.astype(str)
    if classes.dtype.kind not in KINDS:
        raise InputError(f"classes of dtype {classes.dtype} cannot be saved; use text, numbers or truth values")
    if classes.dtype.kind == "u" and classes.max() > np.iinfo(np.int64).max:
        raise InputError(f"the class {classes.max()} is too large to be saved; use text, or smaller numbers")
    return {"kind": KINDS[classes.dtype.kind], "values": classes.tolist()}


# --- reading ----------------------------------------------------------------------------------------------------


class Reader:
    """Takes typed values out of a JSON object; whatever is absent, odd or left over is an error with its place."""

    def __init__(self, value: Any, place: str, source: str) -> None:
        self.place, self.source = place, source
        if not isinstance(value, dict):
            self.fail("", "expected a JSON object")
        self.rest: dict[str, Any] = dict(value)

    def fail(self, key: str, problem: str) -> Any:
        raise ModelFileError(self.source, f"{self.place}{'.' if key else ''}{key}", problem)

    def take(self, key: str, *kinds: type) -> Any:
        if key not in self.rest:
            self.fail(key, "it is missing")
        value = self.rest.pop(key)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
            self.fail(key, f"expected {names}, got {type(value).__name__}")
        return value

    def number(self, key: str, or_none: bool = False) -> float:
        value = self.take(key, float, int, *([type(None)] if or_none else []))
        return math.inf if value is None else self.finite(key, value)

    def finite(self, key: str, value: float) -> float:
        """A JSON number, which may be 1e400 or have a thousand digits, as a float."""
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        return number if math.isfinite(number) else float(self.fail(key, "the number is too large"))

    def whole(self, key: str) -> int:
        value = int(self.take(key, int))
        return value if 0 <= value < 2**62 else int(self.fail(key, "expected a whole number of at least 0"))

    def sub(self, key: str) -> Reader:
        return Reader(self.take(key, dict), f"{self.place}.{key}", self.source)

    def done(self) -> None:
        if self.rest:
            self.fail(sorted(self.rest)[0], "unknown entry")


def model_from(document: Any, tensors: dict[str, Any], source: str) -> Model:
    """The model, once document and tensors (whose shapes have, see :func:`check_shapes`) have passed every check."""
    top = Reader(document, "document", source)
    if top.take("machine", str) != "LinearSVC":
        top.fail("machine", "unknown machine; this version knows LinearSVC")
    top.take("maxmargin", str)
    names = top.take("feature_names", list, type(None))
    named_input = top.take("named_input", bool)
    training = _read_training(top.sub("training"), tensors)
    _check_values(tensors, source)
    n_features = tensors["coef"].shape[1]
    encoding = _read_encoding(top.take("encoding", list, type(None)), names, source)
    classes = _read_classes(top.sub("classes"))
    machine = _read_params(top.sub("params"), classes)
    steepness = top.number("steepness", or_none=True)
    if math.isfinite(steepness) is not machine.probability or steepness <= 0.0:
        top.fail("steepness", "expected a number above 0 if and only if the machine has probabilities")
    solution, signed = _read_solution(top.sub("solution"), tensors, machine.penalty)
    top.done()
    machine._store(classes, solution, signed)
    if machine.probability:
        machine.steepness_ = steepness
    machine.n_features_in_ = n_features
    if named_input and names is not None:
        machine.feature_names_in_ = np.array(names, dtype=object)
    machine._sample_weight = tensors.get("weight")
    has_dual = "dual" in tensors
    if not has_dual:
        del machine.support_, machine.dual_coef_
    scaling = Scaling(tensors.get("mean"), tensors["scale"]) if "scale" in tensors else None
    return Model(machine, training, encoding, scaling, None if names is None else tuple(names), has_dual)


Shapes = dict[str, tuple[tuple[int, ...], np.dtype[Any]]]


def check_shapes(document: Any, found: Shapes, source: str) -> None:
    """Whether the arrays that a file's header announces are those that its document needs; before they are read."""
    top = Reader(document, "document", source)
    names = top.take("feature_names", list, type(None))
    n_rows = top.sub("training").whole("n_rows")
    shape, _ = found.get("coef", ((), None))
    if len(shape) != 2 or shape[0] != 1 or shape[1] < 1:
        raise ModelFileError(source, "tensor 'coef'", "expected one row of at least one weight")
    d = shape[1]
    if names is not None and (len(names) != d or not all(isinstance(name, str) for name in names)):
        top.fail("feature_names", f"expected {d} texts")
    expected = {"coef": (1, d), "intercept": (1,), "mean": (d,), "scale": (d,)}
    expected |= dict.fromkeys(("dual", "rows", "weight"), (n_rows,))
    for name, (shape, dtype) in found.items():
        if name not in expected:
            raise ModelFileError(source, f"tensor {name!r}", "unknown tensor")
        if shape != expected[name] or dtype.kind != ("i" if name == "rows" else "f"):
            raise ModelFileError(source, f"tensor {name!r}", f"expected shape {expected[name]}, got {shape} of {dtype}")
    if "intercept" not in found:
        raise ModelFileError(source, "tensor 'intercept'", "it is missing")
    if "mean" in found and "scale" not in found:
        raise ModelFileError(source, "tensor 'scale'", "it is missing beside the tensor 'mean'")


def _check_values(tensors: dict[str, Any], source: str) -> None:
    if "scale" in tensors and not (tensors["scale"] > 0.0).all():
        raise ModelFileError(source, "tensor 'scale'", "every scale must be above 0")
    if "weight" in tensors and (tensors["weight"] < 0.0).any():
        raise ModelFileError(source, "tensor 'weight'", "no weight may be below 0")
    if "rows" in tensors and (np.diff(tensors["rows"], prepend=-1) <= 0).any():
        raise ModelFileError(source, "tensor 'rows'", "row numbers must increase from 0")


def _read_training(entry: Reader, tensors: dict[str, Any]) -> Training:
    texts = {key: entry.take(key, str, type(None)) for key in ("digest", "source", "target", "positive")}
    zero_based = entry.take("zero_based", bool, type(None))
    layout = (
        _read_layout(entry.sub("layout")) if entry.rest.get("layout") is not None else entry.take("layout", type(None))
    )
    training = Training(entry.whole("n_rows"), rows=tensors.get("rows"), zero_based=zero_based, layout=layout, **texts)
    if training.n_rows < 2:
        entry.fail("n_rows", "expected at least 2 rows, one of each class")
    entry.done()
    return training


def _read_layout(entry: Reader) -> dict[str, Any]:
    layout = {
        "na": entry.take("na", list, type(None)),
        "header": entry.take("header", bool, type(None)),
        "delimiter": entry.take("delimiter", str, type(None)),
        "decimal": entry.take("decimal", str, type(None)),
    }
    entry.done()
    if not all(isinstance(text, str) for text in layout["na"] or ()):
        entry.fail("na", "expected texts")
    return layout


def _read_encoding(entries: list[Any] | None, names: list[str] | None, source: str) -> Encoding | None:
    if entries is None:
        return None
    columns = []
    for i, value in enumerate(entries):
        entry = Reader(value, f"document.encoding[{i}]", source)
        levels = entry.take("levels", list, type(None))
        if levels is not None and not all(isinstance(level, str) for level in levels):
            entry.fail("levels", "expected texts")
        fill = entry.take("fill", float, int, type(None))
        fill = None if fill is None else entry.finite("fill", fill)
        name = entry.take("name", str)
        entry.done()
        columns.append(Column(name, None if levels is None else tuple(levels), fill))
    encoding = Encoding(tuple(columns))
    if names is None or encoding.feature_names != tuple(names):
        raise ModelFileError(source, "document.encoding", "the columns do not give the feature names")
    return encoding


def _read_classes(entry: Reader) -> NDArray[Any]:
    kind = entry.take("kind", str)
    values = entry.take("values", list)
    entry.done()
    if kind not in TYPES_OF_KIND or not all(type(value) in TYPES_OF_KIND[kind] for value in values):
        entry.fail("values", f"expected labels of one kind of {sorted(TYPES_OF_KIND)}")
    classes: NDArray[Any] = np.empty(0)
    try:
        classes = np.array(values, dtype=DTYPE_OF_KIND[kind])
    except (OverflowError, ValueError):
        entry.fail("values", "a label is too large")
    if len(classes) != 2 or not classes[0] < classes[1]:
        entry.fail("values", "expected two different labels, the smaller one first")
    if kind == "float" and not np.isfinite(classes).all():
        entry.fail("values", "a label is too large")
    return classes


def _read_class_weight(pairs: list[Any], classes: NDArray[Any], entry: Reader) -> dict[Any, float]:
    weights = {label: entry.finite("class_weight", weight) for label, weight in pairs}
    if not all(label in classes.tolist() for label in weights) or min(weights.values(), default=0.0) < 0.0:
        entry.fail("class_weight", "expected pairs of a class and a weight of at least 0")
    return weights


def _read_params(entry: Reader, classes: NDArray[Any]) -> LinearSVC:
    known = LinearSVC().get_params(deep=False)
    if set(entry.rest) != set(known):
        odd = sorted(set(entry.rest) ^ set(known))[0]
        entry.fail(odd, "missing or unknown parameter")
    params = dict(entry.rest)
    for name, value in params.items():
        if name != "class_weight" and not isinstance(value, str | int | float | None):
            entry.fail(name, f"expected a number, text, true, false or null, got {type(value).__name__}")
        if isinstance(value, float):
            entry.finite(name, value)
    if not isinstance(params["random_state"], int | None):
        entry.fail("random_state", "expected a whole number or null")
    if params["class_weight"] not in (None, "balanced") and not isinstance(params["class_weight"], list):
        entry.fail("class_weight", "expected null, 'balanced' or pairs of class and weight")
    if params["C"] == HARD:
        params["C"] = math.inf
    try:
        if isinstance(params["class_weight"], list):
            params["class_weight"] = _read_class_weight(params["class_weight"], classes, entry)
        machine = LinearSVC(**params)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine._check_parameters()
        positive_number("C", params["C"], infinite=True)
        positive_number("intercept_scaling", params["intercept_scaling"])
        check_penalty(machine.penalty, machine._loss(), params["C"] == math.inf)
    except ModelFileError:
        raise
    except (TypeError, ValueError) as error:
        entry.fail("", str(error))
    for name, expected in known.items():
        flag = isinstance(expected, bool)
        if flag is not isinstance(params[name], bool) and name not in ("dual", "verbose"):
            entry.fail(name, "expected true or false" if flag else "true or false is no value for it")
    return machine


def _read_solution(entry: Reader, tensors: dict[str, Any], penalty: str) -> tuple[Solution, NDArray[np.float64]]:
    status = entry.take("status", str)
    if status not in Status.__members__:
        entry.fail("status", f"expected one of {list(Status.__members__)}")
    interval = entry.take("bias_interval", list)
    if len(interval) != 2 or not all(end is None or type(end) in (float, int) for end in interval):
        entry.fail("bias_interval", "expected two numbers")
    signed = tensors.get("dual", np.zeros(0))
    low, high = (None if end is None else entry.finite("bias_interval", end) for end in interval)
    solution = Solution(
        w=tensors["coef"][0],
        b=float(tensors["intercept"][0]),
        alpha=np.abs(signed),
        primal=entry.number("primal"),
        dual=entry.number("dual"),
        gap=entry.number("gap", or_none=True),
        status=Status[status],
        history=_read_history(entry),
        n_iter=entry.whole("n_iter"),
        seconds=entry.number("seconds"),
        bias_interval=(-math.inf if low is None else low, math.inf if high is None else high),
        solver=entry.take("solver", str),
        reason=entry.take("reason", str),
        penalty=penalty,
    )
    entry.done()
    return solution, signed


def _read_history(entry: Reader) -> History:
    history = History()
    for record in entry.take("history", list):
        kinds = ((int,), (float, int), (float, int, type(None)), (str,), (bool,))
        fits = isinstance(record, list) and len(record) == 5
        if not fits or not all(type(v) in kind for v, kind in zip(record, kinds, strict=True)):
            entry.fail("history", "expected [iteration, seconds, gap, phase, certified]")
        iteration, seconds, gap, phase, certified = record
        seconds, gap = (math.inf if v is None else entry.finite("history", v) for v in (seconds, gap))
        history.add(iteration, seconds, gap, phase, certified)
    return history

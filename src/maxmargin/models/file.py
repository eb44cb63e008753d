"""Model files: safetensors with one JSON document as metadata. Data only; loading executes nothing.

Layout, format 1
    metadata   format = "maxmargin", format_version = "1", document = JSON, sha256 = of document and tensors
    tensors    coef (1, d), intercept (1,), dual (n,): y_i alpha_i, mean (d,), scale (d,), rows (n,), weight (n,); the
               last five if there are any. float64, rows int64.
Every number is stored once, so there is nothing that could disagree.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.data.files import atomic_write
from maxmargin.models.document import ModelFileError, document_of, model_from
from maxmargin.models.model import Model, Training, trained_on
from maxmargin.models.scaling import Scaling
from maxmargin.positions import InputError
from maxmargin.svm import LinearSVC

FORMAT, FORMAT_VERSION = "maxmargin", "1"
DTYPES = {"F64": np.dtype("<f8"), "I64": np.dtype("<i8")}
MOST_HEADER = 100_000_000  # bytes, the limit of safetensors itself


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    data: tuple[Any, Any] | None = None,
    dual: bool = True,
) -> None:
    """Save a fitted machine; the file appears whole or not at all.

    Parameters
    ----------
    model : a fitted machine, a pipeline of a ``StandardScaler`` and one, or a model from :func:`load`.
    path : file name, by custom ending in .safetensors.
    data : the training rows and labels, to put their fingerprint into the file.
    dual : whether to keep the dual point, one number per row, with which anyone can verify the fit quickly.

    Examples
    --------
    >>> import tempfile
    >>> machine = LinearSVC().fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(machine, f"{folder}/model.safetensors")
    ...     load(f"{folder}/model.safetensors").predict([[0.1], [0.9]])
    array(['no', 'yes'], dtype='<U3')
    """
    if not isinstance(model, Model):
        model = _wrapped(*_unpiped(model), data)
    elif data is not None:
        raise InputError("data goes with a machine; a Model has its record of the training rows already")
    blob = to_bytes(model, dual=dual)
    with atomic_write(path) as file:
        file.write(blob)


def _unpiped(estimator: Any) -> tuple[LinearSVC, Scaling | None]:
    """The machine, and the scaling before it if it is the end of a pipeline."""
    from sklearn.preprocessing import StandardScaler

    steps = [step for _, step in getattr(estimator, "steps", [(None, estimator)]) if step not in (None, "passthrough")]
    scaling = None
    if len(steps) == 2 and isinstance(steps[0], StandardScaler) and hasattr(steps[0], "n_features_in_"):
        scaler = steps.pop(0)
        scale = np.ones(scaler.n_features_in_) if scaler.scale_ is None else scaler.scale_
        scaling = Scaling(scaler.mean_ if scaler.with_mean else None, scale)
    if len(steps) != 1 or not isinstance(steps[0], LinearSVC):
        raise InputError(
            f"{type(estimator).__name__} cannot be saved; save a LinearSVC of two classes, or a pipeline of a "
            "StandardScaler and one"
        )
    return steps[0], scaling


def _wrapped(machine: LinearSVC, scaling: Scaling | None, data: tuple[Any, Any] | None) -> Model:
    if not hasattr(machine, "solution_"):
        raise InputError("this machine is not fitted yet; there is nothing to save")
    if len(machine.classes_) != 2:
        raise InputError(
            f"this machine has {len(machine.classes_)} classes; a model file holds a two-class machine. Save one "
            "machine per class, or pickle it."
        )
    names = getattr(machine, "feature_names_in_", None)
    training = Training(len(machine.solution_.alpha))
    if data is not None:
        X, y = data
        X = X if hasattr(X, "tocsr") else np.asarray(X)
        y = np.asarray(y)
        if X.shape != (training.n_rows, machine.coef_.shape[1]) or y.shape != (training.n_rows,):
            raise InputError(
                f"data must be the training rows and labels: expected shapes ({training.n_rows}, "
                f"{machine.coef_.shape[1]}) and ({training.n_rows},), got {X.shape} and {y.shape}"
            )
        training = trained_on(X, y)
    return Model(machine, training, scaling=scaling, names=None if names is None else tuple(map(str, names)))


def to_bytes(model: Model, *, dual: bool = True) -> bytes:
    """The content of a model file."""
    from safetensors.numpy import save as pack

    machine = model.machine
    coef = machine.coef_.toarray() if hasattr(machine.coef_, "toarray") else machine.coef_
    tensors = {"coef": coef, "intercept": machine.intercept_}
    if dual and model.has_dual:
        signed = np.zeros(model.training.n_rows)
        signed[machine.support_] = machine.dual_coef_[0]
        tensors["dual"] = signed
    if model.scaling is not None:
        tensors["scale"] = model.scaling.scale
        if model.scaling.mean is not None:
            tensors["mean"] = model.scaling.mean
    if model.training.rows is not None:
        tensors["rows"] = model.training.rows
    if getattr(machine, "_sample_weight", None) is not None:
        tensors["weight"] = machine._sample_weight
    # safetensors writes strided memory as if it were contiguous.
    plain = {
        name: np.ascontiguousarray(tensor, dtype="<i8" if name == "rows" else "<f8")
        for name, tensor in sorted(tensors.items())
    }
    document = json.dumps(document_of(model), allow_nan=False, ensure_ascii=False, sort_keys=True)
    try:
        document.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the model cannot be saved: a label or a column's name is no valid text: {error}") from None
    metadata = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "document": document,
        "sha256": checksum(document, plain),
    }
    return _ordered(bytes(pack(plain, metadata=metadata)))


def _ordered(blob: bytes) -> bytes:
    """The file with its header's keys in order: safetensors writes metadata in a random one."""
    size = int.from_bytes(blob[:8], "little")
    text = json.dumps(json.loads(blob[8 : 8 + size]), sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of 8
    return len(text).to_bytes(8, "little") + text + blob[8 + size :]


def checksum(document: str, tensors: dict[str, Any]) -> str:
    """SHA-256 of the document and of every tensor with its name and shape."""
    state = hashlib.sha256(document.encode())
    for name, tensor in sorted(tensors.items()):
        state.update(f"{name}{tensor.shape}".encode())
        state.update(tensor.tobytes())
    return state.hexdigest()


def load(path: str | os.PathLike[str]) -> Model:
    """Load a model file; anything unexpected in it is an error that says what and where."""
    return from_bytes(Path(path).read_bytes(), str(path))


def from_bytes(blob: bytes, source: str = "model") -> Model:
    """The model in the content of a model file."""
    header = _header(blob, source)
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise ModelFileError(source, "metadata", "this safetensors file was not written by maxmargin")
    version = metadata.get("format_version")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            source,
            "metadata 'format_version'",
            f"the file has format {version!r}, this version of maxmargin reads {FORMAT_VERSION!r}; use the version "
            "that wrote it, or train again",
        )
    expected = {"format", "format_version", "document", "sha256"}
    if set(metadata) != expected or not all(isinstance(value, str) for value in metadata.values()):
        raise ModelFileError(source, "metadata", f"expected exactly the texts {sorted(expected)}")
    tensors = _tensors(blob, header, source)
    if checksum(metadata["document"], tensors) != metadata["sha256"]:
        raise ModelFileError(
            source,
            "metadata 'sha256'",
            "the checksum does not fit: something in the file was changed after it was written",
        )
    try:
        document = _strict_json(metadata["document"])
    except (ValueError, RecursionError) as error:
        raise ModelFileError(source, "metadata 'document'", f"this is no valid JSON: {error}") from None
    return model_from(document, tensors, source)


def _strict_json(text: str) -> Any:
    """JSON without what different readers understand differently."""
    value = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constants)
    json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    return value


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _no_constants(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _header(blob: bytes, source: str) -> dict[str, Any]:
    """The header as safetensors defines it, read strictly: its own reader takes duplicate keys."""
    if len(blob) < 8:
        raise ModelFileError(source, "file", f"this is no model file: it has {len(blob)} bytes")
    size = int.from_bytes(blob[:8], "little")
    if size > min(len(blob) - 8, MOST_HEADER):
        raise ModelFileError(source, "header", "this is no model file, or its end is missing")
    try:
        header = _strict_json(blob[8 : 8 + size].decode())
    except (ValueError, RecursionError) as error:
        raise ModelFileError(source, "header", f"this is no valid JSON: {error}") from None
    if not isinstance(header, dict):
        raise ModelFileError(source, "header", "expected a JSON object")
    return header


def _tensors(blob: bytes, header: dict[str, Any], source: str) -> dict[str, Any]:
    from safetensors import SafetensorError, deserialize

    for name, entry in header.items():
        if not isinstance(entry, dict) or entry.get("dtype") not in list(DTYPES):  # it may be a list itself
            raise ModelFileError(source, f"tensor {name!r}", f"expected a dtype of {sorted(DTYPES)}")
    try:
        found = dict(deserialize(blob))  # type: ignore[no-untyped-call]
    except (SafetensorError, ValueError, OverflowError) as error:
        raise ModelFileError(source, "header", f"sizes or positions of the tensors are wrong: {error}") from None
    tensors = {}
    for name, part in found.items():
        if len(part["shape"]) > 2:
            raise ModelFileError(source, f"tensor {name!r}", "expected one or two dimensions")
        array = np.frombuffer(bytes(part["data"]), dtype=DTYPES[part["dtype"]]).reshape(part["shape"])
        if not np.isfinite(array).all():
            place = int(np.flatnonzero(~np.isfinite(array.ravel()))[0])
            raise ModelFileError(source, f"tensor {name!r}, entry {place}", "expected a finite number")
        tensors[name] = array
    return tensors

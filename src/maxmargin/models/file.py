"""Model files: safetensors with one JSON document as metadata. Data only; loading executes nothing.

Layout, format 1
    metadata   format = "maxmargin", format_version = "1", document = JSON, sha256 = of document and tensors
    tensors    coef (1, d), intercept (1,), dual (n,): y_i alpha_i, mean (d,), scale (d,), rows (n,), weight (n,); the
               last five if there are any. float64, rows int64.
Every number is stored once, so there is nothing that could disagree.
"""

from __future__ import annotations

import io
import json
import os
from typing import IO, Any

import numpy as np

from maxmargin.data import DataError, tensors
from maxmargin.data.files import atomic_write, open_plain
from maxmargin.errors import InputError
from maxmargin.models.document import ModelFileError, check_shapes, document_of, model_from
from maxmargin.models.model import Model, Training, trained_on
from maxmargin.models.scaling import Scaling
from maxmargin.svm import LinearSVC

FORMAT, FORMAT_VERSION = "maxmargin", "1"


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
    machine = model.machine
    coef = machine.coef_.toarray() if hasattr(machine.coef_, "toarray") else machine.coef_
    arrays = {"coef": coef, "intercept": machine.intercept_}
    if dual and model.has_dual:
        signed = np.zeros(model.training.n_rows)
        signed[machine.support_] = machine.dual_coef_[0]
        arrays["dual"] = signed
    if model.scaling is not None:
        arrays["scale"] = model.scaling.scale
        if model.scaling.mean is not None:
            arrays["mean"] = model.scaling.mean
    if model.training.rows is not None:
        arrays["rows"] = model.training.rows
    if getattr(machine, "_sample_weight", None) is not None:
        arrays["weight"] = machine._sample_weight
    plain = {
        name: np.ascontiguousarray(array, dtype="<i8" if name == "rows" else "<f8") for name, array in arrays.items()
    }
    document = json.dumps(document_of(model), allow_nan=False, ensure_ascii=False, sort_keys=True)
    try:
        document.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the model cannot be saved: a label or a column's name is no valid text: {error}") from None
    return tensors.to_bytes(document, plain, FORMAT, FORMAT_VERSION)


def load(path: str | os.PathLike[str]) -> Model:
    """Load a model file; anything unexpected in it is an error that says what and where.

    The header is read first. Whether this is a model file, of which version, and whether the sizes of all arrays are
    what its document says, is known before any array is read.
    """
    try:
        with open_plain(path) as file:
            return _read(file, str(path))
    except DataError as error:  # the file changed meanwhile
        raise ModelFileError(str(path), error.place, error.problem) from None


def from_bytes(blob: bytes, source: str = "model") -> Model:
    """The model in the content of a model file."""
    return _read(io.BytesIO(blob), source)


def _read(file: IO[bytes], source: str) -> Model:
    try:
        opened = tensors.open_tensors(file, FORMAT, FORMAT_VERSION, "model file")
        header = opened.header
        check_shapes(header.document, {n: (e.shape, e.dtype) for n, e in header.entries.items()}, source)
        arrays = opened.arrays()
    except tensors.BadFile as error:
        raise ModelFileError(source, error.place, error.problem) from None
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            place = int(np.flatnonzero(~np.isfinite(array.ravel()))[0])
            raise ModelFileError(source, f"tensor {name!r}, entry {place}", "expected a finite number")
    return model_from(header.document, arrays, source)

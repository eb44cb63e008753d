"""A machine in the middle of its rows, on disk: arrays and numbers only, written whole or not at all."""

from __future__ import annotations

import json
import os
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

import maxmargin._core as _core
from maxmargin.data import DataError
from maxmargin.data.files import atomic_write
from maxmargin.online.memory import Memory

FREE = ("max_seconds", "verbose")  # parameters that do not change what is learned
KIND = "maxmargin checkpoint 1"
ATTRIBUTES = (
    "_n_calls",
    "n_features_in_",
    "_gain_now",
    "_eta_now",
    "_log_base_now",
    "_threshold_now",
    "_radius_known",
    "_start_norm",
)


class Checkpoint:
    """The file of one machine and one source; ``load`` refuses what belongs to another."""

    def __init__(self, path: str | os.PathLike[str], machine: Any, source: dict[str, Any], classes: Any = None) -> None:
        self.path, self.machine, self.source, self.classes = Path(path), machine, source, classes

    def save(self, place: dict[str, Any]) -> None:
        """Write the machine and where it stands; an older checkpoint stays until the new one is complete."""
        machine = self.machine
        arrays = {
            f"{k}.{name}": np.ascontiguousarray(array)
            for k, memory in enumerate(machine._memories)
            for name, array in memory.arrays.items()
        }
        document = {
            "kind": KIND,
            "version": _core.info()["version"],
            "machine": type(machine).__name__,
            "parameters": _parameters(machine),
            "source": self.source,
            "place": place,
            "numbers": [memory.numbers for memory in machine._memories],
            "attributes": {name: getattr(machine, name) for name in ATTRIBUTES if hasattr(machine, name)},
            "names": getattr(machine, "feature_names_in_", np.array([])).tolist(),
            "classes": machine.classes_.tolist() if hasattr(machine, "classes_") else None,
            "class_type": machine.classes_.dtype.str if hasattr(machine, "classes_") else None,
        }
        try:
            text = json.dumps(document)
        except TypeError as error:
            raise ValueError(f"this machine cannot be saved: {error}; use labels that are numbers or text") from None
        with atomic_write(self.path) as file:
            file.write(to_bytes(arrays, metadata={"maxmargin": text}))

    def load(self) -> dict[str, Any] | None:
        """Put the saved state into the machine and say where it stood; None if there is no file."""
        if not self.path.exists():
            return None
        document, arrays = self._read()
        try:
            self._compare(document)
            return self._restore(document, arrays)
        except (KeyError, TypeError, IndexError) as error:
            problem = f"this checkpoint is damaged ({type(error).__name__}: {error}); delete it to start afresh"
            raise DataError(str(self.path), "file", problem) from None

    def _restore(self, document: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
        machine = self.machine
        machine._forget()
        machine._check_passes()
        memories = [Memory({}, numbers) for numbers in document["numbers"]]
        for key, array in arrays.items():
            k, name = key.split(".", 1)
            memories[int(k)].arrays[name] = array
        for name, value in document["attributes"].items():
            setattr(machine, name, value)
        if document["names"]:
            machine.feature_names_in_ = np.array(document["names"], dtype=object)
        machine._memories = memories
        if document["classes"] is not None:
            machine.classes_ = np.array(document["classes"], dtype=np.dtype(document["class_type"]))
        machine._restore()
        place: dict[str, Any] = document["place"]
        return place

    def _read(self) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            with safe_open(self.path, framework="numpy") as file:
                document = json.loads((file.metadata() or {}).get("maxmargin", "null"))
                arrays = {key: np.array(file.get_tensor(key)) for key in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError, ValueError) as error:
            raise DataError(
                str(self.path), "file", f"this is not a checkpoint ({error}); use another file name, or delete it"
            ) from None
        if not isinstance(document, dict) or document.get("kind") != KIND:
            problem = "this is not a checkpoint of this version; use another file name, or delete it to start afresh"
            raise DataError(str(self.path), "file", problem)
        return document, arrays

    def _compare(self, document: dict[str, Any]) -> None:
        here = {"machine": type(self.machine).__name__, "source": self.source, "parameters": _parameters(self.machine)}
        for name, value in here.items():
            if document[name] != value:
                other = "other parameters" if name == "parameters" else f"another {name}"
                raise ValueError(
                    f"the checkpoint {self.path} is of {other}: {_differing(document[name], value)}. "
                    "Use another file name, or delete it to start afresh."
                )
        if self.classes is not None and document["classes"] != np.unique(np.asarray(self.classes)).tolist():
            raise ValueError(
                f"the checkpoint {self.path} knows the classes {document['classes']}, not {list(self.classes)!r}. Use "
                "another file name, or delete it to start afresh."
            )


def _parameters(machine: Any) -> dict[str, str]:
    return {name: _plain(value) for name, value in sorted(machine.get_params().items()) if name not in FREE}


def _plain(value: Any) -> str:
    """The same text for numbers that are the same."""
    number = isinstance(value, Real | np.number) and not isinstance(value, bool | np.bool_)
    return repr(float(value)) if number else repr(bool(value) if isinstance(value, np.bool_) else value)


def _differing(there: Any, here: Any) -> str:
    """What was found and what was expected; of parameters only those that differ."""
    if isinstance(there, dict) and isinstance(here, dict):
        names = [name for name in sorted({*there, *here}) if there.get(name) != here.get(name)]
        return ", ".join(f"{name} is {there.get(name)} in the file, {here.get(name)} here" for name in names)
    return f"{there!r} in the file, {here!r} here"

"""A machine in the middle of its rows, on disk: arrays and numbers only, written whole or not at all.

A checkpoint is a safetensors file with a JSON document and a checksum over everything (:mod:`maxmargin.data.tensors`).
Of what it holds, a machine takes only what machines of its kind have: no other attribute, number or array.
"""

from __future__ import annotations

import json
import math
import os
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import maxmargin._core as _core
from maxmargin.data import DataError, tensors
from maxmargin.data.files import atomic_write, open_plain
from maxmargin.data.seal import is_seal
from maxmargin.errors import InputError
from maxmargin.online.memory import COUNTS, VOTERS, Memory, shape_of

FREE = ("max_seconds", "verbose")  # parameters that do not change what is learned
FORMAT, FORMAT_VERSION = "maxmargin checkpoint", "1"
CLASS_KINDS = "biufU"  # of NumPy types that labels in a document can have
# What may stand for a whole number, a number, or a number or truth value.
FITTING: dict[type, tuple[type, ...]] = {int: (int,), float: (int, float), bool: (int, float, bool)}
NOT_FINITE = ("nan", "inf", "-inf")  # JSON has no such numbers; a machine that diverged has


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
            "version": _core.info()["version"],
            "machine": type(machine).__name__,
            "parameters": _parameters(machine),
            "source": self.source,
            "place": place,
            "numbers": [_written(memory.numbers) for memory in machine._memories],
            "attributes": _written({name: getattr(machine, name) for name in machine._kept if hasattr(machine, name)}),
            "names": getattr(machine, "feature_names_in_", np.array([])).tolist(),
            "classes": machine.classes_.tolist() if hasattr(machine, "classes_") else None,
            "class_type": machine.classes_.dtype.str if hasattr(machine, "classes_") else None,
        }
        if "classes_" in vars(machine) and machine.classes_.dtype.kind not in CLASS_KINDS:
            raise InputError(
                f"this machine cannot be saved: its labels are {machine.classes_.dtype}; use labels that are numbers "
                "or text"
            )
        blob = tensors.to_bytes(json.dumps(document, allow_nan=False), arrays, FORMAT, FORMAT_VERSION)
        with atomic_write(self.path) as file:
            file.write(blob)

    def load(self) -> dict[str, Any] | None:
        """Put the saved state into the machine and say where it stood; None if there is no file."""
        if not self.path.exists():
            return None
        try:
            with open_plain(self.path) as file:
                opened = tensors.open_tensors(file, FORMAT, FORMAT_VERSION, "checkpoint")
                document, arrays = opened.header.document, opened.arrays()
                self._compare(document)
                return self._restore(document, arrays)
        except tensors.BadFile as error:
            raise DataError(
                str(self.path),
                error.place,
                f"this is not a checkpoint of this version, or it is damaged: {error.problem}. Use another file name, "
                "or delete it to start afresh",
            ) from None
        except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise self._damaged(f"{type(error).__name__}: {error}") from None

    def _damaged(self, problem: str) -> DataError:
        return DataError(
            str(self.path), "document", f"this checkpoint is damaged ({problem}); delete it to start afresh"
        )

    def _restore(self, document: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
        """Everything is checked before the machine is changed."""
        machine = self.machine
        machine._check_passes()
        attributes = self._known("attribute", document["attributes"], machine._kept)
        allowed: dict[str, type] = dict.fromkeys((*machine._numbers, *COUNTS), bool)
        memories = [Memory({}, self._known("number", numbers, allowed)) for numbers in document["numbers"]]
        for key, array in arrays.items():
            k, _, name = key.partition(".")
            if k not in map(str, range(len(memories))):
                raise self._damaged(f"the array {key!r} belongs to no hyperplane")
            memories[int(k)].arrays[name] = array
        classes = self._classes(document)
        self._refuse_other_arrays(memories, classes, attributes.get("n_features_in_", 0))
        names = self._names(document["names"], attributes["n_features_in_"])
        place = self._place(document["place"], len(memories))
        machine._forget()
        machine._check_passes()
        for name, value in attributes.items():
            setattr(machine, name, value)
        if names:
            machine.feature_names_in_ = np.array(names, dtype=object)
        machine._memories = memories
        if classes is not None:
            machine.classes_ = classes
        machine._restore()
        return place

    def _known(self, what: str, values: dict[str, Any], allowed: dict[str, type]) -> dict[str, Any]:
        """Numbers by name, if machines of this kind have them."""
        found: dict[str, Any] = {}
        for name, value in values.items():
            if name not in allowed:
                raise self._damaged(f"{type(self.machine).__name__} has no {what} {name!r}")
            number = float(value) if value in NOT_FINITE else value
            if type(number) not in FITTING[allowed[name]]:
                raise self._damaged(f"the {what} {name!r} is {value!r}")
            found[name] = number
        return found

    def _classes(self, document: dict[str, Any]) -> NDArray[Any] | None:
        if document["classes"] is None:
            return None
        kind = np.dtype(document["class_type"])
        if kind.kind not in CLASS_KINDS:
            raise self._damaged(f"labels of type {kind}")
        try:
            classes = np.array(document["classes"], dtype=kind)
        except ValueError:
            classes = np.empty(0)
        if classes.ndim != 1 or len(classes) < 2 or classes.tolist() != document["classes"]:
            raise self._damaged("the classes are no list of labels")
        return classes

    def _refuse_other_arrays(self, memories: list[Memory], classes: NDArray[Any] | None, n_features: int) -> None:
        """The arrays must be those that the machine would make itself for such rows."""
        if n_features < 1 or (classes is None) is hasattr(type(self.machine), "decision_function"):
            raise self._damaged("the number of columns or the classes are missing")
        machine = self.machine
        fresh = [machine._fresh(n_features)] if classes is None else machine._machines(len(classes), n_features)
        if [shape_of(memory) for memory in memories] != [shape_of(memory) for memory in fresh]:
            raise self._damaged("the arrays are not those of this machine, these columns and these classes")
        for memory in memories:
            voters = {len(array) for name, array in memory.arrays.items() if name in VOTERS}
            if len(voters) > 1 or any(array.dtype != np.float64 for array in memory.arrays.values()):
                raise self._damaged("the arrays do not fit each other")

    def _names(self, names: Any, n_features: int) -> list[str]:
        good = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not good or len(names) not in (0, n_features):
            raise self._damaged("the names are not those of the columns")
        return list(names)

    def _place(self, place: dict[str, Any], n_memories: int) -> dict[str, Any]:
        if set(place) != {"pass", "position", "totals", "seal"} or type(place["pass"]) is not int or place["pass"] < 0:
            raise self._damaged("where the machine stood is missing")
        counts = [counts for entry in place["totals"] for counts in entry]
        pairs = all(len(entry) == 2 for entry in place["totals"])
        if not pairs or not all(len(c) == n_memories and all(type(n) is int for n in c) for c in counts):
            raise self._damaged("the counts of the passes are wrong")
        if place["seal"] is not None and not is_seal(place["seal"]):
            raise self._damaged("the digest of what was read is wrong")
        return place

    def _compare(self, document: dict[str, Any]) -> None:
        here = {"machine": type(self.machine).__name__, "source": self.source, "parameters": _parameters(self.machine)}
        for name, value in here.items():
            if document[name] != value:
                other = "other parameters" if name == "parameters" else f"another {name}"
                raise InputError(
                    f"the checkpoint {self.path} is of {other}: {_differing(document[name], value)}. "
                    "Use another file name, or delete it to start afresh."
                )
        if self.classes is not None and document["classes"] != np.unique(np.asarray(self.classes)).tolist():
            raise InputError(
                f"the checkpoint {self.path} knows the classes {document['classes']}, not {list(self.classes)!r}. Use "
                "another file name, or delete it to start afresh."
            )


def _written(numbers: dict[str, Any]) -> dict[str, Any]:
    """Numbers as JSON can hold them; NaN and infinities as text."""
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in numbers.items()}
    return {name: value if math.isfinite(value) else str(float(value)) for name, value in plain.items()}


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

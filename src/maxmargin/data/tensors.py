"""Arrays and one JSON document in a safetensors file, with a checksum over both; read strictly and by its header first.

Layout: 8 bytes with the header's length, the header as JSON, the arrays one after the other. The header's metadata are
four texts: ``format``, ``format_version``, ``document`` and ``sha256``.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

DTYPES = {"F64": np.dtype("<f8"), "I64": np.dtype("<i8")}
METADATA = ("document", "format", "format_version", "sha256")
MOST_HEADER = 100_000_000  # bytes, the limit of safetensors itself
MOST_DIMENSIONS = 2
LARGEST_SIZE = 2**62


class BadFile(Exception):
    """A file that is not what was asked for: the place, and what is wrong there."""

    def __init__(self, place: str, problem: str) -> None:
        self.place, self.problem = place, problem
        super().__init__(f"{place}: {problem}")


@dataclass(frozen=True)
class Entry:
    """What the header says of an array: its type, its shape, and its bytes behind the header."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    """A header that passed every check; nothing behind it was read.

    Attributes
    ----------
    document : the JSON document.
    entries : the arrays that follow, by name.
    """

    text: str
    document: Any
    sha256: str
    entries: dict[str, Entry]


class TensorFile:
    """A file whose header was read and checked, with the arrays yet to come."""

    def __init__(self, file: IO[bytes], size: int, format: str, version: str, what: str) -> None:
        self._file = file
        self._begin, raw = _raw_header(file, size, what)
        self.header = _checked(raw, size - self._begin, format, version, what)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays, if the checksum fits."""
        found = {}
        for name, entry in sorted(self.header.entries.items(), key=lambda item: item[1].begin):
            array = np.empty(entry.shape, dtype=entry.dtype)
            self._file.seek(self._begin + entry.begin)
            view = array.reshape(-1).view(np.uint8).data
            if self._file.readinto(view) != len(view):  # type: ignore[attr-defined]
                raise BadFile("file", "its end is missing")
            found[name] = array
        if checksum(self.header.text, found) != self.header.sha256:
            raise BadFile(
                "metadata 'sha256'",
                "the checksum does not fit: something in the file was changed after it was written",
            )
        return found


def checksum(document: str, tensors: dict[str, Any]) -> str:
    """SHA-256 of the document and of every array with its name, type and shape.

    Examples
    --------
    >>> one, other = (checksum("{}", {"a": np.zeros(2, dtype)}) for dtype in (np.int64, np.float64))
    >>> len(one), one == other
    (64, False)
    """
    state = hashlib.sha256(document.encode())
    for name, tensor in sorted(tensors.items()):
        state.update(f"{name}{tensor.dtype.str}{tensor.shape}".encode())
        state.update(np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data)
    return state.hexdigest()


def to_bytes(document: str, tensors: dict[str, NDArray[Any]], format: str, version: str) -> bytes:
    """The content of a file. The same arrays make the same bytes.

    Examples
    --------
    >>> import io
    >>> blob = to_bytes('{"a": 1}', {"x": np.arange(3.0)}, "example", "1")
    >>> file = TensorFile(io.BytesIO(blob), len(blob), "example", "1", "example")
    >>> file.header.document, file.arrays()["x"]
    ({'a': 1}, array([0., 1., 2.]))
    """
    names = {dtype: name for name, dtype in DTYPES.items()}
    metadata = {"format": format, "format_version": version, "document": document}
    header: dict[str, Any] = {"__metadata__": {**metadata, "sha256": checksum(document, tensors)}}
    end, parts = 0, []
    for name, tensor in sorted(tensors.items()):
        begin, end = end, end + tensor.nbytes
        parts.append(np.ascontiguousarray(tensor).tobytes())
        header[name] = {"data_offsets": [begin, end], "dtype": names[tensor.dtype], "shape": list(tensor.shape)}
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # arrays begin at a multiple of 8
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def open_tensors(file: IO[bytes], format: str, version: str, what: str) -> TensorFile:
    """The file, once its header passed every check; ``what`` is what messages call such a file."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return TensorFile(file, size, format, version, what)


def _raw_header(file: IO[bytes], size: int, what: str) -> tuple[int, bytes]:
    """Where the arrays begin, and the header's bytes."""
    if size < 8:
        raise BadFile("file", f"this is no {what}: it has {size} bytes")
    length = int.from_bytes(file.read(8), "little")
    if length > min(size - 8, MOST_HEADER):
        raise BadFile("header", f"this is no {what}, or its end is missing")
    first = file.read(min(length, 1))
    if first != b"{":
        raise BadFile("header", f"this is no {what}: expected a JSON object")
    raw = first + file.read(length - 1)
    if len(raw) != length:
        raise BadFile("file", "its end is missing")
    return 8 + length, raw


def _checked(raw: bytes, n_bytes: int, format: str, version: str, what: str) -> Header:
    try:
        header = strict_json(raw.decode())
    except (ValueError, RecursionError) as error:
        raise BadFile("header", f"this is no valid JSON: {error}") from None
    metadata = header.pop("__metadata__", None)
    found = metadata.get("format") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or found != format:
        whose = f"its format is {found!r}, not {format!r}" if isinstance(found, str) else "it has no format"
        raise BadFile("metadata", f"this safetensors file was not written by maxmargin as a {what}: {whose}")
    if metadata.get("format_version") != version:
        raise BadFile(
            "metadata 'format_version'",
            f"the file has format {metadata.get('format_version')!r}, this version of maxmargin reads {version!r}; use "
            "the version that wrote it, or make it again",
        )
    if sorted(metadata) != list(METADATA) or not all(isinstance(value, str) for value in metadata.values()):
        raise BadFile("metadata", f"expected exactly the texts {list(METADATA)}")
    entries = {name: _entry(name, value) for name, value in header.items()}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != end:
            raise BadFile("header", f"the position of the tensor {name!r} is wrong: expected {end}, got {entry.begin}")
        end = entry.end
    if end != n_bytes:
        raise BadFile("header", f"the sizes of the tensors are wrong: {end} bytes by the header, {n_bytes} in the file")
    try:
        document = strict_json(metadata["document"])
    except (ValueError, RecursionError) as error:
        raise BadFile("metadata 'document'", f"this is no valid JSON: {error}") from None
    return Header(metadata["document"], document, metadata["sha256"], entries)


def _entry(name: str, value: Any) -> Entry:
    place = f"tensor {name!r}"
    if not isinstance(value, dict) or value.get("dtype") not in list(DTYPES):  # it may be a list itself
        raise BadFile(place, f"expected a dtype of {sorted(DTYPES)}")
    shape: Any = value.get("shape")
    offsets: Any = value.get("data_offsets")
    if set(value) != {"dtype", "shape", "data_offsets"} or not (_are_sizes(shape) and _are_sizes(offsets)):
        raise BadFile(place, "in the header, expected exactly dtype, shape and data_offsets, with whole numbers")
    if not 1 <= len(shape) <= MOST_DIMENSIONS:
        raise BadFile(place, "expected one or two dimensions")
    n_bytes = 8
    for size in shape:
        n_bytes *= size
    if len(offsets) != 2 or offsets[1] - offsets[0] != n_bytes:
        raise BadFile(place, f"in the header, shape {shape} takes {n_bytes} bytes, but data_offsets are {offsets}")
    return Entry(DTYPES[value["dtype"]], tuple(shape), *offsets)


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < LARGEST_SIZE for value in values)


def strict_json(text: str) -> Any:
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

"""Seeded model files: good ones, damaged ones, and forged ones whose checksum fits all the same."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from numpy.typing import NDArray

from maxmargin import LinearSVC
from maxmargin.data import Encoding, Table
from maxmargin.data.csv import parse_csv
from maxmargin.data.tensors import checksum
from maxmargin.models import Model, Scaling, from_bytes, to_bytes, trained_on
from tests.fuzz.cases import chance, dice, mutated

Path = tuple[Any, ...]


class Raw(str):
    """JSON text that is written as it stands."""


@dataclass
class Parts:
    """What a model file is made of. ``entries`` replaces header entries of tensors once their place is known."""

    document: Any
    tensors: dict[str, NDArray[Any]]
    metadata: dict[str, Any]
    entries: dict[str, Any]


def render(value: Any) -> str:
    """JSON text of a value that may contain Raw."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {render(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(render, value)) + "]"
    return json.dumps(value)


def packed(parts: Parts, text: Raw | None = None, header_change: Callable[[bytes], bytes] | None = None) -> bytes:
    """The file; ``text`` stands in for the document. The checksum fits unless the metadata has one of its own."""
    document = text if text is not None else render(parts.document)
    metadata = {
        "format": "maxmargin",
        "format_version": "1",
        "document": str(document),
        "sha256": checksum(document, parts.tensors),
        **parts.metadata,
    }
    header: dict[str, Any] = {"__metadata__": {k: v for k, v in metadata.items() if v is not None}}
    data = b""
    for name, tensor in sorted(parts.tensors.items()):
        begin, data = len(data), data + tensor.tobytes()
        dtype = {"f": "F64", "i": "I64"}[tensor.dtype.kind]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [begin, len(data)]}
    for name, change in parts.entries.items():
        header[name] = {**header[name], **change} if isinstance(change, dict) and name in header else change
    raw = render(header).encode(errors="surrogatepass")
    raw = header_change(raw) if header_change else raw
    return len(raw).to_bytes(8, "little") + raw + data


# --- good ones ----------------------------------------------------------------------------------------------------


@cache
def good_models() -> tuple[Parts, ...]:
    """Small fitted models of every kind, as parts. Rounded, so that every machine makes the same bytes."""
    rng = np.random.default_rng(5)
    X = np.round(rng.standard_normal((8, 3)), 2)
    text = np.array(["no", "yes"] * 4)
    scaling, sparse_scaling = Scaling.learn(X), replace(Scaling.learn(X), mean=None)
    csv = b"age,town,class\n30,Oslo,a\n,Rome,b\n50,Oslo,b\n41,Lima,a\n"
    table = parse_csv(csv, "t.csv")
    encoding = Encoding.learn(table, missing="mean", text="onehot")
    E = encoding.apply(table)
    named = LinearSVC().fit(pd.DataFrame(X, columns=["a", "b", "c"]), np.arange(8) % 2)
    weighted = LinearSVC(loss="hinge", class_weight={False: 2.0}, C=0.5, penalize_intercept=True, intercept_scaling=3.0)
    some = {"rows": np.array([0, 2, 3, 5, 8, 9, 11, 40]), "positive": "yes", "source": "t.csv", "target": "class"}
    models = [
        (Model(LinearSVC().fit(X, np.arange(8) % 2), trained_on(X, np.arange(8) % 2)), True),
        (Model(LinearSVC().fit(X, np.arange(8) % 2 * 2.0), trained_on(X, text)), False),
        (Model(LinearSVC(C=0.1).fit(scaling.apply(X), text), trained_on(X, text, **some), scaling=scaling), True),
        (Model(LinearSVC().fit(X, text), trained_on(X, text), scaling=sparse_scaling, names=("a", "b", "c")), True),
        (Model(weighted.fit(X, text == "yes"), trained_on(X, text)), True),
        (Model(named, trained_on(X, text), names=("a", "b", "c")), True),
        (
            Model(
                LinearSVC().fit(E, table.labels()),
                trained_on(E, table.labels(), target="class"),
                encoding,
                Scaling.learn(E),
                encoding.feature_names,
            ),
            True,
        ),
    ]
    return tuple(_parts(to_bytes(model, dual=dual)) for model, dual in models)


def _parts(blob: bytes) -> Parts:
    from_bytes(blob)  # they are good ones
    size = int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8 : 8 + size])
    document = json.loads(header.pop("__metadata__")["document"])
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        array = np.frombuffer(blob[begin:end], dtype={"F64": "<f8", "I64": "<i8"}[entry["dtype"]])
        tensors[name] = np.round(array.reshape(entry["shape"]), 6)
    solution = document["solution"]
    solution.update(seconds=0.25, primal=round(solution["primal"], 6), dual=round(solution["dual"], 6), gap=1e-9)
    solution["bias_interval"] = [end and round(end, 6) for end in solution["bias_interval"]]
    solution["history"] = [[1, 0.125, None, "interior point", False], [2, 0.25, 1e-9, "certified", True]]
    return Parts(document, tensors, {}, {})


def table_for(encoding: Encoding, n_rows: int = 3) -> Table:
    """Rows that an encoding can take: its levels and a stranger in text columns, numbers elsewhere."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for column in encoding.columns:
        known = ["stranger"] if column.levels is None else [*column.levels, "stranger"]
        text = column.levels is not None
        columns[column.name] = [known[i % len(known)] if text else 0.5 * i for i in range(n_rows)]
    return Table("case", pa.table(columns), tuple(columns))


# --- changes ------------------------------------------------------------------------------------------------------

DEEP = 3000  # beyond any sensible nesting, and beyond Python's recursion limit
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 0.5, -2.5, 2**31, 2**63, -(2**63), 2**64, 10**400, "", "x", "auto", "balanced",
    "hinge", "\x00", "é" * 50, "\ud800", [], {}, [[]], [1], [None, None], [[1, 2.0]], [["no", 10**400]], {"a": 1},
    [1, 0.1, None, "p", True], Raw("1e400"), Raw("-1e400"), Raw("1e308"), Raw("-1e308"), Raw("5e-324"), Raw("NaN"),
    Raw("Infinity"), Raw("-Infinity"), Raw("-0.0"), Raw("9" * 5000), Raw("01"), Raw("'x'"), Raw(""), Raw("1]"),
    Raw("[" * DEEP + "]" * DEEP), Raw('{"a":' * DEEP + "1" + "}" * DEEP),
    Raw('"\\u0000"'), Raw('"\\ud800"'), Raw('"\\'),
)  # fmt: skip
ODD_FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-300, 5e-324, 1e100, 1e160, 1e308, -1e308, np.nan, np.inf, -np.inf, 1e9)
ODD_TEXTS: tuple[Any, ...] = (None, "", "1", "2", "maxmargin", "pt", 1, [], {}, True, "0" * 64, Raw("null"), "\ud800")
ODD_DTYPES: tuple[Any, ...] = ("F32", "I64", "F8_E4M3", "BOOL", "", None, [], {}, Raw('"F64", "dtype": "I64"'))
ODD_ENTRIES: tuple[Any, ...] = (
    *({"dtype": dtype} for dtype in ODD_DTYPES),
    *({"shape": shape} for shape in ([], [0], [-1], [2**62, 4], [2**64], [1.5], [1] * 70, [2**32, 2**32], None, 3)),
    *({"data_offsets": ends} for ends in ([0, 0], [8, 0], [-8, 8], [0], [0, 2**64 - 1], [2**64 - 8, 2**64], None)),
    {"extra": 1}, {}, None, [], 7, {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]},
    {"dtype": "F64", "shape": [0] * 70, "data_offsets": [0, 0]},
)  # fmt: skip


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths to everything in a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*path, key))


def change_document(rng: Random, parts: Parts) -> None:
    """Replace, remove, rename, double or move one thing in the document."""
    path = rng.choice([p for p in paths(parts.document) if p])
    parent = parts.document
    for key in path[:-1]:
        parent = parent[key]
    key = path[-1]
    match rng.randrange(8):
        case 0:
            parent.pop(key)
        case 1 if isinstance(parent, dict):
            parent[rng.choice((key + "_", "", "C", "é"))] = parent.pop(key)
        case 2 if isinstance(parent, dict):
            old = render(parent[key])
            parent[key] = Raw(f"{old}, {json.dumps(key)}: {rng.choice((old, '1', 'null'))}")
        case 2 | 3 if isinstance(parent, list):
            parent.insert(rng.randrange(len(parent) + 1), copy.deepcopy(rng.choice([parent[key], *ODD_VALUES])))
        case 4:
            near = parent
            parent[key] = copy.deepcopy(rng.choice(list(near.values()) if isinstance(near, dict) else near))
        case _:
            parent[key] = copy.deepcopy(rng.choice(ODD_VALUES))


def change_value(rng: Random, parts: Parts) -> None:
    """One value of one tensor, or all of them."""
    name = rng.choice(sorted(parts.tensors))
    tensor = parts.tensors[name] = parts.tensors[name].copy()
    odd: Any = rng.choice((-1, 0, 7, 2**63 - 1, -(2**63))) if tensor.dtype.kind == "i" else rng.choice(ODD_FLOATS)
    if tensor.size == 0 or chance(rng, 0.2):
        tensor[...] = odd
    else:
        tensor.flat[rng.randrange(tensor.size)] = odd


def change_tensor(rng: Random, parts: Parts) -> None:
    """Another shape, name, type or number of tensors."""
    name = rng.choice(sorted(parts.tensors))
    tensor = parts.tensors[name]
    match rng.randrange(6):
        case 0:
            del parts.tensors[name]
        case 1:
            parts.tensors[name] = rng.choice((tensor.T, tensor.ravel(), tensor[..., None], tensor[None]))
        case 2:
            parts.tensors[name] = np.concatenate([tensor, tensor], axis=-1)
        case 3:
            parts.tensors[name] = tensor[..., : rng.randrange(tensor.shape[-1] + 1)]
        case 4:
            parts.tensors[name] = np.clip(np.nan_to_num(tensor), -99, 99).astype(
                "<i8" if tensor.dtype.kind == "f" else "<f8"
            )
        case _:
            new = rng.choice(("mean", "scale", "rows", "dual", "coef", "intercept", "weight", "", "__metadata_", "é"))
            parts.tensors[new] = tensor


def change_entry(rng: Random, parts: Parts) -> None:
    name = rng.choice([*sorted(parts.tensors), "other", "__metadata__"])
    parts.entries[name] = copy.deepcopy(rng.choice(ODD_ENTRIES))


def change_metadata(rng: Random, parts: Parts) -> None:
    key = rng.choice(("format", "format_version", "document", "sha256", "more"))
    parts.metadata[key] = rng.choice((*ODD_TEXTS, Raw(f'"1", "{key}": "1"')))


CHANGES = (change_document, change_document, change_document, change_value, change_value, change_tensor, change_entry,
           change_metadata)  # fmt: skip


def model_case(seed: int, case: int) -> bytes:
    rng = dice("model", seed, case)
    parts = copy.deepcopy(rng.choice(good_models()))
    luck = rng.random()
    if luck < 0.02:
        return packed(parts)
    if luck < 0.65:
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            rng.choice(CHANGES if parts.tensors else CHANGES[:3])(rng, parts)
        return packed(parts)
    if luck < 0.8:  # any text as document, with a checksum that fits
        text = mutated(rng, render(parts.document).encode()).decode(errors="replace")
        return packed(parts, Raw(text))
    if luck < 0.88:
        return packed(parts, header_change=lambda header: mutated(rng, header))
    blob = packed(parts)
    if luck < 0.91:
        return blob[: rng.randrange(len(blob))] if chance(rng, 0.5) else blob + rng.randbytes(rng.randint(1, 20))
    return mutated(rng, blob)

"""Seeded arguments of Problem.from_arrays: arrays of all types and layouts, corrupt sparse matrices, odd options."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import scipy.sparse as sp
from numpy.typing import NDArray

from tests.fuzz.cases import chance, dice

Change = Callable[[Random, NDArray[Any]], Any]


@dataclass(frozen=True)
class ProblemCase:
    """What Problem.from_arrays is called with."""

    X: Any
    y: Any
    options: dict[str, Any]


def problem_case(seed: int, case: int) -> ProblemCase:
    """Good rows, labels and options, of which one is made odd, sometimes two, sometimes none."""
    rng = dice("problem", seed, case)
    odd = [chance(rng, p) for p in rng.choice(((0, 0, 0), (1, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.5, 0.5, 0.5)))]
    n_rows, n_cols = rng.choice((2, 4, 4, 7, 20)), rng.choice((1, 2, 3, 3, 9))
    if odd[0] and chance(rng, 0.1):
        n_rows, n_cols = rng.choice((0, 1)), rng.choice((0, 1))
    X: Any = np.array([rng.gauss(0.0, 2.0) for _ in range(n_rows * n_cols)]).reshape(n_rows, n_cols)
    if chance(rng, 0.5):
        X[np.abs(X) < 1.0] = 0.0
    if odd[0] and X.size and chance(rng, 0.2):
        X[rng.randrange(n_rows), rng.randrange(n_cols)] = rng.choice(ODD_FLOATS)
    # What a conversion makes of odd values is a case like any other.
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = sparse_rows(rng, X, odd[0]) if chance(rng, 0.5) else dense_rows(rng, X, odd[0])
        return ProblemCase(X, labels_for(rng, n_rows, odd[1]), options_for(rng, n_rows, odd[2]))


ODD_FLOATS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1.7e308, 1e155, -1e139, 3e38, 5e-324, -0.0)
ODD_CELLS: tuple[Any, ...] = (
    None, "red", "1.5", b"2", "", 10**400, -(10**400), 2**64, True, 1 + 2j, np.complex64(1j), Decimal("1.5"),
    Decimal("NaN"), Fraction(1, 3), Fraction(10**400), {"a": 1}, [1], (), {1}, np.float32(2), np.nan, np.inf, pd.NA,
    np.longdouble("1e4000"), pd.NaT, datetime.date(2024, 1, 1), np.datetime64("NaT"), np.timedelta64(3, "s"), object,
    np.array([1.0]), np.array([1.0, 2.0]), np.array(3), np.str_("x"), np.bool_(True), ..., sp.csr_array(np.eye(1)),
)  # fmt: skip


# --- dense --------------------------------------------------------------------------------------------------------

GOOD_TYPES = ("f8",) * 6 + ("f4",) * 3 + ("f2", ">f8", ">f4", "g", "i1", "i2", "i4", "i8", ">i4", "u1", "u4", "u8", "O")
ODD_TYPES = ("c8", "c16", "O", "O", "O", "g", "S4", "U4", "M8[s]", "m8[s]", "V8", "?")


def dense_rows(rng: Random, X: NDArray[Any], odd: bool) -> Any:
    dtype = np.dtype(rng.choice(ODD_TYPES if odd and chance(rng, 0.5) else GOOD_TYPES))
    if dtype.kind == "V":
        X = np.zeros(X.shape, dtype=rng.choice(("V8", "i4,f8", [("a", "f8", (2,))])))
    elif dtype.kind in "Mm":
        X = np.nan_to_num(X, posinf=9.0, neginf=9.0).clip(-9, 9).astype("i8").astype(dtype)
    else:
        X = X.astype(dtype)
    if odd and dtype.kind in "Og" and X.size:
        cell = np.empty(1, dtype=dtype)
        cell[0] = rng.choice(ODD_CELLS) if dtype.kind == "O" else np.longdouble(rng.choice(("1e4000", "1e-4000")))
        at = rng.randrange(X.shape[0])
        X[at : at + 1, rng.randrange(X.shape[1])] = cell
    if odd and chance(rng, 0.5):
        return rng.choice(ODD_LAYOUTS)(rng, X)
    return rng.choice(LAYOUTS)(rng, X) if chance(rng, 0.6) else X


def _unaligned(rng: Random, X: NDArray[Any]) -> Any:
    if X.dtype.hasobject:
        return X
    return np.frombuffer(b"\0" + X.tobytes(), dtype=np.uint8)[1:].view(X.dtype).reshape(X.shape)


def _read_only(rng: Random, X: NDArray[Any]) -> Any:
    X.setflags(write=False)
    return X


def _masked(rng: Random, X: NDArray[Any]) -> Any:
    mask = np.zeros(X.shape, dtype=bool)
    if X.size and chance(rng, 0.5):
        mask.flat[rng.randrange(X.size)] = True
    return np.ma.masked_array(X, mask=mask)


def _ragged(rng: Random, X: NDArray[Any]) -> Any:
    rows = X.tolist()
    if rows:
        rows[-1] = rng.choice((rows[-1][:-1], [*rows[-1], 1.0], 3.0, None, "text", [rows[-1]], {}))
    return rows


def _cyclic(rng: Random, X: NDArray[Any]) -> Any:
    rows: list[Any] = X.tolist()
    rows.append(rows)
    return rows


LAYOUTS: tuple[Change, ...] = (
    lambda rng, X: np.asfortranarray(X),
    lambda rng, X: np.repeat(X, 2, axis=1)[:, ::2],
    lambda rng, X: np.repeat(X, 3, axis=0)[1::3],
    lambda rng, X: X[::-1, ::-1],
    lambda rng, X: np.broadcast_to(X[:1], X.shape),
    lambda rng, X: X[:, :1],
    lambda rng, X: X.tolist(),
    lambda rng, X: tuple(map(tuple, X.tolist())),
    lambda rng, X: [np.asarray(row) for row in X],
    lambda rng, X: np.matrix(X),
    lambda rng, X: pd.DataFrame(X) if X.dtype in (np.float32, np.float64, np.int64, np.dtype(object)) else X,
    lambda rng, X: np.ascontiguousarray(X).data if X.dtype in (np.float32, np.float64) else X,
    _unaligned, _read_only, _masked,
)  # fmt: skip
ODD_LAYOUTS: tuple[Change, ...] = (
    lambda rng, X: X.T,
    lambda rng, X: X.ravel(),
    lambda rng, X: X[None],
    lambda rng, X: X.reshape(X.shape + (1,) * rng.choice((1, 62))),
    lambda rng, X: X.sum() if X.dtype.kind == "f" else X[:0],
    lambda rng, X: rng.choice((None, "text", 3, {}, [], [[]], [[], []], {1, 2}, range(4), object(), b"ab", iter([1]))),
    _ragged, _ragged, _cyclic, _masked,
)  # fmt: skip


# --- sparse -------------------------------------------------------------------------------------------------------

FORMS = ("csr", "csr", "csr", "csc", "csc", "coo", "coo", "bsr", "bsr", "dia", "lil", "dok")
PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col", "coords"),
    "dia": ("data", "offsets"),
    "lil": ("data", "rows"),
}


def sparse_rows(rng: Random, X: NDArray[Any], odd: bool) -> Any:
    form = rng.choice(FORMS)
    if 0 in X.shape and form == "bsr":
        form = "csr"
    dtype = rng.choice(("f8", "f8", "f8", "f4", "i4", "u8", "?", "i1", "g", "c16" if odd else "f4"))
    out = sp.coo_array(X.astype(dtype)).asformat(form)
    if chance(rng, 0.3):
        out = getattr(sp, f"{form}_matrix")(out)
    if form in ("csr", "csc", "bsr") and chance(rng, 0.3):
        out.indices, out.indptr = out.indices.astype("i8"), out.indptr.astype("i8")
    if odd and form in PARTS:
        for _ in range(rng.choice((1, 1, 2))):
            corrupt(rng, out, rng.choice(PARTS[form]))
    if odd and chance(rng, 0.02):
        return rng.choice((sp.coo_array(np.arange(3.0)), sp.coo_array(np.ones((2, 2, 2))), sp.eye_array(3).tocsr()[0]))
    return out


def corrupt(rng: Random, X: Any, part: str) -> None:
    """Set one part of a sparse matrix behind SciPy's back; where SciPy notices, nothing changes."""
    with suppress(AttributeError, IndexError, TypeError, ValueError, OverflowError):
        array = getattr(X, part)
        if part == "coords":
            short = tuple(index[:-1] for index in array)
            array = rng.choice((array[:1], array + array[:1], array[::-1], short, (), list(array)))
        elif X.format == "lil":
            _corrupt_list(rng, array)
        else:
            array = rng.choice(DAMAGE)(rng, array.copy())
        setattr(X, part, array)
    if X.format in ("csr", "csc", "bsr") and chance(rng, 0.5):
        X.has_sorted_indices = X.has_canonical_format = True  # a lie, perhaps


def _corrupt_list(rng: Random, lists: NDArray[Any]) -> None:
    at = rng.randrange(len(lists))
    old = lists[at]
    odd = ([10**6], [-1], [1, 1], [2, 0], [2**40], ["a"], [None], [0.5], [[1]], None, 3, [np.nan])
    lists[at] = rng.choice((old[:-1], [*old, 1], *odd))


def _one_changed(rng: Random, array: NDArray[Any]) -> Any:
    if array.size and array.dtype.kind in "iu":
        odd = (-1, -(2**31), 2**31 - 1, 0, 1, 3, 50, 10**7, len(array), len(array) + 1)
        array.flat[rng.randrange(array.size)] = rng.choice([v for v in odd if v >= 0 or array.dtype.kind == "i"])
    elif array.size and array.dtype.kind == "f":
        array.flat[rng.randrange(array.size)] = rng.choice(ODD_FLOATS)
    return array


OTHER_TYPES = ("f8", "u4", "u8", "i2", "i1", "u1", "O", "c16", "?", "S3", ">i4", ">i8", ">f8", "M8[s]")
DAMAGE: tuple[Change, ...] = (
    _one_changed, _one_changed, _one_changed, _one_changed, _one_changed,
    lambda rng, a: a[:-1],
    lambda rng, a: a[1:],
    lambda rng, a: a[:0],
    lambda rng, a: np.concatenate([a, a[-1:]]),
    lambda rng, a: np.concatenate([a, a]),
    lambda rng, a: a[::-1],
    lambda rng, a: np.repeat(a, 2, axis=0)[::2],
    lambda rng, a: a.astype(rng.choice(OTHER_TYPES)),
    lambda rng, a: a.astype(rng.choice(OTHER_TYPES)),
    lambda rng, a: a[:, None],
    lambda rng, a: a[None],
    lambda rng, a: a.reshape(-1)[0],
    lambda rng, a: a.tolist(),
    lambda rng, a: rng.choice((None, "text", 0, np.array(0), np.zeros((0, 0)))),
    lambda rng, a: np.ma.masked_array(a, mask=np.ones(a.shape, dtype=bool)),
)  # fmt: skip


# --- labels -------------------------------------------------------------------------------------------------------

GOOD_PAIRS: tuple[tuple[Any, ...], ...] = (
    (0, 1), (-1, 1), (-1.0, 1.0), ("no", "yes"), (False, True), (3, 8), (b"a", b"b"), (2**62, -(2**62)),
)  # fmt: skip
ODD_PAIRS: tuple[tuple[Any, ...], ...] = (
    (0.5, 1.5), (1, 1), ("a",), (0, 1, 2), (np.nan, 1.0), (np.inf, 1.0), (None, 1), (None, None), (1, "a"), ("", "\0"),
    (2**70, -(2**70)), (2**63, -1), (1 + 0j, 2 + 0j), ([1], [2]), ((1, 2), (3, 4)), ({}, {1: 2}), (pd.NA, 1),
    (Decimal(1), Decimal(2)), (Fraction(1, 2), 1), (pd.NaT, "a"), (datetime.date(2024, 1, 1), datetime.date.max),
    (np.datetime64("2020"), np.datetime64("2021")), (object, int), (np.str_("x"), "y"), (1, True), (0, -0.0), (1, [2]),
    (np.array([1, 2]), np.array([3, 4])), (np.longdouble(1), np.longdouble(2)), ("é", "e\u0301"), ("\ud800", "a"),
    (1e300, -1e300), (np.float16(1), np.float16(2)), (Decimal("NaN"), Decimal(1)), (Decimal("sNaN"), 1),
)  # fmt: skip


def labels_for(rng: Random, n_rows: int, odd: bool) -> Any:
    pair = rng.choice(ODD_PAIRS if odd and chance(rng, 0.7) else GOOD_PAIRS)
    n = rng.choice((0, 1, n_rows + 1, max(n_rows - 1, 0))) if odd and chance(rng, 0.1) else n_rows
    labels = [pair[i % len(pair)] for i in range(n)]
    if chance(rng, 0.5):
        rng.shuffle(labels)
    containers = ODD_CONTAINERS if odd and chance(rng, 0.3) else CONTAINERS
    return rng.choice(containers)(labels)


def _objects(labels: list[Any]) -> Any:
    out = np.empty(len(labels), dtype=object)
    for i, label in enumerate(labels):
        out[i] = label
    return out


def _array(labels: list[Any]) -> Any:
    try:
        return np.array(labels)
    except (TypeError, ValueError, OverflowError):  # ragged
        return _objects(labels)


CONTAINERS: tuple[Callable[[list[Any]], Any], ...] = (
    list, list, tuple, _array, _array, _objects,
    lambda labels: _array(labels).reshape(len(labels), -1) if labels else [],
    lambda labels: np.repeat(_array(labels), 2, axis=0)[::2],
    lambda labels: pd.Series(_objects(labels), dtype=object),
    lambda labels: pd.Series(_objects([ascii(v) for v in labels]), dtype=object).astype("category"),
)  # fmt: skip
ODD_CONTAINERS: tuple[Callable[[list[Any]], Any], ...] = (
    lambda labels: _objects(labels)[None],
    lambda labels: np.ma.masked_array(np.arange(len(labels)) % 2, mask=np.arange(len(labels)) == 1),
    lambda labels: sp.csr_array(np.arange(len(labels))[:, None] % 2),
    lambda labels: np.array([(i % 2, 1.0) for i in range(len(labels))], dtype="i4,f8"),
    lambda labels: (i % 2 for i in range(len(labels))),
    lambda labels: None,
    lambda labels: "text",
    lambda labels: 1,
    lambda labels: {i: i % 2 for i in range(len(labels))},
)


# --- options ------------------------------------------------------------------------------------------------------

GOOD_NUMBERS: tuple[Any, ...] = (1, 2.5, 0.01, np.float32(0.5), np.int8(3), Fraction(1, 3), np.float16(2))
ODD_NUMBERS: tuple[Any, ...] = (
    0, -1, 0.0, 1e-300, 1e-120, 1e300, 1e308, np.nan, np.inf, -np.inf, 10**400, True, None, "1", "", b"1", 1 + 0j, [],
    [1.0], np.bool_(True), np.array(2.0), np.array([2.0]), Decimal(2), Fraction(10**400), {}, object, pd.NA,
    np.longdouble("1e4000"), np.datetime64("2020"),
)  # fmt: skip
ODD_FLAGS: tuple[Any, ...] = (7, None, "no", [], np.array(True), np.array([1, 2]), 0.0, pd.NA)
ODD_LOSSES: tuple[Any, ...] = ("log", "", None, 1, ["hinge"], np.str_("hinge"), {})
CLASSES: tuple[tuple[Any, ...], ...] = (*GOOD_PAIRS, (5, 6), (np.nan, 1), (None, "a"), ((1, 2), 0), (pd.NA, 1))


def options_for(rng: Random, n_rows: int, odd: bool) -> dict[str, Any]:
    numbers = GOOD_NUMBERS + ODD_NUMBERS if odd else GOOD_NUMBERS
    options: dict[str, Any] = {}
    if chance(rng, 0.3):
        options["sample_weight"] = weights_for(rng, n_rows, odd)
    if chance(rng, 0.3):
        classes = rng.choice(CLASSES) if odd else ()
        weights = {label: rng.choice(numbers) for label in classes[: rng.randrange(3)]}
        options["class_weight"] = rng.choice((None, "balanced", weights))
        if odd and chance(rng, 0.2):
            options["class_weight"] = rng.choice(("equal", [1, 2], 2.0, "", b"balanced", np.array([1.0, 2.0])))
    for name in ("C", "intercept_scaling"):
        if chance(rng, 0.2):
            options[name] = rng.choice(numbers)
    for name in ("fit_intercept", "penalize_intercept"):
        if chance(rng, 0.2):
            options[name] = rng.choice((True, False, np.bool_(True), 0, 1, *(ODD_FLAGS if odd else ())))
    if chance(rng, 0.2):
        options["loss"] = rng.choice(("hinge", "squared_hinge", *(ODD_LOSSES if odd else ())))
    return options


def weights_for(rng: Random, n_rows: int, odd: bool) -> Any:
    weights: list[Any] = [rng.choice((1, 2.0, 0.5, 1e-3)) for _ in range(n_rows)]
    if not odd:
        return rng.choice((weights, tuple(weights), np.array(weights), _objects(weights), 2.0))
    if weights and chance(rng, 0.4):
        weights[rng.randrange(n_rows)] = rng.choice((*ODD_FLOATS, *ODD_CELLS, -1.0, 0.0))
        return rng.choice((list, tuple, _array, _objects))(weights)
    return rng.choice(ODD_WEIGHTS)(rng, _array(weights))


ODD_WEIGHTS: tuple[Change, ...] = (
    lambda rng, w: w[::-1],
    lambda rng, w: w[:-1],
    lambda rng, w: w[None],
    lambda rng, w: w[:, None],
    lambda rng, w: w.astype(rng.choice(("u1", "c16", "O", "S3", "M8[s]", "?", "g", ">f8", "V8"))),
    lambda rng, w: w * rng.choice((0.0, -1.0, 1e308, np.nan, np.longdouble("1e4000"), 1e-200)),
    lambda rng, w: sp.csr_array(w[:, None]),
    lambda rng, w: pd.Series(w),
    lambda rng, w: np.ma.masked_array(w, mask=np.arange(len(w)) == 1),
    lambda rng, w: rng.choice((0.0, -1.0, np.nan, 10**400, "a", {}, [], [[]], [[1], [1, 2]], 1 + 0j, pd.NA)),
)

"""What must hold for every case: success with a sane result, or an error of ours that says where and what.

Each target takes a case and returns whether it was accepted; whatever else it raises is a failure.
"""

from __future__ import annotations

import codecs
import copy
import io
import math
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

import maxmargin._core as _core
from maxmargin import DataError, InputError, ModelFileError, Problem
from maxmargin.data import Encoding, Table, complete_rows, csv, layout, svmlight
from maxmargin.models import Model, from_bytes, to_bytes
from tests.fuzz.cases import CsvCase, SvmlightCase, csv_case, svmlight_case
from tests.fuzz.model_cases import model_case, table_for
from tests.fuzz.problem_cases import ProblemCase, problem_case


class BrokenRule(AssertionError):
    """A case was neither used nor refused as it should be."""


def need(holds: Any, rule: str) -> None:
    if not bool(holds):
        raise BrokenRule(rule)


def check_error(error: InputError, source: str) -> None:
    """An error that names its place, and a sentence beside it."""
    need(isinstance(error, DataError | ModelFileError), f"a reader's error is a {type(error).__name__}")
    assert isinstance(error, DataError | ModelFileError)
    need(isinstance(error.place, str) and error.place.strip(), "the error's place is empty")
    need(error.source == source, f"the error's source is {error.source!r}")
    need(error.problem.strip() and source in str(error), "the error says nothing")


def check_matrix(X: Any, shape: tuple[int, int]) -> None:
    """Finite, of the shape expected; sparse positions in range and increasing."""
    need(X.shape == shape, f"the matrix is {X.shape}, expected {shape}")
    if not sp.issparse(X):
        need(np.isfinite(X).all(), "the matrix is not finite")
        return
    need(len(X.indptr) == shape[0] + 1 and X.indptr[0] == 0 and X.indptr[-1] == len(X.data), "indptr is wrong")
    need(np.isfinite(X.data).all(), "the matrix is not finite")
    for i in range(shape[0]):
        columns = X.indices[X.indptr[i] : X.indptr[i + 1]]
        need((np.diff(columns) > 0).all(), f"columns of row {i} do not increase")
        need(not len(columns) or (columns[0] >= 0 and columns[-1] < shape[1]), f"a column of row {i} does not exist")


@contextmanager
def constant(module: ModuleType, name: str, value: int | None) -> Iterator[None]:
    """A module's constant at another value for a while; None leaves it alone."""
    before = getattr(module, name)
    setattr(module, name, before if value is None else value)
    try:
        yield
    finally:
        setattr(module, name, before)


# --- svmlight -----------------------------------------------------------------------------------------------------


def run_svmlight(case: SvmlightCase) -> bool:
    n_good, n_bad = _forgiving(case)
    try:
        with constant(svmlight, "PIECE", case.piece):
            table = svmlight.parse_svmlight(io.BytesIO(case.text), "case.svm", n_threads=case.n_threads, **case.options)
    except DataError as error:
        check_error(error, "case.svm")
        need(n_bad or not n_good or case.options, "lines are good one by one, but not together")
        return False
    need(not n_bad and table.n_rows == n_good, "the number of rows depends on the pieces")
    need(len(table.labels()) == n_good and np.isfinite(table.labels()).all(), "labels are wrong")
    check_matrix(table.columns, (n_good, table.n_columns))
    _compare(case, table)
    return True


def _forgiving(case: SvmlightCase) -> tuple[int, int]:
    """Good and bad lines, all in one piece of exactly their size: one byte more would be seen by the sanitizer.

    In one thread, as all who forgive: with several, the others parse their parts again after each error.
    """
    parser = _core.SvmlightParser(keep_lines=True)
    text = np.frombuffer(case.text, dtype=np.uint8).copy()
    done, n_bad = 0, 0
    while True:
        done += parser.feed(text[done:], True, 1)
        if parser.error is None:
            break
        line, column, message = parser.error
        need(1 <= line == parser.n_lines and column >= 1 and message, "an error's place is wrong")
        n_bad += 1
        parser.forgive()
    need(done == len(text), "the parser stopped early")
    need(parser.n_lines == len(_lines(case)), "lines are lost")
    return parser.n_rows, n_bad


def _lines(case: SvmlightCase) -> list[bytes]:
    """The lines without mark and line ends."""
    lines = case.text.removeprefix(codecs.BOM_UTF8).split(b"\n")
    return lines if lines[-1] else lines[:-1]


def _compare(case: SvmlightCase, table: Table) -> None:
    """Every number is what Python makes of the same text."""
    labels, columns, values = [], [], []
    for line in _lines(case):
        tokens = line.partition(b"#")[0].split()
        if tokens:
            labels.append(float(tokens[0]))
            pairs = [token.partition(b":") for token in tokens[1:]]
            columns += [int(pair[0]) for pair in pairs]
            values += [float(pair[2]) for pair in pairs]
    need(np.array_equal(labels, table.labels()), "a label is not what the text says")
    need(np.array_equal(values, table.columns.data), "a value is not what the text says")
    first = columns[0] - int(table.columns.indices[0]) if columns else 0
    need(first in (0, 1), "columns count neither from 0 nor from 1")
    need(np.array_equal([column - first for column in columns], table.columns.indices), "a column is another one")


# --- CSV ----------------------------------------------------------------------------------------------------------


def run_csv(case: CsvCase) -> bool:
    try:
        with constant(layout, "BLOCK", case.block):
            read = copy.deepcopy(case.read)  # a list of bad rows is filled
            table = csv.parse_csv(case.text, "case.csv", options=csv.CsvOptions(**case.layout), **read)
        need(table.n_rows > 0 and table.names is not None, "a table without rows or names")
        need(table.y is None or table.y.shape == (table.n_rows,), "labels are not as many as rows")
        if case.learn["missing"] == "drop":
            table = table.take(complete_rows(table))
        encoding = Encoding.learn(table, **case.learn)
        X = encoding.apply(table)
        check_matrix(X, (table.n_rows, len(encoding.feature_names)))
    except InputError as error:
        check_error(error, "case.csv")
        return False
    return True


# --- models -------------------------------------------------------------------------------------------------------


def run_model(case: bytes) -> bool:
    try:
        model = from_bytes(case, "case")
    except InputError as error:
        check_error(error, "case")
        return False
    need(np.isfinite(model.machine.coef_).all() and np.isfinite(model.machine.intercept_).all(), "weights not finite")
    X = np.resize((-1.0, 0.0, 0.5, 2.0, 1.0), (3, model.n_features))
    used = _scores(model, X)
    _scores(model, sp.csr_array(X))
    _scores(model, sp.csc_array(X.astype(np.int64)))
    _scores(model, X.astype(np.float32))
    need(not _scores(model, np.ones((3, model.n_features + 1))), "a column too many goes unnoticed")
    if model.encoding is not None:
        _scores(model, table_for(model.encoding))
    _save_again(model)
    return used


def _scores(model: Model, data: Any) -> bool:
    """Scores and classes; whether there are any."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            scores, labels = model.decision_function(data), model.predict(data)
    except InputError as error:
        need(str(error).strip(), "the error says nothing")
        return False
    need(scores.shape == (3,) and np.isfinite(scores).all(), f"scores are {scores}")
    need(np.isin(labels, model.machine.classes_).all(), f"labels are {labels}")
    return True


def _save_again(model: Model) -> None:
    """What was loaded can be saved, and loads again as the same."""
    blob = to_bytes(model)
    again = from_bytes(blob, "again")
    same = np.array_equal(again.machine.coef_, model.machine.coef_) and to_bytes(again, dual=model.has_dual)
    need(same and len(same) == len(blob), "saved and loaded again, the model is another one")


# --- problems -----------------------------------------------------------------------------------------------------

# One of these must occur in a message about arguments.
THINGS = re.compile(r"\b(X|y|C|sample_weight|class_weight|loss|(fit|penalize)_intercept|intercept_scaling|array)\b")


def run_problem(case: ProblemCase) -> bool:
    try:
        problem = Problem.from_arrays(case.X, case.y, **case.options)
    except InputError as error:
        need(THINGS.search(str(error)) or "class " in str(error), f"the message names nothing: {error}")
        return False
    n, d = problem.space.core.shape
    need(n >= 2 and d >= 1, "a problem without rows or columns")
    check_matrix(problem.space.X, (n, d))
    need(problem.y.shape == (n,) and set(problem.y.tolist()) == {-1.0, 1.0}, "labels are not -1 and 1")
    need(problem.cost.shape == (n,) and np.isfinite(problem.cost).all() and (problem.cost >= 0.0).all(), "bad costs")
    need(len(problem.classes) == 2, "not two classes")
    _use(problem)
    return True


def _use(problem: Problem) -> None:
    """Every kernel that reads rows, against SciPy."""
    n, d = problem.space.core.shape
    w, c = np.linspace(0.5, 1.5, d), np.linspace(-1.0, 1.0, n)
    scores, combined = np.empty(n), np.empty(d)
    _core.scores(problem.space.core, w, 0.25, scores, 2)
    _core.combine(problem.space.core, c, combined, 2)
    X = problem.space.X.astype(np.float64)
    size = float(abs(X).max()) * (n + d)
    need(np.allclose(scores, X @ w + 0.25, rtol=1e-9, atol=1e-9 * size), "scores are wrong")
    need(np.allclose(combined, c @ X, rtol=1e-9, atol=1e-9 * size), "combined rows are wrong")
    need(math.isfinite(problem.null_primal) and np.isfinite(problem.squared_norms).all(), "norms are not finite")
    taken = np.empty(2)
    _core.scores(problem.space.take(np.array([n - 1, 0])).core, w, 0.25, taken, 1)
    need(np.array_equal(taken, scores[[n - 1, 0]]), "taken rows are other rows")


@dataclass(frozen=True)
class Target:
    """How a case is made and judged."""

    make: Callable[[int, int], Any]
    run: Callable[[Any], bool]


TARGETS = {
    "svmlight": Target(svmlight_case, run_svmlight),
    "csv": Target(csv_case, run_csv),
    "model": Target(model_case, run_model),
    "problem": Target(problem_case, run_problem),
}

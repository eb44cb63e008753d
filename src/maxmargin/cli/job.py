"""The main job, from a table to an outcome: split, encode, choose C, fit, save, certify, test."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from maxmargin.certificates import judge_separability
from maxmargin.cli.output import Output
from maxmargin.data import DataError, Encoding, Table, complete_rows
from maxmargin.data.labels import as_classes, label_text
from maxmargin.data.table import shortened
from maxmargin.models import Model, Scaling, relabelled, save, trained_on
from maxmargin.report.outcome import DataSummary, Outcome, TestPart
from maxmargin.selection import Search, choose_C, holdout
from maxmargin.svm import ConvergenceWarning, LinearSVC
from maxmargin.svm.progress import reporting_to

MANY_CLASSES = 30


@dataclass(frozen=True)
class Job:
    """What to do with a table; the fields are the options of ``maxmargin train``."""

    table: Table
    machine: LinearSVC
    command: str
    model_path: str | os.PathLike[str]
    Cs: tuple[float, ...] = (1.0,)
    n_folds: int = 5
    seed: int = 0
    holdout: float = 0.0
    test: Table | None = None
    scale: str = "auto"
    missing: str = "error"
    text: str = "error"
    positive: str | None = None
    dual: bool = True
    judge: bool = True
    layout: dict[str, Any] | None = None


@dataclass
class Stages:
    """Seconds of each stage, in order."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = time.perf_counter() - start


@dataclass(frozen=True, eq=False)
class Prepared:
    """Encoded rows to learn from, and the table to test on."""

    X: Any
    y: NDArray[Any]
    encoding: Encoding | None
    rows: NDArray[np.int64] | None
    names: tuple[str, ...] | None
    n_incomplete: int
    test: Table | None
    one_against_rest: str | None


def run(job: Job, output: Output) -> Outcome:
    """Do the job; the model is on disk before anything that could still fail."""
    stages = Stages()
    with stages.timed("prepare"):
        prepared = _prepare(job)
        scaling = Scaling.learn(prepared.X) if _wants_scaling(job.scale, prepared) else None
    search = None
    if len(job.Cs) > 1:
        with stages.timed("choose C"), output.counting("cross-validation") as progress:
            search = choose_C(
                prepared.X,
                prepared.y,
                job.machine,
                Cs=job.Cs,
                n_folds=_affordable_folds(job, prepared.y),
                seed=job.seed,
                scale=scaling is not None,
                progress=progress,
            )
    machine = clone(job.machine).set_params(C=job.Cs[0] if search is None else search.best_C)
    with stages.timed("scale"):
        X = prepared.X if scaling is None else scaling.apply(prepared.X)
    with stages.timed("fit"):
        interrupted = _fit(machine, X, prepared.y, output)
    with stages.timed("save"):
        model = _model(job, prepared, machine, scaling)
        save(model, job.model_path, dual=job.dual)
    try:
        return _judge(job, prepared, model, X, search, stages, interrupted)
    except KeyboardInterrupt as stop:
        stop.add_note(f"the model is saved in {job.model_path}")
        raise


def _judge(
    job: Job, prepared: Prepared, model: Model, X: Any, search: Search | None, stages: Stages, interrupted: bool
) -> Outcome:
    """What can be said about a model that is already saved."""
    machine = model.machine
    with stages.timed("certify"):
        verdict = machine.certificate_.verify(X, prepared.y)
    separability = None
    if job.judge and not interrupted:
        with stages.timed("judge separability"):
            hyperplane = (machine.coef_[0], float(machine.intercept_[0]))
            separability = judge_separability(X, prepared.y, hyperplane=hyperplane)
    with stages.timed("test"):
        test = None if prepared.test is None else _test(model, prepared.test, prepared.y)
        sign = np.where(prepared.y == machine.classes_[1], 1.0, -1.0)
        margins = sign * machine.decision_function(X)
    return Outcome(
        model=model,
        verdict=verdict,
        data=_summary(job, prepared, model.scaling, test),
        margins=margins,
        command=job.command,
        seed=job.seed,
        search=search,
        separability=separability,
        test=test,
        seconds=stages.seconds,
        interrupted=interrupted,
    )


def _affordable_folds(job: Job, y: NDArray[Any]) -> int:
    """As many folds as were asked for, or as the rarer class has rows; choose_C says if that is too few."""
    _, counts = np.unique(y, return_counts=True)
    return job.n_folds if counts.min() < 2 else min(job.n_folds, int(counts.min()))


def _prepare(job: Job) -> Prepared:
    y, one_against_rest = _two_classes(job.table, job.positive)
    table = replace(job.table, y=y)
    rows = np.arange(table.n_rows)
    if not table.is_matrix:
        # On the whole file, so that errors count all of them and name its rows; the parts learn for themselves.
        Encoding.learn(table, missing="mean" if job.missing == "drop" else job.missing, text=job.text)
    if job.missing == "drop" and not table.is_matrix:
        rows = complete_rows(table, text=job.text)
    n_incomplete = table.n_rows - len(rows)
    test = job.test
    if job.holdout > 0.0:
        learn, held_out = holdout(table.labels()[rows], job.holdout, job.seed)
        test = table.take(rows[held_out])
        rows = rows[learn]
    elif test is not None:
        # Before the fit: unknown labels are an error now, not after an hour.
        found = as_classes(relabelled(test.labels(), one_against_rest), np.unique(y), test.source)
        test = replace(test, y=found)
        if job.missing == "drop" and not test.is_matrix:
            test = test.take(complete_rows(test, text=job.text))
    everything = len(rows) == table.n_rows
    part = table if everything else table.take(rows)
    encoding = None
    X, names = part.columns, table.names
    if not part.is_matrix:
        encoding = Encoding.learn(part, missing=job.missing, text=job.text)
        X, names = encoding.apply(part), encoding.feature_names
    _refuse_gaps(X, table.source, None if everything else rows)
    return Prepared(
        X, part.labels(), encoding, None if everything else rows, names, n_incomplete, test, one_against_rest
    )


def _refuse_gaps(X: Any, source: str, rows: NDArray[np.int64] | None) -> None:
    """Files of numbers may hold NaN, which scaling would spread over its column."""
    values = X.data if sp.issparse(X) else X
    bad = np.argwhere(~np.isfinite(values))
    if not len(bad):
        return
    row = int(np.searchsorted(X.indptr, bad[0][0], side="right")) - 1 if sp.issparse(X) else int(bad[0][0])
    column = int(X.indices[bad[0][0]]) if sp.issparse(X) else int(bad[0][1])
    place = f"row {row if rows is None else rows[row]}, column {column}"
    raise DataError(
        source, place, f"{len(bad)} values are NaN or infinite; fill or remove them before writing the file"
    )


def _two_classes(table: Table, positive: str | None) -> tuple[NDArray[Any], str | None]:
    """Labels of two classes, and the label that was set against all others to get them."""
    y = table.labels()
    classes = [label_text(label) for label in np.unique(y).tolist()]
    if positive is not None:
        if positive not in classes:
            raise DataError(table.source, "labels", f"there is no label {positive!r}; there are {shortened(classes)}")
        return (relabelled(y, positive), positive) if len(classes) > 2 else (y, None)
    if len(classes) == 1:
        raise DataError(table.source, "labels", f"every row has the label {classes[0]!r}; two classes are needed")
    if len(classes) > 2:
        numbers = y.dtype.kind in "fiu" and len(classes) > MANY_CLASSES
        hint = " These look like numbers to predict, not like classes." if numbers else ""
        raise DataError(
            table.source,
            "labels",
            f"there are {len(classes)} different labels ({shortened(classes, 5)}), and a linear classifier separates "
            f"two.{hint} Set one against all others with --positive {classes[0]!r}, or name another --target",
        )
    return y, None


def _wants_scaling(wish: str, prepared: Prepared) -> bool:
    is_table = prepared.encoding is not None or not sp.issparse(prepared.X)
    return wish == "standard" or (wish == "auto" and is_table)


def _fit(machine: LinearSVC, X: Any, y: NDArray[Any], output: Output) -> bool:
    """Fit with progress; True if Ctrl-C stopped it and left a usable model."""
    try:
        with output.closing_in("fit", float(machine.tol)) as listen, reporting_to(listen), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the caller says it in its own words
            machine.fit(X, y)
    except KeyboardInterrupt:
        if not hasattr(machine, "solution_"):
            raise
        return True
    return False


def _model(job: Job, prepared: Prepared, machine: LinearSVC, scaling: Scaling | None) -> Model:
    training = trained_on(
        prepared.X,
        prepared.y,
        source=os.path.basename(job.table.source),
        target=job.table.target,
        rows=prepared.rows,
        positive=prepared.one_against_rest,
        zero_based=job.table.zero_based,
        layout=job.layout,
    )
    return Model(machine, training, prepared.encoding, scaling, prepared.names)


def _test(model: Model, table: Table, learned: NDArray[Any]) -> TestPart:
    labels, counts = np.unique(learned, return_counts=True)
    scores = model.decision_function(table)
    majority = labels[np.argmax(counts)]
    return TestPart(table.labels(), model.answers(scores), scores, model.machine.classes_, majority)


def _summary(job: Job, prepared: Prepared, scaling: Scaling | None, test: TestPart | None) -> DataSummary:
    X = prepared.X
    notes = []
    if scaling is not None:
        centred = (
            "mean 0 and deviation 1" if scaling.mean is not None else "deviation 1 (not centred: they stay sparse)"
        )
        notes.append(f"columns scaled to {centred}")
    if prepared.encoding is not None:
        texts = [column for column in prepared.encoding.columns if column.levels is not None]
        if texts:
            width = sum(column.width for column in texts)
            names = shortened([column.name for column in texts], 6)
            notes.append(f"text columns ({names}) became {width} columns of 0 and 1")
        n_filled = sum(column.levels is None and column.fill is not None for column in prepared.encoding.columns)
        if n_filled:
            notes.append("missing numbers filled with the column's mean")
    labels = np.unique(prepared.y)
    counts = {
        str(label): (int(np.sum(prepared.y == label)), 0 if test is None else int(np.sum(test.y == label)))
        for label in labels
    }
    density = X.nnz / max(1, X.shape[0] * X.shape[1]) if sp.issparse(X) else 1.0
    return DataSummary(
        source=os.path.basename(job.table.source),
        n_columns=int(X.shape[1]),
        is_sparse=bool(sp.issparse(X)),
        density=float(density),
        counts=counts,
        target=job.table.target,
        n_incomplete=prepared.n_incomplete,
        notes=tuple(notes),
    )


def tell(outcome: Outcome, output: Output) -> None:
    """The outcome as a list of facts."""
    from maxmargin.report.words import answers_in_words, certificate_in_words, percent, status_in_words

    data, machine = outcome.data, outcome.model.machine
    counts = ", ".join(f"{label}: {learn}" for label, (learn, _) in data.counts.items())
    output.fact("data", f"{data.source}: {data.n_learn} rows to learn from ({counts}), {data.n_columns} columns")
    if data.n_incomplete:
        output.fact("", f"{data.n_incomplete} rows with missing values left out")
    for note in data.notes:
        output.fact("", note)
    if outcome.separability is not None:
        output.fact("separability", outcome.separability)
    if outcome.search is not None:
        best = outcome.search.best
        n_folds = outcome.search.errors.shape[1]
        error = percent(outcome.search.mean[best])
        output.fact("C", f"{machine.C:g} by {n_folds}-fold cross-validation (error there {error})")
        _warn_at_edge(outcome.search, output)
    else:
        output.fact("C", f"{machine.C:g}")
    solution = machine.solution_
    output.fact("fit", f"{status_in_words(outcome)}; {solution.n_iter} iterations, {solution.seconds:.2f} s")
    output.fact("support vectors", f"{len(machine.support_)} of {data.n_learn} rows")
    output.fact("certificate", ("verified. " if outcome.verdict else "") + certificate_in_words(outcome))
    if outcome.test is not None:
        output.fact("test", answers_in_words(outcome.test))


def _warn_at_edge(search: Search, output: Output) -> None:
    if search.n_unfinished:
        output.fact("", f"{search.n_unfinished} of {search.errors.size} fits in the search stopped before their gap")
    if search.best == 0:
        output.fact(
            "", f"this is the smallest C tried; try smaller ones with --C {0.01 * search.best_C:g},{search.best_C:g}"
        )
    if search.best == len(search.Cs) - 1:
        output.fact(
            "", f"this is the largest C tried; try larger ones with --C {search.best_C:g},{100 * search.best_C:g}"
        )

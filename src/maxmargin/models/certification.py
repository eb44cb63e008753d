"""Does a saved model hold what it claims, on the data it names?"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.certificates import OptimalityCertificate, Outcome, Verdict
from maxmargin.certificates.verdict import Checks
from maxmargin.data import DataError, Encoding, Table, digest
from maxmargin.data.errors import UnknownLabel
from maxmargin.models.model import Model
from maxmargin.models.scaling import Scaling
from maxmargin.problem import Problem
from maxmargin.solution import Status
from maxmargin.svm import LinearSVC

ROUNDING = 1e-12  # of sums over many rows, on another machine


def certify(model: Model, table: Table, *, max_gap: float | None = None) -> Verdict:
    """Recompute everything a model claims from the rows it was trained on.

    Checks, each by plain arithmetic: the rows are those of the training (fingerprint), scaling and encoding are theirs,
    the hyperplane's objective, the dual bound and the gap are as claimed, and a fit that says it converged did. A model
    saved without its dual point is judged by the dual point of a fit of our own.

    Parameters
    ----------
    max_gap : largest relative gap that counts as near-optimal; by default the ``tol`` of the fit.

    Examples
    --------
    >>> from maxmargin.data import table_from_arrays
    >>> from maxmargin.models.model import trained_on
    >>> from maxmargin.svm import LinearSVC
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array(["no", "yes", "yes"])
    >>> model = Model(LinearSVC().fit(X, y), trained_on(X, y))
    >>> bool(certify(model, table_from_arrays(X, y))), bool(certify(model, table_from_arrays(X + 0.1, y)))
    (True, False)
    """
    rows = model.training.rows
    if rows is not None and table.n_rows != model.training.n_rows:
        if rows[-1] >= table.n_rows:
            raise DataError(
                table.source, "file", f"the model was trained on row {rows[-1]}, but there are {table.n_rows} rows"
            )
        table = table.take(rows)
    X, checks = model.encoded(table), Checks()
    max_gap = float(model.certificate_.tol if max_gap is None else max_gap)
    try:
        y = model.labels(table)
    except UnknownLabel as error:
        checks.note("training data", False, str(error))
        return checks.rejected(max_gap)
    _check_preparation(model, table, X, y, checks)
    if checks.failed:
        return checks.rejected(max_gap)
    scaled = X if model.scaling is None else model.scaling.apply(X)
    verdict = _verify(model, scaled, y, max_gap)
    checks.found |= verdict.checks
    status, tol = model.machine.solution_.status, model.certificate_.tol
    honest = verdict.outcome is Outcome.REJECTED or status is not Status.CONVERGED or verdict.gap <= tol
    checks.note("status", honest, f"the fit says it converged to {tol:.0e}, but the gap is {verdict.gap:.1e}")
    if not honest:
        return replace(verdict, outcome=Outcome.REJECTED, worst="status", checks=checks.found)
    return replace(verdict, checks=checks.found)


def _check_preparation(model: Model, table: Table, X: Any, y: NDArray[Any], checks: Checks) -> None:
    """Whether rows, scaling, encoding and the signs of the dual point are those of the training."""
    if model.training.digest is not None:
        same = model.training.digest == digest(X, y)
        if not checks.note("training data", same, "the rows or labels are not those of the training"):
            return
    if model.scaling is not None:
        checks.note("scaling", _scaling_off(model.scaling, X) == 0.0, "another scaling than that of these rows")
    if model.encoding is not None and not table.is_matrix:
        same = _encoding_off(model.encoding, table) <= ROUNDING
        checks.note("encoding", same, "another encoding than that of these rows")
    if model.has_dual:
        machine = model.machine
        sign = np.where(y[machine.support_] == machine.classes_[1], 1.0, -1.0)
        right = bool((machine.dual_coef_[0] * sign > 0.0).all())
        checks.note("signs of the dual point", right, "a multiplier has the sign of the other class")


def _encoding_off(claimed: Encoding, table: Table) -> float:
    found = claimed.relearned(table)
    worst = 0.0
    for mine, theirs in zip(claimed.columns, found.columns, strict=True):
        if (mine.levels, mine.fill is None) != (theirs.levels, theirs.fill is None):
            return math.inf
        if mine.fill is not None and theirs.fill is not None:
            worst = max(worst, abs(mine.fill - theirs.fill) / max(abs(theirs.fill), 1e-300))
    return worst


def _scaling_off(claimed: Scaling, X: Any) -> float:
    """Largest relative difference to the scaling of these rows, beyond what rounding can cause."""
    if claimed.mean is not None and sp.issparse(X):  # the same rows as a sparse file
        X = X.toarray()
    found = Scaling.learn(sp.csr_array(X) if claimed.mean is None else X)
    pairs = [(claimed.scale, found.scale)]
    if claimed.mean is not None and found.mean is not None:
        pairs.append((claimed.mean, found.mean))
    worst = 0.0
    for mine, theirs in pairs:
        beyond = np.maximum(0.0, np.abs(mine - theirs) - ROUNDING * (found.scale + np.abs(theirs)))
        worst = max(worst, float(np.max(beyond / np.maximum(np.abs(theirs), ROUNDING * found.scale))))
    return worst


def _verify(model: Model, X: Any, y: NDArray[Any], max_gap: float) -> Verdict:
    certificate: OptimalityCertificate = model.certificate_
    weight = model.machine._sample_weight
    if model.has_dual:
        return certificate.verify(X, y, weight, max_gap=max_gap)
    # Our own fit with our own settings: the file's might be loose. Its dual point proves what the file's no longer can.
    params = {name: getattr(certificate, name) for name in ("C", "penalty", "class_weight", "fit_intercept")}
    params["loss"] = certificate.power if certificate.loss == "slack_power" else certificate.loss
    params |= {name: getattr(model.machine, name) for name in ("penalize_intercept", "intercept_scaling")}
    machine = LinearSVC(**params).fit(X, y, weight)
    own = machine.certificate_
    problem = Problem.from_arrays(X, y, sample_weight=weight, **params)
    gap, claimed = (problem.relative_gap(certificate.primal, dual) for dual in (own.dual, certificate.dual))
    verdict = replace(certificate, alpha=own.alpha, dual=own.dual, gap=gap).verify(X, y, weight, max_gap=max_gap)
    if verdict.outcome is Outcome.REJECTED:
        return verdict
    checks = Checks(dict(verdict.checks))
    checks.note("dual value", certificate.dual <= own.primal, "a hyperplane has an objective below the bound claimed")
    same = abs(certificate.gap - claimed) <= 1e-9 * claimed
    checks.note("gap", same, f"{certificate.gap:.3e} is claimed, the values say {claimed:.3e}")
    if checks.failed:
        return replace(verdict, outcome=Outcome.REJECTED, worst=checks.failed, checks=checks.found)
    return replace(verdict, checks=checks.found)

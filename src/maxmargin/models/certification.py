"""Does a saved model hold what it claims, on the data it names?"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.certificates import OptimalityCertificate, Verdict
from maxmargin.data import DataError, Encoding, Table, digest
from maxmargin.data.errors import UnknownLabel
from maxmargin.models.model import Model
from maxmargin.models.scaling import Scaling
from maxmargin.solution import Status
from maxmargin.svm import LinearSVC

ROUNDING = 1e-12  # of sums over many rows, on another machine


def certify(model: Model, table: Table, *, tolerance: float = 1e-6) -> Verdict:
    """Recompute everything a model claims from the rows it was trained on.

    Checks, each by plain arithmetic: the rows are those of the training (fingerprint), scaling and encoding are theirs,
    the hyperplane's objective, the dual bound and the gap are as claimed, and a fit that says it converged did. A model
    saved without its dual point is compared with a fit of our own.

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
    X = model.encoded(table)
    try:
        y = model.labels(table)
    except UnknownLabel:
        return _refused({"training data": math.inf}, tolerance)
    checks = _check_preparation(model, table, X, y)
    if max(checks.values(), default=0.0) > tolerance:
        return _refused(checks, tolerance)
    scaled = X if model.scaling is None else model.scaling.apply(X)
    verdict = _verify(model, scaled, y, tolerance)
    checks |= verdict.checks
    solution = model.machine.solution_
    if solution.status is Status.CONVERGED and not verdict.gap <= float(model.machine.tol) + ROUNDING:
        checks["status"] = math.inf
    worst = max(checks, key=lambda name: checks[name])
    accepted = verdict.accepted and all(violation <= tolerance for violation in checks.values())
    return replace(verdict, accepted=accepted, checks=checks, worst=worst, violation=checks[worst])


def _check_preparation(model: Model, table: Table, X: Any, y: NDArray[Any]) -> dict[str, float]:
    """Whether rows, scaling, encoding and the signs of the dual point are those of the training."""
    checks = {}
    if model.training.digest is not None:
        checks["training data"] = 0.0 if model.training.digest == digest(X, y) else math.inf
    if max(checks.values(), default=0.0) > 0.0:
        return checks
    if model.scaling is not None:
        checks["scaling"] = _scaling_off(model.scaling, X)
    if model.encoding is not None and not table.is_matrix:
        checks["encoding"] = _encoding_off(model.encoding, table)
    if model.has_dual:
        machine = model.machine
        sign = np.where(y[machine.support_] == machine.classes_[1], 1.0, -1.0)
        checks["signs of the dual point"] = 0.0 if (machine.dual_coef_[0] * sign > 0.0).all() else math.inf
    return checks


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


def _refused(checks: dict[str, float], tolerance: float) -> Verdict:
    worst = max(checks, key=lambda name: checks[name])
    nan = math.nan
    return Verdict(False, worst, checks[worst], tolerance, checks, nan, nan, nan, nan)


def _verify(model: Model, X: Any, y: NDArray[Any], tolerance: float) -> Verdict:
    certificate: OptimalityCertificate = model.certificate_
    weight = model.machine._sample_weight
    if model.has_dual:
        return certificate.verify(X, y, weight, tolerance=tolerance)
    # Our own fit with our own settings: the file's might be loose.
    params = {name: getattr(certificate, name) for name in ("C", "penalty", "class_weight", "fit_intercept")}
    params["loss"] = certificate.power if certificate.loss == "slack_power" else certificate.loss
    params |= {name: getattr(model.machine, name) for name in ("penalize_intercept", "intercept_scaling")}
    own = LinearSVC(**params).fit(X, y, weight).certificate_
    verdict = replace(certificate, alpha=own.alpha).verify(X, y, weight, tolerance=tolerance)
    if "primal value" not in verdict.checks:
        return verdict
    size = max(abs(verdict.primal), abs(verdict.dual), 1e-300)
    claimed_gap = (certificate.primal - certificate.dual) / size
    apart = float(np.linalg.norm(certificate.coef - own.coef))
    allowed = certificate.distance_bound + own.distance_bound + 1e-7 * float(np.linalg.norm(own.coef))
    checks = {
        "primal value": verdict.checks["primal value"],
        "dual value": max(0.0, (certificate.dual - own.primal) / size),
        "gap": max(0.0, verdict.gap - claimed_gap, abs(max(0.0, claimed_gap) - certificate.gap) - 1e-12),
        "distance to the optimum": max(0.0, apart - allowed) / max(allowed, 1e-300),
        "intercept": verdict.checks["intercept"],
    }
    return replace(verdict, checks=checks, accepted=all(v <= tolerance for v in checks.values()))

"""Does a saved model hold what it claims, on the data it names?"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from maxmargin.certificates import Verdict
from maxmargin.data import DataError, Table, digest
from maxmargin.models.model import Model
from maxmargin.models.scaling import Scaling

ROUNDING = 1e-12  # of sums over many rows, on another machine


def certify(model: Model, table: Table, *, tolerance: float = 1e-6) -> Verdict:
    """Recompute everything a model claims from the rows it was trained on.

    Checks, each by plain arithmetic: the rows are those of the training (fingerprint), scale and mean are theirs, and
    the hyperplane's objective, the dual bound and the gap are as claimed. A model saved without its dual point is
    compared with a fit of our own.

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
    X, y = model.encoded(table), model.labels(table)
    checks = {"training data": _same_data(model, X, y)}
    if model.scaling is not None and not checks["training data"]:
        checks["scaling"] = _scaling_off(model.scaling, X)
    if max(checks.values()) > tolerance:
        return _refused(checks, tolerance)
    scaled = X if model.scaling is None else model.scaling.apply(X)
    verdict = _verify(model, scaled, y, tolerance)
    checks |= verdict.checks
    worst = max(checks, key=lambda name: checks[name])
    return replace(verdict, checks=checks, worst=worst, violation=checks[worst])


def _same_data(model: Model, X: Any, y: NDArray[Any]) -> float:
    claimed = model.training.digest
    return 0.0 if claimed is None or claimed == digest(X, y) else math.inf


def _scaling_off(claimed: Scaling, X: Any) -> float:
    """Largest relative difference to the scaling of these rows, beyond what rounding can cause."""
    found = Scaling.learn(X)
    pairs = [(claimed.scale, found.scale)]
    if (claimed.mean is None) != (found.mean is None):
        return math.inf
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
    certificate = model.machine.certificate_
    if model.has_dual:
        return certificate.verify(X, y, tolerance=tolerance)
    fresh = clone(model.machine).set_params(warm_start=False, verbose=0, max_seconds=None).fit(X, y)
    own = fresh.certificate_
    verdict = replace(certificate, alpha=own.alpha).verify(X, y, tolerance=tolerance)
    if not verdict.checks or "primal value" not in verdict.checks:
        return verdict
    size = max(abs(verdict.primal), abs(verdict.dual), 1e-300)
    claimed_gap = max(0.0, certificate.primal - certificate.dual) / size
    apart = float(np.linalg.norm(certificate.coef - own.coef))
    allowed = certificate.distance_bound + own.distance_bound + 1e-7 * float(np.linalg.norm(own.coef))
    checks = {
        "primal value": verdict.checks["primal value"],
        "dual value": max(0.0, (certificate.dual - own.primal) / size),
        "gap": max(0.0, verdict.gap - claimed_gap, abs(claimed_gap - certificate.gap) - 1e-12),
        "distance to the optimum": max(0.0, apart - allowed) / max(allowed, 1e-300),
        "intercept": verdict.checks["intercept"],
    }
    return replace(verdict, checks=checks, accepted=all(v <= tolerance for v in checks.values()))

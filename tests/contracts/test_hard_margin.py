"""C = infinity: a certified margin where the classes can be separated, a proof where they cannot."""

import warnings

import numpy as np
import pytest

from maxmargin import ConvergenceWarning, LinearSVC, NotSeparableError, Status
from maxmargin.certificates import Outcome
from tests.oracles import hard_margin
from tests.problems import KINDS, make_case, make_classes


def fit(case, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LinearSVC(C=np.inf, **options).fit(case.X, case.y, case.sample_weight)


def broken_margin(case, machine, separable, optimum):
    """What is wrong with a fit that says it separates."""
    verdict = machine.certificate_.verify(case.X, case.y, case.sample_weight)
    solution = machine.solution_
    proven = solution.status is Status.CONVERGED
    if verdict.outcome is Outcome.REJECTED or (proven and not verdict) or separable is False:
        return f"{solution.status.name}, separable {separable}, {verdict}"
    if solution.status is Status.NUMERICAL_LIMIT and case.scale_case:
        return ""
    if solution.status is not Status.CONVERGED or not verdict.gap <= 1e-6:
        return f"{solution.status.name}, gap {verdict.gap:.1e}"
    live = case.cost > 0.0
    if not (machine.margins(case.X[live], case.y[live]) >= 1.0 - 1e-6).all():
        return "a row is inside the margin"
    square, total = float((machine.coef_**2).sum()), float(np.abs(machine.dual_coef_).sum())
    if not abs(square - total) <= 4e-6 * square:
        return f"‖w‖² = {square:.9g}, Σ alpha = {total:.9g}"
    if optimum is not None and not abs(solution.primal - optimum) <= 1e-6 * optimum:
        return f"½‖w‖² = {solution.primal:.9g}, the oracle has {optimum:.9g}"
    return ""


def broken_proof(case, error, separable):
    if separable:
        return "HiGHS separates what was said to be not separable"
    weights = error.proof.weights
    if len(weights) != len(case.y) or weights[case.cost == 0.0].any():
        return "weights on rows that do not count, or not one per row"
    verdict = error.proof.verify(case.X, case.y)
    return "" if verdict else str(verdict)


def test_two_classes():
    broken, n_margins, n_proofs = [], 0, 0
    for seed in range(17 * len(KINDS)):
        case = make_case(seed)
        live = case.cost > 0.0
        separable, optimum = hard_margin(case.X[live], case.y[live])
        try:
            what = broken_margin(case, fit(case), separable, optimum)
            n_margins += 1
        except NotSeparableError as error:
            what = broken_proof(case, error, separable)
            n_proofs += 1
        if what:
            broken.append(f"{case}: {what}")
    assert not broken, "\n".join(broken)
    assert min(n_margins, n_proofs) >= 50


@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_several_classes(scheme):
    broken = []
    for seed in range(4 * len(KINDS)):
        case = make_classes(seed)
        if case.scale_case:
            continue
        live = np.flatnonzero(case.cost > 0.0)
        X, y, k = case.X[live], case.y[live], int(case.y.max()) + 1
        if scheme == "ovr":
            judged = [hard_margin(X, np.where(y == m, 1, -1)) for m in range(k)]
        else:
            pairs = [np.flatnonzero((y == a) | (y == b)) for a in range(k) for b in range(a + 1, k)]
            judged = [hard_margin(X[rows], np.where(y[rows] == y[rows].max(), 1, -1)) for rows in pairs]
        separable = all(answer for answer, _ in judged)
        try:
            machine = fit(case, multi_class=scheme)
            if not separable or not machine.certificate_.verify(case.X, case.y, case.sample_weight):
                broken.append(f"{case}: {machine.solution_}, separable {separable}")
            for solution, (_, optimum) in zip(machine.solution_, judged, strict=True):
                if optimum is not None and not abs(solution.primal - optimum) <= 1e-6 * optimum:
                    broken.append(f"{case}: {solution.primal:.9g}, the oracle has {optimum:.9g}")
        except NotSeparableError as error:
            what = broken_proof(case, error, separable)
            if what:
                broken.append(f"{case}: {what}")
        except ValueError as error:
            # Columns that depend on others up to rounding: what separates, if anything, is the rounding.
            if case.kind != "collinear" or separable or "scale the columns" not in str(error).lower():
                broken.append(f"{case}: {error}")
    assert not broken, f"{len(broken)}:\n" + "\n".join(broken)


def test_removing_a_row_that_holds_nothing():
    tried = 0
    for seed in range(11, 10 * len(KINDS), len(KINDS)):  # separable ones
        case = make_case(seed)
        machine = fit(case)
        spare = np.setdiff1d(np.arange(1, len(case.y) - 1), machine.support_)
        for row in spare[:3]:
            rest = np.delete(np.arange(len(case.y)), row)
            other = LinearSVC(C=np.inf).fit(case.X[rest], case.y[rest])
            moved = float(np.linalg.norm(machine.coef_ - other.coef_))
            rounding = 1e-13 * machine.solution_.primal
            bounds = [np.sqrt(2.0 * (m.solution_.absolute_gap + rounding)) for m in (machine, other)]
            assert moved <= sum(bounds), (str(case), row, moved, bounds)
            tried += 1
    assert tried >= 10

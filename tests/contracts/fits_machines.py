"""Recorded fits of machines with a certificate: every solver with every loss, layout, bias, weight and scheme."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin import LinearSVC, LinearSVR, LogisticRegression, NotSeparableError
from tests.contracts import fits_data as rows
from tests.contracts.fits_data import Data
from tests.contracts.fits_record import Record, certified, refused

Case = Callable[[int | None], Record]  # of the number of threads
Cases = dict[str, Case]

SOLVERS = ("newton", "interior_point", "dual_cd")
HINGES = ("hinge", "squared_hinge")
TUBES = ("epsilon_insensitive", "squared_epsilon_insensitive")
SHORT = {"epsilon_insensitive": "tube", "squared_epsilon_insensitive": "squared_tube"}
BIASES: dict[str, dict[str, Any]] = {
    "no-bias": {"fit_intercept": False},
    "penalised": {"penalize_intercept": True},
    "penalised-10": {"penalize_intercept": True, "intercept_scaling": 10.0},
}


def fit(machine: type, data: Callable[[], Data], **options: Any) -> Case:
    """One fit."""
    return fits(machine, (data, options))


def fits(machine: type, *stages: tuple[Callable[[], Data], dict[str, Any]]) -> Case:
    """Fits that continue from one another; the last one is recorded."""

    def run(n_threads: int | None) -> Record:
        fitted = machine(n_threads=n_threads, warm_start=len(stages) > 1)
        for data, options in stages:
            X, y, weight = data()
            try:
                fitted.set_params(**options).fit(X, y, weight)
            except NotSeparableError as error:
                return refused(error)
        return certified(fitted, X, weight)

    return run


def layouts() -> Cases:
    """Every solver and loss on dense and sparse rows, every solver on all other layouts."""
    out: Cases = {}
    for layout in rows.LAYOUTS:
        usual = layout in ("dense", "csr")
        two = lambda layout=layout: rows.laid_out(layout, rows.gaps(rows.two()))  # noqa: E731
        numbers = lambda layout=layout: rows.laid_out(layout, rows.gaps(rows.numbers()))  # noqa: E731
        for solver in SOLVERS:
            for loss in HINGES if usual else HINGES[:1]:
                out[f"svc {solver} {loss} {layout}"] = fit(LinearSVC, two, solver=solver, loss=loss)
            for tube in TUBES if usual else TUBES[:1]:
                name = f"svr {solver} {SHORT[tube]} {layout}"
                out[name] = fit(LinearSVR, numbers, solver=solver, loss=tube, epsilon=0.3)
        out[f"svc newton 3.0 {layout}"] = fit(LinearSVC, two, loss=3.0)
        out[f"logistic newton {layout}"] = fit(LogisticRegression, two)
        out[f"svc l1 {layout}"] = fit(LinearSVC, two, penalty="l1")
        if usual:
            out[f"svc newton 1.5 {layout}"] = fit(LinearSVC, two, loss=1.5)
            out[f"logistic dual_cd {layout}"] = fit(LogisticRegression, two, solver="dual_cd")
            out[f"logistic l1 {layout}"] = fit(LogisticRegression, two, penalty="l1")
    return out


def biases() -> Cases:
    """Every solver and loss with each kind of bias."""
    out: Cases = {}
    two, numbers = (lambda: rows.two(seed=2)), (lambda: rows.numbers(seed=2))
    for bias, options in BIASES.items():
        for solver in SOLVERS:
            for loss in HINGES:
                out[f"svc {solver} {loss} {bias}"] = fit(LinearSVC, two, solver=solver, loss=loss, C=3.0, **options)
            out[f"svr {solver} tube {bias}"] = fit(LinearSVR, numbers, solver=solver, epsilon=0.5, **options)
        for solver in ("newton", "dual_cd"):
            out[f"logistic {solver} {bias}"] = fit(LogisticRegression, two, solver=solver, **options)
        out[f"svc newton 1.5 {bias}"] = fit(LinearSVC, two, loss=1.5, **options)
        out[f"svc l1 {bias}"] = fit(LinearSVC, two, penalty="l1", **options)
        out[f"logistic l1 {bias}"] = fit(LogisticRegression, two, penalty="l1", **options)
        out[f"svc hard {bias}"] = fit(LinearSVC, rows.apart, C=np.inf, **options)
    return out


def weights() -> Cases:
    """Weights of rows and classes."""
    out: Cases = {}
    kinds: dict[str, tuple[Callable[[Data], Data], dict[str, Any]]] = {
        "weights": (rows.weighted, {}),
        "zero-weights": (rows.zeroed, {}),
        "class-weight": (lambda data: data, {"class_weight": {-1: 0.5, 1: 4.0}}),
        "balanced": (rows.weighted, {"class_weight": "balanced"}),
    }
    for kind, (change, options) in kinds.items():
        data = lambda change=change: change(rows.two(seed=3))  # noqa: E731
        for solver in SOLVERS:
            for loss in HINGES[:1] if options else HINGES:
                out[f"svc {solver} {loss} {kind}"] = fit(LinearSVC, data, solver=solver, loss=loss, **options)
        out[f"logistic newton {kind}"] = fit(LogisticRegression, data, **options)
        if not options:
            out[f"logistic dual_cd {kind}"] = fit(LogisticRegression, data, solver="dual_cd")
            out[f"svc newton 1.5 {kind}"] = fit(LinearSVC, data, loss=1.5)
        out[f"svc l1 {kind}"] = fit(LinearSVC, data, penalty="l1", **options)
    for solver in SOLVERS:
        numbers = lambda: rows.zeroed(rows.numbers(seed=3))  # noqa: E731
        out[f"svr {solver} tube zero-weights"] = fit(LinearSVR, numbers, solver=solver, epsilon=0.2)
        apart = lambda: rows.zeroed(rows.apart(seed=3))  # noqa: E731
        out[f"svc hard {solver} zero-weights"] = fit(LinearSVC, apart, solver=solver, C=np.inf)
    return out


def continued() -> Cases:
    """A second fit from the first one's solution."""
    out: Cases = {}
    two, numbers = (lambda: rows.two(seed=4)), (lambda: rows.numbers(seed=4))
    for solver in SOLVERS:
        for loss in HINGES:
            first = {"solver": solver, "loss": loss, "C": 0.1}
            out[f"svc {solver} {loss} warm larger C"] = fits(LinearSVC, (two, first), (two, {"C": 1.0}))
        first = {"solver": solver, "loss": "hinge", "max_iter": 3}
        out[f"svc {solver} hinge resumed"] = fits(LinearSVC, (two, first), (two, {"max_iter": 10000}))
        out[f"svc {solver} hinge stopped"] = fit(LinearSVC, two, **first)
        first = {"solver": solver, "epsilon": 0.5}
        out[f"svr {solver} tube warm narrower"] = fits(LinearSVR, (numbers, first), (numbers, {"epsilon": 0.3}))
        wide = lambda: rows.two(30, 102, seed=4)  # noqa: E731
        first = {"solver": solver, "loss": "hinge", "C": 0.001}
        out[f"svc {solver} hinge span warm"] = fits(LinearSVC, (wide, first), (wide, {"C": 0.002}))
    for loss in HINGES:
        first = {"loss": loss, "C": 0.1}
        out[f"svc auto {loss} warm same"] = fits(LinearSVC, (two, first), (two, {"tol": 1e-7}))
    first = {"solver": "interior_point"}
    out["svc interior_point squared_hinge warm nearby"] = fits(LinearSVC, (two, first), (two, {"C": 1.05}))
    first = {"C": 1.0}
    out["logistic newton warm"] = fits(LogisticRegression, (two, first), (two, {"C": 2.0}))
    out["svc l1 warm"] = fits(LinearSVC, (two, {"penalty": "l1", "C": 1.0}), (two, {"C": 1.5}))
    three = lambda: rows.several(seed=4)  # noqa: E731
    out["ovr warm"] = fits(LinearSVC, (three, {"C": 1.0}), (three, {"C": 2.0}))
    first = {"multi_class": "crammer_singer"}
    out["crammer_singer warm"] = fits(LinearSVC, (three, first), (three, {"C": 2.0}))
    out["multinomial warm"] = fits(LogisticRegression, (three, {"C": 1.0}), (three, {"C": 2.0}))
    return out


def degenerate() -> Cases:
    """Copies, contradictions, dependent columns, large and small costs."""
    out: Cases = {}
    kinds = {"copies": rows.repeated, "contradictions": rows.contradictory, "collinear": rows.collinear}
    for kind, change in kinds.items():
        data = lambda change=change: change(rows.two(60, 4, seed=19))  # noqa: E731
        for solver in SOLVERS:
            for loss in HINGES:
                out[f"svc {solver} {loss} {kind}"] = fit(LinearSVC, data, solver=solver, loss=loss)
        out[f"logistic {kind}"] = fit(LogisticRegression, data)
        out[f"svc l1 {kind}"] = fit(LinearSVC, data, penalty="l1")
    for C in (1e-4, 1e4):
        for solver in SOLVERS:
            for loss in HINGES:
                out[f"svc {solver} {loss} C={C:g}"] = fit(
                    LinearSVC, lambda: rows.two(seed=20), solver=solver, loss=loss, C=C
                )
        out[f"svc l1 C={C:g}"] = fit(LinearSVC, lambda: rows.two(seed=20), penalty="l1", C=C)
        out[f"logistic l1 C={C:g}"] = fit(LogisticRegression, lambda: rows.two(seed=20), penalty="l1", C=C)
        out[f"logistic C={C:g}"] = fit(LogisticRegression, lambda: rows.two(seed=20), C=C)
        out[f"svc newton 1.5 C={C:g}"] = fit(LinearSVC, lambda: rows.two(seed=20), loss=1.5, C=C)
    uneven = lambda: rows.scaled(rows.apart(), (0, 12))  # noqa: E731
    out["svc l1 short steps"] = fit(LinearSVC, uneven, penalty="l1", C=1e3)
    out["svc l1 stopped"] = fit(LinearSVC, lambda: rows.two(seed=20), penalty="l1", max_iter=1)
    out["logistic apart"] = fit(LogisticRegression, rows.apart, C=1e5)
    out["svc newton squared_hinge apart"] = fit(LinearSVC, rows.apart, solver="newton", C=1e5)
    return out


def hard() -> Cases:
    """No slack at all."""
    out: Cases = {}
    for solver in ("auto", *SOLVERS):
        for layout in ("dense", "csr"):
            data = lambda layout=layout: rows.laid_out(layout, rows.apart(seed=21))  # noqa: E731
            out[f"svc hard {solver} {layout}"] = fit(LinearSVC, data, solver=solver, C=np.inf)
    out["svc hard impossible"] = fit(LinearSVC, lambda: rows.two(seed=21), C=np.inf)
    out["svc hard ovo"] = fit(LinearSVC, _three_apart, C=np.inf, multi_class="ovo")
    return out


def _three_apart() -> Data:
    X = rows.rows(45, 4, 22)
    y = np.arange(45) % 3
    X[np.arange(45), y] += 6.0
    return X, y, None


def multi_class() -> Cases:
    """More than two classes."""
    out: Cases = {}
    three, four = (lambda: rows.several(seed=23)), (lambda: rows.several(120, 4, 4, seed=24))
    for scheme in ("ovr", "ovo"):
        for loss in (*HINGES, 1.5):
            out[f"{scheme} {loss}"] = fit(LinearSVC, four, loss=loss, multi_class=scheme)
        out[f"{scheme} l1"] = fit(LinearSVC, three, penalty="l1", multi_class=scheme)
        out[f"{scheme} logistic"] = fit(LogisticRegression, four, multi_class=scheme)
    wide_rows = lambda: rows.laid_out("float32", rows.several(24, 101, seed=24))  # noqa: E731
    out["ovr hinge wide"] = fit(LinearSVC, wide_rows, loss="hinge")
    for name, options in {"free": {}, **BIASES}.items():
        joint = {"multi_class": "crammer_singer", **options}
        out[f"crammer_singer {name}"] = fit(LinearSVC, three, **joint)
        out[f"crammer_singer loose {name}"] = fit(LinearSVC, three, tol=1e-4, **joint)
        out[f"multinomial {name}"] = fit(LogisticRegression, three, **options)
    for layout in ("float32", "csr", "csr-int64"):
        data = lambda layout=layout: rows.laid_out(layout, rows.gaps(four()))  # noqa: E731
        out[f"crammer_singer {layout}"] = fit(LinearSVC, data, multi_class="crammer_singer")
        out[f"multinomial {layout}"] = fit(LogisticRegression, data)
    data = lambda: rows.zeroed(three())  # noqa: E731
    out["crammer_singer zero-weights"] = fit(LinearSVC, data, multi_class="crammer_singer", class_weight="balanced")
    out["multinomial zero-weights"] = fit(LogisticRegression, data, class_weight="balanced")
    small = lambda: rows.scaled(three(), (-20,))  # noqa: E731
    out["crammer_singer small units"] = fit(LinearSVC, small, multi_class="crammer_singer", C=2.0**30)
    out["multinomial large units"] = fit(LogisticRegression, lambda: rows.scaled(three(), (20,)), C=2.0**-40)
    out["crammer_singer C=1000"] = fit(LinearSVC, four, multi_class="crammer_singer", C=1000.0)
    out["crammer_singer two classes"] = fit(LinearSVC, lambda: rows.two(seed=23), multi_class="crammer_singer")
    out["crammer_singer stopped"] = fit(LinearSVC, four, multi_class="crammer_singer", max_iter=5)
    out["crammer_singer circulation"] = fit(
        LinearSVC, lambda: rows.several(20, 2, 5, seed=63), multi_class="crammer_singer", C=1000.0, max_iter=200
    )
    out["crammer_singer long descent"] = fit(
        LinearSVC, lambda: rows.several(400, 40, 4, seed=25), multi_class="crammer_singer", C=10.0, tol=1e-5
    )
    return out


FAMILIES = (layouts, biases, weights, continued, degenerate, hard, multi_class)

"""Recorded fits of machines with a certificate: every shape of rows that has a branch of its own; paths over C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin import LinearSVC, LinearSVR, LogisticRegression, Problem, cover_C, svm_path, within_norm
from maxmargin.solvers import SOLVERS as CLASSES
from tests.contracts import fits_data as rows
from tests.contracts.fits_data import Data
from tests.contracts.fits_machines import BIASES, HINGES, SOLVERS, TUBES, Case, Cases, fit, fits
from tests.contracts.fits_record import Record, certified_path


def path(data: Callable[[], Data], Cs: tuple[float, ...], **options: Any) -> Case:
    """Solutions for several C."""

    def run(n_threads: int | None) -> Record:
        X, y, weight = data()
        found = svm_path(X, y, Cs, sample_weight=weight, n_threads=n_threads, **options)
        return certified_path(found.solutions, found.certificates, X, weight)

    return run


def wide() -> Cases:
    """Fewer rows than columns: the span of the rows, the Gram matrix of active rows, columns chosen for ℓ1."""
    out: Cases = {}
    for layout in ("dense", "csr"):
        data = lambda layout=layout: rows.laid_out(layout, rows.two(30, 102, seed=5))  # noqa: E731
        numbers = lambda layout=layout: rows.laid_out(layout, rows.numbers(30, 102, seed=5))  # noqa: E731
        for solver in SOLVERS:
            for loss in HINGES if layout == "dense" else HINGES[:1]:
                out[f"svc {solver} {loss} wide {layout}"] = fit(LinearSVC, data, solver=solver, loss=loss, C=0.01)
        out[f"svr newton tube wide {layout}"] = fit(LinearSVR, numbers, solver="newton", epsilon=0.3, C=0.01)
        out[f"logistic newton wide {layout}"] = fit(LogisticRegression, data)
    out["logistic dual_cd wide"] = fit(LogisticRegression, data, solver="dual_cd")
    out["svr interior_point tube wide"] = fit(LinearSVR, numbers, solver="interior_point", epsilon=0.3, C=0.01)
    out["svc newton 1.5 wide"] = fit(LinearSVC, data, loss=1.5, C=0.01)
    out["svc hard wide"] = fit(LinearSVC, data, C=np.inf)
    sparse = lambda: rows.laid_out("csr", rows.two(30, 102, seed=6))  # noqa: E731
    for name, options in list(BIASES.items())[:2]:
        data = lambda: rows.two(30, 102, seed=6)  # noqa: E731
        out[f"svc dual_cd hinge wide {name}"] = fit(LinearSVC, data, solver="dual_cd", loss="hinge", C=0.01, **options)
        out[f"svc newton squared_hinge wide csr {name}"] = fit(LinearSVC, sparse, solver="newton", C=0.01, **options)
    scales = lambda: rows.scaled(rows.two(30, 102, seed=7), (0, 20, -20, 30))  # noqa: E731
    for solver in SOLVERS:
        out[f"svc {solver} hinge span of scales"] = fit(LinearSVC, scales, solver=solver, loss="hinge", tol=1e-9)
    many = lambda layout: rows.laid_out(layout, rows.gaps(rows.two(60, 600, seed=8), 0.1))  # noqa: E731
    for layout in ("dense", "csr", "csr-int64"):
        data = lambda layout=layout: many(layout)  # noqa: E731
        out[f"svc l1 columns {layout}"] = fit(LinearSVC, data, penalty="l1", C=0.3)
        out[f"logistic l1 columns {layout}"] = fit(LogisticRegression, data, penalty="l1", C=1.0)
    first = {"penalty": "l1", "C": 0.3}
    dense = lambda: many("dense")  # noqa: E731
    out["svc l1 columns warm"] = fits(LinearSVC, (dense, first), (dense, {"C": 0.5}))
    out["svc newton hinge many copies"] = fit(
        LinearSVC, lambda: rows.laid_out("csr", rows.repeated(rows.two(30, 102, seed=9))), solver="newton", loss="hinge"
    )
    return out


def tall() -> Cases:
    """Many rows: working sets, samples, thinned curvatures, matrices that are mended, rows that are screened."""
    out: Cases = {}
    few = lambda: rows.two(6000, 5, seed=10, noise=0.5)  # noqa: E731
    for solver in SOLVERS:
        for loss in HINGES:
            out[f"svc {solver} {loss} 6000 rows"] = fit(LinearSVC, few, solver=solver, loss=loss)
        numbers = lambda: rows.numbers(6000, 4, seed=10)  # noqa: E731
        out[f"svr {solver} tube 6000 rows"] = fit(LinearSVR, numbers, solver=solver, epsilon=1.0)
    out["logistic newton 6000 rows"] = fit(LogisticRegression, few)
    out["logistic dual_cd 6000 rows"] = fit(LogisticRegression, few, solver="dual_cd")
    out["svc newton 1.5 6000 rows"] = fit(LinearSVC, few, loss=1.5)
    out["svc newton hinge loose 6000 rows"] = fit(LinearSVC, few, solver="newton", loss="hinge", tol=1e-3)
    out["svc newton hinge 6000 rows C=100"] = fit(LinearSVC, few, solver="newton", loss="hinge", C=100.0)
    out["svc newton hinge 6000 rows float32"] = fit(
        LinearSVC, lambda: rows.laid_out("float32", few()), solver="newton", loss="hinge"
    )
    out["svc newton hinge 6000 rows csr"] = fit(
        LinearSVC, lambda: rows.laid_out("csr-int64", rows.gaps(few())), solver="newton", loss="hinge"
    )
    sampled = lambda: rows.two(8400, 4, seed=11)  # noqa: E731
    for loss in (*HINGES, 1.5, 3.0):
        out[f"svc newton {loss} sample"] = fit(LinearSVC, sampled, solver="newton", loss=loss)
    out["svc newton hinge sample csr"] = fit(
        LinearSVC, lambda: rows.laid_out("csr", rows.gaps(sampled())), solver="newton", loss="hinge"
    )
    out["logistic newton sample"] = fit(LogisticRegression, sampled)
    out["svc l1 sample"] = fit(LinearSVC, sampled, penalty="l1", C=0.01)
    out["logistic l1 sample"] = fit(LogisticRegression, lambda: rows.zeroed(sampled()), penalty="l1", C=0.01)
    tube = {"solver": "newton", "epsilon": 1.0}
    out["svr newton tube sample"] = fit(LinearSVR, lambda: rows.numbers(8400, 4, seed=11), **tube)
    out["svc newton hinge sample of one class"] = fit(
        LinearSVC, lambda: rows.rare(8400, 4, 2), solver="newton", loss="hinge"
    )
    out["svc l1 sample of one class"] = fit(LinearSVC, lambda: rows.rare(8400, 4, 2), penalty="l1")
    out["svc auto hinge sample"] = fit(LinearSVC, lambda: rows.two(62_600, 8, seed=12), loss="hinge")
    sparse = lambda: rows.sparse(1300, 1400, 40, seed=13)  # noqa: E731
    out["svc dual_cd hinge orthogonal"] = fit(LinearSVC, sparse, solver="dual_cd", loss="hinge")
    out["logistic dual_cd orthogonal"] = fit(LogisticRegression, sparse, solver="dual_cd")
    out["svr dual_cd tube orthogonal"] = fit(
        LinearSVR, lambda: rows.sparse_numbers(1300, 1400, 40, seed=13), solver="dual_cd", epsilon=2.0
    )
    out["svc dual_cd squared_hinge two lanes"] = fit(
        LinearSVC, lambda: rows.sparse(6000, 400, 240, seed=14, noise=20.0), solver="dual_cd", C=0.001
    )
    return out


def iterative() -> Cases:
    """Sparse rows of many columns and smooth losses: conjugate gradients."""
    out: Cases = {}
    sparse = lambda: rows.sparse(900, 450, 5, seed=15)  # noqa: E731
    for name, options in {"free": {}, "penalised": BIASES["penalised"]}.items():
        out[f"svc newton squared_hinge iterative {name}"] = fit(LinearSVC, sparse, solver="newton", **options)
        out[f"logistic newton iterative {name}"] = fit(LogisticRegression, sparse, solver="newton", **options)
    out["logistic newton iterative no-bias"] = fit(LogisticRegression, sparse, fit_intercept=False)
    out["svc newton 3.0 iterative"] = fit(LinearSVC, sparse, loss=3.0)
    out["svr newton squared_tube iterative"] = fit(
        LinearSVR, lambda: rows.sparse_numbers(900, 450, 5, seed=15), solver="newton", loss=TUBES[1], epsilon=0.2
    )
    out["svc newton hinge too large a system"] = fit(
        LinearSVC, lambda: rows.sparse(8000, 8100, 2, seed=16), solver="newton", loss="hinge", max_iter=50
    )
    three = lambda: (rows.sparse(40, 520, 5, seed=17)[0], np.arange(40) % 3, None)  # noqa: E731
    out["multinomial iterative"] = fit(LogisticRegression, three)
    out["crammer_singer iterative"] = fit(LinearSVC, three, multi_class="crammer_singer")
    return out


def chosen() -> Cases:
    """The automatic choice: every rule, and the solver behind the first one."""
    out: Cases = {}
    for loss in (*HINGES, 1.5, 3.0):
        out[f"svc auto {loss}"] = fit(LinearSVC, lambda: rows.two(seed=18), loss=loss)
    spread = lambda: rows.scaled(rows.two(seed=18), (0, 12, -12))  # noqa: E731
    for solver in ("auto", *SOLVERS):
        for loss in HINGES:
            out[f"svc {solver} {loss} column scales"] = fit(LinearSVC, spread, solver=solver, loss=loss)
    out["svc auto hinge sparse"] = fit(LinearSVC, lambda: rows.sparse(60, 70, 6, seed=18), loss="hinge")
    out["svc auto hinge wide"] = fit(LinearSVC, lambda: rows.two(40, 101, seed=18), loss="hinge")
    out["svc auto hinge medium"] = fit(LinearSVC, lambda: rows.two(3000, 30, seed=18), loss="hinge")
    out["svr auto tube"] = fit(LinearSVR, lambda: rows.numbers(seed=18), epsilon=0.1)
    out["logistic auto sparse"] = fit(LogisticRegression, lambda: rows.sparse(60, 70, 6, seed=18))
    lost = lambda: rows.scaled(rows.two(seed=18), (0, 40, -40))  # noqa: E731
    out["svc auto squared_hinge took over"] = fit(LinearSVC, lost, C=1e4)
    out["svc interior_point squared_hinge lost digits"] = fit(LinearSVC, lost, solver="interior_point", C=1e4)
    far = lambda: rows.scaled(rows.two(seed=18), (0, 30, -30))  # noqa: E731
    out["svc newton hinge far scales"] = fit(LinearSVC, far, solver="newton", loss="hinge")
    return out


def along_C() -> Cases:
    """Paths: steps with an old curvature, Newton's method from the neighbour, and any other solver."""
    Cs = (0.03, 0.1, 0.3, 1.0, 30.0)
    tall_rows = lambda: rows.two(400, 6, seed=26)  # noqa: E731
    out: Cases = {
        f"path {name}": path(tall_rows, Cs, **options)
        for name, options in {
            "squared_hinge": {},
            "logistic": {"loss": "logistic"},
            "hinge": {"loss": "hinge"},
            "1.5": {"loss": 1.5},
            "3.0": {"loss": 3.0},
            "l1": {"penalty": "l1"},
            "no-bias": {"fit_intercept": False},
        }.items()
    }
    out["path weights"] = path(lambda: rows.zeroed(tall_rows()), Cs, class_weight="balanced")
    out["path far apart"] = path(tall_rows, (1e-5, 1e3))
    out["path wide"] = path(lambda: rows.two(30, 102, seed=26), (0.001, 0.01), loss="hinge")
    out["path sparse"] = path(lambda: rows.sparse(60, 70, 6, seed=26), (0.1, 1.0))

    def cover(n_threads: int | None) -> Record:
        X, y, _ = tall_rows()
        found = cover_C(X, y, 0.1, 2.0, epsilon=0.05, n_threads=n_threads)
        ends = [0, -1]  # where the points between them lie depends on the solutions
        return certified_path([found.solutions[k] for k in ends], [found.certificates[k] for k in ends], X)

    def norm(n_threads: int | None) -> Record:
        X, y, _ = tall_rows()
        found = within_norm(X, y, 0.5, n_threads=n_threads).solution
        return certified_path([found], [found], X)

    return {**out, "cover_C": cover, "within_norm": norm}


def direct() -> Cases:
    """Solvers called without an estimator: options that no estimator has, and starts that are multipliers only."""

    def solve(name: str, given: Callable[[], Data], start: bool = False, loss: str = "hinge", **options: Any) -> Case:
        def run(n_threads: int | None) -> Record:
            X, y, weight = given()
            problem = Problem.from_arrays(X, y, sample_weight=weight, loss=loss)
            alpha = np.where(np.arange(len(y)) % 3 == 0, 0.5, 0.0) if start else None
            found = CLASSES[name](n_threads=n_threads, **options).solve(problem, start=alpha)
            return certified_path([found], [found], X, weight)

        return run

    two, wide_rows = (lambda: rows.two(seed=27)), (lambda: rows.two(30, 102, seed=27))
    out = {f"{name} from multipliers": solve(name, two, start=True) for name in SOLVERS}
    out["newton from multipliers wide"] = solve("newton", wide_rows, start=True)
    for name in ("interior_point", "dual_cd"):
        out[f"{name} unpolished"] = solve(name, two, polish=False)
    out["dual_cd unpolished wide"] = solve("dual_cd", wide_rows, polish=False)
    out["dual_cd unpolished screened"] = solve("dual_cd", lambda: rows.two(600, 8, seed=27, noise=0.3), polish=False)
    out["interior_point uncorrected"] = solve("interior_point", two, n_corrections=0)
    out["dual_cd impatient"] = solve("dual_cd", two, patient=False)
    out["newton inexact"] = solve("newton", two, exact=False)
    out["newton without sample"] = solve("newton", lambda: rows.two(8400, 4, seed=11), sampling=False)
    return out


FAMILIES = (wide, tall, iterative, chosen, along_C, direct)

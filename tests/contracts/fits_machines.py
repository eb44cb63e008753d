"""Recorded fits of machines with a certificate: every solver on every branch it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin import LinearSVC, LinearSVR, LogisticRegression, NotSeparableError, Problem, cover_C, svm_path, within_norm
from tests.contracts import fits_data as rows
from tests.contracts.fits_data import Data
from tests.contracts.fits_record import Record, certified, certified_path, refused

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


def path(data: Callable[[], Data], Cs: tuple[float, ...], **options: Any) -> Case:
    """Solutions for several C."""

    def run(n_threads: int | None) -> Record:
        X, y, weight = data()
        found = svm_path(X, y, Cs, sample_weight=weight, n_threads=n_threads, **options)
        return certified_path(found.solutions, found.certificates, X, weight)

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
    first = {"C": 1.0}
    out["logistic newton warm"] = fits(LogisticRegression, (two, first), (two, {"C": 2.0}))
    out["svc l1 warm"] = fits(LinearSVC, (two, {"penalty": "l1", "C": 1.0}), (two, {"C": 1.5}))
    three = lambda: rows.several(seed=4)  # noqa: E731
    out["ovr warm"] = fits(LinearSVC, (three, {"C": 1.0}), (three, {"C": 2.0}))
    first = {"multi_class": "crammer_singer"}
    out["crammer_singer warm"] = fits(LinearSVC, (three, first), (three, {"C": 2.0}))
    out["multinomial warm"] = fits(LogisticRegression, (three, {"C": 1.0}), (three, {"C": 2.0}))
    return out


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
        out[f"svc {solver} hinge span of scales"] = fit(LinearSVC, scales, solver=solver, loss="hinge")
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
    easy = lambda: rows.two(5000, 20, seed=13, noise=0.3)  # noqa: E731
    out["svc dual_cd hinge screened"] = fit(LinearSVC, easy, solver="dual_cd", loss="hinge", C=0.001)
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
    out["svc newton 3.0 iterative"] = fit(LinearSVC, sparse, loss=3.0)
    out["svr newton squared_tube iterative"] = fit(
        LinearSVR, lambda: rows.sparse_numbers(900, 450, 5, seed=15), solver="newton", loss=TUBES[1], epsilon=0.2
    )
    out["svc newton hinge too large a system"] = fit(
        LinearSVC, lambda: rows.sparse(8000, 8100, 2, seed=16), solver="newton", loss="hinge", max_iter=50
    )
    out["multinomial iterative"] = fit(
        LogisticRegression, lambda: (rows.sparse(150, 600, 5, seed=17)[0], np.arange(150) % 3, None)
    )
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
    out["svc auto hinge took over"] = fit(
        LinearSVC, lambda: rows.scaled(rows.two(seed=18), (0, 26, -26)), loss="hinge", C=1e6
    )
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
    out["crammer_singer long descent"] = fit(
        LinearSVC, lambda: rows.several(400, 40, 4, seed=25), multi_class="crammer_singer", C=10.0, tol=1e-5
    )
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
    from maxmargin.solvers import SOLVERS as classes

    def solve(name: str, given: Callable[[], Data], start: bool = False, loss: str = "hinge", **options: Any) -> Case:
        def run(n_threads: int | None) -> Record:
            X, y, weight = given()
            problem = Problem.from_arrays(X, y, sample_weight=weight, loss=loss)
            alpha = np.where(np.arange(len(y)) % 3 == 0, 0.5, 0.0) if start else None
            found = classes[name](n_threads=n_threads, **options).solve(problem, start=alpha)
            return certified_path([found], [found], X, weight)

        return run

    two, wide_rows = (lambda: rows.two(seed=27)), (lambda: rows.two(30, 102, seed=27))
    out = {f"{name} from multipliers": solve(name, two, start=True) for name in SOLVERS}
    out["newton from multipliers wide"] = solve("newton", wide_rows, start=True)
    for name in ("interior_point", "dual_cd"):
        out[f"{name} unpolished"] = solve(name, two, polish=False)
    out["dual_cd unpolished wide"] = solve(name, wide_rows, polish=False)
    out["interior_point uncorrected"] = solve("interior_point", two, n_corrections=0)
    out["dual_cd impatient"] = solve("dual_cd", two, patient=False)
    out["newton inexact"] = solve("newton", two, exact=False)
    out["newton without sample"] = solve("newton", lambda: rows.two(8400, 4, seed=11), sampling=False)
    return out


def proven_cases() -> Cases:
    """All of them, by name."""
    out: Cases = {}
    for family in (
        layouts, biases, weights, continued, wide, tall, iterative, chosen, degenerate, hard, multi_class, along_C,
        direct,
    ):  # fmt: skip
        made = family()
        assert not out.keys() & made.keys(), f"{family.__name__} uses a name again"
        out |= made
    return out



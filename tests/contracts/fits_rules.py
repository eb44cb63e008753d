"""Recorded fits of machines without a certificate: rules that learn row by row, and machines of squared errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin import online, squares
from tests.contracts import fits_data as rows
from tests.contracts.fits_data import Data
from tests.contracts.fits_machines import Case, Cases
from tests.contracts.fits_record import Record, learned


def _learned(machine: Any, exact: bool) -> Record:
    """Everything a rule has learned, whatever its machine calls it."""
    if hasattr(machine, "components_"):
        weights, b = [machine.components_[0]], np.empty(0)
    elif hasattr(machine, "alpha_"):  # multipliers of the rows
        weights, b = list(np.atleast_2d(machine.alpha_)), machine.intercept_
    else:
        weights, b = list(np.atleast_2d(machine.coef_)), machine.intercept_
    if hasattr(machine, "voters_"):
        weights += [*machine.voters_, *machine.voter_intercepts_, *machine.votes_]
    return learned(weights, b, steps=int(getattr(machine, "t_", 0)), exact=exact)


def rule(
    machine: Callable[..., Any], data: Callable[[], Data], *, exact: bool = False, again: bool = False, **options: Any
) -> Case:
    """A fit; ``again`` goes on from it with the rows in reverse order."""

    def run(n_threads: int | None) -> Record:
        X, y, _ = data()
        fitted = machine(**options).fit(X, y)
        if again:
            fitted.set_params(warm_start=True).fit(X[::-1], y[::-1])
        return _learned(fitted, exact)

    return run


def in_parts(machine: type, data: Callable[[], Data], *, exact: bool = False, **options: Any) -> Case:
    """Three calls of partial_fit."""

    def run(n_threads: int | None) -> Record:
        X, y, _ = data()
        fitted = machine(**options)
        labels = {"classes": np.unique(y)} if hasattr(fitted, "classes") or issubclass(machine, CLASSIFIERS) else {}
        for part in (slice(0, 25), slice(25, 40), slice(40, None)):
            fitted.partial_fit(X[part], y[part], **labels)
        return _learned(fitted, exact)

    return run


CLASSIFIERS = (
    online.Adaline, online.BalancedWinnow, online.MulticlassPerceptron, online.OnlineSVC, online.Perceptron,
    online.Relaxation, online.VotedPerceptron, online.Winnow,
)  # fmt: skip


def eighths(layout: str = "dense") -> Callable[[], Data]:
    """Separable rows of multiples of 1/8: all sums of rows are exact."""
    return lambda: rows.laid_out(layout, rows.gaps(rows.apart(80, 5, seed=30, grid=8), 0.8))


def overlapping() -> Data:
    return rows.two(100, 5, seed=31)


def three_classes() -> Data:
    return rows.several(90, 5, seed=32)


def three_separable() -> Data:
    X = np.round(rows.rows(60, 4, 33) * 8.0) / 8.0
    y = np.arange(60) % 3
    X[np.arange(60), y] += 4.0
    return X, y, None


def perceptrons() -> Cases:
    out: Cases = {}
    for layout in rows.LAYOUTS:
        out[f"perceptron {layout}"] = rule(online.Perceptron, eighths(layout), exact=True)
    for name, options in {
        "no-bias": {"fit_intercept": False},
        "radius": {"bias": "radius", "radius": 4.0},
        "own order": {"shuffle": False},
        "replacement": {"shuffle": "replacement"},
        "margin": {"margin": 1.0},
        "batches": {"batch_size": 8},
        "all at once": {"batch_size": "all"},
        "all passes": {"tol": None, "max_iter": 12},
        "average": {"average": True},
        "random": {"random_state": 7},
        "trace": {"trace": True},
    }.items():
        out[f"perceptron {name}"] = rule(online.Perceptron, eighths(), exact=True, **options)
    for name, options in {
        "overlapping": {},
        "inverse steps": {"schedule": "inverse"},
        "performance": {"schedule": "performance", "eta0": 0.1},
        "shrinking": {"rho": 0.01, "eta0": 0.1, "max_iter": 10},
        "mean of batches": {"batch_size": 8, "reduction": "mean", "max_iter": 20},
        "three classes": {"max_iter": 20},
    }.items():
        data = three_classes if name == "three classes" else overlapping
        out[f"perceptron {name}"] = rule(online.Perceptron, data, **options)
    out["perceptron in parts"] = in_parts(online.Perceptron, eighths(), exact=True)
    out["perceptron again"] = rule(online.Perceptron, eighths(), exact=True, again=True)
    out["extended perceptron"] = rule(online.ExtendedPerceptron, overlapping, delta=1.0)
    for name in ("error", "ratchet", "run"):
        out[f"pocket {name}"] = rule(online.PocketPerceptron, overlapping, rule=name, max_iter=10)
    out["pocket again"] = rule(online.PocketPerceptron, overlapping, max_iter=5, again=True)
    out["pocket csr"] = rule(online.PocketPerceptron, eighths("csr"), exact=True, max_iter=10)
    out["pocket radius"] = rule(online.PocketPerceptron, overlapping, bias="radius", patience=3)
    out["voted"] = rule(online.VotedPerceptron, eighths(), exact=True)
    out["voted overlapping"] = rule(online.VotedPerceptron, overlapping, max_iter=2)
    out["voted in parts"] = in_parts(online.VotedPerceptron, eighths(), exact=True)
    out["voted three classes"] = rule(online.VotedPerceptron, three_separable, exact=True)
    multi = online.MulticlassPerceptron
    out["multiclass perceptron"] = rule(multi, three_separable, exact=True)
    out["multiclass perceptron margin"] = rule(multi, three_classes, margin=0.5, eta0=0.5, max_iter=10)
    out["multiclass perceptron average"] = rule(multi, three_classes, average=True, max_iter=10)
    out["multiclass perceptron two classes"] = rule(multi, eighths("csr"), exact=True)
    out["multiclass perceptron in parts"] = in_parts(multi, three_separable, exact=True)
    kernel = online.KernelPerceptron
    out["kernel perceptron linear"] = rule(kernel, eighths(), kernel="linear", bias="augmented", exact=True)
    out["kernel perceptron poly"] = rule(kernel, overlapping, kernel="poly", degree=2, gamma=0.5, coef0=1.0)
    out["kernel perceptron rbf"] = rule(kernel, overlapping, kernel="rbf")
    out["kernel perceptron sigmoid"] = rule(kernel, overlapping, kernel="sigmoid", bias="augmented", max_iter=20)
    out["kernel perceptron rbf csr"] = rule(kernel, eighths("csr"), kernel="rbf", gamma=0.25)
    out["kernel perceptron three classes"] = rule(kernel, three_classes, kernel="rbf", margin=0.1)
    out["kernel perceptron trace"] = rule(kernel, overlapping, kernel="rbf", trace=True, max_iter=3)
    out["kernel perceptron precomputed"] = rule(kernel, _products, kernel="precomputed", radius=4.0, exact=True)
    return out


def _products() -> Data:
    X, y, _ = eighths()()
    return X @ X.T, y, None


def multiplicative() -> Cases:
    out: Cases = {}
    for layout in ("dense", "float32", "csr"):
        data = lambda layout=layout: rows.laid_out(layout, rows.truth(seed=34))  # noqa: E731
        out[f"winnow {layout}"] = rule(online.Winnow, data)
        out[f"balanced winnow {layout}"] = rule(online.BalancedWinnow, data)
    out["winnow base 2"] = rule(online.Winnow, lambda: rows.truth(seed=34), base=2.0, threshold=5.0)
    out["winnow in parts"] = in_parts(online.Winnow, lambda: rows.truth(120, 12, seed=35))
    out["balanced winnow numbers"] = rule(online.BalancedWinnow, overlapping, base=1.5, max_iter=20)
    out["balanced winnow no-bias"] = rule(online.BalancedWinnow, overlapping, fit_intercept=False, max_iter=20)
    out["balanced winnow three classes"] = rule(online.BalancedWinnow, three_classes, max_iter=20)
    return out


def steps() -> Cases:
    """Rules that go down a gradient."""
    out: Cases = {}
    for name, options in {
        "margin 1": {},
        "over": {"eta": 1.5},
        "under": {"eta": 0.5, "margin": 0.5},
        "batches": {"batch_size": 8},
        "all at once": {"batch_size": "all"},
        "no-bias": {"fit_intercept": False},
        "to the end": {"stop_when_separated": False},
    }.items():
        out[f"relaxation {name}"] = rule(online.Relaxation, eighths(), **options)
    out["relaxation csr"] = rule(online.Relaxation, eighths("csr"))
    out["relaxation overlapping"] = rule(online.Relaxation, overlapping, max_iter=10)
    out["relaxation in parts"] = in_parts(online.Relaxation, eighths())

    def started(n_threads: int | None) -> Record:
        X, y, _ = eighths()()
        # Corrections that go beyond the boundary: on it, rounding would decide whether a row is corrected again.
        return _learned(online.Relaxation(margin=0.0, eta=1.5).fit(X, y, np.ones((1, X.shape[1])), np.zeros(1)), False)

    out["relaxation from a start"] = started
    out["alternating projections"] = rule(online.alternating_projections, eighths(), margin=0.5)
    for loss in ("hinge", "logistic", "exponential"):
        for layout in ("dense", "float32", "csr"):
            data = lambda layout=layout: rows.laid_out(layout, rows.gaps(overlapping(), 0.8))  # noqa: E731
            out[f"online svc {loss} {layout}"] = rule(online.OnlineSVC, data, loss=loss, rho=0.01, max_iter=5)
    for name, options in {
        "average": {"average": True},
        "inverse": {"schedule": "inverse", "power_t": 0.5},
        "constant": {"schedule": "constant", "eta0": 0.01},
        "performance": {"schedule": "performance"},
        "batches": {"batch_size": 10, "reduction": "sum"},
        "all at once": {"batch_size": "all"},
        "no-bias": {"fit_intercept": False},
        "stops": {"tol": 20, "n_iter_no_change": 3},
    }.items():
        out[f"online svc {name}"] = rule(online.OnlineSVC, overlapping, rho=0.01, max_iter=8, **options)
    out["online svc three classes"] = rule(online.OnlineSVC, three_classes, rho=0.01, max_iter=4)
    out["online svc in parts"] = in_parts(online.OnlineSVC, overlapping, rho=0.01)
    out["online svc again"] = rule(online.OnlineSVC, overlapping, rho=0.01, max_iter=4, again=True)
    target = lambda: rows.numbers(100, 5, seed=36)  # noqa: E731
    for loss in ("epsilon_insensitive", "squared_tube"):
        for penalty in ("l1", "l2"):
            options = {"loss": loss, "penalty": penalty, "epsilon": 0.2, "eta0": 0.01}
            out[f"online svr {loss} {penalty}"] = rule(online.OnlineSVR, target, max_iter=5, **options)
    out["online svr last"] = rule(online.OnlineSVR, target, average=False, max_iter=5)
    out["online svr l1 last"] = rule(online.OnlineSVR, target, average=False, penalty="l1", rho=0.1, max_iter=5)
    out["online svr in parts"] = in_parts(online.OnlineSVR, target)
    for name, options in {
        "plain": {},
        "inverse": {"schedule": "inverse"},
        "batches": {"batch_size": 10},
        "sum of batches": {"batch_size": 10, "reduction": "sum"},
        "all at once": {"batch_size": "all"},
        "average": {"average": True},
        "rho": {"rho": 0.01},
        "dual": {"form": "dual"},
        "no-bias": {"fit_intercept": False},
        "eta0": {"eta0": 0.01},
    }.items():
        out[f"adaline {name}"] = rule(online.Adaline, overlapping, max_iter=5, **options)
        if name in ("plain", "batches", "dual", "rho"):
            out[f"adaline regressor {name}"] = rule(online.AdalineRegressor, target, max_iter=5, **options)
    out["adaline in parts"] = in_parts(online.Adaline, overlapping, eta0=0.01)
    out["adaline regressor csr"] = rule(
        online.AdalineRegressor, lambda: rows.laid_out("csr", rows.gaps(target())), max_iter=5
    )
    for name, machine in {"hebb": online.HebbRule, "oja": online.OjaRule}.items():
        out[name] = rule(machine, overlapping)
        out[f"{name} uncentred float32"] = rule(machine, lambda: rows.laid_out("float32", overlapping()), center=False)
        out[f"{name} inverse"] = rule(machine, overlapping, schedule="inverse", max_iter=3)
        out[f"{name} in parts"] = in_parts(machine, overlapping, center=False)
    return out


def square(machine: type, data: Callable[[], Data], **options: Any) -> Case:
    """A machine of squared errors."""

    def run(n_threads: int | None) -> Record:
        X, y, weight = data()
        fitted = machine(**options).fit(X, y, weight)
        weights = np.atleast_2d(fitted.dual_coef_.T if machine is squares.KernelRidge else fitted.coef_)
        return learned(list(weights), fitted.intercept_)

    return run


def squared_errors() -> Cases:
    out: Cases = {}
    target = lambda: rows.numbers(80, 5, seed=40)  # noqa: E731
    wide = lambda: rows.numbers(30, 60, seed=40)  # noqa: E731
    two, three = (lambda: rows.two(80, 5, seed=41)), (lambda: rows.several(seed=41))
    kinds: dict[str, Callable[[Callable[[], Data]], Callable[[], Data]]] = {
        "plain": lambda data: data,
        "weights": lambda data: lambda: rows.zeroed(data()),
        "csr": lambda data: lambda: rows.laid_out("csr", rows.gaps(data())),
        "float32": lambda data: lambda: rows.laid_out("float32", data()),
        "collinear": lambda data: lambda: rows.collinear(data()),
    }
    for kind, change in kinds.items():
        out[f"least squares {kind}"] = square(squares.LeastSquaresRegressor, change(target))
        out[f"least squares classifier {kind}"] = square(squares.LeastSquaresClassifier, change(two))
        for form in ("primal", "dual"):
            out[f"ridge {form} {kind}"] = square(squares.Ridge, change(target), form=form)
        out[f"ridge classifier {kind}"] = square(squares.RidgeClassifier, change(three))
        out[f"fisher {kind}"] = square(squares.FisherDiscriminant, change(two))
        out[f"kernel ridge {kind}"] = square(squares.KernelRidge, change(target), kernel="rbf", gamma=0.1)
    for machine in (squares.LeastSquaresRegressor, squares.Ridge, squares.KernelRidge):
        out[f"{machine.__name__} wide"] = square(machine, wide)
        out[f"{machine.__name__} no-bias"] = square(machine, target, fit_intercept=False)
    out["ridge alpha=0"] = square(squares.Ridge, lambda: rows.collinear(target()), alpha=0.0)
    out["ridge two outputs"] = square(squares.Ridge, _two_outputs)
    out["ridge sparse"] = square(squares.Ridge, lambda: rows.sparse_numbers(1500, 1400, 3, seed=42), alpha=0.5)
    long = lambda: _dependent(rows.sparse_numbers(26_000, 80, 3, seed=45))  # noqa: E731
    out["ridge sparse dependent columns"] = square(squares.Ridge, long, alpha=0.0)
    short = lambda: _dependent(rows.sparse_numbers(60, 34_000, 40, seed=46))  # noqa: E731
    out["ridge sparse few rows"] = square(squares.Ridge, short, alpha=0.0)
    out["ridge dual alpha=0"] = square(squares.Ridge, lambda: rows.collinear(target()), alpha=0.0, form="dual")
    out["fisher wide"] = square(squares.FisherDiscriminant, lambda: rows.two(30, 60, seed=47))
    out["ridge classifier balanced"] = square(squares.RidgeClassifier, three, class_weight="balanced", alpha=3.0)
    out["fisher gaussian"] = square(squares.FisherDiscriminant, two, threshold="gaussian")
    out["kernel ridge poly"] = square(squares.KernelRidge, target, kernel="poly", degree=2)
    out["kernel ridge alpha=0"] = square(squares.KernelRidge, lambda: rows.numbers(20, 5, seed=43), alpha=0.0)
    return out


def _dependent(data: Data) -> Data:
    """The second column is the first one again."""
    X, y, weight = data
    columns = X.tocsc()
    return sp.csr_array(sp.hstack([columns[:, :1], columns[:, :1], columns[:, 2:]])), y, weight


def _two_outputs() -> Data:
    X, y, weight = rows.numbers(80, 5, seed=44)
    return X, np.stack([y, y[::-1]], axis=1), weight


FAMILIES = (perceptrons, multiplicative, steps, squared_errors)

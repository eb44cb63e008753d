"""One pass of the machines that learn row by row, beside scikit-learn and river; and the pocket.

    python -m benchmarks.online [--rows 1000000] [--repeats 5]

Throughput is counted over a whole fit of one pass, input checks included, in the order of the rows. ``bandwidth`` is
what one thread reads from memory when it only adds up the same array (`maxmargin._core.all_finite` on one thread).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Perceptron as SklearnPerceptron
from sklearn.linear_model import SGDClassifier, SGDRegressor

import maxmargin as mm
from benchmarks import datasets
from maxmargin import _core
from maxmargin.inputs import check_rows

RIVER_ROWS = 20000


def best_of(repeats: int, work: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def machines() -> dict[str, tuple[Any, Any]]:
    """Ours, and scikit-learn's of the same rule, for one pass."""
    once = {"max_iter": 1, "tol": None, "shuffle": False}
    return {
        "perceptron": (mm.Perceptron(**once), SklearnPerceptron(**once)),
        "hinge": (
            mm.OnlineSVC(rho=5e-7, **once),
            SGDClassifier(alpha=1e-6, **once),
        ),
        "adaline": (
            mm.AdalineRegressor(eta0=1e-3, max_iter=1, shuffle=False),
            SGDRegressor(penalty=None, learning_rate="constant", eta0=1e-3, **once),
        ),
    }


def river_rates(X: Any, y: Any) -> dict[str, float]:
    """Seconds per row of river's machines on some rows, as dicts (made beforehand)."""
    try:
        from river import linear_model, optim
    except ImportError:
        return {}
    part = X[:RIVER_ROWS]
    if sp.issparse(part):
        rows = [
            dict(zip(part.indices[a:b].tolist(), part.data[a:b].tolist(), strict=True))
            for a, b in zip(part.indptr[:-1], part.indptr[1:], strict=True)
        ]
    else:
        rows = [dict(enumerate(row.tolist())) for row in part]
    labels = (y[:RIVER_ROWS] > 0).tolist()
    peers = {
        "perceptron": linear_model.Perceptron(),
        "hinge": linear_model.LogisticRegression(loss=optim.losses.Hinge()),
        "adaline": linear_model.LinearRegression(optimizer=optim.SGD(1e-3)),
    }
    found = {}
    for name, machine in peers.items():
        start = time.perf_counter()
        for x, label in zip(rows, labels, strict=True):
            machine.learn_one(x, label)
        found[name] = (time.perf_counter() - start) / len(rows)
    return found


def passes(name: str, X: Any, y: Any, repeats: int, with_river: bool) -> None:
    rows = check_rows(X).core
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
    read = best_of(repeats, lambda: _core.all_finite(rows, 1))
    amount = X.data.nbytes if sp.issparse(X) else X.nbytes
    print(f"\n{name}: {size / 1e6:.0f} MB; one thread reads {amount / read / 1e9:.1f} GB/s")
    river = river_rates(X, y) if with_river else {}
    for rule, (ours, theirs) in machines().items():
        target = y.astype(np.float64) if rule == "adaline" else y
        alone = pass_alone(ours, X, target, repeats)
        mine, peer = (best_of(repeats, partial(machine.fit, X, target)) for machine in (ours, theirs))
        share = 100 * size / alone / (amount / read)
        text = f"{rule:<11} pass alone {alone:.4f} s ({size / alone / 1e9:.1f} GB/s, {share:.0f} % of reading), "
        text += f"whole fit {mine:.4f} s; scikit-learn's fit {peer:.4f} s ({peer / mine:.1f}×)"
        if rule in river:
            there = river[rule] * X.shape[0]
            text += f"; river {there:.1f} s ({there / mine:.0f}×, from {min(RIVER_ROWS, X.shape[0])} rows)"
        print(text)


def pass_alone(machine: Any, X: Any, y: Any, repeats: int) -> float:
    """The core's pass, without checks and labels."""
    machine.fit(X, y)  # sets it up
    rows = check_rows(X).core
    target = np.asarray(y, dtype=np.float64)

    def once() -> None:
        memory = machine._fresh(X.shape[1])
        machine._open(memory).run(rows, target, None, 0, X.shape[0])

    return best_of(repeats, once)


def pocket(repeats: int) -> None:
    """Errors on all rows after every correction, 5000×20."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 20))
    y = np.where(X[:, 0] + rng.standard_normal(5000) > 0, 1, -1)
    rows = check_rows(X).core
    w, target = rng.standard_normal(20), y.astype(np.float64)
    sweep = best_of(200, lambda: _core.count_errors(rows, target, w, 0.1))
    read = best_of(200, lambda: _core.all_finite(rows, 1))
    size = X.nbytes + target.nbytes
    print(
        f"\npocket, 5000×20: a sweep {1e6 * sweep:.0f} µs, {size / sweep / 1e9:.1f} GB/s; "
        f"reading alone {size / read / 1e9:.1f} GB/s"
    )
    machine = mm.PocketPerceptron(max_iter=1, shuffle=False)
    ours = best_of(repeats, lambda: machine.fit(X, y))
    loop = best_of(1, lambda: obvious(X, y))
    print(
        f"one pass with {machine.n_evaluations_} counts: {ours:.4f} s, "
        f"the obvious NumPy loop {loop:.2f} s ({loop / ours:.0f}×)"
    )
    for noise in (0.5, 1.0):
        ratchet(X, np.where(X[:, 0] + noise * rng.standard_normal(5000) > 0, 1, -1))


def ratchet(X: Any, y: Any) -> None:
    """Gallant's ratchet beside a count after every correction, 100 seeds."""
    final: dict[str, list[float]] = {"error": [], "ratchet": []}
    counts = dict.fromkeys(final, 0)
    for seed in range(100):
        for rule in final:
            machine = mm.PocketPerceptron(rule=rule, max_iter=20, random_state=seed).fit(X, y)
            final[rule].append(machine.n_errors_ / 50)
            counts[rule] += machine.n_evaluations_
    print(
        f"Gallant's ratchet: {counts['ratchet']} counts instead of {counts['error']} "
        f"({counts['ratchet'] / counts['error']:.3f}), "
        f"mean final error {np.mean(final['ratchet']):.2f} % against {np.mean(final['error']):.2f} %"
    )


def obvious(X: Any, y: Any) -> float:
    w, b, best = np.zeros(X.shape[1]), 0.0, len(y)
    for i in range(len(y)):
        if y[i] * (X[i] @ w + b) <= 0:
            w, b = w + y[i] * X[i], b + y[i]
            best = min(best, int(np.sum(y * (X @ w + b) <= 0)))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--pocket", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--river", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((options.rows, 100), dtype=np.float32)
    y = np.where(X[:, :5].sum(axis=1) + 0.5 * rng.standard_normal(options.rows) > 0, 1, -1)
    passes(f"dense {options.rows}×100 float32", X, y, options.repeats, options.river)
    del X
    text = datasets.load("text-100000x50000")
    passes("CSR 100000×50000, 0.15 %", text.X, text.y, options.repeats, options.river)
    if options.pocket:
        pocket(options.repeats)


if __name__ == "__main__":
    main()

"""Fits on hostile data, whose claims are compared with exact arithmetic: ``python -m tests.exact.sweep --count 2000``.

Columns of size 1e-10 to 1e16, offsets up to 1e12, C from 1e-5 to 1e5, every loss, penalty, bias, solver and multi-class
form. A claim must be a theorem whatever the status is, and no certificate of ours may be rejected; one that says
CONVERGED must be proven.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from typing import Any

import numpy as np

from maxmargin import LinearSVC, LinearSVR, LogisticRegression, Status
from maxmargin.certificates import Outcome
from tests.exact.objectives import false_bounds

BIASES: list[dict[str, Any]] = [{}, {}, {}, {"fit_intercept": False}, {"penalize_intercept": True}]
MARGIN_LOSSES: list[Any] = ["hinge", "squared_hinge", 1.5, 3.0, 1.01]


def matrix(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Rows as people have them, and worse."""
    X = rng.standard_normal((n, d))
    kind = rng.integers(6)
    if kind == 0:  # columns of very different size
        X *= 10.0 ** rng.uniform(-10, 16, d)
    elif kind == 1:  # offsets: dates, identifiers
        X = X * 10.0 ** rng.uniform(-2, 4, d) + 10.0 ** rng.uniform(0, 12, d) * rng.choice([-1.0, 0.0, 1.0], d)
    elif kind == 2:  # one column with hardly any spread beside its size
        X[:, 0] = 1e4 * (1.0 + 1e-4 * X[:, 0])
    elif kind == 3:  # both
        X = (X + 10.0 ** rng.uniform(0, 6, d)) * 10.0 ** rng.uniform(-6, 8, d)
    elif kind == 4:  # counts, and rows that occur again
        X = np.floor(np.abs(X) * 10.0 ** rng.uniform(0, 4, d))[rng.integers(0, max(1, n // 2), n)]
    return X


def labels(rng: np.random.Generator, X: np.ndarray, k: int) -> np.ndarray:
    """k classes that a few columns tell apart, some noise; every class occurs."""
    Z = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-300)
    score = Z @ rng.standard_normal(X.shape[1]) + 0.7 * rng.standard_normal(len(X))
    y = np.searchsorted(np.quantile(score, np.arange(1, k) / k), score)
    y[rng.permutation(len(y))[:k]] = np.arange(k)
    return y


def machine(rng: np.random.Generator, k: int) -> Any:
    """A machine for k classes; 1 stands for a regression."""
    C, bias = float(10.0 ** rng.uniform(-5, 5)), BIASES[rng.integers(len(BIASES))]
    tol = float(rng.choice([1e-3, 1e-6, 1e-6, 1e-10]))
    common: dict[str, Any] = {"C": C, "tol": tol, "max_iter": 300, **bias}
    kind = rng.integers(10)
    if k == 1:
        loss = str(rng.choice(["epsilon_insensitive", "squared_epsilon_insensitive"]))
        return LinearSVR(loss=loss, epsilon=float(rng.choice([0.0, 0.1])), solver=_solver(rng), **common)
    if kind < 3:
        penalty, form = ("l1", "ovr") if kind == 0 else ("l2", str(rng.choice(["ovr", "ovo", "multinomial"])))
        solver = "auto" if kind == 0 or form == "multinomial" else str(rng.choice(["auto", "dual_cd", "newton"]))
        return LogisticRegression(penalty=penalty, multi_class=form, solver=solver, **common)
    if kind == 3:
        return LinearSVC(penalty="l1", **common)
    if kind == 4 and k == 2:
        return LinearSVC(**{**common, "C": np.inf})
    if kind < 6 and k > 2:
        return LinearSVC(multi_class="crammer_singer", **common)
    loss = MARGIN_LOSSES[rng.integers(len(MARGIN_LOSSES))]
    solver = _solver(rng) if isinstance(loss, str) else "auto"
    return LinearSVC(loss=loss, solver=solver, multi_class=str(rng.choice(["ovr", "ovo"])), **common)


def _solver(rng: np.random.Generator) -> str:
    return str(rng.choice(["auto", "auto", "interior_point", "dual_cd", "newton"]))


def case(seed: int) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Machine, rows, targets and weights number ``seed``."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(4, 90)), int(rng.integers(1, 9)), int(rng.choice([1, 2, 2, 2, 3, 4]))
    X = matrix(rng, max(n, 3 * k), d)
    if rng.random() < 0.2:
        X = X.astype(np.float32).astype(np.float64)
    y: np.ndarray = labels(rng, X, k) if k > 1 else rng.standard_normal(len(X)) * 10.0 ** rng.uniform(-3, 6)
    weight = rng.choice([0.5, 1.0, 2.0], len(X)) if rng.random() < 0.3 else np.ones(len(X))
    return machine(rng, k), X, y, weight


def examine(seed: int) -> tuple[str, list[str]]:
    """The status of a fit, and everything that is wrong with its claims."""
    model, X, y, weight = case(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(X, y, weight)
        except ValueError as error:
            if "hyperplane" in str(error) or "too large" in str(error):
                return "refused", []
            raise
    certificate, status = model.certificate_, model.solution_.status
    wrong = false_bounds(certificate, X, y, weight)
    verdict = certificate.verify(X, y, weight)
    if verdict.outcome is Outcome.REJECTED:
        wrong.append(f"{status.name}, yet {verdict}")
    if status is Status.CONVERGED and not verdict:
        wrong.append(f"CONVERGED, yet {verdict}")
    return status.name, wrong


def sweep(seeds: range) -> tuple[Counter[str], dict[int, list[str]]]:
    """How fits ended, and the seeds whose claims were wrong."""
    ends: Counter[str] = Counter()
    wrong = {}
    for seed in seeds:
        end, found = examine(seed)
        ends[end] += 1
        if found:
            wrong[seed] = found
            print(f"seed {seed}: {case(seed)[0]}\n    " + "\n    ".join(found), flush=True)
    return ends, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--begin", type=int, default=0)
    options = parser.parse_args()
    ends, wrong = sweep(range(options.begin, options.begin + options.count))
    print(f"{options.count} fits: {dict(ends)}; {len(wrong)} with a claim that does not hold")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()

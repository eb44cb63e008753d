"""Interpreters that end while daemon threads are fitting, as those of web servers and notebooks do.

``python -m tests.core.ending 20 /tmp/rows.svm`` lets each kind of fit end 20 times, after different numbers of fits,
and prints what did not end well.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable

import numpy as np

import maxmargin as mm
from maxmargin.data import open_batches
from tests.core.children import fate

N_THREADS = 2


def fits(text: str) -> dict[str, Callable[[], object]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y, y3 = (X[:, 0] + rng.normal(size=400) > 0.0).astype(int), np.digitize(X[:, 0], [-0.5, 0.5])
    wide, separable = rng.normal(size=(40, 150)), (X[:100, 0] > 0.0).astype(int)
    with open(text, "w") as file:
        file.writelines(f"{label} 1:{a:.3f} 2:{b:.3f}\n" for label, (a, b) in zip(y, X[:, :2], strict=True))
    return {
        "interior_point": lambda: mm.LinearSVC(loss="hinge", solver="interior_point").fit(X, y),
        "dual_cd": lambda: mm.LinearSVC(loss="hinge", solver="dual_cd", C=10.0, n_threads=2).fit(X, y),
        "newton": lambda: mm.LinearSVC(solver="newton").fit(X, y),
        "proximal_newton": lambda: mm.LinearSVC(penalty="l1").fit(X, y),
        "span": lambda: mm.LinearSVC(solver="newton").fit(wide, y[:40]),
        "hard margin": lambda: mm.LinearSVC(C=float("inf")).fit(X[:100], separable),
        "one per class": lambda: mm.LinearSVC(loss="hinge", n_threads=2).fit(X, y3),
        "joint": lambda: mm.LinearSVC(multi_class="crammer_singer", loss="hinge").fit(X, y3),
        "multinomial": lambda: mm.LogisticRegression().fit(X, y3),
        "regression": lambda: mm.LinearSVR(epsilon=0.1).fit(X, X[:, 0]),
        "ridge": lambda: mm.Ridge().fit(X, X[:, 0]),
        "perceptron": lambda: mm.Perceptron(max_iter=20).fit(X, y),
        "multiclass perceptron": lambda: mm.MulticlassPerceptron(max_iter=20).fit(X, y3),
        "pocket": lambda: mm.PocketPerceptron(max_iter=5).fit(X, y),
        "winnow": lambda: mm.Winnow(max_iter=20).fit(np.abs(X), y),
        "online svc": lambda: mm.OnlineSVC(max_iter=5).fit(X, y),
        "kernel perceptron": lambda: mm.KernelPerceptron(max_iter=2).fit(X, y),
        "reader": lambda: mm.read_table(text),
        "batches": lambda: list(open_batches(text).read()),
    }


def begin(fit: Callable[[], object], n_fits: int) -> None:
    """Return when ``n_fits`` fits were made, while the threads go on."""
    done = threading.Semaphore(0)

    def work() -> None:
        while True:
            fit()
            done.release()

    for _ in range(N_THREADS):
        threading.Thread(target=work, daemon=True).start()
    for _ in range(n_fits):
        done.acquire()


def main(n_times: int, text: str) -> None:
    warnings.simplefilter("ignore")  # of fits that stop early, and of forks
    kinds = fits(text)
    for fit in kinds.values():  # imports what it needs
        fit()
    for name, fit in kinds.items():
        for n_fits in range(n_times):
            child = os.fork()
            if child == 0:
                begin(fit, n_fits)
                return  # to the last line of the program: Python's own end comes now
            end = fate(child)
            if end != "well":
                print(f"{name}, after {n_fits} fits: {end}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])

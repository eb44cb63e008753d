"""Perceptron on iris in the plane, setosa against the rest: 120 rows to learn from, 30 to test, 5 passes."""

import numpy as np
from worked import iris_plane, percent_wrong, splits, tell

from maxmargin import Perceptron


def main() -> None:
    X, y = iris_plane(lambda species: np.where(species == 0, -1, 1))
    errors, mistakes, bounds = [], [], []
    for seed, X_train, y_train, X_test, y_test in splits(X, y, 30):
        machine = Perceptron(max_iter=5, tol=None, random_state=seed).fit(X_train, y_train)
        errors.append(percent_wrong(machine, X_test, y_test))
        mistakes.append(machine.n_mistakes_)
        bounds.append(machine.mistake_bound_.value)
    print("perceptron, iris (setosa against the rest) in 2-D, 5 passes")
    tell("test error", errors, "0 %")
    tell("mistakes in training", mistakes, "–", unit="")
    tell("Novikoff's bound on them", bounds, "–", unit="")
    assert all(made <= bound for made, bound in zip(mistakes, bounds, strict=True))
    print("  verified: no split made more mistakes than Novikoff's theorem allows")


if __name__ == "__main__":
    main()

"""Perceptron and pocket on iris versicolor and virginica in the plane: 80 rows to learn from, 20 to test, 5 passes."""

import numpy as np
from worked import iris_plane, percent_wrong, splits, tell

from maxmargin import Perceptron, PocketPerceptron


def main() -> None:
    X, y = iris_plane(lambda species: np.where(species == 1, -1, 1), slice(50, 150))
    train = {"perceptron": [], "pocket": []}
    test = {"perceptron": [], "pocket": []}
    for seed, X_train, y_train, X_test, y_test in splits(X, y, 20):
        machines = {
            "perceptron": Perceptron(max_iter=5, tol=None, random_state=seed),
            "pocket": PocketPerceptron(max_iter=5, random_state=seed),
        }
        for name, machine in machines.items():
            machine.fit(X_train, y_train)
            train[name].append(percent_wrong(machine, X_train, y_train))
            test[name].append(percent_wrong(machine, X_test, y_test))
    print("perceptron and pocket, iris (versicolor, virginica) in 2-D, 5 passes")
    tell("perceptron, training error", train["perceptron"], "16.25 %")
    tell("pocket, training error", train["pocket"], "10 %")
    tell("perceptron, test error", test["perceptron"], "20 %")
    tell("pocket, test error", test["pocket"], "10 %")
    assert all(kept <= last for kept, last in zip(train["pocket"], train["perceptron"], strict=True))
    print("  verified: the pocket's training error was never above the perceptron's")


if __name__ == "__main__":
    main()

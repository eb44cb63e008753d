"""Soft-margin machine, learned row by row, on the breast cancer data: 456 rows to learn from, 113 to test, 20
passes."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from worked import percent_wrong, splits, tell

from maxmargin import LinearSVC, OnlineSVC

RHO = 0.01


def main() -> None:
    X, target = load_breast_cancer(return_X_y=True)
    y = np.where(target == 0, 1, -1)  # malignant: +1
    X = StandardScaler().fit_transform(X)
    for name, Z, reported in [
        ("30 columns", X, "12.39 %"),
        ("2 principal components", PCA(2).fit_transform(X), "5.31 %"),
    ]:
        online, exact = [], []
        for seed, X_train, y_train, X_test, y_test in splits(Z, y, 113):
            machine = OnlineSVC(rho=RHO, schedule="constant", eta0=0.01, max_iter=20, random_state=seed)
            online.append(percent_wrong(machine.fit(X_train, y_train), X_test, y_test))
            best = LinearSVC(loss="hinge", C=1 / (2 * RHO * len(y_train))).fit(X_train, y_train)
            exact.append(percent_wrong(best, X_test, y_test))
        print(f"soft SVM (rho = step = 0.01), breast cancer, {name}, 20 passes")
        tell("row by row, test error", online, reported)
        tell("the exact optimum, test error", exact, "–")
    print(best.certificate_.verify(X_train, y_train))


if __name__ == "__main__":
    main()

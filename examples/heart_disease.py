"""Perceptron and pocket on the Cleveland heart disease data: 238 rows to learn from, 59 to test, 50 passes."""

from sklearn.decomposition import PCA
from worked import heart_disease, percent_wrong, splits, tell

from maxmargin import Perceptron, PocketPerceptron

REPORTED = {  # training and test error of perceptron and pocket
    13: (("17.23 %", "27.12 %"), ("11.34 %", "misprinted: 17.23 % is no share of 59 rows")),
    3: (("20.59 %", "33.90 %"), ("13.45 %", "22.03 %")),
}


def main() -> None:
    data = heart_disease()
    if data is None:
        print("set MAXMARGIN_DATA to a folder with heart_cleveland.npz (X: 297×13, y) to run this example")
        return
    X, y = data
    for n_columns, reported in REPORTED.items():
        Z = X if n_columns == 13 else PCA(n_columns).fit_transform(X)
        found = {"perceptron": ([], []), "pocket": ([], [])}
        for seed, X_train, y_train, X_test, y_test in splits(Z, y, 59):
            machines = {
                "perceptron": Perceptron(max_iter=50, tol=None, random_state=seed),
                "pocket": PocketPerceptron(max_iter=50, random_state=seed),
            }
            for name, machine in machines.items():
                machine.fit(X_train, y_train)
                found[name][0].append(percent_wrong(machine, X_train, y_train))
                found[name][1].append(percent_wrong(machine, X_test, y_test))
        print(f"heart disease, {n_columns} columns, 50 passes")
        for (name, (train, test)), (said_train, said_test) in zip(found.items(), reported, strict=True):
            tell(f"{name}, training error", train, said_train)
            tell(f"{name}, test error", test, said_test)


if __name__ == "__main__":
    main()

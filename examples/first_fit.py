"""From a table to a certified classifier in one minute: the breast-cancer data that scikit-learn bundles."""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import LinearSVC


def main() -> None:
    table = load_breast_cancer()
    X_train, X_test, y_train, y_test = train_test_split(
        table.data, table.target, test_size=0.3, random_state=0, stratify=table.target
    )
    print(f"{len(y_train)} rows to learn from, {len(y_test)} held out, {table.data.shape[1]} columns")

    pipeline = make_pipeline(StandardScaler(), LinearSVC(loss="hinge"))
    search = GridSearchCV(pipeline, {"linearsvc__C": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0]}, cv=5).fit(X_train, y_train)
    print(f"C by 5-fold cross-validation: {search.best_params_['linearsvc__C']} (accuracy {search.best_score_:.3f})")

    scaler, machine = search.best_estimator_
    print(f"fit: {machine.solution_}")
    print(f"support vectors: {len(machine.support_)} of {len(y_train)} rows")
    print(machine.certificate_.verify(scaler.transform(X_train), y_train))
    print(f"accuracy on the held-out rows: {search.score(X_test, y_test):.3f}")


if __name__ == "__main__":
    main()

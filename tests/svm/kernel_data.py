"""Small sets for the machines with a kernel, and what scikit-learn makes of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.preprocessing import StandardScaler


@cache
def rows_and_labels(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A few rows in a random order, without repetitions; labels are neither sorted nor 0, 1, 2."""
    loader = {"iris": load_iris, "digits": load_digits, "breast": load_breast_cancer}[name]
    X, y = loader(return_X_y=True)
    X, kept = np.unique(X, axis=0, return_index=True)
    if name == "digits":
        few = y[kept] < 4
        X, kept = X[few] / 16.0, kept[few]
    if name == "breast":
        X = StandardScaler().fit_transform(X)
    chosen = np.random.default_rng(0).permutation(len(X))[:140]
    return X[chosen], np.array(list("cabdefghij"))[y[kept][chosen]]


@cache
def rows_and_numbers(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Rows of standard deviation 1 with numbers of about that size."""
    X, y = load_diabetes(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(X))[:n]
    return X[chosen] * np.sqrt(442.0), (y[chosen] - 150.0) / 75.0


def gaussian(gamma: float, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """exp(−γ‖x − z‖²), written out."""
    return np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


def dense(values: Any) -> np.ndarray:
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)


def assert_alike(ours: Any, theirs: Any, *, atol: float) -> None:
    """Two fitted machines have the same support vectors, in the same order, and coefficients of the same signs."""
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    for name in ("dual_coef_", "intercept_", "support_vectors_"):
        found, expected = getattr(ours, name), getattr(theirs, name)
        assert hasattr(found, "toarray") == hasattr(expected, "toarray"), name
        np.testing.assert_allclose(dense(found), dense(expected), atol=atol, err_msg=name)

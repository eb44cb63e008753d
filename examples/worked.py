"""What the worked examples share: random splits, and their distribution beside a reported figure."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

SPLITS = 100


def splits(X, y, n_test, n=SPLITS):
    """Random parts to learn from and to test on."""
    for seed in range(n):
        order = np.random.default_rng(seed).permutation(len(y))
        yield seed, X[order[n_test:]], y[order[n_test:]], X[order[:n_test]], y[order[:n_test]]


def percent_wrong(machine, X, y) -> float:
    return 100.0 * float(np.mean(machine.predict(X) != y))


def tell(name: str, found: list[float], reported: str, unit: str = " %") -> None:
    low, middle, high = np.percentile(found, [5, 50, 95])
    print(
        f"  {name:<38} median {middle:6.2f}{unit}, 5–95 % of {len(found)} splits: {low:.2f} … {high:.2f}{unit}"
        f"   (reported: {reported})"
    )


def iris_plane(classes: Callable[[np.ndarray], np.ndarray], chosen=slice(None)):
    """Iris, centred, scaled to unit variance and reduced to two principal components."""
    X, y = load_iris(return_X_y=True)
    X = PCA(2).fit_transform(StandardScaler().fit_transform(X))
    return X[chosen], classes(y[chosen])


def heart_disease():
    """The Cleveland data, 297 complete rows; None if the folder MAXMARGIN_DATA does not have them."""
    path = Path(os.environ.get("MAXMARGIN_DATA", "")) / "heart_cleveland.npz"
    if not path.is_file():
        return None
    with np.load(path) as file:
        X, y = file["X"].astype(np.float64), np.where(file["y"] > 0, 1, -1)
    return StandardScaler().fit_transform(X), y

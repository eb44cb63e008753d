"""The rules as a textbook has them: slow, obvious, one row at a time."""

import numpy as np


def steps(eta0=1.0, t0=None, power=1.0):
    return lambda k: eta0 if t0 is None else eta0 / (k + t0) ** power


ONE = steps()


def perceptron(X, y, *, passes, eta=ONE, margin=0.0, gain=1.0, rho=0.0, batch=1, mean=False, order=None):
    """Weights after every step, mistakes per pass, corrections per pass."""
    n, d = X.shape
    w, b, k = np.zeros(d), 0.0, 0
    path, mistakes, corrections = [], [], []
    for p in range(passes):
        turn = np.arange(n) if order is None else order[p]
        made = moved = 0
        for begin in range(0, n, batch):
            rows = turn[begin : begin + batch]
            f = X[rows] @ w + b
            wrong = rows[y[rows] * f <= margin]
            made += int((y[rows] * f <= 0).sum())
            moved += len(wrong)
            step = eta(k)
            w = w * (1 - 2 * step * rho)
            share = step / len(rows) if mean else step
            for i in wrong:
                w = w + share * y[i] * X[i]
                b = b + share * y[i] * gain
            k += len(wrong) > 0
            path.append((w.copy(), b))
        mistakes.append(made)
        corrections.append(moved)
    return path, mistakes, corrections


def pocket(X, y, passes):
    """The book's pocket: errors on all rows after every correction."""
    w, b = np.zeros(X.shape[1]), 0.0
    best, best_errors = (w, b), len(y)
    for _ in range(passes):
        clean = True
        for i in range(len(y)):
            if y[i] * (X[i] @ w + b) <= 0:
                clean = False
                w, b = w + y[i] * X[i], b + y[i]
                errors = int((y * (X @ w + b) <= 0).sum())
                if errors < best_errors:
                    best, best_errors = (w, b), errors
        if clean:
            break
    return best, best_errors


def descent(X, y, slope, *, passes, eta, rho, order=None):
    """Stochastic gradient steps on rho ‖w‖² + mean loss; slope(y, f) is the loss's derivative in the score."""
    w, b, k = np.zeros(X.shape[1]), 0.0, 0
    path = []
    for p in range(passes):
        for i in range(len(y)) if order is None else order[p]:
            f = X[i] @ w + b
            step = eta(k)
            g = slope(y[i], f)
            w = (1 - 2 * step * rho) * w - step * g * X[i]
            b = b - step * g
            k += 1
            path.append((w.copy(), b))
    return path


def separable(rng, n=None, d=None, gap=0.05, centre=1.0):
    """Rows with a margin of at least ``gap`` times their size."""
    n = n or int(rng.integers(4, 60))
    d = d or int(rng.integers(1, 6))
    while True:
        w = rng.standard_normal(d)
        w /= np.linalg.norm(w)
        b = centre * rng.standard_normal()
        X = rng.standard_normal((4 * n + 20, d)) * rng.choice([0.1, 1.0, 10.0])
        f = X @ w + b
        keep = np.abs(f) > gap * np.abs(X).max()
        X, f = X[keep][:n], f[keep][:n]
        y = np.where(f > 0, 1, -1)
        if len(set(y)) == 2:
            return X, y


def mixed(rng, n=None, d=None):
    """Rows of two overlapping classes."""
    n, d = n or int(rng.integers(4, 80)), d or int(rng.integers(1, 6))
    y = np.where(rng.random(n) < 0.5, 1, -1)
    y[:2] = [1, -1]
    return (rng.standard_normal((n, d)) + y[:, None] * rng.random()) * rng.choice([0.1, 1.0, 10.0]), y

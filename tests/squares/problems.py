"""Small problems with a known answer."""

import numpy as np


def noisy(n=40, d=5, seed=0, outputs=None):
    """Rows far from zero, and targets that are linear up to noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.uniform(-3, 3, d)
    shape = (n,) if outputs is None else (n, outputs)
    W = rng.standard_normal((d,) if outputs is None else (d, outputs))
    return X, X @ W + 3.0 + rng.standard_normal(shape)


def deficient(n=30, d=8, rank=3, seed=0):
    """Rows in a flat of the given dimension that does not go through zero."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d)) + rng.standard_normal(d)
    return X, rng.standard_normal(n)


def centred_pinv(X, y, weight):
    """Weights and bias by the pseudo-inverse of the centred rows, as obviously as possible."""
    mean, y_mean = np.average(X, axis=0, weights=weight), np.average(y, axis=0, weights=weight)
    root = np.sqrt(weight)
    target = (y - y_mean) * (root if np.ndim(y) == 1 else root[:, None])
    centred = root[:, None] * (X - mean)
    centred[np.abs(centred) <= 1e-14 * np.abs(X).max()] = 0.0  # what rounding leaves of a single row
    w = np.linalg.pinv(centred, rcond=1e-12) @ target
    return w, y_mean - mean @ w


def by_bordered_system(K, y, weight, alpha):
    """a and b of [[K + α diag(1/c), 1], [1ᵀ, 0]] [a; b] = [y; 0]."""
    n = len(K)
    M = np.block([[K + alpha * np.diag(1.0 / weight), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(M, np.concatenate([y, np.zeros((1, *np.shape(y)[1:]))]))
    return solution[:n], solution[n]

"""Rows of every kind, and when two arrays count as equal."""

import numpy as np
import scipy.sparse as sp

from maxmargin import _core

KINDS = ["dense32", "dense64", "csr32 int32", "csr32 int64", "csr64 int32", "csr64 int64"]


def make(kind, n, d, seed=0):
    """Rows of one kind and the float64 matrix they stand for; every seventh row is empty."""
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, (n, d))
    X[3::7] = 0.0
    values = np.float32 if "32" in kind.split()[0] else np.float64
    if kind.startswith("dense"):
        X = X.astype(values)
        return _core.Rows.dense(X), X.astype(np.float64)
    X[np.abs(X) < 0.5] = 0.0
    S = sp.csr_array(X.astype(values))
    index = np.int64 if kind.endswith("int64") else np.int32
    rows = _core.Rows.csr(S.data, S.indices.astype(index), S.indptr.astype(index), d)
    return rows, S.toarray().astype(np.float64)


def near(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11 * (1.0 + np.max(np.abs(b), initial=0.0)))

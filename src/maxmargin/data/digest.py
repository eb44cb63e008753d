"""A fingerprint of rows and labels that does not depend on the file format."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.data.labels import label_text

BLOCK = 4096  # rows


def digest(X: Any, y: NDArray[Any]) -> str:
    """SHA-256 of the shape, the non-zero values with their columns, and the labels.

    The same numbers give the same digest whether they are dense or sparse, float32 or float64; so do the same labels,
    whether a file format holds them as text, numbers or truth values.

    Examples
    --------
    >>> X = np.array([[0.0, 2.0], [1.0, 0.0]])
    >>> digest(X, np.array([0, 1])) == digest(sp.csr_array(X), np.array([0, 1]))
    True
    >>> digest(X, np.array([0, 1])) == digest(X, np.array([1, 0]))
    False
    """
    state = hashlib.sha256(f"{X.shape[0]}x{X.shape[1]}".encode())
    for begin in range(0, X.shape[0], BLOCK):
        part = sp.csr_array(X[begin : begin + BLOCK])
        part.sum_duplicates()
        part.eliminate_zeros()
        # + 0.0 makes one zero of the two
        for array, dtype in ((part.indptr, "<i8"), (part.indices, "<i8"), (part.data + 0.0, "<f8")):
            state.update(np.ascontiguousarray(array, dtype=dtype).tobytes())
    found, position = np.unique(y, return_inverse=True)
    texts = [repr(label_text(label)).encode() + b"\n" for label in found.tolist()]
    for k in position.ravel().tolist():
        state.update(texts[k])
    return state.hexdigest()

"""A data set, and its way into a child process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


@dataclass(frozen=True)
class Dataset:
    """Rows X (dense, C order, or ``scipy.sparse.csr_matrix``) and labels y in {-1, +1}."""

    name: str
    X: Any
    y: NDArray[np.float64]

    @property
    def sparse(self) -> bool:
        return bool(sp.issparse(self.X))

    def describe(self) -> dict[str, Any]:
        n_rows, n_cols = self.X.shape
        return {
            "name": self.name,
            "n_rows": int(n_rows),
            "n_cols": int(n_cols),
            "nonzeros": int(self.X.nnz if self.sparse else np.count_nonzero(self.X)),
            "sparse": self.sparse,
            "dtype": str(self.X.dtype),
            "positive_share": float(np.mean(self.y > 0)),
        }


def csr(data: Any, indices: Any, indptr: Any, shape: Any) -> sp.csr_matrix:
    """A CSR matrix of the kind every peer accepts: sorted, and 32-bit positions where they suffice."""
    if len(data) < 2**31:
        indices, indptr = indices.astype(np.int32, copy=False), indptr.astype(np.int32, copy=False)
    X = sp.csr_matrix((data, indices, indptr), shape=tuple(int(s) for s in shape))
    X.sum_duplicates()
    return X


def hand_over(dataset: Dataset, folder: Path) -> None:
    """Write the arrays where :func:`take_over` finds them."""
    np.save(folder / "y.npy", dataset.y)
    if not dataset.sparse:
        np.save(folder / "X.npy", dataset.X)
        return
    for part in ("data", "indices", "indptr"):
        np.save(folder / f"{part}.npy", getattr(dataset.X, part))
    np.save(folder / "shape.npy", np.array(dataset.X.shape))


def take_over(folder: Path) -> tuple[Any, NDArray[np.float64]]:
    """X and y as written by :func:`hand_over`."""
    y = np.load(folder / "y.npy")
    if (folder / "X.npy").exists():
        return np.load(folder / "X.npy"), y
    return csr(*(np.load(folder / f"{part}.npy") for part in ("data", "indices", "indptr", "shape"))), y

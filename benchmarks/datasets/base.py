"""A data set, and its way into a child process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.forms import REGRESSION, SEVERAL, TWO

HELD_OUT = "held_out"  # the folder of the part to test on
UNKNOWN = -2.0  # a test label that no other row has: no machine can predict it


@dataclass(frozen=True)
class Dataset:
    """Rows X (dense, C order, or ``scipy.sparse.csr_matrix``) and y.

    y holds -1 and +1 for two classes, 0 … k−1 for several, any numbers for a regression. ``test`` is the part that is
    held out, if any: rows and labels or targets of the same kinds; a label that no other row has is UNKNOWN.
    """

    name: str
    X: Any
    y: NDArray[np.float64]
    kind: str = TWO
    test: tuple[Any, NDArray[np.float64]] | None = None

    @property
    def sparse(self) -> bool:
        return bool(sp.issparse(self.X))

    @property
    def n_classes(self) -> int:
        """0 for a regression."""
        if self.kind == REGRESSION:
            return 0
        return int(self.y.max()) + 1 if self.kind == SEVERAL else 2

    def describe(self) -> dict[str, Any]:
        n_rows, n_cols = self.X.shape
        return {
            "name": self.name,
            "n_rows": int(n_rows),
            "n_cols": int(n_cols),
            "nonzeros": int(self.X.nnz if self.sparse else np.count_nonzero(self.X)),
            "sparse": self.sparse,
            "dtype": str(self.X.dtype),
            "kind": self.kind,
            "n_classes": self.n_classes,
            "positive_share": float(np.mean(self.y > 0)) if self.kind == TWO else None,
        }


def csr(data: Any, indices: Any, indptr: Any, shape: Any) -> sp.csr_matrix:
    """A CSR matrix of the kind every peer accepts: sorted, and 32-bit positions where they suffice."""
    if len(data) < 2**31:
        indices, indptr = indices.astype(np.int32, copy=False), indptr.astype(np.int32, copy=False)
    X = sp.csr_matrix((data, indices, indptr), shape=tuple(int(s) for s in shape))
    X.sum_duplicates()
    return X


def hand_over(dataset: Dataset, folder: Path) -> None:
    """Write the arrays where :func:`take_over` finds them; the part that is held out into a folder of its own."""
    if dataset.test is not None:
        (folder / HELD_OUT).mkdir()
        hand_over(Dataset(dataset.name, *dataset.test, dataset.kind), folder / HELD_OUT)
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


def tiny(kind: str, dtype: Any, sparse: bool) -> tuple[Any, NDArray[np.float64]]:
    """Forty rows of the same types as the data they stand for, so that a first fit compiles and loads the same code."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3)).astype(dtype)
    scores = X[:, 0] + 0.5 * rng.standard_normal(40)
    y = {
        TWO: np.where(scores > 0.0, 1.0, -1.0),
        SEVERAL: np.arange(40) % 3 * 1.0,
        REGRESSION: scores.astype(np.float64),
    }[kind]
    return (sp.csr_matrix(X) if sparse else X), y

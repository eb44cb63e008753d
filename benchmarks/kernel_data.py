"""The cells of the kernel race, and their data: two kinds made here, the rest by name from ``benchmarks.datasets``.

mixture-<rows>x<columns>           two classes of 10 normal clouds each, which overlap; every tenth label is wrong
images-<rows>x<pixels>x<classes>   smooth pictures in [-1, 1] like scanned digits: three styles a class, each with
                                   smooth deformations; the number of pixels is a square

Both are the same on every machine with the same NumPy. A mixture is as hard as real tables: with ``gamma="scale"`` and
C=1 two rows in three are support vectors, most of them at the bound, and four new labels in five are predicted rightly.
Where a core does 50 GFLOP/s of float64 products, scikit-learn takes 10 s of it for mixture-20000x50 at C=1, 24 s at
C=100, and 1.5 s for mixture-5000x20 at C=100.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks import datasets
from benchmarks.datasets import Dataset
from benchmarks.forms import SEVERAL

NAME = re.compile(r"mixture-(\d+)x(\d+)|images-(\d+)x(\d+)x(\d+)")
SEED = 0
CLOUDS = 10  # of each class of a mixture
SPREAD = 3.0  # of their centres about the origin, in all directions together; a cloud has 1 in each
NOISE = 0.1  # share of labels of a mixture that are the wrong ones
STYLES = 3  # of each class of images
WAVES = 6  # of the smooth pictures, in each direction
DEFORMATIONS = 12  # smooth pictures that are added to a style in random amounts
PIXEL_NOISE = 0.15

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """One problem; ``epsilon`` belongs to regressions."""

    data: str
    C: float = 1.0
    epsilon: float = 0.1

    @property
    def name(self) -> str:
        return f"{self.data} C={self.C:g}"


CELLS: dict[str, tuple[Cell, ...]] = {
    "default": (
        *(Cell("mixture-5000x20", C) for C in (1.0, 100.0, 1e4)),
        *(Cell("mixture-20000x50", C) for C in (1.0, 100.0)),
        Cell("images-7000x256x10", 10.0),
        *(Cell(f"{name}+classes") for name in ("satimage+standard", "letter", "covtype15k+standard", "mnist20k")),
        *(Cell(name) for name in ("a9a", "w8a")),
        *(Cell(name, 10.0) for name in ("housing", "abalone", "cadata+standard")),
    ),
    "predict": (Cell("mnist20k+classes+test"),),
    "small": (Cell("heart_scale"), Cell("german_numer"), Cell("blobs-150x4x3")),
    "large": (Cell("mixture-100000x30"),),
}


def exists(name: str) -> bool:
    """Whether it can be made or is in the folder."""
    return NAME.fullmatch(name) is not None or datasets.exists(name)


def load(name: str) -> Dataset:
    """The data set called ``name``."""
    found = NAME.fullmatch(name)
    if found is None:
        return datasets.load(name)
    sizes = [int(size) for size in found.groups() if size is not None]
    return mixture(name, *sizes) if len(sizes) == 2 else images(name, *sizes)


def mixture(name: str, n_rows: int, n_cols: int) -> Dataset:
    """Normal clouds of unit spread around normal centres, and labels of which some are wrong."""
    rng = np.random.default_rng(SEED)
    centres = rng.standard_normal((2 * CLOUDS, n_cols)) * (SPREAD / np.sqrt(n_cols))
    cloud = rng.integers(2 * CLOUDS, size=n_rows)
    X = centres[cloud] + rng.standard_normal((n_rows, n_cols))
    y = np.where(cloud % 2 == 1, 1.0, -1.0)
    return Dataset(name, X, np.where(rng.random(n_rows) < NOISE, -y, y))


def images(name: str, n_rows: int, n_pixels: int, n_classes: int) -> Dataset:
    """Every row is its style and random amounts of its class's deformations, squashed, under some noise."""
    rng = np.random.default_rng(SEED)
    waves = smooth(n_pixels)
    styles = 2.0 * rng.standard_normal((n_classes, STYLES, len(waves))) @ waves
    deformations = 0.3 * rng.standard_normal((n_classes, DEFORMATIONS, len(waves))) @ waves
    label, style = rng.integers(n_classes, size=n_rows), rng.integers(STYLES, size=n_rows)
    amount = rng.standard_normal((n_rows, 1, DEFORMATIONS))
    X = styles[label, style] + (amount @ deformations[label])[:, 0]
    X = np.clip(np.tanh(X) + PIXEL_NOISE * rng.standard_normal(X.shape), -1.0, 1.0)
    return Dataset(name, X, label.astype(np.float64), SEVERAL)


def smooth(n_pixels: int) -> Vector:
    """Products of cosines along both sides of a square, the slower ones larger: one line each."""
    side = round(np.sqrt(n_pixels))
    if side * side != n_pixels:
        raise ValueError(f"{n_pixels} pixels are no square")
    place = (np.arange(side) + 0.5) * np.pi / side
    line = np.cos(np.arange(WAVES)[:, None] * place) / (1.0 + np.arange(WAVES)[:, None])
    return np.einsum("ai,bj->abij", line, line).reshape(WAVES**2, n_pixels)

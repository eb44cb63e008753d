"""Data sets by name: generated ones, and the files of the folder named by MAXMARGIN_DATA."""

from __future__ import annotations

from benchmarks.datasets import folder, generated
from benchmarks.datasets.base import Dataset, hand_over, take_over

FOLDER = "folder"


def load(name: str) -> Dataset:
    """The data set called ``name``."""
    if generated.matches(name):
        return generated.load(name)
    if name in folder.names():
        return folder.load(name)
    known = ", ".join(folder.names()) or f"none; set {folder.VARIABLE}"
    raise ValueError(f"no data set {name!r}: use tall-<rows>x<columns> or a file of the folder ({known})")


def expand(names: list[str]) -> list[str]:
    """``names`` with "folder" replaced by every file of the folder."""
    expanded: list[str] = []
    for name in names:
        expanded.extend(folder.names() if name == FOLDER else [name])
    return expanded


__all__ = ["FOLDER", "Dataset", "expand", "folder", "generated", "hand_over", "load", "take_over"]

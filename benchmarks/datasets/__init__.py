"""Data sets by name: generated ones, and the files of the folder named by MAXMARGIN_DATA.

A name may carry changes: ``news20+tfidf``, ``cadata+standard``; ``+classes`` keeps several classes apart.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.datasets import folder, generated
from benchmarks.datasets.base import Dataset, hand_over, take_over, tiny
from benchmarks.datasets.changes import CHANGES

FOLDER, CLASSES = "folder", "classes"


def load(name: str) -> Dataset:
    """The data set called ``name``, changed as the name says."""
    base, *changes = name.split("+")
    unknown = set(changes) - {*CHANGES, CLASSES}
    if unknown:
        raise ValueError(f"{name!r}: no change {sorted(unknown)}; there are {sorted([*CHANGES, CLASSES])}")
    data = _load(base, CLASSES in changes)
    for change in changes:
        if change != CLASSES:
            data = CHANGES[change](data)
    return replace(data, name=name)


def _load(base: str, all_classes: bool) -> Dataset:
    if generated.matches(base):
        return generated.load(base)
    if base in folder.names():
        return folder.load(base, all_classes)
    known = ", ".join(folder.names()) or f"none; set {folder.VARIABLE}"
    kinds = ", ".join(f"{kind}-…" for kind in generated.MAKERS)
    raise ValueError(f"no data set {base!r}: use {kinds} or a file of the folder ({known})")


def exists(name: str) -> bool:
    """Whether it can be made or is in the folder."""
    base = name.split("+")[0]
    return generated.matches(base) or base in folder.names()


def expand(names: list[str]) -> list[str]:
    """``names`` with "folder" replaced by every file of the folder."""
    expanded: list[str] = []
    for name in names:
        expanded.extend(folder.names() if name == FOLDER else [name])
    return expanded


__all__ = ["FOLDER", "Dataset", "exists", "expand", "folder", "generated", "hand_over", "load", "take_over", "tiny"]

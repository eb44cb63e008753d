"""Data sets by name: generated ones, and the files of the folder named by MAXMARGIN_DATA.

A name may carry changes: ``news20+tfidf``, ``cadata+standard``; ``+classes`` keeps several classes apart, and ``+test``
holds a part out: the file's own test part, or else 30 % of its rows.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.datasets import drawn, folder, generated
from benchmarks.datasets.base import HELD_OUT, Dataset, hand_over, take_over, tiny
from benchmarks.datasets.changes import CHANGES

FOLDER, CLASSES, TEST = "folder", "classes", "test"


def load(name: str) -> Dataset:
    """The data set called ``name``, changed as the name says."""
    base, *changes = name.split("+")
    unknown = set(changes) - {*CHANGES, CLASSES, TEST}
    if unknown:
        raise ValueError(f"{name!r}: no change {sorted(unknown)}; there are {sorted([*CHANGES, CLASSES, TEST])}")
    if TEST in changes and set(changes) & set(CHANGES):
        raise ValueError(f"{name!r}: +test goes with rows as they are; leave out {sorted(set(changes) & set(CHANGES))}")
    data = _load(base, CLASSES in changes, TEST in changes)
    for change in changes:
        if change in CHANGES:
            data = CHANGES[change](data)
    return replace(data, name=name)


def _load(base: str, all_classes: bool, held_out: bool) -> Dataset:
    made = next((maker for maker in (generated, drawn) if maker.matches(base)), None)
    if made is not None and held_out:
        raise ValueError(f"{base!r}: +test goes with files only, not with data made here")
    if made is not None:
        return made.load(base)
    if base in folder.names():
        return folder.load(base, all_classes, held_out)
    known = ", ".join(folder.names()) or f"none; set {folder.VARIABLE}"
    kinds = ", ".join(f"{kind}-…" for kind in [*generated.MAKERS, drawn.KIND])
    raise ValueError(f"no data set {base!r}: use {kinds} or a file of the folder ({known})")


def exists(name: str) -> bool:
    """Whether it can be made or is in the folder."""
    base = name.split("+")[0]
    return generated.matches(base) or drawn.matches(base) or base in folder.names()


def expand(names: list[str]) -> list[str]:
    """``names`` with "folder" replaced by every file of the folder."""
    expanded: list[str] = []
    for name in names:
        expanded.extend(folder.names() if name == FOLDER else [name])
    return expanded


__all__ = [
    "FOLDER",
    "HELD_OUT",
    "Dataset",
    "drawn",
    "exists",
    "expand",
    "folder",
    "generated",
    "hand_over",
    "load",
    "take_over",
    "tiny",
]

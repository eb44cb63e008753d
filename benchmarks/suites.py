"""The measurements that belong together: which forms on which data with which C."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks import datasets
from benchmarks.forms import FORMS, Form

DENSE = ("tall-200000x50", "tall-1000000x20", "tall-50000x500")
SPARSE = ("text-100000x50000", "onehot-67557x42", "a9a", "w8a")
TEXT = ("news20", "news20+tfidf", "sector", "reuters_moneyfx", "rcv1_1k")
WIDE = ("dorothea", "colon+standard", "duke_breast+standard")
CLASSES = ("news20+tfidf+classes", "sector+classes", "letter+classes", "satimage+standard+classes")
MARGIN = ("hinge", "squared_hinge", "logistic")


@dataclass(frozen=True)
class Block:
    """Every form on every data set with every C."""

    datasets: tuple[str, ...]
    forms: tuple[str, ...]
    C: tuple[float, ...]


SUITES: dict[str, tuple[Block, ...]] = {
    "dense": (Block(DENSE, MARGIN, (0.01, 1.0, 100.0, 1e4)),),
    "sparse": (Block((*SPARSE, *TEXT, *WIDE), MARGIN, (0.1, 1.0, 10.0, 100.0)),),
    "regression": (
        Block(
            ("cadata+standard", "line-200000x50"),
            ("epsilon_insensitive", "squared_epsilon_insensitive"),
            (0.01, 1.0, 100.0),
        ),
    ),
    "l1": (
        Block(
            ("tall-200000x50", *SPARSE, *TEXT[1:], *WIDE),
            ("squared_hinge-l1", "logistic-l1"),
            (0.1, 1.0, 10.0),
        ),
    ),
    "multiclass": (
        Block(CLASSES, ("squared_hinge", "hinge", "crammer_singer"), (0.1, 1.0, 10.0)),
        Block(CLASSES, ("multinomial",), (1.0,)),
    ),
    # What the README's table shows: every family of data with every peer in one run.
    "table": (
        Block(("tall-200000x50",), MARGIN, (1.0,)),
        Block(DENSE, ("hinge",), (10.0,)),
        Block(DENSE[1:], ("squared_hinge",), (1.0,)),
        Block(("a9a", "w8a", "onehot-67557x42"), ("hinge",), (1.0, 10.0)),
        Block(("a9a", "w8a"), ("squared_hinge",), (1.0,)),
        Block(("text-100000x50000", "reuters_moneyfx", "rcv1_1k"), MARGIN[:2], (1.0,)),
        Block(("text-100000x50000", *WIDE), ("logistic",), (1.0,)),
        Block(("news20+tfidf+classes",), MARGIN[:2], (1.0,)),
        Block(WIDE, MARGIN[:2], (1.0,)),
        Block(("cadata+standard", "line-200000x50"), ("epsilon_insensitive",), (1.0,)),
        Block(("dorothea", "news20+tfidf", "rcv1_1k", "a9a"), ("squared_hinge-l1", "logistic-l1"), (1.0,)),
        Block(("sector+classes",), MARGIN[:2], (1.0,)),  # last: 105 classes keep every peer busy for minutes
    ),
}

Problem = tuple[str, Form, float]


def of_suites(names: Iterable[str]) -> Iterator[Problem]:
    """All problems of these suites whose data there are, data set by data set."""
    for name in names:
        for block in SUITES[name]:
            for data in block.datasets:
                if datasets.exists(data):
                    yield from ((data, FORMS[form], C) for form in block.forms for C in block.C)


def missing(names: Iterable[str]) -> list[str]:
    """Data sets of these suites that are not there."""
    wanted = (data for name in names for block in SUITES[name] for data in block.datasets)
    return sorted({data for data in wanted if not datasets.exists(data)})


def usual_C(data: str) -> tuple[float, ...]:
    """The C at which a data set is measured if none is asked for."""
    return SUITES["dense"][0].C if data.startswith("tall-") else SUITES["sparse"][0].C

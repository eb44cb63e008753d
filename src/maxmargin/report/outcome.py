"""What a training run found: everything that is printed, put into JSON, or shown on the page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.certificates import Separability, Verdict
from maxmargin.models import Model
from maxmargin.selection import Search
from maxmargin.solution import Status


@dataclass(frozen=True, eq=False)
class DataSummary:
    """The rows in a few numbers; ``counts`` has (rows to learn from, rows to test on) for each class."""

    source: str
    n_columns: int
    is_sparse: bool
    density: float
    counts: dict[str, tuple[int, int]]
    target: str | None = None
    n_incomplete: int = 0
    notes: tuple[str, ...] = ()

    @property
    def n_learn(self) -> int:
        return sum(learn for learn, _ in self.counts.values())

    @property
    def n_test(self) -> int:
        return sum(test for _, test in self.counts.values())


@dataclass(frozen=True, eq=False)
class TestPart:
    """Answers on rows the machine has not seen."""

    __test__ = False  # not a test of pytest's
    y: NDArray[Any]
    predicted: NDArray[Any]
    scores: NDArray[np.float64]
    classes: NDArray[Any]
    majority: Any = None  # the more frequent class of the rows learned from, if it is known

    @property
    def n_wrong(self) -> int:
        return int(np.sum(self.y != self.predicted))

    @property
    def error(self) -> float:
        return self.n_wrong / len(self.y)

    @property
    def interval(self) -> tuple[float, float]:
        """Exact 95 % confidence interval of the error (Clopper, Pearson, 1934)."""
        return clopper_pearson(self.n_wrong, len(self.y))

    @property
    def confusion(self) -> NDArray[np.int64]:
        """Counts; rows are true classes, columns answers, both in the order of ``classes``."""
        return np.array([[np.sum((self.y == t) & (self.predicted == p)) for p in self.classes] for t in self.classes])

    @property
    def majority_error(self) -> float:
        """The error of always answering the class that was more frequent in training."""
        return float(np.mean(self.y != self.majority))


def clopper_pearson(wrong: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact interval for a share, from the quantiles of the beta distribution.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 30)
    >>> low, round(high, 3)
    (0.0, 0.116)
    """
    from scipy.special import betaincinv

    tail = 0.5 * (1.0 - confidence)
    low = 0.0 if wrong == 0 else float(betaincinv(wrong, n - wrong + 1, tail))
    high = 1.0 if wrong == n else float(betaincinv(wrong + 1, n - wrong, 1.0 - tail))
    return low, high


@dataclass(frozen=True, eq=False)
class Outcome:
    """A trained, certified and tested model with the course of events."""

    model: Model
    verdict: Verdict
    data: DataSummary
    margins: NDArray[np.float64]  # y·score of the rows it learned from
    command: str
    seed: int
    search: Search | None = None
    separability: Separability | None = None
    test: TestPart | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def converged(self) -> bool:
        return self.model.machine.solution_.status is Status.CONVERGED

    def as_json(self) -> dict[str, Any]:
        """Plain numbers and texts, for machines."""
        machine, solution = self.model.machine, self.model.machine.solution_
        out: dict[str, Any] = {
            "data": {
                "source": self.data.source,
                "rows": self.data.n_learn,
                "test_rows": self.data.n_test,
                "columns": self.data.n_columns,
                "classes": {label: list(counts) for label, counts in self.data.counts.items()},
                "digest": self.model.training.digest,
            },
            "machine": {"name": type(machine).__name__, "loss": machine.loss, "C": float(machine.C)},
            "fit": {
                "status": solution.status.name,
                "gap": solution.gap,
                "primal": solution.primal,
                "dual": solution.dual,
                "iterations": int(solution.n_iter),
                "support_vectors": len(machine.support_),
                "solver": solution.solver,
                "reason": solution.reason,
            },
            "certificate": {
                "outcome": self.verdict.outcome.name,
                "lower_bound": self.verdict.dual,
                "objective": self.verdict.primal,
                "gap": self.verdict.gap,
                "largest_distance_to_optimal_weights": machine.certificate_.distance_bound,
            },
            "separable": None if self.separability is None else self.separability.separable,
            "seconds": self.seconds,
            "interrupted": self.interrupted,
        }
        if self.search is not None:
            mean = self.search.mean.tolist()
            out["cross_validation"] = {"C": list(self.search.Cs), "error": mean, "best": self.search.best_C}
        if self.test is not None:
            low, high = self.test.interval
            out["test"] = {
                "rows": len(self.test.y),
                "wrong": self.test.n_wrong,
                "error": self.test.error,
                "interval_95": [low, high],
                "classes": [str(c) for c in self.test.classes.tolist()],
                "confusion": self.test.confusion.tolist(),
            }
        return out

"""What a solver returns: the answer, how good it provably is, and why it stopped."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Status(Enum):
    """Why a solver stopped. The value is the sentence shown to people."""

    CONVERGED = "the requested relative duality gap was reached"
    STATIONARY = "a stationary point was reached; the kernel is no inner product, so that no gap is known"
    ITERATION_LIMIT = "the iteration limit was reached first"
    TIME_LIMIT = "the time limit was reached first"
    INTERRUPTED = "the fit was interrupted"
    NUMERICAL_LIMIT = "rounding errors prevent any further progress"
    BUDGET_SPENT = "its budget of operations was spent first"
    INFEASIBLE = "no hyperplane satisfies the constraints"

    @property
    def sentence(self) -> str:
        return self.value

    @property
    def ended_well(self) -> bool:
        """Whether nothing better can be asked for."""
        return self in (Status.CONVERGED, Status.STATIONARY)


FLOOR = 1e-10  # of the objective at w = 0: smaller objectives are measured beside that
MATTERS = 10.0 * FLOOR  # of a bound of that: larger objectives are measured beside themselves


def relative_gap(primal: float, dual: float, null_primal: float) -> float:
    """The one definition of ``tol``: (P − D) / max(|P|, |D|, 1e-10·P₀).

    P₀ is the objective at w = 0 with the best constant bias. Rounding below zero is returned as 0, a value that is
    not finite as infinity.

    Examples
    --------
    >>> relative_gap(10.0, 9.0, 50.0)
    0.1
    """
    if not (math.isfinite(primal) and math.isfinite(dual)):
        return math.inf
    scale = max(abs(primal), abs(dual), FLOOR * abs(null_primal))
    if scale == 0.0:
        return 0.0
    return max(0.0, (primal - dual) / scale)


@dataclass(frozen=True)
class Record:
    """One line of a solver's history. ``gap`` is the solver's own estimate unless ``certified``."""

    iteration: int
    seconds: float
    gap: float
    phase: str
    certified: bool = False


@dataclass
class History:
    """The course of a fit, one record per iteration or chunk of epochs.

    Examples
    --------
    >>> history = History()
    >>> history.add(1, 0.01, 0.5, "interior point")
    >>> history.gaps
    [0.5]
    """

    records: list[Record] = field(default_factory=list)

    def add(self, iteration: int, seconds: float, gap: float, phase: str, certified: bool = False) -> None:
        self.records.append(Record(iteration, seconds, gap, phase, certified))

    @property
    def gaps(self) -> list[float]:
        return [r.gap for r in self.records]

    @property
    def seconds(self) -> list[float]:
        return [r.seconds for r in self.records]

    def __len__(self) -> int:
        return len(self.records)


@dataclass(frozen=True)
class Solution:
    """A hyperplane with its proof.

    Attributes
    ----------
    w, b : weights and bias; the score of x is ⟨w, x⟩ + b.
    bias_interval : all biases that are optimal for ``w``; ``b`` is the midpoint.
    alpha : feasible dual point, one multiplier per row; for the penalty ½‖w‖² it makes w = Σ alpha_i y_i x_i, up to the
        root of twice the gap (in a regression without the y_i).
    primal, dual : objective values at (w, b) and at alpha; the optimum lies between them.
    gap : primal − dual, relative as in :func:`relative_gap`.
    status : why the solver stopped.
    solver, reason : which solver ran, and why it was chosen.
    stretch : of a machine with a kernel, how much longer w is than the sum over ``alpha``: a little more than 1 where
        rounding would otherwise put a price on rows that are on the margin.
    """

    w: Vector
    b: float
    alpha: Vector
    primal: float
    dual: float
    gap: float
    status: Status
    history: History
    n_iter: int
    seconds: float
    bias_interval: tuple[float, float]
    solver: str
    reason: str
    penalty: str = "l2"
    stretch: float = 1.0

    @property
    def absolute_gap(self) -> float:
        return max(0.0, self.primal - self.dual)

    @property
    def distance_bound(self) -> float:
        """‖w − w*‖ ≤ √(2·gap), because ½‖w‖² is strongly convex; infinite for the ℓ1 penalty, which is not."""
        return float(np.sqrt(2.0 * self.absolute_gap)) if self.penalty == "l2" else math.inf

    def __repr__(self) -> str:
        return (
            f"Solution({self.status.name}: gap {self.gap:.1e}, primal {self.primal:.9g}, dual {self.dual:.9g}, "
            f"{self.n_iter} iterations, {self.seconds:.3f} s; {self.solver}: {self.reason})"
        )


@dataclass(frozen=True)
class Solutions:
    """The solutions of several machines that work together, one per class or pair of classes.

    ``gap`` and ``status`` are the worst of them, ``primal`` and ``dual`` their sums.

    Examples
    --------
    >>> from maxmargin import LinearSVC
    >>> solutions = LinearSVC().fit([[0.0], [1.0], [2.0]], ["a", "b", "c"]).solution_
    >>> len(solutions), solutions.status.name
    (3, 'CONVERGED')
    """

    parts: tuple[Solution, ...]
    seconds: float

    @property
    def worst(self) -> Solution:
        order = list(Status)
        unfinished = [part for part in self.parts if not part.status.ended_well]
        parts = unfinished or [part for part in self.parts if part.status is Status.STATIONARY] or self.parts
        return max(parts, key=lambda part: (order.index(part.status) > 0, part.gap))

    @property
    def gap(self) -> float:
        gaps = [part.gap for part in self.parts]
        return math.nan if any(math.isnan(gap) for gap in gaps) else max(gaps)

    @property
    def status(self) -> Status:
        return self.worst.status

    @property
    def primal(self) -> float:
        return sum(part.primal for part in self.parts)

    @property
    def dual(self) -> float:
        return sum(part.dual for part in self.parts)

    @property
    def n_iter(self) -> int:
        return max(part.n_iter for part in self.parts)

    @property
    def history(self) -> History:
        return self.worst.history

    @property
    def solver(self) -> str:
        return self.worst.solver

    @property
    def reason(self) -> str:
        return self.worst.reason

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Solution]:
        return iter(self.parts)

    def __getitem__(self, index: int) -> Solution:
        return self.parts[index]

    def __repr__(self) -> str:
        return f"Solutions({len(self)} machines, {self.status.name}: worst gap {self.gap:.1e}, {self.seconds:.3f} s)"

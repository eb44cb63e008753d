"""The path of solutions over C: every point certified, each started from the one before.

A solution for one C also bounds the optimum for others. With s = C/C₀, the hyperplane of C₀, and its multipliers
times s,

    P_C ≤ s P + (1 − s) R,    D_C ≥ s D + (s − s²) Q,

where at C₀ the objective is P with the penalty R, and the dual value D with the quadratic part Q. So between two
neighbours every C is covered by a hyperplane whose objective is known to be within a stated fraction of the best.

References
----------
Hastie, Rosset, Tibshirani, Zhu: The entire regularization path for the support vector machine, 2004. Giesen, Jaggi,
Laue: Approximating parameterized convex optimization problems, 2012.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import maxmargin._core as _core
from maxmargin.certificates import OptimalityCertificate
from maxmargin.certificates.rounding import UNIT, Interval, combination_off, square_norm
from maxmargin.errors import InputError
from maxmargin.inputs import positive_number
from maxmargin.problem import Problem
from maxmargin.process import KeptMemory
from maxmargin.runtime import Execution, Watch, effective_threads
from maxmargin.solution import Solution, Status
from maxmargin.solvers import Newton
from maxmargin.solvers.choice import Relay, high_dimensional, turns
from maxmargin.solvers.chord import Chord
from maxmargin.space import in_memory
from maxmargin.undisturbed import undisturbed

Vector = NDArray[np.float64]
MOST_STEPS, FEW_STEPS = 10000, 300  # of a point on its own, and of one that starts at its neighbour
NEIGHBOUR = "started at the neighbour on the path"
STOPPED = (Status.TIME_LIMIT, Status.INTERRUPTED)
ROUNDINGS = 16.0 * UNIT  # of the few operations that carry a bound from one C to another


@dataclass(frozen=True)
class Bounds:
    """What a solution at C says about other values: P ≤ s P + (1 − s) R and D ≥ s D + (s − s²) Q, s = other/C.

    ``primal`` and ``dual`` are its claims, R and Q intervals: rounding is part of both bounds.
    """

    C: float
    primal: float
    dual: float
    penalty: Interval
    quadratic: Interval

    def upper(self, other: Any) -> Any:
        s = other / self.C
        penalty = np.where(s >= 1.0, self.penalty.low, self.penalty.high)
        value = s * self.primal + (1.0 - s) * penalty
        return value + ROUNDINGS * (s * self.primal + abs(1.0 - s) * penalty)

    def lower(self, other: Any) -> Any:
        s = other / self.C
        quadratic = np.where(s >= 1.0, self.quadratic.high, self.quadratic.low)
        value = s * self.dual + (s - s * s) * quadratic
        return value - ROUNDINGS * (s * self.dual + (s + s * s) * quadratic)


@dataclass(frozen=True, eq=False)
class Path:
    """Solutions for increasing C.

    Attributes
    ----------
    Cs : the values of C, increasing.
    solutions : one for each, with its gap.
    certificates : one for each; ``certificates[k].verify(X, y)`` checks it from the data.
    bounds : what each solution says about other values of C (empty for the ℓ1 penalty).
    seconds : time for all of them.
    status : CONVERGED, or why the work ended early: later points are then rough, and a cover ends where it got to.
    """

    Cs: Vector
    solutions: tuple[Solution, ...]
    certificates: tuple[OptimalityCertificate, ...]
    bounds: tuple[Bounds, ...]
    seconds: float
    status: Status = Status.CONVERGED

    @property
    def coefs(self) -> Vector:
        """Weights, one line for each C."""
        return np.stack([s.w for s in self.solutions])

    @property
    def intercepts(self) -> Vector:
        return np.array([s.b for s in self.solutions])

    @property
    def gaps(self) -> Vector:
        return np.array([s.gap for s in self.solutions])

    def __len__(self) -> int:
        return len(self.solutions)

    def __repr__(self) -> str:
        return (
            f"Path({len(self)} values of C from {self.Cs[0]:g} to {self.Cs[-1]:g}, worst gap {self.gaps.max():.1e}, "
            f"{self.seconds:.3f} s)"
        )


def svm_path(
    X: Any,
    y: Any,
    Cs: ArrayLike,
    *,
    loss: str | float = "squared_hinge",
    penalty: str = "l2",
    sample_weight: ArrayLike | None = None,
    class_weight: dict[Any, float] | str | None = None,
    fit_intercept: bool = True,
    tol: float = 1e-6,
    max_seconds: float | None = None,
    n_threads: int | None = None,
) -> Path:
    """Two-class machines for every C, each started from its neighbour and certified.

    Parameters
    ----------
    X, y : rows and labels of two classes.
    Cs : values of C, in any order; they are sorted.
    loss, penalty, sample_weight, class_weight, fit_intercept, tol, n_threads
        As in :class:`~maxmargin.LinearSVC`; the loss may also be "logistic".
    max_seconds : time limit for the whole path; later points are then rough, and say so. So are those after Ctrl-C,
        which ends the work but loses nothing.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = svm_path(X / X.max(axis=0), y, [0.1, 1.0, 10.0], loss="hinge")
    >>> bool((path.gaps < 1e-6).all()), bool(np.all(np.diff(np.linalg.norm(path.coefs, axis=1)) > 0))
    (True, True)
    """
    walk = PathWalk(
        X, y, loss=loss, penalty=penalty, sample_weight=sample_weight, class_weight=class_weight,
        fit_intercept=fit_intercept, tol=tol, max_seconds=max_seconds, n_threads=n_threads,
    )  # fmt: skip
    points: list[tuple[float, Solution]] = []
    status = Status.CONVERGED
    values = checked_values(Cs).tolist()
    with KeptMemory(), undisturbed(in_memory(walk.unit.space)):
        for C in values:
            points.append((C, walk.solve(C, points[-1] if points else None)))
            if status is Status.CONVERGED and points[-1][1].status in STOPPED:
                status = points[-1][1].status
                if status is Status.INTERRUPTED:
                    walk.watch.cancel()  # what is left is certified as it is
    return walk.path(points, status)


def cover_C(
    X: Any,
    y: Any,
    C_min: float,
    C_max: float,
    *,
    epsilon: float = 0.01,
    loss: str | float = "squared_hinge",
    sample_weight: ArrayLike | None = None,
    class_weight: dict[Any, float] | str | None = None,
    fit_intercept: bool = True,
    n_threads: int | None = None,
    max_points: int = 1000,
    max_seconds: float | None = None,
) -> Path:
    """Values of C so dense that every C between C_min and C_max has a near-optimal hyperplane among them.

    Guarantees
    ----------
    For each C between two neighbours, the better of their two hyperplanes has an objective at most 1/(1 −
    ``epsilon``) times the optimum for that C. Proven by weak duality: the neighbours' multipliers, scaled by the
    ratio of the Cs, are feasible.

    Parameters
    ----------
    X, y : rows and labels of two classes.
    C_min, C_max : ends of the interval.
    epsilon : allowed relative gap, between 1e-6 and 0.5.
    max_points : refuse to go on beyond so many.
    max_seconds : time limit. Then, and after Ctrl-C, the path ends early, its ``status`` says so, and the guarantee
        holds up to its last C.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = cover_C(X / X.max(axis=0), y, 0.1, 10.0, epsilon=0.05)
    >>> worst_between(path) <= 0.05
    True
    """
    low, high = positive_number("C_min", C_min), positive_number("C_max", C_max)
    if not low <= high:
        raise InputError(f"C_min must not be above C_max, got {C_min!r} and {C_max!r}")
    if not 1e-6 <= positive_number("epsilon", epsilon) <= 0.5:
        raise InputError(f"epsilon must lie between 1e-6 and 0.5, got {epsilon!r}")
    walk = PathWalk(
        X, y, loss=loss, penalty="l2", sample_weight=sample_weight, class_weight=class_weight,
        fit_intercept=fit_intercept, tol=min(1e-6, 0.01 * epsilon), max_seconds=max_seconds, n_threads=n_threads,
    )  # fmt: skip
    with KeptMemory(), undisturbed(in_memory(walk.unit.space)):
        points, status = _cover(walk, low, high, epsilon, max_points)
    return walk.path(points, status)


def _cover(
    walk: PathWalk, low: float, high: float, epsilon: float, max_points: int
) -> tuple[list[tuple[float, Solution]], Status]:
    """The values, each as far from the one before as the proof allows."""
    points = [(low, walk.solve(low, None))]
    if points[0][1].status in STOPPED:
        return points, points[0][1].status
    while points[-1][0] < high:
        if len(points) >= max_points:
            raise InputError(f"more than {max_points} values of C are needed; raise epsilon, max_points or C_min")
        C, solution = points[-1]
        up = _reach(walk.bounds(C, solution), epsilon)
        # The next one reaches down as far as this one reaches up, or nearly: try for both, then come nearer.
        other = min(high, C * up**1.9)
        while True:
            found = walk.solve(other, (C, solution))
            if found.status in STOPPED:
                return points, found.status
            if gap_between(walk.bounds(C, solution), walk.bounds(other, found)) <= epsilon:
                break
            if other <= C * 1.0001:
                raise InputError(f"epsilon={epsilon:g} cannot be proven near C={C:g}; use a larger one")
            other = math.sqrt(C * other)
        points.append((other, found))
    return points, Status.CONVERGED


def gap_between(a: Bounds, b: Bounds) -> float:
    """Largest relative gap of the better of two solutions anywhere between their Cs.

    On each cell of a fine grid the bounds on P are linear and those on D concave in C, so their ends bound its inside.
    """
    grid = np.geomspace(a.C, b.C, 4001)
    lower = np.maximum(*(np.minimum(one.lower(grid)[:-1], one.lower(grid)[1:]) for one in (a, b)))
    upper = np.minimum(*(one.upper(grid)[1:] for one in (a, b)))
    return float(np.max((upper - lower) / np.maximum(upper, 1e-300)))


def worst_between(path: Path) -> float:
    """The largest proven relative gap anywhere between the first and the last C of a path."""
    if not path.bounds:
        raise InputError("with the ℓ1 penalty a solution says nothing about larger values of C")
    neighbours = zip(path.bounds[:-1], path.bounds[1:], strict=True)
    return max((gap_between(a, b) for a, b in neighbours), default=float(path.gaps.max()))


def _reach(bounds: Bounds, epsilon: float) -> float:
    """The largest factor s ≥ 1 up to which a solution alone keeps the relative gap."""

    def gap(s: float) -> float:
        upper = bounds.upper(s * bounds.C)
        return float((upper - bounds.lower(s * bounds.C)) / upper)

    low, high = 1.0, 2.0
    while gap(high) <= epsilon and high < 1e30:
        low, high = high, high * high
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if gap(middle) <= epsilon else (low, middle)
    return max(low, 1.0 + 1e-3)


def checked_values(Cs: ArrayLike) -> Vector:
    """Increasing, finite, positive values, each once."""
    values: Sequence[Any] = np.atleast_1d(np.asarray(Cs, dtype=object)).ravel().tolist()
    if not values:
        raise InputError("Cs must hold at least one value of C")
    return np.unique([positive_number("C", C) for C in values])


class PathWalk:
    """The problem without its C, and the last solution to start from."""

    def __init__(
        self, X: Any, y: Any, *, loss: Any, penalty: str, sample_weight: Any, class_weight: Any, fit_intercept: bool,
        tol: float, max_seconds: float | None, n_threads: int | None,
    ) -> None:  # fmt: skip
        self.unit = Problem.from_arrays(
            X, y, sample_weight=sample_weight, class_weight=class_weight, C=1.0, loss=loss, penalty=penalty,
            fit_intercept=fit_intercept, n_threads=n_threads,
        )  # fmt: skip
        self.class_weight, self.tol = class_weight, positive_number("tol", tol)
        self.n_threads = effective_threads(n_threads)
        self.watch = Watch(None if max_seconds is None else positive_number("max_seconds", max_seconds))
        self.chord = Chord(self.unit, self.n_threads, self.watch, NEIGHBOUR) if Chord.fits(self.unit) else None
        self.stands_at: Solution | None = None  # the solution whose hyperplane the chord has

    def solve(self, C: float, previous: tuple[float, Solution] | None) -> Solution:
        problem = self.unit.with_costs(C * self.unit.cost)
        solvers = turns(problem, tol=self.tol, max_iter=MOST_STEPS, n_threads=self.n_threads, seed=0)
        if previous is None:
            return Relay(solvers).solve(problem, watch=self.watch)
        if self.chord is not None:
            found = self._on_the_chord(self.chord, problem, C, previous[1])
            if found is not None:
                return found
        # Interior points hardly profit from a start; Newton's method does.
        if problem.penalty == "l2" and not (problem.space.sparse and high_dimensional(problem)):
            quick = Newton(tol=self.tol, max_iter=FEW_STEPS, n_threads=self.n_threads, exact=False, reason=NEIGHBOUR)
            solvers = (quick, *solvers)
        return Relay(solvers).solve(problem, start=shifted(problem, previous[1], C / previous[0]), watch=self.watch)

    def _on_the_chord(self, chord: Chord, problem: Problem, C: float, previous: Solution) -> Solution | None:
        """A few steps from the neighbour; None if they are too few, or if time or patience run out meanwhile."""
        try:
            if self.stands_at is not previous:
                chord.begin(previous)
            found = chord.solve(problem, C, self.tol)
        except _core.DeadlineReached:
            found = None
        except KeyboardInterrupt:
            self.watch.cancel()
            found = None
        self.stands_at = found
        return found

    def bounds(self, C: float, solution: Solution) -> Bounds:
        """What a solution says about other values of C, the quadratic part from its multipliers themselves."""
        unit = self.unit
        induced = unit.space.combine(solution.alpha * unit.sign, Execution(self.n_threads))
        off = combination_off(unit.n_rows, solution.alpha, np.sqrt(unit.squared_norms))
        of_w, of_induced = square_norm(solution.w), square_norm(induced, off)
        halves = (Interval(0.5 * square.low, 0.5 * square.high) for square in (of_w, of_induced))
        return Bounds(C, solution.primal, solution.dual, *halves)

    def path(self, points: list[tuple[float, Solution]], status: Status) -> Path:
        values = np.array([C for C, _ in points])
        certificates = tuple(self.certificate(C, s) for C, s in points)
        bounds = tuple(self.bounds(C, s) for C, s in points) if self.unit.penalty == "l2" else ()
        return Path(values, tuple(s for _, s in points), certificates, bounds, self.watch.seconds, status)

    def certificate(self, C: float, solution: Solution) -> OptimalityCertificate:
        loss = self.unit.loss
        return OptimalityCertificate(
            coef=solution.w, intercept=solution.b, alpha=solution.alpha, primal=solution.primal, dual=solution.dual,
            gap=solution.gap, loss=loss.name, C=C, classes=self.unit.classes, tol=self.tol,
            class_weight=self.class_weight, fit_intercept=self.unit.bias.value != 0.0, penalty=self.unit.penalty,
            power=float(getattr(loss, "power", np.nan)),
        )  # fmt: skip


def shifted(problem: Problem, solution: Solution, factor: float) -> Solution:
    """A solution as a start for costs ``factor`` times as large: multipliers at a bound stay at it, others stay."""
    alpha = solution.alpha
    if problem.loss.has_box and not problem.loss.smooth:
        before = problem.cost / factor
        alpha = np.where(alpha >= before * (1.0 - 1e-9), problem.cost, np.minimum(alpha, problem.cost))
    else:
        alpha = alpha * factor
    return replace(solution, alpha=alpha)

"""The voted perceptron: every hyperplane that ever was has a vote, as long as it survived."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.estimators import checked_for_scores
from maxmargin.online.base import Course, Order, Vector
from maxmargin.online.bounded import NovikoffBound
from maxmargin.online.linear import OnlineClassifier
from maxmargin.online.memory import Memory
from maxmargin.online.steps import Steps
from maxmargin.runtime import Watch
from maxmargin.space import Rows

VOTERS_AT_ONCE = 1024


class VotedPerceptron(NovikoffBound, OnlineClassifier):
    """Voted perceptron: the perceptron's hyperplanes vote, each with the number of rows it survived.

    Rule
        perceptron steps; predict sign Σ_k c_k sign(⟨w_k, x⟩ + b_k), c_k the rows that (w_k, b_k) saw before its mistake

    Parameters
    ----------
    fit_intercept : bool, default=True
    bias : {"augmented", "radius"}, default="augmented"
    radius : float or None, default=None
        As in :class:`Perceptron`.
    shuffle : bool or "replacement", default=True
    max_iter : int, default=10
        Most passes; a pass without mistakes ends the fit. All hyperplanes are kept: memory grows with the mistakes.
    random_state : int, RandomState or None, default=None
    warm_start : bool, default=False
    max_seconds : float or None, default=None
    trace : bool, default=False
    verbose : int, default=0

    Attributes
    ----------
    voters_ : list of arrays of shape (n_hyperplanes, n_features)
        One entry per machine (one for two classes).
    voter_intercepts_, votes_ : lists of arrays of shape (n_hyperplanes,)
    coef_, intercept_
        The mean of the hyperplanes, weighted by votes: what :class:`Perceptron` with ``average=True`` uses.
    classes_, n_mistakes_, n_updates_, mistakes_per_pass_, updates_per_pass_, n_iter_, t_
        As in :class:`Perceptron`.
    mistake_bound_ : Bound or None
        What Novikoff's theorem allows.

    Notes
    -----
    *Guarantee.* The expected error on one more row is bounded by the perceptron's mistakes on the sequence of rows
    (Freund and Schapire; Helmbold and Warmuth's conversion), separable or not.

    References
    ----------
    Freund, Schapire: Large margin classification using the perceptron algorithm, 1999.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = VotedPerceptron().fit(X[50:], y[50:])
    >>> int(machine.votes_[0].sum()) == machine.t_
    True
    """

    _rule = "perceptron"
    eta0, batch_size, rho, tol, n_iter_no_change = 1.0, 1, 0.0, 0, None

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        bias: str = "augmented",
        radius: float | None = None,
        shuffle: bool | str = True,
        max_iter: int = 10,
        random_state: Any = None,
        warm_start: bool = False,
        max_seconds: float | None = None,
        trace: bool = False,
        verbose: int = 0,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.bias = bias
        self.radius = radius
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.random_state = random_state
        self.warm_start = warm_start
        self.max_seconds = max_seconds
        self.trace = trace
        self.verbose = verbose

    def _steps(self) -> Steps:
        return Steps(1.0)

    def _fresh(self, n_cols: int) -> Memory:
        return Memory({"v": np.zeros(n_cols), "W": np.zeros((1, n_cols)), "B": np.zeros(1), "votes": np.zeros(1)})

    def _take(
        self, memory: Memory, rows: Rows, y: Any, order: Order, watch: Watch, course: Course, n_pass: int
    ) -> None:
        core = self._open(memory)
        core.pause = True
        before = core.n_mistakes
        voters: list[tuple[Vector, float]] = []
        votes: list[int] = []  # of the hyperplane that was there before the row, then of each new one
        begin, end = 0, rows.n
        try:
            while begin < end:
                made = core.n_mistakes
                reached = core.run(rows.core, y, order, begin, end, watch.core)
                if core.diverged:
                    course.diverged = True
                    break
                corrected = core.n_mistakes > made
                # The row of a mistake is the last one that the hyperplane before it saw.
                votes.append(reached - begin)
                if corrected:
                    voters.append((core.scale * memory.arrays["v"], core.b))
                    if course.recorder is not None:
                        course.recorder.add(voters[-1][0], core.b, core.n_seen, n_pass, core.n_mistakes, 1.0)
                begin = reached
        finally:
            memory.read_from(core, self._numbers)
            course.mistakes.append(core.n_mistakes - before)
            course.corrections.append(core.n_mistakes - before)
            self._add_voters(memory, voters, votes)

    def _add_voters(self, memory: Memory, voters: list[tuple[Vector, float]], votes: list[int]) -> None:
        arrays = memory.arrays
        earned = np.zeros(1 + len(voters))
        earned[: len(votes)] = votes[: len(earned)]
        arrays["votes"][-1] += earned[0]
        if voters:
            arrays["W"] = np.concatenate([arrays["W"], np.stack([w for w, _ in voters])])
            arrays["B"] = np.concatenate([arrays["B"], [b for _, b in voters]])
            arrays["votes"] = np.concatenate([arrays["votes"], earned[1:]])

    def _weights(self, memory: Memory) -> tuple[Vector, float]:
        votes = memory.arrays["votes"]
        total = float(votes.sum()) or 1.0
        return votes @ memory.arrays["W"] / total, float(votes @ memory.arrays["B"]) / total

    def _warn_of_mistakes(self, courses: list[Course]) -> None:
        """Mistakes at the end are what the votes are for."""

    def _store(self, *arguments: Any, **options: Any) -> None:
        super()._store(*arguments, **options)
        self.voters_ = [memory.arrays["W"] for memory in self._memories]
        self.voter_intercepts_ = [memory.arrays["B"] for memory in self._memories]
        self.votes_ = [memory.arrays["votes"] for memory in self._memories]

    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> Any:
        """Learn from some rows, once each, and go on from there at the next call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, needed at the first call
        """
        return self._partial_fit(X, y, classes)

    def decision_function(self, X: Any) -> Any:
        """The vote, between −1 and 1: one per row for two classes, one per class for more."""
        X = checked_for_scores(self, X)
        columns = [
            vote(X, W, b, votes) for W, b, votes in zip(self.voters_, self.voter_intercepts_, self.votes_, strict=True)
        ]
        return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


def vote(X: Any, W: NDArray[Any], b: Vector, votes: Vector) -> Vector:
    """Σ_k votes_k sign(⟨w_k, x⟩ + b_k) / Σ votes, with sign(0) = −1 as in predict."""
    total = np.zeros(X.shape[0])
    for begin in range(0, len(b), VOTERS_AT_ONCE):
        part = slice(begin, begin + VOTERS_AT_ONCE)
        total += np.where(np.asarray(X @ W[part].T) + b[part] > 0.0, 1.0, -1.0) @ votes[part]
    return total / (float(votes.sum()) or 1.0)

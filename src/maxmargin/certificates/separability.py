"""Proof that two classes can, or cannot, be separated by a hyperplane.

They can: a hyperplane with every row strictly on its side. They cannot: convex weights under which the means of both
classes coincide, for a hyperplane would have to put that common point on both of its sides. The inputs are
floating-point numbers, which are rationals, and either proof is checked as one of rationals: rounding cannot make it
false. To find one may be too hard; then the verdict is that there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.certificates.exact import (
    Vector,
    Weights,
    are_convex,
    intercept_between,
    matrix,
    means_coincide,
    misplaced,
)
from maxmargin.certificates.exact_simplex import MOST_NUMBERS as MOST_EXACT_NUMBERS
from maxmargin.certificates.exact_simplex import closest
from maxmargin.certificates.lifting import solved
from maxmargin.certificates.verdict import Checks, Outcome, Verdict, verdict_of
from maxmargin.errors import InputError
from maxmargin.positions import distinct

MOST_NUMBERS = 4_000_000  # non-zeros that the linear program is tried on
MOST_TRIALS = 5_000_000  # numbers of X that are looked at in search of a hyperplane that survives its rounding
MOST_ROUNDS = 8  # of the exact program
# Weights of the linear program below these are taken for rounding, one after the other.
NEGLIGIBLE = (0.0, 1e-13, 1e-9)


@dataclass(frozen=True, eq=False)
class Separability:
    """A verdict with its proof.

    Attributes
    ----------
    separable : True, False, or None if neither could be proven.
    positive : label of the class on the hyperplane's positive side.
    negative : labels of the rows on the other side: one, or several for a machine of one class against the rest.
    coef, intercept : a separating hyperplane, if there is one.
    rows, numerators, denominator : weights numerator/denominator of some rows, in Python's integers, which sum to 1 in
        each class and make the classes' means coincide, if there is no such hyperplane.
    n_rows : number of rows of X.
    left_out : labels of rows that the verdict is not about, for a machine of one pair of several classes.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array(["a", "b", "a"])
    >>> proof = judge_separability(X, y)
    >>> print(proof)
    not linearly separable: under convex weights on 3 rows the means of both classes coincide
    >>> proof.rows, proof.numerators, proof.denominator, proof.weights
    ((0, 1, 2), (1, 2, 1), 2, array([0.5, 1. , 0.5]))
    >>> print(proof.verify(X, y))
    verified: in exact arithmetic, the weighted means of both classes coincide, so no hyperplane separates them
    >>> print(judge_separability(X[:2], y[:2]))
    linearly separable: a hyperplane has every row on its side
    """

    separable: bool | None
    positive: Any
    negative: tuple[Any, ...]
    n_rows: int
    coef: Vector | None = None
    intercept: float = 0.0
    rows: tuple[int, ...] = ()
    # Python refuses to write integers of many thousand digits.
    numerators: tuple[int, ...] = field(default=(), repr=False)
    denominator: int = field(default=1, repr=False)
    left_out: tuple[Any, ...] = ()

    @property
    def weights(self) -> Vector | None:
        """The weights of all rows, rounded; None if there are none."""
        if not self.rows:
            return None
        out = np.zeros(self.n_rows)
        out[list(self.rows)] = [a / self.denominator for a in self.numerators]
        return out

    @verdict_of
    def verify(self, X: Any, y: Any) -> Verdict:
        """Check the proof against the data, in exact arithmetic; true if and only if what it says is proven.

        ``X`` is taken in float64, as the machines take it. Rejected are: a proof that does not belong to the verdict
        (check "kind"); data or proof of a wrong shape ("shape"), NaN and infinity ("finite"); labels that the proof
        does not know, or a class without rows ("labels"); a row on the wrong side or on the hyperplane ("sides");
        weights that are negative or do not sum to 1 ("weights"), or whose means differ ("means"). Where neither could
        be proven nothing is claimed, which is honest.
        """
        checks = Checks()
        has_plane, has_weights = self.coef is not None, bool(self.rows or self.numerators)
        if self.separable is None and not has_plane and not has_weights:
            return Verdict(Outcome.HONEST, "kind", {"kind": str(self)}, str(self))
        right = self.separable in (True, False) and (has_plane, has_weights) == (self.separable, not self.separable)
        if not checks.note("kind", right, "there is no proof, or one of another kind than the verdict"):
            return checks.rejected()
        try:
            X = matrix(X)
        except (InputError, OverflowError) as error:
            checks.note("finite" if "NaN" in str(error) else "shape", False, str(error))
            return checks.rejected()
        labels = np.asarray(y).ravel()
        fits = X.shape[0] == len(labels) == self.n_rows
        about = f"it is about {self.n_rows} rows, X has {X.shape[0]} and y {len(labels)}"
        if not checks.note("shape", fits, about):
            return checks.rejected()
        sign = self._sides(labels)
        known = "y has a label the proof does not know, or no row of one of the sides"
        if not checks.note("labels", sign is not None, known) or sign is None:
            return checks.rejected()
        return self._check_hyperplane(X, sign, checks) if self.separable else self._check_weights(X, sign, checks)

    def _sides(self, labels: NDArray[Any]) -> Vector | None:
        """+1, −1, or 0 for rows left out."""
        try:
            side = {**dict.fromkeys(self.left_out, 0.0), **dict.fromkeys(self.negative, -1.0), self.positive: 1.0}
            sign = np.array([side[label] for label in labels.tolist()])
        except (KeyError, TypeError):  # unknown, or nothing that can be a label
            return None
        no_twice = len(side) == 1 + len(self.negative) + len(self.left_out)
        return sign if no_twice and (sign > 0.0).any() and (sign < 0.0).any() else None

    def _check_hyperplane(self, X: Any, sign: Vector, checks: Checks) -> Verdict:
        w, b = np.asarray(self.coef), self.intercept
        right = w.shape == X.shape[1:] and w.dtype in (np.float32, np.float64) and isinstance(b, float)
        made = f"the hyperplane is not made of {X.shape[1]} floating-point numbers and one more"
        if not checks.note("shape", right, made):
            return checks.rejected()
        finite = bool(np.isfinite(w).all() and np.isfinite(b))
        if not checks.note("finite", finite, "the hyperplane has NaN or infinity"):
            return checks.rejected()
        among = np.flatnonzero(sign)
        wrong = misplaced(X[among], sign[among], w.astype(np.float64), b)
        row = "" if wrong is None else f"row {among[wrong]} is not strictly on its side of the hyperplane"
        checks.note("sides", wrong is None, row)
        return checks.proven("in exact arithmetic, a hyperplane has every row strictly on its side")

    def _check_weights(self, X: Any, sign: Vector, checks: Checks) -> Verdict:
        weights = Weights(self.rows, self.numerators, self.denominator)
        if not checks.note("weights", are_convex(weights, sign), "they are not convex weights of rows of each class"):
            return checks.rejected()
        checks.note("means", means_coincide(X, sign, weights), "under the weights the means of the classes differ")
        return checks.proven(
            "in exact arithmetic, the weighted means of both classes coincide, so no hyperplane separates them"
        )

    def __str__(self) -> str:
        if self.separable:
            return "linearly separable: a hyperplane has every row on its side"
        if self.separable is None:
            return "not judged: the problem is too large for the linear program, or too close to call"
        n = len(self.rows)
        return f"not linearly separable: under convex weights on {n} rows the means of both classes coincide"


class NotSeparableError(ValueError):
    """No hyperplane separates the classes; ``proof`` shows it.

    Attributes
    ----------
    proof : Separability
        Convex weights under which the means of both classes coincide; ``proof.verify(X, y)`` checks them.

    Examples
    --------
    >>> from maxmargin import LinearSVC
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array(["a", "b", "a"])
    >>> try:
    ...     LinearSVC(C=np.inf).fit(X, y)
    ... except NotSeparableError as error:
    ...     print(error.proof.weights, bool(error.proof.verify(X, y)))
    [0.5 1.  0.5] True
    """

    def __init__(self, message: str, proof: Separability) -> None:
        super().__init__(message)
        self.proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.proof)


def judge_separability(
    X: Any, y: Any, *, hyperplane: tuple[Vector, float] | None = None, max_seconds: float = 5.0
) -> Separability:
    """Decide by a linear program, min ‖Σ λ_i x_i − Σ μ_j x_j‖₁ over convex weights of the two classes.

    Its answer in floating point only says where to look: a hyperplane counts once every row is on its side in exact
    arithmetic, weights once their means coincide as rationals. If neither can be had from it and the problem is small,
    the program is solved in integers.

    Parameters
    ----------
    X, y : rows and labels of two classes.
    hyperplane : (w, b) to try first; if it separates, nothing needs to be solved.
    max_seconds : time limit of the linear program.
    """
    X, labels = matrix(X), np.asarray(y).ravel()
    if X.shape[0] != len(labels):
        raise InputError(f"y must have one label per row of X: {X.shape[0]} rows, {len(labels)} labels")
    classes = distinct(labels)
    if len(classes) != 2:
        raise InputError(f"separability is about two classes, y has {len(classes)}: {classes.tolist()[:5]}")
    sign = np.where(labels == classes[1], 1.0, -1.0)
    answer = Separability(None, classes[1], (classes[0],), len(labels))
    if hyperplane is not None:
        w, b = np.asarray(hyperplane[0], dtype=np.float64), float(hyperplane[1])
        if w.shape != X.shape[1:]:
            raise InputError(f"the hyperplane has {w.size} coefficients, X has {X.shape[1]} columns")
        if np.isfinite(w).all() and np.isfinite(b) and misplaced(X, sign, w, b) is None:
            return replace(answer, separable=True, coef=w, intercept=b)
    if (X.nnz if sp.issparse(X) else X.size) > MOST_NUMBERS:
        return answer
    found = _search(X, sign, max_seconds)
    if isinstance(found, Weights):
        return replace(
            answer, separable=False, rows=found.rows, numerators=found.numerators, denominator=found.denominator
        )
    return answer if found is None else replace(answer, separable=True, coef=found[0], intercept=found[1])


def through_origin(X: Any, y: Vector, *, max_seconds: float) -> tuple[Vector | None, float]:
    """A hyperplane ⟨w, x⟩ = 0 that separates rows of labels −1 and +1, or None.

    It separates the rows y x from their mirror images −y x. Where there is none, that is an error.
    """
    X = matrix(X)
    turned = X.multiply(y[:, None]).tocsr() if sp.issparse(X) else X * y[:, None]
    stack = sp.vstack if sp.issparse(X) else np.vstack
    mirrored = judge_separability(stack([turned, -turned]), np.repeat([1.0, -1.0], len(y)), max_seconds=max_seconds)
    if mirrored.separable is False:
        raise InputError(
            "C=inf with fit_intercept=False asks for a hyperplane through the origin without any slack, but there is "
            "none, proven in exact arithmetic. Use a finite C, or fit_intercept=True."
        )
    return mirrored.coef, 0.0


def _search(X: Any, sign: Vector, max_seconds: float) -> Weights | tuple[Vector, float] | None:
    """A proof of either kind that has been checked, or None."""
    direction, near, timed_out = _in_floating_point(X, sign, max_seconds)
    plane = _hyperplane(X, sign, (direction, -direction))
    if plane is not None or timed_out:
        return plane
    for negligible in NEGLIGIBLE:
        weights = solved(X, sign, np.flatnonzero(near > negligible))
        if weights is not None and _proves(X, sign, weights):
            return weights
    return _in_integers(X, sign, direction, near > 0.0)


def _in_integers(
    X: Any, sign: Vector, direction: Vector, kept: NDArray[np.bool_]
) -> Weights | tuple[Vector, float] | None:
    """The exact program on some rows, and again with those that lie across its answer."""
    for _ in range(MOST_ROUNDS):
        pool = _pool(X, sign, direction, kept)
        answer = closest(X, sign, pool)
        if answer is None:
            return None
        if answer.weights is not None:
            return answer.weights if _proves(X, sign, answer.weights) else None
        direction = _rounded(answer.direction, answer.exponents)
        plane = _hyperplane(X, sign, _multiples(direction, MOST_TRIALS // max(1, X.size)))
        if plane is not None or len(pool) == len(sign):
            return plane
        kept = np.zeros(len(sign), dtype=bool)
        kept[answer.active] = True
    return None


def _proves(X: Any, sign: Vector, weights: Weights) -> bool:
    return are_convex(weights, sign) and means_coincide(X, sign, weights)


def _hyperplane(X: Any, sign: Vector, directions: Iterable[Vector]) -> tuple[Vector, float] | None:
    """The first of the directions that separates, with its intercept."""
    for w in directions:
        b = intercept_between(X, sign, w) if w.any() and np.isfinite(w).all() else None
        if b is not None:
            return w, b
    return None


def _multiples(w: Vector, most: int) -> Iterator[Vector]:
    """w, then w·t with t between ½ and 1 (multiples of the golden ratio, modulo ½): each is rounded in another way."""
    for k in range(max(8, min(most, 512))):
        yield w * (1.0 - 0.5 * (k * 0.6180339887498949 % 1.0))


def _pool(X: Any, sign: Vector, direction: Vector, kept: NDArray[np.bool_]) -> NDArray[np.intp]:
    """All rows, or as many as the exact program takes: those kept, and those that lie farthest across the direction."""
    most = MOST_EXACT_NUMBERS // max(1, X.shape[1])
    if len(sign) <= most:
        return np.arange(len(sign))
    with np.errstate(all="ignore"):
        order = np.lexsort((sign * (X @ direction), ~kept))
    chosen = [order[sign[order] == s][: most // 2] for s in (-1.0, 1.0)]
    return np.sort(np.concatenate(chosen))


def _rounded(direction: list[int], exponents: NDArray[np.intp]) -> Vector:
    """integer·2^−exponent up to a common factor."""
    drop = [max(0, a.bit_length() - 64) for a in direction]
    leading = np.array([float(a >> k) for a, k in zip(direction, drop, strict=True)])
    return _with_exponents(leading, exponents - np.array(drop, dtype=np.intp))


def _in_floating_point(X: Any, sign: Vector, max_seconds: float) -> tuple[Vector, Vector, bool]:
    """The linear program in units of the columns' ranges: a direction, weights, and whether time ran out."""
    from scipy.optimize import linprog

    n, d = X.shape
    Z, exponents = _scaled(X)
    A = _equations(Z, sign)
    cost = np.concatenate([np.zeros(n), np.ones(2 * d)])
    right = np.concatenate([np.zeros(d), [1.0, 1.0]])
    # The tightest tolerances that HiGHS takes: exact arithmetic starts from its answer.
    options = {"time_limit": max_seconds, "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    result = linprog(cost, A_eq=A, b_eq=right, bounds=(0.0, None), method="highs", options=options)
    timed_out = result.status == 1
    if result.x is None or result.status != 0:
        return np.zeros(d), np.zeros(n), timed_out
    # The multipliers of the means are a direction along which the classes lie apart, if they do.
    direction = _with_exponents(np.asarray(result.eqlin.marginals[:d]), exponents)
    return direction, np.maximum(result.x[:n], 0.0), timed_out


def _with_exponents(w: Vector, exponents: NDArray[np.intp]) -> Vector:
    """w·2^−exponents, times a power of two that keeps in range what is very small or large: these numbers, and scores.

    Scores of columns of size 2^exponent are about 1 before that.
    """
    mantissa, own = np.frexp(w)
    total = own - exponents
    used = np.append(total[w != 0.0], 0)
    centre = (int(used.max()) + int(used.min())) // 2
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(mantissa, total - centre))


def _scaled(X: Any) -> tuple[Any, NDArray[np.intp]]:
    """Columns in [−1, 1], moved to have 0 in their range and divided by 2^exponent.

    A move changes nothing for convex weights. The difference of two floating-point numbers is rounded once, relative to
    itself, so rows that are close stay apart.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray(), high.toarray()
    low, high = np.asarray(low, dtype=np.float64).ravel(), np.asarray(high, dtype=np.float64).ravel()
    shift = np.where((low > 0.0) | (high < 0.0), low, 0.0)
    exponents = np.frexp(high / 2.0 - low / 2.0)[1].astype(np.intp) + 1
    if not sp.issparse(X):
        return np.ldexp(X.astype(np.float64), -exponents) - np.ldexp(shift, -exponents), exponents
    Z = sp.csc_array(X).astype(np.float64)
    Z.sum_duplicates()
    column = np.repeat(np.arange(Z.shape[1]), np.diff(Z.indptr))
    Z.data = np.ldexp(Z.data, -exponents[column]) - np.ldexp(shift, -exponents)[column]
    return Z, exponents


def _equations(Z: Any, sign: Vector) -> Any:
    """Both means are equal up to slacks, and the weights of each class sum to 1."""
    d = Z.shape[1]
    rows = sp.csc_array(Z.T.multiply(sign)) if sp.issparse(Z) else sp.csc_array(Z.T * sign)
    plus = sp.csc_array((sign > 0).astype(np.float64).reshape(1, -1))
    minus = sp.csc_array((sign < 0).astype(np.float64).reshape(1, -1))
    slack = sp.eye_array(d)
    return sp.block_array([[rows, -slack, slack], [plus, None, None], [minus, None, None]], format="csc")

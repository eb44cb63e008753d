"""What is kept of a fit, and when two records of it agree.

A certified fit knows how far its weights can be from the optimal ones: ‖w − w*‖ ≤ bound, where bound² = 2 (P − D). So
two builds that solve the same problem must have ‖w − w'‖ ≤ bound + bound', whatever their iterations were. A free bias
is the middle of the interval of best biases, whose ends move by no more than the scores do: |b − b'| ≤ (bound + bound')
R with R = max ‖x‖. And no build may claim an objective below what another one has proven: D ≤ P' and D' ≤ P.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

MOST_KEPT = 200  # numbers of one weight vector that the reference holds; the norm speaks for the others
DIGEST = 24  # hexadecimal digits: 96 bits
KEPT_DIGITS = 12  # of weights: more than any comparison but the exact one asks for
ROUNDING = 1e-13  # of an objective: sums of thousands of terms that cancel; five times what builds differ by
WITHOUT_PROOF = 1e-9  # relative difference of weights that nobody has bounded
EXACT, CLOSE, PROVEN = "exact", "close", "proven"


@dataclass(frozen=True)
class Record:
    """One fit.

    Attributes
    ----------
    how : what the weights of two records must satisfy: "proven" (bounds as above), "close" or "exact".
    weights : one vector per proof: of a hyperplane, or of all hyperplanes of a joint machine.
    norms : of the whole vectors; ``weights`` may hold their beginnings only.
    bounds, primal, dual : of every proof; empty unless ``how`` is "proven". A bound may be infinite (ℓ1).
    bias_reach : how far a bias may move when the weights move by 1; infinite where no such thing is known.
    digest : of all bits of weights and biases, of weights that were left out of the record, too.
    """

    how: str
    status: str
    gap: float
    steps: int
    weights: tuple[np.ndarray, ...]
    norms: tuple[float, ...]
    biases: tuple[float, ...]
    bounds: tuple[float, ...] = ()
    primal: tuple[float, ...] = ()
    dual: tuple[float, ...] = ()
    bias_reach: float = math.inf
    digest: str = ""

    def as_json(self) -> list[Any]:
        """Plain numbers, from which :meth:`from_json` makes the record again; weights that may differ lose digits."""
        proofs = list(zip(self.bounds, self.primal, self.dual, strict=True))
        digits = 17 if self.how == EXACT else KEPT_DIGITS
        vectors = [
            [_short(norm, 17), *([float(x) for x in proofs[k]] if proofs else []), [_short(x, digits) for x in w]]
            for k, (norm, w) in enumerate(zip(self.norms, self.weights, strict=True))
        ]
        head = [self.how, self.status, _short(self.gap, 3), self.steps, self.digest, self.bias_reach]
        return [*head, [_short(b, digits) for b in self.biases], *vectors]

    @classmethod
    def from_json(cls, fields: list[Any]) -> Record:
        how, status, gap, steps, digest, reach, biases, *vectors = fields
        proofs = [tuple(column) for column in zip(*(v[1:-1] for v in vectors), strict=True)] or [(), (), ()]
        return cls(
            how, status, gap, steps, tuple(np.array(v[-1], dtype=np.float64) for v in vectors),
            tuple(v[0] for v in vectors), tuple(biases), *proofs, bias_reach=reach, digest=digest,
        )  # fmt: skip


def _short(x: float, digits: int) -> float | int:
    """A number of so many significant digits, a whole one without its point."""
    short = float(f"{x:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e6 else short


def make_record(weights: Iterable[Any], biases: Any, **fields: Any) -> Record:
    """A record of whole vectors: their digest and norms, and as much of them as is kept."""
    whole = [np.ascontiguousarray(w, dtype=np.float64).ravel() for w in weights]
    b = np.atleast_1d(np.asarray(biases, dtype=np.float64)).ravel()
    bits = hashlib.sha256(b"".join(part.tobytes() for part in [*whole, b])).hexdigest()[:DIGEST]
    return Record(
        weights=tuple(w[:MOST_KEPT] for w in whole), norms=tuple(float(np.linalg.norm(w)) for w in whole),
        biases=tuple(b.tolist()), digest=bits, **fields,
    )  # fmt: skip


def row_reach(X: Any, weight: np.ndarray | None) -> float:
    """max ‖x‖ over the rows that count."""
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.square(X, dtype=np.float64).sum(axis=1)
    squares = np.asarray(squares, dtype=np.float64).ravel()
    return math.sqrt(float(squares.max() if weight is None else squares[weight > 0.0].max()))


def certified(machine: Any, X: Any, weight: np.ndarray | None = None) -> Record:
    """The record of a fitted machine that has a certificate."""
    solution, claim = machine.solution_, machine.certificate_
    W, claims = np.atleast_2d(machine.coef_), list(getattr(claim, "parts", [claim]))
    joint = len(claims) < len(W)
    reach = math.inf if joint else row_reach(X, weight)
    if machine.penalize_intercept and not joint:
        reach = float(machine.intercept_scaling)
    return make_record(
        [W] if joint else W, machine.intercept_, how=PROVEN, status=solution.status.name, gap=float(solution.gap),
        steps=int(solution.n_iter), bounds=tuple(float(c.distance_bound) for c in claims),
        primal=tuple(float(c.primal) for c in claims), dual=tuple(float(c.dual) for c in claims), bias_reach=reach,
    )  # fmt: skip


def certified_path(solutions: Any, certificates: Any, X: Any, weight: np.ndarray | None = None) -> Record:
    """The record of several solutions of one problem."""
    return make_record(
        [s.w for s in solutions], [s.b for s in solutions], how=PROVEN,
        status=" ".join(sorted({s.status.name for s in solutions})), gap=float(max(s.gap for s in solutions)),
        steps=int(sum(s.n_iter for s in solutions)), bounds=tuple(float(c.distance_bound) for c in certificates),
        primal=tuple(float(c.primal) for c in certificates), dual=tuple(float(c.dual) for c in certificates),
        bias_reach=row_reach(X, weight),
    )  # fmt: skip


def refused(error: Exception) -> Record:
    """The record of a fit that ends with an error."""
    return make_record([], [], how=EXACT, status=type(error).__name__, gap=math.nan, steps=0)


def learned(weights: Iterable[Any], biases: Any, *, steps: int = 0, exact: bool = False) -> Record:
    """The record of a machine without a certificate."""
    how = EXACT if exact else CLOSE
    return make_record(weights, biases, how=how, status="LEARNED", gap=math.nan, steps=steps)


def difference(now: Record, then: Record) -> str:
    """What two records of one fit must agree on but do not; empty if they agree."""
    if (now.how, now.status) != (then.how, then.status):
        return f"{now.how} {now.status}, before: {then.how} {then.status}"
    shapes = [(len(r.weights), [len(w) for w in r.weights], len(r.biases)) for r in (now, then)]
    if shapes[0] != shapes[1]:
        return f"shapes {shapes[0]}, before: {shapes[1]}"
    if now.how == PROVEN:
        return _proven_difference(now, then)
    allowed = 0.0 if now.how == EXACT else WITHOUT_PROOF
    for k, (w, v) in enumerate(zip(now.weights, then.weights, strict=True)):
        size = max(now.norms[k], then.norms[k])
        off = max(float(np.linalg.norm(w - v)), abs(now.norms[k] - then.norms[k]))
        if not off <= allowed * size and not (now.how == EXACT and np.array_equal(w, v)):
            return f"weights {k} differ by {off:.3g}, their norm is {size:.3g}"
    largest = max([1e-300, *now.norms, *(abs(b) for b in then.biases)])
    off = max((abs(b - c) for b, c in zip(now.biases, then.biases, strict=True)), default=0.0)
    return "" if off <= allowed * largest else f"biases differ by {off:.3g}"


def _proven_difference(now: Record, then: Record) -> str:
    moved = []
    for k, (w, v) in enumerate(zip(now.weights, then.weights, strict=True)):
        value = max(abs(now.primal[k]), abs(then.primal[k]))
        for claim, other in ((now, then), (then, now)):
            if not claim.dual[k] <= other.primal[k] + ROUNDING * value:
                return f"a build proves that no objective is below {claim.dual[k]!r}, another has {other.primal[k]!r}"
        # Where the gap is 0 in floating-point numbers, the true one is rounding.
        allowed = now.bounds[k] + then.bounds[k] + 2.0 * math.sqrt(2.0 * ROUNDING * value)
        off = max(float(np.linalg.norm(w - v)), abs(now.norms[k] - then.norms[k]))
        if not off <= allowed:  # true for NaN, too
            return f"weights {k} differ by {off:.3g}, the certificates allow {allowed:.3g}"
        moved.append(allowed)
    if math.isinf(now.bias_reach):
        return ""
    for k, (b, c) in enumerate(zip(now.biases, then.biases, strict=True)):
        allowed = moved[k] * now.bias_reach + ROUNDING * max(1.0, abs(b), abs(c))
        if not abs(b - c) <= allowed:
            return f"bias {k} differs by {abs(b - c):.3g}, the certificates allow {allowed:.3g}"
    return ""

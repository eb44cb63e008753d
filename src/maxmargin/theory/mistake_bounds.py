"""How many mistakes a mistake-driven machine can make: Novikoff, Freund and Schapire, Winnow.

Every bound holds for each hyperplane that satisfies its hypotheses; the functions here look for the hyperplane that
makes it smallest, and compute the value from that hyperplane by plain arithmetic. So a value is valid even if the
search was not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize_scalar

from maxmargin.certificates import judge_separability
from maxmargin.errors import InputError
from maxmargin.inputs import LabelledRows, number_in, positive_number
from maxmargin.problem import Problem, costs_of, margin_loss
from maxmargin.solution import Status
from maxmargin.solvers import make_solver
from maxmargin.space import Bias

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Bound:
    """A theorem's number, with what it assumes.

    Attributes
    ----------
    value : the bound.
    theorem : its name.
    assumptions : what must hold for it.
    constants : the quantities that entered, by name.
    delta : probability that it fails (0: it always holds).
    """

    value: float
    theorem: str
    assumptions: str
    constants: dict[str, float] = field(default_factory=dict)
    delta: float = 0.0

    def __str__(self) -> str:
        known = ", ".join(f"{name} = {value:.6g}" for name, value in self.constants.items())
        return f"at most {self.value:.6g} ({self.theorem}; {known}). Holds if {self.assumptions}."


def novikoff(
    X: Any,
    y: Any,
    *,
    bias: str = "augmented",
    radius: float | None = None,
    margin: float = 0.0,
    eta: float = 1.0,
    batch: int = 1,
) -> Bound | None:
    """Mistakes of the perceptron on separable rows, over any number of passes; None if they cannot be separated.

    Parameters
    ----------
    X, y : rows and their labels of two classes.
    bias : {"augmented", "radius", "none"}
        The bias moves by η y, by η y R², or there is none.
    radius : float, optional
        R of that step, if it is not max ‖x‖: then (max ‖x‖² + R²)(1 + (b/R)²)/γ² with b and γ of a unit normal.
    margin, eta : float
        With a margin the bound is on corrections: (R² + 2·margin/η)/γ².
    batch : int
        With batches of B rows whose corrections are added: B times as many.

    References
    ----------
    Novikoff: On convergence proofs on perceptrons, 1962. Duda, Hart: Pattern classification and scene analysis, 1973.

    Examples
    --------
    >>> novikoff([[-1.0], [1.0]], [0, 1], bias="none").value
    1.0
    """
    if bias not in ("augmented", "radius", "none"):
        raise InputError(f"bias must be 'augmented', 'radius' or 'none', got {bias!r}")
    margin, eta = number_in("margin", margin, 0.0, 1e100), positive_number("eta", eta)
    radius = None if radius is None else positive_number("radius", radius)
    if isinstance(batch, bool) or not isinstance(batch, int | np.integer) or batch < 1:
        raise InputError(f"batch must be a whole number of at least 1, got {batch!r}")
    data = _two_classes(X, y)
    found = _widest(data, Bias(0.0 if bias == "none" else 1.0, penalised=bias == "augmented"))
    if found is None:
        return None
    w, b = found
    rows, sign, size = data.space.X, _signs(data), data.space.facts.squared_norms
    reach = float((sign * (np.asarray(rows @ w).ravel() + b)).min())
    R2 = float(size.max())
    constants = {"R": math.sqrt(R2)}
    if bias == "radius":
        gamma = reach / float(np.linalg.norm(w))
        # ‖(x, R)‖² is at most 2R², and ‖(w, b/R)‖² at most 2 for a unit normal, since a separating one has |b| ≤ R.
        per, spread = 2.0 * R2, 2.0
        if radius is not None:
            per, spread = R2 + radius**2, 1.0 + (b / float(np.linalg.norm(w)) / radius) ** 2
    else:
        gamma = reach / math.sqrt(float(w @ w) + (b * b if bias == "augmented" else 0.0))
        per, spread = R2 + (1.0 if bias == "augmented" else 0.0), 1.0
    if not gamma > 0.0:
        return None
    value = spread * (per + 2.0 * margin / eta) / gamma**2 * batch
    constants |= {"gamma": gamma}
    what = "corrections" if margin > 0.0 else "mistakes"
    step = {"augmented": "a bias step of η y", "radius": "a bias step of η y R²", "none": "no bias"}[bias]
    assumptions = f"weights start at 0, η is constant, there is no regulariser, and with {step}; counts {what}"
    return Bound(value, "Novikoff", assumptions, constants)


def kesler(X: Any, y: Any, *, constant: float = 1.0, margin: float = 0.0, eta: float = 1.0) -> Bound | None:
    """Mistakes of the perceptron for several classes at once; None if no weights put every row's class first.

    Kesler's construction makes it a perceptron without bias: a row of class k and another class m become one row with
    (x, c) in block k and −(x, c) in block m. So there are at most 2 max ‖(x, c)‖²/γ² mistakes.

    Parameters
    ----------
    X, y : rows and their labels.
    constant : float
        c: 1 for a bias that moves by η, R for one that moves by η R², 0 for none.
    margin, eta : float
        With a margin the bound is on corrections.

    References
    ----------
    Nilsson: Learning machines, 1965. Duda, Hart: Pattern classification and scene analysis, 1973.

    Examples
    --------
    >>> round(kesler([[-1.0], [1.0]], [0, 1], constant=0.0).value, 6)
    1.0
    """
    constant = number_in("constant", constant, 0.0, 1e100)
    data = LabelledRows.from_arrays(X, y)
    n, n_classes = len(data.position), len(data.classes)
    rows = sp.hstack([sp.csr_array(data.space.X, dtype=np.float64), np.full((n, 1), constant)], format="csr")
    own = np.repeat(data.position, n_classes)
    other = np.tile(np.arange(n_classes), n)
    kept = own != other
    pairs = rows[np.repeat(np.arange(n), n_classes)[kept]].tocoo()
    # Hyperplanes through 0 are fitted to rows of both signs, so every other pair is turned round.
    turn = np.where(np.arange(pairs.shape[0]) % 2 == 0, 1.0, -1.0)
    d = pairs.shape[1]
    blocks = [(own[kept], 1.0), (other[kept], -1.0)]
    columns = np.concatenate([block[pairs.row] * d + pairs.col for block, _ in blocks])
    values = np.concatenate([sign * turn[pairs.row] * pairs.data for _, sign in blocks])
    Z = sp.csr_array((values, (np.tile(pairs.row, 2), columns)), shape=(pairs.shape[0], n_classes * d))
    found = novikoff(Z, turn, bias="none", margin=margin, eta=eta)
    if found is None:
        return None
    assumptions = "weights start at 0 and η is constant; gamma is the lead of every row's class for weights of norm 1"
    constants = {"R": found.constants["R"] / math.sqrt(2.0), "gamma": found.constants["gamma"]}
    return Bound(found.value, "Novikoff by Kesler's construction", assumptions, constants)


def freund_schapire(X: Any, y: Any, *, form: str = "proved") -> Bound:
    """Mistakes in the first pass of the perceptron with bias step y R², on any rows with both labels.

    ((√(2(R² + b²)) + D)/γ)² for every unit normal, b and γ > 0, with D the norm of the margin slacks; the smallest
    over all of them is returned: with u = w/γ and c = b/γ its root √2‖(R u, c)‖ + ‖max(0, 1 − y(⟨u, x⟩ + c))‖ is
    convex.

    Parameters
    ----------
    form : {"proved", "printed"}
        "printed" is (2(R + D)/γ)², as textbooks have it; its proof changes the bias step on the way.

    References
    ----------
    Freund, Schapire: Large margin classification using the perceptron algorithm, 1999.

    Examples
    --------
    >>> freund_schapire([[0.0], [0.0], [1.0], [2.0]], [0, 1, 1, 1]).value > 2
    True
    """
    if form not in ("proved", "printed"):
        raise InputError(f"form must be 'proved' or 'printed', got {form!r}")
    data = _two_classes(X, y)
    sign = _signs(data)
    R = math.sqrt(float(data.space.facts.squared_norms.max())) or 1.0
    bias = Bias(1.0, penalised=True) if form == "proved" else Bias(1.0, penalised=False)
    scaled = LabelledRows.from_arrays(data.space.X / R, y)

    def root(u: Vector, c: float) -> float:
        slack = np.maximum(0.0, 1.0 - sign * (np.asarray(data.space.X @ u).ravel() + c))
        if form == "printed":
            return 2.0 * (R * float(np.linalg.norm(u)) + float(np.linalg.norm(slack)))
        return math.sqrt(2.0) * math.hypot(R * float(np.linalg.norm(u)), c) + float(np.linalg.norm(slack))

    u, c = _along_path(scaled, bias, lambda w, b: root(w / R, b))
    u = u / R
    norm = float(np.linalg.norm(u))
    slack = np.maximum(0.0, 1.0 - sign * (np.asarray(data.space.X @ u).ravel() + c))
    gamma = 1.0 / norm if norm > 0.0 else math.inf
    constants = {
        "R": R,
        "gamma": gamma,
        "b": c * gamma if norm > 0.0 else 0.0,
        "D": float(np.linalg.norm(slack)) * gamma,
    }
    assumptions = "weights start at 0, each row comes once, η is constant, and the bias step is η y R²"
    name = "Freund and Schapire" + (", as printed" if form == "printed" else "")
    return Bound(root(u, c) ** 2, name, assumptions, constants)


def extended_space(X: Any, y: Any, delta: float, *, fit_intercept: bool = True) -> Bound:
    """Mistakes in all passes of the perceptron with one more coordinate of size Δ per row; it stops on any rows.

    4 (R² + Δ²)(1 + D²/Δ²)/γ², smallest over all hyperplanes: with u = w/γ that is a squared-hinge machine of C =
    1/(2Δ²).

    References
    ----------
    Freund, Schapire: Large margin classification using the perceptron algorithm, 1999.

    Examples
    --------
    >>> round(extended_space([[-1.0], [1.0]], [0, 1], 1.0).value, 3)
    5.333
    """
    delta = positive_number("delta", delta)
    data = _two_classes(X, y)
    sign, R2 = _signs(data), float(data.space.facts.squared_norms.max())
    w, b = _solve(data, 0.5 / delta**2, Bias(1.0 if fit_intercept else 0.0, penalised=False))
    slack = np.maximum(0.0, 1.0 - sign * (np.asarray(data.space.X @ w).ravel() + b))
    factor = 4.0 if fit_intercept else 1.0
    value = factor * (R2 + delta**2) * (float(w @ w) + float(slack @ slack) / delta**2)
    norm = float(np.linalg.norm(w))
    gamma = 1.0 / norm if norm > 0.0 else math.inf
    constants = {"R": math.sqrt(R2), "Delta": delta, "gamma": gamma, "D": float(np.linalg.norm(slack)) * gamma}
    return Bound(value, "Novikoff in the extended space", "the bias step is y (R² + Δ²) and η is constant", constants)


def winnow(X: Any, y: Any, *, log_base: float | None = None, fit_intercept: bool = True) -> Bound | None:
    """Mistakes of balanced Winnow on separable rows; None if no ‖u‖₁ = 1 separates them, or the base is too large.

    ln(2d)/(γ ln base − ½ X² ln² base), which for ln base = γ/X² (taken if ``log_base`` is None) is 2 (X/γ)² ln(2d). The
    constant column counts as one of the d columns.

    References
    ----------
    Littlestone: Learning quickly when irrelevant attributes abound, 1988.

    Examples
    --------
    >>> round(winnow([[-1.0], [1.0]], [0, 1], fit_intercept=False).value, 3)
    1.386
    """
    data = _two_classes(X, y)
    sign = _signs(data)
    ones = np.ones((data.space.n, 1))
    Z = sp.csr_array(data.space.X, dtype=np.float64)
    if fit_intercept:
        Z = sp.hstack([Z, ones], format="csr")
    d = Z.shape[1]
    largest = max(data.space.facts.largest, float(bool(fit_intercept)))
    if largest == 0.0:
        return None
    # maximise γ over u = p − q, p, q ≥ 0, Σ p + q = 1
    signed = sp.diags_array(sign) @ Z
    A = sp.hstack([-signed, signed, ones], format="csr")
    cost = np.r_[np.zeros(2 * d), -1.0]
    equal = np.r_[np.ones(2 * d), 0.0][None, :]
    found = linprog(
        cost, A_ub=A, b_ub=np.zeros(data.space.n), A_eq=equal, b_eq=[1.0], bounds=[(0, None)] * (2 * d) + [(None, None)]
    )
    if not found.success:
        return None
    u = found.x[:d] - found.x[d : 2 * d]
    u = u / (float(np.abs(u).sum()) or 1.0)
    gamma = float((sign * np.asarray(Z @ u).ravel()).min())
    if not gamma > 0.0:
        return None
    eta = gamma / largest**2 if log_base is None else positive_number("log_base", log_base)
    gain = eta * gamma - 0.5 * (eta * largest) ** 2
    if not gain > 0.0:
        return None
    constants = {"X": largest, "gamma": gamma, "ln base": eta, "d": float(d)}
    return Bound(math.log(2.0 * d) / gain, "Winnow", "weights start at 1 and the base stays the same", constants)


# --- looking for the best hyperplane ----------------------------------------------------------------------------------


def _two_classes(X: Any, y: Any) -> LabelledRows:
    data = LabelledRows.from_arrays(X, y)
    if len(data.classes) != 2:
        raise InputError(f"the theorem is about two classes, y has {len(data.classes)}: {data.classes.tolist()[:5]}")
    return data


def _signs(data: LabelledRows) -> Vector:
    return np.where(data.position == 1, 1.0, -1.0)


def _solve(data: LabelledRows, C: float, bias: Bias, loss: str = "squared_hinge") -> tuple[Vector, float]:
    cost = costs_of(data.space, data.weight, C)
    problem = Problem.of_labels(data, 1, cost, loss=margin_loss(loss), bias=bias, hard=np.inf == C)
    solution = make_solver(problem, "auto", tol=1e-9, max_iter=10000, n_threads=None).solve(problem)
    return solution.w, solution.b


def _widest(data: LabelledRows, bias: Bias) -> tuple[Vector, float] | None:
    """The separating hyperplane of largest margin, or a separating one; None if there is none."""
    cost = costs_of(data.space, data.weight, math.inf)
    problem = Problem.of_labels(data, 1, cost, loss=margin_loss("hinge"), bias=bias, hard=True)
    solution = make_solver(problem, "auto", tol=1e-9, max_iter=10000, n_threads=None).solve(problem)
    if solution.status is not Status.INFEASIBLE:
        return solution.w, solution.b
    if not bias.value:
        return None
    verdict = judge_separability(data.space.X, data.position, max_seconds=60.0)
    return (np.asarray(verdict.coef), verdict.intercept) if verdict.coef is not None else None


def _along_path(data: LabelledRows, bias: Bias, value: Callable[[Vector, float], float]) -> tuple[Vector, float]:
    """The hyperplane of the squared-hinge machine whose C makes ``value`` smallest.

    Its solutions over C are the best trade-offs between the norm and the slacks, and the value is unimodal along them.
    """
    known: dict[float, tuple[Vector, float]] = {}

    def at(log_C: float) -> float:
        known[log_C] = _solve(data, math.exp(log_C), bias)
        return value(*known[log_C])

    minimize_scalar(at, bounds=(math.log(1e-6), math.log(1e8)), method="bounded", options={"xatol": 0.02})
    zero = (np.zeros(data.space.d), 0.0)
    return min([*known.values(), zero], key=lambda pair: value(*pair))

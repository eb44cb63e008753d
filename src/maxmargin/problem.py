"""One validated problem; the checks themselves live in ``inputs``.

Solves
    minimise over w, b   R(w) (+ ½ (b/scale)² if the bias is penalised) + Σ cost_i ℓ(⟨w, x_i⟩ + b, y_i)

with R(w) = ½‖w‖² (penalty "l2") or ‖w‖₁ (penalty "l1").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.errors import InputError
from maxmargin.inputs import (
    LabelledRows,
    check_costs,
    check_rows,
    check_sizes,
    check_targets,
    check_weights,
    number_in,
    positive_number,
)
from maxmargin.kept import kept_property
from maxmargin.losses import LOSSES, DualBox, EpsilonInsensitive, Loss, SquaredEpsilonInsensitive, slack_power
from maxmargin.solution import MATTERS, relative_gap
from maxmargin.space import Bias, Space

Vector = NDArray[np.float64]

REGRESSION_LOSSES: dict[str, type[EpsilonInsensitive] | type[SquaredEpsilonInsensitive]] = {
    "epsilon_insensitive": EpsilonInsensitive,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
}


@dataclass(frozen=True)
class Problem:
    """Rows, labels −1/+1 or numbers to approximate, a cost for each row, a loss, a penalty and a bias.

    Build it with :meth:`from_arrays`, :meth:`regression` or :meth:`of_labels`; the constructor itself checks nothing.

    Examples
    --------
    >>> problem = Problem.from_arrays([[0.0], [1.0]], ["no", "yes"], C=2.0)
    >>> problem.y, problem.cost
    (array([-1.,  1.]), array([2., 2.]))
    """

    space: Space
    y: Vector
    cost: Vector
    loss: Loss
    bias: Bias
    classes: NDArray[Any]
    penalty: str = "l2"
    hard: bool = False  # C = infinity: no slack at all; cost is then 1 for rows that count
    auxiliary: bool = False  # a step on the way to another problem's solution: nobody claims anything about it

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        class_weight: dict[Any, float] | str | None = None,
        C: float = 1.0,
        loss: str | float = "squared_hinge",
        penalty: str = "l2",
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        intercept_scaling: float = 1.0,
        n_threads: int | None = None,
    ) -> Problem:
        """Two classes: check everything and build the problem; float32 and float64 C-contiguous rows are not copied."""
        C = positive_number("C", C, infinite=True)
        chosen = margin_loss(loss)
        bias = make_bias(fit_intercept, penalize_intercept, intercept_scaling)
        data = LabelledRows.from_arrays(X, y, sample_weight, class_weight, n_threads)
        if len(data.classes) > 2:
            known = ", ".join(repr(c) for c in data.classes[:4].tolist()) + (", …" if len(data.classes) > 4 else "")
            raise InputError(f"two classes are needed here, y has {len(data.classes)} ({known})")
        hard = np.inf == C
        check_penalty(penalty, chosen, hard)
        cost = costs_of(data.space, data.weight, C)
        return cls.of_labels(data, 1, cost, loss=chosen, penalty=penalty, bias=bias, hard=hard)

    @classmethod
    def of_labels(
        cls, data: LabelledRows, positive: int, cost: Vector, *, loss: Loss, penalty: str = "l2", bias: Bias,
        hard: bool = False,
    ) -> Problem:  # fmt: skip
        """One class against all others, at the costs of :func:`costs_of`."""
        signs = np.where(data.position == positive, 1.0, -1.0)
        classes = data.classes if len(data.classes) == 2 else np.array([False, True])
        return cls(data.space, signs, cost, loss, bias, classes, penalty, hard)

    @classmethod
    def regression(
        cls,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        epsilon: float = 0.0,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        intercept_scaling: float = 1.0,
        n_threads: int | None = None,
    ) -> Problem:
        """Numbers to approximate."""
        C = positive_number("C", C)
        if not isinstance(loss, str) or loss not in REGRESSION_LOSSES:
            raise InputError(f"loss must be one of {sorted(REGRESSION_LOSSES)}, got {loss!r}")
        chosen = REGRESSION_LOSSES[loss](number_in("epsilon", epsilon, 0.0, 1e100))
        bias = make_bias(fit_intercept, penalize_intercept, intercept_scaling)
        space = check_rows(X, n_threads)
        target = check_targets(y, space.n)
        cost = costs_of(space, check_weights(sample_weight, space.n), C)
        if float(np.abs(target).max()) * max(1.0, float(cost.sum())) > 1e140:
            raise InputError("the largest |y| times the total cost is too large for float64 arithmetic; scale y")
        return cls(space, target, cost, chosen, bias, np.empty(0))

    @property
    def n_rows(self) -> int:
        return self.space.n

    @property
    def n_cols(self) -> int:
        return self.space.d

    @property
    def nnz(self) -> int:
        return self.space.nnz

    @property
    def squared_norms(self) -> Vector:
        """‖x_i‖² of every row."""
        return self.space.facts.squared_norms

    @kept_property
    def sign(self) -> Vector:
        """What multiplies a row's score: its label, or 1 in a regression."""
        return self.loss.sign(self.y)

    @kept_property
    def target(self) -> Vector:
        """What sign·score is compared with."""
        return self.loss.target(self.y)

    @kept_property
    def box(self) -> DualBox:
        return self.loss.dual_box(self.cost)

    def with_costs(self, cost: Vector, *, loss: Loss | None = None) -> Problem:
        """The same rows at other costs."""
        return replace(self, cost=cost, loss=loss or self.loss, hard=False)

    def part(self, chosen: NDArray[np.intp], scale: float = 1.0) -> Problem:
        """The problem of some rows, their costs multiplied by ``scale``."""
        space, cost = self.space.take(chosen), scale * self.cost[chosen]
        return replace(self, space=space, y=self.y[chosen], cost=cost, auxiliary=True)

    @kept_property
    def null_primal(self) -> float:
        """P₀: the objective at w = 0 with the best constant bias; in a regression without the tube."""
        zero, loss = np.zeros(self.n_rows), self.loss
        if self.loss.name in REGRESSION_LOSSES:  # a tube around all rows would leave no scale to compare with
            loss = REGRESSION_LOSSES[self.loss.name](0.0)
        b = sum(loss.best_bias(zero, self.y, self.cost)) / 2.0 if self.bias.free else 0.0
        return float(self.cost @ loss.value(zero + b, self.y))

    def relative_gap(self, primal: float, dual: float) -> float:
        """The one relative gap; the objective at w = 0 is only asked for where it may count."""
        if self.hard:  # w = 0 is not feasible
            return relative_gap(primal, dual, 0.0)
        if not self.loss.regression:
            # With b = 0 all rows have the same loss: the best constant bias leaves no more than that.
            at_most = self.total_cost * float(self.loss.of_residual(self.target[:1])[0])
            if max(abs(primal), abs(dual)) > MATTERS * at_most:
                return relative_gap(primal, dual, 0.0)
        return relative_gap(primal, dual, self.null_primal)

    @kept_property
    def total_cost(self) -> float:
        """Σ cost_i."""
        return float(self.cost.sum())

    def objective(self, penalty: float, scores: Vector, b: float) -> float:
        """Primal value, given R(w) and the scores ⟨w, x_i⟩ + b."""
        of_bias = 0.5 * (b / self.bias.value) ** 2 if self.bias.penalised else 0.0
        return penalty + of_bias + float(self.cost @ self.loss.value(scores, self.y))


def costs_of(space: Space, weight: Vector, C: float) -> Vector:
    """C times the weights, checked; without slack, C = infinity, 1 for every row that counts."""
    with np.errstate(over="ignore"):
        cost = (weight > 0.0).astype(np.float64) if np.inf == C else C * weight
    check_costs(cost)
    check_sizes(space, cost)
    return cost


def margin_loss(loss: Any) -> Loss:
    """A loss of classification by name, or by the slack's power."""
    if isinstance(loss, str):
        if loss in LOSSES:
            return LOSSES[loss]
    elif isinstance(loss, int | float | np.floating | np.integer) and not isinstance(loss, bool) and 1.0 <= loss <= 4.0:
        return slack_power(float(loss))
    raise InputError(f"loss must be one of {sorted(LOSSES)} or a number from 1 to 4, the slack's power; got {loss!r}")


def make_bias(fit_intercept: Any, penalize_intercept: Any, intercept_scaling: Any) -> Bias:
    """The bias, checked."""
    for name, flag in (("fit_intercept", fit_intercept), ("penalize_intercept", penalize_intercept)):
        if not isinstance(flag, bool | np.bool_ | int):
            raise InputError(f"{name} must be True or False, got {flag!r}")
    scale = positive_number("intercept_scaling", intercept_scaling) if penalize_intercept else 1.0
    if not 1e-50 < scale < 1e50:
        raise InputError(f"intercept_scaling must lie between 1e-50 and 1e50, got {intercept_scaling!r}")
    return Bias(scale if fit_intercept else 0.0, bool(penalize_intercept and fit_intercept))


def check_penalty(penalty: Any, loss: Loss, hard: bool) -> None:
    """ℓ1 goes with the squared hinge and the logistic loss; the hard margin with ℓ2 only."""
    if penalty not in ("l1", "l2"):
        raise InputError(f"penalty must be 'l1' or 'l2', got {penalty!r}")
    if penalty == "l1" and loss.name not in ("squared_hinge", "logistic"):
        raise InputError(f"penalty='l1' goes with loss 'squared_hinge' or 'logistic', not with {loss.name!r}")
    if hard and (penalty == "l1" or loss.name == "logistic"):
        raise InputError("C=inf means the hard margin, which has penalty 'l2' and no logistic loss")

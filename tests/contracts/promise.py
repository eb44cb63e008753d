"""What every machine promises on every problem, checked with answers that share no code with it."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import ConvergenceWarning, LinearSVC, LinearSVR, LogisticRegression, Status
from maxmargin.certificates import Outcome as Proof
from tests.oracles import Form
from tests.problems import Case, make_case, make_classes, make_regression

GAP = 1e-6


@dataclass(frozen=True)
class Machine:
    """A machine, the problems it is tried on, and the same problem as the oracle writes it."""

    name: str
    estimator: type
    options: dict[str, Any]
    form: Form
    problems: Callable[[int], Case] = make_case
    scheme: str = "one"  # "ovr" and "ovo": several two-class problems; else one
    tube: bool = False  # epsilon comes from the case

    def fit(self, case: Case, **options: Any) -> Any:
        tube = {"epsilon": case.epsilon} if self.tube else {}
        machine = self.estimator(**{"C": case.C, **tube, **self.options, **options})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return machine.fit(case.X, case.y, case.sample_weight)

    def oracle(self, case: Case) -> Form:
        return Form(self.form.loss, self.form.power, case.epsilon if self.tube else 0.0, self.form.penalty)

    def parts(self, case: Case) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """Rows, labels and costs of every problem that the machine is made of."""
        X, y, cost = case.X, case.y, case.cost
        if self.scheme == "ovr":
            for k in range(int(y.max()) + 1):
                yield X, np.where(y == k, 1, -1), cost
        elif self.scheme == "ovo":
            for first, second in itertools.combinations(range(int(y.max()) + 1), 2):
                rows = np.flatnonzero((y == first) | (y == second))
                yield X[rows], np.where(y[rows] == second, 1, -1), cost[rows]
        else:
            yield X, y, cost

    def __str__(self) -> str:
        return self.name


def _classifiers() -> Iterator[Machine]:
    for loss in ("hinge", "squared_hinge", 1.3, 1.7, 3.0, 4.0):
        power = {"hinge": 1.0, "squared_hinge": 2.0}.get(loss, loss)
        yield Machine(f"svc-{loss}", LinearSVC, {"loss": loss}, Form("slack", power))
    yield Machine("svc-l1", LinearSVC, {"penalty": "l1"}, Form("slack", 2.0, penalty="l1"))
    for penalty in ("l2", "l1"):
        form = Form("logistic", penalty=penalty)
        yield Machine(f"logistic-{penalty}", LogisticRegression, {"penalty": penalty}, form)


def _regressions() -> Iterator[Machine]:
    for loss, power in (("epsilon_insensitive", 1.0), ("squared_epsilon_insensitive", 2.0)):
        for tube in (False, True):
            name = f"svr-{power:.0f}-{'tube' if tube else 'no-tube'}"
            yield Machine(name, LinearSVR, {"loss": loss}, Form("error", power), make_regression, tube=tube)


def _several_classes() -> Iterator[Machine]:
    for machine in _classifiers():
        schemes = ("ovr",) if machine.name in ("svc-1.7", "svc-4.0") else ("ovr", "ovo")
        for scheme in schemes:
            options = {**machine.options, "multi_class": scheme}
            yield Machine(f"{machine}-{scheme}", machine.estimator, options, machine.form, make_classes, scheme)
    for estimator, scheme in ((LinearSVC, "crammer_singer"), (LogisticRegression, "multinomial")):
        yield Machine(scheme, estimator, {"multi_class": scheme}, Form(scheme), make_classes)


CLASSIFIERS = list(_classifiers())
REGRESSIONS = list(_regressions())
SEVERAL_CLASSES = list(_several_classes())


@dataclass(frozen=True)
class Outcome:
    """What became of one case: ``broken`` names the promise that does not hold."""

    case: Case
    status: str
    gap: float
    broken: str = ""
    compared: bool = False  # with an oracle that converged

    @property
    def limited(self) -> bool:
        return self.status == Status.NUMERICAL_LIMIT.name

    def __str__(self) -> str:
        return f"{self.case}: {self.status}, gap {self.gap:.1e}: {self.broken or 'fine'}"


def examine(machine: Machine, case: Case, **options: Any) -> Outcome:
    """A verified proof; then the optimum, as the oracle has it, or an honest NUMERICAL_LIMIT where scales differ."""
    try:
        fitted = machine.fit(case, **options)
    except Exception as error:  # listed with the others, so that one run shows all
        return Outcome(case, type(error).__name__, np.nan, str(error))
    status = fitted.solution_.status
    verdict = fitted.certificate_.verify(case.X, case.y, case.sample_weight)
    gap = verdict.gap
    if verdict.outcome is Proof.REJECTED or (status is Status.CONVERGED and not verdict):
        return Outcome(case, status.name, gap, str(verdict))
    if status is Status.NUMERICAL_LIMIT:
        return Outcome(case, status.name, gap, "" if case.scale_case else "limit on a problem of ordinary scale")
    if status is not Status.CONVERGED or not gap <= GAP:
        return Outcome(case, status.name, gap, "not converged")
    if options.get("penalize_intercept"):
        return Outcome(case, status.name, gap)
    broken, compared = compare(machine, case, fitted, bias=options.get("fit_intercept", True))
    return Outcome(case, status.name, gap, broken, compared)


def keep(outcomes: list[Outcome], most_limited: float = 0.02) -> None:
    """The promise: nothing broken, few limits, and an oracle that has been there most of the time."""
    broken = [str(outcome) for outcome in outcomes if outcome.broken]
    assert not broken, f"{len(broken)} of {len(outcomes)}:\n" + "\n".join(broken)
    limited = [str(outcome) for outcome in outcomes if outcome.limited]
    few = max(1, most_limited * len(outcomes))
    assert len(limited) <= few, f"{len(limited)} of {len(outcomes)}:\n" + "\n".join(limited)


def compare(machine: Machine, case: Case, fitted: Any, *, bias: bool = True) -> tuple[str, bool]:
    """The objectives beside the oracle's: what is wrong, and whether the oracle converged everywhere."""
    form, solution = machine.oracle(case), fitted.solution_
    solutions = list(solution) if machine.scheme in ("ovr", "ovo") else [solution]
    all_reliable = True
    for k, (part, (X, y, cost)) in enumerate(zip(solutions, machine.parts(case), strict=True)):
        W, b = np.atleast_2d(fitted.coef_), fitted.intercept_
        if not form.joint:
            W, b = W[k : k + 1], b[k : k + 1]
        own, smallest = form.objective(X, y, cost, W, b), 1e-10 * form.at_zero(X, y, cost)
        best = form.solve(X, y, cost, bias=bias)
        size = max(abs(own), smallest)
        if not abs(own - part.primal) <= GAP * size + 1e-13 * case.epsilon * cost.sum():  # rows on the tube's border
            return f"machine {k} claims {part.primal:.12g}, its weights have {own:.12g}", False
        # The oracle's weights are some weights, converged or not: nothing may beat the machine, nor its bound.
        if not own <= best.value + GAP * size:
            return f"machine {k} has {own:.12g}, the oracle's weights {best.value:.12g}", False
        if not part.dual <= best.value + 1e-9 * size:
            return f"machine {k} bounds by {part.dual:.12g}, the oracle's weights have {best.value:.12g}", False
        reliable = best.reliable(smallest)
        if reliable and not abs(own - best.value) <= GAP * size:
            return f"machine {k} has {own:.12g}, the oracle {best.value:.12g}", False
        all_reliable &= reliable
    return "", all_reliable

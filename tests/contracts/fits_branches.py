"""Which branches of the solvers the recorded fits enter: their doors are watched while the fits run.

Whoever redesigns a solver renames the doors here; a branch that is gone takes its line with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp

from maxmargin import _core, online
from maxmargin.kept import Kept
from maxmargin.online.base import OnlineMachine
from maxmargin.problem import Problem
from maxmargin.selection import path
from maxmargin.solution import Status
from maxmargin.solvers import (
    choice,
    chord,
    dual_cd,
    hard_margin,
    interior_point,
    joint,
    joint_point,
    joint_second_order,
    multipliers,
    newton,
    proximal,
    span,
)
from maxmargin.space import Rows
from maxmargin.space import systems as newton_system
from maxmargin.squares import centred, ridge, systems
from maxmargin.svm import classifier

Names = str | list[str]
Look = Callable[..., Names]  # (what it returned, *arguments) -> names of branches entered; "" for none
NOT_MACHINES = {"ThresholdUnit", "Trace", "alternating_projections", "gate", "truth_table"}
# Words in the reason for an automatic choice, each of one rule.
REASONS = (
    "the solver for penalty",
    "scales differ",
    "orthogonal",
    "is smooth",
    "fewer rows",
    "sample",
    "so small",
    "steps",
)


def always(name: str) -> Look:
    return lambda *_, **__: name


def when(name: str, test: Callable[..., bool]) -> Look:
    return lambda *given, **options: name if test(*given, **options) else ""


def system(name: str) -> Look:
    """A linear system, and how its last unknown is held."""

    def look(out: Any, self: Any, rows: Any, D: Any, bias: Any, *_: Any, **__: Any) -> str:
        return f"{name}, {'free bias' if bias.free else 'penalised bias' if bias.penalised else 'no bias'}"

    return look


def _mended(out: Any, self: Any, D: Any, how: Any, add_to: Any = None, **_: Any) -> str:
    return "" if add_to is None else "normal matrix mended"


def _one_class(out: Any, self: Any) -> str:
    sampled = self.settings.sampling and newton.worth_sampling(self.problem)
    return "sample of one class" if sampled and self.run.best is None else ""


def _polished(out: bool, *_: Any) -> str:
    return "interior point polished" if out else "interior point polished in vain"


def _descent(out: Any, *_: Any, workers: int, entropy: bool, **__: Any) -> Names:
    return ["two workers" if workers == 2 else "one worker", *(["entropic descent"] if entropy else [])]


def _left(out: Any, *_: Any, compete: bool = True, **__: Any) -> str:
    return "" if compete else "left the span with its own weights"


def _chosen(out: tuple[str, str], *_: Any) -> str:
    return f"chosen: {next(word for word in REASONS if word in out[1])}"


def _curve(out: Any, self: Any, *_: Any) -> str:
    return f"curve {type(out).__name__} for {self.problem.loss.name}"


def _kept_rows(rows: Any) -> str:
    return "sparse" if sp.issparse(rows) else "dense"


def _joint_direction(out: Any, self: Any, curve: Any, *_: Any) -> str:
    return f"joint {'matrix' if self.direct else 'conjugate gradients'}, {type(curve).__name__.strip('_').lower()}"


# (owner, attribute, what its calls say)
DOORS: list[tuple[Any, str, Look]] = [
    (newton_system.GramSystem, "__init__", system("Gram matrix")),
    (newton_system.NormalSystem, "__init__", system("normal matrix")),
    (newton_system.ConjugateGradients, "__init__", system("conjugate gradients")),
    (newton_system.NormalCache, "_form", _mended),
    (newton_system.NormalCache, "forget", always("normal matrix broke down")),
    (multipliers, "newton_system", when("no system small enough", lambda out, *_, **__: out is None)),
    (multipliers, "_thinned", when("thinned curvatures", lambda out, D, *_: out is not D)),
    (multipliers.MethodOfMultipliers, "_choose",
     lambda out, *_: "all rows" if isinstance(out.chosen, slice) else "working set of rows"),
    (multipliers.MethodOfMultipliers, "_curve", _curve),
    (multipliers.MethodOfMultipliers, "_line_search", when("short step", lambda out, *_: out < 1.0)),
    (Rows, "_square", always("squared rows")),
    (newton, "sample_rows", always("sample of the rows")),
    (newton, "centred", lambda out, problem, *_: f"centred, {problem.loss.name}"),
    (newton, "first_sigma", when("first sigma from residuals", lambda out, *_: out is not None)),
    (newton, "from_nothing", always("Newton from nothing")),
    (newton._Newton, "_from_sample", _one_class),
    (span.Span, "__init__", lambda out, self, problem, *_: f"span of {_kept_rows(problem.space.X)} rows"),
    (span.Span, "enter", lambda out, self, start: "" if start is None else f"span entered with {type(start).__name__}"),
    (span, "recover", _left),
    (span, "MethodOfMultipliers", always("polished outside the span")),
    (dual_cd._Descent, "_begin", lambda out, self, *_: "" if self.moving is None else "screened rows"),
    (dual_cd._Descent, "_polish", lambda out, *_: "descent polished" if out else "descent polished in vain"),
    (dual_cd._Descent, "_loop", when("nearly orthogonal rows", lambda out, self: self.orthogonal)),
    (_core, "Descent", _descent),
    (interior_point._Iterate, "__init__", lambda out, self, problem, *_: f"interior point, {problem.loss.name}"),
    (interior_point._Iterate, "centre_at", lambda out, self, *_: f"warm interior point, {self.problem.loss.name}"),
    (interior_point._Iterate, "duplicate_direction", always("centrality correction")),
    (interior_point._InteriorPoint, "_polish", _polished),
    (interior_point._InteriorPoint, "_loop", lambda out, *_: f"interior point {out.name}"),
    (hard_margin, "separating", lambda out, *_: "soft margin separates" if out else "soft margin does not separate"),
    (classifier, "judge_separability", always("proof of inseparability")),
    (choice, "choose", _chosen),
    (choice.Relay, "solve", when("another solver took over", lambda out, *_, **__: "took over" in out.reason)),
    (proximal._Proximal, "_working_set",
     lambda out, *_: "all columns" if isinstance(out, slice) else "working set of columns"),
    (proximal._Proximal, "_columns",
     lambda out, self, chosen: "" if isinstance(chosen, slice) else f"{_kept_rows(out.X)} columns taken"),
    (proximal._Proximal, "_from_sample", always("l1 sample")),
    (proximal._Proximal, "_along_the_path", when("l1 path of costs", lambda out, self: self.run.n_iter > 0)),
    (proximal._Proximal, "_move_to", always("l1 start")),
    (proximal._Proximal, "_step_length", when("l1 short step", lambda out, *_: out < 1.0)),
    (proximal, "_towards_the_exact_solution",
     when("l1 signs change on the way", lambda out, *_: out is not None and not out[1])),
    (joint._Joint, "_descent", always("joint descent")),
    (joint._Joint, "_newton", lambda out, self: f"joint Newton, {self.problem.loss}"),
    (joint._Joint, "solve", when("joint start", lambda out, self, start: start is not None)),
    (joint, "_in_units_of", always("joint rows in other units")),
    (joint_second_order.JointSecondOrder, "_direction", _joint_direction),
    (joint_point, "_largest_circulation", always("largest circulation")),
    (classifier, "split", lambda out, data, scheme, **__: f"split {scheme if len(out) > 1 else 'two classes'}"),
    (chord.Chord, "solve", lambda out, *_: "chord" if out else "chord gave up"),
    (chord.Chord, "_form_matrix", always("chord formed its matrix")),
    (path, "Newton", always("Newton from the neighbour")),
    (path, "shifted", lambda out, problem, *_: f"shifted, {problem.loss.name}"),
    (path, "gap_between", always("gap between two values of C")),
    (Problem, "part", always("part of a problem")),
    (Rows, "take", lambda out, self, *_: f"{_kept_rows(self.X)} rows taken"),
    (Problem, "with_costs", always("other costs")),
    (Rows, "scores_of_all", lambda out, self, *_: f"joint {_kept_rows(self.X)} rows"),
    (ridge, "primal_weights", always("ridge by columns")),
    (ridge, "dual_weights", always("ridge by rows")),
    (systems, "_by_singular_values", always("singular values")),
    (systems, "_by_eigenvalues", always("eigenvalues")),
    (centred.SparseRows, "column_products", always("sparse column products")),
    (centred.SparseRows, "row_products", always("sparse row products")),
    (OnlineMachine, "_check_passes", lambda out, self: f"rule {type(self).__name__}"),
]  # fmt: skip

LOSSES = ("hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive")
EXPECTED = {
    *(f"{matrix}, {bias}" for matrix in ("Gram matrix", "normal matrix", "conjugate gradients")
      for bias in ("free bias", "penalised bias", "no bias")),
    "Gram matrix extended", "Gram matrix known", "normal matrix mended", "normal matrix broke down",
    "no system small enough", "thinned curvatures", "all rows", "working set of rows", "short step", "squared rows",
    *(f"curve Piecewise for {loss}" for loss in LOSSES),
    "curve Smooth for logistic", "curve Smooth for slack_power", "curve LowPower for slack_power",
    "sample of the rows", "sample of one class", "centred, hinge", "centred, epsilon_insensitive",
    "first sigma from residuals", "Newton from nothing",
    "span of dense rows", "span of sparse rows", "span entered with Solution", "span entered with ndarray",
    "span known already", "left the span with its own weights", "polished outside the span",
    "screened rows", "descent polished", "descent polished in vain", "nearly orthogonal rows",
    "one worker", "two workers", "entropic descent",
    *(f"interior point, {loss}" for loss in LOSSES), "warm interior point, hinge", "warm interior point, squared_hinge",
    "warm interior point, epsilon_insensitive",
    "centrality correction", "interior point polished", "interior point polished in vain",
    *(f"interior point {status.name}" for status in (Status.CONVERGED, Status.ITERATION_LIMIT, Status.NUMERICAL_LIMIT)),
    "soft margin separates", "soft margin does not separate", "proof of inseparability",
    *(f"chosen: {word}" for word in REASONS), "another solver took over",
    "all columns", "working set of columns", "dense columns taken", "sparse columns taken", "l1 sample",
    "l1 path of costs", "l1 start", "l1 short step", "l1 signs change on the way",
    "joint descent", "joint Newton, crammer_singer", "joint Newton, multinomial", "joint start",
    "joint rows in other units", "joint matrix, hinge", "joint matrix, multinomial",
    "joint conjugate gradients, hinge", "joint conjugate gradients, multinomial", "largest circulation",
    "joint dense rows", "joint sparse rows", "split two classes", "split ovr", "split ovo",
    "chord", "chord gave up", "chord formed its matrix", "Newton from the neighbour",
    *(f"shifted, {loss}" for loss in ("hinge", "squared_hinge", "slack_power")), "gap between two values of C",
    "part of a problem", "dense rows taken", "sparse rows taken", "other costs",
    "ridge by columns", "ridge by rows", "singular values", "eigenvalues", "sparse column products",
    "sparse row products",
    *(f"rule {name}" for name in online.__all__ if name not in NOT_MACHINES),
}  # fmt: skip


class Branches:
    """Who entered which branch: ``entered["working set of rows"]`` are names of fits."""

    def __init__(self) -> None:
        self.entered: dict[str, set[str]] = defaultdict(set)
        self.fit = ""

    def mark(self, names: Names) -> None:
        for name in [names] if isinstance(names, str) else names:
            if name:
                self.entered[name].add(self.fit)

    def door(self, call: Any, look: Look) -> Callable[..., Any]:
        def watched(*given: Any, **options: Any) -> Any:
            out = call(*given, **options)
            self.mark(look(out, *given, **options))
            return out

        return watched

    def gram_door(self, call: Any) -> Callable[..., Any]:
        """What a Gram matrix is made of can only be told from what was known before."""

        def watched(cache: Any, *given: Any) -> Any:
            known = cache.known
            out = call(cache, *given)
            if cache.known is known:
                self.mark("Gram matrix known")
            elif 0 < len(known) < len(cache.known) and np.array_equal(cache.known[: len(known)], known):
                self.mark("Gram matrix extended")
            return out

        return watched

    def kept_door(self, call: Any) -> Callable[..., Any]:
        def watched(kept: Any, compute: Any) -> Any:
            computed = []
            out = call(kept, lambda: computed.append(1) or compute())
            self.mark("" if computed else "span known already")
            return out

        return watched


@contextmanager
def watched() -> Iterator[Branches]:
    """Every door is watched inside."""
    branches = Branches()
    with ExitStack() as stack:
        for owner, attribute, look in DOORS:
            patched = branches.door(getattr(owner, attribute), look)
            stack.enter_context(mock.patch.object(owner, attribute, patched))
        gram = branches.gram_door(newton_system.GramCache.gram)
        stack.enter_context(mock.patch.object(newton_system.GramCache, "gram", gram))
        stack.enter_context(mock.patch.object(Kept, "get", branches.kept_door(Kept.get)))
        yield branches

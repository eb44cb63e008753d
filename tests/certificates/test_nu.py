"""Proofs of machines with a share ν: margins, tubes, thresholds and balls."""

import math
from dataclasses import replace

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import Problem
from maxmargin.certificates import CombinedCertificate, NuCertificate, Outcome
from maxmargin.certificates.kernel_rounding import RowSizes, value_off
from maxmargin.certificates.kernel_structure import definite
from maxmargin.certificates.nu import KINDS, nu_claim, nu_level, nu_terms
from maxmargin.solution import relative_gap
from maxmargin.solvers.claims import exactly_balanced
from tests.certificates.expansions import (
    STRUCTURES,
    exact_scores,
    exact_value,
    hostile,
    other_values,
    scaled_to,
    spread_of,
)
from tests.exact.objectives import Ball, at_least, at_most, rational, vector

RBF = ("rbf", 0.1)


class NuMachine:
    """A problem and a kernel, with multipliers as a solver may leave them."""

    def __init__(self, kind, X, y, structure, cost, nu, seed=0):
        self.kind, self.X, self.y, self.structure, self.cost, self.nu = kind, X, y, structure, cost, nu
        self.seed, self.n, self.tube = seed, len(X), kind == "nu_tube"
        self.sign = np.where(y == np.unique(y)[-1], 1.0, -1.0) if kind == "nu_hinge" else np.ones(self.n)
        self.alpha, self.b, self.size = np.zeros(self.n), 0.0, 0.0
        self.origin = X[np.random.default_rng(seed).integers(0, self.n)]

    @property
    def given(self):
        return {"nu_hinge": self.sign, "nu_tube": self.y}.get(self.kind)

    def balance(self, alpha):
        if not KINDS[self.kind].bias:
            return alpha
        column = np.zeros((self.n, 1))
        if self.tube:
            problem = Problem.regression(
                column, self.y, epsilon=0.0, sample_weight=self.cost, loss="epsilon_insensitive"
            )
        else:
            problem = Problem.from_arrays(column, self.y, sample_weight=self.cost, loss="hinge")
        return exactly_balanced(problem, alpha)[0]

    def random(self):
        """Any multipliers with a share that they reach."""
        rng = np.random.default_rng(self.seed + 1)
        alpha = self.cost * np.clip(rng.uniform(-0.5, 1.5, self.n), 0.0, 1.0)
        if self.tube:
            signs = np.where(np.arange(self.n) % 2, 1.0, -1.0)
            alpha = np.minimum(alpha, 0.5 * self.cost.max()) * signs
            alpha[np.argmax(np.abs(alpha))] -= alpha.sum()
            alpha = np.clip(alpha, -self.cost, self.cost)
            alpha = np.where(abs(alpha.sum()) < 1e-9, alpha, 0.0)
        if self.kind == "nu_hinge":
            sums = [alpha[self.sign == s].sum() for s in (1.0, -1.0)]
            alpha = alpha * np.where(self.sign > 0, min(1.0, sums[1] / sums[0]), min(1.0, sums[0] / sums[1]))
        self.alpha = self.balance(alpha)
        share = float(np.abs(self.alpha).sum() / self.cost.sum())
        self.nu = min(1.0, max(1e-6, share * (1.2 if self.tube else 0.8)))
        self.b = float(rng.standard_normal()) if KINDS[self.kind].bias else 0.0
        self.size = float(abs(rng.standard_normal()))
        return self

    def kernel(self):
        return other_values(self.structure, self.X, np.arange(self.n), np.random.default_rng(self.seed), self.origin)

    def own(self):
        """k(x, x), which a solver knows as well as anything."""
        values = np.diag(self.kernel()).copy()
        squares = (self.X**2).sum(axis=1)
        return values, value_off(self.structure, RowSizes(self.X.shape[1], squares, squares), values)

    def solve(self):
        """By Clarabel: the multipliers of the sums are b and ρ, or ε."""
        n, level = self.n, nu_level(self.kind, self.cost, self.nu)
        signs = np.concatenate([self.sign, -self.sign]) if self.tube else self.sign
        m, K = len(signs), np.tile(self.kernel(), (2, 2)) if self.tube else self.kernel()
        gain = np.zeros(m)
        if self.tube:
            gain = signs * np.tile(self.y, 2)
        if self.kind == "ball":
            gain = 0.5 * level * self.own()[0]
        side = 1.0 if self.tube else -1.0
        lines = [side * np.ones(m), *np.eye(m), *-np.eye(m)]
        right = np.concatenate([[side * level * (1.0 - side * 1e-9)], np.tile(self.cost, m // n), np.zeros(m)])
        cones = [clarabel.NonnegativeConeT(1 + 2 * m)]
        if KINDS[self.kind].bias:
            lines, right, cones = [signs, *lines], np.r_[0.0, right], [clarabel.ZeroConeT(1), *cones]
        if KINDS[self.kind].free:
            cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * m)]
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-12
        P = sp.csc_matrix(np.triu(K * np.outer(signs, signs)))
        found = clarabel.DefaultSolver(P, -gain, sp.csc_matrix(np.array(lines)), right, cones, settings).solve()
        x = np.clip(found.x, 0.0, np.tile(self.cost, m // n))
        self.alpha = self.balance(x[:n] - x[n:] if self.tube else x)
        self.b = float(found.z[0]) if KINDS[self.kind].bias else 0.0
        self.size = float(found.z[1 if KINDS[self.kind].bias else 0])
        return self

    def certificate(self, tol=1e-6):
        a = self.sign * self.alpha
        rows = np.random.default_rng(self.seed).permutation(np.flatnonzero(a))
        K = other_values(self.structure, self.X, rows, np.random.default_rng(self.seed), self.origin)
        squares, centred = (self.X**2).sum(axis=1), ((self.X - self.origin) ** 2).sum(axis=1)
        sizes = RowSizes(self.X.shape[1], squares, float(squares[rows].max(initial=0.0)), centred)
        terms = nu_terms(self.kind, self.cost, self.nu, self.size, self.given)
        own = dict(zip(("own", "own_off"), self.own(), strict=True)) if self.kind == "ball" else {}
        proves = definite(self.structure) is not False
        primal, dual = nu_claim(
            terms, self.structure, self.alpha, self.b, K @ a[rows], np.abs(K) @ np.abs(a[rows]), sizes,
            definite=proves, **own,
        )  # fmt: skip
        return NuCertificate(
            kind=self.kind, kernel=self.structure, alpha=self.alpha, intercept=self.b, nu=self.nu,
            rho=0.0 if self.tube else self.size, epsilon=self.size if self.tube else 0.0, primal=primal, dual=dual,
            gap=relative_gap(primal, dual, 0.0) if proves else math.nan, tol=tol,
            classes=np.unique(self.y) if self.kind == "nu_hinge" else None,
        )  # fmt: skip

    def exact(self):
        """P and D without rounding."""
        f, alpha, cost = (
            exact_scores(self.structure, self.X, self.sign * self.alpha),
            vector(self.alpha),
            vector(self.cost),
        )
        b, size, level = rational(self.b), rational(self.size), rational(nu_level(self.kind, self.cost, self.nu))
        square = sum((Ball(a * rational(s)) * v for a, s, v in zip(alpha, self.sign, f, strict=True)), Ball(0))
        primal, gain = square / 2 + Ball(level * size) * (1 if self.tube else -1), Ball(0)
        for i, value in enumerate(f):
            lift = Ball(0)
            if self.kind == "ball":
                x = vector(self.X[i])
                lift = Ball(level / 2) * exact_value(self.structure, x, x)
            residual = Ball(size) + lift - Ball(rational(self.sign[i])) * (value + Ball(b))
            if self.tube:
                residual = abs(Ball(rational(self.y[i])) - value - Ball(b)) - Ball(size)
            primal += Ball(cost[i]) * residual if residual > 0 else Ball(0)
            gain += Ball(alpha[i]) * (Ball(rational(self.y[i])) if self.tube else lift)
        if self.kind == "ball":
            gain *= Ball(level) / Ball(sum(alpha))
        return primal, gain - square / 2


def problem(seed, kind, most=40):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, most)), int(rng.integers(1, 16))
    X, structure = hostile(rng, n, d), STRUCTURES[rng.integers(len(STRUCTURES))]
    y = rng.standard_normal(n) * 10.0 ** rng.uniform(-2, 2) if kind == "nu_tube" else np.arange(n) % 2
    cost = rng.choice([0.5, 1.0, 2.0], n) if rng.random() < 0.4 else np.ones(n)
    return NuMachine(kind, X, y, scaled_to(structure, spread_of(X)), cost, 0.5, seed)


def ordinary(kind, structure=RBF, nu=0.3, n=40):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 9))
    score = X[:, 0] + 0.5 * rng.standard_normal(n)
    y = score if kind == "nu_tube" else (score > np.median(score)).astype(int)
    return NuMachine(kind, X, y, structure, rng.choice([1.0, 2.0], n), nu)


def refused(claim, machine, worst=None, X=None, y=None, weight=None):
    verdict = claim.verify(
        machine.X if X is None else X, machine.y if y is None else y, machine.cost if weight is None else weight
    )
    assert verdict.outcome is Outcome.REJECTED, str(verdict)
    assert worst is None or verdict.worst == worst, str(verdict)


@pytest.mark.parametrize("kind", KINDS)
def test_claims_from_another_arithmetic_are_confirmed_and_true(kind):
    ends = []
    for seed in range(120):
        machine = problem(seed, kind, most=12 if seed % 3 else 40).random()
        claim = machine.certificate()
        verdict = claim.verify(sp.csr_array(machine.X) if seed % 2 else machine.X, machine.y, machine.cost)
        assert verdict.outcome is Outcome.HONEST, f"{seed}: {verdict}"
        ends.append(bool(machine.alpha.any()))
        if machine.n < 12:
            primal, dual = machine.exact()
            assert at_least(claim.primal, primal)
            assert at_most(claim.dual, dual)
    assert sum(ends) > 90


@pytest.mark.parametrize("structure", [RBF, ("poly", 0.1, 1.0, 2), ("laplacian", 0.1)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_multipliers_are_proven(kind, structure):
    machine = ordinary(kind, structure).solve()
    claim = machine.certificate()
    verdict = claim.verify(machine.X, machine.y, machine.cost)
    assert verdict, str(verdict)
    assert machine.size > 0.0 or kind == "ball"
    assert "nu=0.3" in repr(claim)
    for other in (0.25, 0.35):
        refused(replace(claim, nu=other), machine)
    if kind in ("one_class", "ball"):
        assert claim.verify(machine.X, sample_weight=machine.cost)
    if kind == "ball":  # the ball that is meant
        level, K = nu_level(kind, machine.cost, 0.3), machine.kernel()
        beta = machine.alpha / level
        apart = np.diag(K) - 2.0 * K @ beta + beta @ K @ beta
        square = beta @ K @ beta - 2.0 * machine.size / level
        value = square + machine.cost @ np.maximum(0.0, apart - square) / level
        assert value * 0.5 * level**2 == pytest.approx(claim.primal, rel=1e-9)


@pytest.mark.parametrize("by", [1.0 + 1e-3, 1.0 - 1e-3])
@pytest.mark.parametrize("part", ["primal", "dual", "alpha", "nu", "C", "size", "intercept"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_altered_number_is_refused(kind, part, by):
    machine = ordinary(kind).solve()
    claim = machine.certificate()
    assert claim.verify(machine.X, machine.y, machine.cost)
    if part == "intercept" and not KINDS[kind].bias:
        refused(replace(claim, intercept=1e-3), machine, "intercept")
        return
    name = ("epsilon" if kind == "nu_tube" else "rho") if part == "size" else part
    refused(replace(claim, **{name: getattr(claim, name) * by}), machine)


@pytest.mark.parametrize("kind", KINDS)
def test_multipliers_and_data_that_are_not_what_they_should_be(kind):
    machine = ordinary(kind).solve()
    claim = machine.certificate()
    largest = int(np.argmax(np.abs(claim.alpha)))
    for away in (3.0, -3.0):
        alpha = claim.alpha.copy()
        alpha[largest] = away
        refused(replace(claim, alpha=alpha), machine, "feasibility")
    if KINDS[kind].bias:
        alpha = claim.alpha.copy()
        inside = int(np.argmin(np.abs(np.abs(alpha) - 0.5 * machine.cost)))
        alpha[inside] = np.nextafter(alpha[inside], 0.0)
        refused(replace(claim, alpha=alpha), machine, "balance")
    beyond = 2.0 * claim.alpha if kind == "nu_tube" else (1.0 - 1e-7) * claim.alpha
    assert refused_for(replace(claim, alpha=beyond), machine) & {"level", "balance", "feasibility"}
    refused(claim, machine, X=machine.X * 1.001)
    refused(claim, machine, weight=machine.cost[::-1])
    refused(claim, machine, "shape", X=machine.X[:-1])
    refused(replace(claim, kernel=("rbf", 0.1001)), machine)
    refused(replace(claim, kernel=("rbf", -1.0)), machine, "kernel")
    if KINDS[kind].labels != "none":
        refused(claim, machine, y=machine.y[::-1])
    for name in ("primal", "dual", "gap", "nu", "rho", "epsilon", "intercept"):
        verdict = replace(claim, **{name: math.nan}).verify(machine.X, machine.y, machine.cost)
        assert verdict.outcome is Outcome.REJECTED
    broken = machine.X.copy()
    broken[0, 0] = np.nan
    refused(claim, machine, "finite", X=broken)


def refused_for(claim, machine):
    verdict = claim.verify(machine.X, machine.y, machine.cost)
    assert verdict.outcome is Outcome.REJECTED
    return {name for name, wrong in verdict.checks.items() if wrong}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_problem_at_all(kind):
    machine = ordinary(kind).solve()
    claim = machine.certificate()
    for altered in (
        {"kind": "nu_ball"}, {"kind": None}, {"nu": 0.0}, {"nu": 1.5}, {"C": 0.0}, {"C": math.inf}, {"penalty": "l1"},
        {"penalty_scale": 1.0}, {"fit_intercept": False}, {"class_weight": "nonsense"},
    ):  # fmt: skip
        refused(replace(claim, **altered), machine, "loss")
    refused(replace(claim, classes=None if kind == "nu_hinge" else np.array([0, 1])), machine, "loss")
    if not KINDS[kind].free:
        refused(replace(claim, **{"epsilon" if kind == "nu_tube" else "rho": -0.1}), machine, "loss")
    refused(claim, machine, "weights", weight=-machine.cost)
    refused(claim, machine, "shape", weight=machine.cost[:-1])


@pytest.mark.parametrize("kind", ["one_class", "ball"])
def test_multipliers_that_sum_up_to_more_are_counted_for_what_they_prove(kind):
    """Divided by what is too much they are feasible, and the bound that is claimed holds for them."""
    machine = ordinary(kind).solve()
    machine.alpha = np.minimum(machine.cost, 1.2 * machine.alpha)
    claim = machine.certificate()
    assert claim.verify(machine.X, machine.y, machine.cost).outcome is Outcome.HONEST
    dual = machine.exact()[1]
    assert at_most(claim.dual, dual)
    assert at_least(claim.dual + 1e-9 * abs(claim.dual), dual)
    best = ordinary(kind).solve().certificate()
    assert claim.dual < best.primal


def test_the_largest_share_is_reached_although_sums_are_rounded():
    """With ν = 1 every multiplier is at its bound, and so is one class if ν is as large as it may be."""
    cost = np.random.default_rng(0).uniform(0.1, 1.0, 1001)
    assert nu_terms("one_class", cost, 1.0, 0.0).reached(cost)
    assert not nu_terms("one_class", cost, 1.0, 0.0).reached(cost * (1.0 - 1e-11))
    sign = np.where(np.arange(10) == 0, -1.0, 1.0)
    alpha = np.where(sign < 0.0, 1.0, 1.0 / 9.0)
    assert nu_terms("nu_hinge", np.ones(10), 0.2, 0.0, sign).reached(alpha)
    tube = nu_terms("nu_tube", np.ones(10), 0.1 + 0.2, 0.0, np.zeros(10))
    assert tube.reached(np.full(10, 0.3))
    assert not tube.reached(np.full(10, 0.3 + 1e-11))
    assert not tube.reached(np.full(10, np.nan))


def test_an_indefinite_kernel_proves_nothing():
    machine = ordinary("nu_hinge", ("sigmoid", 0.1, -0.2)).random()
    claim = machine.certificate()
    verdict = claim.verify(machine.X, machine.y, machine.cost, max_gap=math.inf)
    assert verdict.outcome is Outcome.HONEST
    assert "no gap is known" in str(verdict)
    refused(replace(claim, gap=0.0), machine, "gap")


def test_machines_of_several_classes():
    rng = np.random.default_rng(0)
    X, position = rng.standard_normal((60, 9)), np.arange(60) % 3
    X[np.arange(60), position] += 1.0
    parts = []
    for pair in ((0, 1), (0, 2), (1, 2)):
        chosen = np.flatnonzero(np.isin(position, pair))
        machine = NuMachine("nu_hinge", X[chosen], position[chosen] == pair[1], RBF, np.ones(len(chosen)), 0.4).solve()
        alpha = np.zeros(60)
        alpha[chosen] = machine.alpha
        parts.append(replace(machine.certificate(), alpha=alpha))
    shared = {"loss": parts[0].loss, "C": 1.0, "tol": 1e-6}
    claim = CombinedCertificate(parts=tuple(parts), scheme="ovo", classes=np.arange(3), **shared)
    assert claim.verify(X, position)
    other = (replace(parts[0], nu=0.41), *parts[1:])
    assert replace(claim, parts=other).verify(X, position).worst == "parts"
    assert (
        replace(claim, parts=tuple(replace(p, nu=0.41) for p in parts)).verify(X, position).outcome is Outcome.REJECTED
    )
    assert claim.verify(X, position, np.linspace(1.0, 2.0, 60)).outcome is Outcome.REJECTED

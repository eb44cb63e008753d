"""Primal and dual objectives without rounding: rationals, and balls of 200 bits for logarithms and powers.

Slow and obvious: every float is the rational number it stands for, every sum is taken term by term.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import flint
import numpy as np
import scipy.sparse as sp

from maxmargin import CombinedCertificate, OptimalityCertificate

Ball = flint.arb
flint.ctx.prec = 240


def rational(x: float) -> flint.fmpq:
    return flint.fmpq(*float(x).as_integer_ratio())


def vector(values: Any) -> list[flint.fmpq]:
    return [rational(v) for v in np.asarray(values, dtype=np.float64).ravel()]


def dot(a: list[flint.fmpq], b: list[flint.fmpq]) -> flint.fmpq:
    total = flint.fmpq(0)
    for x, y in zip(a, b, strict=True):
        if x != 0 and y != 0:
            total += x * y
    return total


@dataclass(frozen=True)
class Exact:
    """Both objectives; infeasible multipliers have none."""

    primal: Ball
    dual: Ball | None


def at_least(claimed: float, exact: Ball) -> bool:
    """Whether a claim is certainly at least the exact value."""
    return bool(Ball(rational(claimed)) >= exact)


def at_most(claimed: float, exact: Ball) -> bool:
    return bool(Ball(rational(claimed)) <= exact)


def loss_of(certificate: OptimalityCertificate, r: flint.fmpq) -> Ball:
    """h(r)."""
    name, zero = certificate.loss, flint.fmpq(0)
    slack = max(r, zero)
    if name == "hinge":
        return Ball(slack)
    if name == "squared_hinge":
        return Ball(slack * slack)
    if name == "slack_power":
        return Ball(slack) ** Ball(rational(certificate.power)) if slack > 0 else Ball(0)
    if name == "logistic":
        return (Ball(r).exp() + 1).log()
    beyond = max(abs(r) - rational(certificate.epsilon), zero)
    return Ball(beyond) if name == "epsilon_insensitive" else Ball(beyond * beyond)


def price_of(certificate: OptimalityCertificate, alpha: flint.fmpq, cost: flint.fmpq) -> Ball | None:
    """c h*(alpha/c); None outside of its domain."""
    name, inside = certificate.loss, 0 <= alpha <= cost
    if cost == 0:
        return Ball(0) if alpha == 0 else None
    if name == "hinge":
        return Ball(0) if inside else None
    if name == "logistic":
        return Ball(cost) * (x_log_x(alpha / cost) + x_log_x(1 - alpha / cost)) if inside else None
    if name.endswith("epsilon_insensitive"):
        value = rational(certificate.epsilon) * abs(alpha)
        if name.startswith("squared"):
            return Ball(value + alpha * alpha / (4 * cost))
        return Ball(value) if abs(alpha) <= cost else None
    if alpha < 0:
        return None
    if name == "squared_hinge":
        return Ball(alpha * alpha / (4 * cost))
    p = rational(certificate.power)
    base = alpha / (cost * p)
    return Ball(cost * (p - 1)) * Ball(base) ** Ball(p / (p - 1)) if base > 0 else Ball(0)


def x_log_x(x: flint.fmpq) -> Ball:
    return Ball(x) * Ball(x).log() if x > 0 else Ball(0)


def of_one(certificate: OptimalityCertificate, X: Any, y: Any, weight: Any) -> Exact:
    """The objectives of one hyperplane; y holds numbers, or labels of which the second class is positive."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    lines, w, b = [vector(x) for x in X], vector(certificate.coef), rational(certificate.intercept)
    alpha, n = vector(certificate.alpha), len(X)
    if certificate.classes is None:
        sign, target = [flint.fmpq(1)] * n, vector(y)
    else:
        sign = [flint.fmpq(1) if label == certificate.classes[1] else flint.fmpq(-1) for label in y]
        target = [flint.fmpq(0 if certificate.loss == "logistic" else 1)] * n
    hard = math.isinf(certificate.C)
    cost = vector(weight if hard else certificate.C * np.asarray(weight))
    scale = certificate.penalty_scale
    primal = Ball(dot(w, w) / 2) if certificate.penalty == "l2" else Ball(sum((abs(v) for v in w), flint.fmpq(0)))
    primal += Ball((b / rational(scale)) ** 2 / 2) if scale else Ball(0)
    for i, x in enumerate(lines):
        r = target[i] - sign[i] * (dot(w, x) + b)
        if hard and cost[i] > 0 and r > 0:
            primal = Ball("inf")
        elif not hard:
            primal += Ball(cost[i]) * loss_of(certificate, r)
    return Exact(primal, _dual_of_one(certificate, lines, sign, target, cost, alpha, hard))


def _dual_of_one(certificate, lines, sign, target, cost, alpha, hard) -> Ball | None:
    signed = [s * a for s, a in zip(sign, alpha, strict=True)]
    balance, scale = sum(signed, flint.fmpq(0)), certificate.penalty_scale
    if certificate.fit_intercept and not scale and balance != 0:
        return None
    induced = [dot(signed, list(column)) for column in zip(*lines, strict=True)]
    if certificate.penalty == "l1" and any(abs(v) > 1 for v in induced):
        return None
    dual = Ball(dot(alpha, target)) - (Ball(dot(induced, induced) / 2) if certificate.penalty == "l2" else Ball(0))
    dual -= Ball((rational(scale) * balance) ** 2 / 2) if scale else Ball(0)
    for a, c in zip(alpha, cost, strict=True):
        price = (Ball(0) if a >= 0 and (c > 0 or a == 0) else None) if hard else price_of(certificate, a, c)
        if price is None:
            return None
        dual -= price
    return dual


def of_joint(certificate: OptimalityCertificate, X: Any, y: Any, weight: Any) -> Exact:
    """The objectives of all classes together."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    lines, W = [vector(x) for x in X], [vector(w) for w in certificate.coef]
    b, position = vector(certificate.intercept), np.searchsorted(certificate.classes, y)
    alpha, cost = [vector(a) for a in certificate.alpha], vector(certificate.C * np.asarray(weight))
    scale = certificate.penalty_scale
    primal = Ball(sum((dot(w, w) for w in W), flint.fmpq(0)) / 2)
    primal += Ball(sum((v * v for v in b), flint.fmpq(0)) / rational(scale) ** 2 / 2) if scale else Ball(0)
    dual, feasible = Ball(0), True
    for i, x in enumerate(lines):
        f, own = [dot(w, x) + v for w, v in zip(W, b, strict=True)], int(position[i])
        if certificate.loss == "crammer_singer":
            loss = Ball(max(v + (m != own) for m, v in enumerate(f)) - f[own])
        else:
            loss = sum((Ball(v - f[own]).exp() for v in f), Ball(0)).log()
        primal += Ball(cost[i]) * loss
        away = [cost[i] - a if m == own else -a for m, a in enumerate(alpha[i])]
        feasible &= all(a >= 0 for a in away) and sum(alpha[i], flint.fmpq(0)) == 0
        if certificate.loss == "crammer_singer":
            dual += Ball(alpha[i][own])
        elif feasible and cost[i] > 0:
            dual -= Ball(cost[i]) * sum((x_log_x(a / cost[i]) for a in away), Ball(0))
    for m in range(len(W)):
        column = [a[m] for a in alpha]
        induced = [dot(column, list(values)) for values in zip(*lines, strict=True)]
        dual -= Ball(dot(induced, induced) / 2)
        balance = sum(column, flint.fmpq(0))
        if scale:
            dual -= Ball((rational(scale) * balance) ** 2 / 2)
        else:
            feasible &= balance == 0 or not certificate.fit_intercept
    return Exact(primal, dual if feasible else None)


def false_bounds(certificate: Any, X: Any, y: Any, weight: Any) -> list[str]:
    """What is wrong with the claims of a certificate of any kind: nothing, if they are theorems."""
    if isinstance(certificate, CombinedCertificate):
        position, found = np.searchsorted(certificate.classes, y), []
        for part, job in zip(certificate.parts, certificate._jobs(), strict=True):
            chosen = np.arange(len(y)) if len(job) == 1 else np.flatnonzero(np.isin(position, job))
            from dataclasses import replace

            own = replace(part, alpha=part.alpha[chosen])
            found += false_bounds(own, X[chosen], position[chosen] == job[-1], np.asarray(weight)[chosen])
        return found
    of = of_joint if certificate.joint else of_one
    exact = of(certificate, X, y, weight)
    found = []
    if not at_least(certificate.primal, exact.primal):
        found.append(f"primal {certificate.primal!r} is claimed, {exact.primal} is true")
    if exact.dual is None:
        found.append("the multipliers are not feasible")
    elif not at_most(certificate.dual, exact.dual):
        found.append(f"dual {certificate.dual!r} is claimed, {exact.dual} is true")
    return found

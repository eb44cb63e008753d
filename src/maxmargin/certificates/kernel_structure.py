"""Which kernels certificates know, without ``kernels``, and which of them are positive semidefinite.

A kernel is a *structure*, nested tuples of names and numbers:

    ("linear",)  ⟨x, z⟩                         ("poly", γ, c, degree)  (γ⟨x, z⟩ + c)^degree
    ("rbf", γ)  exp(−γ‖x − z‖²)                 ("laplacian", γ)  exp(−γ‖x − z‖₁)
    ("sigmoid", γ, c)  tanh(γ⟨x, z⟩ + c)        ("sum", s, …), ("product", s, …), ("scaled", factor, s)
    ("precomputed",)  X itself, (K + Kᵀ)/2 if it is not symmetric     ("callable", f, params)  f(X, Z, **params)

k is the mathematical function of the floating-point numbers handed over; what rounding does to its values says
:mod:`~maxmargin.certificates.kernel_rounding`. Hypotheses: the values of a precomputed kernel are exact, those of a
callable are right to :data:`~maxmargin.certificates.kernel_rounding.CALLED` times the roundings of a product.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Real
from typing import Any

Structure = tuple[Any, ...]  # a name, then numbers or the structures of parts

DEEPEST = 20  # of structures inside each other
GIVEN = ("precomputed", "callable")  # kernels whose values come from outside


def known(structure: Any, deep: int = 0) -> bool:
    """Whether there is such a kernel.

    Examples
    --------
    >>> known(("sum", ("rbf", 0.5), ("linear",))), known(("rbf", -1.0)), known("rbf")
    (True, False, False)
    """
    if not isinstance(structure, tuple) or not structure or deep > DEEPEST:
        return False
    match structure:
        case ("linear",):
            return True
        case ("precomputed",):
            return deep == 0
        case ("rbf" | "laplacian", factor):
            return _usable(factor) and factor > 0.0
        case ("sigmoid", factor, coef0):
            return _usable(factor, coef0) and factor > 0.0
        case ("poly", factor, coef0, degree):
            return _usable(factor, coef0, degree) and factor > 0.0 and degree >= 0.0
        case ("callable", f, params):
            return callable(f) and isinstance(params, dict)
        case ("scaled", factor, part):
            return _usable(factor) and known(part, deep + 1)
        case ("sum" | "product", _, *_):
            return all(known(part, deep + 1) for part in structure[1:])
    return False


def _usable(*numbers: Any) -> bool:
    return all(isinstance(x, Real) and not isinstance(x, bool) and math.isfinite(x) for x in numbers)


def definite(structure: Structure) -> bool | None:
    """Whether all Gram matrices are positive semidefinite; None where nobody knows, False where some may not be.

    Examples
    --------
    >>> definite(("poly", 1.0, 1.0, 3)), definite(("poly", 1.0, -1.0, 3)), definite(("precomputed",))
    (True, False, None)
    """
    match structure:
        case ("sum" | "product", *parts):
            of_parts = [definite(part) for part in parts]
            return False if False in of_parts else None if None in of_parts else True
        case ("scaled", factor, part):
            return definite(part) if float(factor) >= 0.0 else False
        case ("poly", _, coef0, degree):
            return bool(coef0 >= 0.0 and float(degree).is_integer())
        case ("precomputed",) | ("callable", _, _):
            return None
    return bool(structure[0] != "sigmoid")


def nowhere_negative(structure: Structure) -> bool:
    """Whether it is known that no value is below 0."""
    match structure:
        case ("sum" | "product", *parts):
            return all(nowhere_negative(part) for part in parts)
        case ("scaled", factor, part):
            return bool(factor >= 0.0) and nowhere_negative(part)
    return structure[0] in ("rbf", "laplacian")


def parts_of(structure: Structure) -> Iterator[Structure]:
    """The kernels that it is made of."""
    if structure[0] in ("sum", "product", "scaled"):
        for part in structure[1:]:
            if isinstance(part, tuple):
                yield from parts_of(part)
    else:
        yield structure


def names_in(structure: Structure) -> set[str]:
    return {part[0] for part in parts_of(structure)}

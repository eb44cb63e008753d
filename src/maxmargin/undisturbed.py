"""Rows that somebody overwrites while a machine learns from them.

Rows in C order are used where they are, without a copy, so another thread or a callback may write to them during a
fit. Arithmetic that was safe for the rows that were checked then breaks down somewhere, in any of many ways.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from maxmargin.errors import InputError
from maxmargin.runtime import effective_threads

# What numbers that cannot be there make of correct code.
BREAKDOWNS = (ArithmeticError, ValueError, LookupError, NameError, AssertionError)


class _Surveyed(Protocol):
    """Rows that know what they were."""

    def unchanged(self, n_threads: int) -> bool: ...


def refuse_changes(rows: _Surveyed, cause: BaseException | None = None) -> None:
    """An error if the rows are not those that were checked. One pass, which costs about a hundredth of a fit."""
    if rows.unchanged(effective_threads()):
        return
    raise InputError(
        "X was changed while it was being fitted, by another thread or a callback, and what was learned from it is "
        "of no use. Fit a copy, X.copy(), or change X when the fit is done."
    ) from cause


@contextmanager
def undisturbed(rows: _Surveyed) -> Iterator[None]:
    """At the end of the block the rows must be those that were checked, or an error says that they are not.

    What breaks down inside the block speaks of them, too, if they were changed.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.inputs import check_rows
    >>> rows = check_rows(np.array([[1.0], [2.0]]))
    >>> with undisturbed(rows):
    ...     rows.X.fill(0.0)
    ...     1.0 / rows.X.item(0)
    Traceback (most recent call last):
    maxmargin.errors.InputError: X was changed while it was being fitted...
    """
    try:
        yield
    except InputError:
        raise
    except BREAKDOWNS as error:
        refuse_changes(rows, error)
        raise
    refuse_changes(rows)

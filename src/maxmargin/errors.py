"""The errors about input: one type, so that one ``except`` catches them all."""

from __future__ import annotations


class InputError(ValueError):
    """Input that cannot be used; the message says what, where, and what to do."""


class InputTypeError(InputError, TypeError):
    """The same where scikit-learn promises a TypeError."""

"""What is said when a file cannot be used."""

from __future__ import annotations

from maxmargin.errors import InputError


class DataError(InputError):
    """A data file that cannot be used: what is wrong, where, and what to do.

    Attributes
    ----------
    source : the file's name.
    place : where in it, for example ``"line 3, column 12"`` or ``"column 'age', row 7"``; ``"file"`` for all of it.
    problem : the sentence without source and place.

    Examples
    --------
    >>> error = DataError("train.svm", "line 3, column 12", "expected column:value, found 'x'")
    >>> print(error)
    train.svm, line 3, column 12: expected column:value, found 'x'
    """

    def __init__(self, source: str, place: str, problem: str) -> None:
        self.source, self.place, self.problem = source, place, problem
        super().__init__(source, place, problem)

    def __str__(self) -> str:
        where = self.source if self.place == "file" else f"{self.source}, {self.place}"
        return f"{where}: {self.problem}"


class NoSuchColumn(DataError):
    """A column was named that the file does not have."""


class MissingLabel(DataError):
    """Some rows have a label and others have not."""


class UnknownLabel(DataError):
    """A label that the model was not trained on."""


def need(module: str, purpose: str, extra: str) -> ImportError:
    """The error for a missing optional dependency."""
    return ImportError(f"{purpose} needs {module}; install it with:  pip install 'maxmargin[{extra}]'")

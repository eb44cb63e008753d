"""Model files of other programs, which are text: lines that begin with a keyword, then lines of numbers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from numbers import Integral
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from maxmargin.data import DataError
from maxmargin.data.files import open_text
from maxmargin.errors import InputError
from maxmargin.models.document import ModelFileError
from maxmargin.positions import shown

Vector = NDArray[np.float64]
Order = NDArray[np.intp]

NUMBER = re.compile(rb"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
WHOLE = re.compile(rb"[-+]?[0-9]{1,18}")
HEAD = 256  # bytes that tell whether a file is a model at all
LARGEST = 2**31 - 1  # the other programs count, and label, with 32 bits


# --- reading ----------------------------------------------------------------------------------------------------


class TextModel:
    """A model file, split into its keywords and the lines after the last of them.

    Whatever is absent, odd, repeated or left over is an error with its line.

    Parameters
    ----------
    content : all of the file.
    source : its name.
    keywords : those that may begin a line.
    last : the keyword after which there are only numbers.

    Attributes
    ----------
    body : list of bytes
        The lines after the last keyword.
    first : int
        The number of the first of them, counted from 1.
    line : int
        The number of the line that was taken last.

    Examples
    --------
    >>> model = TextModel(b"nr_class 2\\nw\\n0.5\\n", "m", ("nr_class", "w"), "w")
    >>> model.whole("nr_class", 1, 9), model.body, model.first
    (2, [b'0.5'], 3)
    """

    def __init__(self, content: bytes, source: str, keywords: tuple[str, ...], last: str) -> None:
        self.source, self.line = source, 0
        self._known: dict[str, tuple[int, list[bytes]]] = {}
        lines = content.split(b"\n")
        if lines.pop():
            self.fail("the last line has no end: the file was cut off; fetch or write it again", len(lines) + 1)
        for number, line in enumerate(lines, 1):
            name = self._note(number, line, keywords)
            if name == last:
                break
        else:
            self._missing(last)
        self.take(last, 0)
        self.first, self.body = self.line + 1, lines[self.line :]

    def _note(self, number: int, line: bytes, keywords: tuple[str, ...]) -> str:
        word, *values = line.split() or [b""]
        name = word.decode("ascii", "backslashreplace")
        if name not in keywords:
            self.fail(f"expected one of {', '.join(keywords)}, found {quoted(word)}", number)
        if name in self._known:
            self.fail(f"{name} occurs twice, here and on line {self._known[name][0]}; keep one", number)
        self._known[name] = number, values
        return name

    def fail(self, problem: str, line: int | None = None) -> NoReturn:
        """The error about the line taken last, or another one."""
        raise ModelFileError(self.source, f"line {self.line if line is None else line}", problem)

    def _missing(self, name: str) -> NoReturn:
        raise ModelFileError(self.source, "header", f"expected a line {name}, but there is none")

    def has(self, name: str) -> bool:
        """Whether the line is there and was not taken yet."""
        return name in self._known

    def take(self, name: str, count: int) -> list[bytes]:
        """The values after a keyword, as many as there must be."""
        if name not in self._known:
            self._missing(name)
        self.line, values = self._known.pop(name)
        if len(values) != count:
            self.fail(f"expected {counted(count, 'value')} after {name}, found {len(values)}")
        return values

    def word(self, name: str, choices: Iterable[str]) -> str:
        """A value that is one of several words."""
        (value,), known = self.take(name, 1), tuple(choices)
        text = value.decode("ascii", "backslashreplace")
        if text not in known:
            self.fail(f"expected {name} to be one of {', '.join(known)}, found {quoted(value)}")
        return text

    def whole(self, name: str, low: int, high: int) -> int:
        return self.wholes(name, 1, low, high)[0]

    def wholes(self, name: str, count: int, low: int, high: int) -> list[int]:
        """Values that are whole numbers from low to high."""
        values = self.take(name, count)
        for value in values:
            if WHOLE.fullmatch(value) is None or not low <= int(value) <= high:
                self.fail(f"expected a whole number from {low} to {high} after {name}, found {quoted(value)}")
        return [int(value) for value in values]

    def numbers(self, name: str, count: int) -> Vector:
        return self.finite(self.take(name, count), self.line)

    def finite(self, values: list[bytes], line: int) -> Vector:
        """Values as numbers, each finite."""
        found = np.array([float(value) if NUMBER.fullmatch(value) else np.nan for value in values], dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(found))
        if len(bad):
            self.fail(f"expected a finite number, found {quoted(values[bad[0]])}", line)
        return found

    def labels(self, count: int) -> tuple[NDArray[np.int64], Order]:
        """The classes, sorted, and which of them each label of the file is."""
        if count < 2:
            self.fail("expected at least 2 classes: with one there is nothing to decide")
        labels = self.wholes("label", count, -LARGEST - 1, LARGEST)
        if len(set(labels)) < count:
            self.fail("expected different labels, but one occurs twice")
        classes = np.array(sorted(labels), dtype=np.int64)
        return classes, np.searchsorted(classes, labels)

    def check_length(self, expected: int, of_what: str) -> None:
        """Whether there are as many lines after the last keyword as there must be."""
        if len(self.body) != expected:
            at = self.first + min(len(self.body), expected)
            self.fail(f"expected {counted(expected, 'line')} of {of_what} in all, found {len(self.body)}", at)

    def done(self, kind: str) -> None:
        """Every keyword must have been taken by now."""
        for name, (line, _) in self._known.items():
            self.fail(f"{name} does not belong to {kind}; remove the line, or correct the kind", line)


def read_text(path: str | os.PathLike[str], program: str, keywords: tuple[str, ...], last: str) -> TextModel:
    """Read a model file, compressed or not; a file that is none is refused by its first bytes."""
    source = str(path)
    try:
        with open_text(path, None) as file:
            content = bytes(file.read(HEAD))
            word = b"".join(content.split(None, 1)[:1])
            if word.decode("ascii", "replace") not in keywords:
                found = f"it begins with {quoted(word)}" if word else "it is empty"
                problem = f"this is no {program} model file: expected {keywords[0]} first, but {found}"
                raise ModelFileError(source, "line 1", problem)
            content = b"".join([content, file.read()])
    except DataError as error:  # damaged, too large, or changed meanwhile
        raise ModelFileError(source, error.place, error.problem) from None
    return TextModel(content, source, keywords, last)


def quoted(token: bytes, most: int = 40) -> str:
    """A piece of a file for a message.

    Examples
    --------
    >>> print(quoted(b"nan"), quoted(b"\\xff\\xff\\xff", 2))
    'nan' '\\xff\\xff…'
    """
    text = token[:most].decode("ascii", "backslashreplace")
    return f"'{text}…'" if len(token) > most else f"'{text}'"


def counted(count: int, noun: str) -> str:
    """So many of something.

    Examples
    --------
    >>> counted(1, "line"), counted(3, "line")
    ('1 line', '3 lines')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def width_of(n_features: Any, in_file: int, source: str) -> int:
    """The number of columns: what the caller says, or else the file, which may know less of it."""
    if n_features is None:
        return in_file
    whole = isinstance(n_features, Integral) and not isinstance(n_features, bool)
    if not whole or not 1 <= int(n_features) <= LARGEST:
        raise InputError(f"n_features must be a whole number from 1 to {LARGEST} or None, got {shown(n_features)}")
    if int(n_features) < in_file:
        raise ModelFileError(source, "file", f"there are {in_file} columns, but n_features says only {n_features}")
    return int(n_features)


# --- writing ----------------------------------------------------------------------------------------------------


def number_text(values: Any) -> str:
    """Numbers with 17 significant digits, from which every float64 comes back.

    Examples
    --------
    >>> number_text([0.1, -2.0])
    '0.10000000000000001 -2'
    """
    return " ".join(f"{value:.17g}" for value in np.asarray(values, dtype=np.float64).tolist())


def label_numbers(classes: NDArray[Any], program: str) -> list[int]:
    """The classes as the whole numbers that the other programs know.

    Examples
    --------
    >>> label_numbers(np.array([-1.0, 1.0]), "LIBSVM")
    [-1, 1]
    """
    for label in classes.tolist():
        whole = isinstance(label, int) or (isinstance(label, float) and label.is_integer())
        if not whole or abs(label) > LARGEST:
            raise InputError(
                f"the class {label!r:.60} cannot be written: {program} files hold whole numbers of at most {LARGEST}. "
                "Fit to numbered labels, for example with sklearn.preprocessing.LabelEncoder."
            )
    return [int(label) for label in classes.tolist()]


def check_fitted(machine: Any, known: list[type[Any]], program: str) -> None:
    """Whether this is a fitted machine of a kind that the program has, all its numbers finite."""
    if not any(isinstance(machine, kind) for kind in known):
        names = ", ".join(kind.__name__ for kind in known)
        raise InputError(f"a {type(machine).__name__} cannot be written as a {program} model; known are {names}")
    if not hasattr(machine, "intercept_"):
        raise InputError(f"this {type(machine).__name__} is not fitted yet; there is nothing to write")
    function = machine.dual_coef_ if hasattr(machine, "kernel_") else machine.coef_
    numbers = np.concatenate([np.ravel(dense(function)), machine.intercept_])
    if not np.isfinite(numbers).all():
        raise InputError(f"this {type(machine).__name__} has coefficients that are not finite; fit it again")


def dense(values: Any) -> Vector:
    """Coefficients as an array, whatever they are kept as."""
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)

"""Values that are computed when first asked for, and kept.

Threads may fit at the same time and a process may be forked at any moment, so nobody here holds a lock that a forked
child could inherit in a locked state: there, nobody would ever open it. ``functools.cached_property`` of Python 3.11
does, and makes all objects of a class wait for each other besides.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from maxmargin.process import n_forks

Value = TypeVar("Value")


class kept_property(Generic[Value]):
    """A property that is computed once. Threads that ask at the same time compute it each, and all get the same one.

    Examples
    --------
    >>> class Square:
    ...     @kept_property
    ...     def area(self):
    ...         print("computed")
    ...         return 4.0
    >>> square = Square()
    >>> square.area, square.area
    computed
    (4.0, 4.0)
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__
        self.__module__ = compute.__module__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> kept_property[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> kept_property[Value] | Value:
        if instance is None:
            return self
        # From now on the attribute is found in the object itself and nobody comes here.
        value: Value = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value


class Kept(Generic[Value]):
    """One large value, computed by whoever needs it first; other threads wait for it, a forked child does not.

    Examples
    --------
    >>> kept: Kept[list[float]] = Kept()
    >>> kept.get(lambda: [1.0]) is kept.get(lambda: [2.0])
    True
    """

    def __init__(self) -> None:
        self._locks: dict[int, threading.Lock] = {}
        self._value: Value | None = None

    def get(self, compute: Callable[[], Value]) -> Value:
        if self._value is None:
            with self._locks.setdefault(n_forks(), threading.Lock()):
                if self._value is None:
                    self._value = compute()
        return self._value

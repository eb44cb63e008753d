"""Where a fit reports to: the terminal, and scikit-learn's callbacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from maxmargin.foreign import listeners_of

N_CHUNKS = 20
Listener = Callable[[int, float, float], None]
_listener: ContextVar[Listener | None] = ContextVar("maxmargin_listener", default=None)


@contextmanager
def reporting_to(listener: Listener) -> Iterator[None]:
    """Call ``listener(iteration, gap, seconds)`` from every fit inside the block, in this thread.

    Examples
    --------
    >>> from maxmargin import LinearSVC
    >>> gaps = []
    >>> with reporting_to(lambda iteration, gap, seconds: gaps.append(gap)):
    ...     _ = LinearSVC().fit([[0.0], [1.0]], [0, 1])
    >>> len(gaps) > 0
    True
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class FitProgress:
    """Turns (iteration, gap) into lines and into at most ``N_CHUNKS`` callback tasks.

    A fit is as far as the logarithm of its gap: from 1 (nothing known) to ``tol`` (done).
    """

    def __init__(self, estimator: Any, verbose: int, tol: float) -> None:
        self.estimator, self.verbose, self.tol = estimator, verbose, tol
        self.context = estimator._init_callback_context(max_subtasks=N_CHUNKS)
        self.heard = bool(listeners_of(estimator))
        self.done = 0
        self.stop = False

    def begin(self, X: Any, y: Any) -> None:
        self.context.call_on_fit_task_begin(estimator=self.estimator, X=X, y=y)

    def __call__(self, iteration: int, gap: float, seconds: float) -> bool:
        if self.verbose:
            print(f"[{type(self.estimator).__name__}] iteration {iteration:4d}  gap {gap:.2e}  {seconds:7.2f} s")
        listener = _listener.get()
        if listener is not None:
            listener(iteration, gap, seconds)
        part = math.log(min(max(gap, self.tol), 1.0)) / math.log(min(self.tol, 0.5))
        self._advance_to(min(N_CHUNKS - 1, int(part * N_CHUNKS)))
        return self.stop

    def _advance_to(self, chunk: int) -> None:
        while self.heard and self.done < chunk and not self.stop:
            task = self.context.subcontext(task_name="gap")
            task.call_on_fit_task_begin(estimator=self.estimator)
            self.stop = bool(task.call_on_fit_task_end(estimator=self.estimator))
            self.done += 1

    def end(self) -> None:
        self._advance_to(N_CHUNKS)
        self.context.call_on_fit_task_end(estimator=self.estimator)

"""The bound beside the count: what Novikoff's theorem says of a perceptron that was fitted."""

from __future__ import annotations

from typing import Any

from maxmargin.theory.mistake_bounds import Bound, novikoff


class NovikoffBound:
    """Perceptrons for two classes that start at 0."""

    @property
    def mistake_bound_(self: Any) -> Bound | None:
        """What Novikoff's theorem allows over all passes; None where its hypotheses fail.

        Computed from the rows of ``fit``, which must not have changed since.
        """
        X, y = self._seen_rows()
        constant = self._was("schedule", "constant") == "constant" and self._was("reduction", "sum") == "sum"
        if len(self.classes_) != 2 or not constant or self._was("rho", 0.0) > 0.0 or not self._from_zero:
            return None
        batch = self._was("batch_size", 1)
        return novikoff(
            X,
            y,
            bias=self._convention(),
            radius=self._was("radius", None),
            margin=float(self._was("margin", 0.0)),
            eta=float(self._was("eta0", 1.0)),
            batch=len(y) if batch == "all" else min(int(batch), len(y)),
        )

    def _was(self: Any, name: str, otherwise: Any) -> Any:
        """A parameter as it was when the machine was fitted."""
        return self._fit_params.get(name, otherwise)

    def _convention(self: Any) -> str:
        return str(self._was("bias", "augmented")) if self._was("fit_intercept", True) else "none"

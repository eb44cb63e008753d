"""The bound beside the count: what Novikoff's theorem says of a perceptron that was fitted."""

from __future__ import annotations

from typing import Any

from maxmargin.theory.mistake_bounds import Bound, novikoff


class NovikoffBound:
    """Perceptrons for two classes that start at 0."""

    @property
    def mistake_bound_(self: Any) -> Bound | None:
        """What Novikoff's theorem allows over all passes; None where its hypotheses fail."""
        X, y = self._seen_rows()
        constant = getattr(self, "schedule", "constant") == "constant" and getattr(self, "reduction", "sum") == "sum"
        if len(self.classes_) != 2 or not constant or getattr(self, "rho", 0.0) > 0.0 or not self._from_zero:
            return None
        return novikoff(
            X,
            y,
            bias=self._convention(),
            radius=self.radius,
            margin=float(getattr(self, "margin", 0.0)),
            eta=float(self.eta0),
            batch=len(y) if self.batch_size == "all" else int(self.batch_size),
        )

    def _convention(self: Any) -> str:
        return str(self.bias) if self.fit_intercept else "none"

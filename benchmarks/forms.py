"""What is minimised: a loss, a penalty, and for several classes one machine each or all of them together."""

from __future__ import annotations

from dataclasses import dataclass

TWO, SEVERAL, REGRESSION = "two classes", "several classes", "regression"
TUBE = 0.1  # ε of both ε-insensitive losses; the targets of the regression sets have a spread of about 1


@dataclass(frozen=True)
class Form:
    """R(w) + C Σ ℓ(⟨w, x_i⟩ + b, y_i) with R = ½‖w‖² or ‖w‖₁ and a bias that costs nothing.

    Several classes: the sum of one such objective per class, that class against the rest; with ``pairs`` one per pair
    of classes, on their rows alone; or, if ``joint``, one loss of all scores of a row. ``power`` belongs to the loss
    "slack_power".
    """

    loss: str
    penalty: str = "l2"
    epsilon: float = 0.0
    power: float = 0.0
    pairs: bool = False

    @property
    def name(self) -> str:
        loss = f"{self.loss}_{self.power:g}" if self.power else self.loss
        return loss + ("" if self.penalty == "l2" else f"-{self.penalty}") + ("-ovo" if self.pairs else "")

    @property
    def joint(self) -> bool:
        return self.loss in ("crammer_singer", "multinomial")

    @property
    def regression(self) -> bool:
        return self.loss.endswith("epsilon_insensitive")

    def fits(self, kind: str) -> bool:
        """Whether data of this kind have such an objective."""
        if self.regression or kind == REGRESSION:
            return self.regression and kind == REGRESSION
        return kind == SEVERAL if self.joint or self.pairs else True


FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        Form("hinge"),
        Form("squared_hinge"),
        Form("logistic"),
        Form("squared_hinge", "l1"),
        Form("logistic", "l1"),
        Form("epsilon_insensitive", epsilon=TUBE),
        Form("squared_epsilon_insensitive", epsilon=TUBE),
        Form("crammer_singer"),
        Form("multinomial"),
    )
}

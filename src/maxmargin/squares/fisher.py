"""Fisher's discriminant: the direction along which two classes are farthest apart for their spread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from maxmargin.errors import InputError
from maxmargin.estimators import VersionedState, check_names, checked_for_scores, one_column, require_targets, warn
from maxmargin.foreign import LinearClassifierMixin
from maxmargin.inputs import LabelledRows, check_sizes, number_in
from maxmargin.positions import shown
from maxmargin.squares.base import check_solution
from maxmargin.squares.centred import Vector
from maxmargin.squares.discriminant import ClassScatter, best_direction, equal_density

MOST_COLUMNS = 5000


class FisherDiscriminant(
    ClassNamePrefixFeaturesOutMixin, LinearClassifierMixin, TransformerMixin, VersionedState, BaseEstimator
):
    """Fisher's linear discriminant of two classes.

    Solves
        maximise over w   F(w) = (m₁ − m₀)² / (σ₁² + σ₀²)

    where m_k and σ_k² are mean and variance of ⟨w, x⟩ over the rows of class k, each class under its own weights: a
    class counts the same however many rows it has. With class means μ_k and covariances S_k the solution is
    w ∝ (S₁ + S₀)⁻¹(μ₁ − μ₀). If S₁ + S₀ is singular and μ₁ − μ₀ has a part in its null space, that part separates the
    class means without any spread: F = ∞, and w is that part. Otherwise w is the pseudo-inverse's solution.

    Parameters
    ----------
    threshold : {"midpoint", "gaussian"} or float, default="midpoint"
        Where ⟨w, x⟩ is cut. "midpoint" lies halfway between the projected class means. "gaussian" lies between them
        where two normal densities with the classes' projected means and variances, times the classes' shares of the
        weight, are equal; if there is no such point, it is the midpoint. A number is a cut of your own.

    Attributes
    ----------
    classes_ : array of shape (2,)
    coef_ : array of shape (1, n_features)
        w with ‖w‖ = 1, and with the larger projected mean for ``classes_[1]``. All 0 if the class means are equal.
    intercept_ : array of shape (1,)
        Minus the cut.
    criterion_ : float
        F(w), possibly infinite.
    means_ : array of shape (2, n_features)
        The class means.

    Notes
    -----
    *Guarantees.* No direction has an F above ``criterion_``, up to rounding. Columns are scaled to unit variance before
    eigenvalues are judged, so F does not depend on their units. Eigenvalues below 2.2e-16 · max(n, d) of the largest
    count as zero; so does a part of the mean difference below 1.5e-8 of it.

    References
    ----------
    Fisher: The use of multiple measurements in taxonomic problems, 1936. Duda, Hart: Pattern classification and scene
    analysis, 1973.

    Examples
    --------
    >>> X = [[0.0, 0.0], [1.0, 2.0], [2.0, 0.0], [3.0, 2.0]]
    >>> machine = FisherDiscriminant().fit(X, ["a", "a", "b", "b"])
    >>> machine.predict([[0.5, 0.0], [2.5, 0.0]]).tolist(), machine.criterion_
    (['a', 'b'], inf)
    >>> machine.transform([[1.0, 2.0], [3.0, 2.0]]).round(6) + 0.0
    array([[0.      ],
           [1.788854]])
    """

    def __init__(self, *, threshold: str | float = "midpoint") -> None:
        self.threshold = threshold

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> FisherDiscriminant:
        """Find the direction and the cut.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            At most 5000 columns.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights ≥ 0; a weight of k counts as k repetitions, 0 leaves a row out.
        """
        check_threshold(self.threshold)
        require_targets(self, y)
        data = LabelledRows.from_arrays(X, one_column(y), sample_weight)
        check_shape(data)
        check_names(self, X)
        first, second = (ClassScatter.of(data, k) for k in range(2))
        with np.errstate(over="ignore", invalid="ignore"):
            w, infinite = best_direction(first, second)
        check_solution(w)
        if not w.any():
            warn("the class means are equal: no direction tells the classes apart, and every row gets the same score")
        # Seen from halfway between the means, the projected means are ∓half; far from zero that keeps their digits.
        centre, half = 0.5 * (first.mean + second.mean), 0.5 * float(w @ (second.mean - first.mean))
        spread = (0.0, 0.0) if infinite else (first.spread(w), second.spread(w))
        self.classes_ = data.classes
        self.means_ = np.stack([first.mean, second.mean])
        self.coef_ = w[None, :]
        self.criterion_ = np.inf if infinite else 4.0 * half**2 / sum(spread) if sum(spread) > 0.0 else 0.0
        self.intercept_ = np.array([-self._cut(float(w @ centre), half, spread, (first.total, second.total))])
        self._n_features_out = 1
        return self

    def _cut(self, middle: float, half: float, spread: tuple[float, float], totals: tuple[float, float]) -> float:
        """Where ⟨w, x⟩ is cut; the projected means are middle ∓ half."""
        if not isinstance(self.threshold, str):
            return float(self.threshold)
        off = equal_density((-half, half), spread, totals) if self.threshold == "gaussian" else None
        return middle + (0.0 if off is None else off)

    def transform(self, X: Any) -> Any:
        """⟨w, x⟩ of every row, as a column."""
        return self._projected(X)[:, None]

    def decision_function(self, X: Any) -> Any:
        """⟨w, x⟩ minus the cut: positive means ``classes_[1]``."""
        return self._projected(X) + self.intercept_[0]

    def predict(self, X: Any) -> Any:
        """The class of each row; a score of exactly 0 goes to ``classes_[0]``."""
        return super().predict(X)

    def _projected(self, X: Any) -> Vector:
        return np.asarray(checked_for_scores(self, X) @ self.coef_[0])


def check_threshold(threshold: Any) -> None:
    """A name or a finite number."""
    if isinstance(threshold, str):
        usable = threshold in ("midpoint", "gaussian")
    else:
        usable = bool(np.isfinite(number_in("threshold", threshold, -np.inf, np.inf)))
    if not usable:
        raise InputError(f"threshold must be 'midpoint', 'gaussian' or a finite number, got {shown(threshold)}")


def check_shape(data: LabelledRows) -> None:
    """Two classes, not too many columns, and no values that overflow."""
    if len(data.classes) > 2:
        raise InputError(
            "Only binary classification is supported. The type of the target is multiclass: y has "
            f"{len(data.classes)} classes. Use sklearn.multiclass.OneVsRestClassifier around this machine, or "
            "LeastSquaresClassifier"
        )
    n_columns = data.space.d
    if n_columns > MOST_COLUMNS:
        raise InputError(
            f"X has {n_columns} columns; Fisher's discriminant needs the covariances of all pairs of columns, at most "
            f"{MOST_COLUMNS} are allowed. Use RidgeClassifier, or fewer columns, for example by "
            "sklearn.decomposition.TruncatedSVD"
        )
    check_sizes(data.space, data.weight)

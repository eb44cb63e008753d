"""The perceptron in dual form, with any kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

import maxmargin._core as _core
from maxmargin.errors import InputError
from maxmargin.estimators import check_names, checked_for_scores, one_column, require_targets
from maxmargin.inputs import LabelledRows, number_in
from maxmargin.kernels import GramRows, Precomputed, make_kernel
from maxmargin.online.base import Course, OnlineMachine, Order, Vector, checked_radius
from maxmargin.online.dual import dual_pass
from maxmargin.online.labels import machines_of, signed_labels
from maxmargin.online.linear import store_course
from maxmargin.online.memory import Memory
from maxmargin.runtime import Watch
from maxmargin.space import Rows
from maxmargin.theory.mistake_bounds import Bound, novikoff

MOST_ROWS = 2000  # for the bound: it needs the eigenvectors of the kernel matrix


class KernelPerceptron(ClassifierMixin, OnlineMachine):
    """Perceptron in dual form: every mistake adds 1 to the coefficient of its row.

    Rule
        f(x) = Σ_j alpha_j y_j k(x_j, x) + b;   if y_i f(x_i) ≤ margin:   alpha_i += 1,   b += y_i R²

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
    gamma : {"scale", "auto"} or float, default="scale"
    coef0 : float, default=0.0
    degree : int, default=3
        Of the kernel, as in scikit-learn's SVC.
    margin : float, default=0.0
        Rows with a margin of at most this are corrected, too.
    fit_intercept : bool, default=True
    bias : {"radius", "augmented"}, default="radius"
        The bias moves by y R², with R² = max k(x, x), or by y.
    radius : float or None, default=None
        R; None takes it from the rows.
    shuffle : bool or "replacement", default=True
    max_iter : int, default=1000
        Most passes.
    tol : int or None, default=0
        Stop after a pass with at most so many corrections.
    n_iter_no_change : int or None, default=20
    random_state : int, RandomState or None, default=None
    max_seconds : float or None, default=None
    trace : bool, default=False
        Keep the coefficients after every correction in ``trace_`` (as ``coef``).
    verbose : int, default=0

    Attributes
    ----------
    alpha_ : array of shape (n_samples,) or (n_classes, n_samples)
        How often each row was corrected: its embedding strength. ‖alpha‖₁ is the number of corrections.
    dual_coef_ : array of shape (n_machines, n_support)
        y_i alpha_i of the rows that were ever corrected.
    support_ : array of shape (n_support,)
    support_vectors_ : array or sparse matrix of shape (n_support, n_features)
    intercept_, classes_, n_mistakes_, n_updates_, mistakes_per_pass_, updates_per_pass_, n_iter_, t_
        As in :class:`Perceptron`.
    mistake_bound_ : Bound or None
        What Novikoff's theorem allows in the kernel's space (two classes, at most 2000 rows); computed when asked for.

    Notes
    -----
    *Guarantee.* With the linear kernel the same mistakes in the same order as :class:`Perceptron` with
    ``bias="radius"``; so Novikoff's bound holds in the kernel's space. The rows are needed for predictions, so there
    is no ``partial_fit``.

    References
    ----------
    Aizerman, Braverman, Rozonoer: Theoretical foundations of the potential function method, 1964. Cristianini,
    Shawe-Taylor: An introduction to support vector machines, 2000.

    Examples
    --------
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> KernelPerceptron(kernel="rbf", gamma=1.0).fit(X, y).predict(X)
    array([0, 1, 1, 0])
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        coef0: float = 0.0,
        degree: int = 3,
        margin: float = 0.0,
        fit_intercept: bool = True,
        bias: str = "radius",
        radius: float | None = None,
        shuffle: bool | str = True,
        max_iter: int = 1000,
        tol: int | None = 0,
        n_iter_no_change: int | None = 20,
        random_state: Any = None,
        max_seconds: float | None = None,
        trace: bool = False,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.margin = margin
        self.fit_intercept = fit_intercept
        self.bias = bias
        self.radius = radius
        self.shuffle = shuffle
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.max_seconds = max_seconds
        self.trace = trace
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        return tags

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (isinstance(self.kernel, str) and self.kernel == "precomputed")

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or the kernel matrix of the rows
        y : array-like of shape (n_samples,)
            Labels of two or more classes.
        """
        require_targets(self, y)
        self._check_passes()
        number_in("margin", self.margin, 0.0, 1e100)
        data = LabelledRows.from_arrays(X, one_column(y))
        check_names(self, X)
        kernel = make_kernel(self.kernel, gamma=self.gamma, coef0=self.coef0, degree=self.degree, X=data.space)
        self._gain_now = self._gain(kernel, data)
        self._gram_now = GramRows(kernel, data.space)
        n = len(data.position)
        memories = [self._fresh(n) for _ in range(machines_of(data.classes))]
        targets = signed_labels(data.position, len(data.classes))
        try:
            courses = self._passes(memories, data.space, targets)
        finally:
            del self._gram_now
        self._fit_params = self.get_params(deep=False)
        self._rows_seen = (data.space.X, np.asarray(data.classes[data.position]))
        self._store(data, kernel, memories, courses)
        if self._interrupted:
            raise KeyboardInterrupt
        self._warn_if_unfinished(courses)
        return self

    @property
    def mistake_bound_(self) -> Bound | None:
        """What Novikoff's theorem allows in the kernel's space; None where its hypotheses fail."""
        X, y = self._seen_rows()
        if len(self.classes_) != 2 or len(y) > MOST_ROWS:
            return None
        values, vectors = np.linalg.eigh(self.kernel_.gram(X))
        if values[0] < -1e-10 * values[-1]:
            return None  # no inner product
        features = vectors * np.sqrt(np.maximum(values, 0.0))
        was = self._fit_params
        convention = str(was["bias"]) if was["fit_intercept"] else "none"
        return novikoff(features, y, bias=convention, radius=was["radius"], margin=float(was["margin"]))

    def _gain(self, kernel: Any, data: LabelledRows) -> float:
        if not self.fit_intercept:
            return 0.0
        if self.bias not in ("augmented", "radius"):
            raise InputError(f"bias must be 'augmented' or 'radius', got {self.bias!r}")
        if self.bias == "augmented":
            return 1.0
        if self.radius is not None:
            return checked_radius(self.radius) ** 2
        largest = float(np.max(kernel.diagonal(data.space)))
        if largest < 0.0:
            raise InputError(
                f"bias='radius' takes R² = max k(x, x), but that is {largest:.3g} for this kernel, which is no inner "
                "product; use bias='augmented', or give radius"
            )
        return largest or 1.0

    def _fresh(self, n_cols: int) -> Memory:
        return Memory({"coefficient": np.zeros(n_cols), "score": np.zeros(n_cols)})

    def _weights(self, memory: Memory) -> tuple[Vector, float]:
        return memory.arrays["coefficient"], float(memory.numbers.get("b", 0.0))

    def _take(
        self, memory: Memory, rows: Rows, y: Any, order: Order, watch: Watch, course: Course, n_pass: int
    ) -> None:
        core = _core.Dual(False, memory.arrays["coefficient"], memory.arrays["score"])
        core.bias_gain, core.b = self._gain_now, memory.numbers.get("b", 0.0)
        core.margin = float(self.margin)
        memory.set_counts_on(core)

        def look() -> None:
            assert course.recorder is not None
            w = memory.arrays["coefficient"].copy()
            course.recorder.add(w, core.b, core.n_seen, n_pass, core.n_mistakes, 1.0)

        try:
            dual_pass(core, self._gram_now, y, order, watch, course, lambda _: 1.0, look if course.recorder else None)
        finally:
            memory.read_from(core, ("b",))

    def _store(self, data: LabelledRows, kernel: Any, memories: list[Memory], courses: list[Course]) -> None:
        signed = np.stack([memory.arrays["coefficient"] for memory in memories])
        self.classes_: NDArray[Any] = data.classes
        self.kernel_ = kernel
        self.alpha_ = np.abs(signed[0] if len(memories) == 1 else signed)
        self.support_ = np.flatnonzero(signed.any(axis=0))
        self.dual_coef_ = signed[:, self.support_]
        self.intercept_ = np.array([float(memory.numbers.get("b", 0.0)) for memory in memories])
        self.support_vectors_ = data.space.X[self.support_]
        self.coef_ = signed  # only for the trace's shape
        store_course(self, memories, courses)
        del self.coef_

    def decision_function(self, X: Any) -> Any:
        """Scores Σ alpha_j y_j k(x_j, x) + b: one per row for two classes, one per class for more."""
        X = checked_for_scores(self, X)
        if len(self.support_) == 0:  # no row was ever corrected
            scores = np.tile(self.intercept_, (X.shape[0], 1))
            return scores.ravel() if len(self.intercept_) == 1 else scores
        X = X[:, self.support_] if self._is_precomputed else X
        scores = self.kernel_.block(X, self.support_vectors_) @ self.dual_coef_.T + self.intercept_
        return scores.ravel() if len(self.intercept_) == 1 else scores

    def predict(self, X: Any) -> Any:
        """The class of each row; a score of exactly 0 goes to ``classes_[0]``."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0.0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]

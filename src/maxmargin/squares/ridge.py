"""Ridge regression, in d or in n unknowns."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.errors import InputError
from maxmargin.positions import shown
from maxmargin.space import Rows
from maxmargin.squares.base import Found, LinearClassifier, LinearMachine, LinearRegressor, check_alpha
from maxmargin.squares.centred import CentredRows, Matrix, Vector, centred, centred_rows, kept_rows
from maxmargin.squares.systems import MinimalSolution, solve_positive

MOST_DENSE = 2 * 10**6  # numbers: larger sparse rows stay sparse, only their products are formed
FORMS = ("auto", "primal", "dual")


class RidgeMachine(LinearMachine):
    """Finds weights by the equations of the smaller side of the rows."""

    def _check_parameters(self) -> None:
        check_alpha(self.alpha)
        if not isinstance(self.form, str) or self.form not in FORMS:
            raise InputError(f"form must be one of {', '.join(FORMS)}, got {shown(self.form)}")

    def _find(self, space: Rows, Y: Matrix, weight: Vector, single: bool) -> Found:
        space, kept = kept_rows(space, weight)
        alpha, used = check_alpha(self.alpha), weight[kept]
        rows = centred_rows(space, used, self.fit_intercept, MOST_DENSE)
        B, y_mean = centred(np.array(Y[kept]), used, self.fit_intercept)
        n, d = rows.shape
        about: dict[str, Any] = {"form_": ("primal" if d <= n else "dual") if self.form == "auto" else str(self.form)}
        if about["form_"] == "primal":
            W = primal_weights(rows, B, alpha)
        else:
            root = np.sqrt(used)
            W, a = dual_weights(rows, B, alpha, root if self.fit_intercept else None)
            dual = np.zeros((len(weight), a.shape[1]))
            dual[kept] = a * root[:, None]
            about["dual_coef_"] = dual[:, 0] if single else dual
        return Found(W, y_mean - rows.mean @ W, about)

    def _keep(self, found: Found) -> None:
        self.__dict__.pop("dual_coef_", None)  # of an earlier fit in the other form
        super()._keep(found)


def primal_weights(rows: CentredRows, B: Matrix, alpha: float) -> Matrix:
    """W of (AᵀA + αI) W = AᵀB, d equations."""
    H = rows.column_products()
    H.flat[:: len(H) + 1] += alpha
    W = solve_positive(H, rows.back(B), lambda W: rows.back(B - rows.times(W)) - alpha * W)
    return MinimalSolution.of(rows, B, alpha, by_columns=True).W if W is None else W


def dual_weights(rows: CentredRows, B: Matrix, alpha: float, root: Vector | None) -> tuple[Matrix, Matrix]:
    """a of (AAᵀ + αI) a = B, n equations, and W = Aᵀa.

    With a bias, √c (``root``) is orthogonal to B and to all columns of A, hence to a. A multiple of √c√cᵀ may
    therefore be added to the matrix, which is singular along √c if α = 0.
    """
    H = rows.row_products()
    along = np.zeros(len(H))
    if root is not None:
        size = float(H.trace()) / len(H)
        along = root * np.sqrt((size if size > 0.0 else 1.0) / (root @ root))
        H += np.outer(along, along)
    H.flat[:: len(H) + 1] += alpha
    a = solve_positive(H, B, lambda a: B - rows.times(rows.back(a)) - alpha * a - np.outer(along, along @ a))
    if a is not None:
        return rows.back(a), a
    found = MinimalSolution.of(rows, B, alpha, by_columns=False)
    return found.W, found.a


class Ridge(LinearRegressor, RidgeMachine):
    """Linear regression with a price on the weights.

    Solves
        minimise over w, b   Σ c_i (y_i − ⟨w, x_i⟩ − b)² + α‖w‖²

    with weights c_i. The bias is not penalised. In the dual form the unknowns are a_i = c_i (y_i − ⟨w, x_i⟩ − b)/α:

        [ XXᵀ + α diag(1/c)   1 ] [a]   [y]
        [        1ᵀ           0 ] [b] = [0],        w = Xᵀa.

    Parameters
    ----------
    alpha : float, default=1.0
        α ≥ 0, as in scikit-learn's Ridge. 0 is least squares with the smallest ‖w‖.
    fit_intercept : bool, default=True
        Whether there is a bias b.
    form : {"auto", "primal", "dual"}, default="auto"
        "primal" solves for d unknowns, "dual" for n; "auto" takes the fewer.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_outputs, n_features)
    intercept_ : float or array of shape (n_outputs,)
    form_ : {"primal", "dual"}
        The form that was solved.
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_outputs)
        a; only in the dual form.

    Notes
    -----
    *Guarantees.* Both forms give the same w up to rounding; errors grow with the condition of the rows, not with its
    square: the equations are solved by Cholesky's factors with a step of refinement where they are well conditioned,
    by singular values where not. In that case dual_coef_ are the smallest a with w = Xᵀa.

    References
    ----------
    Hoerl, Kennard: Ridge regression: biased estimation for nonorthogonal problems, 1970. Saunders, Gammerman, Vovk:
    Ridge regression learning algorithm in dual variables, 1998.

    Examples
    --------
    >>> machine = Ridge(alpha=2.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> machine.coef_, machine.intercept_, machine.form_
    (array([1.]), 2.0, 'primal')
    """

    def __init__(self, alpha: float = 1.0, *, fit_intercept: bool = True, form: str = "auto") -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.form = form


class RidgeClassifier(LinearClassifier, RidgeMachine):
    """Linear classification by ridge regression on targets −1 and +1.

    Solves
        minimise over w, b   Σ c_i (y_i − ⟨w, x_i⟩ − b)² + α‖w‖²,   y_i = +1 for ``classes_[1]``, −1 for ``classes_[0]``

    with c_i the row's weight times its class's. More than two classes: one such machine for each, +1 for its class and
    −1 for all others. The bias is not penalised.

    Parameters
    ----------
    alpha : float, default=1.0
        α ≥ 0, as in scikit-learn's RidgeClassifier. 0 is least squares with the smallest ‖w‖.
    fit_intercept : bool, default=True
        Whether there is a bias b.
    class_weight : dict, "balanced" or None, default=None
        Factor on the weights of each class's rows; "balanced" gives all classes the same total.
    form : {"auto", "primal", "dual"}, default="auto"
        "primal" solves for d unknowns, "dual" for n; "auto" takes the fewer.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    form_ : {"primal", "dual"}
        The form that was solved.
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_classes)
        a; only in the dual form.

    Notes
    -----
    *Guarantees.* As for :class:`Ridge`.

    References
    ----------
    Hoerl, Kennard: Ridge regression: biased estimation for nonorthogonal problems, 1970. Rifkin, Yeo, Poggio:
    Regularized least-squares classification, 2003.

    Examples
    --------
    >>> machine = RidgeClassifier(alpha=0.1).fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    >>> machine.predict([[1.4], [1.6]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        form: str = "auto",
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.form = form

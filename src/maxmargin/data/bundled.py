"""Tables that come with the libraries maxmargin stands on: nothing is fetched."""

from __future__ import annotations

import numpy as np

from maxmargin.data.table import Table


def breast_cancer() -> Table:
    """569 tumours, 30 measurements each, benign or malignant (Wolberg, Street, Mangasarian, 1995; from scikit-learn).

    Examples
    --------
    >>> table = breast_cancer()
    >>> table.n_rows, table.n_columns, sorted(set(table.y.tolist()))
    (569, 30, ['benign', 'malignant'])
    """
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    labels = np.asarray(bunch.target_names)[bunch.target].astype(str)
    names = tuple(str(name) for name in bunch.feature_names)
    return Table("breast cancer (Wisconsin)", np.ascontiguousarray(bunch.data), names, labels, "diagnosis")

"""Labels of any type: when two of them are the same, and when text stands for numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.data.errors import UnknownLabel


def plain_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels that are whole numbers as integers.

    Examples
    --------
    >>> plain_labels(np.array([1.0, 2.0]))
    array([1, 2])
    """
    if labels.dtype.kind == "f" and len(labels) and np.all(np.isfinite(labels)):
        whole = labels.astype(np.int64) if np.abs(labels).max() < 2**53 else None
        if whole is not None and np.array_equal(whole, labels):
            return whole
    return labels


def label_text(label: Any) -> str:
    """The text of a label, the same for every file format.

    Examples
    --------
    >>> label_text(1.0), label_text("spam"), label_text(True), label_text(0.5)
    ('1', 'spam', 'true', '0.5')
    """
    if isinstance(label, bool):
        return "true" if label else "false"
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


def as_classes(y: NDArray[Any], classes: NDArray[Any], source: str) -> NDArray[Any]:
    """Labels as the classes they stand for, whatever type the file gave them; unknown ones are an error.

    Examples
    --------
    >>> as_classes(np.array(["1", "2"]), np.array([1, 2]), "t.csv")
    array([1, 2])
    """
    known = {label_text(label): label for label in classes.tolist()}
    found, position = np.unique(y, return_inverse=True)
    texts = [label_text(label) for label in found.tolist()]
    unknown = [text for text in texts if text not in known]
    if unknown:
        raise UnknownLabel(
            source, "labels", f"the label {unknown[0]!r} is unknown to the model, which has {' and '.join(known)}"
        )
    return np.asarray(np.array([known[text] for text in texts], dtype=classes.dtype)[position.ravel()])

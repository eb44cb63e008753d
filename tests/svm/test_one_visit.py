"""From the call of fit to the first pass: every parameter is checked once, and X is read once."""

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import LinearSVC, LinearSVR, LogisticRegression, _core, inputs, problem
from maxmargin.svm import base, classifier
from tests.conftest import tall

READS = ("survey", "squared_norms", "scores", "combine", "normal_matrix", "gram", "gram_block")
CHECKS = (
    "positive_number",
    "number_in",
    "truth_value",
    "check_weights",
    "check_labels",
    "check_targets",
    "check_costs",
    "check_sizes",
)
MACHINES = {
    "hinge": (LinearSVC(loss="hinge"), 2), "squared hinge": (LinearSVC(), 2), "l1": (LinearSVC(penalty="l1"), 2),
    "hard": (LinearSVC(C=np.inf), 2), "logistic": (LogisticRegression(), 2), "ovr": (LinearSVC(), 4),
    "joint hinge": (LinearSVC(multi_class="crammer_singer"), 4), "multinomial": (LogisticRegression(), 4),
    "tube": (LinearSVR(epsilon=0.1), 0),
}  # fmt: skip


def data(n_classes):
    X, y = tall(200, 5)
    if n_classes == 2:
        return X + 4.0 * y[:, None], y
    return X, np.digitize(X[:, 0], np.linspace(-0.8, 0.8, n_classes - 1)) if n_classes else X @ np.arange(5.0)


@pytest.mark.parametrize("layout", [np.asarray, np.float32, sp.csr_array])
@pytest.mark.parametrize("name", MACHINES)
def test_one_visit_of_x_comes_before_the_work(name, layout, monkeypatch):
    machine, n_classes = MACHINES[name]
    X, y = data(n_classes)
    seen = []
    for reads in READS:
        original = getattr(_core, reads)

        def watched(rows, *given, reads=reads, original=original, **options):
            seen.append((reads, rows.shape))
            return original(rows, *given, **options)

        monkeypatch.setattr(_core, reads, watched)
    machine.fit(layout(X), y)
    assert seen[0] == ("survey", X.shape)
    whole = Counter(reads for reads, shape in seen if shape == X.shape)
    assert whole["survey"] == 1
    assert whole["squared_norms"] == 0


@pytest.mark.parametrize("name", MACHINES)
def test_no_parameter_is_checked_twice(name, monkeypatch):
    machine, n_classes = MACHINES[name]
    X, y = data(n_classes)
    seen = Counter()
    for check in CHECKS:
        original = getattr(inputs, check)

        def watched(*given, check=check, original=original, **options):
            seen[check, given[0] if isinstance(given[0], str) else ""] += 1
            return original(*given, **options)

        for module in (inputs, problem, base, classifier):
            if hasattr(module, check):
                monkeypatch.setattr(module, check, watched)
    machine.fit(X, y)
    assert ("positive_number", "C") in seen
    assert [what for what, times in seen.items() if times > 1] == []

"""What machines with a kernel are given, and by whom: labels and rows of every type, searches in processes."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.svm
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin
from maxmargin import SVC, SVR
from tests.svm.kernel_data import rows_and_labels, rows_and_numbers

LABELS = {
    "text": lambda side: np.where(side, "yes", "no"),
    "truth": lambda side: side,
    "objects": lambda side: np.where(side, "yes", "no").astype(object),
    "list": lambda side: np.where(side, "yes", "no").tolist(),
    "bytes": lambda side: side.astype(np.int8),
    "floats": lambda side: np.where(side, 1.0, -1.0),
    "far": lambda side: np.where(side, 10**18, -(10**18)),
    "categories": lambda side: pd.Series(np.where(side, "yes", "no")).astype("category"),
    "pandas text": lambda side: pd.Series(np.where(side, "yes", "no"), dtype="string"),
    "pandas truth": lambda side: pd.Series(side, dtype="boolean"),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
def test_labels_of_every_type_come_back_as_from_scikit_learn(name, kind):
    X, y = rows_and_labels("breast")
    labels = LABELS[kind](y == y[0])
    ours, theirs = (getattr(package, name)().fit(X, labels) for package in (maxmargin, sklearn.svm))
    assert ours.classes_.dtype == theirs.classes_.dtype
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    found, expected = ours.predict(X), theirs.predict(X)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_matrix, sp.lil_array])
def test_sparse_rows_of_every_kind_make_the_same_machine(container, index):
    X, y = rows_and_labels("digits")
    plain = SVC().fit(sp.csr_array(X), y)
    rows = container(X)
    for name in ("indices", "indptr"):
        if hasattr(rows, name):
            setattr(rows, name, getattr(rows, name).astype(index))
    machine = SVC().fit(rows, y)
    assert machine.support_vectors_.format == "csr"
    assert isinstance(machine.support_vectors_, sp.sparray) == isinstance(rows, sp.sparray)
    np.testing.assert_array_equal(machine.decision_function(rows), plain.decision_function(sp.csr_array(X)))


@pytest.mark.parametrize(("dtype", "kept"), [(np.float32, np.float32), (np.float64, np.float64), (np.int8, np.float64)])
def test_the_type_of_support_vectors(dtype, kept):
    X, y = rows_and_labels("digits")
    X = np.round(X * 16.0)
    machine = SVC().fit(X.astype(dtype), y)
    assert machine.support_vectors_.dtype == kept
    assert machine.dual_coef_.dtype == machine.decision_function(X.astype(dtype)).dtype == np.float64
    np.testing.assert_array_equal(machine.decision_function(X), machine.decision_function(X.astype(dtype)))


def test_searches_in_processes_find_the_same():
    X, y = rows_and_labels("digits")
    grid = {"C": [0.1, 1.0], "gamma": [0.01, 0.1]}
    one, two = (GridSearchCV(SVC(), grid, cv=3, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


@pytest.mark.parametrize("name", ["SVR", "NuSVR", "OneClassSVM", "SVDD"])
def test_names_of_columns(name):
    X, y = rows_and_numbers()
    frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])
    machine = getattr(maxmargin, name)().fit(frame, y)
    assert machine.feature_names_in_.tolist() == frame.columns.tolist()
    expected = machine.predict(frame)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(machine.predict(X), expected)
    with pytest.raises(ValueError, match="feature names"):
        machine.predict(frame[frame.columns[::-1]])
    with pytest.warns(UserWarning, match="fitted without feature names"):
        getattr(maxmargin, name)().fit(X, y).predict(frame)


def test_pipelines_of_data_frames():
    X, y = rows_and_numbers()
    frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])
    with sklearn.config_context(transform_output="pandas"):
        pipeline = make_pipeline(StandardScaler(), SVR()).fit(frame, y)
        assert type(pipeline.predict(frame)) is np.ndarray
    assert pipeline[-1].feature_names_in_.tolist() == frame.columns.tolist()


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "SVDD"])
def test_weights_are_routed_where_they_are_asked_for(name):
    X, y = rows_and_labels("iris") if name.endswith("SVC") else rows_and_numbers()
    weight = np.linspace(1.0, 2.0, len(y))
    options = {"nu": 0.1} if name in ("NuSVC", "NuSVR", "OneClassSVM", "SVDD") else {}
    machine, scaler = getattr(maxmargin, name)(**options), StandardScaler().set_fit_request
    with sklearn.config_context(enable_metadata_routing=True):
        asking = make_pipeline(scaler(sample_weight=False), machine.set_fit_request(sample_weight=True))
        asking.fit(X, y, sample_weight=weight)
    expected = getattr(maxmargin, name)(**options).fit(StandardScaler().fit_transform(X), y, sample_weight=weight)
    np.testing.assert_array_equal(asking[-1].dual_coef_, expected.dual_coef_)
    without = getattr(maxmargin, name)(**options).fit(StandardScaler().fit_transform(X), y)
    assert not np.array_equal(without.support_, expected.support_) or not np.array_equal(
        without.dual_coef_, expected.dual_coef_
    )

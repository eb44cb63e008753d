"""Code written for scikit-learn's kernel machines runs after replacing the import."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.svm
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin
from tests.svm.kernel_data import gaussian, rows_and_labels, rows_and_numbers

NAMES = ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"]
STRICTER = {"tol": 1e-6, "cache_size": 2000}  # a relative duality gap; as much memory as machines have today
GONE = {"probA_", "probB_"}  # deprecated: there is one steepness for all classes here


def pair(name):
    return getattr(maxmargin, name), getattr(sklearn.svm, name)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_parameters_in_the_same_order_with_the_same_defaults(name):
    ours, theirs = ({p.name: p for p in inspect.signature(cls).parameters.values()} for cls in pair(name))
    assert list(ours)[: len(theirs)] == list(theirs)
    for parameter in theirs.values():
        own = ours[parameter.name]
        assert own.kind is parameter.kind
        assert own.default == STRICTER.get(parameter.name, parameter.default), parameter.name


@pytest.mark.parametrize("name", NAMES)
def test_every_value_of_scikit_learn_is_accepted(name):
    ours, theirs = pair(name)
    X, y = rows_and_numbers() if name.endswith("R") else rows_and_labels("iris")
    machine = ours(**theirs().get_params()).fit(X, y)
    assert machine.predict(X).shape == y.shape


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_same_methods_and_fitted_attributes(name, kernel):
    ours, theirs = (cls(kernel=kernel) for cls in pair(name))
    X, y = rows_and_numbers() if name.endswith("R") else rows_and_labels("iris")
    for rows in (X, sp.csr_array(X)):
        own, other = ours.fit(rows, y), theirs.fit(rows, y)
        public = [attribute for attribute in dir(other) if not attribute.startswith("_") and attribute not in GONE]
        methods = {attribute for attribute in public if callable(getattr(type(other), attribute, None))}
        fitted = {attribute for attribute in public if attribute.endswith("_") and hasattr(other, attribute)}
        assert methods | fitted <= set(dir(own))
        for attribute in fitted:
            found, expected = getattr(own, attribute), getattr(other, attribute)
            if attribute not in ("support_", "support_vectors_", "dual_coef_"):  # other rounding, other rows
                assert np.shape(found) == np.shape(expected), attribute
            assert np.ndim(found) == np.ndim(expected), attribute
            assert sp.issparse(found) == sp.issparse(expected), attribute
            assert isinstance(found, int) == isinstance(expected, int), attribute
    for test in (is_classifier, is_regressor, is_outlier_detector):
        assert test(own) == test(other)


@pytest.mark.parametrize("name", [*NAMES, "SVDD"])
def test_pickles_and_copies(name):
    X, y = rows_and_numbers() if name.endswith("R") else rows_and_labels("breast")
    machine = getattr(maxmargin, name)(nu=0.1) if name in ("SVDD", "OneClassSVM") else getattr(maxmargin, name)()
    machine.fit(X, y)
    again = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))
    np.testing.assert_array_equal(again.violating_, machine.violating_)
    assert (again.get_params(), repr(again)) == (machine.get_params(), repr(machine))
    assert again.certificate_.verify(X, y)
    other = clone(machine)
    assert other.get_params() == machine.get_params()
    assert not hasattr(other, "support_")


def test_a_pickle_holds_no_rows_but_the_support_vectors():
    """Far rows need no multiplier: a thousand more of them add their multipliers, 0, and no values."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 40)), np.repeat([0, 1], 30)
    far = np.where(np.arange(1000) % 2 == 0, -40.0, 40.0)[:, None] * np.eye(1, 40) + rng.standard_normal((1000, 40))
    X[:, 0] += 3.0 * (2 * y - 1)
    options = {"kernel": "linear", "C": 0.1}
    small = maxmargin.SVC(**options).fit(X, y)
    large = maxmargin.SVC(**options).fit(np.vstack([X, far]), np.concatenate([y, np.arange(1000) % 2]))
    assert len(large.support_) <= 60
    rows = 8 * 40 * (len(large.support_) - len(small.support_))
    assert len(pickle.dumps(large)) - len(pickle.dumps(small)) < rows + 1000 * 8 * 6 < 1000 * 8 * 40


def test_data_frames_and_their_names():
    frame, y = load_wine(return_X_y=True, as_frame=True)
    machine = maxmargin.SVC().fit(frame, y.map({0: "barolo", 1: "grignolino", 2: "barbera"}))
    assert machine.feature_names_in_.tolist() == frame.columns.tolist()
    assert set(machine.predict(frame)) <= {"barolo", "grignolino", "barbera"}
    with pytest.raises(ValueError, match="feature names"):
        machine.predict(frame.rename(columns={"ash": "dust"}))
    regression = maxmargin.SVR().fit(frame, y)
    assert isinstance(pd.Series(regression.predict(frame), index=frame.index), pd.Series)
    assert maxmargin.OneClassSVM().fit(frame).n_features_in_ == 13


def test_metadata_routing():
    X, y = rows_and_labels("iris")
    weight = np.where(y == "a", 5.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        machine = maxmargin.SVC().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, machine).fit(X, y, sample_weight=weight)
    expected = maxmargin.SVC().fit(StandardScaler().fit_transform(X), y, weight)
    np.testing.assert_array_equal(pipeline[-1].dual_coef_, expected.dual_coef_)


def test_searches_slice_given_values_both_ways():
    X, y = rows_and_labels("iris")
    K = gaussian(0.5, X, X)
    grid = {"C": [0.1, 1.0, 10.0]}
    rows = GridSearchCV(maxmargin.SVC(gamma=0.5), grid, cv=3).fit(X, y)
    given = GridSearchCV(maxmargin.SVC(kernel="precomputed"), grid, cv=3).fit(K, y)
    np.testing.assert_allclose(rows.cv_results_["mean_test_score"], given.cv_results_["mean_test_score"])
    numbers, targets = rows_and_numbers()
    found = [
        cross_val_predict(maxmargin.SVR(**options), Z, targets, cv=3)
        for options, Z in (({"gamma": 0.1}, numbers), ({"kernel": "precomputed"}, gaussian(0.1, numbers, numbers)))
    ]
    np.testing.assert_allclose(*found, atol=5e-3)


@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
def test_as_accurate_as_scikit_learns(name):
    X, y = load_iris(return_X_y=True)
    options = {"nu": 0.2} if name == "NuSVC" else {}
    ours, theirs = (cross_val_score(cls(**options), X, y, cv=5).mean() for cls in pair(name))
    assert ours == pytest.approx(theirs, abs=0.01)


def test_inside_other_machines():
    X, y = rows_and_labels("iris")
    machine = maxmargin.SVC()
    for wrapper in (OneVsRestClassifier, OneVsOneClassifier):
        assert wrapper(machine).fit(X, y).score(X, y) > 0.9
    assert CalibratedClassifierCV(machine, ensemble=False, cv=3).fit(X, y).predict_proba(X).shape == (140, 3)
    assert BaggingClassifier(machine, n_estimators=3, random_state=0).fit(X, y).score(X, y) > 0.9
    assert StackingClassifier([("a", machine)], maxmargin.LogisticRegression(), cv=3).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("name", [*NAMES, "SVDD"])
def test_notebooks_show_machines_without_a_warning(name):
    assert name in getattr(maxmargin, name)()._repr_html_()

"""Code written for scikit-learn's LinearSVC and LinearSVR runs after replacing the import."""

import inspect
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
import sklearn.svm
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, learning_curve
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin

PAIRS = [
    (maxmargin.LinearSVC, sklearn.svm.LinearSVC),
    (maxmargin.LinearSVR, sklearn.svm.LinearSVR),
]


@pytest.fixture
def iris():
    return load_iris(return_X_y=True)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_every_parameter_of_scikit_learn_is_accepted(ours, theirs):
    own, known = ours(), theirs().get_params()
    assert set(known) <= set(own.get_params())
    for name, value in known.items():
        assert own.set_params(**{name: value}).get_params()[name] == value
    assert ours(**known).get_params().items() >= known.items()
    for name in set(known) - {"tol", "max_iter"}:  # these two mean something stricter here
        assert ours().get_params()[name] == known[name], name


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_the_same_parameters_are_positional(ours, theirs):
    def positional(estimator):
        parameters = inspect.signature(estimator).parameters.values()
        return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]

    assert positional(ours)[: len(positional(theirs))] == positional(theirs)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_the_same_methods_and_fitted_attributes(ours, theirs):
    X, y = load_iris(return_X_y=True)
    own, other = ours().fit(X, y), theirs(max_iter=10**5).fit(X, y)
    public = {name for name in dir(other) if not name.startswith("_")}
    assert public <= set(dir(own))
    for name in ("coef_", "intercept_"):
        assert np.shape(getattr(own, name)) == np.shape(getattr(other, name)), name
    assert own.n_features_in_ == other.n_features_in_ == 4
    assert type(own.n_iter_) is int
    assert is_classifier(own) == is_classifier(other)
    assert is_regressor(own) == is_regressor(other)


def test_positional_penalty_and_loss(iris):
    machine = maxmargin.LinearSVC("l2", "hinge").fit(*iris)
    assert (machine.penalty, machine.loss) == ("l2", "hinge")
    assert (maxmargin.LinearSVC("l1").fit(*iris).coef_ == 0.0).any()


@pytest.mark.parametrize("options", [{}, {"loss": "hinge"}, {"multi_class": "crammer_singer"}, {"penalty": "l1"}])
def test_as_accurate_as_scikit_learns(iris, options):
    scores = [
        cross_val_score(
            make_pipeline(StandardScaler(), package.LinearSVC(**options, max_iter=10**6)), *iris, cv=5
        ).mean()
        for package in (maxmargin, sklearn.svm)
    ]
    assert scores[0] >= scores[1] - 0.03


def test_dual_warns_but_works(iris):
    with pytest.warns(UserWarning, match="dual=False has no effect"):
        maxmargin.LinearSVC(dual=False).fit(*iris)


def test_grid_search_over_a_pipeline(iris):
    pipeline = Pipeline([("scale", StandardScaler()), ("svm", maxmargin.LinearSVC())])
    grid = {"svm__C": [0.1, 1.0], "svm__loss": ["hinge", "squared_hinge"], "svm__class_weight": [None, "balanced"]}
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=1).fit(*iris)
    assert search.best_score_ > 0.9
    assert search.score(*iris) > 0.9


def test_searches_in_threads(iris):
    grid = {"C": [0.1, 1.0]}
    with joblib.parallel_backend("threading"):
        one, two = (GridSearchCV(maxmargin.LinearSVC(), grid, cv=3, n_jobs=n).fit(*iris) for n in (1, 2))
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])


def test_regression_search():
    X, y = load_diabetes(return_X_y=True)
    machine = TransformedTargetRegressor(maxmargin.LinearSVR(epsilon=0.1), transformer=StandardScaler())
    search = GridSearchCV(make_pipeline(StandardScaler(), machine), {}, scoring="r2", cv=3).fit(X, y)
    assert search.best_score_ > 0.4


def test_clone_copies_parameters_and_nothing_else(iris):
    machine = maxmargin.LinearSVC(C=3.0, loss="hinge", class_weight={0: 2.0}).fit(*iris)
    other = clone(machine)
    assert other.get_params() == machine.get_params()
    assert not hasattr(other, "coef_")


def test_text():
    texts = ["good fun", "great fun", "good great", "bad dull", "dull sad", "bad sad"]
    machine = make_pipeline(TfidfVectorizer(), maxmargin.LinearSVC()).fit(texts, ["+", "+", "+", "-", "-", "-"])
    assert machine.predict(["fun", "sad"]).tolist() == ["+", "-"]


def test_data_frames_and_their_names():
    frame, y = load_wine(return_X_y=True, as_frame=True)
    machine = make_pipeline(StandardScaler(), maxmargin.LinearSVC()).set_output(transform="pandas").fit(frame, y)
    assert machine[-1].feature_names_in_.tolist() == frame.columns.tolist()
    assert machine.score(frame, y) > 0.97
    with pytest.raises(ValueError, match="feature names"):
        machine[-1].predict(frame.rename(columns={"ash": "dust"}))
    named = y.map({0: "barolo", 1: "grignolino", 2: "barbera"})
    assert set(clone(machine).fit(frame, named).predict(frame)) == set(named)
    regression = maxmargin.LinearSVR().fit(frame, y)
    assert regression.feature_names_in_.tolist() == frame.columns.tolist()
    assert isinstance(pd.Series(regression.predict(frame), index=frame.index), pd.Series)


def test_metadata_routing(iris):
    X, y = iris
    weight = np.where(y == 0, 5.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        machine = maxmargin.LinearSVC().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, machine).fit(X, y, sample_weight=weight)
    expected = maxmargin.LinearSVC().fit(StandardScaler().fit_transform(X), y, weight)
    np.testing.assert_array_equal(pipeline[-1].coef_, expected.coef_)


def test_weights_by_pipeline_prefix(iris):
    X, y = iris
    weight = np.where(y == 0, 5.0, 1.0)
    pipeline = make_pipeline(maxmargin.LinearSVC()).fit(X, y, linearsvc__sample_weight=weight)
    np.testing.assert_array_equal(pipeline[-1].coef_, maxmargin.LinearSVC().fit(X, y, sample_weight=weight).coef_)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibrated(iris, method):
    calibrated = CalibratedClassifierCV(maxmargin.LinearSVC(), method=method, cv=3).fit(*iris)
    np.testing.assert_allclose(calibrated.predict_proba(iris[0]).sum(axis=1), 1.0)
    assert calibrated.score(*iris) > 0.9


@pytest.mark.parametrize("wrapper", [OneVsRestClassifier, OneVsOneClassifier])
def test_wrapped_for_several_classes(iris, wrapper):
    X, y = iris
    scheme = "ovr" if wrapper is OneVsRestClassifier else "ovo"
    wrapped = wrapper(maxmargin.LinearSVC()).fit(X, y)
    own = maxmargin.LinearSVC(multi_class=scheme).fit(X, y)
    for part, w in zip(wrapped.estimators_, own.coef_, strict=True):
        np.testing.assert_allclose(part.coef_[0], w, rtol=1e-9)
    np.testing.assert_array_equal(wrapped.predict(X), own.predict(X))
    np.testing.assert_allclose(wrapped.decision_function(X), own.decision_function(X), rtol=1e-9, atol=1e-12)


def test_feature_selection():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    selector = SelectFromModel(maxmargin.LinearSVC(penalty="l1", C=0.01)).fit(X, y)
    kept = selector.get_support()
    assert 0 < kept.sum() < X.shape[1]
    assert np.array_equal(kept, (np.abs(selector.estimator_.coef_).sum(axis=0) > 1e-5))
    assert RFE(maxmargin.LinearSVC(), n_features_to_select=3).fit(X, y).support_.sum() == 3
    assert SelectFromModel(maxmargin.LinearSVR()).fit(X, y).transform(X).shape[1] < X.shape[1]


def test_ensembles(iris):
    X, y = iris
    svm, logistic = maxmargin.LinearSVC(), maxmargin.LogisticRegression()
    assert VotingClassifier([("a", svm), ("b", logistic)]).fit(X, y).score(X, y) > 0.9
    assert StackingClassifier([("a", svm)], logistic, cv=3).fit(X, y).score(X, y) > 0.9
    assert BaggingClassifier(svm, n_estimators=3, random_state=0).fit(X, y).score(X, y) > 0.9
    two = MultiOutputClassifier(svm).fit(X, np.column_stack([y, y == 1]))
    assert two.predict(X).shape == (150, 2)


def test_curves_and_held_out_scores(iris):
    X, y = iris
    assert cross_val_predict(maxmargin.LinearSVC(), X, y, method="decision_function", cv=3).shape == (150, 3)
    assert cross_val_predict(maxmargin.LinearSVC(probability=True), X, y, method="predict_proba", cv=3).shape == (
        150,
        3,
    )
    sizes, _, scores = learning_curve(maxmargin.LinearSVC(), X, y, cv=3, shuffle=True, random_state=0)
    assert scores.shape == (len(sizes), 3)


@pytest.mark.parametrize(
    "machine",
    [
        maxmargin.LinearSVC(),
        maxmargin.LinearSVC(multi_class="ovo", probability=True),
        maxmargin.LinearSVC(multi_class="crammer_singer"),
        maxmargin.LinearSVR(),
        maxmargin.LogisticRegression(),
        maxmargin.LogisticRegression("l1"),
    ],
    ids=str,
)
def test_pickles(iris, machine):
    X, y = iris
    machine = clone(machine).fit(X, y)
    again = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))
    assert again.certificate_.verify(X, y)
    assert again.solution_.status is machine.solution_.status
    assert repr(again) == repr(machine)
    assert again.get_params() == machine.get_params()


@pytest.mark.parametrize("machine", [maxmargin.LinearSVC(), maxmargin.LinearSVR(), maxmargin.LogisticRegression()])
def test_notebooks_show_machines_without_a_warning(machine):
    assert type(machine).__name__ in machine._repr_html_()
